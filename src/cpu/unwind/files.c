/* src/cpu/unwind/files.c: see files.h. */
#include "cpu/unwind/files.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/io.h"
#include "base/view.h"
#include "cpu/unwind/file_rows.h"
#include "cpu/unwind/file_tables.h"
#include "elf/image.h"
#include "proc/file.h"
#include "proc/text.h"

#define FILES_BUCKETS 4096U
#define FILES_KEEP_NS (60 * NS_PER_SEC)
#define FILES_SEGMENTS_MAX 16

struct file_key {
	uint64_t dev;
	uint64_t inode;
};

struct file_segment {
	uint64_t offset;
	uint64_t size;
	uint64_t vaddr;
};

struct file {
	struct cpu_file public;
	struct file_key key;
	struct stat stat;
	bool is_elf;
	bool is_wanted; /* in the wanted list, or being loaded */
	bool left_out;	/* there is no room for its tables */
	uint32_t refs;
	uint64_t unused_since_ns;
	struct file_segment segments[FILES_SEGMENTS_MAX]; /* executable ones */
	size_t n_segments;
	struct cpu_file_table *table; /* NULL: not loaded, or it has none */
	struct file *next;	      /* in its bucket */
};

struct cpu_files {
	struct cpu_sampler_file *shared;
	struct cpu_tables *tables;
	struct interp_layouts *layouts;
	struct cpu_file_tables shared_tables;
	struct file *slots[CPU_FILES_MAX];
	struct file *buckets[FILES_BUCKETS];
	uint32_t len;
	uint32_t limit; /* on open files: others need descriptors, too */
	uint32_t hint;
	uint32_t generation;
	uint64_t lost;
	uint32_t wanted[CPU_FILES_MAX];
	uint32_t n_wanted;
};

int cpu_files_new(struct cpu_sampler_file *shared, struct cpu_tables *tables,
		  struct interp_layouts *layouts, struct cpu_files **ret_files, struct err *err)
{
	struct cpu_files *f = calloc(1, sizeof(*f));
	struct rlimit fds;

	_Static_assert(CPU_FILES_MAX == CPU_SAMPLER_FILES, "ids are those of BPF");
	_Static_assert(CPU_FILE_NONE == CPU_SAMPLER_NO_FILE, "ids are those of BPF");
	if (!f)
		return err_oom(err);
	f->shared = shared;
	f->tables = tables;
	f->layouts = layouts;
	f->limit = CPU_FILES_MAX;
	if (getrlimit(RLIMIT_NOFILE, &fds) == 0 && fds.rlim_cur / 2 < f->limit)
		f->limit = (uint32_t)(fds.rlim_cur / 2);
	*ret_files = f;
	return 0;
}

static struct file **files_bucket(struct cpu_files *f, const struct file_key *key)
{
	return &f->buckets[hash_bytes(key, sizeof(*key)) % FILES_BUCKETS];
}

static void file_free(struct cpu_files *f, struct file *file)
{
	struct file **at = files_bucket(f, &file->key);

	while (*at && *at != file)
		at = &(*at)->next;
	if (*at)
		*at = file->next;
	for (uint32_t i = 0; i < f->n_wanted && file->is_wanted; i++)
		if (f->wanted[i] == file->public.id) {
			f->wanted[i] = f->wanted[--f->n_wanted];
			break;
		}
	cpu_file_tables_give(&f->shared_tables, f->tables, file->table);
	f->shared[file->public.id] = (struct cpu_sampler_file){0};
	f->slots[file->public.id] = NULL;
	f->len--;
	if (file->public.fd >= 0)
		close(file->public.fd);
	free((char *)file->public.path);
	free(file);
}

void cpu_files_free(struct cpu_files *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < CPU_FILES_MAX; i++)
		if (f->slots[i])
			file_free(f, f->slots[i]);
	free(f);
}

static bool file_is_same(const struct file *file, const struct file_key *key)
{
	struct stat st;

	if (memcmp(&file->key, key, sizeof(*key)) != 0)
		return false;
	if (file->public.is_vdso)
		return true;
	/* Our descriptor keeps the inode from being reused, but the file can be overwritten. */
	return file->public.fd >= 0 && io_stat(file->public.fd, &st) == 0 &&
	       st.st_size == file->stat.st_size && st.st_ctim.tv_sec == file->stat.st_ctim.tv_sec &&
	       st.st_ctim.tv_nsec == file->stat.st_ctim.tv_nsec;
}

static void file_read_headers(struct cpu_files *f, struct file *file)
{
	_cleanup_(elf_image_closep) struct elf_image *image = NULL;
	int r;

	if (file->public.is_vdso)
		r = cpu_file_image_vdso(&image);
	else
		r = elf_image_open_fd(file->public.fd, &image, NULL);
	if (r < 0)
		return;
	file->is_elf = true;
	(void)elf_image_build_id(image, file->public.build_id, sizeof(file->public.build_id));
	interp_detect(f->layouts, image, file->public.path, &file->public.interp);
	for (size_t i = 0; i < image->n_segments && file->n_segments < FILES_SEGMENTS_MAX; i++) {
		const struct elf_segment *s = &image->segments[i];

		if (s->type == PT_LOAD && (s->flags & PF_X))
			file->segments[file->n_segments++] = (struct file_segment){
				.offset = s->offset,
				.size = s->filesz,
				.vaddr = s->vaddr,
			};
	}
}

static int files_free_slot(struct cpu_files *f, uint32_t *ret)
{
	if (f->len >= f->limit)
		return -ENOSPC;
	for (uint32_t i = 0; i < CPU_FILES_MAX; i++) {
		uint32_t slot = (f->hint + i) % CPU_FILES_MAX;

		if (f->slots[slot])
			continue;
		f->hint = slot + 1;
		*ret = slot;
		return 0;
	}
	return -ENOSPC;
}

static int file_name(struct file *file, const char *path)
{
	size_t len = strlen(path) + 1;
	char *copy = malloc(len);

	if (!copy)
		return -ENOMEM;
	proc_text_copy(copy, len, view_str(path));
	file->public.path = copy;
	return 0;
}

static int files_create(struct cpu_files *f, pid_t pid, const struct proc_map *map,
			const struct file_key *key, struct file **ret)
{
	struct file *file;
	uint32_t id;
	int r = files_free_slot(f, &id);

	if (r < 0)
		return r;
	file = calloc(1, sizeof(*file));
	if (!file)
		return -ENOMEM;
	file->key = *key;
	file->public.id = id;
	file->public.fd = -1;
	file->public.is_vdso = strcmp(map->path, "[vdso]") == 0;
	r = file_name(file, map->path);
	if (r < 0) {
		free(file);
		return r;
	}
	if (!file->public.is_vdso && proc_file_open_mapped(pid, map, &file->public.fd, NULL) >= 0)
		(void)io_stat(file->public.fd, &file->stat);
	if (file->public.is_vdso || file->public.fd >= 0)
		file_read_headers(f, file);
	file->public.generation = ++f->generation;
	f->shared[id] = (struct cpu_sampler_file){.state = file->is_elf ? CPU_SAMPLER_FILE_NEW
									: CPU_SAMPLER_FILE_CHAIN};
	f->slots[id] = file;
	f->len++;
	file->next = *files_bucket(f, key);
	*files_bucket(f, key) = file;
	*ret = file;
	return 0;
}

static uint64_t file_bias(const struct file *file, const struct proc_map *map)
{
	/* Round down: mappings start at pages. The vdso is mapped whole, with offset 0. */
	for (size_t i = 0; i < file->n_segments; i++) {
		const struct file_segment *s = &file->segments[i];
		uint64_t first = s->offset & ~(uint64_t)(CPU_SAMPLER_PAGE_SIZE - 1);

		if (map->offset >= first && map->offset < s->offset + s->size)
			return map->start - (s->vaddr - s->offset + map->offset);
	}
	return map->start - map->offset;
}

int cpu_files_open(struct cpu_files *f, pid_t pid, const struct proc_map *map, uint32_t *ret_id,
		   uint64_t *ret_bias)
{
	struct file_key key = {.dev = map->dev, .inode = map->inode};
	bool is_vdso = strcmp(map->path, "[vdso]") == 0;
	struct file *file;
	int r;

	if (!is_vdso && !map->inode) {
		*ret_id = CPU_FILE_NONE;
		*ret_bias = 0;
		return 0;
	}
	for (file = *files_bucket(f, &key); file; file = file->next)
		if (file_is_same(file, &key))
			break;
	if (!file) {
		r = files_create(f, pid, map, &key, &file);
		if (r < 0) {
			f->lost++;
			return r;
		}
		file->unused_since_ns = clock_mono_ns();
	}
	if (file->public.fd >= 0 && !file->is_elf) {
		*ret_id = CPU_FILE_NONE;
		*ret_bias = 0;
		return 0;
	}
	file->refs++;
	*ret_id = file->public.id;
	*ret_bias = file_bias(file, map);
	return 0;
}

void cpu_files_unref(struct cpu_files *f, uint32_t id)
{
	struct file *file = id < CPU_FILES_MAX ? f->slots[id] : NULL;

	if (!file || --file->refs)
		return;
	file->unused_since_ns = clock_mono_ns();
	/* Without a descriptor it can never be matched again. */
	if (file->public.fd < 0 && !file->public.is_vdso)
		file_free(f, file);
}

/* Frees the tables of unmapped files to make room for mapped ones. */
static bool files_make_room(void *context)
{
	struct cpu_files *f = context;
	struct file *oldest = NULL;

	for (size_t i = 0; i < CPU_FILES_MAX; i++) {
		struct file *file = f->slots[i];

		if (file && !file->refs && file->table &&
		    (!oldest || file->unused_since_ns < oldest->unused_since_ns))
			oldest = file;
	}
	if (!oldest)
		return false;
	f->shared[oldest->public.id].state = CPU_SAMPLER_FILE_NEW;
	cpu_file_tables_give(&f->shared_tables, f->tables, TAKE_PTR(oldest->table));
	return true;
}

static void files_load(struct cpu_files *f, struct file *file, const struct cpu_pause *pause)
{
	const struct cpu_file_loading loading = {
		.make_room = files_make_room, .context = f, .pause = pause};
	struct cpu_sampler_file *shared = &f->shared[file->public.id];
	int r;

	r = cpu_file_tables_take(&f->shared_tables, f->tables, &file->public, &loading,
				 &file->table);
	if (r == -ENOSPC) {
		file->left_out = true;
		f->lost++;
	}
	if (r >= 0) {
		shared->index = file->table->table.index;
		shared->n_pages = file->table->table.n_pages;
		shared->first_page = file->table->table.first_page;
	}
	__atomic_store_n(&shared->state, r >= 0 ? CPU_SAMPLER_FILE_TABLE : CPU_SAMPLER_FILE_CHAIN,
			 __ATOMIC_RELEASE);
}

void cpu_files_want(struct cpu_files *f, uint32_t id)
{
	struct file *file = id < CPU_FILES_MAX ? f->slots[id] : NULL;

	if (!file || file->is_wanted || file->table ||
	    f->shared[id].state == CPU_SAMPLER_FILE_CHAIN)
		return;
	file->is_wanted = true;
	f->wanted[f->n_wanted++] = id;
}

bool cpu_files_load_next(struct cpu_files *f, const struct cpu_pause *pause)
{
	struct file *file;
	uint32_t best = 0;

	if (!f->n_wanted)
		return false;
	for (uint32_t i = 1; i < f->n_wanted; i++)
		if (f->slots[f->wanted[i]]->stat.st_size < f->slots[f->wanted[best]]->stat.st_size)
			best = i;
	file = f->slots[f->wanted[best]];
	f->wanted[best] = f->wanted[--f->n_wanted];
	/* Its last user may go meanwhile; a new request for it joins this load. */
	file->refs++;
	files_load(f, file, pause);
	file->is_wanted = false;
	cpu_files_unref(f, file->public.id);
	return true;
}

bool cpu_files_is_wanted(const struct cpu_files *f)
{
	return f->n_wanted > 0;
}

const struct cpu_file *cpu_files_get(const struct cpu_files *f, uint32_t id, uint32_t generation)
{
	const struct file *file = id < CPU_FILES_MAX ? f->slots[id] : NULL;

	return file && file->public.generation <= generation ? &file->public : NULL;
}

uint32_t cpu_files_generation(const struct cpu_files *f)
{
	return f->generation;
}

void cpu_files_sweep(struct cpu_files *f, uint64_t now_ns)
{
	bool room = false;

	for (size_t i = 0; i < CPU_FILES_MAX && f->len; i++) {
		struct file *file = f->slots[i];

		if (!file || file->refs)
			continue;
		/* When there are many files, keep none for later. */
		if (f->len < f->limit - f->limit / 4 &&
		    now_ns - file->unused_since_ns < FILES_KEEP_NS)
			continue;
		room |= file->table != NULL;
		file_free(f, file);
	}
	if (!room)
		return;
	for (size_t i = 0; i < CPU_FILES_MAX; i++) {
		struct file *file = f->slots[i];

		if (!file || !file->left_out)
			continue;
		file->left_out = false;
		f->shared[i].state = CPU_SAMPLER_FILE_NEW;
	}
	cpu_tables_trim(f->tables);
}

uint64_t cpu_files_lost(const struct cpu_files *f)
{
	return f->lost;
}
