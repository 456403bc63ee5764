/* tests/unit/agent/test_loop.c: the agent on a made-up machine. */
#include "agent/agent.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "test_fakes.h"

/* Half a minute of them. */
#define FAKE_COMING 60

static struct agent *start_with(const struct agent_config *config)
{
	const struct sink_row sinks[] = {{.ops = &fake_sink}};
	const struct agent_parts parts = {.asked = fake_readers, .sinks = sinks, .n_sinks = 1};
	struct agent *agent;
	struct err err;

	assert_int_equal(agent_start_in(&fake_world, config, &parts, &agent, &err), 0);
	return agent;
}

static struct agent *start_every(uint64_t interval_ns)
{
	return start_with(&(struct agent_config){.interval_ns = interval_ns});
}

static struct agent *start(void)
{
	return start_every(FAKE_INTERVAL_NS);
}

static int setup(void **state)
{
	(void)state;
	machine.len = 0;
	machine.open = 0;
	machine.flushes = 0;
	machine.sink_fails = false;
	machine.own = 0;
	machine.own_stamp = 0;
	machine.own_repeated = false;
	machine.lists = 0;
	machine.censuses = 0;
	return 0;
}

/* Waits until the value, which other threads change, is at least so much. */
static bool reaches(const uint64_t *value, uint64_t wanted)
{
	for (int i = 0; i < 36000; i++) {
		bool there;

		machine_lock();
		there = *value >= wanted;
		machine_unlock();
		if (there)
			return true;
		clock_sleep_ns(5 * NS_PER_MS);
	}
	return false;
}

/* What comes sooner or later; how soon depends on the machine. */
#define EVENTUALLY(condition)                                                                      \
	({                                                                                         \
		bool _there = (condition);                                                         \
                                                                                                   \
		for (int _i = 0; !_there && _i < 36000; _i++) {                                    \
			clock_sleep_ns(5 * NS_PER_MS);                                             \
			_there = (condition);                                                      \
		}                                                                                  \
		_there;                                                                            \
	})

static void allocate(struct fake_process *p, int64_t bytes)
{
	machine_lock();
	p->allocated += bytes;
	machine_unlock();
}

static void wait_writes(const struct fake_process *p, uint64_t more)
{
	uint64_t before;

	machine_lock();
	before = p->writes;
	machine_unlock();
	assert_true(reaches(&p->writes, before + more));
}

static void set_flag(bool *flag, bool value)
{
	machine_lock();
	*flag = value;
	machine_unlock();
}

static bool has_writes(const struct fake_process *p)
{
	bool has;

	machine_lock();
	has = p->writes > 0;
	machine_unlock();
	return has;
}

static void stop(struct agent *agent)
{
	agent_stop(agent);
	assert_int_equal(machine.open, 0);
}

static void first_reading_is_a_baseline_and_later_ones_are_deltas(void **state)
{
	struct fake_process p = {.pid = 10, .start_ticks = 1, .allocated = 1000000};
	struct agent *agent;

	(void)state;
	machine_add(&p);
	agent = start();
	assert_true(reaches(&p.writes, 1));
	assert_int_equal(p.written, 0);
	for (int i = 0; i < 5; i++) {
		allocate(&p, 100);
		wait_writes(&p, 1);
	}
	wait_writes(&p, 2);
	assert_int_equal(p.written, 500);
	assert_int_equal(p.probes, 1);
	assert_int_equal(p.opens, 1);
	assert_false(p.repeated);
	assert_false(p.odd);
	stop(agent);
}

static void exec_begins_with_a_new_baseline(void **state)
{
	struct fake_process p = {.pid = 10, .start_ticks = 1, .allocated = 1000};
	struct agent *agent;

	(void)state;
	machine_add(&p);
	agent = start();
	assert_true(reaches(&p.writes, 2));
	machine_lock();
	p.space = 1;
	p.allocated = 5000000;
	machine_unlock();
	assert_true(reaches(&p.opens, 2));
	wait_writes(&p, 2);
	assert_int_equal(p.written, 0);
	allocate(&p, 7);
	wait_writes(&p, 2);
	assert_int_equal(p.written, 7);
	stop(agent);
}

static void exec_of_what_was_refused_is_looked_at_again(void **state)
{
	struct fake_process p = {.pid = 10, .start_ticks = 1, .refused = true};
	struct agent *agent;

	(void)state;
	machine_add(&p);
	agent = start();
	assert_true(reaches(&p.probes, 1));
	clock_sleep_ns(3 * FAKE_INTERVAL_NS);
	assert_int_equal(p.probes, 1);
	machine_lock();
	p.space = 1;
	p.refused = false;
	machine_unlock();
	assert_true(reaches(&p.writes, 1));
	stop(agent);
}

/* An interval would notice it as well; this one is still far from its end. */
static void exec_of_what_was_refused_is_noticed_by_a_scan(void **state)
{
	struct fake_process p = {.pid = 10, .start_ticks = 1, .refused = true};
	struct agent *agent;

	(void)state;
	machine_add(&p);
	agent = start_every(3600 * NS_PER_SEC);
	assert_true(reaches(&p.probes, 1));
	machine_lock();
	p.space = 1;
	machine_unlock();
	assert_true(reaches(&p.probes, 2));
	stop(agent);
}

static void processes_are_listed_when_some_came_or_went(void **state)
{
	struct fake_process p = {.pid = 10, .start_ticks = 1}, q = {.pid = 11, .start_ticks = 1};
	struct agent *agent;

	(void)state;
	machine_add(&p);
	agent = start_every(3600 * NS_PER_SEC);
	assert_true(reaches(&p.opens, 1));
	assert_true(reaches(&machine.censuses, 3));
	machine_lock();
	assert_int_equal(machine.lists, 1);
	machine_unlock();
	machine_add(&q);
	assert_true(reaches(&q.opens, 1));
	machine_lock();
	assert_int_equal(machine.lists, 2);
	machine_unlock();
	stop(agent);
}

static void pid_that_is_reused_begins_with_a_baseline(void **state)
{
	struct fake_process p = {.pid = 10, .start_ticks = 1, .allocated = 1000};
	struct fake_process q = {.pid = 10, .start_ticks = 2, .allocated = 9000000};
	struct agent *agent;

	(void)state;
	machine_add(&p);
	agent = start();
	assert_true(reaches(&p.writes, 2));
	machine_lock();
	machine.processes[0] = &q;
	machine_unlock();
	assert_true(reaches(&q.writes, 3));
	assert_int_equal(q.written, 0);
	allocate(&q, 3);
	wait_writes(&q, 2);
	assert_int_equal(q.written, 3);
	stop(agent);
}

static struct agent_target target_of(struct agent *agent, pid_t pid)
{
	_cleanup_(agent_targets_release) struct agent_targets targets = {};
	struct agent_target found = {0};

	assert_int_equal(agent_targets(agent, &targets), 0);
	for (size_t i = 0; i < targets.len; i++)
		if (targets.items[i].target.info.id.pid == pid)
			found = targets.items[i];
	found.metrics = NULL;
	return found;
}

static struct agent_health health_of(struct agent *agent)
{
	struct agent_health health;

	agent_health(agent, &health);
	return health;
}

/* How many processes are refused because so many are profiled already. */
static size_t count_refused(struct agent *agent)
{
	_cleanup_(agent_targets_release) struct agent_targets targets = {};
	size_t refused = 0;

	assert_int_equal(agent_targets(agent, &targets), 0);
	for (size_t i = 0; i < targets.len; i++)
		refused += targets.items[i].sources[0].answer.cause == ERR_CAUSE_LIMIT;
	return refused;
}

static void target_that_hangs_does_not_delay_others_and_is_shown(void **state)
{
	struct fake_process p = {.pid = 10, .start_ticks = 1, .hangs = true};
	struct fake_process q = {.pid = 11, .start_ticks = 1};
	struct agent *agent;

	(void)state;
	machine_add(&p);
	machine_add(&q);
	agent = start();
	assert_true(reaches(&q.writes, 2));
	/* The other is read ten times more while the first does not answer once. */
	wait_writes(&q, 10);
	assert_int_equal(p.writes, 0);
	assert_true(EVENTUALLY(target_of(agent, 10).sources[0].slow));
	assert_non_null(strstr(target_of(agent, 10).sources[0].trouble, "not responding"));
	assert_true(EVENTUALLY(!target_of(agent, 11).sources[0].slow));
	machine_lock();
	p.hangs = false;
	machine_unlock();
	assert_true(reaches(&p.writes, 3));
	assert_true(EVENTUALLY(!target_of(agent, 10).sources[0].slow));
	stop(agent);
}

/* Inside an exec, for one. */
static void target_that_is_silent_stays_and_delays_nobody(void **state)
{
	struct fake_process p = {.pid = 10, .start_ticks = 1};
	struct fake_process late = {.pid = 11, .start_ticks = 1, .silent = true};
	struct fake_process q = {.pid = 12, .start_ticks = 1};
	struct agent *agent;

	(void)state;
	machine_add(&p);
	machine_add(&late);
	machine_add(&q);
	agent = start();
	assert_true(reaches(&p.writes, 2));
	machine_lock();
	p.silent = true;
	machine_unlock();
	wait_writes(&q, 5);
	/* Neither is taken for one that has ended, nor for one that is there. */
	assert_int_equal(p.opens, 1);
	assert_int_equal(late.probes, 0);
	/* It comes out as another program; the other one is found. */
	machine_lock();
	p.silent = late.silent = false;
	p.space = 1;
	machine_unlock();
	assert_true(reaches(&p.opens, 2));
	assert_true(reaches(&late.writes, 2));
	stop(agent);
}

/* It was found, and is silent when it is examined. */
static void target_that_is_silent_says_so(void **state)
{
	struct fake_process p = {.pid = 10, .start_ticks = 1, .is_mute = true};
	struct fake_process q = {.pid = 11, .start_ticks = 1};
	struct agent *agent;

	(void)state;
	machine_add(&p);
	machine_add(&q);
	agent = start();
	assert_true(reaches(&q.writes, 3));
	assert_true(EVENTUALLY(
		strstr(target_of(agent, 10).sources[0].answer.reason, "not responding")));
	assert_int_equal(p.probes, 0);
	machine_lock();
	p.is_mute = false;
	p.space = 1;
	machine_unlock();
	assert_true(reaches(&p.writes, 1));
	stop(agent);
}

/* At the start all wait until those that are there have their names, but not for those to come. */
static void processes_that_come_all_the_time_do_not_delay_the_first_records(void **state)
{
	struct fake_process p = {.pid = 10, .start_ticks = 1}, more[FAKE_COMING];
	struct agent *agent;
	size_t n = 0;

	(void)state;
	machine_add(&p);
	agent = start();
	for (; n < ARRAY_SIZE(more) && !has_writes(&p); n++) {
		more[n] = (struct fake_process){
			.pid = (pid_t)(100 + n), .start_ticks = 1, .hides = true};
		machine_add(&more[n]);
		clock_sleep_ns(500 * NS_PER_MS);
	}
	assert_true(has_writes(&p));
	machine_lock();
	for (size_t i = 0; i < n; i++)
		more[i].hides = false;
	machine_unlock();
	stop(agent);
}

/* In a process of its own: what a thread that hangs may still use is left behind on purpose. */
static void agent_stops_while_a_target_hangs(void **state)
{
	static struct fake_process p = {.pid = 10, .start_ticks = 1, .hangs = true};
	struct agent *agent;
	int status;
	pid_t child;

	(void)state;
	machine_add(&p);
	child = fork();
	assert_true(child >= 0);
	if (child > 0) {
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 0);
		return;
	}
	agent = start();
	if (!reaches(&p.opens, 1))
		_exit(1);
	agent_stop(agent);
	/* The thread comes back to what it was given, which is still there. */
	machine_lock();
	p.hangs = false;
	machine_unlock();
	clock_sleep_ns(100 * NS_PER_MS);
	_exit(0);
}

static void *stop_in_thread(void *agent)
{
	agent_stop(agent);
	return NULL;
}

/* After the loop has given up, while a sink still takes its time. */
static void what_comes_back_at_the_very_end_is_closed(void **state)
{
	struct fake_process p = {.pid = 10, .start_ticks = 1};
	struct agent *agent;
	uint64_t readings;
	pthread_t thread;

	(void)state;
	machine_add(&p);
	agent = start();
	assert_true(reaches(&p.writes, 1));
	set_flag(&p.hangs, true);
	set_flag(&machine.sink_hangs, true);
	assert_true(EVENTUALLY(health_of(agent).intervals > 3));
	assert_int_equal(pthread_create(&thread, NULL, stop_in_thread, agent), 0);
	/* On a slow machine it comes back sooner, and is closed as usual. */
	clock_sleep_ns(8 * NS_PER_SEC);
	machine_lock();
	readings = p.readings;
	p.hangs = false;
	machine_unlock();
	assert_true(reaches(&p.readings, readings + 1));
	clock_sleep_ns(500 * NS_PER_MS);
	set_flag(&machine.sink_hangs, false);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(machine.open, 0);
}

static void process_that_opts_out_is_not_touched_and_says_why(void **state)
{
	struct fake_process p = {.pid = 10, .start_ticks = 1, .opted_out = true};
	struct fake_process q = {.pid = 11, .start_ticks = 1};
	struct agent *agent;

	(void)state;
	machine_add(&p);
	machine_add(&q);
	agent = start();
	assert_true(reaches(&q.writes, 3));
	assert_true(
		EVENTUALLY(target_of(agent, 10).sources[0].answer.cause == ERR_CAUSE_OPTED_OUT));
	assert_false(target_of(agent, 10).sources[0].answer.yes);
	assert_int_equal(p.probes, 0);
	assert_true(target_of(agent, 11).sources[0].answer.yes);
	assert_string_equal(target_of(agent, 11).target.runtime, "fake1.0");
	stop(agent);
}

static void target_that_vanishes_is_forgotten(void **state)
{
	struct fake_process p = {.pid = 10, .start_ticks = 1};
	struct fake_process q = {.pid = 11, .start_ticks = 1};
	struct agent *agent;

	(void)state;
	machine_add(&p);
	machine_add(&q);
	agent = start();
	assert_true(reaches(&p.writes, 2));
	machine_lock();
	p.vanishes = true; /* in the middle of a collection */
	machine_unlock();
	assert_true(EVENTUALLY(health_of(agent).targets == 1));
	assert_true(EVENTUALLY(health_of(agent).profiled == 1));
	assert_int_equal(target_of(agent, 10).target.info.id.pid, 0);
	wait_writes(&q, 3);
	stop(agent);
}

static void readings_of_an_interval_have_one_time(void **state)
{
	struct fake_process p[20];
	struct agent *agent;

	(void)state;
	for (int i = 0; i < 20; i++) {
		p[i] = (struct fake_process){.pid = 10 + i, .start_ticks = 1};
		machine_add(&p[i]);
	}
	agent = start();
	for (int i = 0; i < 20; i++)
		assert_true(reaches(&p[i].writes, 5));
	stop(agent);
	for (int i = 0; i < 20; i++) {
		assert_false(p[i].repeated);
		assert_false(p[i].odd);
		/* At most one reading for each interval; a busy machine may miss some. */
		assert_true((p[i].last_stamp - p[i].first_stamp) / (int64_t)FAKE_INTERVAL_NS >=
			    (int64_t)p[i].writes - 1);
	}
}

static void sink_that_fails_is_said_and_recovers(void **state)
{
	struct fake_process p = {.pid = 10, .start_ticks = 1};
	struct agent *agent;

	(void)state;
	machine_add(&p);
	machine.sink_fails = true;
	agent = start();
	assert_true(EVENTUALLY(strcmp(health_of(agent).trouble, "the disk is full") == 0));
	assert_true(EVENTUALLY(health_of(agent).write_failures >= 2));
	machine_lock();
	machine.sink_fails = false;
	machine_unlock();
	assert_true(EVENTUALLY(health_of(agent).trouble[0] == 0));
	stop(agent);
}

static void thousands_of_processes_are_found_and_the_number_profiled_is_bounded(void **state)
{
	const size_t n = AGENT_MAX_PROFILED + 100;
	struct fake_process *p = calloc(n, sizeof(*p));
	struct agent *agent;

	(void)state;
	assert_non_null(p);
	for (size_t i = 0; i < n; i++) {
		p[i] = (struct fake_process){.pid = 10 + (pid_t)i, .start_ticks = 1};
		machine_add(&p[i]);
	}
	agent = start();
	for (size_t i = 0; i < n; i++)
		assert_true(reaches(&p[i].probes, 1));
	assert_true(EVENTUALLY(health_of(agent).profiled == AGENT_MAX_PROFILED));
	assert_true(EVENTUALLY(count_refused(agent) == 100));
	assert_int_equal(health_of(agent).targets, n);
	stop(agent);
	free(p);
}

static void delay_is_told_while_it_lasts(void **state)
{
	struct agent *agent = start();

	(void)state;
	assert_true(EVENTUALLY(health_of(agent).intervals >= 2));
	set_flag(&machine.stalls, true);
	assert_true(EVENTUALLY(health_of(agent).lag_ns > (int64_t)NS_PER_SEC));
	assert_true(EVENTUALLY(strstr(health_of(agent).trouble, "collection is ")));
	set_flag(&machine.stalls, false);
	assert_true(EVENTUALLY(!health_of(agent).trouble[0]));
	assert_true(EVENTUALLY(health_of(agent).lag_ns < (int64_t)NS_PER_SEC));
	stop(agent);
}

static int64_t locked(const int64_t *value)
{
	int64_t now;

	machine_lock();
	now = *value;
	machine_unlock();
	return now;
}

static void what_comes_late_belongs_to_all_its_intervals(void **state)
{
	struct fake_process p = {.pid = 10, .start_ticks = 1};
	struct agent *agent;
	int64_t before;

	(void)state;
	machine_add(&p);
	agent = start();
	assert_true(reaches(&p.writes, 2));
	set_flag(&machine.stalls, true);
	assert_true(EVENTUALLY(health_of(agent).lag_ns > (int64_t)NS_PER_SEC));
	before = locked(&p.last_stamp);
	machine_lock();
	p.allocated += 1000000;
	machine_unlock();
	set_flag(&machine.stalls, false);
	assert_true(EVENTUALLY(locked(&p.written) == 1000000));
	/* At least ten intervals. */
	assert_true(locked(&p.most) <= 1000000 / 10 + 1);
	assert_true(locked(&p.last_stamp) - before > (int64_t)NS_PER_SEC);
	assert_false(p.repeated);
	assert_false(p.odd);
	stop(agent);
}

/* The loop takes it in the interval in which it was held up, but it is of the end of that. */
static void what_is_read_while_the_loop_is_late_is_not_of_before(void **state)
{
	struct fake_process p = {.pid = 10, .start_ticks = 1};
	struct agent *agent;
	uint64_t intervals, readings;

	(void)state;
	machine_add(&p);
	agent = start();
	assert_true(reaches(&p.writes, 2));
	set_flag(&p.hangs, true);
	intervals = health_of(agent).intervals;
	assert_true(EVENTUALLY(health_of(agent).intervals >= intervals + 2));
	set_flag(&machine.stalls, true);
	assert_true(EVENTUALLY(health_of(agent).lag_ns > (int64_t)NS_PER_SEC));
	machine_lock();
	p.allocated += 1000000;
	readings = p.readings;
	machine_unlock();
	set_flag(&p.hangs, false);
	assert_true(reaches(&p.readings, readings + 1));
	set_flag(&machine.stalls, false);
	assert_true(EVENTUALLY(locked(&p.written) == 1000000));
	assert_true(locked(&p.most) <= 1000000 / 10 + 1);
	assert_false(p.repeated);
	assert_false(p.odd);
	stop(agent);
}

static void every_interval_has_a_heartbeat(void **state)
{
	struct agent *agent = start();

	(void)state;
	assert_true(reaches(&machine.own, 5));
	assert_false(machine.own_repeated);
	assert_true(machine.own_stamp % (int64_t)FAKE_INTERVAL_NS == 0);
	stop(agent);
}

/* As one does while it packs. */
static void sink_that_hangs_delays_no_collection(void **state)
{
	struct fake_process p = {.pid = 10, .start_ticks = 1};
	struct agent *agent;
	uint64_t collections, intervals;

	(void)state;
	machine_add(&p);
	agent = start();
	assert_true(reaches(&p.writes, 2));
	set_flag(&machine.sink_hangs, true);
	collections = health_of(agent).collections;
	intervals = health_of(agent).intervals;
	assert_true(EVENTUALLY(health_of(agent).collections >= collections + 10));
	/* Each of them is of its own interval, and none was skipped for the sink. */
	assert_true(health_of(agent).intervals >= intervals + 9);
	set_flag(&machine.sink_hangs, false);
	wait_writes(&p, 10);
	assert_false(p.repeated);
	stop(agent);
}

static void names_that_could_not_be_saved_are_saved_later(void **state)
{
	static struct fake_process p = {.pid = 10, .start_ticks = 1};
	char dir[] = "/tmp/sonde-test-names-XXXXXX", path[64];
	struct agent_config config = {.interval_ns = FAKE_INTERVAL_NS, .state_dir = dir};
	struct agent *agent;

	(void)state;
	assert_non_null(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/services", dir);
	/* No file can take its place. */
	assert_int_equal(mkdir(path, 0700), 0);
	machine_add(&p);
	agent = start_with(&config);
	wait_writes(&p, 1);
	assert_true(agent_save_names(agent, NULL) < 0);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(agent_save_names(agent, NULL), 0);
	assert_int_equal(access(path, R_OK), 0);
	stop(agent);
	assert_int_equal(unlink(path), 0);
	(void)rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(first_reading_is_a_baseline_and_later_ones_are_deltas,
				       setup),
		cmocka_unit_test_setup(exec_begins_with_a_new_baseline, setup),
		cmocka_unit_test_setup(exec_of_what_was_refused_is_looked_at_again, setup),
		cmocka_unit_test_setup(exec_of_what_was_refused_is_noticed_by_a_scan, setup),
		cmocka_unit_test_setup(processes_are_listed_when_some_came_or_went, setup),
		cmocka_unit_test_setup(pid_that_is_reused_begins_with_a_baseline, setup),
		cmocka_unit_test_setup(target_that_hangs_does_not_delay_others_and_is_shown, setup),
		cmocka_unit_test_setup(target_that_is_silent_stays_and_delays_nobody, setup),
		cmocka_unit_test_setup(target_that_is_silent_says_so, setup),
		cmocka_unit_test_setup(process_that_opts_out_is_not_touched_and_says_why, setup),
		cmocka_unit_test_setup(target_that_vanishes_is_forgotten, setup),
		cmocka_unit_test_setup(readings_of_an_interval_have_one_time, setup),
		cmocka_unit_test_setup(sink_that_fails_is_said_and_recovers, setup),
		cmocka_unit_test_setup(
			thousands_of_processes_are_found_and_the_number_profiled_is_bounded, setup),
		cmocka_unit_test_setup(delay_is_told_while_it_lasts, setup),
		cmocka_unit_test_setup(what_comes_late_belongs_to_all_its_intervals, setup),
		cmocka_unit_test_setup(what_is_read_while_the_loop_is_late_is_not_of_before, setup),
		cmocka_unit_test_setup(every_interval_has_a_heartbeat, setup),
		cmocka_unit_test_setup(names_that_could_not_be_saved_are_saved_later, setup),
		cmocka_unit_test_setup(sink_that_hangs_delays_no_collection, setup),
		cmocka_unit_test_setup(
			processes_that_come_all_the_time_do_not_delay_the_first_records, setup),
		cmocka_unit_test_setup(what_comes_back_at_the_very_end_is_closed, setup),
		cmocka_unit_test_setup(agent_stops_while_a_target_hangs, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
