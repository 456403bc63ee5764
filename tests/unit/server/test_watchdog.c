/* tests/unit/server/test_watchdog.c: connections that take too long, and the gate. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "server/gate.h"
#include "server/watchdog.h"

struct watched {
	struct server_watchdog *watchdog;
	struct server_watchdog_entry *entries[16];
	int pairs[16][2];
	size_t len;
};

static struct watched watch(struct server_watchdog_config config)
{
	struct watched w = {};
	struct err err = {};

	assert_int_equal(server_watchdog_start(&config, &w.watchdog, &err), 0);
	return w;
}

static void connect_as(struct watched *w, uid_t uid)
{
	int *pair = w->pairs[w->len];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	w->entries[w->len] = server_watchdog_add(w->watchdog, pair[0], uid);
	assert_non_null(w->entries[w->len++]);
	/* Ages are told by the clock. */
	usleep(1000);
}

static bool is_open(const struct watched *w, size_t i)
{
	char byte;

	return recv(w->pairs[i][1], &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

static void unwatch(struct watched *w)
{
	for (size_t i = 0; i < w->len; i++) {
		server_watchdog_remove(w->watchdog, w->entries[i]);
		close(w->pairs[i][0]);
		close(w->pairs[i][1]);
	}
	server_watchdog_stop(w->watchdog);
}

static void slow_connections_are_ended_and_others_are_not(void **state)
{
	struct watched w = watch((struct server_watchdog_config){
		.request_ns = 1, .answer_ns = SERVER_WATCHDOG_NEVER, .max = 16});
	char byte;

	(void)state;
	for (int i = 0; i < 3; i++)
		connect_as(&w, 0);
	server_watchdog_set(w.watchdog, w.entries[1], SERVER_WORKING);
	server_watchdog_set(w.watchdog, w.entries[2], SERVER_ANSWERING);
	/* Each waits for as long as it takes. */
	assert_int_equal(recv(w.pairs[0][1], &byte, 1, 0), 0);
	server_watchdog_set(w.watchdog, w.entries[1], SERVER_READING);
	assert_int_equal(recv(w.pairs[1][1], &byte, 1, 0), 0);
	/* Two looks have passed by the third. */
	assert_true(is_open(&w, 2));
	unwatch(&w);
}

static void a_crowd_must_hurry(void **state)
{
	struct watched w =
		watch((struct server_watchdog_config){.request_ns = SERVER_WATCHDOG_NEVER,
						      .answer_ns = SERVER_WATCHDOG_NEVER,
						      .hurried_ns = 1,
						      .max = 8});
	char byte;

	(void)state;
	for (int i = 0; i < 8; i++)
		connect_as(&w, 0);
	/* One more than seven eighths: they hurry until there are fewer. */
	assert_int_equal(recv(w.pairs[0][1], &byte, 1, 0), 0);
	unwatch(&w);
}

static const struct server_watchdog_config FOUR = {.request_ns = SERVER_WATCHDOG_NEVER,
						   .answer_ns = SERVER_WATCHDOG_NEVER,
						   .hurried_ns = SERVER_WATCHDOG_NEVER,
						   .max = 4};

static void a_new_connection_ends_the_oldest_that_waits(void **state)
{
	struct watched w = watch(FOUR);

	(void)state;
	for (int i = 0; i < 4; i++)
		connect_as(&w, 1);
	server_watchdog_set(w.watchdog, w.entries[0], SERVER_WORKING);
	server_watchdog_set(w.watchdog, w.entries[1], SERVER_ANSWERING);
	connect_as(&w, 1);
	assert_false(is_open(&w, 2));
	connect_as(&w, 1);
	assert_false(is_open(&w, 3));
	server_watchdog_set(w.watchdog, w.entries[4], SERVER_WORKING);
	server_watchdog_set(w.watchdog, w.entries[5], SERVER_WORKING);
	/* Who only has to read its answer goes last; what we work on stays. */
	assert_true(is_open(&w, 1));
	connect_as(&w, 1);
	assert_false(is_open(&w, 1));
	server_watchdog_set(w.watchdog, w.entries[6], SERVER_WORKING);
	connect_as(&w, 1);
	assert_false(is_open(&w, 7));
	assert_true(is_open(&w, 0) && is_open(&w, 4) && is_open(&w, 5) && is_open(&w, 6));
	unwatch(&w);
}

static void who_has_most_connections_loses_them(void **state)
{
	enum { MODEST = 7, GREEDY = 65534 };
	struct watched w = watch(FOUR);

	(void)state;
	connect_as(&w, MODEST);
	for (int i = 0; i < 3; i++)
		connect_as(&w, GREEDY);
	for (int i = 0; i < 6; i++) {
		connect_as(&w, GREEDY);
		assert_false(is_open(&w, (size_t)(1 + i)));
		assert_true(is_open(&w, 0));
	}
	connect_as(&w, MODEST);
	assert_false(is_open(&w, 7));
	assert_true(is_open(&w, 0) && is_open(&w, 8) && is_open(&w, 9) && is_open(&w, 10));
	/* Where we work on all of theirs, the new one of theirs goes, and no one else's. */
	for (int i = 8; i < 10; i++)
		server_watchdog_set(w.watchdog, w.entries[i], SERVER_WORKING);
	server_watchdog_remove(w.watchdog, w.entries[--w.len]);
	close(w.pairs[w.len][0]);
	close(w.pairs[w.len][1]);
	connect_as(&w, GREEDY);
	server_watchdog_set(w.watchdog, w.entries[10], SERVER_WORKING);
	connect_as(&w, GREEDY);
	assert_false(is_open(&w, 11));
	assert_true(is_open(&w, 0));
	unwatch(&w);
}

/* Requests sent ahead keep us at work on each connection. */
static void who_keeps_us_busy_on_all_connections_keeps_nobody_out(void **state)
{
	enum { MODEST = 7, GREEDY = 65534 };
	struct watched w = watch(FOUR);

	(void)state;
	for (int i = 0; i < 4; i++) {
		connect_as(&w, GREEDY);
		server_watchdog_set(w.watchdog, w.entries[i], SERVER_WORKING);
	}
	connect_as(&w, MODEST);
	assert_true(is_open(&w, 4));
	assert_false(is_open(&w, 0));
	/* Nor does one that waits already. */
	connect_as(&w, MODEST);
	assert_true(is_open(&w, 4) && is_open(&w, 5));
	assert_false(is_open(&w, 1));
	connect_as(&w, GREEDY);
	assert_true(is_open(&w, 2) && is_open(&w, 3) && is_open(&w, 4) && is_open(&w, 5));
	assert_false(is_open(&w, 6));
	unwatch(&w);
}

static void what_a_user_holds_is_added_up(void **state)
{
	struct watched w = watch(FOUR);

	(void)state;
	connect_as(&w, 1);
	connect_as(&w, 1);
	connect_as(&w, 2);
	for (int i = 0; i < 3; i++)
		server_watchdog_hold(w.watchdog, w.entries[i], (size_t)10 << i);
	assert_int_equal(server_watchdog_held(w.watchdog, w.entries[0]), 10 + 20);
	assert_int_equal(server_watchdog_held(w.watchdog, w.entries[2]), 40);
	server_watchdog_hold(w.watchdog, w.entries[1], 0);
	assert_int_equal(server_watchdog_held(w.watchdog, w.entries[1]), 10);
	unwatch(&w);
}

struct turn {
	struct watched *w;
	size_t i;
};

static void *wait_for_turn(void *arg)
{
	struct turn *t = arg;

	return server_watchdog_begin_work(t->w->watchdog, t->w->entries[t->i]) ? t : NULL;
}

static void one_user_has_so_many_requests_worked_on_and_others_do_not_wait(void **state)
{
	struct server_watchdog_config config = FOUR;
	struct watched w;
	struct turn turn = {.w = &w, .i = 2};
	pthread_t thread;
	void *got;

	(void)state;
	config.max_working = 2;
	w = watch(config);
	for (int i = 0; i < 3; i++)
		connect_as(&w, 1);
	connect_as(&w, 2);
	assert_true(server_watchdog_begin_work(w.watchdog, w.entries[0]));
	assert_true(server_watchdog_begin_work(w.watchdog, w.entries[1]));
	assert_true(server_watchdog_begin_work(w.watchdog, w.entries[3]));
	/* The third waits for one of the others. */
	assert_int_equal(pthread_create(&thread, NULL, wait_for_turn, &turn), 0);
	usleep(10000);
	server_watchdog_set(w.watchdog, w.entries[0], SERVER_ANSWERING);
	assert_int_equal(pthread_join(thread, &got), 0);
	assert_non_null(got);
	/* Or until it is closed for somebody else. */
	turn.i = 0;
	assert_int_equal(pthread_create(&thread, NULL, wait_for_turn, &turn), 0);
	usleep(10000);
	connect_as(&w, 2);
	assert_int_equal(pthread_join(thread, &got), 0);
	assert_null(got);
	unwatch(&w);
}

static void *enter_and_leave(void *arg)
{
	struct server_gate *g = arg;
	bool entered = server_gate_enter(g, UINT32_MAX);

	if (entered)
		server_gate_leave(g);
	return entered ? g : NULL;
}

static unsigned int waiting_at(struct server_gate *g)
{
	unsigned int waiting;

	(void)pthread_mutex_lock(&g->lock);
	waiting = g->waiting;
	(void)pthread_mutex_unlock(&g->lock);
	return waiting;
}

static void a_full_gate_opens_when_somebody_leaves(void **state)
{
	pthread_t thread;
	struct server_gate g;
	void *entered;

	(void)state;
	server_gate_init(&g, 2, 1);
	assert_true(server_gate_enter(&g, 0));
	assert_true(server_gate_enter(&g, 0));
	assert_false(server_gate_enter(&g, 1));
	assert_int_equal(pthread_create(&thread, NULL, enter_and_leave, &g), 0);
	while (waiting_at(&g) == 0)
		usleep(1000);
	/* One waits already: this one would wait for weeks if it were let to. */
	assert_false(server_gate_enter(&g, UINT32_MAX));
	server_gate_leave(&g);
	assert_int_equal(pthread_join(thread, &entered), 0);
	assert_non_null(entered);
	assert_true(server_gate_enter(&g, 0));
	server_gate_leave(&g);
	server_gate_leave(&g);
	server_gate_release(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slow_connections_are_ended_and_others_are_not),
		cmocka_unit_test(a_crowd_must_hurry),
		cmocka_unit_test(a_new_connection_ends_the_oldest_that_waits),
		cmocka_unit_test(who_has_most_connections_loses_them),
		cmocka_unit_test(who_keeps_us_busy_on_all_connections_keeps_nobody_out),
		cmocka_unit_test(one_user_has_so_many_requests_worked_on_and_others_do_not_wait),
		cmocka_unit_test(what_a_user_holds_is_added_up),
		cmocka_unit_test(a_full_gate_opens_when_somebody_leaves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
