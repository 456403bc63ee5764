/*
 * src/server/sandbox.h: what the server's threads may do: answer from the store, and nothing else.
 *
 * They read requests from anybody on this machine. Should one of them be taken over, it has no
 * capability, and no system call that starts a program, reaches into a process, opens a connection
 * or changes the machine.
 */
#pragma once

#include <stdint.h>

#include "base/err.h"

/*
 * For the calling thread, and those that it starts: keeps only these capabilities. Without seccomp
 * it does what is possible.
 */
int server_sandbox_enter(uint64_t keep_caps, struct err *err);
