/* src/cli/go/heap_target.c: see heap_target.h. */
#include "cli/go/heap_target.h"

#include <errno.h>

#include "cli/cli.h"
#include "cli/render/units.h"

int heap_target_open(const struct go_target *asked, struct heap_target *t, struct err *err)
{
	const struct golang_facts *facts;
	int r;

	*t = (struct heap_target){.go = *asked};
	r = go_target_open(&t->go, err);
	if (r < 0)
		return r;
	facts = golang_process_facts(t->go.process);
	if (!facts->has_heap) {
		err_copy(err, facts->heap_refusal);
		return err_prefix(err, -ENOTSUP, "no heap profile in %s", facts->module_path);
	}
	return golang_heap_new(t->go.process, &t->heap, err);
}

void heap_target_release(struct heap_target *target)
{
	golang_heap_free(target->heap);
	go_target_release(&target->go);
}

void heap_target_finish(struct heap_target *target)
{
	target->stats = *golang_heap_stats(target->heap);
	golang_heap_free(target->heap);
	target->heap = NULL;
}

void heap_target_describe(const struct heap_target *target)
{
	const struct golang_facts *facts = golang_process_facts(target->go.process);
	const struct golang_heap_stats *stats = &target->stats;
	char rate[UNITS_LABEL_LEN];
	char name[GO_TARGET_NAME_LEN];

	cli_note("%s: %s, runtime variables found by %s, %llu stacks, one sample per %s",
		 go_target_name(&target->go, name), facts->version, facts->variables_how,
		 (unsigned long long)stats->buckets,
		 units_label(rate, stats->rate, "bytes", "auto"));
	if (stats->before_first_gc)
		cli_note("No garbage collection has finished yet; the profile shows everything "
			 "allocated so far.");
}

void heap_target_report_losses(const struct heap_target *target)
{
	const struct golang_heap_stats *s = &target->stats;

	go_target_report_losses(s->bad_buckets, s->incomplete, s->unknown_frames);
	if (s->mixed)
		cli_note("Unverified: garbage collections kept finishing while reading; values of "
			 "two GC cycles may be mixed.");
	if (s->torn_records)
		cli_note("Lost: %llu record%s kept changing while being read.",
			 (unsigned long long)s->torn_records, s->torn_records > 1 ? "s" : "");
}
