/* src/cpu/builder.h: combines the stacks of one process into a profile. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/map.h"
#include "cpu/budget.h"
#include "cpu/sampler/sampler.h"
#include "cpu/symbols/symbolizer.h"
#include "proc/info.h"
#include "profile/profile.h"

struct cpu_sum;

struct cpu_builder_options {
	bool offcpu;
	bool label_threads;
	bool label_process;
	bool root_process;
	unsigned int hz;
	/* Limits what is new; NULL: nothing does. */
	struct cpu_budget *budget;
	struct cpu_owner owner;
	uint64_t now_ns;
};

struct cpu_builder {
	struct cpu_builder_options options;
	struct profile *profile;
	struct map locations; /* hash of a frame -> location */
	struct map functions; /* hash of its strings -> function */
	struct map mappings;  /* generation of a file -> mapping */
	struct map sums_by_key;
	struct cpu_sum *sums;
	size_t n_sums;
	size_t cap_sums;
	uint64_t *prints; /* of locations: what they say, wherever it is */
	size_t cap_prints;
	uint32_t root;	/* location of the process's name */
	uint64_t lost;	/* samples lost for lack of memory */
	uint64_t other; /* samples whose stack is not shown: over budget */
};

int cpu_builder_init(struct cpu_builder *b, const struct cpu_builder_options *options,
		     const struct proc_info *info, struct err *err);
void cpu_builder_release(struct cpu_builder *b);

/* A stack that does not fit counts as lost; that is no error. */
int cpu_builder_add(struct cpu_builder *b, struct cpu_symbolizer *names,
		    const struct cpu_stack *stack);

/* Returns the profile with all samples; afterwards the builder can only be released. */
int cpu_builder_finish(struct cpu_builder *b, const struct proc_info *info,
		       struct profile **ret_profile, struct err *err);
