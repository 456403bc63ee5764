/* src/golang/metrics/vars.c: see vars.h. */
#include "golang/metrics/vars.h"

#include <elf.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "elf/symbols.h"
#include "golang/binary/refs.h"
#include "golang/metrics/layout.h"

/*
 * Sources: runtime/mstats.go (mstats), runtime/mgcpacer.go (gcControllerState) and
 * runtime/runtime2.go (schedt, p, g) of each release, the same on amd64 and arm64.
 */
static const struct golang_metrics_layout layouts[] = {
	/* memstats: buckhash_sys, gc | controller: limit, minimum, goal, sweep trigger, triggered,
	   live, marked, in use | sched: maxmcount, ngsys, free | p: cache, free | g: goid */
	{17, 128, 168, -1, 8, 32, -1, -1, 48, 64, -1, 56, 72, {176, -1}, 64, 3592, 152},
	{18, 128, 168, -1, 8, 104, -1, -1, 120, 168, -1, 56, 72, {176, -1}, 64, 2472, 152},
	{19, 3568, 3592, 8, 16, 104, 112, 120, 136, 184, 304, 56, 72, {176, -1}, 64, 2472, 152},
	{20, 3568, 3592, 8, 16, 48, 56, 64, 80, 128, 248, 56, 72, {184, -1}, 64, 2472, 152},
	{21, 3568, 3592, 8, 16, 72, 80, 88, 104, 152, 272, 56, 72, {184, -1}, 64, 2472, 152},
	{23, 3568, 3592, 8, 16, 72, 80, 88, 104, 152, 272, 56, 72, {184, -1}, 56, 2464, 160},
	{25, 3544, 3568, 8, 16, 72, 80, 88, 104, 152, 272, 64, 80, {184, 200}, 56, 2464, 152},
	{26, 3544, 3568, 8, 16, 72, 80, 88, 104, 152, 272, 80, 96, {200, 216}, 56, 2472, 152},
};

const struct golang_metrics_layout *golang_metrics_layout(unsigned int minor)
{
	const struct golang_metrics_layout *best = &layouts[0];

	for (size_t i = 0; i < ARRAY_SIZE(layouts); i++)
		if (layouts[i].minor <= minor)
			best = &layouts[i];
	return best;
}

/* The functions whose references reveal the variables; same names since 1.17. */
enum witness {
	W_STKBUCKET,
	W_GCINIT,
	W_GCMARK,
	W_GCBGMARKWORKER,
	W_GCMARKDONE,
	W_GCMARKTERMINATION,
	W_SCHEDINIT,
	W_FLUSHMCACHE,
	W_PROCRESIZE,
	W_ALLGADD,
	W_COUNT,
};

static const char *const witness_names[W_COUNT] = {
	[W_STKBUCKET] = "runtime.stkbucket",   [W_GCINIT] = "runtime.gcinit",
	[W_GCMARK] = "runtime.gcMark",	       [W_GCBGMARKWORKER] = "runtime.gcBgMarkWorker",
	[W_GCMARKDONE] = "runtime.gcMarkDone", [W_GCMARKTERMINATION] = "runtime.gcMarkTermination",
	[W_SCHEDINIT] = "runtime.schedinit",   [W_FLUSHMCACHE] = "runtime.flushmcache",
	[W_PROCRESIZE] = "runtime.procresize", [W_ALLGADD] = "runtime.allgadd",
};

/* The context of a search: the code, and where to look things up. */
struct search {
	struct golang_process *process; /* borrowed */
	const struct golang_metrics_layout *layout;
	struct golang_refs refs[W_COUNT];
};

static int search_read(struct search *s, struct err *err)
{
	struct golang_process *p = s->process;
	struct golang_func funcs[W_COUNT];
	int r = golang_pclntab_find_named(&p->modules[0].tables, witness_names, funcs, W_COUNT,
					  err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < W_COUNT; i++)
		golang_refs_of(&p->modules[0], p->mem, &funcs[i], &s->refs[i]);
	return 0;
}

/* runtime/runtime2.go: the highest status of a goroutine, and the scan bit. */
#define G_LAST_STATUS 11
#define G_SCAN 0x1000U
/* The same of a processor, p. */
#define P_DEAD 4
/* Where runtime/mprof.go starts to count again. */
#define CYCLE_WRAPS ((uint32_t)3 << 25)
#define PROVE_TRIES 8

/*
 * Each collection begins a new cycle of the heap profile, or two if GODEBUG=gcstoptheworld=2. Only
 * after some million collections does that counter start again.
 */
static bool agrees_with_cycle(const struct search *s, uint32_t n_gc, uint32_t raw)
{
	uint32_t cycle = raw >> s->process->layout->cycle_shift;

	return n_gc >= CYCLE_WRAPS / 2 || (cycle >= n_gc && cycle <= 2 * n_gc);
}

static bool is_memstats(const struct search *s, uint64_t addr)
{
	const uint64_t cycle_addr = s->process->vars.mprof_cycle;
	struct golang_metrics_gc gc;
	uint32_t cycle = 0;
	const struct proc_range ranges[] = {
		{addr + (uint64_t)s->layout->ms_gc, &gc, sizeof(gc)},
		{cycle_addr, &cycle, sizeof(cycle)},
	};

	return proc_mem_readv(s->process->mem, ranges, cycle_addr ? 2 : 1, NULL) == 0 &&
	       gc.cpu_fraction >= 0 && gc.cpu_fraction <= 1 &&
	       (!cycle_addr || agrees_with_cycle(s, gc.n_gc, cycle)) &&
	       !golang_metrics_gc_doubt(&gc, NULL);
}

static bool prove_memstats(const struct search *s, uint64_t addr)
{
	/* A collection that ends right now: its figures are written one after the other. */
	for (int tries = 0; tries < PROVE_TRIES; tries++) {
		if (is_memstats(s, addr))
			return true;
		if (proc_mem_pid(s->process->mem) == 0)
			break;
		clock_sleep_ns(NS_PER_MS);
	}
	return false;
}

/* The minimum heap for this GOGC, which is -1 if off: a number that confirms another. */
static bool is_heap_minimum(uint64_t minimum, int32_t percent)
{
	/* The second one: GOEXPERIMENT=heapminimum512kib. */
	static const uint64_t bases[] = {(uint64_t)4 << 20, (uint64_t)512 << 10};

	for (size_t i = 0; i < ARRAY_SIZE(bases); i++)
		if (minimum == bases[i] * (uint64_t)(int64_t)percent / 100 ||
		    (percent < 0 && minimum == bases[i]))
			return true;
	return false;
}

static bool prove_controller(const struct search *s, uint64_t addr)
{
	const struct golang_metrics_layout *l = s->layout;
	uint8_t image[GOLANG_CONTROLLER_BYTES];
	struct view v = view_of(image, sizeof(image));
	uint64_t minimum, limit, ready;
	uint32_t percent;

	if (proc_mem_read(s->process->mem, addr, image, sizeof(image), NULL) < 0 ||
	    !view_u32(v, 0, &percent) || !view_u64(v, (uint64_t)l->gc_heap_minimum, &minimum) ||
	    (int32_t)percent < -1 || !is_heap_minimum(minimum, (int32_t)percent))
		return false;
	if (l->gc_memory_limit < 0)
		return true;
	/* With GOGC=0 the minimum is 0, like much else: memory is always mapped. */
	return view_u64(v, (uint64_t)l->gc_memory_limit, &limit) && (int64_t)limit >= 0 &&
	       view_u64(v, (uint64_t)l->gc_heap_in_use + 40, &ready) && ready > 0;
}

static bool prove_sched(const struct search *s, uint64_t addr)
{
	uint8_t image[GOLANG_SCHED_BYTES];
	struct view v = view_of(image, sizeof(image));
	uint32_t max, ngsys, idle;

	return proc_mem_read(s->process->mem, addr, image, sizeof(image), NULL) == 0 &&
	       view_u32(v, (uint64_t)s->layout->sched_maxmcount, &max) && max > 0 &&
	       max <= INT32_MAX && view_u32(v, (uint64_t)s->layout->sched_ngsys, &ngsys) &&
	       ngsys < 10000 && view_u32(v, (uint64_t)s->layout->sched_gfree[0], &idle) &&
	       idle <= INT32_MAX;
}

/* Each p contains its own index, a status, and a cache of memory unless it is dead. */
static bool prove_p(const struct search *s, uint64_t addr, uint64_t index)
{
	struct {
		uint32_t id, status;
	} head;
	uint64_t mcache;
	const struct proc_range ranges[] = {
		{addr, &head, sizeof(head)},
		{addr + (uint64_t)s->layout->p_mcache, &mcache, sizeof(mcache)},
	};

	return proc_mem_readv(s->process->mem, ranges, ARRAY_SIZE(ranges), NULL) == 0 &&
	       head.id == index && head.status <= P_DEAD && mcache % 8 == 0 &&
	       (mcache != 0 || head.status == P_DEAD);
}

static bool prove_allp(const struct search *s, uint64_t addr)
{
	struct golang_metrics_slice allp;
	uint64_t p;

	if (proc_mem_read(s->process->mem, addr, &allp, sizeof(allp), NULL) < 0 ||
	    !golang_metrics_slice_is_sane(&allp, GOLANG_METRICS_MAX_PS))
		return false;
	for (uint64_t i = 0; i < MIN(allp.len, 4); i++)
		if (proc_mem_read(s->process->mem, allp.data + 8 * i, &p, sizeof(p), NULL) < 0 ||
		    !prove_p(s, p, i))
			return false;
	return true;
}

/* A goroutine starts with its stack, and its status precedes its id. */
static bool prove_g(const struct search *s, uint64_t addr, bool *ret_has_stack)
{
	struct {
		uint64_t lo, hi;
	} stack;
	struct {
		uint32_t status, lock;
		uint64_t goid;
	} state;
	const struct proc_range ranges[] = {
		{addr, &stack, sizeof(stack)},
		{addr + (uint64_t)s->layout->g_goid - 8, &state, sizeof(state)},
	};

	if (proc_mem_readv(s->process->mem, ranges, ARRAY_SIZE(ranges), NULL) < 0)
		return false;
	*ret_has_stack = stack.lo != 0;
	return stack.lo <= stack.hi && stack.hi - stack.lo <= (uint64_t)1 << 30 &&
	       (state.status & ~G_SCAN) <= G_LAST_STATUS && state.goid < (uint64_t)1 << 48;
}

/* Goroutine 1 need not be the first: a C program with a Go library starts with others. */
static bool prove_allgs(const struct search *s, uint64_t addr)
{
	struct golang_metrics_slice allgs;
	bool any_stack = false;

	if (proc_mem_read(s->process->mem, addr, &allgs, sizeof(allgs), NULL) < 0 ||
	    !golang_metrics_slice_is_sane(&allgs, GOLANG_METRICS_MAX_GS))
		return false;
	for (uint64_t i = 0; i < MIN(allgs.len, 8); i++) {
		bool has_stack;
		uint64_t g;

		if (proc_mem_read(s->process->mem, allgs.data + 8 * i, &g, sizeof(g), NULL) < 0 ||
		    !prove_g(s, g, &has_stack))
			return false;
		any_stack |= has_stack;
	}
	return any_stack;
}

/*
 * Whether the end of a collection is recorded there. One of these fields may be another variable by
 * chance, where the address is wrong; hardly two.
 */
static bool is_noted_in(const struct search *s, uint64_t memstats)
{
	static const size_t fields[] = {
		offsetof(struct golang_metrics_gc, last_unix_ns),
		offsetof(struct golang_metrics_gc, pause_total_ns),
		offsetof(struct golang_metrics_gc, pauses_ns),
		offsetof(struct golang_metrics_gc, pause_ends),
		offsetof(struct golang_metrics_gc, n_gc),
		offsetof(struct golang_metrics_gc, n_forced),
		offsetof(struct golang_metrics_gc, cpu_fraction),
	};
	uint64_t gc = memstats + (uint64_t)s->layout->ms_gc;
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		n += golang_refs_has(&s->refs[W_GCMARKTERMINATION], gc + fields[i]);
	return n >= 2;
}

/*
 * stkbucket accounts for its table in memstats.buckhash_sys, and so takes its address. It takes
 * that of a lock, too.
 */
static uint64_t find_memstats(const struct search *s)
{
	const struct golang_refs *refs = &s->refs[W_STKBUCKET];

	for (size_t i = 0; i < refs->len; i++) {
		uint64_t addr = refs->refs[i].target - (uint64_t)s->layout->ms_buckhash_sys;

		if (refs->refs[i].target == s->process->vars.mbuckets)
			break;
		if (refs->refs[i].kind == GOLANG_REF_ADDRESS && addr % 8 == 0 &&
		    is_noted_in(s, addr) && prove_memstats(s, addr))
			return addr;
	}
	return 0;
}

/* gcinit passes it to its methods, as does the rest of the collector. */
static uint64_t find_controller(const struct search *s)
{
	const struct golang_refs *refs = &s->refs[W_GCINIT];

	for (size_t i = 0; i < refs->len; i++) {
		uint64_t addr = refs->refs[i].target;

		if (refs->refs[i].kind == GOLANG_REF_ADDRESS && addr % 8 == 0 &&
		    (golang_refs_has(&s->refs[W_GCMARK], addr) ||
		     golang_refs_has(&s->refs[W_GCBGMARKWORKER], addr) ||
		     golang_refs_has(&s->refs[W_GCMARKDONE], addr)) &&
		    prove_controller(s, addr))
			return addr;
	}
	return 0;
}

/* The thread limit set by schedinit; debug.SetMaxThreads may have changed it since. */
#define DEFAULT_MAX_THREADS 10000

/* On amd64 the constant follows the operand of the store; elsewhere check the current value. */
static bool stores_max_threads(const struct search *s, const struct golang_ref *ref)
{
	struct proc_mem *mem = s->process->mem;
	bool amd64 = proc_mem_machine(mem) == EM_X86_64;
	uint32_t value;

	if (ref->target % 4 || (amd64 && (ref->kind != GOLANG_REF_STORE || ref->width != 4)))
		return false;
	return proc_mem_read(mem, amd64 ? ref->pc + 6 : ref->target, &value, sizeof(value), NULL) ==
		       0 &&
	       value == DEFAULT_MAX_THREADS;
}

static uint64_t find_sched(const struct search *s)
{
	const struct golang_refs *refs = &s->refs[W_SCHEDINIT];

	for (size_t i = 0; i < refs->len; i++) {
		uint64_t addr = refs->refs[i].target - (uint64_t)s->layout->sched_maxmcount;

		if (stores_max_threads(s, &refs->refs[i]) && addr % 8 == 0 && prove_sched(s, addr))
			return addr;
	}
	return 0;
}

/* Both index the slice: its address and its length are adjacent. */
static uint64_t find_allp_by(const struct search *s, enum witness witness)
{
	const struct golang_refs *refs = &s->refs[witness];

	for (size_t i = 0; i < refs->len; i++) {
		uint64_t addr = refs->refs[i].target;

		if (addr % 8 == 0 && golang_refs_has(refs, addr + 8) && prove_allp(s, addr))
			return addr;
	}
	/* Old arm64 code takes the address of the slice once, and derives the rest. */
	for (size_t i = 0; i < refs->len; i++)
		if (refs->refs[i].target % 8 == 0 && prove_allp(s, refs->refs[i].target))
			return refs->refs[i].target;
	return 0;
}

/* The linker drops flushmcache from programs that never ask for their statistics. */
static uint64_t find_allp(const struct search *s)
{
	uint64_t allp = find_allp_by(s, W_FLUSHMCACHE);

	return allp ? allp : find_allp_by(s, W_PROCRESIZE);
}

static uint64_t find_allgs(const struct search *s)
{
	const struct golang_refs *refs = &s->refs[W_ALLGADD];

	for (size_t i = 0; i < refs->len; i++) {
		uint64_t addr = refs->refs[i].target;

		if (addr % 8 == 0 && golang_refs_has(refs, addr + 8) && prove_allgs(s, addr))
			return addr;
	}
	return 0;
}

/*
 * A symbol table can be wrong; golang/process.c has checked this one, and each variable is proved.
 */
static void find_by_symbol(const struct search *s, struct golang_metrics_vars *vars)
{
	const struct golang_process *p = s->process;
	struct elf_symbol symbols[] = {
		{.name = "runtime.memstats"}, {.name = "runtime.gcController"},
		{.name = "runtime.sched"},    {.name = "runtime.allp"},
		{.name = "runtime.allgs"},
	};
	uint64_t addr[ARRAY_SIZE(symbols)];

	if (!p->image.elf || !p->vars.how || strcmp(p->vars.how, "symbol table") != 0 ||
	    elf_symbols_find(p->image.elf, symbols, ARRAY_SIZE(symbols), NULL) < 0)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(symbols); i++)
		addr[i] = symbols[i].value ? symbols[i].value + p->image.bias : 0;
	vars->memstats = addr[0] && prove_memstats(s, addr[0]) ? addr[0] : 0;
	vars->controller = addr[1] && prove_controller(s, addr[1]) ? addr[1] : 0;
	vars->sched = addr[2] && prove_sched(s, addr[2]) ? addr[2] : 0;
	vars->allp = addr[3] && prove_allp(s, addr[3]) ? addr[3] : 0;
	vars->allgs = addr[4] && prove_allgs(s, addr[4]) ? addr[4] : 0;
}

static bool vars_complete(const struct golang_metrics_vars *v)
{
	return v->memstats && v->controller && v->sched && v->allp && v->allgs;
}

static void find_by_code(const struct search *s, struct golang_metrics_vars *vars)
{
	if (!vars->memstats)
		vars->memstats = find_memstats(s);
	if (!vars->controller)
		vars->controller = find_controller(s);
	if (!vars->sched)
		vars->sched = find_sched(s);
	if (!vars->allp)
		vars->allp = find_allp(s);
	if (!vars->allgs)
		vars->allgs = find_allgs(s);
}

int golang_metrics_vars_find(struct golang_process *process, struct golang_metrics_vars *ret_vars,
			     struct err *err)
{
	_cleanup_free_ struct search *s = calloc(1, sizeof(*s));
	struct golang_metrics_vars vars = {0};
	int r;

	if (!s)
		return err_oom(err);
	s->process = process;
	s->layout = golang_metrics_layout(process->layout->minor);
	find_by_symbol(s, &vars);
	if (!vars_complete(&vars)) {
		r = search_read(s, err);
		if (r < 0)
			return r;
		find_by_code(s, &vars);
	}
	if (!vars.memstats && !vars.controller && !(vars.sched && vars.allp && vars.allgs))
		return err_lack(err, -ENOTSUP, ERR_CAUSE_ALTERED, "",
				"no runtime statistics found in the program");
	*ret_vars = vars;
	return 0;
}
