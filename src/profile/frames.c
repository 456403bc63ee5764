/* src/profile/frames.c: see frames.h. */
#include "profile/frames.h"

#include <errno.h>
#include <stdlib.h>

#include "profile/suffix.h"

#define FRAMES_MAX_WALKED ((uint64_t)256 << 20)

void profile_frames_release(struct profile_frames *f)
{
	free(f->mapping_names);
	free(f->function_names);
	buf_release(&f->stack);
	*f = (struct profile_frames){0};
}

static int add_mapping_name(struct profile *p, uint32_t mapping, uint32_t *ret_id)
{
	_cleanup_(buf_release) struct buf name = {.max = PROFILE_MAX_BYTES};
	struct view base = profile_module(p, mapping);
	int r = buf_append_byte(&name, '[');

	if (r == 0)
		r = buf_append(&name, base.data, base.len);
	if (r == 0)
		r = buf_append_byte(&name, ']');
	if (r == 0)
		r = profile_add_string(p, buf_view(&name), ret_id);
	return r;
}

static int frames_name_mappings(struct profile_frames *f, struct profile *p)
{
	size_t n = profile_n_mappings(p);
	int r = profile_add_string(p, view_str("<unknown>"), &f->unknown);

	f->mapping_names = calloc(n + 1, sizeof(*f->mapping_names));
	if (!f->mapping_names)
		return -ENOMEM;
	for (size_t i = 0; i < n && r == 0; i++) {
		f->mapping_names[i] = f->unknown;
		if (profile_mapping_at(p, i)->file != 0)
			r = add_mapping_name(p, (uint32_t)i, &f->mapping_names[i]);
	}
	return r;
}

static int frames_name_function(struct profile_frames *f, struct profile *p, uint32_t function,
				uint32_t mapping)
{
	const struct profile_function *fn = profile_function_at(p, function);
	struct view name = profile_string(p, fn->name);
	size_t len;

	if (f->function_names[function] != 0)
		return 0;
	f->function_names[function] = fn->name;
	len = profile_suffix_start(name, profile_suffix_trust_of(profile_string(p, fn->file),
								 mapping != PROFILE_NO_MAPPING));
	if (len == name.len)
		return 0;
	return profile_add_string(p, view_of(name.data, len), &f->function_names[function]);
}

static int frames_name_functions(struct profile_frames *f, struct profile *p)
{
	int r = 0;

	f->function_names = calloc(profile_n_functions(p) + 1, sizeof(*f->function_names));
	if (!f->function_names)
		return -ENOMEM;
	for (size_t i = 0; r == 0 && i < profile_n_locations(p); i++) {
		const struct profile_location *l = profile_location_at(p, i);

		for (uint32_t k = 0; r == 0 && k < l->n_lines; k++)
			r = frames_name_function(f, p, l->lines[k].function, l->mapping);
	}
	return r;
}

uint32_t profile_frames_name(const struct profile_frames *f, const struct profile_location *l,
			     uint32_t line)
{
	uint32_t name = l->n_lines ? f->function_names[l->lines[line].function] : 0;

	if (name != 0)
		return name;
	return l->mapping == PROFILE_NO_MAPPING ? f->unknown : f->mapping_names[l->mapping];
}

int profile_frames_init(struct profile_frames *f, struct profile *p, struct err *err)
{
	int r;

	*f = (struct profile_frames){.profile = p};
	r = frames_name_mappings(f, p);
	if (r == 0)
		r = frames_name_functions(f, p);
	if (r < 0)
		profile_frames_release(f);
	if (r == -E2BIG)
		return err_set(err, r, "the profile has reached its memory limit of %zu MB",
			       PROFILE_MAX_BYTES >> 20);
	return r < 0 ? err_oom(err) : 0;
}

static int frames_push(struct profile_frames *f, const struct profile_location *l)
{
	/* A location without lines is still one frame. */
	uint32_t n = MAX(l->n_lines, 1U);

	f->walked += n;
	if (f->walked > FRAMES_MAX_WALKED)
		return -E2BIG;
	for (uint32_t i = n; i-- > 0;) {
		struct profile_frame frame = {.name = profile_frames_name(f, l, i),
					      .inlined = i != n - 1};
		int r = buf_append(&f->stack, &frame, sizeof(frame));

		if (r < 0)
			return r;
	}
	return 0;
}

int profile_frames_of(struct profile_frames *f, const struct profile_sample *s,
		      const struct profile_frame **ret_frames, size_t *ret_len, struct err *err)
{
	uint32_t n;
	const uint32_t *stack = profile_stack_at(f->profile, s->stack, &n);
	int r = 0;

	buf_clear(&f->stack);
	for (uint32_t i = n; i-- > 0 && r == 0;)
		r = frames_push(f, profile_location_at(f->profile, stack[i]));
	if (r == -E2BIG)
		return err_set(err, r,
			       "the stacks of this profile have too many frames to show (%llu or "
			       "more); check that the profile is valid",
			       (unsigned long long)f->walked);
	if (r < 0)
		return err_oom(err);
	*ret_frames = (const void *)f->stack.data;
	*ret_len = f->stack.len / sizeof(struct profile_frame);
	return 0;
}
