/* src/server/api/state.c: the state of sonde: /api/health and /api/targets. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "server/api/routes.h"

/* What people should know first: of the agent, else of the store. */
static const char *health_trouble(const struct agent_health *h, const struct store_status *s)
{
	if (h->trouble[0])
		return h->trouble;
	if (s->trouble[0])
		return s->trouble;
	return s->damage[0] ? s->damage : s->budget;
}

static void health_agent(struct json *j, const struct server_request *rq,
			 const struct store_status *s)
{
	struct agent_health h = {.started_ns = rq->context->started_ns, .cpu_ns = clock_cpu_ns()};
	int64_t uptime_ns;

	if (rq->context->agent)
		agent_health(rq->context->agent, &h);
	uptime_ns = MAX(rq->now_ns - h.started_ns, 0);
	server_answer_time(j, "started", h.started_ns);
	server_answer_time(j, "now", rq->now_ns);
	server_answer_uint(j, "interval_ms", rq->context->interval_ns / NS_PER_MS);
	server_answer_uint(j, "uptime_ms", (uint64_t)uptime_ns / NS_PER_MS);
	server_answer_uint(j, "cpu_ms", h.cpu_ns / NS_PER_MS);
	server_answer_double(j, "cpu_percent",
			     uptime_ns ? 100.0 * (double)h.cpu_ns / (double)uptime_ns : 0);
	server_answer_uint(j, "rss_bytes", h.rss_bytes);
	server_answer_uint(j, "intervals", h.intervals);
	json_key(j, "lag_ms");
	json_int(j, h.lag_ns / (int64_t)NS_PER_MS);
	server_answer_uint(j, "targets", h.targets);
	server_answer_uint(j, "profiled", h.profiled);
	server_answer_uint(j, "collections", h.collections);
	server_answer_uint(j, "failures", h.failures);
	server_answer_uint(j, "hung_reads", h.hung_reads);
	server_answer_uint(j, "unanswered_reads", h.unanswered_reads);
	server_answer_uint(j, "lost_records", h.lost_records);
	server_answer_uint(j, "write_failures", h.write_failures);
	server_answer_uint(j, "cpu_samples", h.cpu_samples);
	server_answer_uint(j, "cpu_samples_lost", h.cpu_samples_lost);
	server_answer_uint(j, "cpu_stacks_cut", h.cpu_stacks_cut);
	server_answer_uint(j, "oom_kills", h.oom_kills);
	server_answer_uint(j, "oom_late", h.oom_late);
	server_answer_uint(j, "oom_lost", h.oom_lost);
	server_answer_text(j, "oom_trouble", h.oom_trouble);
	server_answer_text(j, "trouble", health_trouble(&h, s));
}

static void health_store(struct json *j, const struct store_status *s)
{
	json_key(j, "store");
	json_object_begin(j);
	server_answer_uint(j, "bytes", s->bytes_on_disk);
	server_answer_uint(j, "days", s->days);
	server_answer_time(j, "oldest", s->oldest_ns);
	server_answer_uint(j, "samples", s->samples_written);
	server_answer_uint(j, "profiles", s->profiles_written);
	server_answer_uint(j, "profiles_lost", s->profiles_lost);
	server_answer_uint(j, "damaged_files", s->damaged_files);
	server_answer_uint(j, "damaged_blocks", s->damaged_blocks);
	server_answer_uint(j, "corrected_pages", s->corrected_pages);
	server_answer_text(j, "damage", s->damage);
	server_answer_uint(j, "over_budget", s->over_budget);
	server_answer_text(j, "budget", s->budget);
	server_answer_uint(j, "clock_ahead_ms", (uint64_t)s->clock_ahead_ns / NS_PER_MS);
	json_key(j, "writing");
	json_bool(j, s->writing);
	server_answer_text(j, "trouble", s->trouble);
	json_object_end(j);
}

static void health_sinks(struct json *j, struct agent *agent)
{
	struct agent_sinks_status sinks = {};

	if (agent)
		agent_sinks_status(agent, &sinks);
	json_key(j, "sinks");
	json_array_begin(j);
	for (size_t i = 0; i < sinks.len; i++) {
		const struct outbox_status *s = &sinks.items[i];

		json_object_begin(j);
		server_answer_text(j, "sink", s->name);
		server_answer_uint(j, "written", s->written);
		server_answer_uint(j, "dropped", s->dropped);
		server_answer_uint(j, "failures", s->failures);
		server_answer_uint(j, "queued", s->queued);
		server_answer_uint(j, "queued_bytes", s->queued_bytes);
		server_answer_uint(j, "spooled", s->spooled);
		server_answer_uint(j, "spooled_bytes", s->spooled_bytes);
		server_answer_uint(j, "spool_lost", s->spool_lost);
		server_answer_uint(j, "lag_ms", s->lag_ns / NS_PER_MS);
		server_answer_text(j, "trouble", s->trouble);
		json_object_end(j);
	}
	json_array_end(j);
}

bool server_api_features(const struct server_context *context, struct features *ret_features)
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
	features_set(ret_features, FEATURES_STORE, -EIO, &err);
	return true;
}

static void health_features(struct json *j, const struct server_context *context)
{
	struct features features;

	json_key(j, "features");
	if (server_api_features(context, &features))
		features_json(&features, j);
	else
		json_null(j);
}

int server_api_health(const struct server_request *rq, struct server_answer *a, struct err *err)
{
	struct json j = json_to(&a->body);
	struct store_status s = {0};

	store_status(rq->context->store, &s);
	json_object_begin(&j);
	server_answer_text(&j, "version", SONDE_VERSION);
	health_agent(&j, rq, &s);
	health_store(&j, &s);
	health_sinks(&j, rq->context->agent);
	health_features(&j, rq->context);
	json_object_end(&j);
	return server_api_finish(&j, err);
}

static void target_readers(struct json *j, const struct agent_target *t)
{
	json_key(j, "readers");
	json_array_begin(j);
	for (size_t i = 0; i < MIN(t->n_sources, ARRAY_SIZE(t->sources)); i++) {
		json_object_begin(j);
		server_answer_text(j, "reader", t->sources[i].source);
		server_answer_text(j, "family", t->sources[i].family);
		json_key(j, "available");
		json_bool(j, t->sources[i].answer.yes);
		server_answer_text(
			j, "cause",
			t->sources[i].answer.yes ? "" : err_cause_name(t->sources[i].answer.cause));
		server_answer_text(j, "reason", t->sources[i].answer.reason);
		server_answer_text(j, "remedy", t->sources[i].answer.remedy);
		server_answer_uint(j, "collections", t->sources[i].collections);
		server_answer_uint(j, "failures", t->sources[i].failures);
		server_answer_time(j, "last", t->sources[i].last_ns);
		server_answer_uint(j, "cost_us", t->sources[i].last_cost_ns / 1000);
		json_key(j, "slow");
		json_bool(j, t->sources[i].slow);
		server_answer_text(j, "trouble", t->sources[i].trouble);
		json_object_end(j);
	}
	json_array_end(j);
}

static void target_write(struct json *j, const struct agent_target *t)
{
	const struct proc_info *info = &t->target.info;

	json_object_begin(j);
	server_answer_uint(j, "pid", (uint64_t)info->id.pid);
	server_answer_uint(j, "start_ticks", info->id.start_ticks);
	server_answer_text(j, "comm", info->comm);
	server_answer_text(j, "exe", info->exe);
	server_answer_text(j, "command", info->command);
	server_answer_text(j, "service", info->service);
	server_answer_text(j, "container", info->container);
	server_answer_text(j, "pod", info->pod);
	server_answer_text(j, "unit", info->unit);
	server_answer_text(j, "runtime", t->target.runtime);
	target_readers(j, t);
	json_object_end(j);
}

int server_api_targets(const struct server_request *rq, struct server_answer *a, struct err *err)
{
	_cleanup_(agent_targets_release) struct agent_targets targets = {};
	const char *service = rq->params.text[SERVER_PARAM_SERVICE];
	struct json j = json_to(&a->body);

	if (rq->context->agent && agent_targets(rq->context->agent, &targets) < 0)
		return err_oom(err);
	json_object_begin(&j);
	json_key(&j, "targets");
	json_array_begin(&j);
	for (size_t i = 0; i < targets.len; i++)
		if (!service || strcmp(service, targets.items[i].target.info.service) == 0)
			target_write(&j, &targets.items[i]);
	json_array_end(&j);
	json_object_end(&j);
	return server_api_finish(&j, err);
}
