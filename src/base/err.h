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
 */
#pragma once

struct err {
	char text[512];
};

/* Writes the sentence (err may be NULL) and returns code, so `return err_set(err, -ESRCH, ...)`. */
int err_set(struct err *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Puts "prefix: " before the sentence that is already there; returns code. */
int err_prefix(struct err *err, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* -ENOMEM with its sentence. */
int err_oom(struct err *err);
