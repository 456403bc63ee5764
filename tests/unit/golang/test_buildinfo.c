/* tests/unit/golang/test_buildinfo.c: the linker's version block, whole and damaged. */
#include "golang/binary/buildinfo.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "mem_fake.h"

#define BASE ((uint64_t)0x10000)
#define MAGIC_LEN 14

enum { INLINE = 2, BIG_ENDIAN_FLAG = 1 };

static void put_magic(uint8_t *at, uint8_t pointer_bytes, uint8_t flags)
{
	memcpy(at, GOLANG_BUILDINFO_MAGIC, MAGIC_LEN);
	at[14] = pointer_bytes;
	at[15] = flags;
}

/* The form of 1.18 and later: length and text at 32. */
static void put_inline(uint8_t *at, const char *version)
{
	put_magic(at, 8, INLINE);
	at[32] = (uint8_t)strlen(version);
	memcpy(at + 33, version, strlen(version));
}

static void put_word(uint8_t *at, uint64_t word)
{
	memcpy(at, &word, sizeof(word));
}

static struct proc_mem *memory_of(const void *bytes, size_t len)
{
	struct proc_mem *mem;
	struct err err;

	assert_int_equal(proc_mem_open_fake(&mem, &err), 0);
	assert_int_equal(proc_mem_fake_add(mem, BASE, bytes, len), 0);
	return mem;
}

/* Reads the block at BASE out of just these bytes. */
static int read_block(const void *bytes, size_t len, struct golang_version *v, struct err *err)
{
	_cleanup_(proc_mem_closep) struct proc_mem *mem = memory_of(bytes, len);

	err->text[0] = 0;
	return golang_buildinfo_read(mem, BASE, v, err);
}

static void inline_form_is_read(void **state)
{
	struct golang_version v;
	uint8_t block[256] = {0};
	struct err err;

	(void)state;
	put_inline(block, "go1.27.3");
	assert_int_equal(read_block(block, sizeof(block), &v, &err), 0);
	assert_string_equal(v.text, "go1.27.3");
	assert_int_equal(v.minor, 27);
	/* It may be the last thing in memory. */
	assert_int_equal(read_block(block, 33 + 8, &v, &err), 0);
	assert_string_equal(v.text, "go1.27.3");
}

static void pointer_form_is_read(void **state)
{
	struct golang_version v;
	uint8_t block[128] = {0};
	struct err err;

	(void)state;
	put_magic(block, 8, 0);
	put_word(block + 16, BASE + 48);
	put_word(block + 48, BASE + 64);
	put_word(block + 56, 9);
	memcpy(block + 64, "go1.17.13garbage", 16);
	assert_int_equal(read_block(block, sizeof(block), &v, &err), 0);
	assert_string_equal(v.text, "go1.17.13");
	assert_int_equal(v.minor, 17);
}

static void pointer_form_with_wild_pointers_fails(void **state)
{
	static const uint64_t wild[] = {0, 1, BASE - 8, BASE + 120, UINT64_MAX, UINT64_MAX - 15};
	struct golang_version v = {.text = "untouched"};
	uint8_t block[128] = {0};
	struct err err;

	(void)state;
	put_magic(block, 8, 0);
	memcpy(block + 64, "go1.17.13", 9);
	for (size_t i = 0; i < ARRAY_SIZE(wild); i++) {
		put_word(block + 16, wild[i]);
		assert_int_equal(read_block(block, sizeof(block), &v, &err), -EFAULT);
		assert_true(err.text[0]);
		put_word(block + 16, BASE + 48);
		put_word(block + 48, wild[i]);
		put_word(block + 56, 9);
		assert_int_equal(read_block(block, sizeof(block), &v, &err), -EFAULT);
	}
	/* A length beyond anything is cut, and then runs out of memory. */
	put_word(block + 48, BASE + 64);
	put_word(block + 56, UINT64_MAX);
	assert_int_equal(read_block(block, sizeof(block), &v, &err), -EFAULT);
	/* A header that points at itself is no version. */
	put_word(block + 16, BASE);
	assert_true(read_block(block, sizeof(block), &v, &err) < 0);
	assert_string_equal(v.text, "untouched");
}

static void block_of_another_machine_is_refused(void **state)
{
	struct golang_version v;
	uint8_t block[64] = {0};
	struct err err;

	(void)state;
	put_magic(block, 8, BIG_ENDIAN_FLAG);
	assert_int_equal(read_block(block, sizeof(block), &v, &err), -EBADMSG);
	assert_non_null(strstr(err.text, "little-endian"));
	put_magic(block, 4, 0);
	assert_int_equal(read_block(block, sizeof(block), &v, &err), -EBADMSG);
	block[0] = 'x';
	assert_int_equal(read_block(block, sizeof(block), &v, &err), -EBADMSG);
	assert_non_null(strstr(err.text, "no Go build info"));
}

static void truncated_block_is_refused_at_every_length(void **state)
{
	struct golang_version v;
	uint8_t block[64] = {0};
	struct err err;

	(void)state;
	put_inline(block, "go1.27.3");
	for (size_t len = 1; len < 33 + 5; len++)
		assert_int_equal(read_block(block, len, &v, &err), -EBADMSG);
	assert_int_equal(read_block(block, 33 + 6, &v, &err), 0);
	assert_int_equal(v.minor, 27);
}

static void huge_length_is_cut_to_what_is_there(void **state)
{
	struct golang_version v;
	uint8_t block[256] = {0};
	struct err err;

	(void)state;
	put_magic(block, 8, INLINE);
	memset(block + 32, 0xff, 9);
	block[41] = 0x01; /* 2^64 - 1 as a varint */
	memcpy(block + 42, "go1.20.1", 8);
	assert_int_equal(read_block(block, sizeof(block), &v, &err), 0);
	assert_string_equal(v.text, "go1.20.1");
	memset(block + 32, 0xff, sizeof(block) - 32); /* a varint that does not end */
	assert_int_equal(read_block(block, sizeof(block), &v, &err), -EBADMSG);
}

static int scan_bytes(const void *bytes, size_t len, struct golang_version *v)
{
	_cleanup_(proc_mem_closep) struct proc_mem *mem = memory_of(bytes, len);
	struct golang_scan scan = golang_scan_of(mem);
	struct err err;

	return golang_buildinfo_scan(&scan, BASE, len, v, &err);
}

static void scan_finds_the_block_where_it_is_aligned(void **state)
{
	_cleanup_free_ uint8_t *data = calloc(1, 1 << 20);
	struct golang_version v;

	(void)state;
	assert_non_null(data);
	assert_int_equal(scan_bytes(data, 1 << 20, &v), -ENOENT);
	put_inline(data + 0x40008, "go1.18"); /* not aligned: a string constant */
	assert_int_equal(scan_bytes(data, 1 << 20, &v), -ENOENT);
	/* The first piece of the scan ends within the magic. */
	put_inline(data + 0x80000 - 16, "go1.21.5");
	assert_int_equal(scan_bytes(data, 1 << 20, &v), 0);
	assert_string_equal(v.text, "go1.21.5");
}

static void scan_passes_a_magic_that_is_no_block(void **state)
{
	uint8_t data[512] = {0};
	struct golang_version v;

	(void)state;
	put_magic(data, 8, INLINE);
	put_magic(data + 64, 8, 0);
	put_inline(data + 128, "not a version");
	put_inline(data + 256, "go1.23.4");
	put_inline(data + 384, "go1.24.1");
	assert_int_equal(scan_bytes(data, sizeof(data), &v), 0);
	assert_string_equal(v.text, "go1.23.4");
}

static void scan_of_nothing_but_magics_ends(void **state)
{
	_cleanup_free_ uint8_t *data = calloc(1, 1 << 20);
	_cleanup_(proc_mem_closep) struct proc_mem *mem = NULL;
	struct golang_version v;
	struct golang_scan scan;
	struct err err;

	(void)state;
	assert_non_null(data);
	for (size_t at = 0; at + 16 <= 1 << 20; at += 16)
		put_magic(data + at, 8, 0);
	mem = memory_of(data, 1 << 20);
	scan = golang_scan_of(mem);
	assert_int_equal(golang_buildinfo_scan(&scan, BASE, 1 << 20, &v, &err), -ENOENT);
	/* One pass and a few blocks: not 65536 of them. */
	assert_true(proc_mem_stats(mem).bytes < 2 << 20);
}

static int count_pieces(uint64_t addr, struct view bytes, void *arg)
{
	size_t *n = arg;

	(void)addr;
	assert_int_equal(bytes.len, 4096);
	(*n)++;
	return 0;
}

/* Each read is a request to an aide; a segment can claim any length. */
static void scan_passes_a_hole_in_one_step(void **state)
{
	static const uint8_t page[4096];
	const uint64_t far = (uint64_t)1 << 46;
	_cleanup_(proc_mem_closep) struct proc_mem *mem = memory_of(page, sizeof(page));
	struct golang_scan scan = golang_scan_of(mem);
	size_t n = 0;

	(void)state;
	assert_int_equal(proc_mem_fake_add(mem, BASE + far, page, sizeof(page)), 0);
	assert_int_equal(golang_scan(&scan, BASE, 2 * far, 0, count_pieces, &n), 0);
	assert_int_equal(n, 2);
	/* Nothing but the two pages, and where they end, was paid for. */
	assert_true(scan.left >= GOLANG_SCAN_BYTES - 4 * sizeof(page));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(inline_form_is_read),
		cmocka_unit_test(pointer_form_is_read),
		cmocka_unit_test(pointer_form_with_wild_pointers_fails),
		cmocka_unit_test(block_of_another_machine_is_refused),
		cmocka_unit_test(truncated_block_is_refused_at_every_length),
		cmocka_unit_test(huge_length_is_cut_to_what_is_there),
		cmocka_unit_test(scan_finds_the_block_where_it_is_aligned),
		cmocka_unit_test(scan_passes_a_magic_that_is_no_block),
		cmocka_unit_test(scan_of_nothing_but_magics_ends),
		cmocka_unit_test(scan_passes_a_hole_in_one_step),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
