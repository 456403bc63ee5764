/*
 * src/proc/mem.h: one interface to a program's memory, from three sources: a live process (batched
 * process_vm_readv, without stopping it), an ELF core file, and a program's file, running or not.
 *
 * A live struct proc_mem belongs to one address space. When the process exits, execs, or its pid is
 * reused, proc_mem_check() returns -ESRCH: it reads through a /proc/PID/mem descriptor, which the
 * kernel binds to the address space at open.
 *
 * Files can back address ranges (proc_mem_back). A live source then reads clean read-only code and
 * tables from the file, so our reads do not grow the target's memory. A core source takes from the
 * file what the kernel omitted.
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

/* The cost of reading so far. */
struct proc_mem_stats {
	uint64_t syscalls;
	uint64_t bytes;
};

/* -ESRCH if it has exited; -EPERM with a message that names the missing capability. */
int proc_mem_open(pid_t pid, struct proc_mem **ret_mem, struct err *err);
/* For readers of many targets with known addresses: no mappings, and reads never wait. */
int proc_mem_open_bare(pid_t pid, struct proc_mem **ret_mem, struct err *err);
/*
 * Switches to pread, which fails where process_vm_readv would wait: a target can handle its own
 * page faults (userfaultfd), or ignore them. For readers of many targets.
 */
void proc_mem_never_wait(struct proc_mem *mem);
/* The core of a program that crashed or was dumped by gcore (amd64 or arm64). */
int proc_mem_open_core(const char *path, struct proc_mem **ret_mem, struct err *err);
/*
 * A program's file (amd64 or arm64) as its memory would be at link-time addresses before it ran:
 * the contents of the file, nothing of .bss. relocated: with the pointers of position-independent
 * programs filled in, which takes memory. Duplicates the descriptor.
 */
int proc_mem_open_elf(int fd, bool relocated, struct proc_mem **ret_mem, struct err *err);
void proc_mem_close(struct proc_mem *mem); /* NULL is fine */
DEFINE_CLEANUP(struct proc_mem, proc_mem_close)

/* Reads all of it, or returns -EFAULT (bad address) or -ESRCH (exited). */
int proc_mem_read(struct proc_mem *mem, uint64_t addr, void *dst, size_t len, struct err *err);
/*
 * Reads the readable prefix and returns its length, possibly 0; -ESRCH if the process has exited.
 */
ssize_t proc_mem_read_some(struct proc_mem *mem, uint64_t addr, void *dst, size_t len);
/* All ranges in as few system calls as possible (1024 ranges each), or an error as above. */
int proc_mem_readv(struct proc_mem *mem, const struct proc_range *ranges, size_t n,
		   struct err *err);

/*
 * Like proc_mem_read, and verifies that the address space is still the one opened: -ESRCH after an
 * exit, exec or pid reuse. One system call.
 */
int proc_mem_check(struct proc_mem *mem, uint64_t addr, void *dst, size_t len, struct err *err);
/*
 * Writes into a live target, a few bytes that replace `old`; only for what the user explicitly
 * forced. -ESTALE if something else is there; -ETIMEDOUT if it does not respond: it may be written
 * yet. -ENOTSUP for cores.
 */
int proc_mem_replace(struct proc_mem *mem, uint64_t addr, const void *old, const void *src,
		     size_t len, struct err *err);

/* Backs [addr, addr+len) with the file at off. Duplicates the descriptor. */
int proc_mem_back(struct proc_mem *mem, uint64_t addr, uint64_t len, int fd, uint64_t off,
		  struct err *err);

/*
 * The mappings. For a core: its segments with the names from NT_FILE, and the NT_FILE entries
 * omitted from the core (as PROC_MAP_READ; the rest is unknown). Borrowed until
 * proc_mem_refresh_maps().
 */
const struct proc_maps *proc_mem_maps(const struct proc_mem *mem);
int proc_mem_refresh_maps(struct proc_mem *mem, struct err *err);
/* A value of the auxiliary vector, such as AT_ENTRY; false if unknown. */
bool proc_mem_auxv(const struct proc_mem *mem, uint64_t type, uint64_t *ret_value);
/* EM_X86_64 or EM_AARCH64; for a live process, the machine's own. */
uint16_t proc_mem_machine(const struct proc_mem *mem);
/* The time of the memory contents, in ns since 1970: now, or when the core was written. */
int64_t proc_mem_time_ns(const struct proc_mem *mem);
pid_t proc_mem_pid(const struct proc_mem *mem); /* 0 for a core */

/* The registers of a thread when the core was written. */
struct proc_thread {
	uint64_t tid;
	uint64_t pc;
	uint64_t sp;
};
/* False for a thread that is not in the core, and for live processes. */
bool proc_mem_thread(const struct proc_mem *mem, uint64_t tid, struct proc_thread *ret_thread);

/*
 * Opens the exact file mapped at this address, never another of the same name: through
 * /proc/PID/map_files or /proc/PID/exe, or by path inside the target's root with device and inode
 * compared. Regular files only. For a core: the path in NT_FILE, if it still exists.
 */
int proc_mem_open_file(const struct proc_mem *mem, const struct proc_map *map, int *ret_fd,
		       struct err *err);
struct proc_mem_stats proc_mem_stats(const struct proc_mem *mem);
