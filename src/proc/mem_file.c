/*
 * src/proc/mem_file.c: a program's file as its memory, at link-time addresses; see mem.h.
 *
 * Pointers in position-independent programs are empty in the file: the dynamic linker fills them in
 * from a relocation table. Relocations that need no symbol are applied here to what is read.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "proc/mem_source.h"

#define FILE_MAX_PHDRS 256
#define FILE_MAX_DYNAMIC_BYTES ((uint64_t)64 << 10)
/* Four times what the largest Go programs need. */
#define FILE_MAX_POINTERS ((size_t)2 << 20)
/* All kinds together: a sparse file can have any length. */
#define FILE_MAX_RELOCATION_BYTES ((uint64_t)128 << 20)
#define FILE_FIRST_POINTERS 1024
#define FILE_BATCH 1024

struct file_segment {
	uint64_t start;
	uint64_t end;
	uint64_t off;
	unsigned int flags;
};

/* Eight bytes at an address that differ from the file. */
struct file_pointer {
	uint64_t at;
	uint64_t value;
};

struct mem_file {
	struct proc_mem mem;
	int fd;
	struct file_segment segments[FILE_MAX_PHDRS]; /* sorted, disjoint */
	size_t n_segments;
	struct file_pointer *pointers; /* sorted */
	size_t n_pointers;
	size_t pointers_cap;
};

static const struct file_segment *file_segment_at(const struct mem_file *f, uint64_t addr)
{
	for (size_t i = 0; i < f->n_segments; i++)
		if (addr >= f->segments[i].start && addr < f->segments[i].end)
			return &f->segments[i];
	return NULL;
}

/* The first pointer that ends after addr. */
static size_t file_pointer_from(const struct mem_file *f, uint64_t addr)
{
	size_t lo = 0, hi = f->n_pointers;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (f->pointers[mid].at + sizeof(uint64_t) <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* Applies the pointers to the len bytes read from addr; one may overlap either end. */
static void file_fill_in(const struct mem_file *f, uint64_t addr, uint8_t *bytes, size_t len)
{
	for (size_t i = file_pointer_from(f, addr); i < f->n_pointers; i++) {
		const struct file_pointer *p = &f->pointers[i];
		uint64_t from = MAX(p->at, addr);
		uint64_t to = MIN(p->at + sizeof(p->value), addr + len);

		if (from >= to)
			return;
		memcpy(bytes + (from - addr), (const uint8_t *)&p->value + (from - p->at),
		       to - from);
	}
}

static ssize_t file_read_some(struct proc_mem *mem, uint64_t addr, void *dst, size_t len)
{
	struct mem_file *f = (struct mem_file *)mem;
	const struct file_segment *s = file_segment_at(f, addr);
	ssize_t n;

	if (!s)
		return 0;
	n = proc_mem_pread(mem, f->fd, dst, MIN(len, s->end - addr), s->off + (addr - s->start));
	if (n > 0)
		file_fill_in(f, addr, dst, (size_t)n);
	return n;
}

/* Bytes missing here are in no other file either. */
static uint64_t file_gap(const struct proc_mem *mem, uint64_t addr)
{
	(void)mem;
	(void)addr;
	return 0;
}

static int file_explain(struct proc_mem *mem, uint64_t addr, int code, struct err *err)
{
	if (code < 0)
		return err_set(err, code, "%s cannot be read: %s", mem->who, strerror(-code));
	return proc_mem_bad_address(mem, addr, err);
}

static void file_close(struct proc_mem *mem)
{
	struct mem_file *f = (struct mem_file *)mem;

	closep(&f->fd);
	free(f->pointers);
	free(f);
}

static const struct proc_mem_ops file_ops = {
	.read_some = file_read_some,
	.gap = file_gap,
	.explain = file_explain,
	.close = file_close,
};

static int file_add_segment(struct mem_file *f, const Elf64_Phdr *ph, struct err *err)
{
	struct file_segment s = {.start = ph->p_vaddr, .off = ph->p_offset, .flags = ph->p_flags};
	uint64_t file_end;
	size_t at = f->n_segments;

	if (ph->p_filesz == 0)
		return 0;
	if (__builtin_add_overflow(ph->p_vaddr, ph->p_filesz, &s.end) ||
	    __builtin_add_overflow(ph->p_offset, ph->p_filesz, &file_end) || file_end > INT64_MAX)
		return err_set(err, -EBADMSG,
			       "damaged ELF file: a segment extends past the address space");
	while (at > 0 && f->segments[at - 1].start > s.start)
		at--;
	if ((at > 0 && f->segments[at - 1].end > s.start) ||
	    (at < f->n_segments && f->segments[at].start < s.end))
		return err_set(err, -EBADMSG, "damaged ELF file: its segments overlap");
	memmove(&f->segments[at + 1], &f->segments[at], (f->n_segments - at) * sizeof(s));
	f->segments[at] = s;
	f->n_segments++;
	return 0;
}

/* Only what the file has: a segment can claim any length, and whoever searches it goes page by
 * page.
 */
static int file_add_maps(struct mem_file *f, uint64_t size, struct err *err)
{
	for (size_t i = 0; i < f->n_segments; i++) {
		const struct file_segment *s = &f->segments[i];
		uint64_t len = MIN(s->end - s->start, size - MIN(size, s->off));
		struct proc_map map = {
			.start = s->start, .end = s->start + len, .offset = s->off, .path = ""};
		int r;

		if (len == 0)
			continue;
		map.flags = (s->flags & PF_R ? PROC_MAP_READ : 0) |
			    (s->flags & PF_W ? PROC_MAP_WRITE : 0) |
			    (s->flags & PF_X ? PROC_MAP_EXEC : 0);
		r = proc_maps_add(&f->mem.maps, &map, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int file_add_pointer(struct mem_file *f, uint64_t at, uint64_t value)
{
	if (f->n_pointers == f->pointers_cap) {
		size_t cap = f->pointers_cap ? f->pointers_cap * 2 : FILE_FIRST_POINTERS;
		struct file_pointer *grown;

		if (f->pointers_cap >= FILE_MAX_POINTERS)
			return -E2BIG;
		grown = reallocarray(f->pointers, cap, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		f->pointers = grown;
		f->pointers_cap = cap;
	}
	f->pointers[f->n_pointers++] = (struct file_pointer){.at = at, .value = value};
	return 0;
}

/* Only pointers into the program itself. */
static bool file_is_relative(const struct mem_file *f, const Elf64_Rela *rela)
{
	uint32_t relative =
		f->mem.machine == EM_AARCH64 ? R_AARCH64_RELATIVE : (uint32_t)R_X86_64_RELATIVE;

	return ELF64_R_TYPE(rela->r_info) == relative &&
	       rela->r_offset <= UINT64_MAX - sizeof(uint64_t);
}

static int file_by_address(const void *a, const void *b)
{
	const struct file_pointer *x = a, *y = b;

	return (x->at > y->at) - (x->at < y->at);
}

static void file_sort_pointers(struct mem_file *f)
{
	/* Linkers usually sort them. */
	for (size_t i = 1; i < f->n_pointers; i++) {
		if (f->pointers[i].at >= f->pointers[i - 1].at)
			continue;
		qsort(f->pointers, f->n_pointers, sizeof(*f->pointers), file_by_address);
		return;
	}
}

static int file_read_relocations(struct mem_file *f, uint64_t addr, uint64_t size, struct err *err)
{
	Elf64_Rela batch[FILE_BATCH];

	for (uint64_t n = size / sizeof(*batch); n > 0;) {
		size_t want = (size_t)MIN(n, (uint64_t)FILE_BATCH);
		int r = proc_mem_read(&f->mem, addr, batch, want * sizeof(*batch), err);

		for (size_t i = 0; r == 0 && i < want; i++)
			if (file_is_relative(f, &batch[i]))
				r = file_add_pointer(f, batch[i].r_offset,
						     (uint64_t)batch[i].r_addend);
		if (r == -E2BIG)
			return err_set(err, r, "an ELF file with more than %zu relocations",
				       FILE_MAX_POINTERS);
		if (r < 0)
			return r == -ENOMEM ? err_oom(err) : r;
		addr += want * sizeof(*batch);
		n -= want;
	}
	return 0;
}

/* DT_RELR needs no work: its pointers are in the file with their link-time values. */
static int file_relocate(struct mem_file *f, const Elf64_Phdr *dynamic, struct err *err)
{
	uint64_t len = MIN(dynamic->p_filesz, FILE_MAX_DYNAMIC_BYTES);
	_cleanup_free_ uint8_t *bytes = malloc(len + 1);
	uint64_t addr = 0, size = 0, entry = sizeof(Elf64_Rela);
	Elf64_Dyn d;
	int r;

	if (!bytes)
		return err_oom(err);
	if (io_pread_full(f->fd, bytes, len, dynamic->p_offset) != (ssize_t)len)
		return err_set(err, -EBADMSG, "damaged ELF file: its dynamic section is truncated");
	for (uint64_t at = 0; view_copy(view_of(bytes, len), at, &d, sizeof(d)); at += sizeof(d)) {
		if (d.d_tag == DT_NULL)
			break;
		if (d.d_tag == DT_RELA)
			addr = d.d_un.d_ptr;
		if (d.d_tag == DT_RELASZ)
			size = d.d_un.d_val;
		if (d.d_tag == DT_RELAENT)
			entry = d.d_un.d_val;
	}
	if (addr == 0 || size == 0)
		return 0;
	if (size > FILE_MAX_RELOCATION_BYTES)
		return err_set(err, -E2BIG, "an ELF file with %llu bytes of relocations",
			       (unsigned long long)size);
	if (entry != sizeof(Elf64_Rela))
		return err_set(err, -EBADMSG, "damaged ELF file: relocations of %llu bytes",
			       (unsigned long long)entry);
	r = file_read_relocations(f, addr, size, err);
	if (r == 0)
		file_sort_pointers(f);
	return r;
}

static int file_check_header(const Elf64_Ehdr *h, struct err *err)
{
	if (memcmp(h->e_ident, ELFMAG, SELFMAG) != 0 || h->e_ident[EI_CLASS] != ELFCLASS64 ||
	    h->e_ident[EI_DATA] != ELFDATA2LSB)
		return err_set(err, -EBADMSG, "not a 64-bit little-endian ELF file");
	if (h->e_machine != EM_X86_64 && h->e_machine != EM_AARCH64)
		return err_set(err, -ENOTSUP,
			       "an ELF file for machine %u; amd64 and arm64 are supported",
			       h->e_machine);
	if (h->e_phentsize != sizeof(Elf64_Phdr) || h->e_phnum > FILE_MAX_PHDRS)
		return err_set(err, -EBADMSG, "damaged ELF file: %u program headers of %u bytes",
			       h->e_phnum, h->e_phentsize);
	return 0;
}

static int file_load(struct mem_file *f, uint64_t size, bool relocated, struct err *err)
{
	Elf64_Phdr phdrs[FILE_MAX_PHDRS];
	const Elf64_Phdr *dynamic = NULL;
	Elf64_Ehdr h;
	ssize_t len;
	int r;

	if (io_pread_full(f->fd, &h, sizeof(h), 0) != sizeof(h))
		return err_set(err, -EBADMSG, "not an ELF file");
	r = file_check_header(&h, err);
	if (r < 0)
		return r;
	f->mem.machine = h.e_machine;
	len = (ssize_t)(h.e_phnum * sizeof(*phdrs));
	if (io_pread_full(f->fd, phdrs, (size_t)len, h.e_phoff) != len)
		return err_set(err, -EBADMSG,
			       "damaged ELF file: its program headers are truncated");
	for (size_t i = 0; r == 0 && i < h.e_phnum; i++) {
		if (phdrs[i].p_type == PT_LOAD)
			r = file_add_segment(f, &phdrs[i], err);
		if (phdrs[i].p_type == PT_DYNAMIC)
			dynamic = &phdrs[i];
	}
	if (r == 0)
		r = file_add_maps(f, size, err);
	if (r == 0 && relocated && dynamic)
		r = file_relocate(f, dynamic, err);
	return r;
}

int proc_mem_open_elf(int fd, bool relocated, struct proc_mem **ret_mem, struct err *err)
{
	struct mem_file *f = calloc(1, sizeof(*f));
	struct stat st;
	int r;

	if (!f)
		return err_oom(err);
	f->mem.ops = &file_ops;
	strcpy(f->mem.who, "the program's file");
	f->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (f->fd < 0 || io_stat(f->fd, &st) < 0)
		r = err_set(err, -errno, "cannot look at a file: %s", strerror(errno));
	else if (!S_ISREG(st.st_mode))
		r = err_set(err, -EBADMSG, "not a regular file");
	else
		r = file_load(f, (uint64_t)st.st_size, relocated, err);
	if (r < 0) {
		proc_mem_close(&f->mem);
		return r;
	}
	*ret_mem = &f->mem;
	return 0;
}
