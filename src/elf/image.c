/*
 * src/elf/image.c: opens an ELF file and copies its headers.
 *
 * The file is whatever a target runs, so every count is bounded before memory is allocated. Section
 * headers, which the kernel ignores, are used only if they are plausible.
 */
#include "elf/image.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"

#define ELF_MAX_SEGMENTS 4096
#define ELF_MAX_SECTIONS 65535
#define ELF_MAX_NAMES_BYTES ((uint64_t)4 << 20)
/* A program's notes are a few hundred bytes; core files are not read here. */
#define ELF_MAX_NOTES_BYTES ((uint64_t)64 << 10)
#define ELF_MAX_BUILD_ID_BYTES 64
#define ELF_GO_BUILD_ID 4 /* ELF_NOTE_GOBUILDID_TAG of Go's cmd/link/internal/ld/elf.go */

int elf_image_read(const struct elf_image *image, uint64_t off, void *dst, size_t len)
{
	ssize_t n;

	if (off > image->size || len > image->size - off)
		return -EBADMSG;
	if (image->fd < 0)
		return view_copy(image->bytes, off, dst, len) ? 0 : -EBADMSG;
	n = io_pread_full(image->fd, dst, len, off);
	/* The file may have been truncated since it was opened. */
	return n == (ssize_t)len ? 0 : -EBADMSG;
}

static int elf_check_header(const Elf64_Ehdr *h, struct err *err)
{
	if (memcmp(h->e_ident, ELFMAG, SELFMAG) != 0)
		return err_set(err, -EBADMSG, "not an ELF file");
	if (h->e_ident[EI_CLASS] == ELFCLASS32)
		return err_lack(err, -EBADMSG, ERR_CAUSE_UNSUPPORTED, "",
				"a 32-bit ELF file; only 64-bit programs are supported");
	if (h->e_ident[EI_DATA] == ELFDATA2MSB)
		return err_lack(err, -EBADMSG, ERR_CAUSE_UNSUPPORTED, "",
				"a big-endian ELF file; only little-endian programs are supported");
	if (h->e_ident[EI_CLASS] != ELFCLASS64 || h->e_ident[EI_DATA] != ELFDATA2LSB)
		return err_set(err, -EBADMSG, "damaged ELF file: unknown class %u or byte order %u",
			       h->e_ident[EI_CLASS], h->e_ident[EI_DATA]);
	return 0;
}

/* Section 0 holds counts that do not fit the header's 16 bits. */
static bool elf_read_section_zero(const struct elf_image *image, const Elf64_Ehdr *h,
				  Elf64_Shdr *ret)
{
	return h->e_shoff && h->e_shentsize == sizeof(*ret) &&
	       elf_image_read(image, h->e_shoff, ret, sizeof(*ret)) == 0;
}

static int elf_load_segments(struct elf_image *image, const Elf64_Ehdr *h, struct err *err)
{
	uint64_t n = h->e_phnum;
	Elf64_Shdr zero;

	if (n == PN_XNUM && elf_read_section_zero(image, h, &zero))
		n = zero.sh_info;
	if (n == 0)
		return 0;
	if (n > ELF_MAX_SEGMENTS)
		return err_set(err, -E2BIG, "an ELF file with %llu segments; the limit is %d",
			       (unsigned long long)n, ELF_MAX_SEGMENTS);
	if (h->e_phentsize != sizeof(Elf64_Phdr))
		return err_set(err, -EBADMSG, "damaged ELF file: program headers of %u bytes",
			       h->e_phentsize);
	image->segments = calloc(n, sizeof(*image->segments));
	if (!image->segments)
		return err_oom(err);
	for (uint64_t i = 0; i < n; i++) {
		Elf64_Phdr p;

		if (h->e_phoff > image->size ||
		    elf_image_read(image, h->e_phoff + i * sizeof(p), &p, sizeof(p)) < 0)
			return err_set(err, -EBADMSG,
				       "damaged ELF file: its program headers are truncated");
		image->segments[i] = (struct elf_segment){
			.type = p.p_type,
			.flags = p.p_flags,
			.offset = p.p_offset,
			.vaddr = p.p_vaddr,
			.filesz = p.p_filesz,
			.memsz = p.p_memsz,
		};
	}
	image->n_segments = n;
	return 0;
}

/* Copies the names of the sections, adding a NUL after the last. */
static int elf_load_names(struct elf_image *image, const Elf64_Shdr *strings)
{
	if (strings->sh_type != SHT_STRTAB || strings->sh_size > ELF_MAX_NAMES_BYTES)
		return -EBADMSG;
	image->names = malloc(strings->sh_size + 1);
	if (!image->names)
		return -ENOMEM;
	image->names[strings->sh_size] = 0;
	return elf_image_read(image, strings->sh_offset, image->names, strings->sh_size);
}

/* The number of sections, and which one holds their names; false if the headers are invalid. */
static bool elf_count_sections(const struct elf_image *image, const Elf64_Ehdr *h, uint64_t *ret_n,
			       uint64_t *ret_names)
{
	uint64_t n = h->e_shnum, names = h->e_shstrndx;
	Elf64_Shdr zero;

	if (!elf_read_section_zero(image, h, &zero))
		return false;
	if (n == 0)
		n = zero.sh_size;
	if (names == SHN_XINDEX)
		names = zero.sh_link;
	if (n == 0 || n > ELF_MAX_SECTIONS || names >= n)
		return false;
	if (n * sizeof(zero) > image->size - h->e_shoff)
		return false;
	*ret_n = n;
	*ret_names = names;
	return true;
}

static int elf_read_sections(struct elf_image *image, uint64_t off, uint64_t n, uint64_t names)
{
	Elf64_Shdr batch[64];
	uint64_t names_len = 0;

	if (names != SHN_UNDEF) {
		int r = elf_image_read(image, off + names * sizeof(*batch), batch, sizeof(*batch));

		if (r == 0)
			r = elf_load_names(image, batch);
		if (r < 0)
			return r;
		names_len = batch[0].sh_size;
	}
	for (uint64_t i = 0; i < n; i++) {
		const Elf64_Shdr *s = &batch[i % ARRAY_SIZE(batch)];
		size_t left = MIN(n - i, ARRAY_SIZE(batch));

		if (i % ARRAY_SIZE(batch) == 0 &&
		    elf_image_read(image, off + i * sizeof(*s), batch, left * sizeof(*s)) < 0)
			return -EBADMSG;
		image->sections[i] = (struct elf_section){
			.name = s->sh_name < names_len ? (char *)image->names + s->sh_name : "",
			.type = s->sh_type,
			.flags = s->sh_flags,
			.addr = s->sh_addr,
			.offset = s->sh_offset,
			.size = s->sh_size,
			.link = s->sh_link,
		};
	}
	return 0;
}

/* Sections are optional: if anything is wrong with them, the image has none. */
static int elf_load_sections(struct elf_image *image, const Elf64_Ehdr *h, struct err *err)
{
	uint64_t n, names;
	int r;

	if (!elf_count_sections(image, h, &n, &names))
		return 0;
	image->sections = calloc(n, sizeof(*image->sections));
	if (!image->sections)
		return err_oom(err);
	r = elf_read_sections(image, h->e_shoff, n, names);
	if (r == -ENOMEM)
		return err_oom(err);
	if (r == 0) {
		image->n_sections = n;
		return 0;
	}
	free(image->sections);
	free(image->names);
	image->sections = NULL;
	image->names = NULL;
	return 0;
}

static int elf_image_load(struct elf_image *image, struct err *err)
{
	Elf64_Ehdr h = {0};
	int r;

	if (elf_image_read(image, 0, &h, sizeof(h)) < 0) {
		unsigned char magic[SELFMAG];

		if (elf_image_read(image, 0, magic, sizeof(magic)) < 0 ||
		    memcmp(magic, ELFMAG, SELFMAG) != 0)
			return err_set(err, -EBADMSG, "not an ELF file");
		return err_set(err, -EBADMSG, "damaged ELF file: truncated header");
	}
	r = elf_check_header(&h, err);
	if (r < 0)
		return r;
	image->type = h.e_type;
	image->machine = h.e_machine;
	image->entry = h.e_entry;
	r = elf_load_segments(image, &h, err);
	if (r < 0)
		return r;
	return elf_load_sections(image, &h, err);
}

static struct elf_image *elf_image_new(void)
{
	struct elf_image *image = calloc(1, sizeof(*image));

	if (image)
		image->fd = -1;
	return image;
}

int elf_image_open_fd(int fd, struct elf_image **ret_image, struct err *err)
{
	_cleanup_(elf_image_closep) struct elf_image *image = elf_image_new();
	struct stat st;
	int r;

	if (!image)
		return err_oom(err);
	if (io_stat(fd, &st) < 0)
		return err_set(err, -errno, "cannot access an ELF file: %s", strerror(errno));
	if (!S_ISREG(st.st_mode))
		return err_set(err, -EBADMSG, "not an ELF file: not a regular file");
	image->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (image->fd < 0)
		return err_set(err, -errno, "cannot keep an ELF file open: %s", strerror(errno));
	image->size = (uint64_t)st.st_size;
	r = elf_image_load(image, err);
	if (r < 0)
		return r;
	*ret_image = TAKE_PTR(image);
	return 0;
}

int elf_image_open_bytes(struct view bytes, struct elf_image **ret_image, struct err *err)
{
	_cleanup_(elf_image_closep) struct elf_image *image = elf_image_new();
	int r;

	if (!image)
		return err_oom(err);
	image->bytes = bytes;
	image->size = bytes.len;
	r = elf_image_load(image, err);
	if (r < 0)
		return r;
	*ret_image = TAKE_PTR(image);
	return 0;
}

void elf_image_close(struct elf_image *image)
{
	if (!image)
		return;
	closep(&image->fd);
	free(image->segments);
	free(image->sections);
	free(image->names);
	free(image);
}

int elf_image_fd(const struct elf_image *image)
{
	return image->fd;
}

const struct elf_section *elf_image_section(const struct elf_image *image, const char *name)
{
	for (size_t i = 0; i < image->n_sections; i++)
		if (strcmp(image->sections[i].name, name) == 0)
			return &image->sections[i];
	return NULL;
}

/* How a note says which build this is. */
struct elf_id_note {
	char owner[4]; /* padded, as all of these are written */
	uint32_t type;
	bool (*put)(struct view id, char *dst, size_t dst_len);
};

static bool elf_put_hex(struct view id, char *dst, size_t dst_len)
{
	if (id.len == 0 || id.len > ELF_MAX_BUILD_ID_BYTES || dst_len < id.len * 2 + 1)
		return false;
	for (size_t i = 0; i < id.len; i++)
		(void)snprintf(dst + i * 2, 3, "%02x", id.data[i]);
	return true;
}

static bool elf_put_text(struct view id, char *dst, size_t dst_len)
{
	if (id.len == 0 || dst_len < id.len + 1)
		return false;
	for (size_t i = 0; i < id.len; i++)
		if (id.data[i] <= ' ' || id.data[i] > '~')
			return false;
	memcpy(dst, id.data, id.len);
	dst[id.len] = 0;
	return true;
}

/*
 * Notes follow each other, each part padded to 4 bytes:
 *
 *   namesz u32 | descsz u32 | type u32 | name ... | desc ...
 */
static bool elf_find_id(struct view notes, const struct elf_id_note *wanted, char *dst,
			size_t dst_len)
{
	uint64_t off = 0;
	Elf64_Nhdr n;

	while (view_copy(notes, off, &n, sizeof(n))) {
		uint64_t name_off = off + sizeof(n);
		uint64_t desc_off = name_off + (((uint64_t)n.n_namesz + 3) & ~(uint64_t)3);
		struct view name, desc;

		if (!view_sub(notes, name_off, n.n_namesz, &name) ||
		    !view_sub(notes, desc_off, n.n_descsz, &desc))
			return false;
		if (n.n_type == wanted->type &&
		    view_eq(name, view_of(wanted->owner, sizeof(wanted->owner))))
			return wanted->put(desc, dst, dst_len);
		off = desc_off + (((uint64_t)n.n_descsz + 3) & ~(uint64_t)3);
	}
	return false;
}

/* *budget: how much may still be read, for all notes together. */
static bool elf_find_id_at(const struct elf_image *image, uint64_t off, uint64_t len,
			   uint64_t *budget, const struct elf_id_note *wanted, char *dst,
			   size_t dst_len)
{
	_cleanup_free_ uint8_t *notes = NULL;

	if (len > *budget)
		return false;
	*budget -= len;
	notes = malloc(len + 1);
	if (!notes || elf_image_read(image, off, notes, len) < 0)
		return false;
	return elf_find_id(view_of(notes, len), wanted, dst, dst_len);
}

static bool elf_image_id(const struct elf_image *image, const struct elf_id_note *wanted, char *dst,
			 size_t dst_len)
{
	uint64_t budget = ELF_MAX_NOTES_BYTES;

	for (size_t i = 0; i < image->n_segments; i++) {
		const struct elf_segment *s = &image->segments[i];

		if (s->type == PT_NOTE &&
		    elf_find_id_at(image, s->offset, s->filesz, &budget, wanted, dst, dst_len))
			return true;
	}
	for (size_t i = 0; i < image->n_sections; i++) {
		const struct elf_section *s = &image->sections[i];

		if (s->type == SHT_NOTE &&
		    elf_find_id_at(image, s->offset, s->size, &budget, wanted, dst, dst_len))
			return true;
	}
	return false;
}

bool elf_image_build_id(const struct elf_image *image, char *dst, size_t dst_len)
{
	static const struct elf_id_note gnu = {"GNU", NT_GNU_BUILD_ID, elf_put_hex};

	return elf_image_id(image, &gnu, dst, dst_len);
}

bool elf_image_go_build_id(const struct elf_image *image, char *dst, size_t dst_len)
{
	static const struct elf_id_note go = {"Go", ELF_GO_BUILD_ID, elf_put_text};

	return elf_image_id(image, &go, dst, dst_len);
}
