/* src/cpu/sampler/processes.c: see processes.h. */
#include "cpu/sampler/processes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "base/clock.h"
#include "base/hash.h"
#include "cpu/unwind/shares.h"
#include "proc/info.h"
#include "proc/maps.h"
#include "proc/stat.h"
#include "proc/status.h"

#define PROCESSES_BUCKETS 4096U
/* Allocation unit of the table of mappings. */
#define MAPPINGS_GRAIN 8U
/*
 * Pause between two reads of a process's mappings: longer if nothing has changed, and long enough
 * for reading to take at most half a percent of the time. A new process is still loading its
 * libraries, so the first reads may follow each other closely.
 */
#define WAIT_MIN_NS (2 * NS_PER_MS)
#define WAIT_FACTOR 200
#define WAIT_FACTOR_YOUNG 10
#define LOOKS_YOUNG 8
/* How often to look for the settings of a runtime. */
#define LOOKS_RUNTIME 32
#define WAIT_MAX_NS (10 * NS_PER_SEC)

struct process {
	struct cpu_process public; /* first, so that pointers convert */
	uint64_t exec_id;
	bool is_counted;     /* in the share of its owner */
	uid_t counted_owner; /* who that was */
	struct cpu_range mappings;
	uid_t mappings_owner; /* likewise */
	uint64_t fingerprint; /* of the mappings */
	uint32_t looks;	      /* reads of its mappings */
	bool keeps_fp;	      /* what it compiles at run time keeps frame pointers */
	bool knows_fp;	      /* and that will not change */
	uint64_t wait_ns;
	bool ended;
	uint32_t end_epoch;
	struct process *next; /* in its bucket */
};

/* Mappings BPF no longer finds, but that stacks not drained yet may refer to. */
struct retired {
	struct cpu_range mappings;
	uid_t owner;
	uint32_t epoch;
};

struct cpu_processes {
	struct cpu_sampler_mapping *mappings;
	int fd;
	struct cpu_files *files;
	struct interp_layouts *layouts;
	const struct proc_subuids *subuids;
	struct cpu_ranges grains;
	struct cpu_shares grain_shares;
	struct cpu_shares shares; /* of BPF's table of processes */
	struct process *buckets[PROCESSES_BUCKETS];
	size_t len;
	uint64_t generation;
	uint32_t epoch;
	uint64_t lost;
	struct retired *retired;
	size_t n_retired;
	size_t cap_retired;
};

int cpu_processes_new(const struct cpu_process_tables *tables, struct cpu_files *files,
		      struct interp_layouts *layouts, const struct proc_subuids *subuids,
		      struct cpu_processes **ret_processes, struct err *err)
{
	_cleanup_(cpu_processes_freep) struct cpu_processes *p = calloc(1, sizeof(*p));

	if (!p)
		return err_oom(err);
	p->mappings = tables->mappings;
	p->fd = tables->fd;
	p->files = files;
	p->layouts = layouts;
	p->subuids = subuids;
	p->shares.max = CPU_SAMPLER_PROCESSES;
	p->grain_shares.max = tables->n_mappings / MAPPINGS_GRAIN;
	if (cpu_ranges_give(&p->grains, 0, p->grain_shares.max) < 0)
		return err_oom(err);
	*ret_processes = TAKE_PTR(p);
	return 0;
}

static uint32_t mappings_grains(uint32_t n)
{
	return (n + MAPPINGS_GRAIN - 1) / MAPPINGS_GRAIN;
}

static void mappings_give(struct cpu_processes *p, struct cpu_range r, uid_t owner)
{
	if (!r.n)
		return;
	for (uint32_t i = 0; i < r.n; i++)
		cpu_files_unref(p->files, p->mappings[r.first + i].file);
	(void)cpu_ranges_give(&p->grains, r.first / MAPPINGS_GRAIN, mappings_grains(r.n));
	cpu_shares_give(&p->grain_shares, owner, mappings_grains(r.n));
}

void cpu_processes_free(struct cpu_processes *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < PROCESSES_BUCKETS; i++)
		for (struct process *at = p->buckets[i], *next; at; at = next) {
			next = at->next;
			mappings_give(p, at->mappings, at->mappings_owner);
			free(at);
		}
	for (size_t i = 0; i < p->n_retired; i++)
		mappings_give(p, p->retired[i].mappings, p->retired[i].owner);
	free(p->retired);
	cpu_ranges_release(&p->grains);
	free(p);
}

static struct process **processes_bucket(const struct cpu_processes *p, pid_t pid)
{
	return (struct process **)&p->buckets[hash_u64((uint64_t)pid) % PROCESSES_BUCKETS];
}

static struct process *processes_find(const struct cpu_processes *p,
				      const struct cpu_sampler_thread *thread)
{
	struct process *at = *processes_bucket(p, (pid_t)thread->tgid);

	while (at && (at->public.pid != (pid_t)thread->tgid || at->exec_id != thread->exec_id ||
		      at->public.start_ns != thread->start_ns))
		at = at->next;
	return at;
}

static struct process *processes_get(struct cpu_processes *p,
				     const struct cpu_sampler_thread *thread)
{
	struct process **bucket, *process = processes_find(p, thread);

	if (process)
		return process;
	process = calloc(1, sizeof(*process));
	if (!process)
		return NULL;
	process->public.pid = (pid_t)thread->tgid;
	process->public.start_ns = thread->start_ns;
	process->public.uid = process->public.owner = PROC_UID_UNKNOWN;
	process->public.generation = ++p->generation;
	memcpy(process->public.comm, thread->name, sizeof(process->public.comm));
	process->exec_id = thread->exec_id;
	process->wait_ns = WAIT_MIN_NS;
	bucket = processes_bucket(p, process->public.pid);
	process->next = *bucket;
	*bucket = process;
	p->len++;
	return process;
}

static void process_end(struct cpu_processes *p, struct process *process)
{
	if (process->is_counted)
		cpu_shares_give(&p->shares, process->counted_owner, 1);
	process->is_counted = false;
	process->ended = true;
	process->end_epoch = p->epoch;
}

/* Whether it is in BPF's table, where only exec and exit remove it. */
static bool processes_is_shared(const struct cpu_processes *p,
				const struct cpu_sampler_thread *thread,
				struct cpu_sampler_process *ret)
{
	uint32_t tgid = thread->tgid;

	return bpf_map_lookup_elem(p->fd, &tgid, ret) == 0 && ret->start_ns == thread->start_ns &&
	       ret->exec_id == thread->exec_id;
}

bool cpu_processes_is_current(const struct cpu_processes *p, const struct cpu_process *public)
{
	const struct process *process = (const struct process *)public;
	const struct cpu_sampler_thread thread = {.tgid = (uint32_t) public->pid,
						  .start_ns = public->start_ns,
						  .exec_id = process->exec_id};
	struct cpu_sampler_process shared;

	return processes_is_shared(p, &thread, &shared);
}

struct cpu_process *cpu_processes_get(struct cpu_processes *p,
				      const struct cpu_sampler_thread *thread)
{
	struct process *process = processes_find(p, thread);
	struct cpu_sampler_process shared;

	if (process)
		return &process->public;
	process = processes_get(p, thread);
	if (!process)
		return NULL;
	if (!processes_is_shared(p, thread, &shared))
		process_end(p, process);
	return &process->public;
}

static void processes_retire(struct cpu_processes *p, struct process *process)
{
	struct cpu_range r = process->mappings;

	process->mappings = (struct cpu_range){0};
	if (!r.n)
		return;
	if (p->n_retired == p->cap_retired) {
		size_t cap = p->cap_retired ? p->cap_retired * 2 : 64;
		struct retired *grown = realloc(p->retired, cap * sizeof(*grown));

		if (!grown)
			return; /* leaked: better than reused while BPF reads it */
		p->retired = grown;
		p->cap_retired = cap;
	}
	p->retired[p->n_retired++] = (struct retired){
		.mappings = r, .owner = process->mappings_owner, .epoch = p->epoch};
}

static void process_set_mappings(struct process *process, struct cpu_range mappings, uid_t owner)
{
	process->mappings = mappings;
	process->mappings_owner = owner;
}

static bool map_is_code(const struct proc_map *map)
{
	return (map->flags & PROC_MAP_EXEC) && strcmp(map->path, "[vsyscall]") != 0;
}

static uid_t process_uid(pid_t pid)
{
	struct proc_status status;

	return proc_status_read(pid, &status, NULL) == 0 ? status.uid : PROC_UID_UNKNOWN;
}

void cpu_processes_set_uid(const struct cpu_processes *p, struct cpu_process *process, uid_t uid)
{
	if (process->uid == uid)
		return;
	process->uid = uid;
	process->owner = proc_subuids_owner(p->subuids, uid);
}

/* In BPF's table, where it has a place already. */
static bool processes_have_room(const struct cpu_processes *p,
				const struct cpu_sampler_thread *thread, uid_t owner)
{
	const struct process *known = processes_find(p, thread);

	return (known && known->is_counted) || cpu_shares_allow(&p->shares, owner, 1);
}

/* BPF has it, perhaps again. */
static void processes_count(struct cpu_processes *p, struct process *process)
{
	if (process->is_counted)
		return;
	process->ended = false;
	process->is_counted = true;
	process->counted_owner = process->public.owner;
	cpu_shares_take(&p->shares, process->counted_owner, 1);
}

/* Fills the range with as many mappings as fit; sets its n to the number needed. */
static void processes_fill(struct cpu_processes *p, pid_t pid, uid_t owner,
			   const struct proc_maps *maps, struct cpu_range *range)
{
	uint32_t n = 0;

	for (size_t i = 0; i < maps->len; i++) {
		const struct proc_map *map = &maps->maps[i];
		struct cpu_sampler_mapping *m = &p->mappings[range->first + n];
		const struct cpu_file *opened;
		uint32_t file;
		uint64_t bias;

		if (!map_is_code(map))
			continue;
		if (n == range->n) {
			p->lost++;
			continue;
		}
		if (cpu_files_open(p->files, pid, owner, map, &file, &bias) < 0)
			continue;
		opened = cpu_files_get(p->files, file, UINT32_MAX);
		*m = (struct cpu_sampler_mapping){.start = map->start,
						  .end = map->end,
						  .bias = bias,
						  .file = file,
						  .generation = opened ? opened->generation : 0};
		n++;
	}
	range->n = n;
}

/* Takes room for n, or for as many as their owner may have; returns for how many. */
static uint32_t mappings_take(struct cpu_processes *p, uid_t owner, uint32_t n, uint32_t *ret_first)
{
	uint32_t grains = mappings_grains(n);

	while (grains && (!cpu_shares_allow(&p->grain_shares, owner, grains) ||
			  cpu_ranges_take(&p->grains, grains, 0, ret_first) < 0))
		grains /= 2;
	cpu_shares_take(&p->grain_shares, owner, grains);
	*ret_first *= MAPPINGS_GRAIN;
	return MIN(n, grains * MAPPINGS_GRAIN);
}

/* Without room it has no mappings: asking again at once would not help. */
static int processes_lay_out(struct cpu_processes *p, pid_t pid, uid_t owner,
			     const struct proc_maps *maps, struct cpu_range *ret)
{
	struct cpu_range range = {0};
	uint32_t n = 0, taken, kept;

	for (size_t i = 0; i < maps->len; i++)
		n += map_is_code(&maps->maps[i]);
	if (!n)
		return -ESRCH; /* running without code: it is exiting */
	range.n = mappings_take(p, owner, MIN(n, CPU_SAMPLER_MAPPINGS_PER_PROCESS), &range.first);
	taken = mappings_grains(range.n);
	processes_fill(p, pid, owner, maps, &range);
	kept = mappings_grains(range.n);
	if (kept < taken) {
		(void)cpu_ranges_give(&p->grains, range.first / MAPPINGS_GRAIN + kept,
				      taken - kept);
		cpu_shares_give(&p->grain_shares, owner, taken - kept);
	}
	*ret = range;
	return 0;
}

static uint64_t fingerprint(const struct cpu_processes *p, struct cpu_range r)
{
	return hash_bytes(&p->mappings[r.first], r.n * sizeof(p->mappings[0]));
}

static void process_find_interp(const struct cpu_processes *p, struct process *process)
{
	const struct cpu_sampler_mapping *m = &p->mappings[process->mappings.first];

	process->public.interp = (struct interp){.kind = INTERP_NONE};
	for (uint32_t i = 0; i < process->mappings.n; i++, m++) {
		const struct cpu_file *file = cpu_files_get(p->files, m->file, UINT32_MAX);

		if (!file || file->interp.kind == INTERP_NONE)
			continue;
		interp_locate(p->layouts, &file->interp, m->bias, process->public.pid,
			      &process->public.interp);
		return;
	}
}

/* A runtime may still be starting: ask again with the next mappings, but not forever. */
static void process_find_runtime(const struct cpu_processes *p, struct process *process)
{
	const struct cpu_sampler_mapping *m = &p->mappings[process->mappings.first];

	for (uint32_t i = 0; !process->knows_fp && i < process->mappings.n; i++, m++) {
		const struct cpu_file *file = cpu_files_get(p->files, m->file, UINT32_MAX);

		if (!file || file->runtime.kind == CPU_RUNTIME_NONE)
			continue;
		process->knows_fp = cpu_runtime_keeps_fp(&file->runtime, process->public.pid,
							 m->bias, &process->keeps_fp) == 0 ||
				    process->looks > LOOKS_RUNTIME;
		return;
	}
}

/* Makes them visible to BPF, replacing the old ones. */
static int processes_publish(struct cpu_processes *p, const struct process *process,
			     struct cpu_sampler_process *shared)
{
	uint32_t tgid = (uint32_t)process->public.pid;

	shared->asked_ns = 0;
	shared->loaded_ns = clock_mono_ns();
	shared->wait_ns = process->wait_ns;
	shared->interp = (struct interp_process){.kind = process->public.interp.kind,
						 .layout = process->public.interp.row};
	memcpy(shared->interp.addresses, process->public.interp.addresses,
	       sizeof(shared->interp.addresses));
	shared->first = process->mappings.first;
	shared->n = process->mappings.n;
	shared->keeps_fp = process->keeps_fp;
	return bpf_map_update_elem(p->fd, &tgid, shared, BPF_EXIST) < 0 ? -errno : 0;
}

/* Whether most programs' stacks end in it. */
static bool is_libc(const char *path)
{
	const char *name = strrchr(path, '/');

	return name && (strncmp(name, "/libc.so", 8) == 0 || strncmp(name, "/libc-", 6) == 0 ||
			strncmp(name, "/ld-musl", 8) == 0);
}

/*
 * The sampled file, the program and libc: with these, most stacks are complete at once. Others are
 * loaded when a stack passes through them.
 */
static void processes_want_files(struct cpu_processes *p, const struct process *process,
				 uint64_t address)
{
	const struct cpu_sampler_mapping *m = &p->mappings[process->mappings.first];
	bool program = false;

	for (uint32_t i = 0; i < process->mappings.n; i++, m++) {
		const struct cpu_file *file = cpu_files_get(p->files, m->file, UINT32_MAX);

		if (!file)
			continue;
		if (!program || is_libc(file->path) || address - m->start < m->end - m->start)
			cpu_files_want_at(p->files, m->file, address - m->bias);
		program = true;
	}
}

static int processes_read(const struct cpu_sampler_thread *thread, struct proc_maps *maps)
{
	int r = proc_maps_read((pid_t)thread->tgid, maps, NULL);

	/* The first thread may exit before the others; then only those have the mappings. */
	if (r >= 0 && !maps->len && thread->tid != thread->tgid)
		r = proc_maps_read((pid_t)thread->tid, maps, NULL);
	return r;
}

static void process_set_wait(struct process *process, bool is_new, uint64_t took_ns)
{
	bool young = process->looks++ < LOOKS_YOUNG;
	uint64_t wait_ns = is_new ? WAIT_MIN_NS : process->wait_ns * 2;

	wait_ns = MAX(wait_ns, took_ns * (young ? WAIT_FACTOR_YOUNG : WAIT_FACTOR));
	process->wait_ns = MIN(wait_ns, WAIT_MAX_NS);
}

/* One that is not responding may be alive. */
static bool process_is_alive(const struct process *process, const struct proc_stat_reading *now)
{
	uint64_t tick_ns = NS_PER_SEC / (uint64_t)sysconf(_SC_CLK_TCK);

	if (now->code < 0)
		return proc_stat_is_unknown(now->code);
	return !proc_stat_is_dead(&now->stat) &&
	       now->stat.start_ticks == process->public.start_ns / tick_ns;
}

static bool process_has_exited(const struct process *process)
{
	struct proc_stat_reading now;

	proc_stat_read_many(&process->public.pid, 1, &now);
	return !process_is_alive(process, &now);
}

/*
 * The process exited or called exec while its mappings were read. They are its own if it is gone
 * and they include the code it was sampled in.
 */
static bool processes_are_its_own(const struct cpu_processes *p, const struct process *process,
				  struct cpu_range range, uint64_t address)
{
	const struct cpu_sampler_mapping *m = &p->mappings[range.first];

	if (process->mappings.n || !process_has_exited(process))
		return false;
	for (uint32_t i = 0; i < range.n; i++, m++)
		if (address - m->start < m->end - m->start)
			return true;
	return false;
}

int cpu_processes_load(struct cpu_processes *p, const struct cpu_sampler_thread *thread,
		       uint64_t address)
{
	_cleanup_(proc_maps_release) struct proc_maps maps = {0};
	uint64_t began_ns = clock_mono_ns(), print;
	struct cpu_sampler_process shared;
	uid_t uid = process_uid((pid_t)thread->tgid), owner = proc_subuids_owner(p->subuids, uid);
	uint32_t tgid = thread->tgid;
	struct process *process;
	struct cpu_range range;
	int r;

	if (!processes_have_room(p, thread, owner)) {
		(void)bpf_map_delete_elem(p->fd, &tgid);
		p->lost++;
		return -EDQUOT;
	}
	r = processes_read(thread, &maps);
	if (r < 0) {
		/* Perhaps out of descriptors: the next sample asks again. */
		if (r != -ESRCH) {
			(void)bpf_map_delete_elem(p->fd, &tgid);
			cpu_processes_end(p, thread, false);
		}
		return r;
	}
	process = processes_get(p, thread);
	if (!process)
		return -ENOMEM;
	cpu_processes_set_uid(p, &process->public, uid);
	r = processes_lay_out(p, (pid_t)thread->tgid, owner, &maps, &range);
	if (r < 0)
		return r;
	if (!processes_is_shared(p, thread, &shared)) {
		if (processes_are_its_own(p, process, range, address))
			process_set_mappings(process, range, owner);
		else
			mappings_give(p, range, owner);
		process_end(p, process);
		return -ESRCH;
	}
	processes_count(p, process);
	print = fingerprint(p, range);
	process_set_wait(process, process->fingerprint != print, clock_mono_ns() - began_ns);
	process->fingerprint = print;
	processes_retire(p, process);
	process_set_mappings(process, range, owner);
	process_find_interp(p, process);
	process_find_runtime(p, process);
	r = processes_publish(p, process, &shared);
	if (r < 0) {
		process_end(p, process);
		return r;
	}
	processes_want_files(p, process, address);
	return 0;
}

int cpu_processes_warm(struct cpu_processes *p, pid_t pid, struct err *err)
{
	_cleanup_(proc_maps_release) struct proc_maps maps = {0};
	uid_t owner = proc_subuids_owner(p->subuids, process_uid(pid));
	struct cpu_range range;
	int r;

	r = proc_maps_read(pid, &maps, err);
	if (r < 0)
		return r;
	r = processes_lay_out(p, pid, owner, &maps, &range);
	if (r < 0)
		return err_set(err, r, "pid %d has no code", (int)pid);
	for (uint32_t i = 0; i < range.n; i++)
		cpu_files_want(p->files, p->mappings[range.first + i].file);
	while (cpu_files_load_next(p->files, NULL))
		;
	/* Unused files stay loaded for a while, which is long enough. */
	mappings_give(p, range, owner);
	return 0;
}

void cpu_processes_end(struct cpu_processes *p, const struct cpu_sampler_thread *thread,
		       bool is_exec)
{
	struct process *at = *processes_bucket(p, (pid_t)thread->tgid);

	for (; at; at = at->next) {
		if (at->public.pid != (pid_t)thread->tgid || at->ended)
			continue;
		if (is_exec && at->exec_id == thread->exec_id &&
		    at->public.start_ns == thread->start_ns)
			continue;
		process_end(p, at);
	}
}

uint32_t cpu_processes_resolve(const struct cpu_processes *p, const struct cpu_process *public,
			       uint64_t address, uint64_t *ret_vaddr)
{
	const struct process *process = (const struct process *)public;
	const struct cpu_sampler_mapping *m = &p->mappings[process->mappings.first];

	for (uint32_t i = 0; i < process->mappings.n; i++, m++) {
		if (address - m->start >= m->end - m->start || m->file == CPU_FILE_NONE)
			continue;
		*ret_vaddr = address - m->bias;
		return m->file;
	}
	return CPU_FILE_NONE;
}

struct cpu_range cpu_processes_mappings(const struct cpu_processes *p,
					const struct cpu_sampler_thread *thread)
{
	const struct process *process = processes_find(p, thread);

	return process ? process->mappings : (struct cpu_range){0};
}

bool cpu_processes_keeps_fp(const struct cpu_processes *p, const struct cpu_sampler_thread *thread)
{
	const struct process *process = processes_find(p, thread);

	return process && process->keeps_fp;
}

static bool has_layout(const struct proc_maps *maps, const struct cpu_layout *layout)
{
	const struct proc_map *code = proc_maps_find(maps, layout->start_code);
	const struct proc_map *stack = proc_maps_find(maps, layout->start_stack);

	return code && stack && map_is_code(code) && strcmp(stack->path, "[stack]") == 0;
}

struct cpu_range cpu_processes_inherit(struct cpu_processes *p,
				       const struct cpu_sampler_thread *thread,
				       const struct cpu_layout *layout)
{
	_cleanup_(proc_maps_release) struct proc_maps maps = {0};
	struct process *process = processes_find(p, thread);
	struct cpu_range range;
	uid_t owner = proc_subuids_owner(p->subuids, layout->uid);

	if ((process && process->looks) || !processes_have_room(p, thread, owner))
		return (struct cpu_range){0};
	/* Stacks start at random addresses: another program would not have one there. */
	if (proc_maps_read(layout->parent, &maps, NULL) < 0 || !has_layout(&maps, layout))
		return (struct cpu_range){0};
	process = (struct process *)cpu_processes_get(p, thread);
	if (!process || processes_lay_out(p, layout->parent, owner, &maps, &range) < 0)
		return (struct cpu_range){0};
	processes_retire(p, process);
	process_set_mappings(process, range, owner);
	return range;
}

/* Counts those that have not ended, and lists them if wanted. */
static size_t processes_living(const struct cpu_processes *p, struct process **living, pid_t *pids)
{
	size_t n = 0;

	for (size_t i = 0; i < PROCESSES_BUCKETS; i++)
		for (struct process *at = p->buckets[i]; at; at = at->next) {
			if (at->ended)
				continue;
			if (living) {
				living[n] = at;
				pids[n] = at->public.pid;
			}
			n++;
		}
	return n;
}

void cpu_processes_check(struct cpu_processes *p)
{
	_cleanup_free_ struct proc_stat_reading *readings = NULL;
	_cleanup_free_ struct process **living = NULL;
	_cleanup_free_ pid_t *pids = NULL;
	size_t n = processes_living(p, NULL, NULL);

	readings = calloc(n + 1, sizeof(*readings));
	living = calloc(n + 1, sizeof(struct process *));
	pids = calloc(n + 1, sizeof(*pids));
	if (!readings || !living || !pids)
		return;
	(void)processes_living(p, living, pids);
	proc_stat_read_many(pids, n, readings);
	for (size_t i = 0; i < n; i++)
		if (!process_is_alive(living[i], &readings[i]))
			process_end(p, living[i]);
}

void cpu_processes_next_epoch(struct cpu_processes *p)
{
	p->epoch++;
}

static void processes_sweep_bucket(struct cpu_processes *p, struct process **at,
				   void (*on_gone)(void *context,
						   const struct cpu_process *process),
				   void *context)
{
	while (*at) {
		struct process *process = *at;

		if (!process->ended || process->end_epoch == p->epoch) {
			at = &process->next;
			continue;
		}
		*at = process->next;
		on_gone(context, &process->public);
		mappings_give(p, process->mappings, process->mappings_owner);
		free(process);
		p->len--;
	}
}

void cpu_processes_sweep(struct cpu_processes *p,
			 void (*on_gone)(void *context, const struct cpu_process *process),
			 void *context)
{
	size_t kept = 0;

	for (size_t i = 0; i < PROCESSES_BUCKETS; i++)
		processes_sweep_bucket(p, &p->buckets[i], on_gone, context);
	for (size_t i = 0; i < p->n_retired; i++) {
		if (p->retired[i].epoch == p->epoch)
			p->retired[kept++] = p->retired[i];
		else
			mappings_give(p, p->retired[i].mappings, p->retired[i].owner);
	}
	p->n_retired = kept;
}

uint64_t cpu_processes_lost(const struct cpu_processes *p)
{
	return p->lost;
}
