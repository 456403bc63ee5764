/*
 * src/cpu/bpf/shared.h: what the BPF programs and user space share.
 *
 *   processes  tgid ─► first, n ──► mappings  [start, end) ─► bias, file
 *                                                               │
 *                                   files     state, index ◄────┘
 *                                               │
 *   chunks of 1 MB:  ... | page 0 | page 1 | ...   ← index: {first row, rows} per 1 kB of text
 *                        | row | row | row | ...   ← {offset in its 1 kB, number of its rule}
 *                                 │
 *   rules       struct elf_unwind_rule ◄┘
 *
 * The rows of a page are in one chunk, sorted, and the first is at offset 0: each page can be
 * searched alone.
 */
#pragma once

#include <linux/types.h>

#include "cpu/interp/interp_shared.h"
#include "elf/unwind/rule.h"

#define CPU_SAMPLER_FRAMES_MAX 512 /* of a user stack, and of an interpreter's */
#define CPU_SAMPLER_KERNEL_MAX 127
/* Of text. Small, so that a search finds the rows of one in a line or two of the CPU's cache. */
#define CPU_SAMPLER_PAGE_BITS 10
#define CPU_SAMPLER_PAGE_SIZE (1U << CPU_SAMPLER_PAGE_BITS)
#define CPU_SAMPLER_CHUNK_BITS 18 /* words of 4 bytes */
#define CPU_SAMPLER_CHUNK_WORDS (1U << CPU_SAMPLER_CHUNK_BITS)
#define CPU_SAMPLER_CHUNKS 64U
#define CPU_SAMPLER_RULES (1U << 15)
#define CPU_SAMPLER_MAPPINGS (1U << 16) /* on a small machine */
#define CPU_SAMPLER_MAPPINGS_PER_PROCESS 4096U
#define CPU_SAMPLER_PROCESSES (1U << 14)
#define CPU_SAMPLER_FILES 8192U
#define CPU_SAMPLER_NO_FILE 0xffffffffU

/*
 * A row is a word: the offset in its page in the upper bits, the number of its rule in the lower.
 * Most rules are short enough to be in the row themselves, which saves a look at a table that is in
 * no cache: CFA = stack pointer + 8 * bits 0-11; bits 12-14 are 0 if the frame pointer is still in
 * its register, else it is saved at CFA - 8 * (bits + 1).
 */
#define CPU_SAMPLER_ROW(offset, rule) ((__u32)(offset) << 16 | (rule))
#define CPU_SAMPLER_ROW_OFFSET(row) ((row) >> 16)
#define CPU_SAMPLER_ROW_RULE(row) ((row)&0xffffU)
#define CPU_SAMPLER_RULE_SHORT 0x8000U
#define CPU_SAMPLER_SHORT_CFA(number) (((number)&0xfffU) * 8)
#define CPU_SAMPLER_SHORT_FP(number) ((number) >> 12 & 7)

struct cpu_sampler_chunk {
	__u32 words[CPU_SAMPLER_CHUNK_WORDS];
};

enum cpu_sampler_file_state {
	CPU_SAMPLER_FILE_NEW,	/* its tables have not been requested yet */
	CPU_SAMPLER_FILE_ASKED, /* they have: user space is about to load them */
	CPU_SAMPLER_FILE_TABLE,
	CPU_SAMPLER_FILE_CHAIN, /* there are none: frame pointers */
	CPU_SAMPLER_FILE_PARTS, /* each part has its own entry */
};

/* A file, or a part of a large one: those are loaded when they are sampled. */
struct cpu_sampler_file {
	__u32 state;
	__u32 index; /* word of the first page's {first, n}; with parts: the entry of the first */
	__u32 n_pages;
	__u32 keeps_fp;	  /* code without a rule keeps frame pointers */
	__u64 first_page; /* link-time address, in pages */
};
#define CPU_SAMPLER_PART_BITS 15 /* pages: 32 MB */
#define CPU_SAMPLER_PART_PAGES (1U << CPU_SAMPLER_PART_BITS)

struct cpu_sampler_mapping {
	__u64 start;
	__u64 end;
	__u64 bias;	  /* address - bias is the link-time address */
	__u32 file;	  /* CPU_SAMPLER_NO_FILE for anonymous memory */
	__u32 generation; /* of the file: never the same for another */
};

/*
 * Samples are so far apart that nothing of the tables is in a cache of the CPU: what counts is how
 * many places a walk looks at. So the rules of return addresses are remembered by file and address,
 * in one place each, and the mapping last found for a process and address.
 */
struct cpu_sampler_memo {
	__u64 check; /* key ^ rule: programs on other CPUs may write at the same time */
	__u64 rule;  /* struct elf_unwind_rule */
};
#define CPU_SAMPLER_MEMO_BITS 12
#define CPU_SAMPLER_HINT_BITS 11

/*
 * A pid alone does not identify a process: the start time does, and the number of execs a program.
 */
struct cpu_sampler_process {
	__u64 start_ns;
	__u64 exec_id;
	__u64 asked_ns;	 /* when they were last requested, unless they have come since */
	__u64 loaded_ns; /* when its mappings were last read; 0: never */
	__u64 wait_ns;	 /* minimum time between two such reports */
	struct interp_process interp;
	__u32 first;
	__u32 n;
	__u32 keeps_fp; /* code compiled at run time keeps frame pointers */
	__u32 unused;
};

struct cpu_sampler_counts {
	__u64 count;
	__u64 ns;
};

/* How a stack ended: the same as enum cpu_stack_end. */
enum cpu_sampler_end {
	CPU_SAMPLER_END_ROOT,
	CPU_SAMPLER_END_TRUNCATED,
	CPU_SAMPLER_END_NO_RULE,
	CPU_SAMPLER_END_UNREADABLE,
	CPU_SAMPLER_END_UNSUPPORTED,
	CPU_SAMPLER_END_NOT_LOADED,
	CPU_SAMPLER_END_32BIT,
	CPU_SAMPLER_END_N,
};

/*
 * A user frame: bits 0-46 the address, bit 47 set unless it is a return address, bits 48-63 the
 * number of its file + 1, or 0 if the address is absolute. All ones there: an interpreter's frame,
 * whose words (struct interp_frame) follow directly. If an interpreter keeps its frames outside the
 * stack, they come after all user frames.
 */
#define CPU_SAMPLER_FRAME_ADDRESS ((1ULL << 47) - 1)
#define CPU_SAMPLER_FRAME_EXACT (1ULL << 47)
#define CPU_SAMPLER_FRAME_FILE_SHIFT 48
#define CPU_SAMPLER_FRAME_INTERP 0xffffULL /* as number of a file + 1 */

struct cpu_sampler_thread {
	__u64 start_ns; /* of the process */
	__u64 exec_id;
	__u32 tgid;
	__u32 tid;
	char name[16];
};

/* Whoever has lived for so long is not short-lived; and how many ancestors are asked. */
#define CPU_SAMPLER_ELDER_NS 60000000000ULL
#define CPU_SAMPLER_ELDERS_MAX 8

struct cpu_sampler_stack {
	struct cpu_sampler_thread thread;
	__u64 hash;
	__u64 cgroup;
	__u32 epoch;
	__u32 uid; /* real */
	__u8 offcpu;
	__u8 end; /* enum cpu_sampler_end */
	__u16 n_kernel;
	__u16 n_user;
	__u16 n_interp;	 /* of INTERP_WORDS each */
	__u8 interp;	 /* enum interp_kind: the interpreter */
	__u8 interp_cut; /* there are more */
	__u8 unused[2];
	__u32 elder;   /* the nearest ancestor that has lived for CPU_SAMPLER_ELDER_NS; 0: none */
	char comm[16]; /* of the thread group leader */
	/* Kernel, native and interpreter frames; a power of two. */
	__u64 frames[4 * CPU_SAMPLER_FRAMES_MAX];
};
#define CPU_SAMPLER_FRAME_MASK (4 * CPU_SAMPLER_FRAMES_MAX - 1)

/* What it counts as: one that lacks frames of an interpreter is not whole. */
static inline __u32 cpu_sampler_stack_end(const struct cpu_sampler_stack *s)
{
	return s->end == CPU_SAMPLER_END_ROOT && s->n_interp && s->interp_cut
		       ? CPU_SAMPLER_END_TRUNCATED
		       : s->end;
}

/*
 * What the walk must know of a machine: the number of DWARF registers, which ones are the frame and
 * the stack pointer, and where a signal frame keeps them, relative to the stack pointer when the
 * handler returns.
 */
#if defined(__TARGET_ARCH_x86) || defined(__x86_64__)
/* struct ucontext has the registers at 40: rbp is the 10th, rsp the 15th, rip the 16th. */
#define CPU_SAMPLER_REGS 16
#define CPU_SAMPLER_FP 6
#define CPU_SAMPLER_SP 7
#define CPU_SAMPLER_SIGNAL_REGS 120
#define CPU_SAMPLER_SIGNAL_FP 0
#define CPU_SAMPLER_SIGNAL_SP 5
#define CPU_SAMPLER_SIGNAL_PC 6
#define CPU_SAMPLER_SIGNAL_N 7
#elif defined(__TARGET_ARCH_arm64) || defined(__aarch64__)
/* Enough to compile: user space does not start the sampler on this machine yet. x29 is at
 * 16 + 29 * 8 in the context, sp and pc follow x30. */
#define CPU_SAMPLER_REGS 32
#define CPU_SAMPLER_FP 29
#define CPU_SAMPLER_SP 31
#define CPU_SAMPLER_SIGNAL_REGS 552
#define CPU_SAMPLER_SIGNAL_FP 0
#define CPU_SAMPLER_SIGNAL_SP 2
#define CPU_SAMPLER_SIGNAL_PC 3
#define CPU_SAMPLER_SIGNAL_N 4
#else
#error "the registers of this machine are not described"
#endif

/*
 * A stack that could not be walked yet: registers and the top of the stack, in blocks that do not
 * cross pages. stack holds the part walked so far; its hash is unique to this sample.
 */
#define CPU_SAMPLER_COPY_BLOCK 512U
#define CPU_SAMPLER_COPY_BLOCKS 48U

struct cpu_sampler_copy {
	struct cpu_sampler_stack stack;
	__u64 regs[CPU_SAMPLER_REGS];
	__u64 pc;
	__u64 start_code; /* the process's code and its initial stack */
	__u64 start_stack;
	__u64 self;  /* what pthread_self() is for the thread: it lies above its stack */
	__u64 start; /* address of the first byte */
	__u32 n_bytes;
	__u32 parent; /* forked from this one, and runs the same program; 0 after an exec */
	__u8 bytes[CPU_SAMPLER_COPY_BLOCKS * CPU_SAMPLER_COPY_BLOCK];
};

enum cpu_sampler_notice_kind {
	CPU_SAMPLER_NOTICE_PROCESS, /* an unknown process, sampled at value */
	CPU_SAMPLER_NOTICE_ADDRESS, /* value is an address in none of its mappings */
	CPU_SAMPLER_NOTICE_FILE,    /* value is a file whose tables are needed */
	CPU_SAMPLER_NOTICE_EXEC,
	CPU_SAMPLER_NOTICE_EXIT,
};

struct cpu_sampler_notice {
	struct cpu_sampler_thread thread;
	__u32 kind;
	__u32 unused;
	__u64 value;
};

/* A thread's wait, starting when it left its CPU. */
struct cpu_sampler_wait {
	__u64 out_ns; /* 0 while it runs */
	__u64 hash;   /* of the stack taken; 0: none */
	__u32 weight; /* one of this many stacks of the thread is taken */
	__u32 taken;  /* the weight when this one was taken */
};

#define CPU_SAMPLER_WAITS (1U << 15)
#define CPU_SAMPLER_WEIGHT_MAX 64U
#define CPU_SAMPLER_SENT (1U << 14)
#define CPU_SAMPLER_NOTICES_BYTES (1U << 18)
