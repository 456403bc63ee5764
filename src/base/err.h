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
 * Sentence and remedy are for people, the cause is for programs: nobody takes a sentence apart or
 * compares it. Who prints puts the two together (err_describe()).
 */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

/* Why something cannot be done. Their names (err_cause_name()) are part of the API. */
enum err_cause {
	ERR_CAUSE_OTHER,
	/* This machine, or our rights on it. */
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
	/* One process, or one file. */
	ERR_CAUSE_DENIED,	 /* we may not read it */
	ERR_CAUSE_GONE,		 /* it has ended, or is another program now */
	ERR_CAUSE_PENDING,	 /* not yet: it is starting, or was not looked at */
	ERR_CAUSE_BUSY,		 /* another sonde, or its own user, is at work on it */
	ERR_CAUSE_NO_ANSWER,	 /* it was asked, and did not answer in time */
	ERR_CAUSE_OPTED_OUT,	 /* it asks to be left alone */
	ERR_CAUSE_KERNEL_THREAD, /* it has no memory of its own */
	ERR_CAUSE_NOT_GO,
	ERR_CAUSE_NOT_JAVA,
	ERR_CAUSE_UNKNOWN_VERSION, /* of its runtime */
	ERR_CAUSE_UNSUPPORTED,	   /* a kind of program, or of runtime, that cannot be read */
	ERR_CAUSE_ALTERED,	   /* its runtime is not as it was released: obfuscated? */
	ERR_CAUSE_PROFILING_OFF,   /* the program itself records nothing of the kind */
	ERR_CAUSE_LIMIT,	   /* a limit of ours, or of its container */
	ERR_CAUSE_MALFORMED,	   /* torn, damaged or forged */
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
void err_copy(struct err *err, const struct err *from);

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
/* A refusal whose cause is known: the remedy is a text, "" for none; the sentence is a format. */
#define err_lack(err, code, cause, remedy, ...)                                                    \
	({                                                                                         \
		int _lack = err_set((err), (code), __VA_ARGS__);                                   \
		err_write_remedy((err), (cause), "%s", (remedy));                                  \
		_lack;                                                                             \
	})
/* What went wrong further down, as it is: sentence, remedy and cause. */
#define err_pass(err, code, from)                                                                  \
	({                                                                                         \
		int _code = (code);                                                                \
		err_copy((err), (from));                                                           \
		_code;                                                                             \
	})
#define err_oom(err) err_set((err), -ENOMEM, "out of memory")

const char *err_cause_name(enum err_cause cause); /* "no_btf" */
/* Where nobody has said more, the code tells the cause. */
enum err_cause err_cause_of(int code, const struct err *err);
/* Whether it lies with the machine: then it is the same for all processes. */
bool err_cause_is_of_machine(enum err_cause cause);

#define ERR_LINE_MAX (sizeof((struct err){}.text) + sizeof((struct err){}.remedy) + 2)
/* "sentence; remedy", for people. Without a sentence the code has one. Returns dst. */
const char *err_describe(const struct err *err, int code, char dst[static ERR_LINE_MAX]);
