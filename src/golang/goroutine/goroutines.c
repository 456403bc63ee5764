/* src/golang/goroutine/goroutines.c: see goroutines.h. batch.c reads the batches. */
#include "golang/goroutine/goroutines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "golang/binary/stack_depth.h"
#include "golang/goroutine/state.h"
#include "golang/grow.h"
#include "proc/text.h"

/* No program has more: each takes at least 2.5 KB. */
#define GOROUTINES_MAX ((size_t)1 << 24)
#define GOROUTINES_FIRST_STACK_BYTES 1024
#define GOROUTINES_LIST_TRIES 5
#define GOROUTINES_LIST_CHUNK ((uint64_t)1 << 16)
/* Total to read for stacks that do not end within the first bytes. */
#define GOROUTINES_DEEP_BYTES ((uint64_t)4 << 30)
/*
 * A list is read in this many pieces, or in pieces larger than this: small enough for copies to
 * stay in the CPU's cache and for the buffer to take few pages, yet large enough that the three
 * system calls per piece do not matter.
 */
#define GOROUTINES_PIECES 48
#define GOROUTINES_MIN_PIECE ((size_t)128)

/* runtime/mfinal.go, fingRunningFinalizer; a bool up to 1.19. */
#define FING_RUNNING 2

void golang_goroutines_free(struct golang_goroutines *gs)
{
	if (!gs)
		return;
	golang_unwind_release(&gs->unwind);
	golang_labels_release(&gs->labels);
	map_release(&gs->systems);
	golang_goroutine_batch_free(gs->batch);
	free(gs->todo);
	free(gs->again);
	free(gs->items);
	free(gs);
}

/* Uses the program's own strings: the numbers differ between releases. */
static void reasons_read(struct golang_goroutines *gs)
{
	struct {
		uint64_t data;
		uint64_t len;
	} strings[GOLANG_GOROUTINE_MAX_REASONS];
	struct proc_mem *mem = gs->process->mem;
	ssize_t n = 0;

	if (gs->vars.wait_reasons)
		n = proc_mem_read_some(mem, gs->vars.wait_reasons, strings, sizeof(strings));
	for (size_t i = 0; n > 0 && i < (size_t)n / sizeof(strings[0]); i++) {
		char text[GOLANG_GOROUTINE_REASON_BYTES];

		/* The end of the table: something else follows. */
		if (strings[i].len >= sizeof(text) ||
		    proc_mem_read(mem, strings[i].data, text, strings[i].len, NULL) < 0)
			break;
		proc_text_copy(gs->reasons[i], sizeof(text), view_of(text, strings[i].len));
	}
}

int golang_goroutines_new(struct golang_process *process,
			  const struct golang_goroutines_options *options,
			  struct golang_goroutines **ret_goroutines, struct err *err)
{
	_cleanup_(golang_goroutines_freep) struct golang_goroutines *gs = calloc(1, sizeof(*gs));
	bool stripped = process->vars.how && strcmp(process->vars.how, "code references") == 0;
	int r;

	if (!gs)
		return err_oom(err);
	gs->process = process;
	gs->options = options ? *options : (struct golang_goroutines_options){0};
	r = golang_g_layout_for(process->layout->minor, &gs->layout, err);
	if (r == 0)
		r = golang_g_vars_find(process, gs->layout, stripped, &gs->vars, err);
	if (r < 0)
		return golang_process_why(process, r, err);
	golang_unwind_init(&gs->unwind, process, &gs->vars);
	golang_labels_init(&gs->labels, process->mem, gs->layout->labels_are_map);
	reasons_read(gs);
	*ret_goroutines = TAKE_PTR(gs);
	return 0;
}

struct slice {
	uint64_t data;
	uint64_t len;
	uint64_t cap;
};

static int item_compare(const void *a, const void *b)
{
	const struct golang_goroutine_item *x = a, *y = b;

	return x->g < y->g ? -1 : x->g > y->g;
}

/* Sorts by address. allgs is mostly in order; g's never overlap, so those that do are forged. */
static void items_sort(struct golang_goroutines *gs)
{
	size_t n = 0;
	bool sorted = true;

	for (size_t i = 1; i < gs->n_todo && sorted; i++)
		sorted = gs->todo[i - 1].g < gs->todo[i].g;
	if (!sorted)
		qsort(gs->todo, gs->n_todo, sizeof(*gs->todo), item_compare);
	for (size_t i = 0; i < gs->n_todo; i++)
		if (n == 0 || gs->todo[i].g - gs->todo[n - 1].g >= gs->layout->bytes)
			gs->todo[n++] = gs->todo[i];
	gs->stats.bad += gs->n_todo - n;
	gs->n_todo = n;
}

/* Reserves room for todo at its largest: goroutines, and those read again. */
static int items_reserve(struct golang_goroutines *gs)
{
	int r = golang_grow(&gs->again, &gs->again_cap, gs->n_todo, sizeof(*gs->again),
			    GOROUTINES_MAX);

	if (r == 0)
		r = golang_grow(&gs->items, &gs->cap, gs->n_todo, sizeof(*gs->items),
				GOROUTINES_MAX);
	return r;
}

/* Adds the plausible addresses; a list of zeros takes no memory. */
static int items_add(struct golang_goroutines *gs, const uint64_t *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int r;

		if (list[i] == 0 || list[i] % 8 || list[i] > INT64_MAX) {
			gs->stats.bad++;
			continue;
		}
		r = golang_grow(&gs->todo, &gs->todo_cap, gs->n_todo + 1, sizeof(*gs->todo),
				GOROUTINES_MAX);
		if (r < 0)
			return r;
		gs->todo[gs->n_todo++] = (struct golang_goroutine_item){
			.g = list[i],
			.stack_bytes = GOROUTINES_FIRST_STACK_BYTES,
		};
	}
	return 0;
}

static int list_copy(struct golang_goroutines *gs, const struct slice *allgs, struct err *err)
{
	size_t chunk = (size_t)MAX(MIN(allgs->len, GOROUTINES_LIST_CHUNK), (uint64_t)1);
	_cleanup_free_ uint64_t *list = malloc(chunk * sizeof(*list));

	if (!list)
		return err_oom(err);
	gs->n_todo = 0;
	gs->stats.bad = 0;
	for (uint64_t at = 0; at < allgs->len; at += chunk) {
		size_t n = (size_t)MIN(allgs->len - at, (uint64_t)chunk);
		int r = proc_mem_read(gs->process->mem, allgs->data + at * sizeof(*list), list,
				      n * sizeof(*list), err);

		if (r < 0)
			return r;
		if (items_add(gs, list, n) < 0)
			return err_oom(err);
	}
	return 0;
}

/* Reads the addresses of all g's. The list may move while it grows: then its header changes. */
static int list_read(struct golang_goroutines *gs, struct err *err)
{
	struct proc_mem *mem = gs->process->mem;
	struct slice before, after;
	int r = 0;

	for (int tries = 0; tries < GOROUTINES_LIST_TRIES; tries++) {
		r = proc_mem_read(mem, gs->vars.allgs, &before, sizeof(before), err);
		if (r < 0)
			return r;
		if (before.len > before.cap || before.len > GOROUTINES_MAX)
			return err_set(err, -EBADMSG, "runtime.allgs claims %llu goroutines",
				       (unsigned long long)before.len);
		if (gs->options.limit && before.len > gs->options.limit)
			return err_set(err, -E2BIG, "it has more than %llu goroutines",
				       (unsigned long long)gs->options.limit);
		r = list_copy(gs, &before, err);
		if (r < 0 && r != -EFAULT)
			return r;
		if (proc_mem_check(mem, gs->vars.allgs, &after, sizeof(after), err) < 0)
			return -ESRCH;
		if (r == 0 && after.data == before.data)
			return 0;
		if (r == 0)
			r = err_set(err, -EBADMSG, "runtime.allgs kept moving while being read");
	}
	return r;
}

/*
 * The runtime's clock is CLOCK_MONOTONIC; a core's stopped at an unknown time: see settle_waits().
 */
static void clock_read(struct golang_goroutines *gs)
{
	uint32_t fing = 0;
	size_t bytes = gs->process->layout->minor <= 19 ? 1 : sizeof(fing);

	gs->now_ns = proc_mem_pid(gs->process->mem) ? clock_mono_ns() : UINT64_MAX;
	gs->finalizer_runs = false;
	if (gs->vars.fing &&
	    proc_mem_read(gs->process->mem, gs->vars.fing, &fing, bytes, NULL) == 0)
		gs->finalizer_runs = bytes == 1 ? fing != 0 : fing & FING_RUNNING;
}

/* As the program itself would cut its stacks; it may change at any time. */
static unsigned int depth_read(const struct golang_goroutines *gs)
{
	uint32_t depth = 0;

	if (gs->vars.stack_depth &&
	    proc_mem_read(gs->process->mem, gs->vars.stack_depth, &depth, sizeof(depth), NULL) < 0)
		depth = 0;
	/* 0 turns profiles off, and their stacks with them. Not ours. */
	return depth && depth <= GOLANG_STACK_DEPTH_MAX ? depth : gs->layout->max_depth;
}

static int batches_read(struct golang_goroutines *gs, struct err *err)
{
	while (gs->n_todo) {
		struct golang_goroutine_item *todo = gs->todo;
		size_t at = 0, cap = gs->todo_cap;
		size_t piece = MAX(gs->n_todo / GOROUTINES_PIECES, GOROUTINES_MIN_PIECE);

		while (at < gs->n_todo) {
			ssize_t n = golang_goroutine_batch_read(gs, todo + at,
								MIN(gs->n_todo - at, piece), err);

			if (n < 0)
				return (int)n;
			at += (size_t)n;
		}
		/* Those to be read again form the next list, in the same order. */
		gs->todo = gs->again;
		gs->todo_cap = gs->again_cap;
		gs->n_todo = gs->n_again;
		gs->again = todo;
		gs->again_cap = cap;
		gs->n_again = 0;
	}
	return 0;
}

/*
 * Without a clock, wait_ns counts back from the end of time: take the latest start of a wait as
 * now.
 */
static void settle_waits(struct golang_goroutines *gs)
{
	uint64_t least = UINT64_MAX;

	if (gs->now_ns != UINT64_MAX)
		return;
	for (size_t i = 0; i < gs->len; i++)
		if (gs->items[i].wait_ns)
			least = MIN(least, gs->items[i].wait_ns);
	for (size_t i = 0; i < gs->len; i++)
		if (gs->items[i].wait_ns)
			gs->items[i].wait_ns -= least;
}

int golang_goroutines_read(struct golang_goroutines *gs, struct err *err)
{
	struct err why = {0};
	uint64_t word;
	int r;

	gs->stats = (struct golang_goroutines_stats){0};
	gs->len = gs->n_again = 0;
	gs->live = gs->faults = 0;
	gs->deep_bytes_left = GOROUTINES_DEEP_BYTES;
	golang_mem_cache_refill(&gs->process->cache);
	golang_unwind_begin(&gs->unwind);
	gs->stats.epoch = gs->unwind.epoch;
	golang_labels_clear(&gs->labels);
	if (!gs->batch)
		gs->batch = golang_goroutine_batch_new();
	if (!gs->batch)
		return err_oom(err);
	clock_read(gs);
	gs->stats.depth = gs->depth = depth_read(gs);
	r = list_read(gs, &why);
	if (r == 0) {
		items_sort(gs);
		r = items_reserve(gs) < 0 ? err_oom(&why) : 0;
	}
	if (r == 0) {
		gs->stride = gs->options.max && gs->n_todo > gs->options.max
				     ? (gs->n_todo + gs->options.max - 1) / gs->options.max
				     : 1;
		r = batches_read(gs, &why);
		settle_waits(gs);
	}
	if (r == 0 && golang_mem_cache_spent(&gs->process->cache))
		r = err_set(&why, -E2BIG,
			    "Go's tables need more work to read than any real program's: they are "
			    "damaged or forged");
	if (r == 0)
		return 0;
	gs->len = 0;
	/* The message of a failed read does not tell why; the address space may be gone. */
	if (proc_mem_check(gs->process->mem, gs->vars.allgs, &word, sizeof(word), err) == -ESRCH)
		return -ESRCH;
	return err_pass(err, r, &why);
}

void golang_goroutines_trim(struct golang_goroutines *gs)
{
	golang_mem_cache_release(&gs->process->cache);
	golang_labels_clear(&gs->labels);
	golang_goroutine_batch_free(gs->batch);
	free(gs->todo);
	free(gs->again);
	free(gs->items);
	gs->batch = NULL;
	gs->todo = gs->again = NULL;
	gs->items = NULL;
	gs->n_todo = gs->n_again = gs->len = 0;
	gs->todo_cap = gs->again_cap = gs->cap = 0;
}

size_t golang_goroutines_count(const struct golang_goroutines *gs)
{
	return gs->len;
}

const struct golang_goroutine *golang_goroutine_at(const struct golang_goroutines *gs, size_t i)
{
	return &gs->items[i];
}

const char *const *golang_goroutine_labels(const struct golang_goroutines *gs, uint32_t set)
{
	return golang_labels_list(&gs->labels, set);
}

const struct golang_goroutines_stats *golang_goroutines_stats(const struct golang_goroutines *gs)
{
	return &gs->stats;
}

const char *golang_goroutines_how(const struct golang_goroutines *gs)
{
	return gs->vars.how;
}

const char *golang_g_state_name(enum golang_g_state state)
{
	static const char *const names[GOLANG_G_STATES] = {
		[GOLANG_G_RUNNABLE] = "runnable",   [GOLANG_G_RUNNING] = "running",
		[GOLANG_G_SYSCALL] = "syscall",	    [GOLANG_G_WAITING] = "waiting",
		[GOLANG_G_PREEMPTED] = "preempted",
	};

	return state < GOLANG_G_STATES ? names[state] : "unknown";
}
