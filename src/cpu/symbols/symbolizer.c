/* src/cpu/symbols/symbolizer.c: see symbolizer.h. */
#include "cpu/symbols/symbolizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/hash.h"
#include "cpu/interp/names.h"
#include "cpu/symbols/cache.h"
#include "cpu/symbols/demangle.h"
#include "cpu/symbols/jit.h"
#include "cpu/symbols/kallsyms.h"
#include "cpu/symbols/sources.h"
#include "elf/debugfile.h"
#include "proc/text.h"

#define NAMES_DEFAULT_BYTES ((size_t)8 << 20)
/* With lines: decoded DWARF units are large, and expensive to decode again. */
#define NAMES_DEFAULT_LINES_BYTES ((size_t)16 << 20)
/* Small caches do not benefit from more. */
#define NAMES_MAX_CACHE_BYTES ((size_t)4 << 20)
#define NAMES_MAX_JIT_BYTES ((size_t)2 << 20)
/* Longer ones are truncated. */
#define NAMES_MAX_TEXT ((size_t)1024)
#define NAMES_MAX_WORK_BYTES ((size_t)1 << 20)
/*
 * An interpreter may free a function and create another of the same name, but with different lines:
 * read them again after a while.
 */
#define NAMES_INTERP_NS (600 * NS_PER_SEC)
#define NAMES_INTERP_TURNS 8

struct cpu_symbolizer {
	struct cpu_symbols_cache cache;
	struct cpu_symbols_sources sources;
	struct cpu_symbols_jits jits;
	struct names_interps interps;
	struct cpu_kallsyms *kallsyms;
	char *debug_root;
	struct cpu_name answer[CPU_SYMBOLIZER_MAX];
};

/* The names of one address, while being collected. */
struct names_work {
	struct arena text;
	struct cpu_name list[CPU_SYMBOLIZER_MAX];
	size_t n;
	const struct cpu_file *file;
};

void cpu_symbolizer_free(struct cpu_symbolizer *names)
{
	if (!names)
		return;
	cpu_symbols_cache_release(&names->cache);
	cpu_symbols_sources_release(&names->sources);
	cpu_symbols_jits_release(&names->jits);
	names_interps_release(&names->interps);
	cpu_kallsyms_free(names->kallsyms);
	free(names->debug_root);
	free(names);
}

int cpu_symbolizer_new(const struct cpu_symbolizer_options *options,
		       struct cpu_symbolizer **ret_names, struct err *err)
{
	_cleanup_(cpu_symbolizer_freep) struct cpu_symbolizer *names = calloc(1, sizeof(*names));
	size_t max = options->max_bytes ? options->max_bytes
		     : options->lines	? NAMES_DEFAULT_LINES_BYTES
					: NAMES_DEFAULT_BYTES;
	int r;

	if (!names)
		return err_oom(err);
	names->debug_root = strdup(options->debug_root ? options->debug_root : ELF_DEBUG_ROOT);
	if (!names->debug_root)
		return err_oom(err);
	names->cache.max_bytes = MIN(max / 2, NAMES_MAX_CACHE_BYTES);
	names->jits.max_bytes = MIN(max / 8, NAMES_MAX_JIT_BYTES);
	names->sources.max_bytes = max - names->cache.max_bytes - names->jits.max_bytes;
	names->sources.debug_root = names->debug_root;
	names->sources.lines = options->lines;
	r = cpu_kallsyms_new(options->kallsyms ? options->kallsyms : CPU_KALLSYMS_PATH,
			     &names->kallsyms, err);
	if (r < 0)
		return r;
	*ret_names = TAKE_PTR(names);
	return 0;
}

/* A printable copy; NULL if out of memory. */
static const char *names_text(struct names_work *w, struct view text)
{
	size_t cap = MIN(text.len, NAMES_MAX_TEXT) + 1;
	char *copy = arena_alloc(&w->text, cap);

	if (copy)
		proc_text_copy(copy, cap, text);
	return copy;
}

/* Strips the version: "memcpy@@GLIBC_2.14" is shown as memcpy. */
static const char *names_for_people(struct names_work *w, const char *system_name)
{
	char plain[NAMES_MAX_TEXT + 1], text[NAMES_MAX_TEXT + 1];
	size_t len = strcspn(system_name, "@");

	if (len == 0)
		return system_name;
	memcpy(plain, system_name, len);
	plain[len] = 0;
	if (cpu_demangle(plain, text, sizeof(text)))
		return names_text(w, view_str(text));
	return system_name[len] ? names_text(w, view_str(plain)) : system_name;
}

static int names_add(struct names_work *w, struct view name, bool is_linked, struct view file)
{
	struct cpu_name *n = &w->list[w->n];

	if (w->n == CPU_SYMBOLIZER_MAX)
		return -E2BIG;
	n->system_name = names_text(w, name.len ? name : view_str("[unknown]"));
	n->file = names_text(w, file);
	if (!n->system_name || !n->file)
		return -ENOMEM;
	n->function = is_linked ? names_for_people(w, n->system_name) : n->system_name;
	if (!n->function)
		return -ENOMEM;
	w->n++;
	return 0;
}

static int names_add_go(void *context, const struct golang_program_frame *frame)
{
	struct names_work *w = context;
	int r = names_add(w, frame->name, false, frame->file);

	if (r == 0) {
		w->list[w->n - 1].line = frame->line;
		w->list[w->n - 1].start_line = frame->start_line;
	}
	return r;
}

static int names_add_dwarf(void *context, const struct elf_dwarf_frame *frame)
{
	struct names_work *w = context;
	int r = names_add(w, frame->name, true, frame->file);

	if (r == 0) {
		w->list[w->n - 1].line = frame->line;
		w->list[w->n - 1].start_line = frame->start_line;
	}
	return r;
}

static const char *names_base(const struct cpu_file *file)
{
	const char *slash = strrchr(file->path, '/');

	return file->is_vdso ? "vdso" : slash && slash[1] ? slash + 1 : file->path;
}

static bool names_is_plt(const struct elf_image *image, uint64_t vaddr)
{
	for (size_t i = 0; i < image->n_sections; i++) {
		const struct elf_section *s = &image->sections[i];

		if (vaddr >= s->addr && vaddr - s->addr < s->size &&
		    strncmp(s->name, ".plt", 4) == 0)
			return true;
	}
	return false;
}

/* "[libfoo.so+0x1230]", using the start of the function according to unwind tables. */
static int names_make_up(struct names_work *w, const struct cpu_symbols_source *source,
			 uint64_t vaddr)
{
	const char *base = names_base(w->file);
	char text[NAMES_MAX_TEXT];
	uint64_t start;

	if (source->image && names_is_plt(source->image, vaddr))
		(void)snprintf(text, sizeof(text), "[%.255s plt]", base);
	else if (source->image && elf_entry_start(source->image, vaddr, &start) == 0)
		(void)snprintf(text, sizeof(text), "[%.255s+0x%llx]", base,
			       (unsigned long long)start);
	else
		(void)snprintf(text, sizeof(text), "[%.255s]", base[0] ? base : "unknown");
	return names_add(w, view_str(text), false, view_str(""));
}

static int names_add_symbol(struct names_work *w, const char *symbol)
{
	char text[NAMES_MAX_TEXT];

	if (!w->file->is_vdso)
		return names_add(w, view_str(symbol), true, view_str(""));
	(void)snprintf(text, sizeof(text), "%.255s [vdso]", symbol);
	return names_add(w, view_str(text), false, view_str(""));
}

/* DWARF may lack the name of a function; take it from the symbol table. */
static int names_fill_outermost(struct names_work *w, const char *symbol)
{
	struct cpu_name *last = &w->list[w->n - 1];

	if (strcmp(last->system_name, "[unknown]") != 0 || !symbol)
		return 0;
	last->system_name = names_text(w, view_str(symbol));
	last->function = last->system_name ? names_for_people(w, last->system_name) : NULL;
	return last->function ? 0 : -ENOMEM;
}

/* Discards partial results of running out of memory or of forged tables. */
static bool names_got(struct names_work *w, int r)
{
	if (r <= 0 && r != -E2BIG)
		w->n = 0;
	return w->n > 0;
}

/* *ret_is_whole: asking again cannot give a better answer. */
static int names_gather(struct names_work *w, struct cpu_symbols_source *source,
			const struct cpu_symbols_sources *sources, uint64_t vaddr,
			bool *ret_is_whole)
{
	const char *symbol;

	*ret_is_whole = true;
	if (source->program &&
	    names_got(w, golang_program_frames(source->program, vaddr, names_add_go, w, NULL)))
		return 0;
	*ret_is_whole = cpu_symbols_source_load_tables(source, sources, w->file) == 0;
	symbol = cpu_symbols_source_symbol(source, vaddr);
	if (source->dwarf &&
	    names_got(w, elf_dwarf_frames(source->dwarf, vaddr, names_add_dwarf, w, NULL)))
		return names_fill_outermost(w, symbol);
	return symbol ? names_add_symbol(w, symbol) : names_make_up(w, source, vaddr);
}

static void names_return(struct cpu_symbolizer *names, size_t n, const struct cpu_name **ret_names,
			 size_t *ret_n)
{
	*ret_names = names->answer;
	*ret_n = n;
}

/* Returns one name, cached unless key is NULL. */
static int names_return_text(struct cpu_symbolizer *names, const struct cpu_symbols_key *key,
			     const char *text, const struct cpu_name **ret_names, size_t *ret_n)
{
	struct cpu_name name = {.function = text, .system_name = text, .file = ""};
	int r = 0;

	if (key)
		r = cpu_symbols_cache_put(&names->cache, key, &name, 1, names->answer);
	else
		names->answer[0] = name;
	if (r == 0)
		names_return(names, 1, ret_names, ret_n);
	return r;
}

static int names_look_up(struct cpu_symbolizer *names, const struct cpu_file *file,
			 const struct cpu_symbols_key *key, size_t *ret_n)
{
	struct names_work w = {.text = {.max = NAMES_MAX_WORK_BYTES}, .file = file};
	uint64_t now_ns = clock_mono_ns();
	struct cpu_symbols_source *source = cpu_symbols_sources_get(&names->sources, file, now_ns);
	bool is_whole;
	int r;

	if (!source)
		return -ENOMEM;
	r = names_gather(&w, source, &names->sources, key->addr, &is_whole);
	if (r == 0)
		r = is_whole ? cpu_symbols_cache_put(&names->cache, key, w.list, w.n, names->answer)
			     : -ENOMEM;
	arena_release(&w.text);
	if (!is_whole)
		cpu_symbols_sources_forget(&names->sources, source);
	cpu_symbols_sources_trim(&names->sources, now_ns);
	*ret_n = w.n;
	return r;
}

int cpu_symbolizer_file(struct cpu_symbolizer *names, const struct cpu_file *file, uint64_t vaddr,
			const struct cpu_name **ret_names, size_t *ret_n)
{
	const struct cpu_symbols_key key = {
		.kind = CPU_SYMBOLS_FILE, .id = file->id, .owner = file->generation, .addr = vaddr};
	size_t n = cpu_symbols_cache_get(&names->cache, &key, names->answer);

	/* Out of memory or descriptors now; retry later. */
	if (n == 0 && names_look_up(names, file, &key, &n) < 0)
		return names_return_text(names, NULL, "[unknown]", ret_names, ret_n);
	names_return(names, n, ret_names, ret_n);
	return 0;
}

int cpu_symbolizer_kernel(struct cpu_symbolizer *names, uint64_t addr,
			  const struct cpu_name **ret_names, size_t *ret_n)
{
	struct cpu_symbols_key key = {.kind = CPU_SYMBOLS_KERNEL,
				      .id = cpu_kallsyms_epoch(names->kallsyms),
				      .addr = addr};
	char text[NAMES_MAX_TEXT];

	if (cpu_symbols_cache_get(&names->cache, &key, names->answer)) {
		names_return(names, 1, ret_names, ret_n);
		return 0;
	}
	/* Unknown names are not cached: the module may become known. */
	if (cpu_kallsyms_lookup(names->kallsyms, addr, clock_mono_ns(), text, sizeof(text)) < 0)
		return names_return_text(names, NULL, "[kernel]", ret_names, ret_n);
	key.id = cpu_kallsyms_epoch(names->kallsyms);
	return names_return_text(names, &key, text, ret_names, ret_n);
}

int cpu_symbolizer_jit(struct cpu_symbolizer *names, pid_t pid, uint64_t generation, uint64_t addr,
		       const struct cpu_name **ret_names, size_t *ret_n)
{
	struct cpu_symbols_jit *jit =
		cpu_symbols_jits_get(&names->jits, pid, generation, clock_mono_ns());
	const struct cpu_symbols_key key = {
		.kind = CPU_SYMBOLS_JIT, .id = jit->epoch, .owner = generation, .addr = addr};
	char text[NAMES_MAX_TEXT];

	if (!jit->map)
		return names_return_text(names, NULL, "[anonymous]", ret_names, ret_n);
	if (cpu_symbols_cache_get(&names->cache, &key, names->answer)) {
		names_return(names, 1, ret_names, ret_n);
		return 0;
	}
	if (cpu_perfmap_lookup(jit->map, addr, text, sizeof(text)) < 0)
		return names_return_text(names, &key, "[jit]", ret_names, ret_n);
	return names_return_text(names, &key, text, ret_names, ret_n);
}

static int names_read_frame(struct cpu_symbolizer *names, const struct cpu_symbols_key *key,
			    const struct cpu_process *process, const struct interp_frame *frame,
			    uint64_t now_ns)
{
	struct cpu_name list[INTERP_NAMES_MAX];
	int n = names_interps_read(&names->interps, process, frame, now_ns);
	int r;

	if (n <= 0)
		return 0;
	for (int i = 0; i < n; i++) {
		const struct interp_name *name = &names->interps.names[i];

		list[i] = (struct cpu_name){.function = name->function,
					    .system_name = name->function,
					    .file = name->file,
					    .line = name->line,
					    .start_line = name->start_line};
	}
	r = cpu_symbols_cache_put(&names->cache, key, list, (size_t)n, names->answer);
	return r < 0 ? r : n;
}

int cpu_symbolizer_interp(struct cpu_symbolizer *names, const struct cpu_process *process,
			  enum interp_kind kind, const struct interp_frame *frame,
			  const struct cpu_name **ret_names, size_t *ret_n)
{
	uint64_t now_ns = clock_mono_ns();
	const struct cpu_symbols_key key = {
		.kind = CPU_SYMBOLS_INTERP,
		.id = (uint32_t)(now_ns / NAMES_INTERP_NS % NAMES_INTERP_TURNS),
		.owner = hash_mix(hash_u64(process->generation) ^ frame->check),
		.addr = frame->id & INTERP_ID};
	int n = (int)cpu_symbols_cache_get(&names->cache, &key, names->answer);

	/* A process that exited, or whose mappings changed, cannot be read. */
	if (n == 0 && process->interp.kind == kind)
		n = names_read_frame(names, &key, process, frame, now_ns);
	if (n < 0)
		return n;
	if (n == 0)
		return names_return_text(names, NULL, interp_ops(kind)->unnamed, ret_names, ret_n);
	names_return(names, (size_t)n, ret_names, ret_n);
	return 0;
}

void cpu_symbolizer_forget_file(struct cpu_symbolizer *names, const struct cpu_file *file)
{
	cpu_symbols_sources_close(&names->sources, file);
}

void cpu_symbolizer_forget_process(struct cpu_symbolizer *names, uint64_t generation)
{
	cpu_symbols_jits_forget(&names->jits, generation);
	names_interps_forget(&names->interps, generation);
}
