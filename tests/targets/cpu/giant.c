/* giant.c: calls the functions of giant.S forever. */
#include <stdio.h>
#include <unistd.h>

void far(void);

int main(void)
{
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	for (;;)
		far();
}
