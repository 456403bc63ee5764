/* src/pipeline/inbox.c: see inbox.h. */
#include "pipeline/inbox.h"

#include <errno.h>
#include <stdlib.h>

struct delivery *delivery_new(struct record *record, struct record_time when)
{
	struct delivery *d = record ? calloc(1, sizeof(*d)) : NULL;

	if (!d) {
		record_unref(record);
		return NULL;
	}
	d->record = record;
	d->when = when;
	return d;
}

void delivery_free(struct delivery *d)
{
	if (!d)
		return;
	resource_unref(d->resource);
	record_unref(d->record);
	free(d);
}

void delivery_list_init(struct delivery_list *list)
{
	list->first = NULL;
	list->end = &list->first;
}

struct delivery *delivery_list_pop(struct delivery_list *list)
{
	struct delivery *d = list->first;

	if (!d)
		return NULL;
	list->first = d->next;
	if (!list->first)
		list->end = &list->first;
	return d;
}

void delivery_list_release(struct delivery_list *list)
{
	while (list->first)
		delivery_free(delivery_list_pop(list));
}

void delivery_list_add(struct delivery_list *list, struct delivery *d)
{
	d->next = NULL;
	*list->end = d;
	list->end = &d->next;
}

void delivery_list_move(struct delivery_list *from, struct delivery_list *to)
{
	if (!from->first)
		return;
	*to->end = from->first;
	to->end = from->end;
	delivery_list_init(from);
}

int inbox_init(struct inbox *inbox, void (*on_news)(void *context), void *context)
{
	pthread_mutexattr_t attributes;

	/* The OOM watch puts from a real-time thread. */
	(void)pthread_mutexattr_init(&attributes);
	(void)pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
	delivery_list_init(&inbox->list);
	inbox->on_news = on_news;
	inbox->context = context;
	return pthread_mutex_init(&inbox->lock, &attributes) ? -ENOMEM : 0;
}

void inbox_release(struct inbox *inbox)
{
	delivery_list_release(&inbox->list);
	(void)pthread_mutex_destroy(&inbox->lock);
}

void inbox_put(struct inbox *inbox, struct delivery_list *list)
{
	(void)pthread_mutex_lock(&inbox->lock);
	delivery_list_move(list, &inbox->list);
	(void)pthread_mutex_unlock(&inbox->lock);
	inbox->on_news(inbox->context);
}

void inbox_take(struct inbox *inbox, struct delivery_list *list)
{
	(void)pthread_mutex_lock(&inbox->lock);
	delivery_list_move(&inbox->list, list);
	(void)pthread_mutex_unlock(&inbox->lock);
}
