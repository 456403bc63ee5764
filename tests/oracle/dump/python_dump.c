/*
 * tests/oracle/dump/python_dump.c: prints what cpu/interp/python reads of a live process, for
 * test_python_layout.py.
 *
 *   python_dump PID             reads "ADDRESS INSTRUCTION" on stdin (hexadecimal, decimal), prints
 *                               FIRST-LINE, LINE, NAME, FILE with tabs between, or "-"
 *   python_dump PID threads     prints "thread ID" and its frames, innermost first: whether C
 *                               called it, LINE, NAME with tabs between
 *
 * The first line of both is the version.
 */
#include <elf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cpu/interp/python/code.h"
#include "cpu/interp/python/symbols.h"

#define THREADS_MAX 64
#define FRAMES_MAX 512
#define OWNED_BY_C 3

struct source_target {
	struct proc_mem *mem;
	const struct python_layout *layout;
	uint64_t runtime;
	uint64_t code_type;
};

static bool open_map(struct source_target *t, const struct proc_map *map, struct err *err)
{
	_cleanup_(elf_image_closep) struct elf_image *image = NULL;
	_cleanup_close_ int fd = -1;
	struct python_symbols symbols;
	uint64_t bias = 0;

	if (map->offset != 0 || !python_is_named(map->path) ||
	    proc_mem_open_file(t->mem, map, &fd, err) < 0 || elf_image_open_fd(fd, &image, err) < 0)
		return false;
	python_symbols_read(image, map->path, &symbols);
	if (symbols.minor == 0)
		return false;
	for (size_t i = 0; i < image->n_segments; i++) {
		const struct elf_segment *s = &image->segments[i];

		if (s->type == PT_LOAD && s->offset == 0)
			bias = map->start - s->vaddr;
	}
	t->layout = python_layout(symbols.minor);
	t->runtime = symbols.runtime + bias;
	t->code_type = symbols.code_type + bias;
	return true;
}

static bool target_open(struct source_target *t, pid_t pid, struct err *err)
{
	const struct proc_maps *maps;

	if (proc_mem_open(pid, &t->mem, err) < 0)
		return false;
	maps = proc_mem_maps(t->mem);
	for (size_t i = 0; i < maps->len; i++)
		if (open_map(t, &maps->maps[i], err))
			return true;
	err_write(err, "no Python");
	return false;
}

static void dump_codes(const struct source_target *t)
{
	uint64_t addr;
	uint32_t instr;
	char line[64];

	while (fgets(line, sizeof(line), stdin)) {
		struct python_code code;
		char *end;

		addr = strtoull(line, &end, 16);
		instr = (uint32_t)strtoul(end, NULL, 10);
		if (python_code_read(t->mem, t->layout, t->code_type, addr, instr, &code, NULL) < 0)
			(void)puts("-");
		else
			(void)printf("%" PRId64 "\t%" PRId64 "\t%s\t%s\n", code.first_line,
				     code.line, code.name, code.file);
	}
}

/* 0 where nothing can be read: so every list ends. */
static uint64_t read_word(const struct source_target *t, uint64_t addr, size_t len)
{
	uint64_t value = 0;

	return addr && proc_mem_read(t->mem, addr, &value, len, NULL) == 0 ? value : 0;
}

static uint64_t read_pointer(const struct source_target *t, uint64_t addr)
{
	return read_word(t, addr, sizeof(uint64_t));
}

static uint32_t frame_instr(const struct source_target *t, uint64_t frame, uint64_t code)
{
	const struct python_layout *l = t->layout;

	if (l->has_pointer)
		return (uint32_t)((read_pointer(t, frame + l->frame_instr) - code -
				   l->code_instrs) /
				  2);
	return (uint32_t)read_word(t, frame + l->frame_instr, 4) / (l->minor == 9 ? 2 : 1);
}

static bool frame_is_owned_by_c(const struct source_target *t, uint64_t frame)
{
	return t->layout->entry == PYTHON_ENTRY_FRAME &&
	       read_word(t, frame + t->layout->frame_entry, 1) == OWNED_BY_C;
}

static bool frame_is_entry(const struct source_target *t, uint64_t frame, uint64_t previous)
{
	if (t->layout->entry == PYTHON_ENTRY_FLAG)
		return read_word(t, frame + t->layout->frame_entry, 1) != 0;
	return t->layout->entry == PYTHON_ENTRY_EACH || frame_is_owned_by_c(t, previous);
}

static void dump_frame(const struct source_target *t, uint64_t frame, uint64_t previous)
{
	uint64_t object = read_pointer(t, frame + t->layout->frame_code);
	struct python_code code;

	if (python_code_read(t->mem, t->layout, t->code_type, object, frame_instr(t, frame, object),
			     &code, NULL) < 0)
		(void)puts("-");
	else
		(void)printf("%d\t%" PRId64 "\t%s\n", frame_is_entry(t, frame, previous), code.line,
			     code.name);
}

static void dump_frames(const struct source_target *t, uint64_t thread)
{
	const struct python_layout *l = t->layout;
	uint64_t frame = read_pointer(t, thread + l->thread_frame);

	if (l->has_cframe)
		frame = read_pointer(t, frame + l->cframe_frame);
	for (size_t i = 0; frame && i < FRAMES_MAX; i++) {
		uint64_t previous = read_pointer(t, frame + l->frame_previous);

		if (!frame_is_owned_by_c(t, frame))
			dump_frame(t, frame, previous);
		frame = previous;
	}
}

static void dump_threads(const struct source_target *t)
{
	const struct python_layout *l = t->layout;
	uint64_t interpreter = read_pointer(t, t->runtime + l->runtime_interpreters);
	size_t n = 0;

	for (; interpreter && n < THREADS_MAX; n++) {
		uint64_t thread = read_pointer(t, interpreter + l->interpreter_threads);

		for (; thread && n < THREADS_MAX; n++) {
			(void)printf("thread %" PRIu64 "\n",
				     read_pointer(t, thread + l->thread_id));
			dump_frames(t, thread);
			thread = read_pointer(t, thread + l->thread_next);
		}
		interpreter = read_pointer(t, interpreter + l->interpreter_next);
	}
}

int main(int argc, char **argv)
{
	struct source_target t = {0};
	struct err err = {0};
	int r = 1;

	if (argc < 2) {
		(void)fputs("usage: python_dump PID [threads]\n", stderr);
		return 2;
	}
	if (target_open(&t, (pid_t)strtol(argv[1], NULL, 10), &err)) {
		(void)printf("3.%u\n", t.layout->minor);
		if (argc == 2)
			dump_codes(&t);
		else
			dump_threads(&t);
		r = 0;
	} else {
		(void)fprintf(stderr, "%s: %s\n", argv[1], err.text);
	}
	proc_mem_close(t.mem);
	return r;
}
