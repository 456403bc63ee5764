/*
 * src/golang/binary/buildinfo.h: the version that the linker wrote into the binary.
 *
 *   0  "\xff Go buildinf:"        16-aligned
 *  14  pointer size (8)
 *  15  flags: bit 0 big endian, bit 1 inline strings
 *  16  pointer form (1.17):  address of a string header {data, len} of the version
 *  32  inline form (1.18+):  varint length, then the version
 */
#pragma once

#include "base/err.h"
#include "golang/binary/scan.h"
#include "golang/binary/version.h"
#include "proc/mem.h"

#define GOLANG_BUILDINFO_MAGIC "\xff Go buildinf:"

/* Parses the block at addr. -EBADMSG if it is not one, or its version is invalid. */
int golang_buildinfo_read(struct proc_mem *mem, uint64_t addr, struct golang_version *ret_version,
			  struct err *err);
/* Searches [addr, addr+len) for the block and parses it; -ENOENT if there is none. */
int golang_buildinfo_scan(struct golang_scan *scan, uint64_t addr, uint64_t len,
			  struct golang_version *ret_version, struct err *err);
