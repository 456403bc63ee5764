/*
 * src/server/gate.h: so many heavy questions at a time; a few more wait a little, the rest is asked
 * to come back. The light ones pass by.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>

struct gate {
	pthread_mutex_t lock;
	pthread_cond_t left;
	unsigned int inside;
	unsigned int waiting;
	unsigned int max_inside;
	unsigned int max_waiting;
};

void gate_init(struct gate *g, unsigned int max_inside, unsigned int max_waiting);
void gate_release(struct gate *g);
/* False when it stayed full for so long; else gate_leave() must follow. */
bool gate_enter(struct gate *g, unsigned int timeout_ms);
void gate_leave(struct gate *g);
