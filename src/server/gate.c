/* src/server/gate.c: see gate.h. */
#include "server/gate.h"

#include <time.h>

#include "base/clock.h"

void server_gate_init(struct server_gate *g, unsigned int max_inside, unsigned int max_waiting)
{
	pthread_condattr_t attr;

	*g = (struct server_gate){.max_inside = max_inside, .max_waiting = max_waiting};
	(void)pthread_mutex_init(&g->lock, NULL);
	(void)pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&g->left, &attr);
	(void)pthread_condattr_destroy(&attr);
}

void server_gate_release(struct server_gate *g)
{
	(void)pthread_cond_destroy(&g->left);
	(void)pthread_mutex_destroy(&g->lock);
}

bool server_gate_enter(struct server_gate *g, unsigned int timeout_ms)
{
	uint64_t end_ns = clock_mono_ns() + timeout_ms * NS_PER_MS;
	struct timespec end = {.tv_sec = (time_t)(end_ns / NS_PER_SEC),
			       .tv_nsec = (long)(end_ns % NS_PER_SEC)};
	bool entered = false;
	int r = 0;

	(void)pthread_mutex_lock(&g->lock);
	if (g->inside >= g->max_inside && g->waiting < g->max_waiting) {
		g->waiting++;
		while (g->inside >= g->max_inside && r == 0)
			r = pthread_cond_timedwait(&g->left, &g->lock, &end);
		g->waiting--;
	}
	if (g->inside < g->max_inside) {
		g->inside++;
		entered = true;
	}
	(void)pthread_mutex_unlock(&g->lock);
	return entered;
}

void server_gate_leave(struct server_gate *g)
{
	(void)pthread_mutex_lock(&g->lock);
	g->inside--;
	(void)pthread_cond_signal(&g->left);
	(void)pthread_mutex_unlock(&g->lock);
}
