/* tests/targets/cgotrace/trace.c: the C side: two frames, and a traceback that reports them. */
#include "trace.h"

#include <stdint.h>

extern void goAllocate(int n);

void c_inner(int n)
{
	goAllocate(n);
}

void c_outer(int n)
{
	c_inner(n);
}

/* As runtime.SetCgoTraceback wants them. */
struct context_arg {
	uintptr_t context;
};

struct traceback_arg {
	uintptr_t context;
	uintptr_t sig_context;
	uintptr_t *buf;
	uintptr_t max;
};

void trace_context(void *p)
{
	struct context_arg *arg = p;

	arg->context = arg->context ? 0 : 1;
}

/* What an unwinder would find, innermost first: return addresses inside of the functions. */
void trace_back(void *p)
{
	struct traceback_arg *arg = p;
	const uintptr_t pcs[] = {(uintptr_t)c_inner + 5, (uintptr_t)c_outer + 5, 0};

	for (uintptr_t i = 0; i < arg->max && i < sizeof(pcs) / sizeof(pcs[0]); i++)
		arg->buf[i] = pcs[i];
}
