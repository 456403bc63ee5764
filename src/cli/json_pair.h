/* src/cli/json_pair.h: a member of a JSON object in one line; the type of the value decides. */
#pragma once

#include "base/json.h"

/* Evaluates value once. What is compared is an int in C: it needs a cast to be true or false. */
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
