/*
 * src/cli/log.h: what a command that runs on says while it does: one line each on stderr, with a
 * time, a level, a message and named values, so that people and machines can read it.
 *
 *   time=2026-11-15T12:03:00Z level=warn msg="the store does not write" reason="disk full"
 */
#pragma once

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO };

/* What is said from now on; LOG_WARN at first. */
void log_set_level(enum log_level level);
/* Pairs of a key and a value follow the message, and NULL ends them. */
void log_event(enum log_level level, const char *message, ...) __attribute__((sentinel));
