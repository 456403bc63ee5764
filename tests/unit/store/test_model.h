/*
 * tests/unit/store/test_model.h: a store in a folder of its own, with a clock that the test sets,
 * and profiles that are made of a few numbers.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sqlite3.h>

#include "base/cleanup.h"
#include "store/sqlite/sqlite.h"
#include "store/sqlite/vfs.h"
#include "store/store.h"

#define DAY_NS 86400000000000LL
#define HOUR_NS 3600000000000LL
#define SEC_NS 1000000000LL
#define DAY_0 (20000 * DAY_NS) /* 2024-10-04 */

#define TYPE_ALLOC "go_heap:alloc_space:bytes"
#define TYPE_INUSE "go_heap:inuse_space:bytes"

struct rig {
	char dir[64];
	int64_t now_ns;
	int64_t jumped_ns;
	uint32_t uid;	  /* whose profiles are written */
	uint64_t damaged; /* what answers lacked, in sum */
	struct store_sqlite_config config;
	struct store *store;
};

static inline int64_t rig_now(void *ctx)
{
	return ((struct rig *)ctx)->now_ns;
}

/* Passes with the clock, unless a test says that it has jumped. */
static inline int64_t rig_ran(void *ctx)
{
	const struct rig *rig = ctx;

	return rig->now_ns - rig->jumped_ns;
}

static inline void rig_open(struct rig *rig)
{
	struct err err = {};

	rig->config.dir = rig->dir;
	rig->config.now_ns = rig_now;
	rig->config.ran_ns = rig_ran;
	rig->config.now_ctx = rig;
	if (store_sqlite_open(&rig->config, &rig->store, &err) < 0)
		fail_msg("%s", err.text);
}

static inline void rig_init(struct rig *rig)
{
	*rig = (struct rig){.dir = "/tmp/sonde-store-XXXXXX", .now_ns = DAY_0};
	assert_non_null(mkdtemp(rig->dir));
	rig_open(rig);
}

static inline void rig_reopen(struct rig *rig)
{
	store_close(rig->store);
	rig_open(rig);
}

static inline int rig_remove(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st, (void)flag, (void)ftw;
	return remove(path);
}

static inline void rig_release(struct rig *rig)
{
	store_close(rig->store);
	(void)nftw(rig->dir, rig_remove, 8, FTW_DEPTH | FTW_PHYS);
}

/* The path of a day's file. */
static inline const char *rig_day(struct rig *rig, const char *date)
{
	static char path[128];

	(void)snprintf(path, sizeof(path), "%s/%s.db", rig->dir, date);
	return path;
}

/* A day's file, as the store opens it: what is changed in it gets its checksums. */
static inline sqlite3 *open_day(const char *path)
{
	sqlite3 *db;

	assert_int_equal(store_vfs_register(NULL), 0);
	assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
					 STORE_VFS_NAME),
			 SQLITE_OK);
	return db;
}

static inline int copy_table(void *ctx, int n, char **values, char **names)
{
	char sql[400];

	(void)n, (void)names;
	if (strcmp(values[0], "owner") == 0)
		return 0;
	(void)snprintf(sql, sizeof(sql), "%s; INSERT INTO main.%s SELECT * FROM day.%s", values[1],
		       values[0], values[0]);
	return sqlite3_exec(ctx, sql, NULL, NULL, NULL);
}

/* Makes it one of an older version, without checksums of its pages. */
static inline void make_old(const char *path, int format)
{
	char old_path[160], sql[300];
	sqlite3 *db;

	(void)snprintf(old_path, sizeof(old_path), "%s.old", path);
	assert_int_equal(sqlite3_open(old_path, &db), SQLITE_OK);
	(void)snprintf(sql, sizeof(sql),
		       "PRAGMA auto_vacuum=2; PRAGMA journal_mode=WAL; ATTACH '%s' AS day", path);
	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db,
				      "SELECT name, sql FROM day.sqlite_schema WHERE type='table'",
				      copy_table, db, NULL),
			 SQLITE_OK);
	(void)snprintf(sql, sizeof(sql), "PRAGMA main.user_version=%d", format);
	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
	assert_int_equal(rename(old_path, path), 0);
}

/* A profile of two types in which stack i is main > step_A > work_i. */
static inline struct profile *make_profile(void)
{
	struct profile *p = profile_new();

	assert_non_null(p);
	assert_int_equal(profile_add_type(p, "alloc_space", "bytes"), 0);
	assert_int_equal(profile_add_type(p, "inuse_space", "bytes"), 0);
	return p;
}

static inline uint32_t add_location(struct profile *p, const char *name, const char *file, int line)
{
	struct profile_function f = {0};
	struct profile_line l = {.line = line};
	uint32_t id;

	assert_int_equal(profile_add_string(p, view_str(name), &f.name), 0);
	assert_int_equal(profile_add_string(p, view_str(file), &f.file), 0);
	assert_int_equal(profile_add_function(p, &f, &l.function), 0);
	assert_int_equal(profile_add_location(p, 0x1000, PROFILE_NO_MAPPING, &l, 1, &id), 0);
	return id;
}

static inline void add_stack(struct profile *p, unsigned int stack, int64_t alloc, int64_t inuse)
{
	const int64_t values[] = {alloc, inuse};
	char leaf[32], step[32];
	uint32_t locations[3], id;

	(void)snprintf(leaf, sizeof(leaf), "work_%u", stack);
	(void)snprintf(step, sizeof(step), "step_%u", stack % 7);
	locations[0] = add_location(p, leaf, "work.go", (int)stack);
	locations[1] = add_location(p, step, "step.go", 7);
	locations[2] = add_location(p, "main.main", "main.go", 12);
	assert_int_equal(profile_add_stack(p, locations, 3, &id), 0);
	assert_int_equal(profile_add_sample(p, id, values, NULL, 0), 0);
}

static inline int write_profile(struct rig *rig, const char *service, const char *pid,
				int64_t time_ns, const struct profile *p, struct err *err)
{
	const struct label labels[] = {{"process.pid", pid}, {"host.name", "here"}};
	const struct store_entry e = {
		.service = service,
		.uid = rig->uid,
		.family = "go_heap",
		.labels = labels,
		.n_labels = 2,
		.time_ns = time_ns,
		.duration_ns = 15 * SEC_NS,
		.profile = p,
		.snapshot_types = 2,
	};

	return store_write(rig->store, &e, err);
}

/* One stack with one value, of both types. */
static inline int write_one(struct rig *rig, const char *pid, int64_t time_ns, unsigned int stack,
			    int64_t value)
{
	struct profile *p = make_profile();
	struct err err = {};
	int r;

	add_stack(p, stack, value, value);
	r = write_profile(rig, "svc", pid, time_ns, p, &err);
	profile_free(p);
	return r;
}

static inline void sum_of(struct rig *rig, const char *service, const char *type, int64_t from_ns,
			  int64_t to_ns, struct store_sum *ret)
{
	const struct store_window w = {
		.service = service,
		.type = type,
		.from_ns = from_ns,
		.to_ns = to_ns,
		.damaged = &rig->damaged,
	};
	struct err err = {};

	if (store_sum(rig->store, &w, ret, &err) < 0)
		fail_msg("%s", err.text);
}

static inline int64_t total_of(const struct profile *p)
{
	int64_t total = 0;

	for (size_t i = 0; i < profile_n_samples(p); i++)
		total += profile_sample_at(p, i)->values[0];
	return total;
}

/* The total of alloc_space of "svc" over all times. */
static inline int64_t total_all(struct rig *rig)
{
	struct store_sum sum = {0};
	int64_t total;

	sum_of(rig, "svc", TYPE_ALLOC, 0, INT64_MAX, &sum);
	total = total_of(sum.profile);
	profile_free(sum.profile);
	return total;
}
