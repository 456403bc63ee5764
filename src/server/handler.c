/* src/server/handler.c: see handler.h. */
#include "server/handler.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/gzip.h"
#include "server/assets.h"

#define SERVE_WAIT_MS 5000

bool server_check(const struct server_handler *s, const struct server_raw_request *rq,
		  struct server_answer *a)
{
	if (strlen(rq->uri) > SERVER_MAX_URI) {
		server_answer_refuse(a, 414,
				     "the URL is too long; use fewer or shorter parameters");
	} else if (rq->malformed) {
		server_answer_refuse(a, 400,
				     "the request has control characters, folded header lines, or "
				     "lines that do not end with CR LF");
	} else if (!rq->host || !server_host_matches(&s->host, rq->host)) {
		server_answer_refuse(
			a, 403,
			"the Host header does not name this server; use the address printed "
			"at startup, such as http://127.0.0.1:7780");
	} else if (rq->origin && !server_host_is_origin(&s->host, rq->origin)) {
		server_answer_refuse(a, 403, "cross-origin requests are not allowed");
	} else if (strcmp(rq->method, "GET") != 0 && strcmp(rq->method, "HEAD") != 0) {
		server_answer_refuse(a, 405, "only GET and HEAD are allowed");
		a->allow = "GET, HEAD";
	} else if (rq->has_body) {
		server_answer_refuse(a, 400, "the request has a body; pass parameters in the URL");
	} else {
		return true;
	}
	return false;
}

/* "gzip" or "*" among the encodings, and not with a weight of 0. */
static bool accepts_gzip(const char *header)
{
	while (header && *header) {
		size_t len, name;
		const char *q;

		header += strspn(header, " \t,");
		len = strcspn(header, ",");
		name = strcspn(header, " \t;,");
		q = memmem(header, len, "q=", 2);
		if ((name == 4 && strncasecmp(header, "gzip", 4) == 0) ||
		    (name == 1 && *header == '*'))
			return !q || strtod(q + 2, NULL) > 0;
		header += len;
	}
	return false;
}

static void serve_asset(const struct server_raw_request *rq, const char *path,
			struct server_answer *a)
{
	const struct server_asset *asset = server_assets_find(path);
	struct view data;
	int r;

	if (!asset) {
		server_answer_refuse(a, 404, "no such file");
		return;
	}
	a->type = asset->type;
	a->etag = asset->etag;
	/* The page itself is cached too, but revalidated each time. */
	a->cache = asset->immutable ? "public, max-age=31536000, immutable" : "no-cache";
	if (rq->if_none_match &&
	    (strstr(rq->if_none_match, asset->etag) || strcmp(rq->if_none_match, "*") == 0)) {
		a->status = 304;
		return;
	}
	data = view_of(asset->data, asset->len);
	if (asset->packed && !accepts_gzip(rq->accept_encoding)) {
		r = gzip_unpack(data, &a->body, NULL);
	} else {
		r = buf_append(&a->body, data.data, data.len);
		a->packed = asset->packed;
	}
	if (r < 0)
		server_answer_error(a, -ENOMEM, &(struct err){.text = "out of memory"});
}

static int serve_route(struct server_handler *s, const struct server_route *route,
		       const char *query, struct server_answer *a, struct err *err)
{
	_cleanup_free_ struct server_request *rq = calloc(1, sizeof(*rq));
	int r;

	if (!rq)
		return err_oom(err);
	rq->context = &s->context;
	rq->now_ns = (int64_t)clock_unix_ns();
	r = server_params_parse(&route->rules, query, rq->now_ns, &rq->params, err);
	if (r < 0)
		return r;
	if (!route->heavy)
		return route->handle(rq, a, err);
	if (!server_gate_enter(&s->gate, SERVE_WAIT_MS))
		return err_set(err, -EBUSY, "too many concurrent requests; try again in a second");
	r = route->handle(rq, a, err);
	server_gate_leave(&s->gate);
	return r;
}

/*
 * "none": typed by a user. "same-site" is another port of this machine, and so anybody's page.
 * Programs that are no browsers send nothing.
 */
static bool is_own_page(const char *fetch_site)
{
	return !fetch_site || strcmp(fetch_site, "same-origin") == 0 ||
	       strcmp(fetch_site, "none") == 0;
}

void server_respond(struct server_handler *s, const struct server_raw_request *rq,
		    struct server_answer *a)
{
	const char *question = strchr(rq->uri, '?');
	size_t len = question ? (size_t)(question - rq->uri) : strlen(rq->uri);
	_cleanup_free_ char *path = strndup(rq->uri, len);
	const struct server_route *route;
	struct err err = {};
	int r;

	if (!path) {
		server_answer_error(a, -ENOMEM, &(struct err){.text = "out of memory"});
		return;
	}
	route = server_routes_find(path);
	if (!route && strncmp(path, "/api/", 5) != 0) {
		serve_asset(rq, path, a);
		return;
	}
	if (!route) {
		r = server_routes_unknown(path, &err);
		server_answer_error(a, r, &err);
		return;
	}
	if (!is_own_page(rq->fetch_site)) {
		server_answer_refuse(a, 403, "cross-origin requests are not allowed");
		return;
	}
	r = serve_route(s, route, question ? question + 1 : "", a, &err);
	if (r < 0)
		server_answer_error(a, r, &err);
	if (accepts_gzip(rq->accept_encoding) && a->file_name[0] == '\0')
		server_answer_pack(a);
}
