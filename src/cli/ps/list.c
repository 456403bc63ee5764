/* src/cli/ps/list.c: see list.h. */
#include "cli/ps/list.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/ps/java.h"
#include "cpu/symbols/perfmap.h"
#include "features/probe.h"
#include "golang/heap/heap.h"
#include "golang/metrics/metrics.h"
#include "golang/process.h"
#include "proc/mem.h"

static void ps_set_runtime(struct ps_entry *e, const char *runtime, const char *version)
{
	(void)snprintf(e->runtime, sizeof(e->runtime), "%s", runtime);
	(void)snprintf(e->version, sizeof(e->version), "%s", version);
}

static void ps_refuse(struct ps_entry *e, enum err_cause cause, const char *reason,
		      const char *remedy)
{
	e->heap = false;
	e->cause = cause;
	(void)snprintf(e->reason, sizeof(e->reason), "%s", reason);
	(void)snprintf(e->remedy, sizeof(e->remedy), "%s", remedy);
}

static void ps_refuse_error(struct ps_entry *e, int code, const struct err *err)
{
	enum err_cause cause = err_cause_of(code, err);

	/* Only namespaces and security modules deny root. */
	if (cause == ERR_CAUSE_DENIED)
		ps_refuse(e, cause, "not enough permissions",
			  geteuid() == 0 ? "run sonde on the host"
					 : "run as root, or with CAP_SYS_PTRACE and "
					   "CAP_DAC_READ_SEARCH");
	else
		ps_refuse(e, cause, err->text[0] ? err->text : strerror(-code), err->remedy);
}

/* "3.11" of "3.11.so.1.0" and "3.11-config"; "" if it does not start with a number. */
static void ps_copy_version(char *dst, size_t dst_len, const char *s)
{
	size_t n = 0;

	while (n + 1 < dst_len &&
	       (isdigit((unsigned char)s[n]) || (s[n] == '.' && isdigit((unsigned char)s[n + 1]))))
		n++;
	(void)snprintf(dst, dst_len, "%.*s", (int)n, s);
}

bool ps_runtime_of_path(const char *path, bool is_exe, struct ps_entry *entry)
{
	const char *slash = strrchr(path, '/');
	const char *base = slash ? slash + 1 : path;
	char version[32];

	if (strcmp(base, "libjvm.so") == 0) {
		ps_set_runtime(entry, "java", "");
		return true;
	}
	if (strncmp(base, "libnode.so", 10) == 0 ||
	    (is_exe && (strcmp(base, "node") == 0 || strcmp(base, "nodejs") == 0))) {
		ps_set_runtime(entry, "node", "");
		return true;
	}
	if ((is_exe && strncmp(base, "python", 6) == 0) || strncmp(base, "libpython", 9) == 0) {
		ps_copy_version(version, sizeof(version), base + (is_exe ? 6 : 9));
		ps_set_runtime(entry, "python", version);
		return true;
	}
	return false;
}

static void ps_find_runtime(const struct proc_mem *mem, struct ps_entry *e)
{
	const struct proc_maps *maps = proc_mem_maps(mem);

	ps_set_runtime(e, "native", "");
	if (ps_runtime_of_path(e->info.exe, true, e))
		return;
	for (size_t i = 0; i < maps->len; i++)
		if (ps_runtime_of_path(maps->maps[i].path, false, e))
			return;
}

static int ps_check_sampling(struct golang_process *process, struct ps_entry *e, struct err *err)
{
	_cleanup_(golang_heap_freep) struct golang_heap *heap = NULL;
	int64_t rate = 0;
	int r;

	r = golang_heap_new(process, &heap, err);
	if (r == 0)
		r = golang_heap_rate(heap, &rate, err);
	if (r < 0)
		return r;
	e->heap = rate != 0;
	if (!e->heap)
		ps_refuse(e, ERR_CAUSE_PROFILING_OFF, "off in this process", "use --force");
	return 0;
}

/* A process without them is still listed. */
static void ps_read_metrics(struct golang_process *process, struct ps_entry *e)
{
	_cleanup_(golang_metrics_freep) struct golang_metrics_reader *reader = NULL;

	e->has_metrics = golang_metrics_new(process, &reader, NULL) == 0 &&
			 golang_metrics_read(reader, &e->metrics, NULL) == 0;
}

/* Takes mem over. */
static int ps_inspect_go(struct proc_mem *mem, const struct golang_options *options, bool metrics,
			 struct ps_entry *e, struct err *err)
{
	_cleanup_(golang_process_closep) struct golang_process *process = NULL;
	const struct golang_facts *facts;
	int r;

	r = golang_process_open_take(mem, options, &process, err);
	if (r < 0)
		return r;
	facts = golang_process_facts(process);
	if (facts->version && *facts->version)
		ps_set_runtime(e, "go", facts->version);
	if (!e->info.exe[0])
		(void)snprintf(e->info.exe, sizeof(e->info.exe), "%s", facts->module_path);
	if (metrics)
		ps_read_metrics(process, e);
	if (facts->has_heap)
		return ps_check_sampling(process, e, err);
	ps_refuse_error(e, -ENOTSUP, facts->heap_refusal);
	return 0;
}

static int ps_inspect_program(bool metrics, struct ps_entry *e, struct err *err)
{
	static const struct golang_options options = {};
	_cleanup_(proc_mem_closep) struct proc_mem *mem = NULL;
	char version[sizeof(e->version)];
	int r;

	ps_set_runtime(e, "unknown", "");
	r = proc_mem_open(e->info.id.pid, &mem, err);
	if (r < 0)
		return r;
	/* One target that ignores its page faults must not block the list. */
	proc_mem_never_wait(mem);
	r = golang_detect(mem, version, sizeof(version), err);
	if (r == -ENOTSUP)
		ps_find_runtime(mem, e);
	if (r < 0)
		return r;
	if (r > 0) {
		ps_set_runtime(e, "go", version);
		return ps_inspect_go(TAKE_PTR(mem), &options, metrics, e, err);
	}
	ps_find_runtime(mem, e);
	ps_refuse(e, ERR_CAUSE_NOT_GO, "not a Go program", "");
	ps_java_describe(proc_mem_maps(mem), e);
	return 0;
}

/* -ESRCH if the process has exited; any other error becomes the entry's reason. */
static int ps_inspect(pid_t pid, bool metrics, struct ps_entry *e)
{
	struct err err = {};
	int r;

	*e = (struct ps_entry){};
	r = proc_info_read(pid, &e->info, &err);
	if (r == -ETIMEDOUT && proc_info_read_silent(pid, &e->info) == 0) {
		ps_set_runtime(e, "unknown", "");
		ps_refuse_error(e, r, &err);
		return 0;
	}
	if (r < 0)
		return -ESRCH;
	if (e->info.kernel_thread) {
		ps_set_runtime(e, "kernel", "");
		ps_refuse(e, ERR_CAUSE_KERNEL_THREAD, "kernel thread", "");
		return 0;
	}
	r = ps_inspect_program(metrics, e, &err);
	if (r == -ESRCH || proc_id_gone(&e->info.id))
		return -ESRCH;
	if (r < 0)
		ps_refuse_error(e, r, &err);
	return 0;
}

static bool ps_has_perf_map(pid_t pid)
{
	_cleanup_(cpu_perfmap_closep) struct cpu_perfmap *map = NULL;
	struct err err = {};

	return cpu_perfmap_open(pid, &map, &err) == 0;
}

static void ps_answer_cpu(const struct features_row *cpu, struct ps_entry *e)
{
	if (cpu->state == FEATURES_OFF)
		ps_cpu_refuse(cpu->cause, cpu->reason, cpu->remedy, &e->cpu);
	else
		ps_cpu_describe(e->runtime, e->version, ps_has_perf_map(e->info.id.pid), &e->cpu);
}

static int ps_rank(const struct ps_entry *e)
{
	if (e->heap)
		return 0;
	return strcmp(e->runtime, "go") == 0 ? 1 : 2;
}

static int ps_compare(const void *a, const void *b)
{
	const struct ps_entry *x = a;
	const struct ps_entry *y = b;

	if (ps_rank(x) != ps_rank(y))
		return ps_rank(x) - ps_rank(y);
	return (x->info.id.pid > y->info.id.pid) - (x->info.id.pid < y->info.id.pid);
}

static int ps_list_of(const struct ps_options *options, const pid_t *pids, size_t n_pids,
		      struct ps_list *ret_list, struct err *err)
{
	_cleanup_free_ struct ps_entry *entries = calloc(n_pids + 1, sizeof(*entries));
	struct features features;
	size_t len = 0;

	if (!entries)
		return err_oom(err);
	features_probe(NULL, &features);
	for (size_t i = 0; i < n_pids; i++) {
		/* sonde itself is gone when the list is read. */
		if (pids[i] == getpid())
			continue;
		if (ps_inspect(pids[i], options->metrics, &entries[len]) < 0) {
			if (options->pids)
				return err_set(err, -ESRCH, "no such process: %d", (int)pids[i]);
			continue;
		}
		if (entries[len].info.kernel_thread && !options->kernel_threads && !options->pids)
			continue;
		ps_answer_cpu(&features.rows[FEATURES_CPU], &entries[len]);
		len++;
	}
	qsort(entries, len, sizeof(*entries), ps_compare);
	*ret_list =
		(struct ps_list){.entries = TAKE_PTR(entries), .len = len, .features = features};
	return 0;
}

int ps_list_read(const struct ps_options *options, struct ps_list *ret_list, struct err *err)
{
	_cleanup_free_ pid_t *pids = NULL;
	size_t n_pids;
	int r;

	if (options->pids)
		return ps_list_of(options, options->pids, options->n_pids, ret_list, err);
	r = proc_list(&pids, &n_pids, err);
	return r < 0 ? r : ps_list_of(options, pids, n_pids, ret_list, err);
}

int ps_list_core(const char *core, const char *exe_path, struct ps_list *ret_list, struct err *err)
{
	_cleanup_free_ struct ps_entry *e = calloc(1, sizeof(*e));
	const struct golang_options options = {.exe_path = exe_path};
	struct proc_mem *mem = NULL;
	int r;

	if (!e)
		return err_oom(err);
	r = proc_mem_open_core(core, &mem, err);
	if (r == 0)
		r = ps_inspect_go(mem, &options, true, e, err);
	if (r < 0)
		return r;
	/* A core cannot be changed. */
	e->remedy[0] = '\0';
	(void)snprintf(e->cpu.gives, sizeof(e->cpu.gives), "core file");
	*ret_list = (struct ps_list){.entries = TAKE_PTR(e), .len = 1};
	return 0;
}

void ps_list_release(struct ps_list *list)
{
	free(list->entries);
}
