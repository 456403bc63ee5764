/*
 * src/golang/goroutine/labels.h: pprof labels of goroutines.
 *
 * Up to 1.23 g.labels points to a map[string]string, from 1.24 to a slice of pairs. Neither changes
 * once set, and goroutines started with the same labels share them, so each address is read once
 * per read.
 *
 *   map (runtime/map.go)     count, flags u8, B u8 @9, ..., buckets @16, old buckets @24
 *   bucket                   8 × top hash u8, 8 × key, 8 × value (strings), overflow
 *   slice                    data, len, cap; each element {key, value}
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/intern.h"
#include "base/map.h"
#include "proc/mem.h"

struct golang_labels {
	struct proc_mem *mem; /* borrowed */
	bool is_map;
	struct map by_address;
	struct intern sets; /* pairs as {key NUL value NUL}...; set n has the id n - 1 */
	struct arena arena;
	const char *const **lists; /* by id */
	size_t lists_cap;
	size_t strings_left; /* left to read */
};

void golang_labels_init(struct golang_labels *l, struct proc_mem *mem, bool is_map);
void golang_labels_release(struct golang_labels *l);
/* Forgets everything: addresses may now hold other labels. */
void golang_labels_clear(struct golang_labels *l);

/*
 * The number of the set at addr, 0 for none; -EBADMSG if invalid, -E2BIG if there are too many.
 * g_labels and g_goid are the addresses of the goroutine's fields: if they are unchanged after the
 * read, the set was not freed meanwhile.
 */
int64_t golang_labels_at(struct golang_labels *l, uint64_t addr, uint64_t g_labels, uint64_t g_goid,
			 uint64_t goid);
/* Flat {key, value} strings, NULL-terminated. */
const char *const *golang_labels_list(const struct golang_labels *l, uint32_t set);
