/*
 * src/java/recorder/cost.h: whether a JVM's recorder costs more than what it records is worth.
 *
 * The recorder rewrites classes of the JDK when a JVM first uses it, whatever is to be recorded:
 * those of its events, and before JDK 23 streams, sockets and Throwable. A JVM that did not expect
 * classes to change when it started then throws away all its compiled code: a busy program runs at
 * a few percent of its speed for some ten seconds, on JDK 25 as on JDK 17 (docs/BENCHMARKS.md). It
 * happens once; after that, recordings are cheap.
 */
#pragma once

#include <stdbool.h>

#include "java/detect.h"

/* Whether a recording would be the first of this JVM. */
bool java_recorder_is_costly(const struct java_vm *vm);

/* The first release whose recorder samples CPU time. */
#define JAVA_RECORDER_CPU_MAJOR 25
/*
 * Whether another profiler has the signal by which the recorder samples CPU time. The recorder
 * would say so in the program's log, and record nothing.
 */
bool java_recorder_has_rival(const struct java_vm *vm);
