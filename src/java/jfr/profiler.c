/*
 * src/java/jfr/profiler.c: see profiler.h.
 *
 * Each kind of event has its own builder; if two kinds cover the same thing, the profile uses only
 * one.
 */
#include "java/jfr/profiler.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/sum.h"
#include "java/jfr/births.h"
#include "java/jfr/names.h"
#include "java/jfr/totals.h"

#define COUNTS_MAX ((size_t)1 << 20) /* threads; beyond that the count is too low */

enum source {
	SOURCE_CPU_TIME,
	SOURCE_CPU_COUNT,
	SOURCE_ALLOC_WEIGHT,
	SOURCE_ALLOC_TLAB,
	SOURCE_LOCK,
	SOURCE_N,
};

struct java_jfr_profiler {
	struct java_jfr_builder builders[SOURCE_N];
	struct java_jfr_births births;
	struct java_jfr_totals totals;
	bool uses_totals;
	struct map counts;	  /* thread to its allocated bytes */
	struct map counts_before; /* until the last take; who is in neither has ended */
	struct java_jfr_profiler_stats stats;
	uint64_t events[SOURCE_N];
	int64_t interval_ns; /* of async-profiler's CPU samples; 0 if it is not its file */
	int64_t lock_ns;     /* its shortest wait that is always recorded */
	bool is_wall;	     /* it samples sleeping threads, too */
};

enum query {
	QUERY_CPU_TIME,
	QUERY_CPU_LOST,
	QUERY_EXECUTION,
	QUERY_ALLOC_SAMPLE,
	QUERY_ALLOC_IN_TLAB,
	QUERY_ALLOC_OUTSIDE,
	QUERY_ALLOC_COUNT,
	QUERY_MONITOR,
	QUERY_PARK,
	QUERY_THREAD_START,
	QUERY_JVM,
	QUERY_RECORDING,
	QUERY_SETTING,
	QUERY_N,
};

/* The first two are the same in all events with a stack. */
enum { AT_STACK, AT_THREAD, AT_2, AT_3, AT_4 };

#define FIELDS(...)                                                                                \
	.fields = (const char *const[]){__VA_ARGS__},                                              \
	.n_fields = ARRAY_SIZE(((const char *const[]){__VA_ARGS__}))

static const struct java_jfr_query queries[QUERY_N] = {
	[QUERY_CPU_TIME] = {.event = "jdk.CPUTimeSample",
			    FIELDS("stackTrace", "eventThread", "samplingPeriod", "failed")},
	[QUERY_CPU_LOST] = {.event = "jdk.CPUTimeSamplesLost", FIELDS("lostSamples")},
	[QUERY_EXECUTION] = {.event = "jdk.ExecutionSample", FIELDS("stackTrace", "sampledThread")},
	[QUERY_ALLOC_SAMPLE] = {.event = "jdk.ObjectAllocationSample",
				FIELDS("stackTrace", "eventThread", "objectClass", "weight",
				       "startTime")},
	[QUERY_ALLOC_IN_TLAB] = {.event = "jdk.ObjectAllocationInNewTLAB",
				 FIELDS("stackTrace", "eventThread", "objectClass",
					"allocationSize", "tlabSize")},
	[QUERY_ALLOC_OUTSIDE] = {.event = "jdk.ObjectAllocationOutsideTLAB",
				 FIELDS("stackTrace", "eventThread", "objectClass",
					"allocationSize")},
	[QUERY_ALLOC_COUNT] = {.event = "jdk.ThreadAllocationStatistics",
			       FIELDS("thread", "allocated", "startTime")},
	[QUERY_MONITOR] = {.event = "jdk.JavaMonitorEnter",
			   FIELDS("stackTrace", "eventThread", "monitorClass", "duration")},
	[QUERY_PARK] = {.event = "jdk.ThreadPark",
			FIELDS("stackTrace", "eventThread", "parkedClass", "duration")},
	[QUERY_THREAD_START] = {.event = "jdk.ThreadStart", FIELDS("thread")},
	[QUERY_JVM] = {.event = "jdk.JVMInformation", FIELDS("jvmStartTime")},
	[QUERY_RECORDING] = {.event = "jdk.ActiveRecording", FIELDS("recordingStart")},
	[QUERY_SETTING] = {.event = "jdk.ActiveSetting", FIELDS("name", "value")},
};

const struct java_jfr_query *java_jfr_profiler_queries(size_t *ret_len)
{
	*ret_len = QUERY_N;
	return queries;
}

int java_jfr_profiler_new(const struct java_jfr_builder_options *options,
			  struct java_jfr_profiler **ret_profiler, struct err *err)
{
	_cleanup_(java_jfr_profiler_freep) struct java_jfr_profiler *p = calloc(1, sizeof(*p));

	if (!p)
		return err_oom(err);
	for (size_t i = 0; i < SOURCE_N; i++)
		if (java_jfr_builder_init(&p->builders[i], options) < 0)
			return err_oom(err);
	*ret_profiler = TAKE_PTR(p);
	return 0;
}

void java_jfr_profiler_free(struct java_jfr_profiler *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < SOURCE_N; i++)
		java_jfr_builder_release(&p->builders[i]);
	java_jfr_births_release(&p->births);
	java_jfr_totals_release(&p->totals);
	map_release(&p->counts);
	map_release(&p->counts_before);
	free(p);
}

void java_jfr_profiler_use_counts(struct java_jfr_profiler *p)
{
	p->uses_totals = true;
}

static int add(struct java_jfr_profiler *p, enum source source, const struct java_jfr *j,
	       const struct java_jfr_event *e, struct java_jfr_sample *s, size_t *ret_sum)
{
	s->stack = &e->values[AT_STACK];
	s->thread = &e->values[AT_THREAD];
	p->events[source]++;
	return java_jfr_builder_add(&p->builders[source], j, e, s, ret_sum);
}

/* samplingPeriod grows if the timer overran, and counts even if there is no stack. */
static int add_cpu_time(struct java_jfr_profiler *p, const struct java_jfr *j,
			const struct java_jfr_event *e)
{
	struct java_jfr_sample s = {
		.values = {1, MAX(java_jfr_duration_ns(j, e->values[AT_2].number), INT64_C(0))}};

	p->stats.cpu_failed += e->values[AT_3].number != 0;
	return add(p, SOURCE_CPU_TIME, j, e, &s, NULL);
}

static int add_alloc_sample(struct java_jfr_profiler *p, const struct java_jfr *j,
			    const struct java_jfr_event *e)
{
	int64_t weight = MAX(e->values[AT_3].number, INT64_C(0)), time_ns;
	uint64_t thread = (uint64_t)e->values[AT_THREAD].number;
	struct java_jfr_sample s = {
		.class = &e->values[AT_2], .leaf = &e->values[AT_2], .values = {0, weight}};
	struct java_jfr_thread info;
	size_t sum;
	int r;

	r = add(p, SOURCE_ALLOC_WEIGHT, j, e, &s, &sum);
	if (r < 0 || sum == SIZE_MAX)
		return r;
	/* Virtual threads have no count; what they allocate is in that of whoever runs them. */
	if (java_jfr_thread(j, &e->values[AT_THREAD], &info) && info.is_virtual) {
		p->uses_totals = false;
		return 0;
	}
	time_ns = java_jfr_time_ns(j, e->values[AT_4].number);
	r = java_jfr_births_sample(&p->births, thread, time_ns, weight, sum);
	if (r == 0 && p->uses_totals)
		r = java_jfr_totals_sample(&p->totals, thread, time_ns, weight, sum);
	return r;
}

/* A TLAB counts as filled with objects like the one known. */
static int add_tlab(struct java_jfr_profiler *p, const struct java_jfr *j,
		    const struct java_jfr_event *e)
{
	int64_t size = MAX(e->values[AT_3].number, INT64_C(1));
	int64_t weight = e->query == QUERY_ALLOC_IN_TLAB ? e->values[AT_4].number : size;
	struct java_jfr_sample s = {
		.class = &e->values[AT_2],
		.leaf = &e->values[AT_2],
		.values = {MAX(weight / size, INT64_C(1)), MAX(weight, INT64_C(0))}};

	p->stats.tlab_bytes = sum_add(p->stats.tlab_bytes, s.values[1]);
	return add(p, SOURCE_ALLOC_TLAB, j, e, &s, NULL);
}

/* Counts start with the thread, so the first value only sets the base. */
static int add_count(struct java_jfr_profiler *p, const struct java_jfr_event *e)
{
	uint64_t thread = (uint64_t)e->values[0].number, before;
	int64_t now = MAX(e->values[1].number, INT64_C(0));

	if (!map_get(&p->counts, thread, &before)) {
		if (p->counts.len >= COUNTS_MAX)
			return 0;
		if (!map_get(&p->counts_before, thread, &before))
			before = (uint64_t)now;
	}
	now = MAX(now, (int64_t)before);
	p->stats.counted_bytes = sum_add(p->stats.counted_bytes, now - (int64_t)before);
	return map_put(&p->counts, thread, (uint64_t)now);
}

static void counts_age(struct java_jfr_profiler *p)
{
	if (!p->counts.len)
		return;
	map_release(&p->counts_before);
	p->counts_before = p->counts;
	p->counts = (struct map){0};
}

/* If it turns out to have no sample, this is where its bytes go. */
static int add_total(struct java_jfr_profiler *p, const struct java_jfr *j,
		     const struct java_jfr_event *e)
{
	struct java_jfr_sample s = {.thread = &e->values[0], .remark = "[allocated unseen]"};
	uint64_t thread = (uint64_t)e->values[0].number, born;
	bool is_born = map_get(&p->births.born, thread, &born) &&
		       p->totals.round - born < JAVA_JFR_TOTALS_ROUNDS;
	size_t sum;
	int r;

	if (!p->uses_totals)
		return 0;
	r = java_jfr_totals_count(&p->totals, thread, java_jfr_time_ns(j, e->values[2].number),
				  MAX(e->values[1].number, INT64_C(0)), is_born);
	if (r <= 0)
		return r;
	r = java_jfr_builder_add(&p->builders[SOURCE_ALLOC_WEIGHT], j, e, &s, &sum);
	if (r == 0 && sum != SIZE_MAX)
		java_jfr_totals_spare(&p->totals, thread, sum);
	return r;
}

static bool is_lock(const struct java_jfr *j, const struct java_jfr_value *class)
{
	struct view name;

	return java_jfr_class_name(j, class, &name) &&
	       (view_starts_with(name, "java/util/concurrent/locks/Reentrant") ||
		view_starts_with(name, "java/util/concurrent/locks/StampedLock") ||
		view_starts_with(name, "java/util/concurrent/Semaphore"));
}

/* Whether a thread waits for its turn to wait, on top of its stack. */
static bool is_idle(const struct java_jfr *j, const struct java_jfr_value *value)
{
	struct view class_name, method;
	struct java_jfr_stack stack;

	if (!java_jfr_stack(j, value, &stack))
		return false;
	for (uint32_t i = 0; i < MIN(stack.n_frames, (uint32_t)JAVA_JFR_NAMES_IDLE_DEPTH); i++)
		if (java_jfr_method_names(&stack, &stack.frames[i], &class_name, &method) &&
		    java_jfr_names_is_idle(class_name, method))
			return true;
	return false;
}

static int add_lock(struct java_jfr_profiler *p, const struct java_jfr *j,
		    const struct java_jfr_event *e)
{
	int64_t ns = MAX(java_jfr_duration_ns(j, e->values[AT_3].number), INT64_C(0));
	struct java_jfr_sample s = {.leaf = &e->values[AT_2], .values = {1, ns}};

	if ((e->query == QUERY_PARK && !is_lock(j, &e->values[AT_2])) ||
	    is_idle(j, &e->values[AT_STACK])) {
		p->stats.idle_waits++;
		p->stats.idle_ns = sum_add(p->stats.idle_ns, ns);
		return 0;
	}
	/* async-profiler samples shorter waits in proportion to its interval. */
	if (p->lock_ns > 0 && ns > 0 && ns < p->lock_ns) {
		s.values[0] = p->lock_ns / ns;
		s.values[1] = p->lock_ns;
	}
	return add(p, SOURCE_LOCK, j, e, &s, NULL);
}

static int64_t number_in(struct view text)
{
	int64_t n = 0;

	for (size_t i = 0; i < text.len; i++) {
		if (text.data[i] < '0' || text.data[i] > '9' || i == 18)
			return 0;
		n = n * 10 + (text.data[i] - '0');
	}
	return n;
}

/* Only async-profiler has settings with these names. */
static void note_setting(struct java_jfr_profiler *p, const struct java_jfr *j,
			 const struct java_jfr_event *e)
{
	struct view name, value;

	if (!java_jfr_text(j, &e->values[0], &name) || !java_jfr_text(j, &e->values[1], &value))
		return;
	if (view_eq(name, view_str("interval")))
		p->interval_ns = number_in(value);
	else if (view_eq(name, view_str("lock")))
		p->lock_ns = number_in(value);
	else if (view_eq(name, view_str("event")))
		p->is_wall = view_eq(value, view_str("wall"));
}

static int add_event(struct java_jfr_profiler *p, const struct java_jfr *j,
		     const struct java_jfr_event *e)
{
	struct java_jfr_sample one = {.values = {1, 0}};
	int r;

	switch (e->query) {
	case QUERY_CPU_TIME:
		return add_cpu_time(p, j, e);
	case QUERY_CPU_LOST:
		p->stats.cpu_dropped += (uint64_t)MAX(e->values[0].number, INT64_C(0));
		return 0;
	case QUERY_EXECUTION:
		return add(p, SOURCE_CPU_COUNT, j, e, &one, NULL);
	case QUERY_ALLOC_SAMPLE:
		return add_alloc_sample(p, j, e);
	case QUERY_ALLOC_IN_TLAB:
	case QUERY_ALLOC_OUTSIDE:
		return add_tlab(p, j, e);
	case QUERY_ALLOC_COUNT:
		r = add_count(p, e);
		return r < 0 ? r : add_total(p, j, e);
	case QUERY_MONITOR:
	case QUERY_PARK:
		return add_lock(p, j, e);
	case QUERY_THREAD_START:
		return java_jfr_births_born(&p->births, (uint64_t)e->values[0].number,
					    p->totals.round);
	case QUERY_JVM:
		p->births.jvm_start_ms = e->values[0].number;
		return 0;
	case QUERY_RECORDING:
		java_jfr_births_recording(&p->births, e->values[0].number);
		return 0;
	default:
		note_setting(p, j, e);
		return 0;
	}
}

int java_jfr_profiler_add(struct java_jfr_profiler *p, const struct java_jfr *j,
			  const struct java_jfr_event *e, struct err *err)
{
	int r;

	p->births.file_start_ns = java_jfr_stats(j)->start_ns;
	r = add_event(p, j, e);
	return r < 0 ? err_oom(err) : 0;
}

int java_jfr_profiler_read(struct java_jfr_profiler *p, struct java_jfr *j, struct err *err)
{
	struct java_jfr_event e;
	int r;

	while ((r = java_jfr_next(j, &e, err)) == 1) {
		r = java_jfr_profiler_add(p, j, &e, err);
		if (r < 0)
			return r;
	}
	return r;
}

static void drop_first(void *arg, const struct java_jfr_first *first)
{
	struct java_jfr_profiler *p = arg;
	struct java_jfr_sum *sum =
		java_jfr_builder_sum(&p->builders[SOURCE_ALLOC_WEIGHT], first->sum);

	sum->values[1] -= first->weight;
	java_jfr_totals_drop(&p->totals, first->thread, first->time_ns);
	p->stats.first_samples++;
	p->stats.first_bytes += (uint64_t)first->weight;
}

static void add_bytes(void *arg, size_t sum, int64_t bytes)
{
	struct java_jfr_profiler *p = arg;
	int64_t *value = &java_jfr_builder_sum(&p->builders[SOURCE_ALLOC_WEIGHT], sum)->values[1];

	*value = MAX(sum_add(*value, bytes), INT64_C(0));
}

static int64_t total(struct java_jfr_builder *b)
{
	int64_t sum = 0;

	for (size_t i = 0; i < java_jfr_builder_n_sums(b); i++)
		sum = sum_add(sum, java_jfr_builder_sum(b, i)->values[1]);
	return sum;
}

/* Both cover the same allocations, but one may have been on for only part of the time. */
static enum source pick_alloc(struct java_jfr_profiler *p)
{
	int64_t tlab = total(&p->builders[SOURCE_ALLOC_TLAB]);
	int64_t weight = total(&p->builders[SOURCE_ALLOC_WEIGHT]);

	return tlab > 0 && tlab >= weight / 10 * 9 ? SOURCE_ALLOC_TLAB : SOURCE_ALLOC_WEIGHT;
}

static void count_to_time(struct java_jfr_profiler *p)
{
	struct java_jfr_builder *b = &p->builders[SOURCE_CPU_COUNT];

	for (size_t i = 0; i < java_jfr_builder_n_sums(b); i++) {
		struct java_jfr_sum *sum = java_jfr_builder_sum(b, i);

		sum->values[1] = sum_mul(sum->values[0], p->interval_ns);
	}
}

static enum source pick_cpu(struct java_jfr_profiler *p)
{
	if (java_jfr_builder_n_sums(&p->builders[SOURCE_CPU_TIME]) ||
	    !java_jfr_builder_n_sums(&p->builders[SOURCE_CPU_COUNT]))
		return SOURCE_CPU_TIME;
	return SOURCE_CPU_COUNT;
}

static int take(struct java_jfr_profiler *p, enum source source, enum java_jfr_profile_kind kind,
		struct profile **ret_profile, struct err *err)
{
	static const struct java_jfr_builder_type cpu[] = {{TYPE_JAVA_CPU_SAMPLES, 0},
							   {TYPE_JAVA_CPU_TIME, 1}};
	static const struct java_jfr_builder_type alloc[] = {{TYPE_JAVA_ALLOC_OBJECTS, 0},
							     {TYPE_JAVA_ALLOC_SPACE, 1}};
	static const struct java_jfr_builder_type lock[] = {{TYPE_JAVA_LOCK_CONTENTIONS, 0},
							    {TYPE_JAVA_LOCK_DELAY, 1}};

	if (kind == JAVA_JFR_PROFILE_LOCK)
		return java_jfr_builder_finish(&p->builders[source], lock, 2, ret_profile, err);
	/* The weight does not tell the size of an object. */
	if (kind == JAVA_JFR_PROFILE_ALLOC)
		return source == SOURCE_ALLOC_TLAB
			       ? java_jfr_builder_finish(&p->builders[source], alloc, 2,
							 ret_profile, err)
			       : java_jfr_builder_finish(&p->builders[source], &alloc[1], 1,
							 ret_profile, err);
	p->stats.cpu_is_time = source == SOURCE_CPU_TIME || (p->interval_ns && !p->is_wall);
	if (source == SOURCE_CPU_COUNT && p->stats.cpu_is_time)
		count_to_time(p);
	return java_jfr_builder_finish(&p->builders[source], cpu, p->stats.cpu_is_time ? 2 : 1,
				       ret_profile, err);
}

/* Events of the source not chosen must not appear in the next profile. */
static int clear(struct java_jfr_builder *b, struct err *err)
{
	struct java_jfr_builder_options options = b->options;

	java_jfr_builder_release(b);
	return java_jfr_builder_init(b, &options) < 0 ? err_oom(err) : 0;
}

int java_jfr_profiler_take(struct java_jfr_profiler *p, enum java_jfr_profile_kind kind,
			   int64_t time_ns, int64_t duration_ns, struct profile **ret_profile,
			   struct err *err)
{
	enum source source = SOURCE_LOCK, other = SOURCE_N;
	struct profile *profile;
	int r;

	if (kind == JAVA_JFR_PROFILE_ALLOC) {
		java_jfr_births_settle(&p->births, drop_first, p);
		if (p->uses_totals)
			java_jfr_totals_settle(&p->totals, add_bytes, p);
		else
			java_jfr_totals_release(&p->totals);
		counts_age(p);
		source = pick_alloc(p);
		other = source == SOURCE_ALLOC_TLAB ? SOURCE_ALLOC_WEIGHT : SOURCE_ALLOC_TLAB;
	} else if (kind == JAVA_JFR_PROFILE_CPU) {
		source = pick_cpu(p);
		other = source == SOURCE_CPU_TIME ? SOURCE_CPU_COUNT : SOURCE_CPU_TIME;
	}
	r = take(p, source, kind, &profile, err);
	if (r < 0)
		return r;
	p->stats.events[kind] += p->events[source];
	p->events[source] = 0;
	if (other != SOURCE_N) {
		p->events[other] = 0;
		r = clear(&p->builders[other], err);
	}
	if (r < 0) {
		profile_free(profile);
		return r;
	}
	profile_header(profile)->time_ns = time_ns;
	profile_header(profile)->duration_ns = duration_ns;
	*ret_profile = profile;
	return 0;
}

void java_jfr_profiler_stats(const struct java_jfr_profiler *p,
			     struct java_jfr_profiler_stats *ret_stats)
{
	*ret_stats = p->stats;
	for (size_t i = 0; i < SOURCE_N; i++) {
		ret_stats->no_stack += p->builders[i].no_stack;
		ret_stats->truncated += p->builders[i].truncated;
		ret_stats->lost += p->builders[i].lost;
	}
}
