/* src/server/host.c: see host.h. */
#include "server/host.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"

/* The port after the colon; false if it is not a port. */
static bool parse_port(const char *text, uint16_t *ret_port)
{
	size_t digits = strspn(text, "0123456789");
	long n;

	if (digits == 0 || digits > 5 || text[digits] != '\0')
		return false;
	n = strtol(text, NULL, 10);
	if (n > UINT16_MAX)
		return false;
	*ret_port = (uint16_t)n;
	return true;
}

static int host_not_ours(const char *listen, struct err *err)
{
	return err_set(err, -EINVAL,
		       "cannot listen on '%.64s': sonde exposes process memory without "
		       "authentication, so it serves this machine only. Use 127.0.0.1:PORT or "
		       "[::1]:PORT; from another machine, use `ssh -L PORT:127.0.0.1:PORT`",
		       listen);
}

static int host_parse_ipv6(const char *name, struct server_host *h)
{
	struct sockaddr_in6 *in = (void *)&h->addr;
	char plain[64];

	(void)snprintf(plain, sizeof(plain), "%.*s", (int)strlen(name) - 2, name + 1);
	if (inet_pton(AF_INET6, plain, &in->sin6_addr) != 1 ||
	    !IN6_IS_ADDR_LOOPBACK(&in->sin6_addr))
		return -EINVAL;
	h->addr.ss_family = AF_INET6;
	in->sin6_port = htons(h->port);
	h->addr_len = sizeof(*in);
	return 0;
}

static int host_parse_ipv4(const char *name, struct server_host *h)
{
	struct sockaddr_in *in = (void *)&h->addr;

	if (strcmp(name, "localhost") == 0)
		name = "127.0.0.1";
	if (inet_pton(AF_INET, name, &in->sin_addr) != 1 ||
	    ntohl(in->sin_addr.s_addr) >> 24 != IN_LOOPBACKNET)
		return -EINVAL;
	h->addr.ss_family = AF_INET;
	in->sin_port = htons(h->port);
	h->addr_len = sizeof(*in);
	return 0;
}

int server_host_parse(const char *listen, struct server_host *ret_host, struct err *err)
{
	const char *colon = strrchr(listen, ':');
	struct server_host h = {0};
	size_t len = colon ? (size_t)(colon - listen) : 0;
	int r;

	if (!colon || len == 0 || len >= sizeof(h.name) || !parse_port(colon + 1, &h.port))
		return err_set(err, -EINVAL,
			       "'%.64s' is not a listen address; use for example 127.0.0.1:7780",
			       listen);
	memcpy(h.name, listen, len);
	if (h.name[0] == '[' && h.name[len - 1] == ']')
		r = host_parse_ipv6(h.name, &h);
	else
		r = host_parse_ipv4(h.name, &h);
	if (r < 0)
		return host_not_ours(listen, err);
	*ret_host = h;
	return 0;
}

bool server_host_matches(const struct server_host *h, const char *header)
{
	const char *names[] = {"localhost", "127.0.0.1", "[::1]", h->name};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		size_t len = strlen(names[i]);
		uint16_t port;

		if (strncasecmp(header, names[i], len) != 0)
			continue;
		if (header[len] == '\0')
			return true;
		if (header[len] == ':' && parse_port(header + len + 1, &port) && port == h->port)
			return true;
	}
	return false;
}

bool server_host_is_origin(const struct server_host *h, const char *origin)
{
	const char *scheme = "http://";

	return strncasecmp(origin, scheme, strlen(scheme)) == 0 &&
	       server_host_matches(h, origin + strlen(scheme));
}
