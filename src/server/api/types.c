/* src/server/api/types.c: /api/types: the registry, for the page and other clients. */
#include <stdio.h>

#include "pipeline/registry/registry.h"
#include "server/api/routes.h"

static void types_write(struct json *j)
{
	json_key(j, "types");
	json_array_begin(j);
	for (size_t i = 0; i < TYPES; i++) {
		const struct registry_type *t = &registry_types[i];
		char name[96];

		(void)snprintf(name, sizeof(name), "%s:%s:%s", t->family, t->name, t->unit);
		json_object_begin(j);
		server_answer_text(j, "type", name);
		server_answer_text(j, "mode", registry_mode_name(t->mode));
		server_answer_text(j, "group", t->group);
		server_answer_text(j, "measure", t->measure);
		server_answer_text(j, "variant", t->variant);
		server_answer_text(j, "title", t->title);
		server_answer_text(j, "help", t->help);
		json_object_end(j);
	}
	json_array_end(j);
}

static void attributes_write(struct json *j, const struct metric *m)
{
	json_key(j, "attributes");
	json_array_begin(j);
	for (size_t i = 0; i < METRIC_MAX_ATTRIBUTES && m->attributes[i]; i++) {
		json_object_begin(j);
		server_answer_text(j, "key", m->attributes[i]);
		server_answer_text(j, "label", m->labels[i]);
		json_object_end(j);
	}
	json_array_end(j);
}

static void metrics_write(struct json *j)
{
	json_key(j, "metrics");
	json_array_begin(j);
	for (size_t i = 0; i < METRICS; i++) {
		const struct metric *m = &registry_metrics[i];

		json_object_begin(j);
		server_answer_text(j, "metric", m->name);
		server_answer_text(j, "kind", metric_kind_name(m->kind));
		server_answer_text(j, "unit", m->unit);
		server_answer_text(j, "family", m->family);
		server_answer_text(j, "title", m->title);
		server_answer_text(j, "help", m->help);
		attributes_write(j, m);
		server_answer_text(j, "prometheus", m->prometheus ? m->prometheus : "");
		server_answer_text(j, "stream", m->stream ? m->stream : "");
		json_object_end(j);
	}
	json_array_end(j);
}

static void events_write(struct json *j)
{
	json_key(j, "events");
	json_array_begin(j);
	for (size_t i = 0; i < EVENTS; i++) {
		const struct event_kind *e = &registry_events[i];

		json_object_begin(j);
		server_answer_text(j, "event", e->name);
		server_answer_text(j, "title", e->title);
		server_answer_text(j, "help", e->help);
		server_answer_text(j, "family", e->family);
		json_object_end(j);
	}
	json_array_end(j);
}

int server_api_types(const struct server_request *rq, struct server_answer *a, struct err *err)
{
	struct json j = json_to(&a->body);

	(void)rq;
	json_object_begin(&j);
	types_write(&j);
	metrics_write(&j);
	events_write(&j);
	json_object_end(&j);
	return server_api_finish(&j, err);
}
