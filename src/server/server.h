/*
 * src/server/server.h: the HTTP server: JSON API, metrics and the web page (docs/API.md).
 *
 * Loopback only; the Host header must name the machine itself, so that a web page elsewhere cannot
 * reach us through the reader's browser.
 */
#pragma once

#include <stdint.h>

#include "agent/agent.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "store/store.h"

struct server_config {
	const char *listen;   /* "127.0.0.1:7780"; port 0 takes any */
	uint64_t interval_ns; /* how often is collected, for the answers; 0 when unknown */
	uint64_t request_ns;  /* how long a client may take to send its headers; 0: no limit */
	uint64_t answer_ns;   /* and to read what it is sent */
};

struct server; /* opaque */

/*
 * Borrows agent (NULL: only the store is served) and store. -EINVAL for an address that is not this
 * machine's own, -EADDRINUSE when somebody else listens there.
 */
int server_start(const struct server_config *config, struct agent *agent, struct store *store,
		 struct server **ret_server, struct err *err);
uint16_t server_port(const struct server *server);
void server_stop(struct server *server); /* NULL is fine */
DEFINE_CLEANUP(struct server, server_stop)
