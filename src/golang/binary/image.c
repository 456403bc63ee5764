/* src/golang/binary/image.c: see image.h. */
#include "golang/binary/image.h"

#include <assert.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "golang/binary/buildinfo.h"
#include "golang/binary/pclntab.h"
#include "golang/binary/scan.h"

#define IMAGE_HEADER_BYTES ((size_t)4096)
#define IMAGE_NOTE_BYTES ((size_t)4096)
#define IMAGE_MAX_CANDIDATES 4096
#define IMAGE_BUILDINFO_SCAN ((uint64_t)1 << 20)
#define IMAGE_BUILDINFO_TOTAL ((uint64_t)16 << 20) /* of all segments */
/* When listing processes, spend no more than this on each: */
#define IMAGE_GLANCE_BYTES ((uint64_t)128 << 20)
/* The target controls the files: they may be many, huge, or on a slow disk. */
#define IMAGE_PATIENCE_NS (3 * NS_PER_SEC)

void golang_image_release(struct golang_image *image)
{
	elf_image_close(image->elf);
	free(image->headers);
	*image = (struct golang_image){0};
}

/* Do file and memory hold the same bytes there? Missing memory cannot disagree. */
static bool same_bytes(struct proc_mem *mem, const struct golang_image *image, uint64_t offset,
		       uint64_t vaddr, size_t len)
{
	uint8_t in_memory[IMAGE_NOTE_BYTES];
	uint8_t in_file[IMAGE_NOTE_BYTES];
	ssize_t n;

	len = MIN(len, sizeof(in_file));
	n = proc_mem_read_some(mem, vaddr + image->bias, in_memory, len);
	if (n <= 0)
		return true;
	return elf_image_read(image->elf, offset, in_file, (size_t)n) == 0 &&
	       memcmp(in_memory, in_file, (size_t)n) == 0;
}

/* Is the file still the mapped one? Compares the ELF header and the notes (build ids). */
static bool file_is_mapped_one(struct proc_mem *mem, const struct golang_image *image)
{
	for (size_t i = 0; i < image->elf->n_segments; i++) {
		const struct elf_segment *s = &image->elf->segments[i];

		if (s->type == PT_LOAD && s->offset == 0 &&
		    !same_bytes(mem, image, 0, s->vaddr, MIN(s->filesz, sizeof(Elf64_Ehdr))))
			return false;
		if (s->type == PT_NOTE && !same_bytes(mem, image, s->offset, s->vaddr, s->filesz))
			return false;
	}
	return true;
}

/*
 * Finds the load bias from the segment that the mapping shows. If two segments share a page of the
 * file, the permissions identify the one with code.
 */
static bool bias_of_map(const struct elf_image *elf, const struct proc_map *map, uint64_t *ret_bias)
{
	const struct elf_segment *best = NULL;
	uint64_t best_offset;

	for (size_t i = 0; i < elf->n_segments; i++) {
		const struct elf_segment *s = &elf->segments[i];
		bool same_use = !(s->flags & PF_X) == !(map->flags & PROC_MAP_EXEC);

		if (s->type == PT_LOAD && map->offset >= (s->offset & ~4095ULL) &&
		    map->offset < s->offset + s->filesz && (!best || same_use))
			best = s;
	}
	if (!best)
		return false;
	best_offset = best->offset & ~4095ULL;
	*ret_bias = map->start - (best->vaddr - (best->offset - best_offset)) -
		    (map->offset - best_offset);
	return true;
}

static bool has_interpreter(const struct elf_image *elf)
{
	for (size_t i = 0; i < elf->n_segments; i++)
		if (elf->segments[i].type == PT_INTERP)
			return true;
	return false;
}

static bool looks_go(const struct golang_image *image, struct golang_scan *scan,
		     enum golang_effort effort)
{
	const char *how;
	uint64_t addr;

	assert(image->elf);
	if (elf_image_section(image->elf, ".go.buildinfo") ||
	    elf_image_section(image->elf, ".gopclntab") ||
	    elf_image_section(image->elf, ".data.rel.ro.gopclntab"))
		return true;
	if (effort == GOLANG_GLANCE && image->elf->n_sections > 0)
		return false;
	return golang_pclntab_find(image, scan, &addr, &how, NULL) == 0;
}

/* Opens the file behind a mapping (or exe_path) as an image; -ESTALE if it has been replaced. */
static int image_from_file(struct proc_mem *mem, const struct proc_map *map, const char *exe_path,
			   struct golang_image *ret_image, struct err *err)
{
	struct golang_image image = {.from_file = true};
	_cleanup_close_ int fd = -1;
	bool placed = true;
	uint64_t entry;
	int r;

	if (exe_path) {
		fd = open(exe_path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
		if (fd < 0)
			return err_set(err, -errno, "cannot open %s: %s", exe_path,
				       strerror(errno));
	} else {
		r = proc_mem_open_file(mem, map, &fd, err);
		if (r < 0)
			return r;
	}
	r = elf_image_open_fd(fd, &image.elf, err);
	if (r < 0)
		return err_prefix(err, r, "%s", exe_path ? exe_path : map->path);
	/* The kernel tells where the executable starts; a core may not tell which file it is. */
	if (proc_mem_auxv(mem, AT_ENTRY, &entry) && entry >= map->start && entry < map->end)
		image.bias = entry - image.elf->entry;
	else
		placed = bias_of_map(image.elf, map, &image.bias);
	if (!placed || !file_is_mapped_one(mem, &image)) {
		golang_image_release(&image);
		return err_set(err, -ESTALE, "%s is not the file the process runs",
			       exe_path ? exe_path : map->path);
	}
	(void)snprintf(image.path, sizeof(image.path), "%s", map->path);
	*ret_image = image;
	return 0;
}

int golang_image_of_map(struct proc_mem *mem, const struct proc_map *map,
			struct golang_image *ret_image, struct err *err)
{
	return image_from_file(mem, map, NULL, ret_image, err);
}

/* The image whose ELF header is in memory at addr: program headers only, no sections. */
static int image_from_memory(struct proc_mem *mem, uint64_t addr, const char *path,
			     struct golang_image *ret_image, struct err *err)
{
	struct golang_image image = {0};
	uint64_t first = UINT64_MAX;
	ssize_t n;
	int r;

	image.headers = malloc(IMAGE_HEADER_BYTES);
	if (!image.headers)
		return err_oom(err);
	n = proc_mem_read_some(mem, addr, image.headers, IMAGE_HEADER_BYTES);
	r = n < SELFMAG || memcmp(image.headers, ELFMAG, SELFMAG) != 0 ? -EBADMSG : 0;
	if (r == 0)
		r = elf_image_open_bytes(view_of(image.headers, (size_t)n), &image.elf, err);
	for (size_t i = 0; r == 0 && i < image.elf->n_segments; i++)
		if (image.elf->segments[i].type == PT_LOAD)
			first = MIN(first, image.elf->segments[i].vaddr & ~4095ULL);
	if (r < 0 || first == UINT64_MAX) {
		golang_image_release(&image);
		return err_set(err, -EBADMSG, "no ELF header at 0x%lx", addr);
	}
	image.bias = addr - first;
	(void)snprintf(image.path, sizeof(image.path), "%s", path);
	*ret_image = image;
	return 0;
}

static const struct proc_map *main_map(const struct proc_mem *mem)
{
	const struct proc_maps *maps = proc_mem_maps(mem);
	const struct proc_map *map = NULL;
	uint64_t entry;

	if (proc_mem_auxv(mem, AT_ENTRY, &entry))
		map = proc_maps_find(maps, entry);
	for (size_t i = 0; !map && i < maps->len; i++)
		if ((maps->maps[i].flags & PROC_MAP_EXEC) && maps->maps[i].path[0] == '/')
			map = &maps->maps[i];
	return map;
}

/* Tries the executable: 1 if it is Go, 0 if not, -errno. */
static int try_executable(struct golang_scan *scan, const struct proc_map *map,
			  const char *exe_path, enum golang_effort effort,
			  struct golang_image *ret_image, bool *ret_self_contained, struct err *err)
{
	struct golang_image image = {0};
	int r = image_from_file(scan->mem, map, exe_path, &image, err);

	/* The file is gone, replaced or unreadable, but memory still holds the program. */
	*ret_self_contained = true;
	if (r == -ESRCH || r == -ENOMEM || (r < 0 && exe_path))
		return r;
	if (r < 0)
		return 0;
	if (looks_go(&image, scan, effort)) {
		*ret_image = image;
		return 1;
	}
	*ret_self_contained = !has_interpreter(image.elf);
	golang_image_release(&image);
	return 0;
}

/*
 * Whether a mapping may be the first of a library: linkers map privately, starting with the header.
 *
 * Never open others: closing a file drops all locks this process holds on it through other
 * descriptors, and a process that queries our store has it mapped.
 */
static bool may_be_library(struct proc_mem *mem, const struct proc_map *map)
{
	char magic[SELFMAG];

	if (map->path[0] != '/' || map->offset != 0 || map->flags & PROC_MAP_SHARED)
		return false;
	/* A core may omit pages never written to. */
	return proc_mem_read(mem, map->start, magic, sizeof(magic), NULL) < 0 ||
	       memcmp(magic, ELFMAG, sizeof(magic)) == 0;
}

/* c-shared libraries and plugins: checks every file with code once. */
static int try_libraries(struct proc_mem *mem, const struct proc_map *skip,
			 struct golang_image *ret_image)
{
	const struct proc_maps *maps = proc_mem_maps(mem);
	/* Libraries are identified by their sections, never by a scan. */
	struct golang_scan nothing = {.mem = mem};
	const char *last = skip ? skip->path : "";
	uint64_t until = clock_mono_ns() + IMAGE_PATIENCE_NS;

	for (size_t i = 0, tried = 0; i < maps->len && tried < IMAGE_MAX_CANDIDATES; i++) {
		const struct proc_map *map = &maps->maps[i];
		struct golang_image image = {0};

		/* Mappings of a file are adjacent; the first one shows the ELF header. */
		if (strcmp(map->path, last) == 0 || !may_be_library(mem, map))
			continue;
		last = map->path;
		tried++;
		if (clock_mono_ns() > until)
			break;
		if (golang_image_of_map(mem, map, &image, NULL) < 0)
			continue;
		if (looks_go(&image, &nothing, GOLANG_GLANCE)) {
			*ret_image = image;
			return 1;
		}
		golang_image_release(&image);
	}
	return 0;
}

/* Programs that unpack themselves, and executables whose file is gone. */
static int try_memory(struct golang_scan *scan, struct golang_image *ret_image)
{
	const struct proc_maps *maps = proc_mem_maps(scan->mem);

	for (size_t i = 0, tried = 0;
	     i < maps->len && tried < IMAGE_MAX_CANDIDATES && scan->left > 0; i++) {
		const struct proc_map *map = &maps->maps[i];
		struct golang_image image = {0};

		if (!(map->flags & PROC_MAP_READ) || map->offset != 0)
			continue;
		tried++;
		if (image_from_memory(scan->mem, map->start, map->path, &image, NULL) < 0)
			continue;
		if (looks_go(&image, scan, GOLANG_SEARCH)) {
			*ret_image = image;
			return 1;
		}
		golang_image_release(&image);
	}
	return 0;
}

int golang_image_find(struct proc_mem *mem, const char *exe_path, enum golang_effort effort,
		      struct golang_image *ret_image, struct err *err)
{
	const struct proc_map *map = main_map(mem);
	struct golang_scan scan = golang_scan_of(mem);
	struct err why = {0};
	bool self_contained = true;
	int r = 0;

	if (effort == GOLANG_GLANCE)
		scan.left = IMAGE_GLANCE_BYTES;
	if (map)
		r = try_executable(&scan, map, exe_path, effort, ret_image, &self_contained, &why);
	if (r < 0)
		return err_pass(err, r, &why);
	if (r == 0 && !self_contained)
		r = try_libraries(mem, map, ret_image);
	if (r == 0 && self_contained)
		r = try_memory(&scan, ret_image);
	if (r > 0)
		return 0;
	/* Whatever it is written in. */
	if (why.cause == ERR_CAUSE_UNSUPPORTED)
		return err_lack(err, -ENOTSUP, why.cause, "", "unsupported: %.300s", why.text);
	if (why.text[0] && proc_mem_pid(mem) == 0)
		return err_lack(err, -ENOTSUP, ERR_CAUSE_NOT_GO,
				"specify the executable with --exe FILE",
				"no Go program found in the core: %.300s", why.text);
	return err_lack(err, -ENOTSUP, ERR_CAUSE_NOT_GO, "", "not a Go program");
}

int golang_image_back(const struct golang_image *image, struct proc_mem *mem, struct err *err)
{
	bool live = proc_mem_pid(mem) != 0;

	if (!image->from_file || elf_image_fd(image->elf) < 0)
		return 0;
	for (size_t i = 0; i < image->elf->n_segments; i++) {
		const struct elf_segment *s = &image->elf->segments[i];
		int r;

		/* A live target has modified its writable segments; a core may lack them. */
		if (s->type != PT_LOAD || s->filesz == 0 || (live && (s->flags & PF_W)))
			continue;
		r = proc_mem_back(mem, s->vaddr + image->bias, s->filesz, elf_image_fd(image->elf),
				  s->offset, err);
		if (r < 0)
			return r;
	}
	return 0;
}

int golang_image_version(const struct golang_image *image, struct proc_mem *mem,
			 struct golang_version *ret_version, struct err *err)
{
	const struct elf_section *s = elf_image_section(image->elf, ".go.buildinfo");
	struct golang_scan scan = {.mem = mem, .left = IMAGE_BUILDINFO_TOTAL};

	if (s && golang_buildinfo_read(mem, s->addr + image->bias, ret_version, err) == 0)
		return 0;
	for (size_t i = 0; i < image->elf->n_segments; i++) {
		const struct elf_segment *seg = &image->elf->segments[i];

		/*
		 * The linker puts it at the start of the data; scanning everything is not worth it.
		 */
		if (seg->type == PT_LOAD && (seg->flags & PF_W) &&
		    golang_buildinfo_scan(&scan, seg->vaddr + image->bias,
					  MIN(seg->filesz, IMAGE_BUILDINFO_SCAN), ret_version,
					  err) == 0)
			return 0;
	}
	return err_set(err, -ENOENT, "the program has no Go build info");
}
