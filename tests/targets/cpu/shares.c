/*
 * shares.c: spends 50, 30 and 20 percent of its time below three functions, all in the same leaf:
 * only whole stacks tell them apart. `shares SECONDS`; "ready PID" when it begins.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define ROUND 2000

volatile unsigned long sink;

static inline __attribute__((always_inline)) unsigned long step(unsigned long i)
{
	return (i * i ^ i >> 3) + (i << 2);
}

__attribute__((noinline)) void spin(unsigned long n)
{
	for (unsigned long i = 0; i < n * ROUND; i++)
		sink += step(i);
}

/* What follows the call keeps it from becoming a jump. */
__attribute__((noinline)) void half(void)
{
	spin(50);
	sink++;
}

__attribute__((noinline)) void third(void)
{
	spin(30);
	sink++;
}

__attribute__((noinline)) void fifth(void)
{
	spin(20);
	sink++;
}

int main(int argc, char **argv)
{
	time_t end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 60);

	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	while (time(NULL) < end) {
		half();
		third();
		fifth();
	}
	return 0;
}
