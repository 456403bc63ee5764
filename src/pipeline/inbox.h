/*
 * src/pipeline/inbox.h: what was collected, on its way to the loop, which writes it.
 *
 * Sources that are asked know their target; those that push (the sampler, the OOM watch) name the
 * process as well as they can, and the loop finds out whose it is.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>

#include "pipeline/record.h"
#include "proc/info.h"

struct delivery {
	struct delivery *next;
	const struct resource *resource; /* NULL: by info, as soon as it was looked at */
	struct proc_info info;
	struct record_time when;
	struct record *record;
	bool urgent; /* it is to be safe at once: what killed its program may kill us next */
};

/* Takes the record over; NULL without memory, and then the record is gone. */
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
struct delivery *delivery_list_pop(struct delivery_list *list); /* NULL: it is empty */
/* Moves all of them to the end of another one. */
void delivery_list_move(struct delivery_list *from, struct delivery_list *to);

/* A list that several threads put into, and one takes from. */
struct inbox {
	pthread_mutex_t lock;
	struct delivery_list list;
	void (*on_news)(void *context); /* called in the thread that puts */
	void *context;
};
int inbox_init(struct inbox *inbox, void (*on_news)(void *context), void *context);
void inbox_release(struct inbox *inbox);
/* Takes all of the list over, in one piece. */
void inbox_put(struct inbox *inbox, struct delivery_list *list);
/* Moves all that is there to the end of a list. */
void inbox_take(struct inbox *inbox, struct delivery_list *list);
