/*
 * tests/fuzz/cpu/fuzz_interleave.c: any frames of an interpreter among any native ones. Each of
 * them ends up in one place, or is left over.
 *
 *   flags u8 | n native u8 | a bit for each: is it a loop | two bits for each frame: how it began
 */
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "cpu/interp/interleave.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned int bits(const uint8_t *data, size_t size, size_t at, unsigned int n)
{
	return at / 8 < size ? data[at / 8] >> at % 8 & ((1U << n) - 1) : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct interp_frame frames[CPU_STACK_MAX];
	bool is_loop[CPU_STACK_MAX] = {0};
	uint16_t n[CPU_STACK_MAX], left;
	struct cpu_stack s = {.interp = frames};
	size_t sum = 0, n_loops = 0, bytes;

	if (size < 2)
		return 0;
	s.end = data[0] & 1 ? CPU_STACK_ROOT : CPU_STACK_TRUNCATED;
	s.interp_cut = data[0] & 2;
	s.n_user = (uint16_t)MIN((size_t)data[1] * 2 + (data[0] >> 2 & 1), (size_t)CPU_STACK_MAX);
	data += 2;
	size -= 2;
	for (size_t i = 0; i < s.n_user; i++) {
		is_loop[i] = bits(data, size, i, 1);
		n_loops += is_loop[i];
	}
	bytes = MIN(size, ((size_t)s.n_user + 7) / 8);
	data += bytes;
	size -= bytes;
	s.n_interp = (uint16_t)MIN(size * 4, (size_t)CPU_STACK_MAX);
	for (size_t i = 0; i < s.n_interp; i++) {
		unsigned int how = bits(data, size, 2 * i, 2);

		frames[i] = (struct interp_frame){.id = i | (how & 1 ? INTERP_ENTERED : 0) |
							(how & 2 ? INTERP_NOT_BEGUN : 0)};
	}
	left = cpu_interleave(&s, is_loop, n);
	for (size_t i = 0; i < s.n_user; i++) {
		if (n[i] && !is_loop[i])
			__builtin_trap();
		sum += n[i];
	}
	if (n_loops ? sum + left != s.n_interp : sum + left != 0)
		__builtin_trap();
	return 0;
}
