/*
 * src/server/server.h: the HTTP server: JSON API, metrics and the web page (docs/API.md).
 *
 * Loopback only. The Host header must name this machine, so a web page elsewhere cannot reach us
 * through the reader's browser.
 */
#pragma once

#include <stdint.h>

#include "agent/agent.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "store/store.h"

struct server_config {
	const char *listen;   /* "127.0.0.1:7780"; port 0 picks a free one */
	uint64_t interval_ns; /* collection interval, for responses; 0 if unknown */
	uint64_t request_ns;  /* time limit for a client to send its headers; 0: none */
	uint64_t answer_ns;   /* and to read the response */
	uint64_t keep_caps;   /* capabilities that reading the store needs; usually none */
};

struct server; /* opaque */

/*
 * Borrows agent (NULL: serves only the store) and store. -EINVAL if the address is not this
 * machine's own, -EADDRINUSE if it is taken.
 */
int server_start(const struct server_config *config, struct agent *agent, struct store *store,
		 struct server **ret_server, struct err *err);
uint16_t server_port(const struct server *server);
void server_stop(struct server *server); /* NULL is fine */
DEFINE_CLEANUP(struct server, server_stop)
