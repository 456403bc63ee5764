/*
 * src/proc/aide/budget.h: how much waiting each user may cost us; private to this folder.
 *
 * A process has one aide that hangs, its user a few. And whoever answers slowly may make us wait
 * for some seconds, then for a small part of the time; root is exempt, who can do worse anyway.
 * Callers hold a lock.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "proc/aide/aides.h"

#define PROC_AIDE_SLOW_MAX 64  /* users */
#define PROC_AIDE_STUCK_MAX 64 /* processes */

struct proc_aide_lost {
	int pidfd;
	struct proc_aides_target target;
};

struct proc_aide_slow {
	uid_t uid;
	uint64_t debt_ns; /* as of then: time that we have waited, less what was forgiven */
	uint64_t as_of_ns;
};

/*
 * Whoever looks at a process that is inside an exec waits for its end. A signal ends such an aide,
 * but the next one would wait as long, so none is sent until the process has run again, or a while
 * has passed.
 */
struct proc_aide_stuck {
	pid_t pid; /* 0: none */
	uint64_t switches;
	uint64_t noted_ns;
	uint64_t pause_ns; /* doubles from one time to the next */
};

struct proc_aide_budget {
	struct proc_aide_lost lost[PROC_AIDES_LOST_MAX];
	size_t n_lost;
	struct proc_aide_stuck stuck[PROC_AIDE_STUCK_MAX];
	struct proc_aide_slow slow[PROC_AIDE_SLOW_MAX];
};

void proc_aide_budget_release(struct proc_aide_budget *budget);

/* Whether to ask this process. */
bool proc_aide_budget_allows(struct proc_aide_budget *budget,
			     const struct proc_aides_target *target);
/* One hangs; its pidfd. */
void proc_aide_budget_lost_take(struct proc_aide_budget *budget,
				const struct proc_aides_target *target, int pidfd);
/* One has slept so long for an answer. */
void proc_aide_budget_waited(struct proc_aide_budget *budget, uid_t uid, uint64_t ns);
/* It did not let an aide go on, having been given a CPU so many times. */
void proc_aide_budget_stuck(struct proc_aide_budget *budget, pid_t pid, uint64_t switches);
bool proc_aide_budget_is_stuck(struct proc_aide_budget *budget, pid_t pid);
/* Whether some user owes so much that nothing is asked of its processes. */
bool proc_aide_budget_has_debtor(const struct proc_aide_budget *budget);
size_t proc_aide_budget_n_lost(struct proc_aide_budget *budget);
