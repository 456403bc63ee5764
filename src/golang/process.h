/*
 * src/golang/process.h: a Go program, live or in a core file, opened for reading its runtime.
 *
 * Opening finds the Go module (the executable, or a c-shared library inside a C host), its version,
 * tables and runtime variables. It is done once; golang_heap_* (golang/heap/heap.h) then reads
 * profiles.
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
	/*
	 * The executable for a core whose own path no longer exists; NULL to take it from the core.
	 */
	const char *exe_path;
	/* Ignore .symtab, as if the binary were stripped. */
	bool ignore_symbols;
};

/* What opening found; for people and for JSON. Strings live as long as the process. */
struct golang_facts {
	const char *version;	   /* "go1.27.3" */
	const char *version_how;   /* "build info", "runtime.buildVersion", "--assume-layout" */
	const char *module_path;   /* the ELF file that holds the Go runtime */
	const char *tables_how;	   /* how pclntab was found: "section .gopclntab", "scan" */
	const char *variables_how; /* "symbol table", "code references" */
	uint64_t n_functions;
	uint64_t load_bias;
	bool has_heap;			/* the heap profile's variables are known */
	const struct err *heap_refusal; /* if !has_heap: the reason */
};

/*
 * Takes ownership of mem, also on failure. -ENOTSUP: not a Go program, or an unsupported version
 * (the message says which, and the remedy).
 */
int golang_process_open_take(struct proc_mem *mem, const struct golang_options *options,
			     struct golang_process **ret_process, struct err *err);
void golang_process_close(struct golang_process *process); /* NULL is fine */
DEFINE_CLEANUP(struct golang_process, golang_process_close)

const struct golang_facts *golang_process_facts(const struct golang_process *process);
struct proc_mem *golang_process_mem(const struct golang_process *process);
/* Frees what can be loaded again: for callers that keep many programs open. */
void golang_process_trim(struct golang_process *process);

/* Whether assume_layout can name this release; -EINVAL with a message. */
int golang_process_check_layout(const char *assume_layout, struct err *err);

/*
 * A cheap check for `sonde ps`: is this a Go program, and which version? Returns 1 and fills
 * version, 0 if it is not Go, or -errno; -ENOTSUP for a kind of program that sonde cannot read at
 * all, Go or not: a 32-bit one.
 */
int golang_detect(struct proc_mem *mem, char *version, size_t version_len, struct err *err);
