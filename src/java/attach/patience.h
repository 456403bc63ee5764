/*
 * src/java/attach/patience.h: how long a thread waits for a JVM, for the files of the attach
 * client.
 *
 * A JVM may take a minute to answer, or forever. Whoever interrupts a command does not want to wait
 * that long; see java_attach_set_interrupt().
 */
#pragma once

#include <stdint.h>

/* The longest sleep between two checks, if there may be an interrupt. */
#define JAVA_PATIENCE_STEP_NS (100ULL * 1000000)

/* When to give up a wait that begins now. */
uint64_t java_patience_begin(uint64_t timeout_ns);
/* 0 while there is reason to wait; -ETIMEDOUT; -EINTR: interrupted since the wait began. */
int java_patience_check(uint64_t deadline_ns);
/* How long to sleep at a time; more only delays an interrupt. */
uint64_t java_patience_step(uint64_t deadline_ns);
