/*
 * src/agent/sink_store.c: the sink that is always there: the store.
 *
 * service.name names the stream; the other labels of a resource tell its processes apart.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/sink_store.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "pipeline/registry.h"

/* Packing is for past hours: once a minute is often enough. */
#define SINK_MAINTAIN_NS (60 * NS_PER_SEC)

struct sink {
	struct store *store; /* borrowed */
	uint64_t maintained_ns;
};

struct sink_labels {
	struct label items[RESOURCE_MAX_LABELS];
	size_t len;
};

static void sink_labels_of(const struct resource *resource, struct sink_labels *l)
{
	l->len = 0;
	for (size_t i = 0; i < resource->n_labels; i++)
		if (strcmp(resource->labels[i].key, "service.name") != 0)
			l->items[l->len++] = resource->labels[i];
}

static int sink_write_profile(struct sink *sink, const struct record *record,
			      const struct record_profile *p, struct err *err)
{
	struct sink_labels labels;
	struct store_entry entry = {
		.service = record->resource->service,
		.family = p->family,
		.labels = labels.items,
		.time_ns = record->when.time_ns,
		.duration_ns = record->when.duration_ns,
		.profile = p->profile,
		.snapshot_types = p->snapshot_types,
	};

	sink_labels_of(record->resource, &labels);
	entry.n_labels = labels.len;
	return store_write(sink->store, &entry, err);
}
