/* src/cli/heap_target.c: see heap_target.h. */
#include "cli/heap_target.h"

#include <errno.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/units.h"

static int heap_target_open_mem(pid_t pid, struct heap_target *t, struct proc_mem **ret_mem,
				struct err *err)
{
	_cleanup_(proc_mem_closep) struct proc_mem *mem = NULL;
	int r;

	if (t->core)
		return proc_mem_open_core(t->core, ret_mem, err);
	r = proc_info_read(pid, &t->info, err);
	if (r == 0)
		r = proc_mem_open(pid, &mem, err);
	if (r < 0)
		return r;
	/* The name and the memory must belong to the same process. */
	if (!proc_id_alive(&t->info.id))
		return err_set(err, -ESRCH, "process %d has just ended", (int)pid);
	*ret_mem = TAKE_PTR(mem);
	return 0;
}

int heap_target_open(pid_t pid, const char *core, const struct golang_options *options,
		     struct heap_target *ret_target, struct err *err)
{
	_cleanup_(heap_target_release) struct heap_target t = {.core = core};
	const struct golang_facts *facts;
	struct proc_mem *mem = NULL;
	int r;

	r = heap_target_open_mem(pid, &t, &mem, err);
	if (r < 0)
		return r;
	r = golang_process_open_take(mem, options, &t.process, err);
	if (r == -ENOTSUP && !core)
		return err_prefix(err, r, "process %d (%s)", (int)pid, t.info.comm);
	if (r < 0)
		return r;
	facts = golang_process_facts(t.process);
	if (!facts->has_heap)
		return err_set(err, -ENOTSUP, "%s has no heap profile to read: %s",
			       facts->module_path, facts->heap_reason);
	r = golang_heap_new(t.process, &t.heap, err);
	if (r < 0)
		return r;
	*ret_target = t;
	t = (struct heap_target){};
	return 0;
}

void heap_target_release(struct heap_target *target)
{
	golang_heap_free(target->heap);
	golang_process_close(target->process);
}

void heap_target_finish(struct heap_target *target)
{
	target->stats = *golang_heap_stats(target->heap);
	golang_heap_free(target->heap);
	target->heap = NULL;
}

static const char *heap_target_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

void heap_target_describe(const struct heap_target *target)
{
	const struct golang_facts *facts = golang_process_facts(target->process);
	const struct golang_heap_stats *stats = &target->stats;
	char rate[UNITS_LABEL_LEN];
	char who[600];

	if (target->core)
		(void)snprintf(who, sizeof(who), "%s", target->core);
	else
		(void)snprintf(who, sizeof(who), "%s (pid %d)",
			       heap_target_base_name(facts->module_path), target->info.id.pid);
	cli_note("%s: %s, runtime variables by %s, %llu stacks, one sample per %s", who,
		 facts->version, facts->variables_how, (unsigned long long)stats->buckets,
		 units_label(rate, stats->rate, "bytes", "auto"));
	if (stats->before_first_gc)
		cli_note("No garbage collection has finished yet: the profile holds everything "
			 "allocated so far.");
}

void heap_target_report_losses(const struct heap_target *target)
{
	const struct golang_heap_stats *s = &target->stats;

	if (s->bad_buckets)
		cli_note("Lost: %llu stack%s refused because the records make no sense.",
			 (unsigned long long)s->bad_buckets, s->bad_buckets > 1 ? "s" : "");
	if (s->incomplete)
		cli_note("Lost: the list of stacks broke off: older ones are missing.");
	if (s->mixed)
		cli_note("Unsure: garbage collections ended during every try to read, so values of "
			 "two cycles may be mixed.");
	if (s->torn_records)
		cli_note("Lost: %llu record%s changed during every try to read.",
			 (unsigned long long)s->torn_records, s->torn_records > 1 ? "s" : "");
	if (s->unknown_frames)
		cli_note("Unnamed: %llu frame%s shown by address.",
			 (unsigned long long)s->unknown_frames, s->unknown_frames > 1 ? "s" : "");
}
