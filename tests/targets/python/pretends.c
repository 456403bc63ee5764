/*
 * pretends.c: has the symbols of CPython 3.11 and nothing of what lies behind. `pretends HOW`,
 * where HOW says what its variables hold: zeros, pointers to themselves, or to nowhere.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define WORDS 32768

const unsigned long Py_Version = 0x030b02f0;
uintptr_t _PyRuntime[WORDS];
uintptr_t PyCode_Type[64];
volatile unsigned long sink;

/* What follows the call keeps it from becoming a jump. */
__attribute__((noinline)) void *_PyEval_EvalFrameDefault(void *thread, void *frame, int depth)
{
	if (depth)
		frame = _PyEval_EvalFrameDefault(thread, frame, depth - 1);
	for (unsigned int i = 0; !depth && i < 1000000; i++)
		sink += i;
	sink++;
	return frame;
}

static void fill(const char *how)
{
	for (size_t i = 0; i < WORDS; i++) {
		if (!strcmp(how, "itself"))
			_PyRuntime[i] = (uintptr_t)_PyRuntime;
		else if (!strcmp(how, "nowhere"))
			_PyRuntime[i] = 0xdead000000000000 + i * 0x9e3779b97f4a7c15;
	}
}

int main(int argc, char **argv)
{
	fill(argc > 1 ? argv[1] : "");
	printf("ready %d\n", getpid());
	fflush(stdout);
	for (;;)
		_PyEval_EvalFrameDefault(_PyRuntime, _PyRuntime, 5);
}
