/* src/base/err.c: see err.h. */
#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int err_set(struct err *err, int code, const char *fmt, ...)
{
	va_list ap;

	if (!err)
		return code;
	va_start(ap, fmt);
	(void)vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	return code;
}

int err_prefix(struct err *err, int code, const char *fmt, ...)
{
	char old[sizeof(err->text)];
	va_list ap;
	size_t n;

	if (!err)
		return code;
	memcpy(old, err->text, sizeof(old));
	va_start(ap, fmt);
	(void)vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	n = strlen(err->text);
	(void)snprintf(err->text + n, sizeof(err->text) - n, ": %s", old);
	return code;
}

int err_oom(struct err *err)
{
	return err_set(err, -ENOMEM, "out of memory");
}
