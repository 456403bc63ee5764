/*
 * tests/unit/store/test_threads.c: readers in threads of their own beside the writer. Whatever the
 * writer does meanwhile, pack, roll up or merge names, a reader sees whole commits only.
 */
#include "test_model.h"

#include <pthread.h>
#include <stdatomic.h>

#define READERS 3
#define COMMITS 150
#define PER_COMMIT 40 /* stacks, each of value 1 in both of two processes */

struct shared {
	struct rig *rig;
	atomic_llong begun; /* total when the commit under way is done */
	atomic_llong done;  /* total that is committed */
	atomic_bool over;
	atomic_int wrong; /* cmocka's assertions belong to the main thread */
	atomic_int reads;
};

static bool read_once(struct shared *s, const char *pid)
{
	const struct label filter = {"process.pid", pid};
	const struct store_window w = {
		.service = "svc",
		.type = TYPE_ALLOC,
		.to_ns = INT64_MAX,
		.filters = &filter,
		.n_filters = pid ? 1 : 0,
	};
	int64_t processes = pid ? 1 : 2, least = atomic_load(&s->done), total;
	struct store_sum sum = {0};
	struct err err = {};
	bool right;

	if (store_sum(s->rig->store, &w, &sum, &err) < 0)
		return false;
	total = total_of(sum.profile) * 2 / processes;
	right = total >= least && total <= atomic_load(&s->begun) &&
		total % (2 * PER_COMMIT) == 0 && (int64_t)sum.samples * 2 / processes == total;
	profile_free(sum.profile);
	return right;
}

static void *reader(void *arg)
{
	struct shared *s = arg;

	for (int i = 0; !atomic_load(&s->over); i++) {
		struct store_stream *streams = NULL;
		size_t n = 0;

		if (!read_once(s, i % 3 == 1   ? "1"
				  : i % 3 == 2 ? "2"
					       : NULL) ||
		    store_streams(s->rig->store, 0, INT64_MAX, &streams, &n, NULL) < 0)
			atomic_fetch_add(&s->wrong, 1);
		free(streams);
		atomic_fetch_add(&s->reads, 1);
	}
	return NULL;
}

static void write_commit(struct shared *s, int i)
{
	int64_t time = DAY_0 + (int64_t)i * 12 * 60 * SEC_NS; /* 150 of them pass midnight */
	struct err err = {};

	s->rig->now_ns = time;
	for (unsigned int pid = 1; pid <= 2; pid++) {
		struct profile *p = make_profile();

		for (unsigned int k = 0; k < PER_COMMIT; k++)
			add_stack(p, (unsigned int)i * 7 + k, 1, 1);
		assert_int_equal(write_profile(s->rig, "svc", pid == 1 ? "1" : "2", time, p, &err),
				 0);
		profile_free(p);
	}
	atomic_fetch_add(&s->begun, 2 * PER_COMMIT);
	assert_int_equal(store_commit(s->rig->store, &err), 0);
	atomic_fetch_add(&s->done, 2 * PER_COMMIT);
	assert_int_equal(store_maintain(s->rig->store, time, &err), 0);
}

static void readers_beside_the_writer_see_whole_commits(void **state)
{
	pthread_t threads[READERS];
	struct rig rig;
	struct shared s = {.rig = &rig};

	(void)state;
	rig_init(&rig);
	/* Something to be read is there before the readers begin. */
	write_commit(&s, 0);
	for (int i = 0; i < READERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, reader, &s), 0);
	for (int i = 1; i < COMMITS; i++)
		write_commit(&s, i);
	while (atomic_load(&s.reads) < 10 * READERS)
		(void)usleep(1000);
	atomic_store(&s.over, true);
	for (int i = 0; i < READERS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_int_equal(atomic_load(&s.wrong), 0);
	assert_int_equal(total_all(&rig), COMMITS * 2 * PER_COMMIT);
	rig_release(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(readers_beside_the_writer_see_whole_commits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
