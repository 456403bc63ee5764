/* src/agent/schedule/builds.c: see builds.h. */
#include "agent/schedule/builds.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "elf/image.h"
#include "proc/file.h"

/* Executables that run at a time; of more, those read last are known. */
#define BUILDS_MAX 512

struct build_file {
	/* Another file, or other contents, differ in one of these. */
	struct {
		uint64_t dev, inode, size;
		struct timespec modified, changed;
	} key;
	char build_id[sizeof((struct proc_info *)NULL)->build_id];
	bool is_go;
};

struct agent_builds {
	pthread_mutex_t lock;
	uint64_t n_read;
	struct build_file files[BUILDS_MAX]; /* a ring */
};

struct agent_builds *agent_builds_new(void)
{
	struct agent_builds *b = calloc(1, sizeof(*b));

	if (!b || pthread_mutex_init(&b->lock, NULL)) {
		free(b);
		return NULL;
	}
	return b;
}

void agent_builds_free(struct agent_builds *b)
{
	if (!b)
		return;
	(void)pthread_mutex_destroy(&b->lock);
	free(b);
}

static bool builds_recall(struct agent_builds *b, struct build_file *file)
{
	bool found = false;

	(void)pthread_mutex_lock(&b->lock);
	for (size_t i = 0; !found && i < MIN(b->n_read, (uint64_t)BUILDS_MAX); i++) {
		found = memcmp(&b->files[i].key, &file->key, sizeof(file->key)) == 0;
		if (found)
			*file = b->files[i];
	}
	(void)pthread_mutex_unlock(&b->lock);
	return found;
}

static void builds_keep(struct agent_builds *b, const struct build_file *file)
{
	(void)pthread_mutex_lock(&b->lock);
	b->files[b->n_read++ % BUILDS_MAX] = *file;
	(void)pthread_mutex_unlock(&b->lock);
}

/* False if it could not be read; a file that is no ELF file, or names no build, has none. */
static bool build_read(const struct proc_info *info, struct build_file *file)
{
	/* Wherever it is mapped: the executable is looked for, too. */
	const struct proc_map map = {
		.path = info->exe, .dev = file->key.dev, .inode = file->key.inode};
	_cleanup_(elf_image_closep) struct elf_image *image = NULL;
	_cleanup_close_ int fd = -1;
	int r = proc_file_open_mapped(info->id.pid, &map, &fd, NULL);

	if (r == 0)
		r = elf_image_open_fd(fd, &image, NULL);
	if (r < 0)
		return r == -EBADMSG;
	if (!elf_image_build_id(image, file->build_id, sizeof(file->build_id)))
		file->is_go = elf_image_go_build_id(image, file->build_id, sizeof(file->build_id));
	return true;
}

bool agent_builds_find(struct agent_builds *b, const struct agent_processes_ops *procs,
		       struct proc_info *info)
{
	_cleanup_close_ int path_fd = -1;
	struct build_file file = {0};
	bool is_new;
	struct stat st;

	info->build_id[0] = 0;
	if (procs->executable(info->id.pid, &path_fd) < 0 || io_stat(path_fd, &st) < 0)
		return false;
	file.key.dev = st.st_dev;
	file.key.inode = st.st_ino;
	file.key.size = (uint64_t)st.st_size;
	file.key.modified = st.st_mtim;
	file.key.changed = st.st_ctim;
	is_new = !builds_recall(b, &file);
	if (is_new) {
		if (!build_read(info, &file))
			return false;
		builds_keep(b, &file);
	}
	memcpy(info->build_id, file.build_id, sizeof(info->build_id));
	info->build_is_go = file.is_go;
	return is_new;
}
