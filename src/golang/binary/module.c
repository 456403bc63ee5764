/* src/golang/binary/module.c: see module.h. */
#include "golang/binary/module.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"

/* Offsets in moduledata that have not changed since 1.17; runtime/symtab.go. */
enum {
	MD_NAMES = 8, /* slices: {address, length, capacity} */
	MD_UNITS = 32,
	MD_FILES = 56,
	MD_PCTAB = 80,
	MD_FUNCTIONS = 104,
	MD_FUNCTAB = 128,
	MD_MINPC = 160,
	MD_MAXPC = 168,
	MD_TEXT = 176,
	MD_NOPTRDATA = 192,
	MD_DATA = 208,
	MD_EBSS = 232,
	MD_ENOPTRBSS = 248,
	MD_BYTES = 512, /* everything above, and what layouts refer to, except `next` */
};

/* Only some linkers split the text, into sections of about 100 MB. */
#define MODULE_MAX_TEXTSECTS 64

struct module_search {
	uint64_t words[2];
	uint64_t addr;
};

static int module_in_piece(uint64_t addr, struct view bytes, void *arg)
{
	struct module_search *search = arg;

	for (size_t off = (8 - addr % 8) % 8; off + sizeof(search->words) <= bytes.len; off += 8) {
		if (memcmp(bytes.data + off, search->words, sizeof(search->words)) == 0) {
			search->addr = addr + off;
			return 1;
		}
	}
	return 0;
}

int golang_module_find(const struct golang_image *image, struct proc_mem *mem, uint64_t pclntab,
		       uint64_t *ret_addr, struct err *err)
{
	struct golang_pclntab t;
	struct golang_scan scan = golang_scan_of(mem);
	struct module_search search;
	const struct elf_section *s = elf_image_section(image->elf, ".go.module");
	uint64_t names;
	int r = golang_pclntab_header(&t, mem, pclntab, &names, err);

	if (r < 0)
		return r;
	search = (struct module_search){.words = {pclntab, pclntab + names}};
	if (s)
		r = golang_scan(&scan, s->addr + image->bias, s->size, sizeof(search.words),
				module_in_piece, &search);
	for (size_t i = 0; r == 0 && i < image->elf->n_segments; i++) {
		const struct elf_segment *seg = &image->elf->segments[i];

		if (seg->type == PT_LOAD && (seg->flags & PF_W))
			r = golang_scan(&scan, seg->vaddr + image->bias, seg->filesz,
					sizeof(search.words), module_in_piece, &search);
	}
	if (r < 0)
		return err_set(err, r, "cannot read the program's data: %s", strerror(-r));
	if (r == 0)
		return err_lack(err, -ENOTSUP, ERR_CAUSE_ALTERED, "",
				"Go's module data was not found: the program has a Go function "
				"table, but its runtime has not started or was altered");
	*ret_addr = search.addr;
	return 0;
}

static struct golang_span span_at(const uint8_t *md, size_t off, size_t unit)
{
	uint64_t words[2];

	memcpy(words, md + off, sizeof(words));
	/* A forged length must not overflow; no table has 2^40 entries. */
	return (struct golang_span){.addr = words[0],
				    .len = words[1] < (1ULL << 40) ? words[1] * unit : 0};
}

static uint64_t word_at(const uint8_t *md, size_t off)
{
	uint64_t word;

	memcpy(&word, md + off, sizeof(word));
	return word;
}

static int textsects_load(struct golang_pclntab *t, struct proc_mem *mem, struct golang_span table,
			  struct err *err)
{
	size_t n = table.len / sizeof(*t->textsects);
	int r;

	/* Normally there is one section, and offsets are plain. */
	if (n <= 1)
		return 0;
	if (n > MODULE_MAX_TEXTSECTS)
		return err_set(err, -EBADMSG, "Go's module data names %zu text sections", n);
	t->textsects = calloc(n, sizeof(*t->textsects));
	if (!t->textsects)
		return err_oom(err);
	r = proc_mem_read(mem, table.addr, t->textsects, n * sizeof(*t->textsects), err);
	if (r < 0)
		return r;
	t->n_textsects = n;
	return 0;
}

int golang_module_load(struct golang_module *m, struct golang_mem_cache *cache, uint64_t addr,
		       const struct golang_layout *layout, struct err *err)
{
	struct proc_mem *mem = cache->mem;
	struct golang_module module = {.addr = addr};
	struct golang_pclntab *t = &module.tables;
	uint8_t md[MD_BYTES];
	uint64_t names;
	int r;

	r = proc_mem_read(mem, addr, md, sizeof(md), err);
	if (r < 0)
		return err_prefix(err, r, "Go's module data");
	r = golang_pclntab_header(t, mem, word_at(md, 0), &names, err);
	if (r < 0)
		return r;
	t->cache = cache;
	t->names = span_at(md, MD_NAMES, 1);
	t->units = span_at(md, MD_UNITS, sizeof(uint32_t));
	t->files = span_at(md, MD_FILES, 1);
	t->pctab = span_at(md, MD_PCTAB, 1);
	t->functions = span_at(md, MD_FUNCTIONS, 1);
	t->functab = span_at(md, MD_FUNCTAB, t->format == GOLANG_PCLN_116 ? 16 : 8);
	t->min_pc = word_at(md, MD_MINPC);
	t->max_pc = word_at(md, MD_MAXPC);
	t->text = word_at(md, MD_TEXT);
	module.noptrdata = word_at(md, MD_NOPTRDATA);
	module.enoptrbss = word_at(md, MD_ENOPTRBSS);
	module.data = word_at(md, MD_DATA);
	module.ebss = word_at(md, MD_EBSS);
	if (t->min_pc >= t->max_pc || module.noptrdata >= module.enoptrbss ||
	    t->functab.len < t->n_functions)
		return err_set(err, -EBADMSG, "Go's module data at 0x%lx is invalid", addr);
	if (layout) {
		if (layout->md_gofunc)
			t->gofunc = word_at(md, layout->md_gofunc);
		r = textsects_load(t, mem,
				   span_at(md, layout->md_textsectmap, sizeof(*t->textsects)), err);
		if (r < 0) {
			golang_module_release(&module);
			return r;
		}
	}
	*m = module;
	return 0;
}

void golang_module_release(struct golang_module *m)
{
	free(m->tables.textsects);
	*m = (struct golang_module){0};
}

int golang_module_next(const struct golang_module *m, struct proc_mem *mem,
		       const struct golang_layout *layout, uint64_t *ret_addr)
{
	return proc_mem_read(mem, m->addr + layout->md_next, ret_addr, sizeof(*ret_addr), NULL);
}
