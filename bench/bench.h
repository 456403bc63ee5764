/*
 * bench/bench.h: what the benchmarks share: the cost of one pass, medians over rounds, JSON.
 *
 * Alternatives are measured in turns within one run, so that a noisy moment hits all of them, and
 * are compared by their medians.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/json.h"
#include "golang/process.h"

#define BENCH_MAX_ROUNDS 1001

struct bench_cost {
	uint64_t cpu_ns; /* user and system, of this process */
	uint64_t wall_ns;
	uint64_t syscalls; /* those that read the target or its file */
	uint64_t bytes;
};

/* The costs of one alternative, round by round. */
struct bench_series {
	const char *name;
	struct bench_cost costs[BENCH_MAX_ROUNDS];
	size_t n;
};

struct bench_timer {
	uint64_t cpu_ns;
	uint64_t wall_ns;
};

struct bench_timer bench_start(void);
/* Adds what passed since start as one round; syscalls and bytes are the caller's to count. */
void bench_stop(struct bench_series *series, struct bench_timer start, uint64_t syscalls,
		uint64_t bytes);
/* The medians as an object: cpu_us, cpu_min_us, wall_us, syscalls, bytes. */
void bench_series_json(const struct bench_series *series, struct json *j);

/* Command-line helpers that end the program with a sentence when the value is unusable. */
uint64_t bench_number(const char *what, const char *text, uint64_t max);
void bench_check(int r, const struct err *err);
/* Opens the Go program with that pid, or ends with the sentence. */
struct golang_process *bench_open(pid_t pid, const struct golang_options *options);
/* Writes the finished JSON to stdout. */
int bench_print(const struct json *j);
