/* src/server/peer.c: see peer.h. By sock_diag(7). */
#include "server/peer.h"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/time.h>

/* The kernel answers within the call; this is only for the unexpected. */
#define PEER_PATIENCE_US 100000

struct peer_request {
	struct nlmsghdr head;
	struct inet_diag_req_v2 body;
};

struct peer_answer {
	struct nlmsghdr head;
	struct inet_diag_msg body;
	char rest[512];
};

int server_peer_open(void)
{
	const struct timeval patience = {.tv_usec = PEER_PATIENCE_US};
	int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);

	if (fd >= 0)
		(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	return fd;
}

/* False if it is no internet address. */
static bool peer_address(const struct sockaddr *addr, __be32 *ret_words, __be16 *ret_port)
{
	struct sockaddr_in in;
	struct sockaddr_in6 in6;

	if (addr->sa_family == AF_INET) {
		memcpy(&in, addr, sizeof(in));
		memcpy(ret_words, &in.sin_addr, sizeof(in.sin_addr));
		*ret_port = in.sin_port;
		return true;
	}
	if (addr->sa_family != AF_INET6)
		return false;
	memcpy(&in6, addr, sizeof(in6));
	memcpy(ret_words, &in6.sin6_addr, sizeof(in6.sin6_addr));
	*ret_port = in6.sin6_port;
	return true;
}

uid_t server_peer_uid(int fd, const struct sockaddr *client, const struct sockaddr_storage *ours)
{
	struct peer_request rq = {
		.head = {.nlmsg_len = sizeof(rq),
			 .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			 .nlmsg_flags = NLM_F_REQUEST},
		.body = {.sdiag_family = (uint8_t)client->sa_family,
			 .sdiag_protocol = IPPROTO_TCP,
			 .idiag_states = UINT32_MAX,
			 .id = {.idiag_cookie = {INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE}}},
	};
	struct peer_answer answer;
	ssize_t n;

	if (fd < 0 || !peer_address(client, rq.body.id.idiag_src, &rq.body.id.idiag_sport) ||
	    !peer_address((const struct sockaddr *)ours, rq.body.id.idiag_dst,
			  &rq.body.id.idiag_dport))
		return SERVER_PEER_UNKNOWN;
	/* An answer that came too late for its question must not be taken for this one's. */
	while (recv(fd, &answer, sizeof(answer), MSG_DONTWAIT) > 0)
		;
	if (send(fd, &rq, sizeof(rq), 0) != sizeof(rq))
		return SERVER_PEER_UNKNOWN;
	n = recv(fd, &answer, sizeof(answer), 0);
	if (n < (ssize_t)(sizeof(answer.head) + sizeof(answer.body)) ||
	    answer.head.nlmsg_type != SOCK_DIAG_BY_FAMILY ||
	    answer.body.id.idiag_sport != rq.body.id.idiag_sport ||
	    answer.body.id.idiag_dport != rq.body.id.idiag_dport)
		return SERVER_PEER_UNKNOWN;
	return answer.body.idiag_uid;
}
