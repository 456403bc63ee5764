/*
 * src/server/gate.h: limits concurrent heavy requests. A few more wait briefly; the rest are told
 * to retry. Light requests are not limited.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>

struct server_gate {
	pthread_mutex_t lock;
	pthread_cond_t left;
	unsigned int inside;
	unsigned int waiting;
	unsigned int max_inside;
	unsigned int max_waiting;
};

void server_gate_init(struct server_gate *g, unsigned int max_inside, unsigned int max_waiting);
void server_gate_release(struct server_gate *g);
/* False if it stayed full; otherwise call server_gate_leave() afterwards. */
bool server_gate_enter(struct server_gate *g, unsigned int timeout_ms);
void server_gate_leave(struct server_gate *g);
