/* tests/unit/proc/test_mem_core_forged.c: core files that no kernel would write. */
#include "proc/mem.h"

#include <elf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"

#define PHDRS 4
#define DATA_OFF 0x1000

/* A small sound core, to be spoilt: three segments and a note, the data at DATA_OFF. */
struct forged {
	Elf64_Ehdr eh;
	Elf64_Phdr ph[PHDRS];
	struct buf notes; /* placed at DATA_OFF + 0x1000 */
	size_t size;	  /* what the file is cut or extended to; 0 for all of it */
};

static void note_add(struct buf *b, uint32_t type, const void *desc, uint32_t len)
{
	Elf64_Nhdr h = {.n_namesz = 5, .n_descsz = len, .n_type = type};

	assert_int_equal(buf_append(b, &h, sizeof(h)), 0);
	assert_int_equal(buf_append(b, "CORE\0\0\0", 8), 0);
	assert_int_equal(buf_append(b, desc, len), 0);
	while (b->len % 4)
		assert_int_equal(buf_append_byte(b, 0), 0);
}

static void forged_init(struct forged *f)
{
	static const uint64_t auxv[] = {AT_ENTRY, 0x4321, AT_PAGESZ, 4096, AT_NULL, 0, AT_UID, 1};
	struct {
		uint64_t head[2];
		uint64_t files[3][3];
		char names[32];
	} file = {
		.head = {3, 0x1000},
		.files = {{0x40000, 0x44000, 2}, {0x10000, 0x11000, 0}, {0x90000, 0x91000, 5}},
		.names = "/lib/b (deleted)\0/bin/a\0/lib/c",
	};
	char info[136] = {0};

	*f = (struct forged){.eh = {
				     .e_ident = ELFMAG,
				     .e_type = ET_CORE,
				     .e_machine = EM_AARCH64,
				     .e_phoff = sizeof(Elf64_Ehdr),
				     .e_phentsize = sizeof(Elf64_Phdr),
				     .e_phnum = PHDRS,
			     }};
	f->eh.e_ident[EI_CLASS] = ELFCLASS64;
	f->eh.e_ident[EI_DATA] = ELFDATA2LSB;
	/* Out of order; the second keeps 16 of 0x1000 bytes, the third lies in a file. */
	f->ph[0] = (Elf64_Phdr){PT_LOAD, PF_R | PF_W, DATA_OFF, 0x20000, 0, 16, 16, 1};
	f->ph[1] = (Elf64_Phdr){PT_LOAD, PF_R | PF_X, DATA_OFF + 16, 0x10000, 0, 16, 0x1000, 1};
	f->ph[2] = (Elf64_Phdr){PT_LOAD, PF_R, DATA_OFF + 32, 0x41000, 0, 16, 16, 1};
	strcpy(info + 40, "na\nme");
	note_add(&f->notes, NT_PRPSINFO, info, sizeof(info));
	note_add(&f->notes, NT_PRSTATUS, info, 7);
	note_add(&f->notes, NT_AUXV, auxv, sizeof(auxv));
	note_add(&f->notes, NT_FILE, &file, sizeof(file));
	f->ph[3] = (Elf64_Phdr){PT_NOTE, PF_R, DATA_OFF + 0x1000, 0, 0, f->notes.len, 0, 4};
}

static int forged_open_keep(struct forged *f, struct proc_mem **ret_mem, struct err *err)
{
	_cleanup_close_ int fd = memfd_create("core", MFD_CLOEXEC);
	char path[64];
	int r;

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, &f->eh, sizeof(f->eh), 0), sizeof(f->eh));
	assert_int_equal(pwrite(fd, f->ph, sizeof(f->ph), sizeof(f->eh)), sizeof(f->ph));
	assert_int_equal(
		pwrite(fd, "AAAAAAAAAAAAAAAABBBBBBBBBBBBBBBBCCCCCCCCCCCCCCCC", 48, DATA_OFF), 48);
	assert_int_equal(pwrite(fd, f->notes.data, f->notes.len, DATA_OFF + 0x1000), f->notes.len);
	if (f->size)
		assert_int_equal(ftruncate(fd, (off_t)f->size), 0);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	*err = (struct err){.text = ""};
	r = proc_mem_open_core(path, ret_mem, err);
	buf_release(&f->notes);
	return r;
}

static void expect_refused(struct forged *f, int code, const char *sentence)
{
	struct proc_mem *mem = NULL;
	struct err err;

	assert_int_equal(forged_open_keep(f, &mem, &err), code);
	assert_null(mem);
	if (!strstr(err.text, sentence))
		fail_msg("'%s' does not say '%s'", err.text, sentence);
}

static void sound_core_has_its_memory_names_and_vector(void **state)
{
	static const struct proc_map want[] = {
		{.start = 0x10000, .end = 0x11000, .flags = 5, .path = "/bin/a"},
		{.start = 0x20000, .end = 0x20010, .flags = 3, .path = ""},
		{.start = 0x41000, .end = 0x41010, .offset = 0x3000, .flags = 9, .path = "/lib/b"},
		{.start = 0x90000, .end = 0x91000, .offset = 0x5000, .flags = 1, .path = "/lib/c"},
	};
	_cleanup_(proc_mem_closep) struct proc_mem *mem = NULL;
	const struct proc_maps *maps;
	struct forged f;
	struct err err;
	uint64_t value;
	char got[32];

	(void)state;
	forged_init(&f);
	assert_int_equal(forged_open_keep(&f, &mem, &err), 0);
	maps = proc_mem_maps(mem);
	assert_int_equal(maps->len, ARRAY_SIZE(want));
	for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
		assert_int_equal(maps->maps[i].start, want[i].start);
		assert_int_equal(maps->maps[i].end, want[i].end);
		assert_int_equal(maps->maps[i].offset, want[i].offset);
		assert_int_equal(maps->maps[i].flags, want[i].flags);
		assert_string_equal(maps->maps[i].path, want[i].path);
	}
	assert_int_equal(proc_mem_machine(mem), EM_AARCH64);
	assert_true(proc_mem_auxv(mem, AT_ENTRY, &value));
	assert_int_equal(value, 0x4321);
	assert_false(proc_mem_auxv(mem, AT_UID, &value));
	assert_int_equal(proc_mem_read(mem, 0x20000, got, 16, &err), 0);
	assert_memory_equal(got, "AAAAAAAAAAAAAAAA", 16);
	assert_int_equal(proc_mem_read_some(mem, 0x41008, got, 32), 8);
	assert_int_equal(proc_mem_read(mem, 0x30000, got, 1, &err), -EFAULT);
	assert_int_equal(proc_mem_read(mem, 0x10000, got, 17, &err), -EFAULT);
	assert_non_null(strstr(err.text, "it is mapped from /bin/a"));
	assert_non_null(strstr(err.text, "(na?me)"));
}

static void core_goes_before_the_file_behind_it(void **state)
{
	_cleanup_close_ int fd = memfd_create("file", MFD_CLOEXEC);
	_cleanup_(proc_mem_closep) struct proc_mem *mem = NULL;
	char file[0x2000], got[0x2000];
	struct forged f;
	struct err err;

	(void)state;
	memset(file, 'f', sizeof(file));
	assert_int_equal(write(fd, file, sizeof(file)), sizeof(file));
	forged_init(&f);
	assert_int_equal(forged_open_keep(&f, &mem, &err), 0);
	assert_int_equal(proc_mem_back(mem, 0x40000, 0x2000, fd, 0, &err), 0);
	assert_int_equal(proc_mem_back(mem, 0x10000, 0x1000, fd, 0, &err), 0);
	assert_int_equal(proc_mem_read(mem, 0x40000, got, 0x2000, &err), 0);
	for (size_t i = 0; i < sizeof(got); i++)
		assert_int_equal(got[i], i >= 0x1000 && i < 0x1010 ? 'C' : 'f');
	assert_int_equal(proc_mem_read(mem, 0x10000, got, 0x1000, &err), 0);
	for (size_t i = 0; i < 0x1000; i++)
		assert_int_equal(got[i], i < 16 ? 'B' : 'f');
}

/* Data that a cut core lost may have been changed: the file behind it is no answer. */
static void truncated_core_says_how_much_is_missing(void **state)
{
	_cleanup_close_ int fd = memfd_create("file", MFD_CLOEXEC);
	_cleanup_(proc_mem_closep) struct proc_mem *mem = NULL;
	struct forged f;
	struct err err;
	char got[16];

	(void)state;
	assert_int_equal(ftruncate(fd, 0x1000), 0);
	forged_init(&f);
	f.ph[2].p_offset = 0x10000;
	f.size = 0x10000 + 6;
	assert_int_equal(forged_open_keep(&f, &mem, &err), 0);
	assert_int_equal(proc_mem_back(mem, 0x41000, 0x1000, fd, 0, &err), 0);
	assert_int_equal(proc_mem_read(mem, 0x41000, got, 6, &err), 0);
	assert_int_equal(proc_mem_read_some(mem, 0x41000, got, 16), 6);
	assert_int_equal(proc_mem_read(mem, 0x41000, got, 16, &err), -EBADMSG);
	assert_non_null(strstr(err.text, "10 of 65552 bytes are missing"));

	forged_init(&f);
	f.size = DATA_OFF + 0x1000 + 20;
	expect_refused(&f, -EBADMSG, "bytes are missing");
	forged_init(&f);
	f.size = sizeof(Elf64_Ehdr) + 10;
	expect_refused(&f, -EBADMSG, "is truncated: 214 of 288 bytes are missing");
	forged_init(&f);
	f.size = 20;
	expect_refused(&f, -EBADMSG, "header is incomplete");
}

static void wrong_files_are_told_apart(void **state)
{
	static const struct {
		const char *magic;
		size_t len;
		int code;
		const char *sentence;
	} cases[] = {
		{"\x1f\x8b", 2, -ENOTSUP, "gzip -d"},
		{"\x28\xb5\x2f\xfd", 4, -ENOTSUP, "zstd -d"},
		{"\xfd\x37zXZ\0", 6, -ENOTSUP, "xz -d"},
		{"\x04\x22\x4d\x18", 4, -ENOTSUP, "lz4 -d"},
		{"BZh9", 4, -ENOTSUP, "bzip2 -d"},
		{"#!/b", 4, -EBADMSG, "not an ELF file"},
		{"\x7f"
		 "ELF\1",
		 5, -ENOTSUP, "32-bit"},
		{"\x7f"
		 "ELF\2\2",
		 6, -ENOTSUP, "big-endian"},
	};
	struct proc_mem *mem = NULL;
	struct forged f;
	struct err err;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		forged_init(&f);
		memcpy(f.eh.e_ident, cases[i].magic, cases[i].len);
		expect_refused(&f, cases[i].code, cases[i].sentence);
	}
	forged_init(&f);
	f.eh.e_type = ET_DYN;
	expect_refused(&f, -EBADMSG, "a program or a library");
	forged_init(&f);
	f.eh.e_machine = EM_RISCV;
	expect_refused(&f, -ENOTSUP, "unsupported machine (ELF number 243)");
	assert_int_equal(proc_mem_open_core("/no/such/core", &mem, &err), -ENOENT);
	assert_non_null(strstr(err.text, "/no/such/core"));
	assert_int_equal(proc_mem_open_core("/dev/null", &mem, &err), -EINVAL);
	assert_int_equal(proc_mem_open_core("/tmp", &mem, &err), -EINVAL);
}

static void headers_that_lie_are_refused(void **state)
{
	struct forged f;

	(void)state;
	forged_init(&f);
	f.eh.e_phentsize = 57;
	expect_refused(&f, -EBADMSG, "wrong size");
	forged_init(&f);
	f.eh.e_phoff = UINT64_MAX - 8;
	expect_refused(&f, -EBADMSG, "past the end of any file");
	forged_init(&f);
	f.eh.e_phnum = 60000;
	expect_refused(&f, -EBADMSG, "is truncated");
	forged_init(&f);
	f.eh.e_phnum = 0;
	expect_refused(&f, -EBADMSG, "holds no memory");
	forged_init(&f);
	f.ph[2].p_vaddr = UINT64_MAX - 3;
	expect_refused(&f, -EBADMSG, "past the last address");
	forged_init(&f);
	f.ph[2].p_offset = UINT64_MAX - 3;
	expect_refused(&f, -EBADMSG, "past the end of any file");
	forged_init(&f);
	f.ph[2].p_vaddr = 0x1000f;
	f.ph[2].p_memsz = 0xfff2;
	expect_refused(&f, -EBADMSG, "overlap");
	forged_init(&f);
	f.eh.e_phnum = PN_XNUM;
	f.eh.e_shoff = UINT64_MAX;
	expect_refused(&f, -EBADMSG, "number of its program headers is missing");
	forged_init(&f);
	f.eh.e_phnum = PN_XNUM;
	f.eh.e_shoff = DATA_OFF;
	expect_refused(&f, -E2BIG, "segments");
}

static void notes_that_lie_are_refused(void **state)
{
	static const uint64_t counts[] = {1, 2, 1000, UINT64_MAX, UINT64_MAX / 24 + 1};
	uint64_t files[] = {1, 4096, 0x5000, 0x6000, 0, 0x61};
	struct forged f;

	(void)state;
	for (size_t i = 1; i < ARRAY_SIZE(counts); i++) {
		forged_init(&f);
		buf_clear(&f.notes);
		files[0] = counts[i];
		note_add(&f.notes, NT_FILE, files, sizeof(files));
		f.ph[3].p_filesz = f.notes.len;
		expect_refused(&f, -EBADMSG, "notes are invalid");
	}
	files[0] = 1;
	for (size_t i = 2; i < 5; i++) {
		uint64_t old = files[i];

		/* An empty range; one that ends before it starts; an offset past 2^64. */
		files[i] = i == 2 ? 0x6000 : i == 3 ? 1 : UINT64_MAX / 2;
		forged_init(&f);
		buf_clear(&f.notes);
		note_add(&f.notes, NT_FILE, files, sizeof(files));
		f.ph[3].p_filesz = f.notes.len;
		expect_refused(&f, -EBADMSG, "notes are invalid");
		files[i] = old;
	}
	forged_init(&f);
	memset(f.notes.data + 4, 0xff, 4);
	expect_refused(&f, -EBADMSG, "notes are invalid");
	forged_init(&f);
	memset(f.notes.data, 0xff, 4);
	expect_refused(&f, -EBADMSG, "notes are invalid");
	/* A hole of zeros: notes of nothing, without end. */
	forged_init(&f);
	buf_clear(&f.notes);
	f.ph[3].p_filesz = (uint64_t)1 << 40;
	f.size = ((size_t)1 << 40) + 0x10000;
	expect_refused(&f, -E2BIG, "notes");
}

static void more_than_65534_segments_are_read(void **state)
{
	_cleanup_close_ int fd = memfd_create("core", MFD_CLOEXEC);
	_cleanup_(proc_mem_closep) struct proc_mem *mem = NULL;
	enum { SEGMENTS = 70000 };
	Elf64_Shdr sh = {.sh_info = SEGMENTS};
	Elf64_Phdr *ph = calloc(SEGMENTS, sizeof(*ph));
	off_t data = (off_t)(sizeof(Elf64_Ehdr) + sizeof(sh) + SEGMENTS * sizeof(*ph));
	struct proc_mem_stats before;
	struct forged f;
	struct err err;
	uint64_t got;
	char path[64];

	(void)state;
	assert_non_null(ph);
	forged_init(&f);
	buf_release(&f.notes);
	f.eh.e_phnum = PN_XNUM;
	f.eh.e_shoff = sizeof(f.eh);
	f.eh.e_phoff = sizeof(f.eh) + sizeof(sh);
	for (uint64_t i = 0; i < SEGMENTS; i++) {
		uint64_t k = SEGMENTS - 1 - i;

		ph[i] = (Elf64_Phdr){
			PT_LOAD, PF_R, (uint64_t)data + k * 8, 0x10000 + k * 0x2000, 0, 8, 8, 1};
		assert_int_equal(pwrite(fd, &k, 8, data + (off_t)k * 8), 8);
	}
	assert_int_equal(pwrite(fd, &f.eh, sizeof(f.eh), 0), sizeof(f.eh));
	assert_int_equal(pwrite(fd, &sh, sizeof(sh), sizeof(f.eh)), sizeof(sh));
	assert_int_equal(pwrite(fd, ph, SEGMENTS * sizeof(*ph), (off_t)f.eh.e_phoff),
			 SEGMENTS * sizeof(*ph));
	free(ph);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	assert_int_equal(proc_mem_open_core(path, &mem, &err), 0);
	assert_int_equal(proc_mem_maps(mem)->len, SEGMENTS);
	before = proc_mem_stats(mem);
	for (uint64_t i = 0; i < SEGMENTS; i += 997) {
		assert_int_equal(proc_mem_read(mem, 0x10000 + i * 0x2000, &got, 8, &err), 0);
		assert_int_equal(got, i);
		assert_int_equal(proc_mem_read(mem, 0x10008 + i * 0x2000, &got, 8, &err), -EFAULT);
	}
	assert_int_equal(proc_mem_stats(mem).syscalls - before.syscalls, 71);
}

static void add_thread(struct forged *f, uint32_t tid, uint64_t pc, uint64_t sp)
{
	bool arm64 = f->eh.e_machine == EM_AARCH64;
	uint64_t regs[49] = {0}; /* as long as arm64's */

	memcpy((char *)regs + 32, &tid, sizeof(tid));
	regs[14 + (arm64 ? 32 : 16)] = pc;
	regs[14 + (arm64 ? 31 : 19)] = sp;
	note_add(&f->notes, NT_PRSTATUS, regs, arm64 ? 392 : 336);
	f->ph[3].p_filesz = f->notes.len;
}

static void threads_are_found_by_their_number(void **state)
{
	static const uint16_t machines[] = {EM_X86_64, EM_AARCH64};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(machines); i++) {
		_cleanup_(proc_mem_closep) struct proc_mem *mem = NULL;
		struct proc_thread thread;
		struct forged f;
		struct err err;

		forged_init(&f);
		f.eh.e_machine = machines[i];
		add_thread(&f, 78, 0x4002, 0x8002);
		add_thread(&f, 77, 0x4001, 0x8001);
		add_thread(&f, 2100, 0x4003, 0x8003);
		assert_int_equal(forged_open_keep(&f, &mem, &err), 0);
		assert_true(proc_mem_thread(mem, 77, &thread));
		assert_int_equal(thread.pc, 0x4001);
		assert_int_equal(thread.sp, 0x8001);
		assert_true(proc_mem_thread(mem, 2100, &thread));
		assert_int_equal(thread.pc, 0x4003);
		assert_false(proc_mem_thread(mem, 79, &thread));
		assert_false(proc_mem_thread(mem, (1ULL << 32) + 77, &thread));
	}
}

static void core_without_registers_has_no_threads(void **state)
{
	_cleanup_(proc_mem_closep) struct proc_mem *mem = NULL;
	struct proc_thread thread;
	struct forged f;
	struct err err;

	(void)state;
	forged_init(&f);
	assert_int_equal(forged_open_keep(&f, &mem, &err), 0);
	assert_false(proc_mem_thread(mem, 0, &thread));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sound_core_has_its_memory_names_and_vector),
		cmocka_unit_test(core_goes_before_the_file_behind_it),
		cmocka_unit_test(truncated_core_says_how_much_is_missing),
		cmocka_unit_test(wrong_files_are_told_apart),
		cmocka_unit_test(headers_that_lie_are_refused),
		cmocka_unit_test(notes_that_lie_are_refused),
		cmocka_unit_test(more_than_65534_segments_are_read),
		cmocka_unit_test(threads_are_found_by_their_number),
		cmocka_unit_test(core_without_registers_has_no_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
