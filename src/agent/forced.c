/* src/agent/forced.c: see forced.h. */
#include "agent/forced.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/hash.h"
#include "base/io.h"
#include "golang/force.h"
#include "golang/process.h"

#define FORCED_MAX ((size_t)4096)
#define FORCED_FILE_MAX (FORCED_MAX * 128)

struct forced_rates {
	pthread_mutex_t lock;
	char *dir;
	char *path;
	char *path_new;
	struct forced_rate *rates;
	size_t len;
};

void forced_rates_close(struct forced_rates *f)
{
	if (!f)
		return;
	(void)pthread_mutex_destroy(&f->lock);
	free(f->dir);
	free(f->path);
	free(f->path_new);
	free(f->rates);
	free(f);
}

/* Writes all notes beside the file, and puts them in its place when they are on the disk. */
static int forced_save(struct forced_rates *f, struct err *err)
{
	_cleanup_(buf_release) struct buf text = buf_with_max(FORCED_FILE_MAX);
	_cleanup_close_ int fd = -1, dir = -1;
	int r = 0;

	for (size_t i = 0; r == 0 && i < f->len; i++) {
		const struct forced_rate *x = &f->rates[i];

		r = buf_printf(&text, "%d %" PRIu64 " %" PRIx64 " %" PRId64 " %" PRId64 "\n",
			       (int)x->id.pid, x->id.start_ticks, x->space, x->old, x->ours);
	}
	if (r < 0)
		return err_oom(err);
	fd = open(f->path_new, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	dir = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	r = fd < 0 || dir < 0 ? -errno : io_write_full(fd, text.data, text.len);
	if (r == 0 && (fsync(fd) < 0 || rename(f->path_new, f->path) < 0 || fsync(dir) < 0))
		r = -errno;
	return r < 0 ? err_set(err, r, "cannot note forced rates in %s: %s", f->path, strerror(-r))
		     : 0;
}

/* Takes the number off the line; false when there is none. */
static bool forced_number(char **line, int base, uint64_t *ret_number)
{
	char *end;

	errno = 0;
	*ret_number = strtoull(*line, &end, base);
	if (errno || end == *line || **line == '-' || (*end && *end != ' '))
		return false;
	*line = *end ? end + 1 : end;
	return true;
}

static bool forced_parse_line(char *line, struct forced_rate *ret_rate)
{
	uint64_t pid, old, ours;
	struct forced_rate x;

	if (!forced_number(&line, 10, &pid) || !forced_number(&line, 10, &x.id.start_ticks) ||
	    !forced_number(&line, 16, &x.space) || !forced_number(&line, 10, &old) ||
	    !forced_number(&line, 10, &ours) || *line)
		return false;
	if (pid == 0 || pid > INT_MAX || old > INT64_MAX || ours > INT64_MAX)
		return false;
	x.id.pid = (pid_t)pid;
	x.old = (int64_t)old;
	x.ours = (int64_t)ours;
	*ret_rate = x;
	return true;
}

static void forced_parse(struct forced_rates *f, char *text)
{
	char *rest = text, *line;

	while ((line = strsep(&rest, "\n")) && f->len < FORCED_MAX)
		if (forced_parse_line(line, &f->rates[f->len]))
			f->len++;
}

int forced_rates_open(const char *dir, struct forced_rates **ret_forced, struct err *err)
{
	_cleanup_(forced_rates_closep) struct forced_rates *f = calloc(1, sizeof(*f));
	_cleanup_(buf_release) struct buf text = buf_with_max(FORCED_FILE_MAX);
	const char *s;
	int r;

	if (!f || pthread_mutex_init(&f->lock, NULL))
		return err_oom(err);
	f->dir = strdup(dir);
	f->rates = calloc(FORCED_MAX, sizeof(*f->rates));
	if (asprintf(&f->path, "%s/forced-rates", dir) < 0)
		f->path = NULL;
	if (asprintf(&f->path_new, "%s/forced-rates.new", dir) < 0)
		f->path_new = NULL;
	if (!f->dir || !f->rates || !f->path || !f->path_new)
		return err_oom(err);
	r = io_read_file(AT_FDCWD, f->path, &text, err);
	if (r < 0 && r != -ENOENT && r != -E2BIG)
		return r;
	s = buf_cstr(&text);
	if (s)
		forced_parse(f, (char *)text.data);
	*ret_forced = TAKE_PTR(f);
	return 0;
}

static size_t forced_find(const struct forced_rates *f, const struct proc_id *id)
{
	size_t i = 0;

	while (i < f->len &&
	       (f->rates[i].id.pid != id->pid || f->rates[i].id.start_ticks != id->start_ticks))
		i++;
	return i;
}

int forced_rates_add(struct forced_rates *f, const struct forced_rate *rate, struct err *err)
{
	size_t i;
	int r;

	(void)pthread_mutex_lock(&f->lock);
	i = forced_find(f, &rate->id);
	if (i == FORCED_MAX) {
		r = err_set(err, -E2BIG, "over %zu programs have a forced rate already",
			    FORCED_MAX);
	} else {
		f->len = MAX(f->len, i + 1);
		f->rates[i] = *rate;
		r = forced_save(f, err);
	}
	(void)pthread_mutex_unlock(&f->lock);
	return r;
}

/* With the lock held. */
static void forced_drop(struct forced_rates *f, size_t i)
{
	f->rates[i] = f->rates[--f->len];
}

int forced_rates_remove(struct forced_rates *f, const struct proc_id *id, struct err *err)
{
	size_t i;
	int r = 0;

	(void)pthread_mutex_lock(&f->lock);
	i = forced_find(f, id);
	if (i < f->len) {
		forced_drop(f, i);
		r = forced_save(f, err);
	}
	(void)pthread_mutex_unlock(&f->lock);
	return r;
}

uint64_t forced_space(const struct proc_mem *mem)
{
	uint64_t stack = 0, vdso = 0, entry = 0;

	(void)proc_mem_auxv(mem, AT_RANDOM, &stack);
	(void)proc_mem_auxv(mem, AT_SYSINFO_EHDR, &vdso);
	(void)proc_mem_auxv(mem, AT_ENTRY, &entry);
	/* Not seeded: the next agent must come to the same. */
	return hash_mix(hash_mix(stack) ^ hash_mix(vdso + 1) ^ entry);
}

int forced_set_back(struct golang_heap *heap, int64_t old, int64_t ours, struct err *err)
{
	int64_t now;
	int r = golang_heap_rate(heap, &now, err);

	if (r < 0 || now != ours)
		return r;
	return golang_heap_set_rate(heap, old, err);
}

/* 0 also when nothing needs to be done any more. */
static int forced_restore_one(const struct forced_rate *x, struct err *err)
{
	_cleanup_(golang_process_closep) struct golang_process *process = NULL;
	_cleanup_(golang_heap_freep) struct golang_heap *heap = NULL;
	_cleanup_close_ int lock = -1;
	struct proc_mem *mem = NULL;
	int r;

	if (!proc_id_alive(&x->id))
		return 0;
	r = golang_force_lock(&x->id, &lock, err);
	if (r == 0)
		r = proc_mem_open(x->id.pid, &mem, err);
	if (r < 0)
		return r == -ESRCH ? 0 : r;
	proc_mem_never_wait(mem);
	if (forced_space(mem) != x->space || !proc_id_alive(&x->id)) {
		proc_mem_close(mem);
		return 0;
	}
	r = golang_process_open_take(mem, NULL, &process, err);
	if (r == 0)
		r = golang_heap_new(process, &heap, err);
	if (r == 0)
		r = forced_set_back(heap, x->old, x->ours, err);
	return r == -ESRCH ? 0 : r;
}

int forced_rates_restore(struct forced_rates *f, struct err *err)
{
	size_t before, i = 0;
	int r = 0;

	(void)pthread_mutex_lock(&f->lock);
	before = f->len;
	while (i < f->len) {
		if (forced_restore_one(&f->rates[i], err) < 0)
			i++;
		else
			forced_drop(f, i);
	}
	if (f->len != before)
		r = forced_save(f, err);
	if (r == 0)
		r = (int)(before - f->len);
	(void)pthread_mutex_unlock(&f->lock);
	return r;
}
