/*
 * src/pipeline/pipeline.h: the one way from whoever collects to all sinks.
 *
 * A record enters here and nowhere else: it is told whom it is about and when it was, and put into
 * the outbox of each sink. Nobody waits for a sink.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "pipeline/outbox.h"
#include "pipeline/record.h"
#include "pipeline/resource.h"
#include "pipeline/sink.h"
#include "proc/info.h"

/* How many sinks there can be. */
#define PIPELINE_MAX_SINKS 8
/* How many resources are known at a time. */
#define PIPELINE_MAX_RESOURCES 65536

struct pipeline; /* opaque */

/* Takes the sinks over, also when it fails. */
int pipeline_open(const struct sink_row *sinks, size_t n_sinks, struct pipeline **ret_pipeline,
		  struct err *err);
/*
 * Brings away what was written, and closes the sinks. Remote ones have time until until_ns of the
 * monotonic clock: one that hangs is left behind with all that it uses, and then it is false, and
 * nothing is to be freed. What is local is not given up.
 */
bool pipeline_stop(struct pipeline *pipeline, uint64_t until_ns);
/* After a stop that was true, when all resources were given back. NULL is fine. */
void pipeline_free(struct pipeline *pipeline);

/* The resource that a process is, to be given back. */
int pipeline_process(struct pipeline *pipeline, const struct proc_info *info,
		     const struct resource **ret_resource, struct err *err);

/* Takes the record over. */
void pipeline_write_take(struct pipeline *pipeline, const struct resource *resource,
			 struct record_time when, struct record *record);
/* What was written so far shall be durable and visible soon. */
void pipeline_flush(struct pipeline *pipeline);

size_t pipeline_n_sinks(const struct pipeline *pipeline);
void pipeline_status(struct pipeline *pipeline, size_t sink, struct outbox_status *ret_status);
