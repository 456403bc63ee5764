/*
 * src/store/totals/build.h: totals of an hour from its points: of a day file that has none, or has
 * lost them.
 */
#pragma once

#include "base/intern.h"
#include "store/sqlite/day.h"
#include "store/totals/block.h"

/* A zeroed one is empty. */
struct store_totals_hour {
	struct store_totals_minute minutes[60];
	struct intern types; /* "s" or "d", for snapshot or delta, and the name */
};
void store_totals_hour_release(struct store_totals_hour *h);
/* The part [from_ms, to_ms) of a day, which is within an hour. */
int store_totals_build(struct store_totals_hour *h, struct store_day *day, int64_t from_ms,
		       int64_t to_ms, struct err *err);
