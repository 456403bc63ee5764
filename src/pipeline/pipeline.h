/*
 * src/pipeline/pipeline.h: the one path from sources to sinks.
 *
 * Every record enters here: it gets its resource and time, and goes into the outbox of each sink.
 * Nobody waits for a sink.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "pipeline/names.h"
#include "pipeline/outbox/outbox.h"
#include "pipeline/record.h"
#include "pipeline/resource.h"
#include "pipeline/sink.h"
#include "proc/info.h"

/* Maximum number of sinks. */
#define PIPELINE_MAX_SINKS 8
/* Maximum number of resources at a time. */
#define PIPELINE_MAX_RESOURCES 65536

struct pipeline; /* opaque */

struct pipeline_config {
	const struct sink_row *sinks; /* taken, also on failure */
	size_t n_sinks;
	/* Where each remote sink spools, in spool-NAME, and how much; NULL: none is remote. */
	const char *spool_dir;
	uint64_t spool_max_bytes;
	const char *subuid_path; /* NULL: the machine's */
};
int pipeline_open(const struct pipeline_config *config, struct pipeline **ret_pipeline,
		  struct err *err);
/*
 * Flushes everything written, and closes the sinks. Remote sinks have time until until_ns of the
 * monotonic clock; local ones have as long as they need. False: a sink hangs. It is abandoned with
 * everything it uses, and nothing may be freed.
 */
bool pipeline_stop(struct pipeline *pipeline, uint64_t until_ns);
/* After a stop that returned true, once all resources were released. NULL is fine. */
void pipeline_free(struct pipeline *pipeline);

/* The names of services; borrowed. */
struct pipeline_names *pipeline_names_of(struct pipeline *pipeline);
/* The resource of a process, its name settled; release it with resource_unref(). */
int pipeline_process(struct pipeline *pipeline, const struct proc_info *info,
		     const struct resource **ret_resource, struct err *err);

/* Takes the record. */
void pipeline_write_take(struct pipeline *pipeline, const struct resource *resource,
			 struct record_time when, struct record *record);
/* Makes everything written so far durable and visible soon. */
void pipeline_flush(struct pipeline *pipeline);

size_t pipeline_n_sinks(const struct pipeline *pipeline);
void pipeline_status(struct pipeline *pipeline, size_t sink, struct outbox_status *ret_status);
