/* src/proc/maps.h: the mappings of an address space, sorted by address. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/view.h"

enum {
	PROC_MAP_READ = 1,
	PROC_MAP_WRITE = 2,
	PROC_MAP_EXEC = 4,
	PROC_MAP_DELETED = 8, /* the file has been deleted */
	PROC_MAP_SHARED = 16, /* writes go to the file; unknown for a core */
};

struct proc_map {
	uint64_t start;
	uint64_t end;
	uint64_t offset; /* in the file */
	uint64_t dev;	 /* 0 for anonymous memory; inode 0 as well */
	uint64_t inode;
	unsigned int flags;
	const char *path; /* without " (deleted)"; "" or "[heap]", "[vdso]", ... when anonymous */
};

/* A zeroed struct proc_maps is empty. */
struct proc_maps {
	struct proc_map *maps;
	size_t len;
	size_t cap;
	struct arena paths;
};

#define PROC_MAPS_MAX ((size_t)262144)

int proc_maps_read(pid_t pid, struct proc_maps *maps, struct err *err);
/* Parses the text of a maps file; -EBADMSG for invalid lines. */
int proc_maps_parse(struct view text, struct proc_maps *maps, struct err *err);
/* Appends one mapping in the caller's order. Copies path. */
int proc_maps_add(struct proc_maps *maps, const struct proc_map *map, struct err *err);
/* The mapping that holds addr, or NULL. */
const struct proc_map *proc_maps_find(const struct proc_maps *maps, uint64_t addr);
void proc_maps_release(struct proc_maps *maps);
