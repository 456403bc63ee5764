/*
 * src/pipeline/outbox/queue.h: the records waiting in an outbox, and the flushes between them.
 *
 * A flush is a number on the last record before it. So requesting one needs no memory, and dropped
 * records leave their flush behind. Not thread-safe.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "pipeline/record.h"

struct outbox_node {
	struct outbox_node *next;
	struct record *record; /* counted */
	size_t bytes;
	uint64_t queued_ns;
	uint64_t flush; /* the flush after it; 0: none */
};

/* Empty if zeroed. */
struct outbox_queue {
	struct outbox_node *head;
	struct outbox_node *tail;
	size_t len;
	size_t bytes;
	uint64_t flushes; /* requested so far */
	uint64_t due;	  /* the flush before the head; 0: none */
	bool unflushed;	  /* something was pushed since the last flush */
};

/* NULL if out of memory. */
struct outbox_node *outbox_node_new(struct record *record);
void outbox_nodes_free(struct outbox_node *nodes);

void outbox_queue_push(struct outbox_queue *queue, struct outbox_node *node);
/* A flush after everything queued. */
void outbox_queue_flush(struct outbox_queue *queue);
/*
 * The oldest records, at least one if there is any: up to max_bytes or max_len, or up to a flush,
 * which is then due.
 */
struct outbox_node *outbox_queue_take(struct outbox_queue *queue, size_t max_bytes, size_t max_len,
				      size_t *ret_len);
/* The oldest records, dropped so that the rest fits into max_bytes. */
struct outbox_node *outbox_queue_trim(struct outbox_queue *queue, size_t max_bytes,
				      size_t *ret_len);
