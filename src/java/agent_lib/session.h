/*
 * src/java/agent_lib/session.h: the agent's end of the ring, from start to stop.
 *
 * A session's memory is mapped while it lasts, and unmapped by the last user: a thread of the JVM
 * may be in the middle of an event when it ends. Nothing here waits or allocates.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "java/agent_lib/jvm.h"
#include "java/agent_lib/ring.h"

struct java_session; /* opaque */

/* On a clock that never jumps. */
uint64_t java_session_now_ns(void);

/* JAVA_RING_OK or one of JAVA_RING_ERR_. path: a file created by sonde. */
int java_session_open(const char *path);
/* The session, if there is one; java_session_leave() must follow. */
struct java_session *java_session_enter(void);
void java_session_leave(struct java_session *s);
/* Ends it, called by a thread in it; true for the first to do so. Threads in it may finish. */
bool java_session_end(struct java_session *s);

uint32_t java_session_wanted(const struct java_session *s);
uint32_t java_session_depth(const struct java_session *s);
uint64_t java_session_interval(const struct java_session *s);
/* Whether sonde has shown no sign of life for too long. */
bool java_session_is_forgotten(struct java_session *s, uint64_t now_ns);
void java_session_tell(struct java_session *s, uint64_t interval_bytes);
void java_session_tell_parks(struct java_session *s, bool are_seen);

/*
 * The id of a frame this thread is in, so that its class cannot be unloaded meanwhile; writes its
 * names before its first use. 0 if there is no room for more.
 */
uint32_t java_session_frame(struct java_session *s, jvm ti, jvm jni, const struct jvm_frame *frame);

struct java_session_event {
	uint16_t kind;
	uint32_t flags;
	uint64_t a, b;
	const uint32_t *frames;
	uint32_t n_frames;
	const char *class; /* a signature, or NULL */
	const char *thread;
};
void java_session_write(struct java_session *s, const struct java_session_event *event);
