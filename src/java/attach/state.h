/* src/java/attach/state.h: shared by the files of the attach client. */
#pragma once

#include "java/attach/attach.h"
#include "java/attach/target.h"

struct java_attach {
	struct java_vm vm;
	struct java_target target;
	int tmp; /* its /tmp, a path descriptor */
	uint64_t timeout_ns;
	unsigned int version; /* of the protocol; 0: not asked yet */
};

/* All that must hold before the signal; target has been read just now. */
int java_attach_check(const struct java_attach *attach, struct err *err);

/*
 * A connected socket that does not block. -ENOENT: it does not listen. -EPERM: something that is
 * not its own is in the place of its socket.
 */
int java_attach_connect(const struct java_attach *attach, uint64_t deadline_ns, int *ret_fd,
			struct err *err);
/* Whether we may take its user and group; tried out. */
int java_attach_can_be(const struct java_target *target, struct err *err);
