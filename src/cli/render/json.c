/* src/cli/render/json.c: a profile as JSON, documented in man/sonde.1. */
#include <errno.h>

#include "base/cleanup.h"
#include "cli/json_pair.h"
#include "cli/render/render.h"

static void render_json_source(const struct render_source *s, struct json *j)
{
	json_object_begin(j);
	if (s->core)
		json_pair(j, "core", s->core);
	if (s->machine)
		json_pair(j, "machine", s->machine);
	if (s->process) {
		json_pair(j, "pid", s->process->id.pid);
		json_pair(j, "start_ticks", s->process->id.start_ticks);
		json_pair(j, "executable", s->process->exe);
		json_pair(j, "service", s->process->service);
	}
	if (s->facts) {
		json_pair(j, "go_version", s->facts->version);
		json_pair(j, "go_module", s->facts->module_path);
		json_pair(j, "version_from", s->facts->version_how);
		json_pair(j, "tables_from", s->facts->tables_how);
		json_pair(j, "variables_from", s->facts->variables_how);
	}
	json_object_end(j);
}

static void render_json_reading(const struct golang_heap_stats *s, struct json *j)
{
	json_object_begin(j);
	json_pair(j, "rate", s->rate);
	json_pair(j, "gc_cycle", s->cycle);
	json_pair(j, "before_first_gc", s->before_first_gc);
	json_pair(j, "buckets", s->buckets);
	json_pair(j, "bad_buckets", s->bad_buckets);
	json_pair(j, "incomplete", s->incomplete);
	json_pair(j, "mixed", s->mixed);
	json_pair(j, "torn_records", s->torn_records);
	json_pair(j, "unknown_frames", s->unknown_frames);
	json_pair(j, "retries", s->retries);
	json_object_end(j);
}

static void render_json_sampling(const struct render_source *s, struct json *j)
{
	static const char *const ends[CPU_STACK_N] = {
		[CPU_STACK_ROOT] = "root",
		[CPU_STACK_TRUNCATED] = "too_deep",
		[CPU_STACK_NO_RULE] = "no_unwind_information",
		[CPU_STACK_UNREADABLE] = "unreadable",
		[CPU_STACK_UNSUPPORTED] = "unsupported",
		[CPU_STACK_NOT_LOADED] = "not_loaded_yet",
		[CPU_STACK_32BIT] = "unsupported_32bit",
	};
	const struct cpu_losses *l = s->losses;

	json_object_begin(j);
	json_pair(j, "samples", l->samples);
	json_pair(j, "lost_ring", l->lost_ring);
	json_pair(j, "lost_table", l->lost_table);
	json_pair(j, "lost_memory", s->lost_memory);
	json_pair(j, "files_left_out", l->lost_files);
	json_key(j, "stacks");
	json_object_begin(j);
	for (size_t i = 0; i < CPU_STACK_N; i++)
		json_pair(j, ends[i], l->ends[i]);
	json_object_end(j);
	json_object_end(j);
}

static void render_json_types(const struct profile *p, struct json *j)
{
	json_array_begin(j);
	for (size_t i = 0; i < profile_n_types(p); i++) {
		const struct profile_type *t = profile_type_at(p, i);

		json_object_begin(j);
		json_pair(j, "type", profile_string(p, t->type));
		json_pair(j, "unit", profile_string(p, t->unit));
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
		json_pair(j, "name", profile_string(r->profile, t->rows[i].name));
		json_pair(j, "flat", t->rows[i].flat);
		json_pair(j, "cum", t->rows[i].cum);
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
	json_pair(j, "address", address);
	json_key(j, "lines");
	json_array_begin(j);
	for (uint32_t i = 0; i < loc->n_lines; i++) {
		const struct profile_function *f = profile_function_at(p, loc->lines[i].function);

		json_object_begin(j);
		json_pair(j, "function", profile_string(p, f->name));
		json_pair(j, "file", profile_string(p, f->file));
		json_pair(j, "line", loc->lines[i].line);
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
		json_pair(j, "key", profile_string(p, l->key));
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
	if (r->source && r->source->losses) {
		json_key(j, "sampling");
		render_json_sampling(r->source, j);
	}
	json_pair(j, "time_ns", h->time_ns);
	json_pair(j, "duration_ns", h->duration_ns);
	json_pair(j, "period", h->period);
	json_key(j, "types");
	render_json_types(r->profile, j);
	json_pair(j, "type", r->type_name);
	json_pair(j, "unit", r->unit);
	json_pair(j, "total", total);
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
