/* src/cli/log.c: see log.h. */
#include "cli/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "cli/term.h"

#define LOG_LINE_MAX ((size_t)4 << 10)

static enum log_level log_threshold = LOG_WARN;

void log_set_level(enum log_level level)
{
	log_threshold = level;
}

/* Values may quote names chosen by targets: nothing in them may look like another pair or line. */
static void log_value(struct buf *line, const char *value)
{
	bool quote = !value[0] || strpbrk(value, " =\"\\");

	if (quote)
		(void)buf_append_byte(line, '"');
	for (const char *p = value; *p; p++) {
		if (*p == '"' || *p == '\\')
			(void)buf_append_byte(line, '\\');
		(void)buf_append_byte(line, (uint8_t)*p);
	}
	if (quote)
		(void)buf_append_byte(line, '"');
}

void log_event(enum log_level level, const char *message, ...)
{
	static const char *const names[] = {"error", "warn", "info"};
	_cleanup_(buf_release) struct buf line = buf_with_max(LOG_LINE_MAX);
	time_t now = time(NULL);
	const char *key;
	struct tm tm;
	char text[32];
	va_list ap;

	if (level > log_threshold)
		return;
	(void)strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &tm));
	(void)buf_printf(&line, "time=%s level=%s msg=", text, names[level]);
	log_value(&line, message);
	va_start(ap, message);
	while ((key = va_arg(ap, const char *))) {
		(void)buf_printf(&line, " %s=", key);
		log_value(&line, va_arg(ap, const char *));
	}
	va_end(ap);
	text_clean((char *)line.data, line.len);
	(void)buf_append_byte(&line, '\n');
	(void)fwrite(line.data, 1, line.len, stderr);
}
