/*
 * bench/goroutines.c: what reading the goroutines of a program costs: the first time, which looks
 * the places up where they wait, and later; then a profile with names; and the same reading by
 * pread alone, as the agent does it. Usage: goroutines PID ROUNDS
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "bench.h"
#include "golang/goroutine/goroutines.h"

enum { FIRST, LATER, PROFILE, NEVER_WAIT, SERIES };

static void measure_read(struct golang_process *process, struct golang_goroutines *gs,
			 struct bench_series *series)
{
	struct proc_mem_stats before = proc_mem_stats(golang_process_mem(process)), after;
	struct bench_timer start = bench_start();
	struct err err = {0};

	bench_check(golang_goroutines_read(gs, &err), &err);
	after = proc_mem_stats(golang_process_mem(process));
	bench_stop(series, start, after.syscalls - before.syscalls, after.bytes - before.bytes);
}

static void measure_profile(struct golang_goroutines *gs, struct bench_series *series)
{
	_cleanup_(profile_freep) struct profile *profile = NULL;
	struct bench_timer start = bench_start();
	struct err err = {0};

	bench_check(golang_goroutines_profile(gs, true, NULL, NULL, &profile, &err), &err);
	bench_stop(series, start, 0, 0);
}

int main(int argc, char **argv)
{
	static struct bench_series series[SERIES] = {
		{.name = "first"}, {.name = "later"}, {.name = "profile"}, {.name = "never_wait"}};
	_cleanup_(buf_release) struct buf out = {0};
	struct json j = json_to(&out);
	struct golang_process *process, *never_wait;
	uint64_t rounds;
	pid_t pid;

	if (argc != 3) {
		(void)fprintf(stderr, "usage: goroutines PID ROUNDS\n");
		return 2;
	}
	pid = (pid_t)bench_number("PID", argv[1], INT32_MAX);
	process = bench_open(pid, NULL);
	never_wait = bench_open(pid, NULL);
	proc_mem_never_wait(golang_process_mem(never_wait));
	rounds = bench_number("ROUNDS", argv[2], BENCH_MAX_ROUNDS);
	json_object_begin(&j);
	for (uint64_t i = 0; i < rounds; i++) {
		_cleanup_(golang_goroutines_freep) struct golang_goroutines *gs = NULL,
									    *agent = NULL;
		struct err err = {0};

		bench_check(golang_goroutines_new(process, NULL, &gs, &err), &err);
		bench_check(golang_goroutines_new(never_wait, NULL, &agent, &err), &err);
		measure_read(process, gs, &series[FIRST]);
		measure_read(process, gs, &series[LATER]);
		measure_profile(gs, &series[PROFILE]);
		measure_read(never_wait, agent, &series[NEVER_WAIT]);
		if (i == 0) {
			json_key(&j, "goroutines");
			json_uint(&j, golang_goroutines_stats(gs)->total);
		}
	}
	for (size_t i = 0; i < SERIES; i++)
		bench_series_json(&series[i], &j);
	json_object_end(&j);
	golang_process_close(never_wait);
	golang_process_close(process);
	return bench_print(&j);
}
