/* src/java/attach/state.h: shared by the files of the attach client. */
#pragma once

#include "java/attach/attach.h"
#include "java/attach/target.h"

struct java_attach {
	struct java_vm vm;
	struct java_target target;
	int tmp; /* its /tmp, an O_PATH descriptor */
	uint64_t timeout_ns;
	unsigned int version; /* of the protocol; 0: unknown yet */
};

/* Everything that must hold before the signal; target must be fresh. */
int java_attach_check(const struct java_attach *attach, struct err *err);

/*
 * A connected, nonblocking socket. -ENOENT: it does not listen. -EPERM: something else is in place
 * of its socket.
 */
int java_attach_connect(const struct java_attach *attach, uint64_t deadline_ns, int *ret_fd,
			struct err *err);
/* The same for a command: -EAGAIN at once if the process is stopped. */
int java_attach_dial(const struct java_attach *attach, uint64_t deadline_ns, int *ret_fd,
		     struct err *err);
/* Tries whether we may take its user and group. */
int java_attach_can_be(const struct java_target *target, struct err *err);
