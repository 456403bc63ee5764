/* waits.c: one thread that sleeps below a function, one that waits for a lock which is held long.
 */
#include <pthread.h>
#include <stdio.h>
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
	usleep(1000);
}

__attribute__((noinline)) void wants(void)
{
	pthread_mutex_lock(&lock);
	turns++;
	pthread_mutex_unlock(&lock);
}

static void *repeat(void *work)
{
	for (;;)
		((void (*)(void))work)();
	return NULL;
}

int main(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, repeat, (void *)holds);
	pthread_create(&thread, NULL, repeat, (void *)wants);
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	repeat((void *)sleeps);
	return 0;
}
