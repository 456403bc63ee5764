/* src/java/jvmti/builder.c: see builder.h. */
#include "java/jvmti/builder.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/hash.h"
#include "base/sum.h"
#include "java/jfr/names.h"
#include "pipeline/registry/registry.h"

#define BUILDER_MAX_NAMES ((size_t)32 << 20)
#define BUILDER_MAX_SUMS ((size_t)1 << 18)
/* Leaves room for the samples of that many sums. */
#define BUILDER_MAX_BYTES (PROFILE_MAX_BYTES - ((size_t)64 << 20))
#define MAX_SIZE ((double)(1ULL << 50))
#define MAX_SUM ((double)(1ULL << 62))

struct jvmti_sum {
	uint32_t stack;
	uint32_t thread; /* string ids, 0 for none */
	uint32_t class;
	double values[2];
};

double java_jvmti_weight(uint64_t size, uint64_t interval_bytes)
{
	double chance;

	if (size == 0 || interval_bytes == 0)
		return 1;
	chance = -expm1(-(double)size / (double)interval_bytes);
	return chance > 0 ? 1 / chance : 1;
}

static int part_init(struct java_jvmti_part *p, const struct java_jfr_builder_options *o)
{
	*p = (struct java_jvmti_part){.profile = profile_new()};
	if (!p->profile)
		return -ENOMEM;
	profile_limit(p->profile,
		      o->max_bytes ? MIN(o->max_bytes, BUILDER_MAX_BYTES) : BUILDER_MAX_BYTES);
	p->sums.max = BUILDER_MAX_SUMS * sizeof(struct jvmti_sum);
	return 0;
}

static void part_release(struct java_jvmti_part *p)
{
	profile_free(p->profile);
	map_release(&p->functions);
	map_release(&p->locations);
	map_release(&p->sums_by_key);
	buf_release(&p->sums);
	*p = (struct java_jvmti_part){0};
}

int java_jvmti_builder_init(struct java_jvmti_builder *b,
			    const struct java_jfr_builder_options *options)
{
	int r = 0;

	*b = (struct java_jvmti_builder){.options = *options};
	b->names.bytes.max = BUILDER_MAX_NAMES;
	b->name_of_frame = calloc(JAVA_RING_MAX_FRAMES, sizeof(*b->name_of_frame));
	b->line_of_frame = calloc(JAVA_RING_MAX_FRAMES, sizeof(*b->line_of_frame));
	b->is_idle_frame = calloc(JAVA_RING_MAX_FRAMES, sizeof(*b->is_idle_frame));
	if (!b->name_of_frame || !b->line_of_frame || !b->is_idle_frame)
		r = -ENOMEM;
	for (size_t i = 0; r == 0 && i < JAVA_JFR_PROFILE_N; i++)
		r = part_init(&b->parts[i], options);
	if (r < 0)
		java_jvmti_builder_release(b);
	return r;
}

void java_jvmti_builder_release(struct java_jvmti_builder *b)
{
	for (size_t i = 0; i < JAVA_JFR_PROFILE_N; i++)
		part_release(&b->parts[i]);
	intern_release(&b->names);
	buf_release(&b->text);
	free(b->name_of_frame);
	free(b->line_of_frame);
	free(b->is_idle_frame);
	*b = (struct java_jvmti_builder){0};
}

/* "Ljava/lang/String;" in the form jfr_names expects; arrays stay unchanged. */
static struct view class_of(struct view signature)
{
	if (signature.len >= 2 && signature.data[0] == 'L' &&
	    signature.data[signature.len - 1] == ';')
		return view_of(signature.data + 1, signature.len - 2);
	return signature;
}

static int add_name(struct java_jvmti_builder *b, const struct java_ring_record *r)
{
	uint32_t id = 0;
	int result;

	buf_clear(&b->text);
	if (r->method.len)
		result = java_jfr_names_method(&b->text, class_of(r->class), r->method, false);
	else
		result = buf_append_str(&b->text, "[unknown method]");
	if (result == 0)
		result = intern_add(&b->names, buf_view(&b->text), &id);
	/* Too many names: the frames of the rest have none. */
	if (result == -E2BIG)
		return 0;
	if (result < 0)
		return result;
	b->name_of_frame[r->frame] = id + 1;
	b->line_of_frame[r->frame] = MAX(r->line, 0);
	b->is_idle_frame[r->frame] = java_jfr_names_is_idle(class_of(r->class), r->method);
	return 0;
}

/* Functions, by the string id of their name. */
static int add_location(struct java_jvmti_part *p, struct view name, int32_t line,
			uint32_t *ret_location)
{
	struct profile_function f = {0};
	struct profile_line lines = {.line = line};
	uint64_t known, key;
	int r;

	r = profile_add_string(p->profile, name, &f.name);
	if (r < 0)
		return r;
	f.system_name = f.name;
	if (map_get(&p->functions, f.name, &known)) {
		lines.function = (uint32_t)known;
	} else {
		r = profile_add_function(p->profile, &f, &lines.function);
		if (r == 0)
			r = map_put(&p->functions, f.name, lines.function);
		if (r < 0)
			return r;
	}
	key = (uint64_t)lines.function << 32 | (uint32_t)line;
	if (map_get(&p->locations, key, &known)) {
		*ret_location = (uint32_t)known;
		return 0;
	}
	r = profile_add_location(p->profile, 0, PROFILE_NO_MAPPING, &lines, 1, ret_location);
	return r < 0 ? r : map_put(&p->locations, key, *ret_location);
}

static int add_frame(const struct java_jvmti_builder *b, struct java_jvmti_part *p, uint32_t frame,
		     uint32_t *ret_location)
{
	uint32_t name = frame < JAVA_RING_MAX_FRAMES ? b->name_of_frame[frame] : 0;

	if (!name)
		return add_location(p, view_str("[unknown method]"), 0, ret_location);
	return add_location(p, intern_get(&b->names, name - 1), b->line_of_frame[frame],
			    ret_location);
}

static int add_stack(struct java_jvmti_builder *b, struct java_jvmti_part *p,
		     const struct java_ring_record *r, struct view leaf, uint32_t *ret_stack)
{
	uint32_t locations[JAVA_RING_MAX_DEPTH + 2], n = 0, frame;
	int result = 0;

	if (leaf.len)
		result = add_location(p, leaf, 0, &locations[n++]);
	for (size_t i = 0; result == 0 && view_u32(r->frames, i * sizeof(frame), &frame); i++)
		result = add_frame(b, p, frame, &locations[n++]);
	if (result == 0 && r->frames.len == 0)
		result = add_location(p, view_str("[no stack]"), 0, &locations[n++]);
	else if (result == 0 && r->flags & JAVA_RING_TRUNCATED)
		result = add_location(p, view_str("[stack is deeper than was recorded]"), 0,
				      &locations[n++]);
	b->no_stack += r->frames.len == 0;
	b->truncated += (r->flags & JAVA_RING_TRUNCATED) != 0;
	return result < 0 ? result : profile_add_stack(p->profile, locations, n, ret_stack);
}

static int add_sum(struct java_jvmti_part *p, const struct jvmti_sum *sum)
{
	uint64_t key = hash_mix(hash_u64((uint64_t)sum->stack << 32 | sum->thread) ^
				hash_mix(sum->class)),
		 at;
	struct jvmti_sum *known;
	int r;

	if (!map_get(&p->sums_by_key, key, &at)) {
		at = p->sums.len / sizeof(*sum);
		r = buf_append(&p->sums, sum, sizeof(*sum));
		return r < 0 ? r : map_put(&p->sums_by_key, key, at);
	}
	known = &((struct jvmti_sum *)p->sums.data)[at];
	known->values[0] += sum->values[0];
	known->values[1] += sum->values[1];
	return 0;
}

/* Writes the readable class name into text. */
static int name_class(struct java_jvmti_builder *b, struct view signature)
{
	buf_clear(&b->text);
	return signature.len ? java_jfr_names_class(&b->text, class_of(signature)) : 0;
}

static int add_event(struct java_jvmti_builder *b, struct java_jvmti_part *p,
		     const struct java_ring_record *r, struct jvmti_sum *sum)
{
	bool is_lock = r->kind == JAVA_RING_LOCK;
	int result;

	if (p->is_full)
		return -E2BIG;
	result = name_class(b, r->class);
	if (result == 0 && is_lock && b->text.len == 0 && r->frames.len)
		result = buf_append_str(&b->text, "[unknown class]");
	if (result == 0 && !is_lock && b->options.label_classes)
		result = profile_add_string(p->profile, buf_view(&b->text), &sum->class);
	if (result == 0)
		result = add_stack(b, p, r, buf_view(&b->text), &sum->stack);
	if (result == 0 && b->options.label_threads) {
		buf_clear(&b->text);
		result = r->thread.len ? java_jfr_names_thread(&b->text, r->thread,
							       b->options.fold_threads)
				       : buf_append_str(&b->text, "virtual");
		if (result == 0)
			result = profile_add_string(p->profile, buf_view(&b->text), &sum->thread);
	}
	return result < 0 ? result : add_sum(p, sum);
}

static bool is_idle(const struct java_jvmti_builder *b, const struct java_ring_record *r)
{
	uint32_t frame;

	for (size_t i = 0;
	     i < JAVA_JFR_NAMES_IDLE_DEPTH && view_u32(r->frames, i * sizeof(frame), &frame); i++)
		if (frame < JAVA_RING_MAX_FRAMES && b->is_idle_frame[frame])
			return true;
	return false;
}

int java_jvmti_builder_add(struct java_jvmti_builder *b, const struct java_ring_record *r)
{
	enum java_jfr_profile_kind kind =
		r->kind == JAVA_RING_LOCK ? JAVA_JFR_PROFILE_LOCK : JAVA_JFR_PROFILE_ALLOC;
	struct jvmti_sum sum = {0};
	int result;

	if (r->kind == JAVA_RING_NAME)
		return add_name(b, r);
	if (kind == JAVA_JFR_PROFILE_LOCK && is_idle(b, r)) {
		b->idle_waits += MIN(r->b, (uint64_t)INT64_MAX);
		b->idle_ns = sum_add(b->idle_ns, (int64_t)MIN(r->a, (uint64_t)INT64_MAX));
		return 0;
	}
	if (kind == JAVA_JFR_PROFILE_LOCK) {
		sum.values[0] = MIN((double)r->b, MAX_SIZE);
		sum.values[1] = MIN((double)r->a, MAX_SIZE);
	} else {
		sum.values[0] = MIN(java_jvmti_weight(r->a, r->b), MAX_SIZE);
		sum.values[1] = MIN(sum.values[0] * MIN((double)r->a, MAX_SIZE), MAX_SIZE);
	}
	result = add_event(b, &b->parts[kind], r, &sum);
	if (result == -E2BIG) {
		b->parts[kind].is_full = true;
		b->lost++;
		return 0;
	}
	b->events[kind]++;
	return result;
}

static int add_samples(struct java_jvmti_part *p)
{
	const struct jvmti_sum *sums = (const struct jvmti_sum *)p->sums.data;
	uint32_t thread_key = 0, class_key = 0;
	int r;

	r = profile_add_string(p->profile, view_str("thread"), &thread_key);
	if (r == 0)
		r = profile_add_string(p->profile, view_str("class"), &class_key);
	for (size_t i = 0; r == 0 && i < p->sums.len / sizeof(*sums); i++) {
		int64_t values[2] = {llround(MIN(sums[i].values[0], MAX_SUM)),
				     llround(MIN(sums[i].values[1], MAX_SUM))};
		struct profile_label labels[2];
		uint32_t n = 0;

		if (sums[i].thread)
			labels[n++] =
				(struct profile_label){.key = thread_key, .str = sums[i].thread};
		if (sums[i].class)
			labels[n++] =
				(struct profile_label){.key = class_key, .str = sums[i].class};
		r = profile_add_sample(p->profile, sums[i].stack, values, labels, n);
	}
	return r;
}

int java_jvmti_builder_take(struct java_jvmti_builder *b, enum java_jfr_profile_kind kind,
			    struct profile **ret_profile, struct err *err)
{
	struct java_jvmti_part *p = &b->parts[kind], fresh;
	bool is_lock = kind == JAVA_JFR_PROFILE_LOCK;
	int r;

	r = registry_type_add(p->profile,
			      is_lock ? TYPE_JAVA_LOCK_CONTENTIONS : TYPE_JAVA_ALLOC_OBJECTS);
	if (r == 0)
		r = registry_type_add(p->profile,
				      is_lock ? TYPE_JAVA_LOCK_DELAY : TYPE_JAVA_ALLOC_SPACE);
	/* Everything added must be emitted, so the lower limit applied only until here. */
	profile_limit(p->profile, PROFILE_MAX_BYTES);
	if (r == 0)
		r = add_samples(p);
	if (r == 0)
		r = part_init(&fresh, &b->options);
	if (r < 0)
		return err_set(err, r, "the JVM's profile is too large");
	profile_header(p->profile)->default_type = profile_type_at(p->profile, 1)->type;
	*ret_profile = TAKE_PTR(p->profile);
	part_release(p);
	*p = fresh;
	return 0;
}
