/* src/store/metrics/pack.h: a past hour of readings becomes one block per label set. */
#pragma once

#include "base/err.h"

struct damage;
struct writer;
struct writer_tools;

/*
 * Within the open transaction; removes the readings. Later ones of the same hour become a further
 * part. Damaged readings are skipped and counted.
 */
int metrics_pack_hour(struct writer *w, struct writer_tools *t, unsigned int hour,
		      struct damage *damage, struct err *err);
