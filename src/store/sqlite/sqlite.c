/*
 * src/store/sqlite/sqlite.c: the embedded store's interface: write, commit, maintain, status.
 *
 * A write failure spoils the interval: what was not committed is lost and counted, and the day file
 * is closed. The commit that ends the interval clears this state, and the next interval starts over
 * from disk. Readers have their own connections and are not affected.
 */
#include "store/sqlite/sqlite.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/hash.h"
#include "pipeline/metrics.h"
#include "store/codec/block.h"
#include "store/sqlite/events.h"
#include "store/sqlite/state.h"
#include "store/sqlite/vfs.h"

#define HOUR_NS (3600 * 1000000000LL)
#define DICTS_MAX_BYTES ((size_t)36 << 20)
#define USUAL_SERIES 2000
#define USUAL_SERIES_IN_ALL 20000
/*
 * Of a day, so that no owner takes all of the numbers that a file has for services, streams and
 * label sets; and of the disk, for names and stacks.
 */
#define OWNER_SERVICES 4000U
#define OWNER_STREAMS (STORE_DAY_MAX_STREAMS / 4)
#define OWNER_LABELSETS (STORE_DAY_MAX_LABELSETS / 4)
#define OWNER_BYTES ((uint64_t)256 << 20)
#define DISK_PER_OWNER 8
#define DAMAGED_MAX 4096 /* distinct blocks */

static void unlockp(pthread_mutex_t **m)
{
	(void)pthread_mutex_unlock(*m);
}

static pthread_mutex_t *locked(pthread_mutex_t *m)
{
	(void)pthread_mutex_lock(m);
	return m;
}

#define HOLD(m) _cleanup_(unlockp) __attribute__((unused)) pthread_mutex_t *_held = locked(m)

static int64_t wall_clock(void *ctx)
{
	(void)ctx;
	return (int64_t)clock_unix_ns();
}

/* Goes on while the machine sleeps, as the wall clock does. */
static int64_t boot_clock(void *ctx)
{
	struct timespec t = {0};

	(void)ctx;
	(void)clock_gettime(CLOCK_BOOTTIME, &t);
	return (int64_t)t.tv_sec * (int64_t)NS_PER_SEC + t.tv_nsec;
}

int store_sqlite_lock_folder(struct store_sqlite *s, struct err *err)
{
	_cleanup_close_ int fd = -1;
	char path[512];

	if (s->lock_fd >= 0)
		return 0;
	(void)snprintf(path, sizeof(path), "%s/lock", s->dir);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 && (errno == ENOSPC || errno == EDQUOT))
		return err_lack(err, -ENOSPC, ERR_CAUSE_DISK, "free some space",
				"%s: the disk is full", s->dir);
	if (fd < 0)
		return err_lack(err, -EROFS, ERR_CAUSE_DISK,
				"check its owner and permissions, or choose another --data-dir",
				"%s cannot be written (%s)", s->dir, strerror(errno));
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return err_lack(err, -EBUSY, ERR_CAUSE_BUSY,
				"stop it, or choose another --data-dir",
				"another sonde is writing to %s", s->dir);
	s->lock_fd = TAKE_FD(fd);
	store_sqlite_finish_repairs(s);
	return 0;
}

void store_sqlite_trouble(struct store_sqlite *s, const char *sentence, bool writing)
{
	HOLD(&s->status_lock);

	(void)snprintf(s->status.trouble, sizeof(s->status.trouble), "%.*s",
		       (int)sizeof(s->status.trouble) - 1, sentence);
	s->status.writing = writing;
}

static const char *file_name(const struct store_day *day)
{
	const char *slash = strrchr(day->path, '/');

	return slash ? slash + 1 : day->path;
}

/* Whether it is the first time. With the status lock held. */
static bool is_news(struct store_sqlite *s, uint64_t where)
{
	uint64_t known;

	return !map_get(&s->damaged, where, &known) && s->damaged.len < DAMAGED_MAX &&
	       map_put(&s->damaged, where, 1) == 0;
}

/* Pages that were corrected count apart: nothing is missing. Returns how many are. */
static unsigned int count_pages(struct store_sqlite *s, struct store_day *day)
{
	const struct store_vfs_damage *pages = store_vfs_damage(day->db);
	unsigned int missing = 0;

	for (size_t i = 0; i < pages->n; i++) {
		uint64_t where = hash_mix(hash_u64(day->inode << 8 | pages->items[i].kind) +
					  ~(uint64_t)pages->items[i].page);

		if (pages->items[i].kind == STORE_VFS_CORRECTED) {
			s->status.corrected_pages += is_news(s, where);
			continue;
		}
		s->status.damaged_blocks += is_news(s, where);
		missing++;
	}
	return missing;
}

unsigned int store_sqlite_count_damage(struct store_sqlite *s, struct store_day *day)
{
	struct store_damage *damage = &day->damage;
	unsigned int met = (unsigned int)damage->n;
	uint64_t before;

	HOLD(&s->status_lock);
	before = s->status.damaged_blocks;
	met += count_pages(s, day);
	for (size_t i = 0; i < damage->n; i++)
		s->status.damaged_blocks += is_news(s, damage->where[i]);
	if (s->status.damaged_blocks != before)
		(void)snprintf(s->status.damage, sizeof(s->status.damage),
			       "%.64s is damaged: part of it is missing from answers; see `sonde "
			       "store check`",
			       file_name(day));
	*damage = (struct store_damage){0};
	return met;
}

void store_sqlite_tell_unreadable(struct store_sqlite *s, const struct store_day *day,
				  const char *why)
{
	HOLD(&s->status_lock);

	s->status.damaged_blocks += is_news(s, hash_u64(~day->inode));
	(void)snprintf(s->status.damage, sizeof(s->status.damage),
		       "%.64s is missing from answers, in whole or in part: %.*s", file_name(day),
		       (int)sizeof(s->status.damage) - 128, why);
}

/* What one call writes: any kind. */
struct writing {
	const struct store_entry *profile; /* one of the three */
	const struct store_metrics *metrics;
	const struct store_event *event;
	const char *service;
	uint32_t uid;
	int64_t time_ns;
};

static void count_lost(struct store_sqlite *s, const struct writing *lost)
{
	HOLD(&s->status_lock);

	s->status.profiles_lost += lost->profile != NULL;
	s->status.events_lost += lost->event != NULL;
	s->status.points_lost += lost->metrics ? lost->metrics->metrics->len : 0;
}

void store_sqlite_drop_writer(struct store_sqlite *s, int64_t number)
{
	for (size_t i = 0; i < STORE_SQLITE_WRITERS; i++) {
		struct store_writer *w = &s->writers[i];

		if (!w->open || w->day.number != number)
			continue;
		{
			HOLD(&s->status_lock);
			s->status.profiles_lost += w->profiles;
			s->status.events_lost += w->events;
			s->status.points_lost += w->metrics.points;
		}
		store_writer_close(w);
	}
}

void store_sqlite_drop_writers(struct store_sqlite *s)
{
	for (size_t i = 0; i < STORE_SQLITE_WRITERS; i++)
		if (s->writers[i].open)
			store_sqlite_drop_writer(s, s->writers[i].day.number);
}

int store_sqlite_commit_writer(struct store_sqlite *s, struct store_writer *w, struct err *err)
{
	uint64_t profiles = w->profiles, samples = w->samples;
	uint64_t points = w->metrics.points, events = w->events;
	int r = store_writer_commit(w, &s->tools, err);

	if (r < 0)
		return r;
	{
		HOLD(&s->status_lock);
		s->status.profiles_written += profiles;
		s->status.samples_written += samples;
		s->status.points_written += points;
		s->status.events_written += events;
		if (points > 0)
			s->status.series = w->metrics.n_active_in_all;
	}
	return 0;
}

int store_sqlite_writer(struct store_sqlite *s, int64_t number, struct store_writer **ret,
			struct err *err)
{
	struct store_writer *w = &s->writers[0];
	int r;

	for (size_t i = 0; i < STORE_SQLITE_WRITERS; i++) {
		struct store_writer *other = &s->writers[i];

		if (other->open && other->day.number == number) {
			*ret = other;
			return 0;
		}
		if (!other->open || (w->open && other->used < w->used))
			w = other;
	}
	if (w->open) {
		r = store_sqlite_commit_writer(s, w, err);
		if (r < 0) {
			store_sqlite_drop_writer(s, w->day.number);
			return r;
		}
		store_writer_close(w);
	}
	r = store_sqlite_lock_folder(s, err);
	if (r == 0)
		r = store_writer_open(w, s->dir, number, err);
	if (r == -EBADMSG) {
		store_sqlite_set_aside(s, number, 0, err ? err->text : "");
		r = store_writer_open(w, s->dir, number, err);
	}
	if (r < 0)
		return r;
	(void)store_sqlite_count_damage(s, &w->day);
	*ret = w;
	return 0;
}

/* The interval is lost: drop everything open; it is reloaded after the commit. */
static void spoil(struct store_sqlite *s, int r, const struct err *err)
{
	char line[ERR_LINE_MAX];

	store_sqlite_drop_writers(s);
	s->spoiled = r;
	s->why_spoiled = *err;
	store_sqlite_trouble(s, err_describe(err, r, line), false);
}

/* There is new data to pack, from this hour on. */
static int unsettle(struct store_sqlite *s, int64_t number, uint64_t hour, struct err *err)
{
	uint64_t settled;

	if (!map_get(&s->settled, (uint64_t)number, &settled) || settled <= hour)
		return 0;
	return map_put(&s->settled, (uint64_t)number, hour) < 0 ? err_oom(err) : 0;
}

static int write_kind(struct store_sqlite *s, struct store_writer *w, const struct writing *e,
		      struct err *err)
{
	uint64_t refused = 0;
	int r;

	if (e->profile)
		return store_writer_write(w, &s->tools, e->profile, err);
	if (e->event)
		return store_events_write(w, &s->tools, e->event, err);
	r = store_metrics_write(w, &s->tools, e->metrics, &refused, err);
	if (refused > 0) {
		HOLD(&s->status_lock);
		s->status.series_refused += refused;
	}
	return r;
}

static int write_to(struct store_sqlite *s, struct store_writer *w, const struct writing *e,
		    struct err *err)
{
	struct store_writer_tools *t = &s->tools;
	int r = write_kind(s, w, e, err);

	if (t->over > 0) {
		HOLD(&s->status_lock);
		s->status.over_budget += t->over;
		t->over = 0;
		(void)snprintf(s->status.budget, sizeof(s->status.budget),
			       "%.100s (uid %u) has too many distinct stacks, names, label sets "
			       "or series: the rest is \"(other)\", or not stored",
			       t->over_service, t->over_uid);
	}
	return r;
}

static int try_write(struct store_sqlite *s, const struct writing *e, int64_t number,
		     struct err *err)
{
	struct store_writer *w = NULL;
	size_t used = 0;
	uint64_t inode;
	int r = store_sqlite_writer(s, number, &w, err);

	if (r < 0)
		return r;
	w->used = ++s->ticks;
	r = write_to(s, w, e, err);
	if (r == -EBADMSG) {
		/* The existing file is damaged: this interval starts a new one. */
		inode = w->day.inode;
		store_sqlite_set_aside(s, number, inode, err->text);
		r = store_sqlite_writer(s, number, &w, err);
		if (r == 0)
			r = write_to(s, w, e, err);
	}
	if (r < 0)
		return r;
	for (size_t i = 0; i < STORE_SQLITE_WRITERS; i++)
		if (s->writers[i].open && &s->writers[i] != w)
			used += store_writer_memory(&s->writers[i]);
	r = store_writer_shrink(w, &s->tools, DICTS_MAX_BYTES - MIN(used, DICTS_MAX_BYTES), err);
	return r < 0 ? r
		     : unsettle(s, number, (uint64_t)(e->time_ns % STORE_DAY_NS / HOUR_NS), err);
}

bool store_sqlite_is_refused(const struct store_sqlite *s, uint32_t uid)
{
	for (size_t i = 0; i < s->n_refused; i++)
		if (s->refused[i] == uid)
			return true;
	return false;
}

static int write_any(struct store *store, const struct writing *e, struct err *err)
{
	struct store_sqlite *s = store_sqlite(store);
	int64_t now = s->now_ns(s->now_ctx);
	struct err own = {};
	int r;

	HOLD(&s->lock);
	if (!err)
		err = &own;
	if (e->time_ns < now - STORE_DAY_NS || e->time_ns > now + STORE_DAY_NS || e->time_ns < 0) {
		count_lost(s, e);
		return err_lack(err, -ERANGE, ERR_CAUSE_MACHINE, "check the system clock",
				"data of %s is dated more than a day from now and is not stored",
				e->service);
	}
	if (s->spoiled) {
		count_lost(s, e);
		*err = s->why_spoiled;
		return s->spoiled;
	}
	if (store_sqlite_is_refused(s, e->uid)) {
		count_lost(s, e);
		return err_set(err, -ENOSPC, "%s", s->refusal);
	}
	r = try_write(s, e, e->time_ns / STORE_DAY_NS, err);
	if (r == 0)
		return 0;
	count_lost(s, e);
	if (r != -E2BIG)
		spoil(s, r, err);
	return r;
}

static int sqlite_write(struct store *store, const struct store_entry *e, struct err *err)
{
	const struct writing w = {
		.profile = e, .service = e->service, .uid = e->uid, .time_ns = e->time_ns};

	return write_any(store, &w, err);
}

static int sqlite_write_metrics(struct store *store, const struct store_metrics *e, struct err *err)
{
	const struct writing w = {
		.metrics = e, .service = e->service, .uid = e->uid, .time_ns = e->time_ns};

	return write_any(store, &w, err);
}

static int sqlite_write_event(struct store *store, const struct store_event *e, struct err *err)
{
	const struct writing w = {
		.event = e, .service = e->service, .uid = e->uid, .time_ns = e->time_ns};

	return write_any(store, &w, err);
}

static int sqlite_commit(struct store *store, struct err *err)
{
	struct store_sqlite *s = store_sqlite(store);
	struct err own = {};
	bool wrote = false;
	int r = 0;

	HOLD(&s->lock);
	if (!err)
		err = &own;
	if (s->spoiled) {
		r = s->spoiled;
		s->spoiled = 0;
		*err = s->why_spoiled;
		return r;
	}
	for (size_t i = 0; r == 0 && i < STORE_SQLITE_WRITERS; i++) {
		if (!s->writers[i].open || !s->writers[i].in_transaction)
			continue;
		wrote = true;
		r = store_sqlite_commit_writer(s, &s->writers[i], err);
	}
	if (r < 0) {
		spoil(s, r, err);
		s->spoiled = 0;
		return r;
	}
	if (wrote)
		store_sqlite_trouble(s, "", true);
	if (s->max_bytes == 0 || s->lock_fd < 0)
		return 0;
	return store_sqlite_retain(s, false, err);
}

/* Ten minutes of totals that are over. The last ones of a day go with its packing. */
static int roll_up_writer(struct store_sqlite *s, struct store_writer *w, int64_t now_ns,
			  struct err *err)
{
	int64_t number = w->day.number;
	int64_t until_ms = (now_ns - STORE_SQLITE_GRACE_NS) / 1000000 - number * STORE_DAY_MS;
	struct err why = {};
	int r = store_sqlite_commit_writer(s, w, &why);

	if (r == 0)
		r = store_totals_roll_up(w, &s->tools, until_ms, &why);
	if (r == 0)
		return 0;
	store_sqlite_drop_writer(s, number);
	if (r == -EBADMSG) {
		store_sqlite_set_aside(s, number, 0, why.text);
		return 0;
	}
	if (err)
		*err = why;
	return r;
}

static int roll_up_totals(struct store_sqlite *s, int64_t now_ns, struct err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < STORE_SQLITE_WRITERS; i++)
		if (s->writers[i].open)
			r = roll_up_writer(s, &s->writers[i], now_ns, err);
	return r;
}

static int sqlite_maintain(struct store *store, int64_t now_ns, struct err *err)
{
	struct store_sqlite *s = store_sqlite(store);
	_cleanup_free_ struct store_sqlite_file *files = NULL;
	size_t n = 0;
	int r;

	HOLD(&s->lock);
	r = store_sqlite_lock_folder(s, err);
	if (r == 0)
		r = store_sqlite_retain(s, true, err);
	/* Before packing, after which the log is truncated. */
	if (r == 0)
		r = roll_up_totals(s, now_ns, err);
	if (r == 0)
		r = store_sqlite_files(s, &files, &n, err);
	for (size_t i = 0; r == 0 && i < n; i++) {
		struct err why = {};

		if (files[i].damaged)
			continue;
		r = store_sqlite_pack_day(s, files[i].number, now_ns, &why);
		if (r == 0)
			continue;
		store_sqlite_drop_writer(s, files[i].number);
		if (r == -EBADMSG) {
			store_sqlite_set_aside(s, files[i].number, 0, why.text);
			r = 0;
			continue;
		}
		if (err)
			*err = why;
	}
	return r;
}

static void sqlite_close(struct store *store)
{
	struct store_sqlite *s = store_sqlite(store);

	for (size_t i = 0; i < STORE_SQLITE_WRITERS; i++)
		store_writer_close(&s->writers[i]);
	store_writer_tools_release(&s->tools);
	map_release(&s->settled);
	map_release(&s->damaged);
	if (s->lock_fd >= 0)
		(void)close(s->lock_fd);
	(void)pthread_mutex_destroy(&s->lock);
	(void)pthread_mutex_destroy(&s->status_lock);
	free(s);
}

static const struct store_ops sqlite_ops = {
	.write = sqlite_write,
	.write_metrics = sqlite_write_metrics,
	.write_event = sqlite_write_event,
	.commit = sqlite_commit,
	.maintain = sqlite_maintain,
	.close = sqlite_close,
	.sum = store_sqlite_sum,
	.series = store_sqlite_series,
	.curve = store_sqlite_curve,
	.streams = store_sqlite_streams,
	.label_totals = store_sqlite_label_totals,
	.labelsets = store_sqlite_labelsets,
	.metrics = store_sqlite_metrics,
	.events = store_sqlite_events,
	.overview = store_sqlite_overview,
	.status = store_sqlite_status,
};

static uint32_t limit(uint32_t configured, uint32_t otherwise, uint32_t most)
{
	return MIN(configured ? configured : otherwise, most);
}

static struct store_budget budget_of(const struct store_sqlite_config *c)
{
	struct store_budget b = {
		.stacks = limit(c->max_stacks, STORE_BLOCK_MAX_STACK, STORE_BLOCK_MAX_STACK),
		.labelsets =
			limit(c->max_labelsets, STORE_DAY_MAX_LABELSETS, STORE_DAY_MAX_LABELSETS),
		.series = limit(c->max_series, USUAL_SERIES, UINT32_MAX),
		.owner_services = OWNER_SERVICES,
		.owner_streams = OWNER_STREAMS,
		.owner_labelsets = OWNER_LABELSETS,
		.owner_bytes = OWNER_BYTES,
		.series_in_all = limit(c->max_series_in_all, USUAL_SERIES_IN_ALL, UINT32_MAX),
	};

	b.owner_series = limit(c->max_series_of_owner, b.series_in_all, UINT32_MAX);
	if (c->max_bytes > 0)
		b.owner_bytes = MIN(b.owner_bytes, c->max_bytes / DISK_PER_OWNER);
	b.bytes = b.owner_bytes / 2;
	return b;
}

int store_sqlite_open(const struct store_sqlite_config *config, struct store **ret_store,
		      struct err *err)
{
	struct store_sqlite *s;

	if (strlen(config->dir) >= sizeof(s->dir))
		return err_set(err, -ENAMETOOLONG, "%s: the path is too long", config->dir);
	if (mkdir(config->dir, 0700) < 0 && errno != EEXIST)
		return err_set(err, -errno, "cannot create the directory %s: %s", config->dir,
			       strerror(errno));
	s = calloc(1, sizeof(*s));
	if (!s)
		return err_oom(err);
	s->base.ops = &sqlite_ops;
	(void)snprintf(s->dir, sizeof(s->dir), "%s", config->dir);
	s->retention_ns = config->retention_ns;
	s->max_bytes = config->max_bytes;
	s->now_ns = config->now_ns ? config->now_ns : wall_clock;
	s->ran_ns = config->ran_ns ? config->ran_ns : boot_clock;
	s->now_ctx = config->now_ctx;
	s->lock_fd = -1;
	s->tools.budget = budget_of(config);
	s->newest_before = store_sqlite_newest(s);
	s->status.writing = true;
	(void)pthread_mutex_init(&s->lock, NULL);
	(void)pthread_mutex_init(&s->status_lock, NULL);
	*ret_store = &s->base;
	return 0;
}
