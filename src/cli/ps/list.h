/* src/cli/ps/list.h: every process on the machine: its runtime, and what can be profiled. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "cli/ps/cpu.h"
#include "features/features.h"
#include "golang/metrics/metrics.h"
#include "proc/info.h"

struct ps_entry {
	struct proc_info info;
	char runtime[16]; /* "go", "java", "python", "node", "native", "kernel", "unknown" */
	char version[32]; /* "go1.27.3", "3.11"; "" if unknown */
	struct ps_cpu cpu;
	bool heap;
	enum err_cause cause; /* if !heap: the cause, for programs, */
	char reason[512];     /* the reason, for people, */
	char remedy[256];     /* and the fix; "" if none */
	bool has_metrics;
	struct golang_metrics metrics; /* of a Go program */
};

struct ps_options {
	bool kernel_threads;
	bool metrics;	   /* also runtime statistics */
	const pid_t *pids; /* only these; NULL: all */
	size_t n_pids;
};

struct ps_list {
	struct ps_entry *entries; /* profileable first, then other Go programs, then the rest */
	size_t len;
	struct features features; /* of the machine; all on in a list of a core file */
};

/* Omits processes that exit meanwhile. -ESRCH if a requested one does not exist. */
int ps_list_read(const struct ps_options *options, struct ps_list *ret_list, struct err *err);
/* A list of one: the program in a core file. exe_path: where it has moved to, or NULL. */
int ps_list_core(const char *core, const char *exe_path, struct ps_list *ret_list, struct err *err);
void ps_list_release(struct ps_list *list);

/* Guesses the runtime from an executable or library ("/usr/bin/python3.11"); false if unknown. */
bool ps_runtime_of_path(const char *path, bool is_exe, struct ps_entry *entry);
