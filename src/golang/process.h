/*
 * src/golang/process.h: a Go program, live or in a core file, opened for reading its runtime.
 *
 * Opening finds the Go module (the executable, or a c-shared library inside a C host), its version,
 * tables and runtime variables. It is done once; golang_heap_* (golang/heap.h) then reads profiles.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "proc/mem.h"

struct golang_process; /* opaque */

struct golang_options {
	/* Treat an unknown or unreadable version as this one ("1.27"); NULL to fail closed. */
	const char *assume_layout;
	/* The executable for a core whose own path is gone; NULL to take it from the core. */
	const char *exe_path;
	/* Ignore .symtab, as if the binary were stripped. */
	bool ignore_symbols;
};

/* What opening found out; for people and for JSON. Strings live as long as the process. */
struct golang_facts {
	const char *version;	   /* "go1.27.3" */
	const char *version_how;   /* "build info", "runtime.buildVersion", "--assume-layout" */
	const char *module_path;   /* the ELF file that holds the Go runtime */
	const char *tables_how;	   /* how pclntab was found: "section .gopclntab", "scan" */
	const char *variables_how; /* "symbol table", "code references" */
	uint64_t n_functions;
	uint64_t load_bias;
	bool has_heap;			/* the heap profile's variables are known */
	const struct err *heap_refusal; /* when !has_heap: why not */
};

/*
 * Takes mem over, also on failure. -ENOTSUP: not a Go program, or a version that no layout is known
 * for (the sentence says which and how to go on).
 */
int golang_process_open_take(struct proc_mem *mem, const struct golang_options *options,
			     struct golang_process **ret_process, struct err *err);
void golang_process_close(struct golang_process *process); /* NULL is fine */
DEFINE_CLEANUP(struct golang_process, golang_process_close)

const struct golang_facts *golang_process_facts(const struct golang_process *process);
struct proc_mem *golang_process_mem(const struct golang_process *process);
/* Gives back what can be read again: for who keeps many programs open. */
void golang_process_trim(struct golang_process *process);

/* Is this a release that assume_layout can name? -EINVAL with a sentence. */
int golang_process_check_layout(const char *assume_layout, struct err *err);

/*
 * A cheap look for `sonde ps`: is this a Go program and which version? Returns 1 and fills version,
 * 0 when it is not Go, or -errno.
 */
int golang_detect(struct proc_mem *mem, char *version, size_t version_len, struct err *err);
