/* tests/support/mem_fake.h: the memory of a program, made of byte strings. */
#pragma once

#include "proc/mem.h"

int proc_mem_open_fake(struct proc_mem **ret_mem, struct err *err);
/* len bytes at addr; borrowed until the memory is closed. -EEXIST where there are some already. */
int proc_mem_fake_add(struct proc_mem *mem, uint64_t addr, const void *data, size_t len);
