/* src/golang/goroutine_regs.c: see goroutine_regs.h. */
#include "golang/goroutine_regs.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/view.h"
#include "elf/image.h"
#include "golang/grow.h"

#define REGS_MAX_THREADS ((size_t)1 << 18)
#define REGS_MAX_NOTES ((size_t)1 << 19)
#define PRSTATUS_PID 32
#define PRSTATUS_REGS 112
#define PRSTATUS_BYTES (PRSTATUS_REGS + 34 * 8)

static int thread_add(struct golang_regs *regs, uint16_t machine, struct view desc)
{
	unsigned int pc = machine == EM_AARCH64 ? 32 : 16;
	unsigned int sp = machine == EM_AARCH64 ? 31 : 19;
	struct golang_thread thread;
	uint32_t tid;
	int r;

	if (!view_u32(desc, PRSTATUS_PID, &tid) ||
	    !view_u64(desc, PRSTATUS_REGS + 8 * pc, &thread.pc) ||
	    !view_u64(desc, PRSTATUS_REGS + 8 * sp, &thread.sp))
		return 0;
	r = golang_grow(&regs->threads, &regs->cap, regs->len + 1, sizeof(*regs->threads),
			REGS_MAX_THREADS);
	if (r == 0)
		r = map_put(&regs->by_tid, tid, regs->len);
	if (r < 0)
		return r;
	regs->threads[regs->len++] = thread;
	return 0;
}

static int notes_walk(struct golang_regs *regs, const struct elf_image *core,
		      const struct elf_segment *s, size_t *n_notes)
{
	uint8_t desc[PRSTATUS_BYTES];

	for (uint64_t at = 0; s->filesz - at > sizeof(Elf64_Nhdr);) {
		Elf64_Nhdr h;
		uint64_t body, size;
		int r;

		if (elf_image_read(core, s->offset + at, &h, sizeof(h)) < 0)
			return -EBADMSG;
		/* 32-bit sizes: neither sum can overflow. */
		body = sizeof(h) + (((uint64_t)h.n_namesz + 3) & ~(uint64_t)3);
		size = body + (((uint64_t)h.n_descsz + 3) & ~(uint64_t)3);
		if (size > s->filesz - at || ++*n_notes > REGS_MAX_NOTES)
			return -EBADMSG;
		/* NT_PRSTATUS is 1 with every name that the kernel or gdb gives it: "CORE". */
		if (h.n_type == NT_PRSTATUS && h.n_namesz == 5) {
			size_t len = (size_t)MIN((uint64_t)h.n_descsz, sizeof(desc));

			r = elf_image_read(core, s->offset + at + body, desc, len);
			if (r == 0)
				r = thread_add(regs, core->machine, view_of(desc, len));
			if (r < 0)
				return r;
		}
		at += size;
	}
	return 0;
}

int golang_regs_read(struct golang_regs *regs, const char *core_path, struct err *err)
{
	_cleanup_(elf_image_closep) struct elf_image *core = NULL;
	_cleanup_close_ int fd = open(core_path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	size_t n_notes = 0;
	int r;

	if (fd < 0)
		return err_set(err, -errno, "cannot open %s: %s", core_path, strerror(errno));
	r = elf_image_open_fd(fd, &core, err);
	if (r < 0)
		return err_prefix(err, r, "%s", core_path);
	for (size_t i = 0; i < core->n_segments && r == 0; i++)
		if (core->segments[i].type == PT_NOTE)
			r = notes_walk(regs, core, &core->segments[i], &n_notes);
	return r < 0 ? err_set(err, r, "%s: the registers of its threads make no sense", core_path)
		     : 0;
}

void golang_regs_release(struct golang_regs *regs)
{
	free(regs->threads);
	map_release(&regs->by_tid);
}

const struct golang_thread *golang_regs_of(const struct golang_regs *regs, uint64_t tid)
{
	uint64_t i;

	return map_get(&regs->by_tid, tid, &i) ? &regs->threads[i] : NULL;
}
