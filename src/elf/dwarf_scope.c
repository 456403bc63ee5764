/* src/elf/dwarf_scope.c: see dwarf_scope.h. */
#include "elf/dwarf_scope.h"

#include <errno.h>
#include <stdlib.h>

#define DWARF_MAX_NESTING 256
#define DWARF_MAX_SCOPES ((size_t)1 << 16)
#define DWARF_MAX_SCOPE_RANGES ((size_t)1 << 18)
/* What lies below is not code of this function. */
#define DWARF_FOREIGN UINT32_MAX

void dwarf_scopes_free(struct dwarf_scopes *scopes)
{
	if (!scopes)
		return;
	dwarf_ranges_release(&scopes->ranges);
	free(scopes->items);
	free(scopes);
}

DEFINE_CLEANUP(struct dwarf_scopes, dwarf_scopes_free)

size_t dwarf_scopes_memory(const struct dwarf_scopes *scopes)
{
	return sizeof(*scopes) + scopes->cap * sizeof(*scopes->items) +
	       scopes->ranges.cap * sizeof(*scopes->ranges.items);
}

static int dwarf_scopes_add(struct dwarf_scopes *scopes, struct dwarf_scope scope)
{
	if (scopes->n == scopes->cap) {
		size_t cap = MAX(scopes->cap * 2, 4);
		struct dwarf_scope *items;

		if (scopes->n >= DWARF_MAX_SCOPES)
			return -E2BIG;
		items = reallocarray(scopes->items, cap, sizeof(*items));
		if (!items)
			return -ENOMEM;
		scopes->items = items;
		scopes->cap = cap;
	}
	scopes->items[scopes->n++] = scope;
	return 0;
}

/* *ret_scope becomes the new one, or stays the parent when the call has no code left. */
static int dwarf_scopes_add_call(struct dwarf_scopes *scopes, const struct dwarf_unit *unit,
				 const struct dwarf_entry *entry, uint32_t parent,
				 uint32_t *ret_scope)
{
	struct dwarf_scope scope = {
		.parent = parent,
		.first_range = (uint32_t)scopes->ranges.n,
		.call_file = (uint32_t)entry->values[DWARF_CALL_FILE].number,
		.call_line = (uint32_t)entry->values[DWARF_CALL_LINE].number,
		.off = entry->off,
	};
	struct dwarf_file *file;
	uint64_t off;
	int r = dwarf_ranges_of(&scopes->ranges, unit, entry);

	if (r < 0)
		return r;
	scope.n_ranges = (uint32_t)scopes->ranges.n - scope.first_range;
	if (scope.n_ranges == 0)
		return 0;
	if (dwarf_unit_reference(unit, entry->values[DWARF_ORIGIN], &file, &off)) {
		scope.is_alternate = file != unit->file;
		scope.off = off;
	}
	r = dwarf_scopes_add(scopes, scope);
	if (r < 0)
		return r;
	*ret_scope = (uint32_t)scopes->n - 1;
	return 0;
}

/* Where no code of the function is: types, and functions within the function. */
static bool dwarf_tag_is_foreign(uint16_t tag)
{
	return tag == DW_TAG_subprogram || tag == DW_TAG_structure_type ||
	       tag == DW_TAG_class_type || tag == DW_TAG_union_type ||
	       tag == DW_TAG_enumeration_type || tag == DW_TAG_array_type ||
	       tag == DW_TAG_subroutine_type;
}

static int dwarf_scopes_walk(struct dwarf_scopes *scopes, const struct dwarf_unit *unit,
			     struct dwarf_cursor *c)
{
	uint32_t at[DWARF_MAX_NESTING] = {0}; /* the scope that entries at a depth are in */
	size_t depth = 0;
	int r = 0;

	while (r == 0 && !dwarf_cursor_done(c)) {
		uint64_t off = dwarf_cursor_off(c);
		const struct dwarf_abbrev *abbrev = dwarf_entry_abbrev(c, unit);
		uint32_t scope = at[depth];
		struct dwarf_entry entry;

		if (!abbrev) {
			if (depth == 0)
				break;
			depth--;
			continue;
		}
		if (abbrev->tag == DW_TAG_inlined_subroutine && scope != DWARF_FOREIGN) {
			dwarf_entry_values(c, unit, abbrev, &entry);
			entry.off = off;
			if (!c->error)
				r = dwarf_scopes_add_call(scopes, unit, &entry, scope, &scope);
		} else {
			dwarf_entry_skip(c, unit->abbrevs, abbrev);
		}
		if (dwarf_tag_is_foreign(abbrev->tag))
			scope = DWARF_FOREIGN;
		if (!abbrev->has_children)
			continue;
		if (++depth == DWARF_MAX_NESTING)
			return -E2BIG;
		at[depth] = scope;
	}
	return r;
}

int dwarf_scopes_load(const struct dwarf_unit *unit, uint64_t off, struct dwarf_scopes **ret)
{
	_cleanup_(dwarf_scopes_freep) struct dwarf_scopes *scopes = calloc(1, sizeof(*scopes));
	struct dwarf_entry entry;
	struct dwarf_cursor c;
	int r;

	if (!scopes)
		return -ENOMEM;
	scopes->ranges.max = DWARF_MAX_SCOPE_RANGES;
	dwarf_cursor_init(&c, &unit->file->sections[DWARF_INFO], off, unit->end);
	dwarf_entry_read(&c, unit, &entry);
	r = dwarf_scopes_add(scopes, (struct dwarf_scope){.off = off});
	if (r == 0 && entry.abbrev && entry.abbrev->has_children)
		r = dwarf_scopes_walk(scopes, unit, &c);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(scopes);
	return 0;
}

static bool dwarf_scope_holds(const struct dwarf_scopes *scopes, const struct dwarf_scope *scope,
			      uint64_t vaddr)
{
	for (size_t i = 0; i < scope->n_ranges; i++) {
		const struct dwarf_range *range = &scopes->ranges.items[scope->first_range + i];

		if (vaddr >= range->low && vaddr < range->high)
			return true;
	}
	return false;
}

size_t dwarf_scopes_find(const struct dwarf_scopes *scopes, uint64_t vaddr)
{
	size_t found = 0;

	for (size_t i = 1; i < scopes->n; i++)
		if (scopes->items[i].parent == found &&
		    dwarf_scope_holds(scopes, &scopes->items[i], vaddr))
			found = i;
	return found;
}
