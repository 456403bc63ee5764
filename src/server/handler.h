/*
 * src/server/handler.h: turns one request into a response, without the HTTP library: access checks,
 * routing, handling.
 */
#pragma once

#include "server/api/answer.h"
#include "server/api/routes.h"
#include "server/gate.h"
#include "server/host.h"

#define SERVE_MAX_URI 8192

struct serve {
	struct context context;
	struct host host;
	struct gate gate;
};

/* The relevant parts of a request. Missing headers are NULL. */
struct serve_request {
	const char *method;
	const char *uri; /* path and parameters as received */
	const char *host;
	const char *origin;
	const char *fetch_site; /* Sec-Fetch-Site */
	const char *accept_encoding;
	const char *if_none_match;
	bool has_body;
};

/* False, with the response, if the request is refused whatever it asks for. */
bool serve_check(const struct serve *s, const struct serve_request *rq, struct answer *a);
/* Always produces a response. */
void serve_answer(struct serve *s, const struct serve_request *rq, struct answer *a);
