/*
 * src/proc/aide/wire.h: between sonde and an aide; private to this folder.
 *
 * A request and its answer are one message each on a socket, with a descriptor if need be.
 * Addresses, names and contents lie in memory that both share.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "proc/stat.h"

#define PROC_AIDE_RANGES_MAX 1024
#define PROC_AIDE_TEXT_BYTES 8192
#define PROC_AIDE_DATA_BYTES ((size_t)1 << 20)

enum proc_aide_op {
	PROC_AIDE_READ,	       /* ranges of memory, by pid */
	PROC_AIDE_PREAD,       /* one range, by the descriptor that comes along */
	PROC_AIDE_PROC_FILE,   /* the contents of /proc/PID/TEXT */
	PROC_AIDE_PROC_LINK,   /* where the link /proc/PID/TEXT leads to */
	PROC_AIDE_PROC_OPEN,   /* opens /proc/PID/TEXT, with flags */
	PROC_AIDE_STATS,       /* of each range: its address is the pid */
	PROC_AIDE_ACCOUNT,     /* the user who answers for a process */
	PROC_AIDE_OPEN_MAPPED, /* the file mapped at an address */
	PROC_AIDE_OPEN_NAMED,  /* a file of the directory TEXT, with the target's rights */
	PROC_AIDE_READ_PUBLIC, /* the contents of the file TEXT, if everybody may read it */
	PROC_AIDE_WRITE, /* one range of memory, twice in the data: as it is, as it shall be */
};

/* What the spawner is asked for. One that writes does nothing else, once. */
enum proc_aide_kind { PROC_AIDE_READER, PROC_AIDE_WRITER };

struct proc_aide_request {
	uint32_t op; /* enum proc_aide_op */
	int32_t pid;
	uint32_t n_ranges;
	uint32_t flags; /* of the mapping, or to open with */
	uint64_t max;	/* bytes of contents */
	uint64_t start, end, dev, inode;
};

struct proc_aide_answer {
	int32_t code;  /* 0 or -errno */
	uint32_t gone; /* reads: the address space of the descriptor is gone */
	uint64_t bytes;
	int64_t modified_ns; /* of a file that was read */
	uint64_t cpu_ns;     /* used by the aide since its start */
	uint64_t asleep_ns;  /* while it did this: waiting for the target, not for a CPU */
};

/* In the data: stats, one each. */
struct proc_aide_stat {
	struct proc_stat_reading reading;
	uint64_t asleep_ns;
};

struct proc_aide_shared {
	_Atomic int32_t pid; /* of the aide; 0 until it has begun */
	_Atomic uint32_t at; /* stats: the one that it reads */
	struct {
		uint64_t addr;
		uint64_t len;
	} ranges[PROC_AIDE_RANGES_MAX];
	char text[PROC_AIDE_TEXT_BYTES]; /* NUL-terminated; a second text behind the first */
	uint8_t data[PROC_AIDE_DATA_BYTES];
};

/*
 * One message, with up to one descriptor (-1: none; ret_fd NULL: whatever comes is closed). Returns
 * its bytes, 0 at the end, or -errno.
 */
int proc_aide_send(int sock, const void *message, size_t len, int fd);
int proc_aide_receive(int sock, void *message, size_t len, int *ret_fd);
