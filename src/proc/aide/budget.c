/* src/proc/aide/budget.c: see budget.h. */
#include "proc/aide/budget.h"

#include <poll.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "proc/status.h"

#define BUDGET_DEBT_MAX_NS (4 * NS_PER_SEC)
#define BUDGET_PAUSE_NS (1 * NS_PER_SEC)
#define BUDGET_PAUSE_MAX_NS (64 * NS_PER_SEC)
#define BUDGET_FORGIVE 20 /* one of so many seconds */

static bool has_ended(int pidfd)
{
	struct pollfd p = {.fd = pidfd, .events = POLLIN};

	return poll(&p, 1, 0) > 0;
}

/* Those that were answered after all have ended, by our signal. */
static void budget_forget(struct proc_aide_budget *b)
{
	size_t len = 0;

	for (size_t i = 0; i < b->n_lost; i++) {
		if (has_ended(b->lost[i].pidfd))
			close(b->lost[i].pidfd);
		else
			b->lost[len++] = b->lost[i];
	}
	b->n_lost = len;
}

static uint64_t debt_ns(const struct proc_aide_slow *s, uint64_t now_ns)
{
	uint64_t forgiven_ns = (now_ns - s->as_of_ns) / BUDGET_FORGIVE;

	return s->debt_ns > forgiven_ns ? s->debt_ns - forgiven_ns : 0;
}

/* NULL if it never was slow. */
static struct proc_aide_slow *slow_find(struct proc_aide_budget *b, uid_t uid)
{
	for (size_t i = 0; i < PROC_AIDE_SLOW_MAX; i++)
		if (b->slow[i].uid == uid && b->slow[i].debt_ns)
			return &b->slow[i];
	return NULL;
}

static struct proc_aide_stuck *stuck_find(struct proc_aide_budget *b, pid_t pid)
{
	for (size_t i = 0; i < PROC_AIDE_STUCK_MAX; i++)
		if (pid && b->stuck[i].pid == pid)
			return &b->stuck[i];
	return NULL;
}

/* Or an empty place. */
static struct proc_aide_stuck *stuck_oldest(struct proc_aide_budget *b)
{
	struct proc_aide_stuck *oldest = &b->stuck[0];

	for (size_t i = 1; i < PROC_AIDE_STUCK_MAX; i++)
		if (b->stuck[i].noted_ns < oldest->noted_ns)
			oldest = &b->stuck[i];
	return oldest;
}

void proc_aide_budget_stuck(struct proc_aide_budget *b, pid_t pid, uint64_t switches)
{
	struct proc_aide_stuck *stuck = stuck_find(b, pid);
	uint64_t pause_ns = stuck ? MIN(stuck->pause_ns * 2, BUDGET_PAUSE_MAX_NS) : BUDGET_PAUSE_NS;

	if (!stuck)
		stuck = stuck_oldest(b);
	*stuck = (struct proc_aide_stuck){pid, switches, clock_mono_ns(), pause_ns};
}

bool proc_aide_budget_is_stuck(struct proc_aide_budget *b, pid_t pid)
{
	struct proc_aide_stuck *stuck = stuck_find(b, pid);
	struct proc_status status;

	if (!stuck)
		return false;
	if (proc_status_read(pid, &status, NULL) < 0 || status.switches != stuck->switches) {
		*stuck = (struct proc_aide_stuck){};
		return false;
	}
	return clock_mono_ns() - stuck->noted_ns < stuck->pause_ns;
}

bool proc_aide_budget_has_debtor(const struct proc_aide_budget *b)
{
	uint64_t now_ns = clock_mono_ns();

	for (size_t i = 0; i < PROC_AIDE_SLOW_MAX; i++)
		if (b->slow[i].uid && debt_ns(&b->slow[i], now_ns) > BUDGET_DEBT_MAX_NS)
			return true;
	return false;
}

bool proc_aide_budget_allows(struct proc_aide_budget *b, const struct proc_aides_target *target)
{
	const struct proc_aide_slow *slow = target->uid ? slow_find(b, target->uid) : NULL;
	size_t its = 0, max = target->uid ? PROC_AIDES_LOST_PER_USER : PROC_AIDES_LOST_OF_ROOT;

	if (slow && debt_ns(slow, clock_mono_ns()) > BUDGET_DEBT_MAX_NS)
		return false;
	if (proc_aide_budget_is_stuck(b, target->pid))
		return false;
	budget_forget(b);
	for (size_t i = 0; i < b->n_lost; i++) {
		if (b->lost[i].target.pid == target->pid)
			return false;
		its += b->lost[i].target.uid == target->uid;
	}
	return its < max && b->n_lost < PROC_AIDES_LOST_MAX;
}

void proc_aide_budget_lost_take(struct proc_aide_budget *b, const struct proc_aides_target *target,
				int pidfd)
{
	budget_forget(b);
	if (b->n_lost < PROC_AIDES_LOST_MAX)
		b->lost[b->n_lost++] = (struct proc_aide_lost){pidfd, *target};
	else
		close(pidfd);
}

/* A new one takes the place of whoever owes least. */
void proc_aide_budget_waited(struct proc_aide_budget *b, uid_t uid, uint64_t ns)
{
	struct proc_aide_slow *slow = slow_find(b, uid);
	uint64_t now_ns = clock_mono_ns();

	if (!slow) {
		slow = &b->slow[0];
		for (size_t i = 1; i < PROC_AIDE_SLOW_MAX; i++)
			if (debt_ns(&b->slow[i], now_ns) < debt_ns(slow, now_ns))
				slow = &b->slow[i];
		*slow = (struct proc_aide_slow){.uid = uid, .as_of_ns = now_ns};
	}
	slow->debt_ns = debt_ns(slow, now_ns) + ns;
	slow->as_of_ns = now_ns;
}

size_t proc_aide_budget_n_lost(struct proc_aide_budget *b)
{
	budget_forget(b);
	return b->n_lost;
}

void proc_aide_budget_release(struct proc_aide_budget *b)
{
	for (size_t i = 0; i < b->n_lost; i++)
		close(b->lost[i].pidfd);
	*b = (struct proc_aide_budget){};
}
