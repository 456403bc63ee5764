/* src/java/jfr/births.c: see births.h. */
#include "java/jfr/births.h"

#include "base/cleanup.h"

#define BIRTHS_MAX ((size_t)1 << 20) /* threads; beyond that nothing is left out */
/* A recording that starts this soon after the JVM misses almost nothing. */
#define BIRTHS_JVM_MS 5000
/* A file that starts this long after its recording has no first samples. */
#define BIRTHS_FILE_MS 5000

void java_jfr_births_release(struct java_jfr_births *b)
{
	map_release(&b->known);
	map_release(&b->born);
	map_release(&b->firsts);
	buf_release(&b->list);
	*b = (struct java_jfr_births){0};
}

int java_jfr_births_sample(struct java_jfr_births *b, uint64_t thread, int64_t time_ns,
			   int64_t weight, size_t sum)
{
	struct java_jfr_first first = {
		.thread = thread, .time_ns = time_ns, .weight = weight, .sum = sum};
	struct java_jfr_first *earliest;
	uint64_t at;
	int r;

	if (map_get(&b->known, thread, &at) || b->known.len >= BIRTHS_MAX)
		return 0;
	if (map_get(&b->firsts, thread, &at)) {
		earliest = &((struct java_jfr_first *)b->list.data)[at];
		if (time_ns < earliest->time_ns)
			*earliest = first;
		return 0;
	}
	if (b->firsts.len >= BIRTHS_MAX)
		return 0;
	at = b->list.len / sizeof(first);
	r = buf_append(&b->list, &first, sizeof(first));
	return r < 0 ? r : map_put(&b->firsts, thread, at);
}

int java_jfr_births_born(struct java_jfr_births *b, uint64_t thread, uint64_t round)
{
	return b->born.len >= BIRTHS_MAX ? 0 : map_put(&b->born, thread, round);
}

void java_jfr_births_recording(struct java_jfr_births *b, int64_t start_ms)
{
	if (start_ms > 0 && (b->recording_start_ms == 0 || start_ms < b->recording_start_ms))
		b->recording_start_ms = start_ms;
}

/* Halved, so that forged times cannot overflow. */
static bool all_are_older(const struct java_jfr_births *b)
{
	int64_t file_ms = b->file_start_ns / 1000000;
	int64_t began_ms = b->recording_start_ms ? b->recording_start_ms : file_ms;

	if (b->jvm_start_ms > 0 && b->jvm_start_ms / 2 > began_ms / 2 - BIRTHS_JVM_MS / 2)
		return false;
	return began_ms / 2 > file_ms / 2 - BIRTHS_FILE_MS / 2;
}

void java_jfr_births_settle(struct java_jfr_births *b,
			    void (*drop)(void *arg, const struct java_jfr_first *first), void *arg)
{
	const struct java_jfr_first *list = (const struct java_jfr_first *)b->list.data;
	size_t n = b->list.len / sizeof(*list);
	bool older = all_are_older(b);
	uint64_t born;

	for (size_t i = 0; i < n; i++) {
		if (older && !map_get(&b->born, list[i].thread, &born))
			drop(arg, &list[i]);
		/* If out of memory, a thread may be taken for a new one again. */
		(void)map_put(&b->known, list[i].thread, 1);
	}
	buf_clear(&b->list);
	map_release(&b->firsts);
	/* Most of them are known by now. */
	if (b->born.len > BIRTHS_MAX / 2)
		map_release(&b->born);
}
