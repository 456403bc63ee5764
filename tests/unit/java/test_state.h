/* tests/unit/java/test_state.h: a directory that a test must leave empty. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "proc/id.h"

static char dir[64];

static inline int setup(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/sonde-java-XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

/* Fails when anything is left in it. */
static inline int teardown(void **state)
{
	(void)state;
	return rmdir(dir);
}

static inline struct proc_id own_id(void)
{
	struct proc_id id;

	assert_int_equal(proc_id_of(getpid(), &id, NULL), 0);
	return id;
}
