/* src/pipeline/pipeline.c: see pipeline.h. */
#include "pipeline/pipeline.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proc/subuid.h"

struct pipeline {
	struct resources *resources;
	struct pipeline_names *names;
	struct proc_subuids subuids;
	char host[HOST_NAME_MAX + 1];
	struct outbox *outboxes[PIPELINE_MAX_SINKS];
	const struct sink_ops *ops[PIPELINE_MAX_SINKS];
	size_t n_outboxes;
};

/* Those not taken yet. */
static void sinks_close(const struct sink_row *sinks, size_t n)
{
	for (size_t i = 0; i < n; i++)
		sinks[i].ops->close(sinks[i].sink);
}

static int pipeline_open_sink(const struct pipeline_config *config, const struct sink_row *sink,
			      struct outbox **ret_outbox, struct err *err)
{
	_cleanup_free_ char *dir = NULL;
	struct outbox_config outbox = {.spool_max_bytes = config->spool_max_bytes};

	if (sink->ops->send && config->spool_dir) {
		if (asprintf(&dir, "%s/spool-%s", config->spool_dir, sink->ops->name) < 0) {
			dir = NULL;
			sinks_close(sink, 1);
			return err_oom(err);
		}
		outbox.spool_dir = dir;
	}
	return outbox_open(sink, &outbox, ret_outbox, err);
}

static int pipeline_open_sinks(struct pipeline *p, const struct pipeline_config *config,
			       struct err *err)
{
	for (size_t i = 0; i < config->n_sinks; i++) {
		const struct sink_row *sink = &config->sinks[i];
		int r = pipeline_open_sink(config, sink, &p->outboxes[i], err);

		if (r < 0) {
			sinks_close(sink + 1, config->n_sinks - i - 1);
			return r;
		}
		p->ops[p->n_outboxes++] = sink->ops;
	}
	return 0;
}

int pipeline_open(const struct pipeline_config *config, struct pipeline **ret_pipeline,
		  struct err *err)
{
	struct pipeline *p = calloc(1, sizeof(*p));
	int r = p ? resources_new(PIPELINE_MAX_RESOURCES, &p->resources, err) : err_oom(err);

	if (r == 0)
		r = pipeline_names_new(&p->names, err);
	if (r == 0 && config->n_sinks > PIPELINE_MAX_SINKS)
		r = err_set(err, -E2BIG, "more than %d sinks", PIPELINE_MAX_SINKS);
	if (r < 0) {
		sinks_close(config->sinks, config->n_sinks);
		pipeline_free(p);
		return r;
	}
	proc_subuids_read(&p->subuids, config->subuid_path ? config->subuid_path : PROC_SUBUID_PATH,
			  PROC_SUBUID_PASSWD_PATH);
	if (gethostname(p->host, sizeof(p->host) - 1) < 0)
		p->host[0] = 0;
	r = pipeline_open_sinks(p, config, err);
	if (r < 0) {
		if (pipeline_stop(p, 0))
			pipeline_free(p);
		return r;
	}
	*ret_pipeline = p;
	return 0;
}

bool pipeline_stop(struct pipeline *p, uint64_t until_ns)
{
	bool all = true;

	for (size_t i = 0; i < p->n_outboxes; i++)
		all = outbox_close(p->outboxes[i], p->ops[i]->send ? until_ns : UINT64_MAX) && all;
	p->n_outboxes = 0;
	return all;
}

void pipeline_free(struct pipeline *p)
{
	if (!p)
		return;
	resources_free(p->resources);
	pipeline_names_free(p->names);
	free(p);
}

struct pipeline_names *pipeline_names_of(struct pipeline *p)
{
	return p->names;
}

static const char *executable_name(const struct proc_info *info)
{
	const char *slash = strrchr(info->exe, '/');

	return slash ? slash + 1 : info->comm;
}

int pipeline_process(struct pipeline *p, const struct proc_info *info,
		     const struct resource **ret_resource, struct err *err)
{
	char pid[16] = "";
	const struct label labels[] = {
		{"service.name", info->service},
		{"service.namespace", info->namespace},
		{"service.version", info->version},
		{"host.name", p->host},
		{"process.pid", pid},
		{"process.executable.name", executable_name(info)},
		{"process.executable.build_id.gnu", info->build_is_go ? "" : info->build_id},
		{"process.executable.build_id.go", info->build_is_go ? info->build_id : ""},
		{"process.command_line", info->command},
		{"process.runtime.description", info->runtime},
		{"sonde.parent", info->parent_service},
		{"container.id", info->container},
		{"k8s.pod.uid", info->pod},
		{"systemd.unit", info->unit},
	};
	const struct resource like = {
		.process = info->id,
		.uid = proc_subuids_owner(&p->subuids, info->uid),
		.labels = labels,
		.n_labels = sizeof(labels) / sizeof(labels[0]),
	};

	/* The machine is no process. */
	if (info->id.pid)
		(void)snprintf(pid, sizeof(pid), "%d", (int)info->id.pid);
	return resource_get(p->resources, &like, ret_resource, err);
}

void pipeline_write_take(struct pipeline *p, const struct resource *resource,
			 struct record_time when, struct record *record)
{
	record->resource = resource_ref(resource);
	record->when = when;
	for (size_t i = 0; i < p->n_outboxes; i++) {
		outbox_put(p->outboxes[i], record);
		if (p->ops[i]->live)
			outbox_hurry(p->outboxes[i]);
	}
	record_unref(record);
}

void pipeline_flush(struct pipeline *p)
{
	for (size_t i = 0; i < p->n_outboxes; i++)
		outbox_flush(p->outboxes[i]);
}

size_t pipeline_n_sinks(const struct pipeline *p)
{
	return p->n_outboxes;
}

void pipeline_status(struct pipeline *p, size_t sink, struct outbox_status *ret_status)
{
	outbox_status(p->outboxes[sink], ret_status);
}
