/* src/golang/names.c: see names.h. */
#include "golang/names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "golang/bucket.h"
#include "golang/grow.h"
#include "golang/symbolizer.h"

struct golang_names_function {
	uint32_t file;
	int32_t start_line;
};

struct golang_names_line {
	uint32_t function;
	int32_t line;
};

struct golang_names_location {
	uint64_t address;
	uint32_t first_line;
	uint32_t n_lines;
};

/* Its locations are ids[first], ids[first + 1], ... */
struct golang_names_stack {
	uint32_t first;
	uint32_t n;
};

void golang_names_release(struct golang_names *n)
{
	intern_release(&n->names);
	intern_release(&n->files);
	free(n->functions);
	free(n->lines);
	free(n->locations);
	free(n->ids);
	free(n->stacks);
	*n = (struct golang_names){0};
}

int golang_names_import_init(struct golang_names_import *in, struct golang_names *names,
			     const struct profile *profile, size_t n_stacks)
{
	struct golang_names_stack *stacks = reallocarray(names->stacks, n_stacks, sizeof(*stacks));

	*in = (struct golang_names_import){
		.names = names, .profile = profile, .n_stacks = n_stacks};
	if (!stacks)
		return -ENOMEM;
	names->stacks = stacks;
	names->names.bytes.max = names->files.bytes.max = GOLANG_NAMES_MAX_TEXT_BYTES;
	for (size_t i = 0; i < names->n_locations; i++) {
		int r = map_put(&in->by_address, names->locations[i].address, i);

		if (r < 0)
			return r;
	}
	return 0;
}

void golang_names_import_release(struct golang_names_import *in)
{
	free(in->known);
	map_release(&in->by_address);
}

static int import_function(struct golang_names_import *in, uint32_t id, uint32_t *ret_function)
{
	const struct profile_function *f = profile_function_at(in->profile, id);
	struct view name = profile_string(in->profile, f->name);
	struct golang_names *n = in->names;
	uint32_t file;
	int r;

	if (intern_find(&n->names, name, ret_function))
		return 0;
	r = golang_grow(&n->functions, &n->functions_cap, (size_t)n->names.len + 1,
			sizeof(*n->functions), UINT32_MAX);
	if (r == 0)
		r = intern_add(&n->files, profile_string(in->profile, f->file), &file);
	if (r == 0)
		r = intern_add(&n->names, name, ret_function);
	if (r == 0)
		n->functions[*ret_function] = (struct golang_names_function){
			.file = file, .start_line = (int32_t)f->start_line};
	return r;
}

/* Appends the lines of a location; they count once it is there. */
static int import_lines(struct golang_names_import *in, const struct profile_location *l)
{
	struct golang_names *n = in->names;
	int r = golang_grow(&n->lines, &n->lines_cap, n->n_lines + l->n_lines, sizeof(*n->lines),
			    UINT32_MAX);

	for (uint32_t i = 0; r == 0 && i < l->n_lines; i++) {
		struct golang_names_line *line = &n->lines[n->n_lines + i];

		r = import_function(in, l->lines[i].function, &line->function);
		line->line = (int32_t)l->lines[i].line;
	}
	return r;
}

/* Which inlined calls belong to an address is the program's own to say: once, or it is another. */
static bool is_same(const struct golang_names *n, uint64_t at, uint32_t n_lines)
{
	const struct golang_names_location *known = &n->locations[at];

	return known->n_lines == n_lines &&
	       (n_lines == 0 || memcmp(n->lines + known->first_line, n->lines + n->n_lines,
				       n_lines * sizeof(*n->lines)) == 0);
}

static int import_location(struct golang_names_import *in, uint32_t id, uint32_t *ret_id)
{
	const struct profile_location *l = profile_location_at(in->profile, id);
	struct golang_names *n = in->names;
	uint64_t at;
	int r = import_lines(in, l);

	if (r < 0)
		return r;
	if (map_get(&in->by_address, l->address, &at) && is_same(n, at, l->n_lines)) {
		*ret_id = (uint32_t)at;
		return 0;
	}
	r = golang_grow(&n->locations, &n->locations_cap, n->n_locations + 1, sizeof(*n->locations),
			GOLANG_NAMES_MAX_LOCATIONS);
	if (r == 0)
		r = map_put(&in->by_address, l->address, n->n_locations);
	if (r < 0)
		return r;
	n->locations[n->n_locations] = (struct golang_names_location){
		.address = l->address, .first_line = (uint32_t)n->n_lines, .n_lines = l->n_lines};
	n->n_lines += l->n_lines;
	n->unknown += l->n_lines == 0;
	*ret_id = (uint32_t)n->n_locations++;
	return 0;
}

/* Room for what is known of all locations of the profile, which grows as stacks are looked up. */
static int import_reserve(struct golang_names_import *in)
{
	size_t had = in->known_cap;
	int r = golang_grow(&in->known, &in->known_cap, profile_n_locations(in->profile),
			    sizeof(*in->known), UINT32_MAX);

	if (r == 0 && in->known_cap > had)
		memset(in->known + had, 0, (in->known_cap - had) * sizeof(*in->known));
	return r;
}

int golang_names_import_stack(struct golang_names_import *in, size_t stack,
			      const uint32_t *locations, size_t n_locations)
{
	struct golang_names *n = in->names;
	int r = import_reserve(in);

	if (r == 0)
		r = golang_grow(&n->ids, &n->ids_cap, n->n_ids + n_locations, sizeof(*n->ids),
				GOLANG_NAMES_MAX_IDS);
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
	n->stacks[stack] = (struct golang_names_stack){.first = (uint32_t)n->n_ids,
						       .n = (uint32_t)n_locations};
	n->n_ids += n_locations;
	return 0;
}

void golang_names_import_finish(struct golang_names_import *in)
{
	struct golang_names *n = in->names;

	n->n_stacks = in->n_stacks;
	/* Most programs have all their stacks soon: what they do not need is given back. */
	golang_shrink(&n->functions, &n->functions_cap, n->names.len, sizeof(*n->functions));
	golang_shrink(&n->lines, &n->lines_cap, n->n_lines, sizeof(*n->lines));
	golang_shrink(&n->locations, &n->locations_cap, n->n_locations, sizeof(*n->locations));
	golang_shrink(&n->ids, &n->ids_cap, n->n_ids, sizeof(*n->ids));
}

int golang_names_export_init(struct golang_names_export *ex, const struct golang_names *names,
			     struct profile *profile)
{
	*ex = (struct golang_names_export){
		.names = names,
		.profile = profile,
		.locations = calloc(names->n_locations + 1, sizeof(*ex->locations)),
		.functions = calloc((size_t)names->names.len + 1, sizeof(*ex->functions)),
		.files = calloc((size_t)names->files.len + 1, sizeof(*ex->files)),
	};
	return ex->locations && ex->functions && ex->files ? 0 : -ENOMEM;
}

void golang_names_export_release(struct golang_names_export *ex)
{
	free(ex->locations);
	free(ex->functions);
	free(ex->files);
}

static int export_file(struct golang_names_export *ex, uint32_t file, uint32_t *ret_id)
{
	int r = 0;

	if (!ex->files[file]) {
		r = profile_add_string(ex->profile, intern_get(&ex->names->files, file), ret_id);
		ex->files[file] = r == 0 ? *ret_id + 1 : 0;
	}
	*ret_id = ex->files[file] - 1;
	return r;
}

static int export_function(struct golang_names_export *ex, uint32_t function, uint32_t *ret_id)
{
	const struct golang_names_function *from = &ex->names->functions[function];
	struct profile_function f = {.start_line = from->start_line};
	int r;

	if (ex->functions[function]) {
		*ret_id = ex->functions[function] - 1;
		return 0;
	}
	r = profile_add_string(ex->profile, intern_get(&ex->names->names, function), &f.name);
	f.system_name = f.name;
	if (r == 0)
		r = export_file(ex, from->file, &f.file);
	if (r == 0)
		r = profile_add_function(ex->profile, &f, ret_id);
	if (r == 0)
		ex->functions[function] = *ret_id + 1;
	return r;
}

static int export_location(struct golang_names_export *ex, uint32_t location)
{
	const struct golang_names_location *l = &ex->names->locations[location];
	struct profile_line lines[GOLANG_BUCKET_MAX_DEPTH + GOLANG_MAX_INLINE];
	uint32_t id;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < l->n_lines; i++) {
		const struct golang_names_line *from = &ex->names->lines[l->first_line + i];

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

int golang_names_export_stack(struct golang_names_export *ex, size_t stack, uint32_t *ret_stack)
{
	const struct golang_names_stack *s = &ex->names->stacks[stack];
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
