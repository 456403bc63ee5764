/*
 * src/cpu/sampler/sampler.h: samples the stacks of everything that runs, with BPF programs on perf
 * events.
 *
 * Stacks are counted in the kernel; a drain emits each distinct one with its count. Frames in files
 * are (file, link-time address), so they outlive the process. Losses are counted. One thread at a
 * time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "cpu/interp/interp.h"
#include "cpu/unwind/files.h"

struct cpu_sampler; /* opaque */

struct cpu_sampler_options {
	unsigned int hz; /* samples per second and CPU; 0: none (off-CPU only) */
	pid_t pid;	 /* only this process; 0: all */
	bool threads;	 /* separate threads; otherwise tid and thread are those of any one */
	bool kernel;	 /* kernel frames as well */
	uint64_t offcpu_min_ns;	 /* 0: no off-CPU; otherwise waits at least this long */
	bool events;		 /* exec and exit of processes, for cpu_sampler_poll() */
	bool urgent;		 /* poll with real-time priority, if permitted */
	const char *subuid_path; /* NULL: the machine's */
};

enum cpu_stack_end {
	CPU_STACK_ROOT,	     /* reached the outermost frame */
	CPU_STACK_TRUNCATED, /* more than CPU_STACK_MAX frames */
	CPU_STACK_NO_RULE,   /* code without unwind information: callers may be missing */
	CPU_STACK_UNREADABLE,
	CPU_STACK_UNSUPPORTED,
	CPU_STACK_NOT_LOADED, /* the tables of the process were not loaded yet */
	CPU_STACK_32BIT,      /* a 32-bit program: not supported */
	CPU_STACK_N,
};

#define CPU_STACK_MAX 512 /* user frames, and those of an interpreter */
#define CPU_STACK_KERNEL_MAX 127

/* A process as samples identify it: a reused pid, or an exec, makes another one. */
struct cpu_process {
	pid_t pid;
	uint64_t start_ns;   /* since boot, in the kernel's terms */
	uint64_t generation; /* unique within the sampler */
	char comm[16];	     /* of the thread group leader, as last seen */
	uint64_t cgroup;     /* inode of its cgroup directory (v2, or v1's memory) */
	pid_t elder;	     /* its nearest ancestor that is not short-lived; 0: unknown */
	uid_t uid;	     /* real; PROC_UID_UNKNOWN if it was gone before it was sampled */
	uid_t owner;	     /* whose budgets and shares it uses (proc/subuid.h) */
	struct interp interp;
};

struct cpu_frame {
	const struct cpu_file *file; /* NULL: anonymous memory (JIT), or not known to be mapped */
	uint64_t address;	     /* link-time if in a file, otherwise absolute */
	bool is_return;		     /* a return address: the call is before it */
	bool is_interp;		     /* the next of the interpreter's frames, not a native one */
};

struct cpu_stack {
	const struct cpu_process *process;
	pid_t tid;
	char thread[16];
	bool offcpu;
	enum cpu_stack_end end;
	uint64_t count;	   /* samples, or waits */
	uint64_t value_ns; /* CPU time, or time waited */
	/*
	 * Kernel addresses, innermost first; off-CPU starts with __schedule() or a tracepoint's
	 * frames.
	 */
	uint16_t n_kernel;
	uint16_t n_user;
	const uint64_t *kernel;
	const struct cpu_frame *user;
	/*
	 * Interpreter frames: they replace user frames marked is_interp; the rest is what the
	 * interpreter's loop, found among the user frames, was executing.
	 */
	enum interp_kind interp_kind;
	uint16_t n_interp;
	bool interp_cut; /* there are more than CPU_STACK_MAX, or they could not be read */
	const struct interp_frame *interp;
};

struct cpu_losses {
	uint64_t samples;	    /* total, including lost ones */
	uint64_t lost_ring;	    /* samples whose stack did not fit into the ring buffer */
	uint64_t lost_table;	    /* samples that did not fit into the table of counts */
	uint64_t lost_files;	    /* too many processes, mappings, files or rows: omitted */
	uint64_t ends[CPU_STACK_N]; /* samples by how their stack ended */
};

struct cpu_event {
	enum {
		CPU_EVENT_EXEC,
		CPU_EVENT_EXIT,
		/* First samples of a process: it can be identified while it is alive. */
		CPU_EVENT_SAMPLED,
		/* Frames whose names may be gone by the drain, along with their process. */
		CPU_EVENT_FRAMES,
		/* A process that no stack refers to any more, and a file about to be closed. */
		CPU_EVENT_GONE,
		CPU_EVENT_CLOSE,
	} kind;
	pid_t pid;
	char comm[16];
	const struct cpu_process
		*process; /* not for exec and exit; the same as later in its stacks */
	enum interp_kind interp_kind;
	const struct interp_frame *interp;
	size_t n_interp;
	const struct cpu_file *file;
};

/*
 * -EPERM, -ENOTSUP: not possible here; the message tells what is missing (BTF, bpf(), perf events)
 * and the remedy.
 */
int cpu_sampler_open(const struct cpu_sampler_options *options, struct cpu_sampler **ret_sampler,
		     struct err *err);
void cpu_sampler_close(struct cpu_sampler *sampler); /* NULL is fine */
DEFINE_CLEANUP(struct cpu_sampler, cpu_sampler_close)

/*
 * Waits up to timeout_ms for news (new processes, new code, execs), loads what the samples need,
 * and emits events. Call it often: until code is loaded, its stacks are incomplete. On a machine
 * whose CPUs are all busy this takes priority: with the option `urgent`, the calling thread has a
 * real-time priority while it waits and while it reads the mappings of short-lived processes, but
 * not for longer work. Events may also come during the next drain, so context must live until then.
 */
int cpu_sampler_poll(struct cpu_sampler *sampler, int timeout_ms,
		     void (*on_event)(void *context, const struct cpu_event *event), void *context,
		     struct err *err);

/* Emits all stacks since the last drain; everything they point to is valid until emit returns. */
int cpu_sampler_drain(struct cpu_sampler *sampler,
		      int (*emit)(void *context, const struct cpu_stack *stack), void *context,
		      struct err *err);

/* Whether the pid of a process still runs the program that was sampled. */
bool cpu_sampler_is_current(const struct cpu_sampler *sampler, const struct cpu_process *process);

/* Since opening. */
void cpu_sampler_losses(const struct cpu_sampler *sampler, struct cpu_losses *ret_losses);
