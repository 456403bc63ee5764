/*
 * tests/targets/cshared/host/host.c: a C program that loads the Go library which lies beside it
 * (libtarget.so) and obeys the targets' line protocol on its behalf. It is linked without Go, and
 * has a directory of its own because cgo compiles every C file that lies beside Go ones.
 */
#include <dlfcn.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct source_target {
	void (*start)(void);
	int (*dump)(void);
	void (*collect)(void);
	void (*more)(void);
};

static void *symbol(void *lib, const char *name)
{
	void *p = dlsym(lib, name);

	if (!p) {
		(void)fprintf(stderr, "libtarget.so has no %s\n", name);
		exit(1);
	}
	return p;
}

static struct source_target load(void)
{
	char exe[4096], path[4200];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	void *lib;

	if (n < 0) {
		perror("/proc/self/exe");
		exit(1);
	}
	exe[n] = 0;
	(void)snprintf(path, sizeof(path), "%s/libtarget.so", dirname(exe));
	lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!lib) {
		(void)fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	return (struct source_target){
		.start = (void (*)(void))symbol(lib, "TargetStart"),
		.dump = (int (*)(void))symbol(lib, "TargetDump"),
		.collect = (void (*)(void))symbol(lib, "TargetCollect"),
		.more = (void (*)(void))symbol(lib, "TargetMore"),
	};
}

int main(void)
{
	struct source_target t = load();
	char line[256];

	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	t.start();
	(void)printf("ready %d\n", getpid());
	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = 0;
		if (strcmp(line, "dump") == 0) {
			(void)puts(t.dump() == 0 ? "dumped" : "error: cannot write the profile");
		} else if (strcmp(line, "gc") == 0) {
			t.collect();
			(void)puts("done");
		} else if (strcmp(line, "alloc") == 0) {
			t.more();
			(void)puts("done");
		} else if (strcmp(line, "quit") == 0) {
			break;
		} else {
			(void)puts("error: unknown command");
		}
	}
	return 0;
}
