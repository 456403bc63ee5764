/*
 * tests/oracle/dump/unwind_dump.c: prints how sonde leaves the frames of a file, for
 * unwind_readelf.py.
 *
 *   unwind_dump FILE            rows of .eh_frame or .debug_frame: "VADDR CFA FP", a summary first
 *   unwind_dump FILE go         the same of Go's tables
 *   unwind_dump FILE frames     reads hexadecimal addresses on stdin, prints the Go functions at
 * each
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "elf/unwind/unwind.h"
#include "golang/binary/program.h"
#include "unwind_table.h"

static void print_cfa(const struct elf_unwind_rule *r)
{
	static const char *const names[] = {"none",   "rsp", "rbp",   "*rbp", "*rsp",	    "plt",
					    "signal", "end", "chain", "reg",  "unsupported"};

	(void)printf("%s", names[r->cfa]);
	if (r->cfa == ELF_UNWIND_REG)
		(void)printf("%u", r->reg);
	if (r->cfa == ELF_UNWIND_SP || r->cfa == ELF_UNWIND_FP || r->cfa == ELF_UNWIND_REG)
		(void)printf("%+d", r->cfa_off);
	if (r->cfa == ELF_UNWIND_PLT)
		(void)printf("%d", r->cfa_off);
	if (r->cfa == ELF_UNWIND_FP_DEREF || r->cfa == ELF_UNWIND_SP_DEREF)
		(void)printf("%+d%+d", (int16_t)(r->cfa_off & 0xffff), r->cfa_off >> 16);
}

static void print_fp(const struct elf_unwind_rule *r)
{
	if (r->fp == ELF_UNWIND_FP_SAVED)
		(void)printf(" c%+d\n", r->fp_off);
	else if (r->fp == ELF_UNWIND_FP_AT_FP)
		(void)printf(" rbp%+d\n", r->fp_off);
	else
		(void)printf(" %s\n", r->fp == ELF_UNWIND_FP_LOST ? "lost" : "same");
}

static void dump(struct elf_unwind_table *t)
{
	(void)printf("# rows %zu starts %zu unsupported %" PRIu64 " damaged %" PRIu64 "\n",
		     t->n_rows, t->n_starts, t->n_unsupported, t->n_damaged);
	for (size_t i = 0; i < t->n_starts; i++)
		(void)printf("S %" PRIx64 "\n", t->starts[i]);
	for (size_t i = 0; i < t->n_rows; i++) {
		(void)printf("%" PRIx64 " ", t->rows[i].vaddr);
		print_cfa(&t->rows[i].rule);
		print_fp(&t->rows[i].rule);
	}
	elf_unwind_table_release(t);
}

static int print_frame(void *context, const struct golang_program_frame *f)
{
	(void)context;
	(void)printf(" %.*s %.*s:%" PRId64 " %" PRId64 "\n", (int)f->name.len,
		     (const char *)f->name.data, (int)f->file.len, (const char *)f->file.data,
		     f->line, f->start_line);
	return 0;
}

static int frames(struct golang_program *program, struct err *err)
{
	char line[64];

	while (fgets(line, sizeof(line), stdin)) {
		uint64_t addr = strtoull(line, NULL, 16);
		int r;

		(void)printf("%" PRIx64 "\n", addr);
		r = golang_program_frames(program, addr, print_frame, NULL, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int dump_go(int fd, const char *what, struct err *err)
{
	_cleanup_(golang_program_closep) struct golang_program *program = NULL;
	struct elf_unwind_table table = {0};
	int r = golang_program_open(fd, &program, err);

	if (r == 0 && strcmp(what, "frames") == 0)
		return frames(program, err);
	if (r == 0)
		r = golang_program_unwind(program, &table, err);
	if (r == 0)
		dump(&table);
	return r;
}

static int dump_elf(int fd, struct err *err)
{
	_cleanup_(elf_image_closep) struct elf_image *image = NULL;
	struct elf_unwind_table table = {0};
	int r = elf_image_open_fd(fd, &image, err);

	if (r == 0)
		r = elf_unwind_compile(image, &table, err);
	if (r == 0)
		dump(&table);
	return r;
}

int main(int argc, char **argv)
{
	_cleanup_close_ int fd = argc > 1 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1;
	struct err err = {0};
	int r;

	if (fd < 0) {
		perror(argc > 1 ? argv[1] : "usage: unwind_dump FILE [go|frames]");
		return 2;
	}
	r = argc > 2 ? dump_go(fd, argv[2], &err) : dump_elf(fd, &err);
	if (r < 0) {
		(void)fprintf(stderr, "%s: %s\n", argv[1], err.text);
		return 1;
	}
	return 0;
}
