/*
 * shares.c: spends about 50, 30 and 20 percent of its time below three functions, all in the same
 * leaf: only whole stacks tell them apart. "ready PID" when it begins; each line of input is
 * answered with the CPU time of each of them in nanoseconds, and it ends with its input.
 * `shares SECONDS` reads no input and ends after so much CPU time.
 */
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "stopwatch.h"

#define UNIT 25000

volatile unsigned long sink;

static inline __attribute__((always_inline)) unsigned long step(unsigned long i)
{
	return (i * i ^ i >> 3) + (i << 2);
}

/* In registers: CPUs may or may not see that a variable is stored and loaded again. */
__attribute__((noinline)) void spin(unsigned long n)
{
	unsigned long sum = 0;

	for (unsigned long i = 0; i < n * UNIT; i++) {
		sum += step(i);
		__asm__ volatile("" : "+r"(sum));
	}
	sink += sum;
}

/* What follows the call keeps it from becoming a jump. */
__attribute__((noinline)) void half(unsigned long n)
{
	spin(n);
	sink++;
}

__attribute__((noinline)) void third(unsigned long n)
{
	spin(n);
	sink++;
}

__attribute__((noinline)) void fifth(unsigned long n)
{
	spin(n);
	sink++;
}

/* About ten times the part: of no fixed length there is nothing to fall into step with. */
static unsigned long some(unsigned long part)
{
	static uint32_t random = 2463534242;

	random ^= random << 13;
	random ^= random >> 17;
	random ^= random << 5;
	return part * (5 + random % 11);
}

static double spent(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	struct stopwatch watch = {0};
	unsigned long n;
	struct pollfd input = {.fd = 0, .events = POLLIN};
	double end = argc > 1 ? atof(argv[1]) : 0;
	char line[64];

	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	for (;;) {
		stopwatch_start(&watch);
		half(n = some(5));
		stopwatch_count(&watch, 0, n);
		third(n = some(3));
		stopwatch_count(&watch, 1, n);
		fifth(n = some(2));
		stopwatch_count(&watch, 2, n);
		if (end > 0 && spent() >= end)
			return 0;
		if (end > 0 || poll(&input, 1, 0) <= 0)
			continue;
		if (!fgets(line, sizeof(line), stdin))
			return 0;
		for (int i = 0; i < STOPWATCH_PARTS; i++)
			printf("%llu ", (unsigned long long)watch.spent_ns[i]);
		printf("\n");
		fflush(stdout);
	}
}
