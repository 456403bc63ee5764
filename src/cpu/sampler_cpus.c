/*
 * src/cpu/sampler_cpus.c: a perf event for each CPU that is on line. The kernel drops the event of
 * a CPU that goes; one that comes gets its event at the next drain.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bpf/libbpf.h>
#include <cpu/sampler_bpf.skel.h> /* made by bpftool */

#include "base/buf.h"
#include "base/io.h"
#include "cpu/sampler_impl.h"
#include "proc/host.h"

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

static int cpu_open(struct cpu_sampler *s, size_t cpu, struct err *err)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.freq = 1,
		.sample_freq = s->options.hz,
		.exclude_idle = 1,
	};
	int fd, r;

	fd = (int)syscall(SYS_perf_event_open, &attr, -1, (int)cpu, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0 && errno == ENODEV)
		return 0; /* went off line after all */
	if (fd < 0 && (errno == EACCES || errno == EPERM))
		return proc_host_explain_bpf("perf_event_open()", -errno, err);
	if (fd < 0 && errno == EINVAL)
		return err_set(
			err, -EINVAL,
			"%u samples a second are more than kernel.perf_event_max_sample_rate "
			"allows",
			s->options.hz);
	if (fd < 0 && (errno == ENOENT || errno == ENOSYS))
		return proc_host_explain_bpf("perf_event_open()", -ENOSYS, err);
	if (fd < 0)
		return err_set(err, -errno, "no perf event on CPU %zu: %m", cpu);
	s->cpus[cpu].link = bpf_program__attach_perf_event(s->bpf->progs.on_sample, fd);
	if (s->cpus[cpu].link)
		return 0; /* the link closes fd */
	r = -errno;
	close(fd);
	return err_set(err, r, "attaching to the perf event of CPU %zu: %s", cpu, strerror(-r));
}

static int cpus_apply(struct cpu_sampler *s, const char *online, struct err *err)
{
	for (size_t i = 0; i < s->n_cpus; i++) {
		bool is_online = list_has(online, i);
		int r;

		if (is_online && !s->cpus[i].link) {
			r = cpu_open(s, i, err);
			if (r < 0)
				return r;
		} else if (!is_online && s->cpus[i].link) {
			bpf_link__destroy(s->cpus[i].link);
			s->cpus[i].link = NULL;
		}
	}
	return 0;
}

int sampler_cpus_update(struct cpu_sampler *s, struct err *err)
{
	_cleanup_(buf_release) struct buf text = buf_with_max(64 << 10);
	const char *online;
	int r;

	if (!s->options.hz)
		return 0;
	r = io_read_file(AT_FDCWD, "/sys/devices/system/cpu/online", &text, err);
	if (r < 0)
		return r;
	online = buf_cstr(&text);
	if (!online)
		return err_oom(err);
	if (s->online && strcmp(s->online, online) == 0)
		return 0;
	r = cpus_apply(s, online, err);
	if (r < 0)
		return r;
	free(s->online);
	s->online = strdup(online);
	return 0;
}

void sampler_cpus_release(struct cpu_sampler *s)
{
	for (size_t i = 0; s->cpus && i < s->n_cpus; i++)
		bpf_link__destroy(s->cpus[i].link);
	free(s->cpus);
	free(s->online);
}
