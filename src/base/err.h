/*
 * src/base/err.h: the message for the user that goes with an -errno.
 *
 * The codes have the same meaning everywhere in sonde:
 *   -ESRCH    the process has exited, or is no longer the program we opened
 *   -EPERM    we lack a privilege
 *   -EFAULT   bad address in the target
 *   -EBADMSG  torn or malformed data
 *   -ENOTSUP  unknown version or layout, or a target that cannot be profiled
 *   -E2BIG    one of our size limits was reached
 *
 * Message and remedy are for people, the cause is for programs: never parse or compare a message.
 * Whoever prints joins the two (err_describe()).
 */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

/* Why something is not possible. The names (err_cause_name()) are part of the API. */
enum err_cause {
	ERR_CAUSE_OTHER,
	/* The machine, or our permissions. */
	ERR_CAUSE_DISABLED,	  /* the command line turned it off, or did not turn it on */
	ERR_CAUSE_NEEDS_FEATURE,  /* depends on another feature that is off */
	ERR_CAUSE_PRIVILEGE,	  /* capabilities */
	ERR_CAUSE_USER_NAMESPACE, /* we are root only inside it */
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
	ERR_CAUSE_DENIED,	 /* not enough permissions to read it */
	ERR_CAUSE_GONE,		 /* it has exited, or runs another program now */
	ERR_CAUSE_PENDING,	 /* still starting, or not examined yet */
	ERR_CAUSE_BUSY,		 /* another sonde, or its user's profiler, is working on it */
	ERR_CAUSE_NO_ANSWER,	 /* not responding */
	ERR_CAUSE_OPTED_OUT,	 /* its environment opts out */
	ERR_CAUSE_KERNEL_THREAD, /* it has no memory of its own */
	ERR_CAUSE_NOT_GO,
	ERR_CAUSE_NOT_JAVA,
	ERR_CAUSE_UNKNOWN_VERSION, /* of its runtime */
	ERR_CAUSE_UNSUPPORTED,	   /* this kind of program or runtime */
	ERR_CAUSE_ALTERED,	   /* its runtime differs from the released one: obfuscated? */
	ERR_CAUSE_PROFILING_OFF,   /* the program records no such profile */
	ERR_CAUSE_LIMIT,	   /* of sonde, or of its container */
	ERR_CAUSE_MALFORMED,	   /* torn, damaged or forged */
	ERR_CAUSE_N,
};

struct err {
	char text[512];
	char remedy[256]; /* a command or an instruction; "" if no fix is known */
	enum err_cause cause;
};

/* Sets the message, without a remedy; err may be NULL. */
void err_write(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Adds a remedy to the message. */
void err_write_remedy(struct err *err, enum err_cause cause, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Puts "prefix: " before the message. */
void err_write_prefix(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void err_copy(struct err *err, const struct err *from);

/*
 * The same as expressions with the value of code: `return err_set(err, -ESRCH, ...)`. Macros, so
 * compilers and analysers see the value. It is evaluated first, as it often is -errno.
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
/* A refusal with a known cause. The remedy is plain text, "" for none; the message is a format. */
#define err_lack(err, code, cause, remedy, ...)                                                    \
	({                                                                                         \
		int _lack = err_set((err), (code), __VA_ARGS__);                                   \
		err_write_remedy((err), (cause), "%s", (remedy));                                  \
		_lack;                                                                             \
	})
/* Passes on an error unchanged: message, remedy and cause. */
#define err_pass(err, code, from)                                                                  \
	({                                                                                         \
		int _code = (code);                                                                \
		err_copy((err), (from));                                                           \
		_code;                                                                             \
	})
#define err_oom(err) err_set((err), -ENOMEM, "out of memory")

const char *err_cause_name(enum err_cause cause); /* "no_btf" */
/* The cause; derived from the code if not set. */
enum err_cause err_cause_of(int code, const struct err *err);
/* Whether the machine is the cause: then it applies to all processes. */
bool err_cause_is_of_machine(enum err_cause cause);

#define ERR_LINE_MAX (sizeof((struct err){}.text) + sizeof((struct err){}.remedy) + 2)
/* "message; remedy", for people. Without a message, describes the code. Returns dst. */
const char *err_describe(const struct err *err, int code, char dst[static ERR_LINE_MAX]);
