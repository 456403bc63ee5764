/*
 * src/golang/goroutine_pcsp.c: see goroutine_pcsp.h.
 *
 * Sources: runtime/symtab.go (pcvalue), runtime/runtime2.go (_func), internal/abi/symtab.go
 * (FuncFlag) of Go 1.17 to 1.27.
 */
#include "golang/goroutine_pcsp.h"

#include <string.h>

#include "base/cleanup.h"

enum {
	FLAG_TOP_FRAME = 1,
	FLAG_SP_WRITE = 2,
};

/* Offsets in a function's record. */
static const struct {
	unsigned int functab_entry_bytes;
	unsigned int pcsp;
	unsigned int flag;
} records[] = {
	[GOLANG_PCLN_116] = {16, 20, 41},
	[GOLANG_PCLN_118] = {8, 16, 37},
	[GOLANG_PCLN_120] = {8, 16, 41},
};

static const uint8_t *span_get(struct golang_pclntab *t, struct golang_span span, uint64_t off,
			       size_t len)
{
	int code;

	if (off > span.len || len > span.len - off)
		return NULL;
	return golang_windows_get(t->windows, span.addr + off, len, &code);
}

static uint32_t u32_at(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static uint64_t text_address(const struct golang_pclntab *t, uint64_t off)
{
	for (size_t i = 0; i < t->n_textsects; i++)
		if (off >= t->textsects[i].vaddr && off < t->textsects[i].end)
			return t->textsects[i].base + off - t->textsects[i].vaddr;
	return t->text + off;
}

static bool functab_at(struct golang_pclntab *t, uint64_t i, uint64_t *ret_entry,
		       uint64_t *ret_record)
{
	unsigned int bytes = records[t->format].functab_entry_bytes;
	const uint8_t *p = span_get(t, t->functab, i * bytes, bytes);

	if (!p || !golang_windows_spend(t->windows, t->n_textsects))
		return false;
	if (t->format == GOLANG_PCLN_116) {
		memcpy(ret_entry, p, 8);
		memcpy(ret_record, p + 8, 8);
	} else {
		*ret_entry = text_address(t, u32_at(p));
		*ret_record = u32_at(p + 4);
	}
	return true;
}

/* The offset of the record of the function that begins at entry. */
static bool record_of(struct golang_pclntab *t, uint64_t entry, uint64_t *ret_record)
{
	uint64_t lo = 0, hi = t->n_functions;

	while (lo < hi) {
		uint64_t mid = lo + (hi - lo) / 2;
		uint64_t at, record;

		if (!functab_at(t, mid, &at, &record))
			return false;
		if (at == entry) {
			*ret_record = record;
			return true;
		}
		if (at < entry)
			lo = mid + 1;
		else
			hi = mid;
	}
	return false;
}

/* {zig-zag varint value delta, varint pc delta}...; the value holds below the new pc. */
static int64_t pcsp_value(struct golang_pclntab *t, uint32_t table, uint64_t entry, uint64_t target)
{
	uint64_t pc = entry, off = table, delta;
	uint32_t value = UINT32_MAX; /* -1, and wraps as the runtime's does */

	for (bool first = true; off < t->pctab.len && golang_windows_spend(t->windows, 1);
	     first = false) {
		size_t want = (size_t)MIN((uint64_t)20, t->pctab.len - off), pos = 0;
		struct view piece = view_of(span_get(t, t->pctab, off, want), want);

		if (!piece.data || !view_varint(piece, &pos, &delta) || (delta == 0 && !first))
			return -1;
		value += -(uint32_t)(delta & 1) ^ (uint32_t)(delta >> 1);
		if (!view_varint(piece, &pos, &delta))
			return -1;
		pc += (uint32_t)delta * (uint64_t)t->quantum;
		if (target < pc)
			return (int32_t)value;
		off += pos;
	}
	return -1;
}

bool golang_frame_rule_at(struct golang_pclntab *t, const struct golang_func *f, uint64_t pc,
			  struct golang_frame_rule *ret_rule)
{
	uint64_t record;
	const uint8_t *p;
	uint32_t pcsp;
	uint8_t flag;

	if (!record_of(t, f->entry, &record))
		return false;
	p = span_get(t, t->functions, record, records[t->format].flag + 1);
	if (!p)
		return false;
	pcsp = u32_at(p + records[t->format].pcsp);
	flag = p[records[t->format].flag];
	*ret_rule = (struct golang_frame_rule){
		.delta = pcsp ? pcsp_value(t, pcsp, f->entry, pc) : -1,
		.is_top = flag & FLAG_TOP_FRAME,
		.moves_sp = flag & FLAG_SP_WRITE,
	};
	return true;
}
