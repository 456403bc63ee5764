/* src/cli/top/readings.h: filled by model.c and summed by table.c. */
#pragma once

#include "base/intern.h"
#include "cli/top/model.h"

struct top_sample {
	uint32_t stack;
	double values[TOP_UNITS];
};

/* Samples of one kind, of one process. */
struct top_samples {
	struct top_sample *at;
	size_t len;
};

struct top_process {
	struct proc_id id;
	char name[64]; /* of its executable, or its command */
	uint32_t service;
	bool has_heap;	   /* read at least once */
	bool known;	   /* read at least once; the next collection has deltas */
	bool measured;	   /* read at least twice */
	bool anew;	   /* what is known now does not mix with what comes */
	uint64_t read_ns;  /* the last reading */
	double span_ns;	   /* time span of kinds[TOP_ALLOC], faded like it; 0: no rate */
	double sampled;	   /* bytes in kinds[TOP_ALLOC] */
	uint64_t count_ns; /* when its runtime's count was read; 0: never */
	bool is_counted;   /* twice: there is a rate, */
	double counted;	   /* in bytes per second */
	uint64_t delta_ns; /* since the deltas were taken */
	int64_t delta[TOP_UNITS];
	int64_t cpu_stamp_ns; /* of kinds[TOP_CPU] */
	uint64_t cpu_span_ns;
	struct top_samples kinds[TOP_KINDS];
};

struct top_model {
	struct intern names;	       /* of functions and services, cleaned */
	struct intern stacks;	       /* name ids from the root to the leaf */
	struct top_process *processes; /* by pid */
	size_t len;
	int64_t cpu_stamp_ns; /* of the last collection; 0: none */
	bool frozen;
};

/* Moves the samples, and frees those that were there. Arrays are as large as the profile at first.
 */
void top_samples_take(struct top_samples *to, struct top_samples *from);
/* Lets allocations fade to this share, and adds the deltas. Out of memory: only the deltas. */
void top_process_fade(struct top_process *p, struct top_samples *deltas, double keep);
/* The value of all samples of the kind together; TOP_ALLOC and TOP_CPU per second. */
double top_process_sum(const struct top_model *model, const struct top_process *p,
		       enum top_kind kind, enum top_unit unit);
/* The factor for values of the kind, as rates are per second. 0: nothing now. */
double top_process_factor(const struct top_model *model, const struct top_process *p,
			  enum top_kind kind);
/* Name ids from the root to the leaf. */
const uint32_t *top_model_stack(const struct top_model *model, uint32_t stack, size_t *ret_len);
