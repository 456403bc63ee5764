/* tests/unit/golang/test_fake.h: memory for made-up programs. Include after cmocka.h. */
#pragma once

#include <elf.h>

#include "mem_fake.h"
#include "proc/mem.h"

/* Made-up memory; the test is skipped where the code that programs consist of, amd64's, is not. */
static inline struct proc_mem *fake_of_amd64(void)
{
	struct proc_mem *mem;
	struct err err;

	assert_int_equal(proc_mem_open_fake(&mem, &err), 0);
	if (proc_mem_machine(mem) != EM_X86_64) {
		proc_mem_close(mem);
		skip();
	}
	return mem;
}
