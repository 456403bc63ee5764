/*
 * src/java/jfr/load.c: loads what must be known before the events of a chunk: header, types,
 * constants.
 *
 * Constants come after the events that use them, in checkpoints chained backwards from the last
 * one. They are added in file order, each byte once. One that overlaps the next is refused;
 * otherwise a small file could take unlimited time.
 */
#include <errno.h>
#include <string.h>

#include "java/jfr/parser.h"

#define LOAD_MAX_CHECKPOINTS ((size_t)1 << 20)

static uint64_t there(const struct java_jfr *j)
{
	return j->source.size - j->chunk_at;
}

/* The complete event at that offset of the chunk. */
static int load_event(struct java_jfr *j, uint64_t at, uint64_t type, struct view *ret_event,
		      struct err *err)
{
	struct java_jfr_cursor c;
	struct view v = {0};
	uint64_t size;
	int r;

	r = java_jfr_source_view(&j->source, j->chunk_at + at, 1, &v, err);
	if (r == 0 && v.len < 18 && v.len < j->chunk.size - at)
		r = java_jfr_source_view(&j->source, j->chunk_at + at,
					 (size_t)MIN(j->chunk.size - at, UINT64_C(18)), &v, err);
	if (r < 0)
		return r;
	c = java_jfr_cursor_of(v);
	size = java_jfr_varint(&c);
	if (java_jfr_varint(&c) != type || c.bad || size == 0 || size > j->chunk.size - at)
		return err_set(err, -EBADMSG, "has no %s at offset %llu, where its header points",
			       type ? "checkpoint" : "metadata",
			       (unsigned long long)(j->chunk_at + at));
	r = java_jfr_source_view(&j->source, j->chunk_at + at, size, &v, err);
	if (r == 0)
		*ret_event = view_of(v.data, size);
	return r;
}

int java_jfr_tally_of(struct java_jfr *j, struct view name, uint32_t *ret_tally)
{
	struct java_jfr_tally *tallies;
	int r = intern_add(&j->tally_names, name, ret_tally);

	if (r == 0 && *ret_tally == j->tallies.len / sizeof(struct java_jfr_tally))
		r = buf_append(&j->tallies, &(struct java_jfr_tally){0},
			       sizeof(struct java_jfr_tally));
	if (r < 0)
		return r;
	tallies = (struct java_jfr_tally *)j->tallies.data;
	tallies[*ret_tally].name = intern_get(&j->tally_names, *ret_tally);
	return 0;
}

static int bind_query(struct java_jfr *j, size_t i)
{
	const struct java_jfr_query *q = &j->options.queries[i];
	const struct java_jfr_type *type = java_jfr_meta_named(&j->meta, q->event);
	int r;

	if (!type)
		return 0;
	r = java_jfr_plan_make(&j->meta, type, q->fields, q->n_fields, false, &j->plans_arena,
			       &j->plans[i]);
	if (r == 0)
		j->bindings[type->number].query = (uint32_t)i;
	return r;
}

static int bind_types(struct java_jfr *j)
{
	int r = 0;

	arena_release(&j->plans_arena);
	j->plans = arena_alloc(&j->plans_arena, j->options.n_queries * sizeof(*j->plans) + 1);
	j->bindings = arena_alloc(&j->plans_arena, j->meta.n_types * sizeof(*j->bindings) + 1);
	if (!j->plans || !j->bindings)
		return -E2BIG;
	for (uint32_t t = 0; r == 0 && t < j->meta.n_types; t++) {
		j->bindings[t].query = JAVA_JFR_UNWANTED;
		j->bindings[t].tally = UINT32_MAX;
	}
	for (size_t i = 0; r == 0 && i < j->options.n_queries; i++)
		r = bind_query(j, i);
	return r;
}

static int load_metadata(struct java_jfr *j, struct err *err)
{
	struct java_jfr_meta meta;
	struct view event = {0};
	int r;

	r = load_event(j, j->chunk.metadata, 0, &event, err);
	if (r < 0)
		return r;
	j->metadata_seen = j->chunk.metadata;
	/* Chunks of a JVM mostly have equal metadata, which is most of a short chunk. */
	if (j->meta.n_types && java_jfr_meta_hash(event) == j->meta.hash)
		return 0;
	r = java_jfr_meta_parse(event, &meta, err);
	if (r < 0)
		return r;
	java_jfr_meta_release(&j->meta);
	j->meta = meta;
	r = bind_types(j);
	return r < 0 ? err_set(err, r, "has metadata that is too large") : 0;
}

/* The offsets of checkpoints, from the last one back to the previous read's last. */
static int find_checkpoints(struct java_jfr *j, struct buf *offsets, struct err *err)
{
	uint64_t at = j->chunk.checkpoint, end = j->chunk.size;

	while (at != j->checkpoint_seen) {
		struct java_jfr_cursor c;
		struct view event = {0};
		int64_t distance;
		int r;

		r = load_event(j, at, 1, &event, err);
		if (r == 0 && event.len > end - at)
			r = err_set(err, -EBADMSG, "has checkpoints that overlap");
		if (r == 0)
			r = buf_append(offsets, &at, sizeof(at));
		if (r < 0)
			return r == -EBADMSG ? r : err_set(err, r, "has too many checkpoints");
		c = java_jfr_cursor_of(event);
		for (int i = 0; i < 4; i++)
			(void)java_jfr_varint(&c);
		distance = (int64_t)java_jfr_varint(&c);
		if (c.bad || distance > 0 || distance < -(int64_t)(at - JAVA_JFR_HEADER_BYTES))
			return err_set(err, -EBADMSG, "has a malformed checkpoint");
		if (distance == 0)
			break;
		end = at;
		at -= (uint64_t)-distance;
		if (at < j->checkpoint_seen)
			return err_set(err, -EBADMSG, "has changed in a part already read");
	}
	return 0;
}

static int load_checkpoints(struct java_jfr *j, struct err *err)
{
	_cleanup_(buf_release) struct buf offsets =
		buf_with_max(LOAD_MAX_CHECKPOINTS * sizeof(uint64_t));
	const uint64_t *at;
	int r;

	if (j->chunk.checkpoint == 0)
		return 0;
	r = find_checkpoints(j, &offsets, err);
	at = (const uint64_t *)offsets.data;
	for (size_t i = offsets.len / sizeof(*at); r == 0 && i-- > 0;) {
		struct view event = {0};

		r = load_event(j, at[i], 1, &event, err);
		if (r == 0)
			r = java_jfr_pools_add(java_jfr_pools_now(j), &j->meta, event, err);
	}
	if (r == 0)
		j->checkpoint_seen = j->chunk.checkpoint;
	return r;
}

/* 1; or 0 if the header is being rewritten, or changed between two reads. */
static int load_header(struct java_jfr *j, struct java_jfr_chunk *ret_chunk, struct err *err)
{
	uint8_t state;
	struct view v = {0};
	int r;

	r = java_jfr_source_view(&j->source, j->chunk_at, JAVA_JFR_HEADER_BYTES, &v, err);
	if (r == 0)
		r = java_jfr_chunk_parse(v, ret_chunk, err);
	if (r < 0)
		return r;
	if (ret_chunk->state == JAVA_JFR_STATE_REWRITTEN)
		return 0;
	if (!j->options.live)
		return 1;
	r = java_jfr_source_refresh(&j->source, err);
	if (r == 0)
		r = java_jfr_source_view(&j->source, j->chunk_at + JAVA_JFR_STATE_OFFSET, 1, &v,
					 err);
	if (r < 0)
		return r;
	state = v.data[0];
	return state == ret_chunk->state;
}

static void begin_chunk(struct java_jfr *j)
{
	j->duration_before_ns = j->stats.duration_ns;
	j->current = !j->current;
	java_jfr_pools_release(java_jfr_pools_now(j));
	java_jfr_pools_now(j)->epoch = ++j->epochs;
	j->position = JAVA_JFR_HEADER_BYTES;
	j->metadata_seen = 0;
	j->checkpoint_seen = 0;
	j->is_begun = true;
	j->stats.chunks++;
	if (j->stats.chunks == 1)
		j->stats.start_ns = j->chunk.start_ns;
}

static int load_up_to_header(struct java_jfr *j, struct err *err)
{
	int r = 0;

	j->stats.duration_ns = j->duration_before_ns;
	if (j->chunk.duration_ns > 0 &&
	    __builtin_add_overflow(j->duration_before_ns, j->chunk.duration_ns,
				   &j->stats.duration_ns))
		j->stats.duration_ns = INT64_MAX;
	j->stats.unfinished = j->chunk.state != JAVA_JFR_STATE_FINISHED;
	j->stats.major = j->chunk.major;
	j->stats.minor = j->chunk.minor;
	if (j->chunk.metadata != j->metadata_seen)
		r = load_metadata(j, err);
	if (r == 0 && j->chunk.checkpoint != j->checkpoint_seen)
		r = load_checkpoints(j, err);
	return r < 0 ? r : 1;
}

/* Skips the rest of a file whose last chunk is incomplete. */
static int leave_rest(struct java_jfr *j)
{
	j->stats.cut_bytes = j->options.live || j->source.fd < 0 ? 0 : there(j);
	return 0;
}

int java_jfr_load_chunk(struct java_jfr *j, struct err *err)
{
	struct java_jfr_chunk chunk = {0};
	int r;

	if (j->options.live) {
		r = java_jfr_source_refresh(&j->source, err);
		if (r < 0)
			return r;
	}
	if (j->source.size < j->chunk_at)
		return err_set(err, -EBADMSG, "was truncated while being read");
	/* After an unfinished chunk, the rest was never flushed. */
	if (there(j) < JAVA_JFR_HEADER_BYTES || (j->stats.unfinished && !j->options.live))
		return leave_rest(j);
	r = load_header(j, &chunk, err);
	if (r < 0)
		return r;
	/* The chunk async-profiler is writing has no metadata, and claims any size. */
	if (r == 0 || !java_jfr_chunk_is_readable(&chunk) || chunk.size > there(j))
		return leave_rest(j);
	j->chunk = chunk;
	begin_chunk(j);
	return load_up_to_header(j, err);
}

int java_jfr_load_more(struct java_jfr *j, struct err *err)
{
	struct java_jfr_chunk chunk = {0};
	int r = java_jfr_source_refresh(&j->source, err);

	if (r == 0)
		r = load_header(j, &chunk, err);
	if (r <= 0)
		return r;
	if (chunk.size < j->chunk.size || chunk.checkpoint < j->checkpoint_seen ||
	    chunk.start_ticks != j->chunk.start_ticks || !java_jfr_chunk_is_readable(&chunk))
		return err_set(err, -EBADMSG, "has changed in a part already read");
	if (chunk.size > there(j))
		return 0;
	r = chunk.size > j->chunk.size || chunk.state != j->chunk.state;
	if (r == 0)
		return 0;
	j->chunk = chunk;
	return load_up_to_header(j, err);
}
