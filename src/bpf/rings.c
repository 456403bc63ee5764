/* src/bpf/rings.c: see rings.h. */
#include "bpf/rings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <bpf/libbpf.h>

struct bpf_rings {
	/* One libbpf ring_buffer per ring: several in one could only be read together. */
	struct ring_buffer *list[BPF_RINGS_MAX];
	unsigned int len;
	int epoll_fd;
};

int bpf_rings_new(struct bpf_rings **ret_rings, struct err *err)
{
	_cleanup_(bpf_rings_freep) struct bpf_rings *rings = calloc(1, sizeof(*rings));

	if (!rings)
		return err_oom(err);
	rings->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (rings->epoll_fd < 0)
		return err_set(err, -errno, "epoll_create1: %m");
	*ret_rings = TAKE_PTR(rings);
	return 0;
}

void bpf_rings_free(struct bpf_rings *rings)
{
	if (!rings)
		return;
	for (unsigned int i = 0; i < rings->len; i++)
		ring_buffer__free(rings->list[i]);
	if (rings->epoll_fd >= 0)
		close(rings->epoll_fd);
	free(rings);
}

int bpf_rings_add(struct bpf_rings *rings, const struct bpf_map *map,
		  int (*hear)(void *context, void *data, size_t len), void *context,
		  struct err *err)
{
	struct epoll_event event = {.events = EPOLLIN};
	int fd = bpf_map__fd(map);
	struct ring_buffer *ring;

	if (rings->len == BPF_RINGS_MAX)
		return err_set(err, -E2BIG, "more than %d BPF ring buffers", BPF_RINGS_MAX);
	ring = ring_buffer__new(fd, hear, context, NULL);
	if (!ring)
		return err_set(err, -errno, "cannot map the BPF ring buffer %s: %m",
			       bpf_map__name(map));
	rings->list[rings->len++] = ring;
	if (epoll_ctl(rings->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
		return err_set(err, -errno, "cannot wait for the BPF ring buffer %s: %m",
			       bpf_map__name(map));
	return 0;
}

int bpf_rings_wait(struct bpf_rings *rings, int timeout_ms, struct err *err)
{
	struct epoll_event ready[BPF_RINGS_MAX];
	int n = epoll_wait(rings->epoll_fd, ready, BPF_RINGS_MAX, timeout_ms);

	if (n < 0)
		return errno == EINTR ? 0 : err_set(err, -errno, "epoll_wait: %m");
	return n;
}

int bpf_rings_fd(const struct bpf_rings *rings)
{
	return rings->epoll_fd;
}

int bpf_rings_read(struct bpf_rings *rings, unsigned int number, struct err *err)
{
	int n = ring_buffer__consume(rings->list[number]);

	return n < 0 ? err_set(err, n, "cannot read BPF ring buffers: %s", strerror(-n)) : 0;
}
