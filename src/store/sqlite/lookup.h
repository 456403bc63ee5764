/* src/store/sqlite/lookup.h: the streams and services of a day by name, loaded once for many. */
#pragma once

#include "base/err.h"
#include "base/map.h"
#include "store/metrics/define.h"
#include "store/sqlite/day.h"
#include "store/sqlite/state.h"

/* A zeroed one is empty. */
struct store_lookup {
	struct map services;		 /* hash of the name, to its id */
	struct map streams;		 /* hash of service and type, to id, service and mode */
	struct store_dictionary columns; /* of metrics, of the service below */
	uint32_t columns_of;
};
int store_lookup_load(struct store_lookup *l, struct store_day *day, struct err *err);
void store_lookup_release(struct store_lookup *l);

bool store_lookup_stream(const struct store_lookup *l, const char *service, const char *type,
			 struct store_sqlite_stream *ret_stream);
/* Loads the columns of a service's metrics; 0: it has none. Cheap for the same one again. */
int store_lookup_columns(struct store_lookup *l, struct store_day *day, const char *service,
			 struct err *err);
