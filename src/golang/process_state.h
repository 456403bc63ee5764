/* src/golang/process_state.h: shared by the readers of an open process. */
#pragma once

#include "golang/binary/image.h"
#include "golang/binary/layout.h"
#include "golang/binary/mem_cache.h"
#include "golang/binary/module.h"
#include "golang/binary/vars.h"
#include "golang/process.h"

/* More plugins than this: the list is forged. */
#define GOLANG_MAX_MODULES 256

struct golang_process {
	struct proc_mem *mem;
	struct golang_image image;
	struct golang_version version;
	const struct golang_layout *layout;
	struct golang_mem_cache cache; /* for the tables of all modules */
	struct golang_module *modules; /* the program first, then plugins */
	size_t n_modules;
	struct golang_vars vars;
	struct golang_facts facts;
	struct err heap_refusal;
};

/* The function at pc, and its tables. */
bool golang_process_func_at(struct golang_process *process, uint64_t pc,
			    struct golang_pclntab **ret_tables, struct golang_func *ret_func);
/*
 * Why something failed. If the program exited or exec'd meanwhile, what was read of it is no use,
 * and neither is what was said about it: -ESRCH, and how it ended. Otherwise the code as it is.
 */
int golang_process_why(struct golang_process *process, int code, struct err *err);
/* Finds plugins opened since. Returns how many were added. */
int golang_process_refresh(struct golang_process *process, struct err *err);
