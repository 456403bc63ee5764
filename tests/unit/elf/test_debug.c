/*
 * tests/unit/elf/test_debug.c: names that are not in the file itself: mini debug info, separate
 * debug files, starts of functions in the unwind information. The programs are made here, with the
 * compiler and binutils.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <lzma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "elf/debugfile.h"
#include "elf/minidebug.h"
#include "elf/symbols.h"
#include "run.h"

static const char program[] =
	"static __attribute__((noinline,used)) int hidden(int x)\n"
	"{ volatile int y = x; return y * 3; }\n"
	"__attribute__((noinline)) int seen(int x) { return hidden(x) + 1; }\n"
	"int main(int c, char **v) { (void)v; return seen(c); }\n";

static char folder[] = "/tmp/test-elf-debug-XXXXXX";

#define run(...) run_in(folder, __VA_ARGS__)

static struct elf_image *open_image(const char *name)
{
	struct elf_image *image = NULL;
	char path[256];
	struct err err = {0};
	int fd;

	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(elf_image_open_fd(fd, &image, &err), 0);
	close(fd);
	return image;
}

static uint64_t address_of(const char *file, const char *name)
{
	_cleanup_(elf_image_closep) struct elf_image *image = open_image(file);
	struct elf_symbol wanted = {.name = name};

	assert_int_equal(elf_symbols_find(image, &wanted, 1, NULL), 1);
	return wanted.value;
}

static void expect_name(const struct elf_image *image, uint64_t vaddr, const char *name)
{
	_cleanup_(elf_functions_freep) struct elf_functions *f = NULL;
	uint64_t start = 0;
	const char *got;

	assert_int_equal(elf_functions_load(image, &f, NULL), 0);
	got = elf_functions_lookup(f, vaddr + 1, 0, &start);
	if (!name) {
		assert_null(got);
		return;
	}
	assert_non_null(got);
	assert_string_equal(got, name);
	assert_int_equal(start, vaddr);
}

static int setup(void **state)
{
	char path[64];

	(void)state;
	if (!mkdtemp(folder))
		return -1;
	(void)snprintf(path, sizeof(path), "%s/p.c", folder);
	if (io_write_file(path, view_str(program), NULL) < 0)
		return -1;
	run("cc -g -O1 -rdynamic -Wl,--build-id=sha1 p.c -o full && objcopy --only-keep-debug full"
	    " full.debug && strip full -o stripped");
	run("cc -g -O1 -Wl,--build-id=none p.c -o anon && objcopy --only-keep-debug anon anon.debug"
	    " && strip anon -o anon.stripped && objcopy --add-gnu-debuglink=anon.debug "
	    "anon.stripped"
	    " && mkdir -p root/.build-id root%s && cp anon.debug root%s/",
	    folder, folder);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	run("rm -rf %s", folder);
	return 0;
}

static void add_mini(const char *from, const char *to, const void *data, size_t len)
{
	_cleanup_free_ uint8_t *packed = malloc(lzma_stream_buffer_bound(len));
	char path[128];
	size_t n = 0;

	assert_non_null(packed);
	assert_int_equal(lzma_easy_buffer_encode(1, LZMA_CHECK_CRC32, NULL, data, len, packed, &n,
						 lzma_stream_buffer_bound(len)),
			 LZMA_OK);
	(void)snprintf(path, sizeof(path), "%s/packed", folder);
	assert_int_equal(io_write_file(path, view_of(packed, n), NULL), 0);
	run("objcopy --add-section .gnu_debugdata=packed %s %s", from, to);
}

static void mini_debug_info_names_what_was_stripped(void **state)
{
	_cleanup_(elf_image_closep) struct elf_image *outer = NULL, *inner = NULL;
	uint64_t hidden = address_of("full", "hidden");
	struct buf bytes = {0};
	char path[128];

	(void)state;
	(void)snprintf(path, sizeof(path), "%s/full.debug", folder);
	run("objcopy -R '.debug_*' -R .comment full.debug mini");
	(void)snprintf(path, sizeof(path), "%s/mini", folder);
	assert_int_equal(io_read_file(AT_FDCWD, path, &bytes, NULL), 0);
	add_mini("stripped", "with-mini", bytes.data, bytes.len);
	buf_release(&bytes);
	bytes = (struct buf){0};

	outer = open_image("with-mini");
	expect_name(outer, hidden, NULL);
	assert_int_equal(elf_minidebug_read(outer, &bytes, NULL), 0);
	assert_int_equal(elf_image_open_bytes(buf_view(&bytes), &inner, NULL), 0);
	expect_name(inner, hidden, "hidden");
	buf_release(&bytes);
}

static void mini_debug_info_may_be_missing_damaged_or_a_bomb(void **state)
{
	_cleanup_(elf_image_closep) struct elf_image *image = open_image("stripped");
	_cleanup_free_ uint8_t *zeros = calloc(1, ELF_MINIDEBUG_MAX_BYTES + 1);
	struct buf bytes = {0};
	struct err err = {0};

	(void)state;
	assert_non_null(zeros);
	assert_int_equal(elf_minidebug_read(image, &bytes, &err), -ENOENT);
	elf_image_close(image);
	add_mini("stripped", "bomb", zeros, ELF_MINIDEBUG_MAX_BYTES + 1);
	image = open_image("bomb");
	assert_int_equal(elf_minidebug_read(image, &bytes, &err), -E2BIG);
	elf_image_close(image);
	run("printf 'no xz at all' >junk && objcopy --add-section .gnu_debugdata=junk stripped "
	    "bad");
	image = open_image("bad");
	assert_int_equal(elf_minidebug_read(image, &bytes, &err), -EBADMSG);
	elf_image_close(image);
	run("head -c 40 packed >cut && objcopy --add-section .gnu_debugdata=cut stripped short");
	image = open_image("short");
	assert_int_equal(elf_minidebug_read(image, &bytes, &err), -EBADMSG);
	assert_null(bytes.data);
}

static int open_debug(const char *name, struct elf_image **ret)
{
	_cleanup_(elf_image_closep) struct elf_image *image = open_image(name);
	char root[64], path[128];

	(void)snprintf(root, sizeof(root), "%s/root", folder);
	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	return elf_debugfile_open(root, path, image, ret, NULL);
}

static void a_debug_file_is_found_by_build_id(void **state)
{
	_cleanup_(elf_image_closep) struct elf_image *image = open_image("stripped"), *debug = NULL;
	char id[64];

	(void)state;
	assert_true(elf_image_build_id(image, id, sizeof(id)));
	assert_int_equal(open_debug("stripped", &debug), -ENOENT);
	run("mkdir -p root/.build-id/%.2s && cp full.debug root/.build-id/%.2s/%s.debug", id, id,
	    id + 2);
	assert_int_equal(open_debug("stripped", &debug), 0);
	expect_name(debug, address_of("full", "hidden"), "hidden");
	elf_image_close(debug);
	debug = NULL;
	/* Under the right name, but of another program. */
	run("cp anon.debug root/.build-id/%.2s/%s.debug", id, id + 2);
	assert_int_equal(open_debug("stripped", &debug), -ENOENT);
}

/* Whoever forges a build id or a link would learn what is in it. */
static void a_debug_file_that_others_may_not_read_is_not_used(void **state)
{
	_cleanup_(elf_image_closep) struct elf_image *image = open_image("stripped"), *debug = NULL;
	char id[64];

	(void)state;
	assert_true(elf_image_build_id(image, id, sizeof(id)));
	run("mkdir -p root/.build-id/%.2s && cp full.debug root/.build-id/%.2s/%s.debug", id, id,
	    id + 2);
	run("chmod 600 root/.build-id/%.2s/%s.debug root%s/anon.debug", id, id + 2, folder);
	assert_int_equal(open_debug("stripped", &debug), -ENOENT);
	assert_int_equal(open_debug("anon.stripped", &debug), -ENOENT);
	run("chmod 644 root/.build-id/%.2s/%s.debug root%s/anon.debug", id, id + 2, folder);
	assert_int_equal(open_debug("stripped", &debug), 0);
}

static void a_debug_file_is_found_by_its_link(void **state)
{
	_cleanup_(elf_image_closep) struct elf_image *debug = NULL;

	(void)state;
	assert_int_equal(open_debug("anon.stripped", &debug), 0);
	expect_name(debug, address_of("anon", "hidden"), "hidden");
	elf_image_close(debug);
	debug = NULL;
	run("printf x >>root%s/anon.debug", folder);
	assert_int_equal(open_debug("anon.stripped", &debug), -ENOENT); /* another checksum */
	run("cp anon.debug root%s/", folder);
}

/* Both would lead to the right file, were they followed. */
static void a_link_cannot_lead_out_of_the_folder(void **state)
{
	_cleanup_(elf_image_closep) struct elf_image *image = open_image("anon.stripped");
	struct elf_image *debug = NULL;
	char root[64], path[128];

	(void)state;
	(void)snprintf(root, sizeof(root), "%s/root/x", folder);
	(void)snprintf(path, sizeof(path), "/../%s/anon.stripped", folder + 1);
	run("mkdir -p root/x");
	assert_int_equal(elf_debugfile_open(root, path, image, &debug, NULL), -ENOENT);
	elf_image_close(image);
	run("objcopy -R .gnu_debuglink anon.stripped up && printf '../anon.debug\\0\\0\\0' >link &&"
	    " objcopy --dump-section .gnu_debuglink=crc anon.stripped /dev/null; tail -c 4 crc "
	    ">>link"
	    " && objcopy --add-section .gnu_debuglink=link up up2 && mkdir -p root%s/sub",
	    folder);
	image = open_image("up2");
	(void)snprintf(root, sizeof(root), "%s/root", folder);
	(void)snprintf(path, sizeof(path), "%s/sub/up2", folder);
	assert_int_equal(elf_debugfile_open(root, path, image, &debug, NULL), -ENOENT);
}

static void unwind_entries_tell_where_functions_begin(void **state)
{
	static const char *const names[] = {"hidden", "seen", "main"};
	_cleanup_(elf_image_closep) struct elf_image *image = open_image("stripped");
	uint64_t start = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		uint64_t wanted = address_of("full", names[i]);

		assert_int_equal(elf_entry_start(image, wanted, &start), 0);
		assert_int_equal(start, wanted);
		assert_int_equal(elf_entry_start(image, wanted + 3, &start), 0);
		assert_int_equal(start, wanted);
	}
	assert_int_equal(elf_entry_start(image, 1, &start), -ENOENT);
}

static void forged_unwind_tables_have_no_entries(void **state)
{
	_cleanup_(elf_image_closep) struct elf_image *image = open_image("stripped");
	struct elf_segment *table = NULL;
	uint64_t start = 0;

	(void)state;
	for (size_t i = 0; i < image->n_segments; i++)
		if (image->segments[i].type == PT_GNU_EH_FRAME)
			table = &image->segments[i];
	assert_non_null(table);
	if (!table)
		return;
	table->filesz = 11;
	assert_int_equal(elf_entry_start(image, 0x1200, &start), -ENOENT);
	table->filesz = UINT64_MAX;
	table->offset = UINT64_MAX - 4;
	assert_int_equal(elf_entry_start(image, 0x1200, &start), -ENOENT);
	table->type = PT_NULL;
	assert_int_equal(elf_entry_start(image, 0x1200, &start), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mini_debug_info_names_what_was_stripped),
		cmocka_unit_test(mini_debug_info_may_be_missing_damaged_or_a_bomb),
		cmocka_unit_test(a_debug_file_is_found_by_build_id),
		cmocka_unit_test(a_debug_file_that_others_may_not_read_is_not_used),
		cmocka_unit_test(a_debug_file_is_found_by_its_link),
		cmocka_unit_test(a_link_cannot_lead_out_of_the_folder),
		cmocka_unit_test(unwind_entries_tell_where_functions_begin),
		cmocka_unit_test(forged_unwind_tables_have_no_entries),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
