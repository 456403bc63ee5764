/* tests/unit/cpu/test_interp.c: the table of interpreters, and the layouts that BPF is told. */
#include "cpu/interp/interp.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"

/* Debian's interpreter of Python stands for all. */
static struct interp detect(struct interp_layouts *layouts, const char *file)
{
	_cleanup_(elf_image_closep) struct elf_image *image = NULL;
	_cleanup_free_ char *path = realpath(file, NULL);
	_cleanup_close_ int fd = -1;
	struct interp found;

	assert_non_null(path);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(elf_image_open_fd(fd, &image, NULL), 0);
	interp_detect(layouts, image, path, &found);
	return found;
}

static void every_interpreter_is_whole(void **state)
{
	(void)state;
	for (enum interp_kind kind = INTERP_NONE + 1; kind < INTERP_N; kind++) {
		const struct interp_ops *ops = interp_ops(kind);

		assert_non_null(ops);
		assert_true(ops->runtime && ops->is_supported && ops->is_named && ops->detect);
		assert_true(ops->part && ops->name && ops->address);
		assert_int_equal(ops->unnamed[0], '[');
		assert_int_equal(ops->more[0], '[');
		assert_int_equal(ops->missing[0], '[');
		assert_false(ops->is_named("/usr/bin/unheard-of"));
		assert_false(ops->is_supported("0.0"));
	}
	assert_false(interp_is_supported("unheard-of", "3.11"));
	assert_true(interp_is_supported("python", "3.11"));
}

static void processes_share_a_layout_and_have_addresses_of_their_own(void **state)
{
	struct interp_layout rows[INTERP_LAYOUTS];
	struct interp_layouts layouts = {.rows = rows};
	struct interp file = detect(&layouts, "/usr/bin/python3"), a, b;

	(void)state;
	assert_int_not_equal(file.kind, INTERP_NONE);
	assert_int_equal(layouts.len, 1);
	interp_locate(&layouts, &file, 0x1000, getpid(), &a);
	interp_locate(&layouts, &file, 0x5000, getpid(), &b);
	assert_int_equal(a.kind, file.kind);
	assert_ptr_equal(a.layout, file.layout);
	assert_int_equal(b.row, file.row);
	assert_int_equal(a.addresses[0], file.addresses[0] + 0x1000);
	assert_int_equal(b.addresses[0], file.addresses[0] + 0x5000);
	assert_int_equal(layouts.len, 1);
}

static void what_is_no_interpreter_has_no_layout(void **state)
{
	struct interp_layout rows[INTERP_LAYOUTS];
	struct interp_layouts layouts = {.rows = rows};

	(void)state;
	assert_int_equal(detect(&layouts, "/bin/sh").kind, INTERP_NONE);
	assert_int_equal(layouts.len, 0);
}

static void layout_that_there_is_no_room_for_is_left_out(void **state)
{
	struct interp_layout rows[INTERP_LAYOUTS];
	struct interp_layouts layouts = {.rows = rows, .len = INTERP_LAYOUTS - 1};

	(void)state;
	memset(rows, 0xff, sizeof(rows));
	assert_int_not_equal(detect(&layouts, "/usr/bin/python3").kind, INTERP_NONE);
	/* It is the last. */
	assert_int_equal(layouts.len, INTERP_LAYOUTS);
	assert_int_equal(detect(&layouts, "/usr/bin/python3").row, INTERP_LAYOUTS - 1);
	memset(rows, 0xff, sizeof(rows));
	assert_int_equal(detect(&layouts, "/usr/bin/python3").kind, INTERP_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_interpreter_is_whole),
		cmocka_unit_test(processes_share_a_layout_and_have_addresses_of_their_own),
		cmocka_unit_test(what_is_no_interpreter_has_no_layout),
		cmocka_unit_test(layout_that_there_is_no_room_for_is_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
