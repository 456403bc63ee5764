/*
 * src/server/watchdog.h: closes connections that take too long over one request, and some when
 * there are too many.
 *
 * The library's own timeout counts from the last byte: a client that sends one every few seconds
 * could hold a connection forever. This one counts from the start of the request.
 *
 * Anybody on this machine may connect as often as they like. So a new connection is always let in:
 * where there are too many, one goes that waits for its client, of the user who has most of them,
 * the oldest first. Nobody keeps others out by that, and nobody's request is cut while we work on
 * it.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

#define SERVER_WATCHDOG_NEVER UINT64_MAX /* as a timeout */

struct server_watchdog;	      /* opaque */
struct server_watchdog_entry; /* one connection */

enum server_watchdog_state {
	SERVER_READING,	  /* its request; or waits for the next one */
	SERVER_WORKING,	  /* on its answer: the delay is ours */
	SERVER_ANSWERING, /* until the client has read it */
};

struct server_watchdog_config {
	uint64_t request_ns; /* to send the headers */
	uint64_t answer_ns;  /* to read the answer */
	/* When there are nearly too many connections: to send the headers. */
	uint64_t hurried_ns;
	size_t max; /* connections */
};

int server_watchdog_start(const struct server_watchdog_config *config,
			  struct server_watchdog **ret_watchdog, struct err *err);
void server_watchdog_stop(
	struct server_watchdog *w); /* NULL is fine; all entries must be removed */

/*
 * A new connection of this user, which begins to read; another one may have to go for it. NULL if
 * out of memory. The socket must stay open until the entry is removed.
 */
struct server_watchdog_entry *server_watchdog_add(struct server_watchdog *w, int socket, uid_t uid);
void server_watchdog_set(struct server_watchdog *w, struct server_watchdog_entry *e,
			 enum server_watchdog_state state);
void server_watchdog_remove(struct server_watchdog *w, struct server_watchdog_entry *e);
