/* src/cli/go/target.c: see target.h. */
#include "cli/go/target.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "proc/mem.h"

int go_target_parse(const char *command, const struct cli_args *args, size_t first,
		    struct go_target *ret_target, struct err *err)
{
	const char *const *values = args->values + first;
	struct go_target t = {
		.core = values[GO_TARGET_CORE],
		.options = {.assume_layout = values[GO_TARGET_ASSUME_LAYOUT],
			    .exe_path = values[GO_TARGET_EXE],
			    .ignore_symbols = values[GO_TARGET_IGNORE_SYMBOLS] != NULL},
	};
	uint64_t pid = 0;
	int r = 0;

	if (t.options.assume_layout)
		r = golang_process_check_layout(t.options.assume_layout, err);
	if (r < 0)
		return r;
	if (t.core && args->n_operands)
		return err_set(err, -EINVAL, "use either PID or --core FILE, not both");
	if (t.options.exe_path && !t.core)
		return err_set(err, -EINVAL, "--exe requires --core FILE");
	if (!t.core && !args->n_operands)
		return err_set(
			err, -EINVAL,
			"%s: missing argument; expected a PID (see `sonde ps`) or --core FILE",
			command);
	if (!t.core)
		r = cli_parse_number("PID", args->operands[0], INT_MAX, &pid, err);
	if (r < 0)
		return r;
	t.pid = (pid_t)pid;
	*ret_target = t;
	return 0;
}

static int open_mem(struct go_target *t, struct proc_mem **ret_mem, struct err *err)
{
	_cleanup_(proc_mem_closep) struct proc_mem *mem = NULL;
	int r;

	if (t->core)
		return proc_mem_open_core(t->core, ret_mem, err);
	r = proc_info_read(t->pid, &t->info, err);
	if (r == 0)
		r = proc_mem_open(t->pid, &mem, err);
	if (r < 0)
		return r;
	/* Name and memory must belong to the same process. */
	r = proc_id_check(&t->info.id, err);
	if (r < 0)
		return r;
	*ret_mem = TAKE_PTR(mem);
	return 0;
}

int go_target_open(struct go_target *t, struct err *err)
{
	struct proc_mem *mem = NULL;
	int r = open_mem(t, &mem, err);

	if (r < 0)
		return r;
	r = golang_process_open_take(mem, &t->options, &t->process, err);
	if (r == -ENOTSUP && !t->core)
		return err_prefix(err, r, "process %d (%s)", (int)t->pid, t->info.comm);
	return r;
}

void go_target_release(struct go_target *t)
{
	golang_process_close(t->process);
	t->process = NULL;
}

const char *go_target_name(const struct go_target *t, char dst[static GO_TARGET_NAME_LEN])
{
	const char *path = golang_process_facts(t->process)->module_path;
	const char *slash = strrchr(path, '/');

	if (t->core)
		(void)snprintf(dst, GO_TARGET_NAME_LEN, "%s", t->core);
	else
		(void)snprintf(dst, GO_TARGET_NAME_LEN, "%s (pid %d)", slash ? slash + 1 : path,
			       (int)t->pid);
	return dst;
}

void go_target_report_losses(uint64_t bad_buckets, bool incomplete, uint64_t unknown_frames)
{
	if (bad_buckets)
		cli_note("Lost: %llu stack%s with invalid records.",
			 (unsigned long long)bad_buckets, bad_buckets > 1 ? "s" : "");
	if (incomplete)
		cli_note("Lost: the list of stacks is broken; older stacks are missing.");
	if (unknown_frames)
		cli_note("Unnamed: %llu frame%s, shown by address.",
			 (unsigned long long)unknown_frames, unknown_frames > 1 ? "s" : "");
}
