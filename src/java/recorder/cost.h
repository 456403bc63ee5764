/*
 * src/java/recorder/cost.h: whether a JVM's recorder costs more than what it records is worth.
 *
 * Before JDK 23 the recorder rewrites classes of the JDK (streams, sockets, Throwable) when a JVM
 * first uses it, whatever is to be recorded. A JVM that did not expect classes to change when it
 * started then throws away all its compiled code: a busy program runs at a few percent of its speed
 * for some ten seconds. It happens once; after that, recordings are cheap.
 */
#pragma once

#include <stdbool.h>

#include "java/detect.h"

/* The first release whose recorder does without. */
#define JAVA_RECORDER_GENTLE_MAJOR 23

/* Whether a recording would be the first of such a JVM. */
bool java_recorder_is_costly(const struct java_vm *vm);

/* The first release whose recorder samples CPU time. */
#define JAVA_RECORDER_CPU_MAJOR 25
/*
 * Whether another profiler has the signal by which the recorder samples CPU time. The recorder
 * would say so in the program's log, and record nothing.
 */
bool java_recorder_has_rival(const struct java_vm *vm);
