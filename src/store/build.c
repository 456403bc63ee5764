/*
 * src/store/build.c: stack ids and sums of a day become stacks of a profile. Only what has a sum
 * gets into the profile; equal stacks of different days meet there. Values are added when all of
 * the day was read, so that a damaged day adds nothing.
 */
#include "store/build.h"

#include <errno.h>
#include <stdlib.h>

#include "base/hash.h"
#include "store/chunk.h"
#include "store/dict.h"

#define TEXT_MAX_BYTES ((size_t)128 << 20)

struct build_value {
	uint32_t stack; /* of the profile */
	int64_t value;
};

int build_init(struct build *b)
{
	*b = (struct build){.profile = profile_new(), .text = {.max = TEXT_MAX_BYTES}};
	b->path = calloc(CHUNK_MAX_DEPTH, sizeof(*b->path));
	/* Room for all there can be: what is not touched costs nothing, and nothing is moved. */
	if (!b->profile || !b->path ||
	    buf_reserve(&b->frames, CHUNK_MAX_FRAMES * sizeof(struct chunk_frame)) < 0 ||
	    buf_reserve(&b->by_frame, CHUNK_MAX_FRAMES * sizeof(uint32_t)) < 0 ||
	    buf_reserve(&b->added, (BLOCK_MAX_STACK + 1) * sizeof(struct build_value)) < 0)
		return -ENOMEM;
	return 0;
}

void build_release(struct build *b)
{
	profile_free(b->profile);
	map_release(&b->functions);
	map_release(&b->locations);
	buf_release(&b->values);
	buf_release(&b->frames);
	buf_release(&b->by_frame);
	arena_release(&b->text);
	buf_release(&b->added);
	free(b->path);
}

/* Makes room for n items of that size, zeros where there was nothing. */
static int extend(struct buf *b, size_t n, size_t size)
{
	size_t more = n * size > b->len ? n * size - b->len : 0;

	if (more == 0)
		return 0;
	if (buf_reserve(b, more) < 0)
		return -ENOMEM;
	memset(b->data + b->len, 0, more);
	b->len += more;
	return 0;
}

static int keep_frame(void *ctx, uint32_t id, const struct chunk_frame *f)
{
	struct build *b = ctx;
	struct chunk_frame *frame;

	if (extend(&b->frames, (size_t)id + 1, sizeof(*frame)) < 0 ||
	    extend(&b->by_frame, (size_t)id + 1, sizeof(uint32_t)) < 0)
		return -ENOMEM;
	frame = (struct chunk_frame *)(void *)b->frames.data + id;
	*frame = *f;
	frame->name.data = arena_dup(&b->text, f->name.data, f->name.len);
	frame->file.data = arena_dup(&b->text, f->file.data, f->file.len);
	return frame->name.data && frame->file.data ? 0 : -E2BIG;
}

static int add_function(struct build *b, const struct chunk_frame *f, uint32_t *ret_id)
{
	struct profile_function fn = {0};
	uint64_t key, known;
	int r = profile_add_string(b->profile, f->name, &fn.name);

	if (r == 0)
		r = profile_add_string(b->profile, f->file, &fn.file);
	if (r < 0)
		return r;
	key = (uint64_t)fn.name << 32 | fn.file;
	if (map_get(&b->functions, key, &known)) {
		*ret_id = (uint32_t)known;
		return 0;
	}
	fn.system_name = fn.name;
	r = profile_add_function(b->profile, &fn, ret_id);
	return r < 0 ? r : map_put(&b->functions, key, *ret_id);
}

static int add_location(struct build *b, const struct chunk_frame *f, uint32_t *ret_id)
{
	struct profile_line line = {.line = f->line};
	uint64_t key, known;
	int r = add_function(b, f, &line.function);

	if (r < 0)
		return r;
	key = hash_u64((uint64_t)f->line + hash_u64(line.function));
	if (map_get(&b->locations, key, &known)) {
		*ret_id = (uint32_t)known;
		return 0;
	}
	r = profile_add_location(b->profile, 0, PROFILE_NO_MAPPING, &line, 1, ret_id);
	return r < 0 ? r : map_put(&b->locations, key, *ret_id);
}

/* The location of a frame that is met for the first time; the name of none is NULL. */
static int locate(struct build *b, uint32_t id, uint32_t *ret_location)
{
	const struct chunk_frame *f = (const struct chunk_frame *)(void *)b->frames.data + id;
	int r;

	if (id >= b->frames.len / sizeof(*f) || !f->name.data)
		return -EBADMSG;
	r = add_location(b, f, ret_location);
	if (r == 0)
		((uint32_t *)(void *)b->by_frame.data)[id] = *ret_location + 1;
	return r;
}

/* Completes the path by the frames of the stack from where it differs from the one before. */
static int follow(struct build *b, const struct chunk_stack *s)
{
	const uint32_t *by_frame = (const void *)b->by_frame.data;
	size_t n = b->by_frame.len / sizeof(*by_frame);

	for (; b->n_located < s->n; b->n_located++) {
		uint32_t *place = b->path + CHUNK_MAX_DEPTH - 1 - b->n_located;
		uint32_t id = s->frames[b->n_located];
		int r = 0;

		if (id < n && by_frame[id] != 0)
			*place = by_frame[id] - 1;
		else
			r = locate(b, id, place);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Puts the stack into the profile if it has a sum. */
static int keep_stack(void *ctx, const struct chunk_stack *s, uint32_t shared)
{
	struct build *b = ctx;
	struct build_value v = {0};
	int r;

	b->n_located = MIN(b->n_located, shared);
	if (s->id >= b->sums->n_stacks || b->sums->values[s->id] == 0 || s->id == DICT_OTHER)
		return 0;
	r = follow(b, s);
	if (r < 0)
		return r;
	v.value = b->sums->values[s->id];
	r = profile_add_stack(b->profile, b->path + CHUNK_MAX_DEPTH - s->n, s->n, &v.stack);
	return r < 0 ? r : buf_append(&b->added, &v, sizeof(v));
}

static int add_value(struct build *b, const struct build_value *v)
{
	int64_t *values;

	if (extend(&b->values, (size_t)v->stack + 1, sizeof(*values)) < 0)
		return -ENOMEM;
	values = (void *)b->values.data;
	values[v->stack] = block_add(values[v->stack], v->value);
	return 0;
}

static int add_other(struct build *b, int64_t value)
{
	struct chunk_frame f = {.name = view_str(DICT_OTHER_NAME), .file = view_str("")};
	struct build_value v = {.value = value};
	uint32_t location = 0;
	int r = add_location(b, &f, &location);

	if (r == 0)
		r = profile_add_stack(b->profile, &location, 1, &v.stack);
	return r < 0 ? r : buf_append(&b->added, &v, sizeof(v));
}

static int read_stacks(struct build *b, struct codec *c, struct day *day, uint32_t service,
		       struct err *err)
{
	const struct chunk_visitor visitor = {keep_frame, keep_stack, b};
	size_t with_sums = 0;
	int r;

	for (uint32_t i = DICT_OTHER + 1; i < b->sums->n_stacks; i++)
		with_sums += b->sums->values[i] != 0;
	if (with_sums == 0)
		return 0;
	r = chunk_visit(c, day, service, &visitor, err);
	if (r == 0 && b->added.len != with_sums * sizeof(struct build_value))
		r = err_set(err, -EBADMSG, "%s: stacks are missing", day->path);
	return r;
}

int build_add_day(struct build *b, struct codec *c, struct day *day, uint32_t service,
		  const struct block_sums *sums, struct err *err)
{
	const struct build_value *added;
	int r;

	buf_clear(&b->frames);
	buf_clear(&b->by_frame);
	arena_release(&b->text);
	buf_clear(&b->added);
	b->sums = sums;
	r = read_stacks(b, c, day, service, err);
	if (r < 0)
		return r;
	if (sums->n_stacks > DICT_OTHER && sums->values[DICT_OTHER] != 0)
		r = add_other(b, sums->values[DICT_OTHER]);
	added = (const void *)b->added.data;
	for (size_t i = 0; r == 0 && i < b->added.len / sizeof(*added); i++)
		r = add_value(b, &added[i]);
	return r < 0 ? err_set(err, r, "the answer takes too much memory; ask for less") : 0;
}

int build_finish(struct build *b, struct profile **ret_profile, struct err *err)
{
	const int64_t *values = (const void *)b->values.data;
	size_t n = b->values.len / sizeof(*values);

	for (size_t i = 0; i < n; i++) {
		if (values[i] == 0)
			continue;
		if (profile_add_sample(b->profile, (uint32_t)i, &values[i], NULL, 0) < 0)
			return err_set(err, -E2BIG,
				       "the answer takes too much memory; ask for less");
	}
	*ret_profile = TAKE_PTR(b->profile);
	return 0;
}
