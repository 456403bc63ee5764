/* src/cpu/symbols/sources.c: see sources.h. */
#include "cpu/symbols/sources.h"

#include <elf.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "elf/debugfile.h"
#include "elf/minidebug.h"

/* Approximate size of a Go program's tables and a file's headers. */
#define NAMES_PROGRAM_BYTES ((size_t)256 << 10)
#define NAMES_IMAGE_BYTES ((size_t)8 << 10)

/*
 * Files that alternate within one drain would be loaded again for each address: for this long, they
 * may exceed the limit by this factor.
 */
#define NAMES_BUSY_NS (1ULL * 1000000000)
#define NAMES_BUSY_TIMES 2

static void names_source_free(struct cpu_symbols_source *s)
{
	golang_program_close(s->program);
	elf_dwarf_close(s->dwarf);
	for (size_t i = 0; i < s->n_tables; i++)
		elf_functions_free(s->tables[i]);
	elf_image_close(s->alternate);
	elf_image_close(s->debug);
	elf_image_close(s->image);
	free(s);
}

void cpu_symbols_sources_release(struct cpu_symbols_sources *sources)
{
	while (sources->len > 0)
		names_source_free(sources->list[--sources->len]);
}

static size_t names_source_memory(const struct cpu_symbols_source *s)
{
	size_t bytes = sizeof(*s) + NAMES_IMAGE_BYTES;

	for (size_t i = 0; i < s->n_tables; i++)
		bytes += elf_functions_memory(s->tables[i]);
	if (s->dwarf)
		bytes += elf_dwarf_memory(s->dwarf);
	return bytes + (s->program ? NAMES_PROGRAM_BYTES : 0);
}

static size_t names_sources_memory(const struct cpu_symbols_sources *sources)
{
	size_t bytes = 0;

	for (size_t i = 0; i < sources->len; i++)
		bytes += names_source_memory(sources->list[i]);
	return bytes;
}

/* The kernel maps the same vdso into every process, so ours has the names. */
static int names_open_vdso(struct elf_image **ret_image)
{
	const uint8_t *start = (const uint8_t *)getauxval(AT_SYSINFO_EHDR);
	Elf64_Ehdr h;

	if (!start)
		return -ENOENT;
	memcpy(&h, start, sizeof(h));
	/* The section headers come last. */
	return elf_image_open_bytes(view_of(start, h.e_shoff + (uint64_t)h.e_shnum * h.e_shentsize),
				    ret_image, NULL);
}

static bool names_has_symtab(const struct elf_image *image)
{
	for (size_t i = 0; i < image->n_sections; i++)
		if (image->sections[i].type == SHT_SYMTAB)
			return true;
	return false;
}

/* Errors that may go away; any other is the file's fault. */
static int names_want(int r)
{
	return r == -ENOMEM || r == -EMFILE || r == -ENFILE ? r : 0;
}

static int names_add_table(struct cpu_symbols_source *s, const struct elf_image *image)
{
	int r = elf_functions_load(image, &s->tables[s->n_tables], NULL);

	if (r == 0)
		s->n_tables++;
	return names_want(r);
}

static int names_add_minidebug(struct cpu_symbols_source *s)
{
	_cleanup_(elf_image_closep) struct elf_image *image = NULL;
	struct buf bytes = {0};
	int r = elf_minidebug_read(s->image, &bytes, NULL);

	if (r < 0)
		return names_want(r);
	r = elf_image_open_bytes(buf_view(&bytes), &image, NULL);
	r = r == 0 ? names_add_table(s, image) : names_want(r);
	buf_release(&bytes);
	return r;
}

/* A stripped file has only its exported names; the others are elsewhere. */
static int names_add_tables(struct cpu_symbols_source *s)
{
	int r = names_add_table(s, s->image);

	if (r < 0 || names_has_symtab(s->image))
		return r;
	if (s->debug && names_has_symtab(s->debug))
		return names_add_table(s, s->debug);
	return names_add_minidebug(s);
}

/* Without the shared file, lines work, but some functions have no name. */
static void names_add_alternate(struct cpu_symbols_source *s, const struct elf_image *image,
				const char *debug_root)
{
	char path[PATH_MAX], id[129];

	if (elf_dwarf_alternate_link(image, path, sizeof(path), id, sizeof(id)) == 0 &&
	    elf_debugfile_open_alternate(debug_root, path, id, &s->alternate, NULL) == 0)
		(void)elf_dwarf_set_alternate(s->dwarf, s->alternate, NULL);
}

static void names_add_dwarf(struct cpu_symbols_source *s, const struct cpu_symbols_sources *sources)
{
	/* Half: one file must not evict all others. */
	size_t max = sources->max_bytes / 2;

	if (elf_dwarf_open(s->image, max, &s->dwarf, NULL) == 0)
		names_add_alternate(s, s->image, sources->debug_root);
	else if (s->debug && elf_dwarf_open(s->debug, max, &s->dwarf, NULL) == 0)
		names_add_alternate(s, s->debug, sources->debug_root);
}

int cpu_symbols_source_load_tables(struct cpu_symbols_source *source,
				   const struct cpu_symbols_sources *sources,
				   const struct cpu_file *file)
{
	struct cpu_symbols_source *s = source;
	int r;

	if (s->has_tables || !s->image)
		return 0;
	if (file->fd >= 0)
		(void)elf_debugfile_open(sources->debug_root, file->path, s->image, &s->debug,
					 NULL);
	r = names_add_tables(s);
	if (sources->lines)
		names_add_dwarf(s, sources);
	if (!s->dwarf) {
		elf_image_close(s->debug);
		s->debug = NULL;
	}
	s->has_tables = true;
	return r;
}

static int names_source_open(struct cpu_symbols_source *s, const struct cpu_file *file)
{
	int r = file->is_vdso ? names_open_vdso(&s->image)
			      : elf_image_open_fd(file->fd, &s->image, NULL);

	if (r == 0 && file->is_go && file->fd >= 0)
		r = golang_program_open(file->fd, &s->program, NULL);
	return names_want(r);
}

static size_t names_sources_oldest(const struct cpu_symbols_sources *sources)
{
	size_t oldest = 0;

	for (size_t i = 1; i < sources->len; i++)
		if (sources->list[i]->used_ns < sources->list[oldest]->used_ns)
			oldest = i;
	return oldest;
}

static void names_sources_drop(struct cpu_symbols_sources *sources, size_t i)
{
	names_source_free(sources->list[i]);
	sources->list[i] = sources->list[--sources->len];
}

void cpu_symbols_sources_trim(struct cpu_symbols_sources *sources, uint64_t now_ns)
{
	while (sources->len > 1) {
		size_t i = names_sources_oldest(sources);
		uint64_t idle_ns = now_ns - sources->list[i]->used_ns;
		size_t max = sources->max_bytes * (idle_ns < NAMES_BUSY_NS ? NAMES_BUSY_TIMES : 1);

		if (idle_ns < CPU_SYMBOLS_IDLE_NS && names_sources_memory(sources) <= max)
			break;
		names_sources_drop(sources, i);
	}
}

static struct cpu_symbols_source *names_source_new(const struct cpu_file *file)
{
	struct cpu_symbols_source *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->id = file->id;
	s->generation = file->generation;
	if (names_source_open(s, file) < 0) {
		names_source_free(s);
		return NULL;
	}
	return s;
}

void cpu_symbols_sources_forget(struct cpu_symbols_sources *sources,
				const struct cpu_symbols_source *source)
{
	for (size_t i = 0; i < sources->len; i++)
		if (sources->list[i] == source) {
			names_sources_drop(sources, i);
			return;
		}
}

static struct cpu_symbols_source *names_sources_find(struct cpu_symbols_sources *sources,
						     const struct cpu_file *file)
{
	for (size_t i = 0; i < sources->len; i++) {
		struct cpu_symbols_source *s = sources->list[i];

		if (s->id == file->id && s->generation == file->generation)
			return s;
	}
	return NULL;
}

void cpu_symbols_sources_close(struct cpu_symbols_sources *sources, const struct cpu_file *file)
{
	cpu_symbols_sources_forget(sources, names_sources_find(sources, file));
}

struct cpu_symbols_source *cpu_symbols_sources_get(struct cpu_symbols_sources *sources,
						   const struct cpu_file *file, uint64_t now_ns)
{
	struct cpu_symbols_source *s = names_sources_find(sources, file);

	if (s) {
		s->used_ns = now_ns;
		return s;
	}
	s = names_source_new(file);
	if (!s) {
		/* The other files may hold the memory and descriptors. */
		cpu_symbols_sources_release(sources);
		s = names_source_new(file);
	}
	if (!s)
		return NULL;
	if (sources->len == CPU_SYMBOLS_MAX_SOURCES)
		names_sources_drop(sources, names_sources_oldest(sources));
	s->used_ns = now_ns;
	sources->list[sources->len++] = s;
	return s;
}

/* The innermost function, i.e. the one that starts last. If equal, that of the earlier table. */
const char *cpu_symbols_source_symbol(const struct cpu_symbols_source *source, uint64_t vaddr)
{
	const char *best = NULL;
	uint64_t best_start = 0, entry = 0;

	if (source->image && elf_entry_start(source->image, vaddr, &entry) < 0)
		entry = 0;
	for (size_t i = 0; i < source->n_tables; i++) {
		uint64_t start;
		const char *name = elf_functions_lookup(source->tables[i], vaddr, entry, &start);

		if (name && (!best || start > best_start)) {
			best = name;
			best_start = start;
		}
	}
	return best;
}
