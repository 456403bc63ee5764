/*
 * src/server/watchdog.h: closes connections that take too long over one request.
 *
 * The library's own timeout counts from the last byte: a client that sends one every few seconds
 * could hold a connection forever. This one counts from the start of the request.
 */
#pragma once

#include <stdint.h>

#include "base/err.h"

#define SERVER_WATCHDOG_NEVER UINT64_MAX /* as a timeout */

struct server_watchdog;	      /* opaque */
struct server_watchdog_entry; /* one connection */

int server_watchdog_start(struct server_watchdog **ret_watchdog, struct err *err);
void server_watchdog_stop(
	struct server_watchdog *w); /* NULL is fine; all entries must be removed */

/* NULL if out of memory. The socket must stay open until the entry is removed. */
struct server_watchdog_entry *server_watchdog_add(struct server_watchdog *w, int socket,
						  uint64_t timeout_ns);
void server_watchdog_set(struct server_watchdog *w, struct server_watchdog_entry *e,
			 uint64_t timeout_ns);
void server_watchdog_remove(struct server_watchdog *w, struct server_watchdog_entry *e);
