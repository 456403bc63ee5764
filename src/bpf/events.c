/* src/bpf/events.c: see events.h. */
#include "bpf/events.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bpf/libbpf.h>

#include "base/buf.h"
#include "base/io.h"
#include "bpf/kernel.h"

struct bpf_events {
	struct bpf_program *program;
	struct perf_event_attr attr;
	struct bpf_link **links; /* by CPU; NULL while offline */
	size_t n_cpus;
	char *online; /* the list of CPUs that have events */
};

/* Whether cpu is in a list such as "0-3,8". */
static bool list_has(const char *list, unsigned long cpu)
{
	while (*list) {
		char *end;
		unsigned long first = strtoul(list, &end, 10), last = first;

		if (end == list)
			return false;
		if (*end == '-')
			last = strtoul(end + 1, &end, 10);
		if (cpu >= first && cpu <= last)
			return true;
		if (*end != ',')
			return false;
		list = end + 1;
	}
	return false;
}

static int explain_open(const struct bpf_events *e, size_t cpu, int code, struct err *err)
{
	switch (code) {
	case -EACCES:
	case -EPERM:
		return bpf_kernel_explain("perf_event_open()", code, err);
	case -ENOENT:
	case -ENOSYS:
		return bpf_kernel_explain("perf_event_open()", -ENOSYS, err);
	case -EINVAL:
		if (e->attr.freq)
			return err_set(
				err, code,
				"%llu samples per second exceed kernel.perf_event_max_sample_rate",
				(unsigned long long)e->attr.sample_freq);
		break;
	default:
		break;
	}
	return err_set(err, code, "cannot open a perf event on CPU %zu: %s", cpu, strerror(-code));
}

static int cpu_open(struct bpf_events *e, size_t cpu, struct err *err)
{
	int fd, r;

	fd = (int)syscall(SYS_perf_event_open, &e->attr, -1, (int)cpu, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0 && errno == ENODEV)
		return 0; /* went offline after all */
	if (fd < 0)
		return explain_open(e, cpu, -errno, err);
	e->links[cpu] = bpf_program__attach_perf_event(e->program, fd);
	if (e->links[cpu])
		return 0; /* the link closes fd */
	r = -errno;
	close(fd);
	return err_set(err, r, "cannot attach to the perf event on CPU %zu: %s", cpu, strerror(-r));
}

static int cpus_apply(struct bpf_events *e, const char *online, struct err *err)
{
	for (size_t i = 0; i < e->n_cpus; i++) {
		bool is_online = list_has(online, i);
		int r;

		if (is_online && !e->links[i]) {
			r = cpu_open(e, i, err);
			if (r < 0)
				return r;
		} else if (!is_online && e->links[i]) {
			bpf_link__destroy(e->links[i]);
			e->links[i] = NULL;
		}
	}
	return 0;
}

int bpf_events_update(struct bpf_events *e, struct err *err)
{
	_cleanup_(buf_release) struct buf text = buf_with_max(64 << 10);
	const char *online;
	int r;

	r = io_read_file(AT_FDCWD, "/sys/devices/system/cpu/online", &text, err);
	if (r < 0)
		return r;
	online = buf_cstr(&text);
	if (!online)
		return err_oom(err);
	if (e->online && strcmp(e->online, online) == 0)
		return 0;
	r = cpus_apply(e, online, err);
	if (r < 0)
		return r;
	free(e->online);
	e->online = strdup(online);
	return 0;
}

int bpf_events_open(struct bpf_program *program, const struct perf_event_attr *attr,
		    struct bpf_events **ret_events, struct err *err)
{
	_cleanup_(bpf_events_closep) struct bpf_events *e = calloc(1, sizeof(*e));
	int n_cpus = libbpf_num_possible_cpus(), r;

	if (!e)
		return err_oom(err);
	if (n_cpus < 0)
		return err_set(err, n_cpus, "cannot count CPUs: %s", strerror(-n_cpus));
	e->program = program;
	e->attr = *attr;
	e->n_cpus = (size_t)n_cpus;
	e->links = calloc(e->n_cpus, sizeof(struct bpf_link *));
	if (!e->links)
		return err_oom(err);
	r = bpf_events_update(e, err);
	if (r < 0)
		return r;
	*ret_events = TAKE_PTR(e);
	return 0;
}

void bpf_events_close(struct bpf_events *e)
{
	if (!e)
		return;
	for (size_t i = 0; e->links && i < e->n_cpus; i++)
		bpf_link__destroy(e->links[i]);
	free(e->links);
	free(e->online);
	free(e);
}
