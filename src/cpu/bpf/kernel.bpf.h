/*
 * src/cpu/bpf/kernel.bpf.h: the kernel types that the BPF programs access, and the registers of the
 * machine. BTF adapts the offsets to the running kernel.
 */
#pragma once

#include "bpf/program.bpf.h"

#define PF_EXITING 0x00000004
#define PF_IO_WORKER 0x00000010
#define PF_FORKNOEXEC 0x00000040
#define PF_KTHREAD 0x00200000

#if defined(__TARGET_ARCH_x86)

/* As passed by perf events; under -target bpf, asm/ptrace.h would be the 32-bit one. */
struct user_regs {
	u64 r15, r14, r13, r12, rbp, rbx, r11, r10, r9, r8, rax, rcx, rdx, rsi, rdi, orig_rax, rip,
		cs, eflags, rsp, ss;
};
struct pt_regs {
	unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, ip, cs, sp;
} KERNEL_TYPE;

#define REGS_PC(regs) ((regs)->rip)
#define REGS_MODE(regs) ((regs)->cs)
#define TASK_PC(regs) ((regs)->ip)
#define TASK_MODE(regs) ((regs)->cs)
#define MODE_IS_USER(mode) (((mode)&3) == 3)
#define MODE_IS_32BIT(mode) ((mode) == 0x23)

/*
 * By DWARF number. Copied field by field: the context must not be read through a modified pointer.
 */
#define REGS_COPY(dst, src) REGS_COPY_NAMED(dst, src, r)
#define TASK_COPY(dst, src) REGS_COPY_NAMED(dst, src, )
#define REGS_COPY_NAMED(dst, src, P)                                                               \
	do {                                                                                       \
		(dst)[0] = (src)->P##ax;                                                           \
		(dst)[1] = (src)->P##dx;                                                           \
		(dst)[2] = (src)->P##cx;                                                           \
		(dst)[3] = (src)->P##bx;                                                           \
		(dst)[4] = (src)->P##si;                                                           \
		(dst)[5] = (src)->P##di;                                                           \
		(dst)[6] = (src)->P##bp;                                                           \
		(dst)[7] = (src)->P##sp;                                                           \
		(dst)[8] = (src)->r8;                                                              \
		(dst)[9] = (src)->r9;                                                              \
		(dst)[10] = (src)->r10;                                                            \
		(dst)[11] = (src)->r11;                                                            \
		(dst)[12] = (src)->r12;                                                            \
		(dst)[13] = (src)->r13;                                                            \
		(dst)[14] = (src)->r14;                                                            \
		(dst)[15] = (src)->r15;                                                            \
	} while (0)

#elif defined(__TARGET_ARCH_arm64)

/* Enough to compile: user space does not start the sampler on this machine yet. */
struct user_regs {
	u64 regs[31], sp, pc, pstate;
};
struct pt_regs {
	u64 regs[31];
	u64 sp, pc, pstate;
} KERNEL_TYPE;

#define REGS_PC(r) ((r)->pc)
#define REGS_MODE(r) ((r)->pstate)
#define TASK_PC(r) ((r)->pc)
#define TASK_MODE(r) ((r)->pstate)
#define MODE_IS_USER(mode) (((mode)&0xf) == 0)
#define MODE_IS_32BIT(mode) (((mode)&0x10) != 0)
#define REGS_COPY(dst, src)                                                                        \
	do {                                                                                       \
		(dst)[CPU_SAMPLER_FP] = (src)->regs[CPU_SAMPLER_FP];                               \
		(dst)[CPU_SAMPLER_SP] = (src)->sp;                                                 \
	} while (0)
#define TASK_COPY(dst, src) REGS_COPY(dst, src)

#else
#error "the registers of this machine are not described"
#endif

struct bpf_perf_event_data {
	struct user_regs regs;
	u64 sample_period;
	u64 addr;
};

typedef struct {
	int counter;
} atomic_t;

struct mm_struct {
	unsigned long start_code, start_stack;
} KERNEL_TYPE;

struct signal_struct {
	atomic_t live;
} KERNEL_TYPE;

typedef struct {
	unsigned int val;
} kuid_t;

struct cred {
	kuid_t uid;
} KERNEL_TYPE;

struct kernfs_node {
	u64 id;
} KERNEL_TYPE;

struct cgroup {
	int level;
	struct kernfs_node *kn;
} KERNEL_TYPE;

struct cgroup_subsys_state {
	struct cgroup *cgroup;
} KERNEL_TYPE;

enum cgroup_subsys_id { memory_cgrp_id = 4 };

struct css_set {
	struct cgroup_subsys_state *subsys[16];
	struct cgroup *dfl_cgrp;
} KERNEL_TYPE;

#if defined(__TARGET_ARCH_x86)
struct thread_struct {
	unsigned long fsbase;
} KERNEL_TYPE;
#define TASK_SELF(task) ((task)->thread.fsbase)
#else
struct thread_struct {
} KERNEL_TYPE;
#define TASK_SELF(task) 0 /* as above */
#endif

struct task_struct {
	unsigned int __state;
	unsigned int flags;
	int pid;
	int tgid;
	struct mm_struct *mm;
	struct task_struct *real_parent;
	struct task_struct *group_leader;
	struct signal_struct *signal;
	const struct cred *real_cred;
	struct css_set *cgroups;
	u64 start_boottime;
	u64 self_exec_id;
	char comm[16];
	struct thread_struct thread;
} KERNEL_TYPE;
