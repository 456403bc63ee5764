/*
 * src/golang/binary/image.h: the ELF image inside a process that contains the Go runtime.
 *
 * Usually the executable; a c-shared library in a C host; or memory alone, if the file on disk is
 * packed, deleted, or no longer what runs. Addresses in the image plus bias are addresses in the
 * process.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "elf/image.h"
#include "golang/binary/version.h"
#include "proc/mem.h"

struct golang_image {
	struct elf_image *elf;
	uint64_t bias;
	bool from_file;	  /* elf is the file, with its sections; otherwise only its mapped part */
	uint8_t *headers; /* the bytes of elf if !from_file */
	char path[512];	  /* of the mapping; "" for anonymous memory */
};

/* How thoroughly to search. */
enum golang_effort {
	GOLANG_GLANCE, /* named sections only, unless there are none: for process lists */
	GOLANG_SEARCH, /* also scan the executable for Go's tables */
};

/* Fills in the image. -ENOTSUP with a message if the process has no Go runtime. */
int golang_image_find(struct proc_mem *mem, const char *exe_path, enum golang_effort effort,
		      struct golang_image *ret_image, struct err *err);
/* The file behind one mapping as an image, whatever it contains. -ESTALE if it has changed. */
int golang_image_of_map(struct proc_mem *mem, const struct proc_map *map,
			struct golang_image *ret_image, struct err *err);
void golang_image_release(struct golang_image *image);

/*
 * Lets proc_mem read the image's clean segments from its file (proc_mem_back), if memory and file
 * still agree. For a core also the segments never written.
 */
int golang_image_back(const struct golang_image *image, struct proc_mem *mem, struct err *err);
/* The version of the build info, or -ENOENT. */
int golang_image_version(const struct golang_image *image, struct proc_mem *mem,
			 struct golang_version *ret_version, struct err *err);
