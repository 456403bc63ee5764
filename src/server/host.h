/*
 * src/server/host.h: the listen address, and which Host and Origin headers belong to it.
 *
 * A web page elsewhere can make its reader's browser send us requests, under a name of its own that
 * resolves to 127.0.0.1 (DNS rebinding). The Host header reveals it: it has that name.
 */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/err.h"

struct server_host {
	struct sockaddr_storage addr;
	socklen_t addr_len;
	char name[64]; /* the address as in a Host header: "127.0.0.1", "[::1]" */
	uint16_t port; /* 0: any; set once known */
};

/* "127.0.0.1:7780", "localhost:7780", "[::1]:7780". -EINVAL unless it is this machine's own. */
int server_host_parse(const char *listen, struct server_host *ret_host, struct err *err);
/*
 * Whether the header names this server: localhost, 127.0.0.1, [::1] or the listen address, with our
 * port or none.
 */
bool server_host_matches(const struct server_host *h, const char *header);
/* Whether an Origin header is this server's own page. */
bool server_host_is_origin(const struct server_host *h, const char *origin);
