/*
 * src/agent/sources/java.c: the sources of Java processes: allocations, lock waits, CPU time (JDK
 * 25); and the JVM's own counters.
 *
 * The first three share one recording (agent/sources/java_programs.h), which they never wait for.
 * Touching a JVM is the user's choice: they are off by default. The last one only reads a file.
 */
#include "agent/sources/java.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/sources/java_programs.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/sum.h"
#include "java/hsperf.h"
#include "java/metrics.h"
#include "proc/maps.h"
#include "profile/tree.h"

struct java_reader {
	struct agent_java_program *program;
	enum java_jfr_profile_kind kind;
	uint64_t began; /* the recording read last, */
	uint64_t lost;	/* and its events lost by then */
	/* Texts of the last reading, which borrows them. */
	char why[256];
	char remedy[256];
};

static void java_refuse(struct source_answer *answer, bool of_file, enum err_cause cause,
			const char *reason, const char *remedy)
{
	*answer = (struct source_answer){.of_file = of_file};
	source_answer_no(answer, cause, reason, remedy);
}

/* Launchers that exec or load a JVM later are known by name only. */
static bool java_is_launcher(const struct source_target *target)
{
	const char *slash = strrchr(target->info.exe, '/');
	const char *base = slash ? slash + 1 : target->info.exe;

	return strcmp(base, "java") == 0 || strcmp(base, "jsvc") == 0;
}

/* Shared by its sources. */
struct java_share {
	bool asked; /* whether it has been probed */
	bool is_java;
	struct java_vm vm;		    /* if so */
	struct agent_java_program *program; /* NULL: it is not being recorded */
};

static void java_share_release(void *arg)
{
	struct java_share *share = arg;

	agent_java_program_unref(share->program);
}

static const struct source_share_kind java_share_kind = {
	.bytes = sizeof(struct java_share),
	.release = java_share_release,
};

/* Probed once for all of them. Yes for a HotSpot JVM. */
static int java_look(struct source_shares *shares, struct source_target *target,
		     struct java_share **ret_share, struct source_answer *answer, struct err *err)
{
	struct java_share *share = source_share(shares, &java_share_kind, err);
	int r = share ? shares->denied : -ENOMEM;

	if (r == 0 && !share->asked) {
		r = java_detect_pid(target->info.id.pid, &share->vm, err);
		share->is_java = r > 0;
		share->asked = r >= 0;
	}
	if (r < 0)
		return r;
	*ret_share = share;
	*answer = (struct source_answer){.yes = true};
	if (!share->is_java) {
		java_refuse(answer, true, ERR_CAUSE_NOT_JAVA, "not a Java program", "");
		answer->may_change = java_is_launcher(target);
		return 0;
	}
	if (share->vm.kind != JAVA_HOTSPOT)
		java_refuse(answer, true, ERR_CAUSE_UNSUPPORTED,
			    share->vm.reason ? share->vm.reason : share->vm.name, "");
	if (share->vm.kind != JAVA_NATIVE_IMAGE)
		(void)snprintf(target->runtime, sizeof(target->runtime), "java %.26s",
			       share->vm.version);
	return 0;
}

/* A JVM that is still starting does not identify itself yet. */
static void java_refuse_vm(struct java_share *share, struct source_answer *answer)
{
	java_refuse(answer, false, share->vm.cause, share->vm.reason, "");
	answer->may_change = share->vm.commands == JAVA_COMMANDS_NOT_YET || !share->vm.major;
	share->asked = !answer->may_change;
}

static int java_probe_all(const struct agent_java_source_config *java, struct source_shares *shares,
			  struct source_target *target, struct java_share **ret_share,
			  struct source_answer *ret_answer, struct err *err)
{
	struct source_answer answer;
	struct java_share *share;
	int r = java_look(shares, target, &share, &answer, err);

	if (r < 0)
		return r;
	if (answer.yes && target->info.java_off)
		java_refuse(&answer, false, ERR_CAUSE_OPTED_OUT,
			    "opted out: SONDE_JAVA=off in its environment", "");
	else if (answer.yes && share->vm.reason)
		java_refuse_vm(share, &answer);
	else if (answer.yes && !(java->on && java->java))
		java_refuse(&answer, true, ERR_CAUSE_DISABLED, "available but off by default",
			    "start sonde run with --java, or run sonde java PID");
	*ret_share = share;
	*ret_answer = answer;
	return 0;
}

static int java_probe(const void *config, struct source_shares *shares,
		      struct source_target *target, struct source_answer *ret_answer,
		      struct err *err)
{
	struct java_share *share;

	return java_probe_all(config, shares, target, &share, ret_answer, err);
}

static int java_cpu_probe(const void *config, struct source_shares *shares,
			  struct source_target *target, struct source_answer *ret_answer,
			  struct err *err)
{
	const struct agent_java_source_config *java = config;
	struct source_answer answer;
	struct java_share *share;
	int r = java_probe_all(java, shares, target, &share, &answer, err);

	if (r < 0)
		return r;
	if (answer.yes && share->vm.major < 25 && !java->async)
		java_refuse(&answer, true, ERR_CAUSE_UNKNOWN_VERSION,
			    share->vm.major < JAVA_PERFMAP_MAJOR
				    ? "CPU time from the JVM needs JDK 25 or later; see the cpu "
				      "profile, which has Java names from JDK 17 on"
				    : "CPU time from the JVM needs JDK 25 or later; see the cpu "
				      "profile, which has Java names",
			    "");
	*ret_answer = answer;
	return 0;
}

static int java_open(const struct agent_java_source_config *java, struct source_shares *shares,
		     const struct source_target *target, enum java_jfr_profile_kind kind,
		     void **ret_state, struct err *err)
{
	struct java_share *share = source_share(shares, &java_share_kind, err);
	struct java_reader *reader = share ? calloc(1, sizeof(*reader)) : NULL;
	int r = 0;

	if (!reader)
		return err_oom(err);
	if (!share->program)
		r = agent_java_program_open(java->java, &target->info.id, &share->program, err);
	if (r < 0) {
		free(reader);
		return r;
	}
	reader->kind = kind;
	reader->program = agent_java_program_ref(share->program);
	*ret_state = reader;
	return 0;
}

static int java_alloc_open(const void *config, struct source_shares *shares,
			   const struct source_target *target, void **ret_state, struct err *err)
{
	return java_open(config, shares, target, JAVA_JFR_PROFILE_ALLOC, ret_state, err);
}

static int java_lock_open(const void *config, struct source_shares *shares,
			  const struct source_target *target, void **ret_state, struct err *err)
{
	return java_open(config, shares, target, JAVA_JFR_PROFILE_LOCK, ret_state, err);
}

static int java_cpu_open(const void *config, struct source_shares *shares,
			 const struct source_target *target, void **ret_state, struct err *err)
{
	return java_open(config, shares, target, JAVA_JFR_PROFILE_CPU, ret_state, err);
}

/* The leaf of a wait is the class of the lock; locks of java.util.concurrent park. */
static bool java_is_park(const struct profile *p, const struct profile_sample *s)
{
	const struct profile_location *leaf;
	const uint32_t *stack;
	uint32_t len;

	stack = profile_stack_at(p, s->stack, &len);
	leaf = len ? profile_location_at(p, stack[0]) : NULL;
	if (!leaf || !leaf->n_lines)
		return false;
	return view_starts_with(
		profile_string(p, profile_function_at(p, leaf->lines[0].function)->name),
		"java.util.concurrent.");
}

/* Waits of threads, for monitors and when parked. */
struct java_waits {
	int64_t count[2];
	int64_t ns[2];
};

static struct java_waits java_waits_of(const struct profile *p)
{
	struct java_waits w = {0};

	for (size_t i = 0; i < profile_n_samples(p); i++) {
		const struct profile_sample *s = profile_sample_at(p, i);
		bool park = java_is_park(p, s);

		w.count[park] = sum_add(w.count[park], s->values[0]);
		w.ns[park] = sum_add(w.ns[park], s->values[1]);
	}
	return w;
}

static int java_add(struct metrics *to, enum metric_id id, const char *attribute, int64_t increase)
{
	return metrics_add(to, &(struct metric_point){
				       .metric = &registry_metrics[id],
				       .attributes = {attribute},
				       .value = NAN,
				       .increase = (double)MAX(increase, (int64_t)0),
			       });
}

static int java_add_waits(const struct profile *p, struct metrics *to)
{
	static const char *const kinds[] = {"monitor", "park"};
	const struct java_waits w = java_waits_of(p);
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(kinds); i++) {
		r = java_add(to, METRIC_JVM_LOCK_CONTENTIONS, kinds[i], w.count[i]);
		if (r == 0)
			r = java_add(to, METRIC_JVM_LOCK_TIME, kinds[i], w.ns[i]);
	}
	return r;
}

static int java_count(const struct java_reader *reader, struct source_reading *reading)
{
	_cleanup_(metrics_freep) struct metrics *to = metrics_new();
	const struct profile *p = reading->profile;
	int space = profile_find_type(p, registry_types[TYPE_JAVA_ALLOC_SPACE].name);
	int r = to ? 0 : -ENOMEM;

	if (r == 0 && reader->kind == JAVA_JFR_PROFILE_LOCK)
		r = java_add_waits(p, to);
	if (r == 0 && space >= 0)
		r = java_add(to, METRIC_JVM_ALLOCATED, NULL, profile_total(p, (size_t)space));
	if (r == 0 && reader->kind == JAVA_JFR_PROFILE_ALLOC)
		r = java_add(to, METRIC_JVM_LOST_SAMPLES, NULL, (int64_t)reading->lost);
	if (r == 0)
		reading->metrics = TAKE_PTR(to);
	return r;
}

/* Lost events belong to all profiles: count them once. */
static void java_count_lost(struct java_reader *reader, struct java_collect *c, uint64_t began,
			    struct source_reading *reading)
{
	uint64_t lost = java_collect_lost(c);

	if (reader->kind != JAVA_JFR_PROFILE_ALLOC)
		return;
	if (began != reader->began)
		reader->lost = 0;
	reader->began = began;
	reading->lost = lost - MIN(reader->lost, lost);
	(void)snprintf(reading->collector, sizeof(reading->collector), "%s", java_collect_name(c));
	reader->lost = lost;
}

static void java_say_hidden(const struct java_reader *reader, struct java_collect *c,
			    struct source_reading *reading)
{
	char share[40] = "may be missing";
	unsigned int percent;
	uint64_t bytes;

	if (reader->kind != JAVA_JFR_PROFILE_ALLOC || !java_collect_hidden(c, &bytes, &percent))
		return;
	if (percent)
		(void)snprintf(share, sizeof(share), "are missing, at least %u%%", percent);
	(void)snprintf(
		reading->note, sizeof(reading->note),
		"allocations %s (JDK 8); start the JVM with -XX:+UseG1GC or -XX:-FastTLABRefill",
		share);
}

static void java_say_calm(const struct java_reader *reader, struct java_collect *c,
			  struct source_reading *reading)
{
	struct java_collect_stats s;

	java_collect_stats(c, &s);
	if (reader->kind == JAVA_JFR_PROFILE_LOCK && s.is_calm)
		(void)snprintf(reading->note, sizeof(reading->note),
			       "waits for java.util.concurrent below %u ms are left out: idle "
			       "threads wait too often",
			       JAVA_RECORDING_CALM_MS);
}

/* Rarely: our library would have been gentler, but could not be loaded. */
static void java_say_costly(const struct java_reader *reader, const struct java_collect *c,
			    struct source_reading *reading)
{
	if (reader->kind == JAVA_JFR_PROFILE_ALLOC &&
	    java_collect_choice(c) == JAVA_COLLECT_COSTLY && !reading->note[0])
		(void)snprintf(reading->note, sizeof(reading->note),
			       "the first start of its recorder slowed this JVM down for seconds");
}

static int java_read(struct java_reader *reader, uint64_t began, struct source_reading *reading,
		     struct err *err)
{
	struct java_collect *c = agent_java_program_lock(reader->program);
	const struct java_collect_window times = {0}; /* the loop sets the times */
	int r = 0;

	if (c)
		r = java_collect_read(c, err);
	if (c && r == 0 && java_collect_lacks(c, reader->kind)) {
		reading->idle = java_collect_lacks(c, reader->kind);
		reading->idle_cause = ERR_CAUSE_UNSUPPORTED;
	} else if (c && r == 0) {
		r = java_collect_take(c, reader->kind, &times, &reading->profile, err);
	}
	if (c && r == 0)
		java_count_lost(reader, c, began, reading);
	if (c && r == 0)
		java_say_hidden(reader, c, reading);
	if (c && r == 0) {
		java_say_costly(reader, c, reading);
		java_say_calm(reader, c, reading);
	}
	agent_java_program_unlock(reader->program);
	return r;
}

static void java_say_idle(struct java_reader *reader, const struct agent_java_program_state *state,
			  struct source_reading *reading)
{
	bool again = state->code == 0 || state->code == -EAGAIN || state->code == -EBUSY ||
		     state->code == -ENOENT || state->code == -ENOMEM;

	(void)snprintf(reader->why, sizeof(reader->why), "%s",
		       state->code == 0 ? "the recording is starting" : state->why);
	(void)snprintf(reader->remedy, sizeof(reader->remedy), "%s",
		       again ? "wait for the next attempt" : state->remedy);
	reading->idle = reader->why;
	reading->idle_cause = state->code == 0 ? ERR_CAUSE_PENDING : state->cause;
	reading->idle_remedy = reader->remedy;
	if (reading->profile && profile_n_samples(reading->profile) == 0)
		profile_free(TAKE_PTR(reading->profile));
}

static void java_say_note(const struct agent_java_program_state *state,
			  struct source_reading *reading)
{
	if (state->why[0])
		(void)snprintf(reading->note, sizeof(reading->note), "%.127s", state->why);
	else if (state->map_why[0] && !reading->note[0])
		(void)snprintf(reading->note, sizeof(reading->note), "CPU profile: %.110s",
			       state->map_why);
}

static int java_collect(void *arg, struct source_reading *ret_reading, struct err *err)
{
	struct java_reader *reader = arg;
	struct agent_java_program_state state;
	struct source_reading reading = {0};
	int r;

	/* Before reading: once it reports its end, no more data will come. */
	agent_java_program_state(reader->program, &state);
	if (state.code == -ESRCH)
		return err_set(err, -ESRCH, "%s", state.why);
	r = java_read(reader, state.began, &reading, err);
	if (r < 0) {
		profile_free(reading.profile);
		return r;
	}
	if (!state.records)
		java_say_idle(reader, &state, &reading);
	else
		java_say_note(&state, &reading);
	if (reading.profile && java_count(reader, &reading) < 0) {
		source_reading_release(&reading);
		return err_oom(err);
	}
	*ret_reading = reading;
	return 0;
}

static void java_close(void *arg)
{
	struct java_reader *reader = arg;

	agent_java_program_unref(reader->program);
	free(reader);
}

const struct source_ops agent_source_java_alloc = {
	.name = "java-alloc",
	.family = "java_alloc",
	.probe = java_probe,
	.open = java_alloc_open,
	.collect = java_collect,
	.close = java_close,
};

const struct source_ops agent_source_java_lock = {
	.name = "java-lock",
	.family = "java_lock",
	.probe = java_probe,
	.open = java_lock_open,
	.collect = java_collect,
	.close = java_close,
};

const struct source_ops agent_source_java_cpu = {
	.name = "java-cpu",
	.family = "java_cpu",
	.probe = java_cpu_probe,
	.open = java_cpu_open,
	.collect = java_collect,
	.close = java_close,
};

static int java_runtime_probe(const void *config, struct source_shares *shares,
			      struct source_target *target, struct source_answer *ret_answer,
			      struct err *err)
{
	struct java_share *share;

	(void)config;
	return java_look(shares, target, &share, ret_answer, err);
}

static int java_runtime_open(const void *config, struct source_shares *shares,
			     const struct source_target *target, void **ret_state, struct err *err)
{
	_cleanup_(proc_maps_release) struct proc_maps maps = {0};
	struct java_hsperf *hsperf;
	int r = proc_maps_read(target->info.id.pid, &maps, err);

	(void)config;
	(void)shares;
	if (r == 0)
		r = java_hsperf_open(&target->info.id, &maps, &hsperf, err);
	if (r == 0)
		*ret_state = hsperf;
	return r;
}

static int java_runtime_add(void *arg, const struct metric_point *point)
{
	return metrics_add(arg, point);
}

static int java_runtime_metrics(const struct java_hsperf *hsperf, struct metrics **ret_metrics,
				struct err *err)
{
	_cleanup_(metrics_freep) struct metrics *to = metrics_new();
	struct java_metrics m;
	int r = to ? java_metrics_read(hsperf, &m, err) : err_oom(err);

	if (r < 0)
		return r;
	if (java_metrics_each(&m, clock_unix_ns() / NS_PER_MS, java_runtime_add, to) < 0)
		return err_oom(err);
	*ret_metrics = TAKE_PTR(to);
	return 0;
}

static int java_runtime_collect(void *state, struct source_reading *ret_reading, struct err *err)
{
	struct source_reading reading = {0};
	int r = java_hsperf_read(state, err);

	if (r == -EAGAIN) {
		reading.idle = "the JVM is still starting";
		reading.idle_remedy = "wait for the next attempt";
		reading.idle_cause = ERR_CAUSE_PENDING;
		r = 0;
	} else if (r == 0) {
		r = java_runtime_metrics(state, &reading.metrics, err);
	}
	if (r == 0)
		*ret_reading = reading;
	return r;
}

static void java_runtime_close(void *state)
{
	java_hsperf_close(state);
}

const struct source_ops agent_source_java_runtime = {
	.name = "java-runtime",
	.family = "java_runtime",
	.probe = java_runtime_probe,
	.open = java_runtime_open,
	.collect = java_runtime_collect,
	.close = java_runtime_close,
};
