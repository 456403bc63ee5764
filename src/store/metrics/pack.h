/* src/store/metrics/pack.h: a past hour of readings becomes one block per label set. */
#pragma once

#include "base/err.h"

struct store_writer;
struct store_writer_tools;

/*
 * Within the open transaction; removes the readings. Later ones of the same hour become a further
 * part. Damaged readings are skipped and counted.
 */
int store_metrics_pack_hour(struct store_writer *w, struct store_writer_tools *t, unsigned int hour,
			    struct err *err);
