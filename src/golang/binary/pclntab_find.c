/*
 * src/golang/binary/pclntab_find.c: finds the function table.
 *
 * It has a named section if the Go linker wrote the file. GNU ld merges it into .data.rel.ro for
 * PIE and c-shared (up to 1.25), and some files have no sections at all: then the process's memory
 * is searched for the table's first words.
 */
#include <elf.h>
#include <errno.h>

#include "base/cleanup.h"
#include "golang/binary/pclntab.h"

#define PCLN_HEADER_BYTES 72
#define PCLN_MAX_FUNCTIONS ((uint64_t)1 << 24)
#define PCLN_POINTER_BYTES 8
#define PCLN_TABLES 5

static bool magic_format(uint32_t magic, enum golang_pcln_format *ret_format)
{
	switch (magic) {
	case 0xfffffffa:
		*ret_format = GOLANG_PCLN_116;
		return true;
	case 0xfffffff0:
		*ret_format = GOLANG_PCLN_118;
		return true;
	case 0xfffffff1:
		*ret_format = GOLANG_PCLN_120;
		return true;
	default:
		return false;
	}
}

/*
 * Parses the header at the start of bytes, and checks the offsets of its tables against each other.
 */
static bool header_parse(struct view bytes, struct golang_pclntab *t, uint64_t *ret_names_offset)
{
	uint64_t tables[PCLN_TABLES];
	enum golang_pcln_format format;
	uint64_t n;
	uint32_t magic;
	uint8_t quantum, pointer_bytes;
	uint16_t pad;

	if (!view_u32(bytes, 0, &magic) || !magic_format(magic, &format) ||
	    !view_u16(bytes, 4, &pad) || pad != 0 || !view_u8(bytes, 6, &quantum) ||
	    (quantum != 1 && quantum != 4) || !view_u8(bytes, 7, &pointer_bytes) ||
	    pointer_bytes != PCLN_POINTER_BYTES || !view_u64(bytes, 8, &n) || n == 0 ||
	    n >= PCLN_MAX_FUNCTIONS)
		return false;
	if (!view_copy(bytes, format == GOLANG_PCLN_116 ? 24 : 32, tables, sizeof(tables)))
		return false;
	if (tables[0] >= 256)
		return false;
	for (size_t i = 1; i < PCLN_TABLES; i++)
		if (tables[i] < tables[i - 1])
			return false;
	t->format = format;
	t->quantum = quantum;
	t->n_functions = n;
	*ret_names_offset = tables[0];
	return true;
}

int golang_pclntab_header(struct golang_pclntab *t, struct proc_mem *mem, uint64_t addr,
			  uint64_t *ret_names_offset, struct err *err)
{
	uint8_t bytes[PCLN_HEADER_BYTES];
	int r = proc_mem_read(mem, addr, bytes, sizeof(bytes), err);

	if (r < 0)
		return err_prefix(err, r, "Go's function table");
	if (!header_parse(view_of(bytes, sizeof(bytes)), t, ret_names_offset))
		return err_set(err, -EBADMSG, "no Go function table at 0x%lx", addr);
	t->addr = addr;
	return 0;
}

/* The first eight bytes of tables differ only in magic and quantum. */
static int header_in_piece(uint64_t addr, struct view bytes, void *arg)
{
	uint64_t *ret_addr = arg;

	for (size_t off = (8 - addr % 8) % 8; off + PCLN_HEADER_BYTES <= bytes.len; off += 8) {
		struct golang_pclntab t;
		uint64_t word, names;

		memcpy(&word, bytes.data + off, sizeof(word));
		if (word >> 56 != PCLN_POINTER_BYTES || (uint32_t)word < 0xfffffff0)
			continue;
		if (header_parse(view_of(bytes.data + off, bytes.len - off), &t, &names)) {
			*ret_addr = addr + off;
			return 1;
		}
	}
	return 0;
}

int golang_pclntab_find(const struct golang_image *image, struct golang_scan *scan,
			uint64_t *ret_addr, const char **ret_how, struct err *err)
{
	static const char *const names[] = {".gopclntab", ".data.rel.ro.gopclntab"};
	static const char *const hows[] = {"section .gopclntab", "section .data.rel.ro.gopclntab"};
	struct golang_pclntab t;
	uint64_t names_offset;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const struct elf_section *s = elf_image_section(image->elf, names[i]);
		uint64_t addr = s ? s->addr + image->bias : 0;

		if (!s || golang_pclntab_header(&t, scan->mem, addr, &names_offset, NULL) < 0)
			continue;
		*ret_addr = addr;
		*ret_how = hows[i];
		return 0;
	}
	for (size_t i = 0; i < image->elf->n_segments; i++) {
		const struct elf_segment *s = &image->elf->segments[i];
		int r;

		if (s->type != PT_LOAD)
			continue;
		r = golang_scan(scan, s->vaddr + image->bias, s->filesz, PCLN_HEADER_BYTES,
				header_in_piece, ret_addr);
		if (r < 0)
			return err_set(err, r, "cannot scan for Go's function table");
		if (r > 0) {
			*ret_how = "scan";
			return 0;
		}
	}
	return err_lack(err, -ENOENT, ERR_CAUSE_ALTERED, "", "no Go function table found");
}
