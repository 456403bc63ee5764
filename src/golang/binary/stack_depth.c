/* src/golang/binary/stack_depth.c: see stack_depth.h. */
#include "golang/binary/stack_depth.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "golang/binary/refs.h"

enum witness {
	W_SAVE_EVENT,
	W_PARSE_DEBUG,
	W_PARSE_DEBUG_NEW, /* since 1.25 */
	W_COUNT,
};

static const char *const witness_names[W_COUNT] = {
	[W_SAVE_EVENT] = "runtime.saveblockevent",
	[W_PARSE_DEBUG] = "runtime.parsedebugvars",
	[W_PARSE_DEBUG_NEW] = "runtime.parseRuntimeDebugVars",
};

/* Set from GODEBUG, and read when a wait is recorded. */
uint64_t golang_stack_depth_find(struct golang_module *module)
{
	_cleanup_free_ struct golang_refs *refs = calloc(W_COUNT, sizeof(*refs));
	struct golang_func funcs[W_COUNT];

	if (!refs ||
	    golang_pclntab_find_named(&module->tables, witness_names, funcs, W_COUNT, NULL) < 0)
		return 0;
	for (size_t i = 0; i < W_COUNT; i++)
		golang_refs_of(module, module->tables.cache->mem, &funcs[i], &refs[i]);
	for (size_t i = 0; i < refs[W_SAVE_EVENT].len; i++) {
		const struct golang_ref *ref = &refs[W_SAVE_EVENT].refs[i];

		if (ref->width == 4 && ref->target % 4 == 0 &&
		    (golang_refs_has(&refs[W_PARSE_DEBUG], ref->target) ||
		     golang_refs_has(&refs[W_PARSE_DEBUG_NEW], ref->target)))
			return ref->target;
	}
	return 0;
}
