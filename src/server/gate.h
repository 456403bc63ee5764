/*
 * src/server/gate.h: limits concurrent heavy requests. A few more wait briefly; the rest are told
 * to retry. Light requests are not limited.
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
/* False if it stayed full; otherwise call gate_leave() afterwards. */
bool gate_enter(struct gate *g, unsigned int timeout_ms);
void gate_leave(struct gate *g);
