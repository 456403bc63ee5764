/* src/golang/binary/stack_depth.h: how deep the stacks in a program's own profiles may be. */
#pragma once

#include <stdint.h>

#include "golang/binary/module.h"

/* GODEBUG=profstackdepth is at most this. */
#define GOLANG_STACK_DEPTH_MAX 1024

/* The address of debug.profstackdepth (i32), which Go 1.23 added; 0 if not found. */
uint64_t golang_stack_depth_find(struct golang_module *module);
