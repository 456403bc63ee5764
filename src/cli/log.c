/* src/cli/log.c: see log.h. */
#include "cli/log.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "cli/term.h"

#define LOG_LINE_MAX ((size_t)4 << 10)
#define LOG_TIME_LEN 32
#define LOG_DAY ((int64_t)86400)

static enum log_level log_threshold = LOG_NOTICE;

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

/*
 * Now, as 2026-11-15T12:03:00Z. By itself, as a crash may have happened inside gmtime_r(), which
 * takes a lock. The calendar is Howard Hinnant's civil_from_days(); its years begin in March.
 */
static void log_time(char dst[static LOG_TIME_LEN])
{
	int64_t now = (int64_t)time(NULL);
	int64_t seconds = now % LOG_DAY;
	int64_t day = now / LOG_DAY + 719468;
	int64_t era = day / 146097, of_era = day % 146097;
	int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
	int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
	int64_t month = (5 * of_year + 2) / 153;
	int64_t of_month = of_year - (153 * month + 2) / 5 + 1;

	(void)snprintf(dst, LOG_TIME_LEN, "%04d-%02d-%02dT%02d:%02d:%02dZ",
		       (int)(year + era * 400 + (month >= 10)),
		       (int)(month < 10 ? month + 3 : month - 9), (int)of_month,
		       (int)(seconds / 3600), (int)(seconds / 60 % 60), (int)(seconds % 60));
}

void log_event(enum log_level level, const char *message, ...)
{
	static const char *const names[] = {"error", "warn", "notice", "info"};
	_cleanup_(buf_release) struct buf line = buf_with_max(LOG_LINE_MAX);
	char text[LOG_TIME_LEN];
	const char *key;
	va_list ap;

	if (level > log_threshold)
		return;
	log_time(text);
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

/* A signal handler needs a global. */
static volatile pid_t log_process;

/* Only what is safe in a signal handler; glibc's snprintf() of numbers and texts is. */
static void log_on_fatal_signal(int number)
{
	const char *name = sigabbrev_np(number);
	char line[192], text[LOG_TIME_LEN];
	int len;

	if (getpid() == log_process) {
		log_time(text);
		len = snprintf(line, sizeof(line),
			       "time=%s level=error msg=\"killed by a signal\" signal=SIG%s "
			       "code=%d\n",
			       text, name ? name : "?", 128 + number);
		/* Where it fails, nobody is left to tell. */
		while (write(STDERR_FILENO, line, (size_t)len) < 0 && errno == EINTR)
			;
	}
	/* SA_RESETHAND: now it does what it always did. */
	(void)raise(number);
}

void log_fatal_signals(void)
{
	static const int signals[] = {SIGSEGV, SIGBUS,	SIGILL,	 SIGFPE,  SIGABRT, SIGSYS, SIGTRAP,
				      SIGQUIT, SIGXFSZ, SIGXCPU, SIGTERM, SIGINT,  SIGHUP};
	struct sigaction action = {.sa_handler = log_on_fatal_signal,
				   .sa_flags = SA_RESETHAND | SA_NODEFER};

	log_process = getpid();
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++) {
		struct sigaction old;

		if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL)
			(void)sigaction(signals[i], &action, NULL);
	}
}
