/*
 * src/proc/mem.h: one interface to the memory of a program, from three sources:
 * a live process (batched process_vm_readv, nothing is stopped), an ELF core file, and the file
 * of a program that need not run.
 *
 * A live struct proc_mem belongs to one address space. When the process exits, execs, or its
 * pid is reused, proc_mem_check() says -ESRCH: it reads through a /proc/PID/mem descriptor,
 * which the kernel binds to the address space that was there at open.
 *
 * Files can be put behind address ranges (proc_mem_back): a live source then reads clean
 * read-only code and tables from the file, so that the target's own memory does not grow by
 * our reading; a core source takes from the file what the kernel left out of the core.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "proc/maps.h"

struct proc_mem; /* opaque */

struct proc_range {
	uint64_t addr;
	void *dst;
	size_t len;
};

/* What reading has cost so far. */
struct proc_mem_stats {
	uint64_t syscalls;
	uint64_t bytes;
};

/* -ESRCH gone, -EPERM with the sentence that names the missing capability. */
int proc_mem_open(pid_t pid, struct proc_mem **ret_mem, struct err *err);
/* For readers of many targets who know their addresses: no mappings, and reads never wait. */
int proc_mem_open_bare(pid_t pid, struct proc_mem **ret_mem, struct err *err);
/*
 * Reads by pread from now on, which fails where process_vm_readv would wait: a target can answer
 * its own page faults (userfaultfd), or not answer them. For readers of many targets.
 */
void proc_mem_never_wait(struct proc_mem *mem);
/* The core of a crashed or gcore'd program (amd64 or arm64). */
int proc_mem_open_core(const char *path, struct proc_mem **ret_mem, struct err *err);
/*
 * The file of a program (amd64 or arm64) as its memory would be at link-time addresses, before it
 * ran: what the file holds, nothing of .bss. relocated: with the pointers of position-independent
 * programs filled in, which takes memory. The descriptor is duplicated.
 */
int proc_mem_open_elf(int fd, bool relocated, struct proc_mem **ret_mem, struct err *err);
void proc_mem_close(struct proc_mem *mem); /* NULL is fine */
DEFINE_CLEANUP(struct proc_mem, proc_mem_close)

/* All of it, or -EFAULT (bad address), -ESRCH (gone). */
int proc_mem_read(struct proc_mem *mem, uint64_t addr, void *dst, size_t len, struct err *err);
/* The readable prefix: the number of bytes read, possibly 0; -ESRCH when the process is gone. */
ssize_t proc_mem_read_some(struct proc_mem *mem, uint64_t addr, void *dst, size_t len);
/* All ranges in as few system calls as possible (1024 ranges each), or an error as above. */
int proc_mem_readv(struct proc_mem *mem, const struct proc_range *ranges, size_t n,
		   struct err *err);

/* Reads len bytes at addr like proc_mem_read, and proves that the address space is still the one
 * that was opened: -ESRCH after an exit, an exec or a pid reuse. One system call. */
int proc_mem_check(struct proc_mem *mem, uint64_t addr, void *dst, size_t len, struct err *err);
/* Writes into a live target; only for what the user asked to force. -ENOTSUP for cores. */
int proc_mem_write(struct proc_mem *mem, uint64_t addr, const void *src, size_t len,
		   struct err *err);

/* Puts len bytes of the file at off behind [addr, addr+len). The descriptor is duplicated. */
int proc_mem_back(struct proc_mem *mem, uint64_t addr, uint64_t len, int fd, uint64_t off,
		  struct err *err);

/*
 * The mappings; for a core, its segments with the names of NT_FILE, and the files of NT_FILE that
 * were left out of the core (as PROC_MAP_READ: what else they were is not known). Borrowed, and
 * replaced by proc_mem_refresh_maps().
 */
const struct proc_maps *proc_mem_maps(const struct proc_mem *mem);
int proc_mem_refresh_maps(struct proc_mem *mem, struct err *err);
/* AT_ENTRY and others of the auxiliary vector; false when unknown. */
bool proc_mem_auxv(const struct proc_mem *mem, uint64_t type, uint64_t *ret_value);
/* EM_X86_64 or EM_AARCH64; for a live process, the machine's own. */
uint16_t proc_mem_machine(const struct proc_mem *mem);
/* When the memory was as it reads, in ns since 1970: now, or when the core was written. */
int64_t proc_mem_time_ns(const struct proc_mem *mem);
pid_t proc_mem_pid(const struct proc_mem *mem); /* 0 for a core */

/* Where a thread was when its core was written. */
struct proc_thread {
	uint64_t tid;
	uint64_t pc;
	uint64_t sp;
};
/* False for a thread that the core does not have, and for what is alive. */
bool proc_mem_thread(const struct proc_mem *mem, uint64_t tid, struct proc_thread *ret_thread);

/*
 * Opens the very file that is mapped there, never another of the same name: through
 * /proc/PID/map_files or /proc/PID/exe, or by path inside the target's root with device and inode
 * compared. Regular files only. For a core: the path of NT_FILE, when it still exists.
 */
int proc_mem_open_file(const struct proc_mem *mem, const struct proc_map *map, int *ret_fd,
		       struct err *err);
struct proc_mem_stats proc_mem_stats(const struct proc_mem *mem);
