/* src/golang/goroutine/unwind.c: see unwind.h. */
#include "golang/goroutine/unwind.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "golang/buckets/bucket.h"
#include "golang/goroutine/goroutines.h"
#include "golang/grow.h"
#include "golang/symbols/symbolizer.h"

/* A program with this many distinct stacks is forged: stop keeping them. */
#define UNWIND_STACKS_BYTES ((size_t)64 << 20)
#define UNWIND_NODES_BYTES ((size_t)16 << 20)
#define UNWIND_MAX_STEPS ((size_t)1 << 20)
#define UNWIND_MAX_STACKS ((size_t)1 << 20)
/* Deeper stacks are walked each time. */
#define UNWIND_PATH_FRAMES 256

/* How to unwind the frame at an address; packed into the value of a map. */
struct step {
	int32_t delta;
	uint16_t flags;
};

enum {
	STEP_KNOWN = 1, /* the address is Go code */
	STEP_TOP = 2,
	STEP_MOVES_SP = 4,
	STEP_ENTRY = 8, /* the first instruction of its function */
	STEP_CGOCALLBACK = 16,
	STEP_INJECTED = 32, /* entered from an arbitrary address, not by a call */
};

struct golang_stack {
	const uint64_t *logical; /* NULL until needed */
	uint32_t n_logical;
};

/*
 * A frame of a stack walked before. Nodes start at the leaf, and stacks with the same first frames
 * share them. The frames determine where the return address is.
 */
struct unwind_node {
	uint64_t pc;
	const struct unwind_node *callee; /* NULL for a leaf */
	struct unwind_node *last;	  /* the caller requested last */
	uint32_t off;			  /* of its return address, relative to the leaf's sp */
	uint32_t stack;			  /* the one that ends here, or GOLANG_NO_STACK */
};

void golang_unwind_init(struct golang_unwind *u, struct golang_process *process,
			const struct golang_g_vars *vars)
{
	*u = (struct golang_unwind){
		.process = process,
		.vars = vars,
		.arm64 = proc_mem_machine(process->mem) == EM_AARCH64,
		.nodes_arena = {.max = UNWIND_NODES_BYTES},
		.physical = {.bytes = {.max = UNWIND_STACKS_BYTES}},
		.arena = {.max = UNWIND_STACKS_BYTES},
	};
}

void golang_unwind_release(struct golang_unwind *u)
{
	map_release(&u->steps);
	map_release(&u->nodes);
	arena_release(&u->nodes_arena);
	intern_release(&u->physical);
	arena_release(&u->arena);
	free(u->stacks);
}

void golang_unwind_begin(struct golang_unwind *u)
{
	struct golang_process *process = u->process;
	const struct golang_g_vars *vars = u->vars;
	uint64_t epoch = u->epoch;

	u->refreshed = false;
	if (u->physical.bytes.used < UNWIND_STACKS_BYTES / 2 &&
	    u->nodes_arena.used < UNWIND_NODES_BYTES / 2 && u->steps.len < UNWIND_MAX_STEPS / 2)
		return;
	golang_unwind_release(u);
	golang_unwind_init(u, process, vars);
	u->epoch = epoch + 1;
}

static bool func_at(struct golang_unwind *u, uint64_t pc, struct golang_pclntab **ret_tables,
		    struct golang_func *ret_func)
{
	if (golang_process_func_at(u->process, pc, ret_tables, ret_func))
		return true;
	if (u->refreshed)
		return false;
	u->refreshed = true;
	return golang_process_refresh(u->process, NULL) > 0 &&
	       golang_process_func_at(u->process, pc, ret_tables, ret_func);
}

static bool is_injected(const struct golang_unwind *u, const struct golang_func *f)
{
	const struct golang_layout *l = u->process->layout;

	if (f->func_id == l->id_sigpanic)
		return true;
	/* Up to 1.20 only sigpanic was treated this way. */
	return l->minor >= 21 && ((u->vars->async_preempt && f->entry == u->vars->async_preempt) ||
				  (u->vars->debug_call && f->entry == u->vars->debug_call));
}

static struct step step_find(struct golang_unwind *u, uint64_t pc)
{
	struct golang_pclntab *t;
	struct golang_func f;
	struct step s = {0};
	int64_t delta;

	if (!func_at(u, pc, &t, &f))
		return s;
	s.flags = STEP_KNOWN;
	if (f.flags & GOLANG_FUNC_TOP_FRAME)
		s.flags |= STEP_TOP;
	if (f.flags & GOLANG_FUNC_SP_WRITE)
		s.flags |= STEP_MOVES_SP;
	if (pc == f.entry)
		s.flags |= STEP_ENTRY;
	if (u->vars->cgocallback && f.entry == u->vars->cgocallback)
		s.flags |= STEP_CGOCALLBACK;
	if (is_injected(u, &f))
		s.flags |= STEP_INJECTED;
	delta = golang_pclntab_sp_at(t, &f, pc);
	s.delta = delta >= 0 && delta <= INT32_MAX ? (int32_t)delta : -1;
	return s;
}

static struct step step_at(struct golang_unwind *u, uint64_t pc)
{
	struct step s;
	uint64_t value;

	if (map_get(&u->steps, pc, &value))
		return (struct step){.delta = (int32_t)(uint32_t)value,
				     .flags = (uint16_t)(value >> 32)};
	s = step_find(u, pc);
	/* Only a cache: if out of memory, compute it again. */
	if (u->steps.len < UNWIND_MAX_STEPS)
		(void)map_put(&u->steps, pc, (uint64_t)s.flags << 32 | (uint32_t)s.delta);
	return s;
}

/* The walk over one stack. key[0] holds whatever else distinguishes stacks; the pcs follow. */
struct walk {
	uint64_t key[GOLANG_UNWIND_MAX_FRAMES + 1];
	uint64_t offs[GOLANG_UNWIND_MAX_FRAMES];
	size_t n;
};

static enum golang_unwound walk_stack(struct golang_unwind *u, const struct golang_stack_copy *copy,
				      struct walk *w)
{
	uint64_t pc = copy->pc, off = 0;

	for (w->n = 0; w->n < GOLANG_UNWIND_MAX_FRAMES;) {
		struct step s = step_at(u, pc);
		bool moves_sp = s.flags & STEP_MOVES_SP && !(s.flags & STEP_CGOCALLBACK) &&
				!(w->n == 0 && copy->is_syscall);
		uint64_t at;

		if (!(s.flags & STEP_KNOWN))
			return GOLANG_UNWIND_BAD;
		w->key[++w->n] = pc;
		if (s.flags & STEP_TOP)
			return GOLANG_UNWOUND;
		/* On arm64 the return address is at sp, once there is a frame. */
		if (moves_sp || s.delta < 0 || (u->arm64 && s.delta == 0))
			return GOLANG_UNWIND_BAD;
		at = u->arm64 ? off : off + (uint64_t)s.delta;
		if (at > copy->top - copy->sp || copy->top - copy->sp - at < 8)
			return GOLANG_UNWIND_BAD;
		if (!view_u64(copy->bytes, at, &pc))
			return GOLANG_UNWIND_MORE;
		w->offs[w->n - 1] = at;
		off += (uint64_t)s.delta + (u->arm64 ? 0 : 8);
	}
	return GOLANG_UNWOUND;
}

/* The frame at pc that called callee; NULL if not seen yet. */
static struct unwind_node *node_find(const struct golang_unwind *u, struct unwind_node *callee,
				     uint64_t pc)
{
	struct unwind_node *node;
	uint64_t value;

	if (callee && callee->last && callee->last->pc == pc)
		return callee->last;
	if (!map_get(&u->nodes, hash_mix((uintptr_t)callee) + pc, &value))
		return NULL;
	node = (struct unwind_node *)(uintptr_t)value;
	if (node->pc != pc || node->callee != callee)
		return NULL;
	if (callee)
		callee->last = node;
	return node;
}

static struct unwind_node *node_add(struct golang_unwind *u, struct unwind_node *callee,
				    uint64_t pc)
{
	struct unwind_node *node = arena_alloc(&u->nodes_arena, sizeof(*node));

	if (!node)
		return NULL;
	*node = (struct unwind_node){.pc = pc, .callee = callee, .stack = GOLANG_NO_STACK};
	if (map_put(&u->nodes, hash_mix((uintptr_t)callee) + pc, (uint64_t)(uintptr_t)node) < 0)
		return NULL;
	if (callee)
		callee->last = node;
	return node;
}

static bool is_kept(const struct golang_stack_copy *copy)
{
	return !copy->exact && !copy->is_syscall;
}

/* A stack walked before, or GOLANG_NO_STACK. */
static uint32_t path_follow(const struct golang_unwind *u, const struct golang_stack_copy *copy)
{
	struct unwind_node *node = is_kept(copy) ? node_find(u, NULL, copy->pc) : NULL;
	size_t n = 0;

	for (; node && node->stack == GOLANG_NO_STACK; n++) {
		uint64_t pc;

		if (!view_u64(copy->bytes, node->off, &pc))
			return GOLANG_NO_STACK;
		node = node_find(u, node, pc);
	}
	return node && golang_mem_cache_spend(&u->process->cache, n / 16) ? node->stack
									  : GOLANG_NO_STACK;
}

/* Only a cache: what does not fit is walked again. */
static void path_keep(struct golang_unwind *u, const struct golang_stack_copy *copy,
		      const struct walk *w, uint32_t stack)
{
	struct unwind_node *node = NULL;

	if (!is_kept(copy) || w->n == 0 || w->n > UNWIND_PATH_FRAMES)
		return;
	for (size_t i = 0; i < w->n; i++) {
		struct unwind_node *caller = node_find(u, node, w->key[i + 1]);

		if (!caller)
			caller = node_add(u, node, w->key[i + 1]);
		if (!caller)
			return;
		node = caller;
		if (i + 1 < w->n)
			node->off = (uint32_t)w->offs[i];
	}
	node->stack = stack;
}

enum golang_unwound golang_unwind_stack(struct golang_unwind *u,
					const struct golang_stack_copy *copy, uint32_t *ret_stack)
{
	uint32_t stack = path_follow(u, copy);
	enum golang_unwound result;
	struct walk w;

	if (stack != GOLANG_NO_STACK) {
		*ret_stack = stack;
		return GOLANG_UNWOUND;
	}
	result = walk_stack(u, copy, &w);
	if (!golang_mem_cache_spend(&u->process->cache, w.n))
		return GOLANG_UNWIND_BAD;
	if (result != GOLANG_UNWOUND)
		return result;
	w.key[0] = copy->exact;
	if (intern_add(&u->physical, view_of(w.key, (w.n + 1) * sizeof(w.key[0])), &stack) < 0)
		return GOLANG_UNWIND_BAD;
	path_keep(u, copy, &w, stack);
	*ret_stack = stack;
	return GOLANG_UNWOUND;
}

const uint64_t *golang_unwind_physical(const struct golang_unwind *u, uint32_t stack, size_t *ret_n,
				       bool *ret_exact)
{
	struct view key = intern_get(&u->physical, stack);
	const uint64_t *words = (const uint64_t *)(const void *)key.data;

	*ret_n = key.len ? key.len / sizeof(*words) - 1 : 0;
	*ret_exact = key.len && words[0];
	return key.len ? words + 1 : NULL;
}

bool golang_unwind_injected(struct golang_unwind *u, uint64_t pc)
{
	return step_at(u, pc).flags & STEP_INJECTED;
}

bool golang_unwind_expand(struct golang_unwind *u, uint64_t pc, bool exact, uint8_t *callee,
			  void (*visit)(void *arg, const struct golang_active *active), void *arg)
{
	struct golang_active active = {0};
	struct golang_inlined in;
	struct golang_func f;

	if (!func_at(u, pc, &active.tables, &f))
		return false;
	active.func = &f;
	active.pc = exact || pc == f.entry ? pc : pc - 1;
	for (size_t steps = 0; steps < GOLANG_MAX_INLINE; steps++) {
		int64_t index = golang_pclntab_inline_at(active.tables, &f, active.pc);

		active.inlined =
			index >= 0 && golang_pclntab_inlined(active.tables, &f, index, &in);
		active.name = active.inlined ? in.name : f.name;
		active.func_id = active.inlined ? in.func_id : f.func_id;
		if (!golang_layout_elides(u->process->layout, active.func_id, *callee))
			visit(arg, &active);
		*callee = active.func_id;
		if (!active.inlined)
			return true;
		active.pc = f.entry + (uint64_t)(int64_t)in.parent_pc;
	}
	return true;
}

struct logical {
	uint64_t pcs[GOLANG_BUCKET_MAX_DEPTH];
	size_t n;
};

static void logical_add(void *arg, const struct golang_active *active)
{
	struct logical *l = arg;

	if (l->n < ARRAY_SIZE(l->pcs))
		l->pcs[l->n++] = active->pc + 1;
}

static void logical_make(struct golang_unwind *u, uint32_t stack, struct logical *l)
{
	bool exact;
	size_t n;
	const uint64_t *pcs = golang_unwind_physical(u, stack, &n, &exact);
	uint8_t callee = 0;

	l->n = 0;
	for (size_t i = 0; i < n && l->n < ARRAY_SIZE(l->pcs); i++) {
		if (!golang_unwind_expand(u, pcs[i], exact, &callee, logical_add, l))
			break;
		exact = golang_unwind_injected(u, pcs[i]);
	}
}

const uint64_t *golang_unwind_logical(struct golang_unwind *u, uint32_t stack, size_t *ret_n)
{
	size_t before = u->stacks_cap;
	struct logical l;

	*ret_n = 0;
	if (golang_grow(&u->stacks, &u->stacks_cap, (size_t)stack + 1, sizeof(*u->stacks),
			UNWIND_MAX_STACKS) < 0)
		return NULL;
	if (u->stacks_cap > before)
		memset(u->stacks + before, 0, (u->stacks_cap - before) * sizeof(*u->stacks));
	if (!u->stacks[stack].logical) {
		logical_make(u, stack, &l);
		u->stacks[stack].logical = arena_dup(&u->arena, l.pcs, l.n * sizeof(l.pcs[0]));
		u->stacks[stack].n_logical = u->stacks[stack].logical ? (uint32_t)l.n : 0;
	}
	*ret_n = u->stacks[stack].n_logical;
	return u->stacks[stack].logical;
}

/* The kernel's struct ucontext for amd64: rsp and rip. */
#define UCONTEXT_RSP 160
#define UCONTEXT_RIP 168
#define SIGNAL_MAX_FRAMES 64

static bool is_sigtramp(struct golang_unwind *u, uint64_t pc)
{
	struct golang_pclntab *t;
	struct golang_func f;

	return u->vars->sigtramp && func_at(u, pc, &t, &f) && f.entry == u->vars->sigtramp;
}

bool golang_unwind_interrupted(struct golang_unwind *u, struct proc_thread *thread)
{
	struct proc_mem *mem = u->process->mem;
	uint64_t pc = thread->pc, sp = thread->sp;

	for (size_t i = 0; i < SIGNAL_MAX_FRAMES && !u->arm64; i++) {
		struct step s = step_at(u, pc);

		if (!(s.flags & STEP_KNOWN) || s.delta < 0)
			return false;
		sp += (uint64_t)s.delta + 8;
		if (is_sigtramp(u, pc))
			return proc_mem_read(mem, sp + UCONTEXT_RSP, &thread->sp, 8, NULL) == 0 &&
			       proc_mem_read(mem, sp + UCONTEXT_RIP, &thread->pc, 8, NULL) == 0;
		if (s.flags & STEP_TOP || proc_mem_read(mem, sp - 8, &pc, 8, NULL) < 0)
			return false;
	}
	return false;
}
