/* tests/unit/test_pipeline.h: records to send, for the tests of the pipeline. After cmocka.h. */
#pragma once

#include "pipeline/record.h"

static inline const struct resource *test_resource(struct resources *resources, const char *service,
						   pid_t pid)
{
	const struct label labels[] = {{"service.name", service}};
	const struct resource *resource = NULL;
	struct err err = {0};

	assert_int_equal(resource_get(resources,
				      &(struct resource){.process = {.pid = pid},
							 .labels = labels,
							 .n_labels = 1},
				      &resource, &err),
			 0);
	return resource;
}

/* A gauge of one point, by whose value records are told apart. */
static inline struct record *test_record(double value)
{
	static const struct metric metric = {.name = "test", .kind = METRIC_GAUGE};
	struct metrics *metrics = metrics_new();
	struct record *record;

	assert_non_null(metrics);
	assert_int_equal(
		metrics_add(metrics, &(struct metric_point){.metric = &metric, .value = value}), 0);
	record = record_new_metrics(metrics);
	assert_non_null(record);
	return record;
}
