/* src/store/status.c: the size of the store, and the time of its oldest data. */
#include "store/metrics/stream.h"
#include "store/sqlite/state.h"

struct first_time {
	int64_t ns; /* 0: none yet */
	struct store_day *day;
};

static void note_first(struct first_time *f, int64_t ns)
{
	f->ns = f->ns == 0 || ns < f->ns ? ns : f->ns;
}

static int first_profile(struct first_time *f, uint32_t stream, struct err *err)
{
	const int64_t range[] = {store_day_key(stream, 0, 0), store_day_key(stream + 1, 0, 0)};
	sqlite3_stmt *stmt = NULL;
	int r = store_day_query(f->day, STORE_DAY_POINT_FIRST, range, 2, &stmt, err);

	if (r == 0)
		r = store_day_next(f->day, stmt, err);
	if (r <= 0)
		return r;
	note_first(f, (f->day->number * STORE_DAY_MS +
		       store_day_key_ms(sqlite3_column_int64(stmt, 0))) *
			      1000000);
	store_day_done(stmt);
	return 0;
}

static int first_of_labelset(void *ctx, uint32_t labelset, int64_t first_ns, int64_t last_ns)
{
	(void)labelset;
	(void)last_ns;
	note_first(ctx, first_ns);
	return 0;
}

static int first_metric(struct first_time *f, uint32_t service, struct err *err)
{
	struct store_metrics_listing l = {
		.to_ns = INT64_MAX, .labelset = first_of_labelset, .ctx = f};

	return store_metrics_list_labelsets(&l, f->day, service, err);
}

static int each_id(struct first_time *f, enum store_day_sql sql,
		   int (*fn)(struct first_time *f, uint32_t id, struct err *err), struct err *err)
{
	sqlite3_stmt *stmt = NULL;
	int r = store_day_query(f->day, sql, NULL, 0, &stmt, err);

	while (r == 0 && (r = store_day_next(f->day, stmt, err)) > 0) {
		int64_t id = sqlite3_column_int64(stmt, 0);

		r = id > 0 && id <= STORE_DAY_MAX_STREAMS ? fn(f, (uint32_t)id, err) : 0;
		if (r < 0)
			store_day_done(stmt);
	}
	return r;
}

static int find_first(void *ctx, struct store_day *day, struct err *err)
{
	struct first_time *f = ctx;
	int r;

	f->day = day;
	r = each_id(f, STORE_DAY_STREAMS, first_profile, err);
	return r < 0 ? r : each_id(f, STORE_DAY_SERVICES, first_metric, err);
}

void store_sqlite_status(struct store *store, struct store_status *ret_status)
{
	struct store_sqlite *s = store_sqlite(store);
	_cleanup_free_ struct store_sqlite_file *files = NULL;
	int64_t oldest = 0, known;
	size_t n = 0, days = 0;
	uint64_t bytes = 0;

	if (store_sqlite_files(s, &files, &n, NULL) < 0)
		n = 0;
	for (size_t i = 0; i < n; i++) {
		bytes += files[i].bytes;
		if (!files[i].damaged && days++ == 0)
			oldest = files[i].number;
	}
	(void)pthread_mutex_lock(&s->status_lock);
	known = s->status.oldest_ns;
	(void)pthread_mutex_unlock(&s->status_lock);
	if (days == 0) {
		known = 0;
	} else if (known / STORE_DAY_NS != oldest) {
		const struct store_sqlite_span day = {oldest * STORE_DAY_NS,
						      oldest * STORE_DAY_NS + 1, NULL};
		struct first_time f = {0};

		(void)store_sqlite_each_day(s, &day, find_first, &f, NULL);
		known = f.ns;
	}
	(void)pthread_mutex_lock(&s->status_lock);
	s->status.oldest_ns = known;
	*ret_status = s->status;
	(void)pthread_mutex_unlock(&s->status_lock);
	ret_status->bytes_on_disk = bytes;
	ret_status->days = days;
}
