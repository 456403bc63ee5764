/* tests/fuzz/cpu/fuzz_demangle.c: any bytes as the name of a symbol. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "cpu/symbols/demangle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char name[CPU_DEMANGLE_MAX_INPUT + 64], out[512];
	size_t n = size < sizeof(name) - 1 ? size : sizeof(name) - 1;

	memcpy(name, data, n);
	name[n] = 0;
	out[sizeof(out) - 1] = 1;
	if (cpu_demangle(name, out, sizeof(out)) != (out[0] != 0))
		__builtin_trap();
	if (strnlen(out, sizeof(out)) == sizeof(out))
		__builtin_trap();
	return 0;
}
