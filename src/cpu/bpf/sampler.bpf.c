/*
 * src/cpu/bpf/sampler.bpf.c: takes the stacks, in the kernel.
 *
 * on_sample runs on a perf event of each CPU, on_switch when a thread leaves its CPU (off-CPU). The
 * kernel provides kernel frames; cpu_walk_step() finds user frames, one call per frame, using the
 * tables that user space has laid out (shared.h). Counts are kept by a hash of the whole stack; its
 * frames are sent once per interval. If the tables lack something, a notice asks for it, and the
 * current stack ends there as "not loaded"; a sample also sends a copy of the top of its stack, for
 * user space to walk once it knows more (cpu/sampler/deferred_stacks.c). If the program has an
 * interpreter, its frames are taken as well (interp/interp_shared.h).
 *
 * Off-CPU: when a wait ends, another thread's memory is mapped, so the stack must be taken when the
 * wait begins, without knowing whether it will be long enough to matter. Most are not. So each
 * thread's stack is taken in one of `weight` waits and counts `weight` times: short waits double
 * the weight (up to 64), long ones halve it. The choice depends only on the past, hence sums are
 * right on average, and a thread that only has long waits is seen each time.
 *
 * Written for clang 14 and the verifier of 6.1: the step is a global function (verified once), its
 * searches are branch-free, indices are masked.
 */
#include "cpu/bpf/kernel.bpf.h"

#include "cpu/bpf/maps.bpf.h"
#include "cpu/bpf/shared.h"
#include "cpu/bpf/walk.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile __u32 only_tgid = 0;
const volatile bool want_kernel = true;
const volatile bool want_events = false;
const volatile __u64 offcpu_min_ns = 0;
const volatile __u32 stacks_bytes = 0, copies_bytes = 0;
const volatile __u32 n_cpus = 1;

__u32 epoch;
__u64 interp_woken_ns;
__u64 n_samples, n_lost_ring, n_lost_table, n_lost_notices, n_ends[CPU_SAMPLER_END_N];

/* Our own frames above __schedule: the program, and the function that runs it. */
#define WAIT_OWN_FRAMES 2
/* The usual limit of a main thread's stack. */
#define STACK_MAX_BYTES (8U << 20)
/* Before asking again for mappings that did not come. */
#define ASK_AGAIN_NS 1000000000ULL
/* Maximum wait before the names of an interpreter's functions are read. */
#define INTERP_WAKE_NS 200000000ULL
/* Masks for counts of frames: the next power of two above their limits. */
#define KERNEL_MASK 127
#define FRAMES_MASK 1023

/*
 * flags: whether to wake user space. Never by its own choice: that would take notices nobody was
 * woken for as a sign that it is awake.
 */
static __always_inline bool send_notice(u32 kind, const struct cpu_sampler_thread *t, u64 value,
					u64 flags)
{
	struct cpu_sampler_notice *n = bpf_ringbuf_reserve(&notices, sizeof(*n), 0);

	if (!n) {
		__sync_fetch_and_add(&n_lost_notices, 1);
		return false;
	}
	n->thread = *t;
	n->kind = kind;
	n->unused = 0;
	n->value = value;
	bpf_ringbuf_submit(n, flags);
	return true;
}

/*
 * The process as prepared by user space; one with unknown mappings is reported. Not inline: its
 * stack would count during the walk.
 */
static __attribute__((noinline)) struct cpu_sampler_process *
find_process(const struct cpu_sampler_thread *t, struct task_struct *task, bool has_memory, u64 pc,
	     u64 now)
{
	struct cpu_sampler_process fresh = {
		.start_ns = t->start_ns, .exec_id = t->exec_id, .asked_ns = has_memory ? now : 0};
	u32 tgid = t->tgid;
	struct cpu_sampler_process *p = bpf_map_lookup_elem(&processes, &tgid);

	if (p && p->start_ns == t->start_ns && p->exec_id == t->exec_id) {
		/* In the middle of an exec, a program has no memory to ask about yet. */
		if (!has_memory || p->loaded_ns || now - p->asked_ns < ASK_AGAIN_NS)
			return p;
		p->asked_ns = now;
		if (!send_notice(CPU_SAMPLER_NOTICE_PROCESS, t, pc, BPF_RB_FORCE_WAKEUP))
			p->asked_ns = 0;
		return p;
	}
	/* After its exit, nothing would remove it again. */
	if (task->flags & PF_EXITING)
		return NULL;
	if (bpf_map_update_elem(&processes, &tgid, &fresh, BPF_ANY) || !has_memory)
		return NULL;
	/* Until it is in the table, every sample asks again. */
	if (!send_notice(CPU_SAMPLER_NOTICE_PROCESS, t, pc, BPF_RB_FORCE_WAKEUP))
		bpf_map_delete_elem(&processes, &tgid);
	return NULL;
}

/* Asks for what the walk lacked, and sets how the stack ended. */
static __always_inline void ask(struct cpu_walk *w, const struct cpu_sampler_thread *t,
				struct cpu_sampler_process *p, u64 now)
{
	struct cpu_sampler_file *f;
	u32 file;

	if (w->wanted) {
		file = w->wanted - 1;
		f = bpf_map_lookup_elem(&files, &file);
		if (f && f->state == CPU_SAMPLER_FILE_NEW &&
		    send_notice(CPU_SAMPLER_NOTICE_FILE, t, file, BPF_RB_FORCE_WAKEUP))
			f->state = CPU_SAMPLER_FILE_ASKED;
		return;
	}
	if (!w->unknown || !p || !p->loaded_ns || p->asked_ns > p->loaded_ns)
		return;
	if (now - p->loaded_ns < p->wait_ns) {
		w->end = CPU_SAMPLER_END_NO_RULE; /* its mappings were just read */
		return;
	}
	if (send_notice(CPU_SAMPLER_NOTICE_ADDRESS, t, w->unknown, BPF_RB_FORCE_WAKEUP))
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
		id = set->dfl_cgrp->kn->id;
		if (set->dfl_cgrp->level > 0)
			return id;
	}
	/* With version 1, containers are there; the unified hierarchy has only the root. */
	if (bpf_core_enum_value_exists(enum cgroup_subsys_id, memory_cgrp_id)) {
		u64 number = bpf_core_enum_value(enum cgroup_subsys_id, memory_cgrp_id);
		void *subsys = __builtin_preserve_access_index(&set->subsys);

		bpf_probe_read_kernel(&css, sizeof(css), subsys + number * sizeof(css));
		if (css && BPF_CORE_READ(css, cgroup, level) > 0)
			return BPF_CORE_READ(css, cgroup, kn, id);
	}
	return id;
}

static __always_inline void identify(struct cpu_sampler_thread *t, struct task_struct *task)
{
	t->start_ns = task->group_leader->start_boottime;
	t->exec_id = task->self_exec_id;
	t->tgid = task->tgid;
	t->tid = task->pid;
	bpf_get_current_comm(t->name, sizeof(t->name));
}

static __always_inline u64 hash_thread(const struct cpu_sampler_thread *t, bool offcpu)
{
	u64 hash = cpu_walk_mix(offcpu + 1, (u64)t->tgid << 32 | t->tid);

	hash = cpu_walk_mix(hash, t->start_ns);
	hash = cpu_walk_mix(hash, t->exec_id);
	hash = cpu_walk_mix(hash, *(const u64 *)t->name);
	return cpu_walk_mix(hash, *(const u64 *)(t->name + 8));
}

static __always_inline u32 take_kernel(void *ctx, struct cpu_sampler_stack *r, u64 skip)
{
	long n = bpf_get_stack(ctx, r->frames, CPU_SAMPLER_KERNEL_MAX * sizeof(u64), skip);

	return n > 0 ? ((u32)n >> 3) & KERNEL_MASK : 0;
}

/* Starts at w->pc. */
static __always_inline void take_user(struct cpu_walk *w, struct cpu_sampler_stack *r,
				      struct task_struct *task, u64 now)
{
	struct cpu_sampler_process *p = find_process(&r->thread, task, true, w->pc, now);

	if (p) {
		w->first = p->first;
		w->n = p->n;
		w->keeps_fp = p->keeps_fp;
		if (p->interp.kind)
			interp_begin(w, &p->interp, task);
	}
	w->exact = 1;
	w->end = CPU_SAMPLER_END_TRUNCATED;
	bpf_loop(CPU_SAMPLER_FRAMES_MAX, walk_loop, w, 0);
	ask(w, &r->thread, p, now);
	interp_end(w);
}

static __always_inline bool has_user_stack(struct task_struct *task)
{
	struct mm_struct *mm = task->mm;

	/* During exec there is no code yet, and the registers are those of the old program. */
	return mm && mm->start_code && !(task->flags & (PF_KTHREAD | PF_IO_WORKER));
}

/* By the time user space looks, those in between have exited. */
static __always_inline u32 elder_of(struct task_struct *task)
{
	u64 now = bpf_ktime_get_boot_ns();

	for (int i = 0; i < CPU_SAMPLER_ELDERS_MAX; i++) {
		task = task->real_parent->group_leader;
		if (!task->tgid || now - task->start_boottime >= CPU_SAMPLER_ELDER_NS)
			return task->tgid;
	}
	return 0;
}

static __always_inline void complete(struct cpu_sampler_stack *r, struct task_struct *task)
{
	r->elder = elder_of(task);
	r->cgroup = cgroup_of(task);
	r->uid = task->real_cred->uid.val;
	BPF_CORE_READ_INTO(&r->comm, task, group_leader, comm);
}

/* False if it could not be sent. */
static __always_inline bool send_stack(struct cpu_sampler_stack *r, struct task_struct *task,
				       u64 now)
{
	u64 size = __builtin_offsetof(struct cpu_sampler_stack, frames);
	u64 flags = BPF_RB_NO_WAKEUP;

	complete(r, task);
	size += ((r->n_kernel & KERNEL_MASK) + (r->n_user & FRAMES_MASK) +
		 INTERP_WORDS * (r->n_interp & FRAMES_MASK)) *
		sizeof(u64);
	/* Do not wake user space between drains unless the buffer fills up, */
	if (bpf_ringbuf_query(&stacks, BPF_RB_AVAIL_DATA) > stacks_bytes / 2)
		flags = BPF_RB_FORCE_WAKEUP;
	/* or for names that vanish with their process. */
	if (r->n_interp && now - interp_woken_ns > INTERP_WAKE_NS) {
		interp_woken_ns = now;
		flags = BPF_RB_FORCE_WAKEUP;
	}
	if (!bpf_ringbuf_output(&stacks, r, size, flags))
		return true;
	__sync_fetch_and_add(&n_lost_ring, 1);
	return false;
}

static __always_inline void count_end(const struct cpu_sampler_stack *r)
{
	u32 end = cpu_sampler_stack_end(r);

	if (end < CPU_SAMPLER_END_N)
		__sync_fetch_and_add(&n_ends[end], 1);
}

/* True if it is new. */
static __always_inline bool add_counts(void *map, u64 hash, u64 count, u64 ns)
{
	struct cpu_sampler_counts fresh = {.count = count, .ns = ns}, *c;

	/* Mostly it is. */
	if (!bpf_map_update_elem(map, &hash, &fresh, BPF_NOEXIST))
		return true;
	c = bpf_map_lookup_elem(map, &hash);
	if (!c) {
		__sync_fetch_and_add(&n_lost_table, count);
		return false;
	}
	__sync_fetch_and_add(&c->count, count);
	__sync_fetch_and_add(&c->ns, ns);
	return false;
}

static __always_inline void finish(struct cpu_walk *w, struct cpu_sampler_stack *r)
{
	__sync_fetch_and_add(&n_samples, 1);
	r->n_kernel = w->n_kernel;
	r->n_user = w->n_user;
	r->n_interp = w->n_interp;
	r->interp = w->interp;
	r->interp_cut = w->interp_cut;
	r->end = w->end;
	r->hash = cpu_walk_mix(w->hash, w->end);
}

/*
 * Copies the stack from its pointer up to its start at exec, or as much as fits. Blocks do not
 * cross pages, so each is read whole or not at all.
 */
static __always_inline u32 copy_blocks(struct cpu_sampler_copy *c, u64 top)
{
	u32 n = 0;

	c->start = c->regs[CPU_SAMPLER_SP] & ~(u64)(CPU_SAMPLER_COPY_BLOCK - 1);
	for (u32 i = 0; i < CPU_SAMPLER_COPY_BLOCKS; i++) {
		u64 at = c->start + i * CPU_SAMPLER_COPY_BLOCK;

		/* The top is known for the main thread only. */
		if (top - c->start < STACK_MAX_BYTES && at > top)
			break;
		if (bpf_probe_read_user(c->bytes + i * CPU_SAMPLER_COPY_BLOCK,
					CPU_SAMPLER_COPY_BLOCK, (void *)at))
			break;
		n = (i + 1) * CPU_SAMPLER_COPY_BLOCK;
	}
	return n;
}

/*
 * Sends a copy for user space to walk once it knows the code; true if sent. One sample only: which
 * others are equal is not known yet.
 */
static __always_inline bool send_copy(struct cpu_sampler_copy *c, struct task_struct *task, u64 now)
{
	u64 flags = BPF_RB_NO_WAKEUP, size, hash = c->stack.hash;
	struct mm_struct *mm = task->mm;

	if (c->stack.end != CPU_SAMPLER_END_NOT_LOADED || !mm || (task->flags & PF_EXITING))
		return false;
	c->n_bytes = copy_blocks(c, c->start_stack);
	c->start_code = mm->start_code;
	c->parent = task->flags & PF_FORKNOEXEC ? task->real_parent->tgid : 0;
	c->stack.hash = cpu_walk_mix(hash, now);
	complete(&c->stack, task);
	if (bpf_ringbuf_query(&copies, BPF_RB_AVAIL_DATA) > copies_bytes / 2)
		flags = BPF_RB_FORCE_WAKEUP;
	size = c->n_bytes;
	barrier_var(size);
	if (size <= sizeof(c->bytes)) {
		size += __builtin_offsetof(struct cpu_sampler_copy, bytes);
		if (!bpf_ringbuf_output(&copies, c, size, flags))
			return true;
	}
	c->stack.hash = hash;
	return false;
}

static __always_inline u64 hash_kernel(const struct cpu_sampler_stack *r, u64 hash, u32 n)
{
	for (u32 i = 0; i < CPU_SAMPLER_KERNEL_MAX; i++) {
		if (i >= n)
			break;
		hash = cpu_walk_mix(hash, r->frames[i]);
	}
	return hash;
}

static __always_inline void regs_of_task(struct cpu_sampler_copy *s, struct cpu_walk *w,
					 u64 *ret_mode, struct task_struct *task)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);

	TASK_COPY(s->regs, regs);
	w->pc = TASK_PC(regs);
	*ret_mode = TASK_MODE(regs);
}

static __always_inline void walk_user(struct cpu_walk *w, struct cpu_sampler_copy *s,
				      struct task_struct *task, u64 mode, u64 now)
{
	struct mm_struct *mm = task->mm;

	s->pc = w->pc;
	s->start_stack = mm ? mm->start_stack : 0;
	s->self = TASK_SELF(task);
	w->fp = s->regs[CPU_SAMPLER_FP];
	w->sp = s->regs[CPU_SAMPLER_SP];
	if (MODE_IS_32BIT(mode)) {
		w->end = CPU_SAMPLER_END_32BIT;
		/* So that it is identified while it is alive. */
		find_process(&s->stack.thread, task, true, w->pc, now);
	} else if (w->pc) {
		take_user(w, &s->stack, task, now);
	}
}

SEC("perf_event")
int on_sample(struct bpf_perf_event_data *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u32 record = bpf_get_smp_processor_id(), parity;
	struct cpu_walk w = {.record = record};
	struct cpu_sampler_copy *s;
	void *map;
	u64 mode, hash, now = bpf_ktime_get_ns();
	u32 now_epoch = epoch;

	if (!task->pid || (only_tgid && (u32)task->tgid != only_tgid))
		return 0;
	s = bpf_map_lookup_elem(&scratches, &record);
	if (!s)
		return 0;
	mode = REGS_MODE(&ctx->regs);
	w.pc = REGS_PC(&ctx->regs);
	REGS_COPY(s->regs, &ctx->regs);
	s->stack.offcpu = 0;
	s->stack.epoch = now_epoch;
	identify(&s->stack.thread, task);
	if (want_kernel && !MODE_IS_USER(mode))
		w.n_kernel = take_kernel(ctx, &s->stack, 0);
	w.hash = hash_kernel(&s->stack, hash_thread(&s->stack.thread, false), w.n_kernel);
	if (has_user_stack(task)) {
		if (!MODE_IS_USER(mode))
			regs_of_task(s, &w, &mode, task);
		walk_user(&w, s, task, mode, now);
	} else {
		find_process(&s->stack.thread, task, false, 0, now);
	}
	finish(&w, &s->stack);

	parity = now_epoch & 1;
	map = bpf_map_lookup_elem(&counts, &parity);
	if (!map)
		return 0;
	if (send_copy(s, task, now)) {
		add_counts(map, s->stack.hash, 1, 0);
		return 0;
	}
	count_end(&s->stack);
	hash = s->stack.hash;
	/*
	 * A stack not yet counted in this interval has not been sent either. Nobody else counts it
	 * meanwhile: it is this thread's.
	 */
	if (add_counts(map, hash, 1, 0) && !send_stack(&s->stack, task, now))
		bpf_map_delete_elem(map, &hash);
	return 0;
}

/* The stack of the current thread, which is about to sleep; 0 if it is lost. */
static __always_inline u64 take_wait(void *ctx, struct task_struct *task, u64 now)
{
	u32 one = 1, record = n_cpus + bpf_get_smp_processor_id();
	struct cpu_walk w = {.slot = 1, .record = record};
	struct cpu_sampler_copy *s = bpf_map_lookup_elem(&scratches, &record);
	u64 mode, hash;

	if (!s)
		return 0;
	s->stack.offcpu = 1;
	s->stack.epoch = 0;
	identify(&s->stack.thread, task);
	if (want_kernel)
		w.n_kernel = take_kernel(ctx, &s->stack, WAIT_OWN_FRAMES);
	w.hash = hash_kernel(&s->stack, hash_thread(&s->stack.thread, true), w.n_kernel);
	regs_of_task(s, &w, &mode, task);
	walk_user(&w, s, task, mode, now);
	finish(&w, &s->stack);
	count_end(&s->stack);
	hash = s->stack.hash;
	if (bpf_map_lookup_elem(&sent, &hash))
		return hash;
	if (!send_stack(&s->stack, task, now))
		return 0;
	bpf_map_update_elem(&sent, &hash, &one, BPF_ANY);
	return hash;
}

static __always_inline void wait_begins(void *ctx, struct task_struct *task, u64 now)
{
	struct cpu_sampler_wait fresh = {.weight = 1}, *wait;
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
	struct cpu_sampler_wait *wait = bpf_map_lookup_elem(&waits, &tid);
	u32 parity = epoch & 1;
	u64 waited;
	void *map;

	if (!wait || !wait->out_ns)
		return;
	waited = now - wait->out_ns;
	wait->out_ns = 0;
	if (waited < offcpu_min_ns) {
		if (wait->hash && wait->weight < CPU_SAMPLER_WEIGHT_MAX)
			wait->weight *= 2;
		return;
	}
	/* If it was missed, look again sooner. */
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

/*
 * Waking user space would take many times what the rest takes. It reads this with the next notice
 * that wakes it, or the next time it looks by itself. In a storm it is woken when half of the room
 * is used, and not by each one after that.
 */
static __always_inline u64 change_flags(void)
{
	u64 used = bpf_ringbuf_query(&notices, BPF_RB_AVAIL_DATA);

	return used - CPU_SAMPLER_NOTICES_BYTES / 2 < CPU_SAMPLER_NOTICES_BYTES / 128
		       ? BPF_RB_FORCE_WAKEUP
		       : BPF_RB_NO_WAKEUP;
}

static __always_inline void process_changed(struct task_struct *task, u32 kind)
{
	struct cpu_sampler_thread t;
	u32 tgid = task->tgid;
	struct cpu_sampler_process *p = bpf_map_lookup_elem(&processes, &tgid);
	bool was_known = p;

	/* The new program may have been sampled before its exec is reported: keep that one. */
	if (p && (kind == CPU_SAMPLER_NOTICE_EXIT || p->exec_id != task->self_exec_id))
		bpf_map_delete_elem(&processes, &tgid);
	if (!was_known && !want_events)
		return;
	identify(&t, task);
	send_notice(kind, &t, 0, change_flags());
}

/* Arguments: task, its pid before, the program. */
SEC("tp_btf/sched_process_exec")
int on_exec(u64 *ctx)
{
	process_changed((struct task_struct *)ctx[0], CPU_SAMPLER_NOTICE_EXEC);
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
		process_changed(task, CPU_SAMPLER_NOTICE_EXIT);
	return 0;
}
