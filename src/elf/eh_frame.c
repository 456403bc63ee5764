/* src/elf/eh_frame.c: reads the entries; their programs are eh_frame_program.c's job. */
#include "elf/eh_frame.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define EH_MAX_FDES ((size_t)1 << 20)
#define EH_MAX_CIES ((size_t)1 << 16)
/* Real ones take less than a hundred bytes; forged ones could all be the whole section. */
#define EH_MAX_CIE_BYTES 4096

/* DW_EH_PE_*: how an address is written (low bits), and what it is relative to. */
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

uint64_t eh_uint(struct eh_cursor *c, unsigned int n)
{
	uint64_t v = 0;

	if (!view_copy(c->bytes, c->pos, &v, n)) {
		c->bad = true;
		return 0;
	}
	c->pos += n;
	return v;
}

uint64_t eh_uleb(struct eh_cursor *c)
{
	uint64_t v = 0;

	if (!view_varint(c->bytes, &c->pos, &v))
		c->bad = true;
	return v;
}

int64_t eh_sleb(struct eh_cursor *c)
{
	uint64_t v = 0;

	for (unsigned int shift = 0; shift < 64; shift += 7) {
		uint8_t byte = eh_u8(c);

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

struct view eh_bytes(struct eh_cursor *c, uint64_t n)
{
	struct view v = {0};

	if (view_sub(c->bytes, c->pos, n, &v))
		c->pos += n;
	else
		c->bad = true;
	return v;
}

/* The number itself, whatever it is relative to. */
static uint64_t encoded(struct eh_cursor *c, uint8_t encoding)
{
	switch (encoding & PE_FORM) {
	case PE_ABSOLUTE:
	case PE_U64:
	case PE_S64:
		return eh_uint(c, 8);
	case PE_ULEB:
		return eh_uleb(c);
	case PE_U16:
		return eh_uint(c, 2);
	case PE_U32:
		return eh_uint(c, 4);
	case PE_SLEB:
		return (uint64_t)eh_sleb(c);
	case PE_S16:
		return (uint64_t)(int16_t)eh_uint(c, 2);
	case PE_S32:
		return (uint64_t)(int32_t)eh_uint(c, 4);
	default:
		c->bad = true;
		return 0;
	}
}

uint64_t eh_address(struct eh_cursor *c, const struct eh_section *s, uint8_t encoding)
{
	uint64_t self = s->vaddr + (uint64_t)(c->bytes.data - s->bytes.data) + c->pos;
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

/* The header that all entries share. */
struct eh_entry {
	struct view body; /* after the id */
	uint64_t id;
	uint64_t id_off;
	uint64_t next;
	bool is_end; /* a length of 0 */
};

static bool entry_at(const struct eh_section *s, uint64_t off, struct eh_entry *ret)
{
	struct eh_cursor c = {.bytes = s->bytes, .pos = off};
	uint64_t len = eh_uint(&c, 4);
	unsigned int id_bytes = 4;

	if (!c.bad && len == UINT32_MAX) {
		len = eh_uint(&c, 8);
		id_bytes = s->is_debug ? 8 : 4;
	}
	*ret = (struct eh_entry){.is_end = len == 0, .id_off = c.pos};
	if (c.bad || !view_has(s->bytes, c.pos, len))
		return false;
	ret->next = c.pos + len;
	if (len == 0)
		return true;
	c.bytes.len = ret->next;
	ret->id = eh_uint(&c, id_bytes);
	if (s->is_debug && id_bytes == 4 && ret->id == UINT32_MAX)
		ret->id = UINT64_MAX;
	return !c.bad && view_sub(s->bytes, c.pos, ret->next - c.pos, &ret->body);
}

static bool is_cie(const struct eh_section *s, const struct eh_entry *e)
{
	return e->id == (s->is_debug ? UINT64_MAX : 0);
}

/* What the letters of the augmentation stand for. Unknown ones end it: its length is known. */
static void cie_augmentation(struct eh_cursor *c, struct view letters, struct eh_cie *cie)
{
	struct eh_cursor data = {.bytes = eh_bytes(c, eh_uleb(c))};

	cie->is_augmented = true;
	for (size_t i = 1; i < letters.len; i++) {
		switch (letters.data[i]) {
		case 'R':
			cie->encoding = eh_u8(&data);
			break;
		case 'P':
			(void)encoded(&data, eh_u8(&data));
			break;
		case 'L':
			(void)eh_u8(&data);
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

static bool cie_parse(const struct eh_section *s, struct view body, struct eh_cie *cie)
{
	struct eh_cursor c = {.bytes = body};
	uint8_t version = eh_u8(&c);
	struct view letters = {0};

	if (body.len > EH_MAX_CIE_BYTES || (version != 1 && version != 3 && version != 4) ||
	    !view_cstr(body, c.pos, &letters))
		return false;
	c.pos += letters.len + 1;
	/* Addresses of eight bytes, and no segments. */
	if (version == 4 && (eh_u8(&c) != 8 || eh_u8(&c) != 0))
		return false;
	cie->code_align = eh_uleb(&c);
	cie->data_align = eh_sleb(&c);
	cie->ra_column = version == 1 ? eh_u8(&c) : eh_uleb(&c);
	if (letters.len && letters.data[0] != 'z')
		return false;
	if (letters.len)
		cie_augmentation(&c, letters, cie);
	if (c.bad)
		return false;
	return eh_program_initial(s, cie, eh_bytes(&c, body.len - c.pos));
}

/* The CIE at off. Each is read once, whatever the order in which functions refer to them. */
static int cie_for(struct eh_frame *f, uint64_t off, uint32_t *ret_index)
{
	struct eh_cie cie = {0};
	struct eh_entry e;
	uint64_t index;
	int r;

	if (map_get(&f->cie_at, off, &index)) {
		*ret_index = (uint32_t)index;
		return 0;
	}
	if (f->n_cies == f->cies_cap) {
		r = unwind_grow(&f->cies, &f->cies_cap, EH_MAX_CIES, sizeof(*f->cies));
		if (r < 0)
			return r;
	}
	cie.is_usable = entry_at(&f->section, off, &e) && !e.is_end && is_cie(&f->section, &e) &&
			cie_parse(&f->section, e.body, &cie);
	r = map_put(&f->cie_at, off, f->n_cies);
	if (r < 0)
		return r;
	*ret_index = (uint32_t)f->n_cies;
	f->cies[f->n_cies++] = cie;
	return 0;
}

/* Fills in all but the CIE. 1 when it is a function, 0 for an empty one, -EBADMSG. */
static int fde_parse(const struct eh_section *s, const struct eh_cie *cie, struct view body,
		     struct eh_fde *fde)
{
	struct eh_cursor c = {.bytes = body};
	uint64_t size;

	if (!cie->is_usable)
		return -EBADMSG;
	fde->start = eh_address(&c, s, cie->encoding);
	size = encoded(&c, cie->encoding);
	if (cie->is_augmented)
		(void)eh_bytes(&c, eh_uleb(&c));
	if (c.bad)
		return -EBADMSG;
	if (size == 0)
		return 0;
	/* Linkers leave functions that they dropped at address 0. */
	if (fde->start < s->lo || fde->start >= s->hi || size > UINT32_MAX ||
	    size > s->hi - fde->start)
		return -EBADMSG;
	fde->size = (uint32_t)size;
	fde->program = (uint32_t)(body.data - s->bytes.data + c.pos);
	fde->program_len = (uint32_t)(body.len - c.pos);
	return 1;
}

static int fde_add(struct eh_frame *f, const struct eh_entry *e)
{
	uint64_t cie_off = f->section.is_debug ? e->id : e->id_off - e->id;
	struct eh_fde fde;
	int r = cie_for(f, cie_off, &fde.cie);

	if (r < 0)
		return r;
	r = fde_parse(&f->section, &f->cies[fde.cie], e->body, &fde);
	if (r <= 0) {
		f->n_damaged += r < 0;
		return 0;
	}
	if (f->n_fdes == f->fdes_cap) {
		r = unwind_grow(&f->fdes, &f->fdes_cap, EH_MAX_FDES, sizeof(*f->fdes));
		if (r < 0)
			return r;
	}
	f->fdes[f->n_fdes++] = fde;
	return 0;
}

static int by_start(const void *a, const void *b)
{
	const struct eh_fde *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

static void fdes_sort(struct eh_frame *f)
{
	/* Most files have them in order already. */
	for (size_t i = 1; i < f->n_fdes; i++) {
		if (f->fdes[i].start >= f->fdes[i - 1].start)
			continue;
		qsort(f->fdes, f->n_fdes, sizeof(*f->fdes), by_start);
		return;
	}
}

int eh_frame_load(struct eh_frame *f)
{
	struct eh_entry e;

	for (uint64_t off = 0; off < f->section.bytes.len; off = e.next) {
		int r;

		/* Without a length that fits there is no way on. */
		if (!entry_at(&f->section, off, &e)) {
			f->n_damaged++;
			break;
		}
		if (e.is_end && f->section.ends_at_0)
			break;
		if (e.is_end || is_cie(&f->section, &e))
			continue;
		r = fde_add(f, &e);
		if (r < 0)
			return r;
	}
	fdes_sort(f);
	return 0;
}

void eh_frame_release(struct eh_frame *f)
{
	free(f->cies);
	free(f->fdes);
	map_release(&f->cie_at);
	*f = (struct eh_frame){0};
}
