/*
 * src/elf/unwind/eh_frame_program.c: runs the programs of .eh_frame entries, tracking the CFA, the
 * return address and the frame pointer.
 */
#include <errno.h>

#include "base/cleanup.h"
#include "elf/unwind/eh_frame.h"

#define REG_FP 6 /* rbp */
#define REG_SP 7 /* rsp */
#define REG_MAX 63
#define RA_AT (-8)
/* Compilers nest states once or twice. */
#define MAX_SAVED_STATES 32

/* DW_CFA_*. The first three hold an operand in their low six bits. */
enum {
	OP_ADVANCE = 0x40,
	OP_OFFSET = 0x80,
	OP_RESTORE = 0xc0,
	OP_HIGH = 0xc0,
	OP_LOW = 0x3f,

	OP_NOP = 0x00,
	OP_SET_LOC = 0x01,
	OP_ADVANCE1 = 0x02,
	OP_ADVANCE2 = 0x03,
	OP_ADVANCE4 = 0x04,
	OP_OFFSET_EXTENDED = 0x05,
	OP_RESTORE_EXTENDED = 0x06,
	OP_UNDEFINED = 0x07,
	OP_SAME_VALUE = 0x08,
	OP_REGISTER = 0x09,
	OP_REMEMBER_STATE = 0x0a,
	OP_RESTORE_STATE = 0x0b,
	OP_DEF_CFA = 0x0c,
	OP_DEF_CFA_REGISTER = 0x0d,
	OP_DEF_CFA_OFFSET = 0x0e,
	OP_DEF_CFA_EXPRESSION = 0x0f,
	OP_EXPRESSION = 0x10,
	OP_OFFSET_EXTENDED_SF = 0x11,
	OP_DEF_CFA_SF = 0x12,
	OP_DEF_CFA_OFFSET_SF = 0x13,
	OP_VAL_OFFSET = 0x14,
	OP_VAL_OFFSET_SF = 0x15,
	OP_VAL_EXPRESSION = 0x16,
	OP_GNU_ARGS_SIZE = 0x2e,
	OP_GNU_NEGATIVE_OFFSET_EXTENDED = 0x2f,
};

/* DW_OP_*, those found in unwind information. */
enum {
	EXPR_DEREF = 0x06,
	EXPR_PLUS_UCONST = 0x23,
	EXPR_LIT0 = 0x30,
	EXPR_LIT31 = 0x4f,
	EXPR_BREG0 = 0x70,
	EXPR_BREG31 = 0x8f,
};

/* The state of a running program. */
struct eh_machine {
	const struct elf_eh_cie *cie;
	struct elf_eh_cursor c;
	struct elf_eh_state state;
	uint64_t pc;
	uint64_t end;		      /* of the function */
	struct elf_unwind_builder *b; /* NULL for the program of a CIE */
	bool has_unsupported;
	size_t n_saved;
	struct elf_eh_state saved[MAX_SAVED_STATES];
};

static bool fits16(int64_t v)
{
	return v >= INT16_MIN && v <= INT16_MAX;
}

static int32_t pack16(int64_t low, int64_t high)
{
	return (int32_t)((uint32_t)(uint16_t)high << 16 | (uint16_t)low);
}

/* The CFA in one of the supported forms; false if there is none. */
static bool rule_cfa(const struct elf_eh_state *s, struct elf_unwind_rule *rule)
{
	if (s->cfa_off < INT32_MIN || s->cfa_off > INT32_MAX)
		return false;
	rule->cfa_off = (int32_t)s->cfa_off;
	switch (s->cfa) {
	case ELF_EH_CFA_REG:
		if (s->reg > REG_MAX)
			return false;
		rule->cfa = s->reg == REG_SP   ? ELF_UNWIND_SP
			    : s->reg == REG_FP ? ELF_UNWIND_FP
					       : ELF_UNWIND_REG;
		rule->reg = rule->cfa == ELF_UNWIND_REG ? (uint8_t)s->reg & REG_MAX : 0;
		return true;
	case ELF_EH_CFA_DEREF:
		rule->cfa = s->reg == REG_SP ? ELF_UNWIND_SP_DEREF : ELF_UNWIND_FP_DEREF;
		return s->reg == REG_SP || s->reg == REG_FP;
	case ELF_EH_CFA_PLT:
		rule->cfa = ELF_UNWIND_PLT;
		return true;
	default:
		return false;
	}
}

static struct elf_unwind_rule rule_of(const struct elf_eh_state *s, bool is_signal)
{
	struct elf_unwind_rule rule = {0};

	if (is_signal)
		return (struct elf_unwind_rule){.cfa = ELF_UNWIND_SIGNAL};
	if (s->ra == ELF_EH_RA_UNDEFINED)
		return (struct elf_unwind_rule){.cfa = ELF_UNWIND_END};
	if (s->ra != ELF_EH_RA_SAVED || !rule_cfa(s, &rule))
		return (struct elf_unwind_rule){.cfa = ELF_UNWIND_UNSUPPORTED};
	if (s->fp == ELF_UNWIND_FP_SAME)
		return rule;
	rule.fp = fits16(s->fp_off) ? s->fp & 3 : ELF_UNWIND_FP_LOST;
	rule.fp_off = rule.fp == ELF_UNWIND_FP_LOST ? 0 : (int16_t)s->fp_off;
	return rule;
}

static int emit(struct eh_machine *m)
{
	struct elf_unwind_rule rule;

	if (!m->b)
		return 0;
	rule = rule_of(&m->state, m->cie->is_signal);
	m->has_unsupported |= rule.cfa == ELF_UNWIND_UNSUPPORTED;
	return elf_unwind_builder_row(m->b, m->pc, rule);
}

/* The current state holds up to the new address. 1: the function ends before it. */
static int advance_to(struct eh_machine *m, uint64_t pc)
{
	int r;

	if (!m->b || pc < m->pc)
		return -EBADMSG;
	if (pc == m->pc)
		return 0;
	r = emit(m);
	m->pc = pc;
	return r < 0 ? r : pc >= m->end;
}

static int advance(struct eh_machine *m, uint64_t delta)
{
	uint64_t pc;

	if (__builtin_mul_overflow(delta, m->cie->code_align, &pc) ||
	    __builtin_add_overflow(pc, m->pc, &pc))
		return -EBADMSG;
	return advance_to(m, pc);
}

/* The register is at CFA + off. */
static void reg_saved(struct eh_machine *m, uint64_t reg, int64_t off)
{
	if (reg == REG_FP) {
		m->state.fp = ELF_UNWIND_FP_SAVED;
		m->state.fp_off = off;
	} else if (reg == m->cie->ra_column) {
		m->state.ra = off == RA_AT ? ELF_EH_RA_SAVED : ELF_EH_RA_OTHER;
	}
}

/* An offset in units of the CIE. A forged one wraps, and then does not fit. */
static int64_t factored(const struct eh_machine *m, uint64_t n)
{
	return (int64_t)(n * (uint64_t)m->cie->data_align);
}

static void reg_restored(struct eh_machine *m, uint64_t reg)
{
	const struct elf_eh_state *initial = &m->cie->initial;

	if (reg == REG_FP) {
		m->state.fp = initial->fp;
		m->state.fp_off = initial->fp_off;
	} else if (reg == m->cie->ra_column) {
		m->state.ra = initial->ra;
	}
}

static void reg_other(struct eh_machine *m, uint64_t reg, enum elf_eh_ra ra, enum elf_unwind_fp fp)
{
	if (reg == REG_FP) {
		m->state.fp = fp;
		m->state.fp_off = 0;
	} else if (reg == m->cie->ra_column) {
		m->state.ra = ra;
	}
}

/* "The value of a register plus a number": most expressions start with it. */
static bool expr_reg(struct elf_eh_cursor *c, uint64_t *ret_reg, int64_t *ret_off)
{
	uint8_t op = elf_eh_u8(c);

	if (op < EXPR_BREG0 || op > EXPR_BREG31)
		return false;
	*ret_reg = op - EXPR_BREG0;
	*ret_off = elf_eh_sleb(c);
	return !c->bad;
}

static void reg_expression(struct eh_machine *m, uint64_t reg, struct view bytes)
{
	struct elf_eh_cursor c = {.bytes = bytes};
	uint64_t base;
	int64_t off;

	reg_other(m, reg, ELF_EH_RA_OTHER, ELF_UNWIND_FP_LOST);
	if (reg == REG_FP && expr_reg(&c, &base, &off) && c.pos == bytes.len && base == REG_FP) {
		m->state.fp = ELF_UNWIND_FP_AT_FP;
		m->state.fp_off = off;
	}
}

/*
 * What ld writes for its jump table. Entries are 16 bytes long, and each contains a push: sp + 8 +
 * (((pc & 15) >= N) << 3). N depends on the kind of table.
 */
static bool expr_is_plt(struct view v, int64_t *ret_limit)
{
	static const uint8_t before[] = {0x77, 8, 0x80, 0, 0x3f, 0x1a};
	static const uint8_t after[] = {0x2a, 0x33, 0x24, 0x22};
	struct view head, tail;

	if (v.len != sizeof(before) + 1 + sizeof(after) || !view_sub(v, 0, sizeof(before), &head) ||
	    !view_sub(v, sizeof(before) + 1, sizeof(after), &tail) ||
	    !view_eq(head, view_of(before, sizeof(before))) ||
	    !view_eq(tail, view_of(after, sizeof(after))))
		return false;
	*ret_limit = (int64_t)v.data[sizeof(before)] - EXPR_LIT0;
	return *ret_limit >= 0 && *ret_limit <= EXPR_LIT31 - EXPR_LIT0;
}

/* The CFA as reg + off, or as the value stored there, plus a constant. */
static void cfa_expression(struct eh_machine *m, struct view bytes)
{
	struct elf_eh_state *s = &m->state;
	struct elf_eh_cursor c = {.bytes = bytes};
	uint64_t plus = 0;
	int64_t off;

	s->cfa = ELF_EH_CFA_PLT;
	if (expr_is_plt(bytes, &s->cfa_off))
		return;
	s->cfa = ELF_EH_CFA_OTHER;
	if (!expr_reg(&c, &s->reg, &off))
		return;
	s->cfa_off = off;
	if (c.pos == bytes.len) {
		s->cfa = ELF_EH_CFA_REG;
		return;
	}
	if (elf_eh_u8(&c) != EXPR_DEREF)
		return;
	if (c.pos < bytes.len) {
		if (elf_eh_u8(&c) != EXPR_PLUS_UCONST)
			return;
		plus = elf_eh_uleb(&c);
	}
	if (c.bad || c.pos != bytes.len || !fits16(off) || plus > INT16_MAX)
		return;
	s->cfa = ELF_EH_CFA_DEREF;
	s->cfa_off = pack16(off, (int64_t)plus);
}

static void def_cfa(struct eh_machine *m, uint64_t reg, int64_t off)
{
	m->state.cfa = ELF_EH_CFA_REG;
	m->state.reg = reg;
	m->state.cfa_off = off;
}

/* Sets one half of the CFA: the other half must be known. */
static int def_cfa_half(struct eh_machine *m, uint64_t reg, int64_t off)
{
	if (m->state.cfa != ELF_EH_CFA_REG)
		return -EBADMSG;
	def_cfa(m, reg, off);
	return 0;
}

static int state_save(struct eh_machine *m)
{
	if (m->n_saved == MAX_SAVED_STATES)
		return -EBADMSG;
	m->saved[m->n_saved++] = m->state;
	return 0;
}

static int state_restore(struct eh_machine *m)
{
	if (m->n_saved == 0)
		return -EBADMSG;
	m->state = m->saved[--m->n_saved];
	return 0;
}

/* Instructions that define the CFA. */
static int step_cfa(struct eh_machine *m, uint8_t op)
{
	struct elf_eh_cursor *c = &m->c;
	uint64_t reg;

	switch (op) {
	case OP_DEF_CFA:
		reg = elf_eh_uleb(c);
		def_cfa(m, reg, (int64_t)elf_eh_uleb(c));
		return 0;
	case OP_DEF_CFA_SF:
		reg = elf_eh_uleb(c);
		def_cfa(m, reg, factored(m, (uint64_t)elf_eh_sleb(c)));
		return 0;
	case OP_DEF_CFA_REGISTER:
		return def_cfa_half(m, elf_eh_uleb(c), m->state.cfa_off);
	case OP_DEF_CFA_OFFSET:
		return def_cfa_half(m, m->state.reg, (int64_t)elf_eh_uleb(c));
	case OP_DEF_CFA_OFFSET_SF:
		return def_cfa_half(m, m->state.reg, factored(m, (uint64_t)elf_eh_sleb(c)));
	case OP_DEF_CFA_EXPRESSION:
		cfa_expression(m, elf_eh_bytes(c, elf_eh_uleb(c)));
		return 0;
	default:
		return -ENOTSUP;
	}
}

/* Instructions that tell where a register is saved. */
static int step_reg(struct eh_machine *m, uint8_t op)
{
	struct elf_eh_cursor *c = &m->c;
	uint64_t reg = elf_eh_uleb(c);

	switch (op) {
	case OP_OFFSET_EXTENDED:
		reg_saved(m, reg, factored(m, elf_eh_uleb(c)));
		return 0;
	case OP_OFFSET_EXTENDED_SF:
		reg_saved(m, reg, factored(m, (uint64_t)elf_eh_sleb(c)));
		return 0;
	case OP_GNU_NEGATIVE_OFFSET_EXTENDED:
		reg_saved(m, reg, factored(m, -elf_eh_uleb(c)));
		return 0;
	case OP_RESTORE_EXTENDED:
		reg_restored(m, reg);
		return 0;
	case OP_UNDEFINED:
		reg_other(m, reg, ELF_EH_RA_UNDEFINED, ELF_UNWIND_FP_LOST);
		return 0;
	case OP_SAME_VALUE:
		reg_other(m, reg, ELF_EH_RA_OTHER, ELF_UNWIND_FP_SAME);
		return 0;
	case OP_REGISTER:
	case OP_VAL_OFFSET:
	case OP_VAL_OFFSET_SF:
		(void)elf_eh_sleb(c);
		reg_other(m, reg, ELF_EH_RA_OTHER, ELF_UNWIND_FP_LOST);
		return 0;
	case OP_EXPRESSION:
		reg_expression(m, reg, elf_eh_bytes(c, elf_eh_uleb(c)));
		return 0;
	case OP_VAL_EXPRESSION:
		(void)elf_eh_bytes(c, elf_eh_uleb(c));
		reg_other(m, reg, ELF_EH_RA_OTHER, ELF_UNWIND_FP_LOST);
		return 0;
	default:
		return -ENOTSUP;
	}
}

static int step_extended(struct eh_machine *m, uint8_t op)
{
	struct elf_eh_cursor *c = &m->c;

	switch (op) {
	case OP_NOP:
		return 0;
	case OP_SET_LOC:
		return advance_to(m, elf_eh_address(c, m->cie->encoding));
	case OP_ADVANCE1:
		return advance(m, elf_eh_u8(c));
	case OP_ADVANCE2:
		return advance(m, elf_eh_uint(c, 2));
	case OP_ADVANCE4:
		return advance(m, elf_eh_uint(c, 4));
	case OP_REMEMBER_STATE:
		return state_save(m);
	case OP_RESTORE_STATE:
		return state_restore(m);
	case OP_GNU_ARGS_SIZE:
		(void)elf_eh_uleb(c);
		return 0;
	case OP_DEF_CFA:
	case OP_DEF_CFA_SF:
	case OP_DEF_CFA_REGISTER:
	case OP_DEF_CFA_OFFSET:
	case OP_DEF_CFA_OFFSET_SF:
	case OP_DEF_CFA_EXPRESSION:
		return step_cfa(m, op);
	default:
		return step_reg(m, op);
	}
}

static int step(struct eh_machine *m)
{
	uint8_t op = elf_eh_u8(&m->c);

	switch (op & OP_HIGH) {
	case OP_ADVANCE:
		return advance(m, op & OP_LOW);
	case OP_OFFSET:
		reg_saved(m, op & OP_LOW, factored(m, elf_eh_uleb(&m->c)));
		return 0;
	case OP_RESTORE:
		reg_restored(m, op & OP_LOW);
		return 0;
	default:
		return step_extended(m, op);
	}
}

/* 0 at the end of the program or of the function; -EBADMSG for a truncated operand. */
static int run(struct eh_machine *m)
{
	int r = 0;

	while (r == 0 && m->c.pos < m->c.bytes.len) {
		r = step(m);
		if (m->c.bad)
			r = -EBADMSG;
	}
	return r < 0 ? r : 0;
}

bool elf_eh_program_initial(struct elf_eh_cie *cie, const struct elf_eh_cursor *program)
{
	struct eh_machine m;

	/* Do not zero the saved states: that would take longer than most programs. */
	m.cie = cie;
	m.c = *program;
	m.state = (struct elf_eh_state){0};
	m.pc = m.end = 0;
	m.b = NULL;
	m.has_unsupported = false;
	m.n_saved = 0;
	if (run(&m) < 0)
		return false;
	cie->initial = m.state;
	return true;
}

int elf_eh_program_rows(const struct elf_eh_fde *fde, uint64_t end, struct elf_unwind_builder *b)
{
	struct eh_machine m;
	int r;

	m.cie = fde->cie;
	m.c = fde->program;
	m.state = m.cie->initial;
	m.pc = fde->start;
	m.end = end;
	m.b = b;
	m.has_unsupported = false;
	m.n_saved = 0;
	r = run(&m);
	if (b->error < 0)
		return b->error;
	/* After an instruction we do not understand, nothing is certain. */
	if (r < 0) {
		m.state.cfa = ELF_EH_CFA_OTHER;
		m.state.ra = ELF_EH_RA_OTHER;
	}
	r = m.pc < end ? emit(&m) : 0;
	b->table.n_unsupported += m.has_unsupported;
	return r;
}
