/*
 * tests/targets/fakes/forge.c: a C program that is not Go, for the refusals.
 *
 *   forge notgo    waits on stdin
 *   forge execs    the same, and "exec PATH [ARGS]" turns it into another program
 *
 * Built with FORGE_BUILDINFO it carries Go's build info of a release that never was, and none of
 * the runtime's tables: a Go program by its label only.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#ifdef FORGE_BUILDINFO
/* magic, pointer size, flags (inline strings), then at 32 length and text of version and modules */
__attribute__((used, section(".go.buildinfo"), aligned(16))) static char buildinfo[64] =
	"\xff Go buildinf:\x08\x02\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x08go1.99.9\0";
#endif

#define MAX_ARGS 32

static void exec_line(char *line)
{
	char *args[MAX_ARGS + 1] = {0};
	char *save = NULL;
	size_t n = 0;

	for (char *word = strtok_r(line, " ", &save); word && n < MAX_ARGS;
	     word = strtok_r(NULL, " ", &save))
		args[n++] = word;
	if (n)
		(void)execv(args[0], args);
	perror("exec");
}

int main(int argc, char **argv)
{
	int execs = argc > 1 && strcmp(argv[1], "execs") == 0;
	char line[4096];

	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	/* A successor reads the same stdin: what is buffered here would be lost to it. */
	(void)setvbuf(stdin, NULL, _IONBF, 0);
	(void)printf("ready %d\n", getpid());
	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = 0;
		if (strcmp(line, "quit") == 0)
			break;
		if (execs && strncmp(line, "exec ", 5) == 0)
			exec_line(line + 5);
		(void)puts("error: unknown command");
	}
	return 0;
}
