/*
 * src/server/watchdog.h: closes connections that take too long over one request, and some when
 * there are too many.
 *
 * The library's own timeout counts from the last byte: a client that sends one every few seconds
 * could hold a connection forever. This one counts from the start of the request.
 *
 * Anybody on this machine may connect as often as they like. So where there are too many, one of
 * the user who has most of them goes for a new one: the oldest that waits for its client. Where we
 * work on all of these, the oldest of them goes, but never for another of the same user: then it is
 * the new one. Nobody keeps others out by that, nor has their requests cut.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

#define SERVER_WATCHDOG_NEVER UINT64_MAX /* as a timeout */

struct server_watchdog;	      /* opaque */
struct server_watchdog_entry; /* one connection */

enum server_watchdog_state {
	SERVER_READING,	  /* its request; or waits for the next one */
	SERVER_WAITING,	  /* for others of its user */
	SERVER_WORKING,	  /* on its answer: the delay is ours */
	SERVER_ANSWERING, /* until the client has read it */
};

struct server_watchdog_config {
	uint64_t request_ns; /* to send the headers */
	uint64_t answer_ns;  /* to read the answer */
	/* When there are nearly too many connections: to send the headers. */
	uint64_t hurried_ns;
	size_t max; /* connections */
	/* Requests of one user at a time: or others had to share our time with all of theirs. */
	size_t max_working;
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
/* Waits for its turn to be worked on. False: the connection has been closed. */
bool server_watchdog_begin_work(struct server_watchdog *w, struct server_watchdog_entry *e);
void server_watchdog_set(struct server_watchdog *w, struct server_watchdog_entry *e,
			 enum server_watchdog_state state);
/* Bytes of the response in progress; 0 where there is none. */
void server_watchdog_hold(struct server_watchdog *w, struct server_watchdog_entry *e, size_t bytes);
/* Those of all connections of its user. */
size_t server_watchdog_held(struct server_watchdog *w, const struct server_watchdog_entry *of);
void server_watchdog_remove(struct server_watchdog *w, struct server_watchdog_entry *e);
