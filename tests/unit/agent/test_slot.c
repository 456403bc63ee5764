/*
 * tests/unit/agent/test_slot.c: several readers of one process: each has its own answer, its own
 * pace and its own troubles. The machine is made up.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#include <cmocka.h>

#include "test_fakes.h"

#define OWN_INTERVALS 3
#define PATIENCE 36000 /* looks, of 5 ms each or longer */

/* What the second reader does, and what came of it. */
static struct {
	atomic_bool idle;
	atomic_bool refuses; /* to be opened */
	atomic_bool fails;   /* with -ENOTSUP, once */
	atomic_uint burn_ms; /* of CPU in each collection */
	atomic_uint opens;
	atomic_uint collections;
	atomic_uint open;
	atomic_bool notes;
} second;

static int second_probe(const void *config, struct source_shares *share,
			struct source_target *target, struct source_answer *ret_answer,
			struct err *err)
{
	(void)config;
	(void)share;
	(void)target;
	(void)err;
	*ret_answer = (struct source_answer){.yes = true};
	return 0;
}

static int second_open(const void *config, struct source_shares *share,
		       const struct source_target *target, void **ret_state, struct err *err)
{
	(void)config;
	(void)share;
	(void)target;
	second.opens++;
	if (second.refuses)
		return err_lack(err, -ENOTSUP, ERR_CAUSE_UNKNOWN_VERSION, "give it one",
				"it has none; or so it says");
	second.open++;
	*ret_state = &second;
	return 0;
}

static uint64_t thread_ns(void)
{
	struct timespec t;

	assert_int_equal(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t), 0);
	return (uint64_t)t.tv_sec * NS_PER_SEC + (uint64_t)t.tv_nsec;
}

static int second_collect(void *state, struct source_reading *ret_reading, struct err *err)
{
	uint64_t until = thread_ns() + second.burn_ms * NS_PER_MS;

	(void)state;
	while (thread_ns() < until)
		continue;
	second.collections++;
	if (atomic_exchange(&second.fails, false))
		return err_set(err, -ENOTSUP, "it has it no more");
	if (second.notes)
		(void)snprintf(ret_reading->note, sizeof(ret_reading->note), "a sample");
	if (second.idle) {
		ret_reading->idle = "it is off";
		ret_reading->idle_remedy = "turn it on";
		ret_reading->idle_cause = ERR_CAUSE_PROFILING_OFF;
		return 0;
	}
	ret_reading->metrics = metrics_new();
	if (!ret_reading->metrics ||
	    metrics_add_gauge(ret_reading->metrics, METRIC_GO_PROCESSORS, 7) < 0 ||
	    metrics_add_counter(ret_reading->metrics, METRIC_GO_BLOCK_CONTENTIONS, NAN, 10) < 0)
		abort();
	return fake_profile(0, ret_reading);
}

static void second_close(void *state)
{
	(void)state;
	second.open--;
}

static uint64_t second_interval(const void *config)
{
	(void)config;
	return OWN_INTERVALS * FAKE_INTERVAL_NS;
}

static const struct source_ops every_interval = {
	.name = "second",
	.family = "second",
	.no_is_final = true,
	.probe = second_probe,
	.open = second_open,
	.collect = second_collect,
	.close = second_close,
};
static const struct source_ops own_interval = {
	.name = "second",
	.family = "second",
	.interval_ns = second_interval,
	.probe = second_probe,
	.open = second_open,
	.collect = second_collect,
	.close = second_close,
};

static pthread_mutex_t times_lock = PTHREAD_MUTEX_INITIALIZER;
static int64_t times[4096]; /* of what the second reader read */
static pid_t time_pids[4096];
static size_t n_times;

/* The gauge is in one record of each reading, however late that came and was spread. */
static bool is_of_second(const struct record *record)
{
	if (record->kind != RECORD_METRICS)
		return false;
	for (size_t i = 0; i < record->metrics->len; i++)
		if (record->metrics->points[i].metric == &registry_metrics[METRIC_GO_PROCESSORS])
			return true;
	return false;
}

static int note_write(struct sink *sink, struct record *record, struct err *err)
{
	if (record->kind == RECORD_PROFILE && strcmp(record->profile.family, "second") == 0)
		return 0;
	if (!is_of_second(record))
		return fake_write(sink, record, err);
	(void)pthread_mutex_lock(&times_lock);
	if (n_times < ARRAY_SIZE(times)) {
		time_pids[n_times] = record->resource->process.pid;
		times[n_times++] = record->when.time_ns;
	}
	(void)pthread_mutex_unlock(&times_lock);
	return 0;
}

static const struct sink_ops note_sink = {
	.name = "note", .write = note_write, .flush = fake_flush, .close = fake_sink_close};

static struct agent *start(const struct source_ops *also)
{
	static const struct source_ops *readers_of_test[3];
	const struct sink_row sinks[] = {{.ops = &note_sink}};
	const struct agent_parts parts = {.asked = readers_of_test, .sinks = sinks, .n_sinks = 1};
	const struct agent_config config = {.interval_ns = FAKE_INTERVAL_NS};
	struct agent *agent;
	struct err err;

	readers_of_test[0] = &fake_reader;
	readers_of_test[1] = also;
	assert_int_equal(agent_start_in(&fake_world, &config, &parts, &agent, &err), 0);
	return agent;
}

static int setup(void **state)
{
	(void)state;
	machine.len = 0;
	machine.open = 0;
	memset(&second, 0, sizeof(second));
	n_times = 0;
	return 0;
}

static void wait_writes(const struct fake_process *p, uint64_t more)
{
	uint64_t wanted;

	machine_lock();
	wanted = p->writes + more;
	machine_unlock();
	for (int i = 0; i < PATIENCE; i++) {
		bool there;

		machine_lock();
		there = p->writes >= wanted;
		machine_unlock();
		if (there)
			return;
		clock_sleep_ns(5 * NS_PER_MS);
	}
	fail_msg("nothing was written");
}

static void stop(struct agent *agent)
{
	agent_stop(agent);
	assert_int_equal(machine.open, 0);
	assert_int_equal(second.open, 0);
}

/* The only one there is. */
static struct agent_target look(struct agent *agent)
{
	_cleanup_(agent_targets_release) struct agent_targets targets = {};
	struct agent_target found;

	assert_int_equal(agent_targets(agent, &targets), 0);
	assert_int_equal(targets.len, 1);
	found = targets.items[0];
	found.metrics = NULL;
	return found;
}

static void a_reader_that_is_idle_says_why_and_is_read_when_it_is_not(void **state)
{
	struct fake_process p = {.pid = 10, .start_ticks = 1};
	struct agent_target t;
	struct agent *agent;

	(void)state;
	second.idle = true;
	machine_add(&p);
	agent = start(&every_interval);
	wait_writes(&p, 3);
	t = look(agent);
	assert_true(t.sources[0].answer.yes);
	assert_false(t.sources[1].answer.yes);
	assert_int_equal(t.sources[1].answer.cause, ERR_CAUSE_PROFILING_OFF);
	assert_string_equal(t.sources[1].answer.reason, "it is off");
	assert_string_equal(t.sources[1].answer.remedy, "turn it on");
	assert_int_equal(t.sources[1].collections, 0);
	assert_int_equal(t.sources[1].failures, 0);
	second.idle = false;
	wait_writes(&p, 3);
	t = look(agent);
	assert_true(t.sources[1].answer.yes);
	assert_int_equal(t.sources[1].answer.cause, ERR_CAUSE_OTHER);
	assert_string_equal(t.sources[1].answer.reason, "");
	assert_true(t.sources[1].collections > 0);
	/* Nothing was closed for it. */
	assert_int_equal(second.opens, 1);
	assert_int_equal(p.opens, 1);
	stop(agent);
}

static void a_reader_that_fails_is_asked_again_alone(void **state)
{
	struct fake_process p = {.pid = 10, .start_ticks = 1};
	struct agent *agent;

	(void)state;
	machine_add(&p);
	agent = start(&every_interval);
	wait_writes(&p, 2);
	second.fails = true;
	for (int i = 0; i < PATIENCE && second.opens < 2; i++)
		clock_sleep_ns(5 * NS_PER_MS);
	assert_int_equal(second.opens, 2);
	wait_writes(&p, 3);
	assert_int_equal(p.opens, 1);
	assert_int_equal(p.probes, 1);
	assert_int_equal(second.open, 1);
	stop(agent);
}

static void a_reader_whose_no_is_final_does_not_touch_the_others(void **state)
{
	struct fake_process p = {.pid = 10, .start_ticks = 1};
	struct agent_target t;
	struct agent *agent;

	(void)state;
	second.refuses = true;
	machine_add(&p);
	agent = start(&every_interval);
	wait_writes(&p, 4);
	t = look(agent);
	assert_true(t.sources[0].answer.yes);
	assert_false(t.sources[1].answer.yes);
	assert_false(t.sources[1].answer.may_change);
	assert_int_equal(t.sources[1].answer.cause, ERR_CAUSE_UNKNOWN_VERSION);
	assert_string_equal(t.sources[1].answer.reason, "it has none; or so it says");
	assert_string_equal(t.sources[1].answer.remedy, "give it one");
	assert_int_equal(second.opens, 1);
	stop(agent);
}

/* What is shown of the only process that there is: all points, and one of them. */
struct shown {
	size_t len;
	double value;
	uint64_t collections; /* of the second reader */
};

static struct shown shown_now(struct agent *agent, enum metric_id id)
{
	_cleanup_(agent_targets_release) struct agent_targets targets = {};
	struct shown shown = {.value = NAN};

	assert_int_equal(agent_targets(agent, &targets), 0);
	assert_int_equal(targets.len, 1);
	shown.len = targets.items[0].metrics->len;
	shown.collections = targets.items[0].sources[1].collections;
	for (size_t i = 0; i < shown.len; i++)
		if (targets.items[0].metrics->points[i].metric == &registry_metrics[id])
			shown.value = targets.items[0].metrics->points[i].value;
	return shown;
}

static void metrics_are_kept_and_increases_add_up(void **state)
{
	struct fake_process p = {.pid = 10, .start_ticks = 1};
	struct agent *agent;
	struct shown now;

	(void)state;
	machine_add(&p);
	agent = start(&every_interval);
	wait_writes(&p, 4);
	now = shown_now(agent, METRIC_GO_BLOCK_CONTENTIONS);
	assert_int_equal(now.len, 2);
	assert_true(now.collections > 1);
	assert_true(now.value == (double)(10 * now.collections));
	assert_true(shown_now(agent, METRIC_GO_PROCESSORS).value == 7);
	/* Another program knows nothing of them. */
	second.idle = true;
	machine_lock();
	p.space = 1;
	machine_unlock();
	for (int i = 0; i < PATIENCE && second.opens < 2; i++)
		clock_sleep_ns(5 * NS_PER_MS);
	wait_writes(&p, 1);
	assert_int_equal(shown_now(agent, METRIC_GO_PROCESSORS).len, 0);
	stop(agent);
}

static void an_interval_of_its_own_is_the_same_for_all_processes(void **state)
{
	struct fake_process first = {.pid = 10, .start_ticks = 1}, later = {.pid = 11};
	int64_t own = OWN_INTERVALS * (int64_t)FAKE_INTERVAL_NS;
	int64_t begin = INT64_MAX;
	size_t of_later = 0;
	struct agent *agent;

	(void)state;
	machine_add(&first);
	agent = start(&own_interval);
	wait_writes(&first, 4);
	later.start_ticks = 2;
	machine_add(&later);
	wait_writes(&later, 1);
	wait_writes(&first, 4 * OWN_INTERVALS);
	stop(agent);
	for (size_t i = 0; i < n_times; i++)
		begin = MIN(begin, times[i]);
	for (size_t i = 0; i < n_times; i++) {
		/* What there was at the start is read at once. Where we were late, it is too. */
		if (times[i] == begin)
			assert_int_equal(time_pids[i], 10);
		of_later += time_pids[i] == 11;
		for (size_t k = 0; k < i; k++)
			if (time_pids[k] == time_pids[i])
				assert_int_not_equal(times[k] / own, times[i] / own);
	}
	assert_true(of_later > 0);
	assert_true(n_times - of_later > 2);
}

static bool has_trouble(struct agent *agent)
{
	struct agent_target t = look(agent);
	bool trouble = t.sources[1].trouble[0];

	return trouble;
}

static void a_reader_that_takes_too_much_cpu_is_read_less_often_and_says_so(void **state)
{
	int64_t own = OWN_INTERVALS * (int64_t)FAKE_INTERVAL_NS;
	struct fake_process p = {.pid = 10, .start_ticks = 1};
	struct agent_target t;
	struct agent *agent;

	(void)state;
	/* Its own interval is 300 ms, of which it may take 3: five times as long is enough. */
	second.burn_ms = 13;
	second.notes = true;
	machine_add(&p);
	agent = start(&own_interval);
	for (int i = 0; i < PATIENCE && second.collections < 4; i++)
		clock_sleep_ns(5 * NS_PER_MS);
	assert_true(second.collections >= 4);
	wait_writes(&p, 1);
	t = look(agent);
	assert_non_null(strstr(t.sources[1].trouble, "a sample; a collection takes "));
	assert_non_null(strstr(t.sources[1].trouble, "; collected every "));
	assert_true(t.sources[1].answer.yes);
	second.burn_ms = 0;
	second.notes = false;
	for (int i = 0; i < PATIENCE && has_trouble(agent); i++)
		clock_sleep_ns(5 * NS_PER_MS);
	assert_false(has_trouble(agent));
	stop(agent);
	/* Three of its own intervals would be enough for that many. */
	assert_true(n_times >= 4);
	assert_true(times[3] - times[0] > 3 * own);
}

/* One slot with one reader, without a loop. */
struct alone {
	struct agent agent;
	struct agent_slot *slot;
};

static void alone_begin(struct alone *alone)
{
	const struct proc_stat st = {.start_ticks = 1, .comm = "fake"};
	const struct pipeline_config none = {0};
	struct agent *a = &alone->agent;

	*a = (struct agent){.config.interval_ns = FAKE_INTERVAL_NS,
			    .sources[0].ops = &own_interval,
			    .n_sources = 1,
			    .interval = {.number = 9, .stamp_ns = 90000 * FAKE_INTERVAL_NS}};
	delivery_list_init(&a->mail);
	assert_int_equal(pipeline_open(&none, &a->pipeline, NULL), 0);
	alone->slot = agent_slot_new(a, 10, &st);
	assert_non_null(alone->slot);
}

static void alone_end(struct alone *alone)
{
	delivery_list_release(&alone->agent.mail);
	agent_slot_free(&alone->agent, alone->slot);
	assert_true(pipeline_stop(alone->agent.pipeline, clock_mono_ns() + NS_PER_SEC));
	pipeline_free(alone->agent.pipeline);
}

static void a_reader_that_was_slow_by_intention_is_not_late(void **state)
{
	struct alone alone;
	struct agent_job job = {.what = AGENT_JOB_LOOK | AGENT_JOB_COLLECT,
				.sources[0] = {.state = &second, .collected = true}};
	struct delivery *first;

	(void)state;
	alone_begin(&alone);
	job.target = alone.slot->target;
	agent_slot_take_looks(&alone.agent, alone.slot, &job);
	alone.slot->sources[0].state = &second;
	alone.slot->sources[0].spacing = 10;
	alone.slot->sources[0].stamp_ns =
		alone.agent.interval.stamp_ns - (int64_t)(10 * OWN_INTERVALS * FAKE_INTERVAL_NS);
	/* It costs nothing now, and will be read more often: but that is to come. */
	assert_int_equal(fake_profile(1, &job.sources[0].reading), 0);
	agent_slot_take_readings(&alone.agent, alone.slot, &job);
	assert_int_equal(alone.slot->sources[0].spacing, 1);
	first = alone.agent.mail.first;
	assert_non_null(first);
	assert_null(first->next);
	assert_int_equal(first->when.duration_ns, 10 * OWN_INTERVALS * FAKE_INTERVAL_NS);
	alone_end(&alone);
}

static void an_exec_before_some_readers_are_asked_again_is_not_forgotten(void **state)
{
	struct agent_job all = {.what = AGENT_JOB_LOOK | AGENT_JOB_COLLECT, .image = 100};
	struct agent_job some = {.what = AGENT_JOB_LOOK, .image = 101};
	struct alone alone;

	(void)state;
	alone_begin(&alone);
	agent_slot_take_looks(&alone.agent, alone.slot, &all);
	assert_int_equal(alone.slot->image, 100);
	agent_slot_take_looks(&alone.agent, alone.slot, &some);
	/* Whoever compares it next sees the exec. */
	assert_int_equal(alone.slot->image, 100);
	alone_end(&alone);
}

/* What the sampler says of it, in a name that lacks the environment's; returns its resource. */
static const struct resource *judge(struct alone *alone, const char *exe, uint64_t image)
{
	struct delivery *d =
		delivery_new(record_new_metrics(metrics_new()), (struct record_time){0});
	const struct resource *resource;

	assert_non_null(d);
	d->info = (struct proc_info){
		.id = alone->slot->target.info.id, .exec_image = image, .service = "shallow"};
	strcpy(d->info.exe, exe);
	assert_int_equal(agent_targets_judge(&alone->agent, d), AGENT_DELIVERY_TAKE);
	resource = d->resource;
	delivery_free(d);
	return resource;
}

static void look_at(struct alone *alone, const char *exe, uint64_t image)
{
	struct agent_job job = {.what = AGENT_JOB_LOOK | AGENT_JOB_COLLECT,
				.image = image,
				.target = alone->slot->target};

	strcpy(job.target.info.exe, exe);
	strcpy(job.target.info.service, exe);
	job.target.info.exec_image = image;
	agent_slot_take_looks(&alone->agent, alone->slot, &job);
}

static void a_program_whose_file_is_renamed_keeps_its_name(void **state)
{
	struct agent_known known = {.pid = 10};
	struct alone alone;

	(void)state;
	alone_begin(&alone);
	known.slot = alone.slot;
	alone.agent.procs = &fake_world;
	alone.agent.known = &known;
	alone.agent.n_known = 1;
	alone.agent.named = true;
	look_at(&alone, "/srv/shop", 7);
	assert_ptr_equal(judge(&alone, "/srv/shop", 7), alone.slot->resource);
	assert_ptr_equal(judge(&alone, "/srv/shop.old", 7), alone.slot->resource);
	/* Another program; and itself anew. */
	assert_ptr_not_equal(judge(&alone, "/srv/other", 8), alone.slot->resource);
	assert_ptr_equal(judge(&alone, "/srv/shop", 8), alone.slot->resource);
	/* Also if it is not the program any more. */
	look_at(&alone, "/srv/other", 8);
	assert_ptr_equal(judge(&alone, "/srv/shop.old", 7), alone.slot->before);
	assert_ptr_equal(judge(&alone, "/srv/other", 8), alone.slot->resource);
	alone_end(&alone);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_reader_that_is_idle_says_why_and_is_read_when_it_is_not,
				       setup),
		cmocka_unit_test_setup(a_reader_that_fails_is_asked_again_alone, setup),
		cmocka_unit_test_setup(a_reader_whose_no_is_final_does_not_touch_the_others, setup),
		cmocka_unit_test_setup(metrics_are_kept_and_increases_add_up, setup),
		cmocka_unit_test_setup(an_interval_of_its_own_is_the_same_for_all_processes, setup),
		cmocka_unit_test(a_reader_that_was_slow_by_intention_is_not_late),
		cmocka_unit_test(an_exec_before_some_readers_are_asked_again_is_not_forgotten),
		cmocka_unit_test_setup(a_program_whose_file_is_renamed_keeps_its_name, setup),
		cmocka_unit_test_setup(
			a_reader_that_takes_too_much_cpu_is_read_less_often_and_says_so, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
