/* src/golang/contention/stack.c: restores inlined calls in stacks; see state.h. */
#include "golang/contention/state.h"

/* runtime/tracestack.go: the first entry of some stacks of 1.23 to 1.26; not an address. */
#define LOGICAL_STACK_SENTINEL UINT64_MAX

/* The function at pc, inlined or not, and where it was inlined. */
struct level {
	uint8_t func_id;
	bool inlined;
	uint64_t parent_pc;
};

static struct level level_at(struct golang_pclntab *t, const struct golang_func *f, uint64_t pc)
{
	struct golang_inlined in;
	int64_t index = golang_pclntab_inline_at(t, f, pc);

	if (index >= 0 && golang_pclntab_inlined(t, f, index, &in))
		return (struct level){
			.func_id = in.func_id,
			.inlined = true,
			.parent_pc = f->entry + (uint64_t)(int64_t)in.parent_pc,
		};
	return (struct level){.func_id = f->func_id};
}

/* The entry missing between pc's and the next one of the stack; 0 if none is. */
static uint64_t missing_parent(const struct golang_layout *l, struct golang_pclntab *t,
			       const struct golang_func *f, uint64_t pc, uint64_t next)
{
	struct level level = level_at(t, f, pc);
	uint8_t callee = level.func_id;

	for (size_t steps = 0; level.inlined && steps < GOLANG_MAX_INLINE; steps++) {
		uint64_t parent = level.parent_pc;

		if (next == parent + 1)
			return 0;
		level = level_at(t, f, parent);
		if (!golang_layout_elides(l, level.func_id, callee))
			return parent + 1;
	}
	return 0;
}

size_t golang_contention_expand(struct golang_process *p, const uint64_t *pcs, size_t n,
				uint64_t *ret_pcs, size_t max)
{
	uint64_t missing = 0;
	size_t len = 0, i = 0;

	while (len < max && (i < n || missing)) {
		uint64_t pc = missing ? missing : pcs[i++];
		struct golang_pclntab *t;
		struct golang_func f;

		missing = 0;
		if (pc == LOGICAL_STACK_SENTINEL)
			continue;
		if (!golang_process_func_at(p, pc, &t, &f)) {
			ret_pcs[len++] = pc;
			continue;
		}
		if (pc > f.entry)
			pc--;
		ret_pcs[len++] = pc + 1;
		/* After the last entry, runtime/pprof itself adds the missing ones. */
		if (i < n)
			missing = missing_parent(p->layout, t, &f, pc, pcs[i]);
	}
	return len;
}
