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

#include <errno.h>

struct err {
	char text[512];
};

/* Writes the sentence; err may be NULL. */
void err_write(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
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
#define err_oom(err) err_set((err), -ENOMEM, "out of memory")
