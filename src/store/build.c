/*
 * src/store/build.c: stack ids and sums of a day become stacks of a profile. Only what has a sum
 * gets into the profile; equal stacks of different days meet there by their hash, as they do when
 * they are written. Neighbours in a chunk share most of their frames, so that what is known of a
 * frame and of the stack up to it is kept along the path. Values are added when all of the day was
 * read, so that a damaged day adds nothing.
 */
#include "store/build.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "store/chunk.h"
#include "store/dict.h"

#define TEXT_MAX_BYTES ((size_t)128 << 20)
#define WANTED_BYTES (BLOCK_MAX_STACK / 8 + 1)

struct build_frame {
	uint64_t hash;
	uint32_t location; /* plus 1; 0: not needed yet */
};

/* Of a frame whose location is not known when it is read. */
struct build_name {
	const uint8_t *text; /* the name, then the file; NULL: there is no such frame */
	uint64_t hash;	     /* of the function */
	uint32_t name_len;
	uint32_t file_len;
	int64_t line;
};

struct build_value {
	uint32_t stack; /* of the profile */
	uint32_t id;	/* of the day */
};

int build_init(struct build *b)
{
	*b = (struct build){.profile = profile_new(), .text = {.max = TEXT_MAX_BYTES}};
	b->path = calloc(CHUNK_MAX_DEPTH, sizeof(*b->path));
	b->hashes = calloc(CHUNK_MAX_DEPTH + 1, sizeof(*b->hashes));
	b->wanted = malloc(WANTED_BYTES);
	/* Room for all there can be: what is not touched costs nothing, and nothing is moved. */
	if (!b->profile || !b->path || !b->hashes || !b->wanted ||
	    buf_reserve(&b->frames, CHUNK_MAX_FRAMES * sizeof(struct build_frame)) < 0 ||
	    buf_reserve(&b->names, CHUNK_MAX_FRAMES * sizeof(struct build_name)) < 0 ||
	    buf_reserve(&b->added, (BLOCK_MAX_STACK + 1) * sizeof(struct build_value)) < 0)
		return -ENOMEM;
	return 0;
}

void build_release(struct build *b)
{
	profile_free(b->profile);
	ids_release(&b->functions);
	ids_release(&b->locations);
	ids_release(&b->stacks);
	buf_release(&b->values);
	buf_release(&b->frames);
	buf_release(&b->names);
	arena_release(&b->text);
	buf_release(&b->added);
	free(b->path);
	free(b->hashes);
	free(b->wanted);
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

static int add_function(struct build *b, const struct chunk_frame *f, uint64_t hash,
			uint32_t *ret_id)
{
	struct profile_function fn = {0};
	int r;

	if (ids_get(&b->functions, hash, ret_id))
		return 0;
	r = profile_add_string(b->profile, f->name, &fn.name);
	if (r == 0)
		r = profile_add_string(b->profile, f->file, &fn.file);
	fn.system_name = fn.name;
	if (r == 0)
		r = profile_add_function(b->profile, &fn, ret_id);
	return r < 0 ? r : ids_put(&b->functions, hash, *ret_id);
}

/* A location that is not there; the hashes are those of its frame and its function. */
static int add_location(struct build *b, const struct chunk_frame *f, uint64_t hash,
			uint64_t function, uint32_t *ret_id)
{
	struct profile_line line = {.line = f->line};
	int r = add_function(b, f, function, &line.function);

	if (r == 0)
		r = profile_add_location(b->profile, 0, PROFILE_NO_MAPPING, &line, 1, ret_id);
	return r < 0 ? r : ids_put(&b->locations, hash, *ret_id);
}

/* Frames of days before have their location; the text of others is kept until it is needed. */
static int keep_frame(void *ctx, uint32_t id, const struct chunk_frame *f)
{
	struct build *b = ctx;
	/* Every stored frame has a name; without one it would have no hash. */
	struct view name = f->name.len ? f->name : view_str("<unknown>");
	uint64_t name_hash = hash_bytes(name.data, name.len);
	uint64_t file_hash = hash_bytes(f->file.data, f->file.len);
	struct build_frame frame = {.hash = profile_hash_frame(name_hash, file_hash, f->line)};
	struct build_name kept = {0};
	uint8_t *text;

	if (extend(&b->frames, (size_t)id + 1, sizeof(frame)) < 0 ||
	    extend(&b->names, (size_t)id + 1, sizeof(kept)) < 0)
		return -ENOMEM;
	if (ids_get(&b->locations, frame.hash, &frame.location)) {
		frame.location++;
	} else {
		text = arena_alloc(&b->text, name.len + f->file.len);
		if (!text)
			return -E2BIG;
		memcpy(text, name.data, name.len);
		if (f->file.len)
			memcpy(text + name.len, f->file.data, f->file.len);
		kept = (struct build_name){.text = text,
					   .hash = profile_hash_frame(name_hash, file_hash, 0),
					   .name_len = (uint32_t)name.len,
					   .file_len = (uint32_t)f->file.len,
					   .line = f->line};
	}
	((struct build_frame *)(void *)b->frames.data)[id] = frame;
	((struct build_name *)(void *)b->names.data)[id] = kept;
	return 0;
}

/* For a frame that is met for the first time. */
static int locate(struct build *b, uint32_t id, struct build_frame *f)
{
	const struct build_name *n = (const struct build_name *)(void *)b->names.data + id;
	struct chunk_frame frame = {.line = n->line};
	int r = 0;

	if (!n->text)
		return -EBADMSG;
	frame.name = view_of(n->text, n->name_len);
	frame.file = view_of(n->text + n->name_len, n->file_len);
	/* Two ids may stand for equal frames. */
	if (!ids_get(&b->locations, f->hash, &f->location))
		r = add_location(b, &frame, f->hash, n->hash, &f->location);
	if (r == 0)
		f->location++;
	return r;
}

/* Completes the path by the frames of the stack from where it differs from the one before. */
static int follow(struct build *b, const struct chunk_stack *s)
{
	struct build_frame *frames = (void *)b->frames.data;
	size_t n = b->frames.len / sizeof(*frames);
	uint32_t *place = b->path + CHUNK_MAX_DEPTH - b->n_located;
	uint64_t hash = b->hashes[b->n_located];

	for (uint32_t i = b->n_located; i < s->n; i++) {
		struct build_frame *f = &frames[s->frames[i]];
		int r = 0;

		if (s->frames[i] >= n)
			return -EBADMSG;
		if (f->location == 0)
			r = locate(b, s->frames[i], f);
		if (r < 0)
			return r;
		*--place = f->location - 1;
		b->hashes[i + 1] = hash = profile_hash_push(hash, f->hash);
	}
	b->n_located = s->n;
	return 0;
}

/* The profile's id of a stack, which is added if it is new. */
static int add_stack(struct build *b, const uint32_t *path, uint32_t n, uint64_t hash,
		     uint32_t *ret_id)
{
	int r;

	hash = profile_hash_end(hash);
	if (ids_get(&b->stacks, hash, ret_id))
		return 0;
	r = profile_append_stack(b->profile, path, n, hash, ret_id);
	return r < 0 ? r : ids_put(&b->stacks, hash, *ret_id);
}

/* Puts the stack into the profile if it has a sum. */
static int keep_stack(void *ctx, const struct chunk_stack *s, uint32_t shared)
{
	struct build *b = ctx;
	struct build_value v = {.id = s->id};
	int r;

	b->n_located = MIN(b->n_located, shared);
	if (!(b->wanted[s->id / 8] >> s->id % 8 & 1))
		return 0;
	r = follow(b, s);
	if (r < 0)
		return r;
	r = add_stack(b, b->path + CHUNK_MAX_DEPTH - s->n, s->n, b->hashes[s->n], &v.stack);
	return r < 0 ? r : buf_append(&b->added, &v, sizeof(v));
}

static int add_value(struct build *b, const struct build_value *v)
{
	int64_t *values;

	if (extend(&b->values, (size_t)v->stack + 1, sizeof(*values)) < 0)
		return -ENOMEM;
	values = (void *)b->values.data;
	values[v->stack] = block_add(values[v->stack], b->sums->values[v->id]);
	return 0;
}

static int add_other(struct build *b)
{
	struct chunk_frame f = {.name = view_str(DICT_OTHER_NAME), .file = view_str("")};
	uint64_t hash = profile_hash_frame(hash_bytes(f.name.data, f.name.len),
					   hash_bytes(f.file.data, f.file.len), 0);
	struct build_value v = {.id = DICT_OTHER};
	uint32_t location = 0;
	int r = 0;

	if (!ids_get(&b->locations, hash, &location))
		r = add_location(b, &f, hash, hash, &location);
	if (r == 0)
		r = add_stack(b, &location, 1, hash, &v.stack);
	return r < 0 ? r : buf_append(&b->added, &v, sizeof(v));
}

/* A bit for each stack that has a sum, which stays in the CPU's cache; returns how many. */
static size_t mark_wanted(struct build *b)
{
	size_t n = 0;

	memset(b->wanted, 0, WANTED_BYTES);
	for (uint32_t i = DICT_OTHER + 1; i < b->sums->n_stacks; i++) {
		bool has = b->sums->values[i] != 0;

		b->wanted[i / 8] |= (uint8_t)(has << i % 8);
		n += has;
	}
	return n;
}

static int read_stacks(struct build *b, struct codec *c, struct day *day, uint32_t service,
		       struct err *err)
{
	const struct chunk_visitor visitor = {keep_frame, keep_stack, b};
	size_t wanted = mark_wanted(b);
	int r;

	if (wanted == 0)
		return 0;
	if (ids_reserve(&b->stacks, b->stacks.len + (uint32_t)wanted) < 0)
		return err_oom(err);
	r = chunk_visit(c, day, service, &visitor, err);
	if (r == 0 && b->added.len != wanted * sizeof(struct build_value))
		r = err_set(err, -EBADMSG, "%s: stacks are missing", day->path);
	return r;
}

int build_add_day(struct build *b, struct codec *c, struct day *day, uint32_t service,
		  const struct block_sums *sums, struct err *err)
{
	const struct build_value *added;
	int r;

	buf_clear(&b->frames);
	buf_clear(&b->names);
	arena_release(&b->text);
	buf_clear(&b->added);
	b->sums = sums;
	b->n_located = 0;
	r = read_stacks(b, c, day, service, err);
	if (r < 0)
		return r;
	if (sums->n_stacks > DICT_OTHER && sums->values[DICT_OTHER] != 0)
		r = add_other(b);
	added = (const void *)b->added.data;
	for (size_t i = 0; r == 0 && i < b->added.len / sizeof(*added); i++)
		r = add_value(b, &added[i]);
	return r < 0 ? err_set(err, r, "the answer takes too much memory; ask for less") : 0;
}

/* Values that came out as 0 are no samples. */
int build_finish(struct build *b, struct profile **ret_profile, struct err *err)
{
	int64_t *values = (void *)b->values.data;
	size_t all = b->values.len / sizeof(*values), n = 0;
	_cleanup_free_ uint32_t *stacks = calloc(all + 1, sizeof(*stacks));

	if (!stacks)
		return err_oom(err);
	for (size_t i = 0; i < all; i++) {
		stacks[n] = (uint32_t)i;
		values[n] = values[i];
		n += values[i] != 0;
	}
	if (profile_add_samples(b->profile, stacks, values, n) < 0)
		return err_set(err, -E2BIG, "the answer takes too much memory; ask for less");
	*ret_profile = TAKE_PTR(b->profile);
	return 0;
}
