/*
 * src/proc/mem_core.c: the memory of a program in an ELF core file (see mem.h).
 *
 * A segment of the core:
 *
 *   start          start + p_filesz                 start + p_memsz
 *   |  in the core      |  omitted by the kernel or by gcore   |
 *
 * A truncated core lacks some of the first part too. Nothing can replace that: the program could
 * have changed those bytes, so the mapped file is no substitute. The core is read with pread: with
 * a mapping, truncating the file would kill us.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "proc/core_notes.h"
#include "proc/file.h"
#include "proc/mem_source.h"
#include "proc/ranges.h"
#include "proc/text.h"

#define CORE_PHDR_CHUNK 128

struct core_segment {
	uint64_t start;
	uint64_t end;
	uint64_t file_end; /* end of the data present in the file */
	uint64_t want_end; /* end of the data that should be in the file */
	uint64_t offset;
	unsigned int flags;
};

struct mem_core {
	struct proc_mem mem;
	int fd;
	uint64_t size;		       /* of the file */
	uint64_t full_size;	       /* its size if it were not truncated */
	bool notes_cut;		       /* the notes are among what is missing */
	struct core_segment *segments; /* sorted, disjoint */
	size_t len;
	struct proc_thread *threads; /* sorted */
	size_t n_threads;
};

/* The index of the first segment that ends after addr; len if none. */
static size_t core_from(const struct mem_core *c, uint64_t addr)
{
	return proc_ranges_from(c->segments, c->len, sizeof(*c->segments), addr);
}

static const struct core_segment *core_at(const struct mem_core *c, uint64_t addr)
{
	size_t i = core_from(c, addr);

	return i < c->len && c->segments[i].start <= addr ? &c->segments[i] : NULL;
}

static ssize_t core_read_some(struct proc_mem *mem, uint64_t addr, void *dst, size_t len)
{
	struct mem_core *c = (struct mem_core *)mem;
	const struct core_segment *s = core_at(c, addr);

	if (!s || addr >= s->file_end)
		return 0;
	len = (size_t)MIN((uint64_t)len, s->file_end - addr);
	return proc_mem_pread(mem, c->fd, dst, len, s->offset + (addr - s->start));
}

static uint64_t core_gap(const struct proc_mem *mem, uint64_t addr)
{
	const struct mem_core *c = (const struct mem_core *)mem;
	size_t i = core_from(c, addr);

	if (i == c->len)
		return UINT64_MAX;
	if (addr < c->segments[i].start)
		return c->segments[i].start - addr;
	return addr < c->segments[i].want_end ? 0 : c->segments[i].end - addr;
}

static int core_truncated(const struct mem_core *c, struct err *err)
{
	return err_set(
		err, -EBADMSG,
		"%s is truncated: %" PRIu64 " of %" PRIu64
		" bytes are missing; the disk was full or the core size limit (ulimit -c) too low",
		c->mem.who, c->full_size - c->size, c->full_size);
}

static int core_explain(struct proc_mem *mem, uint64_t addr, int code, struct err *err)
{
	struct mem_core *c = (struct mem_core *)mem;
	const struct core_segment *s = core_at(c, addr);
	const struct proc_map *map;
	char path[256];

	if (code < 0)
		return err_set(err, code, "cannot read %s: %s", mem->who, strerror(-code));
	if (s && addr >= s->file_end && addr < s->want_end)
		return core_truncated(c, err);
	map = proc_maps_find(&mem->maps, addr);
	if (!map || !map->path[0])
		return proc_mem_bad_address(mem, addr, err);
	proc_text_copy(path, sizeof(path), view_str(map->path));
	return err_set(
		err, -EFAULT,
		"address 0x%" PRIx64
		" is not in %s: it is mapped from %s, and exactly that file is needed to read it",
		addr, mem->who, path);
}

static int core_open_file(const struct proc_mem *mem, const struct proc_map *map, int *ret_fd,
			  struct err *err)
{
	if (map->flags & PROC_MAP_DELETED)
		return err_set(err, -ENOENT,
			       "%s: the file at 0x%" PRIx64 " had been deleted before the dump",
			       mem->who, map->start);
	return proc_file_open_path(map->path, ret_fd, err);
}

static int thread_compare(const void *a, const void *b)
{
	const struct proc_thread *x = a, *y = b;

	return x->tid < y->tid ? -1 : x->tid > y->tid;
}

static bool core_thread(const struct proc_mem *mem, uint64_t tid, struct proc_thread *ret_thread)
{
	const struct mem_core *c = (const struct mem_core *)mem;
	const struct proc_thread wanted = {.tid = tid};
	const struct proc_thread *found = c->n_threads ? bsearch(&wanted, c->threads, c->n_threads,
								 sizeof(wanted), thread_compare)
						       : NULL;

	if (found)
		*ret_thread = *found;
	return found;
}

static void core_close(struct proc_mem *mem)
{
	struct mem_core *c = (struct mem_core *)mem;

	closep(&c->fd);
	free(c->segments);
	free(c->threads);
	free(c);
}

static const struct proc_mem_ops core_ops = {
	.read_some = core_read_some,
	.gap = core_gap,
	.explain = core_explain,
	.thread = core_thread,
	.open_file = core_open_file,
	.close = core_close,
};

static int core_compare(const void *a, const void *b)
{
	const struct core_segment *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static int core_malformed(const struct mem_core *c, const char *what, struct err *err)
{
	return err_set(err, -EBADMSG, "%s is malformed: %s", c->mem.who, what);
}

static const char *core_compression(struct view head)
{
	static const struct {
		const char *magic;
		const char *remedy;
	} kinds[] = {
		{"\x1f\x8b", "gzip -d"},  {"\x28\xb5\x2f\xfd", "zstd -d"},
		{"\xfd\x37zXZ", "xz -d"}, {"\x04\x22\x4d\x18", "lz4 -d"},
		{"BZh", "bzip2 -d"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (view_starts_with(head, kinds[i].magic))
			return kinds[i].remedy;
	}
	return NULL;
}

/* Says what the file really is, as a hint to which file was meant. */
static int core_check_ident(const struct mem_core *c, const Elf64_Ehdr *eh, size_t n,
			    struct err *err)
{
	const char *who = c->mem.who;
	const char *remedy = core_compression(view_of(eh, n));

	if (remedy)
		return err_set(err, -ENOTSUP, "%s is compressed; unpack it first with %s", who,
			       remedy);
	if (n < SELFMAG || memcmp(eh->e_ident, ELFMAG, SELFMAG) != 0)
		return err_set(err, -EBADMSG, "%s is not a core file: not an ELF file", who);
	if (n < sizeof(*eh))
		return core_malformed(c, "its header is incomplete", err);
	if (eh->e_ident[EI_CLASS] != ELFCLASS64)
		return err_set(err, -ENOTSUP, "%s is from a 32-bit program", who);
	if (eh->e_ident[EI_DATA] != ELFDATA2LSB)
		return err_set(err, -ENOTSUP, "%s is from a big-endian machine", who);
	if (eh->e_type != ET_CORE)
		return err_set(err, -EBADMSG, "%s is not a core file but a program or a library",
			       who);
	if (eh->e_machine != EM_X86_64 && eh->e_machine != EM_AARCH64)
		return err_set(err, -ENOTSUP,
			       "%s is from an unsupported machine (ELF number %u); amd64 and arm64 "
			       "are supported",
			       who, eh->e_machine);
	if (eh->e_phentsize != sizeof(Elf64_Phdr))
		return core_malformed(c, "its program headers have a wrong size", err);
	return 0;
}

/* If there are more than 65534 segments, their number is in section header 0 instead of e_phnum. */
static int core_count_phdrs(const struct mem_core *c, const Elf64_Ehdr *eh, uint64_t *ret_n,
			    struct err *err)
{
	Elf64_Shdr sh;

	*ret_n = eh->e_phnum;
	if (eh->e_phnum != PN_XNUM)
		return 0;
	if (eh->e_shoff > INT64_MAX ||
	    io_pread_full(c->fd, &sh, sizeof(sh), eh->e_shoff) != (ssize_t)sizeof(sh))
		return core_malformed(c, "the number of its program headers is missing", err);
	*ret_n = sh.sh_info;
	return 0;
}

static int core_add_segment(struct mem_core *c, const Elf64_Phdr *ph, struct err *err)
{
	struct core_segment *s = &c->segments[c->len];
	uint64_t wanted = MIN(ph->p_filesz, ph->p_memsz), have, end;

	if (ph->p_memsz == 0)
		return 0;
	if (__builtin_add_overflow(ph->p_vaddr, ph->p_memsz, &end))
		return core_malformed(c, "a segment ends past the last address", err);
	have = ph->p_offset < c->size ? MIN(wanted, c->size - ph->p_offset) : 0;
	*s = (struct core_segment){
		.start = ph->p_vaddr,
		.end = end,
		.file_end = ph->p_vaddr + have,
		.want_end = ph->p_vaddr + wanted,
		.offset = ph->p_offset,
		.flags = (ph->p_flags & PF_R ? PROC_MAP_READ : 0) |
			 (ph->p_flags & PF_W ? PROC_MAP_WRITE : 0) |
			 (ph->p_flags & PF_X ? PROC_MAP_EXEC : 0),
	};
	c->len++;
	return 0;
}

static int core_add_phdr(struct mem_core *c, const Elf64_Phdr *ph, struct proc_notes *notes,
			 struct err *err)
{
	uint64_t file_end;
	int r;

	if (ph->p_type != PT_LOAD && ph->p_type != PT_NOTE)
		return 0;
	if (__builtin_add_overflow(ph->p_offset, ph->p_filesz, &file_end) || file_end > INT64_MAX)
		return core_malformed(c, "a segment is past the end of any file", err);
	c->full_size = MAX(c->full_size, file_end);
	if (ph->p_type == PT_LOAD)
		return core_add_segment(c, ph, err);
	/* Reported once the full size is known: a core without notes is useless. */
	if (file_end > c->size) {
		c->notes_cut = true;
		return 0;
	}
	r = proc_notes_read(notes, c->fd, ph->p_offset, ph->p_filesz, err);
	return r < 0 ? err_prefix(err, r, "%s", c->mem.who) : 0;
}

static int core_read_phdrs(struct mem_core *c, uint64_t off, uint64_t n, struct proc_notes *notes,
			   struct err *err)
{
	Elf64_Phdr chunk[CORE_PHDR_CHUNK];

	for (uint64_t i = 0; i < n;) {
		size_t want = (size_t)MIN(n - i, (uint64_t)CORE_PHDR_CHUNK);
		ssize_t bytes = (ssize_t)(want * sizeof(*chunk));

		if (io_pread_full(c->fd, chunk, (size_t)bytes, off + i * sizeof(*chunk)) != bytes)
			return core_malformed(c, "its program headers cannot be read", err);
		for (size_t k = 0; k < want; k++) {
			int r = core_add_phdr(c, &chunk[k], notes, err);

			if (r < 0)
				return r;
		}
		i += want;
	}
	return 0;
}

static int core_sort_segments(struct mem_core *c, struct err *err)
{
	if (c->len > 1)
		qsort(c->segments, c->len, sizeof(*c->segments), core_compare);
	for (size_t i = 1; i < c->len; i++) {
		if (c->segments[i].start < c->segments[i - 1].end)
			return core_malformed(c, "its segments overlap", err);
	}
	return c->len ? 0 : core_malformed(c, "it holds no memory", err);
}

/* Files without a segment were omitted from the core; they belong to the maps as well. */
static int core_add_files_before(struct mem_core *c, const struct proc_maps *files, size_t *f,
				 uint64_t from, uint64_t to, struct err *err)
{
	for (; *f < files->len && files->maps[*f].end <= to; ++*f) {
		int r = 0;

		if (files->maps[*f].start >= from)
			r = proc_maps_add(&c->mem.maps, &files->maps[*f], err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int core_build_maps(struct mem_core *c, const struct proc_maps *files, struct err *err)
{
	uint64_t from = 0;
	size_t f = 0;
	int r;

	for (size_t i = 0; i < c->len; i++) {
		const struct core_segment *s = &c->segments[i];
		struct proc_map m = {
			.start = s->start, .end = s->end, .flags = s->flags, .path = ""};

		r = core_add_files_before(c, files, &f, from, s->start, err);
		if (r < 0)
			return r;
		if (f < files->len && files->maps[f].start <= s->start) {
			m.path = files->maps[f].path;
			m.offset = files->maps[f].offset + (s->start - files->maps[f].start);
			m.flags |= files->maps[f].flags & PROC_MAP_DELETED;
		}
		r = proc_maps_add(&c->mem.maps, &m, err);
		if (r < 0)
			return r;
		from = s->end;
	}
	return core_add_files_before(c, files, &f, from, UINT64_MAX, err);
}

static void core_say_name(struct mem_core *c, const char *name)
{
	size_t n = strlen(c->mem.who);

	if (name[0])
		(void)snprintf(c->mem.who + n, sizeof(c->mem.who) - n, " (%s)", name);
}

static void core_take_threads(struct mem_core *c, struct proc_notes *notes)
{
	c->threads = TAKE_PTR(notes->threads);
	c->n_threads = notes->n_threads;
	if (c->n_threads > 1)
		qsort(c->threads, c->n_threads, sizeof(*c->threads), thread_compare);
}

static int core_load(struct mem_core *c, struct err *err)
{
	_cleanup_(proc_notes_release) struct proc_notes notes = {0};
	Elf64_Ehdr eh = {0};
	uint64_t n, end;
	ssize_t got = io_pread_full(c->fd, &eh, sizeof(eh), 0);
	int r;

	if (got < 0)
		return err_set(err, (int)got, "cannot read %s: %s", c->mem.who,
			       strerror((int)-got));
	r = core_check_ident(c, &eh, (size_t)got, err);
	if (r < 0)
		return r;
	c->mem.machine = notes.machine = eh.e_machine;
	r = core_count_phdrs(c, &eh, &n, err);
	if (r < 0)
		return r;
	if (n > PROC_MAPS_MAX)
		return err_set(err, -E2BIG, "%s has more than %zu segments", c->mem.who,
			       PROC_MAPS_MAX);
	if (__builtin_add_overflow(eh.e_phoff, n * sizeof(Elf64_Phdr), &end) || end > INT64_MAX)
		return core_malformed(c, "its program headers are past the end of any file", err);
	c->full_size = end;
	if (end > c->size)
		return core_truncated(c, err);
	c->segments = calloc(n + 1, sizeof(*c->segments));
	if (!c->segments)
		return err_oom(err);
	r = core_read_phdrs(c, eh.e_phoff, n, &notes, err);
	if (r < 0)
		return r;
	if (c->notes_cut)
		return core_truncated(c, err);
	r = core_sort_segments(c, err);
	if (r < 0)
		return r;
	proc_mem_set_auxv(&c->mem, buf_view(&notes.auxv));
	core_say_name(c, notes.name);
	core_take_threads(c, &notes);
	return core_build_maps(c, &notes.files, err);
}

static int core_open_regular(struct mem_core *c, const char *path, struct err *err)
{
	struct stat st;

	/* O_NONBLOCK: a FIFO of that name must not block us. */
	c->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (c->fd < 0)
		return err_set(err, -errno, "cannot open %s: %s", c->mem.who, strerror(errno));
	if (fstat(c->fd, &st) < 0)
		return err_set(err, -errno, "cannot read %s: %s", c->mem.who, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return err_set(err, -EINVAL, "%s is not a regular file", c->mem.who);
	c->size = (uint64_t)st.st_size;
	c->mem.written_ns = (int64_t)st.st_mtim.tv_sec * (int64_t)NS_PER_SEC + st.st_mtim.tv_nsec;
	return 0;
}

int proc_mem_open_core(const char *path, struct proc_mem **ret_mem, struct err *err)
{
	struct mem_core *c = calloc(1, sizeof(*c));
	char shown[80];
	int r;

	if (!c)
		return err_oom(err);
	proc_text_copy(shown, sizeof(shown), view_str(path));
	(void)snprintf(c->mem.who, sizeof(c->mem.who), "core file %s", shown);
	c->mem.ops = &core_ops;
	c->fd = -1;
	r = core_open_regular(c, path, err);
	if (r == 0)
		r = core_load(c, err);
	if (r < 0) {
		proc_mem_close(&c->mem);
		return r;
	}
	*ret_mem = &c->mem;
	return 0;
}
