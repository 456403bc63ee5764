/*
 * waits.c: one thread that sleeps below a function, one that holds a lock long and one that waits
 * for it; all do nothing but wait, and never for less than a millisecond. "ready PID" when they
 * begin; each line of input is answered with how often and how long, in nanoseconds by its own
 * clock, each of sleeps, holds and wants was at it.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
volatile int turns;

__attribute__((noinline)) void sleeps(void)
{
	usleep(20000);
	turns++;
}

__attribute__((noinline)) void holds(void)
{
	pthread_mutex_lock(&lock);
	usleep(10000);
	pthread_mutex_unlock(&lock);
	usleep(2000);
}

__attribute__((noinline)) void wants(void)
{
	usleep(2000);
	pthread_mutex_lock(&lock);
	turns++;
	pthread_mutex_unlock(&lock);
}

static struct work {
	void (*function)(void);
	_Atomic uint64_t count, ns;
} works[] = {{.function = sleeps}, {.function = holds}, {.function = wants}};

#define N_WORKS (sizeof(works) / sizeof(works[0]))

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void *repeat(void *arg)
{
	struct work *work = arg;

	for (;;) {
		uint64_t start = now_ns();

		work->function();
		work->ns += now_ns() - start;
		work->count++;
	}
	return NULL;
}

int main(void)
{
	pthread_t thread;
	char line[64];

	for (size_t i = 0; i < N_WORKS; i++)
		if (pthread_create(&thread, NULL, repeat, &works[i]))
			return 1;
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		for (size_t i = 0; i < N_WORKS; i++)
			printf("%llu %llu ", (unsigned long long)works[i].count,
			       (unsigned long long)works[i].ns);
		printf("\n");
		fflush(stdout);
	}
	return 0;
}
