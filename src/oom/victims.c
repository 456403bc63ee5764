/* src/oom/victims.c: see victims.h. */
#include "oom/victims.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bpf/oom_bpf.skel.h> /* made by bpftool */

#include "bpf/rings.h"
#include "bpf/skeleton.h"
#include "oom/oom_shared.h"
#include "proc/host.h"

struct oom_victims {
	struct oom_bpf *bpf;
	struct bpf_rings *rings;
	void (*hear)(void *context, const struct oom_victim *victim);
	void *context;
};

static int hear_notice(void *context, void *data, size_t len)
{
	struct oom_victims *v = context;
	struct oom_notice notice;
	struct oom_victim victim;

	if (len < sizeof(notice))
		return 0;
	memcpy(&notice, data, sizeof(notice));
	victim = (struct oom_victim){
		.pid = (pid_t)notice.tgid,
		.mono_ns = notice.mono_ns,
		.rss_bytes = notice.rss_kb << 10,
	};
	v->hear(v->context, &victim);
	return 0;
}

static int victims_load(struct oom_victims *v, struct err *err)
{
	struct stat ns;
	int r = bpf_skeleton_open(oom_bpf, &v->bpf, err);

	if (r < 0 || !v->bpf)
		return r;
	v->bpf->rodata->page_kb = (uint32_t)sysconf(_SC_PAGESIZE) >> 10;
	/* Pids must match /proc. */
	if (!proc_host_has_own_pids() && stat("/proc/self/ns/pid", &ns) == 0)
		v->bpf->rodata->own_pid_ns = (uint32_t)ns.st_ino;
	r = bpf_skeleton_load(v->bpf->skeleton, NULL, err);
	if (r == 0)
		r = bpf_rings_new(&v->rings, err);
	if (r == 0)
		r = bpf_rings_add(v->rings, v->bpf->maps.notices, hear_notice, v, err);
	if (r == 0)
		r = bpf_skeleton_attach(v->bpf->progs.on_victim, "mark_victim",
					&v->bpf->links.on_victim, err);
	return r;
}

int oom_victims_open(struct oom_victims **ret_victims, struct err *err)
{
	_cleanup_(oom_victims_closep) struct oom_victims *v = calloc(1, sizeof(*v));
	int r = v ? victims_load(v, err) : err_oom(err);

	if (r < 0)
		return r;
	*ret_victims = TAKE_PTR(v);
	return 0;
}

int oom_victims_wait(struct oom_victims *v, int wake_fd,
		     void (*hear)(void *context, const struct oom_victim *victim), void *context)
{
	struct pollfd fds[] = {
		{.fd = bpf_rings_fd(v->rings), .events = POLLIN},
		{.fd = wake_fd, .events = POLLIN},
	};

	if (poll(fds, ARRAY_SIZE(fds), -1) < 0)
		return errno == EINTR ? 0 : -errno;
	v->hear = hear;
	v->context = context;
	return bpf_rings_read(v->rings, 0, NULL);
}

uint64_t oom_victims_lost(const struct oom_victims *v)
{
	return __atomic_load_n(&v->bpf->bss->n_lost, __ATOMIC_RELAXED);
}

void oom_victims_close(struct oom_victims *v)
{
	if (!v)
		return;
	bpf_rings_free(v->rings);
	oom_bpf__destroy(v->bpf);
	free(v);
}
