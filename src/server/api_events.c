/*
 * src/server/api_events.c: /api/events: programs that were killed because memory ran out, or nearly
 * were.
 *
 * An event is a set of labels with "oom.killed" among them (agent/oom.h). A kill has a set of its
 * own; pictures because a limit was near share one per process, of which the latest counts.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "pipeline/registry.h"
#include "query/query.h"
#include "server/routes.h"

#define EVENTS_TYPE "go_oom:inuse_space:bytes"
/* Each is a question to the store. */
#define EVENTS_MAX 200

struct event {
	const char *service;
	const struct store_labelset *set; /* borrowed */
};

/* All of the window; what they point into is kept with them. */
struct events {
	struct event *items;
	size_t len;
	struct store_stream *streams;
	struct store_labelset **sets; /* of streams */
	size_t n_sets;
};

static void events_release(struct events *e)
{
	for (size_t i = 0; i < e->n_sets; i++)
		free(e->sets[i]);
	free(e->sets);
	free(e->streams);
	free(e->items);
}

static const char *event_label(const struct event *event, const char *key)
{
	for (size_t i = 0; i < event->set->n_labels; i++)
		if (strcmp(event->set->labels[i].key, key) == 0)
			return event->set->labels[i].value;
	return NULL;
}

static int events_add(struct events *e, const char *service, const struct store_labelset *sets,
		      size_t n, struct err *err)
{
	struct event *items = reallocarray(e->items, e->len + n + 1, sizeof(*items));

	if (!items)
		return err_oom(err);
	e->items = items;
	for (size_t i = 0; i < n; i++) {
		e->items[e->len] = (struct event){.service = service, .set = &sets[i]};
		e->len += event_label(&e->items[e->len], "oom.killed") != NULL;
	}
	return 0;
}

static int events_collect(const struct request *rq, struct events *e, struct err *err)
{
	const struct params *p = &rq->params;
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

		if (strcmp(s->type, EVENTS_TYPE) != 0 ||
		    ((p->given & PARAM_BIT(PARAM_SERVICE)) &&
		     strcmp(s->service, p->text[PARAM_SERVICE]) != 0))
			continue;
		r = store_labelsets(rq->context->store, s->service, p->from_ns, p->to_ns, &sets, &n,
				    err);
		if (r < 0)
			break;
		e->sets[e->n_sets++] = sets;
		r = events_add(e, s->service, sets, n, err);
	}
	return r;
}

static int compare_latest(const void *a, const void *b)
{
	const struct event *x = a, *y = b;

	if (x->set->last_ns != y->set->last_ns)
		return x->set->last_ns > y->set->last_ns ? -1 : 1;
	return strcmp(x->service, y->service);
}

/* The function that allocated most of what was there. */
static void write_top(struct json *j, const struct query_top *top)
{
	answer_double(j, "inuse_bytes", top->total);
	json_key(j, "top");
	if (top->len == 0 || top->total <= 0) {
		json_null(j);
		return;
	}
	json_object_begin(j);
	answer_text(j, "name", top->rows[0].name);
	answer_text(j, "file", top->rows[0].file);
	answer_double(j, "self", top->rows[0].self);
	answer_double(j, "share", top->rows[0].self / top->total);
	json_object_end(j);
}

static uint64_t event_number(const struct event *event, const char *key)
{
	const char *text = event_label(event, key);

	return text ? strtoull(text, NULL, 10) : 0;
}

static int write_event(const struct request *rq, const struct event *event, struct json *j,
		       struct err *err)
{
	/* Times are kept by the millisecond. */
	int64_t ms = event->set->last_ns / (int64_t)NS_PER_MS * (int64_t)NS_PER_MS;
	const struct store_window window = {
		.service = event->service,
		.type = EVENTS_TYPE,
		.from_ns = ms,
		.to_ns = ms + (int64_t)NS_PER_MS,
		.filters = event->set->labels,
		.n_filters = event->set->n_labels,
	};
	bool killed = strcmp(event_label(event, "oom.killed"), "true") == 0;
	const char *picture = event_label(event, "oom.picture");
	const char *container = event_label(event, "container.id");
	const char *exe = event_label(event, "process.executable.name");
	uint64_t rss = event_number(event, "oom.rss");
	struct query_top top;
	int r = query_top(rq->context->store, &window, NULL, &top, err);

	if (r < 0)
		return r;
	json_object_begin(j);
	answer_text(j, "kind", registry_events[killed ? EVENT_OOM_KILL : EVENT_OOM_NEAR].name);
	answer_time(j, "time", event->set->last_ns);
	answer_text(j, "service", event->service);
	answer_uint(j, "pid", event_number(event, "process.pid"));
	answer_text(j, "executable", exe ? exe : "");
	answer_text(j, "container", container ? container : "");
	answer_double(j, "rss_bytes", rss ? (double)rss : NAN);
	answer_text(j, "picture", picture ? picture : "");
	write_top(j, &top);
	json_object_end(j);
	query_top_release(&top);
	return 0;
}

int api_events(const struct request *rq, struct answer *a, struct err *err)
{
	_cleanup_(events_release) struct events e = {};
	struct json j = json_to(&a->body);
	int r = events_collect(rq, &e, err);

	if (r < 0)
		return r;
	if (e.len > 0)
		qsort(e.items, e.len, sizeof(*e.items), compare_latest);
	json_object_begin(&j);
	answer_window(&j, rq->params.from_ns, rq->params.to_ns);
	answer_uint(&j, "count", e.len);
	json_key(&j, "events");
	json_array_begin(&j);
	for (size_t i = 0; r == 0 && i < MIN(e.len, (size_t)EVENTS_MAX); i++)
		r = write_event(rq, &e.items[i], &j, err);
	json_array_end(&j);
	json_object_end(&j);
	return r < 0 ? r : api_finish(&j, err);
}
