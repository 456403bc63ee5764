/*
 * src/cpu/sampler.bpf.c: takes the stacks, in the kernel.
 *
 * on_sample runs on a perf event of each CPU, on_switch when a thread leaves its CPU (off-CPU).
 * Kernel frames come from the kernel; user frames from walk_step(), one call per frame, by the
 * tables that user space has laid out (sampler_shared.h). Counts are kept by a hash of the whole
 * stack; its frames are sent once per interval. What the tables lack is asked for by a notice,
 * and the stack at hand ends there as "not loaded".
 *
 * Off-CPU: when the wait ends, another thread's memory is mapped, so the stack has to be taken when
 * it begins, without knowing whether the wait will be long enough to be of interest. Most are not.
 * So each thread's stack is taken in one of `weight` waits, and what is then found counts
 * `weight` times: waits that turn out short double it (up to 64), long ones halve it. The choice
 * depends only on the past, hence sums are right on average, and a thread that only ever waits for
 * long is seen each time.
 *
 * Written for clang 14 and the verifier of 6.1: the step is a global function (verified once), its
 * searches are free of branches, indices are masked.
 */
#include "cpu/sampler_bpf.h"

#include "cpu/sampler_shared.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile __u32 only_tgid = 0;
const volatile bool want_kernel = true;
const volatile bool want_events = false;
const volatile __u64 offcpu_min_ns = 0;
const volatile __u32 stacks_bytes = 0;

__u32 epoch;
__u64 n_samples, n_lost_ring, n_lost_table, n_lost_notices, n_ends[SAMPLER_END_N];

struct inner_counts {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, u64);
	__type(value, struct sampler_counts);
} counts_a SEC(".maps"), counts_b SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 2);
	__type(key, u32);
	__array(values, struct inner_counts);
} counts SEC(".maps") = {.values = {&counts_a, &counts_b}};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} stacks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 18);
} notices SEC(".maps");

/* One for samples and one for waits: a sample may interrupt the latter. */
struct scratch {
	struct sampler_stack stack;
	u64 regs[REGS_N];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 2);
	__type(key, u32);
	__type(value, struct scratch);
} scratches SEC(".maps");

struct chunk {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(struct sampler_chunk));
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, SAMPLER_CHUNKS);
	__type(key, u32);
	__array(values, struct chunk);
} chunks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SAMPLER_RULES);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, u32);
	__type(value, struct unwind_rule);
} rules SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SAMPLER_FILES);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, u32);
	__type(value, struct sampler_file);
} files SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SAMPLER_MAPPINGS);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, u32);
	__type(value, struct sampler_mapping);
} mappings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, SAMPLER_PROCESSES);
	__type(key, u32);
	__type(value, struct sampler_process);
} processes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, SAMPLER_WAITS);
	__type(key, u32);
	__type(value, struct sampler_wait);
} waits SEC(".maps");

/* Off-CPU stacks that user space has: a wait may end long after the interval it began in. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, SAMPLER_SENT);
	__type(key, u64);
	__type(value, u32);
} sent SEC(".maps");

/* Of ours above __schedule: the program, and the function that runs it. */
#define WAIT_OWN_FRAMES 2

struct walk {
	u64 pc, sp, fp, hash;
	u64 map_start, map_end, map_bias;
	u64 unknown; /* an address in no mapping */
	u32 map_file, first, n;
	u32 slot; /* of scratches */
	u32 n_kernel, n_user;
	u32 end;
	u32 exact; /* pc is no return address */
	u32 fp_lost;
	u32 wanted; /* file without tables, + 1 */
};

static __always_inline u64 mix(u64 hash, u64 value)
{
	hash ^= value;
	hash *= 0x9e3779b97f4a7c15ULL;
	return hash ^ (hash >> 29);
}

static __always_inline bool find_mapping(struct walk *w, u64 pc)
{
	u32 lo = w->first, hi = w->first + w->n;
	struct sampler_mapping *m;

	if (pc - w->map_start < w->map_end - w->map_start)
		return true;
	for (int i = 0; i < 13; i++) {
		u32 mid = (lo + hi) >> 1, below;

		if (lo >= hi)
			break;
		m = bpf_map_lookup_elem(&mappings, &mid);
		if (!m)
			return false;
		below = (u32)((s64)(pc - m->start) >> 63); /* all ones when pc < start */
		barrier_var(below);
		lo = (lo & below) | ((mid + 1) & ~below);
		hi = (hi & ~below) | (mid & below);
	}
	if (lo == w->first)
		return false;
	lo--;
	m = bpf_map_lookup_elem(&mappings, &lo);
	if (!m || pc >= m->end)
		return false;
	w->map_start = m->start;
	w->map_end = m->end;
	w->map_bias = m->bias;
	w->map_file = m->file;
	return true;
}

static __always_inline struct sampler_chunk *find_chunk(u32 word)
{
	u32 number = word >> SAMPLER_CHUNK_BITS, zero = 0;
	void *chunk = bpf_map_lookup_elem(&chunks, &number);

	return chunk ? bpf_map_lookup_elem(chunk, &zero) : NULL;
}

/* The number of the rule at vaddr: the last row at or before it. */
static __always_inline u32 search_rows(const struct sampler_chunk *c, u32 lo, u32 n, u64 vaddr)
{
	u32 offset = vaddr & (SAMPLER_PAGE_SIZE - 1);

	for (int i = 0; i < 13; i++) {
		u32 half = n >> 1, reached;

		if (n <= 1)
			break;
		reached = SAMPLER_ROW_OFFSET(c->words[(lo + half) & (SAMPLER_CHUNK_WORDS - 1)]);
		reached = ~(u32)(((s32)offset - (s32)reached) >> 31);
		barrier_var(reached);
		lo += half & reached;
		n -= half;
	}
	return SAMPLER_ROW_RULE(c->words[lo & (SAMPLER_CHUNK_WORDS - 1)]);
}

/* Sets w->end and returns false where the walk has to stop. */
static __always_inline bool find_rule(struct walk *w, u64 vaddr, struct unwind_rule *ret)
{
	struct sampler_chunk *c;
	struct unwind_rule *rule;
	struct sampler_file *f;
	u32 id = w->map_file, number, first, n, word;
	u64 page;

	ret->cfa = UNWIND_CHAIN;
	f = bpf_map_lookup_elem(&files, &id);
	if (!f || f->state == SAMPLER_FILE_CHAIN)
		return true;
	if (f->state != SAMPLER_FILE_TABLE) {
		w->wanted = id + 1;
		w->end = SAMPLER_END_NOT_LOADED;
		return false;
	}
	page = (vaddr >> SAMPLER_PAGE_BITS) - f->first_page;
	if (page >= f->n_pages)
		return true;
	word = f->index + 2 * (u32)page;
	c = find_chunk(word);
	if (!c)
		return true;
	first = c->words[word & (SAMPLER_CHUNK_WORDS - 1)];
	n = c->words[(word + 1) & (SAMPLER_CHUNK_WORDS - 1)];
	c = find_chunk(first);
	if (!c)
		return true;
	number = search_rows(c, first, n, vaddr);
	rule = bpf_map_lookup_elem(&rules, &number);
	if (!rule)
		return true;
	*ret = *rule;
	if (ret->cfa == UNWIND_NONE)
		ret->cfa = UNWIND_CHAIN;
	return true;
}

static __always_inline int stop(struct walk *w, u32 end)
{
	w->end = end;
	return 1;
}

static __always_inline int leave_signal(struct walk *w)
{
	u64 regs[SIGNAL_N];

	if (bpf_probe_read_user(regs, sizeof(regs), (void *)(w->sp + SIGNAL_REGS)))
		return stop(w, SAMPLER_END_UNREADABLE);
	w->fp = regs[SIGNAL_FP];
	w->sp = regs[SIGNAL_SP];
	w->pc = regs[SIGNAL_PC];
	w->exact = 1;
	w->fp_lost = 0;
	return w->pc ? 0 : stop(w, SAMPLER_END_ROOT);
}

static __always_inline int leave_chain(struct walk *w)
{
	u64 saved[2];

	if (w->fp_lost)
		return stop(w, SAMPLER_END_NO_RULE);
	if (!w->fp)
		return stop(w, SAMPLER_END_ROOT);
	if (bpf_probe_read_user(saved, sizeof(saved), (void *)w->fp) || saved[0] == w->fp)
		return stop(w, SAMPLER_END_NO_RULE);
	w->sp = w->fp + 16;
	w->fp = saved[0];
	w->pc = saved[1];
	return w->pc ? 0 : stop(w, SAMPLER_END_ROOT);
}

static __always_inline int leave_by_cfa(struct walk *w, const struct unwind_rule *rule, u64 cfa)
{
	u64 saved[2];

	if (rule->fp == UNWIND_FP_SAVED && rule->fp_off == -16) {
		if (bpf_probe_read_user(saved, sizeof(saved), (void *)(cfa - 16)))
			return stop(w, SAMPLER_END_UNREADABLE);
		w->fp = saved[0];
		w->pc = saved[1];
		w->fp_lost = 0;
	} else {
		if (bpf_probe_read_user(&w->pc, sizeof(w->pc), (void *)(cfa - 8)))
			return stop(w, SAMPLER_END_UNREADABLE);
		if (rule->fp == UNWIND_FP_SAVED) {
			if (bpf_probe_read_user(&w->fp, sizeof(w->fp),
						(void *)(cfa + rule->fp_off)))
				return stop(w, SAMPLER_END_UNREADABLE);
			w->fp_lost = 0;
		} else if (rule->fp == UNWIND_FP_LOST) {
			w->fp_lost = 1;
		}
	}
	w->sp = cfa;
	return w->pc ? 0 : stop(w, SAMPLER_END_ROOT);
}

static __always_inline int leave_frame(struct walk *w, const struct unwind_rule *rule,
				       const u64 *regs, u64 pc)
{
	u64 cfa;

	switch (rule->cfa) {
	case UNWIND_SP:
		cfa = w->sp + rule->cfa_off;
		break;
	case UNWIND_FP:
		if (w->fp_lost)
			return stop(w, SAMPLER_END_UNSUPPORTED);
		cfa = w->fp + rule->cfa_off;
		break;
	case UNWIND_PLT:
		cfa = w->sp + 8 + ((pc & 15) >= 11 ? 8 : 0);
		break;
	case UNWIND_FP_DEREF:
	case UNWIND_SP_DEREF:
		cfa = rule->cfa == UNWIND_FP_DEREF ? w->fp : w->sp;
		if (bpf_probe_read_user(&cfa, sizeof(cfa), (void *)(cfa + (s16)rule->cfa_off)))
			return stop(w, SAMPLER_END_UNREADABLE);
		cfa += rule->cfa_off >> 16;
		break;
	case UNWIND_REG:
		if (w->n_user != 1)
			return stop(w, SAMPLER_END_UNSUPPORTED);
		cfa = regs[rule->reg & (REGS_N - 1)] + rule->cfa_off;
		break;
	case UNWIND_SIGNAL:
		return leave_signal(w);
	case UNWIND_END:
		return stop(w, SAMPLER_END_ROOT);
	case UNWIND_CHAIN:
		return leave_chain(w);
	default:
		return stop(w, SAMPLER_END_UNSUPPORTED);
	}
	return leave_by_cfa(w, rule, cfa);
}

/* Notes the frame at pc and goes on to its caller; not 0 at the end of the stack. */
__noinline int walk_step(struct walk *w)
{
	struct unwind_rule rule = {};
	struct scratch *s;
	bool known, has_file;
	u64 pc, frame;
	u32 slot, exact;

	if (!w)
		return 1;
	slot = w->slot;
	s = bpf_map_lookup_elem(&scratches, &slot);
	if (!s)
		return 1;
	pc = w->pc;
	exact = w->exact;
	known = find_mapping(w, exact ? pc : pc - 1);
	if (!known) {
		w->unknown = pc;
		w->end = SAMPLER_END_NOT_LOADED;
		if (w->n_user)
			return 1; /* may well be nonsense */
	}
	has_file = known && w->map_file != SAMPLER_NO_FILE;
	frame = (has_file ? pc - w->map_bias : pc) & SAMPLER_FRAME_ADDRESS;
	if (has_file)
		frame |= (u64)(w->map_file + 1) << SAMPLER_FRAME_FILE_SHIFT;
	if (exact)
		frame |= SAMPLER_FRAME_EXACT;
	s->stack.frames[(w->n_kernel + w->n_user) & 255] = frame;
	w->hash = mix(w->hash, frame);
	w->n_user++;
	if (!known)
		return 1;
	rule.cfa = UNWIND_CHAIN;
	if (has_file && !find_rule(w, pc - w->map_bias - !exact, &rule))
		return 1;
	w->exact = 0;
	return leave_frame(w, &rule, s->regs, pc);
}

static int walk_loop(u32 i, struct walk *w)
{
	return walk_step(w) ? 1 : 0;
}

static __always_inline bool send_notice(u32 kind, const struct sampler_thread *t, u64 value)
{
	struct sampler_notice *n = bpf_ringbuf_reserve(&notices, sizeof(*n), 0);

	if (!n) {
		__sync_fetch_and_add(&n_lost_notices, 1);
		return false;
	}
	n->thread = *t;
	n->kind = kind;
	n->unused = 0;
	n->value = value;
	bpf_ringbuf_submit(n, 0);
	return true;
}

/* The process as user space has laid it out; one that is new is reported. */
static __always_inline struct sampler_process *
find_process(const struct sampler_thread *t, struct task_struct *task, bool has_memory, u64 pc)
{
	struct sampler_process fresh = {.start_ns = t->start_ns, .exec_id = t->exec_id};
	u32 tgid = t->tgid;
	struct sampler_process *p = bpf_map_lookup_elem(&processes, &tgid);

	if (p && p->start_ns == t->start_ns && p->exec_id == t->exec_id)
		return p;
	/* Once it exits nothing would take it out again. */
	if (task->flags & PF_EXITING)
		return NULL;
	if (bpf_map_update_elem(&processes, &tgid, &fresh, BPF_ANY) || !has_memory)
		return NULL;
	/* While it is not in the table, every sample asks again. */
	if (!send_notice(SAMPLER_NOTICE_PROCESS, t, pc))
		bpf_map_delete_elem(&processes, &tgid);
	return NULL;
}

/* What the walk lacked: ask for it, and say how the stack ended. */
static __always_inline void ask(struct walk *w, const struct sampler_thread *t,
				struct sampler_process *p, u64 now)
{
	struct sampler_file *f;
	u32 file;

	if (w->wanted) {
		file = w->wanted - 1;
		f = bpf_map_lookup_elem(&files, &file);
		if (f && f->state == SAMPLER_FILE_NEW && send_notice(SAMPLER_NOTICE_FILE, t, file))
			f->state = SAMPLER_FILE_ASKED;
		return;
	}
	if (!w->unknown || !p || !p->loaded_ns || p->asked_ns > p->loaded_ns)
		return;
	if (now - p->loaded_ns < p->wait_ns) {
		w->end = SAMPLER_END_NO_RULE; /* its mappings are as good as new */
		return;
	}
	if (send_notice(SAMPLER_NOTICE_ADDRESS, t, w->unknown))
		p->asked_ns = now;
}

static __always_inline u64 cgroup_of(struct task_struct *task)
{
	struct css_set *set = task->cgroups;
	struct cgroup_subsys_state *css = NULL;
	u64 id = 0;

	if (!set)
		return 0;
	if (bpf_core_field_exists(set->dfl_cgrp)) {
		id = BPF_CORE_READ(set, dfl_cgrp, kn, id);
		if (BPF_CORE_READ(set, dfl_cgrp, level) > 0)
			return id;
	}
	/* Version 1 has the containers; there the unified hierarchy is all root. */
	if (bpf_core_enum_value_exists(enum cgroup_subsys_id, memory_cgrp_id)) {
		u64 number = bpf_core_enum_value(enum cgroup_subsys_id, memory_cgrp_id);
		void *subsys = __builtin_preserve_access_index(&set->subsys);

		bpf_probe_read_kernel(&css, sizeof(css), subsys + number * sizeof(css));
		if (css && BPF_CORE_READ(css, cgroup, level) > 0)
			return BPF_CORE_READ(css, cgroup, kn, id);
	}
	return id;
}

static __always_inline void identify(struct sampler_thread *t, struct task_struct *task)
{
	t->start_ns = task->group_leader->start_boottime;
	t->exec_id = task->self_exec_id;
	t->tgid = task->tgid;
	t->tid = task->pid;
	bpf_get_current_comm(t->name, sizeof(t->name));
}

static __always_inline u64 hash_thread(const struct sampler_thread *t, bool offcpu)
{
	u64 hash = mix(offcpu + 1, (u64)t->tgid << 32 | t->tid);

	hash = mix(hash, t->start_ns);
	hash = mix(hash, t->exec_id);
	hash = mix(hash, *(const u64 *)t->name);
	return mix(hash, *(const u64 *)(t->name + 8));
}

static __always_inline u32 take_kernel(void *ctx, struct sampler_stack *r, u64 skip)
{
	long n = bpf_get_stack(ctx, r->frames, SAMPLER_FRAMES_MAX * sizeof(u64), skip);

	return n > 0 ? ((u32)n >> 3) & 127 : 0;
}

/* From w->pc on. */
static __always_inline void take_user(struct walk *w, struct sampler_stack *r,
				      struct task_struct *task, u64 now)
{
	struct sampler_process *p = find_process(&r->thread, task, true, w->pc);

	if (p) {
		w->first = p->first;
		w->n = p->n;
	}
	w->exact = 1;
	w->end = SAMPLER_END_TRUNCATED;
	bpf_loop(SAMPLER_FRAMES_MAX, walk_loop, w, 0);
	ask(w, &r->thread, p, now);
}

static __always_inline bool has_user_stack(struct task_struct *task)
{
	return task->mm && !(task->flags & (PF_KTHREAD | PF_IO_WORKER));
}

/* Completes the record; false when it could not be sent. */
static __always_inline bool send_stack(struct sampler_stack *r, struct task_struct *task)
{
	u64 size = __builtin_offsetof(struct sampler_stack, frames);
	u64 flags = BPF_RB_NO_WAKEUP;

	r->cgroup = cgroup_of(task);
	BPF_CORE_READ_INTO(&r->comm, task, group_leader, comm);
	size += ((r->n_kernel & 127) + (r->n_user & 127)) * sizeof(u64);
	/* Between drains user space need not wake, unless the buffer fills up. */
	if (bpf_ringbuf_query(&stacks, BPF_RB_AVAIL_DATA) > stacks_bytes / 2)
		flags = BPF_RB_FORCE_WAKEUP;
	if (!bpf_ringbuf_output(&stacks, r, size, flags))
		return true;
	__sync_fetch_and_add(&n_lost_ring, 1);
	return false;
}

static __always_inline void count_end(u32 end)
{
	__sync_fetch_and_add(&n_samples, 1);
	if (end < SAMPLER_END_N)
		__sync_fetch_and_add(&n_ends[end], 1);
}

static __always_inline void add_counts(void *map, u64 hash, u64 count, u64 ns)
{
	struct sampler_counts fresh = {.count = count, .ns = ns}, *c;

	c = bpf_map_lookup_elem(map, &hash);
	if (!c) {
		if (!bpf_map_update_elem(map, &hash, &fresh, BPF_NOEXIST))
			return;
		c = bpf_map_lookup_elem(map, &hash);
	}
	if (!c) {
		__sync_fetch_and_add(&n_lost_table, count);
		return;
	}
	__sync_fetch_and_add(&c->count, count);
	__sync_fetch_and_add(&c->ns, ns);
}

static __always_inline u64 finish(struct walk *w, struct sampler_stack *r)
{
	r->n_kernel = w->n_kernel;
	r->n_user = w->n_user;
	r->end = w->end;
	r->hash = mix(w->hash, w->end);
	count_end(w->end);
	return r->hash;
}

static __always_inline u64 hash_kernel(const struct sampler_stack *r, u64 hash, u32 n)
{
	for (u32 i = 0; i < SAMPLER_FRAMES_MAX; i++) {
		if (i >= n)
			break;
		hash = mix(hash, r->frames[i]);
	}
	return hash;
}

static __always_inline void regs_of_task(struct scratch *s, struct walk *w, u64 *ret_cs,
					 struct task_struct *task)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);

	REGS_COPY(s->regs, regs, );
	w->pc = regs->ip;
	*ret_cs = regs->cs;
}

static __always_inline void walk_user(struct walk *w, struct scratch *s, struct task_struct *task,
				      u64 cs, u64 now)
{
	w->fp = s->regs[REGS_FP];
	w->sp = s->regs[REGS_SP];
	if (REGS_IS_32BIT(cs))
		w->end = SAMPLER_END_UNSUPPORTED;
	else if (w->pc)
		take_user(w, &s->stack, task, now);
}

SEC("perf_event")
int on_sample(struct bpf_perf_event_data *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u32 zero = 0, parity;
	struct walk w = {};
	struct scratch *s;
	void *map;
	u64 cs, hash;
	u32 now_epoch = epoch;

	if (!task->pid || (only_tgid && (u32)task->tgid != only_tgid))
		return 0;
	s = bpf_map_lookup_elem(&scratches, &zero);
	if (!s)
		return 0;
	cs = ctx->regs.cs;
	w.pc = ctx->regs.rip;
	REGS_COPY(s->regs, &ctx->regs, r);
	s->stack.offcpu = 0;
	s->stack.epoch = now_epoch;
	identify(&s->stack.thread, task);
	if (want_kernel && !REGS_IS_USER(cs))
		w.n_kernel = take_kernel(ctx, &s->stack, 0);
	w.hash = hash_kernel(&s->stack, hash_thread(&s->stack.thread, false), w.n_kernel);
	if (has_user_stack(task)) {
		if (!REGS_IS_USER(cs))
			regs_of_task(s, &w, &cs, task);
		walk_user(&w, s, task, cs, bpf_ktime_get_ns());
	} else {
		find_process(&s->stack.thread, task, false, 0);
	}
	hash = finish(&w, &s->stack);

	parity = now_epoch & 1;
	map = bpf_map_lookup_elem(&counts, &parity);
	if (!map)
		return 0;
	/* A stack that is not counted yet in this interval has not been sent either. */
	if (bpf_map_lookup_elem(map, &hash) || send_stack(&s->stack, task))
		add_counts(map, hash, 1, 0);
	return 0;
}

/* The stack of a thread that is about to sleep, which is the current one; 0 when it is lost. */
static __always_inline u64 take_wait(void *ctx, struct task_struct *task, u64 now)
{
	struct walk w = {.slot = 1};
	u32 one = 1;
	struct scratch *s = bpf_map_lookup_elem(&scratches, &one);
	u64 cs, hash;

	if (!s)
		return 0;
	s->stack.offcpu = 1;
	s->stack.epoch = 0;
	identify(&s->stack.thread, task);
	if (want_kernel)
		w.n_kernel = take_kernel(ctx, &s->stack, WAIT_OWN_FRAMES);
	w.hash = hash_kernel(&s->stack, hash_thread(&s->stack.thread, true), w.n_kernel);
	regs_of_task(s, &w, &cs, task);
	walk_user(&w, s, task, cs, now);
	hash = finish(&w, &s->stack);
	if (bpf_map_lookup_elem(&sent, &hash))
		return hash;
	if (!send_stack(&s->stack, task))
		return 0;
	bpf_map_update_elem(&sent, &hash, &one, BPF_ANY);
	return hash;
}

static __always_inline void wait_begins(void *ctx, struct task_struct *task, u64 now)
{
	struct sampler_wait fresh = {.weight = 1}, *wait;
	u32 tid = task->pid, weight;

	if (!has_user_stack(task) || (task->flags & PF_EXITING))
		return;
	wait = bpf_map_lookup_elem(&waits, &tid);
	if (!wait) {
		if (bpf_map_update_elem(&waits, &tid, &fresh, BPF_NOEXIST)) {
			__sync_fetch_and_add(&n_lost_table, 1);
			return;
		}
		wait = bpf_map_lookup_elem(&waits, &tid);
		if (!wait)
			return;
	}
	weight = wait->weight;
	wait->hash = 0;
	wait->taken = weight;
	if (weight == 1 || !(bpf_get_prandom_u32() & (weight - 1)))
		wait->hash = take_wait(ctx, task, now);
	wait->out_ns = now;
}

static __always_inline void wait_ends(u32 tid, u64 now)
{
	struct sampler_wait *wait = bpf_map_lookup_elem(&waits, &tid);
	u32 parity = epoch & 1;
	u64 waited;
	void *map;

	if (!wait || !wait->out_ns)
		return;
	waited = now - wait->out_ns;
	wait->out_ns = 0;
	if (waited < offcpu_min_ns) {
		if (wait->hash && wait->weight < SAMPLER_WEIGHT_MAX)
			wait->weight *= 2;
		return;
	}
	/* Sooner seen again when it was missed. */
	wait->weight = wait->weight >> (wait->hash ? 1 : 2) ?: 1;
	map = bpf_map_lookup_elem(&counts, &parity);
	if (map && wait->hash)
		add_counts(map, wait->hash, wait->taken, waited * wait->taken);
}

/* Arguments: preempted, previous task (still current), next task. */
SEC("tp_btf/sched_switch")
int on_switch(u64 *ctx)
{
	struct task_struct *prev = (void *)ctx[1], *next = (void *)ctx[2];
	u64 now = bpf_ktime_get_ns();

	if (!ctx[0] && prev->__state && prev->pid && (!only_tgid || (u32)prev->tgid == only_tgid))
		wait_begins(ctx, prev, now);
	if (next->pid && (!only_tgid || (u32)next->tgid == only_tgid))
		wait_ends(next->pid, now);
	return 0;
}

static __always_inline void process_changed(struct task_struct *task, u32 kind)
{
	struct sampler_thread t;
	u32 tgid = task->tgid;
	bool was_known = !bpf_map_delete_elem(&processes, &tgid);

	if (!was_known && !want_events)
		return;
	identify(&t, task);
	send_notice(kind, &t, 0);
}

/* Arguments: task, its pid before, the program. */
SEC("tp_btf/sched_process_exec")
int on_exec(u64 *ctx)
{
	process_changed((struct task_struct *)ctx[0], SAMPLER_NOTICE_EXEC);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int on_exit(u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];
	u32 tid = task->pid;

	if (offcpu_min_ns)
		bpf_map_delete_elem(&waits, &tid);
	/* The last thread of the process. */
	if (task->signal->live.counter == 0)
		process_changed(task, SAMPLER_NOTICE_EXIT);
	return 0;
}
