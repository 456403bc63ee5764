/* src/cli/ps_list.h: every process of the machine: what runs it, and what of it can be profiled. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "cli/ps_cpu.h"
#include "proc/info.h"

struct ps_entry {
	struct proc_info info;
	char runtime[16]; /* "go", "java", "python", "node", "native", "kernel", "unknown" */
	char version[32]; /* "go1.27.3", "3.11"; "" when unknown */
	struct ps_cpu cpu;
	bool heap;
	char reason[512]; /* when !heap: why not */
	char remedy[96];  /* and what to do about it; "" for nothing */
};

struct ps_list {
	struct ps_entry *entries; /* profileable first, then other Go programs, then the rest */
	size_t len;
};

/* Processes that end while we look are left out. */
int ps_list_read(bool kernel_threads, struct ps_list *ret_list, struct err *err);
void ps_list_release(struct ps_list *list);

/* The runtime by its executable or a library ("/usr/bin/python3.11"); false when neither says. */
bool ps_runtime_of_path(const char *path, bool is_exe, struct ps_entry *entry);
