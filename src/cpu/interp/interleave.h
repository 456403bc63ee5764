/*
 * src/cpu/interp/interleave.h: which interpreter frames belong to which native frames.
 *
 * Whenever native code calls a function of the language, the interpreter's loop, itself native, is
 * entered again and runs that function and those it calls. So the loop's frames on the stack match
 * the runs of interpreter frames, each up to one that native code called, in number and order. They
 * may differ by one if the loop was interrupted while entering or leaving a frame, and by more if
 * either list is truncated: then the complete ends are aligned. A frame that has not started
 * belongs to a loop just being entered, whether that is already noted in it or not.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cpu/sampler/sampler.h"

/*
 * is_loop: for each user frame. ret_n[i] becomes the number of frames that replace user frame i,
 * starting with the innermost; 0 if it stays. Returns how many remain for after the last, if the
 * native frames are truncated.
 */
uint16_t cpu_interleave(const struct cpu_stack *stack, const bool *is_loop, uint16_t *ret_n);
