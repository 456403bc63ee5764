/*
 * src/cpu/interleave.h: which frames of an interpreter belong to which native ones.
 *
 * Each time native code calls a function of the language the interpreter's loop, which is native
 * itself, is entered anew, and runs that function and those it calls. So the loop's frames on the
 * stack, and the runs of the interpreter's frames up to one that native code called, are the same
 * in number and order. They may differ by one where the loop was interrupted just as it enters or
 * leaves a frame, and by more where either list is cut: then the ends that are whole are put side
 * by side. A frame that has not begun belongs to a loop that is just being entered, whether that is
 * noted in it already or not.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cpu/sampler.h"

/*
 * is_loop: of each user frame. ret_n[i] becomes how many frames take the place of user frame
 * i, in turn from the innermost on; 0 where it stays. Returns how many are left over, to come after
 * the last: where the native frames are cut.
 */
uint16_t cpu_interleave(const struct cpu_stack *stack, const bool *is_loop, uint16_t *ret_n);
