/* src/agent/sinks/sinks.c: see sinks.h. A new sink is a row here. */
#include "agent/sinks/sinks.h"

#include "agent/sinks/store.h"

int agent_sinks_open(const struct agent_sink_configs *c,
		     struct sink_row ret_rows[PIPELINE_MAX_SINKS], size_t *ret_n, struct err *err)
{
	const struct {
		int (*open)(void *config, struct sink_row *ret_row, struct err *err);
		void *config; /* NULL: not configured */
	} table[] = {
		{agent_sink_store_open, c->store},
	};
	size_t n = 0;
	int r = 0;

	_Static_assert(ARRAY_SIZE(table) <= PIPELINE_MAX_SINKS, "the table fits");
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(table); i++) {
		if (!table[i].config)
			continue;
		r = table[i].open(table[i].config, &ret_rows[n], err);
		n += r == 0;
	}
	for (size_t i = 0; r < 0 && i < n; i++)
		ret_rows[i].ops->close(ret_rows[i].sink);
	*ret_n = n;
	return r;
}
