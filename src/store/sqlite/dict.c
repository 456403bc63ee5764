/* src/store/sqlite/dict.c: the writer's dictionary of one service and day. */
#include "store/sqlite/dict.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "store/codec/block.h"
#include "store/codec/chunk.h"

#define MAX_TEXT 8192U /* of a name or a file, in bytes */
#define AHEAD 16U      /* stacks whose slots are prefetched before the lookup */
#define HEAVY_BYTES ((size_t)2 << 20)

static struct view cut(struct view text)
{
	return view_of(text.data, MIN(text.len, MAX_TEXT));
}

struct loading {
	struct store_dict *d;
	uint64_t *frames; /* hashes, by id */
};

static int load_frame(void *ctx, uint32_t id, const struct store_chunk_frame *f)
{
	struct loading *l = ctx;
	uint64_t hash;

	if (id > STORE_DICT_MAX_FRAMES)
		return -EBADMSG;
	hash = store_chunk_frame_hash(f);
	l->frames[id] = hash;
	l->d->next_frame = MAX(l->d->next_frame, id + 1);
	return store_ids_put(&l->d->frames, hash, id);
}

static int load_stack(void *ctx, const struct store_chunk_stack *s, uint32_t shared)
{
	struct loading *l = ctx;
	uint64_t hash = 0;

	(void)shared;
	for (uint32_t i = 0; i < s->n; i++) {
		if (s->frames[i] >= l->d->next_frame)
			return -EBADMSG;
		hash = profile_hash_push(hash, l->frames[s->frames[i]]);
	}
	l->d->next_stack = MAX(l->d->next_stack, s->id + 1);
	return store_ids_put(&l->d->stacks, profile_hash_end(hash), s->id);
}

int store_dict_load(struct store_dict *d, struct store_day *day, struct store_codec *c,
		    struct err *err)
{
	_cleanup_free_ uint64_t *hashes = calloc(STORE_DICT_MAX_FRAMES + 1, sizeof(*hashes));
	struct loading l = {.d = d, .frames = hashes};
	const struct store_chunk_visitor visitor = {load_frame, load_stack, &l};
	int r;

	if (!hashes)
		return err_oom(err);
	d->next_frame = 0;
	d->next_stack = STORE_DICT_OTHER + 1;
	r = store_chunk_visit(c, day, d->service, &visitor, err);
	if (r < 0) {
		store_dict_unload(d);
		return r;
	}
	d->first_new_frame = d->next_frame;
	d->loaded = true;
	return 0;
}

/* The state of store_dict_resolve() for one profile. */
struct resolving {
	struct store_dict *d;
	const struct profile *p;
	uint64_t *locations; /* hashes, with names for nameless frames; 0: not needed yet */
	uint32_t *ids;	     /* of the frame, plus 1, by location; 0: unknown, or several frames */
	const struct store_budget *budget;
	uint32_t over;	/* stacks that did not fit */
	bool any_bare;	/* locations are in use */
	bool any_new;	/* ids are in use */
	char bare[256]; /* the name of a frame without one */
};

static uint32_t n_frames(const struct profile_location *l)
{
	return MAX(l->n_lines, 1U);
}

/* The i-th line of a location; the name may be in r->bare. */
static struct store_chunk_frame frame_of(struct resolving *r, const struct profile_location *l,
					 uint32_t i)
{
	struct view module = cut(profile_module(r->p, l->mapping));
	struct store_chunk_frame f = {0};

	if (i < l->n_lines) {
		const struct profile_function *fn = profile_function_at(r->p, l->lines[i].function);

		f.name = cut(profile_string(r->p, fn->name));
		f.file = cut(profile_string(r->p, fn->file));
		f.line = l->lines[i].line;
	}
	if (f.name.len == 0) {
		(void)snprintf(r->bare, sizeof(r->bare), module.len ? "[%.*s]" : "<unknown>",
			       (int)module.len, (const char *)module.data);
		f.name = view_str(r->bare);
	}
	/* A Go function's package says more. */
	if (!view_ends_with(f.file, ".go"))
		f.module = module;
	return f;
}

static uint64_t frame_hash(struct resolving *r, const struct profile_location *l, uint32_t i)
{
	struct store_chunk_frame f;

	if (i < l->n_lines) {
		const struct profile_function *fn = profile_function_at(r->p, l->lines[i].function);

		/* String 0 is "". */
		if (fn->name != 0 && fn->file != 0)
			return profile_hash_frame(profile_string_hash(r->p, fn->name),
						  profile_string_hash(r->p, fn->file),
						  l->lines[i].line);
	}
	f = frame_of(r, l, i);
	return store_chunk_frame_hash(&f);
}

/* Memory for the profile's locations. Most profiles have hardly anything new, and need none. */
static int resolving_init(struct resolving *r, struct buf *scratch)
{
	size_t n = profile_n_locations(r->p);

	/* Bounded by the profile's own memory limit, as it takes more than this. */
	scratch->max = PROFILE_MAX_BYTES;
	buf_clear(scratch);
	if (buf_reserve(scratch, n * (sizeof(*r->locations) + sizeof(*r->ids)) + 1) < 0)
		return -ENOMEM;
	r->locations = (void *)scratch->data;
	r->ids = (uint32_t *)(r->locations + n);
	return 0;
}

/* profile_stack_hash() as if all frames had names. */
static uint64_t bare_hash(struct resolving *r, uint32_t stack)
{
	uint32_t n;
	const uint32_t *ids = profile_stack_at(r->p, stack, &n);
	uint64_t hash = 0;

	if (!r->any_bare)
		memset(r->locations, 0, profile_n_locations(r->p) * sizeof(*r->locations));
	r->any_bare = true;
	while (n-- > 0) {
		const struct profile_location *l = profile_location_at(r->p, ids[n]);
		uint64_t *known = &r->locations[ids[n]];

		if (*known == 0)
			for (uint32_t k = n_frames(l); k-- > 0;)
				*known = profile_hash_push(*known, frame_hash(r, l, k));
		for (uint32_t k = 1; k < n_frames(l); k++)
			hash *= PROFILE_HASH_FACTOR;
		hash = profile_hash_push(hash, *known);
	}
	return profile_hash_end(hash);
}

/* Whether the service, and its owner, may add so much; if so, it counts. */
static bool may_add(struct resolving *r, size_t bytes)
{
	struct store_dict *d = r->d;

	if (d->bytes + bytes > r->budget->bytes || d->owner->bytes + bytes > r->budget->owner_bytes)
		return false;
	d->bytes += bytes;
	d->owner->bytes += bytes;
	return true;
}

/* The id of a frame, added if new; -E2BIG if there are too many. */
static int frame_id(struct resolving *r, const struct profile_location *l, uint32_t line,
		    uint32_t *ret_id)
{
	uint64_t hash = frame_hash(r, l, line);
	struct store_dict *d = r->d;
	struct store_chunk_frame f;

	if (store_ids_get(&d->frames, hash, ret_id))
		return 0;
	if (d->next_frame >= STORE_DICT_MAX_FRAMES)
		return -E2BIG;
	f = frame_of(r, l, line);
	if (!may_add(r, f.name.len + f.file.len + f.module.len + sizeof(uint32_t)))
		return -E2BIG;
	f.name.data = arena_dup(&d->text, f.name.data, f.name.len);
	f.file.data = f.file.len ? arena_dup(&d->text, f.file.data, f.file.len) : NULL;
	f.module.data = f.module.len ? arena_dup(&d->text, f.module.data, f.module.len) : NULL;
	if (!f.name.data || (f.file.len && !f.file.data) || (f.module.len && !f.module.data) ||
	    store_ids_put(&d->frames, hash, d->next_frame) < 0 ||
	    buf_append(&d->new_frames, &f, sizeof(f)) < 0)
		return -ENOMEM;
	*ret_id = d->next_frame++;
	return 0;
}

/* Writes the frames of a location to ids, from the root; returns how many. */
static int put_frames(struct resolving *r, uint32_t location, uint32_t *ids)
{
	const struct profile_location *l;
	uint32_t n;

	if (r->ids[location] != 0) {
		ids[0] = r->ids[location] - 1;
		return 1;
	}
	l = profile_location_at(r->p, location);
	n = n_frames(l);
	for (uint32_t k = 0; k < n; k++) {
		int ret = frame_id(r, l, n - 1 - k, &ids[k]);

		if (ret < 0)
			return ret;
	}
	if (n == 1)
		r->ids[location] = ids[0] + 1;
	return (int)n;
}

/* The stack has at most STORE_CHUNK_MAX_DEPTH frames. */
static int add_stack(struct resolving *r, const uint32_t *locations, uint32_t n, uint64_t hash,
		     uint32_t *ret_id)
{
	struct store_dict *d = r->d;
	struct store_chunk_stack s = {.id = d->next_stack};
	uint32_t *ids;

	if (buf_reserve(&d->new_ids, STORE_CHUNK_MAX_DEPTH * sizeof(*ids)) < 0)
		return -ENOMEM;
	if (!r->any_new)
		memset(r->ids, 0, profile_n_locations(r->p) * sizeof(*r->ids));
	r->any_new = true;
	ids = (void *)(d->new_ids.data + d->new_ids.len);
	for (uint32_t i = n; i-- > 0;) {
		int ret = put_frames(r, locations[i], ids + s.n);

		if (ret < 0)
			return ret;
		s.n += (uint32_t)ret;
	}
	/* On disk, most ids have two bytes. */
	if (!may_add(r, (s.n + 1) * sizeof(uint16_t)))
		return -E2BIG;
	/* The ids may move while growing: keep offsets until the flush. */
	s.frames = (const void *)(uintptr_t)d->new_ids.len;
	d->new_ids.len += s.n * sizeof(*ids);
	if (store_ids_put(&d->stacks, hash, s.id) < 0 ||
	    buf_append(&d->new_stacks, &s, sizeof(s)) < 0)
		return -ENOMEM;
	*ret_id = d->next_stack++;
	return 0;
}

static int resolve_stack(struct resolving *r, uint32_t stack, uint32_t *ret_id)
{
	uint64_t hash = profile_stack_hash(r->p, stack);
	uint32_t n, depth = 0;
	const uint32_t *locations;
	int ret;

	if (hash == 0)
		hash = bare_hash(r, stack);
	if (store_ids_get(&r->d->stacks, hash, ret_id))
		return 0;
	locations = profile_stack_at(r->p, stack, &n);
	*ret_id = STORE_DICT_OTHER;
	for (uint32_t i = 0; i < n; i++) {
		depth += n_frames(profile_location_at(r->p, locations[i]));
		if (depth > STORE_CHUNK_MAX_DEPTH)
			return 0;
	}
	ret = r->d->next_stack > r->budget->stacks ? -E2BIG
						   : add_stack(r, locations, n, hash, ret_id);
	r->over += ret == -E2BIG;
	return ret == -E2BIG ? 0 : ret;
}

int store_dict_resolve(struct store_dict *d, const struct profile *p,
		       const struct store_budget *budget, struct buf *scratch, uint32_t *ret_ids,
		       struct err *err)
{
	struct resolving r = {.d = d, .p = p, .budget = budget};
	size_t n = profile_n_stacks(p);
	int ret = resolving_init(&r, scratch);

	for (uint32_t i = 0; ret == 0 && i < n; i++) {
		if (i + AHEAD < n)
			store_ids_expect(&d->stacks, profile_stack_hash(p, i + AHEAD));
		ret = resolve_stack(&r, i, &ret_ids[i]);
	}
	return ret < 0 ? err_oom(err) : (int)r.over;
}

bool store_dict_is_heavy(const struct store_dict *d)
{
	return d->new_ids.len + d->text.used > HEAVY_BYTES;
}

size_t store_dict_memory(const struct store_dict *d)
{
	return ((size_t)d->frames.cap + d->stacks.cap) * sizeof(struct store_ids_place) +
	       d->new_frames.cap + d->new_stacks.cap + d->new_ids.cap + d->text.used;
}

int store_dict_flush(struct store_dict *d, struct store_day *day, struct store_codec *c,
		     struct err *err)
{
	_cleanup_(buf_release) struct buf out = {0};
	size_t n_frames = d->new_frames.len / sizeof(struct store_chunk_frame);
	size_t n_stacks = d->new_stacks.len / sizeof(struct store_chunk_stack);
	struct store_chunk_stack *stacks = (void *)d->new_stacks.data;
	int64_t key = (int64_t)d->service << 32;
	int r = 0;

	if (n_frames > 0) {
		r = store_chunk_encode_frames(c, d->first_new_frame, (void *)d->new_frames.data,
					      n_frames, &out);
		if (r == 0)
			r = store_day_put(day, STORE_DAY_PUT_FRAMES, key | d->first_new_frame,
					  buf_view(&out), err);
	}
	if (r == 0 && n_stacks > 0) {
		for (size_t i = 0; i < n_stacks; i++)
			stacks[i].frames =
				(const void *)(d->new_ids.data + (uintptr_t)stacks[i].frames);
		key |= stacks[0].id;
		r = store_chunk_encode_stacks(c, stacks, n_stacks, &out);
		if (r == 0)
			r = store_day_put(day, STORE_DAY_PUT_STACKS, key, buf_view(&out), err);
	}
	if (r == 0 && d->bytes != d->bytes_saved && store_day_has_owners(day))
		r = store_day_exec(day, STORE_DAY_PUT_OWNER,
				   (const int64_t[]){d->service, d->owner->uid, (int64_t)d->bytes},
				   3, err);
	if (r < 0)
		return r;
	d->bytes_saved = d->bytes;
	d->first_new_frame = d->next_frame;
	buf_release(&d->new_frames);
	buf_release(&d->new_stacks);
	buf_release(&d->new_ids);
	arena_release(&d->text);
	return 0;
}

void store_dict_unload(struct store_dict *d)
{
	store_ids_release(&d->frames);
	store_ids_release(&d->stacks);
	buf_release(&d->new_frames);
	buf_release(&d->new_stacks);
	buf_release(&d->new_ids);
	arena_release(&d->text);
	d->loaded = false;
}
