/* opens.c: works by itself until a line comes, then in the library that it loads. `opens LIBRARY`
 */
#include <dlfcn.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

volatile unsigned long sink;

__attribute__((noinline)) void own_work(void)
{
	for (unsigned long i = 0; i < 100000; i++)
		sink += i;
}

static void (*load(const char *path))(void)
{
	void *library = dlopen(path, RTLD_NOW);
	void (*work)(void) = NULL;

	if (library)
		*(void **)&work = dlsym(library, "part_work");
	return work;
}

__attribute__((noinline)) void caller(void (*work)(void))
{
	work();
	sink++;
}

int main(int argc, char **argv)
{
	struct pollfd input = {.fd = 0, .events = POLLIN};
	void (*work)(void) = own_work;
	char line[16];

	if (argc < 2)
		return 2;
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	for (;;) {
		caller(work);
		if (work != own_work || poll(&input, 1, 0) <= 0)
			continue;
		if (!fgets(line, sizeof(line), stdin))
			return 0;
		work = load(argv[1]);
		if (!work)
			return 1;
		printf("loaded\n");
		fflush(stdout);
	}
}
