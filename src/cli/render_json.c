/* src/cli/render_json.c: a profile as JSON; the shape is documented in man/sonde.1. */
#include <errno.h>

#include "base/cleanup.h"
#include "cli/render.h"

static void render_json_source(const struct render_source *s, struct json *j)
{
	json_object_begin(j);
	if (s->core) {
		json_key(j, "core");
		json_cstring(j, s->core);
	}
	if (s->process) {
		json_key(j, "pid");
		json_int(j, s->process->id.pid);
		json_key(j, "start_ticks");
		json_uint(j, s->process->id.start_ticks);
		json_key(j, "executable");
		json_cstring(j, s->process->exe);
		json_key(j, "service");
		json_cstring(j, s->process->service);
	}
	if (s->facts) {
		json_key(j, "go_version");
		json_cstring(j, s->facts->version);
		json_key(j, "go_module");
		json_cstring(j, s->facts->module_path);
		json_key(j, "version_from");
		json_cstring(j, s->facts->version_how);
		json_key(j, "tables_from");
		json_cstring(j, s->facts->tables_how);
		json_key(j, "variables_from");
		json_cstring(j, s->facts->variables_how);
	}
	json_object_end(j);
}

static void render_json_reading(const struct golang_heap_stats *s, struct json *j)
{
	json_object_begin(j);
	json_key(j, "rate");
	json_int(j, s->rate);
	json_key(j, "gc_cycle");
	json_uint(j, s->cycle);
	json_key(j, "before_first_gc");
	json_bool(j, s->before_first_gc);
	json_key(j, "buckets");
	json_uint(j, s->buckets);
	json_key(j, "bad_buckets");
	json_uint(j, s->bad_buckets);
	json_key(j, "incomplete");
	json_bool(j, s->incomplete);
	json_key(j, "mixed");
	json_bool(j, s->mixed);
	json_key(j, "torn_records");
	json_uint(j, s->torn_records);
	json_key(j, "unknown_frames");
	json_uint(j, s->unknown_frames);
	json_key(j, "retries");
	json_uint(j, s->retries);
	json_object_end(j);
}

static void render_json_types(const struct profile *p, struct json *j)
{
	json_array_begin(j);
	for (size_t i = 0; i < profile_n_types(p); i++) {
		const struct profile_type *t = profile_type_at(p, i);

		json_object_begin(j);
		json_key(j, "type");
		json_string(j, profile_string(p, t->type));
		json_key(j, "unit");
		json_string(j, profile_string(p, t->unit));
		json_object_end(j);
	}
	json_array_end(j);
}

static void render_json_functions(const struct render *r, const struct profile_table *t,
				  struct json *j)
{
	size_t shown = 0;

	json_array_begin(j);
	for (size_t i = 0; i < t->len; i++) {
		if (!t->rows[i].flat && !t->rows[i].cum)
			continue;
		if (r->max_nodes && shown++ >= r->max_nodes)
			break;
		json_object_begin(j);
		json_key(j, "name");
		json_string(j, profile_string(r->profile, t->rows[i].name));
		json_key(j, "flat");
		json_int(j, t->rows[i].flat);
		json_key(j, "cum");
		json_int(j, t->rows[i].cum);
		json_object_end(j);
	}
	json_array_end(j);
}

static void render_json_location(const struct profile *p, const struct profile_location *loc,
				 struct json *j)
{
	char address[24];

	(void)snprintf(address, sizeof(address), "0x%llx", (unsigned long long)loc->address);
	json_object_begin(j);
	json_key(j, "address");
	json_cstring(j, address);
	json_key(j, "lines");
	json_array_begin(j);
	for (uint32_t i = 0; i < loc->n_lines; i++) {
		const struct profile_function *f = profile_function_at(p, loc->lines[i].function);

		json_object_begin(j);
		json_key(j, "function");
		json_string(j, profile_string(p, f->name));
		json_key(j, "file");
		json_string(j, profile_string(p, f->file));
		json_key(j, "line");
		json_int(j, loc->lines[i].line);
		json_object_end(j);
	}
	json_array_end(j);
	json_object_end(j);
}

static void render_json_locations(const struct profile *p, struct json *j)
{
	json_array_begin(j);
	for (size_t i = 0; i < profile_n_locations(p) && !j->error; i++)
		render_json_location(p, profile_location_at(p, i), j);
	json_array_end(j);
}

static void render_json_labels(const struct profile *p, const struct profile_sample *s,
			       struct json *j)
{
	json_array_begin(j);
	for (uint32_t i = 0; i < s->n_labels; i++) {
		const struct profile_label *l = &s->labels[i];

		json_object_begin(j);
		json_key(j, "key");
		json_string(j, profile_string(p, l->key));
		json_key(j, "value");
		if (l->str)
			json_string(j, profile_string(p, l->str));
		else
			json_int(j, l->num);
		json_object_end(j);
	}
	json_array_end(j);
}

static bool render_json_has_value(const struct profile *p, const struct profile_sample *s)
{
	for (size_t i = 0; i < profile_n_types(p); i++)
		if (s->values[i])
			return true;
	return false;
}

static void render_json_samples(const struct profile *p, struct json *j)
{
	json_array_begin(j);
	for (size_t i = 0; i < profile_n_samples(p) && !j->error; i++) {
		const struct profile_sample *s = profile_sample_at(p, i);
		uint32_t len;
		const uint32_t *stack = profile_stack_at(p, s->stack, &len);

		if (!render_json_has_value(p, s))
			continue;
		json_object_begin(j);
		json_key(j, "values");
		json_array_begin(j);
		for (size_t t = 0; t < profile_n_types(p); t++)
			json_int(j, s->values[t]);
		json_array_end(j);
		json_key(j, "labels");
		render_json_labels(p, s, j);
		json_key(j, "stack");
		json_array_begin(j);
		for (uint32_t k = 0; k < len; k++)
			json_uint(j, stack[k]);
		json_array_end(j);
		json_object_end(j);
	}
	json_array_end(j);
}

static void render_json_head(const struct render *r, int64_t total, struct json *j)
{
	const struct profile_header *h = profile_header_const(r->profile);

	if (r->source) {
		json_key(j, "source");
		render_json_source(r->source, j);
	}
	if (r->source && r->source->stats) {
		json_key(j, "reading");
		render_json_reading(r->source->stats, j);
	}
	json_key(j, "time_ns");
	json_int(j, h->time_ns);
	json_key(j, "duration_ns");
	json_int(j, h->duration_ns);
	json_key(j, "period");
	json_int(j, h->period);
	json_key(j, "types");
	render_json_types(r->profile, j);
	json_key(j, "type");
	json_cstring(j, r->type_name);
	json_key(j, "unit");
	json_cstring(j, r->unit);
	json_key(j, "total");
	json_int(j, total);
}

static void render_json_tablep(struct profile_table *t)
{
	profile_table_release(t);
}

int render_json(const struct render *r, struct buf *out, struct err *err)
{
	_cleanup_(render_json_tablep) struct profile_table table = {};
	struct json j = json_to(out);
	int k;

	k = profile_table_build(r->profile, r->type, &table, err);
	if (k < 0)
		return k;
	json_object_begin(&j);
	render_json_head(r, table.total, &j);
	json_key(&j, "functions");
	render_json_functions(r, &table, &j);
	json_key(&j, "locations");
	render_json_locations(r->profile, &j);
	json_key(&j, "samples");
	render_json_samples(r->profile, &j);
	json_object_end(&j);
	k = json_finish(&j);
	return k < 0 ? k : buf_append_byte(out, '\n');
}
