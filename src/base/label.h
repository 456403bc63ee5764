/* src/base/label.h: a key and a value, both text; keys are OpenTelemetry's names where it has one.
 */
#pragma once

struct label {
	const char *key;
	const char *value;
};
