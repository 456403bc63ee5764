/* tests/unit/cpu/test_interleave.c: an interpreter's frames find their places among native ones. */
#include "cpu/interp/interleave.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/*
 * native: 'L' for the interpreter's loop, any other letter for a C function; interp: capitals for
 * functions that C called, 'n' for one that has not begun. Both from the innermost on. What comes
 * of it has the interpreter's frames in place of the loops.
 */
static const char *merge(const char *native, const char *interp, bool native_cut, bool interp_cut)
{
	static char text[256];
	struct interp_frame frames[CPU_STACK_MAX];
	struct cpu_stack s = {.end = native_cut ? CPU_STACK_NO_RULE : CPU_STACK_ROOT,
			      .n_user = (uint16_t)strlen(native),
			      .n_interp = (uint16_t)strlen(interp),
			      .interp_cut = interp_cut,
			      .interp = frames};
	bool is_loop[CPU_STACK_MAX];
	uint16_t n[CPU_STACK_MAX], left;
	size_t len = 0, at = 0;

	for (uint16_t i = 0; i < s.n_user; i++)
		is_loop[i] = native[i] == 'L';
	for (uint16_t i = 0; i < s.n_interp; i++)
		frames[i] = (struct interp_frame){.id = interp[i] <= 'Z'   ? INTERP_ENTERED
							: interp[i] == 'n' ? INTERP_NOT_BEGUN
									   : 0};
	left = cpu_interleave(&s, is_loop, n);
	for (uint16_t i = 0; i < s.n_user; i++) {
		if (!n[i])
			text[len++] = native[i];
		for (uint16_t k = 0; k < n[i]; k++)
			text[len++] = interp[at++];
	}
	for (uint16_t k = 0; k < left; k++)
		text[len++] = interp[at++];
	text[len] = 0;
	return text;
}

static void each_loop_has_the_frames_up_to_the_next_call_from_c(void **state)
{
	(void)state;
	assert_string_equal(merge("xLyzLm", "aBcdE", false, false), "xaByzcdEm");
	/* Up to 3.10 each frame is one. */
	assert_string_equal(merge("LyLyLm", "ABC", false, false), "AyByCm");
	assert_string_equal(merge("xy", "", false, false), "xy");
}

static void loop_that_has_no_frame_yet_stays(void **state)
{
	(void)state;
	assert_string_equal(merge("LyLm", "aB", false, false), "LyaBm");
	assert_string_equal(merge("L", "", false, false), "L");
}

static void frame_that_has_not_begun_belongs_to_a_loop_that_has_none(void **state)
{
	(void)state;
	assert_string_equal(merge("LyLm", "naB", false, false), "nyaBm");
	/* Called by a frame of its own kind, not by C. */
	assert_string_equal(merge("Lm", "naB", false, false), "naBm");
}

static void frames_of_a_loop_that_is_not_recognized_come_before_the_next(void **state)
{
	(void)state;
	assert_string_equal(merge("xyLm", "AbC", false, false), "xyAbCm");
	/* Where there is none at all nobody knows their place. */
	assert_string_equal(merge("xym", "AbC", false, false), "xym");
}

static void stacks_that_are_cut_are_put_together_from_the_inner_end(void **state)
{
	(void)state;
	/* The native one is: the rest of the other is known all the same. */
	assert_string_equal(merge("xLyL", "aBcDEf", true, false), "xaBycDEf");
	/* The other is: outer loops stay as they are. */
	assert_string_equal(merge("xLyLzLm", "aBc", false, true), "xaByczLm");
	assert_string_equal(merge("xLyL", "aB", true, true), "xaByL");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_loop_has_the_frames_up_to_the_next_call_from_c),
		cmocka_unit_test(loop_that_has_no_frame_yet_stays),
		cmocka_unit_test(frame_that_has_not_begun_belongs_to_a_loop_that_has_none),
		cmocka_unit_test(frames_of_a_loop_that_is_not_recognized_come_before_the_next),
		cmocka_unit_test(stacks_that_are_cut_are_put_together_from_the_inner_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
