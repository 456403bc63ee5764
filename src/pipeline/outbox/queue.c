/* src/pipeline/outbox/queue.c: see queue.h. */
#include "pipeline/outbox/queue.h"

#include <stdlib.h>

#include "base/clock.h"

struct outbox_node *outbox_node_new(struct record *record)
{
	struct outbox_node *node = malloc(sizeof(*node));

	if (node)
		*node = (struct outbox_node){.record = record_ref(record),
					     .bytes = record_bytes(record),
					     .queued_ns = clock_mono_ns()};
	return node;
}

void outbox_nodes_free(struct outbox_node *nodes)
{
	while (nodes) {
		struct outbox_node *node = nodes;

		nodes = node->next;
		record_unref(node->record);
		free(node);
	}
}

void outbox_queue_push(struct outbox_queue *q, struct outbox_node *node)
{
	if (q->tail)
		q->tail->next = node;
	else
		q->head = node;
	q->tail = node;
	q->len++;
	q->bytes += node->bytes;
	q->unflushed = true;
}

void outbox_queue_flush(struct outbox_queue *q)
{
	q->flushes++;
	if (q->tail)
		q->tail->flush = q->flushes;
	else
		q->due = q->flushes;
	q->unflushed = false;
}

/* Moves the head to the end of a list. */
static struct outbox_node *queue_shift(struct outbox_queue *q, struct outbox_node *last)
{
	struct outbox_node *node = q->head;

	q->head = node->next;
	if (!q->head)
		q->tail = NULL;
	q->len--;
	q->bytes -= node->bytes;
	if (node->flush)
		q->due = node->flush;
	node->next = NULL;
	if (last)
		last->next = node;
	return node;
}

struct outbox_node *outbox_queue_take(struct outbox_queue *q, size_t max_bytes, size_t max_len,
				      size_t *ret_len)
{
	struct outbox_node *first = q->head, *last = NULL;
	size_t bytes = 0, len = 0;

	while (q->head && bytes < max_bytes && len < max_len && !(last && last->flush)) {
		last = queue_shift(q, last);
		bytes += last->bytes;
		len++;
	}
	*ret_len = len;
	return first;
}

struct outbox_node *outbox_queue_trim(struct outbox_queue *q, size_t max_bytes, size_t *ret_len)
{
	struct outbox_node *first = q->head, *last = NULL;
	size_t len = 0;

	while (q->head && q->bytes > max_bytes) {
		last = queue_shift(q, last);
		len++;
	}
	*ret_len = len;
	return last ? first : NULL;
}
