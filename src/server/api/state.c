/* src/server/api/state.c: the state of sonde: /api/health and /api/targets. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "server/api/routes.h"

static void health_agent(struct json *j, const struct request *rq)
{
	struct agent_health h = {.started_ns = rq->context->started_ns, .cpu_ns = clock_cpu_ns()};
	int64_t uptime_ns;

	if (rq->context->agent)
		agent_health(rq->context->agent, &h);
	uptime_ns = MAX(rq->now_ns - h.started_ns, 0);
	answer_time(j, "started", h.started_ns);
	answer_time(j, "now", rq->now_ns);
	answer_uint(j, "interval_ms", rq->context->interval_ns / NS_PER_MS);
	answer_uint(j, "uptime_ms", (uint64_t)uptime_ns / NS_PER_MS);
	answer_uint(j, "cpu_ms", h.cpu_ns / NS_PER_MS);
	answer_double(j, "cpu_percent",
		      uptime_ns ? 100.0 * (double)h.cpu_ns / (double)uptime_ns : 0);
	answer_uint(j, "rss_bytes", h.rss_bytes);
	answer_uint(j, "intervals", h.intervals);
	json_key(j, "lag_ms");
	json_int(j, h.lag_ns / (int64_t)NS_PER_MS);
	answer_uint(j, "targets", h.targets);
	answer_uint(j, "profiled", h.profiled);
	answer_uint(j, "collections", h.collections);
	answer_uint(j, "failures", h.failures);
	answer_uint(j, "lost_records", h.lost_records);
	answer_uint(j, "write_failures", h.write_failures);
	answer_uint(j, "cpu_samples", h.cpu_samples);
	answer_uint(j, "cpu_samples_lost", h.cpu_samples_lost);
	answer_uint(j, "cpu_stacks_cut", h.cpu_stacks_cut);
	answer_uint(j, "oom_kills", h.oom_kills);
	answer_uint(j, "oom_late", h.oom_late);
	answer_uint(j, "oom_lost", h.oom_lost);
	answer_text(j, "oom_trouble", h.oom_trouble);
	answer_text(j, "trouble", h.trouble);
}

static void health_store(struct json *j, struct store *store)
{
	struct store_status s = {0};

	store_status(store, &s);
	json_key(j, "store");
	json_object_begin(j);
	answer_uint(j, "bytes", s.bytes_on_disk);
	answer_uint(j, "days", s.days);
	answer_time(j, "oldest", s.oldest_ns);
	answer_uint(j, "samples", s.samples_written);
	answer_uint(j, "profiles", s.profiles_written);
	answer_uint(j, "profiles_lost", s.profiles_lost);
	answer_uint(j, "damaged_files", s.damaged_files);
	json_key(j, "writing");
	json_bool(j, s.writing);
	answer_text(j, "trouble", s.trouble);
	json_object_end(j);
}

bool api_features(const struct context *context, struct features *ret_features)
{
	struct store_status s = {0};
	struct err err = {};

	if (!context->agent)
		return false;
	agent_features(context->agent, ret_features);
	store_status(context->store, &s);
	if (s.writing)
		return true;
	(void)err_lack(&err, -EIO, ERR_CAUSE_DISK,
		       "free disk space, or start sonde run with another --data-dir", "%s",
		       s.trouble[0] ? s.trouble : "profiles cannot be written");
	features_set(ret_features, FEATURE_STORE, -EIO, &err);
	return true;
}

static void health_features(struct json *j, const struct context *context)
{
	struct features features;

	json_key(j, "features");
	if (api_features(context, &features))
		features_json(&features, j);
	else
		json_null(j);
}

int api_health(const struct request *rq, struct answer *a, struct err *err)
{
	struct json j = json_to(&a->body);

	json_object_begin(&j);
	answer_text(&j, "version", SONDE_VERSION);
	health_agent(&j, rq);
	health_store(&j, rq->context->store);
	health_features(&j, rq->context);
	json_object_end(&j);
	return api_finish(&j, err);
}

static void target_readers(struct json *j, const struct agent_target *t)
{
	json_key(j, "readers");
	json_array_begin(j);
	for (size_t i = 0; i < MIN(t->n_sources, ARRAY_SIZE(t->sources)); i++) {
		json_object_begin(j);
		answer_text(j, "reader", t->sources[i].source);
		json_key(j, "available");
		json_bool(j, t->sources[i].answer.yes);
		answer_text(j, "cause",
			    t->sources[i].answer.yes ? ""
						     : err_cause_name(t->sources[i].answer.cause));
		answer_text(j, "reason", t->sources[i].answer.reason);
		answer_text(j, "remedy", t->sources[i].answer.remedy);
		answer_uint(j, "collections", t->sources[i].collections);
		answer_uint(j, "failures", t->sources[i].failures);
		answer_time(j, "last", t->sources[i].last_ns);
		answer_uint(j, "cost_us", t->sources[i].last_cost_ns / 1000);
		json_key(j, "slow");
		json_bool(j, t->sources[i].slow);
		answer_text(j, "trouble", t->sources[i].trouble);
		json_object_end(j);
	}
	json_array_end(j);
}

static void target_write(struct json *j, const struct agent_target *t)
{
	const struct proc_info *info = &t->target.info;

	json_object_begin(j);
	answer_uint(j, "pid", (uint64_t)info->id.pid);
	answer_uint(j, "start_ticks", info->id.start_ticks);
	answer_text(j, "comm", info->comm);
	answer_text(j, "exe", info->exe);
	answer_text(j, "service", info->service);
	answer_text(j, "container", info->container);
	answer_text(j, "pod", info->pod);
	answer_text(j, "unit", info->unit);
	answer_text(j, "runtime", t->target.runtime);
	target_readers(j, t);
	json_object_end(j);
}

int api_targets(const struct request *rq, struct answer *a, struct err *err)
{
	_cleanup_(agent_targets_release) struct agent_targets targets = {};
	struct json j = json_to(&a->body);

	if (rq->context->agent && agent_targets(rq->context->agent, &targets) < 0)
		return err_oom(err);
	json_object_begin(&j);
	json_key(&j, "targets");
	json_array_begin(&j);
	for (size_t i = 0; i < targets.len; i++)
		target_write(&j, &targets.items[i]);
	json_array_end(&j);
	json_object_end(&j);
	return api_finish(&j, err);
}
