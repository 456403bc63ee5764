/* src/server/api/steps.c: see steps.h. */
#include "server/api/steps.h"

#include "base/cleanup.h"

struct server_steps server_steps_of(int64_t from_ns, int64_t to_ns, int64_t step_ns)
{
	int64_t length = to_ns - from_ns;

	return (struct server_steps){.step_ns = step_ns,
				     .n = (size_t)(length / step_ns + (length % step_ns != 0))};
}

struct server_steps server_steps_about(int64_t from_ns, int64_t to_ns, uint64_t points,
				       uint64_t interval_ns)
{
	static const int64_t seconds[] = {1,	2,     5,     10,    15,   20,	 30,
					  60,	120,   300,   600,   900,  1800, 3600,
					  7200, 14400, 21600, 43200, 86400};
	int64_t least = MAX((to_ns - from_ns) / (int64_t)points, (int64_t)interval_ns);
	int64_t step = least;

	for (size_t i = 0; i < ARRAY_SIZE(seconds); i++)
		if (seconds[i] * (int64_t)NS_PER_SEC >= least) {
			step = seconds[i] * (int64_t)NS_PER_SEC;
			break;
		}
	return server_steps_of(from_ns, to_ns, step);
}
