/*
 * src/agent/schedule/targets.c: the processes the agent knows, and what is due for each.
 *
 * A list of pids is cheap: it is read every second, to catch short-lived processes. Known processes
 * are checked once per interval. Collections are spread over the rounds of an interval by a hash of
 * the pid, so a process always has the same place in it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/state.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/hash.h"

#define SCAN_NS (1 * NS_PER_SEC)
/* The same if we are told of execs: there may be thousands a second. */
#define SCAN_HEARD_NS (100 * NS_PER_MS)
/* A scan takes a microsecond or two per process: with thousands of them, scan less often. */
#define SCAN_MAX_SHARE 1000 /* one thousandth of a CPU */
/*
 * Most processes of a busy machine exit or exec within a second: examining each would be most of
 * our work.
 */
#define SETTLE_NS (1 * NS_PER_SEC)
/* A new process often execs: watch it more closely. */
#define YOUNG_NS (10 * NS_PER_SEC)
/* How often to probe again after a no that may become a yes. */
#define ASK_AGAIN_NS (60 * NS_PER_SEC)
/* Pause before retrying a target that disappears, or seems to, whenever it is examined. */
#define RETRY_NS (1 * NS_PER_SEC)
/* How long pushed records wait for their process to be examined. */
#define LOOK_PATIENCE_NS (60 * NS_PER_SEC)
/* How long, at the start, anything waits for all to be examined. */
#define NAMES_PATIENCE_NS (3 * NS_PER_SEC)
#define ROTATE_STEP 977
/*
 * Rounds per interval. Waking up for each process separately finds the CPU's caches cold every
 * time, which doubles the cost of a small one; all at once would cause a noticeable spike.
 */
#define ROUNDS 6
/* More than there are threads that can hang; each waiting job takes memory. */
#define JOBS_MAX ((size_t)2 * AGENT_POOL_MAX_THREADS)
/*
 * At the end: if no job has returned for this long, the remaining ones hang. On a slow machine many
 * good jobs may take longer in total, but that is limited, too: some may be slow on purpose.
 */
#define DRAIN_ANSWER_NS (3 * NS_PER_SEC)
#define DRAIN_NS (30 * NS_PER_SEC)

/* The process is gone: hide it, and close its readers when its job returns. */
static void slot_leave(struct agent *a, struct agent_slot *slot)
{
	struct agent_slot **leaving =
		reallocarray(a->leaving, a->n_leaving + 1, sizeof(struct agent_slot *));

	/* Out of memory for the list: leak it rather than close what is in use. */
	if (!leaving)
		return;
	slot->gone = true;
	a->leaving = leaving;
	a->leaving[a->n_leaving++] = slot;
}

/* One that is not responding is left for the next time. */
static void known_add(struct agent *a, struct agent_known *known, size_t *len, pid_t pid,
		      const struct proc_stat_reading *reading)
{
	const struct proc_stat *st = &reading->stat;
	struct agent_slot *slot = NULL;

	if (pid == getpid() || reading->code < 0 || proc_stat_is_dead(st))
		return;
	if (!st->kernel_thread) {
		if (a->health.targets >= AGENT_MAX_TARGETS) {
			a->too_many = true;
			return;
		}
		slot = agent_slot_new(a, pid, st);
		if (!slot)
			return;
		/* Except at the start, when processes are already old. */
		if (a->known)
			slot->retry_ns = slot->found_ns + SETTLE_NS;
		a->health.targets++;
	}
	known[(*len)++] = (struct agent_known){.pid = pid, .slot = slot};
}

static void known_drop(struct agent *a, const struct agent_known *k)
{
	if (!k->slot)
		return;
	a->health.targets--;
	agent_departed_add(a, k->slot);
	slot_leave(a, k->slot);
}

/* Merges two sorted lists: known and existing processes. Of new ones there is a reading each. */
static void known_merge(struct agent *a, const pid_t *pids, size_t n_pids,
			const struct proc_stat_reading *of_new, struct agent_known *merged)
{
	size_t len = 0, k = 0;

	a->too_many = false;
	for (size_t i = 0; i < n_pids; i++) {
		while (k < a->n_known && a->known[k].pid < pids[i])
			known_drop(a, &a->known[k++]);
		if (k < a->n_known && a->known[k].pid == pids[i])
			merged[len++] = a->known[k++];
		else
			known_add(a, merged, &len, pids[i], of_new++);
	}
	while (k < a->n_known)
		known_drop(a, &a->known[k++]);
	free(a->known);
	a->known = merged;
	a->n_known = len;
}

static void slot_note_exec(struct agent_slot *slot, const struct proc_stat *st)
{
	if (!slot->looked_ns || !st->image || st->image == slot->image)
		return;
	if (!slot->look_again)
		slot->exec_ns = clock_mono_ns();
	slot->look_again = true;
}

/* A process refused for a reason other than its file may exec into one that is not. */
static bool slot_is_refused_for_now(const struct agent *a, const struct agent_slot *slot)
{
	for (size_t i = 0; i < a->n_sources; i++)
		if (!slot->sources[i].state && !slot->sources[i].of_file)
			return true;
	return false;
}

/* What the kernel says of some of the known processes now, read before the lock is taken. */
struct known_stats {
	size_t n;
	size_t *known; /* which */
	pid_t *pids;
	struct proc_stat_reading *readings;
};

static void known_stats_release(struct known_stats *s)
{
	free(s->known);
	free(s->pids);
	free(s->readings);
}

/* Nobody but the loop changes the list, so it needs no lock to look at it. False: no memory. */
static bool known_stats_read(const struct agent *a,
			     bool (*wants)(const struct agent *a, const struct agent_slot *slot),
			     struct known_stats *s)
{
	s->known = calloc(a->n_known + 1, sizeof(*s->known));
	s->pids = calloc(a->n_known + 1, sizeof(*s->pids));
	s->readings = calloc(a->n_known + 1, sizeof(*s->readings));
	if (!s->known || !s->pids || !s->readings)
		return false;
	for (size_t i = 0; i < a->n_known; i++) {
		if (!a->known[i].slot || !wants(a, a->known[i].slot))
			continue;
		s->known[s->n] = i;
		s->pids[s->n++] = a->known[i].pid;
	}
	a->procs->stats(s->pids, s->n, s->readings);
	return true;
}

/* Those likely to exec, and those where it matters most. */
static bool slot_is_watched(const struct agent *a, const struct agent_slot *slot)
{
	return slot->looked_ns && slot->image &&
	       (clock_mono_ns() - slot->found_ns < YOUNG_NS || slot_is_refused_for_now(a, slot));
}

static void execs_watch(struct agent *a)
{
	_cleanup_(known_stats_release) struct known_stats stats = {};

	if (!known_stats_read(a, slot_is_watched, &stats))
		return;
	(void)pthread_mutex_lock(&a->lock);
	for (size_t i = 0; i < stats.n; i++)
		if (stats.readings[i].code == 0)
			slot_note_exec(a->known[stats.known[i]].slot, &stats.readings[i].stat);
	(void)pthread_mutex_unlock(&a->lock);
}

/* The selected processes that are alive; ascending, like a full list. */
static int list_only(const struct agent *a, pid_t **ret_pids, size_t *ret_len)
{
	pid_t *pids = calloc(a->config.n_only, sizeof(*pids));
	size_t len = 0;

	if (!pids)
		return -ENOMEM;
	for (size_t i = 0; i < a->config.n_only; i++)
		if (!proc_id_gone(&a->config.only[i]))
			pids[len++] = a->config.only[i].pid;
	*ret_pids = pids;
	*ret_len = len;
	return 0;
}

/* Of those that are not known yet, in the same order. NULL: out of memory. */
static struct proc_stat_reading *new_read(const struct agent *a, const pid_t *pids, size_t n_pids)
{
	struct proc_stat_reading *readings = calloc(n_pids + 1, sizeof(*readings));
	_cleanup_free_ pid_t *of_new = calloc(n_pids + 1, sizeof(*of_new));
	size_t n = 0, k = 0;

	if (!readings || !of_new) {
		free(readings);
		return NULL;
	}
	for (size_t i = 0; i < n_pids; i++) {
		while (k < a->n_known && a->known[k].pid < pids[i])
			k++;
		if (k == a->n_known || a->known[k].pid != pids[i])
			of_new[n++] = pids[i];
	}
	a->procs->stats(of_new, n, readings);
	return readings;
}

/* Finds new and exited processes. */
static void known_update(struct agent *a)
{
	_cleanup_free_ struct proc_stat_reading *of_new = NULL;
	_cleanup_free_ pid_t *pids = NULL;
	/* Before listing, so that later arrivals show as a change. */
	uint64_t census = a->procs->census();
	struct agent_known *merged;
	size_t n_pids;

	if (census && census == a->census)
		return;
	if ((a->config.n_only ? list_only(a, &pids, &n_pids)
			      : a->procs->list(&pids, &n_pids, NULL)) < 0)
		return;
	of_new = new_read(a, pids, n_pids);
	merged = of_new ? calloc(n_pids + 1, sizeof(*merged)) : NULL;
	if (!merged)
		return;
	a->census = census;
	(void)pthread_mutex_lock(&a->lock);
	known_merge(a, pids, n_pids, of_new, merged);
	(void)pthread_mutex_unlock(&a->lock);
}

/* When the next scan is due: earlier after an exec. */
static uint64_t targets_scan_ns(struct agent *a)
{
	return atomic_load(&a->exec_heard) ? MIN(a->scan_ns, a->heard_scan_ns) : a->scan_ns;
}

void agent_targets_discover(struct agent *a)
{
	uint64_t now = clock_mono_ns();
	uint64_t cpu = agent_thread_cpu_ns();

	if (now < targets_scan_ns(a))
		return;
	(void)atomic_exchange(&a->exec_heard, false);
	known_update(a);
	execs_watch(a);
	cpu = agent_thread_cpu_ns() - cpu;
	a->heard_scan_ns = now + MAX(SCAN_HEARD_NS, cpu * SCAN_MAX_SHARE);
	a->scan_ns = now + MAX(SCAN_NS, cpu * SCAN_MAX_SHARE);
}

/* Says which services are still there, and who goes by which name. */
static void names_settle(struct agent *a)
{
	for (size_t i = 0; i < a->n_known; i++)
		if (a->known[i].slot && a->known[i].slot->looked_ns)
			agent_slot_settle_name(a, a->known[i].slot);
	a->names_turns = pipeline_names_turns(pipeline_names_of(a->pipeline));
}

static bool slot_is_any(const struct agent *a, const struct agent_slot *slot)
{
	(void)a;
	(void)slot;
	return true;
}

static bool slot_has_ended(const struct agent_slot *slot, const struct proc_stat_reading *now)
{
	if (now->code < 0)
		return !proc_stat_is_unknown(now->code);
	return proc_stat_is_dead(&now->stat) ||
	       now->stat.start_ticks != slot->target.info.id.start_ticks;
}

/* What the kernel said of each at the end of the last interval. */
static void memory_write(struct agent *a)
{
	const struct record_time when = {.time_ns = a->interval.start_ns,
					 .duration_ns = (int64_t)a->config.interval_ns};

	for (size_t i = 0; when.time_ns && i < a->n_known; i++) {
		const struct agent_slot *slot = a->known[i].slot;

		/* After an exec its labels are still to come. */
		if (slot && slot->looked_ns && !slot->look_again && slot->rss_bytes &&
		    !slot->target.info.opted_out)
			agent_slot_deliver_memory(a, slot, when);
	}
}

void agent_targets_verify(struct agent *a)
{
	_cleanup_(known_stats_release) struct known_stats stats = {};
	size_t len = 0;

	if (!known_stats_read(a, slot_is_any, &stats))
		return;
	(void)pthread_mutex_lock(&a->lock);
	/* Those without a slot: if one still exists, the next scan finds it again. */
	for (size_t i = 0; i < stats.n; i++) {
		const struct proc_stat_reading *now = &stats.readings[i];
		struct agent_known *k = &a->known[stats.known[i]];

		if (slot_has_ended(k->slot, now)) {
			known_drop(a, k);
			continue;
		}
		if (now->code == 0)
			slot_note_exec(k->slot, &now->stat);
		k->slot->rss_bytes = now->code == 0 ? now->stat.rss_bytes : 0;
		a->known[len++] = *k;
	}
	a->n_known = len;
	agent_departed_forget(a, clock_mono_ns());
	names_settle(a);
	memory_write(a);
	a->scan_ns = 0;
	a->census = 0;
	(void)pthread_mutex_unlock(&a->lock);
}

/* Picks the readers of a slot to probe and to collect. */
static void job_choose(const struct agent *a, const struct agent_slot *slot, struct agent_job *job)
{
	bool anew = job->what & AGENT_JOB_COLLECT && job->what & AGENT_JOB_LOOK;

	for (size_t i = 0; i < a->n_sources; i++) {
		const struct agent_slot_source *r = &slot->sources[i];

		job->sources[i].state = r->state;
		job->sources[i].ask =
			anew || ((job->what & AGENT_JOB_LOOK) && agent_slot_asks_again(r));
		job->sources[i].due =
			anew ? agent_slot_is_due_first(a, i) : agent_slot_is_due(a, slot, i);
	}
}

static void job_send(struct agent *a, struct agent_slot *slot, unsigned int what)
{
	struct agent_job *job = calloc(1, sizeof(*job));

	/* Out of memory: it is due again next time. */
	if (!job)
		return;
	job->slot = slot;
	job->what = what;
	job->target = slot->target;
	job->shares = slot->shares;
	job->may_open = a->n_open < AGENT_MAX_PROFILED || agent_slot_is_open(a, slot);
	job_choose(a, slot, job);
	/* Count it now, or too many could be opened at once. */
	if ((what & AGENT_JOB_LOOK) && job->may_open && !agent_slot_is_open(a, slot))
		a->n_open++;
	slot->job = job;
	slot->job_ns = clock_mono_ns();
	a->jobs_out++;
	agent_pool_push(a->pool, &job->pool);
}

/* When to read the process in this interval; the end of the interval is slack for slow ones. */
static uint64_t slot_due_ns(const struct agent *a, const struct agent_slot *slot)
{
	uint64_t span = a->config.interval_ns / 10 * 8;

	return a->interval.begin_ns +
	       hash_mix((uint64_t)slot->target.info.id.pid) % ROUNDS * (span / ROUNDS);
}

/* Whether some of its readers should be probed again and nothing else is due. */
static bool slot_is_asked_again(const struct agent *a, const struct agent_slot *slot, uint64_t now)
{
	for (size_t i = 0; i < a->n_sources; i++)
		if (slot->sources[i].ask_again || (agent_slot_asks_again(&slot->sources[i]) &&
						   now - slot->asked_ns >= ASK_AGAIN_NS))
			return true;
	return false;
}

/* What to do with it now; lowers *ret_next if something is due later. */
static unsigned int slot_due(struct agent *a, struct agent_slot *slot, uint64_t now,
			     uint64_t *ret_next)
{
	uint64_t due = slot_due_ns(a, slot);

	if (now < slot->retry_ns) {
		*ret_next = MIN(*ret_next, slot->retry_ns);
		return 0;
	}
	if (!slot->looked_ns || slot->look_again)
		/* Read the baseline at once, so that everything after it counts. */
		return AGENT_JOB_CLOSE | AGENT_JOB_LOOK | AGENT_JOB_COLLECT;
	/* Its other readers go on; these begin with the next full collection. */
	if (slot_is_asked_again(a, slot, now))
		return AGENT_JOB_CLOSE | AGENT_JOB_LOOK;
	if (!agent_slot_is_open(a, slot) || slot->collected == a->interval.number)
		return 0;
	if (now >= due)
		return AGENT_JOB_COLLECT;
	*ret_next = MIN(*ret_next, due);
	return 0;
}

static void leaving_send(struct agent *a)
{
	size_t len = 0;

	for (size_t i = 0; i < a->n_leaving; i++) {
		struct agent_slot *slot = a->leaving[i];

		if (!slot->job && agent_slot_is_open(a, slot))
			job_send(a, slot, AGENT_JOB_CLOSE);
		if (slot->job || agent_slot_is_open(a, slot))
			a->leaving[len++] = slot;
		else
			agent_slot_free(a, slot);
	}
	a->n_leaving = len;
}

/*
 * Sends what is due of the slots that were examined before, or of those that were not. If an
 * interval is too short for all, the rotation leaves out others each time.
 */
static void known_send_due(struct agent *a, bool examined, size_t max, uint64_t now,
			   uint64_t *ret_next)
{
	for (size_t i = 0; i < a->n_known && a->jobs_out < max; i++) {
		struct agent_slot *slot =
			a->known[(i + a->interval.number * ROTATE_STEP) % a->n_known].slot;
		unsigned int what;

		if (!slot || (slot->looked_ns != 0) != examined)
			continue;
		if (slot->job) {
			agent_slot_say_slow(a, slot, now);
			continue;
		}
		what = slot_due(a, slot, now, ret_next);
		if (what)
			job_send(a, slot, what);
	}
}

/* Each finished job brings us here again. */
uint64_t agent_targets_send_due(struct agent *a)
{
	uint64_t next = MIN(targets_scan_ns(a), a->interval.end_ns);
	uint64_t now = clock_mono_ns();

	(void)pthread_mutex_lock(&a->lock);
	leaving_send(a);
	/* New processes do not wait for the many that are read again, nor hold these up. */
	known_send_due(a, false, JOBS_MAX / 2, now, &next);
	known_send_due(a, true, JOBS_MAX, now, &next);
	(void)pthread_mutex_unlock(&a->lock);
	return next;
}

struct agent_slot *agent_targets_find(const struct agent *a, pid_t pid)
{
	size_t lo = 0, hi = a->n_known;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (a->known[mid].pid < pid)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < a->n_known && a->known[lo].pid == pid ? a->known[lo].slot : NULL;
}

static struct agent_slot *slot_find(const struct agent *a, const struct proc_id *id)
{
	struct agent_slot *slot = agent_targets_find(a, id->pid);

	return slot && slot->target.info.id.start_ticks == id->start_ticks ? slot : NULL;
}

/* It is about another program than the slot: one of them is from before an exec. */
static enum agent_delivery_verdict judge_by_exec(struct agent *a, struct agent_slot *slot,
						 struct delivery *d)
{
	struct proc_stat st;

	if (!slot->look_again && a->procs->stat(d->info.id.pid, &st, NULL) == 0)
		slot_note_exec(slot, &st);
	if (slot->look_again && slot->exec_ns)
		return clock_mono_ns() - slot->exec_ns < LOOK_PATIENCE_NS ? AGENT_DELIVERY_LATER
									  : AGENT_DELIVERY_LEAVE;
	if (agent_slot_was_program(slot, &d->info))
		d->resource = resource_ref(slot->before);
	return AGENT_DELIVERY_TAKE;
}

/* Of one that has exited there may be no more than the name of its command. */
static bool slot_runs_other(const struct agent_slot *slot, const struct proc_info *info)
{
	if (info->exe[0])
		return !agent_slot_same_program(info, &slot->target.info);
	return info->comm[0] && strncmp(info->comm, slot->target.info.comm, AGENT_COMM_LENGTH) != 0;
}

static enum agent_delivery_verdict judge_departed(const struct agent *a, struct delivery *d)
{
	const struct agent_departed *departed = agent_departed_find(a, &d->info);

	if (departed && departed->opted_out)
		return AGENT_DELIVERY_LEAVE;
	if (departed)
		d->resource = resource_ref(departed->resource);
	return AGENT_DELIVERY_TAKE;
}

/*
 * Finds its resource, and whether it may be shown: the environment of the process, read when it is
 * examined, may set another name or opt out. Processes that exited before that are unknown.
 */
static enum agent_delivery_verdict judge_by_slot(struct agent *a, struct delivery *d)
{
	struct agent_slot *slot = slot_find(a, &d->info.id);

	if (!slot)
		return judge_departed(a, d);
	if (!slot->looked_ns)
		/* Never wait forever for one that does not answer. */
		return clock_mono_ns() - slot->found_ns < LOOK_PATIENCE_NS ? AGENT_DELIVERY_LATER
									   : AGENT_DELIVERY_LEAVE;
	if (slot->target.info.opted_out)
		return AGENT_DELIVERY_LEAVE;
	if (slot_runs_other(slot, &d->info))
		return judge_by_exec(a, slot, d);
	d->resource = resource_ref(slot->resource);
	if (d->record->kind == RECORD_METRICS)
		(void)live_take(&slot->pushed, d->record->metrics);
	return AGENT_DELIVERY_TAKE;
}

/* About one that was examined long ago; it is not waited for. */
static enum agent_delivery_verdict judge_urgent(const struct agent *a, struct delivery *d)
{
	const struct agent_slot *slot = slot_find(a, &d->info.id);

	if (!slot || !slot->resource || slot_runs_other(slot, &d->info))
		return judge_departed(a, d);
	d->resource = resource_ref(slot->resource);
	return AGENT_DELIVERY_TAKE;
}

/* What waited for the names may have another by now. */
static void names_refresh(struct agent *a)
{
	for (struct delivery *d = a->mail.first; d; d = d->next) {
		const struct agent_slot *slot =
			d->resource ? slot_find(a, &d->resource->process) : NULL;

		if (!slot || !slot->resource || slot->resource == d->resource)
			continue;
		resource_unref(d->resource);
		d->resource = resource_ref(slot->resource);
	}
}

void agent_targets_name(struct agent *a)
{
	uint64_t now = clock_mono_ns();

	if (a->named)
		return;
	if (!a->names_by_ns)
		a->names_by_ns = now + NAMES_PATIENCE_NS;
	(void)pthread_mutex_lock(&a->lock);
	a->named = a->n_known > 0 || a->interval.number > 1;
	/* Processes may come all the time, so it is not the patience of each. */
	for (size_t i = 0; i < a->n_known && a->named && now < a->names_by_ns; i++) {
		const struct agent_slot *slot = a->known[i].slot;

		a->named = !slot || slot->looked_ns;
	}
	if (a->named)
		names_refresh(a);
	(void)pthread_mutex_unlock(&a->lock);
}

/* Whether the name is its own already: root takes nobody's by being examined first. */
static bool name_is_safe(struct agent *a, const struct delivery *d)
{
	const struct agent_slot *slot;
	bool safe;

	(void)pthread_mutex_lock(&a->lock);
	slot = slot_find(a, d->resource ? &d->resource->process : &d->info.id);
	safe = slot && slot->looked_ns && slot->target.info.rank >= PROC_RANK_ROOT;
	(void)pthread_mutex_unlock(&a->lock);
	return safe;
}

/* Nobody has examined it: it goes by what the delivery says of it. */
static int judge_unknown(struct agent *a, struct delivery *d)
{
	(void)pthread_mutex_lock(&a->lock);
	if (d->info.id.pid == a->self.id.pid) {
		d->info = a->self;
	} else if (d->info.id.pid) {
		agent_targets_find_parent(a, &d->info);
		agent_runtime_describe("", d->info.exe, false, NULL, d->info.runtime,
				       sizeof(d->info.runtime));
	} else if (d->record->kind == RECORD_METRICS) {
		/* The machine's. */
		(void)live_take(&a->machine, d->record->metrics);
	}
	(void)pthread_mutex_unlock(&a->lock);
	pipeline_names_settle(pipeline_names_of(a->pipeline), &d->info);
	return pipeline_process(a->pipeline, &d->info, &d->resource, NULL);
}

enum agent_delivery_verdict agent_targets_judge(struct agent *a, struct delivery *d)
{
	enum agent_delivery_verdict verdict;

	if (!d->urgent && !a->named && !name_is_safe(a, d))
		return AGENT_DELIVERY_LATER;
	if (d->resource)
		return AGENT_DELIVERY_TAKE;
	(void)pthread_mutex_lock(&a->lock);
	verdict = d->urgent ? judge_urgent(a, d) : judge_by_slot(a, d);
	(void)pthread_mutex_unlock(&a->lock);
	if (verdict == AGENT_DELIVERY_TAKE && !d->resource && judge_unknown(a, d) < 0)
		return AGENT_DELIVERY_LEAVE;
	return verdict;
}

/* Also frees readings nobody took, for example of an exited process. */
static void job_free(const struct agent *a, struct agent_job *job)
{
	for (size_t i = 0; i < a->n_sources; i++)
		source_reading_release(&job->sources[i].reading);
	free(job);
}

void agent_targets_receive(struct agent *a, struct agent_job *job)
{
	struct agent_slot *slot = job->slot;
	bool was_open = agent_slot_is_open(a, slot);
	bool counted = was_open || ((job->what & AGENT_JOB_LOOK) && job->may_open);

	(void)pthread_mutex_lock(&a->lock);
	a->jobs_out--;
	a->answered_ns = clock_mono_ns();
	slot->job = NULL;
	slot->shares = job->shares;
	for (size_t i = 0; i < a->n_sources; i++)
		slot->sources[i].state = job->sources[i].state;
	if (counted && !agent_slot_is_open(a, slot))
		a->n_open--;
	a->untidy = a->untidy || (agent_slot_is_open(a, slot) && (job->what & AGENT_JOB_LOOK));
	a->health.profiled += (uint64_t)agent_slot_is_open(a, slot) - (uint64_t)was_open;
	if ((job->what & AGENT_JOB_LOOK) && job->result == 0) {
		agent_slot_take_looks(a, slot, job);
		/* It took its name from others: nothing more of theirs goes by it. */
		if (pipeline_names_turns(pipeline_names_of(a->pipeline)) != a->names_turns)
			names_settle(a);
	}
	if ((job->what & AGENT_JOB_COLLECT) && agent_slot_is_open(a, slot))
		agent_slot_take_readings(a, slot, job);
	/*
	 * It exited or called exec: the next scan finds out which, and examines it again if alive.
	 */
	if (job->result == -ESRCH) {
		slot->look_again = true;
		slot->retry_ns = clock_mono_ns() + RETRY_NS;
		a->scan_ns = 0;
		a->census = 0;
	}
	(void)pthread_mutex_unlock(&a->lock);
	job_free(a, job);
}

void agent_targets_drop(struct agent_pool_job *pool_job, void *agent)
{
	struct agent_job *job = (struct agent_job *)pool_job;

	/* Nobody writes what it has read, nor closes what it has opened. */
	job->what = AGENT_JOB_CLOSE;
	agent_work(pool_job, agent);
	agent_targets_receive(agent, job);
}

uint64_t agent_targets_patience_ns(const struct agent *a)
{
	return MIN(a->answered_ns + DRAIN_ANSWER_NS, a->drain_ns + DRAIN_NS);
}

void agent_targets_close_all(struct agent *a)
{
	(void)pthread_mutex_lock(&a->lock);
	for (size_t i = 0; i < a->n_known; i++)
		known_drop(a, &a->known[i]);
	a->n_known = 0;
	leaving_send(a);
	(void)pthread_mutex_unlock(&a->lock);
	/* What came before took its time; these have not had theirs. */
	a->answered_ns = clock_mono_ns();
	a->drain_ns = a->answered_ns;
	while (a->jobs_out) {
		uint64_t until = agent_targets_patience_ns(a);
		struct agent_job *job = (struct agent_job *)agent_pool_take(a->pool, until);

		if (!job && clock_mono_ns() >= until)
			break;
		if (!job)
			continue;
		agent_targets_receive(a, job);
		(void)pthread_mutex_lock(&a->lock);
		leaving_send(a);
		(void)pthread_mutex_unlock(&a->lock);
	}
}

void agent_targets_free(struct agent *a)
{
	for (size_t i = 0; i < a->n_leaving; i++)
		agent_slot_free(a, a->leaving[i]);
	agent_departed_forget(a, UINT64_MAX);
	free(a->leaving);
	free(a->known);
}
