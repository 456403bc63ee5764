/* tests/unit/java/test_collect.c: what happens before a JVM is told to record; without a JVM. */
#include "java/collect/collect.h"

#include <errno.h>
#include <string.h>

#include "java/recorder/note.h"
#include "java/recorder/undo.h"
#include "test_state.h"

static size_t n_notes(void)
{
	_cleanup_free_ struct java_note *notes = NULL;
	size_t len;

	assert_int_equal(java_notes_read(dir, &notes, &len, NULL), 0);
	return len;
}

static int start(const struct proc_id *id, struct err *err)
{
	const struct java_collect_options options = {.recording = {.state_dir = dir}};
	struct java_collect *c = NULL;
	int r = java_collect_start(id, &options, &c, err);

	assert_null(c);
	return r;
}

static void process_without_java_is_refused_and_leaves_no_note(void **state)
{
	struct proc_id id = own_id();
	struct err err = {};

	(void)state;
	assert_int_equal(start(&id, &err), -ENOTSUP);
	assert_non_null(strstr(err.text, "not a Java process"));
	assert_int_equal(n_notes(), 0);
}

static void what_an_earlier_one_left_is_undone_before(void **state)
{
	struct proc_id id = own_id();
	struct java_note note;

	(void)state;
	assert_int_equal(java_note_make(&id, &note, NULL), 0);
	assert_int_equal(java_note_save(dir, &note, NULL), 0);
	assert_int_equal(start(&id, NULL), -ENOTSUP);
	assert_int_equal(n_notes(), 0);
}

static void note_of_one_that_is_at_work_stays(void **state)
{
	struct proc_id id = own_id();
	struct java_note note;
	int lock;

	(void)state;
	assert_int_equal(java_note_make(&id, &note, NULL), 0);
	assert_int_equal(java_note_save(dir, &note, NULL), 0);
	assert_int_equal(java_recording_lock(&id, &lock, NULL), 0);
	assert_int_equal(start(&id, NULL), -EBUSY);
	assert_int_equal(n_notes(), 1);
	(void)close(lock);
	assert_int_equal(java_note_remove(dir, &note, NULL), 0);
}

static void notes_of_other_processes_stay(void **state)
{
	struct proc_id id = own_id(), other;
	struct java_note note;

	(void)state;
	assert_int_equal(proc_id_of(getppid(), &other, NULL), 0);
	assert_int_equal(java_note_make(&other, &note, NULL), 0);
	assert_int_equal(java_note_save(dir, &note, NULL), 0);
	assert_int_equal(start(&id, NULL), -ENOTSUP);
	assert_int_equal(n_notes(), 1);
	assert_int_equal(java_note_remove(dir, &note, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(process_without_java_is_refused_and_leaves_no_note,
						setup, teardown),
		cmocka_unit_test_setup_teardown(what_an_earlier_one_left_is_undone_before, setup,
						teardown),
		cmocka_unit_test_setup_teardown(note_of_one_that_is_at_work_stays, setup, teardown),
		cmocka_unit_test_setup_teardown(notes_of_other_processes_stay, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
