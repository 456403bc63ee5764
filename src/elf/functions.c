/*
 * src/elf/functions.c: all functions of an ELF file, sorted by address, for naming native frames.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "elf/symbols.h"
#include "elf/symtab.h"

#define ELF_MAX_FUNCTIONS_BYTES ((uint64_t)64 << 20)
/* How far a lookup goes back for a function that encloses the ones nearer by. */
#define ELF_MAX_NESTING 64

struct elf_function {
	uint64_t start;
	uint64_t end;
	uint64_t reach; /* the furthest end of this and all before it */
	uint32_t name;
	uint8_t rank;  /* elf_symbol_rank(): the higher is the better name */
	bool is_sized; /* false: ends where the next one starts */
};

struct elf_functions {
	struct elf_function *list;
	size_t len;
	char *names;
	uint64_t names_len;
};

void elf_functions_free(struct elf_functions *functions)
{
	if (!functions)
		return;
	free(functions->list);
	free(functions->names);
	free(functions);
}

/* Assembly without .type leaves NOTYPE labels; they count where code is. */
static bool elf_is_function(const struct elf_image *image, const Elf64_Sym *sym)
{
	if (sym->st_shndx == SHN_UNDEF || sym->st_value == 0)
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

/* For a symbol without a size: the end of its section, which the next symbol may cut short. */
static uint64_t elf_section_end(const struct elf_image *image, const Elf64_Sym *sym)
{
	const struct elf_section *s;

	if (sym->st_shndx >= image->n_sections)
		return UINT64_MAX;
	s = &image->sections[sym->st_shndx];
	if (sym->st_value < s->addr || sym->st_value - s->addr >= s->size)
		return sym->st_value;
	return s->size > UINT64_MAX - s->addr ? UINT64_MAX : s->addr + s->size;
}

static void elf_functions_add(struct elf_functions *f, const struct elf_image *image,
			      const Elf64_Sym *sym)
{
	struct elf_function *fn = &f->list[f->len];
	const char *name;

	if (sym->st_name >= f->names_len)
		return;
	name = f->names + sym->st_name;
	/* Compilers' own marks: ARM mapping symbols ($x, $d) and local labels. */
	if (name[0] == 0 || name[0] == '$' || strncmp(name, ".L", 2) == 0)
		return;
	*fn = (struct elf_function){
		.start = sym->st_value,
		.name = sym->st_name,
		.rank = elf_symbol_rank(sym),
		.is_sized = sym->st_size > 0,
	};
	if (!fn->is_sized)
		fn->end = elf_section_end(image, sym);
	else if (sym->st_size > UINT64_MAX - fn->start)
		fn->end = UINT64_MAX;
	else
		fn->end = fn->start + sym->st_size;
	f->len++;
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

/* Of several at one address the first stays, and covers what the others covered. */
static void elf_functions_sort(struct elf_functions *f)
{
	size_t n = 0;
	uint64_t reach = 0;

	if (f->len == 0)
		return;
	qsort(f->list, f->len, sizeof(*f->list), elf_function_compare);
	for (size_t i = 1; i < f->len; i++) {
		struct elf_function *kept = &f->list[n], *fn = &f->list[i];

		if (fn->start != kept->start) {
			f->list[++n] = *fn;
		} else if (fn->is_sized && (!kept->is_sized || fn->end > kept->end)) {
			kept->is_sized = true;
			kept->end = fn->end;
		}
	}
	f->len = n + 1;
	for (size_t i = 0; i < f->len; i++) {
		struct elf_function *fn = &f->list[i];

		if (!fn->is_sized && i + 1 < f->len)
			fn->end = MIN(fn->end, f->list[i + 1].start);
		reach = MAX(reach, fn->end);
		fn->reach = reach;
	}
}

static int elf_functions_load_names(struct elf_functions *f, const struct elf_image *image,
				    const struct elf_section *strings, struct err *err)
{
	f->names = malloc(strings->size + 1);
	if (!f->names)
		return err_oom(err);
	f->names[strings->size] = 0;
	f->names_len = strings->size;
	if (elf_image_read(image, strings->offset, f->names, strings->size) < 0)
		return err_set(err, -EBADMSG, "cannot read the names of an ELF file");
	return 0;
}

/* One pass to count, for the table is taken in one piece; one to fill it. */
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
	if (count * sizeof(*f->list) + table->strings->size > ELF_MAX_FUNCTIONS_BYTES)
		return err_set(err, -E2BIG, "the ELF file's functions need over %llu MB",
			       (unsigned long long)(ELF_MAX_FUNCTIONS_BYTES >> 20));
	f->list = calloc(count + 1, sizeof(*f->list));
	if (!f->list)
		return err_oom(err);
	n = elf_functions_load_names(f, image, table->strings, err);
	if (n < 0)
		return (int)n;
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
	r = elf_symtab_locate(image, SHT_SYMTAB, &table, err);
	if (r == -ENOENT)
		r = elf_symtab_locate(image, SHT_DYNSYM, &table, err);
	if (r < 0)
		return r;
	r = elf_functions_fill(f, image, &table, err);
	if (r < 0)
		return r;
	elf_functions_sort(f);
	*ret_functions = TAKE_PTR(f);
	return 0;
}

const char *elf_functions_lookup(const struct elf_functions *functions, uint64_t vaddr,
				 uint64_t *ret_start)
{
	const struct elf_function *open = NULL, *found = NULL;
	size_t low = 0, high = functions->len;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (functions->list[mid].start <= vaddr)
			low = mid + 1;
		else
			high = mid;
	}
	/* A label without a size inside a function is not where that function ends. */
	for (size_t i = low; i > 0 && low - i < ELF_MAX_NESTING && !found; i--) {
		const struct elf_function *fn = &functions->list[i - 1];

		if (fn->reach <= vaddr)
			break;
		if (vaddr < fn->end && fn->is_sized)
			found = fn;
		else if (vaddr < fn->end)
			open = fn;
	}
	if (!found)
		found = open;
	if (!found)
		return NULL;
	if (ret_start)
		*ret_start = found->start;
	return functions->names + found->name;
}
