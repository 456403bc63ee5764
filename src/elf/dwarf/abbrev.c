/* src/elf/dwarf/abbrev.c: see abbrev.h. */
#include "elf/dwarf/abbrev.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "elf/dwarf/array.h"
#include "elf/dwarf/const.h"
#include "elf/dwarf/cursor.h"
#include "elf/dwarf/form.h"

/* A unit has hundreds of codes; one linked with LTO has tens of thousands. */
#define DWARF_MAX_ABBREVS ((size_t)1 << 16)
#define DWARF_MAX_SPECS ((size_t)1 << 19)
#define DWARF_MAX_SPECS_OF_ONE 512

struct dwarf_abbrev_builder {
	struct elf_dwarf_abbrevs *table;
	size_t cap;
	size_t cap_specs;
};

static void dwarf_abbrevs_free(struct elf_dwarf_abbrevs *table)
{
	if (!table)
		return;
	free(table->items);
	free(table->specs);
	free(table);
}

DEFINE_CLEANUP(struct elf_dwarf_abbrevs, dwarf_abbrevs_free)

static int dwarf_add_spec(struct dwarf_abbrev_builder *b, struct elf_dwarf_spec spec)
{
	int r = elf_dwarf_array_reserve(&b->table->specs, &b->cap_specs, b->table->n_specs,
					sizeof(spec), DWARF_MAX_SPECS);

	if (r < 0)
		return r;
	b->table->specs[b->table->n_specs++] = spec;
	return 0;
}

static int dwarf_add_abbrev(struct dwarf_abbrev_builder *b, struct elf_dwarf_abbrev abbrev)
{
	int r = elf_dwarf_array_reserve(&b->table->items, &b->cap, b->table->n, sizeof(abbrev),
					DWARF_MAX_ABBREVS);

	if (r < 0)
		return r;
	b->table->items[b->table->n++] = abbrev;
	return 0;
}

static int dwarf_read_specs(struct dwarf_abbrev_builder *b, struct elf_dwarf_cursor *c,
			    struct elf_dwarf_abbrev *abbrev)
{
	int total = 0;

	abbrev->first_spec = (uint32_t)b->table->n_specs;
	while (!c->error) {
		uint64_t at = elf_dwarf_uleb(c), form = elf_dwarf_uleb(c);
		int64_t constant = form == DW_FORM_implicit_const ? elf_dwarf_sleb(c) : 0;
		struct elf_dwarf_spec spec = {.at = (uint16_t)MIN(at, UINT16_MAX),
					      .form = (uint16_t)form,
					      .constant = (int32_t)constant};
		int size, r;

		if (at == 0 && form == 0)
			break;
		if (form > UINT16_MAX || abbrev->n_specs == DWARF_MAX_SPECS_OF_ONE)
			return -EBADMSG;
		r = dwarf_add_spec(b, spec);
		if (r < 0)
			return r;
		abbrev->n_specs++;
		abbrev->has_sibling |= at == DW_AT_sibling;
		size = elf_dwarf_form_size(spec.form, b->table->encoding);
		total = total < 0 || size < 0 ? -1 : total + size;
	}
	abbrev->size = (int16_t)total;
	return c->error;
}

static int dwarf_read_abbrevs(struct dwarf_abbrev_builder *b, struct elf_dwarf_cursor *c)
{
	while (!elf_dwarf_cursor_done(c)) {
		struct elf_dwarf_abbrev abbrev = {.code = elf_dwarf_uleb(c)};
		uint64_t tag;
		int r;

		if (abbrev.code == 0)
			break;
		tag = elf_dwarf_uleb(c);
		abbrev.tag = (uint16_t)MIN(tag, UINT16_MAX);
		abbrev.has_children = elf_dwarf_u8(c) != 0;
		r = dwarf_read_specs(b, c, &abbrev);
		if (r == 0)
			r = dwarf_add_abbrev(b, abbrev);
		if (r < 0)
			return r;
	}
	return c->error;
}

static int dwarf_abbrev_compare(const void *a, const void *b)
{
	const struct elf_dwarf_abbrev *x = a, *y = b;

	return x->code < y->code ? -1 : x->code > y->code;
}

static bool dwarf_abbrevs_sorted(const struct elf_dwarf_abbrevs *table)
{
	for (size_t i = 1; i < table->n; i++)
		if (table->items[i - 1].code >= table->items[i].code)
			return false;
	return true;
}

static int dwarf_abbrevs_load(struct elf_dwarf_section *section, uint64_t off,
			      struct elf_dwarf_encoding encoding, struct elf_dwarf_abbrevs **ret)
{
	_cleanup_(dwarf_abbrevs_freep) struct elf_dwarf_abbrevs *table = calloc(1, sizeof(*table));
	struct dwarf_abbrev_builder b = {.table = table};
	struct elf_dwarf_cursor c;
	int r;

	if (!table)
		return -ENOMEM;
	table->off = off;
	table->encoding = encoding;
	elf_dwarf_cursor_init(&c, section, off, UINT64_MAX);
	r = dwarf_read_abbrevs(&b, &c);
	if (r < 0)
		return r;
	if (table->items && !dwarf_abbrevs_sorted(table))
		qsort(table->items, table->n, sizeof(*table->items), dwarf_abbrev_compare);
	*ret = TAKE_PTR(table);
	return 0;
}

static bool dwarf_encoding_eq(struct elf_dwarf_encoding a, struct elf_dwarf_encoding b)
{
	return a.version == b.version && a.addr_size == b.addr_size &&
	       a.offset_size == b.offset_size;
}

int elf_dwarf_abbrevs_get(struct elf_dwarf_abbrevs **list, struct elf_dwarf_section *section,
			  uint64_t off, struct elf_dwarf_encoding encoding,
			  struct elf_dwarf_abbrevs **ret)
{
	struct elf_dwarf_abbrevs *table;
	int r;

	for (table = *list; table; table = table->next) {
		if (table->off == off && dwarf_encoding_eq(table->encoding, encoding)) {
			table->n_refs++;
			*ret = table;
			return 0;
		}
	}
	r = dwarf_abbrevs_load(section, off, encoding, &table);
	if (r < 0)
		return r;
	table->n_refs = 1;
	table->next = *list;
	*list = table;
	*ret = table;
	return 0;
}

void elf_dwarf_abbrevs_put(struct elf_dwarf_abbrevs **list, struct elf_dwarf_abbrevs *table)
{
	if (!table || --table->n_refs)
		return;
	while (*list != table)
		list = &(*list)->next;
	*list = table->next;
	dwarf_abbrevs_free(table);
}

const struct elf_dwarf_abbrev *elf_dwarf_abbrevs_find(const struct elf_dwarf_abbrevs *table,
						      uint64_t code)
{
	size_t lo = 0, hi = table->n;

	/* Compilers number them from one, without gaps. */
	if (code - 1 < table->n && table->items[code - 1].code == code)
		return &table->items[code - 1];
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (table->items[mid].code < code)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < table->n && table->items[lo].code == code ? &table->items[lo] : NULL;
}

size_t elf_dwarf_abbrevs_memory(const struct elf_dwarf_abbrevs *table)
{
	return sizeof(*table) + table->n * sizeof(*table->items) +
	       table->n_specs * sizeof(*table->specs);
}
