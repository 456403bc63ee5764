/*
 * src/golang/binary/module.h: runtime.moduledata: the runtime's own description of a linked
 * program.
 *
 * It is found by its contents: the address of the function table followed by the address of the
 * function names. In a live process its values are already relocated, so PIE, c-shared and external
 * linking need no special case. Plugins are linked by `next`.
 */
#pragma once

#include "base/err.h"
#include "golang/binary/layout.h"
#include "golang/binary/pclntab.h"

struct golang_module {
	uint64_t addr; /* of the moduledata */
	struct golang_pclntab tables;
	/* The ranges of global variables: both [start, end). */
	uint64_t noptrdata, enoptrbss;
	uint64_t data, ebss;
};

/* Searches the image's data for the module of the function table at pclntab. */
int golang_module_find(const struct golang_image *image, struct proc_mem *mem, uint64_t pclntab,
		       uint64_t *ret_addr, struct err *err);
/*
 * Reads the moduledata at addr. Without a layout (version not known yet), inlined calls stay
 * unknown. Borrows windows for the tables.
 */
int golang_module_load(struct golang_module *m, struct golang_mem_cache *cache, uint64_t addr,
		       const struct golang_layout *layout, struct err *err);
void golang_module_release(struct golang_module *m);
/* The address of the next module, 0 at the end. */
int golang_module_next(const struct golang_module *m, struct proc_mem *mem,
		       const struct golang_layout *layout, uint64_t *ret_addr);

static inline bool golang_module_has_variable(const struct golang_module *m, uint64_t addr)
{
	return (addr >= m->noptrdata && addr < m->enoptrbss) || (addr >= m->data && addr < m->ebss);
}
