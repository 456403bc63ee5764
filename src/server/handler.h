/*
 * src/server/handler.h: turns one request into a response, without the HTTP library: access checks,
 * routing, handling.
 */
#pragma once

#include "server/api/answer.h"
#include "server/api/routes.h"
#include "server/gate.h"
#include "server/host.h"

#define SERVER_MAX_URI 8192

struct server_handler {
	struct server_context context;
	struct server_host host;
	struct server_gate gate;
};

/* The relevant parts of a request. Missing headers are NULL. */
struct server_raw_request {
	const char *method;
	const char *uri; /* path and parameters as received */
	const char *host;
	const char *origin;
	const char *fetch_site; /* Sec-Fetch-Site */
	const char *accept_encoding;
	const char *if_none_match;
	bool malformed; /* not as it was received, or with control characters */
	bool has_body;
};

/* False, with the response, if the request is refused whatever it asks for. */
bool server_check(const struct server_handler *s, const struct server_raw_request *rq,
		  struct server_answer *a);
/* Always produces a response. */
void server_respond(struct server_handler *s, const struct server_raw_request *rq,
		    struct server_answer *a);
