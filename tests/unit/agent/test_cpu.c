/*
 * tests/unit/agent/test_cpu.c: a sampler's thread that hangs. It is made to hang where it can be
 * from outside, in what it calls when something is ready. Needs root and BPF; skipped without.
 */
#include <dirent.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/sources/cpu.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "cpu_possible.h"

#define ROUNDS 36000 /* naps */
#define SECOND_NS 1000000000

struct gate {
	struct inbox inbox;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool closed;
	unsigned int calls;   /* that came to the gate */
	unsigned int waiting; /* and have not gone on */
};

static void gate_pass(void *context)
{
	struct gate *g = context;

	(void)pthread_mutex_lock(&g->lock);
	g->calls++;
	g->waiting++;
	(void)pthread_cond_broadcast(&g->changed);
	while (g->closed)
		(void)pthread_cond_wait(&g->changed, &g->lock);
	g->waiting--;
	(void)pthread_cond_broadcast(&g->changed);
	(void)pthread_mutex_unlock(&g->lock);
}

static void gate_init(struct gate *g, bool closed)
{
	*g = (struct gate){.closed = closed};
	assert_int_equal(inbox_init(&g->inbox, gate_pass, g), 0);
	assert_int_equal(pthread_mutex_init(&g->lock, NULL), 0);
	assert_int_equal(pthread_cond_init(&g->changed, NULL), 0);
}

static void gate_wait_for_caller(struct gate *g)
{
	(void)pthread_mutex_lock(&g->lock);
	while (!g->waiting)
		(void)pthread_cond_wait(&g->changed, &g->lock);
	(void)pthread_mutex_unlock(&g->lock);
}

static void gate_set(struct gate *g, bool closed)
{
	(void)pthread_mutex_lock(&g->lock);
	g->closed = closed;
	(void)pthread_cond_broadcast(&g->changed);
	(void)pthread_mutex_unlock(&g->lock);
}

static void gate_open(struct gate *g)
{
	gate_set(g, false);
}

static void hear_exec(void *context)
{
	(void)context;
}

static void ask(struct agent_cpu *c, int64_t time_ns)
{
	agent_cpu_ask(c, (struct record_time){.time_ns = time_ns, .duration_ns = SECOND_NS});
}

static struct agent_cpu *start_at(struct gate *g, unsigned int hz, uint64_t interval_ns)
{
	const struct agent_cpu_config config = {
		.hz = hz, .interval_ns = interval_ns, .on_exec = hear_exec};
	struct agent_cpu *c = NULL;
	struct err err = {0};

	if (agent_cpu_start(&config, &g->inbox, &c, &err) < 0)
		fail_msg("%s", err.text);
	return c;
}

static struct agent_cpu *start_every(struct gate *g, uint64_t interval_ns)
{
	return start_at(g, 49, interval_ns);
}

static struct agent_cpu *start(struct gate *g)
{
	return start_every(g, 0);
}

static bool has_trouble(struct agent_cpu *c, const char *text)
{
	struct agent_cpu_health health;

	agent_cpu_health(c, &health);
	return text ? strstr(health.trouble, text) != NULL : health.trouble[0] != 0;
}

static void nap(void)
{
	(void)nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
}

static void sampler_that_hangs_is_told_and_nobody_waits_for_it(void **state)
{
	struct agent_cpu *c;
	struct gate gate;

	(void)state;
	gate_init(&gate, true);
	c = start(&gate);
	ask(c, SECOND_NS);
	gate_wait_for_caller(&gate);
	assert_false(has_trouble(c, NULL));
	ask(c, 2L * SECOND_NS);
	ask(c, 3L * SECOND_NS);
	assert_false(has_trouble(c, NULL));
	ask(c, 4L * SECOND_NS);
	assert_true(has_trouble(c, "sampler thread is stuck"));
	/* It may be on its way there. */
	for (int i = 0; i < ROUNDS && !has_trouble(c, "futex"); i++)
		nap();
	assert_true(has_trouble(c, "futex"));
	assert_false(agent_cpu_is_idle(c));

	gate_open(&gate);
	for (int i = 0; i < ROUNDS && has_trouble(c, NULL); i++)
		nap();
	assert_false(has_trouble(c, NULL));
	agent_cpu_stop(c);
	inbox_release(&gate.inbox);
}

/* Values of the metric in what was delivered, by time; their number. */
static size_t find_metric(const struct delivery_list *list, enum metric_id id, int64_t *times,
			  double *values, size_t max)
{
	size_t n = 0;

	for (const struct delivery *d = list->first; d; d = d->next) {
		const struct record *r = d->record;

		for (size_t i = 0; r->kind == RECORD_METRICS && i < r->metrics->len; i++) {
			const struct metric_point *p = &r->metrics->points[i];

			if (p->metric != &registry_metrics[id] || n == max)
				continue;
			times[n] = d->when.time_ns;
			values[n++] = p->increase;
		}
	}
	return n;
}

static double burn(uint64_t ns)
{
	uint64_t end = clock_mono_ns() + ns;
	volatile double x = 1;

	while (clock_mono_ns() < end)
		for (int i = 0; i < 1000; i++)
			x = x * 1.0000001;
	return x;
}

static void late_samples_are_spread_and_said_to_be(void **state)
{
	enum { PARTS = 5, MANY = 4096 };
	static int64_t times[MANY];
	static double values[MANY];
	double sums[PARTS + 1] = {0}, all = 0;
	struct delivery_list mail;
	struct agent_cpu *c;
	struct gate gate;
	size_t n;

	(void)state;
	gate_init(&gate, false);
	delivery_list_init(&mail);
	c = start_every(&gate, SECOND_NS);
	(void)burn(NS_PER_SEC);
	agent_cpu_ask(c, (struct record_time){.time_ns = 100L * SECOND_NS,
					      .duration_ns = PARTS * (int64_t)SECOND_NS});
	for (int i = 0; i < ROUNDS && !agent_cpu_is_idle(c); i++)
		nap();
	inbox_take(&gate.inbox, &mail);

	n = find_metric(&mail, METRIC_SONDE_COVERED, times, values, MANY);
	assert_int_equal(n, PARTS);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(times[i], (100L - PARTS + 1 + (long)i) * SECOND_NS);
		assert_true(values[i] == SECOND_NS);
	}
	assert_int_equal(find_metric(&mail, METRIC_SONDE_SPREAD, times, values, MANY), PARTS);
	n = find_metric(&mail, METRIC_PROCESS_CPU_TIME, times, values, MANY);
	assert_true(n > 0 && n < MANY);
	for (size_t i = 0; i < n; i++) {
		size_t part = (size_t)(times[i] / SECOND_NS - 100 + PARTS - 1);

		assert_true(part < PARTS);
		sums[part] += values[i];
		all += values[i];
	}
	/* At least what we burned here; a fifth of it in each. */
	assert_true(all > 0.3 * SECOND_NS);
	for (size_t i = 0; i < PARTS; i++)
		assert_true(sums[i] > all / PARTS * 0.9 && sums[i] < all / PARTS * 1.1);

	delivery_list_release(&mail);
	ask(c, 101L * SECOND_NS);
	for (int i = 0; i < ROUNDS && !agent_cpu_is_idle(c); i++)
		nap();
	inbox_take(&gate.inbox, &mail);
	assert_int_equal(find_metric(&mail, METRIC_SONDE_COVERED, times, values, MANY), 1);
	assert_int_equal(find_metric(&mail, METRIC_SONDE_SPREAD, times, values, MANY), 0);
	agent_cpu_stop(c);
	delivery_list_release(&mail);
	inbox_release(&gate.inbox);
}

/* Spins below a stack that is as good as never the same twice: the walk takes a turn for each bit.
 */
static __attribute__((noinline)) uint64_t spin_below(unsigned int depth, uint64_t random)
{
	volatile uint64_t sum = 0;

	if (depth == 0)
		for (int i = 0; i < 10000; i++)
			sum += random;
	else if (random >> depth % 64 & 1)
		sum = spin_below(depth - 1, random) + 1;
	else
		sum = spin_below(depth - 1, random) + 2;
	return sum;
}

static void burn_in_many_stacks(uint64_t ns)
{
	uint64_t end = clock_cpu_ns() + ns, random = 88172645463325252;

	while (clock_cpu_ns() < end) {
		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		(void)spin_below(400, random);
	}
}

static void take_at(struct agent_cpu *c, struct gate *g, int64_t time_ns,
		    struct delivery_list *ret_mail)
{
	ask(c, time_ns);
	for (int i = 0; i < ROUNDS && !agent_cpu_is_idle(c); i++)
		nap();
	inbox_take(&g->inbox, ret_mail);
}

static void time_whose_samples_were_lost_is_not_covered(void **state)
{
	enum { MANY = 4096 };
	static int64_t times[MANY];
	static double values[MANY];
	struct delivery_list mail;
	struct agent_cpu *c;
	struct gate gate;
	size_t n, later = 0;

	(void)state;
	gate_init(&gate, false);
	delivery_list_init(&mail);
	c = start_at(&gate, 499, SECOND_NS);
	/* So that its code is known. */
	burn_in_many_stacks(NS_PER_SEC / 4);
	take_at(c, &gate, 100L * SECOND_NS, &mail);
	delivery_list_release(&mail);

	gate_set(&gate, true);
	ask(c, 101L * SECOND_NS);
	gate_wait_for_caller(&gate);
	/* Nobody reads these. */
	burn_in_many_stacks(2 * NS_PER_SEC);
	gate_open(&gate);
	take_at(c, &gate, 102L * SECOND_NS, &mail);
	assert_true(has_trouble(c, "CPU samples were lost"));
	n = find_metric(&mail, METRIC_SONDE_COVERED, times, values, MANY);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(times[i], 101L * SECOND_NS);
	n = find_metric(&mail, METRIC_PROCESS_CPU_TIME, times, values, MANY);
	for (size_t i = 0; i < n; i++)
		later += times[i] == 102L * SECOND_NS;
	assert_true(later > 0);
	delivery_list_release(&mail);

	take_at(c, &gate, 103L * SECOND_NS, &mail);
	assert_int_equal(find_metric(&mail, METRIC_SONDE_COVERED, times, values, MANY), 1);
	assert_false(has_trouble(c, NULL));
	agent_cpu_stop(c);
	delivery_list_release(&mail);
	inbox_release(&gate.inbox);
}

static size_t count_threads(void)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *entry;
	size_t n = 0;

	assert_non_null(dir);
	while ((entry = readdir(dir)))
		n += entry->d_name[0] != '.';
	closedir(dir);
	return n;
}

static void stop_leaves_a_thread_behind_that_hangs(void **state)
{
	size_t before = count_threads();
	struct agent_cpu *c;
	struct gate gate;

	(void)state;
	gate_init(&gate, true);
	c = start(&gate);
	ask(c, SECOND_NS);
	gate_wait_for_caller(&gate);
	agent_cpu_stop(c);
	assert_int_equal(count_threads(), before + 1);

	/* Once it comes back it ends, without a word. */
	gate_open(&gate);
	for (int i = 0; i < ROUNDS && count_threads() > before; i++)
		nap();
	assert_int_equal(count_threads(), before);
	assert_int_equal(gate.calls, 1);
	inbox_release(&gate.inbox);
}

struct stopper {
	struct agent_cpu *cpu;
	struct gate *gate;
	_Atomic pid_t tid;
	atomic_bool is_back;
	unsigned int waiting; /* at the gate, when it was back */
};

static void *stop_in_thread(void *arg)
{
	struct stopper *s = arg;

	s->tid = gettid();
	agent_cpu_stop(s->cpu);
	(void)pthread_mutex_lock(&s->gate->lock);
	s->waiting = s->gate->waiting;
	(void)pthread_mutex_unlock(&s->gate->lock);
	s->is_back = true;
	return NULL;
}

/* What the thread waits for in the kernel: the address in its call of futex(2); 0: for nothing. */
static unsigned long waits_for(pid_t tid)
{
	_cleanup_fclose_ FILE *f = NULL;
	unsigned long number = 0, addr = 0;
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", (int)tid);
	f = fopen(path, "re");
	if (!f || fscanf(f, "%lu 0x%lx", &number, &addr) != 2 || number != SYS_futex)
		return 0;
	return addr;
}

/* Its patience is over: it has waited for the thread's end, and now waits for its call. */
static void wait_for_second_wait(struct stopper *s)
{
	unsigned long first = 0, now = 0;

	while (!s->is_back && (!now || now == first)) {
		now = s->tid ? waits_for(s->tid) : 0;
		first = first ? first : now;
		nap();
	}
}

/* It has the agent in its hands: that must not go before it is back. */
static void stop_waits_for_a_thread_that_is_calling_us(void **state)
{
	struct stopper s = {};
	pthread_t stopper;
	struct gate gate;

	(void)state;
	gate_init(&gate, true);
	s.gate = &gate;
	s.cpu = start(&gate);
	ask(s.cpu, SECOND_NS);
	gate_wait_for_caller(&gate);
	assert_int_equal(pthread_create(&stopper, NULL, stop_in_thread, &s), 0);
	wait_for_second_wait(&s);
	gate_open(&gate);
	assert_int_equal(pthread_join(stopper, NULL), 0);
	assert_int_equal(s.waiting, 0);
	inbox_release(&gate.inbox);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sampler_that_hangs_is_told_and_nobody_waits_for_it),
		cmocka_unit_test(late_samples_are_spread_and_said_to_be),
		cmocka_unit_test(time_whose_samples_were_lost_is_not_covered),
		cmocka_unit_test(stop_leaves_a_thread_behind_that_hangs),
		cmocka_unit_test(stop_waits_for_a_thread_that_is_calling_us),
	};

	if (!cpu_is_possible())
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
