/*
 * src/cli/log.h: log lines of long-running commands on stderr: time, level, message and key-value
 * pairs, for people and machines.
 *
 *   time=2026-11-15T12:03:00Z level=warn msg="the store does not write" reason="disk full"
 */
#pragma once

/* What ends `sonde run` is a notice, so that every end has a line. */
enum log_level { LOG_ERROR, LOG_WARN, LOG_NOTICE, LOG_INFO };

/* Sets the minimum level; LOG_NOTICE by default. */
void log_set_level(enum log_level level);
/* The message is followed by key-value pairs and NULL. */
void log_event(enum log_level level, const char *message, ...) __attribute__((sentinel));
/*
 * From here on signals that end this process, crashes among them, log so first. Children that it
 * forks are not concerned. Signals that are caught or ignored stay so.
 */
void log_fatal_signals(void);
