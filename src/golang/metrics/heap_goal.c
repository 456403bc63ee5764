/*
 * src/golang/metrics/heap_goal.c: the heap goal, computed as in gcControllerState.heapGoal
 * (runtime/mgcpacer.go: heapGoalInternal, memoryLimitHeapGoal).
 */
#include "base/cleanup.h"
#include "golang/metrics/layout.h"

#define MIN_RUNWAY ((uint64_t)64 << 10)
#define MIN_HEADROOM ((uint64_t)1 << 20)
#define HEADROOM_PERCENT 3 /* since 1.21 */

static uint64_t memory_limit_goal(const struct golang_metrics_pacer *p)
{
	/* If read while changing, the parts may exceed the whole: the runtime reads again. */
	uint64_t heap = MIN(p->heap_free + p->heap_alloc, p->mapped_ready);
	uint64_t other = p->mapped_ready - heap;
	uint64_t overage =
		p->mapped_ready > p->memory_limit ? p->mapped_ready - p->memory_limit : 0;
	uint64_t headroom = MIN_HEADROOM;
	uint64_t goal;

	if (other + overage >= p->memory_limit)
		return p->heap_marked;
	goal = p->memory_limit - (other + overage);
	if (p->minor >= 21)
		headroom = MAX(headroom, goal / 100 * HEADROOM_PERCENT);
	if (goal < headroom || goal - headroom < headroom)
		goal = headroom;
	else
		goal -= headroom;
	return MAX(goal, p->heap_marked);
}

uint64_t golang_metrics_heap_goal(const struct golang_metrics_pacer *p)
{
	uint64_t limited = memory_limit_goal(p);
	uint64_t goal = p->percent_goal;

	if (limited < goal)
		return limited;
	goal = MAX(goal, p->sweep_dist_min_trigger);
	if (p->triggered != UINT64_MAX)
		goal = MAX(goal, p->triggered + MIN_RUNWAY);
	return goal;
}
