/* src/cli/cmd/cpu_threads.c: see cpu_threads.h. */
#include "cli/cmd/cpu_threads.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

/* Adding in the order of ids preserves them. */
static int copy_names(const struct profile *from, struct profile *to)
{
	uint32_t id;
	int r = 0;

	for (size_t i = 0; i < profile_n_strings(from) && r == 0; i++)
		r = profile_add_string(to, profile_string(from, (uint32_t)i), &id);
	for (size_t i = 0; i < profile_n_types(from) && r == 0; i++)
		r = profile_add_type_ids(to, *profile_type_at(from, i));
	for (size_t i = 0; i < profile_n_mappings(from) && r == 0; i++)
		r = profile_add_mapping(to, profile_mapping_at(from, i), &id);
	for (size_t i = 0; i < profile_n_functions(from) && r == 0; i++)
		r = profile_add_function(to, profile_function_at(from, i), &id);
	for (size_t i = 0; i < profile_n_comments(from) && r == 0; i++)
		r = profile_add_comment(to, profile_string(from, profile_comment_at(from, i)));
	*profile_header(to) = *profile_header_const(from);
	return r;
}

static int copy_locations(const struct profile *from, struct profile *to)
{
	uint32_t id;
	int r = 0;

	for (size_t i = 0; i < profile_n_locations(from) && r == 0; i++) {
		const struct profile_location *l = profile_location_at(from, i);

		r = profile_add_location(to, l->address, l->mapping, l->lines, l->n_lines, &id);
		if (r == 0 && l->is_folded)
			profile_set_folded(to, id);
	}
	return r;
}

struct thread_copy {
	const struct profile *from;
	struct profile *to;
	bool below_process;
	uint32_t *locations; /* + 1 by thread name; 0: none yet */
};

static int thread_location(struct thread_copy *c, uint32_t name, uint32_t *ret_location)
{
	const struct profile_function f = {.name = name, .system_name = name};
	struct profile_line line = {};
	uint32_t location = 0;
	int r = 0;

	if (!c->locations[name]) {
		r = profile_add_function(c->to, &f, &line.function);
		if (r == 0)
			r = profile_add_location(c->to, 0, PROFILE_NO_MAPPING, &line, 1, &location);
		if (r < 0)
			return r;
		c->locations[name] = location + 1;
	}
	*ret_location = c->locations[name] - 1;
	return 0;
}

static uint32_t thread_name(const struct profile *p, const struct profile_sample *s)
{
	for (uint32_t i = 0; i < s->n_labels; i++)
		if (strcmp(profile_cstring(p, s->labels[i].key), "thread") == 0)
			return s->labels[i].str;
	return 0;
}

static int copy_sample(struct thread_copy *c, const struct profile_sample *s)
{
	uint32_t len, name = thread_name(c->from, s), id;
	const uint32_t *stack = profile_stack_at(c->from, s->stack, &len);
	_cleanup_free_ uint32_t *longer = reallocarray(NULL, (size_t)len + 1, sizeof(*longer));
	uint32_t place = c->below_process && len ? len - 1 : len;
	int r = 0;

	if (!longer)
		return -ENOMEM;
	if (len)
		memcpy(longer, stack, len * sizeof(*stack));
	if (name) {
		memmove(longer + place + 1, longer + place, (len - place) * sizeof(*longer));
		r = thread_location(c, name, &longer[place]);
		len++;
	}
	if (r == 0)
		r = profile_add_stack(c->to, longer, len, &id);
	return r < 0 ? r : profile_add_sample(c->to, id, s->values, s->labels, s->n_labels);
}

int cmd_cpu_threads_as_frames(const struct profile *p, bool below_process,
			      struct profile **ret_profile, struct err *err)
{
	_cleanup_(profile_freep) struct profile *to = profile_new();
	_cleanup_free_ uint32_t *locations = calloc(profile_n_strings(p) + 1, sizeof(*locations));
	struct thread_copy c = {
		.from = p, .to = to, .below_process = below_process, .locations = locations};
	int r = to && locations ? copy_names(p, to) : -ENOMEM;

	if (r == 0)
		r = copy_locations(p, to);
	for (size_t i = 0; i < profile_n_samples(p) && r == 0; i++)
		r = copy_sample(&c, profile_sample_at(p, i));
	if (r < 0)
		return r == -ENOMEM
			       ? err_oom(err)
			       : err_set(err, r, "the profile is too large when split by thread");
	*ret_profile = TAKE_PTR(to);
	return 0;
}
