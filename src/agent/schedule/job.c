/* src/agent/schedule/job.c: the work of a pool thread on one target: close, look, collect. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agent/state.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "proc/maps.h"

uint64_t agent_thread_cpu_ns(void)
{
	struct timespec t = {0};

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * NS_PER_SEC + (uint64_t)t.tv_nsec;
}

/* Closes all sources, or only those about to be probed again. */
static void work_close(const struct agent *a, struct agent_job *job, bool all)
{
	for (size_t i = 0; i < a->n_sources; i++) {
		if (!all && !job->sources[i].ask)
			continue;
		if (job->sources[i].state)
			a->sources[i].ops->close(job->sources[i].state);
		job->sources[i].state = NULL;
	}
}

/* The last open source frees what they share. */
static void work_close_shares(const struct agent *a, struct agent_job *job)
{
	for (size_t i = 0; i < a->n_sources; i++)
		if (job->sources[i].state)
			return;
	source_shares_clear(&job->shares);
}

static void work_ask(const struct agent *a, struct agent_job *job, size_t i)
{
	struct source_answer *answer = &job->sources[i].answer;
	const struct source_ops *ops = a->sources[i].ops;
	struct err *err = &job->sources[i].err;
	int r = ops->probe(a->sources[i].config, &job->shares, &job->target, answer, err);

	if (r == 0 && !answer->yes)
		return;
	if (r == 0 && !job->may_open) {
		char reason[128];

		(void)snprintf(reason, sizeof(reason),
			       "the limit of %d profiled processes is reached", AGENT_MAX_PROFILED);
		source_answer_no(answer, ERR_CAUSE_LIMIT, reason,
				 "set SONDE_PROFILING=disabled in less important ones");
		answer->may_change = true;
		return;
	}
	if (r == 0)
		r = ops->open(a->sources[i].config, &job->shares, &job->target,
			      &job->sources[i].state, err);
	if (r == -ESRCH)
		job->result = r;
	else if (r < 0)
		source_answer_refuse(answer, r, err);
	if (r == -ENOTSUP && ops->no_is_final) {
		answer->may_change = false;
		answer->of_file = true;
	}
}

/* Guessed from the file name; a reader that knows better overrides it. */
static void work_name_runtime(struct source_target *target)
{
	static const char *const names[] = {"java", "python", "node", "ruby", "perl", "php"};
	const char *slash = strrchr(target->info.exe, '/');
	const char *base = slash ? slash + 1 : target->info.exe;

	(void)snprintf(target->runtime, sizeof(target->runtime), "native");
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strncmp(base, names[i], strlen(names[i])) == 0)
			(void)snprintf(target->runtime, sizeof(target->runtime), "%s", names[i]);
}

/* Opting out applies to all sources, even those not due to be probed. */
static void work_opt_out(const struct agent *a, struct agent_job *job)
{
	work_close(a, job, true);
	for (size_t i = 0; i < a->n_sources; i++) {
		job->sources[i].ask = true;
		job->sources[i].answer = (struct source_answer){0};
		source_answer_no(&job->sources[i].answer, ERR_CAUSE_OPTED_OUT,
				 "opted out: SONDE_PROFILING=disabled in its environment", "");
	}
}

/* Whether it has opted out is not known: nothing in its memory is touched. */
static void work_unanswered(const struct agent *a, struct agent_job *job)
{
	for (size_t i = 0; i < a->n_sources; i++) {
		if (!job->sources[i].ask)
			continue;
		job->sources[i].answer = (struct source_answer){0};
		source_answer_no(&job->sources[i].answer, ERR_CAUSE_NO_ANSWER,
				 "it is not responding: reading its files in /proc hangs", "");
	}
}

/* What is known of its program stays; of one that was never examined we know what never waits. */
static void work_know_silent(struct agent_job *job)
{
	struct proc_info *info = &job->target.info, silent;

	job->result = 0;
	if (!info->owner[0] && proc_info_read_silent(info->id.pid, &silent) == 0) {
		silent.id = info->id;
		*info = silent;
	}
	info->no_answer = true;
}

static bool work_found_no_go(const struct agent *a, const struct agent_job *job)
{
	for (size_t i = 0; i < a->n_sources; i++)
		if (job->sources[i].ask && job->sources[i].answer.cause == ERR_CAUSE_NOT_GO)
			return true;
	return false;
}

/* What the sources have found, and what is easily seen. */
static void work_describe_runtime(const struct agent *a, struct agent_job *job)
{
	_cleanup_(proc_maps_release) struct proc_maps maps = {};
	struct proc_info *info = &job->target.info;
	bool is_native = strcmp(job->target.runtime, "native") == 0 && work_found_no_go(a, job);
	bool has_maps = !info->opted_out && !info->no_answer &&
			agent_runtime_needs_maps(info->exe) &&
			proc_maps_read(info->id.pid, &maps, NULL) == 0;

	agent_runtime_describe(job->target.runtime, info->exe, is_native, has_maps ? &maps : NULL,
			       info->runtime, sizeof(info->runtime));
}

/* Of a program that was examined before it is known. */
static void work_find_build(const struct agent *a, struct proc_info *info,
			    const struct proc_info *was)
{
	if (info->opted_out || info->no_answer)
		return;
	if (was->exec_image && was->exec_image == info->exec_image && !was->no_answer) {
		memcpy(info->build_id, was->build_id, sizeof(info->build_id));
		info->build_is_go = was->build_is_go;
	} else {
		(void)agent_builds_find(a->builds, a->procs, info);
	}
}

static void work_ask_all(const struct agent *a, struct agent_job *job)
{
	if (job->target.info.opted_out) {
		work_opt_out(a, job);
		return;
	}
	if (job->target.info.no_answer) {
		work_unanswered(a, job);
		return;
	}
	for (size_t i = 0; job->result == 0 && i < a->n_sources; i++) {
		if (!job->sources[i].ask)
			continue;
		job->sources[i].answer = (struct source_answer){0};
		work_ask(a, job, i);
	}
}

static void work_look(const struct agent *a, struct agent_job *job)
{
	pid_t pid = job->target.info.id.pid;
	const struct proc_info was = job->target.info;
	struct proc_stat st = {0};
	struct err err = {0};

	/* Before anything else, so that a later exec shows as a change. */
	(void)a->procs->stat(pid, &st, NULL);
	job->image = st.image;
	job->result = a->procs->info(pid, &job->target.info, &err);
	if (job->result == -ETIMEDOUT) {
		work_know_silent(job);
		work_unanswered(a, job);
		return;
	}
	if (job->result == 0 && job->target.info.id.start_ticks != was.id.start_ticks)
		job->result = -ESRCH;
	if (job->result < 0)
		return;
	if (!job->shares.len)
		work_name_runtime(&job->target);
	if (a->hides_commands)
		job->target.info.command[0] = 0;
	work_find_build(a, &job->target.info, &was);
	work_ask_all(a, job);
	work_describe_runtime(a, job);
}

static void work_collect(const struct agent *a, struct agent_job *job)
{
	for (size_t i = 0; i < a->n_sources && job->result == 0; i++) {
		uint64_t start;

		if (!job->sources[i].state || !job->sources[i].due)
			continue;
		start = agent_thread_cpu_ns();
		job->sources[i].result = a->sources[i].ops->collect(
			job->sources[i].state, &job->sources[i].reading, &job->sources[i].err);
		job->sources[i].cost_ns = agent_thread_cpu_ns() - start;
		job->sources[i].collected = true;
		if (job->sources[i].result == -ESRCH)
			job->result = -ESRCH;
	}
}

void agent_work(struct agent_pool_job *pool_job, void *arg)
{
	struct agent_job *job = (struct agent_job *)pool_job;
	const struct agent *a = arg;

	if (job->what & AGENT_JOB_CLOSE) {
		work_close(a, job, !(job->what & AGENT_JOB_LOOK));
		work_close_shares(a, job);
	}
	if (job->what & AGENT_JOB_LOOK)
		work_look(a, job);
	if ((job->what & AGENT_JOB_COLLECT) && job->result == 0)
		work_collect(a, job);
	work_close_shares(a, job);
}
