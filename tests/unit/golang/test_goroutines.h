/*
 * tests/unit/golang/test_goroutines.h: the goroutines of a Go 1.27 program for amd64, made up.
 *
 *   0x0000  function table: names, files, pc-value tables, functions      fixed
 *   0x1000  code, 0x40 bytes a function
 *   0x2000  variables: allgs, wait reasons                                what a target can forge
 *   0x3000  the array of allgs; then g's, 0x200 bytes each
 *   0x5000  stacks, 0x400 bytes each
 *
 * Every function has a frame of 0x18 bytes below its return address, but at its entry.
 */
#pragma once

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "golang/goroutine/layout.h"
#include "golang/process_state.h"
#include "mem_fake.h"

enum {
	WORLD_BASE = 0x10000,
	WORLD_UNITS = 0x400,
	WORLD_FILES = 0x410,
	WORLD_PCTAB = 0x420,
	WORLD_FUNCTIONS = 0x480,
	WORLD_CODE = 0x1000,
	WORLD_CODE_BYTES = 0x40,
	WORLD_DATA = 0x2000, /* from here on it is data */
	WORLD_ALLGS = 0x2000,
	WORLD_REASONS = 0x2040,
	WORLD_TEXT = 0x2140,
	WORLD_LABELS = 0x2200,
	WORLD_LIST = 0x3000,
	WORLD_GS = 0x3400,
	WORLD_G_BYTES = 0x200,
	WORLD_STACKS = 0x5000,
	WORLD_STACK_BYTES = 0x400,
	WORLD_MAX = 8, /* goroutines */
	WORLD_BYTES = WORLD_STACKS + WORLD_MAX * WORLD_STACK_BYTES,
	WORLD_FRAME = 0x18,
};

enum world_function {
	WORLD_ALLGADD,
	WORLD_REASON_STRING,
	WORLD_MAIN,
	WORLD_WORKER,
	WORLD_SPAWN,
	WORLD_GOPARK,
	WORLD_GOEXIT,
	WORLD_GC_WORKER,
	WORLD_SYSTEMSTACK,
	/* Whose code tells where the runtime's variables are. */
	WORLD_STKBUCKET,
	WORLD_BLOCKEVENT,
	WORLD_MUTEXEVENT,
	WORLD_SEMACQUIRE,
	WORLD_CHANRECV,
	WORLD_TICKS_PER_SECOND,
	WORLD_SCHEDINIT,
	WORLD_SAVE_EVENT,
	WORLD_PARSE_DEBUG,
	WORLD_GCINIT,
	WORLD_GCMARK,
	WORLD_MARK_TERMINATION,
	WORLD_FLUSHMCACHE,
	WORLD_IS_SYSTEM,
	WORLD_RUN_FINALIZERS,
	WORLD_N_FUNCTIONS,
};

static const char *const world_names[WORLD_N_FUNCTIONS] = {
	[WORLD_ALLGADD] = "runtime.allgadd",
	[WORLD_REASON_STRING] = "runtime.waitReason.String",
	[WORLD_MAIN] = "runtime.main",
	[WORLD_WORKER] = "main.worker",
	[WORLD_SPAWN] = "main.spawn",
	[WORLD_GOPARK] = "runtime.gopark",
	[WORLD_GOEXIT] = "runtime.goexit",
	[WORLD_GC_WORKER] = "runtime.gcBgMarkWorker",
	[WORLD_SYSTEMSTACK] = "runtime.systemstack",
	[WORLD_STKBUCKET] = "runtime.stkbucket",
	[WORLD_BLOCKEVENT] = "runtime.blockevent",
	[WORLD_MUTEXEVENT] = "runtime.mutexevent",
	[WORLD_SEMACQUIRE] = "runtime.semacquire1",
	[WORLD_CHANRECV] = "runtime.chanrecv",
	[WORLD_TICKS_PER_SECOND] = "runtime.ticksPerSecond",
	[WORLD_SCHEDINIT] = "runtime.schedinit",
	[WORLD_SAVE_EVENT] = "runtime.saveblockevent",
	[WORLD_PARSE_DEBUG] = "runtime.parsedebugvars",
	[WORLD_GCINIT] = "runtime.gcinit",
	[WORLD_GCMARK] = "runtime.gcMark",
	[WORLD_MARK_TERMINATION] = "runtime.gcMarkTermination",
	[WORLD_FLUSHMCACHE] = "runtime.flushmcache",
	[WORLD_IS_SYSTEM] = "runtime.isSystemGoroutine",
	[WORLD_RUN_FINALIZERS] = "runtime.runFinalizers",
};

struct world {
	_Alignas(64) uint8_t bytes[WORLD_BYTES];
	size_t n;
};

static inline void world_u32(struct world *w, size_t off, uint32_t value)
{
	memcpy(w->bytes + off, &value, sizeof(value));
}

static inline void world_u64(struct world *w, size_t off, uint64_t value)
{
	memcpy(w->bytes + off, &value, sizeof(value));
}

/* An address within a function, past its entry. */
static inline uint64_t world_pc(enum world_function f, uint64_t off)
{
	return WORLD_BASE + WORLD_CODE + f * WORLD_CODE_BYTES + off;
}

static inline void world_touch(struct world *w, enum world_function f, size_t i, uint8_t opcode,
			       size_t variable)
{
	size_t at = WORLD_CODE + f * WORLD_CODE_BYTES + 7 * i;

	memcpy(w->bytes + at, (const uint8_t[]){0x48, opcode, 0x05}, 3);
	world_u32(w, at + 3, (uint32_t)(variable - at - 7));
}

static inline void world_tables(struct world *w)
{
	size_t name = 1, record = WORLD_FUNCTIONS + 8 * (WORLD_N_FUNCTIONS + 1);

	memcpy(w->bytes + WORLD_FILES, "main.go", 8);
	/* At 1: 0 throughout, for files and lines. At 4: 0 for 4 bytes, then the frame. */
	memcpy(w->bytes + WORLD_PCTAB + 1, "\2\100\0", 3);
	memcpy(w->bytes + WORLD_PCTAB + 4, (const uint8_t[]){2, 4, 2 * WORLD_FRAME, 0x3c, 0}, 5);
	memset(w->bytes + WORLD_CODE, 0xcc, WORLD_N_FUNCTIONS * WORLD_CODE_BYTES);
	for (size_t i = 0; i < WORLD_N_FUNCTIONS; i++) {
		memcpy(w->bytes + name, world_names[i], strlen(world_names[i]) + 1);
		world_u32(w, WORLD_FUNCTIONS + 8 * i, (uint32_t)(i * WORLD_CODE_BYTES));
		world_u32(w, WORLD_FUNCTIONS + 8 * i + 4, (uint32_t)(record - WORLD_FUNCTIONS));
		world_u32(w, record, (uint32_t)(i * WORLD_CODE_BYTES));
		world_u32(w, record + 4, (uint32_t)name);
		world_u32(w, record + 16, 4);
		world_u32(w, record + 20, 1);
		world_u32(w, record + 24, 1);
		w->bytes[record + 41] = i == WORLD_GOEXIT ? 1 : i == WORLD_SYSTEMSTACK ? 2 : 0;
		name += strlen(world_names[i]) + 1;
		record += 48;
	}
	world_u32(w, WORLD_FUNCTIONS + 8 * WORLD_N_FUNCTIONS, WORLD_N_FUNCTIONS * WORLD_CODE_BYTES);
	for (size_t i = 0; i < 3; i++)
		world_touch(w, WORLD_ALLGADD, i, 0x8b, WORLD_ALLGS + 8 * i);
	world_touch(w, WORLD_REASON_STRING, 0, 0x8d, WORLD_REASONS);
}

static inline void world_reason(struct world *w, size_t i, const char *text)
{
	size_t at = WORLD_TEXT + 32 * i;

	memcpy(w->bytes + at, text, strlen(text));
	world_u64(w, WORLD_REASONS + 16 * i, WORLD_BASE + at);
	world_u64(w, WORLD_REASONS + 16 * i + 8, strlen(text));
}

/* One goroutine. It is in pcs[0], called by pcs[1] and so on; the last is the root. */
struct world_g {
	uint64_t id;
	uint32_t status;
	uint8_t reason;
	uint64_t start;
	const uint64_t *pcs;
	size_t n_pcs;
	bool in_syscall; /* saved by entersyscall; what sched has is old */
};

static inline size_t world_g_at(size_t i)
{
	return WORLD_GS + i * WORLD_G_BYTES;
}

static inline void world_add(struct world *w, const struct world_g *g)
{
	const struct golang_g_layout *l;
	size_t at = world_g_at(w->n), stack = WORLD_STACKS + w->n * WORLD_STACK_BYTES;
	size_t sp = stack + WORLD_STACK_BYTES - 8 - (g->n_pcs ? g->n_pcs - 1 : 0) * 0x20;

	if (golang_g_layout_for(27, &l, NULL) < 0 || w->n == WORLD_MAX)
		abort();
	world_u64(w, at, WORLD_BASE + stack);
	world_u64(w, at + 8, WORLD_BASE + stack + WORLD_STACK_BYTES);
	world_u64(w, at + (g->in_syscall ? l->syscall_sp : l->sched_sp), WORLD_BASE + sp);
	world_u64(w, at + (g->in_syscall ? l->syscall_pc : l->sched_pc), g->n_pcs ? g->pcs[0] : 0);
	for (size_t i = 1; i < g->n_pcs; i++)
		world_u64(w, sp + (i - 1) * 0x20 + WORLD_FRAME, g->pcs[i]);
	world_u32(w, at + l->status, g->status);
	world_u64(w, at + l->goid, g->id);
	w->bytes[at + l->wait_reason] = g->reason;
	world_u64(w, at + l->parent_goid, g->id == 1 ? 0 : 1);
	world_u64(w, at + l->gopc, world_pc(WORLD_SPAWN, 0x20));
	world_u64(w, at + l->start_pc, g->start);
	world_u64(w, WORLD_LIST + 8 * w->n, WORLD_BASE + at);
	w->n++;
	world_u64(w, WORLD_ALLGS, WORLD_BASE + WORLD_LIST);
	world_u64(w, WORLD_ALLGS + 8, w->n);
	world_u64(w, WORLD_ALLGS + 16, WORLD_MAX);
}

/* A program with its main goroutine, which waits. */
static inline void world_build(struct world *w)
{
	const uint64_t pcs[] = {world_pc(WORLD_GOPARK, 0x10), world_pc(WORLD_MAIN, 0x10),
				world_pc(WORLD_GOEXIT, 1)};

	memset(w, 0, sizeof(*w));
	world_tables(w);
	world_reason(w, 0, "");
	world_reason(w, 1, "GC assist marking");
	world_reason(w, 2, "chan receive");
	world_add(w, &(struct world_g){.id = 1,
				       .status = 4,
				       .reason = 2,
				       .start = world_pc(WORLD_MAIN, 0),
				       .pcs = pcs,
				       .n_pcs = 3});
}

static inline struct golang_span world_span(size_t from, size_t to)
{
	return (struct golang_span){.addr = WORLD_BASE + from, .len = to - from};
}

/* Takes mem over, which is made up, and puts the world into it. NULL without memory. */
static inline struct golang_process *world_open_take(struct proc_mem *mem, const struct world *w)
{
	struct golang_process *p = calloc(1, sizeof(*p));
	struct golang_module *m = calloc(1, sizeof(*m));

	if (!p || !m || golang_layout_for(27, &p->layout, NULL) < 0 ||
	    proc_mem_fake_add(mem, WORLD_BASE, w->bytes, WORLD_BYTES) < 0) {
		free(p);
		free(m);
		proc_mem_close(mem);
		return NULL;
	}
	p->mem = mem;
	p->modules = m;
	p->n_modules = 1;
	p->vars.how = "code references";
	golang_mem_cache_init(&p->cache, mem, 8192, 128, 128);
	m->noptrdata = WORLD_BASE + WORLD_DATA;
	m->enoptrbss = WORLD_BASE + WORLD_LIST;
	m->tables = (struct golang_pclntab){
		.cache = &p->cache,
		.format = GOLANG_PCLN_120,
		.quantum = 1,
		.n_functions = WORLD_N_FUNCTIONS,
		.names = world_span(0, WORLD_UNITS),
		.units = world_span(WORLD_UNITS, WORLD_FILES),
		.files = world_span(WORLD_FILES, WORLD_PCTAB),
		.pctab = world_span(WORLD_PCTAB, WORLD_FUNCTIONS),
		.functions = world_span(WORLD_FUNCTIONS, WORLD_CODE),
		.functab = world_span(WORLD_FUNCTIONS, WORLD_CODE),
		.text = world_pc(WORLD_ALLGADD, 0),
		.min_pc = world_pc(WORLD_ALLGADD, 0),
		.max_pc = world_pc(WORLD_N_FUNCTIONS, 0),
	};
	return p;
}

/* Opens the world with its bytes from an offset on replaced by others: for fuzzers. NULL without
 * memory. */
static inline struct golang_process *world_open_forged(struct world *w, size_t from,
						       const uint8_t *data, size_t len)
{
	struct proc_mem *mem;

	world_build(w);
	memcpy(w->bytes + from, data, MIN(len, (size_t)WORLD_BYTES - from));
	if (proc_mem_open_fake(&mem, NULL) < 0)
		return NULL;
	return world_open_take(mem, w);
}
