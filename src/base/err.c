/* src/base/err.c: see err.h. */
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void err_write(struct err *err, const char *fmt, ...)
{
	va_list ap;

	if (!err)
		return;
	va_start(ap, fmt);
	(void)vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	err->remedy[0] = 0;
	err->cause = ERR_CAUSE_OTHER;
}

void err_write_remedy(struct err *err, enum err_cause cause, const char *fmt, ...)
{
	va_list ap;

	if (!err)
		return;
	va_start(ap, fmt);
	(void)vsnprintf(err->remedy, sizeof(err->remedy), fmt, ap);
	va_end(ap);
	err->cause = cause;
}

void err_write_prefix(struct err *err, const char *fmt, ...)
{
	char old[sizeof(err->text)];
	va_list ap;
	size_t n;

	if (!err)
		return;
	memcpy(old, err->text, sizeof(old));
	va_start(ap, fmt);
	(void)vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	n = strlen(err->text);
	(void)snprintf(err->text + n, sizeof(err->text) - n, ": %s", old);
}

void err_copy(struct err *err, const struct err *from)
{
	if (err)
		*err = *from;
}

const char *err_cause_name(enum err_cause cause)
{
	static const char *const names[ERR_CAUSE_N] = {
		[ERR_CAUSE_OTHER] = "other",
		[ERR_CAUSE_DISABLED] = "disabled",
		[ERR_CAUSE_NEEDS_FEATURE] = "needs_feature",
		[ERR_CAUSE_PRIVILEGE] = "privilege",
		[ERR_CAUSE_USER_NAMESPACE] = "user_namespace",
		[ERR_CAUSE_PID_NAMESPACE] = "pid_namespace",
		[ERR_CAUSE_SECCOMP] = "seccomp",
		[ERR_CAUSE_LOCKDOWN] = "lockdown",
		[ERR_CAUSE_PTRACE_SCOPE] = "ptrace_scope",
		[ERR_CAUSE_HIDDEN] = "hidden",
		[ERR_CAUSE_NOT_MOUNTED] = "not_mounted",
		[ERR_CAUSE_NO_BTF] = "no_btf",
		[ERR_CAUSE_KERNEL] = "kernel",
		[ERR_CAUSE_MACHINE] = "machine",
		[ERR_CAUSE_DISK] = "disk",
		[ERR_CAUSE_DENIED] = "denied",
		[ERR_CAUSE_GONE] = "gone",
		[ERR_CAUSE_PENDING] = "pending",
		[ERR_CAUSE_BUSY] = "busy",
		[ERR_CAUSE_NO_ANSWER] = "no_answer",
		[ERR_CAUSE_OPTED_OUT] = "opted_out",
		[ERR_CAUSE_KERNEL_THREAD] = "kernel_thread",
		[ERR_CAUSE_NOT_GO] = "not_go",
		[ERR_CAUSE_NOT_JAVA] = "not_java",
		[ERR_CAUSE_UNKNOWN_VERSION] = "unknown_version",
		[ERR_CAUSE_UNSUPPORTED] = "unsupported",
		[ERR_CAUSE_ALTERED] = "altered",
		[ERR_CAUSE_PROFILING_OFF] = "profiling_off",
		[ERR_CAUSE_LIMIT] = "limit",
		[ERR_CAUSE_MALFORMED] = "malformed",
	};

	return names[cause];
}

enum err_cause err_cause_of(int code, const struct err *err)
{
	/* Code that set a remedy knows the cause. */
	if (err->cause != ERR_CAUSE_OTHER || err->remedy[0])
		return err->cause;
	switch (code) {
	case -EPERM:
	case -EACCES:
		return ERR_CAUSE_DENIED;
	case -ESRCH:
		return ERR_CAUSE_GONE;
	case -EAGAIN:
		return ERR_CAUSE_PENDING;
	case -EBUSY:
		return ERR_CAUSE_BUSY;
	case -ETIMEDOUT:
		return ERR_CAUSE_NO_ANSWER;
	case -ENOTSUP:
		return ERR_CAUSE_UNSUPPORTED;
	case -E2BIG:
		return ERR_CAUSE_LIMIT;
	case -EBADMSG:
	case -EFAULT:
		return ERR_CAUSE_MALFORMED;
	case -ENOSPC:
		return ERR_CAUSE_DISK;
	default:
		return ERR_CAUSE_OTHER;
	}
}

bool err_cause_is_of_machine(enum err_cause cause)
{
	return cause >= ERR_CAUSE_DISABLED && cause <= ERR_CAUSE_DISK;
}

const char *err_describe(const struct err *err, int code, char dst[static ERR_LINE_MAX])
{
	(void)snprintf(dst, ERR_LINE_MAX, "%s%s%s", err->text[0] ? err->text : strerror(-code),
		       err->remedy[0] ? "; " : "", err->remedy);
	return dst;
}
