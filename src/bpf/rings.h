/*
 * src/bpf/rings.h: ring buffers of BPF programs, waited for together and read one by one. One
 * thread at a time.
 */
#pragma once

#include <stddef.h>

#include "base/cleanup.h"
#include "base/err.h"

#define BPF_RINGS_MAX 4

struct bpf_map;
struct bpf_rings; /* opaque */

int bpf_rings_new(struct bpf_rings **ret_rings, struct err *err);
void bpf_rings_free(struct bpf_rings *rings); /* NULL is fine */
DEFINE_CLEANUP(struct bpf_rings, bpf_rings_free)

/*
 * The first one added has the number 0, and so on. bpf_rings_read() calls hear for each record; it
 * returns 0.
 */
int bpf_rings_add(struct bpf_rings *rings, const struct bpf_map *map,
		  int (*hear)(void *context, void *data, size_t len), void *context,
		  struct err *err);

/*
 * Waits until a program wakes us; it may also add records without. Nonzero if it did; 0 after
 * timeout_ms (-1: never) or a signal.
 */
int bpf_rings_wait(struct bpf_rings *rings, int timeout_ms, struct err *err);
/* For poll(): readable when bpf_rings_wait() would return. */
int bpf_rings_fd(const struct bpf_rings *rings);
/* Reads all records of one ring, ready or not. */
int bpf_rings_read(struct bpf_rings *rings, unsigned int number, struct err *err);
