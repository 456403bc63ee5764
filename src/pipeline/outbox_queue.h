/*
 * src/pipeline/outbox_queue.h: the records that wait in an outbox, and where among them a flush is.
 *
 * A flush is a number on the last record before it, so that asking for one needs no memory, and
 * records that are dropped leave their flush behind. Not safe from several threads.
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
	uint64_t flush; /* the flush that comes after it; 0: none */
};

/* Zeroed it is empty. */
struct outbox_queue {
	struct outbox_node *head;
	struct outbox_node *tail;
	size_t len;
	size_t bytes;
	uint64_t flushes; /* asked for so far */
	uint64_t due;	  /* the flush that comes before the head; 0: none */
	bool unflushed;	  /* something was pushed after the last flush */
};

/* NULL without memory. */
struct outbox_node *outbox_node_new(struct record *record);
void outbox_nodes_free(struct outbox_node *nodes);

void outbox_queue_push(struct outbox_queue *queue, struct outbox_node *node);
/* A flush after all that is there. */
void outbox_queue_flush(struct outbox_queue *queue);
/*
 * The oldest records, at least one if there is any: until they have max_bytes or are max_len, or up
 * to a flush, which is due then.
 */
struct outbox_node *outbox_queue_take(struct outbox_queue *queue, size_t max_bytes, size_t max_len,
				      size_t *ret_len);
/* The oldest ones that must go for the rest to have max_bytes. */
struct outbox_node *outbox_queue_trim(struct outbox_queue *queue, size_t max_bytes,
				      size_t *ret_len);
