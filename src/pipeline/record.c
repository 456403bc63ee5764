/* src/pipeline/record.c: see record.h. */
#include "pipeline/record.h"

#include <stdlib.h>

struct record_parts record_time_divide(const struct record_time *when, uint64_t interval_ns)
{
	uint64_t n = 1, group;

	if (interval_ns && when->duration_ns > 0)
		n = MAX(((uint64_t)when->duration_ns + interval_ns / 2) / interval_ns, n);
	group = (n + RECORD_PARTS_MAX - 1) / RECORD_PARTS_MAX;
	return (struct record_parts){.n = (uint32_t)((n + group - 1) / group),
				     .length_ns = (int64_t)(group * interval_ns)};
}

struct record_time record_time_part(const struct record_time *when,
				    const struct record_parts *parts, uint32_t part)
{
	return (struct record_time){
		.time_ns = when->time_ns - (int64_t)(parts->n - 1 - part) * parts->length_ns,
		.duration_ns = when->duration_ns / parts->n,
	};
}

static void payload_free(struct record *record)
{
	switch (record->kind) {
	case RECORD_PROFILE:
		profile_free(record->profile.profile);
		break;
	case RECORD_METRICS:
		metrics_free(record->metrics);
		break;
	case RECORD_EVENT:
		event_free(record->event);
		break;
	}
}

/* given has kind and payload. */
static struct record *record_new(struct record given)
{
	struct record *record = malloc(sizeof(*record));

	if (!record) {
		payload_free(&given);
		return NULL;
	}
	*record = given;
	atomic_init(&record->refs, 1);
	return record;
}

struct record *record_new_profile(const struct record_profile *profile)
{
	return record_new((struct record){.kind = RECORD_PROFILE, .profile = *profile});
}

struct record *record_new_metrics(struct metrics *metrics)
{
	return record_new((struct record){.kind = RECORD_METRICS, .metrics = metrics});
}

struct record *record_new_event(struct event *event)
{
	return record_new((struct record){.kind = RECORD_EVENT, .event = event});
}

struct record *record_ref(struct record *record)
{
	(void)atomic_fetch_add_explicit(&record->refs, 1, memory_order_relaxed);
	return record;
}

void record_unref(struct record *record)
{
	if (!record || atomic_fetch_sub_explicit(&record->refs, 1, memory_order_acq_rel) > 1)
		return;
	payload_free(record);
	resource_unref(record->resource);
	free(record);
}

static size_t event_bytes(const struct event *event)
{
	return sizeof(*event) + (event->profile ? profile_memory(event->profile) : 0);
}

static size_t metrics_bytes(const struct metrics *metrics)
{
	return sizeof(*metrics) + metrics->arena.used + metrics->cap * sizeof(*metrics->points);
}

size_t record_bytes(const struct record *record)
{
	/* Counts the resource for each record: often they alone keep it alive. */
	size_t bytes = sizeof(*record) + (record->resource ? record->resource->bytes : 0);

	switch (record->kind) {
	case RECORD_PROFILE:
		return bytes + profile_memory(record->profile.profile);
	case RECORD_METRICS:
		return bytes + metrics_bytes(record->metrics);
	case RECORD_EVENT:
		return bytes + event_bytes(record->event);
	}
	return bytes;
}
