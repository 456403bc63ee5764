/* src/java/jvmti/place.c: see place.h. */
#include "java/jvmti/place.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "java/attach/target.h"
#include "java/lease.h"
#include "java/recorder/mount.h"
#include "proc/aide/aides.h"

struct java_place {
	struct java_lease lease;
	struct java_target target;
};

struct java_attach *java_place_attach(struct java_place *p)
{
	return p->lease.attach;
}

void java_place_path(const struct java_place *p, const char *name, char dst[JAVA_PLACE_PATH])
{
	char dir[JAVA_NOTE_NAME];

	java_note_dir_name(&p->lease.note, dir);
	(void)snprintf(dst, JAVA_PLACE_PATH, "/tmp/%s/%s", dir, name);
}

int java_place_remove(struct java_place *p, struct err *err)
{
	return java_lease_end(&p->lease, err);
}

void java_place_free(struct java_place *p)
{
	if (!p)
		return;
	java_lease_release(&p->lease);
	free(p);
}

struct exec_job {
	int ns, dirfd;
	unsigned long flags;
	int result;
};

/* Runs in a separate thread, which exits without leaving the namespace again. */
static void *exec_thread(void *arg)
{
	struct exec_job *job = arg;

	if (unshare(CLONE_FS) < 0 || setns(job->ns, CLONE_NEWNS) < 0 || fchdir(job->dirfd) < 0 ||
	    mount(NULL, ".", NULL, MS_REMOUNT | MS_BIND | MS_NOSUID | MS_NODEV | job->flags, NULL) <
		    0)
		job->result = -errno;
	return NULL;
}

/*
 * Recordings are mounted noexec, which also forbids mapping code. A library needs exec, but only
 * while it is being loaded.
 */
static int place_remount(const struct java_place *p, unsigned long flags, struct err *err)
{
	_cleanup_close_ int ns = -1;
	struct exec_job job = {.dirfd = p->lease.dirfd, .flags = flags};
	pthread_t thread;
	int r = proc_aides_open(p->lease.note.id.pid, "ns/mnt", O_RDONLY, &ns);

	job.ns = ns;
	if (r == 0) {
		r = -pthread_create(&thread, NULL, exec_thread, &job);
		if (r == 0)
			(void)pthread_join(thread, NULL);
		r = r ? r : job.result;
	}
	if (r < 0)
		return err_set(err, r, "cannot mount a tmpfs for a library in process %d: %s",
			       (int)p->lease.note.id.pid, strerror(-r));
	return 0;
}

int java_place_make(const struct proc_id *id, const char *state_dir, struct java_place **ret_place,
		    struct err *err)
{
	_cleanup_(java_place_freep) struct java_place *p = calloc(1, sizeof(*p));
	char name[JAVA_NOTE_NAME];
	int r;

	if (!p)
		return err_oom(err);
	r = java_lease_init(&p->lease, state_dir, err);
	if (r == 0)
		r = java_lease_check(id, err);
	if (r == 0)
		r = java_lease_begin(&p->lease, id, err);
	if (r == 0)
		r = java_target_read(id, &p->target, err);
	if (r < 0)
		return r;
	java_note_dir_name(&p->lease.note, name);
	r = java_mount_make(&p->target, name, view_of(NULL, 0), &p->lease.dirfd, err);
	if (r == 0)
		r = place_remount(p, 0, err);
	if (r < 0)
		return r;
	*ret_place = TAKE_PTR(p);
	return 0;
}

int java_place_seal(const struct java_place *p, struct err *err)
{
	return place_remount(p, MS_NOEXEC, err);
}

int java_place_create(struct java_place *p, const char *name, bool is_its, int *ret_fd,
		      struct err *err)
{
	_cleanup_close_ int fd = openat(p->lease.dirfd, name,
					O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);

	/* Regardless of our umask. */
	if (fd < 0 || fchmod(fd, is_its ? 0600 : 0644) < 0 ||
	    (is_its && fchown(fd, p->target.status.euid, p->target.status.egid) < 0))
		return err_set(err, -errno, "cannot create a file for the JVM of process %d: %s",
			       (int)p->lease.note.id.pid, strerror(errno));
	*ret_fd = TAKE_FD(fd);
	return 0;
}

int java_place_write(struct java_place *p, const char *name, struct view bytes, struct err *err)
{
	_cleanup_close_ int fd = -1;
	int r = java_place_create(p, name, false, &fd, err);

	if (r < 0)
		return r;
	r = io_write_full(fd, bytes.data, bytes.len);
	if (r < 0)
		return err_set(err, r, "cannot write a file for the JVM of process %d: %s",
			       (int)p->lease.note.id.pid, strerror(-r));
	return 0;
}
