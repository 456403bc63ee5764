/*
 * src/pipeline/record.h: the envelope of everything that is collected.
 *
 * A record has a resource, a time and a duration, and a payload: a profile, metrics or an event. It
 * is immutable once written: all sinks read the same one, each in its own thread.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "pipeline/event.h"
#include "pipeline/metrics.h"
#include "pipeline/resource.h"
#include "profile/profile.h"

enum record_kind { RECORD_PROFILE, RECORD_METRICS, RECORD_EVENT };

struct record_profile {
	const char *family; /* "go_heap", static; a stream's type is family:type:unit */
	struct profile *profile;
	uint32_t snapshot_types; /* bit i: type i of the profile is a snapshot, not a delta */
	uint32_t absent_types; /* bit i: type i was not collected, which is not the same as none */
};

struct record_time {
	int64_t time_ns;     /* since 1970: the end of the interval, or the moment */
	int64_t duration_ns; /* of the interval */
};

/*
 * What came late covers several intervals, or of very many so many groups. They lie one after the
 * other and end with it.
 */
#define RECORD_PARTS_MAX 64
struct record_parts {
	uint32_t n;
	int64_t length_ns; /* between their ends */
};
struct record_parts record_time_divide(const struct record_time *when, uint64_t interval_ns);
struct record_time record_time_part(const struct record_time *when,
				    const struct record_parts *parts, uint32_t part);

struct record {
	atomic_uint refs;
	const struct resource *resource; /* a reference; set by the pipeline, like the time */
	struct record_time when;
	enum record_kind kind;
	union {
		struct record_profile profile;
		struct metrics *metrics;
		struct event *event;
	};
};

/* With one reference. Take the payload, also on failure. NULL if out of memory. */
struct record *record_new_profile(const struct record_profile *profile);
struct record *record_new_metrics(struct metrics *metrics);
struct record *record_new_event(struct event *event);
struct record *record_ref(struct record *record);
void record_unref(struct record *record); /* NULL is fine */
DEFINE_CLEANUP(struct record, record_unref)

/* Approximate memory it holds, for the limits of queues. */
size_t record_bytes(const struct record *record);
