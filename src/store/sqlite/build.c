/*
 * src/store/sqlite/build.c: turns stack ids and sums of a day into stacks of a profile. Only stacks
 * with a sum are added; equal stacks of different days are found by their hash, as in the writer.
 * Neighbours in a chunk share most of their frames, so what is known of a frame, and of the stack
 * up to it, is kept along the path. Values are added after the whole day was read, so a malformed
 * day adds nothing.
 */
#include "store/sqlite/build.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "store/codec/chunk.h"
#include "store/sqlite/dict.h"

#define DAMAGED_NAME "(damaged)"
#define TEXT_MAX_BYTES ((size_t)128 << 20)
#define MAX_WAITING 8U
#define WANTED_BYTES (STORE_BLOCK_MAX_STACK / 8 + 1)

struct store_build_frame {
	uint64_t hash;
	uint32_t location; /* plus 1; 0: not needed yet, no hash */
};

/* What a frame's location consists of. */
struct store_build_name {
	size_t text; /* where it begins: the name, the file, the module */
	uint32_t name_len;
	uint32_t file_len;
	uint32_t module_len;
	int64_t line;
	bool exists;
};

struct store_build_stack {
	uint64_t hash;
	uint32_t id; /* of the day */
	uint32_t n;
	uint32_t path[STORE_CHUNK_MAX_DEPTH]; /* locations, leaf first */
};

struct store_build_value {
	uint32_t stack; /* of the profile */
	uint32_t id;	/* of the day */
};

int store_build_init(struct store_build *b)
{
	*b = (struct store_build){
		.profile = profile_new(), .text = {.max = TEXT_MAX_BYTES}, .is_first = true};
	b->path = calloc(STORE_CHUNK_MAX_DEPTH, sizeof(*b->path));
	b->hashes = calloc(STORE_CHUNK_MAX_DEPTH + 1, sizeof(*b->hashes));
	b->wanted = malloc(WANTED_BYTES);
	b->met = malloc(WANTED_BYTES);
	b->waiting = malloc(MAX_WAITING * sizeof(*b->waiting));
	/*
	 * Reserve the maximum in one piece: untouched memory is free, nothing moves, and malloc()
	 * keeps the freed memory for the next sum.
	 */
	b->names = malloc(STORE_CHUNK_MAX_FRAMES * (sizeof(*b->names) + sizeof(*b->frames)) +
			  (STORE_BLOCK_MAX_STACK + 1) * sizeof(*b->added));
	if (!b->profile || !b->path || !b->hashes || !b->wanted || !b->met || !b->waiting ||
	    !b->names)
		return -ENOMEM;
	b->frames = (struct store_build_frame *)(b->names + STORE_CHUNK_MAX_FRAMES);
	b->added = (struct store_build_value *)(b->frames + STORE_CHUNK_MAX_FRAMES);
	return 0;
}

void store_build_release(struct store_build *b)
{
	profile_free(b->profile);
	store_ids_release(&b->functions);
	store_ids_release(&b->modules);
	store_ids_release(&b->locations);
	store_ids_release(&b->stacks);
	buf_release(&b->values);
	free(b->names);
	buf_release(&b->text);
	free(b->path);
	free(b->hashes);
	free(b->wanted);
	free(b->met);
	free(b->waiting);
}

static int build_too_large(int r, struct err *err)
{
	return err_lack(err, r, ERR_CAUSE_LIMIT, "use a shorter window",
			"the result needs too much memory");
}

/* Makes room for n items of this size; new ones are zeroed. */
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

/* Two frames of a function differ by their lines. */
static int add_function(struct store_build *b, const struct profile_function *fn, uint32_t *ret_id)
{
	uint64_t hash = profile_hash_frame(profile_string_hash(b->profile, fn->name),
					   profile_string_hash(b->profile, fn->file), 0);
	int r;

	if (store_ids_get(&b->functions, hash, ret_id))
		return 0;
	r = profile_add_function(b->profile, fn, ret_id);
	return r < 0 ? r : store_ids_put(&b->functions, hash, *ret_id);
}

/* Addresses are not stored, so a module is one mapping. */
static int add_module(struct store_build *b, struct view module, uint32_t *ret_mapping)
{
	struct profile_mapping m = {.has_functions = true};
	uint64_t hash;
	int r;

	*ret_mapping = PROFILE_NO_MAPPING;
	if (module.len == 0)
		return 0;
	hash = profile_hash_module(module) | 1;
	if (store_ids_get(&b->modules, hash, ret_mapping))
		return 0;
	r = profile_add_string(b->profile, module, &m.file);
	if (r == 0)
		r = profile_add_mapping(b->profile, &m, ret_mapping);
	return r < 0 ? r : store_ids_put(&b->modules, hash, *ret_mapping);
}

static int add_location(struct store_build *b, const struct store_chunk_frame *f,
			struct store_build_frame *ret)
{
	struct profile_line line = {.line = f->line};
	struct profile_function fn = {0};
	uint32_t id, mapping = PROFILE_NO_MAPPING;
	int r = profile_add_string(b->profile, f->name, &fn.name);

	if (r == 0)
		r = profile_add_string(b->profile, f->file, &fn.file);
	fn.system_name = fn.name;
	if (r == 0)
		r = add_function(b, &fn, &line.function);
	if (r == 0)
		r = add_module(b, f->module, &mapping);
	if (r == 0)
		r = profile_add_location(b->profile, 0, mapping, &line, 1, &id);
	if (r != 0)
		return r;
	/* For one frame, it is the frame's hash. */
	ret->hash = profile_location_at(b->profile, id)->hash;
	ret->location = id + 1;
	return b->is_first ? 0 : store_ids_put(&b->locations, ret->hash, id);
}

/* Frames of the first day are distinct; later ones may exist already. */
static int find_location(struct store_build *b, const struct store_chunk_frame *f,
			 struct store_build_frame *ret)
{
	uint64_t hash;
	uint32_t id;

	if (b->is_first)
		return add_location(b, f, ret);
	hash = store_chunk_frame_hash(f);
	if (!store_ids_get(&b->locations, hash, &id))
		return add_location(b, f, ret);
	*ret = (struct store_build_frame){.hash = hash, .location = id + 1};
	return 0;
}

/* Ids up to this one, which have no frame unless they get one. */
static void skip_frames(struct store_build *b, uint32_t id)
{
	for (; b->n_frames <= id; b->n_frames++) {
		b->names[b->n_frames].exists = false;
		b->frames[b->n_frames].location = 0;
	}
}

/* The text is kept until it is needed. */
static int keep_frame(void *ctx, uint32_t id, const struct store_chunk_frame *f)
{
	struct store_build *b = ctx;
	/* Every stored frame has a name; otherwise it would have no hash. */
	struct view name = f->name.len ? f->name : view_str("<unknown>");
	struct store_build_name kept = {.text = b->text.len,
					.name_len = (uint32_t)name.len,
					.file_len = (uint32_t)f->file.len,
					.module_len = (uint32_t)f->module.len,
					.line = f->line,
					.exists = true};

	skip_frames(b, id);
	if (buf_append(&b->text, name.data, name.len) < 0 ||
	    buf_append(&b->text, f->file.data, f->file.len) < 0 ||
	    buf_append(&b->text, f->module.data, f->module.len) < 0)
		return -E2BIG;
	b->frames[id].location = 0;
	b->names[id] = kept;
	return 0;
}

/* For a frame seen for the first time. */
static int locate(struct store_build *b, uint32_t id, struct store_build_frame *f)
{
	const struct store_build_name *n = &b->names[id];
	struct store_chunk_frame frame = {.name = view_str(DAMAGED_NAME)};
	const uint8_t *text;

	if (n->exists) {
		text = b->text.data + n->text;
		frame.name = view_of(text, n->name_len);
		frame.file = view_of(text + n->name_len, n->file_len);
		frame.module = view_of(text + n->name_len + n->file_len, n->module_len);
		frame.line = n->line;
	}
	return find_location(b, &frame, f);
}

/* Extends the path by the frames in which the stack differs from the previous one. */
static int follow(struct store_build *b, const struct store_chunk_stack *s)
{
	uint32_t *place = b->path + STORE_CHUNK_MAX_DEPTH - b->n_located;
	uint64_t hash = b->hashes[b->n_located];

	for (uint32_t i = b->n_located; i < s->n; i++) {
		struct store_build_frame *f = &b->frames[s->frames[i]];
		int r = 0;

		if (s->frames[i] >= b->n_frames)
			skip_frames(b, s->frames[i]);
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

/* Adds the stack to the profile if new, and notes which value belongs to it. */
static int add_stack(struct store_build *b, const struct store_build_stack *s)
{
	struct store_ids_place *place = store_ids_place(&b->stacks, s->hash);
	struct store_build_value v = {.id = s->id};
	int r = 0;

	if (place->hash[0] != 0) {
		v.stack = place->id;
	} else {
		r = profile_append_stack(b->profile, s->path, s->n, s->hash, &v.stack);
		if (r == 0)
			store_ids_fill(&b->stacks, place, s->hash, v.stack);
	}
	if (r == 0)
		b->added[b->n_added++] = v;
	return r;
}

/* Stacks of the first day are all distinct; they are indexed only if there is another day. */
static int append_stack(struct store_build *b, const struct store_chunk_stack *s)
{
	struct store_build_value v = {.id = s->id};
	int r = profile_append_stack(b->profile, b->path + STORE_CHUNK_MAX_DEPTH - s->n, s->n,
				     profile_hash_end(b->hashes[s->n]), &v.stack);

	if (r == 0)
		b->added[b->n_added++] = v;
	return r;
}

/* Indexes the first day's entries of the profile by hash. */
static int index_first(struct store_build *b)
{
	uint32_t n = (uint32_t)profile_n_stacks(b->profile);
	uint32_t n_locations = (uint32_t)profile_n_locations(b->profile);
	int r = store_ids_reserve(&b->stacks, n);

	b->is_first = false;
	for (uint32_t i = 0; r == 0 && i < n_locations; i++)
		r = store_ids_put(&b->locations, profile_location_at(b->profile, i)->hash, i);
	for (uint32_t i = 0; r == 0 && i < n; i++) {
		uint64_t hash = profile_stack_hash(b->profile, i);
		struct store_ids_place *place = store_ids_place(&b->stacks, hash);

		if (i + MAX_WAITING < n)
			store_ids_expect(&b->stacks,
					 profile_stack_hash(b->profile, i + MAX_WAITING));
		/* A forged day may have equal stacks under two ids. */
		if (place->hash[0] == 0)
			store_ids_fill(&b->stacks, place, hash, i);
	}
	return r;
}

static int add_waiting(struct store_build *b)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < b->n_waiting; i++)
		r = add_stack(b, &b->waiting[i]);
	b->n_waiting = 0;
	return r;
}

/* The stack is added if it has a sum. */
static int keep_stack(void *ctx, const struct store_chunk_stack *s, uint32_t shared)
{
	struct store_build *b = ctx;
	struct store_build_stack *to;
	uint8_t bit = (uint8_t)(1U << s->id % 8);
	int r;

	b->n_located = MIN(b->n_located, shared);
	if (!(b->wanted[s->id / 8] & bit))
		return 0;
	/* It would count its sum twice. */
	if (b->met[s->id / 8] & bit) {
		b->repeated = true;
		return -EBADMSG;
	}
	b->met[s->id / 8] |= bit;
	b->n_wanted--;
	r = follow(b, s);
	if (r < 0)
		return r;
	if (b->is_first)
		return append_stack(b, s);
	to = &b->waiting[b->n_waiting++];
	to->hash = profile_hash_end(b->hashes[s->n]);
	to->id = s->id;
	to->n = s->n;
	memcpy(to->path, b->path + STORE_CHUNK_MAX_DEPTH - s->n, s->n * sizeof(*to->path));
	store_ids_expect(&b->stacks, to->hash);
	return b->n_waiting < MAX_WAITING ? 0 : add_waiting(b);
}

static int add_values(struct store_build *b)
{
	const struct store_build_value *added = b->added;
	int64_t *values;

	if (extend(&b->values, profile_n_stacks(b->profile), sizeof(*values)) < 0)
		return -ENOMEM;
	values = (void *)b->values.data;
	for (size_t i = 0; i < b->n_added; i++)
		values[added[i].stack] =
			store_block_add(values[added[i].stack], b->sums->values[added[i].id]);
	return 0;
}

/* A stack of the day becomes one frame of this name. */
static int add_named(struct store_build *b, const char *name, uint32_t id)
{
	const struct store_chunk_frame named = {.name = view_str(name)};
	struct store_build_stack *to = b->waiting;
	struct store_build_frame frame;
	int r = b->is_first ? index_first(b) : 0;

	if (r == 0)
		r = store_ids_reserve(&b->stacks, b->stacks.len + 1);
	if (r == 0)
		r = find_location(b, &named, &frame);
	if (r != 0)
		return r;
	to->hash = profile_hash_end(profile_hash_push(0, frame.hash));
	to->id = id;
	to->n = 1;
	to->path[0] = frame.location - 1;
	return add_stack(b, to);
}

/* Stacks that have a sum and were not found. */
static int add_lost(struct store_build *b)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && b->n_wanted > 0 && i < b->sums->n_stacks; i++) {
		if (!((b->wanted[i / 8] & ~b->met[i / 8]) >> i % 8 & 1))
			continue;
		r = add_named(b, DAMAGED_NAME, i);
		b->n_wanted--;
	}
	return r;
}

/* One bit per stack with a sum; fits the CPU cache. */
static void mark_wanted(struct store_build *b)
{
	uint32_t n = 0;

	memset(b->wanted, 0, WANTED_BYTES);
	memset(b->met, 0, WANTED_BYTES);
	for (uint32_t i = STORE_DICT_OTHER + 1; i < b->sums->n_stacks; i++) {
		bool has = b->sums->values[i] != 0;

		b->wanted[i / 8] |= (uint8_t)(has << i % 8);
		n += has;
	}
	b->n_wanted = n;
}

static int read_stacks(struct store_build *b, struct store_codec *c, struct store_day *day,
		       uint32_t service, struct err *err)
{
	const struct store_chunk_visitor visitor = {keep_frame, keep_stack, b};
	int r;

	mark_wanted(b);
	if (b->n_wanted == 0)
		return 0;
	if (!b->is_first && store_ids_reserve(&b->stacks, b->stacks.len + b->n_wanted) < 0)
		return err_oom(err);
	r = store_chunk_visit(c, day, service, &visitor, err);
	if (r == 0 && b->repeated)
		r = err_set(err, -EBADMSG, "%s: stacks are repeated", day->path);
	if (r < 0)
		return r;
	return add_waiting(b) < 0 || add_lost(b) < 0 ? build_too_large(-E2BIG, err) : 0;
}

int store_build_add_day(struct store_build *b, struct store_codec *c, struct store_day *day,
			uint32_t service, const struct store_block_sums *sums, struct err *err)
{
	int r;

	buf_clear(&b->text);
	b->n_frames = 0;
	b->n_added = 0;
	b->sums = sums;
	b->n_located = 0;
	b->n_waiting = 0;
	b->repeated = false;
	if (b->is_first && profile_n_stacks(b->profile) > 0 && index_first(b) < 0)
		return err_oom(err);
	r = read_stacks(b, c, day, service, err);
	if (r < 0)
		return r;
	if (sums->n_stacks > STORE_DICT_OTHER && sums->values[STORE_DICT_OTHER] != 0)
		r = add_named(b, STORE_DICT_OTHER_NAME, STORE_DICT_OTHER);
	if (r == 0)
		r = add_values(b);
	return r < 0 ? build_too_large(r, err) : 0;
}

/* Values of 0 are not samples. */
int store_build_finish(struct store_build *b, struct profile **ret_profile, struct err *err)
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
		return build_too_large(-E2BIG, err);
	*ret_profile = TAKE_PTR(b->profile);
	return 0;
}
