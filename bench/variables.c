/*
 * bench/variables.c: finding the runtime's variables in a large Go program.
 *
 *   open         everything that is done once for a stripped program: detection, tables, variables
 *   search       of it, the search for the variables in the code of functions
 *   symbols      the same variables by the symbol table of the file: one pass over its names
 *   one_by_one   by the symbol table, two preads per symbol (the symbol, then its name) until all
 *                are found
 *
 * Usage: variables PID FILE ROUNDS: PID runs FILE, or a stripped copy of it.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "bench.h"
#include "elf/symbols.h"
#include "golang/process_state.h"

#define NAME_BYTES 128

struct bench {
	pid_t pid;
	int fd;
	struct elf_image *image;
	struct golang_facts facts; /* of the stripped program; its strings are not kept */
	size_t n_symbols;
	struct bench_series open, search, symbols, one_by_one;
};

/* mProf and not mProfCycle up to 1.18: those do not run here. */
static const char *const names[] = {
	"runtime.mbuckets",
	"runtime.mProfCycle",
	"runtime.MemProfileRate",
};

static void run_open(struct bench *b)
{
	static const struct golang_options stripped = {.ignore_symbols = true};
	struct bench_timer t = bench_start();
	_cleanup_(golang_process_closep) struct golang_process *p = bench_open(b->pid, &stripped);
	struct proc_mem_stats before = proc_mem_stats(p->mem), after;
	struct golang_vars vars;
	struct err err = {0};

	bench_stop(&b->open, t, before.syscalls, before.bytes);
	b->facts = *golang_process_facts(p);
	/* Nothing that opening has read may help. */
	golang_mem_cache_release(&p->cache);
	t = bench_start();
	bench_check(golang_vars_find(&p->image, &p->modules[0], p->layout, true, &vars, &err),
		    &err);
	after = proc_mem_stats(p->mem);
	bench_stop(&b->search, t, after.syscalls - before.syscalls, after.bytes - before.bytes);
	if (memcmp(&vars.mbuckets, &p->vars.mbuckets, sizeof(vars.mbuckets)) != 0) {
		(void)fprintf(stderr, "two searches found different variables\n");
		exit(1);
	}
}

static void run_symbols(struct bench *b, uint64_t *ret_values)
{
	struct elf_symbol wanted[ARRAY_SIZE(names)];
	struct bench_timer t;
	struct err err = {0};
	int found;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		wanted[i] = (struct elf_symbol){.name = names[i]};
	t = bench_start();
	found = elf_symbols_find(b->image, wanted, ARRAY_SIZE(wanted), &err);
	bench_stop(&b->symbols, t, 0, 0);
	bench_check(found, &err);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		ret_values[i] = wanted[i].value;
}

static void must_read(int fd, void *dst, size_t len, uint64_t off)
{
	/* The last name may end before the buffer does. */
	if (pread(fd, dst, len, (off_t)off) <= 0) {
		(void)fprintf(stderr, "cannot read a symbol: %s\n", strerror(errno));
		exit(1);
	}
}

static void run_one_by_one(struct bench *b, uint64_t *ret_values)
{
	const struct elf_section *symtab = elf_image_section(b->image, ".symtab");
	const struct elf_section *strtab = elf_image_section(b->image, ".strtab");
	uint64_t syscalls = 0, bytes = 0;
	char name[NAME_BYTES + 1] = {0};
	struct bench_timer t = bench_start();
	size_t found = 0;

	for (uint64_t off = 0; off < symtab->size && found < ARRAY_SIZE(names);) {
		Elf64_Sym sym;

		must_read(b->fd, &sym, sizeof(sym), symtab->offset + off);
		must_read(b->fd, name, NAME_BYTES, strtab->offset + sym.st_name);
		syscalls += 2;
		bytes += sizeof(sym) + NAME_BYTES;
		for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
			if (strcmp(name, names[i]) == 0) {
				ret_values[i] = sym.st_value;
				found++;
			}
		}
		off += sizeof(sym);
	}
	bench_stop(&b->one_by_one, t, syscalls, bytes);
	b->n_symbols = symtab->size / sizeof(Elf64_Sym);
}

static void run_round(struct bench *b)
{
	uint64_t quick[ARRAY_SIZE(names)] = {0}, slow[ARRAY_SIZE(names)] = {0};

	run_open(b);
	run_symbols(b, quick);
	run_one_by_one(b, slow);
	if (!quick[0] || memcmp(quick, slow, sizeof(quick)) != 0) {
		(void)fprintf(stderr, "the two ways through the symbols found different ones\n");
		exit(1);
	}
}

static int report(const struct bench *b)
{
	_cleanup_(buf_release) struct buf out = buf_with_max(64 << 10);
	struct json j = json_to(&out);

	json_object_begin(&j);
	json_key(&j, "functions");
	json_uint(&j, b->facts.n_functions);
	json_key(&j, "n_symbols");
	json_uint(&j, b->n_symbols);
	bench_series_json(&b->open, &j);
	bench_series_json(&b->search, &j);
	bench_series_json(&b->symbols, &j);
	bench_series_json(&b->one_by_one, &j);
	json_object_end(&j);
	return bench_print(&j);
}

int main(int argc, char **argv)
{
	static struct bench b = {
		.open.name = "open",
		.search.name = "search",
		.symbols.name = "symbols",
		.one_by_one.name = "one_by_one",
	};
	struct err err = {0};
	uint64_t rounds;

	if (argc != 4) {
		(void)fprintf(stderr, "usage: variables PID FILE ROUNDS\n");
		return 2;
	}
	b.pid = (pid_t)bench_number("PID", argv[1], INT32_MAX);
	b.fd = open(argv[2], O_RDONLY | O_CLOEXEC);
	rounds = bench_number("ROUNDS", argv[3], BENCH_MAX_ROUNDS);
	if (b.fd < 0) {
		(void)fprintf(stderr, "cannot open %s: %s\n", argv[2], strerror(errno));
		return 1;
	}
	bench_check(elf_image_open_fd(b.fd, &b.image, &err), &err);
	if (!elf_image_section(b.image, ".symtab") || !elf_image_section(b.image, ".strtab")) {
		(void)fprintf(stderr, "%s has no symbol table\n", argv[2]);
		return 1;
	}
	for (uint64_t i = 0; i < rounds; i++)
		run_round(&b);
	return report(&b);
}
