/* src/golang/binary/pclntab.c: reads the tables; see pclntab.h. pclntab_find.c finds them. */
#include "golang/binary/pclntab.h"

#include <errno.h>

#include "base/cleanup.h"

#define PCLN_MAX_NAME ((size_t)4096)
/* For all functions; ten times what the largest programs have. */
#define PCLN_MAX_NAMES_BYTES ((uint64_t)256 << 20)
#define PCLN_MAX_PCDATA 64
/* Functab entries read together. */
#define PCLN_BATCH 512
#define PCDATA_INLINE_INDEX 2
#define FUNCDATA_INLINE_TREE 3

/* Field offsets in a function's record; runtime/runtime2.go, type _func. */
struct func_layout {
	unsigned int functab_entry_bytes;
	unsigned int name;
	unsigned int pcsp;
	unsigned int pcfile;
	unsigned int pcln;
	unsigned int npcdata;
	unsigned int unit;
	unsigned int start_line; /* 0 if there is none */
	unsigned int func_id;	 /* the flags follow */
	unsigned int nfuncdata;
	unsigned int pcdata;
	unsigned int inlined_bytes;
	unsigned int inlined_func_id;
	unsigned int inlined_name;
	unsigned int inlined_parent_pc;
	unsigned int inlined_start_line;
};

static const struct func_layout func_layouts[] = {
	[GOLANG_PCLN_116] = {16, 8, 20, 24, 28, 32, 36, 0, 40, 43, 44, 20, 2, 12, 16, 0},
	[GOLANG_PCLN_118] = {8, 4, 16, 20, 24, 28, 32, 0, 36, 39, 40, 20, 2, 12, 16, 0},
	[GOLANG_PCLN_120] = {8, 4, 16, 20, 24, 28, 32, 36, 40, 43, 44, 16, 0, 4, 8, 12},
};

static const struct func_layout *layout_of(const struct golang_pclntab *t)
{
	return &func_layouts[t->format];
}

const uint8_t *golang_pclntab_at(struct golang_pclntab *t, struct golang_span span, uint64_t off,
				 size_t len)
{
	int code;

	if (off > span.len || len > span.len - off)
		return NULL;
	return golang_mem_cache_get(t->cache, span.addr + off, len, &code);
}

static uint32_t u32_at(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static uint64_t u64_at(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static uint64_t text_address(const struct golang_pclntab *t, uint64_t off)
{
	for (size_t i = 0; i < t->n_textsects; i++) {
		const struct golang_textsect *s = &t->textsects[i];

		/* The last section ends where the last function does. */
		if (off >= s->vaddr && (off < s->end || (i == t->n_textsects - 1 && off == s->end)))
			return s->base + off - s->vaddr;
	}
	return t->text + off;
}

/* Entry i of functab; i == n_functions gives the end of the last function. */
static bool functab_at(struct golang_pclntab *t, uint64_t i, uint64_t *ret_entry,
		       uint64_t *ret_record)
{
	bool last = i == t->n_functions;
	unsigned int bytes = layout_of(t)->functab_entry_bytes;
	const uint8_t *p = golang_pclntab_at(t, t->functab, i * bytes, last ? bytes / 2 : bytes);

	if (!p || !golang_mem_cache_spend(t->cache, t->n_textsects))
		return false;
	if (t->format == GOLANG_PCLN_116) {
		*ret_entry = u64_at(p);
		*ret_record = last ? 0 : u64_at(p + 8);
	} else {
		*ret_entry = text_address(t, u32_at(p));
		*ret_record = last ? 0 : u32_at(p + 4);
	}
	return true;
}

/* The address of the inline tree: funcdata[3], which follows the pcdata offsets. */
static uint64_t inline_tree_of(struct golang_pclntab *t, uint64_t record, uint32_t npcdata)
{
	uint64_t off = record + layout_of(t)->pcdata + 4ULL * npcdata;
	const uint8_t *p;
	uint32_t rel;

	if (t->format == GOLANG_PCLN_116) {
		/* Pointers are aligned to memory, not to the table. */
		off = ((t->functions.addr + off + 7) & ~7ULL) - t->functions.addr;
		p = golang_pclntab_at(t, t->functions, off + 8ULL * FUNCDATA_INLINE_TREE, 8);
		return p ? u64_at(p) : 0;
	}
	p = golang_pclntab_at(t, t->functions, off + 4ULL * FUNCDATA_INLINE_TREE, 4);
	rel = p ? u32_at(p) : UINT32_MAX;
	return rel == UINT32_MAX || t->gofunc == 0 ? 0 : t->gofunc + rel;
}

bool golang_pclntab_record(struct golang_pclntab *t, uint64_t record, struct golang_func *f)
{
	const struct func_layout *l = layout_of(t);
	const uint8_t *p = golang_pclntab_at(t, t->functions, record, l->pcdata);

	if (!p)
		return false;
	f->name = u32_at(p + l->name);
	f->pcsp = u32_at(p + l->pcsp);
	f->pcfile = u32_at(p + l->pcfile);
	f->pcln = u32_at(p + l->pcln);
	f->unit = u32_at(p + l->unit);
	f->start_line = l->start_line ? (int32_t)u32_at(p + l->start_line) : 0;
	f->func_id = p[l->func_id];
	f->flags = p[l->func_id + 1];
	return true;
}

static bool func_read(struct golang_pclntab *t, uint64_t i, struct golang_func *ret_func)
{
	const struct func_layout *l = layout_of(t);
	struct golang_func f = {0};
	uint64_t record, unused;
	uint32_t npcdata;
	uint8_t nfuncdata;
	const uint8_t *p;

	if (!functab_at(t, i, &f.entry, &record) || !functab_at(t, i + 1, &f.end, &unused) ||
	    !golang_pclntab_record(t, record, &f))
		return false;
	p = golang_pclntab_at(t, t->functions, record, l->pcdata);
	if (!p)
		return false;
	npcdata = u32_at(p + l->npcdata);
	nfuncdata = p[l->nfuncdata];
	if (f.end < f.entry || npcdata > PCLN_MAX_PCDATA)
		return false;
	if (npcdata > PCDATA_INLINE_INDEX && nfuncdata > FUNCDATA_INLINE_TREE) {
		p = golang_pclntab_at(t, t->functions,
				      record + l->pcdata + 4ULL * PCDATA_INLINE_INDEX, 4);
		f.inline_index = p ? u32_at(p) : 0;
		f.inline_tree = inline_tree_of(t, record, npcdata);
	}
	*ret_func = f;
	return true;
}

bool golang_pclntab_func_at(struct golang_pclntab *t, uint64_t pc, struct golang_func *ret_func)
{
	uint64_t lo = 0, hi = t->n_functions;
	uint64_t entry, record;

	if (pc < t->min_pc || pc >= t->max_pc)
		return false;
	/* Find the last entry not above pc. */
	while (hi - lo > 1) {
		uint64_t mid = lo + (hi - lo) / 2;

		if (!functab_at(t, mid, &entry, &record))
			return false;
		if (entry <= pc)
			lo = mid;
		else
			hi = mid;
	}
	return func_read(t, lo, ret_func) && pc >= ret_func->entry && pc < ret_func->end;
}

struct golang_pcvalue golang_pcvalue_begin(uint32_t table, uint64_t entry)
{
	/* The value starts at -1, and wraps as in the runtime. */
	return (struct golang_pcvalue){.off = table, .value = UINT32_MAX, .pc = entry};
}

int golang_pcvalue_next(struct golang_pclntab *t, struct golang_pcvalue *v)
{
	uint64_t delta;

	if (!golang_mem_cache_spend(t->cache, 1))
		return -E2BIG;
	/* Two varints, value and pc, fit into 20 bytes. */
	if (v->piece.len - v->pos < 20) {
		size_t want;

		v->off += v->pos;
		if (v->off >= t->pctab.len)
			return -EBADMSG;
		want = MIN((uint64_t)256, t->pctab.len - v->off);
		v->piece = view_of(golang_pclntab_at(t, t->pctab, v->off, want), want);
		v->pos = 0;
		if (!v->piece.data)
			return -EBADMSG;
	}
	if (!view_varint(v->piece, &v->pos, &delta))
		return -EBADMSG;
	if (delta == 0 && v->begun)
		return 0;
	v->begun = true;
	v->value += -(uint32_t)(delta & 1) ^ (uint32_t)(delta >> 1);
	if (!view_varint(v->piece, &v->pos, &delta))
		return -EBADMSG;
	v->pc += (uint32_t)delta * (uint64_t)t->quantum;
	return 1;
}

static int64_t pc_value(struct golang_pclntab *t, uint32_t table, uint64_t entry, uint64_t target)
{
	struct golang_pcvalue v = golang_pcvalue_begin(table, entry);

	while (table && golang_pcvalue_next(t, &v) > 0)
		if (target < v.pc)
			return (int32_t)v.value;
	return -1;
}

int64_t golang_pclntab_sp_at(struct golang_pclntab *t, const struct golang_func *f, uint64_t pc)
{
	return pc_value(t, f->pcsp, f->entry, pc);
}

int64_t golang_pclntab_inline_at(struct golang_pclntab *t, const struct golang_func *f, uint64_t pc)
{
	return f->inline_tree ? pc_value(t, f->inline_index, f->entry, pc) : -1;
}

bool golang_pclntab_inlined(struct golang_pclntab *t, const struct golang_func *f, int64_t index,
			    struct golang_inlined *ret_inlined)
{
	const struct func_layout *l = layout_of(t);
	const uint8_t *p;
	int code;

	if (index < 0 || index > INT16_MAX)
		return false;
	p = golang_mem_cache_get(t->cache, f->inline_tree + (uint64_t)index * l->inlined_bytes,
				 l->inlined_bytes, &code);
	if (!p)
		return false;
	*ret_inlined = (struct golang_inlined){
		.name = u32_at(p + l->inlined_name),
		.parent_pc = (int32_t)u32_at(p + l->inlined_parent_pc),
		.start_line =
			l->inlined_start_line ? (int32_t)u32_at(p + l->inlined_start_line) : 0,
		.func_id = p[l->inlined_func_id],
	};
	return true;
}

/* A NUL-terminated string of a table, even if it spans windows. */
static struct view string_at(struct golang_pclntab *t, struct golang_span span, uint64_t off)
{
	size_t want = 128;

	while (off < span.len) {
		size_t len = MIN(want, span.len - off);
		const uint8_t *p = golang_pclntab_at(t, span, off, len);
		struct view s;

		if (!p)
			break;
		if (view_cstr(view_of(p, len), 0, &s))
			return s;
		if (len < want || want >= PCLN_MAX_NAME)
			break;
		want = PCLN_MAX_NAME;
	}
	return view_of("", 0);
}

struct view golang_pclntab_name(struct golang_pclntab *t, uint32_t name)
{
	return string_at(t, t->names, name);
}

struct view golang_pclntab_file_line(struct golang_pclntab *t, const struct golang_func *f,
				     uint64_t pc, int64_t *ret_line)
{
	int64_t file = pc_value(t, f->pcfile, f->entry, pc);
	int64_t line = pc_value(t, f->pcln, f->entry, pc);
	const uint8_t *p = NULL;
	uint32_t off;

	*ret_line = 0;
	if (file >= 0 && line >= 0)
		p = golang_pclntab_at(t, t->units, 4 * ((uint64_t)f->unit + (uint64_t)file), 4);
	if (!p)
		return view_str("?");
	off = u32_at(p);
	if (off == UINT32_MAX)
		return view_str("?");
	*ret_line = line;
	return string_at(t, t->files, off);
}

/* Offsets in the name table of the names searched for. */
struct name_search {
	const char *const *names;
	size_t n;
	uint64_t start; /* address of the name table */
	size_t lens[GOLANG_FIND_MAX];
	uint64_t lens_mask; /* bit k: one of them has length k */
	uint32_t offsets[GOLANG_FIND_MAX];
	bool found[GOLANG_FIND_MAX];
	size_t n_found;
};

static void name_search_try(struct name_search *s, const uint8_t *name, size_t len, uint64_t off)
{
	/* The length rules out most names. */
	if (len > 63 || !(s->lens_mask >> len & 1))
		return;
	for (size_t i = 0; i < s->n; i++) {
		if (len != s->lens[i] || s->found[i] || memcmp(name, s->names[i], len) != 0)
			continue;
		s->offsets[i] = (uint32_t)off;
		s->found[i] = true;
		s->n_found++;
	}
}

static int name_search_piece(uint64_t addr, struct view bytes, void *arg)
{
	struct name_search *s = arg;
	const uint8_t *p = bytes.data;
	const uint8_t *end = bytes.data + bytes.len;

	/* A piece may start within a name; the previous piece had it whole. */
	if (addr != s->start) {
		p = memchr(p, 0, bytes.len);
		p = p ? p + 1 : end;
	}
	while (p < end && s->n_found < s->n) {
		const uint8_t *nul = memchr(p, 0, (size_t)(end - p));

		if (!nul)
			break;
		name_search_try(s, p, (size_t)(nul - p),
				addr - s->start + (uint64_t)(p - bytes.data));
		p = nul + 1;
	}
	return s->n_found == s->n;
}

/* The location of the records of n functions, starting at first, in the table of functions. */
static bool functab_records(struct golang_pclntab *t, uint64_t first, size_t n, uint64_t *records)
{
	size_t bytes = layout_of(t)->functab_entry_bytes;
	const uint8_t *p = golang_pclntab_at(t, t->functab, first * bytes, n * bytes);

	if (!p || !golang_mem_cache_spend(t->cache, n))
		return false;
	for (size_t i = 0; i < n; i++, p += bytes)
		records[i] = t->format == GOLANG_PCLN_116 ? u64_at(p + 8) : u32_at(p + 4);
	return true;
}

/* The current piece of the table of functions; any other access to the cache invalidates it. */
struct functions_piece {
	struct view bytes;
	uint64_t off;
};

/* The name of the function with that record. Records are in order, so most are in the piece. */
static uint32_t record_name(struct golang_pclntab *t, uint64_t record,
			    struct functions_piece *piece)
{
	uint64_t off = record + layout_of(t)->name;
	const uint8_t *p;
	uint32_t name;
	size_t have;
	int code;

	if (off >= piece->off && view_u32(piece->bytes, off - piece->off, &name))
		return name;
	piece->bytes = view_of(NULL, 0);
	if (off > t->functions.len || sizeof(name) > t->functions.len - off)
		return UINT32_MAX;
	p = golang_mem_cache_span(t->cache, t->functions.addr + off, &have, &code);
	if (p && have >= sizeof(name)) {
		piece->bytes = view_of(p, MIN(have, t->functions.len - off));
		piece->off = off;
		return u32_at(p);
	}
	p = golang_pclntab_at(t, t->functions, off, sizeof(name));
	return p ? u32_at(p) : UINT32_MAX;
}

/* Stores function f if its name is wanted. */
static bool name_search_take(const struct name_search *s, struct golang_pclntab *t, uint64_t f,
			     uint32_t name, struct golang_func *ret_funcs)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->found[i] && s->offsets[i] == name && !ret_funcs[i].entry)
			return func_read(t, f, &ret_funcs[i]);
	return false;
}

/*
 * Finds the functions with the names found. A name may occur only as an inlined call: then all
 * functions are searched, so this must be fast.
 */
static void name_search_functions(const struct name_search *s, struct golang_pclntab *t,
				  struct golang_func *ret_funcs)
{
	uint64_t records[PCLN_BATCH];
	struct functions_piece piece = {0};
	uint64_t wanted = 0; /* bit k: an offset ending in k */
	size_t left = s->n_found;

	for (size_t i = 0; i < s->n; i++)
		if (s->found[i])
			wanted |= 1ULL << (s->offsets[i] & 63);
	for (uint64_t first = 0; first < t->n_functions && left > 0; first += PCLN_BATCH) {
		size_t n = MIN((uint64_t)PCLN_BATCH, t->n_functions - first);

		if (!functab_records(t, first, n, records))
			break;
		piece.bytes = view_of(NULL, 0);
		for (size_t i = 0; i < n && left > 0; i++) {
			uint32_t name = record_name(t, records[i], &piece);

			if (!(wanted >> (name & 63) & 1))
				continue;
			left -= name_search_take(s, t, first + i, name, ret_funcs);
			piece.bytes = view_of(NULL, 0);
		}
	}
}

int golang_pclntab_find_named(struct golang_pclntab *t, const char *const *names,
			      struct golang_func *ret_funcs, size_t n, struct err *err)
{
	struct name_search search = {.names = names, .n = n, .start = t->names.addr};
	struct golang_scan scan = {.mem = t->cache->mem, .left = PCLN_MAX_NAMES_BYTES};
	int r;

	memset(ret_funcs, 0, n * sizeof(*ret_funcs));
	for (size_t i = 0; i < n; i++) {
		search.lens[i] = strlen(names[i]);
		search.lens_mask |= 1ULL << (search.lens[i] & 63);
	}
	r = golang_scan(&scan, t->names.addr, t->names.len, PCLN_MAX_NAME, name_search_piece,
			&search);
	if (r < 0)
		return err_set(err, r, "cannot read Go's function names: %s",
			       r == -E2BIG ? "there are too many" : strerror(-r));
	name_search_functions(&search, t, ret_funcs);
	if (golang_mem_cache_spent(t->cache))
		return err_set(err, -E2BIG,
			       "Go's function table is too large or too scattered to search");
	return 0;
}
