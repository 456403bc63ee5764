/* src/agent/work.c: what a thread of the pool does with one target: close, look, collect. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agent/agent_impl.h"
#include "base/clock.h"

uint64_t agent_thread_cpu_ns(void)
{
	struct timespec t = {0};

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * NS_PER_SEC + (uint64_t)t.tv_nsec;
}

/* Those that are asked anew, or all. */
static void work_close(const struct agent *a, struct agent_job *job, bool all)
{
	for (size_t i = 0; i < a->n_readers; i++) {
		if (!all && !job->readers[i].ask)
			continue;
		if (job->readers[i].state)
			a->readers[i]->close(job->readers[i].state);
		job->readers[i].state = NULL;
	}
}

/* What they share goes with the last of them. */
static void work_close_share(const struct agent *a, struct agent_job *job)
{
	for (size_t i = 0; i < a->n_readers; i++)
		if (job->readers[i].state)
			return;
	reader_share_clear(&job->share);
}

void reader_answer_no(struct reader_answer *answer, enum err_cause cause, const char *reason,
		      const char *remedy)
{
	answer->yes = false;
	answer->cause = cause;
	(void)snprintf(answer->reason, sizeof(answer->reason), "%s", reason);
	(void)snprintf(answer->remedy, sizeof(answer->remedy), "%s", remedy);
}

void reader_answer_refuse(struct reader_answer *answer, int code, const struct err *err)
{
	enum err_cause cause = err_cause_of(code, err);

	answer->may_change = cause != ERR_CAUSE_DENIED && !err_cause_is_of_machine(cause);
	/* The same for all of them, so that they can be counted. Root is refused by namespaces and
	 * security modules only. */
	if (cause == ERR_CAUSE_DENIED)
		reader_answer_no(answer, cause, "no permission",
				 geteuid() == 0 ? "run sonde on the host itself"
						: "run sonde as root");
	else
		reader_answer_no(answer, cause, err->text[0] ? err->text : strerror(-code),
				 err->remedy);
}

static void work_ask(const struct agent *a, struct agent_job *job, size_t i)
{
	struct reader_answer *answer = &job->readers[i].answer;
	const struct reader_ops *ops = a->readers[i];
	struct err *err = &job->readers[i].err;
	int r = ops->probe(&a->context, &job->share, &job->target, answer, err);

	if (r == 0 && !answer->yes)
		return;
	if (r == 0 && !job->may_open) {
		char reason[128];

		(void)snprintf(reason, sizeof(reason), "%d other processes are profiled already",
			       AGENT_MAX_PROFILED);
		reader_answer_no(answer, ERR_CAUSE_LIMIT, reason,
				 "set SONDE_PROFILING=disabled in those that matter less");
		answer->may_change = true;
		return;
	}
	if (r == 0)
		r = ops->open(&a->context, &job->share, &job->target, &job->readers[i].state, err);
	if (r == -ESRCH)
		job->result = r;
	else if (r < 0)
		reader_answer_refuse(answer, r, err);
	if (r == -ENOTSUP && ops->no_is_final) {
		answer->may_change = false;
		answer->of_file = true;
	}
}

/* By its name: what a reader knows better it says itself. */
static void work_name_runtime(struct target *target)
{
	static const char *const names[] = {"java", "python", "node", "ruby", "perl", "php"};
	const char *slash = strrchr(target->info.exe, '/');
	const char *base = slash ? slash + 1 : target->info.exe;

	(void)snprintf(target->runtime, sizeof(target->runtime), "native");
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strncmp(base, names[i], strlen(names[i])) == 0)
			(void)snprintf(target->runtime, sizeof(target->runtime), "%s", names[i]);
}

/* An environment that says no says it to all, also to those that were not to be asked. */
static void work_opt_out(const struct agent *a, struct agent_job *job)
{
	work_close(a, job, true);
	for (size_t i = 0; i < a->n_readers; i++) {
		job->readers[i].ask = true;
		job->readers[i].answer = (struct reader_answer){0};
		reader_answer_no(&job->readers[i].answer, ERR_CAUSE_OPTED_OUT,
				 "it asks not to be profiled: SONDE_PROFILING=disabled is in its "
				 "environment",
				 "");
	}
}

static void work_look(const struct agent *a, struct agent_job *job)
{
	pid_t pid = job->target.info.id.pid;
	uint64_t start_ticks = job->target.info.id.start_ticks;
	struct proc_stat st = {0};
	struct err err = {0};

	/* First, so that an exec after it is noticed as a change. */
	(void)a->world->stat(pid, &st, NULL);
	job->image = st.image;
	job->result = a->world->info(pid, &job->target.info, &err);
	if (job->result == 0 && job->target.info.id.start_ticks != start_ticks)
		job->result = -ESRCH;
	if (job->result < 0)
		return;
	if (!job->share.asked)
		work_name_runtime(&job->target);
	if (job->target.info.opted_out) {
		work_opt_out(a, job);
		return;
	}
	for (size_t i = 0; job->result == 0 && i < a->n_readers; i++) {
		if (!job->readers[i].ask)
			continue;
		job->readers[i].answer = (struct reader_answer){0};
		work_ask(a, job, i);
	}
}

static void work_collect(const struct agent *a, struct agent_job *job)
{
	for (size_t i = 0; i < a->n_readers && job->result == 0; i++) {
		uint64_t start;

		if (!job->readers[i].state || !job->readers[i].due)
			continue;
		start = agent_thread_cpu_ns();
		job->readers[i].result = a->readers[i]->collect(
			job->readers[i].state, &job->readers[i].reading, &job->readers[i].err);
		job->readers[i].cost_ns = agent_thread_cpu_ns() - start;
		job->readers[i].collected = true;
		if (job->readers[i].result == -ESRCH)
			job->result = -ESRCH;
	}
}

void agent_work(struct pool_job *pool_job, void *arg)
{
	struct agent_job *job = (struct agent_job *)pool_job;
	const struct agent *a = arg;

	if (job->what & JOB_CLOSE) {
		work_close(a, job, !(job->what & JOB_LOOK));
		work_close_share(a, job);
	}
	if (job->what & JOB_LOOK)
		work_look(a, job);
	if ((job->what & JOB_COLLECT) && job->result == 0)
		work_collect(a, job);
	work_close_share(a, job);
}
