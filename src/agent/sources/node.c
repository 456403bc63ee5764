/* src/agent/sources/node.c: see node.h. Two small files are read at the end of each interval. */
#include "agent/sources/node.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/agent.h"
#include "base/cleanup.h"
#include "node/machine.h"

struct agent_node {
	uint64_t interval_ns;
	struct inbox *inbox;
	bool has_before; /* otherwise what is read next is the baseline */
	struct node_cpu before;
};

static int add_gauge(struct metrics *m, enum metric_id id, const char *attribute, uint64_t value)
{
	return metrics_add(m, &(struct metric_point){.metric = &registry_metrics[id],
						     .attributes = {attribute},
						     .value = (double)value});
}

/* One part of the increase; the last one has the total. */
static int add_counter(struct metrics *m, enum metric_id id, const char *attribute,
		       const uint64_t values[2], const struct record_parts *parts, uint32_t part)
{
	bool is_known = values[0] <= values[1];

	return metrics_add(
		m, &(struct metric_point){
			   .metric = &registry_metrics[id],
			   .attributes = {attribute},
			   .value = part + 1 == parts->n ? (double)values[1] : NAN,
			   .increase = is_known ? (double)(values[1] - values[0]) / (double)parts->n
						: NAN,
		   });
}

/* before: NULL for a baseline. */
static int add_cpu(struct metrics *m, const struct node_cpu *cpu, const struct node_cpu *before,
		   const struct record_parts *parts, uint32_t part)
{
	const uint64_t busy[] = {before ? node_cpu_busy_ns(before) : UINT64_MAX,
				 node_cpu_busy_ns(cpu)};
	int r = add_counter(m, METRIC_SYSTEM_CPU_BUSY, NULL, busy, parts, part);

	for (int i = 0; r == 0 && i < NODE_CPU_MODES; i++) {
		const uint64_t ns[] = {before ? before->ns[i] : UINT64_MAX, cpu->ns[i]};

		r = add_counter(m, METRIC_SYSTEM_CPU_TIME, node_cpu_mode_names[i], ns, parts, part);
	}
	return r;
}

static int add_memory(struct metrics *m, const struct node_memory *memory)
{
	uint64_t others = memory->free + memory->buffers + memory->cached;
	const struct {
		const char *state;
		uint64_t bytes;
	} states[] = {
		{"used", memory->total > others ? memory->total - others : 0},
		{"free", memory->free},
		{"buffers", memory->buffers},
		{"cached", memory->cached},
	};
	uint64_t available = MIN(memory->available, memory->total);
	int r = add_gauge(m, METRIC_SYSTEM_MEMORY_LIMIT, NULL, memory->total);

	if (r == 0)
		r = add_gauge(m, METRIC_SYSTEM_MEMORY_USED, NULL, memory->total - available);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(states); i++)
		r = add_gauge(m, METRIC_SYSTEM_MEMORY, states[i].state, states[i].bytes);
	return r;
}

/* What was counted in a late interval is spread over its parts; a state is of its end. */
static int node_metrics(const struct agent_node *n, const struct node_machine *now,
			const struct record_parts *parts, uint32_t part, struct metrics *m)
{
	bool is_last = part + 1 == parts->n;
	int r = 0;

	if (now->has_cpu && (is_last || n->has_before))
		r = add_cpu(m, &now->cpu, n->has_before ? &n->before : NULL, parts, part);
	if (r == 0 && is_last && now->has_cpu)
		r = add_gauge(m, METRIC_SYSTEM_CPUS, NULL, now->cpu.cpus);
	if (r == 0 && is_last && now->has_memory)
		r = add_memory(m, &now->memory);
	return r;
}

static void node_deliver(struct delivery_list *list, struct metrics *m, struct record_time when)
{
	struct delivery *d = delivery_new(record_new_metrics(m), when);

	if (!d)
		return;
	/* No process has the right to this name. */
	d->info.rank = PROC_RANK_PROVEN;
	d->info.uid = geteuid();
	(void)snprintf(d->info.service, sizeof(d->info.service), "%s", AGENT_MACHINE);
	delivery_list_add(list, d);
}

static void node_source_ask(void *state, struct record_time when)
{
	struct agent_node *n = state;
	const struct record_parts parts = record_time_divide(&when, n->interval_ns);
	struct node_machine now = {};
	struct delivery_list list;

	delivery_list_init(&list);
	node_machine_read(&now);
	for (uint32_t i = 0; i < parts.n; i++) {
		_cleanup_(metrics_freep) struct metrics *m = metrics_new();

		if (m && node_metrics(n, &now, &parts, i, m) == 0 && m->len)
			node_deliver(&list, TAKE_PTR(m), record_time_part(&when, &parts, i));
	}
	n->has_before = now.has_cpu;
	n->before = now.cpu;
	inbox_put(n->inbox, &list);
	delivery_list_release(&list);
}

static int node_source_start(const void *config, struct inbox *inbox, void **ret_state,
			     struct err *err)
{
	const struct agent_node_config *c = config;
	struct agent_node *n = calloc(1, sizeof(*n));

	if (!n)
		return err_oom(err);
	n->interval_ns = c->interval_ns;
	n->inbox = inbox;
	*ret_state = n;
	return 0;
}

static bool node_source_stop(void *state)
{
	(void)state;
	return true;
}

const struct source_ops agent_source_node = {
	.name = "node",
	.start = node_source_start,
	.ask = node_source_ask,
	.stop = node_source_stop,
	.free = free,
};
