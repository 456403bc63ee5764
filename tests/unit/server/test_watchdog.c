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

static void slow_connections_are_ended_and_others_are_not(void **state)
{
	enum { AT_ONCE, LATER, NEVER, MANY };
	struct server_watchdog_entry *entries[MANY];
	struct server_watchdog *w = NULL;
	struct err err = {};
	int pairs[MANY][2];
	char byte;

	(void)state;
	assert_int_equal(server_watchdog_start(&w, &err), 0);
	for (int i = 0; i < MANY; i++) {
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pairs[i]), 0);
		entries[i] = server_watchdog_add(w, pairs[i][0],
						 i == AT_ONCE ? 0 : SERVER_WATCHDOG_NEVER);
		assert_non_null(entries[i]);
	}
	/* Each waits for as long as it takes. */
	assert_int_equal(recv(pairs[AT_ONCE][1], &byte, 1, 0), 0);
	server_watchdog_set(w, entries[LATER], 0);
	assert_int_equal(recv(pairs[LATER][1], &byte, 1, 0), 0);
	/* Two looks have passed by the third. */
	assert_int_equal(recv(pairs[NEVER][1], &byte, 1, MSG_DONTWAIT), -1);
	assert_int_equal(errno, EAGAIN);
	for (int i = 0; i < MANY; i++) {
		server_watchdog_remove(w, entries[i]);
		close(pairs[i][0]);
		close(pairs[i][1]);
	}
	server_watchdog_stop(w);
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
		cmocka_unit_test(a_full_gate_opens_when_somebody_leaves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
