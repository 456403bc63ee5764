/* src/base/label.h: a key and a value. Keys are OpenTelemetry names if there is one. */
#pragma once

struct label {
	const char *key;
	const char *value;
};
