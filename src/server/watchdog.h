/*
 * src/server/watchdog.h: closes connections that take too long over one request.
 *
 * The library's own timeout counts from the last byte: a client that sends one every few seconds
 * could hold a connection forever. This one counts from the start of the request.
 */
#pragma once

#include <stdint.h>

#include "base/err.h"

#define WATCHDOG_NEVER UINT64_MAX /* as a timeout */

struct watchdog;       /* opaque */
struct watchdog_entry; /* one connection */

int watchdog_start(struct watchdog **ret_watchdog, struct err *err);
void watchdog_stop(struct watchdog *w); /* NULL is fine; all entries must be removed */

/* NULL without memory. The socket must stay open until the entry is removed. */
struct watchdog_entry *watchdog_add(struct watchdog *w, int socket, uint64_t timeout_ns);
void watchdog_set(struct watchdog *w, struct watchdog_entry *e, uint64_t timeout_ns);
void watchdog_remove(struct watchdog *w, struct watchdog_entry *e);
