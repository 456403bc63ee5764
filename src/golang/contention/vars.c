/* src/golang/contention/vars.c: see vars.h. */
#include "golang/contention/vars.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "elf/symbols.h"
#include "golang/binary/refs.h"
#include "golang/binary/stack_depth.h"
#include "golang/buckets/bucket.h"

/* The functions whose references reveal the variables; runtime/mprof.go, chan.go, sema.go. */
enum witness {
	W_STKBUCKET,
	W_EVENT,     /* blockevent or mutexevent */
	W_EVENT_OLD, /* mutexevent until 1.26, linked under another name */
	W_SEMACQUIRE,
	W_CHANSEND,
	W_CHANRECV,
	W_SELECTGO,
	W_TICKS_PER_SECOND,
	W_SCHEDINIT,
	W_COUNT,
};

struct witnesses {
	struct golang_refs refs[W_COUNT];
};

struct golang_ticks_layout golang_ticks_layout(unsigned int minor)
{
	/* {lock, pad, val}; {lock, val} since 1.20; {lock, startTicks, startTime, val} since 1.22.
	 */
	if (minor <= 19)
		return (struct golang_ticks_layout){-1, -1, 16};
	if (minor <= 21)
		return (struct golang_ticks_layout){-1, -1, 8};
	return (struct golang_ticks_layout){8, 16, 24};
}

static int witnesses_read(struct golang_process *p, uint64_t typ, struct witnesses *w,
			  struct err *err)
{
	const char *const names[W_COUNT] = {
		[W_STKBUCKET] = "runtime.stkbucket",
		[W_EVENT] =
			typ == GOLANG_BUCKET_BLOCK ? "runtime.blockevent" : "runtime.mutexevent",
		[W_EVENT_OLD] = typ == GOLANG_BUCKET_BLOCK ? "runtime.blockevent" : "sync.event",
		[W_SEMACQUIRE] = "runtime.semacquire1",
		[W_CHANSEND] = "runtime.chansend",
		[W_CHANRECV] = "runtime.chanrecv",
		[W_SELECTGO] = "runtime.selectgo",
		[W_TICKS_PER_SECOND] = p->layout->minor >= 22 ? "runtime.ticksPerSecond"
							      : "runtime.tickspersecond",
		[W_SCHEDINIT] = "runtime.schedinit",
	};
	struct golang_func funcs[W_COUNT];
	int r = golang_pclntab_find_named(&p->modules[0].tables, names, funcs, W_COUNT, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < W_COUNT; i++)
		golang_refs_of(&p->modules[0], p->mem, &funcs[i], &w->refs[i]);
	return 0;
}

static bool seen_before(const struct golang_refs *refs, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (refs->refs[k].target == refs->refs[i].target)
			return true;
	return false;
}

/*
 * stkbucket puts a new bucket into one of three lists, by its type: after the memory list come the
 * mutex list and the block list, in this order, each a word it has not touched before.
 */
static uint64_t find_buckets(const struct witnesses *w, uint64_t mbuckets, uint64_t typ)
{
	const struct golang_refs *refs = &w->refs[W_STKBUCKET];
	size_t i = 0, wanted = typ == GOLANG_BUCKET_MUTEX ? 1 : 2;

	while (i < refs->len && refs->refs[i].target != mbuckets)
		i++;
	for (; i < refs->len; i++) {
		const struct golang_ref *ref = &refs->refs[i];

		if (ref->width != 8 || ref->target % 8 || ref->target == mbuckets ||
		    seen_before(refs, i))
			continue;
		if (--wanted == 0)
			return ref->target;
	}
	return 0;
}

/* Waiters check first whether to record: one of these must touch the rate as well. */
static bool asked_by_waiters(const struct witnesses *w, uint64_t typ, uint64_t target)
{
	if (typ == GOLANG_BUCKET_MUTEX)
		return golang_refs_has(&w->refs[W_SEMACQUIRE], target);
	return golang_refs_has(&w->refs[W_CHANSEND], target) ||
	       golang_refs_has(&w->refs[W_CHANRECV], target) ||
	       golang_refs_has(&w->refs[W_SELECTGO], target);
}

static uint64_t find_rate(const struct witnesses *w, uint64_t typ)
{
	const struct golang_refs *refs = &w->refs[w->refs[W_EVENT].len ? W_EVENT : W_EVENT_OLD];

	for (size_t i = 0; i < refs->len; i++) {
		const struct golang_ref *ref = &refs->refs[i];

		if (ref->width == 8 && ref->target % 8 == 0 &&
		    asked_by_waiters(w, typ, ref->target))
			return ref->target;
	}
	return 0;
}

/* ticksPerSecond locks the start of the struct and loads the value at its end. */
static uint64_t find_ticks(const struct witnesses *w, unsigned int minor)
{
	const struct golang_ticks_layout l = golang_ticks_layout(minor);
	const struct golang_refs *refs = &w->refs[W_TICKS_PER_SECOND];
	const struct golang_refs *init = &w->refs[W_SCHEDINIT];

	for (size_t i = 0; i < refs->len; i++)
		if (golang_refs_has(refs, refs->refs[i].target + (uint64_t)l.value))
			return refs->refs[i].target;
	/* Since 1.22 schedinit records the start, even if nobody ever needs the value. */
	for (size_t i = 0; l.start_ticks > 0 && i < init->len; i++) {
		const struct golang_ref *ref = &init->refs[i];

		if (ref->kind == GOLANG_REF_ADDRESS && ref->target % 8 == 0 &&
		    golang_refs_has(init, ref->target + (uint64_t)l.start_ticks) &&
		    golang_refs_has(init, ref->target + (uint64_t)l.start_time))
			return ref->target;
	}
	return 0;
}

static void find_by_code(const struct golang_process *p, const struct witnesses *w, uint64_t typ,
			 struct golang_contention_vars *vars)
{
	*vars = (struct golang_contention_vars){
		.buckets = find_buckets(w, p->vars.mbuckets, typ),
		.rate = find_rate(w, typ),
		.ticks = find_ticks(w, p->layout->minor),
	};
}

static bool find_by_symbol(const struct golang_process *p, uint64_t typ,
			   struct golang_contention_vars *vars)
{
	bool block = typ == GOLANG_BUCKET_BLOCK;
	struct elf_symbol symbols[] = {
		{.name = block ? "runtime.bbuckets" : "runtime.xbuckets"},
		{.name = block ? "runtime.blockprofilerate" : "runtime.mutexprofilerate"},
		{.name = "runtime.ticks"},
	};

	if (!p->image.elf || elf_symbols_find(p->image.elf, symbols, ARRAY_SIZE(symbols), NULL) < 0)
		return false;
	if (!symbols[0].value || !symbols[1].value)
		return false;
	*vars = (struct golang_contention_vars){
		.buckets = symbols[0].value + p->image.bias,
		.rate = symbols[1].value + p->image.bias,
		.ticks = symbols[2].value ? symbols[2].value + p->image.bias : 0,
	};
	return true;
}

/* Accepts only values a Go runtime can have. */
static int vars_prove(const struct golang_process *p, uint64_t typ,
		      const struct golang_contention_vars *vars, struct err *err)
{
	uint64_t head = 0;
	int64_t rate = 0;
	const struct proc_range ranges[] = {
		{.addr = vars->buckets, .dst = &head, .len = sizeof(head)},
		{.addr = vars->rate, .dst = &rate, .len = sizeof(rate)},
	};
	int r = proc_mem_readv(p->mem, ranges, ARRAY_SIZE(ranges), err);

	if (r < 0)
		return r;
	if (rate < 0)
		return err_set(err, -EBADMSG, "the sampling rate is %lld, which Go never sets",
			       (long long)rate);
	if (head && !golang_bucket_probe_typ(p->mem, head, typ))
		return err_set(err, -EBADMSG, "the list of %s buckets does not point to one",
			       typ == GOLANG_BUCKET_BLOCK ? "block" : "mutex");
	return 0;
}

/* A symbol table can be wrong; golang/process.c has checked this one. */
static bool may_use_symbols(const struct golang_process *p)
{
	return p->vars.how && strcmp(p->vars.how, "symbol table") == 0;
}

int golang_contention_vars_find(struct golang_process *p, uint64_t typ,
				struct golang_contention_vars *ret_vars, struct err *err)
{
	_cleanup_free_ struct witnesses *w = calloc(1, sizeof(*w));
	struct golang_contention_vars vars;
	int r;

	if (!w)
		return err_oom(err);
	r = witnesses_read(p, typ, w, err);
	if (r < 0)
		return r;
	if (!may_use_symbols(p) || !find_by_symbol(p, typ, &vars) ||
	    vars_prove(p, typ, &vars, NULL) < 0)
		find_by_code(p, w, typ, &vars);
	if (!vars.buckets || !vars.rate)
		return err_lack(err, -ENOTSUP, ERR_CAUSE_ALTERED, "",
				"runtime variables of the %s profile not found in the code:%s%s",
				typ == GOLANG_BUCKET_BLOCK ? "block" : "mutex",
				vars.buckets ? "" : " list", vars.rate ? "" : " rate");
	r = vars_prove(p, typ, &vars, err);
	if (r < 0)
		return r == -EBADMSG || r == -EFAULT ? -ENOTSUP : r;
	if (p->layout->minor >= 23)
		vars.stack_depth = golang_stack_depth_find(&p->modules[0]);
	*ret_vars = vars;
	return 0;
}
