/* tests/unit/golang/test_rates.c: notes of forced rates outlive us, and nobody else can write them.
 */
#include "golang/rates/rates.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/io.h"
#include "golang/heap/state.h"
#include "golang/process_state.h"
#include "proc/lock.h"
#include "proc/mem_source.h"

struct fixture {
	char dir[64];
	char path[96];
	struct golang_rate_journal *journal;
};

static int setup(void **state)
{
	static struct fixture f;

	*state = &f;
	(void)strcpy(f.dir, "/tmp/sonde-rates-XXXXXX");
	if (!mkdtemp(f.dir))
		return -1;
	(void)snprintf(f.path, sizeof(f.path), "%s/forced-rates", f.dir);
	return golang_rate_journal_open(f.dir, &f.journal, NULL);
}

static int teardown(void **state)
{
	static const char *const suffixes[] = {"", ".new", ".lock", ".else"};
	struct fixture *f = *state;
	char path[128];

	golang_rate_journal_close(f->journal);
	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
		(void)snprintf(path, sizeof(path), "%s%s", f->path, suffixes[i]);
		(void)unlink(path);
	}
	return rmdir(f->dir);
}

static struct golang_rate_note note_of(pid_t pid)
{
	struct golang_rate_note x = {.space = 0xabc, .old = 0, .ours = 524288};

	assert_int_equal(proc_id_of(pid, &x.id, NULL), 0);
	return x;
}

static size_t noted(const struct fixture *f)
{
	_cleanup_free_ struct golang_rate_note *notes = NULL;
	size_t len = 0;

	assert_int_equal(golang_rate_journal_read(f->journal, &notes, &len, NULL), 0);
	return len;
}

static void put(const char *path, const char *text)
{
	assert_int_equal(io_write_file(path, view_of(text, strlen(text)), NULL), 0);
}

static void expect_text(const char *path, const char *text)
{
	_cleanup_(buf_release) struct buf found = {0};

	assert_int_equal(io_read_file(AT_FDCWD, path, &found, NULL), 0);
	assert_string_equal(buf_cstr(&found), text);
}

static void note_outlives_a_sonde_that_is_killed(void **state)
{
	struct fixture *f = *state;
	struct golang_rate_note x = note_of(getpid());
	int status;
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0) {
		if (golang_rate_journal_add(f->journal, &x, NULL) == 0)
			(void)kill(getpid(), SIGKILL);
		_exit(1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(noted(f), 1);
	assert_int_equal(golang_rate_journal_has(f->journal, &x, NULL), 1);
	assert_int_equal(golang_rate_journal_remove(f->journal, &x, NULL), 0);
	assert_int_equal(noted(f), 0);
}

static void note_of_a_process_that_ended_is_dropped(void **state)
{
	struct fixture *f = *state;
	struct golang_rate_note x;
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0) {
		(void)pause();
		_exit(0);
	}
	x = note_of(child);
	assert_int_equal(golang_rate_journal_add(f->journal, &x, NULL), 0);
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(golang_rates_restore(f->journal, NULL), 1);
	assert_int_equal(noted(f), 0);
}

/* The process lives, but its start time is of another with this pid, or its memory of another
 * program. */
static void note_of_an_earlier_process_or_program_is_dropped(void **state)
{
	struct fixture *f = *state;
	struct golang_rate_note x = note_of(getpid()), y = x;

	y.id.start_ticks++;
	assert_int_equal(golang_rate_journal_add(f->journal, &x, NULL), 0);
	assert_int_equal(golang_rate_journal_add(f->journal, &y, NULL), 0);
	assert_int_equal(noted(f), 2);
	assert_int_equal(golang_rates_restore(f->journal, NULL), 2);
	assert_int_equal(noted(f), 0);
}

static void note_of_a_program_that_another_sonde_is_at_work_on_stays(void **state)
{
	struct fixture *f = *state;
	struct golang_rate_note x = note_of(getpid());
	_cleanup_close_ int lock = -1;

	assert_int_equal(proc_lock(&x.id, "rate", &lock, NULL), 0);
	assert_int_equal(golang_rate_journal_add(f->journal, &x, NULL), 0);
	assert_int_equal(golang_rates_restore(f->journal, NULL), 0);
	assert_int_equal(noted(f), 1);
}

static void rates_of_one_program_are_noted_each(void **state)
{
	struct fixture *f = *state;
	struct golang_rate_note x = note_of(getpid()), other;

	for (int kind = GOLANG_RATE_HEAP; kind <= GOLANG_RATE_MUTEX; kind++) {
		x.kind = (enum golang_rate_kind)kind;
		assert_int_equal(golang_rate_journal_add(f->journal, &x, NULL), 0);
	}
	assert_int_equal(noted(f), 3);
	/* Another sonde has noted something else of the same rate since: that stays. */
	other = x;
	other.old = 7;
	assert_int_equal(golang_rate_journal_has(f->journal, &other, NULL), 0);
	assert_int_equal(golang_rate_journal_remove(f->journal, &other, NULL), 0);
	assert_int_equal(noted(f), 3);
	assert_int_equal(golang_rate_journal_add(f->journal, &other, NULL), 0);
	assert_int_equal(noted(f), 3);
	assert_int_equal(golang_rate_journal_has(f->journal, &other, NULL), 1);
	assert_int_equal(golang_rate_journal_has(f->journal, &x, NULL), 0);
}

static void notes_are_read_in_the_old_form_and_in_the_new_one(void **state)
{
	static const char text[] = "12 34 ab 0 524288\n12 34 ab 5 1 block\n13 9 ff -1 10 mutex\n";
	static struct golang_rate_note notes[GOLANG_RATE_NOTES_MAX];
	struct fixture *f = *state;
	struct golang_rate_note x = {.id = {14, 15}, .space = 1};

	assert_int_equal(golang_rate_notes_parse(view_of(text, sizeof(text) - 1), notes), 3);
	assert_int_equal(notes[0].id.pid, 12);
	assert_int_equal(notes[0].id.start_ticks, 34);
	assert_int_equal(notes[0].space, 0xab);
	assert_int_equal(notes[0].ours, 524288);
	assert_int_equal(notes[0].kind, GOLANG_RATE_HEAP);
	assert_int_equal(notes[1].old, 5);
	assert_int_equal(notes[1].kind, GOLANG_RATE_BLOCK);
	assert_int_equal(notes[2].kind, GOLANG_RATE_MUTEX);
	assert_true(notes[2].old == -1);
	/* And what is written is what was read. */
	put(f->path, text);
	assert_int_equal(chmod(f->path, 0600), 0);
	assert_int_equal(golang_rate_journal_add(f->journal, &x, NULL), 0);
	expect_text(f->path, "12 34 ab 0 524288\n12 34 ab 5 1 block\n13 9 ff -1 10 mutex\n"
			     "14 15 1 0 0\n");
}

static void lines_that_make_no_sense_are_left_out(void **state)
{
	static const char *const lines[] = {"nonsense",
					    "",
					    " ",
					    "-1 2 3 4 5",
					    "1 2 3",
					    "1 2 3 4 5 6",
					    "1 2 3 4 5 heap",
					    "1 2 3 4 5 block ",
					    "1 2 3 4 5 block mutex",
					    "1  2 3 4 5",
					    " 1 2 3 4 5",
					    "1 2 3 4 5 ",
					    "0 2 3 4 5",
					    "2147483648 2 3 4 5",
					    "1 2 3 9223372036854775808 5",
					    "1 18446744073709551616 3 4 5",
					    "1 2 0x3 4 5",
					    "1 2 3 +4 5",
					    "1 2 3 - 5",
					    "1 2 3 --4 5",
					    "1 2 3 -9223372036854775809 5",
					    "1 2 -3 4 5",
					    "1 2 3 4 a",
					    "1 2 11111111111111111111111111111111 4 5"};
	static struct golang_rate_note notes[GOLANG_RATE_NOTES_MAX];
	char text[256];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		(void)snprintf(text, sizeof(text), "%s\n1 2 3 4 5\n", lines[i]);
		if (golang_rate_notes_parse(view_str(text), notes) != 1)
			fail_msg("'%s' is taken", lines[i]);
	}
	/* One that was never finished. */
	assert_int_equal(golang_rate_notes_parse(view_str("1 2 3 4 5\n1 2 3 4 52"), notes), 1);
}

static void several_can_write_at_the_same_time(void **state)
{
	enum { CHILDREN = 6, NOTES = 8 };
	struct fixture *f = *state;
	pid_t children[CHILDREN];

	for (int c = 0; c < CHILDREN; c++) {
		children[c] = fork();
		assert_true(children[c] >= 0);
		if (children[c] != 0)
			continue;
		for (int n = 0; n < NOTES; n++) {
			struct golang_rate_note x = {.id = {1 + c, (uint64_t)n}, .ours = 1};
			struct golang_rate_note gone = {.id = {100 + c, (uint64_t)n}, .ours = 1};

			if (golang_rate_journal_add(f->journal, &x, NULL) < 0 ||
			    golang_rate_journal_add(f->journal, &gone, NULL) < 0 ||
			    golang_rate_journal_remove(f->journal, &gone, NULL) < 0)
				_exit(1);
		}
		_exit(0);
	}
	for (int c = 0; c < CHILDREN; c++) {
		int status;

		assert_int_equal(waitpid(children[c], &status, 0), children[c]);
		assert_int_equal(status, 0);
	}
	assert_int_equal(noted(f), CHILDREN * NOTES);
}

#define FORGED "1 2 3 4 5\n"

static void expect_refused(const struct fixture *f)
{
	struct golang_rate_note x = note_of(getpid());
	struct err err = {};

	assert_int_equal(golang_rates_restore(f->journal, &err), -EBADMSG);
	assert_int_equal(err.cause, ERR_CAUSE_MALFORMED);
	assert_non_null(strstr(err.text, f->dir));
	assert_true(err.remedy[0]);
	assert_int_equal(golang_rate_journal_add(f->journal, &x, NULL), -EBADMSG);
	assert_int_equal(golang_rate_journal_remove(f->journal, &x, NULL), -EBADMSG);
}

static void file_that_others_can_write_is_refused(void **state)
{
	struct fixture *f = *state;

	put(f->path, FORGED);
	assert_int_equal(chmod(f->path, 0620), 0);
	expect_refused(f);
	assert_int_equal(chmod(f->path, 0602), 0);
	expect_refused(f);
	expect_text(f->path, FORGED);
	if (geteuid() == 0) {
		assert_int_equal(chmod(f->path, 0600), 0);
		assert_int_equal(chown(f->path, 65534, 65534), 0);
		expect_refused(f);
	}
}

static void links_and_pipes_are_refused(void **state)
{
	struct fixture *f = *state;
	char target[128];

	(void)snprintf(target, sizeof(target), "%s.else", f->path);
	put(target, FORGED);
	assert_int_equal(chmod(target, 0600), 0);
	assert_int_equal(symlink(target, f->path), 0);
	expect_refused(f);
	assert_int_equal(unlink(f->path), 0);
	assert_int_equal(link(target, f->path), 0);
	expect_refused(f);
	assert_int_equal(unlink(f->path), 0);
	expect_text(target, FORGED);
	assert_int_equal(mkfifo(f->path, 0600), 0);
	expect_refused(f);
}

static void link_in_the_place_of_the_new_file_is_not_followed(void **state)
{
	struct fixture *f = *state;
	struct golang_rate_note x = note_of(getpid());
	char target[128], beside[128], lock[128];

	(void)snprintf(target, sizeof(target), "%s.else", f->path);
	(void)snprintf(beside, sizeof(beside), "%s.new", f->path);
	(void)snprintf(lock, sizeof(lock), "%s.lock", f->path);
	put(target, "theirs");
	assert_int_equal(symlink(target, beside), 0);
	assert_int_equal(golang_rate_journal_add(f->journal, &x, NULL), 0);
	assert_int_equal(noted(f), 1);
	expect_text(target, "theirs");
	assert_int_equal(unlink(lock), 0);
	assert_int_equal(symlink(target, lock), 0);
	assert_int_equal(golang_rate_journal_add(f->journal, &x, NULL), -EBADMSG);
}

static void folder_that_others_can_write_or_own_is_refused(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(chmod(f->dir, 0777), 0);
	expect_refused(f);
	assert_int_equal(chmod(f->dir, 0700), 0);
	if (geteuid() == 0) {
		assert_int_equal(chown(f->dir, 65534, 65534), 0);
		expect_refused(f);
	}
}

static void journal_that_is_full_or_too_large_takes_no_more(void **state)
{
	_cleanup_(buf_release) struct buf text = {0};
	struct fixture *f = *state;
	struct golang_rate_note x = note_of(getpid());
	struct err err = {};

	for (size_t i = 0; i < GOLANG_RATE_NOTES_MAX; i++)
		assert_int_equal(buf_printf(&text, "1 %zu 3 4 5\n", i), 0);
	put(f->path, buf_cstr(&text));
	assert_int_equal(chmod(f->path, 0600), 0);
	assert_int_equal(noted(f), GOLANG_RATE_NOTES_MAX);
	assert_int_equal(golang_rate_journal_add(f->journal, &x, &err), -E2BIG);
	while (text.len <= GOLANG_RATE_NOTES_MAX * 128)
		assert_int_equal(buf_append_str(&text, "1 2 3 4 5\n"), 0);
	put(f->path, buf_cstr(&text));
	expect_refused(f);
}

static void without_a_folder_there_are_no_notes_and_none_can_be_made(void **state)
{
	_cleanup_(golang_rate_journal_closep) struct golang_rate_journal *journal = NULL;
	struct golang_rate_note x = note_of(getpid());
	struct err err = {};

	(void)state;
	assert_int_equal(golang_rate_journal_open("/nonexistent", &journal, &err), 0);
	assert_int_equal(golang_rates_restore(journal, &err), 0);
	assert_int_equal(golang_rate_journal_add(journal, &x, &err), -ENOENT);
	assert_non_null(strstr(err.text, "/nonexistent/forced-rates"));
	assert_int_equal(err.cause, ERR_CAUSE_DISK);
}

/* A process of one variable. */
static struct {
	int64_t rate;
	int64_t before_write; /* what the program sets just before we write; 0: nothing */
	int code;	      /* of writing */
} var;

static int var_check(struct proc_mem *mem, uint64_t addr, void *dst, size_t len, struct err *err)
{
	(void)mem;
	(void)addr;
	(void)err;
	memcpy(dst, &var.rate, len);
	return 0;
}

static int var_replace(struct proc_mem *mem, uint64_t addr, const void *old, const void *src,
		       size_t len, struct err *err)
{
	(void)mem;
	(void)addr;
	(void)err;
	if (var.before_write)
		var.rate = var.before_write;
	if (memcmp(&var.rate, old, len) != 0)
		return -ESTALE;
	if (var.code == 0)
		memcpy(&var.rate, src, len);
	return var.code;
}

static struct golang_rate_of var_of_heap(void)
{
	static const struct proc_mem_ops ops = {.check = var_check, .replace = var_replace};
	static struct proc_mem mem = {.ops = &ops};
	static struct golang_process process = {.mem = &mem};
	static struct golang_heap heap = {.process = &process};

	memset(&var, 0, sizeof(var));
	return (struct golang_rate_of){.heap = &heap};
}

static int hold(const struct fixture *f, struct golang_rate_of of, struct golang_rate_hold *hold)
{
	struct golang_rate_note x = note_of(getpid());

	*hold = GOLANG_RATE_HOLD_NONE;
	return golang_rate_hold(hold, f->journal, of, &x.id, 524288, NULL);
}

/* Who does not respond may be written to yet, when nobody waits for it any more. */
static void rate_that_may_be_written_yet_stays_noted(void **state)
{
	struct fixture *f = *state;
	struct golang_rate_of of = var_of_heap();
	struct golang_rate_hold held;

	var.code = -EFAULT;
	assert_int_equal(hold(f, of, &held), -EFAULT);
	assert_int_equal(noted(f), 0);
	var.code = -ETIMEDOUT;
	assert_int_equal(hold(f, of, &held), -ETIMEDOUT);
	assert_int_equal(held.lock, -1);
	assert_int_equal(noted(f), 1);
	/* So it was; the next time it is taken for ours, not for the program's. */
	var.code = 0;
	var.rate = 524288;
	assert_int_equal(hold(f, of, &held), 0);
	assert_int_equal(held.note.old, 0);
	assert_int_equal(golang_rate_release(&held, &(int64_t){0}, NULL), 0);
	assert_int_equal(var.rate, 0);
	assert_int_equal(noted(f), 0);
}

static void rate_that_the_program_sets_at_the_same_time_is_left_alone(void **state)
{
	struct fixture *f = *state;
	struct golang_rate_of of = var_of_heap();
	struct golang_rate_hold held;
	int64_t now = 0;

	var.before_write = 9;
	assert_int_equal(hold(f, of, &held), -ESTALE);
	assert_int_equal(var.rate, 9);
	assert_int_equal(noted(f), 0);
	var.before_write = 0;
	assert_int_equal(hold(f, of, &held), 0);
	var.before_write = 10;
	assert_int_equal(golang_rate_release(&held, &now, NULL), 1);
	assert_int_equal(now, 10);
	assert_int_equal(var.rate, 10);
	assert_int_equal(noted(f), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(note_outlives_a_sonde_that_is_killed),
		TEST(note_of_a_process_that_ended_is_dropped),
		TEST(note_of_an_earlier_process_or_program_is_dropped),
		TEST(note_of_a_program_that_another_sonde_is_at_work_on_stays),
		TEST(rates_of_one_program_are_noted_each),
		TEST(notes_are_read_in_the_old_form_and_in_the_new_one),
		cmocka_unit_test(lines_that_make_no_sense_are_left_out),
		TEST(several_can_write_at_the_same_time),
		TEST(file_that_others_can_write_is_refused),
		TEST(links_and_pipes_are_refused),
		TEST(link_in_the_place_of_the_new_file_is_not_followed),
		TEST(folder_that_others_can_write_or_own_is_refused),
		TEST(journal_that_is_full_or_too_large_takes_no_more),
		TEST(rate_that_may_be_written_yet_stays_noted),
		TEST(rate_that_the_program_sets_at_the_same_time_is_left_alone),
		cmocka_unit_test(without_a_folder_there_are_no_notes_and_none_can_be_made),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
