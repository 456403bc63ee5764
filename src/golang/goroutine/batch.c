/*
 * src/golang/goroutine/batch.c: reads a few thousand goroutines at a time: their g's, their stacks,
 * their g's again.
 *
 * In a system call, a range costs more than its bytes, and g's are close together: neighbours are
 * merged into one range. A batch is processed before the next one is read, while it is in the CPU
 * cache.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "golang/goroutine/state.h"

#define BATCH_ITEMS ((size_t)4096)
/*
 * Maximum gap between two g's read as one range: they are on the same or adjacent pages, so the gap
 * is readable if they are.
 */
#define BATCH_GAP ((uint64_t)1024)
#define BATCH_G_BYTES (BATCH_ITEMS * 512 + ((size_t)1 << 20))
#define BATCH_STACK_BYTES ((size_t)4 << 20)
/* The same for stacks. The smallest ones are 2 KB. */
#define BATCH_STACK_GAP ((uint64_t)2048)
/* runtime.maxstacksize is at most 1 GB; a stack that doubles may be twice that. */
#define BATCH_MAX_STACK ((uint64_t)2 << 30)
/* If this many ranges of a target fail, it is forged. */
#define BATCH_MAX_FAULTS 4096
#define BATCH_TRIES 12
/* For all goroutines together: never this many change while being read. */
#define BATCH_MAX_RETRIES ((uint64_t)1 << 20)
#define MAX_STACK_BYTES ((uint32_t)1 << 20)
/* Unwinding from a thread's registers may take many frames; a core has few threads. */
#define BATCH_RUNNING_WORK 4096

/* runtime/runtime2.go */
enum {
	G_IDLE = 0,
	G_RUNNABLE = 1,
	G_RUNNING = 2,
	G_SYSCALL = 3,
	G_WAITING = 4,
	G_DEAD = 6,
	G_COPYSTACK = 8,
	G_PREEMPTED = 9,
	G_LEAKED = 10,	   /* 1.26+ */
	G_DEAD_EXTRA = 11, /* 1.26+ */
	G_SCAN = 0x1000,
};

/* How the runtime decides from the start function whether a goroutine is a system one. */
enum goroutine_system {
	SYSTEM_NO,
	SYSTEM_YES,
	SYSTEM_FINALIZERS, /* unless a finalizer runs */
	SYSTEM_CLEANUPS,   /* unless a cleanup runs */
};

/* The parts of a g that must not change while its stack is copied. */
struct g_key {
	uint64_t lo, hi;
	uint64_t sp, pc;
	uint64_t syscall_sp, syscall_pc;
	uint64_t goid;
	uint64_t gopc, start_pc;
	uint32_t status;
	uint8_t reason;
	uint8_t seq;
};

struct batch_entry {
	struct golang_goroutine_item item;
	uint32_t g_off;	    /* in the copies of g's */
	uint32_t stack_len; /* 0: none wanted */
	bool wanted;	    /* a goroutine to be shown */
	struct g_key key;
	struct golang_stack_copy copy;
};

struct golang_goroutine_batch {
	struct batch_entry entries[BATCH_ITEMS];
	struct proc_range ranges[BATCH_ITEMS]; /* of g's */
	struct proc_range stack_ranges[BATCH_ITEMS];
	size_t n;
	size_t n_ranges;
	uint8_t g1[BATCH_G_BYTES];
	uint8_t g2[BATCH_G_BYTES];
	struct batch_entry *by_sp[BATCH_ITEMS];
	uint8_t stacks[BATCH_STACK_BYTES + BATCH_ITEMS * BATCH_STACK_GAP];
};

struct golang_goroutine_batch *golang_goroutine_batch_new(void)
{
	return malloc(sizeof(struct golang_goroutine_batch));
}

void golang_goroutine_batch_free(struct golang_goroutine_batch *batch)
{
	free(batch);
}

static uint64_t g_u64(const uint8_t *g, unsigned int off)
{
	uint64_t v;

	memcpy(&v, g + off, sizeof(v));
	return v;
}

static struct g_key g_key_of(const struct golang_g_layout *l, const uint8_t *g)
{
	struct g_key k = {
		.lo = g_u64(g, 0),
		.hi = g_u64(g, 8),
		.sp = g_u64(g, l->sched_sp),
		.pc = g_u64(g, l->sched_pc),
		.syscall_sp = g_u64(g, l->syscall_sp),
		.syscall_pc = g_u64(g, l->syscall_pc),
		.goid = g_u64(g, l->goid),
		.gopc = g_u64(g, l->gopc),
		.start_pc = g_u64(g, l->start_pc),
		.reason = g[l->wait_reason],
		.seq = g[l->tracking_seq],
	};

	memcpy(&k.status, g + l->status, sizeof(k.status));
	/* Being scanned by the GC does not count as a change. */
	k.status &= ~(uint32_t)G_SCAN;
	return k;
}

/* A running goroutine may stop and resume; it just must be the same one. */
static bool g_key_same(const struct g_key *a, const struct g_key *b)
{
	if (a->goid != b->goid || a->gopc != b->gopc || a->start_pc != b->start_pc)
		return false;
	if (a->status == G_RUNNING)
		return true;
	return a->status == b->status && a->lo == b->lo && a->hi == b->hi && a->sp == b->sp &&
	       a->pc == b->pc && a->syscall_sp == b->syscall_sp && a->syscall_pc == b->syscall_pc &&
	       a->reason == b->reason && a->seq == b->seq;
}

/* Reads all ranges, or as many as possible: the others are filled with 0xff. */
static int read_ranges(struct golang_goroutines *gs, struct proc_range *ranges, size_t n,
		       struct err *err)
{
	int r;

	if (n == 0)
		return 0;
	r = gs->faults < BATCH_MAX_FAULTS ? proc_mem_readv(gs->process->mem, ranges, n, err)
					  : -EFAULT;
	if (r != -EFAULT && r != -EBADMSG)
		return r;
	if (n == 1 || gs->faults >= BATCH_MAX_FAULTS) {
		gs->faults++;
		for (size_t i = 0; i < n; i++)
			memset(ranges[i].dst, 0xff, ranges[i].len);
		return 0;
	}
	r = read_ranges(gs, ranges, n / 2, err);
	return r < 0 ? r : read_ranges(gs, ranges + n / 2, n - n / 2, err);
}

/*
 * Assigns the g's of the batch their places in the copy; items are sorted by address. Takes as many
 * as fit.
 */
static void batch_plan(struct golang_goroutines *gs, const struct golang_goroutine_item *items,
		       size_t n)
{
	struct golang_goroutine_batch *b = gs->batch;
	size_t bytes = gs->layout->bytes, used = 0, stacks = 0;

	b->n = b->n_ranges = 0;
	for (; b->n < MIN(n, BATCH_ITEMS); b->n++) {
		const struct golang_goroutine_item *item = &items[b->n];
		struct proc_range *last = b->n_ranges ? &b->ranges[b->n_ranges - 1] : NULL;
		uint64_t end = last ? last->addr + last->len : 0;
		struct batch_entry *e = &b->entries[b->n];
		size_t more = bytes;

		*e = (struct batch_entry){.item = *item};
		if (stacks + item->stack_bytes > BATCH_STACK_BYTES)
			break;
		if (last && item->g >= end && item->g - end <= BATCH_GAP)
			more += (size_t)(item->g - end);
		else
			last = NULL;
		if (used + more > BATCH_G_BYTES)
			break;
		if (last)
			last->len += more;
		else
			b->ranges[b->n_ranges++] =
				(struct proc_range){item->g, b->g1 + used, bytes};
		used += more;
		stacks += item->stack_bytes;
		e->g_off = (uint32_t)(used - bytes);
	}
}

static enum goroutine_system system_by_start(struct golang_goroutines *gs, uint64_t pc)
{
	const struct golang_g_vars *v = &gs->vars;
	struct golang_pclntab *t;
	struct golang_func f;

	if (!golang_process_func_at(gs->process, pc, &t, &f))
		return SYSTEM_NO;
	if (f.entry == v->main || f.entry == v->corostart || f.entry == v->handle_async_event)
		return SYSTEM_NO;
	if (f.entry == v->run_finalizers)
		return SYSTEM_FINALIZERS;
	if (f.entry == v->run_cleanups)
		return SYSTEM_CLEANUPS;
	return view_starts_with(golang_pclntab_name(t, f.name), "runtime.") ? SYSTEM_YES
									    : SYSTEM_NO;
}

/* Like runtime.isSystemGoroutine. */
static bool is_system(struct golang_goroutines *gs, uint64_t start_pc, const uint8_t *g)
{
	uint64_t kind;

	if (!map_get(&gs->systems, start_pc, &kind)) {
		kind = system_by_start(gs, start_pc);
		/* Only a cache. */
		if (gs->systems.len < 65536)
			(void)map_put(&gs->systems, start_pc, kind);
	}
	switch (kind) {
	case SYSTEM_FINALIZERS:
		return !gs->finalizer_runs;
	case SYSTEM_CLEANUPS:
		return !gs->layout->running_cleanups || !g[gs->layout->running_cleanups];
	default:
		return kind == SYSTEM_YES;
	}
}

/* The thread's registers, or those at the time of a signal; only in cores. */
static bool running_context(struct golang_goroutines *gs, const uint8_t *g, struct batch_entry *e)
{
	uint64_t m = g_u64(g, gs->layout->m), tid, pc, sp;
	struct proc_thread at;

	if (m == 0 || proc_mem_pid(gs->process->mem) ||
	    !golang_mem_cache_spend(&gs->process->cache, BATCH_RUNNING_WORK) ||
	    proc_mem_read(gs->process->mem, m + gs->layout->m_procid, &tid, sizeof(tid), NULL) <
		    0 ||
	    !proc_mem_thread(gs->process->mem, tid, &at))
		return false;
	if ((at.sp < e->key.lo || at.sp >= e->key.hi) &&
	    !golang_unwind_interrupted(&gs->unwind, &at))
		return false;
	pc = at.pc;
	sp = at.sp;
	/* On the system stack: the goroutine's context was saved on the switch. */
	if (sp < e->key.lo || sp >= e->key.hi) {
		struct golang_pclntab *t;
		struct golang_func f;

		pc = e->key.pc;
		sp = e->key.sp;
		if (!golang_process_func_at(gs->process, pc, &t, &f) ||
		    f.entry != gs->vars.systemstack_switch)
			return false;
		e->copy.exact = false;
	} else {
		e->copy.exact = true;
	}
	e->copy.pc = pc;
	e->copy.sp = sp;
	return true;
}

/* Where the goroutine stopped; false if it has no context. */
static bool entry_context(struct golang_goroutines *gs, const uint8_t *g, struct batch_entry *e)
{
	const struct g_key *k = &e->key;

	e->copy.top = k->hi;
	if (k->status == G_RUNNING)
		return running_context(gs, g, e);
	/* Like runtime.(*unwinder).initAt. */
	e->copy.is_syscall = k->syscall_sp != 0;
	e->copy.sp = k->syscall_sp ? k->syscall_sp : k->sp;
	e->copy.pc = k->syscall_sp ? k->syscall_pc : k->pc;
	return true;
}

static bool is_live(uint32_t status)
{
	switch (status) {
	case G_RUNNABLE:
	case G_RUNNING:
	case G_SYSCALL:
	case G_WAITING:
	case G_COPYSTACK:
	case G_PREEMPTED:
	case G_LEAKED:
		return true;
	default:
		return false;
	}
}

static bool makes_sense(const struct g_key *k)
{
	return k->goid && k->goid < (uint64_t)1 << 62 && k->lo < k->hi && k->lo % 8 == 0 &&
	       k->hi % 8 == 0 && k->hi - k->lo <= BATCH_MAX_STACK;
}

/* Decides what to do with a g read for the first time. */
static void entry_look(struct golang_goroutines *gs, struct batch_entry *e)
{
	const uint8_t *g = gs->batch->g1 + e->g_off;
	struct g_key *k = &e->key;
	uint64_t left;

	*k = g_key_of(gs->layout, g);
	if (k->status == G_IDLE || k->status == G_DEAD || k->status == G_DEAD_EXTRA)
		return;
	/* Belongs to a C thread waiting for its next call into Go: it has no id. */
	if (k->goid == 0 && is_live(k->status) && k->start_pc == 0)
		return;
	if (!is_live(k->status) || !makes_sense(k)) {
		gs->stats.bad++;
		return;
	}
	if (!gs->options.system && is_system(gs, k->start_pc, g)) {
		gs->stats.system++;
		return;
	}
	e->wanted = true;
	if (e->item.tries == 0)
		e->item.unsampled = gs->live++ % gs->stride != 0;
	if (e->item.unsampled)
		return;
	if (k->status == G_COPYSTACK || !entry_context(gs, g, e))
		return;
	if (e->copy.sp < k->lo || e->copy.sp > k->hi - 8 || e->copy.sp % 8) {
		e->copy.sp = 0;
		return;
	}
	left = k->hi - e->copy.sp;
	e->stack_len = (uint32_t)MIN(left, (uint64_t)e->item.stack_bytes);
}

static int entry_by_sp(const void *a, const void *b)
{
	const struct batch_entry *x = *(const struct batch_entry *const *)a;
	const struct batch_entry *y = *(const struct batch_entry *const *)b;

	return x->copy.sp < y->copy.sp ? -1 : x->copy.sp > y->copy.sp;
}

/* Entries whose stack is wanted, by address. Small stacks are adjacent, too. */
static size_t batch_by_sp(struct golang_goroutine_batch *b)
{
	bool sorted = true;
	size_t n = 0;

	for (size_t i = 0; i < b->n; i++) {
		struct batch_entry *e = &b->entries[i];

		if (!e->stack_len)
			continue;
		sorted = sorted && (n == 0 || b->by_sp[n - 1]->copy.sp < e->copy.sp);
		b->by_sp[n++] = e;
	}
	if (!sorted)
		qsort(b->by_sp, n, sizeof(void *), entry_by_sp);
	return n;
}

static int batch_read_stacks(struct golang_goroutines *gs, struct err *err)
{
	struct golang_goroutine_batch *b = gs->batch;
	size_t n = batch_by_sp(b), used = 0, n_ranges = 0;

	for (size_t i = 0; i < n; i++) {
		struct batch_entry *e = b->by_sp[i];
		struct proc_range *last = n_ranges ? &b->stack_ranges[n_ranges - 1] : NULL;
		uint64_t end = last ? last->addr + last->len : 0;

		if (last && e->copy.sp >= end && e->copy.sp - end <= BATCH_STACK_GAP) {
			used += (size_t)(e->copy.sp - end);
			last->len += (size_t)(e->copy.sp - end) + e->stack_len;
		} else {
			b->stack_ranges[n_ranges++] =
				(struct proc_range){e->copy.sp, b->stacks + used, e->stack_len};
		}
		e->copy.bytes = view_of(b->stacks + used, e->stack_len);
		used += e->stack_len;
	}
	return read_ranges(gs, b->stack_ranges, n_ranges, err);
}

static void again(struct golang_goroutines *gs, const struct batch_entry *e, uint32_t stack_bytes,
		  uint16_t tries)
{
	/* There is room: a batch never puts back more than it took. */
	gs->again[gs->n_again++] = (struct golang_goroutine_item){
		.g = e->item.g,
		.stack_bytes = stack_bytes,
		.tries = tries,
		.unsampled = e->item.unsampled,
	};
}

/* Inconsistent now, but perhaps not later; false after too many attempts. */
static bool try_again(struct golang_goroutines *gs, const struct batch_entry *e, uint32_t most)
{
	if (e->item.tries >= most || gs->stats.retries >= BATCH_MAX_RETRIES)
		return false;
	again(gs, e, e->item.stack_bytes, (uint16_t)(e->item.tries + 1));
	gs->stats.retries++;
	return true;
}

static enum golang_g_state state_of(uint32_t status)
{
	switch (status) {
	case G_RUNNABLE:
		return GOLANG_G_RUNNABLE;
	case G_RUNNING:
	case G_COPYSTACK: /* running, while its stack grows */
		return GOLANG_G_RUNNING;
	case G_SYSCALL:
		return GOLANG_G_SYSCALL;
	case G_PREEMPTED:
		return GOLANG_G_PREEMPTED;
	default:
		return GOLANG_G_WAITING;
	}
}

static uint64_t wait_ns(const struct golang_goroutines *gs, const struct g_key *k, const uint8_t *g)
{
	uint64_t since = g_u64(g, gs->layout->wait_since);

	if (k->status == G_RUNNABLE || k->status == G_RUNNING || since == 0 || since > gs->now_ns)
		return 0;
	return gs->now_ns - since;
}

static void goroutine_take(struct golang_goroutines *gs, const struct batch_entry *e,
			   uint32_t stack, bool unverified)
{
	const struct golang_g_layout *l = gs->layout;
	const uint8_t *g = gs->batch->g1 + e->g_off;
	const struct g_key *k = &e->key;
	bool waits = k->status == G_WAITING || k->status == G_LEAKED;
	/* There is room: all of allgs fits. */
	struct golang_goroutine *to = &gs->items[gs->len++];
	int64_t set = 0;

	*to = (struct golang_goroutine){
		.id = k->goid,
		.parent_id = l->parent_goid ? g_u64(g, l->parent_goid) : 0,
		.created_by = k->goid == 1 ? 0 : k->gopc,
		.start_pc = k->start_pc,
		.wait_ns = wait_ns(gs, k, g),
		/* Always the same address for the same text: keys compare it. */
		.wait_reason =
			gs->reasons[waits && k->reason < GOLANG_GOROUTINE_MAX_REASONS ? k->reason
										      : 0],
		.stack = stack,
		.state = state_of(k->status),
		.locked_to_thread = g_u64(g, l->locked_m) != 0,
		.leaked = k->status == G_LEAKED,
		.unverified = unverified,
		.unsampled = e->item.unsampled,
	};
	if (gs->options.labels)
		set = golang_labels_at(&gs->labels, g_u64(g, l->labels), e->item.g + l->labels,
				       e->item.g + l->goid, k->goid);
	gs->stats.labels_lost += set < 0;
	to->labels = set > 0 ? (uint32_t)set : 0;
	gs->stats.total++;
	gs->stats.states[to->state]++;
	gs->stats.unverified += unverified;
}

/* The stack was copied and the goroutine did not move: unwind it. */
static void entry_unwind(struct golang_goroutines *gs, const struct batch_entry *e)
{
	uint32_t stack = GOLANG_NO_STACK, deeper;

	switch (golang_unwind_stack(&gs->unwind, &e->copy, &stack)) {
	case GOLANG_UNWOUND:
		break;
	case GOLANG_UNWIND_MORE:
		deeper = MIN(e->item.stack_bytes * 32, MAX_STACK_BYTES);
		if (e->item.stack_bytes < deeper && deeper <= gs->deep_bytes_left) {
			gs->deep_bytes_left -= deeper;
			again(gs, e, deeper, MAX(e->item.tries, (uint16_t)1));
			return;
		}
		gs->stats.incomplete++;
		break;
	case GOLANG_UNWIND_BAD:
		/*
		 * A function about to park, or stopped in the middle of a switch: it will have
		 * moved on shortly.
		 */
		if (try_again(gs, e, BATCH_TRIES / 2))
			return;
		gs->stats.incomplete++;
		break;
	}
	gs->stats.sampled += gs->stride > 1 && stack != GOLANG_NO_STACK;
	goroutine_take(gs, e, stack, false);
}

static void entry_settle(struct golang_goroutines *gs, const struct batch_entry *e)
{
	const struct g_key now = g_key_of(gs->layout, gs->batch->g2 + e->g_off);
	bool moving = e->key.status == G_COPYSTACK ||
		      (e->copy.sp == 0 && e->key.status != G_RUNNING && !e->item.unsampled);

	if (!e->wanted)
		return;
	if (moving || !g_key_same(&e->key, &now)) {
		if (!try_again(gs, e, BATCH_TRIES))
			goroutine_take(gs, e, GOLANG_NO_STACK, true);
		return;
	}
	if (e->stack_len)
		entry_unwind(gs, e);
	else
		goroutine_take(gs, e, GOLANG_NO_STACK, false);
}

ssize_t golang_goroutine_batch_read(struct golang_goroutines *gs,
				    const struct golang_goroutine_item *items, size_t n,
				    struct err *err)
{
	struct golang_goroutine_batch *b = gs->batch;
	bool any = false;
	int r;

	batch_plan(gs, items, n);
	r = read_ranges(gs, b->ranges, b->n_ranges, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < b->n; i++) {
		entry_look(gs, &b->entries[i]);
		any |= b->entries[i].wanted;
	}
	r = batch_read_stacks(gs, err);
	if (r < 0)
		return r;
	if (!any)
		return (ssize_t)b->n;
	for (size_t i = 0; i < b->n_ranges; i++)
		b->ranges[i].dst = b->g2 + ((uint8_t *)b->ranges[i].dst - b->g1);
	r = read_ranges(gs, b->ranges, b->n_ranges, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < b->n; i++)
		entry_settle(gs, &b->entries[i]);
	return (ssize_t)b->n;
}
