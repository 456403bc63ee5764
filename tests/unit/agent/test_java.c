/* tests/unit/agent/test_java.c: JVMs that answer, refuse or hang, and the threads that ask them. */
#include "agent/sources/java_programs.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/clock.h"

#define FAKE_MAX 64
#define PATIENCE_NS (300 * NS_PER_SEC)

/* A JVM by its pid; the recording of it is a pointer to it. */
static struct fake {
	int start_code, keep_code;
	bool hangs; /* in start and stop */
	unsigned int starts, keeps, reads, stops, frees;
	bool read_before_stop;
	int map_start_code, map_keep_code;
	unsigned int map_starts, map_keeps, map_frees;
} fakes[FAKE_MAX];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static unsigned int restores;
static bool restore_hangs;

static struct fake *fake_of(struct java_collect *c)
{
	return (struct fake *)c;
}

static int fake_restore(const char *state_dir, struct err *err)
{
	(void)err;
	assert_string_equal(state_dir, "/nowhere");
	(void)pthread_mutex_lock(&lock);
	while (restore_hangs)
		(void)pthread_cond_wait(&changed, &lock);
	restores++;
	(void)pthread_mutex_unlock(&lock);
	return 0;
}

static int fake_start(const struct proc_id *id, const struct java_collect_options *options,
		      struct java_collect **ret_collect, struct err *err)
{
	struct fake *f = &fakes[id->pid];
	int r;

	assert_true(options->profile.fold_threads);
	(void)pthread_mutex_lock(&lock);
	f->starts++;
	(void)pthread_cond_broadcast(&changed);
	while (f->hangs)
		(void)pthread_cond_wait(&changed, &lock);
	r = f->start_code;
	(void)pthread_mutex_unlock(&lock);
	if (r < 0)
		return err_set(err, r, "process %d will not", (int)id->pid);
	*ret_collect = (struct java_collect *)f;
	return 0;
}

static int fake_keep(struct java_collect *c, struct err *err)
{
	int r;

	(void)pthread_mutex_lock(&lock);
	fake_of(c)->keeps++;
	r = fake_of(c)->keep_code;
	(void)pthread_mutex_unlock(&lock);
	return r < 0 ? err_set(err, r, "it is over") : 0;
}

static int fake_read(struct java_collect *c, struct err *err)
{
	(void)err;
	(void)pthread_mutex_lock(&lock);
	fake_of(c)->reads++;
	fake_of(c)->read_before_stop = fake_of(c)->stops == 0;
	(void)pthread_mutex_unlock(&lock);
	return 0;
}

static int fake_stop(struct java_collect *c, struct err *err)
{
	(void)err;
	(void)pthread_mutex_lock(&lock);
	while (fake_of(c)->hangs)
		(void)pthread_cond_wait(&changed, &lock);
	fake_of(c)->stops++;
	(void)pthread_mutex_unlock(&lock);
	return 0;
}

static void fake_free(struct java_collect *c)
{
	(void)pthread_mutex_lock(&lock);
	fake_of(c)->frees++;
	(void)pthread_mutex_unlock(&lock);
}

static int fake_map_start(const struct proc_id *id, const struct java_perfmap_options *options,
			  struct java_perfmap **ret_map, struct err *err)
{
	struct fake *f = &fakes[id->pid];
	int r;

	assert_string_equal(options->state_dir, "/nowhere");
	(void)pthread_mutex_lock(&lock);
	f->map_starts++;
	r = f->map_start_code;
	(void)pthread_mutex_unlock(&lock);
	if (r < 0)
		return err_set(err, r, "process %d has no names", (int)id->pid);
	*ret_map = (struct java_perfmap *)f;
	return 0;
}

static int fake_map_keep(struct java_perfmap *map, struct err *err)
{
	struct fake *f = (struct fake *)map;
	int r;

	(void)pthread_mutex_lock(&lock);
	f->map_keeps++;
	r = f->map_keep_code;
	(void)pthread_mutex_unlock(&lock);
	return r < 0 ? err_set(err, r, "no new names") : r;
}

static void fake_map_free(struct java_perfmap *map)
{
	(void)pthread_mutex_lock(&lock);
	((struct fake *)map)->map_frees++;
	(void)pthread_mutex_unlock(&lock);
}

static const struct agent_java_ops fake_ops = {
	.restore = fake_restore,
	.start = fake_start,
	.keep = fake_keep,
	.read = fake_read,
	.stop = fake_stop,
	.free = fake_free,
	.map_start = fake_map_start,
	.map_keep = fake_map_keep,
	.map_free = fake_map_free,
};

static void fake_hang(struct fake *f, bool hangs)
{
	(void)pthread_mutex_lock(&lock);
	f->hangs = hangs;
	(void)pthread_cond_broadcast(&changed);
	(void)pthread_mutex_unlock(&lock);
}

static unsigned int fake_count(const unsigned int *counter)
{
	unsigned int n;

	(void)pthread_mutex_lock(&lock);
	n = *counter;
	(void)pthread_mutex_unlock(&lock);
	return n;
}

static int setup(void **state)
{
	(void)state;
	memset(fakes, 0, sizeof(fakes));
	restores = 0;
	restore_hangs = false;
	return 0;
}

static struct agent_java *begin(void)
{
	const struct agent_java_config config = {
		.state_dir = "/nowhere", .interval_ns = 1, .ops = &fake_ops};
	struct agent_java *java;

	assert_int_equal(agent_java_start(&config, &java, NULL), 0);
	return java;
}

static struct agent_java_program *open_program(struct agent_java *java, pid_t pid)
{
	const struct proc_id id = {.pid = pid, .start_ticks = 1};
	struct agent_java_program *p;

	assert_int_equal(agent_java_program_open(java, &id, &p, NULL), 0);
	return p;
}

static struct agent_java_program_state wait_tried(struct agent_java_program *p)
{
	struct agent_java_program_state s;
	const uint64_t until = clock_mono_ns() + PATIENCE_NS;

	for (;;) {
		agent_java_program_state(p, &s);
		if (s.records || s.code < 0)
			return s;
		assert_true(clock_mono_ns() < until);
		clock_sleep_ns(NS_PER_MS);
	}
}

static void wait_count(const unsigned int *counter, unsigned int n)
{
	const uint64_t until = clock_mono_ns() + PATIENCE_NS;

	while (fake_count(counter) < n && clock_mono_ns() < until)
		clock_sleep_ns(NS_PER_MS);
	assert_true(fake_count(counter) >= n);
}

static bool end(struct agent_java *java)
{
	return agent_java_stop(java, clock_mono_ns() + PATIENCE_NS);
}

static void recording_lasts_as_long_as_its_readers(void **state)
{
	struct agent_java *java = begin();
	struct agent_java_program *p = open_program(java, 1);

	(void)state;
	assert_true(wait_tried(p).records);
	assert_ptr_equal(agent_java_program_lock(p), &fakes[1]);
	agent_java_program_unlock(p);
	agent_java_program_unref(agent_java_program_ref(p));
	assert_int_equal(fake_count(&fakes[1].stops), 0);
	agent_java_program_unref(p);
	wait_count(&fakes[1].frees, 1);
	assert_int_equal(fakes[1].stops, 1);
	assert_true(end(java));
	assert_int_equal(fakes[1].starts, 1);
	assert_int_equal(fakes[1].stops, 1);
}

static void jvm_that_hangs_holds_up_no_other(void **state)
{
	struct agent_java_program *programs[8];
	struct agent_java *java = begin();

	(void)state;
	fake_hang(&fakes[0], true);
	for (pid_t i = 0; i < 8; i++)
		programs[i] = open_program(java, i);
	for (pid_t i = 1; i < 8; i++)
		assert_true(wait_tried(programs[i]).records);
	for (pid_t i = 0; i < 8; i++)
		agent_java_program_unref(programs[i]);
	for (pid_t i = 1; i < 8; i++)
		wait_count(&fakes[i].frees, 1);
	/* It is not waited for without end either. */
	assert_false(agent_java_stop(java, clock_mono_ns() + NS_PER_MS));
	fake_hang(&fakes[0], false);
	assert_true(end(java));
	assert_int_equal(fakes[0].stops + fakes[0].frees, 2);
}

static void all_are_ended_at_the_end_also_those_that_are_read(void **state)
{
	struct agent_java_program *programs[40];
	struct agent_java *java = begin();

	(void)state;
	for (pid_t i = 0; i < 40; i++)
		programs[i] = open_program(java, i);
	for (pid_t i = 0; i < 40; i++)
		assert_true(wait_tried(programs[i]).records);
	for (pid_t i = 0; i < 39; i++)
		agent_java_program_unref(programs[i]);
	/* The reader of one does not come back: what it uses stays. */
	assert_false(end(java));
	for (pid_t i = 0; i < 40; i++)
		assert_int_equal(fakes[i].stops, 1);
	assert_int_equal(fakes[39].frees, 0);
	agent_java_program_unref(programs[39]);
	assert_true(end(java));
	assert_int_equal(fakes[39].frees, 1);
}

static void jvm_that_cannot_is_asked_once(void **state)
{
	struct agent_java *java = begin();
	struct agent_java_program *p, *other;
	struct agent_java_program_state s;

	(void)state;
	fakes[1].start_code = -ENOTSUP;
	p = open_program(java, 1);
	s = wait_tried(p);
	assert_false(s.records);
	assert_int_equal(s.code, -ENOTSUP);
	assert_string_equal(s.why, "process 1 will not");
	assert_null(agent_java_program_lock(p));
	agent_java_program_unlock(p);
	other = open_program(java, 2);
	wait_count(&fakes[2].keeps, 2);
	assert_int_equal(fake_count(&fakes[1].starts), 1);
	agent_java_program_unref(p);
	agent_java_program_unref(other);
	assert_true(end(java));
}

static void recording_that_ends_is_read_for_a_last_time(void **state)
{
	struct agent_java *java = begin();
	struct agent_java_program_state s;
	struct agent_java_program *p;

	(void)state;
	fakes[1].keep_code = -EBUSY;
	p = open_program(java, 1);
	wait_count(&fakes[1].stops, 1);
	do
		agent_java_program_state(p, &s);
	while (s.records);
	assert_int_equal(s.code, -EBUSY);
	assert_int_equal(s.began, 1);
	assert_int_equal(fake_count(&fakes[1].reads), 1);
	assert_true(fakes[1].read_before_stop);
	/* Its readers still find it. */
	assert_ptr_equal(agent_java_program_lock(p), &fakes[1]);
	agent_java_program_unlock(p);
	agent_java_program_unref(p);
	assert_true(end(java));
	assert_int_equal(fakes[1].stops, 1);
	assert_int_equal(fakes[1].frees, 1);
}

static void recording_goes_on_where_looking_after_it_fails(void **state)
{
	struct agent_java *java = begin();
	struct agent_java_program *p;
	struct agent_java_program_state s;

	(void)state;
	fakes[1].keep_code = -ETIMEDOUT;
	p = open_program(java, 1);
	do {
		clock_sleep_ns(NS_PER_MS);
		agent_java_program_state(p, &s);
	} while (s.code == 0);
	assert_true(s.records);
	assert_int_equal(s.code, -ETIMEDOUT);
	assert_int_equal(fake_count(&fakes[1].stops), 0);
	agent_java_program_unref(p);
	assert_true(end(java));
	assert_int_equal(fakes[1].stops, 1);
}

static void what_was_left_is_taken_out_while_others_start(void **state)
{
	struct agent_java_program *p;
	struct agent_java *java;

	(void)state;
	restore_hangs = true;
	java = begin();
	p = open_program(java, 1);
	assert_true(wait_tried(p).records);
	agent_java_program_unref(p);
	wait_count(&fakes[1].frees, 1);
	assert_false(agent_java_stop(java, clock_mono_ns() + NS_PER_MS));
	(void)pthread_mutex_lock(&lock);
	restore_hangs = false;
	(void)pthread_cond_broadcast(&changed);
	(void)pthread_mutex_unlock(&lock);
	assert_true(end(java));
	assert_int_equal(restores, 1);
}

static void names_are_kept_also_where_nothing_is_recorded(void **state)
{
	struct agent_java *java = begin();
	struct agent_java_program_state s;
	struct agent_java_program *p;

	(void)state;
	fakes[1].start_code = -ENOTSUP;
	fakes[1].map_keep_code = 1; /* written anew */
	p = open_program(java, 1);
	wait_count(&fakes[1].map_keeps, 2);
	agent_java_program_state(p, &s);
	assert_false(s.records);
	assert_string_equal(s.map_why, "");
	assert_int_equal(fake_count(&fakes[1].starts), 1);
	assert_int_equal(fake_count(&fakes[1].map_frees), 0);
	/* Its reader stays: the names go all the same. */
	assert_false(end(java));
	assert_int_equal(fakes[1].map_starts, 1);
	assert_int_equal(fakes[1].map_frees, 1);
	agent_java_program_unref(p);
	assert_true(end(java));
	assert_int_equal(fakes[1].map_frees, 1);
}

static void jvm_that_cannot_name_its_code_is_asked_once_and_records(void **state)
{
	struct agent_java *java = begin();
	struct agent_java_program_state s;
	struct agent_java_program *p;

	(void)state;
	fakes[1].map_start_code = -ENOTSUP;
	p = open_program(java, 1);
	wait_count(&fakes[1].keeps, 2);
	agent_java_program_state(p, &s);
	assert_true(s.records);
	assert_string_equal(s.map_why, "process 1 has no names");
	assert_int_equal(fake_count(&fakes[1].map_starts), 1);
	agent_java_program_unref(p);
	assert_true(end(java));
	assert_int_equal(fakes[1].map_frees, 0);
}

static void names_that_cannot_be_kept_are_given_up_or_tried_again(void **state)
{
	struct agent_java *java = begin();
	struct agent_java_program *hangs, *full;
	struct agent_java_program_state s;

	(void)state;
	fakes[1].map_keep_code = -ETIMEDOUT;
	fakes[2].map_keep_code = -ENOSPC;
	hangs = open_program(java, 1);
	full = open_program(java, 2);
	wait_count(&fakes[1].map_frees, 1);
	wait_count(&fakes[2].map_keeps, 1);
	do
		agent_java_program_state(full, &s);
	while (!s.map_why[0]);
	assert_string_equal(s.map_why, "no new names");
	assert_int_equal(fake_count(&fakes[2].map_frees), 0);
	agent_java_program_unref(hangs);
	agent_java_program_unref(full);
	assert_true(end(java));
	assert_int_equal(fakes[1].map_starts, 1);
	assert_int_equal(fakes[1].map_frees, 1);
	assert_int_equal(fakes[2].map_frees, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(recording_lasts_as_long_as_its_readers, setup),
		cmocka_unit_test_setup(jvm_that_hangs_holds_up_no_other, setup),
		cmocka_unit_test_setup(all_are_ended_at_the_end_also_those_that_are_read, setup),
		cmocka_unit_test_setup(jvm_that_cannot_is_asked_once, setup),
		cmocka_unit_test_setup(recording_that_ends_is_read_for_a_last_time, setup),
		cmocka_unit_test_setup(recording_goes_on_where_looking_after_it_fails, setup),
		cmocka_unit_test_setup(what_was_left_is_taken_out_while_others_start, setup),
		cmocka_unit_test_setup(names_are_kept_also_where_nothing_is_recorded, setup),
		cmocka_unit_test_setup(jvm_that_cannot_name_its_code_is_asked_once_and_records,
				       setup),
		cmocka_unit_test_setup(names_that_cannot_be_kept_are_given_up_or_tried_again,
				       setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
