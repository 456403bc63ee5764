/*
 * bench/reader.c: reads the heap of a program whenever it is told to. A line "read" on stdin makes
 * it read the counts of all buckets; "profile" also makes a profile with names of them, and
 * encodes it. Answers with the CPU time that it took, in microseconds. Usage: reader PID
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "bench.h"
#include "golang/heap.h"
#include "profile/pprof.h"

static int read_once(struct golang_heap *heap, bool whole, struct err *err)
{
	_cleanup_(buf_release) struct buf out = buf_with_max(PPROF_MAX_UNPACKED);
	_cleanup_(profile_freep) struct profile *profile = NULL;
	int r = golang_heap_read(heap, err);

	if (r < 0 || !whole)
		return r;
	r = golang_heap_profile(heap, &profile, err);
	return r == 0 ? pprof_encode(profile, &out, err) : r;
}

int main(int argc, char **argv)
{
	struct golang_process *process;
	struct golang_heap *heap;
	struct err err = {0};
	char line[64];

	if (argc != 2) {
		(void)fprintf(stderr, "usage: reader PID\n");
		return 2;
	}
	process = bench_open((pid_t)bench_number("PID", argv[1], INT32_MAX), NULL);
	bench_check(golang_heap_new(process, &heap, &err), &err);
	while (fgets(line, sizeof(line), stdin)) {
		uint64_t before = clock_cpu_ns();

		bench_check(read_once(heap, strcmp(line, "profile\n") == 0, &err), &err);
		if (printf("%" PRIu64 "\n", (clock_cpu_ns() - before) / 1000) < 0 ||
		    fflush(stdout) != 0)
			return 1;
	}
	golang_heap_free(heap);
	golang_process_close(process);
	return 0;
}
