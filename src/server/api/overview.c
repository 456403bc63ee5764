/*
 * src/server/api/overview.c: /api/overview: CPU time and memory of all services in one response,
 * as whole numbers; a refresh has only what came since.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "query/overview.h"
#include "server/api/known.h"
#include "server/api/routes.h"
#include "server/api/steps.h"

#define MINUTE_NS (60 * (int64_t)NS_PER_SEC)
#define USUAL_STEPS 72
/* A step is final once the collection interval after it has passed; where that is unknown: */
#define USUAL_INTERVAL_NS (15 * (int64_t)NS_PER_SEC)

struct overview {
	const struct server_request *rq;
	int64_t from_ns;
	int64_t to_ns;
	int64_t step_ns;
	struct query_overview data;
	struct server_known *known;
	struct server_known_service *said;	     /* by service */
	uint32_t place_of[STORE_OVERVIEW_MAX_TYPES]; /* of known types, in the response's list */
	struct json j;
};

static void overview_release(struct overview *o)
{
	query_overview_release(&o->data);
	free(o->said);
}

/* --- the window */

static int64_t since_ns(const struct overview *o)
{
	return (int64_t)(o->rq->params.number[SERVER_PARAM_SINCE] * NS_PER_MS);
}

static int64_t round_step(int64_t window_ns)
{
	static const int64_t minutes[] = {1, 2, 5, 10, 15, 20, 30, 60, 120, 180, 240, 360, 720};

	for (size_t i = 0; i < ARRAY_SIZE(minutes); i++)
		if (window_ns <= USUAL_STEPS * minutes[i] * MINUTE_NS)
			return minutes[i] * MINUTE_NS;
	return 1440 * MINUTE_NS;
}

static int set_window(struct overview *o, struct err *err)
{
	const struct server_params *p = &o->rq->params;
	int64_t step = (int64_t)(p->number[SERVER_PARAM_STEP_MS] * NS_PER_MS);

	if (step % MINUTE_NS)
		return err_set(err, -EINVAL, "step_ms must be a multiple of 60000");
	o->step_ns = step ? step : round_step(p->to_ns - p->from_ns);
	o->from_ns = p->from_ns / o->step_ns * o->step_ns;
	o->to_ns = (p->to_ns + o->step_ns - 1) / o->step_ns * o->step_ns;
	/* Both ends may be within a step. */
	if (!step && o->to_ns - o->from_ns > USUAL_STEPS * o->step_ns)
		o->from_ns += o->step_ns;
	if ((o->to_ns - o->from_ns) / o->step_ns > SERVER_STEPS_MAX)
		return err_set(err, -EINVAL,
			       "the series would have more than %d points; use a larger step_ms",
			       SERVER_STEPS_MAX);
	if (p->given & SERVER_PARAM_BIT(SERVER_PARAM_SINCE))
		o->from_ns = MIN(MAX(o->from_ns, since_ns(o) / o->step_ns * o->step_ns),
				 o->to_ns - o->step_ns);
	return 0;
}

/* The first step that may still change. */
static int64_t next_ns(const struct overview *o)
{
	int64_t interval = (int64_t)o->rq->context->interval_ns;
	int64_t final = MIN(o->data.newest_ns, o->to_ns - 1);

	final -= interval ? interval : USUAL_INTERVAL_NS;
	return MAX(o->from_ns, final / o->step_ns * o->step_ns);
}

/* --- services */

static bool is_refresh(const struct overview *o)
{
	return o->rq->params.given & SERVER_PARAM_BIT(SERVER_PARAM_SINCE);
}

/* A whole response tells all; a refresh, what changed. */
static bool is_told(const struct overview *o, size_t i)
{
	return &o->data.totals.services[i] != o->data.machine &&
	       (!is_refresh(o) || o->said[i].changed_ns >= since_ns(o));
}

static int look_up(struct overview *o, struct err *err)
{
	const struct store_overview *t = &o->data.totals;

	o->said = calloc(t->len + 1, sizeof(*o->said));
	if (!o->said)
		return err_oom(err);
	for (size_t i = 0; i < t->len; i++) {
		bool is_there = query_overview_is_there(&o->data, &t->services[i], o->rq->now_ns);

		if (&t->services[i] != o->data.machine &&
		    server_known_tell(o->known, t, &t->services[i], is_there, o->rq->now_ns,
				      &o->said[i]) < 0)
			return err_oom(err);
	}
	return 0;
}

static bool has_type(const struct server_known_service *s, uint32_t i)
{
	return s->types[i / 64] >> i % 64 & 1;
}

static void write_types(struct overview *o)
{
	struct server_known_service all = {0};
	uint32_t n = 0;

	for (size_t i = 0; i < o->data.totals.len; i++)
		for (size_t k = 0; k < ARRAY_SIZE(all.types) && is_told(o, i); k++)
			all.types[k] |= o->said[i].types[k];
	json_key(&o->j, "types");
	json_array_begin(&o->j);
	for (uint32_t i = 0; i < STORE_OVERVIEW_MAX_TYPES; i++)
		if (has_type(&all, i)) {
			json_cstring(&o->j, server_known_type(o->known, i));
			o->place_of[i] = n++;
		}
	json_array_end(&o->j);
}

static void write_text(struct json *j, const char *key, const char *text)
{
	json_key(j, key);
	json_cstring(j, text);
}

static void write_service(struct overview *o, size_t i)
{
	const struct store_overview_service *s = &o->data.totals.services[i];
	const struct server_known_service *said = &o->said[i];

	json_object_begin(&o->j);
	server_answer_uint(&o->j, "id", said->id);
	write_text(&o->j, "service", s->name);
	write_text(&o->j, "runtime", s->runtime);
	write_text(&o->j, "parent", s->parent);
	json_key(&o->j, "short");
	json_bool(&o->j, said->is_short);
	json_key(&o->j, "types");
	json_array_begin(&o->j);
	for (uint32_t k = 0; k < STORE_OVERVIEW_MAX_TYPES; k++)
		if (has_type(said, k))
			json_uint(&o->j, o->place_of[k]);
	json_array_end(&o->j);
	server_answer_time(&o->j, "first", is_refresh(o) ? said->first_ns : s->first_ns);
	server_answer_time(&o->j, "last", s->last_ns);
	json_object_end(&o->j);
}

static void write_services(struct overview *o)
{
	json_key(&o->j, "services");
	json_array_begin(&o->j);
	for (size_t i = 0; i < o->data.totals.len; i++)
		if (is_told(o, i))
			write_service(o, i);
	json_array_end(&o->j);
}

/* --- numbers */

static void write_number(struct json *j, int64_t value, int64_t unit)
{
	if (value == QUERY_OVERVIEW_GAP)
		json_null(j);
	else
		json_int(j, (value + unit / 2) / unit);
}

/* at, CPU time and memory by step. */
static void write_curves(struct overview *o, const struct store_overview_service *s)
{
	size_t first = 0, end = 0;

	if (!s || !query_overview_span(&o->data, s, &first, &end))
		first = end = 0;
	json_uint(&o->j, first);
	json_array_begin(&o->j);
	for (size_t i = first; i < end; i++)
		write_number(&o->j, query_overview_cpu_ns(&o->data, s, i), (int64_t)NS_PER_MS);
	json_array_end(&o->j);
	json_array_begin(&o->j);
	for (size_t i = first; i < end; i++)
		write_number(&o->j, query_overview_memory_bytes(&o->data, s, i), 1024);
	json_array_end(&o->j);
}

/* Of a step in which sonde was away for a while, CPU time is of the rest. */
static void write_covered(struct overview *o)
{
	json_key(&o->j, "covered_ms");
	json_array_begin(&o->j);
	for (size_t i = 0; i < o->data.totals.n_steps; i++)
		write_number(&o->j, o->data.step_covered_ns[i], (int64_t)NS_PER_MS);
	json_array_end(&o->j);
}

static void write_rows(struct overview *o)
{
	const struct store_overview *t = &o->data.totals;

	json_key(&o->j, "rows");
	json_array_begin(&o->j);
	for (size_t i = 0; i < t->len; i++) {
		if (&t->services[i] == o->data.machine)
			continue;
		json_array_begin(&o->j);
		json_uint(&o->j, o->said[i].id);
		json_uint(&o->j, t->services[i].processes);
		write_curves(o, &t->services[i]);
		json_array_end(&o->j);
	}
	json_array_end(&o->j);
}

static void write_all(struct overview *o)
{
	json_object_begin(&o->j);
	server_answer_window(&o->j, o->from_ns, o->to_ns);
	server_answer_uint(&o->j, "step_ms", (uint64_t)o->step_ns / NS_PER_MS);
	server_answer_uint(&o->j, "next", (uint64_t)next_ns(o) / NS_PER_MS);
	server_answer_uint(&o->j, "cpus", o->rq->context->cpus);
	server_answer_uint(&o->j, "memory_kib", o->rq->context->memory_kib);
	write_covered(o);
	json_key(&o->j, "machine");
	json_array_begin(&o->j);
	write_curves(o, o->data.machine);
	json_array_end(&o->j);
	write_types(o);
	write_services(o);
	write_rows(o);
	server_answer_uint(&o->j, "damaged", o->data.totals.damaged);
	json_object_end(&o->j);
}

int server_api_overview(const struct server_request *rq, struct server_answer *a, struct err *err)
{
	_cleanup_(server_known_freep) struct server_known *own = NULL;
	_cleanup_(overview_release) struct overview o = {.rq = rq, .j = json_to(&a->body)};
	int r = set_window(&o, err);

	if (r < 0)
		return r;
	if (!rq->context->known) {
		own = server_known_new();
		if (!own)
			return err_oom(err);
	}
	o.known = own ? own : rq->context->known;
	r = query_overview_read(rq->context->store, o.from_ns, o.to_ns, o.step_ns, &o.data, err);
	if (r < 0)
		return r;
	server_known_lock(o.known);
	r = look_up(&o, err);
	if (r == 0)
		write_all(&o);
	server_known_unlock(o.known);
	return r < 0 ? r : server_api_finish(&o.j, err);
}
