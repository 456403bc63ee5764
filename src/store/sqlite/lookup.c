/* src/store/sqlite/lookup.c: see lookup.h. */
#include "store/sqlite/lookup.h"

#include <string.h>

#include "base/hash.h"

static uint64_t name_hash(struct view service, struct view type)
{
	return hash_mix(hash_bytes(service.data, service.len) +
			hash_mix(hash_bytes(type.data, type.len)));
}

static int load_services(struct store_lookup *l, struct store_day *day, struct err *err)
{
	sqlite3_stmt *stmt = NULL;
	int r = store_day_query(day, STORE_DAY_SERVICES, NULL, 0, &stmt, err);

	while (r == 0 && (r = store_day_next(day, stmt, err)) > 0) {
		int64_t id = sqlite3_column_int64(stmt, 0);
		struct view name = store_day_blob(stmt, 1);

		r = 0;
		if (id <= 0 || id > STORE_DAY_MAX_STREAMS)
			store_day_damaged(day, STORE_DAY_SERVICES, id);
		else
			r = map_put(&l->services, hash_bytes(name.data, name.len), (uint64_t)id);
	}
	return r;
}

static int load_streams(struct store_lookup *l, struct store_day *day, struct err *err)
{
	sqlite3_stmt *stmt = NULL;
	int r = store_day_query(day, STORE_DAY_STREAMS, NULL, 0, &stmt, err);

	while (r == 0 && (r = store_day_next(day, stmt, err)) > 0) {
		uint64_t id = (uint64_t)sqlite3_column_int64(stmt, 0);
		uint64_t service = (uint64_t)sqlite3_column_int64(stmt, 1) & 0xffff;
		uint64_t snapshot = sqlite3_column_int(stmt, 3) != 0;

		r = 0;
		if (id > STORE_DAY_MAX_STREAMS)
			store_day_damaged(day, STORE_DAY_STREAMS, (int64_t)id);
		else
			r = map_put(&l->streams,
				    name_hash(store_day_blob(stmt, 4), store_day_blob(stmt, 2)),
				    id | service << 16 | snapshot << 32);
	}
	return r;
}

void store_lookup_release(struct store_lookup *l)
{
	map_release(&l->services);
	map_release(&l->streams);
	store_dictionary_release(&l->columns);
	*l = (struct store_lookup){0};
}

int store_lookup_load(struct store_lookup *l, struct store_day *day, struct err *err)
{
	int r = load_streams(l, day, err);

	return r < 0 ? r : load_services(l, day, err);
}

bool store_lookup_stream(const struct store_lookup *l, const char *service, const char *type,
			 struct store_sqlite_stream *ret_stream)
{
	uint64_t word;

	if (!map_get(&l->streams, name_hash(view_str(service), view_str(type)), &word))
		return false;
	*ret_stream = (struct store_sqlite_stream){
		.id = word & 0xffff, .service = word >> 16 & 0xffff, .snapshot = word >> 32};
	return true;
}

/* Streams of one service come together. */
int store_lookup_columns(struct store_lookup *l, struct store_day *day, const char *service,
			 struct err *err)
{
	uint64_t id;
	int r;

	if (!store_day_has_metrics(day) ||
	    !map_get(&l->services, hash_bytes(service, strlen(service)), &id))
		return 0;
	if (id == l->columns_of)
		return 1;
	store_dictionary_release(&l->columns);
	l->columns = (struct store_dictionary){0};
	l->columns_of = 0;
	r = store_dictionary_load(&l->columns, day, (uint32_t)id, err);
	l->columns_of = r < 0 ? 0 : (uint32_t)id;
	return r < 0 ? r : 1;
}
