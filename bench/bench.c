/* bench/bench.c: see bench.h. */
#include "bench.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

struct bench_timer bench_start(void)
{
	struct bench_timer t = {.wall_ns = clock_mono_ns()};

	t.cpu_ns = clock_cpu_ns();
	return t;
}

void bench_stop(struct bench_series *series, struct bench_timer start, uint64_t syscalls,
		uint64_t bytes)
{
	uint64_t cpu_ns = clock_cpu_ns();

	series->costs[series->n++] = (struct bench_cost){
		.cpu_ns = cpu_ns - start.cpu_ns,
		.wall_ns = clock_mono_ns() - start.wall_ns,
		.syscalls = syscalls,
		.bytes = bytes,
	};
}

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* The value at a place of the sorted column: 0 is the smallest, n / 2 the median. */
static uint64_t column(const struct bench_series *series, size_t field, size_t place)
{
	uint64_t values[BENCH_MAX_ROUNDS];

	for (size_t i = 0; i < series->n; i++)
		memcpy(&values[i], (const char *)&series->costs[i] + field, sizeof(values[i]));
	qsort(values, series->n, sizeof(values[0]), compare_u64);
	return values[place];
}

void bench_series_json(const struct bench_series *s, struct json *j)
{
	size_t mid = s->n / 2;

	json_key(j, s->name);
	json_object_begin(j);
	json_key(j, "cpu_us");
	json_double(j, (double)column(s, offsetof(struct bench_cost, cpu_ns), mid) / 1e3);
	json_key(j, "cpu_min_us");
	json_double(j, (double)column(s, offsetof(struct bench_cost, cpu_ns), 0) / 1e3);
	json_key(j, "wall_us");
	json_double(j, (double)column(s, offsetof(struct bench_cost, wall_ns), mid) / 1e3);
	json_key(j, "syscalls");
	json_uint(j, column(s, offsetof(struct bench_cost, syscalls), mid));
	json_key(j, "bytes");
	json_uint(j, column(s, offsetof(struct bench_cost, bytes), mid));
	json_object_end(j);
}

uint64_t bench_number(const char *what, const char *text, uint64_t max)
{
	char *end;
	unsigned long long value;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno || end == text || *end || value == 0 || value > max) {
		(void)fprintf(stderr, "%s must be a number from 1 to %llu, not '%s'\n", what,
			      (unsigned long long)max, text);
		exit(2);
	}
	return value;
}

void bench_check(int r, const struct err *err)
{
	if (r >= 0)
		return;
	(void)fprintf(stderr, "%s\n", err->text);
	exit(1);
}

struct golang_process *bench_open(pid_t pid, const struct golang_options *options)
{
	struct golang_process *process;
	struct proc_mem *mem;
	struct err err = {0};

	bench_check(proc_mem_open(pid, &mem, &err), &err);
	bench_check(golang_process_open_take(mem, options, &process, &err), &err);
	return process;
}

int bench_print(const struct json *j)
{
	struct view text = buf_view(j->out);

	if (json_finish(j) < 0 || fwrite(text.data, 1, text.len, stdout) != text.len ||
	    fputc('\n', stdout) == EOF)
		return 1;
	return 0;
}
