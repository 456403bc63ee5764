/* src/cli/json_pair.h: writes a member of a JSON object; the value's type decides how. */
#pragma once

#include "base/json.h"

/* Evaluates value once. Comparisons are int in C: cast them to bool. */
#define json_pair(j, key, value)                                                                   \
	(json_key((j), (key)), _Generic((value),                                                   \
	char *: json_cstring,                                                                      \
	const char *: json_cstring,                                                                \
	struct view: json_string,                                                                  \
	bool: json_bool,                                                                           \
	double: json_double,                                                                       \
	int: json_int,                                                                             \
	int64_t: json_int,                                                                         \
	uint32_t: json_uint,                                                                       \
	uint64_t: json_uint,                                                                       \
	unsigned long long: json_uint)((j), (value)))
