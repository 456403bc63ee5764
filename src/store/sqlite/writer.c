/* src/store/sqlite/writer.c: writes entries as rows of a day file. */
#include "store/sqlite/writer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "store/codec/block.h"
#include "store/codec/labels.h"

void store_writer_tools_release(struct store_writer_tools *t)
{
	store_codec_release(&t->codec);
	buf_release(&t->values);
	buf_release(&t->order);
	buf_release(&t->sorted);
	buf_release(&t->ids);
	buf_release(&t->hashes);
	buf_release(&t->block);
	buf_release(&t->labels);
	buf_release(&t->attributes);
	store_cells_release(&t->cells);
}

static uint64_t key_hash(uint32_t service, struct view bytes)
{
	return hash_mix(hash_bytes(bytes.data, bytes.len) + service);
}

void store_writer_over(struct store_writer_tools *t, const char *service, uint32_t uid, uint64_t n)
{
	if (n == 0)
		return;
	t->over += n;
	t->over_uid = uid;
	(void)snprintf(t->over_service, sizeof(t->over_service), "%s", service);
}

static int know_service(struct store_writer *w, uint32_t id, struct view name, uint32_t uid,
			struct store_dict **ret)
{
	struct store_owner *owner = store_owners_get(&w->owners, uid);
	struct store_dict *d = owner ? calloc(1, sizeof(*d)) : NULL;

	if (!d)
		return -ENOMEM;
	d->service = id;
	d->owner = owner;
	owner->services++;
	memcpy(d->name, name.data, MIN(name.len, sizeof(d->name) - 1));
	d->next = w->dicts;
	w->dicts = d;
	w->next_service = MAX(w->next_service, id + 1);
	if (ret)
		*ret = d;
	return map_put(&w->by_id, id, (uintptr_t)d) < 0
		       ? -ENOMEM
		       : map_put(&w->by_service, key_hash(0, name), (uintptr_t)d);
}

/* NULL if it is unknown: then it belongs to nobody. */
static struct store_dict *service_of(const struct store_writer *w, uint32_t id)
{
	uint64_t known;

	return map_get(&w->by_id, id, &known) ? (struct store_dict *)(uintptr_t)known : NULL;
}

/* Moves a service, as it is when it was loaded, to its owner. */
static int set_owner(struct store_writer *w, struct store_dict *d, uint32_t uid)
{
	struct store_owner *owner = store_owners_get(&w->owners, uid);

	if (!owner)
		return -ENOMEM;
	d->owner->services--;
	owner->services++;
	owner->bytes += d->bytes;
	d->owner = owner;
	return 0;
}

static int load_owner(struct store_writer *w, struct store_dict *d, sqlite3_stmt *stmt)
{
	if (!d)
		return 0;
	d->bytes = d->bytes_saved = (uint64_t)sqlite3_column_int64(stmt, 2);
	return set_owner(w, d, (uint32_t)sqlite3_column_int64(stmt, 1));
}

static int load_row(struct store_writer *w, enum store_day_sql sql, sqlite3_stmt *stmt)
{
	uint32_t id = (uint32_t)sqlite3_column_int64(stmt, 0);
	uint32_t service = (uint32_t)sqlite3_column_int64(stmt, 1);
	struct store_dict *d = service_of(w, service);

	switch (sql) {
	case STORE_DAY_SERVICES:
		return know_service(w, id, store_day_blob(stmt, 1), STORE_OWNER_UNKNOWN, NULL);
	case STORE_DAY_OWNERS:
		return load_owner(w, service_of(w, id), stmt);
	case STORE_DAY_STREAMS:
		if (d)
			d->owner->streams++;
		w->next_stream = MAX(w->next_stream, id + 1);
		return map_put(&w->streams, key_hash(service, store_day_blob(stmt, 2)), id);
	case STORE_DAY_ALL_ROLLED:
		w->rolled = true;
		return 0;
	default:
		if (d) {
			d->labelsets++;
			d->owner->labelsets++;
		}
		w->next_labelset = MAX(w->next_labelset, id + 1);
		return map_put(&w->labelsets, key_hash(service, store_day_blob(stmt, 2)), id);
	}
}

static int load_table(struct store_writer *w, enum store_day_sql sql, struct err *err)
{
	sqlite3_stmt *stmt = NULL;
	int r = store_day_query(&w->day, sql, NULL, 0, &stmt, err);

	if (r < 0)
		return r;
	while ((r = store_day_next(&w->day, stmt, err)) > 0) {
		if (load_row(w, sql, stmt) < 0) {
			store_day_done(stmt);
			return err_oom(err);
		}
	}
	return r;
}

int store_writer_open(struct store_writer *w, const char *dir, int64_t number, struct err *err)
{
	int r;

	*w = (struct store_writer){.next_service = 1, .next_stream = 1, .next_labelset = 1};
	r = store_day_open(&w->day, dir, number, true, err);
	if (r == 0)
		r = load_table(w, STORE_DAY_SERVICES, err);
	if (r == 0 && store_day_has_owners(&w->day))
		r = load_table(w, STORE_DAY_OWNERS, err);
	if (r == 0)
		r = load_table(w, STORE_DAY_STREAMS, err);
	if (r == 0)
		r = load_table(w, STORE_DAY_LABELSETS, err);
	if (r == 0)
		r = load_table(w, STORE_DAY_ALL_ROLLED, err);
	if (r == 0 && store_day_has_totals(&w->day))
		r = store_about_load(w, err);
	w->open = true;
	if (r < 0)
		store_writer_close(w);
	return r;
}

void store_writer_close(struct store_writer *w)
{
	if (!w->open)
		return;
	while (w->dicts) {
		struct store_dict *d = w->dicts;

		w->dicts = d->next;
		store_dict_unload(d);
		free(d);
	}
	map_release(&w->by_service);
	map_release(&w->by_id);
	store_owners_release(&w->owners);
	map_release(&w->streams);
	map_release(&w->labelsets);
	store_metrics_writer_release(&w->metrics);
	store_totals_writer_release(&w->totals);
	if (w->in_transaction)
		(void)store_day_exec(&w->day, STORE_DAY_ROLLBACK, NULL, 0, NULL);
	store_day_close(&w->day);
	*w = (struct store_writer){0};
}

int store_writer_begin(struct store_writer *w, struct err *err)
{
	int r;

	if (w->in_transaction)
		return 0;
	r = store_day_exec(&w->day, STORE_DAY_BEGIN, NULL, 0, err);
	w->in_transaction = r == 0;
	return r;
}

static int put_text_row(struct store_writer *w, sqlite3_stmt *stmt, int column, struct view text,
			struct err *err)
{
	int rc = sqlite3_bind_text64(stmt, column, (const char *)text.data, text.len, SQLITE_STATIC,
				     SQLITE_UTF8);

	return rc == SQLITE_OK ? 0 : store_day_error(&w->day, rc, err);
}

static struct store_dict *find_service(const struct store_writer *w, const char *service)
{
	uint64_t known;

	return map_get(&w->by_service, key_hash(0, view_str(service)), &known)
		       ? (struct store_dict *)(uintptr_t)known
		       : NULL;
}

static int put_owner(struct store_writer *w, const struct store_dict *d, struct err *err)
{
	const int64_t row[] = {d->service, d->owner->uid, (int64_t)d->bytes};

	return store_day_has_owners(&w->day)
		       ? store_day_exec(&w->day, STORE_DAY_PUT_OWNER, row, 3, err)
		       : 0;
}

static int add_service(struct store_writer *w, const char *service, uint32_t uid,
		       struct store_dict **ret, struct err *err)
{
	struct view name = view_str(service);
	int64_t id = w->next_service;
	sqlite3_stmt *stmt = NULL;
	int r = store_day_query(&w->day, STORE_DAY_PUT_SERVICE, &id, 1, &stmt, err);

	if (r == 0)
		r = put_text_row(w, stmt, 2, name, err);
	if (r == 0)
		r = store_day_next(&w->day, stmt, err);
	/* An insert returns no row. */
	if (r >= 0 && know_service(w, (uint32_t)id, name, uid, ret) < 0)
		r = err_oom(err);
	return r < 0 ? r : put_owner(w, *ret, err);
}

/* The first to write to a service of a file without owners has it. */
static int adopt_service(struct store_writer *w, struct store_dict *d, uint32_t uid,
			 struct err *err)
{
	if (d->owner->uid != STORE_OWNER_UNKNOWN || uid == STORE_OWNER_UNKNOWN)
		return 0;
	d->owner->bytes -= MIN(d->bytes, d->owner->bytes);
	if (set_owner(w, d, uid) < 0)
		return err_oom(err);
	return put_owner(w, d, err);
}

int store_writer_service(struct store_writer *w, struct store_writer_tools *t, const char *service,
			 uint32_t uid, struct store_dict **ret, struct err *err)
{
	const struct store_owner *owner = store_owners_get(&w->owners, uid);
	char other[64];

	if (!owner)
		return err_oom(err);
	*ret = find_service(w, service);
	if (*ret)
		return adopt_service(w, *ret, uid, err);
	if (owner->services < t->budget.owner_services && owner->streams < t->budget.owner_streams)
		return add_service(w, service, uid, ret, err);
	store_writer_over(t, service, uid, 1);
	(void)snprintf(other, sizeof(other), "%s (uid %u)", STORE_DICT_OTHER_NAME, uid);
	*ret = find_service(w, other);
	return *ret ? 0 : add_service(w, other, uid, ret, err);
}

static int find_dict(struct store_writer *w, struct store_writer_tools *t,
		     const struct store_entry *e, struct store_dict **ret, struct err *err)
{
	int r = store_writer_service(w, t, e->service, e->uid, ret, err);

	return r < 0 || (*ret)->loaded ? r : store_dict_load(*ret, &w->day, &t->codec, err);
}

static int find_stream(struct store_writer *w, struct store_dict *d, const char *type,
		       bool snapshot, uint32_t *ret, struct err *err)
{
	const int64_t args[] = {w->next_stream, d->service};
	uint64_t hash = key_hash(d->service, view_str(type));
	uint64_t known = w->next_stream;
	sqlite3_stmt *stmt = NULL;
	int r;

	if (!map_get(&w->streams, hash, &known)) {
		r = store_day_query(&w->day, STORE_DAY_PUT_STREAM, args, 2, &stmt, err);
		if (r == 0)
			r = put_text_row(w, stmt, 3, view_str(type), err);
		if (r < 0)
			return r;
		(void)sqlite3_bind_int(stmt, 4, snapshot);
		r = store_day_next(&w->day, stmt, err);
		if (r < 0)
			return r;
		if (map_put(&w->streams, hash, known) < 0)
			return err_oom(err);
		d->owner->streams++;
		w->next_stream++;
	}
	*ret = (uint32_t)known;
	return 0;
}

int store_writer_labelset(struct store_writer *w, struct store_writer_tools *t,
			  struct store_dict *d, uint32_t *ret, struct err *err)
{
	const int64_t args[] = {w->next_labelset, d->service};
	struct view kv = buf_view(&t->labels);
	uint64_t hash = key_hash(d->service, kv);
	uint64_t known = w->next_labelset;
	sqlite3_stmt *stmt = NULL;
	int r, rc;

	if (map_get(&w->labelsets, hash, &known)) {
		*ret = (uint32_t)known;
		return 0;
	}
	if (d->labelsets >= t->budget.labelsets ||
	    d->owner->labelsets >= t->budget.owner_labelsets ||
	    w->next_labelset > STORE_DAY_MAX_LABELSETS) {
		store_writer_over(t, d->name, d->owner->uid, 1);
		*ret = 0;
		return 0;
	}
	r = store_day_query(&w->day, STORE_DAY_PUT_LABELSET, args, 2, &stmt, err);
	if (r < 0)
		return r;
	rc = sqlite3_bind_blob64(stmt, 3, kv.data, kv.len, SQLITE_STATIC);
	r = rc == SQLITE_OK ? store_day_next(&w->day, stmt, err)
			    : store_day_error(&w->day, rc, err);
	if (r < 0)
		return r;
	if (map_put(&w->labelsets, hash, known) < 0)
		return err_oom(err);
	store_about_learn(&d->about, kv);
	d->labelsets++;
	d->owner->labelsets++;
	w->next_labelset++;
	*ret = (uint32_t)known;
	return 0;
}

/* Sorts the samples by stored stack id into t->order, once for all types. */
static int sort_samples(struct store_writer_tools *t, const struct profile *p, struct err *err)
{
	const uint32_t *ids = (const void *)t->ids.data;
	size_t n = profile_n_samples(p);
	struct store_block_value *order;

	buf_clear(&t->order);
	buf_clear(&t->values);
	if (buf_reserve(&t->order, (n + 1) * sizeof(*order)) < 0 ||
	    buf_reserve(&t->values, (n + 1) * sizeof(*order)) < 0)
		return err_oom(err);
	order = (void *)t->order.data;
	for (size_t i = 0; i < n; i++) {
		const struct profile_sample *s = profile_sample_at(p, i);

		order[i] = (struct store_block_value){ids[s->stack], (int64_t)(uintptr_t)s->values};
	}
	store_block_sort(order, n, (void *)t->values.data);
	return 0;
}

/* Collects the values of one type by stored stack id into t->values; returns how many. */
static size_t collect_values(struct store_writer_tools *t, size_t n_samples, size_t type)
{
	const struct store_block_value *order = (const void *)t->order.data;
	struct store_block_value *values = (void *)t->values.data;
	size_t n = 0;

	for (size_t i = 0; i < n_samples; i++) {
		const int64_t *of_sample = (const void *)(uintptr_t)order[i].value;

		values[n] = (struct store_block_value){order[i].stack, of_sample[type]};
		n += of_sample[type] != 0;
	}
	return store_block_add_up(values, n);
}

/* This process already has a collection at this time: add both. */
static int add_to_row(struct store_writer *w, struct store_writer_tools *t, int64_t key, size_t *n,
		      int64_t *total, struct err *err)
{
	const int64_t range[] = {key, key + 1};
	sqlite3_stmt *stmt = NULL;
	int r = store_day_query(&w->day, STORE_DAY_POINTS, range, 2, &stmt, err);

	if (r == 0)
		r = store_day_next(&w->day, stmt, err);
	if (r > 0) {
		*total = store_block_add(*total, sqlite3_column_int64(stmt, 1));
		store_day_done(stmt);
		r = store_day_exec(&w->day, STORE_DAY_ADD_POINT, (const int64_t[]){key, *total}, 2,
				   err);
	}
	if (r == 0)
		r = store_day_query(&w->day, STORE_DAY_GET_PROFILE, &key, 1, &stmt, err);
	if (r == 0)
		r = store_day_next(&w->day, stmt, err);
	if (r <= 0)
		return r;
	t->values.len = *n * sizeof(struct store_block_value);
	r = store_block_decode_sums(&t->codec, store_day_blob(stmt, 0), &t->values);
	store_day_done(stmt);
	*n = t->values.len / sizeof(struct store_block_value);
	if (r == 0)
		r = buf_reserve(&t->sorted, (*n + 1) * sizeof(struct store_block_value));
	if (r < 0)
		return err_set(err, r, "%s: cannot add to a collection", w->day.path);
	*n = store_block_normalise((void *)t->values.data, *n, (void *)t->sorted.data);
	return 0;
}

static int put_values(struct store_writer *w, struct store_writer_tools *t, int64_t key, size_t n,
		      struct store_totals_point *point, struct err *err)
{
	int64_t total = 0;
	size_t added = n;
	int r;

	for (size_t i = 0; i < n; i++)
		total = store_block_add(
			total, ((struct store_block_value *)(void *)t->values.data)[i].value);
	r = store_day_exec(&w->day, STORE_DAY_PUT_POINT, (const int64_t[]){key, total}, 2, err);
	point->value = total;
	point->again = r == 0 && sqlite3_changes(w->day.db) == 0;
	if (point->again)
		r = add_to_row(w, t, key, &n, &total, err);
	if (r == 0)
		r = store_totals_write(w, t, point, err);
	if (r < 0)
		return r;
	w->samples += added;
	if (n == 0)
		return 0;
	r = store_block_encode_sums(&t->codec, (void *)t->values.data, n, n, &t->block);
	if (r < 0)
		return err_set(err, r, "%s: a profile is too large to store", w->day.path);
	return store_day_put(&w->day, STORE_DAY_PUT_PROFILE, key, buf_view(&t->block), err);
}

/* Where an entry goes. */
struct placed {
	struct store_dict *dict;
	uint32_t labelset;
};

/* A collection after the roll-up invalidates the sums of its stream. */
static int void_rollup(struct store_writer *w, uint32_t stream, struct err *err)
{
	const int64_t range[] = {store_day_rollup_key(stream, 0),
				 store_day_rollup_key(stream + 1, 0)};
	const int64_t id = stream;
	int r;

	if (!w->rolled)
		return 0;
	r = store_day_exec(&w->day, STORE_DAY_DROP_ROLLED, &id, 1, err);
	if (r < 0 || sqlite3_changes(w->day.db) == 0)
		return r;
	return store_day_exec(&w->day, STORE_DAY_DROP_ROLLUPS, range, 2, err);
}

static int write_type(struct store_writer *w, struct store_writer_tools *t,
		      const struct store_entry *e, size_t type, const struct placed *at,
		      struct err *err)
{
	const struct profile_type *pt = profile_type_at(e->profile, type);
	int64_t ms = e->time_ns / 1000000 - w->day.number * STORE_DAY_MS;
	struct store_totals_point point = {.service = at->dict->service,
					   .snapshot = e->snapshot_types >> type & 1};
	char name[128];
	uint32_t stream = 0;
	size_t n;
	int r;

	point.type = name;
	(void)snprintf(name, sizeof(name), "%s:%s:%s", e->family,
		       profile_cstring(e->profile, pt->type),
		       profile_cstring(e->profile, pt->unit));
	r = find_stream(w, at->dict, name, point.snapshot, &stream, err);
	if (r == 0)
		r = void_rollup(w, stream, err);
	if (r < 0)
		return r;
	n = collect_values(t, profile_n_samples(e->profile), type);
	point.ms = ms;
	return put_values(w, t, store_day_key(stream, ms, at->labelset), n, &point, err);
}

static int check_entry(const struct store_writer *w, const struct store_entry *e, struct err *err)
{
	if (w->next_stream + profile_n_types(e->profile) > STORE_DAY_MAX_STREAMS)
		return err_set(err, -E2BIG, "%s has reached its limit of %u streams", w->day.path,
			       STORE_DAY_MAX_STREAMS);
	for (size_t i = 0; i < profile_n_types(e->profile); i++) {
		const struct profile_type *t = profile_type_at(e->profile, i);

		if (strlen(e->family) + profile_string(e->profile, t->type).len +
			    profile_string(e->profile, t->unit).len + 3 >
		    128)
			return err_set(err, -E2BIG, "the profile type's name is too long");
	}
	return 0;
}

int store_writer_begin_entry(struct store_writer *w, struct store_writer_tools *t,
			     const char *service, const struct label *labels, size_t n_labels,
			     struct err *err)
{
	int r;

	if (strlen(service) >= 256 || strlen(service) == 0)
		return err_set(err, -E2BIG, "a service name must have 1 to 255 bytes, not %zu",
			       strlen(service));
	buf_clear(&t->labels);
	r = store_labels_encode(labels, n_labels, &t->labels, err);
	return r < 0 ? r : store_writer_begin(w, err);
}

int store_writer_write(struct store_writer *w, struct store_writer_tools *t,
		       const struct store_entry *e, struct err *err)
{
	struct placed at = {0};
	int over = 0, r = check_entry(w, e, err);

	if (r < 0)
		return r;
	r = store_writer_begin_entry(w, t, e->service, e->labels, e->n_labels, err);
	if (r < 0)
		return r;
	buf_clear(&t->ids);
	if (buf_reserve(&t->ids, (profile_n_stacks(e->profile) + 1) * sizeof(uint32_t)) < 0)
		return err_oom(err);
	r = find_dict(w, t, e, &at.dict, err);
	if (r == 0 && at.dict)
		r = store_writer_labelset(w, t, at.dict, &at.labelset, err);
	if (r == 0 && at.dict)
		r = store_about_see(w, at.dict, at.labelset,
				    e->time_ns / 1000000 - w->day.number * STORE_DAY_MS, err);
	if (r < 0 || !at.dict)
		return r;
	over = store_dict_resolve(at.dict, e->profile, &t->budget, &t->hashes, (void *)t->ids.data,
				  err);
	if (over < 0)
		return over;
	store_writer_over(t, at.dict->name, at.dict->owner->uid, (uint64_t)over);
	r = sort_samples(t, e->profile, err);
	at.dict->used = w->used;
	for (size_t i = 0; r == 0 && i < profile_n_types(e->profile); i++)
		if (!(e->absent_types >> i & 1))
			r = write_type(w, t, e, i, &at, err);
	if (r == 0 && store_dict_is_heavy(at.dict))
		r = store_dict_flush(at.dict, &w->day, &t->codec, err);
	w->profiles += r == 0;
	return r;
}

int store_writer_commit(struct store_writer *w, struct store_writer_tools *t, struct err *err)
{
	int r = 0;

	if (!w->in_transaction)
		return 0;
	for (struct store_dict *d = w->dicts; r == 0 && d; d = d->next)
		r = store_dict_flush(d, &w->day, &t->codec, err);
	if (r == 0)
		r = store_about_flush(w, t, err);
	if (r == 0)
		r = store_totals_flush(w, t, err);
	if (r == 0)
		r = store_day_exec(&w->day, STORE_DAY_COMMIT, NULL, 0, err);
	if (r < 0)
		return r;
	w->in_transaction = false;
	w->profiles = w->samples = w->events = w->metrics.points = 0;
	return 0;
}

void store_writer_write_back(struct store_writer *w)
{
	(void)sqlite3_busy_timeout(w->day.db, 0);
	w->log_left = sqlite3_wal_checkpoint_v2(w->day.db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL,
						NULL) != SQLITE_OK;
	(void)sqlite3_busy_timeout(w->day.db, STORE_DAY_BUSY_MS);
}

size_t store_writer_memory(const struct store_writer *w)
{
	/* A slot of base/map takes 24 bytes. */
	size_t bytes = (w->streams.cap + w->labelsets.cap + w->by_service.cap + w->by_id.cap) * 24 +
		       store_metrics_writer_memory(&w->metrics) +
		       store_totals_writer_memory(&w->totals);

	for (const struct store_dict *d = w->dicts; d; d = d->next)
		bytes += sizeof(*d) + store_dict_memory(d);
	return bytes;
}

int store_writer_shrink(struct store_writer *w, struct store_writer_tools *t, size_t max_bytes,
			struct err *err)
{
	while (store_writer_memory(w) > max_bytes) {
		struct store_dict *oldest = NULL;
		int r;

		for (struct store_dict *d = w->dicts; d; d = d->next)
			if (d->loaded && (!oldest || d->used < oldest->used))
				oldest = d;
		if (!oldest)
			return 0;
		r = store_dict_flush(oldest, &w->day, &t->codec, err);
		if (r < 0)
			return r;
		store_dict_unload(oldest);
	}
	return 0;
}
