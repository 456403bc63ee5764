/* src/cpu/sampler/sampler.c: opens and closes the sampler. */
#include "cpu/sampler/sampler.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <bpf/sampler_bpf.skel.h> /* made by bpftool */

#include "bpf/events.h"
#include "bpf/rings.h"
#include "bpf/skeleton.h"
#include "cpu/sampler/state.h"
#include "proc/host.h"

#define COUNTS_MIN 16384U
#define COUNTS_MAX 262144U
#define COUNTS_SECONDS 16U /* of distinct stacks */
#define RING_MIN (512U << 10)
#define RING_MAX (16U << 20)
#define RING_PER_CPU (64U << 10)
/* Processes come and go by the CPU, and are kept until the next drain. */
#define MAPPINGS_PER_CPU 4096U
#define MAPPINGS_MAX (4 * CPU_SAMPLER_MAPPINGS)
/* Copies are larger than stacks. */
#define COPIES_TIMES 2U
#define LAYOUTS_BYTES (INTERP_LAYOUTS * sizeof(struct interp_layout))

static const struct bpf_need needs_loops = {.what = "CPU profiles",
					    .type = BPF_PROG_TYPE_PERF_EVENT,
					    .helper = BPF_FUNC_loop,
					    .name = "bpf_loop()",
					    .since = "5.17"};

static uint32_t clamp(uint64_t value, uint32_t lo, uint32_t hi)
{
	return (uint32_t)(value < lo ? lo : value > hi ? hi : value);
}

static int size_maps(struct cpu_sampler *s, uint32_t n_cpus)
{
	struct sampler_bpf *b = s->bpf;
	uint64_t hz = s->options.hz ? s->options.hz : 100;
	uint32_t counts = clamp(n_cpus * hz * COUNTS_SECONDS, COUNTS_MIN, COUNTS_MAX);
	uint32_t wanted = clamp((uint64_t)n_cpus * RING_PER_CPU, RING_MIN, RING_MAX),
		 ring = RING_MIN;
	uint32_t scratches = s->options.offcpu_min_ns ? 2 * n_cpus : n_cpus;
	int r;

	while (ring < wanted)
		ring *= 2;
	s->n_mappings =
		clamp((uint64_t)n_cpus * MAPPINGS_PER_CPU, CPU_SAMPLER_MAPPINGS, MAPPINGS_MAX);
	b->rodata->n_cpus = n_cpus;
	b->rodata->stacks_bytes = ring;
	b->rodata->copies_bytes = COPIES_TIMES * ring;
	r = bpf_map__set_max_entries(b->maps.counts_a, counts);
	r = r ?: bpf_map__set_max_entries(b->maps.counts_b, counts);
	r = r ?: bpf_map__set_max_entries(b->maps.stacks, ring);
	r = r ?: bpf_map__set_max_entries(b->maps.copies, COPIES_TIMES * ring);
	r = r ?: bpf_map__set_max_entries(b->maps.scratches, scratches);
	r = r ?: bpf_map__set_max_entries(b->maps.mappings, s->n_mappings);
	if (!s->options.offcpu_min_ns) {
		r = r ?: bpf_map__set_max_entries(b->maps.waits, 1);
		r = r ?: bpf_map__set_max_entries(b->maps.sent, 1);
	}
	return r;
}

static int sampler_load(struct cpu_sampler *s, struct err *err)
{
	const struct cpu_sampler_options *o = &s->options;
	int n_cpus, r;

#if !defined(__x86_64__)
	return err_lack(err, -ENOTSUP, ERR_CAUSE_MACHINE, "",
			"CPU profiles are supported on x86-64 only");
#endif
	r = bpf_skeleton_open(sampler_bpf, &s->bpf, err);
	if (r == 0)
		r = proc_host_check_pids(err);
	if (r < 0)
		return r;
	n_cpus = libbpf_num_possible_cpus();
	if (n_cpus < 0)
		return err_set(err, n_cpus, "cannot count CPUs: %s", strerror(-n_cpus));
	s->bpf->rodata->only_tgid = (uint32_t)o->pid;
	s->bpf->rodata->want_kernel = o->kernel;
	s->bpf->rodata->want_events = o->events;
	s->bpf->rodata->offcpu_min_ns = o->offcpu_min_ns;
	bpf_program__set_autoload(s->bpf->progs.on_sample, o->hz > 0);
	bpf_program__set_autoload(s->bpf->progs.on_switch, o->offcpu_min_ns > 0);
	r = size_maps(s, (uint32_t)n_cpus);
	if (r < 0)
		return err_set(err, r, "cannot size BPF maps: %s", strerror(-r));
	return bpf_skeleton_load(s->bpf->skeleton, &needs_loops, err);
}

static int sampler_share(struct cpu_sampler *s, struct err *err)
{
	struct cpu_process_tables tables;
	int r;

	s->rules = bpf_skeleton_map(s->bpf->maps.rules, CPU_SAMPLER_RULES * sizeof(*s->rules));
	s->shared_files =
		bpf_skeleton_map(s->bpf->maps.files, CPU_SAMPLER_FILES * sizeof(*s->shared_files));
	s->mappings = bpf_skeleton_map(s->bpf->maps.mappings, s->n_mappings * sizeof(*s->mappings));
	s->layouts.rows = bpf_skeleton_map(s->bpf->maps.interp_layouts, LAYOUTS_BYTES);
	if (!s->rules || !s->shared_files || !s->mappings || !s->layouts.rows)
		return err_set(err, -errno, "cannot map BPF tables: %m");
	tables = (struct cpu_process_tables){.mappings = s->mappings,
					     .n_mappings = s->n_mappings,
					     .fd = bpf_map__fd(s->bpf->maps.processes)};
	s->pause = (struct cpu_pause){.call = cpu_sampler_on_pause, .context = s};
	r = cpu_tables_new(s->rules, bpf_map__fd(s->bpf->maps.chunks), &s->tables, err);
	if (r >= 0)
		r = cpu_files_new(s->shared_files, s->tables, &s->layouts, &s->files, err);
	if (r >= 0)
		cpu_files_on_close(s->files, cpu_sampler_on_close, s);
	if (r >= 0)
		r = cpu_processes_new(&tables, s->files, &s->layouts, &s->subuids, &s->processes,
				      err);
	return r;
}

static int sampler_listen(struct cpu_sampler *s, struct err *err)
{
	int r = bpf_rings_new(&s->rings, err);

	/* In the order of their ids. */
	if (r == 0)
		r = bpf_rings_add(s->rings, s->bpf->maps.notices, cpu_sampler_on_notice, s, err);
	if (r == 0)
		r = bpf_rings_add(s->rings, s->bpf->maps.stacks, cpu_sampler_on_stack, s, err);
	if (r == 0)
		r = bpf_rings_add(s->rings, s->bpf->maps.copies, cpu_sampler_on_copy, s, err);
	return r;
}

static int sampler_open_events(struct cpu_sampler *s, struct err *err)
{
	const struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.freq = 1,
		.sample_freq = s->options.hz,
		.exclude_idle = 1,
	};

	return bpf_events_open(s->bpf->progs.on_sample, &attr, &s->events, err);
}

/* Exits and execs first: they remove what samples add to the tables. */
static int sampler_attach(struct cpu_sampler *s, struct err *err)
{
	struct sampler_bpf *b = s->bpf;
	int r;

	r = bpf_skeleton_attach(b->progs.on_exit, "sched_process_exit", &b->links.on_exit, err);
	if (r == 0)
		r = bpf_skeleton_attach(b->progs.on_exec, "sched_process_exec", &b->links.on_exec,
					err);
	if (r == 0 && s->options.offcpu_min_ns)
		r = bpf_skeleton_attach(b->progs.on_switch, "sched_switch", &b->links.on_switch,
					err);
	if (r == 0 && s->options.hz)
		r = sampler_open_events(s, err);
	return r;
}

int cpu_sampler_open(const struct cpu_sampler_options *options, struct cpu_sampler **ret_sampler,
		     struct err *err)
{
	_cleanup_(cpu_sampler_closep) struct cpu_sampler *s = NULL;
	int r;

	_Static_assert((int)CPU_SAMPLER_END_N == (int)CPU_STACK_N &&
			       (int)CPU_SAMPLER_END_NOT_LOADED == (int)CPU_STACK_NOT_LOADED,
		       "ends are those of BPF");
	_Static_assert(CPU_STACK_MAX == CPU_SAMPLER_FRAMES_MAX &&
			       CPU_STACK_KERNEL_MAX == CPU_SAMPLER_KERNEL_MAX,
		       "depth is that of BPF");
	s = calloc(1, sizeof(*s));
	if (!s)
		return err_oom(err);
	s->options = *options;
	proc_subuids_read(&s->subuids, options->subuid_path ?: PROC_SUBUID_PATH,
			  PROC_SUBUID_PASSWD_PATH);
	r = sampler_load(s, err);
	if (r >= 0)
		r = sampler_share(s, err);
	if (r >= 0)
		r = sampler_listen(s, err);
	/* Loading its tables may take a while: do it before the first sample. */
	if (r >= 0 && options->pid)
		r = cpu_processes_warm(s->processes, options->pid, err);
	if (r >= 0)
		r = sampler_attach(s, err);
	if (r < 0)
		return r;
	*ret_sampler = TAKE_PTR(s);
	return 0;
}

void cpu_sampler_close(struct cpu_sampler *s)
{
	if (!s)
		return;
	s->on_event = NULL;
	bpf_events_close(s->events);
	cpu_processes_free(s->processes);
	cpu_files_free(s->files);
	cpu_tables_free(s->tables);
	bpf_rings_free(s->rings);
	if (s->rules)
		munmap(s->rules, CPU_SAMPLER_RULES * sizeof(*s->rules));
	if (s->shared_files)
		munmap(s->shared_files, CPU_SAMPLER_FILES * sizeof(*s->shared_files));
	if (s->mappings)
		munmap(s->mappings, s->n_mappings * sizeof(*s->mappings));
	if (s->layouts.rows)
		munmap(s->layouts.rows, LAYOUTS_BYTES);
	sampler_bpf__destroy(s->bpf);
	for (size_t i = 0; i < ARRAY_SIZE(s->running); i++)
		cpu_stacks_clear(&s->running[i]);
	cpu_stacks_clear(&s->waiting);
	free(s);
}

bool cpu_sampler_is_current(const struct cpu_sampler *s, const struct cpu_process *process)
{
	return cpu_processes_is_current(s->processes, process);
}

void cpu_sampler_losses(const struct cpu_sampler *s, struct cpu_losses *ret)
{
	const volatile __typeof__(*s->bpf->bss) *b = s->bpf->bss;

	*ret = (struct cpu_losses){
		.samples = b->n_samples,
		.lost_ring = b->n_lost_ring + s->lost_stacks,
		.lost_table = b->n_lost_table,
		.lost_files = cpu_files_lost(s->files) + cpu_processes_lost(s->processes),
	};
	for (size_t i = 0; i < CPU_STACK_N; i++)
		ret->ends[i] = b->n_ends[i] + s->copy_ends[i];
}
