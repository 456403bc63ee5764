/*
 * src/proc/core_notes.c: see core_notes.h.
 *
 * A note, all parts padded to 4 bytes:
 *
 *   namesz u32 | descsz u32 | type u32 | name "CORE\0" | desc
 *
 * The registers of thousands of threads can make the notes large, so they are walked with one
 * small read each. Only three kinds are read in full, and only two of the registers.
 *
 * NT_PRSTATUS is a struct elf_prstatus: pr_pid u32 @32, the general registers @112.
 */
#include "proc/core_notes.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "proc/text.h"

#define NOTES_MAX ((size_t)1 << 18)
#define NOTES_DESC_MAX ((size_t)16 << 20) /* the kernel's own limit for NT_FILE */
#define NOTES_AUXV_MAX ((size_t)16 << 10)
#define NOTES_PRPSINFO_LEN 136
#define NOTES_PRPSINFO_NAME 40
#define NOTES_PRSTATUS_PID 32
#define NOTES_PRSTATUS_REGS 112
#define NOTES_PRSTATUS_LEN (NOTES_PRSTATUS_REGS + 34 * 8) /* as far as it is read */
#define NOTES_DELETED " (deleted)"

static int notes_malformed(struct err *err)
{
	return err_set(err, -EBADMSG, "its notes are invalid");
}

static int file_compare(const void *a, const void *b)
{
	const struct proc_map *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static int file_add(struct proc_notes *notes, struct proc_map *m, struct view name, struct err *err)
{
	size_t n = strlen(NOTES_DELETED);
	_cleanup_free_ char *path = NULL;
	struct view tail;

	if (name.len > n && view_sub(name, name.len - n, n, &tail) &&
	    view_eq(tail, view_str(NOTES_DELETED))) {
		m->flags |= PROC_MAP_DELETED;
		name.len -= n;
	}
	path = strndup((const char *)name.data, name.len);
	if (!path)
		return err_oom(err);
	m->path = path;
	return proc_maps_add(&notes->files, m, err);
}

/* count u64 | page size u64 | count times {start, end, offset in pages} | count names */
static int proc_notes_parse_files(struct proc_notes *notes, struct view desc, struct err *err)
{
	uint64_t count, page, names;
	struct view name;

	if (!view_u64(desc, 0, &count) || !view_u64(desc, 8, &page) ||
	    count > (desc.len - 16) / 24 || count > PROC_MAPS_MAX)
		return notes_malformed(err);
	names = 16 + count * 24;
	for (uint64_t i = 0; i < count; i++, names += name.len + 1) {
		struct proc_map m = {.flags = PROC_MAP_READ};
		uint64_t at = 16 + i * 24;
		int r;

		if (!view_u64(desc, at, &m.start) || !view_u64(desc, at + 8, &m.end) ||
		    !view_u64(desc, at + 16, &m.offset) || !view_cstr(desc, names, &name) ||
		    m.start >= m.end || __builtin_mul_overflow(m.offset, page, &m.offset))
			return notes_malformed(err);
		r = file_add(notes, &m, name, err);
		if (r < 0)
			return r;
	}
	if (notes->files.len > 1)
		qsort(notes->files.maps, notes->files.len, sizeof(struct proc_map), file_compare);
	for (size_t i = 1; i < notes->files.len; i++) {
		if (notes->files.maps[i].start < notes->files.maps[i - 1].end)
			return notes_malformed(err);
	}
	return 0;
}

static int thread_add(struct proc_notes *notes, struct view desc, struct err *err)
{
	/* Their numbers among the registers. */
	unsigned int pc = notes->machine == EM_AARCH64 ? 32 : 16;
	unsigned int sp = notes->machine == EM_AARCH64 ? 31 : 19;
	struct proc_thread thread, *grown;
	uint32_t tid;

	if (!view_u32(desc, NOTES_PRSTATUS_PID, &tid) ||
	    !view_u64(desc, NOTES_PRSTATUS_REGS + 8UL * pc, &thread.pc) ||
	    !view_u64(desc, NOTES_PRSTATUS_REGS + 8UL * sp, &thread.sp))
		return 0; /* few readers need them */
	thread.tid = tid;
	if (notes->n_threads == notes->threads_cap) {
		size_t cap = MAX((size_t)64, 2 * notes->threads_cap);

		grown = reallocarray(notes->threads, cap, sizeof(*grown));
		if (!grown)
			return err_oom(err);
		notes->threads = grown;
		notes->threads_cap = cap;
	}
	notes->threads[notes->n_threads++] = thread;
	return 0;
}

static int notes_take(struct proc_notes *notes, uint32_t type, struct view desc, struct err *err)
{
	struct view name;

	if (type == NT_FILE)
		return proc_notes_parse_files(notes, desc, err);
	if (type == NT_PRSTATUS)
		return thread_add(notes, desc, err);
	if (type == NT_PRPSINFO) {
		if (desc.len != NOTES_PRPSINFO_LEN ||
		    !view_sub(desc, NOTES_PRPSINFO_NAME, 16, &name))
			return notes_malformed(err);
		name.len = strnlen((const char *)name.data, name.len);
		proc_text_copy(notes->name, sizeof(notes->name), name);
		return 0;
	}
	buf_clear(&notes->auxv);
	return buf_append(&notes->auxv, desc.data, desc.len) < 0 ? err_oom(err) : 0;
}

static bool notes_wants(const struct proc_notes *notes, uint32_t type, uint64_t len)
{
	switch (type) {
	case NT_FILE: /* a second one would not be the kernel's */
		return len <= NOTES_DESC_MAX && notes->files.len == 0;
	case NT_PRSTATUS: /* bounded by the number of notes */
		return true;
	case NT_AUXV:
		return len <= NOTES_AUXV_MAX;
	case NT_PRPSINFO:
		return len <= NOTES_PRPSINFO_LEN;
	default:
		return false;
	}
}

static int notes_read_desc(struct proc_notes *notes, int fd, const Elf64_Nhdr *h, uint64_t off,
			   struct err *err)
{
	size_t len = h->n_type == NT_PRSTATUS ? MIN(h->n_descsz, NOTES_PRSTATUS_LEN) : h->n_descsz;
	_cleanup_free_ uint8_t *desc = malloc(len + 1);

	if (!desc)
		return err_oom(err);
	if (io_pread_full(fd, desc, len, off) != (ssize_t)len)
		return notes_malformed(err);
	return notes_take(notes, h->n_type, view_of(desc, len), err);
}

int proc_notes_read(struct proc_notes *notes, int fd, uint64_t off, uint64_t len, struct err *err)
{
	struct {
		Elf64_Nhdr h;
		char name[8];
	} note;

	for (uint64_t at = 0; len - at > sizeof(note.h);) {
		size_t want = (size_t)MIN(sizeof(note), len - at);
		uint64_t desc, size;
		int r;

		memset(&note, 0, sizeof(note));
		if (io_pread_full(fd, &note, want, off + at) != (ssize_t)want)
			return notes_malformed(err);
		/* 32-bit sizes: neither sum can overflow. */
		desc = sizeof(note.h) + (((uint64_t)note.h.n_namesz + 3) & ~(uint64_t)3);
		size = desc + (((uint64_t)note.h.n_descsz + 3) & ~(uint64_t)3);
		if (desc + note.h.n_descsz > len - at)
			return notes_malformed(err);
		if (++notes->seen > NOTES_MAX)
			return err_set(err, -E2BIG, "more than %zu notes", NOTES_MAX);
		if (note.h.n_namesz == 5 && memcmp(note.name, "CORE", 5) == 0 &&
		    notes_wants(notes, note.h.n_type, note.h.n_descsz)) {
			r = notes_read_desc(notes, fd, &note.h, off + at + desc, err);
			if (r < 0)
				return r;
		}
		at += MIN(size, len - at);
	}
	return 0;
}

void proc_notes_release(struct proc_notes *notes)
{
	buf_release(&notes->auxv);
	proc_maps_release(&notes->files);
	free(notes->threads);
}
