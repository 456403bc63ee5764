/*
 * src/cpu/symbols/symbolizer.h: finds the names of addresses.
 *
 *   Go        pclntab: inlined calls, files, lines
 *   native    DWARF where present, else .symtab, .dynsym, .gnu_debugdata, the separate debug file
 *             (/usr/lib/debug, by build id or debug link); C++ and Rust names demangled
 *   kernel    kallsyms, with modules: "func [module]"; "[kernel]" where there is no name
 *   JIT       /tmp/perf-PID.map in the target's own mount namespace; "[jit]" for what is not in it,
 *             "[anonymous]" without one
 *   frames    of interpreters: functions, files, lines from the process's memory (interp/interp.h);
 *             "[language]" where they are gone
 *   vdso      "func [vdso]"
 *   else      "[libfoo.so+0x1230]": the start of the unwind entry, so that samples of one function
 *             still come together; "[libfoo.so]" without even that
 *             "[libfoo.so plt]": its jump table
 *
 * Each distinct (file, address) is looked up once and cached; symbols and results have a memory
 * limit, and the least used are dropped first. One thread at a time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "cpu/sampler/sampler.h"
#include "cpu/unwind/files.h"

struct cpu_symbolizer; /* opaque */

struct cpu_symbolizer_options {
	/*
	 * 0: the default, 8 MB, or 16 MB with lines; the kernel's names, 1 to 2 MB, are extra.
	 * While files alternate, their tables may take up to twice their share.
	 */
	size_t max_bytes;
	bool lines; /* DWARF: files, lines and inlined calls of native code */
	/* NULL: the machine's /usr/lib/debug and /proc/kallsyms */
	const char *debug_root;
	const char *kallsyms;
};

/* One function; strings are valid until the next call on names. */
struct cpu_name {
	const char *function;	 /* demangled */
	const char *system_name; /* as the linker knows it; the same if not mangled */
	const char *file;	 /* "" if unknown */
	int64_t line;
	int64_t start_line;
};

#define CPU_SYMBOLIZER_MAX 64 /* functions at one address */

int cpu_symbolizer_new(const struct cpu_symbolizer_options *options,
		       struct cpu_symbolizer **ret_names, struct err *err);
void cpu_symbolizer_free(struct cpu_symbolizer *names); /* NULL is fine */
DEFINE_CLEANUP(struct cpu_symbolizer, cpu_symbolizer_free)

/*
 * The functions at an address, innermost inlined one first. Always at least one; made-up names are
 * in brackets. The caller must have moved a return address back by one.
 */
int cpu_symbolizer_file(struct cpu_symbolizer *names, const struct cpu_file *file, uint64_t vaddr,
			const struct cpu_name **ret_names, size_t *ret_n);
int cpu_symbolizer_kernel(struct cpu_symbolizer *names, uint64_t addr,
			  const struct cpu_name **ret_names, size_t *ret_n);
/* Anonymous memory of a process; generation as in struct cpu_process. */
int cpu_symbolizer_jit(struct cpu_symbolizer *names, pid_t pid, uint64_t generation, uint64_t addr,
		       const struct cpu_name **ret_names, size_t *ret_n);

/* A frame of a process with an interpreter. */
int cpu_symbolizer_interp(struct cpu_symbolizer *names, const struct cpu_process *process,
			  enum interp_kind kind, const struct interp_frame *frame,
			  const struct cpu_name **ret_names, size_t *ret_n);

/* Closes what is open of a file; its names stay. */
void cpu_symbolizer_forget_file(struct cpu_symbolizer *names, const struct cpu_file *file);
/* Forgets the perf maps and memory of exited processes. */
void cpu_symbolizer_forget_process(struct cpu_symbolizer *names, uint64_t generation);
