/*
 * src/java/agent_lib/park.h: waits for locks of java.util.concurrent.
 *
 * JVMTI has no event for these. Their threads wait in the native method Unsafe.park(), so while it
 * is bound to a function of ours, which calls the JVM's own, all such waits are seen.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "java/agent_lib/jvm.h"

/*
 * Called by a thread after a wait for a lock, with the lock it waited for, and not after others:
 * idle threads park, too.
 */
typedef void (*java_park_waited)(jvm jni, jvm_object thread, jvm_object lock, uint64_t ns);

/* False if this JVM is not as expected: then nothing has changed. */
bool java_park_start(jvm ti, jvm jni, java_park_waited waited);
/* Binds the JVM's own function again. Threads that wait in ours may stay in it. */
void java_park_stop(jvm jni);
