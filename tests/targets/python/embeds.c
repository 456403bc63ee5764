/* embeds.c: `embeds LIBPYTHON ARGUMENTS...`: a program of its own that has Python as a library. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL) : NULL;
	int (*python)(int, char **) = NULL;

	if (library)
		*(void **)&python = dlsym(library, "Py_BytesMain");
	if (!python) {
		fprintf(stderr, "no library of Python\n");
		return 1;
	}
	return python(argc - 1, argv + 1);
}
