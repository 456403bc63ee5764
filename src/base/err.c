/* src/base/err.c: see err.h. */
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void err_write(struct err *err, const char *fmt, ...)
{
	va_list ap;

	if (!err)
		return;
	va_start(ap, fmt);
	(void)vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	err->remedy[0] = 0;
	err->cause = ERR_CAUSE_OTHER;
}

void err_write_remedy(struct err *err, enum err_cause cause, const char *fmt, ...)
{
	va_list ap;

	if (!err)
		return;
	va_start(ap, fmt);
	(void)vsnprintf(err->remedy, sizeof(err->remedy), fmt, ap);
	va_end(ap);
	err->cause = cause;
}

void err_write_prefix(struct err *err, const char *fmt, ...)
{
	char old[sizeof(err->text)];
	va_list ap;
	size_t n;

	if (!err)
		return;
	memcpy(old, err->text, sizeof(old));
	va_start(ap, fmt);
	(void)vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	n = strlen(err->text);
	(void)snprintf(err->text + n, sizeof(err->text) - n, ": %s", old);
}
