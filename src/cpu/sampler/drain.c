/* src/cpu/sampler/drain.c: hands out the stacks of an interval. */
#include <errno.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <bpf/sampler_bpf.skel.h> /* made by bpftool */

#include "base/clock.h"
#include "bpf/events.h"
#include "cpu/sampler/state.h"

/* Above this, off-CPU stacks are dropped, and sent again as they recur. */
#define WAITING_MAX_BYTES ((size_t)16 << 20)

static void resolve_frame(const struct cpu_sampler *s, const struct cpu_stack_record *record,
			  const struct cpu_process *process, uint64_t sent, struct cpu_frame *ret)
{
	uint64_t id = sent >> CPU_SAMPLER_FRAME_FILE_SHIFT, vaddr;
	uint32_t file;

	*ret = (struct cpu_frame){.address = sent & CPU_SAMPLER_FRAME_ADDRESS,
				  .is_return = !(sent & CPU_SAMPLER_FRAME_EXACT)};
	if (cpu_stacks_is_interp(sent)) {
		ret->is_interp = true;
		return;
	}
	if (id) {
		ret->file = cpu_files_get(s->files, (uint32_t)(id - 1), record->generation);
		return;
	}
	/* Sampled before its mappings were known; they may be known now. */
	file = cpu_processes_resolve(s->processes, process, ret->address - ret->is_return, &vaddr);
	if (file == CPU_FILE_NONE)
		return;
	ret->file = cpu_files_get(s->files, file, UINT32_MAX);
	ret->address = vaddr + ret->is_return;
}

static int emit_stack(struct cpu_sampler *s, const struct cpu_stack_record *record,
		      const struct cpu_sampler_counts *counts,
		      int (*emit)(void *context, const struct cpu_stack *stack), void *context)
{
	const struct cpu_sampler_stack *sent = record->stack;
	struct cpu_process *process = cpu_processes_get(s->processes, &sent->thread);
	struct cpu_stack stack = {
		.process = process,
		.tid = (pid_t)sent->thread.tid,
		.offcpu = sent->offcpu,
		.end = sent->end,
		.count = counts->count,
		.value_ns = counts->ns,
		.n_kernel = sent->n_kernel,
		.n_user = sent->n_user,
		.kernel = s->kernel,
		.user = s->frames,
		.interp_kind = sent->interp,
		.n_interp = sent->n_interp,
		.interp_cut = sent->interp_cut,
		.interp = s->interp,
	};

	if (!process)
		return -ENOMEM;
	memcpy(process->comm, sent->comm, sizeof(process->comm));
	process->cgroup = sent->cgroup;
	process->elder = (pid_t)sent->elder;
	cpu_processes_set_uid(s->processes, process, sent->uid);
	memcpy(stack.thread, sent->thread.name, sizeof(stack.thread));
	if (!sent->offcpu)
		stack.value_ns = counts->count * (NS_PER_SEC / s->options.hz);
	for (size_t i = 0; i < sent->n_kernel; i++)
		s->kernel[i] = sent->frames[i];
	(void)cpu_stacks_split(sent, s->user, s->interp);
	for (size_t i = 0; i < sent->n_user; i++)
		resolve_frame(s, record, process, s->user[i], &s->frames[i]);
	return emit(context, &stack);
}

static int emit_hash(struct cpu_sampler *s, uint32_t parity, uint64_t hash,
		     const struct cpu_sampler_counts *counts,
		     int (*emit)(void *context, const struct cpu_stack *stack), void *context)
{
	const struct cpu_stack_record *record = cpu_stacks_find(&s->running[parity], hash);

	if (!record)
		record = cpu_stacks_find(&s->waiting, hash);
	if (record)
		return emit_stack(s, record, counts, emit, context);
	s->lost_stacks += counts->count;
	/* Makes BPF send it again, if it is an off-CPU stack. */
	(void)bpf_map_delete_elem(bpf_map__fd(s->bpf->maps.sent), &hash);
	return 0;
}

/* Empties the table of counts. If emit fails, the rest is emptied without emitting. */
static int drain_counts(struct cpu_sampler *s, uint32_t parity,
			int (*emit)(void *context, const struct cpu_stack *stack), void *context,
			struct err *err)
{
	int fd = bpf_map__fd(parity ? s->bpf->maps.counts_b : s->bpf->maps.counts_a);
	uint32_t from, to;
	void *start = NULL;
	int code = 0, r;

	do {
		uint32_t n = ARRAY_SIZE(s->keys);

		r = bpf_map_lookup_and_delete_batch(fd, start, &to, s->keys, s->counts, &n, NULL);
		if (r < 0 && errno != ENOENT)
			return err_set(err, -errno, "cannot read stack counts: %m");
		for (uint32_t i = 0; i < n && code >= 0; i++) {
			code = emit_hash(s, parity, s->keys[i], &s->counts[i], emit, context);
			/*
			 * Symbolizing a frame may take long, and processes with pending notices may
			 * exit.
			 */
			if (code >= 0)
				code = cpu_sampler_consume(s, err);
		}
		from = to;
		start = &from;
	} while (r >= 0);
	return code;
}

/* Makes BPF count in the other table. Returns once no program uses the old one. */
static int swap_counts(struct cpu_sampler *s, struct err *err)
{
	uint32_t epoch = s->bpf->bss->epoch + 1, parity = epoch & 1;
	int fd = bpf_map__fd(parity ? s->bpf->maps.counts_b : s->bpf->maps.counts_a);

	__atomic_store_n(&s->bpf->bss->epoch, epoch, __ATOMIC_SEQ_CST);
	/* Changes nothing, but the kernel waits for running programs before it returns. */
	if (bpf_map_update_elem(bpf_map__fd(s->bpf->maps.counts), &parity, &fd, 0) < 0)
		return err_set(err, -errno, "cannot swap the tables of stack counts: %m");
	return 0;
}

static void forget_waits(struct cpu_sampler *s)
{
	int fd = bpf_map__fd(s->bpf->maps.sent);
	uint64_t key;

	for (uint32_t i = 0; i < CPU_SAMPLER_SENT && !bpf_map_get_next_key(fd, NULL, &key); i++)
		(void)bpf_map_delete_elem(fd, &key);
	cpu_stacks_clear(&s->waiting);
}

int cpu_sampler_drain(struct cpu_sampler *s,
		      int (*emit)(void *context, const struct cpu_stack *stack), void *context,
		      struct err *err)
{
	uint32_t parity = s->bpf->bss->epoch & 1;
	uint64_t lost;
	int r;

	cpu_sampler_set_urgent(s, false);
	cpu_processes_next_epoch(s->processes);
	r = swap_counts(s, err);
	if (r < 0)
		return r;
	r = cpu_sampler_consume(s, err);
	if (r < 0)
		return r;
	r = drain_counts(s, parity, emit, context, err);
	cpu_stacks_clear(&s->running[parity]);

	lost = __atomic_load_n(&s->bpf->bss->n_lost_notices, __ATOMIC_RELAXED);
	if (lost != s->lost_notices)
		cpu_processes_check(s->processes);
	s->lost_notices = lost;
	cpu_processes_sweep(s->processes, cpu_sampler_on_gone, s);
	cpu_files_sweep(s->files, clock_mono_ns());
	cpu_tables_unmap(s->tables);
	if (s->waiting.bytes.used > WAITING_MAX_BYTES)
		forget_waits(s);
	if (r < 0)
		return r;
	return s->events ? bpf_events_update(s->events, err) : 0;
}
