/*
 * src/golang/binary/pclntab.h: Go's own table of functions, files, lines and inlined calls.
 *
 * header     magic u32, 0, 0, quantum u8, pointer size u8, nfunc u64, nfiles u64,
 *            [1.18+: text start u64], then u64 offsets of the tables from the header:
 *            function names, compilation units, file names, pc-value tables, functions
 * functab    nfunc × {entry, offset of the function's record}, then the end of the last function
 *            1.17: two u64, absolute;  1.18+: two u32, relative to moduledata.text
 * function   entry, name, ..., pcsp, pcfile, pcln, npcdata, cu, [1.20+: start line], funcID, flag,
 *            nfuncdata, pcdata offsets, funcdata
 *
 * Sources: runtime/symtab.go, runtime/runtime2.go (_func), internal/abi/symtab.go,
 * cmd/link/internal/ld/pcln.go of Go 1.17 to 1.27.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/view.h"
#include "golang/binary/image.h"
#include "golang/binary/mem_cache.h"
#include "golang/binary/scan.h"
#include "proc/mem.h"

enum golang_pcln_format {
	GOLANG_PCLN_116, /* 0xfffffffa: Go 1.16, 1.17 */
	GOLANG_PCLN_118, /* 0xfffffff0: Go 1.18, 1.19 */
	GOLANG_PCLN_120, /* 0xfffffff1: Go 1.20 and later */
};

/* A separate part of an executable's text (only huge programs have several). */
struct golang_textsect {
	uint64_t vaddr;
	uint64_t end;
	uint64_t base;
};

/* A table in target memory. */
struct golang_span {
	uint64_t addr;
	uint64_t len;
};

struct golang_pclntab {
	struct golang_mem_cache *cache; /* borrowed */
	enum golang_pcln_format format;
	uint64_t addr;
	unsigned int quantum; /* of instruction addresses: 1 on amd64, 4 on arm64 */
	uint64_t n_functions;
	struct golang_span names;
	struct golang_span units; /* u32 each */
	struct golang_span files;
	struct golang_span pctab;
	struct golang_span functions;
	struct golang_span functab;
	uint64_t text;
	uint64_t min_pc;
	uint64_t max_pc;
	uint64_t gofunc; /* base of funcdata offsets, 1.18+ */
	struct golang_textsect *textsects;
	size_t n_textsects;
};

/* One function's record. */
struct golang_func {
	uint64_t entry;
	uint64_t end;
	uint64_t inline_tree; /* address, 0 for none */
	uint32_t name;	      /* offset in names */
	uint32_t pcsp;	      /* pc-value tables, 0 for none */
	uint32_t pcfile;
	uint32_t pcln;
	uint32_t unit;
	int32_t start_line;
	uint32_t inline_index; /* pc-value table, 0 for none */
	uint8_t func_id;
	uint8_t flags;
};

/* Flags of a function; internal/abi/symtab.go, runtime/symtab.go. */
enum {
	GOLANG_FUNC_TOP_FRAME = 1, /* the outermost of its stack */
	GOLANG_FUNC_SP_WRITE = 2,  /* moves the stack pointer in ways pcsp cannot describe */
	GOLANG_FUNC_ASM = 4,	   /* 1.18+ */
};

/* One call that was inlined into a function. */
struct golang_inlined {
	uint32_t name;
	int32_t parent_pc; /* relative to the function's entry */
	int32_t start_line;
	uint8_t func_id;
};

/* Finds the table by section or by scanning; ret_how says which. -ENOENT if not found. */
int golang_pclntab_find(const struct golang_image *image, struct golang_scan *scan,
			uint64_t *ret_addr, const char **ret_how, struct err *err);
/* Reads the header at addr; the spans are filled by golang_module. */
int golang_pclntab_header(struct golang_pclntab *t, struct proc_mem *mem, uint64_t addr,
			  uint64_t *ret_names_offset, struct err *err);

/* The function containing pc. False if there is none, or its record is damaged. */
bool golang_pclntab_func_at(struct golang_pclntab *t, uint64_t pc, struct golang_func *ret_func);
/* Finds functions by name (below 64 characters), all in one pass. Missing ones get entry 0. */
#define GOLANG_FIND_MAX 32
int golang_pclntab_find_named(struct golang_pclntab *t, const char *const *names,
			      struct golang_func *ret_funcs, size_t n, struct err *err);

/* How far the stack pointer is below the return address at pc, or -1. */
int64_t golang_pclntab_sp_at(struct golang_pclntab *t, const struct golang_func *f, uint64_t pc);
/* The index of the innermost inlined call at pc, or -1. */
int64_t golang_pclntab_inline_at(struct golang_pclntab *t, const struct golang_func *f,
				 uint64_t pc);
bool golang_pclntab_inlined(struct golang_pclntab *t, const struct golang_func *f, int64_t index,
			    struct golang_inlined *ret_inlined);
/* Borrowed until the next call on t; empty if damaged. */
struct view golang_pclntab_name(struct golang_pclntab *t, uint32_t name);
/* As runtime.funcline: "?" and 0 if unknown. Borrowed until the next call on t. */
struct view golang_pclntab_file_line(struct golang_pclntab *t, const struct golang_func *f,
				     uint64_t pc, int64_t *ret_line);

/*
 * For walking all functions: len bytes of one of the tables at off, valid until the next call on t
 * (NULL if out of range); and the contents of a function's record, except inlined calls.
 */
const uint8_t *golang_pclntab_at(struct golang_pclntab *t, struct golang_span span, uint64_t off,
				 size_t len);
bool golang_pclntab_record(struct golang_pclntab *t, uint64_t record, struct golang_func *func);

/*
 * A pc-value table is a list of {zig-zag varint value delta, varint pc delta}; a value holds for
 * addresses below the new pc. It ends with a zero delta that is not the first.
 */
struct golang_pcvalue {
	uint64_t off; /* of the current piece */
	struct view piece;
	size_t pos;
	bool begun;
	uint32_t value;
	uint64_t pc; /* where the value ends */
};

struct golang_pcvalue golang_pcvalue_begin(uint32_t table, uint64_t entry);
/* 1 with the next value, 0 at the end, -EBADMSG, -E2BIG if the work budget is spent. */
int golang_pcvalue_next(struct golang_pclntab *t, struct golang_pcvalue *v);
