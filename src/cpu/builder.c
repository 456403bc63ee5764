/*
 * src/cpu/builder.c: see builder.h.
 *
 * Each distinct frame of a process is symbolized once; stacks that look the same become one sample.
 */
#include "cpu/builder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/hash.h"
#include "cpu/interp/interleave.h"
#include "pipeline/registry/registry.h"

/* Per process and interval. */
#define BUILDER_MAX_BYTES ((size_t)32 << 20)
/* The frames of a stack, two remarks on its end, and the process. */
#define BUILDER_MAX_DEPTH (CPU_STACK_KERNEL_MAX + 2 * CPU_STACK_MAX + 3)
/* What is over budget. */
#define BUILDER_OTHER "(other)"
/* The kernel's frames above a wait: those of the tracepoint that calls us are among the first. */
#define BUILDER_TRACEPOINT_FRAMES 8
/* Tells the kernel's mapping from those of files, whose generations are smaller. */
#define BUILDER_KERNEL UINT64_C(0x100000000)
/* A frame not shown. */
#define BUILDER_HIDDEN UINT32_MAX
/* Tells frames of interpreters from those of files. */
#define BUILDER_INTERP UINT64_C(0x200000000)
/* In the table of locations: the loop of an interpreter, replaced by the interpreter's frames. */
#define BUILDER_LOOP (UINT64_C(1) << 32)

struct cpu_sum {
	uint32_t stack;
	uint32_t thread; /* string id */
	int64_t values[2];
};

static uint64_t key_of(uint64_t a, uint64_t b)
{
	return hash_mix(hash_u64(a) ^ hash_mix(b));
}

static int add_types(struct cpu_builder *b)
{
	struct profile_header *h = profile_header(b->profile);
	struct profile_type period;
	int r;

	r = registry_type_add(b->profile, b->options.offcpu ? TYPE_OFFCPU_WAITS : TYPE_CPU_SAMPLES);
	if (r == 0)
		r = registry_type_add(b->profile,
				      b->options.offcpu ? TYPE_OFFCPU_TIME : TYPE_CPU_TIME);
	if (r < 0)
		return r;
	period = *profile_type_at(b->profile, 1);
	h->default_type = period.type;
	if (b->options.offcpu)
		return 0;
	h->period_type = period;
	h->period = (int64_t)(NS_PER_SEC / b->options.hz);
	return 0;
}

static uint64_t name_print(const struct cpu_name *name)
{
	uint64_t print = hash_bytes(name->function, strlen(name->function));

	return hash_mix(print ^ hash_u64(hash_bytes(name->file, strlen(name->file))));
}

static bool is_affordable(const struct cpu_builder *b, enum cpu_budget_kind kind, uint64_t print)
{
	const struct cpu_builder_options *o = &b->options;

	return !o->budget || cpu_budget_take(o->budget, &o->owner, kind, print, o->now_ns);
}

static int add_function(struct cpu_builder *b, const struct cpu_name *name, uint32_t *ret_id)
{
	struct profile_function f = {.start_line = name->start_line};
	uint64_t key, id;
	int r;

	r = profile_add_string(b->profile, view_str(name->function), &f.name);
	if (r == 0)
		r = profile_add_string(b->profile, view_str(name->system_name), &f.system_name);
	if (r == 0)
		r = profile_add_string(b->profile, view_str(name->file), &f.file);
	if (r < 0)
		return r;
	key = key_of((uint64_t)f.system_name << 32 | f.file,
		     (uint64_t)f.name << 32 ^ (uint64_t)f.start_line);
	if (map_get(&b->functions, key, &id)) {
		*ret_id = (uint32_t)id;
		return 0;
	}
	r = profile_add_function(b->profile, &f, ret_id);
	return r < 0 ? r : map_put(&b->functions, key, *ret_id);
}

static int set_print(struct cpu_builder *b, uint32_t location, uint64_t print)
{
	if (location >= b->cap_prints) {
		size_t cap = MAX((size_t)location + 1, b->cap_prints * 2 + 64);
		uint64_t *grown = reallocarray(b->prints, cap, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		b->prints = grown;
		b->cap_prints = cap;
	}
	b->prints[location] = print;
	return 0;
}

static int add_named(struct cpu_builder *b, uint64_t address, uint32_t mapping,
		     const struct cpu_name *names, size_t n, uint32_t *ret_location)
{
	static const struct cpu_name other = {
		.function = BUILDER_OTHER, .system_name = BUILDER_OTHER, .file = ""};
	struct profile_line lines[CPU_SYMBOLIZER_MAX];
	uint64_t print = 0;
	int r;

	for (size_t i = 0; i < n; i++) {
		const struct cpu_name *name = &names[i];

		if (!is_affordable(b, CPU_BUDGET_NAMES, name_print(name)))
			name = &other;
		print = hash_mix(print ^ name_print(name) ^ hash_u64((uint64_t)name->line));
		r = add_function(b, name, &lines[i].function);
		if (r < 0)
			return r;
		lines[i].line = name->line;
		lines[i].column = 0;
	}
	r = profile_add_location(b->profile, address, mapping, lines, (uint32_t)n, ret_location);
	return r < 0 ? r : set_print(b, *ret_location, print);
}

/* A frame holding a remark of ours. */
static int add_remark(struct cpu_builder *b, const char *remark, uint32_t *ret_location)
{
	const struct cpu_name name = {.function = remark, .system_name = remark, .file = ""};
	uint64_t key = key_of((uint64_t)(uintptr_t)remark, 1), id;
	int r;

	if (map_get(&b->locations, key, &id)) {
		*ret_location = (uint32_t)id;
		return 0;
	}
	r = add_named(b, 0, PROFILE_NO_MAPPING, &name, 1, ret_location);
	return r < 0 ? r : map_put(&b->locations, key, *ret_location);
}

static int add_mapping(struct cpu_builder *b, uint64_t key, const char *file, const char *build_id,
		       uint32_t *ret_mapping)
{
	/* Addresses are relative to the file, wherever it is mapped. */
	struct profile_mapping m = {.has_functions = true,
				    .has_filenames = true,
				    .has_line_numbers = true,
				    .has_inline_frames = true};
	const struct profile_mapping *first;
	uint64_t id;
	int r;

	if (map_get(&b->mappings, key, &id)) {
		*ret_mapping = (uint32_t)id;
		return 0;
	}
	r = profile_add_string(b->profile, view_str(file), &m.file);
	if (r == 0)
		r = profile_add_string(b->profile, view_str(build_id), &m.build_id);
	if (r < 0)
		return r;
	first = profile_n_mappings(b->profile) ? profile_mapping_at(b->profile, 0) : NULL;
	if (first && first->file == m.file && !first->build_id) {
		*ret_mapping = 0;
		profile_set_mapping(b->profile, 0, &m);
	} else {
		r = profile_add_mapping(b->profile, &m, ret_mapping);
	}
	return r < 0 ? r : map_put(&b->mappings, key, *ret_mapping);
}

/* By convention, the first mapping is the program itself. */
static int add_program(struct cpu_builder *b, const struct proc_info *info)
{
	struct profile_mapping m = {.has_functions = true};
	uint32_t id;
	int r;

	if (!info->exe[0])
		return 0;
	r = profile_add_string(b->profile, view_str(info->exe), &m.file);
	return r < 0 ? r : profile_add_mapping(b->profile, &m, &id);
}

static int add_kernel_frame(struct cpu_builder *b, struct cpu_symbolizer *names, uint64_t address,
			    uint32_t *ret_location)
{
	uint64_t key = key_of(address, BUILDER_KERNEL), id;
	const struct cpu_name *found;
	uint32_t mapping, location = BUILDER_HIDDEN;
	size_t n;
	int r;

	if (map_get(&b->locations, key, &id)) {
		*ret_location = (uint32_t)id;
		return 0;
	}
	r = add_mapping(b, BUILDER_KERNEL, "[kernel.kallsyms]", "", &mapping);
	if (r == 0)
		r = cpu_symbolizer_kernel(names, address, &found, &n);
	if (r == 0)
		r = add_named(b, address, mapping, found, n, &location);
	if (r < 0)
		return r;
	*ret_location = location;
	return map_put(&b->locations, key, location);
}

/* The role of a frame for the interpreter of its process. */
static enum interp_part part_of(const struct cpu_process *process, const struct cpu_file *file,
				const struct cpu_name *found, size_t n)
{
	enum interp_kind kind = file ? file->interp.kind : process->interp.kind;

	if (kind == INTERP_NONE)
		return INTERP_PART_NONE;
	return interp_ops(kind)->part(found[file ? n - 1 : 0].system_name, file != NULL);
}

/* Go's own profiles omit it as well. */
static bool is_go_exit(const struct cpu_file *file, const struct cpu_name *name)
{
	return file && file->is_go && strcmp(name->function, "runtime.goexit") == 0;
}

static int add_user_frame(struct cpu_builder *b, struct cpu_symbolizer *names,
			  const struct cpu_process *process, const struct cpu_frame *frame,
			  uint32_t *ret_location, bool *ret_is_loop)
{
	uint64_t address = frame->address - frame->is_return;
	uint64_t key = key_of(address, frame->file ? frame->file->generation : BUILDER_KERNEL + 1);
	uint32_t mapping = PROFILE_NO_MAPPING, location = BUILDER_HIDDEN;
	const struct cpu_name *found;
	enum interp_part part;
	uint64_t id;
	size_t n;
	int r = 0;

	if (frame->is_interp) {
		*ret_location = BUILDER_HIDDEN;
		*ret_is_loop = true;
		return 0;
	}
	if (map_get(&b->locations, key, &id)) {
		*ret_location = (uint32_t)id;
		*ret_is_loop = id & BUILDER_LOOP;
		return 0;
	}
	if (frame->file) {
		r = add_mapping(b, frame->file->generation, frame->file->path,
				frame->file->build_id, &mapping);
		if (r == 0)
			r = cpu_symbolizer_file(names, frame->file, address, &found, &n);
	} else {
		r = cpu_symbolizer_jit(names, process->pid, process->generation, address, &found,
				       &n);
	}
	if (r != 0)
		return r;
	part = part_of(process, frame->file, found, n);
	*ret_is_loop = part == INTERP_PART_LOOP;
	if (part != INTERP_PART_GLUE && !is_go_exit(frame->file, &found[0]))
		r = add_named(b, address, mapping, found, n, &location);
	if (r < 0)
		return r;
	*ret_location = location;
	return map_put(&b->locations, key, location | (*ret_is_loop ? BUILDER_LOOP : 0));
}

static int add_interp_frame(struct cpu_builder *b, struct cpu_symbolizer *names,
			    const struct cpu_stack *s, const struct interp_frame *frame,
			    uint32_t *ret_location)
{
	uint64_t key = key_of(hash_u64(frame->id & INTERP_ID) ^ frame->check,
			      BUILDER_INTERP + s->interp_kind);
	const struct cpu_name *found;
	uint64_t id;
	size_t n;
	int r;

	if (map_get(&b->locations, key, &id)) {
		*ret_location = (uint32_t)id;
		return 0;
	}
	r = cpu_symbolizer_interp(names, s->process, s->interp_kind, frame, &found, &n);
	if (r == 0)
		r = add_named(b, interp_ops(s->interp_kind)->address(frame), PROFILE_NO_MAPPING,
			      found, n, ret_location);
	return r < 0 ? r : map_put(&b->locations, key, *ret_location);
}

static const char *why_it_ends(enum cpu_stack_end end)
{
	static const char *const remarks[CPU_STACK_N] = {
		[CPU_STACK_TRUNCATED] = "[stack is deeper than 512 frames]",
		[CPU_STACK_NO_RULE] = "[no unwind information]",
		[CPU_STACK_UNREADABLE] = "[stack could not be read]",
		[CPU_STACK_UNSUPPORTED] = "[unwind rule not supported]",
		[CPU_STACK_NOT_LOADED] = "[sampled before its code was known]",
		[CPU_STACK_32BIT] = "[unsupported: 32-bit]",
	};

	return end < CPU_STACK_N ? remarks[end] : NULL;
}

/* The visible frames of a stack, innermost first. */
struct shown {
	uint32_t locations[BUILDER_MAX_DEPTH];
	uint32_t n;
	uint16_t n_interp;  /* interpreter frames so far */
	const char *remark; /* outermost frame; NULL: none */
};

static int show_interp(struct cpu_builder *b, struct cpu_symbolizer *names,
		       const struct cpu_stack *s, uint16_t n, struct shown *shown)
{
	int r = 0;

	for (uint16_t i = 0; r == 0 && i < n; i++)
		r = add_interp_frame(b, names, s, &s->interp[shown->n_interp++],
				     &shown->locations[shown->n++]);
	if (r == 0 && n && shown->n_interp == s->n_interp && s->interp_cut)
		r = add_remark(b, interp_ops(s->interp_kind)->more, &shown->locations[shown->n++]);
	return r;
}

static int show_user(struct cpu_builder *b, struct cpu_symbolizer *names, const struct cpu_stack *s,
		     struct shown *shown)
{
	uint16_t n_interp[CPU_STACK_MAX], n_left;
	uint32_t native[CPU_STACK_MAX];
	bool is_loop[CPU_STACK_MAX] = {0};
	int r = 0;

	for (uint16_t i = 0; r == 0 && i < s->n_user; i++)
		r = add_user_frame(b, names, s->process, &s->user[i], &native[i], &is_loop[i]);
	if (r < 0)
		return r;
	if (s->interp_cut && !s->n_interp && memchr(is_loop, true, s->n_user))
		shown->remark = interp_ops(s->interp_kind)->missing;
	n_left = cpu_interleave(s, is_loop, n_interp);
	for (uint16_t i = 0; r == 0 && i < s->n_user; i++) {
		if (n_interp[i])
			r = show_interp(b, names, s, n_interp[i], shown);
		else if (native[i] != BUILDER_HIDDEN)
			shown->locations[shown->n++] = native[i];
	}
	return r < 0 ? r : show_interp(b, names, s, n_left, shown);
}

/* A wait begins in the scheduler, which calls the tracepoint that calls us. */
static uint16_t n_tracepoint_frames(struct cpu_symbolizer *names, const struct cpu_stack *s)
{
	static const char *const prefixes[] = {"__traceiter_", "__bpf_trace_", "bpf_trace_run",
					       "bpf_prog_"};
	uint16_t found = 0;

	for (uint16_t i = 0; s->offcpu && i < MIN(s->n_kernel, BUILDER_TRACEPOINT_FRAMES); i++) {
		const struct cpu_name *name;
		size_t n;

		if (cpu_symbolizer_kernel(names, s->kernel[i] - (i > 0), &name, &n) < 0)
			break;
		for (size_t p = 0; p < ARRAY_SIZE(prefixes); p++)
			if (strncmp(name->function, prefixes[p], strlen(prefixes[p])) == 0)
				found = i + 1;
	}
	return found;
}

/* Over budget, all that is left of it is the process. */
static int charge_stack(struct cpu_builder *b, const struct cpu_stack *s, struct shown *shown)
{
	uint64_t print = shown->n;

	for (uint32_t i = 0; i < shown->n; i++)
		print = hash_mix(print ^ b->prints[shown->locations[i]]);
	if (is_affordable(b, CPU_BUDGET_STACKS, print))
		return 0;
	b->other += s->count;
	shown->n = 1;
	return add_remark(b, BUILDER_OTHER, &shown->locations[0]);
}

static int add_stack(struct cpu_builder *b, struct cpu_symbolizer *names, const struct cpu_stack *s,
		     uint32_t *ret_stack)
{
	bool is_told = s->n_user || s->end == CPU_STACK_NOT_LOADED || s->end == CPU_STACK_32BIT;
	struct shown shown = {.remark = is_told ? why_it_ends(s->end) : NULL};
	int r = 0;

	for (uint16_t i = n_tracepoint_frames(names, s); r == 0 && i < s->n_kernel; i++)
		/* All but the innermost are return addresses. */
		r = add_kernel_frame(b, names, s->kernel[i] - (i > 0), &shown.locations[shown.n++]);
	if (r == 0)
		r = show_user(b, names, s, &shown);
	/* During exec, for example, with kernel frames disabled. */
	if (!shown.n && !shown.remark)
		shown.remark = "[kernel]";
	if (r == 0 && shown.remark)
		r = add_remark(b, shown.remark, &shown.locations[shown.n++]);
	if (r == 0)
		r = charge_stack(b, s, &shown);
	if (r == 0 && b->options.root_process)
		shown.locations[shown.n++] = b->root;
	return r < 0 ? r : profile_add_stack(b->profile, shown.locations, shown.n, ret_stack);
}

static int sums_add(struct cpu_builder *b, uint32_t stack, uint32_t thread,
		    const struct cpu_stack *s)
{
	uint64_t key = (uint64_t)stack << 32 | thread, at;
	struct cpu_sum *sums;
	int r;

	if (!map_get(&b->sums_by_key, key, &at)) {
		at = b->n_sums;
		if (b->n_sums == b->cap_sums) {
			sums = reallocarray(b->sums, b->cap_sums * 2 + 64, sizeof(*sums));
			if (!sums)
				return -ENOMEM;
			b->sums = sums;
			b->cap_sums = b->cap_sums * 2 + 64;
		}
		r = map_put(&b->sums_by_key, key, at);
		if (r < 0)
			return r;
		b->sums[b->n_sums++] = (struct cpu_sum){.stack = stack, .thread = thread};
	}
	b->sums[at].values[0] += (int64_t)s->count;
	b->sums[at].values[1] += (int64_t)s->value_ns;
	return 0;
}

int cpu_builder_add(struct cpu_builder *b, struct cpu_symbolizer *names, const struct cpu_stack *s)
{
	char thread[sizeof(s->thread) + 1] = "";
	uint32_t stack, thread_id = 0;
	int r;

	memcpy(thread, s->thread, sizeof(s->thread));
	r = add_stack(b, names, s, &stack);
	if (r == 0 && b->options.label_threads)
		r = profile_add_string(b->profile, view_str(thread), &thread_id);
	if (r == 0)
		r = sums_add(b, stack, thread_id, s);
	if (r == -E2BIG) {
		b->lost += s->count;
		return 0;
	}
	return r;
}

struct sample_labels {
	struct profile_label items[3];
	uint32_t len;
};

static int label_process(struct cpu_builder *b, const struct proc_info *info,
			 struct sample_labels *labels)
{
	struct profile_label *process = &labels->items[0], *pid = &labels->items[1];
	int r;

	if (!b->options.label_process)
		return 0;
	r = profile_add_string(b->profile, view_str("process"), &process->key);
	if (r == 0)
		r = profile_add_string(b->profile, view_str(info->service), &process->str);
	if (r == 0)
		r = profile_add_string(b->profile, view_str("pid"), &pid->key);
	pid->num = info->id.pid;
	labels->len = 2;
	return r;
}

int cpu_builder_finish(struct cpu_builder *b, const struct proc_info *info,
		       struct profile **ret_profile, struct err *err)
{
	struct sample_labels labels = {};
	uint32_t thread_key = 0;
	int r = label_process(b, info, &labels);

	if (r == 0)
		r = profile_add_string(b->profile, view_str("thread"), &thread_key);
	for (size_t i = 0; r == 0 && i < b->n_sums; i++) {
		const struct cpu_sum *sum = &b->sums[i];
		uint32_t n = labels.len;

		if (sum->thread)
			labels.items[n++] =
				(struct profile_label){.key = thread_key, .str = sum->thread};
		r = profile_add_sample(b->profile, sum->stack, sum->values, labels.items, n);
	}
	if (r < 0)
		return err_set(err, r, "the CPU profile of process %d is too large",
			       (int)info->id.pid);
	*ret_profile = TAKE_PTR(b->profile);
	return 0;
}

int cpu_builder_init(struct cpu_builder *b, const struct cpu_builder_options *options,
		     const struct proc_info *info, struct err *err)
{
	const struct cpu_name root = {
		.function = info->service, .system_name = info->service, .file = ""};
	int r;

	*b = (struct cpu_builder){.options = *options, .profile = profile_new()};
	if (!b->profile)
		return err_oom(err);
	profile_limit(b->profile, BUILDER_MAX_BYTES);
	r = add_types(b);
	if (r == 0)
		r = add_program(b, info);
	if (r == 0 && options->root_process)
		r = add_named(b, 0, PROFILE_NO_MAPPING, &root, 1, &b->root);
	if (r < 0) {
		cpu_builder_release(b);
		return err_oom(err);
	}
	return 0;
}

void cpu_builder_release(struct cpu_builder *b)
{
	profile_free(b->profile);
	map_release(&b->locations);
	map_release(&b->functions);
	map_release(&b->mappings);
	map_release(&b->sums_by_key);
	free(b->sums);
	free(b->prints);
	*b = (struct cpu_builder){0};
}
