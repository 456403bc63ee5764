/* src/cpu/symbols/jit.c: see jit.h. */
#include "cpu/symbols/jit.h"

#include <errno.h>

static void names_jits_drop(struct cpu_symbols_jits *jits, size_t i)
{
	cpu_perfmap_close(jits->list[i].map);
	jits->list[i] = jits->list[--jits->len];
}

void cpu_symbols_jits_release(struct cpu_symbols_jits *jits)
{
	while (jits->len > 0)
		names_jits_drop(jits, jits->len - 1);
}

void cpu_symbols_jits_forget(struct cpu_symbols_jits *jits, uint64_t generation)
{
	for (size_t i = 0; i < jits->len; i++)
		if (jits->list[i].generation == generation) {
			names_jits_drop(jits, i);
			return;
		}
}

static size_t names_jits_memory(const struct cpu_symbols_jits *jits)
{
	size_t bytes = 0;

	for (size_t i = 0; i < jits->len; i++)
		if (jits->list[i].map)
			bytes += cpu_perfmap_memory(jits->list[i].map);
	return bytes;
}

static size_t names_jits_oldest(const struct cpu_symbols_jits *jits)
{
	size_t oldest = 0;

	for (size_t i = 1; i < jits->len; i++)
		if (jits->list[i].used_ns < jits->list[oldest].used_ns)
			oldest = i;
	return oldest;
}

static struct cpu_symbols_jit *names_jits_find(struct cpu_symbols_jits *jits, pid_t pid,
					       uint64_t generation, uint64_t now_ns)
{
	for (size_t i = 0; i < jits->len; i++)
		if (jits->list[i].generation == generation)
			return &jits->list[i];
	if (jits->len == CPU_SYMBOLS_MAX_JITS)
		names_jits_drop(jits, names_jits_oldest(jits));
	/* Epochs are never reused: a process that is dropped and comes back gets a new one. */
	jits->list[jits->len] = (struct cpu_symbols_jit){
		.generation = generation, .pid = pid, .epoch = ++jits->epoch, .next_ns = now_ns};
	return &jits->list[jits->len++];
}

/* Drops maps of other processes; the requested one stays, whatever its size. */
static void names_jits_trim(struct cpu_symbols_jits *jits)
{
	while (jits->len > 1 && names_jits_memory(jits) > jits->max_bytes)
		names_jits_drop(jits, names_jits_oldest(jits));
}

/* Opens a map that was renamed into place; until that works, the old one stays valid. */
static void names_jit_replace(struct cpu_symbols_jits *jits, struct cpu_symbols_jit *j)
{
	struct cpu_perfmap *map;

	if (cpu_perfmap_open(j->pid, &map, NULL) < 0)
		return;
	cpu_perfmap_close(j->map);
	j->map = map;
	j->epoch = ++jits->epoch;
}

struct cpu_symbols_jit *cpu_symbols_jits_get(struct cpu_symbols_jits *jits, pid_t pid,
					     uint64_t generation, uint64_t now_ns)
{
	struct cpu_symbols_jit *j = names_jits_find(jits, pid, generation, now_ns);

	j->used_ns = now_ns;
	if (!j->map && now_ns >= j->next_ns) {
		int r = cpu_perfmap_open(pid, &j->map, NULL);

		if (r < 0)
			j->next_ns = now_ns + (r == -EAGAIN ? CPU_SYMBOLS_JIT_SOON_NS
							    : CPU_SYMBOLS_JIT_RETRY_NS);
	} else if (j->map && now_ns >= j->next_ns && cpu_perfmap_is_replaced(j->map, now_ns)) {
		j->next_ns = now_ns + CPU_PERFMAP_RETRY_NS;
		names_jit_replace(jits, j);
	}
	if (j->map && cpu_perfmap_refresh(j->map, now_ns)) {
		j->epoch = ++jits->epoch;
		names_jits_trim(jits);
		/* Entries may have moved. */
		j = names_jits_find(jits, pid, generation, now_ns);
	}
	return j;
}
