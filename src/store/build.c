/*
 * src/store/build.c: stack ids and sums of a day become stacks of a profile. Names are read for
 * the frames that are needed only; equal stacks of different days meet in the profile.
 */
#include "store/build.h"

#include <errno.h>
#include <stdlib.h>

#include "base/hash.h"
#include "store/chunk.h"
#include "store/dict.h"

#define WANTED UINT32_MAX
#define STACKS_MAX_BYTES ((size_t)256 << 20)

struct wanted_stack {
	int64_t value;
	uint32_t n;
	uint32_t first; /* of its frame ids, in words of the scratch */
};

int build_init(struct build *b)
{
	*b = (struct build){.profile = profile_new()};
	b->scratch.max = STACKS_MAX_BYTES;
	b->by_frame = calloc(CHUNK_MAX_FRAMES, sizeof(*b->by_frame));
	return b->profile && b->by_frame ? 0 : -ENOMEM;
}

void build_release(struct build *b)
{
	profile_free(b->profile);
	map_release(&b->functions);
	map_release(&b->locations);
	buf_release(&b->values);
	buf_release(&b->stacks);
	buf_release(&b->scratch);
	free(b->by_frame);
}

/* Keeps the stack if it has a sum, and marks its frames as wanted. */
static int want_stack(void *ctx, const struct chunk_stack *s, uint32_t shared)
{
	struct build *b = ctx;
	struct wanted_stack w = {.n = s->n, .first = (uint32_t)(b->scratch.len / sizeof(uint32_t))};
	int r;

	(void)shared;
	if (s->id >= b->sums->n_stacks || b->sums->values[s->id] == 0 || s->id == DICT_OTHER)
		return 0;
	w.value = b->sums->values[s->id];
	for (uint32_t i = 0; i < s->n; i++)
		b->by_frame[s->frames[i]] = WANTED;
	r = buf_append(&b->scratch, s->frames, s->n * sizeof(uint32_t));
	if (r == 0)
		r = buf_append(&b->stacks, &w, sizeof(w));
	b->n_wanted++;
	return r;
}

static int add_function(struct build *b, const struct chunk_frame *f, uint64_t names,
			uint32_t *ret_id)
{
	struct profile_function fn = {0};
	uint64_t known;
	int r;

	if (map_get(&b->functions, names, &known)) {
		*ret_id = (uint32_t)known;
		return 0;
	}
	r = profile_add_string(b->profile, f->name, &fn.name);
	if (r == 0)
		r = profile_add_string(b->profile, f->file, &fn.file);
	fn.system_name = fn.name;
	if (r == 0)
		r = profile_add_function(b->profile, &fn, ret_id);
	return r < 0 ? r : map_put(&b->functions, names, *ret_id);
}

static int add_location(struct build *b, const struct chunk_frame *f, uint32_t *ret_id)
{
	uint64_t names = hash_mix(hash_bytes(f->name.data, f->name.len) +
				  hash_mix(hash_bytes(f->file.data, f->file.len)));
	uint64_t hash = hash_mix(names + 0x9e3779b97f4a7c15ULL * (uint64_t)f->line);
	struct profile_line line = {.line = f->line};
	uint64_t known;
	int r;

	if (map_get(&b->locations, hash, &known)) {
		*ret_id = (uint32_t)known;
		return 0;
	}
	r = add_function(b, f, names, &line.function);
	if (r == 0)
		r = profile_add_location(b->profile, 0, PROFILE_NO_MAPPING, &line, 1, ret_id);
	return r < 0 ? r : map_put(&b->locations, hash, *ret_id);
}

static int name_frame(void *ctx, uint32_t id, const struct chunk_frame *f)
{
	struct build *b = ctx;
	uint32_t location = 0;
	int r;

	if (b->by_frame[id] != WANTED)
		return 0;
	r = add_location(b, f, &location);
	if (r == 0)
		b->by_frame[id] = location + 1;
	return r;
}

static int read_chunks(struct build *b, struct codec *c, struct day *day, uint32_t service,
		       bool stacks, struct err *err)
{
	const int64_t range[] = {(int64_t)service << 32, (int64_t)service << 32 | UINT32_MAX};
	sqlite3_stmt *stmt = NULL;
	int r = day_query(day, stacks ? DAY_STACKS : DAY_FRAMES, range, 2, &stmt, err);

	if (r < 0)
		return r;
	while ((r = day_next(day, stmt, err)) > 0) {
		if (stacks)
			r = chunk_decode_stacks(c, day_blob(stmt, 1), want_stack, b);
		else
			r = chunk_decode_frames(c, day_blob(stmt, 1), name_frame, b);
		if (r < 0) {
			day_done(stmt);
			return err_set(err, r,
				       r == -EBADMSG ? "%s: damaged names"
						     : "%s: too much for one answer",
				       day->path);
		}
	}
	return r;
}

static int add_value(struct build *b, const uint32_t *locations, uint32_t n, int64_t value)
{
	int64_t *values;
	uint32_t id;
	int r = profile_add_stack(b->profile, locations, n, &id);

	if (r < 0)
		return r;
	while (b->values.len <= id * sizeof(int64_t)) {
		r = buf_append(&b->values, &(int64_t){0}, sizeof(int64_t));
		if (r < 0)
			return r;
	}
	values = (void *)b->values.data;
	values[id] = block_add(values[id], value);
	return 0;
}

/* The frames from the leaf, as locations; false when a name is missing. */
static bool to_locations(const struct build *b, const struct wanted_stack *w, uint32_t *ret)
{
	const uint32_t *frames = (const uint32_t *)(const void *)b->scratch.data + w->first;

	for (uint32_t i = 0; i < w->n; i++) {
		uint32_t location = b->by_frame[frames[w->n - 1 - i]];

		if (location == 0 || location == WANTED)
			return false;
		ret[i] = location - 1;
	}
	return true;
}

static int add_other(struct build *b, int64_t value)
{
	struct chunk_frame f = {.name = view_str(DICT_OTHER_NAME)};
	uint32_t location = 0;
	int r = add_location(b, &f, &location);

	return r < 0 ? r : add_value(b, &location, 1, value);
}

static int add_stacks(struct build *b, struct day *day, struct err *err)
{
	const struct wanted_stack *wanted = (const void *)b->stacks.data;
	uint32_t locations[CHUNK_MAX_DEPTH];

	/* All are checked before the first is added: a damaged day must add nothing. */
	for (uint32_t i = 0; i < b->n_wanted; i++)
		if (!to_locations(b, &wanted[i], locations))
			return err_set(err, -EBADMSG, "%s: names are missing", day->path);
	for (uint32_t i = 0; i < b->n_wanted; i++) {
		int r;

		(void)to_locations(b, &wanted[i], locations);
		r = add_value(b, locations, wanted[i].n, wanted[i].value);
		if (r < 0)
			return err_set(err, r, "the answer takes too much memory; ask for less");
	}
	return 0;
}

int build_add_day(struct build *b, struct codec *c, struct day *day, uint32_t service,
		  const struct block_sums *sums, struct err *err)
{
	uint32_t with_sums = 0;
	int r;

	memset(b->by_frame, 0, CHUNK_MAX_FRAMES * sizeof(*b->by_frame));
	buf_clear(&b->stacks);
	buf_clear(&b->scratch);
	b->n_wanted = 0;
	b->sums = sums;
	for (uint32_t i = DICT_OTHER + 1; i < sums->n_stacks; i++)
		with_sums += sums->values[i] != 0;
	if (with_sums > 0) {
		r = read_chunks(b, c, day, service, true, err);
		if (r == 0 && b->n_wanted != with_sums)
			r = err_set(err, -EBADMSG, "%s: stacks are missing", day->path);
		if (r == 0)
			r = read_chunks(b, c, day, service, false, err);
		if (r == 0)
			r = add_stacks(b, day, err);
		if (r < 0)
			return r;
	}
	if (sums->n_stacks > DICT_OTHER && sums->values[DICT_OTHER] != 0) {
		r = add_other(b, sums->values[DICT_OTHER]);
		if (r < 0)
			return err_oom(err);
	}
	return 0;
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
