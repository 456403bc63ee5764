/*
 * src/elf/dwarf/dwarf.c: finds the functions and lines at an address; see dwarf.h.
 *
 *   address ─► index ─► unit ─┬─► its function ─► scope: inlined calls ─► name
 *                             └─► line: file number and line ─► path
 *
 * Sections are read through a cache of pages (dwarf_section); compressed ones are decompressed only
 * as far as needed (dwarf_stream). Each has its share of the memory, and all share one work budget.
 */
#include "elf/dwarf/dwarf.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/intern.h"
#include "base/map.h"
#include "elf/dwarf/code.h"
#include "elf/dwarf/index.h"
#include "elf/dwarf/line.h"
#include "elf/dwarf/name.h"
#include "elf/dwarf/unit.h"

/*
 * Work is counted in bytes decoded. A valid file needs much once, for its index and its large
 * units, and little afterwards; a forged one gets no more than that on average.
 */
#define DWARF_WORK_MAX ((int64_t)256 << 20)
#define DWARF_WORK_PER_LOOKUP ((int64_t)96 << 20)
#define DWARF_WORK_REGAINED ((int64_t)1 << 20)

/* Bits for the file number in the key of a path. */
#define DWARF_FILE_BITS 24

struct elf_dwarf {
	struct elf_dwarf_pool pool;
	struct elf_dwarf_file file;
	struct elf_dwarf_file alternate;
	struct elf_dwarf_index index;
	int64_t work; /* left */
	size_t max_bytes;
	struct intern strings;
	struct map names; /* entry, or entry of the alternate file, to name and line */
	struct map paths; /* unit and file number to path */
	struct buf buf;
};

/* Shares of max_bytes; elf_dwarf_file_open() splits the file's further. */
static size_t dwarf_share(const struct elf_dwarf *d, unsigned int sixteenths)
{
	return d->max_bytes / 16 * sixteenths;
}

static int dwarf_check_first_unit(struct elf_dwarf *d, struct err *err)
{
	struct elf_dwarf_unit *unit;
	int r;

	d->pool.credit = DWARF_WORK_PER_LOOKUP;
	r = elf_dwarf_file_unit(&d->file, 0, &unit);
	if (r == -ENOMEM)
		return err_oom(err);
	if (r == -ENOTSUP)
		return err_set(err, r, "its debug information has an unsupported version");
	if (r < 0)
		return err_set(err, r, "its debug information is damaged");
	if (unit->is_split)
		return err_set(err, -ENOTSUP,
			       "its debug information is in .dwo files, which are not supported");
	return 0;
}

int elf_dwarf_open(const struct elf_image *image, size_t max_bytes, struct elf_dwarf **ret_dwarf,
		   struct err *err)
{
	_cleanup_(elf_dwarf_closep) struct elf_dwarf *d = NULL;
	int r;

	if (image->type == ET_REL)
		return err_set(err, -ENOTSUP, "debug information of an unlinked object file");
	d = calloc(1, sizeof(*d));
	if (!d)
		return err_oom(err);
	d->max_bytes = MAX(max_bytes, ELF_DWARF_MIN_BYTES);
	d->work = DWARF_WORK_MAX;
	d->strings.bytes.max = dwarf_share(d, 1);
	d->index.max = dwarf_share(d, 1) / sizeof(*d->index.items);
	r = elf_dwarf_pool_init(&d->pool, dwarf_share(d, 2));
	if (r < 0)
		return err_oom(err);
	r = elf_dwarf_file_open(&d->file, image, &d->pool, dwarf_share(d, 12), err);
	if (r < 0)
		return r;
	if (d->file.sections[ELF_DWARF_INFO].size == 0 ||
	    d->file.sections[ELF_DWARF_ABBREV].size == 0)
		return err_set(err, -ENOENT, "it has no debug information");
	r = dwarf_check_first_unit(d, err);
	if (r < 0)
		return r;
	*ret_dwarf = TAKE_PTR(d);
	return 0;
}

static void dwarf_forget_names(struct elf_dwarf *d)
{
	intern_release(&d->strings);
	d->strings = (struct intern){.bytes.max = dwarf_share(d, 1)};
	map_release(&d->names);
	map_release(&d->paths);
	d->names = d->paths = (struct map){0};
}

void elf_dwarf_close(struct elf_dwarf *d)
{
	if (!d)
		return;
	dwarf_forget_names(d);
	elf_dwarf_index_release(&d->index);
	elf_dwarf_file_close(&d->file);
	elf_dwarf_file_close(&d->alternate);
	elf_dwarf_pool_release(&d->pool);
	buf_release(&d->buf);
	free(d);
}

/* Keys and values, at most three quarters full, growing by doubling. */
static size_t dwarf_map_memory(const struct map *map)
{
	return map->cap * 2 * sizeof(uint64_t);
}

static size_t dwarf_names_memory(const struct elf_dwarf *d)
{
	return d->strings.bytes.used + (size_t)d->strings.cap * (sizeof(struct view) + 16) +
	       dwarf_map_memory(&d->names) + dwarf_map_memory(&d->paths);
}

size_t elf_dwarf_memory(const struct elf_dwarf *d)
{
	return sizeof(*d) + elf_dwarf_pool_memory(&d->pool) + elf_dwarf_file_memory(&d->file) +
	       elf_dwarf_file_memory(&d->alternate) + elf_dwarf_index_memory(&d->index) +
	       dwarf_names_memory(d) + d->buf.cap;
}

int elf_dwarf_set_alternate(struct elf_dwarf *d, const struct elf_image *image, struct err *err)
{
	char path[4096], wanted[129], id[129];
	struct elf_dwarf_file file;
	int r;

	r = elf_dwarf_alternate_link(d->file.image, path, sizeof(path), wanted, sizeof(wanted));
	if (r < 0)
		return err_set(err, r, "it does not name a shared debug file");
	if (!elf_image_build_id(image, id, sizeof(id)) || strcmp(id, wanted) != 0)
		return err_set(err, -EBADMSG,
			       "%s is not the shared debug file: its build id is not %s", path,
			       wanted);
	r = elf_dwarf_file_open(&file, image, &d->pool, dwarf_share(d, 4), err);
	if (r < 0) {
		elf_dwarf_file_close(&file);
		return r;
	}
	elf_dwarf_file_close(&d->alternate);
	d->alternate = file;
	d->file.alternate = &d->alternate;
	return 0;
}

/* The path, a NUL, and the build id up to the end. */
int elf_dwarf_alternate_link(const struct elf_image *image, char *path, size_t path_len,
			     char *build_id, size_t build_id_len)
{
	const struct elf_section *section = elf_image_section(image, ".gnu_debugaltlink");
	uint8_t bytes[4096 + 64];
	struct view link, name, id;

	if (!section || section->type == SHT_NOBITS)
		return -ENOENT;
	link = view_of(bytes, (size_t)MIN(section->size, sizeof(bytes)));
	if (link.len != section->size ||
	    elf_image_read(image, section->offset, bytes, link.len) < 0 ||
	    !view_cstr(link, 0, &name) ||
	    !view_sub(link, name.len + 1, link.len - name.len - 1, &id))
		return -EBADMSG;
	if (name.len == 0 || name.len >= path_len || id.len == 0 || id.len * 2 + 1 > build_id_len)
		return -EBADMSG;
	memcpy(path, name.data, name.len);
	path[name.len] = 0;
	for (size_t i = 0; i < id.len; i++)
		(void)snprintf(build_id + i * 2, 3, "%02x", id.data[i]);
	return 0;
}

/*
 * Caches the text in buf under the key; if the cache is full, the text is unknown, which is no
 * error.
 */
static int dwarf_remember(struct elf_dwarf *d, struct map *map, uint64_t key, uint64_t line,
			  struct view *ret)
{
	uint32_t id;
	int r = intern_add(&d->strings, buf_view(&d->buf), &id);

	if (r == -E2BIG) {
		*ret = (struct view){0};
		return 0;
	}
	if (r == 0)
		r = map_put(map, key, line << 32 | id);
	if (r < 0)
		return r;
	*ret = intern_get(&d->strings, id);
	return 0;
}

static int dwarf_frame_name(struct elf_dwarf *d, const struct elf_dwarf_scope *scope,
			    struct elf_dwarf_frame *frame)
{
	struct elf_dwarf_file *file =
		scope->off & ELF_DWARF_ALTERNATE ? d->file.alternate : &d->file;
	uint64_t value, line = 0;
	int r = 0;

	if (map_get(&d->names, scope->off, &value)) {
		frame->name = intern_get(&d->strings, (uint32_t)value);
		frame->start_line = (int64_t)(value >> 32);
		return 0;
	}
	buf_clear(&d->buf);
	if (file)
		r = elf_dwarf_name_of(file, scope->off & ~ELF_DWARF_ALTERNATE, &d->buf, &line);
	if (r < 0)
		return r;
	frame->start_line = (int64_t)(uint32_t)line;
	return dwarf_remember(d, &d->names, scope->off, (uint32_t)line, &frame->name);
}

static int dwarf_frame_file(struct elf_dwarf *d, const struct elf_dwarf_unit *unit, uint64_t number,
			    struct elf_dwarf_frame *frame)
{
	uint64_t key = unit->off << DWARF_FILE_BITS | number, value;
	int r;

	if (number >> DWARF_FILE_BITS)
		return 0;
	if (map_get(&d->paths, key, &value)) {
		frame->file = intern_get(&d->strings, (uint32_t)value);
		return 0;
	}
	buf_clear(&d->buf);
	r = elf_dwarf_lines_path(unit, number, &d->buf);
	if (r == -ENOMEM)
		return r;
	if (r < 0)
		buf_clear(&d->buf);
	return dwarf_remember(d, &d->paths, key, 0, &frame->file);
}

struct dwarf_emit {
	int (*emit)(void *context, const struct elf_dwarf_frame *frame);
	void *context;
	int n;
	bool is_stopped;
};

static int dwarf_emit_frame(struct dwarf_emit *out, const struct elf_dwarf_frame *frame)
{
	int r = out->emit(out->context, frame);

	if (r < 0) {
		out->is_stopped = true;
		return r;
	}
	out->n++;
	return 0;
}

/* From the innermost call outwards; each call site gives the line in the next frame. */
static int dwarf_emit_chain(struct elf_dwarf *d, const struct elf_dwarf_unit *unit, uint32_t at,
			    uint64_t vaddr, struct dwarf_emit *out)
{
	uint64_t file = 0, line = 0;
	bool is_known = elf_dwarf_lines_find(unit, vaddr, &file, &line);
	bool is_last = false;

	while (!is_last) {
		const struct elf_dwarf_scope *scope = &unit->code->scopes[at];
		struct elf_dwarf_frame frame = {.line = (int64_t)line};
		int r = dwarf_frame_name(d, scope, &frame);

		if (r == 0 && is_known)
			r = dwarf_frame_file(d, unit, file, &frame);
		if (r == 0)
			r = dwarf_emit_frame(out, &frame);
		if (r < 0)
			return r;
		is_last = scope->parent == at;
		file = scope->call_file;
		line = scope->call_line;
		is_known = true;
		at = scope->parent;
		/*
		 * If the chain is too long, skip to its end: that is the function whose code it is.
		 */
		while (out->n == ELF_DWARF_MAX_FRAMES - 1 && unit->code->scopes[at].parent != at)
			at = unit->code->scopes[at].parent;
	}
	return 0;
}

static int dwarf_emit_line(struct elf_dwarf *d, const struct elf_dwarf_unit *unit, uint64_t vaddr,
			   struct dwarf_emit *out)
{
	struct elf_dwarf_frame frame = {0};
	uint64_t file, line;
	int r;

	if (!elf_dwarf_lines_find(unit, vaddr, &file, &line))
		return 0;
	frame.line = (int64_t)line;
	r = dwarf_frame_file(d, unit, file, &frame);
	return r < 0 ? r : dwarf_emit_frame(out, &frame);
}

static int dwarf_emit_unit(struct elf_dwarf *d, struct elf_dwarf_unit *unit, uint64_t vaddr,
			   struct dwarf_emit *out)
{
	uint32_t scope;
	int r = elf_dwarf_unit_load_code(unit);

	if (r < 0)
		return r;
	if (!elf_dwarf_code_find(unit->code, vaddr, &scope))
		return 0;
	r = elf_dwarf_unit_load_lines(unit);
	if (r < 0)
		return r;
	return dwarf_emit_chain(d, unit, scope, vaddr, out);
}

static int dwarf_emit_all(struct elf_dwarf *d, uint64_t vaddr, struct dwarf_emit *out)
{
	uint64_t offs[ELF_DWARF_INDEX_MAX_FOUND];
	int n = elf_dwarf_index_find(&d->index, &d->file, vaddr, offs);

	if (n <= 0)
		return n;
	/*
	 * A function is worth more than a line: try all units for functions first, then for lines.
	 */
	for (int i = 0; i < 2 * n && out->n == 0; i++) {
		struct elf_dwarf_unit *unit;
		int r = elf_dwarf_file_unit(&d->file, offs[i % n], &unit);

		if (r == 0 && i < n)
			r = dwarf_emit_unit(d, unit, vaddr, out);
		else if (r == 0)
			r = elf_dwarf_unit_load_lines(unit);
		if (r == 0 && i >= n)
			r = dwarf_emit_line(d, unit, vaddr, out);
		if (r == -ENOMEM || out->is_stopped)
			return r;
	}
	return 0;
}

int elf_dwarf_frames(struct elf_dwarf *d, uint64_t vaddr,
		     int (*emit)(void *context, const struct elf_dwarf_frame *frame), void *context,
		     struct err *err)
{
	struct dwarf_emit out = {.emit = emit, .context = context};
	int64_t credit = MIN(d->work, DWARF_WORK_PER_LOOKUP);
	int r;

	if (dwarf_names_memory(d) > dwarf_share(d, 1) / 2)
		dwarf_forget_names(d);
	d->pool.credit = credit;
	r = dwarf_emit_all(d, vaddr, &out);
	elf_dwarf_file_trim(&d->file);
	elf_dwarf_file_trim(&d->alternate);
	d->work = MIN(d->work - (credit - d->pool.credit) + DWARF_WORK_REGAINED, DWARF_WORK_MAX);
	if (r == -ENOMEM)
		return err_oom(err);
	return r < 0 ? r : out.n;
}
