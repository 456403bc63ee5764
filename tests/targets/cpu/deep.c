/* deep.c: spins below N calls of one function, in the main thread and in another. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

volatile unsigned long sink;

__attribute__((noinline)) void spin(void)
{
	for (unsigned long i = 0; i < 1000000; i++)
		sink += i;
}

__attribute__((noinline)) void descend(int n)
{
	if (n > 1)
		descend(n - 1);
	else
		spin();
	sink++;
}

static void *in_a_thread(void *n)
{
	for (;;)
		descend(*(int *)n);
	return NULL;
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 1;
	pthread_t thread;

	if (pthread_create(&thread, NULL, in_a_thread, &n))
		return 1;
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	in_a_thread(&n);
}
