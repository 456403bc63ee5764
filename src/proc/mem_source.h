/*
 * src/proc/mem_source.h: what the sources of struct proc_mem share; private to this folder.
 *
 * A source is a struct that starts with a struct proc_mem and sets its ops. It does not know about
 * files behind ranges: mem.c consults those before or after the source.
 */
#pragma once

#include "proc/mem.h"

#define PROC_MEM_AUXV_MAX 64
#define PROC_MEM_BACKINGS_MAX 64

struct proc_mem_ops {
	/*
	 * Reads the prefix that the source has, 0 for none; -errno if it is broken or has exited.
	 */
	ssize_t (*read_some)(struct proc_mem *mem, uint64_t addr, void *dst, size_t len);
	/*
	 * Only for a source that prefers files: all ranges or none. Without it, the source returns
	 * what it has, and files fill the gaps.
	 */
	int (*readv)(struct proc_mem *mem, const struct proc_range *ranges, size_t n,
		     struct err *err);
	/* How far from addr the source definitely has nothing; 0 if a file must not step in. */
	uint64_t (*gap)(const struct proc_mem *mem, uint64_t addr);
	/* The message for a read of addr that failed with code (0: nothing there). */
	int (*explain)(struct proc_mem *mem, uint64_t addr, int code, struct err *err);

	/* NULL if the address space cannot change. */
	int (*check)(struct proc_mem *mem, uint64_t addr, void *dst, size_t len, struct err *err);
	int (*replace)(struct proc_mem *mem, uint64_t addr, const void *old, const void *src,
		       size_t len, struct err *err);
	int (*refresh_maps)(struct proc_mem *mem, struct err *err);
	bool (*thread)(const struct proc_mem *mem, uint64_t tid, struct proc_thread *ret_thread);
	int (*open_file)(const struct proc_mem *mem, const struct proc_map *map, int *ret_fd,
			 struct err *err);

	void (*close)(struct proc_mem *mem); /* frees mem itself */
};

struct proc_mem_auxv {
	uint64_t type;
	uint64_t value;
};

struct proc_mem_backing {
	uint64_t addr;
	uint64_t end;
	uint64_t off;
	int fd;
};

struct proc_mem {
	const struct proc_mem_ops *ops;
	pid_t pid;
	uint16_t machine;
	struct proc_maps maps;
	struct proc_mem_auxv auxv[PROC_MEM_AUXV_MAX];
	size_t n_auxv;
	struct proc_mem_backing backings[PROC_MEM_BACKINGS_MAX]; /* sorted, disjoint */
	size_t n_backings;
	struct proc_mem_stats stats;
	int64_t written_ns; /* of a core; 0 if alive */
	char who[128];	    /* "process 123 (name)" or "core file x (name)", for messages */
};

uint16_t proc_mem_own_machine(void);
/* Parses the pairs up to AT_NULL. */
void proc_mem_set_auxv(struct proc_mem *mem, struct view bytes);
/* Returns -EFAULT with the message for a bad address. */
int proc_mem_bad_address(const struct proc_mem *mem, uint64_t addr, struct err *err);
/* pread with statistics; returns the number of bytes, 0 at the end of the file, or -errno. */
ssize_t proc_mem_pread(struct proc_mem *mem, int fd, void *dst, size_t len, uint64_t off);
