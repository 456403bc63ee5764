/*
 * src/golang/metrics/metrics.c: see metrics.h.
 *
 * One vectored read fetches everything; a second one rereads the number of GC cycles, to verify
 * that it is still the same program and that no garbage collection finished meanwhile. Variables
 * found in a stripped program may turn out to be others: each reading has to make sense by itself
 * and after the one before.
 */
#include "golang/metrics/metrics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "golang/metrics/layout.h"

#define METRICS_MAX_TRIES 8
/* The end of a collection takes less: figures that contradict each other are read again. */
#define METRICS_PAUSE_NS NS_PER_MS

struct golang_metrics_reader {
	struct golang_process *process; /* borrowed */
	const struct golang_metrics_layout *layout;
	struct golang_metrics_vars vars;
	struct golang_metrics_slice allp; /* the slice that ps come from */
	uint64_t *ps;
	uint32_t *free_gs; /* of each p */
	struct proc_range *ranges;
	struct golang_metrics_gc_mark gc; /* of the last reading */
	uint64_t total_alloc_bytes;	  /* the same */
};

/* The result of one vectored read, except free_gs. */
struct metrics_image {
	struct golang_metrics_gc gc;
	uint8_t controller[GOLANG_CONTROLLER_BYTES];
	uint8_t sched[GOLANG_SCHED_BYTES];
	struct golang_metrics_slice allp;
	struct golang_metrics_slice allgs;
};

#define METRICS_FIXED_RANGES 5

static bool has_sched(const struct golang_metrics_reader *m)
{
	return m->vars.sched && m->vars.allp && m->vars.allgs;
}

/* The ps never move, but runtime.GOMAXPROCS(n) may change their number. */
static int load_ps(struct golang_metrics_reader *m, const struct golang_metrics_slice *allp,
		   struct err *err)
{
	_cleanup_free_ uint64_t *ps = NULL;
	_cleanup_free_ uint32_t *free_gs = NULL;
	_cleanup_free_ struct proc_range *ranges = NULL;
	int r;

	if (!golang_metrics_slice_is_sane(allp, GOLANG_METRICS_MAX_PS))
		return err_set(err, -EBADMSG, "runtime.allp holds impossible values");
	ps = calloc(allp->len, sizeof(*ps));
	free_gs = calloc(allp->len, sizeof(*free_gs));
	ranges = calloc(allp->len + METRICS_FIXED_RANGES, sizeof(*ranges));
	if (!ps || !free_gs || !ranges)
		return err_oom(err);
	r = proc_mem_read(m->process->mem, allp->data, ps, allp->len * sizeof(*ps), err);
	if (r < 0)
		return r;
	free(m->ps);
	free(m->free_gs);
	free(m->ranges);
	m->ps = TAKE_PTR(ps);
	m->free_gs = TAKE_PTR(free_gs);
	m->ranges = TAKE_PTR(ranges);
	m->allp = *allp;
	return 0;
}

int golang_metrics_reader_new(struct golang_process *process,
			      const struct golang_metrics_vars *vars,
			      struct golang_metrics_reader **ret_reader, struct err *err)
{
	_cleanup_(golang_metrics_freep) struct golang_metrics_reader *m = calloc(1, sizeof(*m));
	struct golang_metrics_slice allp;
	int r;

	if (!m)
		return err_oom(err);
	m->process = process;
	m->layout = golang_metrics_layout(process->layout->minor);
	m->vars = *vars;
	m->ranges = calloc(METRICS_FIXED_RANGES, sizeof(*m->ranges));
	if (!m->ranges)
		return err_oom(err);
	if (has_sched(m)) {
		r = proc_mem_read(process->mem, m->vars.allp, &allp, sizeof(allp), err);
		if (r == 0)
			r = load_ps(m, &allp, err);
		if (r < 0)
			return r;
	}
	*ret_reader = TAKE_PTR(m);
	return 0;
}

int golang_metrics_new(struct golang_process *process, struct golang_metrics_reader **ret_reader,
		       struct err *err)
{
	struct golang_metrics_vars vars;
	int r = golang_metrics_vars_find(process, &vars, err);

	if (r == 0)
		r = golang_metrics_reader_new(process, &vars, ret_reader, err);
	return r < 0 ? golang_process_why(process, r, err) : 0;
}

void golang_metrics_free(struct golang_metrics_reader *m)
{
	if (!m)
		return;
	free(m->ps);
	free(m->free_gs);
	free(m->ranges);
	free(m);
}

static int read_image(struct golang_metrics_reader *m, struct metrics_image *image, struct err *err)
{
	size_t n = 0;

	if (m->vars.memstats)
		m->ranges[n++] = (struct proc_range){m->vars.memstats + (uint64_t)m->layout->ms_gc,
						     &image->gc, sizeof(image->gc)};
	if (m->vars.controller)
		m->ranges[n++] = (struct proc_range){m->vars.controller, image->controller,
						     sizeof(image->controller)};
	if (has_sched(m)) {
		m->ranges[n++] =
			(struct proc_range){m->vars.sched, image->sched, sizeof(image->sched)};
		m->ranges[n++] =
			(struct proc_range){m->vars.allp, &image->allp, sizeof(image->allp)};
		m->ranges[n++] =
			(struct proc_range){m->vars.allgs, &image->allgs, sizeof(image->allgs)};
		for (uint64_t i = 0; i < m->allp.len; i++)
			m->ranges[n++] =
				(struct proc_range){m->ps[i] + (uint64_t)m->layout->p_gfree,
						    &m->free_gs[i], sizeof(m->free_gs[i])};
	}
	return proc_mem_readv(m->process->mem, m->ranges, n, err);
}

/* A field of a struct; every offset in the table is within its image. */
static uint64_t word(const uint8_t *image, int offset)
{
	uint64_t value;

	memcpy(&value, image + offset, sizeof(value));
	return value;
}

static int32_t small(const uint8_t *image, int offset)
{
	int32_t value;

	memcpy(&value, image + offset, sizeof(value));
	return value;
}

static void take_gc(const struct golang_metrics_gc *gc, struct golang_metrics *out)
{
	out->has |= GOLANG_HAS_GC;
	out->gc_count = gc->n_gc;
	out->gc_forced_count = gc->n_forced;
	out->gc_pause_total_ns = gc->pause_total_ns;
	out->gc_last_end_unix_ns = gc->last_unix_ns;
	/* Readers convert it to an integer: it must be neither NaN nor above 1. */
	out->gc_cpu_fraction =
		gc->cpu_fraction >= 0 && gc->cpu_fraction <= 1 ? gc->cpu_fraction : 0;
	out->n_pauses = MIN(gc->n_gc, 256);
	for (uint32_t i = 0; i < out->n_pauses; i++)
		out->pauses_ns[i] = gc->pauses_ns[(gc->n_gc - out->n_pauses + i) % 256];
	if (out->n_pauses)
		out->gc_last_pause_ns = out->pauses_ns[out->n_pauses - 1];
}

/* Bytes allocated only grow. */
static const char *heap_doubt(const struct golang_metrics_reader *m, const uint8_t *c)
{
	const struct golang_metrics_layout *l = m->layout;
	uint64_t total_alloc;

	if (l->gc_memory_limit < 0)
		return NULL;
	total_alloc = word(c, l->gc_heap_in_use + 24);
	return total_alloc < m->total_alloc_bytes ? "the number of bytes allocated decreased"
						  : NULL;
}

static void take_heap(const struct golang_metrics_reader *m, const uint8_t *c,
		      struct golang_metrics *out)
{
	const struct golang_metrics_layout *l = m->layout;
	struct golang_metrics_pacer pacer;

	out->has |= GOLANG_HAS_HEAP;
	out->gc_percent = small(c, 0);
	out->heap_live_bytes = word(c, l->gc_heap_live);
	out->heap_marked_bytes = word(c, l->gc_heap_marked);
	out->heap_goal_bytes = word(c, l->gc_heap_goal);
	if (l->gc_memory_limit < 0)
		return;
	out->has |= GOLANG_HAS_LIMIT;
	out->memory_limit_bytes = (int64_t)word(c, l->gc_memory_limit);
	out->heap_inuse_bytes = word(c, l->gc_heap_in_use);
	out->heap_released_bytes = word(c, l->gc_heap_in_use + 8);
	out->total_alloc_bytes = word(c, l->gc_heap_in_use + 24);
	out->total_free_bytes = word(c, l->gc_heap_in_use + 32);
	out->mapped_ready_bytes = word(c, l->gc_heap_in_use + 40);
	pacer = (struct golang_metrics_pacer){
		.minor = m->process->layout->minor,
		.percent_goal = out->heap_goal_bytes,
		.sweep_dist_min_trigger = word(c, l->gc_sweep_dist_min_trigger),
		.triggered = word(c, l->gc_triggered),
		.memory_limit = (uint64_t)out->memory_limit_bytes,
		.heap_marked = out->heap_marked_bytes,
		.heap_free = word(c, l->gc_heap_in_use + 16),
		.heap_alloc = out->total_alloc_bytes - out->total_free_bytes,
		.mapped_ready = out->mapped_ready_bytes,
	};
	out->heap_goal_bytes = golang_metrics_heap_goal(&pacer);
}

/* Like runtime.gcount: goroutines ever created, minus those on free lists. */
static void take_sched(const struct golang_metrics_reader *m, const struct metrics_image *image,
		       struct golang_metrics *out)
{
	const struct golang_metrics_layout *l = m->layout;
	int64_t n = (int64_t)MIN(image->allgs.len, GOLANG_METRICS_MAX_GS);

	n -= small(image->sched, l->sched_ngsys);
	for (size_t i = 0; i < ARRAY_SIZE(l->sched_gfree); i++)
		if (l->sched_gfree[i] >= 0)
			n -= small(image->sched, l->sched_gfree[i]);
	for (uint64_t i = 0; i < m->allp.len; i++)
		n -= (int32_t)m->free_gs[i];
	out->has |= GOLANG_HAS_SCHED;
	out->goroutines = n < 1 ? 1 : (uint64_t)n;
	/* procresize sets both while the world is stopped. */
	out->gomaxprocs = (uint32_t)m->allp.len;
}

/* 1 if nothing changed while reading, 0 if something did. */
static int read_once(struct golang_metrics_reader *m, struct metrics_image *image, struct err *err)
{
	uint64_t proof = m->vars.memstats
				 ? m->vars.memstats + (uint64_t)m->layout->ms_gc +
					   offsetof(struct golang_metrics_gc, n_gc)
				 : (m->vars.controller ? m->vars.controller : m->vars.sched);
	struct err why = {0};
	uint32_t n_gc = 0;
	int r = read_image(m, image, &why);
	int gone = proc_mem_check(m->process->mem, proof, &n_gc, sizeof(n_gc), err);

	/* The message of a failed read does not tell why; the address space may be gone. */
	if (gone < 0)
		return gone;
	if (r < 0)
		return err_pass(err, r, &why);
	if (has_sched(m) && memcmp(&image->allp, &m->allp, sizeof(m->allp)) != 0) {
		r = load_ps(m, &image->allp, err);
		return r < 0 ? r : 0;
	}
	return !m->vars.memstats || n_gc == image->gc.n_gc;
}

/* What is wrong with the image, if anything; NULL in those that are fine. */
static void doubts_find(const struct golang_metrics_reader *m, const struct metrics_image *image,
			struct golang_metrics *out)
{
	out->no_gc = m->vars.memstats ? golang_metrics_gc_doubt(&image->gc, &m->gc)
				      : "runtime.memstats was not found";
	out->no_heap = m->vars.controller ? heap_doubt(m, image->controller)
					  : "runtime.gcController was not found";
	out->no_sched = has_sched(m)	 ? NULL
			: !m->vars.allp	 ? "runtime.allp was not found"
			: !m->vars.allgs ? "runtime.allgs was not found"
					 : "runtime.sched was not found";
}

/* Whether another try may help. */
static bool is_doubtful(const struct golang_metrics_reader *m, const struct golang_metrics *out)
{
	return (m->vars.memstats && out->no_gc) || (m->vars.controller && out->no_heap);
}

static void take_image(struct golang_metrics_reader *m, const struct metrics_image *image,
		       struct golang_metrics *out)
{
	if (!out->no_gc) {
		take_gc(&image->gc, out);
		m->gc = golang_metrics_gc_mark(&image->gc);
	}
	if (!out->no_heap) {
		take_heap(m, image->controller, out);
		m->total_alloc_bytes = out->total_alloc_bytes;
	}
	if (!out->no_sched)
		take_sched(m, image, out);
}

int golang_metrics_read(struct golang_metrics_reader *m, struct golang_metrics *ret_metrics,
			struct err *err)
{
	bool lives = proc_mem_pid(m->process->mem) != 0;
	struct metrics_image image = {0};
	struct golang_metrics out = {0};

	for (int tries = 1;; tries++) {
		int r = read_once(m, &image, err);

		if (r < 0)
			return r;
		doubts_find(m, &image, &out);
		if (r > 0 && !(lives && is_doubtful(m, &out)))
			break;
		if (tries == METRICS_MAX_TRIES && r == 0)
			return err_set(err, -EBADMSG,
				       "garbage collections kept finishing while reading runtime "
				       "statistics");
		if (tries == METRICS_MAX_TRIES)
			break;
		if (r > 0)
			clock_sleep_ns(METRICS_PAUSE_NS);
	}
	take_image(m, &image, &out);
	*ret_metrics = out;
	return 0;
}

void golang_metrics_describe_missing(const struct golang_metrics *m, char *dst, size_t len)
{
	const struct {
		const char *what, *why;
	} rows[] = {
		{"garbage collections", m->no_gc},
		{"heap size", m->no_heap},
		{"number of goroutines", m->no_sched},
	};
	size_t used = 0;

	dst[0] = 0;
	for (size_t i = 0; i < ARRAY_SIZE(rows) && used < len; i++)
		if (rows[i].why)
			used += (size_t)snprintf(dst + used, len - used, "%s%s unknown: %s",
						 used ? "; " : "", rows[i].what, rows[i].why);
}
