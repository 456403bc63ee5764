/* src/golang/binary/refs.c: see refs.h. */
#include "golang/binary/refs.h"

#include <elf.h>
#include <stdlib.h>

#include "base/cleanup.h"

/* The functions searched are small; schedinit is the largest with some KB. */
#define REFS_MAX_CODE ((uint64_t)64 << 10)

static void refs_add(struct golang_refs *refs, const struct golang_module *module,
		     struct golang_ref ref)
{
	if (golang_module_has_variable(module, ref.target) && refs->len < GOLANG_REFS_MAX)
		refs->refs[refs->len++] = ref;
}

/* What an opcode does with its memory operand, and how many immediate bytes follow it. */
struct x86_op {
	enum golang_ref_kind kind;
	unsigned int immediate;
	unsigned int width; /* 0: four, or eight with REX.W */
};

static bool x86_one_byte(uint8_t op, struct x86_op *ret)
{
	switch (op) {
	case 0x8b:
		*ret = (struct x86_op){GOLANG_REF_LOAD, 0, 0};
		return true;
	case 0x8d:
		*ret = (struct x86_op){GOLANG_REF_ADDRESS, 0, 0};
		return true;
	case 0x89:
		*ret = (struct x86_op){GOLANG_REF_STORE, 0, 0};
		return true;
	case 0xc7:
		*ret = (struct x86_op){GOLANG_REF_STORE, 4, 0};
		return true;
	case 0xc6:
		*ret = (struct x86_op){GOLANG_REF_STORE, 1, 1};
		return true;
	case 0x39:
	case 0x3b:
		*ret = (struct x86_op){GOLANG_REF_COMPARE, 0, 0};
		return true;
	case 0x83:
		*ret = (struct x86_op){GOLANG_REF_COMPARE, 1, 0};
		return true;
	case 0x81:
		*ret = (struct x86_op){GOLANG_REF_COMPARE, 4, 0};
		return true;
	case 0x80:
		*ret = (struct x86_op){GOLANG_REF_COMPARE, 1, 1};
		return true;
	default:
		return false;
	}
}

static bool x86_two_byte(uint8_t op, struct x86_op *ret)
{
	switch (op) {
	case 0xb6: /* movzx from a byte */
		*ret = (struct x86_op){GOLANG_REF_LOAD, 0, 1};
		return true;
	case 0x10: /* SSE moves, cmpxchg, xadd */
	case 0x11:
	case 0xb1:
	case 0xc1:
		*ret = (struct x86_op){GOLANG_REF_OTHER, 0, 0};
		return true;
	default:
		return false;
	}
}

static void decode_x86(struct view code, uint64_t addr, const struct golang_module *module,
		       struct golang_refs *refs)
{
	const uint8_t *c = code.data;

	/* i: where the 32-bit displacement would be, after prefix, opcode and ModRM. */
	for (size_t i = 3; i + 4 <= code.len; i++) {
		bool two = c[i - 3] == 0x0f;
		uint8_t prefix = two ? (i >= 4 ? c[i - 4] : 0) : c[i - 3];
		struct x86_op op;
		int32_t displacement;

		if ((c[i - 1] & 0xc7) != 0x05)
			continue;
		if (!(two ? x86_two_byte(c[i - 2], &op) : x86_one_byte(c[i - 2], &op)))
			continue;
		memcpy(&displacement, c + i, sizeof(displacement));
		refs_add(refs, module,
			 (struct golang_ref){
				 .pc = addr + i - 2,
				 .target = addr + i + 4 + op.immediate +
					   (uint64_t)(int64_t)displacement,
				 .kind = op.kind,
				 .width = op.width		    ? op.width
					  : (prefix & 0xf8) == 0x48 ? 8
								    : 4,
			 });
	}
}

/* The 21-bit immediate of ADR and ADRP. */
static int64_t arm64_adr_immediate(uint32_t word)
{
	int64_t imm = (int64_t)(((word >> 5) & 0x7ffff) << 2 | ((word >> 29) & 3));

	return imm & (1 << 20) ? imm - (1 << 21) : imm;
}

static void decode_arm64(struct view code, uint64_t addr, const struct golang_module *module,
			 struct golang_refs *refs)
{
	struct {
		uint64_t page;
		uint64_t valid_until; /* an ADRP applies to the next four instructions */
	} regs[32] = {0};

	for (size_t off = 0; off + 4 <= code.len; off += 4) {
		uint64_t pc = addr + off;
		unsigned int rd, rn, size;
		struct golang_ref ref = {.pc = pc, .kind = GOLANG_REF_ADDRESS, .width = 8};
		uint32_t word;

		memcpy(&word, code.data + off, sizeof(word));
		rd = word & 31;
		rn = (word >> 5) & 31;
		if ((word & 0x9f000000) == 0x90000000) { /* ADRP */
			regs[rd].page =
				(pc & ~0xfffULL) + (uint64_t)(arm64_adr_immediate(word) * 4096);
			regs[rd].valid_until = pc + 16;
		} else if ((word & 0x9f000000) == 0x10000000) { /* ADR */
			ref.target = pc + (uint64_t)arm64_adr_immediate(word);
			refs_add(refs, module, ref);
		} else if (pc > regs[rn].valid_until) {
			continue;
		} else if ((word & 0xff800000) == 0x91000000) { /* ADD immediate */
			uint64_t imm = (word >> 10) & 0xfff;

			ref.target = regs[rn].page + (word & (1 << 22) ? imm << 12 : imm);
			refs_add(refs, module, ref);
			if (rd == rn)
				regs[rn].valid_until = 0;
		} else if ((word & 0x3b000000) == 0x39000000) { /* LDR, STR with unsigned offset */
			bool vector = word & (1 << 26);
			unsigned int how = (word >> 22) & 3;

			/* A bit that otherwise means sign extension marks 16 bytes. */
			size = vector && (how & 2) ? 4 : word >> 30;
			ref.target = regs[rn].page + ((uint64_t)((word >> 10) & 0xfff) << size);
			ref.kind = (vector ? how & 1 : how) ? GOLANG_REF_LOAD : GOLANG_REF_STORE;
			ref.width = 1U << size;
			refs_add(refs, module, ref);
		}
	}
}

void golang_refs_decode(struct view code, uint64_t addr, uint16_t machine,
			const struct golang_module *module, struct golang_refs *ret_refs)
{
	ret_refs->len = 0;
	if (machine == EM_X86_64)
		decode_x86(code, addr, module, ret_refs);
	else if (machine == EM_AARCH64)
		decode_arm64(code, addr, module, ret_refs);
}

void golang_refs_of(const struct golang_module *module, struct proc_mem *mem,
		    const struct golang_func *func, struct golang_refs *ret_refs)
{
	uint64_t len = MIN(func->end - func->entry, REFS_MAX_CODE);
	_cleanup_free_ uint8_t *code = NULL;

	ret_refs->len = 0;
	if (func->entry == 0)
		return;
	code = malloc(len + 1);
	if (code && proc_mem_read(mem, func->entry, code, len, NULL) == 0)
		golang_refs_decode(view_of(code, len), func->entry, proc_mem_machine(mem), module,
				   ret_refs);
}

bool golang_refs_has(const struct golang_refs *refs, uint64_t target)
{
	for (size_t i = 0; i < refs->len; i++)
		if (refs->refs[i].target == target)
			return true;
	return false;
}
