/* src/node/machine.c: see machine.h. */
#include "node/machine.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"

/* A machine with many CPUs and interrupts has a long one. */
#define MACHINE_MAX_TEXT ((size_t)4 << 20)
/* Columns of a line of /proc/stat; those of guests are in user and nice already. */
#define MACHINE_COLUMNS 8

const char *const node_cpu_mode_names[NODE_CPU_MODES] = {
	[NODE_CPU_USER] = "user",     [NODE_CPU_NICE] = "nice",
	[NODE_CPU_SYSTEM] = "system", [NODE_CPU_IDLE] = "idle",
	[NODE_CPU_IOWAIT] = "iowait", [NODE_CPU_INTERRUPT] = "interrupt",
	[NODE_CPU_STEAL] = "steal",
};

static const enum node_cpu_mode columns[MACHINE_COLUMNS] = {
	NODE_CPU_USER,	 NODE_CPU_NICE,	     NODE_CPU_SYSTEM,	 NODE_CPU_IDLE,
	NODE_CPU_IOWAIT, NODE_CPU_INTERRUPT, NODE_CPU_INTERRUPT, NODE_CPU_STEAL,
};

/* The next number; false if there is none. */
static bool take_number(struct view *text, uint64_t *ret)
{
	uint64_t value = 0;
	size_t at = 0, begin;

	while (at < text->len && text->data[at] == ' ')
		at++;
	for (begin = at; at < text->len && text->data[at] >= '0' && text->data[at] <= '9'; at++)
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(text->data[at] - '0'), &value))
			return false;
	if (at == begin)
		return false;
	*text = view_of(text->data + at, text->len - at);
	*ret = value;
	return true;
}

static int cpu_parse_line(struct view line, struct node_cpu *cpu)
{
	const uint64_t tick_ns = NS_PER_SEC / (uint64_t)sysconf(_SC_CLK_TCK);

	for (size_t i = 0; i < MACHINE_COLUMNS; i++) {
		uint64_t ticks, ns;

		if (!take_number(&line, &ticks) || __builtin_mul_overflow(ticks, tick_ns, &ns))
			return -EBADMSG;
		cpu->ns[columns[i]] += ns;
	}
	return 0;
}

int node_cpu_parse(struct view text, struct node_cpu *ret_cpu)
{
	struct node_cpu cpu = {0};
	struct view line;
	int r = -EBADMSG;

	while (view_take_line(&text, &line) && view_starts_with(line, "cpu")) {
		line = view_of(line.data + 3, line.len - 3);
		if (line.len && line.data[0] == ' ')
			r = cpu_parse_line(line, &cpu);
		else
			cpu.cpus++;
	}
	if (r < 0 || !cpu.cpus)
		return -EBADMSG;
	*ret_cpu = cpu;
	return 0;
}

uint64_t node_cpu_busy_ns(const struct node_cpu *cpu)
{
	uint64_t busy = 0;

	for (int i = 0; i < NODE_CPU_MODES; i++)
		if (i != NODE_CPU_IDLE && i != NODE_CPU_IOWAIT)
			busy += cpu->ns[i];
	return busy;
}

int node_memory_parse(struct view text, struct node_memory *ret_memory)
{
	struct node_memory m = {0};
	uint64_t cached = 0, reclaimable = 0;
	const struct {
		const char *key;
		uint64_t *to;
	} rows[] = {
		{"MemTotal:", &m.total},  {"MemFree:", &m.free}, {"MemAvailable:", &m.available},
		{"Buffers:", &m.buffers}, {"Cached:", &cached},	 {"SReclaimable:", &reclaimable}};
	unsigned int found = 0;
	struct view line;

	while (view_take_line(&text, &line))
		for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
			struct view rest;
			uint64_t kb;

			if (!view_starts_with(line, rows[i].key))
				continue;
			rest = view_of(line.data + strlen(rows[i].key),
				       line.len - strlen(rows[i].key));
			if (!take_number(&rest, &kb) || kb > UINT64_MAX >> 12)
				return -EBADMSG;
			*rows[i].to = kb * 1024;
			found |= 1U << i;
		}
	if (found != (1U << ARRAY_SIZE(rows)) - 1)
		return -EBADMSG;
	m.cached = cached + reclaimable;
	*ret_memory = m;
	return 0;
}

void node_machine_read(struct node_machine *ret)
{
	_cleanup_(buf_release) struct buf stat = buf_with_max(MACHINE_MAX_TEXT),
					  meminfo = buf_with_max(MACHINE_MAX_TEXT);

	ret->has_cpu = io_read_file(AT_FDCWD, "/proc/stat", &stat, NULL) == 0 &&
		       node_cpu_parse(buf_view(&stat), &ret->cpu) == 0;
	ret->has_memory = io_read_file(AT_FDCWD, "/proc/meminfo", &meminfo, NULL) == 0 &&
			  node_memory_parse(buf_view(&meminfo), &ret->memory) == 0;
}
