/* src/java/jfr/builder.c: see builder.h. */
#include "java/jfr/builder.h"

#include <errno.h>
#include <string.h>

#include "base/hash.h"
#include "base/sum.h"
#include "java/jfr/names.h"

#define BUILDER_MAX_DEPTH 2048 /* the maximum of a JVM */
#define BUILDER_MAX_SUMS ((size_t)1 << 20)
/* Leaves room for the samples of that many sums. */
#define BUILDER_MAX_BYTES (PROFILE_MAX_BYTES - ((size_t)96 << 20))

static uint64_t key_of(uint64_t a, uint64_t b)
{
	return hash_mix(hash_u64(a) ^ hash_mix(b));
}

int java_jfr_builder_init(struct java_jfr_builder *b,
			  const struct java_jfr_builder_options *options)
{
	*b = (struct java_jfr_builder){.options = *options, .profile = profile_new()};
	if (!b->profile)
		return -ENOMEM;
	profile_limit(b->profile, options->max_bytes ? MIN(options->max_bytes, BUILDER_MAX_BYTES)
						     : BUILDER_MAX_BYTES);
	b->sums.max = BUILDER_MAX_SUMS * sizeof(struct java_jfr_sum);
	return 0;
}

static void forget_keys(struct java_jfr_builder *b)
{
	map_release(&b->methods);
	map_release(&b->stacks);
	map_release(&b->threads);
	map_release(&b->classes);
}

void java_jfr_builder_release(struct java_jfr_builder *b)
{
	profile_free(b->profile);
	forget_keys(b);
	map_release(&b->functions);
	map_release(&b->locations);
	map_release(&b->sums_by_key);
	buf_release(&b->sums);
	buf_release(&b->text);
	*b = (struct java_jfr_builder){0};
}

/* A function, by its name in text. */
static int add_function(struct java_jfr_builder *b, uint32_t *ret_function)
{
	struct profile_function f = {0};
	uint64_t id;
	int r;

	r = profile_add_string(b->profile, buf_view(&b->text), &f.name);
	if (r < 0)
		return r;
	if (map_get(&b->functions, f.name, &id)) {
		*ret_function = (uint32_t)id;
		return 0;
	}
	f.system_name = f.name;
	r = profile_add_function(b->profile, &f, ret_function);
	return r < 0 ? r : map_put(&b->functions, f.name, *ret_function);
}

static int add_location(struct java_jfr_builder *b, uint32_t function, int32_t line,
			uint32_t *ret_location)
{
	struct profile_line lines = {.function = function, .line = MAX(line, 0)};
	uint64_t key = (uint64_t)function << 32 | (uint32_t)lines.line, id;
	int r;

	if (map_get(&b->locations, key, &id)) {
		*ret_location = (uint32_t)id;
		return 0;
	}
	r = profile_add_location(b->profile, 0, PROFILE_NO_MAPPING, &lines, 1, ret_location);
	return r < 0 ? r : map_put(&b->locations, key, *ret_location);
}

static int add_remark(struct java_jfr_builder *b, const char *remark, uint32_t *ret_location)
{
	uint32_t function = 0;
	int r;

	buf_clear(&b->text);
	r = buf_append_str(&b->text, remark);
	if (r == 0)
		r = add_function(b, &function);
	return r < 0 ? r : add_location(b, function, 0, ret_location);
}

/* In async-profiler, native frames have the library as their class. */
static bool is_native(const struct java_jfr_stack *s, const struct java_jfr_frame *f,
		      struct view class_name)
{
	struct view type;

	if (java_jfr_frame_type(s, f, &type) &&
	    (view_eq(type, view_str("C++")) || view_eq(type, view_str("Kernel"))))
		return true;
	return class_name.len && memmem(class_name.data, class_name.len, ".so", 3);
}

static int add_frame(struct java_jfr_builder *b, const struct java_jfr_stack *s,
		     const struct java_jfr_frame *f, uint32_t *ret_location)
{
	uint64_t key = key_of(f->method, key_of(s->pools->epoch, f->type)), id;
	struct view class_name = {0}, method = {0};
	uint32_t function = 0;
	int r = 0;

	if (map_get(&b->methods, key, &id))
		return add_location(b, (uint32_t)id, f->line, ret_location);
	buf_clear(&b->text);
	if (java_jfr_method_names(s, f, &class_name, &method))
		r = java_jfr_names_method(&b->text, class_name, method,
					  is_native(s, f, class_name));
	else
		r = buf_append_str(&b->text, "[unknown method]");
	if (r == 0)
		r = add_function(b, &function);
	if (r == 0)
		r = map_put(&b->methods, key, function);
	return r < 0 ? r : add_location(b, function, f->line, ret_location);
}

static int add_class(struct java_jfr_builder *b, const struct java_jfr *j,
		     const struct java_jfr_value *v, uint32_t *ret_string)
{
	uint64_t key = (uint64_t)v->number, id;
	struct view name;
	int r = 0;

	if (map_get(&b->classes, key, &id)) {
		*ret_string = (uint32_t)id;
		return 0;
	}
	buf_clear(&b->text);
	if (java_jfr_class_name(j, v, &name))
		r = java_jfr_names_class(&b->text, name);
	if (r == 0)
		r = profile_add_string(b->profile, buf_view(&b->text), ret_string);
	return r < 0 ? r : map_put(&b->classes, key, *ret_string);
}

static int add_thread(struct java_jfr_builder *b, const struct java_jfr *j,
		      const struct java_jfr_value *v, uint32_t *ret_string)
{
	uint64_t key = (uint64_t)v->number, id;
	struct java_jfr_thread thread;
	int r = 0;

	*ret_string = 0;
	if (!b->options.label_threads)
		return 0;
	if (map_get(&b->threads, key, &id)) {
		*ret_string = (uint32_t)id;
		return 0;
	}
	buf_clear(&b->text);
	if (java_jfr_thread(j, v, &thread)) {
		struct view name = thread.java_name.len ? thread.java_name : thread.os_name;

		/* Most virtual threads have no name, and their id means nothing. */
		r = name.len == 0 && thread.is_virtual
			    ? buf_append_str(&b->text, "virtual")
			    : java_jfr_names_thread(&b->text, name, b->options.fold_threads);
	}
	if (r == 0)
		r = profile_add_string(b->profile, buf_view(&b->text), ret_string);
	return r < 0 ? r : map_put(&b->threads, key, *ret_string);
}

static int add_leaf(struct java_jfr_builder *b, uint32_t class, uint32_t *ret_location)
{
	struct view name = profile_string(b->profile, class);
	uint32_t function = 0;
	int r;

	buf_clear(&b->text);
	r = name.len ? buf_append(&b->text, name.data, name.len)
		     : buf_append_str(&b->text, "[unknown class]");
	if (r == 0)
		r = add_function(b, &function);
	return r < 0 ? r : add_location(b, function, 0, ret_location);
}

/* leaf: the string id of the class, 0 if it is unknown. remark: instead of an empty stack. */
static int add_stack(struct java_jfr_builder *b, const struct java_jfr_stack *s, bool with_leaf,
		     uint32_t leaf, const char *remark, uint32_t *ret_stack)
{
	uint32_t locations[BUILDER_MAX_DEPTH + 2];
	uint32_t depth = s ? MIN(s->n_frames, (uint32_t)BUILDER_MAX_DEPTH) : 0, n = 0;
	int r = 0;

	if (with_leaf)
		r = add_leaf(b, leaf, &locations[n++]);
	for (uint32_t i = 0; r == 0 && i < depth; i++)
		r = add_frame(b, s, &s->frames[i], &locations[n++]);
	if (r == 0 && depth == 0)
		r = add_remark(b, remark ? remark : "[no stack]", &locations[n++]);
	else if (r == 0 && s && (s->truncated || depth < s->n_frames))
		r = add_remark(b, "[stack is deeper than was recorded]", &locations[n++]);
	return r < 0 ? r : profile_add_stack(b->profile, locations, n, ret_stack);
}

static int find_stack(struct java_jfr_builder *b, const struct java_jfr *j,
		      const struct java_jfr_sample *s, uint32_t leaf, uint32_t *ret_stack)
{
	struct java_jfr_stack stack;
	bool known = !s->remark && java_jfr_stack(j, s->stack, &stack);
	uint64_t key = key_of(known ? key_of(stack.key, stack.pools->epoch) : s->remark != NULL,
			      leaf),
		 id;
	int r;

	b->no_stack += !known && !s->remark;
	b->truncated += known && stack.truncated;
	if (map_get(&b->stacks, key, &id)) {
		*ret_stack = (uint32_t)id;
		return 0;
	}
	if (b->is_full)
		return -E2BIG;
	/* An unknown lock is worth a line, an unknown object is not. */
	r = add_stack(b, known ? &stack : NULL, s->leaf && (leaf || !s->class), leaf, s->remark,
		      ret_stack);
	return r < 0 ? r : map_put(&b->stacks, key, *ret_stack);
}

static int add_sum(struct java_jfr_builder *b, const struct java_jfr_sum *sum, size_t *ret_sum)
{
	uint64_t key = key_of((uint64_t)sum->stack << 32 | sum->thread, sum->class), at;
	struct java_jfr_sum *known;
	int r;

	if (!map_get(&b->sums_by_key, key, &at)) {
		at = java_jfr_builder_n_sums(b);
		r = buf_append(&b->sums, sum, sizeof(*sum));
		if (r == 0)
			r = map_put(&b->sums_by_key, key, at);
		*ret_sum = at;
		return r;
	}
	known = java_jfr_builder_sum(b, at);
	for (size_t i = 0; i < JAVA_JFR_MAX_TYPES; i++)
		known->values[i] = sum_add(known->values[i], sum->values[i]);
	*ret_sum = at;
	return 0;
}

int java_jfr_builder_add(struct java_jfr_builder *b, const struct java_jfr *j,
			 const struct java_jfr_event *e, const struct java_jfr_sample *s,
			 size_t *ret_sum)
{
	struct java_jfr_sum sum = {0};
	uint32_t leaf = 0;
	size_t at = SIZE_MAX;
	int r = 0;

	if (b->epoch != e->epoch)
		forget_keys(b);
	b->epoch = e->epoch;
	memcpy(sum.values, s->values, sizeof(sum.values));
	if (s->leaf)
		r = add_class(b, j, s->leaf, &leaf);
	if (r == 0 && s->class && b->options.label_classes)
		r = add_class(b, j, s->class, &sum.class);
	if (r == 0)
		r = add_thread(b, j, s->thread, &sum.thread);
	if (r == 0)
		r = find_stack(b, j, s, leaf, &sum.stack);
	if (r == 0)
		r = add_sum(b, &sum, &at);
	if (r == -E2BIG) {
		b->is_full = true;
		b->lost++;
		at = SIZE_MAX;
		r = 0;
	}
	if (ret_sum)
		*ret_sum = at;
	return r;
}

struct java_jfr_sum *java_jfr_builder_sum(struct java_jfr_builder *b, size_t i)
{
	return &((struct java_jfr_sum *)b->sums.data)[i];
}

size_t java_jfr_builder_n_sums(const struct java_jfr_builder *b)
{
	return b->sums.len / sizeof(struct java_jfr_sum);
}

static int add_samples(struct java_jfr_builder *b, const struct java_jfr_builder_type *types,
		       size_t n_types)
{
	uint32_t thread_key = 0, class_key = 0;
	int r;

	r = profile_add_string(b->profile, view_str("thread"), &thread_key);
	if (r == 0)
		r = profile_add_string(b->profile, view_str("class"), &class_key);
	for (size_t i = 0; r == 0 && i < java_jfr_builder_n_sums(b); i++) {
		const struct java_jfr_sum *sum = java_jfr_builder_sum(b, i);
		struct profile_label labels[2];
		int64_t values[JAVA_JFR_MAX_TYPES], any = 0;
		uint32_t n = 0;

		for (size_t t = 0; t < n_types; t++)
			any |= values[t] = sum->values[types[t].value];
		if (sum->thread)
			labels[n++] = (struct profile_label){.key = thread_key, .str = sum->thread};
		if (sum->class)
			labels[n++] = (struct profile_label){.key = class_key, .str = sum->class};
		if (any)
			r = profile_add_sample(b->profile, sum->stack, values, labels, n);
	}
	return r;
}

int java_jfr_builder_finish(struct java_jfr_builder *b, const struct java_jfr_builder_type *types,
			    size_t n_types, struct profile **ret_profile, struct err *err)
{
	struct java_jfr_builder_options options = b->options;
	struct java_jfr_builder fresh;
	struct profile_header *h;
	int r = 0;

	for (size_t t = 0; r == 0 && t < n_types; t++)
		r = registry_type_add(b->profile, types[t].type);
	/* Everything added must be emitted, so the lower limit applied only until here. */
	profile_limit(b->profile, PROFILE_MAX_BYTES);
	if (r == 0)
		r = add_samples(b, types, n_types);
	if (r == 0)
		r = java_jfr_builder_init(&fresh, &options);
	if (r < 0)
		return err_set(err, r, "the recording's profile is too large");
	h = profile_header(b->profile);
	h->default_type = profile_type_at(b->profile, n_types - 1)->type;
	fresh.no_stack = b->no_stack;
	fresh.truncated = b->truncated;
	fresh.lost = b->lost;
	*ret_profile = TAKE_PTR(b->profile);
	java_jfr_builder_release(b);
	*b = fresh;
	return 0;
}
