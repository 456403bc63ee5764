/* src/base/cleanup.h: scope-bound cleanup: every early return frees what it holds. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define _cleanup_(f) __attribute__((cleanup(f)))

#define TAKE_PTR(p)                                                                                \
	({                                                                                         \
		__typeof__(p) *_pp = &(p);                                                         \
		__typeof__(p) _taken = *_pp;                                                       \
		*_pp = NULL;                                                                       \
		_taken;                                                                            \
	})

#define TAKE_FD(fd)                                                                                \
	({                                                                                         \
		int *_fdp = &(fd);                                                                 \
		int _taken = *_fdp;                                                                \
		*_fdp = -1;                                                                        \
		_taken;                                                                            \
	})

/* Defines NAME##p(): the cleanup handler that calls NAME() on a pointer variable. */
#define DEFINE_CLEANUP(type, name)                                                                 \
	static inline void name##p(type **pp)                                                      \
	{                                                                                          \
		name(*pp);                                                                         \
	}

static inline void freep(void *pp)
{
	free(*(void **)pp);
}

static inline void closep(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static inline void fclosep(FILE **f)
{
	if (*f)
		(void)fclose(*f);
}

#define _cleanup_free_ _cleanup_(freep)
#define _cleanup_close_ _cleanup_(closep)
#define _cleanup_fclose_ _cleanup_(fclosep)

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
