/*
 * src/server/serve.h: from one request to its answer, without the HTTP library: who may ask, what
 * is asked, who answers.
 */
#pragma once

#include "server/answer.h"
#include "server/gate.h"
#include "server/host.h"
#include "server/routes.h"

#define SERVE_MAX_URI 8192

struct serve {
	struct context context;
	struct host host;
	struct gate gate;
};

/* What of a request counts. Headers are NULL when they are not there. */
struct serve_request {
	const char *method;
	const char *uri; /* path and parameters as they came */
	const char *host;
	const char *origin;
	const char *fetch_site; /* Sec-Fetch-Site */
	const char *accept_encoding;
	const char *if_none_match;
	bool has_body;
};

/* False, with the answer, when the request is refused whatever it asks for. */
bool serve_check(const struct serve *s, const struct serve_request *rq, struct answer *a);
/* Always leaves an answer. */
void serve_answer(struct serve *s, const struct serve_request *rq, struct answer *a);
