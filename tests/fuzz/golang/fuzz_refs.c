/* tests/fuzz/golang/fuzz_refs.c: any bytes as code of both machines. */
#include <assert.h>
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "golang/binary/refs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void decode(struct view code, uint64_t addr, uint16_t machine,
		   const struct golang_module *module, struct golang_refs *refs)
{
	golang_refs_decode(code, addr, machine, module, refs);
	assert(refs->len <= GOLANG_REFS_MAX);
	for (size_t i = 0; i < refs->len; i++) {
		const struct golang_ref *ref = &refs->refs[i];

		assert(golang_module_has_variable(module, ref->target));
		assert(ref->pc - addr < code.len);
		assert(i == 0 || ref->pc - addr >= refs->refs[i - 1].pc - addr);
		assert(ref->width >= 1 && ref->width <= 16);
		assert(golang_refs_has(refs, ref->target));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct golang_refs refs;
	struct golang_module module = {0};
	uint64_t words[5];

	if (size < sizeof(words))
		return 0;
	memcpy(words, data, sizeof(words));
	module.noptrdata = words[0];
	module.enoptrbss = words[1];
	module.data = words[2];
	module.ebss = words[3];
	data += sizeof(words);
	size -= sizeof(words);
	decode(view_of(data, size), words[4], EM_X86_64, &module, &refs);
	decode(view_of(data, size), words[4] & ~3ULL, EM_AARCH64, &module, &refs);
	decode(view_of(data, size), words[4], EM_RISCV, &module, &refs);
	assert(refs.len == 0);
	return 0;
}
