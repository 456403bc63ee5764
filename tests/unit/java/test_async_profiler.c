/*
 * tests/unit/java/test_async_profiler.c: whose async-profiler is in a JVM, and which chunks are
 * whole.
 */
#include "java/collect/async_profiler.h"

#include <endian.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define CODE "7f0000000000-7f0000001000 r-xp 00000000 "

/* The path is "" where there is none of ours. */
static void expect_found(const char *text, int found, const char *path)
{
	_cleanup_(proc_maps_release) struct proc_maps maps = {};
	char dst[160] = "";

	assert_int_equal(proc_maps_parse(view_str(text), &maps, NULL), 0);
	assert_int_equal(java_async_find(&maps, dst, sizeof(dst)), found);
	assert_string_equal(dst, path);
}

static void a_profiler_of_somebody_else_is_left_alone(void **state)
{
	(void)state;
	expect_found(CODE "08:01 7 /opt/ap/lib/libasyncProfiler.so\n", -EBUSY, "");
	expect_found(CODE "08:01 7 /tmp/libjavaProfiler123.so (deleted)\n", -EBUSY, "");
	/* Also beside one of ours. */
	expect_found(CODE "00:28 3 /libsonde-async-aed03059047a05f4.so\n"
			  "7f0000002000-7f0000003000 r-xp 00000000 08:01 7 "
			  "/opt/libasyncProfiler.so\n",
		     -EBUSY, "");
	/* What only lies in such a directory is another thing. */
	expect_found(CODE "08:01 7 /opt/libasyncProfiler.so.d/x.so\n", 0, "");
}

static void one_of_ours_is_found_by_the_path_it_was_loaded_with(void **state)
{
	(void)state;
	expect_found(CODE "00:28 3 /libsonde-async-0ed03059047a05f4.so\n", 1,
		     "/tmp/.sonde-0ed03059047a05f4/libsonde-async-0ed03059047a05f4.so");
	expect_found(CODE "00:28 3 /libsonde-async-what.so\n", 0, "");
}

static void chunks_are_read_when_they_are_whole(void **state)
{
	uint8_t header[JAVA_ASYNC_HEADER_BYTES] = "FLR";
	struct view v = view_of(header, sizeof(header));
	uint64_t len = htobe64(0x40000000), some = htobe64(100);

	(void)state;
	memcpy(header + 8, &len, 8);
	/* As async-profiler leaves it while it writes. */
	assert_int_equal(java_async_chunk_len(v), 0);
	memcpy(header + 16, &some, 8);
	memcpy(header + 24, &some, 8);
	assert_int_equal(java_async_chunk_len(v), -EBADMSG);
	len = htobe64(5000);
	memcpy(header + 8, &len, 8);
	assert_int_equal(java_async_chunk_len(v), 5000);
	len = htobe64(20);
	memcpy(header + 8, &len, 8);
	assert_int_equal(java_async_chunk_len(v), -EBADMSG);
	assert_int_equal(java_async_chunk_len(view_of(header, 60)), -EBADMSG);
	header[0] = 'X';
	assert_int_equal(java_async_chunk_len(v), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_profiler_of_somebody_else_is_left_alone),
		cmocka_unit_test(one_of_ours_is_found_by_the_path_it_was_loaded_with),
		cmocka_unit_test(chunks_are_read_when_they_are_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
