/* src/cli/go/goroutines_json.c: goroutines as JSON: totals, rows with their stacks, leaks. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "cli/go/goroutines.h"
#include "golang/process.h"
#include "proc/info.h"

static int frame_emit(void *context, const struct golang_goroutine_frame *frame)
{
	struct json *j = context;

	json_object_begin(j);
	json_key(j, "function");
	json_string(j, frame->function);
	json_key(j, "file");
	json_string(j, frame->file);
	json_key(j, "line");
	json_int(j, frame->line);
	if (frame->inlined) {
		json_key(j, "inlined");
		json_bool(j, true);
	}
	json_object_end(j);
	return 0;
}

static void put_site(struct json *j, struct golang_goroutines *gs, const char *key, uint64_t pc)
{
	if (pc == 0)
		return;
	json_key(j, key);
	if (golang_goroutines_site(gs, pc, frame_emit, j) != 1)
		json_null(j);
}

static void put_labels(struct json *j, const char *const *labels)
{
	json_key(j, "labels");
	json_object_begin(j);
	for (; labels[0] && labels[1]; labels += 2) {
		json_key(j, labels[0]);
		json_cstring(j, labels[1]);
	}
	json_object_end(j);
}

static void put_row(struct json *j, const struct goroutines_view *v,
		    const struct goroutines_row *row)
{
	json_object_begin(j);
	json_key(j, "count");
	json_uint(j, goroutines_row_count(v, row));
	if (v->n_readings > 1) {
		json_key(j, "readings");
		json_array_begin(j);
		for (size_t i = 0; i < v->n_readings; i++)
			json_uint(j, row->counts[i]);
		json_array_end(j);
		json_key(j, "only_grows");
		json_bool(j, goroutines_row_leaks(v, row));
	}
	json_key(j, "state");
	json_cstring(j, golang_g_state_name(row->state));
	json_key(j, "wait_reason");
	json_cstring(j, row->wait_reason);
	json_key(j, "longest_ns");
	json_uint(j, row->longest_ns);
	if (row->labels)
		put_labels(j, golang_goroutine_labels(v->goroutines, row->labels));
	put_site(j, v->goroutines, "created_by", row->created_by);
	put_site(j, v->goroutines, "start", row->start_pc);
	json_key(j, "stack");
	json_array_begin(j);
	if (row->stack != GOLANG_NO_STACK)
		(void)golang_goroutines_frames(v->goroutines, row->stack, frame_emit, j);
	json_array_end(j);
	json_object_end(j);
}

static void put_stats(struct json *j, const struct golang_goroutines_stats *s)
{
	const struct {
		const char *key;
		uint64_t value;
	} numbers[] = {
		{"total", s->total},
		{"system", s->system},
		{"unverified", s->unverified},
		{"incomplete", s->incomplete},
		{"bad", s->bad},
		{"sampled", s->sampled},
		{"retries", s->retries},
		{"labels_lost", s->labels_lost},
	};

	json_key(j, "goroutines");
	json_object_begin(j);
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		json_key(j, numbers[i].key);
		json_uint(j, numbers[i].value);
	}
	json_key(j, "states");
	json_object_begin(j);
	for (size_t i = 0; i < GOLANG_G_STATES; i++) {
		json_key(j, golang_g_state_name((enum golang_g_state)i));
		json_uint(j, s->states[i]);
	}
	json_object_end(j);
	json_object_end(j);
}

static void put_source(struct json *j, const struct goroutines_source *source)
{
	if (source->process) {
		json_key(j, "pid");
		json_int(j, source->process->id.pid);
		json_key(j, "comm");
		json_cstring(j, source->process->comm);
	}
	if (source->core) {
		json_key(j, "core");
		json_cstring(j, source->core);
	}
	json_key(j, "go");
	json_cstring(j, source->facts->version);
	json_key(j, "executable");
	json_cstring(j, source->facts->module_path);
}

int goroutines_json(const struct goroutines_view *v, const struct goroutines_source *source,
		    struct buf *out, struct err *err)
{
	_cleanup_free_ const struct goroutines_row **rows = NULL;
	struct json j = json_to(out);
	size_t n;
	int r = goroutines_view_sorted(v, &rows, &n, err);

	if (r < 0)
		return r;
	json_object_begin(&j);
	put_source(&j, source);
	put_stats(&j, golang_goroutines_stats(v->goroutines));
	json_key(&j, "rows");
	json_array_begin(&j);
	for (size_t i = 0; i < n; i++)
		put_row(&j, v, rows[i]);
	json_array_end(&j);
	json_object_end(&j);
	r = json_finish(&j);
	if (r == 0)
		r = buf_append_byte(out, '\n');
	return r < 0 ? err_set(err, r, "cannot write JSON: %s", strerror(-r)) : 0;
}
