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

struct session; /* opaque */

/* RING_OK or one of RING_ERR_. path: of a file that sonde has made. */
int session_open(const char *path);
/* The session, if there is one; then session_leave() must follow. */
struct session *session_enter(void);
void session_leave(struct session *s);
/* Ends it, by one who is in it; true for the first who does. Those who are in it may finish. */
bool session_end(struct session *s);

uint32_t session_wanted(const struct session *s);
uint32_t session_depth(const struct session *s);
uint64_t session_interval(const struct session *s);
/* Whether sonde has given no sign of life for too long. */
bool session_is_forgotten(struct session *s, uint64_t now_ns);
void session_tell(struct session *s, uint64_t interval_bytes);

/*
 * The id of a frame that this thread is in, so that its class cannot go away meanwhile; its names
 * are written before it is used for the first time. 0 when there is no room for more.
 */
uint32_t session_frame(struct session *s, jvm ti, jvm jni, const struct jvm_frame *frame);

struct session_event {
	uint16_t kind;
	uint32_t flags;
	uint64_t a, b;
	const uint32_t *frames;
	uint32_t n_frames;
	const char *class; /* a signature, or NULL */
	const char *thread;
};
void session_write(struct session *s, const struct session_event *event);
