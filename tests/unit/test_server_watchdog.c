/* tests/unit/test_server_watchdog.c: connections that take too long, and the gate. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "server/gate.h"
#include "server/watchdog.h"

static void slow_connections_are_ended_and_others_are_not(void **state)
{
	struct watchdog *w = NULL;
	struct watchdog_entry *slow, *quick;
	struct err err = {""};
	int a[2], b[2];
	struct pollfd p = {.events = POLLIN};
	char byte;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, a), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, b), 0);
	assert_int_equal(watchdog_start(&w, &err), 0);
	slow = watchdog_add(w, a[0], NS_PER_SEC / 10);
	quick = watchdog_add(w, b[0], NS_PER_SEC / 10);
	assert_non_null(slow);
	assert_non_null(quick);
	/* A new request has new time. */
	watchdog_set(w, quick, 100 * NS_PER_SEC);
	p.fd = a[1];
	assert_int_equal(poll(&p, 1, 5000), 1);
	assert_int_equal(recv(a[1], &byte, 1, 0), 0);
	p.fd = b[1];
	assert_int_equal(poll(&p, 1, 1200), 0);
	watchdog_remove(w, slow);
	watchdog_remove(w, quick);
	watchdog_stop(w);
	for (int i = 0; i < 2; i++) {
		close(a[i]);
		close(b[i]);
	}
}

static void a_full_gate_opens_when_somebody_leaves(void **state)
{
	struct gate g;
	uint64_t start;

	(void)state;
	gate_init(&g, 2, 1);
	assert_true(gate_enter(&g, 0));
	assert_true(gate_enter(&g, 0));
	start = clock_mono_ns();
	assert_false(gate_enter(&g, 50));
	assert_true(clock_mono_ns() - start >= 49 * NS_PER_MS);
	gate_leave(&g);
	assert_true(gate_enter(&g, 0));
	gate_leave(&g);
	gate_leave(&g);
	gate_release(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slow_connections_are_ended_and_others_are_not),
		cmocka_unit_test(a_full_gate_opens_when_somebody_leaves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
