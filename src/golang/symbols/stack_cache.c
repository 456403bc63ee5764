/* src/golang/symbols/stack_cache.c: see stack_cache.h. */
#include "golang/symbols/stack_cache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "golang/buckets/bucket.h"
#include "golang/grow.h"
#include "golang/symbols/symbolizer.h"

struct golang_stack_cache_function {
	uint32_t name; /* offset in the text */
	uint32_t file; /* id */
	int32_t start_line;
};

struct golang_stack_cache_line {
	uint32_t function;
	int32_t line;
};

struct golang_stack_cache_location {
	uint64_t address;
	uint32_t first_line;
	uint32_t n_lines;
};

/* Its locations are ids[first], ids[first + 1], ... */
struct golang_stack_cache_stack {
	uint32_t first;
	uint32_t n;
};

void golang_stack_cache_release(struct golang_stack_cache *n)
{
	buf_release(&n->text);
	free(n->files);
	free(n->functions);
	free(n->files_index.slots);
	free(n->functions_index.slots);
	free(n->locations_index.slots);
	free(n->lines);
	free(n->locations);
	free(n->ids);
	free(n->stacks);
	*n = (struct golang_stack_cache){0};
}

static struct view text_at(const struct golang_stack_cache *n, uint32_t at)
{
	return view_str((const char *)n->text.data + at);
}

static int text_add(struct golang_stack_cache *n, struct view s, uint32_t *ret_at)
{
	size_t at = n->text.len;
	int r = buf_append(&n->text, s.data, s.len);

	if (r == 0)
		r = buf_append_byte(&n->text, 0);
	if (r < 0)
		n->text.len = at;
	*ret_at = (uint32_t)at;
	return r;
}

/* Returns the key of an array item. */
typedef struct view names_key_fn(const struct golang_stack_cache *n, uint32_t id);

static struct view file_key(const struct golang_stack_cache *n, uint32_t id)
{
	return text_at(n, n->files[id]);
}

static struct view function_key(const struct golang_stack_cache *n, uint32_t id)
{
	return text_at(n, n->functions[id].name);
}

static struct view location_key(const struct golang_stack_cache *n, uint32_t id)
{
	return view_of(&n->locations[id].address, sizeof(n->locations[id].address));
}

/* The slot of the id with this key, or a free one. There must be one. */
static uint32_t *index_slot(const struct golang_stack_cache *n,
			    const struct golang_stack_cache_index *x, names_key_fn *key_of,
			    struct view key)
{
	size_t i = hash_bytes(key.data, key.len) & (x->cap - 1);

	while (x->slots[i] && !view_eq(key_of(n, x->slots[i] - 1), key))
		i = (i + 1) & (x->cap - 1);
	return &x->slots[i];
}

static bool index_find(const struct golang_stack_cache *n, const struct golang_stack_cache_index *x,
		       names_key_fn *key_of, struct view key, uint32_t *ret_id)
{
	const uint32_t *slot = x->cap ? index_slot(n, x, key_of, key) : NULL;

	if (!slot || !*slot)
		return false;
	*ret_id = *slot - 1;
	return true;
}

/* Adds the id len, the next after those present; its key must be new. */
static int index_add(const struct golang_stack_cache *n, struct golang_stack_cache_index *x,
		     names_key_fn *key_of, size_t len)
{
	struct golang_stack_cache_index bigger = {.cap = x->cap ? x->cap * 2 : 64};

	if ((len + 1) * 4 > x->cap * 3) {
		bigger.slots = calloc(bigger.cap, sizeof(*bigger.slots));
		if (!bigger.slots)
			return -ENOMEM;
		for (size_t i = 0; i < x->cap; i++)
			if (x->slots[i])
				*index_slot(n, &bigger, key_of, key_of(n, x->slots[i] - 1)) =
					x->slots[i];
		free(x->slots);
		*x = bigger;
	}
	*index_slot(n, x, key_of, key_of(n, (uint32_t)len)) = (uint32_t)len + 1;
	return 0;
}

int golang_stack_cache_import_init(struct golang_stack_cache_import *in,
				   struct golang_stack_cache *names, const struct profile *profile,
				   size_t n_stacks)
{
	struct golang_stack_cache_stack *stacks =
		reallocarray(names->stacks, n_stacks, sizeof(*stacks));

	*in = (struct golang_stack_cache_import){
		.names = names, .profile = profile, .n_stacks = n_stacks};
	if (!stacks)
		return -ENOMEM;
	names->stacks = stacks;
	names->text.max = GOLANG_STACK_CACHE_MAX_TEXT_BYTES;
	return 0;
}

void golang_stack_cache_import_release(struct golang_stack_cache_import *in)
{
	free(in->known);
}

static int import_file(struct golang_stack_cache *n, struct view file, uint32_t *ret_id)
{
	uint32_t at;
	int r;

	if (index_find(n, &n->files_index, file_key, file, ret_id))
		return 0;
	r = golang_grow(&n->files, &n->files_cap, n->n_files + 1, sizeof(*n->files), UINT32_MAX);
	if (r == 0)
		r = text_add(n, file, &at);
	if (r != 0)
		return r;
	n->files[n->n_files] = at;
	r = index_add(n, &n->files_index, file_key, n->n_files);
	if (r == 0)
		*ret_id = (uint32_t)n->n_files++;
	return r;
}

static int import_function(struct golang_stack_cache_import *in, uint32_t id, uint32_t *ret_id)
{
	const struct profile_function *f = profile_function_at(in->profile, id);
	struct golang_stack_cache_function function = {.start_line = (int32_t)f->start_line};
	struct view name = profile_string(in->profile, f->name);
	struct golang_stack_cache *n = in->names;
	int r;

	if (index_find(n, &n->functions_index, function_key, name, ret_id))
		return 0;
	r = golang_grow(&n->functions, &n->functions_cap, n->n_functions + 1, sizeof(*n->functions),
			UINT32_MAX);
	if (r == 0)
		r = import_file(n, profile_string(in->profile, f->file), &function.file);
	if (r == 0)
		r = text_add(n, name, &function.name);
	if (r < 0)
		return r;
	n->functions[n->n_functions] = function;
	r = index_add(n, &n->functions_index, function_key, n->n_functions);
	if (r == 0)
		*ret_id = (uint32_t)n->n_functions++;
	return r;
}

/* Appends the lines of a location; they count once the location is added. */
static int import_lines(struct golang_stack_cache_import *in, const struct profile_location *l)
{
	struct golang_stack_cache *n = in->names;
	int r = golang_grow(&n->lines, &n->lines_cap, n->n_lines + l->n_lines, sizeof(*n->lines),
			    UINT32_MAX);

	for (uint32_t i = 0; r == 0 && i < l->n_lines; i++) {
		struct golang_stack_cache_line *line = &n->lines[n->n_lines + i];

		r = import_function(in, l->lines[i].function, &line->function);
		line->line = (int32_t)l->lines[i].line;
	}
	return r;
}

/*
 * The program decides which inlined calls an address has: if they differ, it is another location.
 */
static bool is_same(const struct golang_stack_cache *n, uint64_t at, uint32_t n_lines)
{
	const struct golang_stack_cache_location *known = &n->locations[at];

	return known->n_lines == n_lines &&
	       (n_lines == 0 || memcmp(n->lines + known->first_line, n->lines + n->n_lines,
				       n_lines * sizeof(*n->lines)) == 0);
}

static int import_location(struct golang_stack_cache_import *in, uint32_t id, uint32_t *ret_id)
{
	const struct profile_location *l = profile_location_at(in->profile, id);
	struct view key = view_of(&l->address, sizeof(l->address));
	struct golang_stack_cache *n = in->names;
	bool known;
	int r = import_lines(in, l);

	if (r < 0)
		return r;
	known = index_find(n, &n->locations_index, location_key, key, ret_id);
	if (known && is_same(n, *ret_id, l->n_lines))
		return 0;
	r = golang_grow(&n->locations, &n->locations_cap, n->n_locations + 1, sizeof(*n->locations),
			GOLANG_STACK_CACHE_MAX_LOCATIONS);
	if (r < 0)
		return r;
	n->locations[n->n_locations] = (struct golang_stack_cache_location){
		.address = l->address, .first_line = (uint32_t)n->n_lines, .n_lines = l->n_lines};
	/* Lookups find the first location of an address. */
	if (!known)
		r = index_add(n, &n->locations_index, location_key, n->n_locations);
	if (r < 0)
		return r;
	n->n_lines += l->n_lines;
	n->unknown += l->n_lines == 0;
	*ret_id = (uint32_t)n->n_locations++;
	return 0;
}

/* Reserves a map of the profile's locations, which grow as stacks are symbolized. */
static int import_reserve(struct golang_stack_cache_import *in)
{
	size_t had = in->known_cap;
	int r = golang_grow(&in->known, &in->known_cap, profile_n_locations(in->profile),
			    sizeof(*in->known), UINT32_MAX);

	if (r == 0 && in->known_cap > had)
		memset(in->known + had, 0, (in->known_cap - had) * sizeof(*in->known));
	return r;
}

int golang_stack_cache_import_stack(struct golang_stack_cache_import *in, size_t stack,
				    const uint32_t *locations, size_t n_locations)
{
	struct golang_stack_cache *n = in->names;
	int r = import_reserve(in);

	if (r == 0)
		r = golang_grow(&n->ids, &n->ids_cap, n->n_ids + n_locations, sizeof(*n->ids),
				GOLANG_STACK_CACHE_MAX_IDS);
	for (size_t i = 0; r == 0 && i < n_locations; i++) {
		uint32_t *known = &in->known[locations[i]];
		uint32_t id = *known - 1;

		if (!*known)
			r = import_location(in, locations[i], &id);
		if (r < 0)
			break;
		*known = id + 1;
		n->ids[n->n_ids + i] = id;
	}
	if (r < 0)
		return r;
	n->stacks[stack] = (struct golang_stack_cache_stack){.first = (uint32_t)n->n_ids,
							     .n = (uint32_t)n_locations};
	n->n_ids += n_locations;
	return 0;
}

void golang_stack_cache_import_finish(struct golang_stack_cache_import *in)
{
	struct golang_stack_cache *n = in->names;

	n->n_stacks = in->n_stacks;
	/* Most programs soon have all their stacks: return the slack. */
	golang_shrink(&n->functions, &n->functions_cap, n->n_functions, sizeof(*n->functions));
	golang_shrink(&n->lines, &n->lines_cap, n->n_lines, sizeof(*n->lines));
	golang_shrink(&n->locations, &n->locations_cap, n->n_locations, sizeof(*n->locations));
	golang_shrink(&n->ids, &n->ids_cap, n->n_ids, sizeof(*n->ids));
	golang_shrink(&n->text.data, &n->text.cap, n->text.len, 1);
}

int golang_stack_cache_export_init(struct golang_stack_cache_export *ex,
				   const struct golang_stack_cache *names, struct profile *profile)
{
	*ex = (struct golang_stack_cache_export){
		.names = names,
		.profile = profile,
		.locations = calloc(names->n_locations + 1, sizeof(*ex->locations)),
		.functions = calloc(names->n_functions + 1, sizeof(*ex->functions)),
		.files = calloc(names->n_files + 1, sizeof(*ex->files)),
	};
	return ex->locations && ex->functions && ex->files ? 0 : -ENOMEM;
}

void golang_stack_cache_export_release(struct golang_stack_cache_export *ex)
{
	free(ex->locations);
	free(ex->functions);
	free(ex->files);
}

static int export_file(struct golang_stack_cache_export *ex, uint32_t file, uint32_t *ret_id)
{
	int r = 0;

	if (!ex->files[file]) {
		r = profile_add_string(ex->profile, file_key(ex->names, file), ret_id);
		ex->files[file] = r == 0 ? *ret_id + 1 : 0;
	}
	*ret_id = ex->files[file] - 1;
	return r;
}

static int export_function(struct golang_stack_cache_export *ex, uint32_t function,
			   uint32_t *ret_id)
{
	const struct golang_stack_cache_function *from = &ex->names->functions[function];
	struct profile_function f = {.start_line = from->start_line};
	int r;

	if (ex->functions[function]) {
		*ret_id = ex->functions[function] - 1;
		return 0;
	}
	r = profile_add_string(ex->profile, text_at(ex->names, from->name), &f.name);
	f.system_name = f.name;
	if (r == 0)
		r = export_file(ex, from->file, &f.file);
	if (r == 0)
		r = profile_add_function(ex->profile, &f, ret_id);
	if (r == 0)
		ex->functions[function] = *ret_id + 1;
	return r;
}

static int export_location(struct golang_stack_cache_export *ex, uint32_t location)
{
	const struct golang_stack_cache_location *l = &ex->names->locations[location];
	struct profile_line lines[GOLANG_BUCKET_MAX_DEPTH + GOLANG_MAX_INLINE];
	uint32_t id;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < l->n_lines; i++) {
		const struct golang_stack_cache_line *from = &ex->names->lines[l->first_line + i];

		lines[i] = (struct profile_line){.line = from->line};
		r = export_function(ex, from->function, &lines[i].function);
	}
	if (r == 0)
		r = profile_add_location(ex->profile, l->address, PROFILE_NO_MAPPING, lines,
					 l->n_lines, &id);
	if (r == 0)
		ex->locations[location] = id + 1;
	return r;
}

int golang_stack_cache_export_stack(struct golang_stack_cache_export *ex, size_t stack,
				    uint32_t *ret_stack)
{
	const struct golang_stack_cache_stack *s = &ex->names->stacks[stack];
	uint32_t ids[GOLANG_BUCKET_MAX_DEPTH + GOLANG_MAX_INLINE + 1];

	for (uint32_t i = 0; i < s->n; i++) {
		uint32_t location = ex->names->ids[s->first + i];
		int r = ex->locations[location] ? 0 : export_location(ex, location);

		if (r < 0)
			return r;
		ids[i] = ex->locations[location] - 1;
	}
	return profile_add_stack(ex->profile, ids, s->n, ret_stack);
}
