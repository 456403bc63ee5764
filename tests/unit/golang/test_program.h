/*
 * tests/unit/golang/test_program.h: a whole Go 1.27 program for amd64, made up: an ELF header,
 * build info, module data, function table, code that touches the runtime's variables, the variables
 * and a list of buckets. It has no file and no symbols: all must be found from memory.
 *
 *   0x000  ELF header, one segment        0x1000  code, 0x40 bytes a function
 *   0x100  build info                     0x2000  variables
 *   0x200  module data                    0x2100  buckets
 *   0x500  function table, names, ...
 */
#pragma once

#include <elf.h>
#include <stdint.h>
#include <string.h>

#include "golang/binary/buildinfo.h"
#include "golang/buckets/bucket.h"

enum {
	PROGRAM_BASE = 0x10000,
	PROGRAM_BYTES = 0x4000,
	PROGRAM_BUILDINFO = 0x100,
	PROGRAM_MODULE = 0x200,
	PROGRAM_HEADER = 0x500,
	PROGRAM_NAMES = 0x560,
	PROGRAM_UNITS = 0x7c0,
	PROGRAM_FILES = 0x7d0,
	PROGRAM_PCTAB = 0x7e0,
	PROGRAM_FUNCTIONS = 0x800,
	PROGRAM_CODE = 0x1000,
	PROGRAM_CODE_BYTES = 0x40, /* of each function */
	PROGRAM_MBUCKETS = 0x2000,
	PROGRAM_CYCLE = 0x2008,
	PROGRAM_FLAG = 0x200c,
	PROGRAM_RATE = 0x2010,
	PROGRAM_BUCKETS = 0x2100,
	PROGRAM_DEPTH = 3, /* of its stacks */
};

/* What a function does with a variable. */
struct program_code {
	const char *name;
	struct {
		uint8_t bytes[3];
		uint8_t immediate; /* bytes after the displacement */
		uint16_t variable;
	} touches[2];
};

static const struct program_code program_functions[] = {
	{"runtime.mProf_FlushLocked", {{{0x48, 0x8b, 0x05}, 0, PROGRAM_MBUCKETS}}},
	{"runtime.stkbucket", {{{0x48, 0x8b, 0x0d}, 0, PROGRAM_MBUCKETS}}},
	{"runtime.mProf_Malloc", {{{0x90, 0x8b, 0x0d}, 0, PROGRAM_CYCLE}}},
	{"runtime.mProf_Flush", {{{0x90, 0x8b, 0x05}, 0, PROGRAM_CYCLE}}},
	{"runtime.schedinit",
	 {{{0x90, 0x80, 0x3d}, 1, PROGRAM_FLAG}, {{0x48, 0xc7, 0x05}, 4, PROGRAM_RATE}}},
	{"runtime.mallocgc", {{{0x48, 0x8b, 0x15}, 0, PROGRAM_RATE}}},
	{.name = "main.main"},
	{.name = "runtime.goexit"},
};
#define PROGRAM_N_FUNCTIONS (sizeof(program_functions) / sizeof(program_functions[0]))

struct program {
	_Alignas(64) uint8_t bytes[PROGRAM_BYTES];
	size_t n_buckets;
	size_t buckets_end;
};

static inline void program_u32(struct program *p, size_t off, uint32_t value)
{
	memcpy(p->bytes + off, &value, sizeof(value));
}

static inline void program_u64(struct program *p, size_t off, uint64_t value)
{
	memcpy(p->bytes + off, &value, sizeof(value));
}

static inline uint64_t program_address_of(size_t function, uint64_t off)
{
	return PROGRAM_BASE + PROGRAM_CODE + function * PROGRAM_CODE_BYTES + off;
}

static inline void program_elf(struct program *p)
{
	const Elf64_Ehdr header = {
		.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
		.e_type = ET_DYN,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(header),
		.e_ehsize = sizeof(header),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 1,
	};
	const Elf64_Phdr segment = {.p_type = PT_LOAD,
				    .p_flags = PF_R | PF_W | PF_X,
				    .p_filesz = PROGRAM_BYTES,
				    .p_memsz = PROGRAM_BYTES};

	memcpy(p->bytes, &header, sizeof(header));
	memcpy(p->bytes + sizeof(header), &segment, sizeof(segment));
	memcpy(p->bytes + PROGRAM_BUILDINFO, GOLANG_BUILDINFO_MAGIC "\x08\x02", 16);
	memcpy(p->bytes + PROGRAM_BUILDINFO + 32, "\x08go1.27.3", 9);
}

static inline void program_code(struct program *p, size_t i)
{
	size_t at = PROGRAM_CODE + i * PROGRAM_CODE_BYTES;

	memset(p->bytes + at, 0xcc, PROGRAM_CODE_BYTES);
	for (size_t k = 0; k < 2 && program_functions[i].touches[k].variable; k++) {
		size_t end = at + 7 + program_functions[i].touches[k].immediate;

		memcpy(p->bytes + at, program_functions[i].touches[k].bytes, 3);
		program_u32(p, at + 3, (uint32_t)(program_functions[i].touches[k].variable - end));
		memset(p->bytes + at + 7, 0, end - at - 7);
		at = end;
	}
}

static inline void program_tables(struct program *p)
{
	size_t name = PROGRAM_NAMES + 1;
	size_t record = PROGRAM_FUNCTIONS + 8 * (PROGRAM_N_FUNCTIONS + 1);

	program_u32(p, PROGRAM_HEADER, 0xfffffff1);
	memcpy(p->bytes + PROGRAM_HEADER + 6, "\1\10", 2);
	program_u64(p, PROGRAM_HEADER + 8, PROGRAM_N_FUNCTIONS);
	for (size_t i = 0; i < 5; i++)
		program_u64(p, PROGRAM_HEADER + 32 + 8 * i, PROGRAM_NAMES - PROGRAM_HEADER);
	memcpy(p->bytes + PROGRAM_FILES, "main.go", 8);
	/* One table for all: the value 0, that is file 0 and line 0, up to the function's end. */
	memcpy(p->bytes + PROGRAM_PCTAB, "\0\2\100\0", 4);
	for (size_t i = 0; i < PROGRAM_N_FUNCTIONS; i++) {
		size_t len = strlen(program_functions[i].name) + 1;

		memcpy(p->bytes + name, program_functions[i].name, len);
		program_u32(p, PROGRAM_FUNCTIONS + 8 * i, (uint32_t)(i * PROGRAM_CODE_BYTES));
		program_u32(p, PROGRAM_FUNCTIONS + 8 * i + 4,
			    (uint32_t)(record - PROGRAM_FUNCTIONS));
		program_u32(p, record + 4, (uint32_t)(name - PROGRAM_NAMES));
		program_u32(p, record + 20, 1);
		program_u32(p, record + 24, 1);
		program_code(p, i);
		name += len;
		record += 48;
	}
	program_u32(p, PROGRAM_FUNCTIONS + 8 * PROGRAM_N_FUNCTIONS,
		    PROGRAM_N_FUNCTIONS * PROGRAM_CODE_BYTES);
}

static inline void program_slice(struct program *p, size_t off, size_t at, uint64_t len)
{
	program_u64(p, PROGRAM_MODULE + off, PROGRAM_BASE + at);
	program_u64(p, PROGRAM_MODULE + off + 8, len);
	program_u64(p, PROGRAM_MODULE + off + 16, len);
}

static inline void program_module(struct program *p)
{
	size_t md = PROGRAM_MODULE;
	uint64_t text = program_address_of(0, 0);

	program_u64(p, md, PROGRAM_BASE + PROGRAM_HEADER);
	program_slice(p, 8, PROGRAM_NAMES, PROGRAM_UNITS - PROGRAM_NAMES);
	program_slice(p, 32, PROGRAM_UNITS, 1);
	program_slice(p, 56, PROGRAM_FILES, 8);
	program_slice(p, 80, PROGRAM_PCTAB, 4);
	program_slice(p, 104, PROGRAM_FUNCTIONS, PROGRAM_CODE - PROGRAM_FUNCTIONS);
	program_slice(p, 128, PROGRAM_FUNCTIONS, PROGRAM_N_FUNCTIONS + 1);
	program_u64(p, md + 160, text);
	program_u64(p, md + 168, text + PROGRAM_N_FUNCTIONS * PROGRAM_CODE_BYTES);
	program_u64(p, md + 176, text);
	program_u64(p, md + 192, PROGRAM_BASE + PROGRAM_MBUCKETS);
	program_u64(p, md + 208, PROGRAM_BASE + PROGRAM_MBUCKETS);
	program_u64(p, md + 232, PROGRAM_BASE + PROGRAM_BUCKETS);
	program_u64(p, md + 248, PROGRAM_BASE + PROGRAM_BUCKETS);
}

/* mallocgc, called by main.main, called by goexit. */
static inline void program_bucket(struct program *p, uint64_t size, uint64_t allocs, uint64_t frees)
{
	const uint64_t stack[PROGRAM_DEPTH] = {program_address_of(5, 0x10),
					       program_address_of(6, 0x10 + p->n_buckets % 32),
					       program_address_of(7, 0x10)};
	struct golang_bucket_header h = {
		.typ = GOLANG_BUCKET_MEM, .size = size, .depth = PROGRAM_DEPTH};
	const uint64_t active[2] = {allocs, frees};
	size_t at = p->buckets_end;

	memcpy(&h.allnext, p->bytes + PROGRAM_MBUCKETS, 8);
	h.hash = golang_bucket_hash((const uint8_t *)stack, PROGRAM_DEPTH, size);
	memcpy(p->bytes + at, &h, sizeof(h));
	memcpy(p->bytes + at + sizeof(h), stack, sizeof(stack));
	memcpy(p->bytes + at + sizeof(h) + sizeof(stack), active, sizeof(active));
	program_u64(p, PROGRAM_MBUCKETS, PROGRAM_BASE + at);
	p->buckets_end += sizeof(h) + sizeof(stack) + 64;
	p->n_buckets++;
}

static inline void program_build(struct program *p)
{
	memset(p, 0, sizeof(*p));
	p->buckets_end = PROGRAM_BUCKETS;
	program_elf(p);
	program_tables(p);
	program_module(p);
	program_u32(p, PROGRAM_CYCLE, 9 << 1 | 1);
	program_u64(p, PROGRAM_RATE, 1);
}
