/* src/profile/frames.c: see frames.h. */
#include "profile/frames.h"

#include <errno.h>
#include <stdlib.h>

#define FRAMES_MAX_WALKED ((uint64_t)256 << 20)

void profile_frames_release(struct profile_frames *f)
{
	free(f->mapping_names);
	buf_release(&f->stack);
	*f = (struct profile_frames){0};
}

static struct view base_name(struct view path)
{
	size_t start;

	while (path.len > 1 && path.data[path.len - 1] == '/')
		path.len--;
	start = path.len;
	while (start > 0 && path.data[start - 1] != '/')
		start--;
	if (start == path.len)
		return path;
	return view_of(path.data + start, path.len - start);
}

static int add_mapping_name(struct profile *p, uint32_t file, uint32_t *ret_id)
{
	_cleanup_(buf_release) struct buf name = {.max = PROFILE_MAX_BYTES};
	struct view base = base_name(profile_string(p, file));
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
		uint32_t file = profile_mapping_at(p, i)->file;

		f->mapping_names[i] = f->unknown;
		if (file != 0)
			r = add_mapping_name(p, file, &f->mapping_names[i]);
	}
	return r;
}

int profile_frames_init(struct profile_frames *f, struct profile *p, struct err *err)
{
	int r;

	*f = (struct profile_frames){.profile = p};
	r = frames_name_mappings(f, p);
	if (r < 0)
		profile_frames_release(f);
	if (r == -E2BIG)
		return err_set(err, r, "the profile has reached its memory limit of %zu MB",
			       PROFILE_MAX_BYTES >> 20);
	return r < 0 ? err_oom(err) : 0;
}

static int frames_push(struct profile_frames *f, const struct profile_location *l)
{
	uint32_t nameless =
		l->mapping == PROFILE_NO_MAPPING ? f->unknown : f->mapping_names[l->mapping];
	/* A location without lines is still one frame. */
	uint32_t n = MAX(l->n_lines, 1U);

	f->walked += n;
	if (f->walked > FRAMES_MAX_WALKED)
		return -E2BIG;
	for (uint32_t i = n; i-- > 0;) {
		struct profile_frame frame = {.name = nameless, .inlined = i != n - 1};
		uint32_t name = 0;
		int r;

		if (l->n_lines > 0)
			name = profile_function_at(f->profile, l->lines[i].function)->name;
		if (name != 0)
			frame.name = name;
		r = buf_append(&f->stack, &frame, sizeof(frame));
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
