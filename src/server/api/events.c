/*
 * src/server/api/events.c: /api/events: OOM kills and processes near their memory limit.
 *
 * Events have their own table. Older day files have label sets with "oom.killed" instead: a kill
 * had its own set; snapshots near a limit shared one per process. For both forms, only the latest
 * of those is shown.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/intern.h"
#include "pipeline/registry/registry.h"
#include "query/query.h"
#include "server/api/routes.h"

#define OLD_FAMILY "go_oom"
/* Each one is a query to the store. */
#define EVENTS_MAX 200

/* An event of either form; everything is borrowed. */
struct happening {
	int64_t time_ns;
	const char *service;
	const char *kind;
	const char *family; /* of its snapshot; "": none */
	const struct label *labels;
	size_t n_labels;
	const struct label *attributes; /* where oom.rss and oom.picture are */
	size_t n_attributes;
};

/* All events of the window, with the data they point into. */
struct happenings {
	struct happening *items;
	size_t len;
	struct store_events_answer stored;
	struct store_stream *streams;
	struct store_labelset **sets; /* of streams */
	size_t n_sets;
};

static void happenings_release(struct happenings *e)
{
	for (size_t i = 0; i < e->n_sets; i++)
		free(e->sets[i]);
	free(e->sets);
	free(e->streams);
	free(e->items);
	store_events_answer_release(&e->stored);
}

static const char *find_label(const struct label *labels, size_t n, const char *key)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(labels[i].key, key) == 0)
			return labels[i].value;
	return NULL;
}

static int reserve(struct happenings *e, size_t n, struct err *err)
{
	struct happening *items = reallocarray(e->items, e->len + n + 1, sizeof(*items));

	if (!items)
		return err_oom(err);
	e->items = items;
	return 0;
}

static int collect_stored(const struct server_request *rq, struct happenings *e, struct err *err)
{
	const struct server_params *p = &rq->params;
	int r = store_events(rq->context->store, p->text[SERVER_PARAM_SERVICE], p->from_ns,
			     p->to_ns, &e->stored, err);

	if (r == 0)
		r = reserve(e, e->stored.len, err);
	for (size_t i = 0; r == 0 && i < e->stored.len; i++) {
		const struct store_stored_event *s = &e->stored.events[i];

		if (strncmp(s->kind, "oom_", 4) != 0)
			continue;
		e->items[e->len++] = (struct happening){
			.time_ns = s->time_ns,
			.service = s->service,
			.kind = s->kind,
			.family = s->family,
			.labels = s->labels,
			.n_labels = s->n_labels,
			.attributes = s->attributes,
			.n_attributes = s->n_attributes,
		};
	}
	return r;
}

static int add_sets(struct happenings *e, const char *service, const struct store_labelset *sets,
		    size_t n, struct err *err)
{
	int r = reserve(e, n, err);

	for (size_t i = 0; r == 0 && i < n; i++) {
		const struct store_labelset *s = &sets[i];
		const char *killed = find_label(s->labels, s->n_labels, "oom.killed");

		if (!killed)
			continue;
		e->items[e->len++] = (struct happening){
			.time_ns = s->last_ns,
			.service = service,
			.kind = strcmp(killed, "true") == 0 ? "oom_kill" : "oom_near",
			.family = OLD_FAMILY,
			.labels = s->labels,
			.n_labels = s->n_labels,
			.attributes = s->labels,
			.n_attributes = s->n_labels,
		};
	}
	return r;
}

static int collect_sets(const struct server_request *rq, struct happenings *e, struct err *err)
{
	const struct server_params *p = &rq->params;
	size_t n_streams = 0;
	int r = store_streams(rq->context->store, p->from_ns, p->to_ns, &e->streams, &n_streams,
			      err);

	if (r < 0)
		return r;
	e->sets = calloc(n_streams + 1, sizeof(struct store_labelset *));
	if (!e->sets)
		return err_oom(err);
	for (size_t i = 0; r == 0 && i < n_streams; i++) {
		const struct store_stream *s = &e->streams[i];
		struct store_labelset *sets = NULL;
		size_t n = 0;

		if (strcmp(s->type, OLD_FAMILY ":inuse_space:bytes") != 0 ||
		    (p->text[SERVER_PARAM_SERVICE] &&
		     strcmp(s->service, p->text[SERVER_PARAM_SERVICE]) != 0))
			continue;
		r = store_labelsets(rq->context->store, s->service, p->from_ns, p->to_ns, &sets, &n,
				    err);
		if (r < 0)
			break;
		e->sets[e->n_sets++] = sets;
		r = add_sets(e, s->service, sets, n, err);
	}
	return r;
}

static int compare_latest(const void *a, const void *b)
{
	const struct happening *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns > y->time_ns ? -1 : 1;
	return strcmp(x->service, y->service);
}

static int name_process(const struct happening *e, struct buf *name)
{
	int r;

	buf_clear(name);
	r = buf_append(name, e->service, strlen(e->service) + 1);
	for (size_t i = 0; r == 0 && i < e->n_labels; i++) {
		r = buf_append(name, e->labels[i].key, strlen(e->labels[i].key) + 1);
		if (r == 0)
			r = buf_append(name, e->labels[i].value, strlen(e->labels[i].value) + 1);
	}
	return r;
}

/* Of the snapshots of one process near its limit, keeps only the first, which is the latest. */
static int keep_latest(struct happenings *e, struct err *err)
{
	_cleanup_(intern_release) struct intern known = {0};
	_cleanup_(buf_release) struct buf name = {0};
	size_t len = 0;

	for (size_t i = 0; i < e->len; i++) {
		uint32_t before = known.len, id = before;

		if (strcmp(e->items[i].kind, "oom_near") == 0 &&
		    (name_process(&e->items[i], &name) < 0 ||
		     intern_add(&known, buf_view(&name), &id) < 0))
			return err_oom(err);
		if (id == before)
			e->items[len++] = e->items[i];
	}
	e->len = len;
	return 0;
}

/* The function that allocated the most. */
static void write_top(struct json *j, const struct query_top *top, bool has_picture)
{
	server_answer_double(j, "inuse_bytes", has_picture ? top->total : NAN);
	json_key(j, "top");
	if (top->len == 0 || top->total <= 0) {
		json_null(j);
		return;
	}
	json_object_begin(j);
	server_answer_text(j, "name", top->rows[0].name);
	server_answer_text(j, "file", top->rows[0].file);
	server_answer_double(j, "self", top->rows[0].self);
	server_answer_double(j, "share", top->rows[0].self / top->total);
	json_object_end(j);
}

static uint64_t to_number(const char *text)
{
	return text ? strtoull(text, NULL, 10) : 0;
}

/* The heap snapshot; nothing if none was stored. */
static int read_picture(const struct server_request *rq, const struct happening *e,
			struct query_top *ret_top, struct err *err)
{
	/* Times are stored in milliseconds. */
	int64_t ms = e->time_ns / (int64_t)NS_PER_MS * (int64_t)NS_PER_MS;
	char type[160];
	const struct store_window window = {
		.service = e->service,
		.type = type,
		.from_ns = ms,
		.to_ns = ms + (int64_t)NS_PER_MS,
		.filters = e->labels,
		.n_filters = e->n_labels,
	};

	*ret_top = (struct query_top){0};
	if (!e->family[0])
		return 0;
	(void)snprintf(type, sizeof(type), "%.100s:inuse_space:bytes", e->family);
	return query_top(rq->context->store, &window, NULL, ret_top, err);
}

static int write_event(const struct server_request *rq, const struct happening *e, struct json *j,
		       struct err *err)
{
	const char *picture = find_label(e->attributes, e->n_attributes, "oom.picture");
	const char *container = find_label(e->labels, e->n_labels, "container.id");
	const char *exe = find_label(e->labels, e->n_labels, "process.executable.name");
	uint64_t rss = to_number(find_label(e->attributes, e->n_attributes, "oom.rss"));
	struct query_top top;
	int r = read_picture(rq, e, &top, err);

	if (r < 0)
		return r;
	json_object_begin(j);
	server_answer_text(j, "kind", e->kind);
	server_answer_time(j, "time", e->time_ns);
	server_answer_text(j, "service", e->service);
	server_answer_uint(j, "pid", to_number(find_label(e->labels, e->n_labels, "process.pid")));
	server_answer_text(j, "executable", exe ? exe : "");
	server_answer_text(j, "container", container ? container : "");
	server_answer_double(j, "rss_bytes", rss ? (double)rss : NAN);
	server_answer_text(j, "picture", picture ? picture : "");
	write_top(j, &top, e->family[0]);
	json_object_end(j);
	query_top_release(&top);
	return 0;
}

int server_api_events(const struct server_request *rq, struct server_answer *a, struct err *err)
{
	_cleanup_(happenings_release) struct happenings e = {0};
	struct json j = json_to(&a->body);
	int r = collect_stored(rq, &e, err);

	if (r == 0)
		r = collect_sets(rq, &e, err);
	if (r < 0)
		return r;
	if (e.len > 0)
		qsort(e.items, e.len, sizeof(*e.items), compare_latest);
	r = keep_latest(&e, err);
	json_object_begin(&j);
	server_answer_window(&j, rq->params.from_ns, rq->params.to_ns);
	server_answer_uint(&j, "count", e.len);
	server_answer_damaged(&j, e.stored.damaged);
	json_key(&j, "events");
	json_array_begin(&j);
	for (size_t i = 0; r == 0 && i < MIN(e.len, (size_t)EVENTS_MAX); i++)
		r = write_event(rq, &e.items[i], &j, err);
	json_array_end(&j);
	json_object_end(&j);
	return r < 0 ? r : server_api_finish(&j, err);
}
