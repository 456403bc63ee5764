/*
 * src/agent/schedule/slot.c: the loop's view of one process: the answers of its readers, and when
 * they are due.
 *
 * A reader with its own interval is read once per period of that length, by the wall clock: all
 * processes are then read in the same intervals of the loop, and can be summed. If a reader takes
 * too much CPU, its period becomes a multiple.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/state.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/hash.h"
#include "pipeline/registry/registry.h"
#include "profile/ops.h"

/* Readers with their own interval may use this share of a CPU: one percent. */
#define SLOT_MAX_SHARE 100
#define SLOT_MAX_SPACING 1000
/* Pause before retrying a target that disappears, or seems to, whenever it is examined. */
#define RETRY_NS (1 * NS_PER_SEC)

const char *agent_slot_text(const char *text)
{
	return text ? text : "";
}

/* Out of memory: no text. */
static void text_set(char **text, const char *value)
{
	free(*text);
	*text = value && value[0] ? strdup(value) : NULL;
}

static void reader_set_answer(struct agent_slot_source *r, const struct source_answer *answer)
{
	r->yes = answer->yes;
	r->may_change = answer->may_change;
	r->of_file = answer->of_file;
	r->cause = answer->cause;
	text_set(&r->reason, answer->reason);
	text_set(&r->remedy, answer->remedy);
}

void agent_slot_answer(const struct agent_slot_source *r, struct source_answer *ret_answer)
{
	*ret_answer = (struct source_answer){.yes = r->yes,
					     .may_change = r->may_change,
					     .of_file = r->of_file,
					     .cause = r->cause};
	(void)snprintf(ret_answer->reason, sizeof(ret_answer->reason), "%s",
		       agent_slot_text(r->reason));
	(void)snprintf(ret_answer->remedy, sizeof(ret_answer->remedy), "%s",
		       agent_slot_text(r->remedy));
}

void agent_slot_free(const struct agent *a, struct agent_slot *slot)
{
	for (size_t i = 0; i < a->n_sources; i++) {
		free(slot->sources[i].reason);
		free(slot->sources[i].remedy);
		free(slot->sources[i].trouble);
		live_clear(&slot->sources[i].live);
	}
	live_clear(&slot->pushed);
	resource_unref(slot->before);
	resource_unref(slot->resource);
	free(slot);
}

struct agent_slot *agent_slot_new(const struct agent *a, pid_t pid, const struct proc_stat *st)
{
	struct agent_slot *slot =
		calloc(1, sizeof(*slot) + a->n_sources * sizeof(slot->sources[0]));

	if (!slot)
		return NULL;
	slot->target.info.id = (struct proc_id){.pid = pid, .start_ticks = st->start_ticks};
	slot->target.info.parent = st->parent;
	memcpy(slot->target.info.comm, st->comm, sizeof(slot->target.info.comm));
	(void)snprintf(slot->target.info.service, sizeof(slot->target.info.service), "%s",
		       st->comm);
	(void)snprintf(slot->target.runtime, sizeof(slot->target.runtime), "unknown");
	for (size_t i = 0; i < a->n_sources; i++) {
		slot->sources[i].cause = ERR_CAUSE_PENDING;
		text_set(&slot->sources[i].reason, "not examined yet");
		text_set(&slot->sources[i].remedy, "wait a second or two");
	}
	slot->found_ns = clock_mono_ns();
	return slot;
}

bool agent_slot_is_open(const struct agent *a, const struct agent_slot *slot)
{
	for (size_t i = 0; i < a->n_sources; i++)
		if (slot->sources[i].state)
			return true;
	return false;
}

/* The period of a reader, in intervals of the loop, before its cost stretches it. */
static int64_t reader_intervals(const struct agent *a, size_t reader)
{
	const struct source_ops *ops = a->sources[reader].ops;
	uint64_t own = ops->interval_ns ? ops->interval_ns(a->sources[reader].config) : 0;

	return own <= a->config.interval_ns ? 1 : (int64_t)((own - 1) / a->config.interval_ns + 1);
}

static int64_t reader_period(const struct agent *a, const struct agent_slot_source *r,
			     size_t reader)
{
	int64_t length = (int64_t)a->config.interval_ns * reader_intervals(a, reader) *
			 (int64_t)MAX(r->spacing, 1U);

	return a->interval.stamp_ns / length;
}

bool agent_slot_is_due(const struct agent *a, const struct agent_slot *slot, size_t reader)
{
	const struct agent_slot_source *r = &slot->sources[reader];

	return !a->sources[reader].ops->interval_ns || reader_period(a, r, reader) != r->period;
}

bool agent_slot_is_due_first(const struct agent *a, size_t reader)
{
	int64_t length = (int64_t)a->config.interval_ns * reader_intervals(a, reader);

	return a->interval.number == 1 || a->interval.stamp_ns % length == 0;
}

void agent_slot_say_slow(struct agent *a, struct agent_slot *slot, uint64_t now)
{
	char text[128];

	if (now - slot->job_ns <= a->config.interval_ns || slot->job_interval == a->interval.number)
		return;
	slot->job_interval = a->interval.number;
	(void)snprintf(text, sizeof(text), "not responding for %llu s; retried once it does",
		       (unsigned long long)((now - slot->job_ns) / NS_PER_SEC));
	for (size_t i = 0; i < a->n_sources; i++) {
		struct agent_slot_source *r = &slot->sources[i];

		if (slot->looked_ns && !r->state)
			continue;
		r->slow = true;
		r->failures++;
		a->health.failures++;
		text_set(&r->trouble, text);
	}
}

/* Stretches the period until the reader stays below its maximum cost. */
static void reader_pace(const struct agent *a, struct agent_slot_source *r, size_t reader,
			const char *note)
{
	uint64_t own = a->config.interval_ns * (uint64_t)reader_intervals(a, reader);
	uint64_t spacing = r->last_cost_ns / (own / SLOT_MAX_SHARE + 1) + 1;
	char text[256];

	text_set(&r->trouble, note);
	if (!a->sources[reader].ops->interval_ns)
		return;
	r->spacing = (uint32_t)MIN(spacing, (uint64_t)SLOT_MAX_SPACING);
	r->period = reader_period(a, r, reader);
	if (r->spacing == 1)
		return;
	(void)snprintf(text, sizeof(text),
		       "%s%sa collection takes %llu ms of CPU; collected every %.4g s", note,
		       note[0] ? "; " : "", (unsigned long long)(r->last_cost_ns / NS_PER_MS),
		       (double)(own * r->spacing) / (double)NS_PER_SEC);
	text_set(&r->trouble, text);
}

/* A reader may be idle in one reading and not in the next. */
static void reader_take_idle(struct agent_slot_source *r, const struct source_reading *reading)
{
	const char *reason = agent_slot_text(reading->idle),
		   *remedy = agent_slot_text(reading->idle_remedy);

	r->yes = !reading->idle;
	r->cause = reading->idle_cause;
	if (strcmp(agent_slot_text(r->reason), reason) != 0)
		text_set(&r->reason, reason);
	if (strcmp(agent_slot_text(r->remedy), remedy) != 0)
		text_set(&r->remedy, remedy);
}

/* Takes the record, which is lost if out of memory. */
static void slot_deliver(struct agent *a, const struct agent_slot *slot, struct record *record,
			 struct record_time when)
{
	struct delivery *d = delivery_new(record, when);

	if (!d || !slot->resource) {
		delivery_free(d);
		return;
	}
	d->resource = resource_ref(slot->resource);
	delivery_list_add(&a->mail, d);
}

void agent_slot_deliver_memory(struct agent *a, const struct agent_slot *slot,
			       struct record_time when)
{
	_cleanup_(metrics_freep) struct metrics *m = metrics_new();

	if (m && metrics_add_gauge(m, METRIC_PROCESS_MEMORY, (double)slot->rss_bytes) == 0)
		slot_deliver(a, slot, record_new_metrics(TAKE_PTR(m)), when);
}

/* Counters of a reading: one of its parts; the rest has no time but its own. */
static struct metrics *counters_part(const struct metrics *whole, uint32_t parts)
{
	_cleanup_(metrics_freep) struct metrics *m = metrics_new();

	for (size_t i = 0; m && i < whole->len; i++) {
		struct metric_point p = whole->points[i];

		if (p.metric->kind != METRIC_COUNTER || isnan(p.increase))
			continue;
		p.value = NAN;
		p.increase /= parts;
		if (metrics_add(m, &p) < 0)
			return NULL;
	}
	return m && m->len ? TAKE_PTR(m) : NULL;
}

/* What the reading counted in earlier intervals goes there, and only the last part is left. */
static void metrics_spread(struct agent *a, const struct agent_slot *slot, struct metrics *m,
			   const struct record_time *when, const struct record_parts *parts)
{
	for (uint32_t i = 0; i + 1 < parts->n; i++) {
		struct metrics *part = counters_part(m, parts->n);

		if (part)
			slot_deliver(a, slot, record_new_metrics(part),
				     record_time_part(when, parts, i));
	}
	for (size_t i = 0; i < m->len; i++)
		if (m->points[i].metric->kind == METRIC_COUNTER)
			m->points[i].increase /= parts->n;
}

/*
 * The same for the deltas of a profile; one without any stays as it is. Out of memory it stays
 * whole, or a part is lost.
 */
static void profile_spread(struct agent *a, const struct agent_slot *slot,
			   struct record_profile *whole, const struct record_time *when,
			   const struct record_parts *parts)
{
	_cleanup_(profile_freep) struct profile *all = whole->profile;
	const uint32_t snapshots = whole->snapshot_types;
	struct profile_term terms[] = {
		{.profile = all, .factor = 1, .without_types = snapshots, .parts = parts->n},
		{.profile = all, .factor = 1, .without_types = ~snapshots},
	};

	if (snapshots == (UINT64_C(1) << profile_n_types(all)) - 1) {
		whole->profile = TAKE_PTR(all);
		return;
	}
	terms[0].part = parts->n - 1;
	if (profile_merge(terms, 2, &whole->profile, NULL) < 0) {
		whole->profile = TAKE_PTR(all);
		return;
	}
	for (uint32_t i = 0; i + 1 < parts->n; i++) {
		struct record_profile part = {.family = whole->family,
					      .snapshot_types = snapshots,
					      .absent_types = snapshots};

		terms[0].part = i;
		if (profile_merge(terms, 1, &part.profile, NULL) < 0)
			continue;
		slot_deliver(a, slot, record_new_profile(&part), record_time_part(when, parts, i));
	}
}

/*
 * Whether it came so late that whole readings are missing. One that is taken rarely by intention
 * is not late.
 */
static bool reading_is_late(const struct agent *a, const struct agent_slot_source *r, size_t i,
			    const struct record_parts *parts)
{
	return parts->n > 1 && (int64_t)parts->n > reader_intervals(a, i) * MAX(r->spacing, 1U);
}

static void slot_deliver_reading(struct agent *a, struct agent_slot *slot, size_t i,
				 struct source_reading *reading)
{
	struct agent_slot_source *r = &slot->sources[i];
	/* If the clock was set back, the duration must not be negative. */
	struct record_time when = {
		.time_ns = a->interval.stamp_ns,
		.duration_ns = r->stamp_ns && a->interval.stamp_ns > r->stamp_ns
				       ? a->interval.stamp_ns - r->stamp_ns
				       : (int64_t)a->config.interval_ns,
	};
	const struct record_parts parts = record_time_divide(&when, a->config.interval_ns);
	struct record_profile profile = {
		.family = a->sources[i].ops->family,
		.profile = reading->profile,
		.snapshot_types = reading->profile
					  ? registry_snapshot_types(a->sources[i].ops->family,
								    reading->profile)
					  : 0,
	};

	r->stamp_ns = a->interval.stamp_ns;
	reading->profile = NULL;
	if (reading_is_late(a, r, i, &parts)) {
		if (profile.profile)
			profile_spread(a, slot, &profile, &when, &parts);
		if (reading->metrics)
			metrics_spread(a, slot, reading->metrics, &when, &parts);
		when = record_time_part(&when, &parts, parts.n - 1);
	}
	if (profile.profile)
		slot_deliver(a, slot, record_new_profile(&profile), when);
	if (reading->metrics)
		slot_deliver(a, slot, record_new_metrics(TAKE_PTR(reading->metrics)), when);
}

static void slot_count(struct agent *a, struct agent_slot *slot, size_t i, struct agent_job *job)
{
	struct agent_slot_source *r = &slot->sources[i];
	struct source_reading *reading = &job->sources[i].reading;

	reader_take_idle(r, reading);
	a->health.lost_records += reading->lost;
	memcpy(r->collector, reading->collector, sizeof(r->collector));
	if (reading->metrics)
		(void)live_take(&r->live, reading->metrics);
	else
		live_drop(&r->live);
	if (reading->profile || reading->metrics) {
		r->collections++;
		a->health.collections++;
		r->last_ns = (int64_t)clock_unix_ns();
	}
	slot_deliver_reading(a, slot, i, reading);
	/* Last: it was read at the pace before. */
	reader_pace(a, r, i, reading->note);
}

/* agent_targets_receive() handles -ESRCH. */
static void slot_fail(struct agent *a, struct agent_slot *slot, size_t i,
		      const struct agent_job *job)
{
	struct agent_slot_source *r = &slot->sources[i];
	int code = job->sources[i].result;
	char line[ERR_LINE_MAX];

	r->failures++;
	a->health.failures++;
	text_set(&r->trouble, err_describe(&job->sources[i].err, code, line));
	live_drop(&r->live);
	if (a->sources[i].ops->interval_ns)
		r->period = reader_period(a, r, i);
	/* No longer readable: probe again to learn why. */
	if (code == -ENOTSUP) {
		r->ask_again = true;
		slot->retry_ns = clock_mono_ns() + RETRY_NS;
	}
}

bool agent_slot_asks_again(const struct agent_slot_source *r)
{
	return r->ask_again || (!r->state && r->may_change);
}

static void reader_begin(const struct agent *a, struct agent_slot_source *r, size_t reader)
{
	r->stamp_ns = 0;
	r->spacing = 1;
	r->ask_again = false;
	r->period = reader_period(a, r, reader);
	text_set(&r->trouble, NULL);
}

void agent_slot_settle_name(struct agent *a, struct agent_slot *slot)
{
	struct proc_info info = slot->target.info;
	const struct resource *resource = NULL;

	memcpy(info.service, slot->claim, sizeof(info.service));
	pipeline_names_settle(pipeline_names_of(a->pipeline), &info);
	if (slot->resource && strcmp(info.service, slot->target.info.service) == 0)
		return;
	memcpy(slot->target.info.service, info.service, sizeof(info.service));
	/* Out of memory: no resource, so nothing is written. */
	(void)pipeline_process(a->pipeline, &info, &resource, NULL);
	resource_unref(slot->resource);
	slot->resource = resource;
}

static bool same_image(uint64_t one, uint64_t other)
{
	return one && one == other;
}

bool agent_slot_same_program(const struct proc_info *one, const struct proc_info *other)
{
	return same_image(one->exec_image, other->exec_image) || strcmp(one->exe, other->exe) == 0;
}

bool agent_slot_was_program(const struct agent_slot *slot, const struct proc_info *info)
{
	return slot->before && (same_image(slot->before_image, info->exec_image) ||
				slot->before_exe == hash_bytes(info->exe, strlen(info->exe)));
}

/* What was sampled before an exec may come after it. */
static void slot_keep_name(struct agent_slot *slot, const struct source_target *next)
{
	const struct proc_info *info = &slot->target.info;

	if (!slot->resource || agent_slot_same_program(info, &next->info))
		return;
	resource_unref(slot->before);
	slot->before = resource_ref(slot->resource);
	slot->before_exe = hash_bytes(info->exe, strlen(info->exe));
	slot->before_image = info->exec_image;
}

/* Whether it is still the program that was examined before. */
static bool slot_runs_same(const struct agent_slot *slot, const struct proc_info *now)
{
	const struct proc_info *was = &slot->target.info;

	if (!slot->resource || was->no_answer)
		return false;
	if (was->exec_image && now->exec_image)
		return was->exec_image == now->exec_image;
	return strcmp(was->exe, now->exe) == 0;
}

/*
 * Labels tell processes apart in the store: what it runs is settled by the first look after an
 * exec, and who its parent is by the first of all.
 */
static void slot_take_target(struct agent *a, struct agent_slot *slot,
			     const struct source_target *next)
{
	struct proc_info was = slot->target.info, *info = &slot->target.info;
	bool is_same = slot_runs_same(slot, &next->info);

	slot->target = *next;
	if (is_same) {
		proc_info_keep_program(info, &was);
		memcpy(info->runtime, was.runtime, sizeof(info->runtime));
		memcpy(info->build_id, was.build_id, sizeof(info->build_id));
		info->build_is_go = was.build_is_go;
	}
	if (slot->resource)
		memcpy(info->parent_service, was.parent_service, sizeof(info->parent_service));
	else
		agent_targets_find_parent(a, info);
}

/* The name may change by an exec, or by the environment. */
static void slot_name(struct agent *a, struct agent_slot *slot)
{
	memcpy(slot->claim, slot->target.info.service, sizeof(slot->claim));
	resource_unref(slot->resource);
	slot->resource = NULL;
	agent_slot_settle_name(a, slot);
}

void agent_slot_take_looks(struct agent *a, struct agent_slot *slot, const struct agent_job *job)
{
	slot->asked_ns = clock_mono_ns();
	/* All readers were asked, not just some: after an exec the others are still to be. */
	if (job->what & AGENT_JOB_COLLECT) {
		slot->look_again = false;
		slot->exec_ns = 0;
		slot->looked_ns = slot->asked_ns;
		slot->image = job->image;
	}
	slot_keep_name(slot, &job->target);
	slot_take_target(a, slot, &job->target);
	slot_name(a, slot);
	for (size_t i = 0; i < a->n_sources; i++) {
		if (!job->sources[i].ask)
			continue;
		reader_set_answer(&slot->sources[i], &job->sources[i].answer);
		reader_begin(a, &slot->sources[i], i);
		live_clear(&slot->sources[i].live);
	}
}

void agent_slot_take_readings(struct agent *a, struct agent_slot *slot, struct agent_job *job)
{
	slot->collected = a->interval.number;
	for (size_t i = 0; i < a->n_sources; i++) {
		if (!slot->sources[i].state || !job->sources[i].collected)
			continue;
		a->untidy = a->untidy || a->sources[i].ops->interval_ns;
		slot->sources[i].slow = false;
		slot->sources[i].last_cost_ns = job->sources[i].cost_ns;
		if (job->sources[i].result == 0)
			slot_count(a, slot, i, job);
		else if (job->sources[i].result != -ESRCH)
			slot_fail(a, slot, i, job);
	}
}
