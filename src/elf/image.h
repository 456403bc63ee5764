/*
 * src/elf/image.h: a bounds-checked view of a 64-bit little-endian ELF file.
 *
 * The file is read by pread, never mapped: a container that truncates its file meanwhile must not
 * be able to kill us with SIGBUS. Headers are copied at open; the rest is read on demand. A file
 * with missing or damaged section headers has no sections and still opens.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/view.h"

struct elf_segment {
	uint32_t type;
	uint32_t flags;
	uint64_t offset;
	uint64_t vaddr;
	uint64_t filesz;
	uint64_t memsz;
};

struct elf_section {
	const char *name; /* borrowed from the image */
	uint32_t type;
	uint64_t flags;
	uint64_t addr;
	uint64_t offset;
	uint64_t size;
	uint32_t link;
};

struct elf_image {
	uint16_t type;	  /* ET_EXEC, ET_DYN, ET_CORE */
	uint16_t machine; /* EM_X86_64, EM_AARCH64, ... */
	uint64_t entry;
	struct elf_segment *segments;
	size_t n_segments;
	struct elf_section *sections;
	size_t n_sections;
	/* private to image.c */
	int fd;
	struct view bytes;
	uint64_t size;
	uint8_t *names;
};

/* Duplicates fd. -EBADMSG if it is not an ELF file, or its headers are damaged. */
int elf_image_open_fd(int fd, struct elf_image **ret_image, struct err *err);
/* Bytes in memory; borrowed until close. */
int elf_image_open_bytes(struct view bytes, struct elf_image **ret_image, struct err *err);
void elf_image_close(struct elf_image *image); /* NULL is fine */
DEFINE_CLEANUP(struct elf_image, elf_image_close)

/* All len bytes at file offset off, or -EBADMSG. */
int elf_image_read(const struct elf_image *image, uint64_t off, void *dst, size_t len);
/* The descriptor, or -1 for bytes. */
int elf_image_fd(const struct elf_image *image);

const struct elf_section *elf_image_section(const struct elf_image *image, const char *name);
/* GNU build id from the notes, as lower-case hex; false if there is none. */
bool elf_image_build_id(const struct elf_image *image, char *dst, size_t dst_len);
/* The build id of Go's linker, printable ASCII, likewise. */
bool elf_image_go_build_id(const struct elf_image *image, char *dst, size_t dst_len);
