/*
 * src/profile/profile.c: the model as arrays of plain structs, with strings, stacks and label sets
 * interned. A heap profile repeats frames and labels thousands of times; sharing them keeps 8,000
 * samples within two megabytes. Everything that grows calls profile_room() first, so a forged
 * profile hits our memory limit, not the machine's.
 */
#include "profile/profile.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "profile/stacks.h"

struct array {
	void *items;
	size_t len;
	size_t cap;
};

struct profile {
	size_t max_bytes;
	struct profile_header header;
	struct profile_type types[PROFILE_MAX_TYPES];
	size_t n_types;
	struct array mappings;
	struct array functions;
	struct array locations;
	struct array samples;
	struct array comments;
	struct intern strings;
	struct profile_stacks stacks;
	struct intern labels;
	struct arena arena; /* lines and values */
};

/* An entry and its two slots, in base/intern.c. */
#define INTERN_BYTES_PER_ENTRY ((size_t)32)

static size_t intern_memory(const struct intern *in)
{
	return in->bytes.used + in->cap * INTERN_BYTES_PER_ENTRY;
}

size_t profile_memory(const struct profile *p)
{
	return sizeof(*p) + p->mappings.cap * sizeof(struct profile_mapping) +
	       p->functions.cap * sizeof(struct profile_function) +
	       p->locations.cap * sizeof(struct profile_location) +
	       p->samples.cap * sizeof(struct profile_sample) + p->comments.cap * sizeof(uint32_t) +
	       intern_memory(&p->strings) + profile_stacks_memory(&p->stacks) +
	       intern_memory(&p->labels) + p->arena.used;
}

static int profile_room(const struct profile *p, size_t bytes)
{
	size_t used = profile_memory(p);

	return used > p->max_bytes || bytes > p->max_bytes - used ? -E2BIG : 0;
}

/* Room for n more items. */
static int profile_reserve(struct profile *p, struct array *a, size_t item_size, size_t n)
{
	/* By half: the arrays are large, and doubling wastes memory. */
	size_t cap = MAX(a->cap + a->cap / 2 + 8, a->len + n);
	void *items;
	int r;

	if (n <= a->cap - a->len)
		return 0;
	r = profile_room(p, (cap - a->cap) * item_size);
	if (r < 0)
		return r;
	items = realloc(a->items, cap * item_size);
	if (!items)
		return -ENOMEM;
	a->items = items;
	a->cap = cap;
	return 0;
}

/* A pointer to one more zeroed item; the caller commits it by raising len. */
static int profile_grow(struct profile *p, struct array *a, size_t item_size, void **ret_item)
{
	int r = profile_reserve(p, a, item_size, 1);

	if (r < 0)
		return r;
	*ret_item = (char *)a->items + a->len * item_size;
	memset(*ret_item, 0, item_size);
	return 0;
}

static int profile_intern(struct profile *p, struct intern *in, struct view bytes, uint32_t *ret_id)
{
	int r = profile_room(p, bytes.len + (in->len == in->cap ? in->cap : 0) *
						    INTERN_BYTES_PER_ENTRY);

	/* A full profile can still look up existing strings. */
	if (r < 0)
		return intern_find(in, bytes, ret_id) ? 0 : r;
	return intern_add(in, bytes, ret_id);
}

static int profile_store(struct profile *p, const void *data, size_t size, const void **ret_copy)
{
	int r = profile_room(p, size);
	void *copy;

	if (r < 0)
		return r;
	copy = arena_dup(&p->arena, data, size);
	if (!copy)
		return -ENOMEM;
	*ret_copy = copy;
	return 0;
}

struct profile *profile_new(void)
{
	struct profile *p = calloc(1, sizeof(*p));
	uint32_t empty;

	if (!p)
		return NULL;
	p->max_bytes = PROFILE_MAX_BYTES;
	if (intern_add(&p->strings, view_of("", 0), &empty) < 0) {
		profile_free(p);
		return NULL;
	}
	return p;
}

void profile_free(struct profile *p)
{
	if (!p)
		return;
	free(p->mappings.items);
	free(p->functions.items);
	free(p->locations.items);
	free(p->samples.items);
	free(p->comments.items);
	intern_release(&p->strings);
	profile_stacks_release(&p->stacks);
	intern_release(&p->labels);
	arena_release(&p->arena);
	free(p);
}

void profile_limit(struct profile *p, size_t max_bytes)
{
	p->max_bytes = MIN(max_bytes, PROFILE_MAX_BYTES);
}

struct profile_header *profile_header(struct profile *p)
{
	return &p->header;
}

const struct profile_header *profile_header_const(const struct profile *p)
{
	return &p->header;
}

int profile_add_string(struct profile *p, struct view s, uint32_t *ret_id)
{
	return profile_intern(p, &p->strings, s, ret_id);
}

static bool has_string(const struct profile *p, uint32_t id)
{
	return id < p->strings.len;
}

int profile_add_type_ids(struct profile *p, struct profile_type type)
{
	if (p->samples.len > 0 || !has_string(p, type.type) || !has_string(p, type.unit))
		return -EINVAL;
	if (p->n_types == PROFILE_MAX_TYPES)
		return -E2BIG;
	p->types[p->n_types++] = type;
	return 0;
}

int profile_add_type(struct profile *p, const char *type, const char *unit)
{
	struct profile_type ids;
	int r = profile_add_string(p, view_str(type), &ids.type);

	if (r < 0)
		return r;
	r = profile_add_string(p, view_str(unit), &ids.unit);
	if (r < 0)
		return r;
	return profile_add_type_ids(p, ids);
}

int profile_add_mapping(struct profile *p, const struct profile_mapping *m, uint32_t *ret_id)
{
	void *item;
	int r;

	if (!has_string(p, m->file) || !has_string(p, m->build_id))
		return -EINVAL;
	r = profile_grow(p, &p->mappings, sizeof(*m), &item);
	if (r < 0)
		return r;
	*(struct profile_mapping *)item = *m;
	*ret_id = (uint32_t)p->mappings.len++;
	return 0;
}

int profile_add_function(struct profile *p, const struct profile_function *f, uint32_t *ret_id)
{
	void *item;
	int r;

	if (!has_string(p, f->name) || !has_string(p, f->system_name) || !has_string(p, f->file))
		return -EINVAL;
	r = profile_grow(p, &p->functions, sizeof(*f), &item);
	if (r < 0)
		return r;
	*(struct profile_function *)item = *f;
	*ret_id = (uint32_t)p->functions.len++;
	return 0;
}

struct view profile_module(const struct profile *p, uint32_t mapping)
{
	struct view path;
	size_t start;

	if (mapping == PROFILE_NO_MAPPING)
		return view_str("");
	path = profile_string(p, profile_mapping_at(p, mapping)->file);
	while (path.len > 1 && path.data[path.len - 1] == '/')
		path.len--;
	start = path.len;
	while (start > 0 && path.data[start - 1] != '/')
		start--;
	return start == path.len ? path : view_of(path.data + start, path.len - start);
}

/* Of the file; without one, of the module if that is known. */
static uint64_t hash_file(const struct profile *p, uint32_t file, struct view module)
{
	return file == 0 && module.len ? profile_hash_module(module)
				       : intern_hash(&p->strings, file);
}

/* The frames of a location as one term of a stack's hash; 0 if one has no name. */
static uint64_t hash_lines(const struct profile *p, uint32_t mapping,
			   const struct profile_line *lines, uint32_t n)
{
	const struct profile_function *functions = p->functions.items;
	struct view module = profile_module(p, mapping);
	uint64_t hash = 0;

	while (n-- > 0) {
		const struct profile_function *f = &functions[lines[n].function];

		/* String 0 is "". */
		if (f->name == 0)
			return 0;
		hash = profile_hash_push(hash, profile_hash_frame(intern_hash(&p->strings, f->name),
								  hash_file(p, f->file, module),
								  lines[n].line));
	}
	return hash;
}

int profile_add_location(struct profile *p, uint64_t address, uint32_t mapping,
			 const struct profile_line *lines, uint32_t n_lines, uint32_t *ret_id)
{
	struct profile_location *l;
	const void *copy = NULL;
	void *item;
	int r;

	if (mapping != PROFILE_NO_MAPPING && mapping >= p->mappings.len)
		return -EINVAL;
	for (uint32_t i = 0; i < n_lines; i++)
		if (lines[i].function >= p->functions.len)
			return -EINVAL;
	r = profile_grow(p, &p->locations, sizeof(*l), &item);
	if (r < 0)
		return r;
	if (n_lines > 0) {
		r = profile_store(p, lines, n_lines * sizeof(*lines), &copy);
		if (r < 0)
			return r;
	}
	l = item;
	*l = (struct profile_location){.address = address,
				       .mapping = mapping,
				       .n_lines = n_lines,
				       .lines = copy,
				       .hash = hash_lines(p, mapping, lines, n_lines)};
	*ret_id = (uint32_t)p->locations.len++;
	return 0;
}

static uint64_t hash_locations(const struct profile *p, const uint32_t *ids, uint32_t n)
{
	const struct profile_location *locations = p->locations.items;
	uint64_t hash = 0;

	while (n-- > 0) {
		const struct profile_location *l = &locations[ids[n]];

		/* Two at a time: the multiplications then overlap. */
		if (n > 0 && l->n_lines == 1 && locations[ids[n - 1]].n_lines == 1) {
			uint64_t a = l->hash, b = locations[ids[--n]].hash;

			if (a == 0 || b == 0)
				return 0;
			hash = hash * (PROFILE_HASH_FACTOR * PROFILE_HASH_FACTOR) +
			       (a * PROFILE_HASH_FACTOR + b);
			continue;
		}
		if (l->hash == 0)
			return 0;
		for (uint32_t k = 1; k < l->n_lines; k++)
			hash *= PROFILE_HASH_FACTOR;
		hash = profile_hash_push(hash, l->hash);
	}
	return profile_hash_end(hash);
}

typedef int32_t four_ids __attribute__((vector_size(16)));

static bool has_locations(const struct profile *p, const uint32_t *ids, uint32_t n)
{
	int32_t last = (int32_t)p->locations.len - 1;
	const four_ids limit = {last, last, last, last};
	four_ids bad = {0}, v;
	uint32_t i = 0;

	/*
	 * Without an early exit, and as signed: there are fewer than 2^31 locations, so none is
	 * negative.
	 */
	for (; n - i >= 4; i += 4) {
		memcpy(&v, ids + i, sizeof(v));
		bad |= v | (v > limit);
	}
	for (; i < n; i++)
		bad[0] |= (int32_t)ids[i] | -((int32_t)ids[i] > last);
	return (bad[0] | bad[1] | bad[2] | bad[3]) >= 0;
}

int profile_add_stack(struct profile *p, const uint32_t *locations, uint32_t n, uint32_t *ret_id)
{
	uint32_t known = p->stacks.len;
	int r;

	if (!has_locations(p, locations, n))
		return -EINVAL;
	r = profile_room(p, profile_stacks_add_growth(&p->stacks, n));
	if (r < 0)
		return profile_stacks_find(&p->stacks, locations, n, ret_id) ? 0 : r;
	r = profile_stacks_add(&p->stacks, locations, n, ret_id);
	if (r == 0 && *ret_id == known)
		p->stacks.items[known].hash = hash_locations(p, locations, n);
	return r;
}

int profile_append_stack(struct profile *p, const uint32_t *locations, uint32_t n, uint64_t hash,
			 uint32_t *ret_id)
{
	size_t growth = profile_stacks_append_growth(&p->stacks, n);
	int r = 0;

	if (!has_locations(p, locations, n))
		return -EINVAL;
	if (growth > 0)
		r = profile_room(p, growth);
	if (r == 0)
		r = profile_stacks_append(&p->stacks, locations, n, ret_id);
	if (r == 0)
		p->stacks.items[*ret_id].hash = hash;
	return r;
}

/* A caller's padding must not be compared, so copy field by field. */
static int intern_labels(struct profile *p, const struct profile_label *labels, uint32_t n,
			 const struct profile_label **ret_labels)
{
	_cleanup_free_ struct profile_label *clean = calloc(n, sizeof(*clean));
	uint32_t id;
	int r;

	if (!clean)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		if (!has_string(p, labels[i].key) || !has_string(p, labels[i].str) ||
		    !has_string(p, labels[i].num_unit))
			return -EINVAL;
		clean[i].key = labels[i].key;
		clean[i].str = labels[i].str;
		clean[i].num = labels[i].num;
		clean[i].num_unit = labels[i].num_unit;
	}
	r = profile_intern(p, &p->labels, view_of(clean, n * sizeof(*clean)), &id);
	if (r < 0)
		return r;
	*ret_labels = (const void *)intern_get(&p->labels, id).data;
	return 0;
}

int profile_add_sample(struct profile *p, uint32_t stack, const int64_t *values,
		       const struct profile_label *labels, uint32_t n_labels)
{
	struct profile_sample sample = {.stack = stack, .n_labels = n_labels};
	const void *copy = NULL;
	void *item;
	int r;

	if (stack >= p->stacks.len || p->n_types == 0)
		return -EINVAL;
	r = profile_grow(p, &p->samples, sizeof(sample), &item);
	if (r < 0)
		return r;
	if (n_labels > 0) {
		r = intern_labels(p, labels, n_labels, &sample.labels);
		if (r < 0)
			return r;
	}
	r = profile_store(p, values, p->n_types * sizeof(*values), &copy);
	if (r < 0)
		return r;
	sample.values = copy;
	*(struct profile_sample *)item = sample;
	p->samples.len++;
	return 0;
}

int profile_add_samples(struct profile *p, const uint32_t *stacks, const int64_t *values, size_t n)
{
	size_t size = p->n_types * sizeof(*values);
	struct profile_sample *samples;
	const void *copy;
	int r;

	if (p->n_types == 0)
		return -EINVAL;
	for (size_t i = 0; i < n; i++)
		if (stacks[i] >= p->stacks.len)
			return -EINVAL;
	r = n > 0 ? profile_reserve(p, &p->samples, sizeof(*samples), n) : 0;
	if (r == 0 && n > 0)
		r = profile_store(p, values, n * size, &copy);
	if (r < 0 || n == 0)
		return r;
	samples = (struct profile_sample *)p->samples.items + p->samples.len;
	for (size_t i = 0; i < n; i++)
		samples[i] = (struct profile_sample){
			.stack = stacks[i], .values = (const int64_t *)copy + i * p->n_types};
	p->samples.len += n;
	return 0;
}

int profile_add_comment(struct profile *p, struct view comment)
{
	uint32_t id;
	void *item;
	int r = profile_add_string(p, comment, &id);

	if (r < 0)
		return r;
	r = profile_grow(p, &p->comments, sizeof(id), &item);
	if (r < 0)
		return r;
	*(uint32_t *)item = id;
	p->comments.len++;
	return 0;
}

void profile_set_mapping(struct profile *p, uint32_t id, const struct profile_mapping *m)
{
	assert(id < p->mappings.len);
	assert(has_string(p, m->file) && has_string(p, m->build_id));
	((struct profile_mapping *)p->mappings.items)[id] = *m;
}

void profile_set_folded(struct profile *p, uint32_t location)
{
	assert(location < p->locations.len);
	((struct profile_location *)p->locations.items)[location].is_folded = true;
}

void profile_set_value(struct profile *p, size_t sample, size_t type, int64_t value)
{
	const struct profile_sample *samples = p->samples.items;

	assert(sample < p->samples.len && type < p->n_types);
	((int64_t *)(uintptr_t)samples[sample].values)[type] = value;
}

struct view profile_string(const struct profile *p, uint32_t id)
{
	return intern_get(&p->strings, id);
}

const char *profile_cstring(const struct profile *p, uint32_t id)
{
	return (const char *)intern_get(&p->strings, id).data;
}

size_t profile_n_strings(const struct profile *p)
{
	return p->strings.len;
}

size_t profile_n_types(const struct profile *p)
{
	return p->n_types;
}

size_t profile_n_mappings(const struct profile *p)
{
	return p->mappings.len;
}

size_t profile_n_functions(const struct profile *p)
{
	return p->functions.len;
}

size_t profile_n_locations(const struct profile *p)
{
	return p->locations.len;
}

size_t profile_n_stacks(const struct profile *p)
{
	return p->stacks.len;
}

size_t profile_n_samples(const struct profile *p)
{
	return p->samples.len;
}

size_t profile_n_comments(const struct profile *p)
{
	return p->comments.len;
}

const struct profile_type *profile_type_at(const struct profile *p, size_t i)
{
	assert(i < p->n_types);
	return &p->types[i];
}

const struct profile_mapping *profile_mapping_at(const struct profile *p, size_t i)
{
	assert(i < p->mappings.len);
	return (const struct profile_mapping *)p->mappings.items + i;
}

const struct profile_function *profile_function_at(const struct profile *p, size_t i)
{
	assert(i < p->functions.len);
	return (const struct profile_function *)p->functions.items + i;
}

const struct profile_location *profile_location_at(const struct profile *p, size_t i)
{
	assert(i < p->locations.len);
	return (const struct profile_location *)p->locations.items + i;
}

const struct profile_sample *profile_sample_at(const struct profile *p, size_t i)
{
	assert(i < p->samples.len);
	return (const struct profile_sample *)p->samples.items + i;
}

uint32_t profile_comment_at(const struct profile *p, size_t i)
{
	assert(i < p->comments.len);
	return ((const uint32_t *)p->comments.items)[i];
}

const uint32_t *profile_stack_at(const struct profile *p, uint32_t stack, uint32_t *ret_len)
{
	assert(stack < p->stacks.len);
	*ret_len = p->stacks.items[stack].n;
	return p->stacks.items[stack].ids;
}

uint64_t profile_string_hash(const struct profile *p, uint32_t id)
{
	return intern_hash(&p->strings, id);
}

uint64_t profile_stack_hash(const struct profile *p, uint32_t stack)
{
	assert(stack < p->stacks.len);
	return p->stacks.items[stack].hash;
}

int profile_find_type(const struct profile *p, const char *type)
{
	for (size_t i = 0; i < p->n_types; i++)
		if (view_eq(profile_string(p, p->types[i].type), view_str(type)))
			return (int)i;
	return -ENOENT;
}
