/*
 * src/elf/functions.c: all functions of an ELF file, sorted by address, for naming native frames.
 *
 * A large library has a hundred thousand names, few of them ever needed: memory holds twelve bytes
 * per function, and a name is a short read from the file.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "elf/symbols.h"
#include "elf/symtab.h"

#define ELF_MAX_FUNCTIONS_BYTES ((uint64_t)16 << 20)
/* Names in memory, if the image is not a file. */
#define ELF_MAX_OWN_NAMES_BYTES ((uint64_t)16 << 20)
/* How far a lookup goes back for a function that encloses nearer ones. */
#define ELF_MAX_NESTING 64
/* Names to compare per address, and entries to check per lookup. */
#define ELF_MAX_ALIASES 16
#define ELF_MAX_STEPS 1024
/* Longer names are cut. */
#define ELF_MAX_FUNCTION_NAME ((size_t)2048)
/* Most names fit into this. */
#define ELF_NAME_GUESS ((size_t)256)

#define ELF_MAX_SIZE ((1U << 28) - 1)
/* Of a function without a size: most are short, and written by hand. */
#define ELF_MAX_UNSIZED (16U << 10)

struct elf_function {
	uint32_t start; /* from base */
	uint32_t name;
	uint32_t size : 28; /* if it has none: to the end of the section */
	uint32_t is_sized : 1;
	uint32_t is_label : 1; /* an assembly label: its name decides whether it counts */
	uint32_t rank : 2;     /* elf_symbol_rank(): higher is better */
};

_Static_assert(sizeof(struct elf_function) == 12, "twelve bytes for a function");

struct elf_functions {
	struct elf_function *list;
	size_t len;
	uint64_t base;
	/* Names: in a file, or in memory. */
	int fd;
	uint64_t names_offset;
	char *names;
	uint64_t names_len;
	char *name; /* of the last lookup */
};

void elf_functions_free(struct elf_functions *functions)
{
	if (!functions)
		return;
	closep(&functions->fd);
	free(functions->list);
	free(functions->names);
	free(functions->name);
	free(functions);
}

size_t elf_functions_memory(const struct elf_functions *functions)
{
	return sizeof(*functions) + functions->len * sizeof(*functions->list) +
	       (functions->names ? functions->names_len : 0) + ELF_MAX_FUNCTION_NAME;
}

/* Assembly without .type leaves NOTYPE labels; they count if in code. */
static bool elf_is_function(const struct elf_image *image, const Elf64_Sym *sym)
{
	if (sym->st_shndx == SHN_UNDEF || sym->st_value == 0 || sym->st_name == 0)
		return false;
	switch (ELF64_ST_TYPE(sym->st_info)) {
	case STT_FUNC:
	case STT_GNU_IFUNC:
		return true;
	case STT_NOTYPE:
		return sym->st_shndx < image->n_sections &&
		       image->sections[sym->st_shndx].flags & SHF_EXECINSTR;
	default:
		return false;
	}
}

/*
 * The size of a symbol without one: up to the end of its section, unless the next one cuts it
 * short.
 */
static uint64_t elf_section_rest(const struct elf_image *image, const Elf64_Sym *sym)
{
	const struct elf_section *s;

	if (sym->st_shndx >= image->n_sections)
		return UINT64_MAX;
	s = &image->sections[sym->st_shndx];
	if (sym->st_value < s->addr || sym->st_value - s->addr >= s->size)
		return 0;
	return s->size - (sym->st_value - s->addr);
}

static void elf_functions_add(struct elf_functions *f, const struct elf_image *image,
			      const Elf64_Sym *sym)
{
	uint64_t size =
		sym->st_size ? sym->st_size : MIN(elf_section_rest(image, sym), ELF_MAX_UNSIZED);

	if (sym->st_name >= f->names_len || sym->st_value < f->base ||
	    sym->st_value - f->base > UINT32_MAX)
		return;
	f->list[f->len++] = (struct elf_function){
		.start = (uint32_t)(sym->st_value - f->base),
		.name = sym->st_name,
		.size = (uint32_t)MIN(size, ELF_MAX_SIZE),
		.is_sized = sym->st_size > 0,
		.is_label = ELF64_ST_TYPE(sym->st_info) == STT_NOTYPE,
		.rank = elf_symbol_rank(sym),
	};
}

static int elf_function_compare(const void *a, const void *b)
{
	const struct elf_function *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank > y->rank ? -1 : 1;
	return x->name < y->name ? -1 : x->name > y->name;
}

/* The base of 32-bit addresses: the lowest code. */
static uint64_t elf_code_base(const struct elf_image *image)
{
	uint64_t base = UINT64_MAX;

	for (size_t i = 0; i < image->n_segments; i++)
		if (image->segments[i].type == PT_LOAD && image->segments[i].flags & PF_X)
			base = MIN(base, image->segments[i].vaddr);
	return base == UINT64_MAX ? 0 : base;
}

static int elf_functions_take_names(struct elf_functions *f, const struct elf_image *image,
				    const struct elf_section *strings, struct err *err)
{
	f->name = malloc(ELF_MAX_FUNCTION_NAME);
	if (!f->name)
		return err_oom(err);
	f->names_offset = strings->offset;
	f->names_len = strings->size;
	if (elf_image_fd(image) >= 0) {
		f->fd = fcntl(elf_image_fd(image), F_DUPFD_CLOEXEC, 0);
		if (f->fd < 0)
			return err_set(err, -errno, "cannot keep an ELF file open: %s",
				       strerror(errno));
		return 0;
	}
	if (strings->size > ELF_MAX_OWN_NAMES_BYTES)
		return err_set(err, -E2BIG, "the ELF file's names exceed %llu MB",
			       (unsigned long long)(ELF_MAX_OWN_NAMES_BYTES >> 20));
	f->names = malloc(strings->size + 1);
	if (!f->names)
		return err_oom(err);
	if (elf_image_read(image, strings->offset, f->names, strings->size) < 0)
		return err_set(err, -EBADMSG, "cannot read the names of an ELF file");
	return 0;
}

/* One pass to count, so that the table is allocated once; one to fill it. */
static int elf_functions_fill(struct elf_functions *f, const struct elf_image *image,
			      const struct elf_symtab *table, struct err *err)
{
	_cleanup_free_ void *memory = malloc(ELF_CHUNK_BYTES);
	struct elf_symtab_reader reader;
	uint64_t count = 0;
	ssize_t n;

	if (!memory)
		return err_oom(err);
	reader = elf_symtab_read(image, table, memory, ELF_CHUNK_BYTES);
	while ((n = elf_symtab_next(&reader, err)) > 0)
		for (ssize_t i = 0; i < n; i++)
			count += elf_is_function(image, &reader.batch[i]);
	if (n < 0)
		return (int)n;
	if (count * sizeof(*f->list) > ELF_MAX_FUNCTIONS_BYTES)
		return err_set(err, -E2BIG, "the ELF file's functions exceed %llu MB",
			       (unsigned long long)(ELF_MAX_FUNCTIONS_BYTES >> 20));
	f->list = calloc(count + 1, sizeof(*f->list));
	if (!f->list)
		return err_oom(err);
	reader = elf_symtab_read(image, table, memory, ELF_CHUNK_BYTES);
	while ((n = elf_symtab_next(&reader, err)) > 0)
		for (ssize_t i = 0; i < n; i++)
			/* The file may have changed between the passes. */
			if (f->len < count && elf_is_function(image, &reader.batch[i]))
				elf_functions_add(f, image, &reader.batch[i]);
	return (int)n;
}

int elf_functions_load(const struct elf_image *image, struct elf_functions **ret_functions,
		       struct err *err)
{
	_cleanup_(elf_functions_freep) struct elf_functions *f = calloc(1, sizeof(*f));
	struct elf_symtab table;
	int r;

	if (!f)
		return err_oom(err);
	f->fd = -1;
	f->base = elf_code_base(image);
	r = elf_symtab_locate(image, SHT_SYMTAB, &table, err);
	if (r == -ENOENT)
		r = elf_symtab_locate(image, SHT_DYNSYM, &table, err);
	if (r < 0)
		return r;
	r = elf_functions_take_names(f, image, table.strings, err);
	if (r < 0)
		return r;
	r = elf_functions_fill(f, image, &table, err);
	if (r < 0)
		return r;
	qsort(f->list, f->len, sizeof(*f->list), elf_function_compare);
	*ret_functions = TAKE_PTR(f);
	return 0;
}

/* At most cap - 1 bytes of the name, and a NUL; false if unreadable. */
static bool elf_functions_read_name(const struct elf_functions *f, uint32_t offset, char *dst,
				    size_t cap)
{
	size_t len = MIN(f->names_len - offset, cap - 1);
	ssize_t n;

	if (f->names) {
		memcpy(dst, f->names + offset, len);
		dst[len] = 0;
		return true;
	}
	n = io_pread_full(f->fd, dst, MIN(len, ELF_NAME_GUESS), f->names_offset + offset);
	if (n > 0 && len > (size_t)n && !memchr(dst, 0, (size_t)n))
		n = io_pread_full(f->fd, dst, len, f->names_offset + offset);
	if (n < 0)
		return false;
	dst[n] = 0;
	return true;
}

/* Compilers' own marks do not count: ARM's mapping symbols ($x, $d) and local labels. */
static bool elf_function_counts(const struct elf_functions *f, const struct elf_function *fn)
{
	char name[4];

	if (!fn->is_label)
		return true;
	return elf_functions_read_name(f, fn->name, name, sizeof(name)) && name[0] &&
	       name[0] != '$' && strncmp(name, ".L", 2) != 0;
}

/* All entries of one address. */
struct elf_group {
	size_t first, end;
	const struct elf_function *best; /* the first of the best rank; NULL if none counts */
	uint32_t reach;			 /* the largest size */
	bool is_sized;
};

static struct elf_group elf_group_before(const struct elf_functions *f, size_t end)
{
	struct elf_group g = {.first = end - 1, .end = end};
	uint32_t start = f->list[end - 1].start;

	while (g.first > 0 && end - g.first < ELF_MAX_STEPS && f->list[g.first - 1].start == start)
		g.first--;
	for (size_t i = g.first; i < end; i++) {
		const struct elf_function *fn = &f->list[i];

		/* An alias that does not count still tells how far the function extends. */
		if (!g.best && i - g.first < ELF_MAX_ALIASES && elf_function_counts(f, fn))
			g.best = fn;
		if (!fn->is_sized && g.is_sized)
			continue;
		g.reach = fn->is_sized && !g.is_sized ? fn->size : MAX(g.reach, fn->size);
		g.is_sized = g.is_sized || fn->is_sized;
	}
	return g;
}

/* Of equals, prefers fewer leading underscores: "malloc" over "__libc_malloc". */
static const struct elf_function *elf_group_pick(const struct elf_functions *f,
						 const struct elf_group *g)
{
	const struct elf_function *picked = g->best;
	size_t fewest = SIZE_MAX;
	char name[8];

	for (size_t i = 0; i < ELF_MAX_ALIASES && g->best + i < f->list + g->end; i++) {
		const struct elf_function *fn = g->best + i;
		size_t n;

		if (fn->rank != g->best->rank)
			break;
		if (i == 0 && (g->best + 1 == f->list + g->end || fn[1].rank != fn->rank))
			break; /* nothing to compare with */
		if (!elf_function_counts(f, fn) ||
		    !elf_functions_read_name(f, fn->name, name, sizeof(name)) || !name[0])
			continue;
		n = strspn(name, "_");
		if (n < fewest) {
			fewest = n;
			picked = fn;
		}
	}
	return picked;
}

const char *elf_functions_lookup(const struct elf_functions *functions, uint64_t vaddr,
				 uint64_t entry, uint64_t *ret_start)
{
	const struct elf_functions *f = functions;
	struct elf_group found = {0};
	size_t low = 0, high = f->len;
	uint32_t at = (uint32_t)(vaddr - f->base);
	bool is_nearest = true;

	if (vaddr < f->base || vaddr - f->base > UINT32_MAX)
		return NULL;
	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (f->list[mid].start <= at)
			low = mid + 1;
		else
			high = mid;
	}
	for (size_t i = low, groups = 0; i > 0 && low - i < ELF_MAX_STEPS; groups++) {
		struct elf_group g = elf_group_before(f, i);
		bool covers = g.best && at - f->list[g.first].start < g.reach &&
			      (g.is_sized || f->base + f->list[g.first].start >= entry);

		/* A label without a size inside a function does not end that function. */
		if (covers && (g.is_sized || is_nearest))
			found = g;
		if ((covers && g.is_sized) || groups == ELF_MAX_NESTING)
			break;
		is_nearest = is_nearest && !g.best;
		i = g.first;
	}
	if (!found.best)
		return NULL;
	if (!elf_functions_read_name(f, elf_group_pick(f, &found)->name, f->name,
				     ELF_MAX_FUNCTION_NAME) ||
	    !f->name[0])
		return NULL;
	if (ret_start)
		*ret_start = f->base + f->list[found.first].start;
	return f->name;
}
