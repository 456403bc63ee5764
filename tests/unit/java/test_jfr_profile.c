/* tests/unit/java/test_jfr_profile.c: what becomes of events, and how names are shown. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/clock.h"
#include "java/jfr/follow.h"
#include "java/jfr/names.h"
#include "java/jfr/profiler.h"
#include "profile/tree.h"
#include "test_jfr.h"

/* Events are put into f, and read from there. */
struct source_reading {
	struct forge f;
	struct java_jfr_profiler *profiler;
	struct profile *profiles[JAVA_JFR_PROFILE_N];
	struct java_jfr_profiler_stats stats;
	bool uses_counts;
};

static int begin(void **state)
{
	struct source_reading *t = calloc(1, sizeof(*t));

	if (!t)
		return -1;
	f_chunk(&t->f);
	f_metadata(&t->f);
	*state = t;
	return 0;
}

/* Another file of the same recording; what the last one gave is gone. */
static void begin_next(struct source_reading *t)
{
	for (int k = 0; k < JAVA_JFR_PROFILE_N; k++) {
		profile_free(t->profiles[k]);
		t->profiles[k] = NULL;
	}
	buf_release(&t->f.out);
	f_chunk(&t->f);
	f_metadata(&t->f);
}

static int end(void **state)
{
	struct source_reading *t = *state;

	for (int k = 0; k < JAVA_JFR_PROFILE_N; k++)
		profile_free(t->profiles[k]);
	java_jfr_profiler_free(t->profiler);
	buf_release(&t->f.out);
	free(t);
	return 0;
}

static void read_forged(struct source_reading *t)
{
	const struct java_jfr_builder_options labels = {.label_threads = true,
							.label_classes = true};
	struct java_jfr_options options = {0};
	struct java_jfr *j = NULL;
	struct err err;

	f_constants(&t->f);
	f_finish(&t->f);
	options.queries = java_jfr_profiler_queries(&options.n_queries);
	assert_int_equal(
		java_jfr_open_take(f_file(t->f.out.data, t->f.out.len), "test", &options, &j, &err),
		0);
	if (!t->profiler)
		assert_int_equal(java_jfr_profiler_new(&labels, &t->profiler, &err), 0);
	if (t->uses_counts)
		java_jfr_profiler_use_counts(t->profiler);
	assert_int_equal(java_jfr_profiler_read(t->profiler, j, &err), 0);
	for (int k = 0; k < JAVA_JFR_PROFILE_N; k++)
		assert_int_equal(java_jfr_profiler_take(t->profiler, (enum java_jfr_profile_kind)k,
							1, 2, &t->profiles[k], &err),
				 0);
	java_jfr_profiler_stats(t->profiler, &t->stats);
	java_jfr_close(j);
}

static void assert_collapsed(struct profile *p, const char *type, const char *expected)
{
	struct buf out = {0};
	struct err err;
	int i = profile_find_type(p, type);

	assert_true(i >= 0);
	assert_int_equal(profile_collapse(p, (size_t)i, &out, &err), 0);
	assert_string_equal(buf_cstr(&out), expected);
	buf_release(&out);
}

static void the_first_sample_of_an_older_thread_is_left_out(void **state)
{
	struct source_reading *t = *state;

	/* Not in the order of time. */
	f_alloc(&t->f, 500, 1, 2, 300);
	f_alloc(&t->f, 400, 1, 2, 1000000);
	f_alloc(&t->f, 600, 1, 2, 200);
	read_forged(t);
	assert_collapsed(t->profiles[JAVA_JFR_PROFILE_ALLOC], "alloc_space",
			 "app.Main.run;app.Main.work;byte[] 500\n");
	assert_int_equal(t->stats.first_samples, 1);
	assert_int_equal(t->stats.first_bytes, 1000000);
	assert_int_equal(t->stats.events[JAVA_JFR_PROFILE_ALLOC], 3);
	/* The size of an object is not known. */
	assert_int_equal(profile_n_types(t->profiles[JAVA_JFR_PROFILE_ALLOC]), 1);
}

static void a_thread_that_began_later_keeps_its_first_sample(void **state)
{
	struct source_reading *t = *state;

	f_alloc(&t->f, 400, 1, 2, 700);
	f_begin(&t->f, E_THREAD_START);
	f_nums(&t->f, 2, 390L, 1L);
	f_end(&t->f);
	read_forged(t);
	assert_collapsed(t->profiles[JAVA_JFR_PROFILE_ALLOC], "alloc_space",
			 "app.Main.run;app.Main.work;byte[] 700\n");
	assert_int_equal(t->stats.first_samples, 0);
}

static void put_tlab(struct forge *f, uint64_t event, long size, long tlab)
{
	f_begin(f, event);
	f_nums(f, 5, 300L, 1L, 1L, 2L, size);
	if (event == E_TLAB)
		f_num(f, (uint64_t)tlab);
	f_end(f);
}

static void tlab_events_tell_objects_too(void **state)
{
	const struct profile_sample *sample;
	struct source_reading *t = *state;

	put_tlab(&t->f, E_TLAB, 100, 1000);
	put_tlab(&t->f, E_OUTSIDE, 5000, 0);
	/* The same allocations once more, by the other event. */
	f_alloc(&t->f, 400, 1, 2, 1000);
	f_alloc(&t->f, 500, 1, 2, 5000);
	read_forged(t);
	assert_collapsed(t->profiles[JAVA_JFR_PROFILE_ALLOC], "alloc_space",
			 "app.Main.run;app.Main.work;byte[] 6000\n");
	assert_collapsed(t->profiles[JAVA_JFR_PROFILE_ALLOC], "alloc_objects",
			 "app.Main.run;app.Main.work;byte[] 11\n");
	assert_int_equal(profile_n_samples(t->profiles[JAVA_JFR_PROFILE_ALLOC]), 1);
	sample = profile_sample_at(t->profiles[JAVA_JFR_PROFILE_ALLOC], 0);
	assert_int_equal(sample->n_labels, 2);
	assert_string_equal(
		profile_cstring(t->profiles[JAVA_JFR_PROFILE_ALLOC], sample->labels[0].str),
		"worker-7");
	assert_string_equal(
		profile_cstring(t->profiles[JAVA_JFR_PROFILE_ALLOC], sample->labels[1].str),
		"byte[]");
}

static void put_count_at(struct forge *f, long time, long thread, long bytes)
{
	f_begin(f, E_COUNT);
	f_nums(f, 3, time, bytes, thread);
	f_end(f);
}

static void put_count(struct forge *f, long thread, long bytes)
{
	put_count_at(f, 300, thread, bytes);
}

static void what_threads_count_is_taken_since_it_is_known(void **state)
{
	struct source_reading *t = *state;

	put_count(&t->f, 1, 1000000);
	put_count(&t->f, 2, 0);
	put_tlab(&t->f, E_TLAB, 100, 1000);
	put_count(&t->f, 2, 4000);
	put_count(&t->f, 1, 1006000);
	/* Neither one that makes no sense, nor a thread that is seen but once. */
	put_count(&t->f, 1, 5);
	put_count(&t->f, 3, 70000);
	read_forged(t);
	assert_int_equal(t->stats.tlab_bytes, 1000);
	assert_int_equal(t->stats.counted_bytes, 10000);
}

static void samples_add_up_to_what_their_thread_has_allocated(void **state)
{
	struct source_reading *t = *state;

	t->uses_counts = true;
	put_count_at(&t->f, 300, 1, 1000000);
	/* What came before the second sample is in no weight, nor what came after the last. */
	f_alloc(&t->f, 400, 1, 2, 1000500);
	f_alloc(&t->f, 500, 1, 2, 300);
	f_alloc(&t->f, 600, 1, 1, 900);
	put_count_at(&t->f, 700, 1, 1002400);
	read_forged(t);
	assert_collapsed(t->profiles[JAVA_JFR_PROFILE_ALLOC], "alloc_space",
			 "app.Main.run;app.Main.work;app.Main 1800\n"
			 "app.Main.run;app.Main.work;byte[] 600\n");
	assert_int_equal(t->stats.first_samples, 1);
}

static void a_thread_with_one_sample_has_all_of_it_there(void **state)
{
	struct source_reading *t = *state;

	t->uses_counts = true;
	put_count_at(&t->f, 300, 1, 1000000);
	f_alloc(&t->f, 400, 1, 2, 1000500);
	put_count_at(&t->f, 700, 1, 1025000);
	/* And one without any. */
	put_count_at(&t->f, 300, 2, 5000);
	put_count_at(&t->f, 700, 2, 5600);
	/* And one that does nothing. */
	put_count_at(&t->f, 300, 3, 5000);
	put_count_at(&t->f, 700, 3, 5000);
	read_forged(t);
	assert_collapsed(t->profiles[JAVA_JFR_PROFILE_ALLOC], "alloc_space",
			 "[allocated unseen] 600\napp.Main.run;app.Main.work;byte[] 25000\n");
}

static void samples_after_the_last_count_weigh_what_they_say(void **state)
{
	struct source_reading *t = *state;

	t->uses_counts = true;
	f_begin(&t->f, E_THREAD_START);
	f_nums(&t->f, 2, 290L, 1L);
	f_end(&t->f);
	f_alloc(&t->f, 400, 1, 2, 1000);
	put_count_at(&t->f, 500, 1, 1200);
	/* 200 of it were counted. */
	f_alloc(&t->f, 600, 1, 2, 700);
	read_forged(t);
	assert_collapsed(t->profiles[JAVA_JFR_PROFILE_ALLOC], "alloc_space",
			 "app.Main.run;app.Main.work;byte[] 1700\n");
}

static void a_thread_that_was_forgotten_is_not_counted_twice(void **state)
{
	struct source_reading *t = *state;

	t->uses_counts = true;
	f_begin(&t->f, E_THREAD_START);
	f_nums(&t->f, 2, 290L, 1L);
	f_end(&t->f);
	f_alloc(&t->f, 400, 1, 2, 1000);
	put_count_at(&t->f, 500, 1, 1200);
	read_forged(t);
	assert_collapsed(t->profiles[JAVA_JFR_PROFILE_ALLOC], "alloc_space",
			 "app.Main.run;app.Main.work;byte[] 1200\n");
	/* The JVM counts others only. */
	for (int i = 0; i < 4; i++) {
		begin_next(t);
		put_count_at(&t->f, 600, 2, 5000);
		read_forged(t);
	}
	begin_next(t);
	f_alloc(&t->f, 700, 1, 2, 100);
	put_count_at(&t->f, 800, 1, 1350);
	read_forged(t);
	assert_collapsed(t->profiles[JAVA_JFR_PROFILE_ALLOC], "alloc_space",
			 "app.Main.run;app.Main.work;byte[] 100\n");
	assert_int_equal(t->stats.counted_bytes, 0);
}

static void threads_that_queue_for_connections_are_counted_apart(void **state)
{
	struct source_reading *t = *state;
	struct forge *f = &t->f;

	/* Stack 2: work, called by accept(). */
	f_checkpoint(f, 4);
	f_nums(f, 2, (long)T_SYMBOL, 2L);
	f_symbol(f, 7, "sun/nio/ch/ServerSocketChannelImpl");
	f_symbol(f, 8, "accept");
	f_nums(f, 4, (long)T_CLASS, 1L, 5L, 7L);
	f_nums(f, 5, (long)T_METHOD, 1L, 3L, 5L, 8L);
	f_byte(f, 0);
	f_nums(f, 3, (long)T_STACK, 1L, 2L);
	f_byte(f, 0);
	f_nums(f, 9, 2L, 2L, 7L, 0L, 1L, 3L, 3L, 0L, 1L);
	f_end(f);
	f_wait(f, E_PARK, 1000, 3);
	f_begin(f, E_PARK);
	f_nums(f, 5, 200L, 8000L, 1L, 2L, 3L);
	f_end(f);
	read_forged(t);
	assert_collapsed(t->profiles[JAVA_JFR_PROFILE_LOCK], "delay",
			 "app.Main.run;app.Main.work;"
			 "java.util.concurrent.locks.ReentrantLock$NonfairSync 500\n");
	assert_int_equal(t->stats.idle_waits, 1);
	assert_int_equal(t->stats.idle_ns, 4000);
}

static void locks_are_the_leaf_and_ticks_become_time(void **state)
{
	struct source_reading *t = *state;

	f_wait(&t->f, E_MONITOR, 2000, 1);
	f_wait(&t->f, E_MONITOR, 4000, 1);
	f_wait(&t->f, E_PARK, 1000, 3);
	f_wait(&t->f, E_PARK, 999999, 4); /* waits for work */
	f_wait(&t->f, E_PARK, 999999, 0); /* for nothing in particular */
	read_forged(t);
	assert_collapsed(t->profiles[JAVA_JFR_PROFILE_LOCK], "delay",
			 "app.Main.run;app.Main.work;app.Main 3000\n"
			 "app.Main.run;app.Main.work;"
			 "java.util.concurrent.locks.ReentrantLock$NonfairSync 500\n");
	assert_collapsed(t->profiles[JAVA_JFR_PROFILE_LOCK], "contentions",
			 "app.Main.run;app.Main.work;app.Main 2\n"
			 "app.Main.run;app.Main.work;"
			 "java.util.concurrent.locks.ReentrantLock$NonfairSync 1\n");
	assert_int_equal(t->stats.idle_waits, 2);
}

static void put_execution(struct forge *f, long stack)
{
	f_begin(f, E_EXECUTION);
	f_nums(f, 3, 300L, 1L, stack);
	f_end(f);
}

static void samples_of_the_JVM_are_counts(void **state)
{
	struct source_reading *t = *state;

	put_execution(&t->f, 1);
	put_execution(&t->f, 1);
	put_execution(&t->f, 0);
	read_forged(t);
	assert_int_equal(profile_n_types(t->profiles[JAVA_JFR_PROFILE_CPU]), 1);
	assert_collapsed(t->profiles[JAVA_JFR_PROFILE_CPU], "samples",
			 "[no stack] 1\napp.Main.run;app.Main.work 2\n");
	assert_false(t->stats.cpu_is_time);
}

static void put_setting(struct forge *f, const char *name, const char *value)
{
	f_begin(f, E_SETTING);
	f_nums(f, 2, 300L, 101L);
	f_text(f, name);
	f_text(f, value);
	f_end(f);
}

static void samples_of_async_profiler_are_time(void **state)
{
	struct source_reading *t = *state;

	put_execution(&t->f, 1);
	put_setting(&t->f, "interval", "10000000");
	put_setting(&t->f, "lock", "10000");
	put_execution(&t->f, 1);
	/* Shorter than what is always seen: it stands for ten such. */
	f_wait(&t->f, E_MONITOR, 2000, 1);
	read_forged(t);
	assert_collapsed(t->profiles[JAVA_JFR_PROFILE_CPU], "cpu",
			 "app.Main.run;app.Main.work 20000000\n");
	assert_collapsed(t->profiles[JAVA_JFR_PROFILE_LOCK], "contentions",
			 "app.Main.run;app.Main.work;app.Main 10\n");
	assert_collapsed(t->profiles[JAVA_JFR_PROFILE_LOCK], "delay",
			 "app.Main.run;app.Main.work;app.Main 10000\n");
}

static void put_cpu_time(struct forge *f, long stack, uint8_t failed, long period)
{
	f_begin(f, E_CPU_TIME);
	f_nums(f, 3, 300L, stack, 1L);
	f_byte(f, failed);
	f_num(f, (uint64_t)period);
	f_end(f);
}

static void cpu_time_counts_also_without_a_stack(void **state)
{
	struct source_reading *t = *state;

	put_execution(&t->f, 1); /* not added to what is better known */
	put_cpu_time(&t->f, 1, 0, 20000000);
	put_cpu_time(&t->f, 1, 0, 40000000);
	put_cpu_time(&t->f, 0, 1, 20000000);
	read_forged(t);
	assert_collapsed(t->profiles[JAVA_JFR_PROFILE_CPU], "cpu",
			 "[no stack] 10000000\napp.Main.run;app.Main.work 30000000\n");
	assert_collapsed(t->profiles[JAVA_JFR_PROFILE_CPU], "samples",
			 "[no stack] 1\napp.Main.run;app.Main.work 2\n");
	assert_int_equal(t->stats.cpu_failed, 1);
}

static void a_profile_has_what_came_since_the_last(void **state)
{
	struct profile *again;
	struct source_reading *t = *state;
	struct err err;

	f_wait(&t->f, E_MONITOR, 2000, 1);
	read_forged(t);
	assert_int_equal(profile_n_samples(t->profiles[JAVA_JFR_PROFILE_LOCK]), 1);
	assert_int_equal(
		java_jfr_profiler_take(t->profiler, JAVA_JFR_PROFILE_LOCK, 1, 2, &again, &err), 0);
	assert_int_equal(profile_n_samples(again), 0);
	assert_int_equal(profile_n_types(again), 2);
	profile_free(again);
}

static void assert_class(const char *name, const char *expected)
{
	struct buf out = {0};

	assert_int_equal(java_jfr_names_class(&out, view_str(name)), 0);
	assert_string_equal(buf_cstr(&out), expected);
	buf_release(&out);
}

static void names_of_generated_classes_are_folded(void **state)
{
	(void)state;
	assert_class("java/lang/String", "java.lang.String");
	assert_class("Load$$Lambda$2.1618212626", "Load$$Lambda");
	assert_class("Load$$Lambda$2+0x00007f26c4001450.1482968390", "Load$$Lambda");
	assert_class("Load$$Lambda.0x000000007d041238", "Load$$Lambda");
	assert_class("Load$$Lambda/0x000000007d041238", "Load$$Lambda");
	assert_class("java/lang/invoke/LambdaForm$MH+0x00007f26c4001450",
		     "java.lang.invoke.LambdaForm$MH");
	assert_class("java/lang/invoke/LambdaForm$DMH/1234567", "java.lang.invoke.LambdaForm$DMH");
	assert_class("jdk/internal/reflect/GeneratedMethodAccessor417",
		     "jdk.internal.reflect.GeneratedMethodAccessor");
	assert_class("com/sun/proxy/$Proxy12", "com.sun.proxy.$Proxy");
	assert_class("jdk/proxy3/$Proxy12", "jdk.proxy.$Proxy");
	assert_class("app/Dao$$EnhancerBySpringCGLIB$$3f1a2b", "app.Dao$$EnhancerBySpringCGLIB");
	assert_class("app/Dao$$SpringCGLIB$$0", "app.Dao$$SpringCGLIB");
	assert_class("app/User$HibernateProxy$Xy12", "app.User$HibernateProxy");
	assert_class("app/Sha256", "app.Sha256");
	assert_class("app/Outer$1", "app.Outer$1");
}

static void arrays_are_written_as_in_Java(void **state)
{
	(void)state;
	assert_class("[B", "byte[]");
	assert_class("[[J", "long[][]");
	assert_class("[Ljava/lang/String;", "java.lang.String[]");
	assert_class("[", "[]");
	assert_class("", "");
}

static void threads_of_a_pool_have_one_name(void **state)
{
	struct buf out = {0};

	(void)state;
	assert_int_equal(java_jfr_names_thread(&out, view_str("pool-12-thread-345"), true), 0);
	assert_string_equal(buf_cstr(&out), "pool-#-thread-#");
	buf_release(&out);
}

/* A repository of a JVM with two files, a link and what is none of its names. */
static int make_repository(char *dir, const struct forge *f)
{
	static const char *const names[] = {"2026_01_02_03_04_05_77/2026_01_02_03_04_05.jfr",
					    "2026_01_02_03_04_05_77/2026_01_02_03_04_06.jfr",
					    "2026_01_02_03_04_05_77/notes.jfr"};
	int dirfd;

	assert_non_null(mkdtemp(dir));
	dirfd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_true(dirfd >= 0);
	assert_int_equal(mkdirat(dirfd, "2026_01_02_03_04_05_77", 0700), 0);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		int fd = openat(dirfd, names[i], O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

		assert_true(fd >= 0);
		assert_true(write(fd, f->out.data, f->out.len) == (ssize_t)f->out.len);
		close(fd);
	}
	assert_int_equal(symlinkat("2026_01_02_03_04_05.jfr", dirfd,
				   "2026_01_02_03_04_05_77/2026_01_02_03_04_07.jfr"),
			 0);
	return dirfd;
}

static void remove_repository(const char *dir, int dirfd)
{
	static const char *const names[] = {"05", "06", "07"};
	char path[80];

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		(void)snprintf(path, sizeof(path), "2026_01_02_03_04_05_77/2026_01_02_03_04_%s.jfr",
			       names[i]);
		assert_int_equal(unlinkat(dirfd, path, 0), 0);
	}
	assert_int_equal(unlinkat(dirfd, "2026_01_02_03_04_05_77/notes.jfr", 0), 0);
	assert_int_equal(unlinkat(dirfd, "2026_01_02_03_04_05_77", AT_REMOVEDIR), 0);
	close(dirfd);
	assert_int_equal(rmdir(dir), 0);
}

static void files_of_a_JVM_are_read_one_after_the_other(void **state)
{
	char dir[] = "/tmp/sonde-jfr-XXXXXX";
	struct java_jfr_options options = {0};
	struct java_jfr_follow *follow = NULL;
	struct source_reading *t = *state;
	struct java_jfr_event e;
	struct err err;
	int n = 0, dirfd, r;

	f_alloc(&t->f, 400, 1, 2, 700);
	f_constants(&t->f);
	f_finish(&t->f);
	dirfd = make_repository(dir, &t->f);
	options.queries = java_jfr_profiler_queries(&options.n_queries);
	assert_int_equal(java_jfr_follow_open(dirfd, &options, &follow, &err), 0);
	for (int i = 0; i < 3; i++)
		while ((r = java_jfr_follow_next(follow, &e, &err)) == 1)
			n++;
	assert_int_equal(r, 0);
	assert_int_equal(n, 2);
	/* The link was not followed. */
	assert_int_equal(java_jfr_follow_stats(follow)->broken, 1);
	java_jfr_follow_close(follow);
	remove_repository(dir, dirfd);
}

static int follow_all(struct java_jfr_follow *follow)
{
	struct java_jfr_event e;
	struct err err;
	int n = 0, r;

	while ((r = java_jfr_follow_next(follow, &e, &err)) == 1)
		n++;
	assert_int_equal(r, 0);
	return n;
}

static void put_file(int dirfd, const char *name, const void *data, size_t len)
{
	int fd = openat(dirfd, "new", O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_true(write(fd, data, len) == (ssize_t)len);
	close(fd);
	assert_int_equal(renameat(dirfd, "new", dirfd, name), 0);
}

/* As JDK 8 and 11 do it: an empty file that the whole one takes the place of. */
static void a_file_that_is_to_come_is_waited_for(void **state)
{
	static const char first[] = "2026_01_02_03_04_05_77/2026_01_02_03_04_05.jfr";
	static const char second[] = "2026_01_02_03_04_05_77/2026_01_02_03_04_06.jfr";
	static const char third[] = "2026_01_02_03_04_05_77/2026_01_02_03_04_07.jfr";
	char dir[] = "/tmp/sonde-jfr-XXXXXX";
	struct java_jfr_options options = {0};
	struct java_jfr_follow *follow = NULL;
	struct source_reading *t = *state;
	struct err err;
	int dirfd;

	f_alloc(&t->f, 400, 1, 2, 700);
	f_constants(&t->f);
	f_finish(&t->f);
	assert_non_null(mkdtemp(dir));
	dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(mkdirat(dirfd, "2026_01_02_03_04_05_77", 0700), 0);
	options.queries = java_jfr_profiler_queries(&options.n_queries);
	options.patience_ns = 100 * NS_PER_MS;
	assert_int_equal(java_jfr_follow_open(dirfd, &options, &follow, &err), 0);
	put_file(dirfd, first, "", 0);
	for (int i = 0; i < 8; i++)
		assert_int_equal(follow_all(follow), 0);
	put_file(dirfd, second, "", 0);
	put_file(dirfd, first, t->f.out.data, t->f.out.len);
	assert_int_equal(follow_all(follow), 1);
	assert_int_equal(java_jfr_follow_stats(follow)->broken, 0);
	/* The second stays empty: who wrote it is gone. */
	put_file(dirfd, third, t->f.out.data, t->f.out.len);
	for (int i = 0; i < 2; i++)
		assert_int_equal(follow_all(follow), 0);
	clock_sleep_ns(options.patience_ns);
	assert_int_equal(follow_all(follow) + follow_all(follow), 1);
	assert_int_equal(java_jfr_follow_stats(follow)->broken, 1);
	java_jfr_follow_close(follow);
	assert_int_equal(unlinkat(dirfd, first, 0) | unlinkat(dirfd, second, 0) |
				 unlinkat(dirfd, third, 0),
			 0);
	assert_int_equal(unlinkat(dirfd, "2026_01_02_03_04_05_77", AT_REMOVEDIR), 0);
	close(dirfd);
	assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_first_sample_of_an_older_thread_is_left_out,
						begin, end),
		cmocka_unit_test_setup_teardown(a_thread_that_began_later_keeps_its_first_sample,
						begin, end),
		cmocka_unit_test_setup_teardown(tlab_events_tell_objects_too, begin, end),
		cmocka_unit_test_setup_teardown(what_threads_count_is_taken_since_it_is_known,
						begin, end),
		cmocka_unit_test_setup_teardown(samples_add_up_to_what_their_thread_has_allocated,
						begin, end),
		cmocka_unit_test_setup_teardown(a_thread_with_one_sample_has_all_of_it_there, begin,
						end),
		cmocka_unit_test_setup_teardown(a_thread_that_was_forgotten_is_not_counted_twice,
						begin, end),
		cmocka_unit_test_setup_teardown(samples_after_the_last_count_weigh_what_they_say,
						begin, end),
		cmocka_unit_test_setup_teardown(
			threads_that_queue_for_connections_are_counted_apart, begin, end),
		cmocka_unit_test_setup_teardown(locks_are_the_leaf_and_ticks_become_time, begin,
						end),
		cmocka_unit_test_setup_teardown(samples_of_the_JVM_are_counts, begin, end),
		cmocka_unit_test_setup_teardown(samples_of_async_profiler_are_time, begin, end),
		cmocka_unit_test_setup_teardown(cpu_time_counts_also_without_a_stack, begin, end),
		cmocka_unit_test_setup_teardown(a_profile_has_what_came_since_the_last, begin, end),
		cmocka_unit_test(names_of_generated_classes_are_folded),
		cmocka_unit_test(arrays_are_written_as_in_Java),
		cmocka_unit_test(threads_of_a_pool_have_one_name),
		cmocka_unit_test_setup_teardown(files_of_a_JVM_are_read_one_after_the_other, begin,
						end),
		cmocka_unit_test_setup_teardown(a_file_that_is_to_come_is_waited_for, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
