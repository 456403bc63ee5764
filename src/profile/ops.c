/*
 * src/profile/ops.c: merge and difference, both as a weighted sum of profiles.
 *
 * Each entity of a source has a key that identifies it (a mapping by build id or file, offset and
 * size; a location by its offset in its mapping and its lines). The number of the key is the
 * entity's id in the result. Mappings are keyed as in pprof, so the same program at different
 * addresses is merged. Only what samples refer to is carried over.
 */
#include "profile/ops.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/hash.h"
#include "base/intern.h"
#include "base/sum.h"

#define UNMAPPED UINT32_MAX
#define PAGE_BYTES ((uint64_t)4096)

/* From ids of the current source to ids of the result, UNMAPPED if not known yet. */
struct id_maps {
	uint32_t *all; /* one block, divided into: */
	uint32_t *strings;
	uint32_t *mappings;
	uint32_t *functions;
	uint32_t *locations;
	uint32_t *stacks;
};

struct merger {
	const struct profile *src;
	struct profile *out;
	struct id_maps ids;
	struct intern mappings; /* keys; the number of a key is the id in the result */
	struct intern functions;
	struct intern locations;
	struct intern samples;
	struct intern comments;
	struct buf sums; /* of int64_t: one per type, for each sample */
	struct buf key;
	struct buf items; /* lines, locations or labels being translated */
};

static void merger_release(struct merger *m)
{
	profile_free(m->out);
	free(m->ids.all);
	intern_release(&m->mappings);
	intern_release(&m->functions);
	intern_release(&m->locations);
	intern_release(&m->samples);
	intern_release(&m->comments);
	buf_release(&m->sums);
	buf_release(&m->key);
	buf_release(&m->items);
}

static int id_maps_reset(struct id_maps *ids, const struct profile *src)
{
	size_t strings = profile_n_strings(src);
	size_t mappings = profile_n_mappings(src);
	size_t functions = profile_n_functions(src);
	size_t locations = profile_n_locations(src);
	size_t total = strings + mappings + functions + locations + profile_n_stacks(src);
	uint32_t *all = realloc(ids->all, total * sizeof(*all));

	if (!all)
		return -ENOMEM;
	memset(all, 0xff, total * sizeof(*all));
	ids->all = all;
	ids->strings = all;
	ids->mappings = ids->strings + strings;
	ids->functions = ids->mappings + mappings;
	ids->locations = ids->functions + functions;
	ids->stacks = ids->locations + locations;
	return 0;
}

static int map_string(struct merger *m, uint32_t id, uint32_t *ret_id)
{
	uint32_t *known = &m->ids.strings[id];
	int r = 0;

	if (*known == UNMAPPED)
		r = profile_add_string(m->out, profile_string(m->src, id), known);
	*ret_id = *known;
	return r;
}

/* The number of the key, and whether it is new. */
static int merger_key(struct intern *keys, struct view key, uint32_t *ret_id, bool *ret_is_new)
{
	uint32_t before = keys->len;
	int r = intern_add(keys, key, ret_id);

	*ret_is_new = r == 0 && keys->len != before;
	return r;
}

struct mapping_key {
	uint64_t size;
	uint64_t offset;
	uint64_t name; /* string id of the build id or, without one, of the file; 0 for neither */
};

/* Drop what the sources disagree on. */
static void merge_mapping_flags(struct profile *out, uint32_t id, const struct profile_mapping *m)
{
	struct profile_mapping both = *profile_mapping_at(out, id);

	both.has_functions &= m->has_functions;
	both.has_filenames &= m->has_filenames;
	both.has_line_numbers &= m->has_line_numbers;
	both.has_inline_frames &= m->has_inline_frames;
	profile_set_mapping(out, id, &both);
}

static int map_mapping(struct merger *m, uint32_t id, uint32_t *ret_id)
{
	struct profile_mapping mapping;
	struct mapping_key key;
	bool is_new;
	int r;

	*ret_id = id == PROFILE_NO_MAPPING ? id : m->ids.mappings[id];
	if (*ret_id != UNMAPPED || id == PROFILE_NO_MAPPING)
		return 0;
	mapping = *profile_mapping_at(m->src, id);
	r = map_string(m, mapping.file, &mapping.file);
	if (r == 0)
		r = map_string(m, mapping.build_id, &mapping.build_id);
	if (r < 0)
		return r;
	key.size = (mapping.end - mapping.start + PAGE_BYTES - 1) & ~(PAGE_BYTES - 1);
	key.offset = mapping.offset;
	key.name = mapping.build_id ? mapping.build_id : mapping.file;
	r = merger_key(&m->mappings, view_of(&key, sizeof(key)), ret_id, &is_new);
	if (r < 0)
		return r;
	m->ids.mappings[id] = *ret_id;
	if (is_new)
		return profile_add_mapping(m->out, &mapping, ret_id);
	merge_mapping_flags(m->out, *ret_id, &mapping);
	return 0;
}

static int map_function(struct merger *m, uint32_t id, uint32_t *ret_id)
{
	struct profile_function f;
	uint64_t key[4];
	bool is_new;
	int r;

	*ret_id = m->ids.functions[id];
	if (*ret_id != UNMAPPED)
		return 0;
	f = *profile_function_at(m->src, id);
	r = map_string(m, f.name, &f.name);
	if (r == 0)
		r = map_string(m, f.system_name, &f.system_name);
	if (r == 0)
		r = map_string(m, f.file, &f.file);
	if (r < 0)
		return r;
	key[0] = f.name;
	key[1] = f.system_name;
	key[2] = f.file;
	key[3] = (uint64_t)f.start_line;
	r = merger_key(&m->functions, view_of(key, sizeof(key)), ret_id, &is_new);
	if (r == 0 && is_new)
		r = profile_add_function(m->out, &f, ret_id);
	if (r == 0)
		m->ids.functions[id] = *ret_id;
	return r;
}

/* Fills m->items with the lines in the ids of the result. */
static int map_lines(struct merger *m, const struct profile_location *l)
{
	buf_clear(&m->items);
	for (uint32_t i = 0; i < l->n_lines; i++) {
		struct profile_line line = {.column = l->lines[i].column, .line = l->lines[i].line};
		int r = map_function(m, l->lines[i].function, &line.function);

		if (r == 0)
			r = buf_append(&m->items, &line, sizeof(line));
		if (r < 0)
			return r;
	}
	return 0;
}

struct location_key {
	uint64_t offset; /* in the mapping, whose address may differ per process */
	uint32_t mapping;
	uint32_t is_folded;
};

static int map_location(struct merger *m, uint32_t id, uint32_t *ret_id)
{
	const struct profile_location *l = profile_location_at(m->src, id);
	struct location_key key = {.offset = l->address, .is_folded = l->is_folded};
	uint64_t address = l->address;
	bool is_new = false;
	int r;

	*ret_id = m->ids.locations[id];
	if (*ret_id != UNMAPPED)
		return 0;
	r = map_mapping(m, l->mapping, &key.mapping);
	if (r == 0)
		r = map_lines(m, l);
	if (r < 0)
		return r;
	if (l->mapping != PROFILE_NO_MAPPING) {
		key.offset -= profile_mapping_at(m->src, l->mapping)->start;
		address = key.offset + profile_mapping_at(m->out, key.mapping)->start;
	}
	buf_clear(&m->key);
	r = buf_append(&m->key, &key, sizeof(key));
	if (r == 0)
		r = buf_append(&m->key, m->items.data, m->items.len);
	if (r == 0)
		r = merger_key(&m->locations, buf_view(&m->key), ret_id, &is_new);
	if (r == 0 && is_new)
		r = profile_add_location(m->out, address, key.mapping, (const void *)m->items.data,
					 l->n_lines, ret_id);
	if (r < 0)
		return r;
	if (is_new && l->is_folded)
		profile_set_folded(m->out, *ret_id);
	m->ids.locations[id] = *ret_id;
	return 0;
}

static int map_stack(struct merger *m, uint32_t id, uint32_t *ret_id)
{
	_cleanup_(buf_release) struct buf frames = {.max = PROFILE_MAX_BYTES};
	uint32_t n;
	const uint32_t *stack = profile_stack_at(m->src, id, &n);
	int r;

	*ret_id = m->ids.stacks[id];
	if (*ret_id != UNMAPPED)
		return 0;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t location;

		r = map_location(m, stack[i], &location);
		if (r == 0)
			r = buf_append(&frames, &location, sizeof(location));
		if (r < 0)
			return r;
	}
	r = profile_add_stack(m->out, (const void *)frames.data, n, ret_id);
	if (r == 0)
		m->ids.stacks[id] = *ret_id;
	return r;
}

/* Fills m->items with the labels in ids of the result, with zeroed padding. */
static int map_labels(struct merger *m, const struct profile_sample *s)
{
	buf_clear(&m->items);
	for (uint32_t i = 0; i < s->n_labels; i++) {
		struct profile_label label;
		int r;

		memset(&label, 0, sizeof(label));
		label.num = s->labels[i].num;
		r = map_string(m, s->labels[i].key, &label.key);
		if (r == 0)
			r = map_string(m, s->labels[i].str, &label.str);
		if (r == 0)
			r = map_string(m, s->labels[i].num_unit, &label.num_unit);
		if (r == 0)
			r = buf_append(&m->items, &label, sizeof(label));
		if (r < 0)
			return r;
	}
	return 0;
}

/* A sample's key is its stack and labels; it also stores both until the sums are known. */
/* The parts of a value differ by one at most; which stack begins with the larger one varies. */
static int64_t term_value(const struct profile_term *term, const struct profile_sample *s,
			  size_t type)
{
	__int128 value = s->values[type], phase;

	if (term->parts < 2)
		return s->values[type];
	phase = (__int128)(hash_mix(s->stack + 1ULL) % term->parts);
	if (value < 0)
		phase = -phase;
	return (int64_t)((value * (term->part + 1) + phase) / term->parts -
			 (value * term->part + phase) / term->parts);
}

static int merge_sample(struct merger *m, const struct profile_sample *s,
			const struct profile_term *term)
{
	size_t n = profile_n_types(m->out);
	int64_t zeros[PROFILE_MAX_TYPES] = {0};
	uint64_t stack_word;
	uint32_t stack = 0, id = 0;
	int64_t *sums;
	bool is_new = false;
	int r = map_stack(m, s->stack, &stack);

	if (r == 0)
		r = map_labels(m, s);
	if (r < 0)
		return r;
	buf_clear(&m->key);
	stack_word = stack; /* 8 bytes, for the labels after it to be aligned */
	r = buf_append(&m->key, &stack_word, sizeof(stack_word));
	if (r == 0)
		r = buf_append(&m->key, m->items.data, m->items.len);
	if (r == 0)
		r = merger_key(&m->samples, buf_view(&m->key), &id, &is_new);
	if (r == 0 && is_new)
		r = buf_append(&m->sums, zeros, n * sizeof(*zeros));
	if (r < 0)
		return r;
	sums = (int64_t *)(void *)m->sums.data + id * n;
	for (size_t i = 0; i < n; i++)
		if (!(term->without_types >> i & 1))
			sums[i] = sum_add(sums[i], sum_mul(term_value(term, s, i), term->factor));
	return 0;
}

static bool all_zero(const int64_t *values, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (values[i] != 0)
			return false;
	return true;
}

/* Turns keys and sums into samples; counts those that cancelled out. */
static int merge_emit(struct merger *m, size_t *ret_zeros)
{
	size_t n = profile_n_types(m->out);
	const int64_t *sums = (const void *)m->sums.data;
	size_t zeros = 0;

	for (uint32_t i = 0; i < m->samples.len; i++, sums += n) {
		struct view key = intern_get(&m->samples, i);
		uint64_t stack;
		int r;

		if (all_zero(sums, n)) {
			zeros++;
			continue;
		}
		memcpy(&stack, key.data, sizeof(stack));
		r = profile_add_sample(
			m->out, (uint32_t)stack, sums, (const void *)(key.data + sizeof(stack)),
			(uint32_t)((key.len - sizeof(stack)) / sizeof(struct profile_label)));
		if (r < 0)
			return r;
	}
	*ret_zeros = zeros;
	return 0;
}

static int merge_comment(struct merger *m, struct view comment)
{
	uint32_t id;
	bool is_new;
	int r = merger_key(&m->comments, comment, &id, &is_new);

	return r == 0 && is_new ? profile_add_comment(m->out, comment) : r;
}

/* The first source that sets it wins. */
static int merge_string(struct merger *m, uint32_t id, uint32_t *dst)
{
	return *dst == 0 ? map_string(m, id, dst) : 0;
}

static int merge_header(struct merger *m, int64_t factor)
{
	const struct profile_header *from = profile_header_const(m->src);
	struct profile_header *to = profile_header(m->out);
	int r = merge_string(m, from->period_type.type, &to->period_type.type);

	if (r == 0)
		r = merge_string(m, from->period_type.unit, &to->period_type.unit);
	if (r == 0)
		r = merge_string(m, from->default_type, &to->default_type);
	if (r == 0)
		r = merge_string(m, from->drop_frames, &to->drop_frames);
	if (r == 0)
		r = merge_string(m, from->keep_frames, &to->keep_frames);
	if (r == 0)
		r = merge_string(m, from->doc_url, &to->doc_url);
	for (size_t i = 0; i < profile_n_comments(m->src) && r == 0; i++)
		r = merge_comment(m, profile_string(m->src, profile_comment_at(m->src, i)));
	if (to->time_ns == 0 || (from->time_ns != 0 && from->time_ns < to->time_ns))
		to->time_ns = from->time_ns;
	if (factor > 0)
		to->duration_ns = sum_add(to->duration_ns, from->duration_ns);
	to->period = MAX(to->period, from->period);
	return r;
}

static int merge_one(struct merger *m, const struct profile_term *term)
{
	uint32_t first;
	int r;

	m->src = term->profile;
	r = id_maps_reset(&m->ids, m->src);
	if (r == 0)
		r = merge_header(m, term->factor);
	/* The first mapping is the program itself, even without samples. */
	if (r == 0 && m->mappings.len == 0 && profile_n_mappings(m->src) > 0)
		r = map_mapping(m, 0, &first);
	for (size_t i = 0; i < profile_n_samples(m->src) && r == 0; i++) {
		const struct profile_sample *s = profile_sample_at(m->src, i);

		if (term->factor != 0 && !all_zero(s->values, profile_n_types(m->out)))
			r = merge_sample(m, s, term);
	}
	return r;
}

static int check_types(const struct profile *a, const struct profile *b, struct err *err)
{
	if (profile_n_types(a) != profile_n_types(b))
		return err_lack(
			err, -EINVAL, ERR_CAUSE_UNSUPPORTED, "use profiles of the same kind",
			"the profiles are of different kinds: one has %zu sample types, the "
			"other %zu",
			profile_n_types(a), profile_n_types(b));
	for (size_t i = 0; i < profile_n_types(a); i++) {
		const struct profile_type *x = profile_type_at(a, i);
		const struct profile_type *y = profile_type_at(b, i);

		if (!view_eq(profile_string(a, x->type), profile_string(b, y->type)) ||
		    !view_eq(profile_string(a, x->unit), profile_string(b, y->unit)))
			return err_lack(err, -EINVAL, ERR_CAUSE_UNSUPPORTED,
					"use profiles of the same kind",
					"the profiles are of different kinds: one has %.40s/%.40s "
					"where the other has %.40s/%.40s",
					profile_cstring(a, x->type), profile_cstring(a, x->unit),
					profile_cstring(b, y->type), profile_cstring(b, y->unit));
	}
	return 0;
}

static int copy_types(struct profile *out, const struct profile *src)
{
	for (size_t i = 0; i < profile_n_types(src); i++) {
		const struct profile_type *t = profile_type_at(src, i);
		struct profile_type ids;
		int r = profile_add_string(out, profile_string(src, t->type), &ids.type);

		if (r == 0)
			r = profile_add_string(out, profile_string(src, t->unit), &ids.unit);
		if (r == 0)
			r = profile_add_type_ids(out, ids);
		if (r < 0)
			return r;
	}
	return 0;
}

static int merge_all(struct merger *m, const struct profile_term *terms, size_t n,
		     size_t *ret_zeros)
{
	int r = copy_types(m->out, terms[0].profile);

	for (size_t i = 0; i < n && r == 0; i++)
		r = merge_one(m, &terms[i]);
	return r < 0 ? r : merge_emit(m, ret_zeros);
}

int profile_merge(const struct profile_term *terms, size_t n, struct profile **ret_profile,
		  struct err *err)
{
	_cleanup_(merger_release) struct merger m = {
		.sums = {.max = PROFILE_MAX_BYTES},
		.key = {.max = PROFILE_MAX_BYTES},
		.items = {.max = PROFILE_MAX_BYTES},
	};
	size_t zeros = 0;
	int r;

	if (n == 0)
		return err_set(err, -EINVAL, "no profiles to merge");
	for (size_t i = 1; i < n; i++) {
		r = check_types(terms[0].profile, terms[i].profile, err);
		if (r < 0)
			return r;
	}
	m.out = profile_new();
	if (!m.out)
		return err_oom(err);
	r = merge_all(&m, terms, n, &zeros);
	if (r == -E2BIG)
		return err_lack(err, r, ERR_CAUSE_LIMIT, "merge fewer profiles",
				"the merged profile exceeds the memory limit of %zu MB",
				PROFILE_MAX_BYTES >> 20);
	if (r < 0)
		return err_oom(err);
	/* Once more, to drop what only the cancelled samples referred to. */
	if (zeros > 0)
		return profile_merge(&(struct profile_term){.profile = m.out, .factor = 1}, 1,
				     ret_profile, err);
	*ret_profile = TAKE_PTR(m.out);
	return 0;
}

int profile_diff(const struct profile *before, const struct profile *after,
		 struct profile **ret_profile, struct err *err)
{
	const struct profile_term terms[] = {{.profile = after, .factor = 1},
					     {.profile = before, .factor = -1}};

	return profile_merge(terms, ARRAY_SIZE(terms), ret_profile, err);
}
