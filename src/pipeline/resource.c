/* src/pipeline/resource.c: see resource.h. */
#include "pipeline/resource.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

struct entry {
	struct resource resource; /* first, as others hold a pointer to it */
	struct resources *table;
	struct entry *next; /* in its slot */
	uint64_t hash;
	/*
	 * Releases the last reference only with the table's lock held, so that nobody finds a dying
	 * entry.
	 */
	atomic_size_t refs;
	struct label labels[]; /* followed by their texts */
};

struct resources {
	pthread_mutex_t lock;
	struct entry **slots;
	size_t n_slots; /* a power of two */
	size_t len;
	size_t max;
};

/* A search key: labels in order, borrowed texts. */
struct wanted {
	struct label labels[RESOURCE_MAX_LABELS];
	size_t n;
	size_t text_bytes;
	const char *service;
	struct proc_id process;
	uid_t uid;
	uint64_t hash;
};

int resources_new(size_t max, struct resources **ret_resources, struct err *err)
{
	_cleanup_free_ struct resources *resources = calloc(1, sizeof(*resources));

	if (!resources)
		return err_oom(err);
	/* Fixed size, so that nobody waits while it grows. */
	resources->n_slots = 16;
	while (resources->n_slots < max && resources->n_slots <= SIZE_MAX / 4)
		resources->n_slots *= 2;
	resources->max = max;
	resources->slots = calloc(resources->n_slots, sizeof(void *));
	if (!resources->slots)
		return err_oom(err);
	(void)pthread_mutex_init(&resources->lock, NULL);
	*ret_resources = TAKE_PTR(resources);
	return 0;
}

void resources_free(struct resources *resources)
{
	if (!resources)
		return;
	for (size_t i = 0; i < resources->n_slots; i++) {
		while (resources->slots[i]) {
			struct entry *e = resources->slots[i];

			resources->slots[i] = e->next;
			free(e);
		}
	}
	(void)pthread_mutex_destroy(&resources->lock);
	free(resources->slots);
	free(resources);
}

/* The slot of the key, or a free one. */
static size_t label_place(const struct label *labels, size_t n, const char *key, bool *ret_found)
{
	size_t from = 0, to = n;

	*ret_found = false;
	while (from < to) {
		size_t middle = from + (to - from) / 2;
		int order = strcmp(labels[middle].key, key);

		if (order == 0) {
			*ret_found = true;
			return middle;
		}
		if (order < 0)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

static int wanted_add(struct wanted *w, const struct label *label, struct err *err)
{
	bool found;
	size_t at;

	if (!label->key[0] || !label->value[0])
		return 0;
	at = label_place(w->labels, w->n, label->key, &found);
	if (!found) {
		if (w->n == RESOURCE_MAX_LABELS)
			return err_set(err, -E2BIG, "a resource has more than %d labels",
				       RESOURCE_MAX_LABELS);
		memmove(&w->labels[at + 1], &w->labels[at], (w->n - at) * sizeof(w->labels[0]));
		w->n++;
	}
	w->labels[at] = *label;
	return 0;
}

static int wanted_make(struct wanted *w, const struct resource *like, struct err *err)
{
	int r = 0;

	w->n = w->text_bytes = 0;
	w->service = NULL;
	w->process = like->process;
	w->uid = like->uid;
	for (size_t i = 0; i < like->n_labels && r == 0; i++)
		r = wanted_add(w, &like->labels[i], err);
	if (r < 0)
		return r;
	w->hash = hash_u64((uint64_t)w->process.pid << 32 | w->uid) ^
		  hash_u64(~w->process.start_ticks);
	for (size_t i = 0; i < w->n; i++) {
		const struct label *label = &w->labels[i];
		size_t key = strlen(label->key), value = strlen(label->value);

		w->text_bytes += key + value + 2;
		w->hash = hash_fold(w->hash ^ hash_bytes(label->key, key),
				    hash_bytes(label->value, value) | 1);
		if (strcmp(label->key, "service.name") == 0)
			w->service = label->value;
	}
	if (!w->service)
		return err_set(err, -EINVAL, "a resource needs a service.name");
	if (w->text_bytes > RESOURCE_MAX_BYTES)
		return err_set(err, -E2BIG, "the labels of %.64s have more than %d bytes",
			       w->service, RESOURCE_MAX_BYTES);
	return 0;
}

static bool entry_is(const struct entry *e, const struct wanted *w)
{
	const struct resource *r = &e->resource;

	if (e->hash != w->hash || r->n_labels != w->n || r->process.pid != w->process.pid ||
	    r->process.start_ticks != w->process.start_ticks || r->uid != w->uid)
		return false;
	for (size_t i = 0; i < w->n; i++)
		if (strcmp(r->labels[i].key, w->labels[i].key) != 0 ||
		    strcmp(r->labels[i].value, w->labels[i].value) != 0)
			return false;
	return true;
}

static struct entry **slot_of(struct resources *resources, uint64_t hash)
{
	return &resources->slots[hash & (resources->n_slots - 1)];
}

/* With a reference; NULL if none. With the lock held. */
static struct entry *entry_find(struct resources *resources, const struct wanted *w)
{
	for (struct entry *e = *slot_of(resources, w->hash); e; e = e->next) {
		if (entry_is(e, w)) {
			(void)atomic_fetch_add_explicit(&e->refs, 1, memory_order_relaxed);
			return e;
		}
	}
	return NULL;
}

static char *text_put(char **at, const char *text)
{
	size_t bytes = strlen(text) + 1;
	char *put = *at;

	memcpy(put, text, bytes);
	*at += bytes;
	return put;
}

static struct entry *entry_new(struct resources *resources, const struct wanted *w)
{
	size_t bytes = sizeof(struct entry) + w->n * sizeof(struct label) + w->text_bytes;
	struct entry *e = malloc(bytes);
	char *at;

	if (!e)
		return NULL;
	at = (char *)&e->labels[w->n];
	*e = (struct entry){
		.resource = {.process = w->process,
			     .uid = w->uid,
			     .n_labels = w->n,
			     .labels = e->labels,
			     .bytes = bytes},
		.table = resources,
		.hash = w->hash,
	};
	atomic_init(&e->refs, 1);
	for (size_t i = 0; i < w->n; i++) {
		e->labels[i].key = text_put(&at, w->labels[i].key);
		e->labels[i].value = text_put(&at, w->labels[i].value);
		if (w->labels[i].value == w->service)
			e->resource.service = e->labels[i].value;
	}
	return e;
}

/* Inserts the new one, unless another thread was faster: then returns that one. NULL if full. */
static struct entry *entry_insert(struct resources *resources, struct entry **new_entry,
				  const struct wanted *w)
{
	struct entry **slot = slot_of(resources, w->hash);
	struct entry *e;

	(void)pthread_mutex_lock(&resources->lock);
	e = entry_find(resources, w);
	if (!e && resources->len < resources->max) {
		e = TAKE_PTR(*new_entry);
		e->next = *slot;
		*slot = e;
		resources->len++;
	}
	(void)pthread_mutex_unlock(&resources->lock);
	return e;
}

int resource_get(struct resources *resources, const struct resource *like,
		 const struct resource **ret_resource, struct err *err)
{
	_cleanup_free_ struct entry *made = NULL;
	struct entry *e;
	struct wanted w;
	int r = wanted_make(&w, like, err);

	if (r < 0)
		return r;
	(void)pthread_mutex_lock(&resources->lock);
	e = entry_find(resources, &w);
	(void)pthread_mutex_unlock(&resources->lock);
	if (!e) {
		made = entry_new(resources, &w);
		if (!made)
			return err_oom(err);
		e = entry_insert(resources, &made, &w);
	}
	if (!e)
		return err_set(err, -E2BIG, "more than %zu resources at a time", resources->max);
	*ret_resource = &e->resource;
	return 0;
}

static struct entry *entry_of(const struct resource *resource)
{
	return (struct entry *)resource;
}

const struct resource *resource_ref(const struct resource *resource)
{
	(void)atomic_fetch_add_explicit(&entry_of(resource)->refs, 1, memory_order_relaxed);
	return resource;
}

/* Releases a reference unless it is the last. */
static bool entry_unref_shared(struct entry *e)
{
	size_t refs = atomic_load_explicit(&e->refs, memory_order_relaxed);

	while (refs > 1)
		if (atomic_compare_exchange_weak_explicit(
			    &e->refs, &refs, refs - 1, memory_order_release, memory_order_relaxed))
			return true;
	return false;
}

void resource_unref(const struct resource *resource)
{
	struct entry *e = entry_of(resource);
	struct resources *table;
	bool last;

	if (!e || entry_unref_shared(e))
		return;
	table = e->table;
	(void)pthread_mutex_lock(&table->lock);
	last = atomic_fetch_sub_explicit(&e->refs, 1, memory_order_acq_rel) == 1;
	if (last) {
		struct entry **at = slot_of(table, e->hash);

		while (*at != e)
			at = &(*at)->next;
		*at = e->next;
		table->len--;
	}
	(void)pthread_mutex_unlock(&table->lock);
	if (last)
		free(e);
}

const char *resource_label(const struct resource *resource, const char *key)
{
	bool found;
	size_t at = label_place(resource->labels, resource->n_labels, key, &found);

	return found ? resource->labels[at].value : NULL;
}
