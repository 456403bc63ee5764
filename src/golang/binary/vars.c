/* src/golang/binary/vars.c: see vars.h. */
#include "golang/binary/vars.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "elf/symbols.h"
#include "golang/binary/refs.h"
#include "golang/buckets/bucket.h"

/* The functions whose references reveal the variables; same names since 1.17. */
enum witness {
	W_FLUSH_LOCKED,
	W_FLUSH,
	W_MALLOC,
	W_POST_SWEEP,
	W_STKBUCKET,
	W_SCHEDINIT,
	W_PROFILEALLOC,
	W_ALLOCMCACHE,
	W_NEXTSAMPLE,
	W_MALLOCGC, /* and all that follow */
	W_MALLOCGC_TINY,
	W_MALLOCGC_NOSCAN,
	W_MALLOCGC_SCAN_NO_HEADER,
	W_MALLOCGC_SCAN_HEADER,
	W_MALLOCGC_LARGE,
	W_COUNT,
};

static const char *const witness_names[W_COUNT] = {
	[W_FLUSH_LOCKED] = "runtime.mProf_FlushLocked",
	[W_FLUSH] = "runtime.mProf_Flush",
	[W_MALLOC] = "runtime.mProf_Malloc",
	[W_POST_SWEEP] = "runtime.mProf_PostSweep",
	[W_STKBUCKET] = "runtime.stkbucket",
	[W_SCHEDINIT] = "runtime.schedinit",
	[W_PROFILEALLOC] = "runtime.profilealloc",
	[W_ALLOCMCACHE] = "runtime.allocmcache",
	[W_NEXTSAMPLE] = "runtime.nextSample",
	[W_MALLOCGC] = "runtime.mallocgc",
	[W_MALLOCGC_TINY] = "runtime.mallocgcTiny",
	[W_MALLOCGC_NOSCAN] = "runtime.mallocgcSmallNoscan",
	[W_MALLOCGC_SCAN_NO_HEADER] = "runtime.mallocgcSmallScanNoHeader",
	[W_MALLOCGC_SCAN_HEADER] = "runtime.mallocgcSmallScanHeader",
	[W_MALLOCGC_LARGE] = "runtime.mallocgcLarge",
};

struct witnesses {
	struct golang_refs refs[W_COUNT];
};

static int witnesses_read(struct golang_module *module, struct witnesses *w, struct err *err)
{
	struct golang_func funcs[W_COUNT];
	int r = golang_pclntab_find_named(&module->tables, witness_names, funcs, W_COUNT, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < W_COUNT; i++)
		golang_refs_of(module, module->tables.cache->mem, &funcs[i], &w->refs[i]);
	return 0;
}

/* mProf_FlushLocked walks the list, stkbucket adds to it: the only word both touch. */
static uint64_t find_mbuckets(const struct witnesses *w)
{
	const struct golang_refs *flush = &w->refs[W_FLUSH_LOCKED];

	for (size_t i = 0; i < flush->len; i++) {
		const struct golang_ref *ref = &flush->refs[i];

		if (ref->width == 8 && ref->target % 8 == 0 &&
		    golang_refs_has(&w->refs[W_STKBUCKET], ref->target))
			return ref->target;
	}
	return 0;
}

/* A word that both this witness and mProf_Flush read. mProf_Malloc also reads profstackdepth. */
static uint64_t find_cycle_by(const struct witnesses *w, enum witness witness)
{
	const struct golang_refs *refs = &w->refs[witness];
	uint64_t by_address = 0;

	for (size_t i = 0; i < refs->len; i++) {
		const struct golang_ref *ref = &refs->refs[i];

		if (ref->target % 4 || !golang_refs_has(&w->refs[W_FLUSH], ref->target))
			continue;
		if (ref->kind == GOLANG_REF_LOAD && ref->width == 4)
			return ref->target;
		/* Locks are passed by address, too: prefer a plain load. */
		if (ref->kind == GOLANG_REF_ADDRESS && by_address == 0)
			by_address = ref->target;
	}
	return by_address;
}

/* 1.19+. Profile-guided builds inline mProf_Malloc into profilealloc, or that into others. */
static uint64_t find_cycle(const struct witnesses *w)
{
	static const enum witness witnesses[] = {W_MALLOC, W_PROFILEALLOC, W_POST_SWEEP};
	uint64_t cycle = 0;

	for (size_t i = 0; i < ARRAY_SIZE(witnesses) && !cycle; i++)
		cycle = find_cycle_by(w, witnesses[i]);
	return cycle;
}

/* Up to 1.18: mProf_FlushLocked reads nothing but the list and mProf.cycle. */
static uint64_t find_cycle_118(const struct witnesses *w, uint64_t mbuckets)
{
	const struct golang_refs *flush = &w->refs[W_FLUSH_LOCKED];
	uint64_t other = 0;

	for (size_t i = 0; i < flush->len; i++) {
		const struct golang_ref *ref = &flush->refs[i];

		if (ref->target == mbuckets || ref->target % 4)
			continue;
		if (ref->kind == GOLANG_REF_LOAD && ref->width == 4)
			return ref->target;
		if (other == 0)
			other = ref->target;
	}
	return other;
}

/* Votes for a variable to be MemProfileRate. */
#define RATE_MAX_CANDIDATES 32
#define RATE_ENOUGH_VOTES 3
struct rate_votes {
	uint64_t targets[RATE_MAX_CANDIDATES];
	unsigned int votes[RATE_MAX_CANDIDATES];
	size_t len;
};

static void rate_vote(struct rate_votes *v, uint64_t target, unsigned int votes)
{
	size_t i = 0;

	while (i < v->len && v->targets[i] != target)
		i++;
	if (i == RATE_MAX_CANDIDATES)
		return;
	if (i == v->len) {
		v->targets[v->len++] = target;
		v->votes[i] = 0;
	}
	v->votes[i] += votes;
}

/* A target counts once per witness, however often the code touches it. */
static bool first_word_ref(const struct golang_refs *refs, size_t i)
{
	const struct golang_ref *ref = &refs->refs[i];

	if (ref->width != 8 || ref->target % 8)
		return false;
	for (size_t k = 0; k < i; k++)
		if (refs->refs[k].target == ref->target && refs->refs[k].width == 8)
			return false;
	return true;
}

/* 1.20+: schedinit tests the byte disableMemoryProfiling and then stores 0 into the rate. */
static void vote_schedinit(const struct witnesses *w, struct rate_votes *v)
{
	const struct golang_refs *refs = &w->refs[W_SCHEDINIT];

	for (size_t i = 1; i < refs->len; i++) {
		const struct golang_ref *test = &refs->refs[i - 1];
		const struct golang_ref *ref = &refs->refs[i];

		if (ref->kind == GOLANG_REF_STORE && ref->width == 8 && test->width == 1 &&
		    test->kind != GOLANG_REF_STORE && ref->pc - test->pc <= 16)
			rate_vote(v, ref->target, 2);
	}
}

static bool any_mallocgc_has(const struct witnesses *w, uint64_t target)
{
	for (size_t i = W_MALLOCGC; i < W_COUNT; i++)
		if (golang_refs_has(&w->refs[i], target))
			return true;
	return false;
}

/*
 * No function is certain to survive: profile-guided builds inline profilealloc and un-inline
 * nextSample. So several witnesses vote.
 */
static uint64_t find_rate(const struct witnesses *w)
{
	const struct golang_refs *sample = &w->refs[W_NEXTSAMPLE];
	const struct golang_refs *alloc = &w->refs[W_PROFILEALLOC];
	struct rate_votes v = {0};
	size_t best = 0;

	vote_schedinit(w, &v);
	for (size_t i = 0; i < alloc->len; i++)
		if (first_word_ref(alloc, i) &&
		    golang_refs_has(&w->refs[W_ALLOCMCACHE], alloc->refs[i].target))
			rate_vote(&v, alloc->refs[i].target, 2);
	for (size_t i = 0; i < sample->len; i++)
		if (first_word_ref(sample, i))
			rate_vote(&v, sample->refs[i].target, 2);
	for (size_t i = 0; i < v.len; i++) {
		v.votes[i] += any_mallocgc_has(w, v.targets[i]);
		if (v.votes[i] > v.votes[best])
			best = i;
	}
	return v.len && v.votes[best] >= RATE_ENOUGH_VOTES ? v.targets[best] : 0;
}

static int find_by_code(struct golang_module *module, const struct golang_layout *layout,
			struct golang_vars *vars, struct err *err)
{
	_cleanup_free_ struct witnesses *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return err_oom(err);
	r = witnesses_read(module, w, err);
	if (r < 0)
		return r;
	vars->how = "code references";
	vars->mbuckets = find_mbuckets(w);
	vars->mprof_cycle = layout->minor <= 18 ? find_cycle_118(w, vars->mbuckets) : find_cycle(w);
	vars->mem_profile_rate = find_rate(w);
	return 0;
}

static bool vars_complete(const struct golang_vars *vars)
{
	return vars->mbuckets && vars->mprof_cycle && vars->mem_profile_rate;
}

static void find_by_symbol(const struct golang_image *image, const struct golang_layout *layout,
			   struct golang_vars *vars)
{
	struct elf_symbol symbols[] = {
		{.name = "runtime.mbuckets"},
		{.name = layout->minor <= 18 ? "runtime.mProf" : "runtime.mProfCycle"},
		{.name = "runtime.MemProfileRate"},
	};

	if (elf_symbols_find(image->elf, symbols, ARRAY_SIZE(symbols), NULL) !=
	    (int)ARRAY_SIZE(symbols))
		return;
	*vars = (struct golang_vars){
		.mbuckets = symbols[0].value + image->bias,
		.mprof_cycle = symbols[1].value + image->bias,
		.mem_profile_rate = symbols[2].value + image->bias,
		.how = "symbol table",
	};
}

/* Reads the variables: accepts only values a Go runtime can have. */
static int vars_prove(const struct golang_vars *vars, struct golang_module *module,
		      const struct golang_layout *layout, struct err *err)
{
	struct proc_mem *mem = module->tables.cache->mem;
	uint64_t head = 0;
	int64_t rate = 0;
	uint32_t cycle = 0;
	const struct proc_range ranges[] = {
		{.addr = vars->mbuckets, .dst = &head, .len = sizeof(head)},
		{.addr = vars->mprof_cycle, .dst = &cycle, .len = sizeof(cycle)},
		{.addr = vars->mem_profile_rate, .dst = &rate, .len = sizeof(rate)},
	};
	int r = proc_mem_readv(mem, ranges, ARRAY_SIZE(ranges), err);

	if (r < 0)
		return r;
	/* The runtime wraps the cycle at 3 << 25. */
	if (cycle >> layout->cycle_shift > 3U << 25 || rate < 0 || rate >= (1LL << 40))
		return err_set(err, -EBADMSG, "runtime variables (%s) hold impossible values",
			       vars->how);
	if (head && !golang_bucket_probe(mem, head))
		return err_set(err, -EBADMSG, "runtime.mbuckets (%s) does not point to a bucket",
			       vars->how);
	return 0;
}

int golang_vars_find(const struct golang_image *image, struct golang_module *module,
		     const struct golang_layout *layout, bool ignore_symbols,
		     struct golang_vars *ret_vars, struct err *err)
{
	struct golang_vars vars = {0};
	int r;

	/* A symbol table can be wrong (partly stripped, or forged): then rely on the code. */
	if (!ignore_symbols)
		find_by_symbol(image, layout, &vars);
	if (vars_complete(&vars) && vars_prove(&vars, module, layout, err) == 0) {
		*ret_vars = vars;
		return 0;
	}
	r = find_by_code(module, layout, &vars, err);
	if (r < 0)
		return r;
	if (!vars_complete(&vars))
		return err_lack(err, -ENOTSUP, ERR_CAUSE_ALTERED, "",
				"runtime variables not found in the code:%s%s%s; the runtime was "
				"altered (obfuscated?) or is linked in an unknown way",
				vars.mbuckets ? "" : " mbuckets",
				vars.mprof_cycle ? "" : " mProfCycle",
				vars.mem_profile_rate ? "" : " MemProfileRate");
	r = vars_prove(&vars, module, layout, err);
	if (r < 0)
		return r == -EBADMSG || r == -EFAULT ? -ENOTSUP : r;
	*ret_vars = vars;
	return 0;
}

/* The string header at addr, if it holds a version. */
static bool version_at(struct proc_mem *mem, uint64_t addr, struct golang_version *ret_version)
{
	struct {
		uint64_t data;
		uint64_t len;
	} header;
	char text[128];

	return proc_mem_read(mem, addr, &header, sizeof(header), NULL) == 0 && header.len > 4 &&
	       header.len <= sizeof(text) &&
	       proc_mem_read(mem, header.data, text, header.len, NULL) == 0 &&
	       (view_starts_with(view_of(text, header.len), "go1.") ||
		view_starts_with(view_of(text, header.len), "devel ")) &&
	       golang_version_parse(view_of(text, header.len), ret_version);
}

int golang_vars_build_version(struct golang_module *module, struct golang_version *ret_version,
			      struct err *err)
{
	struct proc_mem *mem = module->tables.cache->mem;
	_cleanup_free_ struct golang_refs *refs = malloc(sizeof(*refs));
	struct golang_func schedinit;
	int r;

	if (!refs)
		return err_oom(err);
	r = golang_pclntab_find_named(&module->tables, &witness_names[W_SCHEDINIT], &schedinit, 1,
				      err);
	if (r < 0)
		return r;
	golang_refs_of(module, mem, &schedinit, refs);
	for (size_t i = 0; i < refs->len; i++) {
		/* The code may access the string's length first. */
		if (version_at(mem, refs->refs[i].target, ret_version) ||
		    version_at(mem, refs->refs[i].target - 8, ret_version))
			return 0;
	}
	return err_set(err, -ENOENT, "the program has no Go version information");
}
