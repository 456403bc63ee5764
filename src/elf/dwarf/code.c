/* src/elf/dwarf/code.c: see code.h. */
#include "elf/dwarf/code.h"

#include <errno.h>
#include <stdlib.h>

#include "elf/dwarf/array.h"
#include "elf/dwarf/range.h"

#define DWARF_MAX_DEPTH 256
#define DWARF_MAX_RANGES ((size_t)1 << 18)
/* How far back to look for a function that started earlier; they rarely overlap. */
#define DWARF_FUNCTION_OVERLAP 16
/* Not within a function's code. */
#define DWARF_NO_SCOPE UINT32_MAX

struct dwarf_walk {
	const struct elf_dwarf_unit *unit;
	struct elf_dwarf_code *code;
	struct elf_dwarf_cursor c;
	struct elf_dwarf_ranges ranges; /* of one entry */
	size_t max_bytes;
	size_t depth;
	uint32_t at[DWARF_MAX_DEPTH]; /* the enclosing scope, by depth */
};

void elf_dwarf_code_free(struct elf_dwarf_code *code)
{
	if (!code)
		return;
	free(code->functions);
	free(code->scopes);
	free(code->pieces);
	free(code->named);
	free(code);
}

size_t elf_dwarf_code_memory(const struct elf_dwarf_code *code)
{
	return sizeof(*code) + code->cap_functions * sizeof(*code->functions) +
	       code->cap_scopes * sizeof(*code->scopes) + code->cap_pieces * sizeof(*code->pieces) +
	       code->cap_named * sizeof(*code->named);
}

static int dwarf_add_function(struct dwarf_walk *w, struct elf_dwarf_function function)
{
	struct elf_dwarf_code *code = w->code;
	int r = elf_dwarf_array_reserve(&code->functions, &code->cap_functions, code->n_functions,
					sizeof(function), w->max_bytes / 4 / sizeof(function));

	if (r == 0)
		code->functions[code->n_functions++] = function;
	return r;
}

static int dwarf_add_scope(struct dwarf_walk *w, struct elf_dwarf_scope scope)
{
	struct elf_dwarf_code *code = w->code;
	int r = elf_dwarf_array_reserve(&code->scopes, &code->cap_scopes, code->n_scopes,
					sizeof(scope), w->max_bytes / 2 / sizeof(scope));

	if (r == 0)
		code->scopes[code->n_scopes++] = scope;
	return r;
}

/* Drops a piece too far away to be real. */
static int dwarf_add_piece(struct dwarf_walk *w, struct elf_dwarf_range range)
{
	struct elf_dwarf_code *code = w->code;
	int64_t low = (int64_t)(range.low - code->base);
	struct elf_dwarf_piece piece = {(int32_t)low, (uint32_t)(range.high - range.low)};
	int r;

	if (low != piece.low || range.high - range.low > UINT32_MAX)
		return 0;
	r = elf_dwarf_array_reserve(&code->pieces, &code->cap_pieces, code->n_pieces, sizeof(piece),
				    w->max_bytes / 4 / sizeof(piece));
	if (r == 0)
		code->pieces[code->n_pieces++] = piece;
	return r;
}

static uint64_t dwarf_entry_next(const struct elf_dwarf_unit *unit,
				 const struct elf_dwarf_entry *entry)
{
	struct elf_dwarf_file *file;
	uint64_t off;

	if (!elf_dwarf_unit_reference(unit, entry->values[ELF_DWARF_ORIGIN], &file, &off) &&
	    !elf_dwarf_unit_reference(unit, entry->values[ELF_DWARF_SPECIFICATION], &file, &off))
		return 0;
	return off >= ELF_DWARF_ALTERNATE ? 0
	       : file == unit->file	  ? off
					  : off | ELF_DWARF_ALTERNATE;
}

static int dwarf_add_named(struct dwarf_walk *w, const struct elf_dwarf_entry *entry)
{
	struct elf_dwarf_code *code = w->code;
	struct elf_dwarf_value linkage = entry->values[ELF_DWARF_LINKAGE_NAME];
	struct elf_dwarf_value name = linkage.form ? linkage : entry->values[ELF_DWARF_NAME];
	struct elf_dwarf_named named = {
		.off = (uint32_t)(entry->off - w->unit->off),
		.line = (uint32_t)entry->values[ELF_DWARF_DECL_LINE].number,
		.form = name.form,
		.is_linkage = linkage.form != 0,
		.is_external = entry->values[ELF_DWARF_EXTERNAL].number != 0,
		.number = name.number,
		.next = dwarf_entry_next(w->unit, entry),
	};
	int r;

	/* A truncated number is not an offset in any section. */
	if (named.form != name.form || named.number != name.number)
		named.form = 0;
	if ((!named.form && !named.next) || entry->off - w->unit->off > UINT32_MAX)
		return 0;
	r = elf_dwarf_array_reserve(&code->named, &code->cap_named, code->n_named, sizeof(named),
				    w->max_bytes / 2 / sizeof(named));
	if (r == 0)
		code->named[code->n_named++] = named;
	return r;
}

/* A function that has code, or that others refer to. */
static int dwarf_walk_function(struct dwarf_walk *w, const struct elf_dwarf_entry *entry,
			       uint32_t *ret_scope)
{
	struct elf_dwarf_code *code = w->code;
	uint32_t scope = (uint32_t)code->n_scopes;
	size_t before = code->n_functions;
	int r = dwarf_add_named(w, entry);

	*ret_scope = DWARF_NO_SCOPE;
	w->ranges.n = 0;
	if (r == 0)
		r = elf_dwarf_ranges_of(&w->ranges, w->unit, entry);
	for (size_t i = 0; i < w->ranges.n && r == 0; i++) {
		struct elf_dwarf_range range = w->ranges.items[i];

		if (elf_dwarf_file_has_code(w->unit->file, range.low))
			r = dwarf_add_function(
				w, (struct elf_dwarf_function){range.low, range.high, scope});
	}
	if (r < 0 || code->n_functions == before)
		return r;
	if (!code->base)
		code->base = code->functions[before].low;
	*ret_scope = scope;
	return dwarf_add_scope(w, (struct elf_dwarf_scope){.parent = scope,
							   .first_piece = (uint32_t)code->n_pieces,
							   .end = scope + 1,
							   .off = entry->off});
}

static int dwarf_walk_call(struct dwarf_walk *w, const struct elf_dwarf_entry *entry,
			   uint32_t parent, uint32_t *ret_scope)
{
	uint64_t next = dwarf_entry_next(w->unit, entry);
	struct elf_dwarf_scope scope = {
		.parent = parent,
		.first_piece = (uint32_t)w->code->n_pieces,
		.call_file = (uint32_t)entry->values[ELF_DWARF_CALL_FILE].number,
		.call_line = (uint32_t)entry->values[ELF_DWARF_CALL_LINE].number,
		.off = next ? next : entry->off,
	};
	int r;

	w->ranges.n = 0;
	r = elf_dwarf_ranges_of(&w->ranges, w->unit, entry);
	if (r == 0)
		r = dwarf_add_scope(w, scope);
	*ret_scope = (uint32_t)w->code->n_scopes - 1;
	for (size_t i = 0; i < w->ranges.n && r == 0; i++)
		r = dwarf_add_piece(w, w->ranges.items[i]);
	return r;
}

/* Nothing below these is code of the enclosing function. */
static bool dwarf_tag_is_foreign(uint16_t tag)
{
	return tag == DW_TAG_structure_type || tag == DW_TAG_class_type ||
	       tag == DW_TAG_union_type || tag == DW_TAG_interface_type || tag == DW_TAG_namespace;
}

/* Nothing below these matters, nor below a call outside any function's code. */
static bool dwarf_tag_is_leaf(uint16_t tag, uint32_t scope)
{
	return tag == DW_TAG_enumeration_type || tag == DW_TAG_array_type ||
	       tag == DW_TAG_subroutine_type || tag == DW_TAG_call_site ||
	       tag == DW_TAG_GNU_call_site ||
	       (tag == DW_TAG_inlined_subroutine && scope == DWARF_NO_SCOPE);
}

/* Skips the entry at the cursor and, if possible, everything below it. */
static bool dwarf_walk_past(struct dwarf_walk *w, const struct elf_dwarf_abbrev *abbrev)
{
	struct elf_dwarf_entry entry;
	struct elf_dwarf_file *file;
	uint64_t off;

	elf_dwarf_entry_values(&w->c, w->unit, abbrev, &entry);
	if (w->c.error ||
	    !elf_dwarf_unit_reference(w->unit, entry.values[ELF_DWARF_SIBLING], &file, &off) ||
	    file != w->unit->file || off <= elf_dwarf_cursor_off(&w->c) || off > w->unit->end)
		return false;
	elf_dwarf_cursor_seek(&w->c, off);
	return true;
}

/* The end of siblings; false if it was the last in the unit. */
static bool dwarf_walk_up(struct dwarf_walk *w)
{
	uint32_t scope = w->at[w->depth];

	if (w->depth <= 1)
		return false;
	if (scope != DWARF_NO_SCOPE && scope != w->at[w->depth - 1] &&
	    w->code->scopes[scope].parent == scope)
		w->code->scopes[scope].end = (uint32_t)w->code->n_scopes;
	w->depth--;
	return true;
}

/* One entry; sets *done after the last. */
static int dwarf_walk_entry(struct dwarf_walk *w, bool *done)
{
	uint64_t off = elf_dwarf_cursor_off(&w->c);
	const struct elf_dwarf_abbrev *abbrev = elf_dwarf_entry_abbrev(&w->c, w->unit);
	uint32_t scope = w->at[w->depth];
	struct elf_dwarf_entry entry;
	int r = 0;

	if (!abbrev) {
		*done = !dwarf_walk_up(w);
		return 0;
	}
	if (abbrev->tag == DW_TAG_subprogram ||
	    (abbrev->tag == DW_TAG_inlined_subroutine && scope != DWARF_NO_SCOPE)) {
		elf_dwarf_entry_values(&w->c, w->unit, abbrev, &entry);
		entry.off = off;
		if (w->c.error)
			return 0;
		r = abbrev->tag == DW_TAG_subprogram ? dwarf_walk_function(w, &entry, &scope)
						     : dwarf_walk_call(w, &entry, scope, &scope);
	} else if (abbrev->has_sibling && dwarf_tag_is_leaf(abbrev->tag, scope)) {
		if (dwarf_walk_past(w, abbrev))
			return 0;
	} else {
		elf_dwarf_entry_skip(&w->c, w->unit->abbrevs, abbrev);
	}
	if (r < 0 || !abbrev->has_children)
		return r;
	if (w->depth + 1 == DWARF_MAX_DEPTH)
		return -E2BIG;
	w->at[++w->depth] = dwarf_tag_is_foreign(abbrev->tag) ? DWARF_NO_SCOPE : scope;
	return 0;
}

static int dwarf_function_compare(const void *a, const void *b)
{
	const struct elf_dwarf_function *x = a, *y = b;

	if (x->low != y->low)
		return x->low < y->low ? -1 : 1;
	/* If two start together, the inner one comes last, where it is found first. */
	if (x->high != y->high)
		return x->high > y->high ? -1 : 1;
	return x->scope < y->scope ? -1 : x->scope > y->scope;
}

static void dwarf_code_finish(struct elf_dwarf_code *code)
{
	if (code->n_functions)
		qsort(code->functions, code->n_functions, sizeof(*code->functions),
		      dwarf_function_compare);
	elf_dwarf_array_shrink(&code->functions, &code->cap_functions, code->n_functions,
			       sizeof(*code->functions));
	elf_dwarf_array_shrink(&code->scopes, &code->cap_scopes, code->n_scopes,
			       sizeof(*code->scopes));
	elf_dwarf_array_shrink(&code->pieces, &code->cap_pieces, code->n_pieces,
			       sizeof(*code->pieces));
	elf_dwarf_array_shrink(&code->named, &code->cap_named, code->n_named, sizeof(*code->named));
}

int elf_dwarf_unit_load_code(struct elf_dwarf_unit *unit)
{
	struct dwarf_walk w = {
		.unit = unit, .ranges.max = DWARF_MAX_RANGES, .max_bytes = unit->file->max_bytes};
	bool done = false;
	int r;

	if (unit->code)
		return 0;
	r = elf_dwarf_unit_load_abbrevs(unit);
	if (r < 0)
		return r;
	w.code = calloc(1, sizeof(*w.code));
	if (!w.code)
		return -ENOMEM;
	w.at[0] = DWARF_NO_SCOPE;
	elf_dwarf_cursor_init(&w.c, &unit->file->sections[ELF_DWARF_INFO], unit->first, unit->end);
	while (r == 0 && !done && !elf_dwarf_cursor_done(&w.c))
		r = dwarf_walk_entry(&w, &done);
	/* Functions truncated by damage keep the calls before it. */
	while (dwarf_walk_up(&w))
		;
	elf_dwarf_ranges_release(&w.ranges);
	if (r == -ENOMEM) {
		elf_dwarf_code_free(w.code);
		return r;
	}
	dwarf_code_finish(w.code);
	unit->code = w.code;
	return 0;
}

static size_t dwarf_scope_pieces_end(const struct elf_dwarf_code *code, uint32_t scope)
{
	return scope + 1 < code->n_scopes ? code->scopes[scope + 1].first_piece : code->n_pieces;
}

static bool dwarf_scope_holds(const struct elf_dwarf_code *code, uint32_t scope, uint64_t vaddr)
{
	size_t end = dwarf_scope_pieces_end(code, scope);

	for (size_t i = code->scopes[scope].first_piece; i < end; i++)
		if (vaddr - (code->base + (uint64_t)(int64_t)code->pieces[i].low) <
		    code->pieces[i].len)
			return true;
	return false;
}

/* The inlining depth of a scope in its function, which *ret_root returns. */
static uint32_t dwarf_scope_depth(const struct elf_dwarf_code *code, uint32_t scope,
				  uint32_t *ret_root)
{
	uint32_t depth = 0;

	for (; code->scopes[scope].parent != scope; scope = code->scopes[scope].parent)
		depth++;
	*ret_root = scope;
	return depth;
}

static const struct elf_dwarf_function *dwarf_code_function(const struct elf_dwarf_code *code,
							    uint64_t vaddr)
{
	size_t lo = 0, hi = code->n_functions;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (code->functions[mid].low <= vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	for (size_t i = 0; i < DWARF_FUNCTION_OVERLAP && lo > 0; i++, lo--)
		if (vaddr < code->functions[lo - 1].high)
			return &code->functions[lo - 1];
	return NULL;
}

bool elf_dwarf_code_find(const struct elf_dwarf_code *code, uint64_t vaddr, uint32_t *ret_scope)
{
	const struct elf_dwarf_function *function = dwarf_code_function(code, vaddr);
	uint32_t found, deepest = 0;

	/* If entries are damaged, the last function may lack its scope. */
	if (!function || function->scope >= code->n_scopes)
		return false;
	found = function->scope;
	/*
	 * The deepest, even if the enclosing ones do not contain the address: DWARF 2 cannot
	 * describe code in pieces, and may list only the first piece of a call.
	 */
	for (uint32_t i = found + 1; i < code->scopes[function->scope].end; i++) {
		uint32_t depth, root;

		if (!dwarf_scope_holds(code, i, vaddr))
			continue;
		depth = dwarf_scope_depth(code, i, &root);
		if (depth > deepest && root == function->scope) {
			deepest = depth;
			found = i;
		}
	}
	*ret_scope = found;
	return true;
}

const struct elf_dwarf_named *elf_dwarf_code_named(const struct elf_dwarf_code *code, uint64_t off)
{
	size_t lo = 0, hi = code->n_named;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (code->named[mid].off < off)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < code->n_named && code->named[lo].off == off ? &code->named[lo] : NULL;
}
