/*
 * src/golang/binary/program_unwind.c: unwind rules for Go functions, from pclntab's pcsp: for each
 * address, how far the stack pointer is below the return address. x86-64.
 *
 * Frame pointers alone would skip the caller in prologues, epilogues and functions without a frame.
 * They are needed only where the runtime switches stacks: systemstack and asmcgocall, to run on the
 * system stack; the vdso's callers; cgocallback, to return. There pcsp is useless, but the frame
 * pointer still refers to the old stack, so the walk continues with the calls that caused the
 * switch, as in runtime/pprof's own profiles. mcall and morestack leave nothing to continue with:
 * the scheduler's stacks end there.
 *
 * Before Go 1.21 systemstack and asmcgocall have no frame: the frame pointer is already their
 * caller's, and the caller itself is skipped. Nor is the frame pointer saved until one instruction
 * after the stack pointer moves: the value read for it there is wrong, which matters only to a
 * later switch.
 */
#include <elf.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "elf/unwind/builder.h"
#include "golang/binary/program_state.h"

/* Functab entries read together. */
#define UNWIND_BATCH 512
/* A prologue, including the check for stack space, lies within this many bytes. */
#define UNWIND_PROLOGUE_BYTES 96

/* How to unwind the frames of a function. */
enum func_kind {
	FUNC_PLAIN,
	FUNC_END,
	FUNC_SIGNAL,
};

/* Functions whose flags are misleading. */
static const struct {
	const char *name;
	enum func_kind kind;
} special[] = {
	/* Switch stacks for good. */
	{"runtime.mcall", FUNC_END},
	{"runtime.morestack", FUNC_END},
	{"runtime.gogo", FUNC_END},
	{"gogo", FUNC_END},
	{"runtime.clone", FUNC_END},
	/* The kernel enters here, with arguments in place of a return address. */
	{"_rt0_amd64_linux", FUNC_END},
	{"_rt0_amd64", FUNC_END},
	{"runtime.sigreturn", FUNC_SIGNAL},
	{"runtime.sigreturn__sigaction", FUNC_SIGNAL},
	/* Marked as outermost, but it returns to sigreturn, and the interrupted code is beyond. */
	{"runtime.sigtramp", FUNC_PLAIN},
};

struct func {
	struct golang_func f;
	uint64_t record;
	uint64_t framed; /* from here on, the frame pointer points at its saved value; 0: never */
};

struct go_unwind {
	struct golang_pclntab *t;
	struct elf_unwind_builder b;
	struct golang_func special[ARRAY_SIZE(special)];
};

/*
 * The address from which the frame pointer points at its saved value:
 *
 *   1.21+   push rbp; mov rbp, rsp
 *   before  mov [rsp + N], rbp; lea rbp, [rsp + N]
 */
static uint64_t frame_begins(struct golang_pclntab *t, const struct func *f)
{
	static const struct {
		uint8_t bytes[4];
		uint8_t more;
	} prologues[] = {
		{{0x55, 0x48, 0x89, 0xe5}, 0}, /* push, mov */
		{{0x48, 0x8d, 0x2c, 0x24}, 0}, /* lea with no displacement, of one byte, of four */
		{{0x48, 0x8d, 0x6c, 0x24}, 1},
		{{0x48, 0x8d, 0xac, 0x24}, 4},
	};
	size_t len = MIN(f->f.end - f->f.entry, (uint64_t)UNWIND_PROLOGUE_BYTES);
	int code;
	const uint8_t *p = golang_mem_cache_get(t->cache, f->f.entry, len, &code);

	for (size_t i = 0; p && i + 4 <= len; i++)
		for (size_t k = 0; k < ARRAY_SIZE(prologues); k++)
			if (memcmp(p + i, prologues[k].bytes, 4) == 0)
				return f->f.entry + i + 4 + prologues[k].more;
	return 0;
}

static int add_whole(struct go_unwind *u, uint64_t vaddr, enum elf_unwind_cfa cfa)
{
	return elf_unwind_builder_row(&u->b, vaddr, (struct elf_unwind_rule){.cfa = cfa & 0xff});
}

static struct elf_unwind_rule rule_for(int64_t delta, bool saves_fp)
{
	struct elf_unwind_rule rule = {.cfa = ELF_UNWIND_SP};

	if (delta < 0 || delta > INT32_MAX - 8)
		return (struct elf_unwind_rule){.cfa = ELF_UNWIND_UNSUPPORTED};
	rule.cfa_off = (int32_t)delta + 8;
	if (delta > 0 && saves_fp) {
		rule.fp = ELF_UNWIND_FP_SAVED;
		rule.fp_off = -16;
	}
	return rule;
}

/* The rule for addresses from pc to end, where pcsp is delta. */
static int add_rows(struct go_unwind *u, const struct func *f, uint64_t pc, uint64_t end,
		    int64_t delta)
{
	static const struct elf_unwind_rule framed = {
		.cfa = ELF_UNWIND_FP, .cfa_off = 16, .fp = ELF_UNWIND_FP_SAVED, .fp_off = -16};
	static const struct elf_unwind_rule chained = {.cfa = ELF_UNWIND_CHAIN};
	bool is_asm = f->f.flags & GOLANG_FUNC_ASM || u->t->format == GOLANG_PCLN_116;
	struct elf_unwind_rule rule = rule_for(delta, !is_asm || f->framed);
	int r;

	if (!(f->f.flags & GOLANG_FUNC_SP_WRITE))
		return elf_unwind_builder_row(&u->b, pc, rule);
	if (!f->framed)
		return elf_unwind_builder_row(&u->b, pc, chained);
	if (delta == 0 || end <= f->framed)
		return elf_unwind_builder_row(&u->b, pc, rule);
	if (pc >= f->framed)
		return elf_unwind_builder_row(&u->b, pc, framed);
	r = elf_unwind_builder_row(&u->b, pc, rule);
	return r < 0 ? r : elf_unwind_builder_row(&u->b, f->framed, framed);
}

static int add_function(struct go_unwind *u, const struct func *f)
{
	struct golang_pcvalue v = golang_pcvalue_begin(f->f.pcsp, f->f.entry);
	uint64_t pc = f->f.entry;
	bool unsupported = false;
	int r = 1;

	while (r > 0 && pc < f->f.end) {
		r = golang_pcvalue_next(u->t, &v);
		if (r > 0 && v.pc > pc) {
			int added = add_rows(u, f, pc, MIN(v.pc, f->f.end), (int32_t)v.value);

			if (added < 0)
				return added;
			unsupported |= (int32_t)v.value < 0;
		}
		pc = v.pc;
	}
	unsupported |= r == -EBADMSG;
	u->b.table.n_unsupported += unsupported;
	if (r == -EBADMSG)
		return add_whole(u, pc, ELF_UNWIND_UNSUPPORTED);
	return r < 0 ? r : 0;
}

static enum func_kind kind_of(const struct go_unwind *u, const struct func *f)
{
	for (size_t i = 0; i < ARRAY_SIZE(special); i++)
		if (u->special[i].entry == f->f.entry)
			return special[i].kind;
	return f->f.flags & GOLANG_FUNC_TOP_FRAME ? FUNC_END : FUNC_PLAIN;
}

static bool func_load(struct golang_pclntab *t, struct func *f)
{
	if (!golang_pclntab_record(t, f->record, &f->f))
		return false;
	f->framed = 0;
	if ((f->f.flags & (GOLANG_FUNC_ASM | GOLANG_FUNC_SP_WRITE)) || t->format == GOLANG_PCLN_116)
		f->framed = frame_begins(t, f);
	return true;
}

/* Skips a function whose record is damaged. */
static int unwind_function(struct go_unwind *u, struct func *f)
{
	int r;

	if (!func_load(u->t, f)) {
		u->b.table.n_damaged++;
		return add_whole(u, f->f.entry, ELF_UNWIND_NONE);
	}
	r = elf_unwind_builder_start(&u->b, f->f.entry);
	if (r < 0)
		return r;
	switch (kind_of(u, f)) {
	case FUNC_END:
		return add_whole(u, f->f.entry, ELF_UNWIND_END);
	case FUNC_SIGNAL:
		/* Handlers have its entry as return address, and lookups use the byte before. */
		return add_whole(u, f->f.entry - 1, ELF_UNWIND_SIGNAL);
	default:
		return f->f.pcsp ? add_function(u, f) : add_whole(u, f->f.entry, ELF_UNWIND_CHAIN);
	}
}

/* Entries [first, first + n) of functab, and the end of the last one. */
static bool functab_load(struct golang_pclntab *t, uint64_t first, size_t n, struct func *funcs)
{
	bool old = t->format == GOLANG_PCLN_116;
	size_t bytes = old ? 16 : 8, len = n * bytes + bytes / 2;
	const uint8_t *p = golang_pclntab_at(t, t->functab, first * bytes, len);

	if (!p || !golang_mem_cache_spend(t->cache, n))
		return false;
	for (size_t i = 0; i <= n; i++, p += bytes) {
		uint64_t words[2] = {0};

		memcpy(words, p, i < n ? bytes : bytes / 2);
		if (old) {
			funcs[i] = (struct func){.f.entry = words[0], .record = words[1]};
			continue;
		}
		funcs[i] = (struct func){.f.entry = t->text + (uint32_t)words[0],
					 .record = words[0] >> 32};
	}
	for (size_t i = 0; i < n; i++)
		funcs[i].f.end = funcs[i + 1].f.entry;
	return true;
}

static int unwind_all(struct go_unwind *u)
{
	struct func funcs[UNWIND_BATCH + 1];
	uint64_t last = 0;

	for (uint64_t first = 0; first < u->t->n_functions; first += UNWIND_BATCH) {
		size_t n = MIN(u->t->n_functions - first, (uint64_t)UNWIND_BATCH);

		if (!functab_load(u->t, first, n, funcs))
			return -EBADMSG;
		for (size_t i = 0; i < n; i++) {
			int r;

			if (funcs[i].f.entry < last || funcs[i].f.end < funcs[i].f.entry)
				return -EBADMSG;
			last = funcs[i].f.end;
			if (funcs[i].f.end == funcs[i].f.entry)
				continue;
			r = unwind_function(u, &funcs[i]);
			if (r < 0)
				return r;
		}
	}
	return add_whole(u, last, ELF_UNWIND_NONE);
}

int golang_program_unwind(struct golang_program *p, struct elf_unwind_table *ret_table,
			  struct err *err)
{
	struct go_unwind u = {.t = &p->module.tables};
	const char *names[ARRAY_SIZE(special)];
	int r;

	if (p->image.elf->machine != EM_X86_64)
		return err_set(err, -ENOTSUP, "Go's unwind tables are supported on x86-64 only");
	if (u.t->n_textsects > 0)
		return err_set(err, -ENOTSUP, "a Go program with several text sections");
	golang_mem_cache_refill(&p->cache);
	for (size_t i = 0; i < ARRAY_SIZE(special); i++)
		names[i] = special[i].name;
	r = golang_pclntab_find_named(u.t, names, u.special, ARRAY_SIZE(special), err);
	if (r < 0)
		return r;
	r = unwind_all(&u);
	if (golang_mem_cache_spent(&p->cache))
		r = -E2BIG;
	if (r == 0)
		elf_unwind_builder_finish(&u.b, ret_table);
	elf_unwind_builder_release(&u.b);
	if (r == -E2BIG)
		return err_set(err, r, "Go's function table exceeds sonde's memory limit");
	if (r == -ENOMEM)
		return err_oom(err);
	return r < 0 ? err_set(err, r, "Go's function table is damaged") : 0;
}
