/* src/golang/goroutine_pcsp.h: how the frame of a function is left, from its record in pclntab. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "golang/pclntab.h"

struct golang_frame_rule {
	int64_t delta; /* from the stack pointer to the caller's frame; -1 when unknown */
	bool is_top;   /* the outermost function of its stack */
	bool moves_sp; /* to where pcsp cannot tell */
};

/* False when the record is damaged. f is the function that holds pc. */
bool golang_frame_rule_at(struct golang_pclntab *t, const struct golang_func *f, uint64_t pc,
			  struct golang_frame_rule *ret_rule);
