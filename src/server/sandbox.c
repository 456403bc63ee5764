/* src/server/sandbox.c: see sandbox.h. */
#include "server/sandbox.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "proc/caps.h"

#if defined(__x86_64__)
#define SANDBOX_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define SANDBOX_ARCH AUDIT_ARCH_AARCH64
#endif

#ifdef SANDBOX_ARCH
/* The low half of a word; both architectures have it first. */
#define SANDBOX_ARG(i) (offsetof(struct seccomp_data, args) + (i) * sizeof(uint64_t))

static const int allowed[] = {
	/* connections, accepted and read */
	SYS_accept,
	SYS_accept4,
	SYS_recvfrom,
	SYS_recvmsg,
	SYS_sendto,
	SYS_sendmsg,
	SYS_shutdown,
	SYS_getsockname,
	SYS_getpeername,
	SYS_getsockopt,
	SYS_setsockopt,
	SYS_ppoll,
	SYS_pselect6,
	SYS_epoll_create1,
	SYS_epoll_ctl,
	SYS_epoll_pwait,
	SYS_eventfd2,
	SYS_pipe2,
	SYS_sendfile,
	/* the store: SQLite reads, and writes the index of its log */
	SYS_read,
	SYS_write,
	SYS_readv,
	SYS_writev,
	SYS_pread64,
	SYS_pwrite64,
	SYS_close,
	SYS_lseek,
	SYS_openat,
	SYS_fstat,
	SYS_newfstatat,
	SYS_statx,
	SYS_faccessat,
	SYS_faccessat2,
	SYS_fcntl,
	SYS_flock,
	SYS_ftruncate,
	SYS_fallocate,
	SYS_fsync,
	SYS_fdatasync,
	SYS_unlinkat,
	SYS_readlinkat,
	SYS_getdents64,
	SYS_getcwd,
	SYS_fchown,
	SYS_fchmod,
	SYS_dup,
	SYS_fadvise64,
	/* memory, threads, clocks */
	SYS_mmap,
	SYS_munmap,
	SYS_mremap,
	SYS_mprotect,
	SYS_madvise,
	SYS_brk,
	SYS_futex,
	SYS_set_robust_list,
	SYS_rseq,
	SYS_exit,
	SYS_exit_group,
	SYS_rt_sigaction,
	SYS_rt_sigprocmask,
	SYS_rt_sigreturn,
	SYS_sigaltstack,
	SYS_tgkill,
	SYS_restart_syscall,
	SYS_sched_yield,
	SYS_sched_getaffinity,
	SYS_membarrier,
	SYS_getcpu,
	SYS_clock_gettime,
	SYS_clock_getres,
	SYS_clock_nanosleep,
	SYS_nanosleep,
	SYS_gettimeofday,
	SYS_getrandom,
	/* about ourselves */
	SYS_getpid,
	SYS_gettid,
	SYS_getuid,
	SYS_geteuid,
	SYS_getgid,
	SYS_getegid,
	SYS_getrusage,
	SYS_prlimit64,
	SYS_prctl,
	SYS_uname,
	SYS_sysinfo,
#ifdef __x86_64__
	SYS_poll,
	SYS_select,
	SYS_epoll_wait,
	SYS_open,
	SYS_stat,
	SYS_lstat,
	SYS_access,
	SYS_unlink,
	SYS_readlink,
	SYS_time,
	SYS_arch_prctl,
#endif
};

enum { SANDBOX_MAX = 16 + 2 * ARRAY_SIZE(allowed) };

struct program {
	struct sock_filter code[SANDBOX_MAX];
	unsigned short len;
};

static void program_add(struct program *p, struct sock_filter line)
{
	p->code[p->len++] = line;
}

/* Where it is equal the next line applies, else the one after. */
static void program_if_equal(struct program *p, uint32_t value, struct sock_filter then)
{
	program_add(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1));
	program_add(p, then);
}

static void program_write(struct program *p)
{
	const struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	const struct sock_filter refuse =
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (EPERM & SECCOMP_RET_DATA));
	const struct sock_filter unknown =
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (ENOSYS & SECCOMP_RET_DATA));

	program_add(p, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						    offsetof(struct seccomp_data, arch)));
	program_add(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SANDBOX_ARCH, 1, 0));
	program_add(p, refuse);
	program_add(p, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						    offsetof(struct seccomp_data, nr)));
	for (size_t i = 0; i < ARRAY_SIZE(allowed); i++)
		program_if_equal(p, (uint32_t)allowed[i], allow);
	/* Its flags are in memory, where no filter sees them: the C library then uses clone. */
	program_if_equal(p, SYS_clone3, unknown);
	program_add(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 1, 0));
	program_add(p, refuse);
	program_add(p, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, SANDBOX_ARG(0)));
	program_add(p,
		    (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 0, 1));
	program_add(p, allow);
	program_add(p, refuse);
}

/* Where the kernel has no filters, or we may not use them, there is none. */
static void filter_enter(void)
{
	struct program p = {0};
	struct sock_fprog prog;

	program_write(&p);
	prog = (struct sock_fprog){.len = p.len, .filter = p.code};
	(void)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog);
}
#else
static void filter_enter(void)
{
}
#endif

int server_sandbox_enter(uint64_t keep_caps, struct err *err)
{
	int r = proc_caps_keep(keep_caps, err);

	if (r == 0)
		filter_enter();
	return r;
}
