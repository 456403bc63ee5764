/* src/java/jfr/jfr.c: see jfr.h. Walks over events, and resolves their references. */
#include "java/jfr/jfr.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "java/jfr/parser.h"

#define JFR_MAX_NAMES ((size_t)16 << 20) /* bytes, for names of event types */

/* Messages of the parser's parts continue after the file name. */
static int jfr_fail_named(const struct java_jfr *j, int code, const struct err *inner,
			  struct err *err)
{
	return code == -ENOMEM ? err_oom(err) : err_set(err, code, "%s %s", j->name, inner->text);
}

static int open_source(int fd, const char *name, const struct java_jfr_options *options,
		       struct java_jfr **ret_jfr, struct err *err)
{
	_cleanup_(java_jfr_closep) struct java_jfr *j = calloc(1, sizeof(*j));
	size_t max = options->max_bytes ? options->max_bytes : JAVA_JFR_DEFAULT_MAX;

	if (!j) {
		if (fd >= 0)
			close(fd);
		return err_oom(err);
	}
	java_jfr_source_init_take(&j->source, fd, max);
	j->options = *options;
	/* Epochs must be unique even between two successive parsers. */
	j->epochs = clock_mono_ns();
	j->name = strdup(name);
	j->pools[0].limit = j->pools[1].limit = max;
	j->tally_names.bytes.max = JFR_MAX_NAMES;
	if (!j->name || java_jfr_tally_of(j, view_str("jdk.Metadata"), &j->metadata_tally) < 0 ||
	    java_jfr_tally_of(j, view_str("jdk.Checkpoint"), &j->checkpoint_tally) < 0)
		return err_oom(err);
	for (size_t i = 0; i < options->n_queries; i++)
		if (options->queries[i].n_fields > JAVA_JFR_MAX_SLOTS)
			return err_set(err, -EINVAL, "too many fields of %s requested",
				       options->queries[i].event);
	*ret_jfr = TAKE_PTR(j);
	return 0;
}

int java_jfr_open_take(int fd, const char *name, const struct java_jfr_options *options,
		       struct java_jfr **ret_jfr, struct err *err)
{
	_cleanup_(java_jfr_closep) struct java_jfr *j = NULL;
	struct err inner;
	int r;

	r = open_source(fd, name, options, &j, err);
	if (r < 0)
		return r;
	r = java_jfr_source_refresh(&j->source, &inner);
	if (r == 0 && j->source.size == 0 && !options->live)
		r = err_set(&inner, -EBADMSG, "is empty");
	if (r < 0)
		return jfr_fail_named(j, r, &inner, err);
	*ret_jfr = TAKE_PTR(j);
	return 0;
}

int java_jfr_open_feed(const char *name, const struct java_jfr_options *options,
		       struct java_jfr **ret_jfr, struct err *err)
{
	return open_source(-1, name, options, ret_jfr, err);
}

int java_jfr_feed(struct java_jfr *j, struct view bytes, struct err *err)
{
	struct err inner;
	int r = java_jfr_source_feed(&j->source, bytes, &inner);

	return r < 0 ? jfr_fail_named(j, r, &inner, err) : 0;
}

void java_jfr_close(struct java_jfr *j)
{
	if (!j)
		return;
	java_jfr_source_release(&j->source);
	java_jfr_meta_release(&j->meta);
	arena_release(&j->plans_arena);
	java_jfr_pools_release(&j->pools[0]);
	java_jfr_pools_release(&j->pools[1]);
	intern_release(&j->tally_names);
	buf_release(&j->tallies);
	buf_release(&j->scratch);
	free(j->name);
	free(j);
}

static void count(struct java_jfr *j, uint32_t tally, uint64_t size)
{
	struct java_jfr_tally *t = &((struct java_jfr_tally *)j->tallies.data)[tally];

	t->count++;
	t->bytes += size;
}

/* Returns all bytes of the event; leaves the cursor after its type. */
static int read_event(struct java_jfr *j, struct view *ret_event,
		      struct java_jfr_cursor *ret_cursor, uint64_t *ret_type, struct err *err)
{
	uint64_t at = j->chunk_at + j->position, left = j->chunk.size - j->position, size;
	struct view v = {0};
	int r;

	r = java_jfr_source_view(&j->source, at, 1, &v, err);
	if (r == 0 && v.len < 18 && v.len < left)
		r = java_jfr_source_view(&j->source, at, (size_t)MIN(left, UINT64_C(18)), &v, err);
	if (r < 0)
		return r;
	*ret_cursor = java_jfr_cursor_of(view_of(v.data, (size_t)MIN(left, (uint64_t)v.len)));
	size = java_jfr_varint(ret_cursor);
	if (ret_cursor->bad || size == 0 || size > left)
		return err_set(err, -EBADMSG, "has an event of %llu bytes at offset %llu",
			       (unsigned long long)size, (unsigned long long)at);
	if (size > v.len) {
		r = java_jfr_source_view(&j->source, at, size, &v, err);
		if (r < 0)
			return r;
	}
	*ret_event = view_of(v.data, size);
	*ret_cursor = java_jfr_cursor_of(*ret_event);
	(void)java_jfr_varint(ret_cursor);
	*ret_type = java_jfr_varint(ret_cursor);
	return ret_cursor->bad ? err_set(err, -EBADMSG, "has a malformed event at offset %llu",
					 (unsigned long long)at)
			       : 0;
}

/* 1 if the event is wanted. */
static int take_event(struct java_jfr *j, struct java_jfr_event *ret_event, struct err *err)
{
	const struct java_jfr_type *type;
	struct java_jfr_binding *binding;
	struct java_jfr_cursor c;
	struct view event = {0};
	uint64_t id;
	int r;

	r = read_event(j, &event, &c, &id, err);
	if (r < 0)
		return r;
	j->position += event.len;
	j->stats.bytes += event.len;
	if (id <= 1) {
		count(j, id ? j->checkpoint_tally : j->metadata_tally, event.len);
		j->stats.checkpoints += id;
		return 0;
	}
	j->stats.events++;
	type = java_jfr_meta_type(&j->meta, id);
	if (!type) {
		j->stats.unknown++;
		return 0;
	}
	binding = &j->bindings[type->number];
	if (binding->tally == UINT32_MAX) {
		r = java_jfr_tally_of(j, type->name, &binding->tally);
		if (r < 0)
			return err_set(err, r, "has too many event types");
	}
	count(j, binding->tally, event.len);
	if (binding->query == JAVA_JFR_UNWANTED)
		return 0;
	java_jfr_plan_run(&j->plans[binding->query], &c, &j->scratch, j->values);
	if (c.bad) {
		j->stats.malformed++;
		return 0;
	}
	*ret_event = (struct java_jfr_event){.query = binding->query,
					     .values = j->values,
					     .ticks_per_second = j->chunk.ticks_per_second,
					     .epoch = java_jfr_pools_now(j)->epoch};
	return 1;
}

static void end_chunk(struct java_jfr *j)
{
	j->chunk_at += j->chunk.size;
	j->is_begun = false;
	java_jfr_source_forget(&j->source, j->chunk_at);
}

/* 1: there is an event at the current position. */
static int advance(struct java_jfr *j, struct err *err)
{
	while (!j->is_begun || j->position >= j->chunk.size) {
		int r;

		if (j->is_begun && j->options.live && j->chunk.state != JAVA_JFR_STATE_FINISHED) {
			r = java_jfr_load_more(j, err);
			if (r <= 0)
				return r;
			if (j->position >= j->chunk.size &&
			    j->chunk.state != JAVA_JFR_STATE_FINISHED)
				return 0;
			continue;
		}
		if (j->is_begun)
			end_chunk(j);
		r = java_jfr_load_chunk(j, err);
		if (r <= 0)
			return r;
	}
	return 1;
}

int java_jfr_next(struct java_jfr *j, struct java_jfr_event *ret_event, struct err *err)
{
	struct err inner;
	int r;

	do {
		r = advance(j, &inner);
		if (r <= 0)
			break;
		r = take_event(j, ret_event, &inner);
	} while (r == 0);
	return r < 0 ? jfr_fail_named(j, r, &inner, err) : r;
}

bool java_jfr_finished(const struct java_jfr *j)
{
	return !j->is_begun && j->chunk_at > 0 && j->chunk_at == j->source.size;
}

int java_jfr_switch_take(struct java_jfr *j, int fd, const char *name, struct err *err)
{
	size_t max = j->source.bytes.max;
	char *copy = strdup(name);
	struct err inner;
	int r;

	java_jfr_source_release(&j->source);
	java_jfr_source_init_take(&j->source, fd, max);
	if (!copy)
		return err_oom(err);
	free(j->name);
	j->name = copy;
	j->chunk_at = 0;
	j->is_begun = false;
	r = java_jfr_source_refresh(&j->source, &inner);
	return r < 0 ? jfr_fail_named(j, r, &inner, err) : 0;
}

static bool key_of(const struct java_jfr_value *v, uint64_t *ret_key)
{
	*ret_key = (uint64_t)v->number;
	return v->kind == JAVA_JFR_VALUE_KEY && v->number != 0;
}

bool java_jfr_stack(const struct java_jfr *j, const struct java_jfr_value *v,
		    struct java_jfr_stack *ret_stack)
{
	uint64_t key;

	if (!key_of(v, &key))
		return false;
	return java_jfr_pools_stack(&j->pools[j->current], key, ret_stack) ||
	       (j->options.live && java_jfr_pools_stack(&j->pools[!j->current], key, ret_stack));
}

bool java_jfr_method_names(const struct java_jfr_stack *s, const struct java_jfr_frame *f,
			   struct view *ret_class, struct view *ret_method)
{
	struct java_jfr_method method;

	if (!java_jfr_pools_method(s->pools, f->method, &method) ||
	    !java_jfr_pools_symbol(s->pools, method.name, ret_method))
		return false;
	/* Native frames may have none. */
	if (!java_jfr_pools_class(s->pools, method.type, ret_class))
		*ret_class = view_str("");
	return true;
}

bool java_jfr_frame_type(const struct java_jfr_stack *s, const struct java_jfr_frame *f,
			 struct view *ret_type)
{
	return java_jfr_pools_frame_type(s->pools, f->type, ret_type);
}

bool java_jfr_class_name(const struct java_jfr *j, const struct java_jfr_value *v,
			 struct view *ret_name)
{
	uint64_t key;

	return key_of(v, &key) &&
	       (java_jfr_pools_class(&j->pools[j->current], key, ret_name) ||
		(j->options.live && java_jfr_pools_class(&j->pools[!j->current], key, ret_name)));
}

bool java_jfr_thread(const struct java_jfr *j, const struct java_jfr_value *v,
		     struct java_jfr_thread *ret_thread)
{
	uint64_t key;

	return key_of(v, &key) && (java_jfr_pools_thread(&j->pools[j->current], key, ret_thread) ||
				   (j->options.live && java_jfr_pools_thread(&j->pools[!j->current],
									     key, ret_thread)));
}

bool java_jfr_text(const struct java_jfr *j, const struct java_jfr_value *v, struct view *ret_text)
{
	if (v->kind == JAVA_JFR_VALUE_TEXT) {
		*ret_text = v->text;
		return true;
	}
	return v->kind == JAVA_JFR_VALUE_KEY && v->type &&
	       java_jfr_pools_text(&j->pools[j->current], v->type->id, (uint64_t)v->number,
				   ret_text);
}

int64_t java_jfr_time_ns(const struct java_jfr *j, int64_t ticks)
{
	int64_t since, ns;

	if (__builtin_sub_overflow(ticks, j->chunk.start_ticks, &since) ||
	    __builtin_add_overflow(j->chunk.start_ns, java_jfr_chunk_ns(&j->chunk, since), &ns))
		return 0;
	return ns;
}

int64_t java_jfr_duration_ns(const struct java_jfr *j, int64_t ticks)
{
	return java_jfr_chunk_ns(&j->chunk, ticks);
}

const struct java_jfr_stats *java_jfr_stats(const struct java_jfr *j)
{
	return &j->stats;
}

const struct java_jfr_tally *java_jfr_tallies(const struct java_jfr *j, size_t *ret_len)
{
	*ret_len = j->tallies.len / sizeof(struct java_jfr_tally);
	return (const struct java_jfr_tally *)j->tallies.data;
}
