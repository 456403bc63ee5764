/*
 * shares.c: spends about 50, 30 and 20 percent of its time below three functions, all in the same
 * leaf: only whole stacks tell them apart. "ready PID" when it begins; each line of input is
 * answered with the units of work that each of them has done, and it ends with its input.
 * `shares SECONDS` reads no input and ends after so much CPU time.
 */
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define UNIT 5000

volatile unsigned long sink;

static inline __attribute__((always_inline)) unsigned long step(unsigned long i)
{
	return (i * i ^ i >> 3) + (i << 2);
}

/*
 * In registers: CPUs may or may not see that a variable is stored and loaded again, and a unit of
 * work would take one time or another.
 */
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
	unsigned long n[3], units[3] = {0};
	struct pollfd input = {.fd = 0, .events = POLLIN};
	double end = argc > 1 ? atof(argv[1]) : 0;
	char line[64];

	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	for (;;) {
		half(n[0] = some(5));
		third(n[1] = some(3));
		fifth(n[2] = some(2));
		for (int i = 0; i < 3; i++)
			units[i] += n[i];
		if (end > 0 && spent() >= end)
			return 0;
		if (end > 0 || poll(&input, 1, 0) <= 0)
			continue;
		if (!fgets(line, sizeof(line), stdin))
			return 0;
		printf("%lu %lu %lu\n", units[0], units[1], units[2]);
		fflush(stdout);
	}
}
