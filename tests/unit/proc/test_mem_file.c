/* tests/unit/proc/test_mem_file.c: forged programs as memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "proc/mem.h"

/*
 *   0x000  ELF header, program headers      text at TEXT
 *   0x400  relocations, 0x600 dynamic
 *   0x800  data at DATA, followed by zeroes that are not in the file
 */
enum {
	FILE_BYTES = 0x1000,
	FILE_RELA = 0x400,
	FILE_DYNAMIC = 0x600,
	FILE_DATA = 0x800,
	TEXT = 0x10000,
	DATA = 0x20000,
	DATA_BYTES = 0x800,
};

struct file {
	uint8_t bytes[FILE_BYTES];
	Elf64_Ehdr header;
	Elf64_Phdr ph[3];
	Elf64_Rela rela[8];
	size_t n_rela;
	Elf64_Dyn dynamic[4];
};

static struct file new_file(void)
{
	struct file f = {
		.header =
			{
				.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB},
				.e_type = ET_DYN,
				.e_machine = EM_X86_64,
				.e_phoff = sizeof(Elf64_Ehdr),
				.e_phentsize = sizeof(Elf64_Phdr),
				.e_phnum = 3,
			},
		.ph = {{.p_type = PT_LOAD,
			.p_flags = PF_R | PF_W,
			.p_offset = FILE_DATA,
			.p_vaddr = DATA,
			.p_filesz = DATA_BYTES,
			.p_memsz = (uint64_t)2 * DATA_BYTES},
		       {.p_type = PT_LOAD,
			.p_flags = PF_R | PF_X,
			.p_vaddr = TEXT,
			.p_filesz = FILE_DATA,
			.p_memsz = FILE_DATA},
		       {.p_type = PT_DYNAMIC,
			.p_offset = FILE_DYNAMIC,
			.p_filesz = sizeof(f.dynamic)}},
		.dynamic = {{.d_tag = DT_RELA, .d_un.d_ptr = TEXT + FILE_RELA},
			    {.d_tag = DT_RELASZ},
			    {.d_tag = DT_RELAENT, .d_un.d_val = sizeof(Elf64_Rela)}},
	};

	memset(f.bytes + FILE_DATA, 0xee, DATA_BYTES);
	return f;
}

static void relocate(struct file *f, uint64_t at, uint32_t type, int64_t addend)
{
	f->rela[f->n_rela++] =
		(Elf64_Rela){.r_offset = at, .r_info = ELF64_R_INFO(0, type), .r_addend = addend};
	f->dynamic[1].d_un.d_val = f->n_rela * sizeof(Elf64_Rela);
}

static int try_open(struct file *f, bool relocated, struct proc_mem **ret_mem)
{
	_cleanup_close_ int fd = memfd_create("program", MFD_CLOEXEC);
	struct err err = {};
	int r;

	memcpy(f->bytes, &f->header, sizeof(f->header));
	memcpy(f->bytes + sizeof(f->header), f->ph, sizeof(f->ph));
	memcpy(f->bytes + FILE_RELA, f->rela, sizeof(f->rela));
	memcpy(f->bytes + FILE_DYNAMIC, f->dynamic, sizeof(f->dynamic));
	assert_true(fd >= 0);
	assert_int_equal(write(fd, f->bytes, sizeof(f->bytes)), sizeof(f->bytes));
	r = proc_mem_open_elf(fd, relocated, ret_mem, &err);
	assert_true((r < 0) == (err.text[0] != 0));
	return r;
}

static struct proc_mem *open_file(struct file *f, bool relocated)
{
	struct proc_mem *mem = NULL;

	assert_int_equal(try_open(f, relocated, &mem), 0);
	return mem;
}

static uint64_t word_at(struct proc_mem *mem, uint64_t addr)
{
	uint64_t word;

	assert_int_equal(proc_mem_read(mem, addr, &word, sizeof(word), NULL), 0);
	return word;
}

static void segments_are_read_at_their_addresses(void **state)
{
	_cleanup_(proc_mem_closep) struct proc_mem *mem = NULL;
	struct file f = new_file();

	(void)state;
	f.bytes[FILE_DATA + 0x123] = 0x42;
	mem = open_file(&f, true);
	assert_int_equal(word_at(mem, TEXT) & 0xffffffff, 0x464c457f);
	assert_int_equal(word_at(mem, DATA + 0x123) & 0xffff, 0xee42);
	assert_int_equal(proc_mem_machine(mem), EM_X86_64);
	assert_int_equal(proc_mem_maps(mem)->len, 2);
	assert_int_equal(proc_maps_find(proc_mem_maps(mem), TEXT + 1)->flags,
			 PROC_MAP_READ | PROC_MAP_EXEC);
	assert_int_equal(proc_maps_find(proc_mem_maps(mem), DATA)->flags,
			 PROC_MAP_READ | PROC_MAP_WRITE);
}

static void what_is_not_in_the_file_is_not_memory(void **state)
{
	_cleanup_(proc_mem_closep) struct proc_mem *mem = NULL;
	struct file f = new_file();
	struct err err = {};
	uint8_t bytes[16];

	(void)state;
	mem = open_file(&f, true);
	assert_int_equal(proc_mem_read_some(mem, DATA + DATA_BYTES - 4, bytes, 16), 4);
	assert_int_equal(proc_mem_read_some(mem, DATA + DATA_BYTES, bytes, 16), 0);
	assert_int_equal(proc_mem_read(mem, DATA + DATA_BYTES - 4, bytes, 16, &err), -EFAULT);
	assert_non_null(strstr(err.text, "0x20800"));
	assert_int_equal(proc_mem_read_some(mem, 0, bytes, 16), 0);
	assert_int_equal(proc_mem_read_some(mem, UINT64_MAX - 3, bytes, 16), 0);
}

static void relative_pointers_are_filled_in(void **state)
{
	_cleanup_(proc_mem_closep) struct proc_mem *mem = NULL;
	_cleanup_(proc_mem_closep) struct proc_mem *plain = NULL;
	struct file f = new_file();

	(void)state;
	/* In no order; one that needs a symbol; one that needs nothing. */
	relocate(&f, DATA + 0x40, R_X86_64_RELATIVE, 0x1122334455667788);
	relocate(&f, DATA + 0x10, R_X86_64_RELATIVE, TEXT + 5);
	relocate(&f, DATA + 0x20, R_X86_64_64, 7);
	relocate(&f, DATA + 0x28, R_X86_64_NONE, 7);
	mem = open_file(&f, true);
	plain = open_file(&f, false);
	assert_int_equal(word_at(mem, DATA + 0x10), TEXT + 5);
	assert_int_equal(word_at(mem, DATA + 0x40), 0x1122334455667788);
	assert_int_equal(word_at(mem, DATA + 0x18), 0xeeeeeeeeeeeeeeee);
	assert_int_equal(word_at(mem, DATA + 0x20), 0xeeeeeeeeeeeeeeee);
	assert_int_equal(word_at(mem, DATA + 0x28), 0xeeeeeeeeeeeeeeee);
	assert_int_equal(word_at(plain, DATA + 0x10), 0xeeeeeeeeeeeeeeee);
}

static void parts_of_a_pointer_are_filled_in(void **state)
{
	_cleanup_(proc_mem_closep) struct proc_mem *mem = NULL;
	struct file f = new_file();
	uint8_t whole[32], part[32];

	(void)state;
	relocate(&f, DATA + 8, R_X86_64_RELATIVE, 0x1122334455667788);
	relocate(&f, DATA + 16, R_X86_64_RELATIVE, 0x0102030405060708);
	mem = open_file(&f, true);
	assert_int_equal(proc_mem_read(mem, DATA, whole, sizeof(whole), NULL), 0);
	assert_int_equal(whole[8], 0x88);
	assert_int_equal(whole[23], 0x01);
	for (size_t from = 0; from < sizeof(whole); from++) {
		for (size_t len = 1; len <= sizeof(whole) - from; len++) {
			assert_int_equal(proc_mem_read(mem, DATA + from, part, len, NULL), 0);
			assert_memory_equal(part, whole + from, len);
		}
	}
}

static void relocations_of_arm64_are_known(void **state)
{
	_cleanup_(proc_mem_closep) struct proc_mem *mem = NULL;
	struct file f = new_file();

	(void)state;
	f.header.e_machine = EM_AARCH64;
	relocate(&f, DATA, R_AARCH64_RELATIVE, 77);
	relocate(&f, DATA + 8, R_X86_64_RELATIVE, 77);
	mem = open_file(&f, true);
	assert_int_equal(word_at(mem, DATA), 77);
	assert_int_equal(word_at(mem, DATA + 8), 0xeeeeeeeeeeeeeeee);
}

static void pointers_at_the_end_of_the_address_space_do_no_harm(void **state)
{
	_cleanup_(proc_mem_closep) struct proc_mem *mem = NULL;
	struct file f = new_file();

	(void)state;
	relocate(&f, UINT64_MAX - 3, R_X86_64_RELATIVE, 1);
	relocate(&f, DATA, R_X86_64_RELATIVE, 2);
	mem = open_file(&f, true);
	assert_int_equal(word_at(mem, DATA), 2);
}

static void damaged_files_are_refused(void **state)
{
	struct proc_mem *mem = NULL;
	struct file f = new_file();

	(void)state;
	f.ph[1].p_vaddr = DATA - 8; /* overlap */
	assert_int_equal(try_open(&f, true, &mem), -EBADMSG);
	f = new_file();
	f.ph[1].p_filesz = UINT64_MAX - 8;
	assert_int_equal(try_open(&f, true, &mem), -EBADMSG);
	f = new_file();
	f.header.e_phoff = FILE_BYTES;
	assert_int_equal(try_open(&f, true, &mem), -EBADMSG);
	f = new_file();
	f.header.e_phnum = 65535;
	assert_int_equal(try_open(&f, true, &mem), -EBADMSG);
	f = new_file();
	f.header.e_ident[0] = 0;
	assert_int_equal(try_open(&f, true, &mem), -EBADMSG);
	f = new_file();
	f.header.e_machine = EM_386;
	assert_int_equal(try_open(&f, true, &mem), -ENOTSUP);
	assert_null(mem);
}

static void damaged_relocations_are_refused_only_where_they_are_wanted(void **state)
{
	struct proc_mem *mem = NULL;
	struct file f = new_file();

	(void)state;
	relocate(&f, DATA, R_X86_64_RELATIVE, 1);
	f.dynamic[2].d_un.d_val = 16;
	assert_int_equal(try_open(&f, true, &mem), -EBADMSG);
	f.dynamic[2].d_un.d_val = sizeof(Elf64_Rela);
	f.dynamic[1].d_un.d_val = 1ULL << 40;
	assert_int_equal(try_open(&f, true, &mem), -E2BIG);
	f.dynamic[1].d_un.d_val = 0x10000;
	assert_int_equal(try_open(&f, true, &mem), -EFAULT);
	f.ph[2].p_offset = FILE_BYTES;
	assert_int_equal(try_open(&f, true, &mem), -EBADMSG);
	assert_null(mem);
	proc_mem_close(open_file(&f, false));
}

static void mappings_end_with_the_file(void **state)
{
	_cleanup_(proc_mem_closep) struct proc_mem *mem = NULL;
	struct file f = new_file();

	(void)state;
	f.ph[0].p_filesz = 1ULL << 40;
	f.ph[1].p_offset = FILE_BYTES;
	mem = open_file(&f, false);
	assert_int_equal(proc_mem_maps(mem)->len, 1);
	assert_int_equal(proc_mem_maps(mem)->maps[0].start, DATA);
	assert_int_equal(proc_mem_maps(mem)->maps[0].end, DATA + DATA_BYTES);
}

static void a_file_that_is_cut_short_ends_there(void **state)
{
	_cleanup_close_ int fd = memfd_create("program", MFD_CLOEXEC);
	_cleanup_(proc_mem_closep) struct proc_mem *mem = NULL;
	struct file f = new_file();
	uint8_t bytes[64];

	(void)state;
	proc_mem_close(open_file(&f, true)); /* fills in f.bytes */
	assert_int_equal(write(fd, f.bytes, sizeof(f.bytes)), sizeof(f.bytes));
	assert_int_equal(proc_mem_open_elf(fd, true, &mem, NULL), 0);
	assert_int_equal(ftruncate(fd, FILE_DATA + 10), 0);
	assert_int_equal(proc_mem_read_some(mem, DATA, bytes, sizeof(bytes)), 10);
	assert_int_equal(proc_mem_read(mem, DATA, bytes, sizeof(bytes), NULL), -EFAULT);
}

static void what_is_no_file_is_refused(void **state)
{
	struct proc_mem *mem = NULL;
	struct err err = {};
	int fds[2];

	(void)state;
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	assert_int_equal(proc_mem_open_elf(fds[0], true, &mem, &err), -EBADMSG);
	assert_true(err.text[0]);
	close(fds[0]);
	close(fds[1]);
	assert_int_equal(proc_mem_open_elf(-1, true, &mem, &err), -EBADF);
	assert_null(mem);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(segments_are_read_at_their_addresses),
		cmocka_unit_test(what_is_not_in_the_file_is_not_memory),
		cmocka_unit_test(relative_pointers_are_filled_in),
		cmocka_unit_test(parts_of_a_pointer_are_filled_in),
		cmocka_unit_test(relocations_of_arm64_are_known),
		cmocka_unit_test(pointers_at_the_end_of_the_address_space_do_no_harm),
		cmocka_unit_test(damaged_files_are_refused),
		cmocka_unit_test(damaged_relocations_are_refused_only_where_they_are_wanted),
		cmocka_unit_test(mappings_end_with_the_file),
		cmocka_unit_test(a_file_that_is_cut_short_ends_there),
		cmocka_unit_test(what_is_no_file_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
