/* src/cpu/unwind/files.c: see files.h. */
#include "cpu/unwind/files.h"

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
#include "cpu/unwind/file_headers.h"
#include "cpu/unwind/file_rows.h"
#include "cpu/unwind/file_tables.h"
#include "cpu/unwind/shares.h"
#include "elf/image.h"
#include "proc/file.h"
#include "proc/info.h"
#include "proc/text.h"

#define FILES_BUCKETS 4096U
#define FILES_KEEP_NS (60 * NS_PER_SEC)

struct file_key {
	uint64_t dev;
	uint64_t inode;
};

/* What is loaded at a time: a file, or a part of a large one. */
struct load {
	struct file *file;
	uint32_t id;
	bool is_wanted;		       /* in the wanted list, or being loaded */
	bool left_out;		       /* there is no room for its tables */
	struct elf_unwind_range range; /* of a part */
	struct cpu_file_table *table;  /* NULL: not loaded, or it has none */
};

struct file {
	struct cpu_file public;
	struct file_key key;
	uid_t uid;   /* of who mapped it first: it is part of that user's share */
	uid_t other; /* who else mapped it: PROC_UID_UNKNOWN if nobody did */
	bool is_cut; /* that share had no room for its parts, or for a table */
	struct stat stat;
	bool is_elf;
	bool is_closed; /* was open: it may be opened again */
	uint32_t refs;
	uint64_t unused_since_ns;
	struct cpu_file_headers headers;
	struct load whole;
	struct load *parts; /* instead, or NULL */
	uint32_t n_parts;
	struct file *next; /* in its bucket */
};

struct cpu_files {
	struct cpu_sampler_file *shared;
	struct cpu_tables *tables;
	struct interp_layouts *layouts;
	struct cpu_file_tables shared_tables;
	/* By id. */
	struct file *slots[CPU_FILES_MAX];
	struct load *loads[CPU_FILES_MAX];
	struct file *buckets[FILES_BUCKETS];
	struct cpu_shares open; /* files: others need descriptors, too */
	struct cpu_shares ids;
	uint32_t hint;
	uint32_t generation;
	uint64_t lost;
	uint32_t wanted[CPU_FILES_MAX];
	uint32_t n_wanted;
	void (*on_close)(void *context, const struct cpu_file *file);
	void *context;
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
	f->ids.max = f->open.max = CPU_FILES_MAX;
	if (getrlimit(RLIMIT_NOFILE, &fds) == 0 && fds.rlim_cur / 2 < f->open.max)
		f->open.max = (uint32_t)(fds.rlim_cur / 2);
	*ret_files = f;
	return 0;
}

static struct file **files_bucket(struct cpu_files *f, const struct file_key *key)
{
	return &f->buckets[hash_bytes(key, sizeof(*key)) % FILES_BUCKETS];
}

static struct load *file_loads(struct file *file, uint32_t *ret_n)
{
	*ret_n = file->parts ? file->n_parts : 1;
	return file->parts ? file->parts : &file->whole;
}

static void load_release(struct cpu_files *f, struct load *load)
{
	for (uint32_t i = 0; i < f->n_wanted && load->is_wanted; i++)
		if (f->wanted[i] == load->id) {
			f->wanted[i] = f->wanted[--f->n_wanted];
			break;
		}
	cpu_file_tables_give(&f->shared_tables, f->tables, load->table);
	f->shared[load->id] = (struct cpu_sampler_file){0};
	f->loads[load->id] = NULL;
}

static void file_close(struct cpu_files *f, struct file *file)
{
	if (file->public.fd < 0)
		return;
	if (f->on_close)
		f->on_close(f->context, &file->public);
	close(file->public.fd);
	file->public.fd = -1;
	file->is_closed = true;
}

static void file_free(struct cpu_files *f, struct file *file)
{
	struct file **at = files_bucket(f, &file->key);
	uint32_t n;
	struct load *loads = file_loads(file, &n);

	while (*at && *at != file)
		at = &(*at)->next;
	if (*at)
		*at = file->next;
	for (uint32_t i = 0; i < n; i++)
		load_release(f, &loads[i]);
	f->shared[file->public.id] = (struct cpu_sampler_file){0};
	f->slots[file->public.id] = NULL;
	cpu_shares_give(&f->open, file->uid, 1);
	cpu_shares_give(&f->ids, file->uid, 1 + file->n_parts);
	file_close(f, file);
	free(file->parts);
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

static bool file_has_stat(const struct file *file, int fd)
{
	struct stat st;

	return io_stat(fd, &st) == 0 && st.st_dev == file->stat.st_dev &&
	       st.st_ino == file->stat.st_ino && st.st_size == file->stat.st_size &&
	       st.st_ctim.tv_sec == file->stat.st_ctim.tv_sec &&
	       st.st_ctim.tv_nsec == file->stat.st_ctim.tv_nsec;
}

/* Opens a closed file again, if it is still the same. */
static bool file_reopen(struct file *file, pid_t pid, const struct proc_map *map)
{
	_cleanup_close_ int fd = -1;

	if (!file->is_closed || proc_file_open_mapped(pid, map, &fd, NULL) < 0 ||
	    !file_has_stat(file, fd))
		return false;
	file->public.fd = TAKE_FD(fd);
	file->is_closed = false;
	return true;
}

static bool file_is_same(struct file *file, const struct file_key *key, pid_t pid,
			 const struct proc_map *map)
{
	if (memcmp(&file->key, key, sizeof(*key)) != 0)
		return false;
	if (file->public.is_vdso)
		return true;
	/* Our descriptor keeps the inode from being reused, but the file can be overwritten. */
	return file->public.fd >= 0 ? file_has_stat(file, file->public.fd)
				    : file_reopen(file, pid, map);
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
	cpu_runtime_detect(image, file->public.path, &file->public.runtime);
	cpu_file_headers_read(image, &file->headers);
}

/* The first of n free ids in a row. */
static int files_free_ids(struct cpu_files *f, uint32_t n, uint32_t *ret)
{
	uint32_t run = 0;

	for (uint32_t i = 0; i < CPU_FILES_MAX; i++) {
		uint32_t id = (f->hint + i) % CPU_FILES_MAX;

		run = id == 0 ? 0 : run;
		run = f->slots[id] || f->loads[id] ? 0 : run + 1;
		if (run < n)
			continue;
		f->hint = id + 1;
		*ret = id + 1 - n;
		return 0;
	}
	return -ENOSPC;
}

static bool file_take_parts(struct cpu_files *f, struct file *file, uint32_t n, uint32_t *ret_first)
{
	if (!cpu_shares_allow(&f->ids, file->uid, n) || files_free_ids(f, n, ret_first) < 0)
		return false;
	file->parts = calloc(n, sizeof(*file->parts));
	if (!file->parts)
		return false;
	file->n_parts = n;
	cpu_shares_take(&f->ids, file->uid, n);
	return true;
}

/* If there are not enough ids, a large file has no tables. */
static void file_divide(struct cpu_files *f, struct file *file)
{
	struct cpu_sampler_file *shared = &f->shared[file->public.id];
	bool keeps_fp = file->public.runtime.kind == CPU_RUNTIME_V8;
	uint64_t first_page = 0;
	uint32_t n = cpu_file_headers_parts(&file->headers, &first_page), first = 0;

	if (!n)
		return;
	if (!file_take_parts(f, file, n, &first)) {
		shared->state = CPU_SAMPLER_FILE_CHAIN;
		file->is_cut = true;
		f->lost++;
		return;
	}
	for (uint32_t i = 0; i < n; i++) {
		uint64_t page = first_page + (uint64_t)i * CPU_SAMPLER_PART_PAGES;

		file->parts[i] = (struct load){
			.file = file,
			.id = first + i,
			.range = {.from = page << CPU_SAMPLER_PAGE_BITS,
				  .to = (page + CPU_SAMPLER_PART_PAGES) << CPU_SAMPLER_PAGE_BITS}};
		f->loads[first + i] = &file->parts[i];
		f->shared[first + i] = (struct cpu_sampler_file){.state = CPU_SAMPLER_FILE_NEW,
								 .keeps_fp = keeps_fp};
	}
	f->loads[file->public.id] = NULL;
	shared->index = first;
	shared->n_pages = n << CPU_SAMPLER_PART_BITS;
	shared->first_page = first_page;
	__atomic_store_n(&shared->state, CPU_SAMPLER_FILE_PARTS, __ATOMIC_RELEASE);
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

static int files_create(struct cpu_files *f, pid_t pid, uid_t uid, const struct proc_map *map,
			const struct file_key *key, struct file **ret)
{
	struct file *file;
	uint32_t id;
	int r;

	if (!cpu_shares_allow(&f->open, uid, 1) || !cpu_shares_allow(&f->ids, uid, 1))
		return -ENOSPC;
	r = files_free_ids(f, 1, &id);
	if (r < 0)
		return r;
	file = calloc(1, sizeof(*file));
	if (!file)
		return -ENOMEM;
	file->key = *key;
	file->uid = uid;
	file->other = PROC_UID_UNKNOWN;
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
	f->shared[id] = (struct cpu_sampler_file){
		.state = file->is_elf ? CPU_SAMPLER_FILE_NEW : CPU_SAMPLER_FILE_CHAIN,
		.keeps_fp = file->public.runtime.kind == CPU_RUNTIME_V8};
	f->slots[id] = file;
	cpu_shares_take(&f->open, uid, 1);
	cpu_shares_take(&f->ids, uid, 1);
	file->whole = (struct load){.file = file, .id = id};
	f->loads[id] = &file->whole;
	file_divide(f, file);
	file->next = *files_bucket(f, key);
	*files_bucket(f, key) = file;
	*ret = file;
	return 0;
}

/* Moves it to the share of another user that maps it, if that has room for more. */
static bool file_hand_over(struct cpu_files *f, struct file *file, uid_t uid)
{
	uint32_t n = 1 + file->n_parts;

	if (uid == PROC_UID_UNKNOWN || uid == file->uid || cpu_tables_are_short(f->tables, uid) ||
	    !cpu_shares_allow(&f->open, uid, 1) || !cpu_shares_allow(&f->ids, uid, n))
		return false;
	cpu_shares_give(&f->open, file->uid, 1);
	cpu_shares_give(&f->ids, file->uid, n);
	cpu_shares_take(&f->open, uid, 1);
	cpu_shares_take(&f->ids, uid, n);
	file->other = file->uid;
	file->uid = uid;
	return true;
}

/* Its tables may be requested again. */
static void load_retry(struct cpu_files *f, struct load *load)
{
	if (!load->left_out)
		return;
	load->left_out = false;
	f->shared[load->id].state = CPU_SAMPLER_FILE_NEW;
}

/* One more user: what the first one has no room for may fit in here. */
static void file_meet(struct cpu_files *f, struct file *file, uid_t uid)
{
	struct load *loads;
	uint32_t n;

	if (uid != file->uid && (file->other == PROC_UID_UNKNOWN || uid == 0 ||
				 cpu_tables_are_short(f->tables, file->other)))
		file->other = uid;
	if (!file->is_cut || !file_hand_over(f, file, uid))
		return;
	file->is_cut = false;
	if (!file->parts)
		file_divide(f, file);
	loads = file_loads(file, &n);
	for (uint32_t i = 0; i < n; i++)
		load_retry(f, &loads[i]);
}

int cpu_files_open(struct cpu_files *f, pid_t pid, uid_t uid, const struct proc_map *map,
		   uint32_t *ret_id, uint64_t *ret_bias)
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
		if (file_is_same(file, &key, pid, map))
			break;
	if (!file) {
		r = files_create(f, pid, uid, map, &key, &file);
		if (r < 0) {
			f->lost++;
			return r;
		}
		file->unused_since_ns = clock_mono_ns();
	}
	file_meet(f, file, uid);
	if (file->public.fd >= 0 && !file->is_elf) {
		*ret_id = CPU_FILE_NONE;
		*ret_bias = 0;
		return 0;
	}
	file->refs++;
	*ret_id = file->public.id;
	*ret_bias = cpu_file_headers_bias(&file->headers, map);
	return 0;
}

void cpu_files_unref(struct cpu_files *f, uint32_t id)
{
	struct file *file = id < CPU_FILES_MAX ? f->slots[id] : NULL;

	if (!file || --file->refs)
		return;
	file->unused_since_ns = clock_mono_ns();
	/* If it could never be opened, it can never be matched again. */
	if (file->public.fd < 0 && !file->is_closed && !file->public.is_vdso)
		file_free(f, file);
}

static void load_drop(struct cpu_files *f, struct load *load)
{
	f->shared[load->id].state = CPU_SAMPLER_FILE_NEW;
	cpu_file_tables_give(&f->shared_tables, f->tables, TAKE_PTR(load->table));
}

/* All of a user who has too many: they are made anew for every attempt. */
static bool files_drop_unused(struct cpu_files *f, uid_t uid)
{
	bool any = false;

	for (size_t i = 0; i < CPU_FILES_MAX; i++) {
		struct load *load = f->loads[i];

		if (!load || load->file->refs || !load->table || load->table->table.uid != uid)
			continue;
		load_drop(f, load);
		any = true;
	}
	return any;
}

/* Frees the tables of unmapped files to make room for mapped ones. */
static bool files_make_room(void *context, uid_t uid, int why)
{
	struct cpu_files *f = context;
	struct load *oldest = NULL;

	if (why == -EDQUOT)
		return files_drop_unused(f, uid);

	for (size_t i = 0; i < CPU_FILES_MAX; i++) {
		struct load *load = f->loads[i];

		if (load && !load->file->refs && load->table &&
		    (!oldest || load->file->unused_since_ns < oldest->file->unused_since_ns))
			oldest = load;
	}
	if (!oldest)
		return false;
	load_drop(f, oldest);
	return true;
}

static int load_compile(struct cpu_files *f, struct load *load, const struct cpu_pause *pause)
{
	const struct cpu_file_loading loading = {
		.uid = load->file->uid, .make_room = files_make_room, .context = f, .pause = pause};

	return cpu_file_tables_take(&f->shared_tables, f->tables, &load->file->public,
				    load->file->parts ? &load->range : NULL, &loading,
				    &load->table);
}

static void files_load(struct cpu_files *f, struct load *load, const struct cpu_pause *pause)
{
	struct cpu_sampler_file *shared = &f->shared[load->id];
	int r = load_compile(f, load, pause);

	if (r == -EDQUOT && file_hand_over(f, load->file, load->file->other))
		r = load_compile(f, load, pause);
	if (r == -ENOSPC || r == -EDQUOT) {
		load->left_out = true;
		load->file->is_cut |= r == -EDQUOT;
		f->lost++;
	}
	if (r >= 0) {
		shared->index = load->table->table.index;
		shared->n_pages = load->table->table.n_pages;
		shared->first_page = load->table->table.first_page;
	}
	__atomic_store_n(&shared->state, r >= 0 ? CPU_SAMPLER_FILE_TABLE : CPU_SAMPLER_FILE_CHAIN,
			 __ATOMIC_RELEASE);
}

void cpu_files_want(struct cpu_files *f, uint32_t id)
{
	struct load *load = id < CPU_FILES_MAX ? f->loads[id] : NULL;

	if (!load || load->is_wanted || load->table ||
	    f->shared[id].state == CPU_SAMPLER_FILE_CHAIN)
		return;
	/* The process that wanted it has ended, and so will its other files. */
	if (load->file->is_closed) {
		f->shared[id].state = CPU_SAMPLER_FILE_NEW;
		return;
	}
	load->is_wanted = true;
	f->wanted[f->n_wanted++] = id;
}

void cpu_files_want_at(struct cpu_files *f, uint32_t id, uint64_t vaddr)
{
	const struct file *file = id < CPU_FILES_MAX ? f->slots[id] : NULL;
	uint64_t page;

	if (!file || !file->parts) {
		cpu_files_want(f, id);
		return;
	}
	page = (vaddr >> CPU_SAMPLER_PAGE_BITS) - f->shared[id].first_page;
	if (page < f->shared[id].n_pages)
		cpu_files_want(f, f->shared[id].index + (uint32_t)(page >> CPU_SAMPLER_PART_BITS));
}

static uint64_t load_size(const struct load *load)
{
	return load->file->parts ? load->range.to - load->range.from
				 : (uint64_t)load->file->stat.st_size;
}

bool cpu_files_load_next(struct cpu_files *f, const struct cpu_pause *pause)
{
	struct load *load;
	uint32_t best = 0;

	if (!f->n_wanted)
		return false;
	for (uint32_t i = 1; i < f->n_wanted; i++)
		if (load_size(f->loads[f->wanted[i]]) < load_size(f->loads[f->wanted[best]]))
			best = i;
	load = f->loads[f->wanted[best]];
	f->wanted[best] = f->wanted[--f->n_wanted];
	/* Its last user may go meanwhile; a new request for it joins this load. */
	load->file->refs++;
	files_load(f, load, pause);
	load->is_wanted = false;
	cpu_files_unref(f, load->file->public.id);
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

void cpu_files_on_close(struct cpu_files *f,
			void (*on_close)(void *context, const struct cpu_file *file), void *context)
{
	f->on_close = on_close;
	f->context = context;
}

static bool file_has_table(struct file *file)
{
	uint32_t n;
	const struct load *loads = file_loads(file, &n);

	for (uint32_t i = 0; i < n; i++)
		if (loads[i].table)
			return true;
	return false;
}

void cpu_files_sweep(struct cpu_files *f, uint64_t now_ns)
{
	bool room = false;

	for (size_t i = 0; i < CPU_FILES_MAX && f->open.used; i++) {
		struct file *file = f->slots[i];

		if (!file || file->refs)
			continue;
		file_close(f, file);
		/* When a user has many files, keep none of them for later. */
		if (!cpu_shares_are_short(&f->open, file->uid) &&
		    !cpu_shares_are_short(&f->ids, file->uid) &&
		    !cpu_tables_are_short(f->tables, file->uid) &&
		    now_ns - file->unused_since_ns < FILES_KEEP_NS)
			continue;
		room |= file_has_table(file);
		file_free(f, file);
	}
	if (!room)
		return;
	for (size_t i = 0; i < CPU_FILES_MAX; i++)
		if (f->loads[i])
			load_retry(f, f->loads[i]);
	cpu_tables_trim(f->tables);
}

uint64_t cpu_files_lost(const struct cpu_files *f)
{
	return f->lost;
}
