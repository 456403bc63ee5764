/* src/golang/goroutine/vars.c: see vars.h. */
#include "golang/goroutine/vars.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "elf/symbols.h"
#include "golang/binary/refs.h"
#include "golang/binary/stack_depth.h"

/* Goroutines to check if the first one proves nothing. */
#define PROVE_GS 32

/* Functions that serve as witnesses, or whose entry matters by itself. */
enum function {
	F_ALLGADD,
	F_WAIT_REASON_STRING,
	F_GOROUTINEHEADER,
	F_IS_SYSTEM,
	F_RUNFINQ, /* up to 1.24 */
	F_RUN_FINALIZERS,
	F_RUN_CLEANUPS,
	F_MAIN,
	F_COROSTART,
	F_HANDLE_ASYNC_EVENT,
	F_SIGTRAMP,
	F_ASYNC_PREEMPT,
	F_DEBUG_CALL,
	F_CGOCALLBACK,
	F_SYSTEMSTACK_SWITCH,
	F_COUNT,
};

static const char *const function_names[F_COUNT] = {
	[F_ALLGADD] = "runtime.allgadd",
	[F_WAIT_REASON_STRING] = "runtime.waitReason.String",
	[F_GOROUTINEHEADER] = "runtime.goroutineheader",
	[F_IS_SYSTEM] = "runtime.isSystemGoroutine",
	[F_RUNFINQ] = "runtime.runfinq",
	[F_RUN_FINALIZERS] = "runtime.runFinalizers",
	[F_RUN_CLEANUPS] = "runtime.runCleanups",
	[F_MAIN] = "runtime.main",
	[F_COROSTART] = "runtime.corostart",
	[F_HANDLE_ASYNC_EVENT] = "runtime.handleAsyncEvent",
	[F_SIGTRAMP] = "runtime.sigtramp",
	[F_ASYNC_PREEMPT] = "runtime.asyncPreempt",
	[F_DEBUG_CALL] = "runtime.debugCallV2",
	[F_CGOCALLBACK] = "runtime.cgocallback",
	[F_SYSTEMSTACK_SWITCH] = "runtime.systemstack_switch",
};

/* allgadd appends, so it touches pointer, length and capacity of the slice. */
static uint64_t find_allgs(const struct golang_refs *refs)
{
	for (size_t i = 0; i < refs->len; i++) {
		uint64_t target = refs->refs[i].target;

		if (target % 8 == 0 && golang_refs_has(refs, target + 8) &&
		    golang_refs_has(refs, target + 16))
			return target;
	}
	return 0;
}

/* Entry 0 of the table is empty, entry 1 is the same in every release. */
static bool is_wait_reasons(struct proc_mem *mem, uint64_t addr)
{
	static const char first[] = "GC assist marking";
	struct {
		uint64_t data;
		uint64_t len;
	} strings[2];
	char text[sizeof(first) - 1];

	return addr && proc_mem_read(mem, addr, strings, sizeof(strings), NULL) == 0 &&
	       strings[0].len == 0 && strings[1].len == sizeof(text) &&
	       proc_mem_read(mem, strings[1].data, text, sizeof(text), NULL) == 0 &&
	       memcmp(text, first, sizeof(text)) == 0;
}

static uint64_t find_wait_reasons(struct proc_mem *mem, const struct golang_refs *refs)
{
	for (size_t i = 0; i < refs->len; i++)
		if (refs->refs[i].target % 8 == 0 && is_wait_reasons(mem, refs->refs[i].target))
			return refs->refs[i].target;
	return 0;
}

/*
 * isSystemGoroutine reads whether a finalizer runs; the goroutine that runs them writes it. It is
 * no pointer; arm64 code, and code that is not optimized, takes its address.
 */
static uint64_t find_fing(const struct golang_refs *asks, const struct golang_refs *says)
{
	for (size_t i = 0; i < asks->len; i++)
		if ((asks->refs[i].width != 8 || asks->refs[i].kind == GOLANG_REF_ADDRESS) &&
		    golang_refs_has(says, asks->refs[i].target))
			return asks->refs[i].target;
	return 0;
}

static int find_by_code(struct golang_process *p, const struct golang_func funcs[F_COUNT],
			struct golang_g_vars *vars, struct err *err)
{
	struct golang_module *module = &p->modules[0];
	_cleanup_free_ struct golang_refs *refs = calloc(2, sizeof(*refs));
	size_t finalizers = funcs[F_RUNFINQ].entry ? F_RUNFINQ : F_RUN_FINALIZERS;

	if (!refs)
		return err_oom(err);
	vars->how = "code references";
	golang_refs_of(module, p->mem, &funcs[F_ALLGADD], &refs[0]);
	vars->allgs = find_allgs(&refs[0]);
	golang_refs_of(module, p->mem, &funcs[F_WAIT_REASON_STRING], &refs[0]);
	vars->wait_reasons = find_wait_reasons(p->mem, &refs[0]);
	if (!vars->wait_reasons) {
		golang_refs_of(module, p->mem, &funcs[F_GOROUTINEHEADER], &refs[0]);
		vars->wait_reasons = find_wait_reasons(p->mem, &refs[0]);
	}
	golang_refs_of(module, p->mem, &funcs[F_IS_SYSTEM], &refs[0]);
	golang_refs_of(module, p->mem, &funcs[finalizers], &refs[1]);
	vars->fing = find_fing(&refs[0], &refs[1]);
	return 0;
}

static void find_by_symbol(const struct golang_process *p, struct golang_g_vars *vars)
{
	struct elf_symbol symbols[] = {
		{.name = "runtime.allgs"},
		{.name = "runtime.waitReasonStrings"},
		{.name = p->layout->minor <= 19 ? "runtime.fingRunning" : "runtime.fingStatus"},
	};

	if (elf_symbols_find(p->image.elf, symbols, ARRAY_SIZE(symbols), NULL) !=
	    (int)ARRAY_SIZE(symbols))
		return;
	vars->how = "symbol table";
	vars->allgs = symbols[0].value + p->image.bias;
	vars->wait_reasons = symbols[1].value + p->image.bias;
	vars->fing = symbols[2].value + p->image.bias;
}

struct g_list {
	uint64_t data, len, cap;
};

/* A goroutine starts at a function's entry, and was created by a go statement or by nothing. */
static bool starts_at_entry(struct golang_process *p, uint64_t start)
{
	struct golang_pclntab *t;
	struct golang_func f;

	return golang_process_func_at(p, start, &t, &f) && f.entry == start;
}

/*
 * In a library, the main goroutine ends and its g is reused. Then the first few must all start at
 * functions, or nowhere, like those of C threads; and one must start somewhere.
 */
static bool looks_like_gs(struct golang_process *p, const struct golang_g_layout *layout,
			  const struct g_list *allgs)
{
	size_t n = (size_t)MIN(allgs->len, (uint64_t)PROVE_GS), starts = 0;
	uint64_t gs[PROVE_GS];

	if (proc_mem_read(p->mem, allgs->data, gs, n * sizeof(gs[0]), NULL) < 0)
		return false;
	for (size_t i = 0; i < n; i++) {
		uint64_t start, goid;

		if (proc_mem_read(p->mem, gs[i] + layout->start_pc, &start, sizeof(start), NULL) <
			    0 ||
		    proc_mem_read(p->mem, gs[i] + layout->goid, &goid, sizeof(goid), NULL) < 0 ||
		    (start && !starts_at_entry(p, start)))
			return false;
		starts += start && goid;
	}
	return starts > 0;
}

/* The first goroutine has id 1 and starts at runtime.main: proves variable and layout. */
static bool begins_with_main(struct golang_process *p, const struct golang_g_layout *layout,
			     const struct golang_g_vars *vars, const struct g_list *allgs)
{
	uint64_t g, goid, start;

	return proc_mem_read(p->mem, allgs->data, &g, sizeof(g), NULL) == 0 &&
	       proc_mem_read(p->mem, g + layout->goid, &goid, sizeof(goid), NULL) == 0 &&
	       proc_mem_read(p->mem, g + layout->start_pc, &start, sizeof(start), NULL) == 0 &&
	       goid == 1 && start == vars->main;
}

static int vars_prove(struct golang_process *p, const struct golang_g_layout *layout,
		      const struct golang_g_vars *vars, struct err *err)
{
	struct g_list allgs;
	int r = proc_mem_read(p->mem, vars->allgs, &allgs, sizeof(allgs), err);

	if (r < 0)
		return r;
	/* A program that has hardly started has none yet: no proof either way. */
	if (allgs.len == 0 && allgs.cap == 0 && allgs.data == 0)
		return 0;
	if (allgs.len > allgs.cap || allgs.len == 0)
		return err_set(err, -EBADMSG, "runtime.allgs (%s) is not a slice", vars->how);
	if (begins_with_main(p, layout, vars, &allgs) || looks_like_gs(p, layout, &allgs))
		return 0;
	return err_set(err, -EBADMSG,
		       "runtime.allgs (%s) does not point to goroutines: their layout is not that "
		       "of Go 1.%u",
		       vars->how, p->layout->minor);
}

static void take_entries(const struct golang_func funcs[F_COUNT], struct golang_g_vars *vars)
{
	vars->main = funcs[F_MAIN].entry;
	vars->corostart = funcs[F_COROSTART].entry;
	vars->handle_async_event = funcs[F_HANDLE_ASYNC_EVENT].entry;
	vars->run_finalizers =
		funcs[F_RUNFINQ].entry ? funcs[F_RUNFINQ].entry : funcs[F_RUN_FINALIZERS].entry;
	vars->run_cleanups = funcs[F_RUN_CLEANUPS].entry;
	vars->sigtramp = funcs[F_SIGTRAMP].entry;
	vars->async_preempt = funcs[F_ASYNC_PREEMPT].entry;
	vars->debug_call = funcs[F_DEBUG_CALL].entry;
	vars->cgocallback = funcs[F_CGOCALLBACK].entry;
	vars->systemstack_switch = funcs[F_SYSTEMSTACK_SWITCH].entry;
}

int golang_g_vars_find(struct golang_process *p, const struct golang_g_layout *layout,
		       bool ignore_symbols, struct golang_g_vars *ret_vars, struct err *err)
{
	struct golang_func funcs[F_COUNT];
	struct golang_g_vars vars = {0};
	int r = golang_pclntab_find_named(&p->modules[0].tables, function_names, funcs, F_COUNT,
					  err);

	if (r < 0)
		return r;
	take_entries(funcs, &vars);
	/* A symbol table can be wrong (partly stripped, or forged): then rely on the code. */
	if (!ignore_symbols)
		find_by_symbol(p, &vars);
	if (!vars.allgs || vars_prove(p, layout, &vars, err) < 0) {
		r = find_by_code(p, funcs, &vars, err);
		if (r < 0)
			return r;
		if (!vars.allgs)
			return err_lack(err, -ENOTSUP, ERR_CAUSE_ALTERED, "",
					"runtime.allgs was not found in the code; the runtime was "
					"altered (obfuscated?) or is linked in an unknown way");
		r = vars_prove(p, layout, &vars, err);
	}
	if (r < 0)
		return r == -EBADMSG || r == -EFAULT ? -ENOTSUP : r;
	if (!is_wait_reasons(p->mem, vars.wait_reasons))
		vars.wait_reasons = 0;
	if (p->layout->minor >= 23)
		vars.stack_depth = golang_stack_depth_find(&p->modules[0]);
	*ret_vars = vars;
	return 0;
}
