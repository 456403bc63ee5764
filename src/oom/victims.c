/* src/oom/victims.c: see victims.h. */
#include "oom/victims.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bpf/libbpf.h>
#include <oom/oom_bpf.skel.h> /* made by bpftool */

#include "oom/oom_shared.h"
#include "proc/host.h"

struct oom_victims {
	struct oom_bpf *bpf;
	struct ring_buffer *ring;
	void (*hear)(void *context, const struct oom_victim *victim);
	void *context;
};

static int quiet(enum libbpf_print_level level, const char *format, va_list args)
{
	(void)level;
	(void)format;
	(void)args;
	return 0;
}

static int explain(int code, struct err *err)
{
	if (code == -ENOENT)
		return err_lack(err, -ENOTSUP, ERR_CAUSE_KERNEL, "use Linux 5.17 or later",
				"the kernel has no tracepoint mark_victim");
	return proc_host_explain_bpf("bpf()", code, err);
}

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
	int r = proc_host_check_btf(err);

	if (r < 0)
		return r;
	(void)libbpf_set_print(quiet);
	v->bpf = oom_bpf__open();
	if (!v->bpf)
		return explain(-errno, err);
	v->bpf->rodata->page_kb = (uint32_t)sysconf(_SC_PAGESIZE) >> 10;
	/* Numbers are to be those that /proc has. */
	if (!proc_host_has_own_pids() && stat("/proc/self/ns/pid", &ns) == 0)
		v->bpf->rodata->own_pid_ns = (uint32_t)ns.st_ino;
	r = oom_bpf__load(v->bpf);
	if (r == 0)
		r = oom_bpf__attach(v->bpf);
	if (r < 0)
		return explain(r, err);
	v->ring = ring_buffer__new(bpf_map__fd(v->bpf->maps.notices), hear_notice, v, NULL);
	return v->ring ? 0 : explain(-errno, err);
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
		{.fd = ring_buffer__epoll_fd(v->ring), .events = POLLIN},
		{.fd = wake_fd, .events = POLLIN},
	};
	int r;

	if (poll(fds, ARRAY_SIZE(fds), -1) < 0)
		return errno == EINTR ? 0 : -errno;
	v->hear = hear;
	v->context = context;
	r = ring_buffer__consume(v->ring);
	return r < 0 ? r : 0;
}

uint64_t oom_victims_lost(const struct oom_victims *v)
{
	return __atomic_load_n(&v->bpf->bss->n_lost, __ATOMIC_RELAXED);
}

void oom_victims_close(struct oom_victims *v)
{
	if (!v)
		return;
	ring_buffer__free(v->ring);
	oom_bpf__destroy(v->bpf);
	free(v);
}
