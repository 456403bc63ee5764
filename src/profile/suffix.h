/*
 * src/profile/suffix.h: what compilers append to the name of a function that they split, cloned or
 * moved: "scan.constprop.0", "grow.part.0.cold", "poll.llvm.1837", "f(int) [clone .isra.0]".
 *
 * To a reader these are one function. Names of Go, Java and Python have dots of their own, so what
 * is known of a function decides how much of its name may be a suffix.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/view.h"

enum profile_suffix_trust {
	PROFILE_SUFFIX_NEVER,	 /* not a compiled C-like language */
	PROFILE_SUFFIX_NUMBERED, /* unknown: ".part.0", but not ".cold", which may be a method */
	PROFILE_SUFFIX_ALL,	 /* native code */
};

/* By its source file, and whether the program or library that it is part of is known. */
enum profile_suffix_trust profile_suffix_trust_of(struct view file, bool mapped);

/* The length of the name without its suffixes; at least 1 of a name that is not empty. */
size_t profile_suffix_start(struct view name, enum profile_suffix_trust trust);
