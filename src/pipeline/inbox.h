/*
 * src/pipeline/inbox.h: collected records on their way to the loop, which writes them.
 *
 * Sources that are asked know their target. Those that push (the sampler, the OOM watch) identify
 * the process as well as they can; the loop finds its resource.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>

#include "pipeline/record.h"
#include "proc/info.h"

struct delivery {
	struct delivery *next;
	const struct resource *resource; /* NULL: found by info, once the process was examined */
	struct proc_info info;
	struct record_time when;
	struct record *record;
	bool urgent; /* write it at once: what killed the process may kill us next */
};

/* Takes the record, also on failure. NULL if out of memory. */
struct delivery *delivery_new(struct record *record, struct record_time when);
void delivery_free(struct delivery *delivery);

/* First in, first out. */
struct delivery_list {
	struct delivery *first;
	struct delivery **end;
};
void delivery_list_init(struct delivery_list *list);
void delivery_list_release(struct delivery_list *list);
void delivery_list_add(struct delivery_list *list, struct delivery *delivery);
struct delivery *delivery_list_pop(struct delivery_list *list); /* NULL: empty */
/* Appends all of them to another list. */
void delivery_list_move(struct delivery_list *from, struct delivery_list *to);

/* A list with several producers and one consumer. */
struct inbox {
	pthread_mutex_t lock;
	struct delivery_list list;
	void (*on_news)(void *context); /* called by the producer */
	void *context;
};
int inbox_init(struct inbox *inbox, void (*on_news)(void *context), void *context);
void inbox_release(struct inbox *inbox);
/* Takes the whole list at once. */
void inbox_put(struct inbox *inbox, struct delivery_list *list);
/* Moves everything to the end of a list. */
void inbox_take(struct inbox *inbox, struct delivery_list *list);
