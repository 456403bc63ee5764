/* tests/unit/elf/test_image.c: forged and damaged ELF files, built here byte by byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "elf/image.h"

/*
 *   0    Ehdr | 64 two Phdrs | 256 notes | 512 names of sections | 1024 Shdrs
 */
struct forged {
	union {
		Elf64_Ehdr ehdr;
		uint8_t bytes[4096];
	};
};

#define NAMES "\0.text\0.shstrtab\0.note"
#define NOTES_OFF 256
#define NAMES_OFF 512
#define SECTIONS_OFF 1024

static Elf64_Phdr *phdr(struct forged *f, size_t i)
{
	return (Elf64_Phdr *)(f->bytes + 64) + i;
}

static Elf64_Shdr *shdr(struct forged *f, size_t i)
{
	return (Elf64_Shdr *)(f->bytes + SECTIONS_OFF) + i;
}

static size_t put_note(uint8_t *p, const char *name, uint32_t type, const void *desc, uint32_t len)
{
	/* As linkers do, the padding counts as part of the name. */
	Elf64_Nhdr n = {
		.n_namesz = (uint32_t)(strlen(name) + 4) & ~3U, .n_descsz = len, .n_type = type};
	size_t desc_off = sizeof(n) + n.n_namesz;

	memcpy(p, &n, sizeof(n));
	memcpy(p + sizeof(n), name, strlen(name));
	memcpy(p + desc_off, desc, len);
	return desc_off + ((len + 3) & ~3U);
}

static struct forged forge(void)
{
	struct forged f = {.ehdr = {.e_type = ET_EXEC,
				    .e_machine = EM_X86_64,
				    .e_entry = 0x401000,
				    .e_phoff = 64,
				    .e_shoff = SECTIONS_OFF,
				    .e_phentsize = sizeof(Elf64_Phdr),
				    .e_phnum = 2,
				    .e_shentsize = sizeof(Elf64_Shdr),
				    .e_shnum = 4,
				    .e_shstrndx = 2}};
	size_t n;

	memcpy(f.ehdr.e_ident, ELFMAG, SELFMAG);
	f.ehdr.e_ident[EI_CLASS] = ELFCLASS64;
	f.ehdr.e_ident[EI_DATA] = ELFDATA2LSB;
	*phdr(&f, 0) = (Elf64_Phdr){.p_type = PT_LOAD,
				    .p_flags = PF_R | PF_X,
				    .p_vaddr = 0x400000,
				    .p_filesz = 0x1000,
				    .p_memsz = 0x3000};
	n = put_note(f.bytes + NOTES_OFF, "Go", 4, "aB_3/x-9", 8);
	n += put_note(f.bytes + NOTES_OFF + n, "GNU", NT_GNU_BUILD_ID, "\x01\xab\xff\x10", 4);
	*phdr(&f, 1) = (Elf64_Phdr){.p_type = PT_NOTE, .p_offset = NOTES_OFF, .p_filesz = n};
	memcpy(f.bytes + NAMES_OFF, NAMES, sizeof(NAMES));
	*shdr(&f, 1) = (Elf64_Shdr){.sh_name = 1,
				    .sh_type = SHT_PROGBITS,
				    .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
				    .sh_addr = 0x401000,
				    .sh_offset = 2048,
				    .sh_size = 100,
				    .sh_link = 3};
	*shdr(&f, 2) = (Elf64_Shdr){.sh_name = 7,
				    .sh_type = SHT_STRTAB,
				    .sh_offset = NAMES_OFF,
				    .sh_size = sizeof(NAMES)};
	*shdr(&f, 3) = (Elf64_Shdr){
		.sh_name = 17, .sh_type = SHT_NOTE, .sh_offset = NOTES_OFF, .sh_size = n};
	return f;
}

static struct elf_image *open_ok(const struct forged *f)
{
	struct elf_image *image = NULL;
	struct err err = {0};

	assert_int_equal(elf_image_open_bytes(view_of(f, sizeof(*f)), &image, &err), 0);
	return image;
}

static void refuses(const void *data, size_t len, int code, const char *words)
{
	struct elf_image *image = NULL;
	struct err err = {0};

	assert_int_equal(elf_image_open_bytes(view_of(data, len), &image, &err), code);
	assert_null(image);
	if (!strstr(err.text, words))
		fail_msg("\"%s\" does not say \"%s\"", err.text, words);
}

static void image_has_segments_and_sections(void **state)
{
	struct forged f = forge();
	_cleanup_(elf_image_closep) struct elf_image *image = open_ok(&f);
	const struct elf_section *text = elf_image_section(image, ".text");

	(void)state;
	assert_int_equal(image->type, ET_EXEC);
	assert_int_equal(image->machine, EM_X86_64);
	assert_int_equal(image->entry, 0x401000);
	assert_int_equal(image->n_segments, 2);
	assert_int_equal(image->segments[0].memsz, 0x3000);
	assert_int_equal(image->segments[0].flags, PF_R | PF_X);
	assert_int_equal(image->n_sections, 4);
	assert_non_null(text);
	assert_int_equal(text->addr, 0x401000);
	assert_int_equal(text->size, 100);
	assert_int_equal(text->link, 3);
	assert_null(elf_image_section(image, ".data"));
	assert_int_equal(elf_image_fd(image), -1);
}

static void read_stays_within_the_file(void **state)
{
	struct forged f = forge();
	_cleanup_(elf_image_closep) struct elf_image *image = open_ok(&f);
	uint8_t bytes[16];

	(void)state;
	assert_int_equal(elf_image_read(image, 0, bytes, 4), 0);
	assert_memory_equal(bytes, ELFMAG, 4);
	assert_int_equal(elf_image_read(image, sizeof(f) - 16, bytes, 16), 0);
	assert_int_equal(elf_image_read(image, sizeof(f) - 15, bytes, 16), -EBADMSG);
	assert_int_equal(elf_image_read(image, UINT64_MAX - 3, bytes, 16), -EBADMSG);
}

static void build_id_is_found_behind_other_notes(void **state)
{
	struct forged f = forge();
	_cleanup_(elf_image_closep) struct elf_image *image = open_ok(&f);
	char id[64];

	(void)state;
	assert_true(elf_image_build_id(image, id, sizeof(id)));
	assert_string_equal(id, "01abff10");
	assert_true(elf_image_build_id(image, id, 9));
	assert_false(elf_image_build_id(image, id, 8));
}

static void build_id_is_found_in_a_section_without_segments(void **state)
{
	struct forged f = forge();
	_cleanup_(elf_image_closep) struct elf_image *image = NULL;
	char id[64];

	(void)state;
	f.ehdr.e_phnum = 0;
	image = open_ok(&f);
	assert_true(elf_image_build_id(image, id, sizeof(id)));
	assert_string_equal(id, "01abff10");
}

static void build_id_of_go_is_text(void **state)
{
	struct forged f = forge();
	_cleanup_(elf_image_closep) struct elf_image *image = open_ok(&f);
	char id[64];

	(void)state;
	assert_true(elf_image_go_build_id(image, id, sizeof(id)));
	assert_string_equal(id, "aB_3/x-9");
	assert_true(elf_image_go_build_id(image, id, 9));
	assert_false(elf_image_go_build_id(image, id, 8));
	/* Whatever a target writes there, it is shown. */
	f.bytes[NOTES_OFF + sizeof(Elf64_Nhdr) + 4] = '\n';
	assert_false(elf_image_go_build_id(image, id, sizeof(id)));
}

static void build_id_is_absent_when_its_note_is_cut_off(void **state)
{
	struct forged f = forge();
	_cleanup_(elf_image_closep) struct elf_image *image = NULL;
	char id[64];

	(void)state;
	phdr(&f, 1)->p_filesz -= 1;
	shdr(&f, 3)->sh_size = UINT64_MAX;
	image = open_ok(&f);
	assert_false(elf_image_build_id(image, id, sizeof(id)));
}

static void open_refuses_what_is_not_a_64_bit_little_endian_elf(void **state)
{
	struct forged f = forge();

	(void)state;
	refuses("#!/bin/sh\n", 10, -EBADMSG, "not an ELF file");
	refuses("", 0, -EBADMSG, "not an ELF file");
	refuses(&f, 63, -EBADMSG, "truncated");
	f.ehdr.e_ident[EI_CLASS] = ELFCLASS32;
	refuses(&f, sizeof(f), -EBADMSG, "32-bit");
	f = forge();
	f.ehdr.e_ident[EI_DATA] = ELFDATA2MSB;
	refuses(&f, sizeof(f), -EBADMSG, "big-endian");
	f.ehdr.e_ident[EI_DATA] = 7;
	refuses(&f, sizeof(f), -EBADMSG, "damaged");
}

static void open_refuses_damaged_program_headers(void **state)
{
	struct forged f = forge();

	(void)state;
	f.ehdr.e_phoff = sizeof(f) - 100;
	refuses(&f, sizeof(f), -EBADMSG, "truncated");
	f.ehdr.e_phoff = UINT64_MAX - 10;
	refuses(&f, sizeof(f), -EBADMSG, "truncated");
	f = forge();
	f.ehdr.e_phentsize = 32;
	refuses(&f, sizeof(f), -EBADMSG, "program headers of 32 bytes");
	f = forge();
	f.ehdr.e_phnum = 5000;
	refuses(&f, sizeof(f), -E2BIG, "5000 segments");
}

static void extended_segment_count_is_taken_from_section_zero(void **state)
{
	struct forged f = forge();
	_cleanup_(elf_image_closep) struct elf_image *image = NULL;

	(void)state;
	f.ehdr.e_phnum = PN_XNUM;
	shdr(&f, 0)->sh_info = 2;
	image = open_ok(&f);
	assert_int_equal(image->n_segments, 2);
}

static void extended_section_counts_are_taken_from_section_zero(void **state)
{
	struct forged f = forge();
	_cleanup_(elf_image_closep) struct elf_image *image = NULL;

	(void)state;
	f.ehdr.e_shnum = 0;
	f.ehdr.e_shstrndx = SHN_XINDEX;
	shdr(&f, 0)->sh_size = 4;
	shdr(&f, 0)->sh_link = 2;
	image = open_ok(&f);
	assert_int_equal(image->n_sections, 4);
	assert_non_null(elf_image_section(image, ".note"));
}

static void expect_no_sections(const struct forged *f)
{
	_cleanup_(elf_image_closep) struct elf_image *image = open_ok(f);

	assert_int_equal(image->n_sections, 0);
	assert_int_equal(image->n_segments, 2);
	assert_null(elf_image_section(image, ".text"));
}

static void damaged_section_headers_leave_no_sections(void **state)
{
	struct forged f;

	(void)state;
	f = forge(), f.ehdr.e_shoff = 0, expect_no_sections(&f);
	f = forge(), f.ehdr.e_shoff = sizeof(f) - 64, expect_no_sections(&f);
	f = forge(), f.ehdr.e_shoff = UINT64_MAX - 63, expect_no_sections(&f);
	f = forge(), f.ehdr.e_shnum = 65535, expect_no_sections(&f);
	f = forge(), f.ehdr.e_shentsize = 40, expect_no_sections(&f);
	f = forge(), f.ehdr.e_shstrndx = 4, expect_no_sections(&f);
	f = forge(), f.ehdr.e_shstrndx = 1, expect_no_sections(&f);
	f = forge(), shdr(&f, 2)->sh_offset = sizeof(f), expect_no_sections(&f);
	f = forge(), shdr(&f, 2)->sh_size = UINT64_MAX, expect_no_sections(&f);
	f = forge(), f.ehdr.e_shnum = 0, shdr(&f, 0)->sh_size = UINT64_MAX, expect_no_sections(&f);
}

static void names_end_in_nul_even_when_the_table_does_not(void **state)
{
	struct forged f = forge();
	_cleanup_(elf_image_closep) struct elf_image *image = NULL;

	(void)state;
	shdr(&f, 2)->sh_size = 4; /* "\0.te" */
	image = open_ok(&f);
	assert_string_equal(image->sections[1].name, ".te");
	assert_string_equal(image->sections[3].name, ""); /* beyond the table */
}

static void image_of_a_descriptor_reads_by_itself(void **state)
{
	struct forged f = forge();
	_cleanup_(elf_image_closep) struct elf_image *image = NULL;
	int fd = memfd_create("image", MFD_CLOEXEC);
	uint8_t byte;

	(void)state;
	assert_int_equal(write(fd, &f, sizeof(f)), sizeof(f));
	assert_int_equal(elf_image_open_fd(fd, &image, NULL), 0);
	assert_int_not_equal(elf_image_fd(image), fd);
	assert_int_equal(ftruncate(fd, 100), 0);
	assert_int_equal(close(fd), 0);
	assert_int_equal(image->n_sections, 4);
	assert_int_equal(elf_image_read(image, 99, &byte, 1), 0);
	/* What was there at open may be gone: an error, not a signal. */
	assert_int_equal(elf_image_read(image, 100, &byte, 1), -EBADMSG);
}

static void open_refuses_a_descriptor_that_is_no_file(void **state)
{
	struct elf_image *image = NULL;
	struct err err = {0};
	int fds[2];

	(void)state;
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(elf_image_open_fd(fds[0], &image, &err), -EBADMSG);
	assert_non_null(strstr(err.text, "regular"));
	close(fds[0]);
	close(fds[1]);
	assert_int_equal(elf_image_open_fd(-1, &image, &err), -EBADF);
	assert_null(image);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(image_has_segments_and_sections),
		cmocka_unit_test(read_stays_within_the_file),
		cmocka_unit_test(build_id_is_found_behind_other_notes),
		cmocka_unit_test(build_id_is_found_in_a_section_without_segments),
		cmocka_unit_test(build_id_of_go_is_text),
		cmocka_unit_test(build_id_is_absent_when_its_note_is_cut_off),
		cmocka_unit_test(open_refuses_what_is_not_a_64_bit_little_endian_elf),
		cmocka_unit_test(open_refuses_damaged_program_headers),
		cmocka_unit_test(extended_segment_count_is_taken_from_section_zero),
		cmocka_unit_test(extended_section_counts_are_taken_from_section_zero),
		cmocka_unit_test(damaged_section_headers_leave_no_sections),
		cmocka_unit_test(names_end_in_nul_even_when_the_table_does_not),
		cmocka_unit_test(image_of_a_descriptor_reads_by_itself),
		cmocka_unit_test(open_refuses_a_descriptor_that_is_no_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
