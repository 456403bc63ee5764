/* tests/support/run.h: for tests that make their programs with the compiler and binutils. */
#pragma once

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* Runs a command in a folder; the test fails when it does. Include after cmocka.h. */
__attribute__((format(printf, 2, 3))) static inline void run_in(const char *folder, const char *fmt,
								...)
{
	char command[2048], all[2400];
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(command, sizeof(command), fmt, args);
	va_end(args);
	(void)snprintf(all, sizeof(all), "cd %s && ( %s ) 2>/dev/null", folder, command);
	if (system(all) != 0)
		fail_msg("failed: %s", command);
}
