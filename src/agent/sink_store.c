/*
 * src/agent/sink_store.c: the sink that is always there: the store.
 *
 * An entry carries the labels that tell processes apart, under OpenTelemetry's names; those that a
 * process does not have are left out.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/sink.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "pipeline/registry.h"

#define SINK_MAX_LABELS (6 + READING_MAX_LABELS)
/* Packing is for past hours: once a minute is often enough. */
#define SINK_MAINTAIN_NS (60 * NS_PER_SEC)

struct sink {
	struct store *store; /* borrowed */
	char host[HOST_NAME_MAX + 1];
	uint64_t maintained_ns;
};

struct sink_labels {
	struct store_label items[SINK_MAX_LABELS];
	size_t len;
	char pid[16];
};

static void sink_label(struct sink_labels *l, const char *key, const char *value)
{
	if (value[0])
		l->items[l->len++] = (struct store_label){.key = key, .value = value};
}

static const char *sink_exe_name(const struct proc_info *info)
{
	const char *slash = strrchr(info->exe, '/');

	return slash ? slash + 1 : info->comm;
}

static void sink_labels_of(const struct sink *sink, const struct proc_info *info,
			   struct sink_labels *l)
{
	l->len = 0;
	(void)snprintf(l->pid, sizeof(l->pid), "%d", (int)info->id.pid);
	sink_label(l, "host.name", sink->host);
	sink_label(l, "process.pid", l->pid);
	sink_label(l, "process.executable.name", sink_exe_name(info));
	sink_label(l, "container.id", info->container);
	sink_label(l, "k8s.pod.uid", info->pod);
	sink_label(l, "systemd.unit", info->unit);
}

static int sink_store_write(struct sink *sink, const struct target *target, const char *family,
			    const struct reading *reading, struct err *err)
{
	struct sink_labels labels;
	struct store_entry entry = {
		.service = target->info.service,
		.family = family,
		.labels = labels.items,
		.time_ns = reading->time_ns,
		.duration_ns = reading->duration_ns,
		.profile = reading->profile,
		.snapshot_types = registry_snapshot_types(family, reading->profile),
	};

	sink_labels_of(sink, &target->info, &labels);
	for (size_t i = 0; i < reading->n_labels; i++)
		sink_label(&labels, reading->labels[i].key, reading->labels[i].value);
	entry.n_labels = labels.len;
	return store_write(sink->store, &entry, err);
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

static const struct sink_ops sink_store = {
	.name = "store",
	.write = sink_store_write,
	.flush = sink_store_flush,
	.close = sink_store_close,
};

int sink_store_open(struct store *store, struct sink_row *ret_row, struct err *err)
{
	struct sink *sink = calloc(1, sizeof(*sink));

	if (!sink)
		return err_oom(err);
	sink->store = store;
	if (gethostname(sink->host, sizeof(sink->host) - 1) < 0)
		sink->host[0] = 0;
	*ret_row = (struct sink_row){.ops = &sink_store, .sink = sink};
	return 0;
}
