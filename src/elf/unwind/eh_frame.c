/* src/elf/unwind/eh_frame.c: reads the entries; eh_frame_program.c runs their programs. */
#include "elf/unwind/eh_frame.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define EH_MAX_CIES ((size_t)1 << 16)
/* Real ones take less than a hundred bytes; a forged one could span the whole section. */
#define EH_MAX_CIE_BYTES 4096
/* The largest functions have some ten thousand bytes. */
#define EH_MAX_ENTRY_BYTES ((uint64_t)1 << 20)
/* Of all entries together: those of a forged search table may overlap. */
#define EH_MAX_READ_BYTES ((uint64_t)64 << 20)
/*
 * Functions are compiled in address order, so if the linker sorted them, their entries are
 * scattered over the section: the read-ahead grows from the first number to the second while it is
 * useful.
 */
#define EH_AHEAD_MIN ((size_t)2 << 10)
#define EH_AHEAD_MAX ((size_t)64 << 10)
/* Entries between two calls of the sink. */
#define EH_BATCH 4096

/* DW_EH_PE_*: how an address is encoded (low bits), and what it is relative to. */
enum {
	PE_ABSOLUTE = 0x00,
	PE_ULEB = 0x01,
	PE_U16 = 0x02,
	PE_U32 = 0x03,
	PE_U64 = 0x04,
	PE_SLEB = 0x09,
	PE_S16 = 0x0a,
	PE_S32 = 0x0b,
	PE_S64 = 0x0c,
	PE_FORM = 0x0f,
	PE_RELATIVE_TO = 0xf0,
	PE_TO_SELF = 0x10,
};

static void eh_section_release(struct elf_eh_section *s)
{
	free(s->window);
	s->window = NULL;
	s->window_cap = s->window_len = 0;
}

static int section_fill(struct elf_eh_section *s, uint64_t at, size_t n)
{
	bool goes_on = at - s->window_at <= s->window_len;
	size_t len;

	s->ahead = goes_on ? MIN(MAX(s->ahead * 2, EH_AHEAD_MIN), EH_AHEAD_MAX) : EH_AHEAD_MIN;
	len = (size_t)MIN(n + s->ahead, s->size - at);
	s->window_len = 0;
	if (len > s->window_cap) {
		uint8_t *grown = realloc(s->window, n + EH_AHEAD_MAX);

		if (!grown)
			return -ENOMEM;
		s->window = grown;
		s->window_cap = n + EH_AHEAD_MAX;
	}
	if (elf_image_read(s->image, s->off + at, s->window, len) < 0)
		return -EBADMSG;
	s->window_at = at;
	s->window_len = len;
	return 0;
}

/*
 * n bytes of the section, valid until the next call. -EBADMSG past its end, or above the limit of
 * an entry; -ENOMEM.
 */
static int eh_section_at(struct elf_eh_section *s, uint64_t at, uint64_t n,
			 struct elf_eh_cursor *ret)
{
	if (at > s->size || n > s->size - at || n > EH_MAX_ENTRY_BYTES)
		return -EBADMSG;
	if (at < s->window_at || at - s->window_at > s->window_len ||
	    n > s->window_len - (at - s->window_at)) {
		int r = section_fill(s, at, (size_t)n);

		if (r < 0)
			return r;
	}
	*ret = (struct elf_eh_cursor){.bytes = view_of(s->window + (at - s->window_at), (size_t)n),
				      .vaddr = s->vaddr + at};
	return 0;
}

uint64_t elf_eh_uint(struct elf_eh_cursor *c, unsigned int n)
{
	uint64_t v = 0;

	if (!view_copy(c->bytes, c->pos, &v, n)) {
		c->bad = true;
		return 0;
	}
	c->pos += n;
	return v;
}

uint64_t elf_eh_uleb(struct elf_eh_cursor *c)
{
	uint64_t v = 0;

	if (!view_varint(c->bytes, &c->pos, &v))
		c->bad = true;
	return v;
}

int64_t elf_eh_sleb(struct elf_eh_cursor *c)
{
	uint64_t v = 0;

	for (unsigned int shift = 0; shift < 64; shift += 7) {
		uint8_t byte = elf_eh_u8(c);

		v |= (uint64_t)(byte & 0x7f) << shift;
		if (byte & 0x80)
			continue;
		if (shift < 57 && (byte & 0x40))
			v |= UINT64_MAX << (shift + 7);
		return (int64_t)v;
	}
	c->bad = true;
	return 0;
}

struct view elf_eh_bytes(struct elf_eh_cursor *c, uint64_t n)
{
	struct view v = {0};

	if (view_sub(c->bytes, c->pos, n, &v))
		c->pos += n;
	else
		c->bad = true;
	return v;
}

/* The number itself, whatever it is relative to. */
static uint64_t encoded(struct elf_eh_cursor *c, uint8_t encoding)
{
	switch (encoding & PE_FORM) {
	case PE_ABSOLUTE:
	case PE_U64:
	case PE_S64:
		return elf_eh_uint(c, 8);
	case PE_ULEB:
		return elf_eh_uleb(c);
	case PE_U16:
		return elf_eh_uint(c, 2);
	case PE_U32:
		return elf_eh_uint(c, 4);
	case PE_SLEB:
		return (uint64_t)elf_eh_sleb(c);
	case PE_S16:
		return (uint64_t)(int16_t)elf_eh_uint(c, 2);
	case PE_S32:
		return (uint64_t)(int32_t)elf_eh_uint(c, 4);
	default:
		c->bad = true;
		return 0;
	}
}

uint64_t elf_eh_address(struct elf_eh_cursor *c, uint8_t encoding)
{
	uint64_t self = c->vaddr + c->pos;
	uint64_t v = encoded(c, encoding);

	switch (encoding & PE_RELATIVE_TO) {
	case PE_ABSOLUTE:
		return v;
	case PE_TO_SELF:
		return self + v;
	default:
		c->bad = true;
		return 0;
	}
}

/* The header common to all entries. */
struct eh_entry {
	uint64_t body; /* after the id, from the start of the section */
	uint64_t len;  /* of the body */
	uint64_t id;
	uint64_t id_off;
	uint64_t next;
	bool is_end; /* a length of 0 */
};

#define EH_HEADER_BYTES 20

static int entry_at(struct elf_eh_section *s, uint64_t off, struct eh_entry *ret)
{
	unsigned int id_bytes = 4;
	struct elf_eh_cursor c;
	uint64_t len;
	int r;

	r = eh_section_at(s, off, MIN((uint64_t)EH_HEADER_BYTES, s->size - off), &c);
	if (r < 0)
		return r;
	len = elf_eh_uint(&c, 4);
	if (!c.bad && len == UINT32_MAX) {
		len = elf_eh_uint(&c, 8);
		id_bytes = s->is_debug ? 8 : 4;
	}
	*ret = (struct eh_entry){.is_end = len == 0, .id_off = off + c.pos};
	if (c.bad || len > s->size - ret->id_off)
		return -EBADMSG;
	ret->next = ret->id_off + len;
	if (len == 0)
		return 0;
	if (len < id_bytes)
		return -EBADMSG;
	ret->id = elf_eh_uint(&c, id_bytes);
	if (s->is_debug && id_bytes == 4 && ret->id == UINT32_MAX)
		ret->id = UINT64_MAX;
	ret->body = ret->id_off + id_bytes;
	ret->len = len - id_bytes;
	return c.bad ? -EBADMSG : 0;
}

static bool is_cie(const struct elf_eh_section *s, const struct eh_entry *e)
{
	return e->id == (s->is_debug ? UINT64_MAX : 0);
}

/* Interprets the letters of the augmentation. An unknown one ends it: its length is known. */
static void cie_augmentation(struct elf_eh_cursor *c, struct view letters, struct elf_eh_cie *cie)
{
	struct elf_eh_cursor data = {.bytes = elf_eh_bytes(c, elf_eh_uleb(c))};

	cie->is_augmented = true;
	if (!data.bytes.data)
		return; /* truncated, and c says so */
	for (size_t i = 1; i < letters.len; i++) {
		switch (letters.data[i]) {
		case 'R':
			cie->encoding = elf_eh_u8(&data);
			break;
		case 'P':
			(void)encoded(&data, elf_eh_u8(&data));
			break;
		case 'L':
			(void)elf_eh_u8(&data);
			break;
		case 'S':
			cie->is_signal = true;
			break;
		default:
			return;
		}
	}
	c->bad |= data.bad;
}

static bool cie_parse(struct elf_eh_cursor *c, struct elf_eh_cie *cie)
{
	uint8_t version = elf_eh_u8(c);
	struct elf_eh_cursor program;
	struct view letters = {0};

	if ((version != 1 && version != 3 && version != 4) ||
	    !view_cstr(c->bytes, c->pos, &letters))
		return false;
	c->pos += letters.len + 1;
	/* Eight-byte addresses, no segments. */
	if (version == 4 && (elf_eh_u8(c) != 8 || elf_eh_u8(c) != 0))
		return false;
	cie->code_align = elf_eh_uleb(c);
	cie->data_align = elf_eh_sleb(c);
	cie->ra_column = version == 1 ? elf_eh_u8(c) : elf_eh_uleb(c);
	if (letters.len && letters.data[0] != 'z')
		return false;
	if (letters.len)
		cie_augmentation(c, letters, cie);
	if (c->bad)
		return false;
	program = *c;
	return elf_eh_program_initial(cie, &program);
}

static int cie_read(struct elf_eh_section *s, uint64_t off, struct elf_eh_cie *cie)
{
	struct elf_eh_cursor c;
	struct eh_entry e;
	int r;

	if (off > s->size)
		return 0;
	r = entry_at(s, off, &e);
	if (r == 0 && !e.is_end && is_cie(s, &e) && e.len <= EH_MAX_CIE_BYTES)
		r = eh_section_at(s, e.body, e.len, &c);
	else if (r == 0)
		r = -EBADMSG;
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	cie->is_usable = cie_parse(&c, cie);
	return 0;
}

/* The CIE at off. Each is read once, in whatever order functions refer to them. */
static int cie_for(struct elf_eh_frame *f, uint64_t off, const struct elf_eh_cie **ret_cie)
{
	struct elf_eh_cie cie = {0};
	uint64_t index;
	int r;

	if (map_get(&f->cie_at, off, &index)) {
		*ret_cie = &f->cies[index];
		return 0;
	}
	if (f->n_cies == f->cies_cap) {
		r = elf_unwind_grow(&f->cies, &f->cies_cap, EH_MAX_CIES, sizeof(*f->cies));
		if (r < 0)
			return r;
	}
	r = cie_read(&f->section, off, &cie);
	if (r == 0)
		r = map_put(&f->cie_at, off, f->n_cies);
	if (r < 0)
		return r;
	*ret_cie = &f->cies[f->n_cies];
	f->cies[f->n_cies++] = cie;
	return 0;
}

/* Fills in everything but the CIE. 1 if it is a function, 0 if empty, -EBADMSG. */
static int fde_parse(const struct elf_eh_section *s, struct elf_eh_cursor *c,
		     struct elf_eh_fde *fde)
{
	if (!fde->cie->is_usable)
		return -EBADMSG;
	fde->start = elf_eh_address(c, fde->cie->encoding);
	fde->size = encoded(c, fde->cie->encoding);
	if (fde->cie->is_augmented)
		(void)elf_eh_bytes(c, elf_eh_uleb(c));
	if (c->bad)
		return -EBADMSG;
	if (fde->size == 0)
		return 0;
	/* Linkers set functions they dropped to address 0. */
	if (fde->start < s->lo || fde->start >= s->hi || fde->size > UINT32_MAX ||
	    fde->size > s->hi - fde->start || fde->start - s->lo > UINT32_MAX)
		return -EBADMSG;
	fde->program = *c;
	return 1;
}

/* Like fde_parse(); also -ENOMEM, -E2BIG. */
static int fde_read(struct elf_eh_frame *f, const struct eh_entry *e, struct elf_eh_fde *fde)
{
	struct elf_eh_cursor c;
	int r;

	/* Before anything else: it may move the window. */
	r = cie_for(f, f->section.is_debug ? e->id : e->id_off - e->id, &fde->cie);
	if (r == 0)
		r = eh_section_at(&f->section, e->body, e->len, &c);
	return r < 0 ? r : fde_parse(&f->section, &c, fde);
}

int elf_eh_frame_fde(struct elf_eh_frame *f, const struct elf_eh_place *place,
		     struct elf_eh_fde *ret_fde)
{
	struct elf_eh_fde fde = {0};
	struct eh_entry e;
	int r;

	r = entry_at(&f->section, place->entry, &e);
	if (r < 0)
		return r;
	f->read_bytes += e.len;
	if (f->read_bytes > EH_MAX_READ_BYTES)
		return -E2BIG;
	r = fde_read(f, &e, &fde);
	if (r < 0)
		return r;
	if (r == 0 || fde.start != f->section.lo + place->start)
		return -EBADMSG;
	*ret_fde = fde;
	return 0;
}

static int place_add(struct elf_eh_frame *f, uint64_t start, uint64_t off)
{
	if (f->n_fdes == f->fdes_cap) {
		int r = elf_unwind_grow(&f->fdes, &f->fdes_cap, ELF_EH_MAX_FDES, sizeof(*f->fdes));

		if (r < 0)
			return r;
	}
	f->fdes[f->n_fdes++] = (struct elf_eh_place){.start = (uint32_t)(start - f->section.lo),
						     .entry = (uint32_t)off};
	return 0;
}

static int fde_add(struct elf_eh_frame *f, uint64_t off, const struct eh_entry *e)
{
	struct elf_eh_fde fde;
	int r = fde_read(f, e, &fde);

	if (r == -ENOMEM || r == -E2BIG)
		return r;
	if (r <= 0) {
		f->n_damaged += r < 0;
		return 0;
	}
	if (fde.start >= f->section.to || fde.start + fde.size <= f->section.from)
		return 0;
	return place_add(f, fde.start, off);
}

static int by_start(const void *a, const void *b)
{
	const struct elf_eh_place *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->entry < y->entry ? -1 : x->entry > y->entry;
}

static void fdes_sort(struct elf_eh_frame *f)
{
	/* In most files they are already in order. */
	for (size_t i = 1; i < f->n_fdes; i++) {
		if (f->fdes[i].start >= f->fdes[i - 1].start)
			continue;
		qsort(f->fdes, f->n_fdes, sizeof(*f->fdes), by_start);
		return;
	}
}

int elf_eh_frame_load(struct elf_eh_frame *f, const struct elf_unwind_sink *sink)
{
	struct eh_entry e;
	int r = 0;

	for (uint64_t off = 0, n = 1; off < f->section.size; off = e.next, n++) {
		r = entry_at(&f->section, off, &e);
		if (r == -ENOMEM)
			return r;
		/* Without a valid length, the next entry cannot be found. */
		if (r < 0) {
			f->n_damaged++;
			break;
		}
		if (e.is_end && f->section.ends_at_0)
			break;
		if (!e.is_end && !is_cie(&f->section, &e))
			r = fde_add(f, off, &e);
		if (r == 0 && sink && n % EH_BATCH == 0)
			r = sink->rows(sink->context, NULL, 0);
		if (r < 0)
			return r;
	}
	fdes_sort(f);
	return 0;
}

/* Anything may be in the table: what does not fit the entry is found out when that is read. */
static int take_entry(void *context, uint64_t start, uint64_t entry)
{
	struct elf_eh_frame *f = context;
	const struct elf_eh_section *s = &f->section;

	if (start < s->lo || start >= s->hi || start - s->lo > UINT32_MAX || entry < s->vaddr ||
	    entry - s->vaddr >= s->size || entry - s->vaddr > UINT32_MAX)
		return 0;
	return place_add(f, start, entry - s->vaddr);
}

int elf_eh_frame_load_indexed(struct elf_eh_frame *f)
{
	int r = elf_eh_entries(f->section.image, f->section.from, f->section.to, take_entry, f);

	if (r == 0)
		fdes_sort(f);
	return r;
}

void elf_eh_frame_release(struct elf_eh_frame *f)
{
	free(f->cies);
	free(f->fdes);
	map_release(&f->cie_at);
	eh_section_release(&f->section);
	*f = (struct elf_eh_frame){0};
}
