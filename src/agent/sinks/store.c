/*
 * src/agent/sinks/store.c: see store.h.
 *
 * service.name is the service of the stream; the other labels of the resource are its label set.
 */
#include "agent/sinks/store.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "store/store.h"

/* Packing applies to past hours: once a minute is enough. */
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
			      const struct sink_labels *labels, struct err *err)
{
	const struct store_entry entry = {
		.service = record->resource->service,
		.uid = record->resource->uid,
		.family = record->profile.family,
		.labels = labels->items,
		.n_labels = labels->len,
		.time_ns = record->when.time_ns,
		.duration_ns = record->when.duration_ns,
		.profile = record->profile.profile,
		.snapshot_types = record->profile.snapshot_types,
		.absent_types = record->profile.absent_types,
	};

	return store_write(sink->store, &entry, err);
}

static int sink_write_metrics(struct sink *sink, const struct record *record,
			      const struct sink_labels *labels, struct err *err)
{
	const struct store_metrics metrics = {
		.service = record->resource->service,
		.uid = record->resource->uid,
		.labels = labels->items,
		.n_labels = labels->len,
		.time_ns = record->when.time_ns,
		.duration_ns = record->when.duration_ns,
		.metrics = record->metrics,
	};

	return store_write_metrics(sink->store, &metrics, err);
}

static int sink_write_event(struct sink *sink, const struct record *record,
			    const struct sink_labels *labels, struct err *err)
{
	const struct store_event event = {
		.service = record->resource->service,
		.uid = record->resource->uid,
		.labels = labels->items,
		.n_labels = labels->len,
		.time_ns = record->when.time_ns,
		.duration_ns = record->when.duration_ns,
		.event = record->event,
	};

	return store_write_event(sink->store, &event, err);
}

static int sink_store_write(struct sink *sink, struct record *record, struct err *err)
{
	static int (*const writes[])(struct sink * sink, const struct record *record,
				     const struct sink_labels *labels, struct err *err) = {
		[RECORD_PROFILE] = sink_write_profile,
		[RECORD_METRICS] = sink_write_metrics,
		[RECORD_EVENT] = sink_write_event,
	};
	struct sink_labels labels;

	sink_labels_of(record->resource, &labels);
	return writes[record->kind](sink, record, &labels, err);
}

static int sink_store_flush(struct sink *sink, struct err *err)
{
	int r = store_commit(sink->store, err);

	if (r < 0 || clock_mono_ns() - sink->maintained_ns < SINK_MAINTAIN_NS)
		return r;
	sink->maintained_ns = clock_mono_ns();
	return store_maintain(sink->store, (int64_t)clock_unix_ns(), err);
}

static void sink_store_close(struct sink *sink)
{
	free(sink);
}

int agent_sink_store_open(void *store, struct sink_row *ret_row, struct err *err)
{
	static const struct sink_ops ops = {
		.name = "store",
		.write = sink_store_write,
		.flush = sink_store_flush,
		.close = sink_store_close,
	};
	struct sink *sink = calloc(1, sizeof(*sink));

	if (!sink)
		return err_oom(err);
	sink->store = store;
	*ret_row = (struct sink_row){.ops = &ops, .sink = sink};
	return 0;
}
