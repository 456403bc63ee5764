/*
 * src/java/jfr/names.h: readable names of classes, methods and threads.
 *
 * Classes generated at run time have numbers and addresses in their names, without end. Their
 * common part stays: "Load$$Lambda", "jdk.proxy.$Proxy", "GeneratedMethodAccessor".
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/view.h"

/* Names as the JVM has them: "java/lang/String", "[B". All append; -ENOMEM, -E2BIG. */
int java_jfr_names_class(struct buf *out, struct view class_name);
/* is_native: the class is the library, which is not part of the name. */
int java_jfr_names_method(struct buf *out, struct view class_name, struct view method,
			  bool is_native);
/*
 * Whether a thread in that method, or in one that it calls, waits for its turn to wait: those that
 * share a listening socket queue for its lock, which one of them holds until somebody connects. The
 * method is near the top of the stack.
 */
#define JAVA_JFR_NAMES_IDLE_DEPTH 16
bool java_jfr_names_is_idle(struct view class_name, struct view method);
/* fold: its numbers become "#", so that the threads of a pool share one name. */
int java_jfr_names_thread(struct buf *out, struct view name, bool fold);
