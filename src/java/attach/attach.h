/*
 * src/java/attach/attach.h: sends commands to a HotSpot JVM, as jcmd does.
 *
 * A JVM listens on the socket /tmp/.java_pidN of its own file system once asked to: by a file
 * .attach_pidN there and SIGQUIT. That signal kills a process without a handler, and makes a JVM
 * that does not expect it dump all its threads. So everything is checked first: that it is HotSpot,
 * accepts commands, has started, has a handler, is not stopped, can write to its /tmp, and that we
 * can talk to it as its user.
 *
 * A JVM responds only to its own user (user.h). Everything in its file system is accessed
 * through descriptors inside its root, without following links, and only through a socket on which
 * this very process listens. No namespace is entered.
 */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "java/detect.h"
#include "proc/id.h"

struct java_attach; /* opaque */

/* A JVM answers within 60 ms; with 50 processes per CPU, within a minute. */
#define JAVA_ATTACH_TIMEOUT_NS (60ULL * 1000000000)
#define JAVA_ATTACH_ANSWER_MAX ((size_t)4 << 20)
/* What all waits together may take after an interrupt, to leave nothing behind in the JVM. */
#define JAVA_ATTACH_LAST_NS (20ULL * 1000000000)
/* The same if one of them was interrupted: the JVM is probably not well. */
#define JAVA_ATTACH_GRACE_NS (5ULL * 1000000000)

/*
 * Lets this thread's waits for JVMs be interrupted: interrupts says how often it was asked. A wait
 * during which the number grows ends at once, with -EINTR; the second one leaves no time for more.
 * NULL: waits are never interrupted.
 */
void java_attach_set_interrupt(unsigned int (*interrupts)(void));

/*
 * Makes the JVM listen unless it already does. -ENOTSUP: it accepts no commands. -EAGAIN: it is
 * still starting, or stopped; it got no signal and can be asked later. -ETIMEDOUT: it got the
 * signal but does not listen; do not ask again. timeout_ns applies to this and to each later
 * command; 0 means JAVA_ATTACH_TIMEOUT_NS.
 */
int java_attach_open(const struct proc_id *id, uint64_t timeout_ns, struct java_attach **ret_attach,
		     struct err *err);
void java_attach_close(struct java_attach *attach); /* NULL is fine; the JVM keeps listening */
DEFINE_CLEANUP(struct java_attach, java_attach_close)

const struct java_vm *java_attach_vm(const struct java_attach *attach);
/* Borrowed: the JVM's /tmp, an O_PATH descriptor that outlives the JVM. */
int java_attach_tmp(const struct java_attach *attach);

/*
 * Stores what `jcmd PID command` prints in answer, clearing it first; its maximum applies, or
 * JAVA_ATTACH_ANSWER_MAX if it has none. The text is untrusted. Success means that there was an
 * answer, not that the command worked: some fail with status 0. -EPROTO: the JVM reports a failure.
 * One command at a time.
 */
int java_attach_jcmd(struct java_attach *attach, const char *command, struct buf *answer,
		     struct err *err);

/* Removes the file that asks a JVM to listen, left by a killed sonde. */
void java_attach_clean(const struct proc_id *id);
