/*
 * bench/reader.c: reads a program whenever it is told to. A line "read" on stdin makes it read the
 * counts of all heap buckets; "profile" also makes a profile with names of them, and encodes it;
 * "goroutines" does so for its goroutines. Answers with the CPU time that it took, in microseconds.
 * Usage: reader PID
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "bench.h"
#include "golang/goroutine/goroutines.h"
#include "golang/heap/heap.h"
#include "profile/pprof.h"

struct reader {
	struct golang_process *process;
	struct golang_heap *heap;
	struct golang_goroutines *goroutines;
};

static int read_heap(struct reader *reader, bool whole, struct profile **ret_profile,
		     struct err *err)
{
	int r = reader->heap ? 0 : golang_heap_new(reader->process, &reader->heap, err);

	if (r == 0)
		r = golang_heap_read(reader->heap, err);
	return r < 0 || !whole ? r : golang_heap_profile(reader->heap, ret_profile, err);
}

static int read_goroutines(struct reader *reader, struct profile **ret_profile, struct err *err)
{
	int r = reader->goroutines
			? 0
			: golang_goroutines_new(reader->process, NULL, &reader->goroutines, err);

	if (r == 0)
		r = golang_goroutines_read(reader->goroutines, err);
	return r < 0 ? r
		     : golang_goroutines_profile(reader->goroutines, true, NULL, NULL, ret_profile,
						 err);
}

static int obey(struct reader *reader, const char *line, struct err *err)
{
	_cleanup_(buf_release) struct buf out = buf_with_max(PROFILE_PPROF_MAX_UNPACKED);
	_cleanup_(profile_freep) struct profile *profile = NULL;
	int r = strcmp(line, "goroutines\n") == 0
			? read_goroutines(reader, &profile, err)
			: read_heap(reader, strcmp(line, "profile\n") == 0, &profile, err);

	return r < 0 || !profile ? r : profile_encode_pprof(profile, &out, err);
}

int main(int argc, char **argv)
{
	struct reader reader = {0};
	struct err err = {0};
	char line[64];

	if (argc != 2) {
		(void)fprintf(stderr, "usage: reader PID\n");
		return 2;
	}
	reader.process = bench_open((pid_t)bench_number("PID", argv[1], INT32_MAX), NULL);
	while (fgets(line, sizeof(line), stdin)) {
		uint64_t before = clock_cpu_ns();

		bench_check(obey(&reader, line, &err), &err);
		if (printf("%" PRIu64 "\n", (clock_cpu_ns() - before) / 1000) < 0 ||
		    fflush(stdout) != 0)
			return 1;
	}
	golang_goroutines_free(reader.goroutines);
	golang_heap_free(reader.heap);
	golang_process_close(reader.process);
	return 0;
}
