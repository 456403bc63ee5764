/*
 * src/elf/symbols.c: finds a few symbols by name.
 *
 * Comparing names symbol by symbol means two reads each. Instead the string table is streamed once,
 * from its end: wherever a string ends, does it end in a wanted name? (Linkers let a name share the
 * tail of a longer one, so an offset may point into the middle of a string.) This gives the few
 * offsets of wanted names. Go's linker writes names in symbol order, so a binary search by offset
 * finds the symbols at once; otherwise all symbols are streamed and compared by offset alone.
 */
#include "elf/symbols.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "elf/symtab.h"

#define ELF_MAX_WANTED 1024
#define ELF_MAX_NAME_BYTES ((size_t)4096)
/* A name rarely occurs more than twice; only a forged table reaches this. */
#define ELF_MAX_HITS 16384
#define ELF_FILTER_BITS 4096
/* Strings are scanned in blocks of this many bytes, and compared by their last few first. */
#define ELF_BLOCK_BYTES 64
#define ELF_TAIL_BYTES 4

struct elf_hit {
	uint32_t offset; /* in the string table */
	uint32_t wanted;
};

struct elf_search {
	struct elf_symbol *wanted;
	size_t n;
	size_t *lengths;
	uint8_t *best; /* best rank found so far */
	uint8_t *is_hit;
	/* Wanted names chained by their last character: index + 1, 0 ends. */
	uint16_t first[256];
	uint16_t *next;
	size_t max_len;
	uint32_t tail_mask; /* the bytes of the tail that every wanted name has */
	uint64_t tails[ELF_FILTER_BITS / 64];
	struct elf_hit *hits;
	size_t n_hits;
	size_t cap_hits;
	uint64_t offsets[ELF_FILTER_BITS / 64];
	/*
	 * Zeros, then up to max_len bytes of names before the chunk, then a chunk, then a block:
	 * scanning needs no bounds checks at either end.
	 */
	uint8_t *memory;
};

static inline void filter_add(uint64_t *filter, uint32_t key)
{
	filter[key % ELF_FILTER_BITS / 64] |= 1ULL << key % 64;
}

static inline bool filter_has(const uint64_t *filter, uint32_t key)
{
	return filter[key % ELF_FILTER_BITS / 64] >> key % 64 & 1;
}

/* The key of the string that ends before end, where at least ELF_TAIL_BYTES are readable. */
static inline uint32_t elf_tail(const struct elf_search *s, const void *end)
{
	uint32_t tail;

	memcpy(&tail, (const uint8_t *)end - ELF_TAIL_BYTES, sizeof(tail));
	return ((tail & s->tail_mask) * 0x9e3779b1U) >> 20;
}

/* One bit for each NUL among 64 bytes. */
static inline uint64_t elf_nul_mask(const uint8_t *p)
{
	uint64_t mask = 0;

#ifdef __SSE2__
	for (size_t i = 0; i < 4; i++) {
		__m128i bytes = _mm_loadu_si128((const __m128i *)(p + 16 * i));
		__m128i is_nul = _mm_cmpeq_epi8(bytes, _mm_setzero_si128());

		mask |= (uint64_t)(uint16_t)_mm_movemask_epi8(is_nul) << (16 * i);
	}
#else
	const uint64_t low7 = 0x7f7f7f7f7f7f7f7fULL;

	for (unsigned int i = 0; i < 8; i++) {
		uint64_t x;

		memcpy(&x, p + 8 * i, sizeof(x));
		/* The high bit of each NUL byte, then these eight bits side by side. */
		x = ~(((x & low7) + low7) | x | low7) >> 7;
		mask |= (x * 0x0102040810204080ULL >> 56) << (8 * i);
	}
#endif
	return mask;
}

static void elf_search_release(struct elf_search *s)
{
	free(s->lengths);
	free(s->best);
	free(s->is_hit);
	free(s->next);
	free(s->hits);
	free(s->memory);
}

/* The start of the strings in memory, after the zeros. */
static uint8_t *elf_search_window(const struct elf_search *s)
{
	return s->memory + ELF_BLOCK_BYTES;
}

static int elf_search_add_wanted(struct elf_search *s, size_t i, struct err *err)
{
	const char *name = s->wanted[i].name;
	size_t len = strlen(name);
	uint8_t last;

	if (len == 0 || len > ELF_MAX_NAME_BYTES)
		return err_set(err, -EINVAL, "no symbol can have a name of %zu bytes", len);
	last = (uint8_t)name[len - 1];
	s->lengths[i] = len;
	s->next[i] = s->first[last];
	s->first[last] = (uint16_t)(i + 1);
	s->max_len = MAX(s->max_len, len);
	for (size_t k = len; k < ELF_TAIL_BYTES; k++)
		s->tail_mask &= ~(0xffU << (8 * (ELF_TAIL_BYTES - 1 - k)));
	return 0;
}

/* Call after all names are known: the shortest one determines the length of the tail. */
static void elf_search_add_tail(struct elf_search *s, size_t i)
{
	uint8_t tail[ELF_TAIL_BYTES] = {0};
	size_t n = MIN(s->lengths[i], ELF_TAIL_BYTES);

	memcpy(tail + ELF_TAIL_BYTES - n, s->wanted[i].name + s->lengths[i] - n, n);
	filter_add(s->tails, elf_tail(s, tail + ELF_TAIL_BYTES));
}

static int elf_search_init(struct elf_search *s, struct elf_symbol *wanted, size_t n,
			   struct err *err)
{
	if (n > ELF_MAX_WANTED)
		return err_set(err, -E2BIG, "looking for %zu symbols at once; the limit is %d", n,
			       ELF_MAX_WANTED);
	*s = (struct elf_search){.wanted = wanted, .n = n, .tail_mask = UINT32_MAX};
	s->lengths = calloc(n + 1, sizeof(*s->lengths));
	s->best = calloc(n + 1, sizeof(*s->best));
	s->is_hit = calloc(n + 1, sizeof(*s->is_hit));
	s->next = calloc(n + 1, sizeof(*s->next));
	if (!s->lengths || !s->best || !s->is_hit || !s->next)
		return err_oom(err);
	for (size_t i = 0; i < n; i++) {
		int r = elf_search_add_wanted(s, i, err);

		if (r < 0)
			return r;
	}
	for (size_t i = 0; i < n; i++)
		elf_search_add_tail(s, i);
	s->memory = calloc(1, s->max_len + ELF_CHUNK_BYTES + (size_t)2 * ELF_BLOCK_BYTES);
	return s->memory ? 0 : err_oom(err);
}

static int elf_search_add_hit(struct elf_search *s, uint64_t offset, size_t wanted, struct err *err)
{
	if (s->n_hits == s->cap_hits) {
		size_t cap = s->cap_hits ? s->cap_hits * 2 : 64;
		struct elf_hit *hits;

		if (cap > ELF_MAX_HITS)
			return err_set(err, -E2BIG, "damaged ELF file: %s occurs %d times",
				       s->wanted[wanted].name, ELF_MAX_HITS);
		hits = realloc(s->hits, cap * sizeof(*hits));
		if (!hits)
			return err_oom(err);
		s->hits = hits;
		s->cap_hits = cap;
	}
	s->hits[s->n_hits++] =
		(struct elf_hit){.offset = (uint32_t)offset, .wanted = (uint32_t)wanted};
	s->is_hit[wanted] = true;
	filter_add(s->offsets, (uint32_t)offset);
	return 0;
}

/* A string ends before end, at `offset` of the table; known bytes start at begin. */
static int elf_search_end(struct elf_search *s, const uint8_t *begin, const uint8_t *end,
			  uint64_t offset, struct err *err)
{
	for (uint16_t i = s->first[end[-1]]; i; i = s->next[i - 1]) {
		size_t len = s->lengths[i - 1];
		int r;

		if ((size_t)(end - begin) < len ||
		    memcmp(end - len, s->wanted[i - 1].name, len) != 0)
			continue;
		r = elf_search_add_hit(s, offset - len, i - 1, err);
		if (r < 0)
			return r;
	}
	return 0;
}

/*
 * Checks each end of a string in [from, limit); from is at `offset` of the table. Earlier bytes
 * start at the window, so a name that straddles two chunks is contiguous.
 */
static int elf_search_chunk(struct elf_search *s, const uint8_t *from, const uint8_t *limit,
			    uint64_t offset, struct err *err)
{
	const uint8_t *window = elf_search_window(s);

	for (const uint8_t *block = from; block < limit; block += ELF_BLOCK_BYTES) {
		uint64_t mask = elf_nul_mask(block);

		for (; mask; mask &= mask - 1) {
			const uint8_t *end = block + __builtin_ctzll(mask);
			int r;

			if (!filter_has(s->tails, elf_tail(s, end)))
				continue;
			if (end >= limit || end == window)
				continue;
			r = elf_search_end(s, window, end, offset + (uint64_t)(end - from), err);
			if (r < 0)
				return r;
		}
	}
	return 0;
}

static int elf_hit_compare(const void *a, const void *b)
{
	const struct elf_hit *x = a, *y = b;

	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* Not a variable or function with an address. */
static bool elf_symbol_skipped(const Elf64_Sym *sym)
{
	unsigned int type = ELF64_ST_TYPE(sym->st_info);

	return sym->st_shndx == SHN_UNDEF || sym->st_value == 0 || type == STT_FILE ||
	       type == STT_SECTION || type == STT_TLS;
}

static void elf_search_found(struct elf_search *s, uint32_t wanted, const Elf64_Sym *sym)
{
	uint8_t rank = elf_symbol_rank(sym);

	if (elf_symbol_skipped(sym) || rank <= s->best[wanted])
		return;
	s->best[wanted] = rank;
	s->wanted[wanted].value = sym->st_value;
	s->wanted[wanted].size = sym->st_size;
}

static void elf_search_symbol(struct elf_search *s, const Elf64_Sym *sym)
{
	size_t low = 0, high = s->n_hits;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (s->hits[mid].offset < sym->st_name)
			low = mid + 1;
		else
			high = mid;
	}
	for (; low < s->n_hits && s->hits[low].offset == sym->st_name; low++)
		elf_search_found(s, s->hits[low].wanted, sym);
}

/* Finds the symbol of one hit in a table whose names are in order; finds nothing otherwise. */
static int elf_search_guess(struct elf_search *s, const struct elf_image *image,
			    const struct elf_section *symbols, const struct elf_hit *hit)
{
	uint64_t low = 0, high = symbols->size / sizeof(Elf64_Sym);

	while (low < high) {
		uint64_t mid = low + (high - low) / 2;
		Elf64_Sym sym;

		if (elf_image_read(image, symbols->offset + mid * sizeof(sym), &sym, sizeof(sym)) <
		    0)
			return -EBADMSG;
		if (sym.st_name == hit->offset) {
			elf_search_found(s, hit->wanted, &sym);
			return 0;
		}
		if (sym.st_name < hit->offset)
			low = mid + 1;
		else
			high = mid;
	}
	return 0;
}

/*
 * True if nothing better can be found: a program has one global symbol per name. Names missing from
 * the string table need no search.
 */
static bool elf_search_guess_all(struct elf_search *s, const struct elf_image *image,
				 const struct elf_section *symbols)
{
	/* With more hits, reading all symbols costs no more. */
	if (s->n_hits > 64)
		return false;
	for (size_t i = 0; i < s->n_hits; i++)
		if (elf_search_guess(s, image, symbols, &s->hits[i]) < 0)
			return false;
	for (size_t i = 0; i < s->n; i++)
		if (s->is_hit[i] && s->best[i] != ELF_RANK_GLOBAL)
			return false;
	return true;
}

static bool elf_search_all_hit(const struct elf_search *s)
{
	for (size_t i = 0; i < s->n; i++)
		if (!s->is_hit[i])
			return false;
	return true;
}

/*
 * Scans from the end: linkers put variables after functions, and so their names. Returns 1 if
 * everything was found and the rest need not be read, 0 if only hits are known.
 */
static int elf_search_strings(struct elf_search *s, const struct elf_image *image,
			      const struct elf_symtab *table, struct err *err)
{
	const struct elf_section *strings = table->strings;
	uint8_t *window = elf_search_window(s);
	bool guessed = false;

	for (uint64_t end = strings->size; end > 0;) {
		size_t n = MIN(end, ELF_CHUNK_BYTES);
		uint64_t begin = end - n;
		size_t before = MIN(begin, s->max_len);
		uint8_t *from = window + before;
		int r;

		if (elf_image_read(image, strings->offset + begin - before, window, before + n) < 0)
			return err_set(err, -EBADMSG, "cannot read the names of an ELF file");
		r = elf_search_chunk(s, from, from + n, begin, err);
		if (r < 0)
			return r;
		if (!guessed && elf_search_all_hit(s)) {
			guessed = true;
			if (elf_search_guess_all(s, image, table->symbols))
				return 1;
		}
		end = begin;
	}
	return 0;
}

static int elf_search_symbols(struct elf_search *s, const struct elf_image *image,
			      const struct elf_symtab *table, struct err *err)
{
	struct elf_symtab_reader reader = elf_symtab_read(image, table, s->memory, ELF_CHUNK_BYTES);
	ssize_t n;

	qsort(s->hits, s->n_hits, sizeof(*s->hits), elf_hit_compare);
	while ((n = elf_symtab_next(&reader, err)) > 0)
		for (ssize_t i = 0; i < n; i++)
			if (filter_has(s->offsets, reader.batch[i].st_name))
				elf_search_symbol(s, &reader.batch[i]);
	return (int)n;
}

static int elf_symbols_find_in(const struct elf_image *image, uint32_t type,
			       struct elf_symbol *wanted, size_t n, struct err *err)
{
	_cleanup_(elf_search_release) struct elf_search search = {0};
	struct elf_symtab table;
	int r, found = 0;

	r = elf_symtab_locate(image, type, &table, err);
	if (r < 0)
		return r;
	r = elf_search_init(&search, wanted, n, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++)
		wanted[i].value = wanted[i].size = 0;
	r = elf_search_strings(&search, image, &table, err);
	if (r < 0 || search.n_hits == 0)
		return r;
	if (r == 0 && !elf_search_guess_all(&search, image, table.symbols)) {
		r = elf_search_symbols(&search, image, &table, err);
		if (r < 0)
			return r;
	}
	for (size_t i = 0; i < n; i++)
		found += search.best[i] > 0;
	return found;
}

int elf_symbols_find(const struct elf_image *image, struct elf_symbol *wanted, size_t n,
		     struct err *err)
{
	return elf_symbols_find_in(image, SHT_SYMTAB, wanted, n, err);
}

int elf_symbols_find_exported(const struct elf_image *image, struct elf_symbol *wanted, size_t n,
			      struct err *err)
{
	return elf_symbols_find_in(image, SHT_DYNSYM, wanted, n, err);
}
