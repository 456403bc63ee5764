/*
 * tests/fuzz/golang/fuzz_program.c: any bytes as the file of a Go program: opened, its unwind rows
 * made, and addresses all over it named.
 */
#include <assert.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/io.h"
#include "golang/binary/program.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int count(void *context, const struct golang_program_frame *frame)
{
	size_t *bytes = context;

	for (size_t i = 0; i < frame->name.len; i++)
		*bytes += frame->name.data[i] != 0;
	for (size_t i = 0; i < frame->file.len; i++)
		*bytes += frame->file.data[i] != 0;
	return 0;
}

static void name(struct golang_program *program, uint64_t vaddr)
{
	struct err err = {};
	size_t bytes = 0;
	int n = golang_program_frames(program, vaddr, count, &bytes, &err);

	assert(n <= GOLANG_PROGRAM_MAX_FRAMES);
	assert((n < 0) == (err.text[0] != 0));
}

static void use(struct golang_program *program)
{
	struct elf_unwind_table t = {0};
	struct err err = {};
	int r = golang_program_unwind(program, &t, &err);

	assert((r < 0) == (err.text[0] != 0));
	assert(r == 0 || !t.rows);
	if (!t.rows)
		return;
	for (size_t i = 1; i < t.n_rows; i++)
		assert(t.rows[i - 1].vaddr < t.rows[i].vaddr);
	for (size_t i = 0; i < t.n_starts && i < 32; i++) {
		assert(i == 0 || t.starts[i - 1] < t.starts[i]);
		name(program, t.starts[i]);
		name(program, t.starts[i] + 5);
		name(program, t.starts[i] - 1);
	}
	name(program, 0x11005);
	elf_unwind_table_release(&t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_close_ int fd = memfd_create("program", MFD_CLOEXEC);
	_cleanup_(golang_program_closep) struct golang_program *program = NULL;
	struct err err = {};
	int r;

	if (fd < 0 || io_write_full(fd, data, size) < 0)
		return 0;
	r = golang_program_open(fd, &program, &err);
	assert((r < 0) == (err.text[0] != 0 && !program));
	if (r == 0)
		use(program);
	return 0;
}
