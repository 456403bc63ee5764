/*
 * src/base/err.h: the sentence for the user that travels beside an -errno.
 *
 * Fixed meanings of the codes everywhere in sonde:
 *   -ESRCH    the process is gone, or is no longer the program we opened
 *   -EPERM    we lack a privilege
 *   -EFAULT   bad address in the target
 *   -EBADMSG  torn or malformed data
 *   -ENOTSUP  unknown version or layout, or a target that cannot be profiled
 *   -E2BIG    a size limit of ours was reached
 *
 * Where the machine or our rights on it are to blame, the sentence says why, what would help is
 * beside it, and the cause says what kind of lack it is, for programs to tell them apart.
 */
#pragma once

#include <errno.h>

enum err_cause {
	ERR_CAUSE_OTHER,
	ERR_CAUSE_DISABLED,	  /* the command line turned it off, or did not turn it on */
	ERR_CAUSE_NEEDS_FEATURE,  /* it comes with something else that is off */
	ERR_CAUSE_PRIVILEGE,	  /* capabilities */
	ERR_CAUSE_USER_NAMESPACE, /* we are root only in there */
	ERR_CAUSE_PID_NAMESPACE,
	ERR_CAUSE_SECCOMP,
	ERR_CAUSE_LOCKDOWN,
	ERR_CAUSE_PTRACE_SCOPE, /* Yama */
	ERR_CAUSE_HIDDEN,	/* the kernel, or a mount, hides a file or what is in it */
	ERR_CAUSE_NOT_MOUNTED,
	ERR_CAUSE_NO_BTF,
	ERR_CAUSE_KERNEL, /* too old, or built without */
	ERR_CAUSE_MACHINE,
	ERR_CAUSE_DISK,
	ERR_CAUSE_N,
};

struct err {
	char text[512];
	char remedy[256]; /* a command, or an imperative; "" when nothing is known to help */
	enum err_cause cause;
};

/* Writes the sentence, without a remedy; err may be NULL. */
void err_write(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* What would help, beside the sentence that is already there. */
void err_write_remedy(struct err *err, enum err_cause cause, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Puts "prefix: " before the sentence that is already there. */
void err_write_prefix(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/*
 * The same, with code as their value: `return err_set(err, -ESRCH, ...)`. Macros, so that compilers
 * and analysers see that the value is the code. It is taken first, for it often is -errno.
 */
#define err_set(err, code, ...)                                                                    \
	({                                                                                         \
		int _code = (code);                                                                \
		err_write((err), __VA_ARGS__);                                                     \
		_code;                                                                             \
	})
#define err_prefix(err, code, ...)                                                                 \
	({                                                                                         \
		int _code = (code);                                                                \
		err_write_prefix((err), __VA_ARGS__);                                              \
		_code;                                                                             \
	})
/* What this machine lacks: the remedy is a text, the sentence a format. */
#define err_lack(err, code, cause, remedy, ...)                                                    \
	({                                                                                         \
		int _lack = err_set((err), (code), __VA_ARGS__);                                   \
		err_write_remedy((err), (cause), "%s", (remedy));                                  \
		_lack;                                                                             \
	})
#define err_oom(err) err_set((err), -ENOMEM, "out of memory")
