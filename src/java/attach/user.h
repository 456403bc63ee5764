/*
 * src/java/attach/user.h: temporarily acts as the JVM's user.
 *
 * A JVM responds only to its own user. So the calling thread, and no other, takes the effective
 * user and group of the JVM around connect(). Only the effective ids change: the way back is always
 * open, and nobody else can signal or trace us meanwhile.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "java/attach/target.h"

struct java_user {
	bool changed;
	uid_t euid;
	gid_t egid;
	int dumpable;
};

/* -EPERM: we may not. */
int java_user_become(const struct java_target *target, struct java_user *ret_self);
void java_user_return(const struct java_user *self);
