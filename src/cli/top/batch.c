/* src/cli/top/batch.c: `sonde top` for pipes: one table or JSON object per refresh. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/json_pair.h"
#include "cli/render/report.h"
#include "cli/term.h"
#include "cli/top/live.h"

#define BATCH_LOOK_MS 50
/* How long a first table may lack processes that do not respond; and be empty. */
#define BATCH_PATIENCE_NS (10 * NS_PER_SEC)
#define BATCH_LIMIT_NS (60 * NS_PER_SEC)
/* An idle machine has no samples, however often the sampler collects. */
#define BATCH_IDLE_COLLECTIONS 2

struct top_refresh {
	const struct top_status *status;
	const struct top_table *table;
	const struct top_process_delta *deltas;
	size_t n_deltas;
	int64_t time_ns; /* since 1970 */
};

/* Waits for data or a signal (-EINTR). */
static int batch_wait(struct top_feed *feed, int signals, int timeout_ms, struct err *err)
{
	struct pollfd fds[] = {
		{.fd = signals, .events = POLLIN},
		{.fd = top_feed_fd(feed), .events = POLLIN},
	};

	for (;;) {
		int n = poll(fds, ARRAY_SIZE(fds), timeout_ms);
		int signal;

		if (n < 0 && errno != EINTR)
			return err_set(err, -errno, "cannot wait: %s", strerror(errno));
		if (n == 0)
			return 0;
		signal = top_signals_take(signals);
		if (signal == SIGTSTP)
			(void)raise(SIGSTOP);
		else if (signal && signal != SIGCONT && signal != SIGWINCH)
			return -EINTR;
		if (fds[1].revents) {
			top_feed_acknowledge(feed);
			return 0;
		}
	}
}

/*
 * Samples wait until their process was examined, which takes a while on a busy machine: that
 * nothing has come is no answer before all were. settled: an interval has passed since.
 */
static bool status_has_cpu(const struct top_status *s, bool settled)
{
	if (s->sums.running)
		return true;
	if (s->cpu_collections <= BATCH_IDLE_COLLECTIONS)
		return false;
	return !s->cpu_samples || (settled && s->sampled);
}

static bool status_is_first(const struct top_status *s, enum top_kind kind, bool settled)
{
	if (kind == TOP_CPU)
		return status_has_cpu(s, settled);
	/* Do not wait for a process that does not respond, if others do. */
	if (!s->looked && !s->ended && (s->age_ns < BATCH_PATIENCE_NS || !s->sums.processes))
		return false;
	if (kind == TOP_ALLOC)
		return s->intervals >= 2;
	return s->intervals >= 1 || s->sums.processes >= s->profiled;
}

static int status_is_late(const struct top_status *s, enum top_kind kind, struct err *err)
{
	int seconds = (int)(s->age_ns / NS_PER_SEC);

	if (kind == TOP_CPU)
		return err_lack(err, -ETIMEDOUT, ERR_CAUSE_BUSY, "try again when it is less busy",
				"nothing to show after %d s: %llu stacks were sampled, but the "
				"machine is too busy to examine their processes",
				seconds, (unsigned long long)s->cpu_samples);
	return err_lack(err, -ETIMEDOUT, ERR_CAUSE_BUSY, "try again when it is less busy",
			"nothing to show after %d s: no process could be examined", seconds);
}

/* -ETIMEDOUT if there is nothing to show by then. */
static int wait_first(struct top_feed *feed, enum top_kind kind, uint64_t limit_ns, int signals,
		      struct top_status *s, struct err *err)
{
	uint64_t looked_at = UINT64_MAX; /* the interval in which all were examined */
	int r = top_feed_status(feed, s, err);

	while (r == 0) {
		if ((s->looked || s->ended) && looked_at == UINT64_MAX)
			looked_at = s->intervals;
		if (status_is_first(s, kind, s->intervals > looked_at))
			return 0;
		if (s->age_ns >= limit_ns)
			return status_is_late(s, kind, err);
		r = batch_wait(feed, signals, BATCH_LOOK_MS, err);
		if (r == 0)
			r = top_feed_status(feed, s, err);
	}
	return r;
}

int top_wait_first(struct top_feed *feed, enum top_kind kind, int signals,
		   struct top_status *ret_status, struct err *err)
{
	int r = wait_first(feed, kind, BATCH_PATIENCE_NS, signals, ret_status, err);

	return r == -ETIMEDOUT ? 0 : r;
}

static size_t batch_rows(const struct top_batch *b, const struct top_table *t)
{
	return b->max_rows ? MIN((size_t)b->max_rows, t->len) : t->len;
}

static int text_head(const struct top_batch *b, const struct top_refresh *refresh, struct buf *out)
{
	static const char *const names[TOP_GROUPS] = {"FUNCTION", "SERVICE", "PROCESS"};
	time_t now = (time_t)(refresh->time_ns / (int64_t)NS_PER_SEC);
	char clock[32] = "";
	struct tm tm;
	int r;

	if (localtime_r(&now, &tm))
		(void)strftime(clock, sizeof(clock), "%Y-%m-%d %H:%M:%S", &tm);
	r = buf_printf(out, "sonde top  %s%s\n", clock, top_describe_cost(refresh->status).text);
	if (r == 0)
		r = top_describe_sums(refresh->status, out);
	if (r == 0)
		r = buf_printf(out, "\n%10s %6s %10s %6s  %s (WHERE)\n",
			       top_column(b->view.kind, false), "FLAT%",
			       top_column(b->view.kind, true), "CUM%", names[b->view.group]);
	return r;
}

static int text_row(const struct top_batch *b, const struct top_table *t, const struct top_row *row,
		    struct buf *out)
{
	enum top_kind kind = b->view.kind;
	enum top_unit unit = b->view.unit;

	return buf_printf(out, "%10s %6s %10s %6s  %s (%s)\n",
			  top_value(row->flat, kind, unit).text,
			  top_share(row->flat, t->total).text, top_value(row->cum, kind, unit).text,
			  top_share(row->cum, t->total).text, row->name, row->where);
}

static int text_foot(const struct top_batch *b, const struct top_refresh *refresh, struct buf *out)
{
	const struct top_table *t = refresh->table;
	size_t n = batch_rows(b, t);
	char text[512];
	int r = 0;

	if (t->len == 0) {
		top_describe_nothing(&b->view, refresh->status, t, text, sizeof(text));
		r = buf_printf(out, "%s\n", text);
	} else if (n < t->len) {
		r = buf_printf(out, "... and %zu more; use -n %zu to see all\n", t->len - n,
			       t->len);
	}
	for (size_t i = 0; r == 0 && top_describe_status(refresh->status, i, text, sizeof(text));
	     i++) {
		text_clean(text, strlen(text));
		r = buf_printf(out, "# %s\n", text);
	}
	return r;
}

static int batch_text(const struct top_batch *b, const struct top_refresh *refresh, struct buf *out)
{
	int r = text_head(b, refresh, out);

	for (size_t i = 0; i < batch_rows(b, refresh->table) && r == 0; i++)
		r = text_row(b, refresh->table, &refresh->table->rows[i], out);
	return r < 0 ? r : text_foot(b, refresh, out);
}

static void json_rows(const struct top_batch *b, const struct top_table *t, struct json *j)
{
	json_array_begin(j);
	for (size_t i = 0; i < batch_rows(b, t); i++) {
		const struct top_row *row = &t->rows[i];

		json_object_begin(j);
		json_pair(j, "name", row->name);
		json_pair(j, "flat", row->flat);
		json_pair(j, "cum", row->cum);
		json_pair(j, "service", row->service[0] ? row->service : NULL);
		json_pair(j, "processes", row->processes);
		json_object_end(j);
	}
	json_array_end(j);
}

static void json_deltas(const struct top_refresh *refresh, struct json *j)
{
	json_array_begin(j);
	for (size_t i = 0; i < refresh->n_deltas; i++) {
		const struct top_process_delta *d = &refresh->deltas[i];

		json_object_begin(j);
		json_pair(j, "pid", d->id.pid);
		json_pair(j, "service", d->service);
		json_pair(j, "seconds", (double)d->span_ns / (double)NS_PER_SEC);
		json_pair(j, "alloc_objects", d->values[TOP_OBJECTS]);
		json_pair(j, "alloc_space", d->values[TOP_BYTES]);
		json_object_end(j);
	}
	json_array_end(j);
}

static void json_totals(const struct top_status *s, struct json *j)
{
	json_object_begin(j);
	for (size_t k = 0; k < TOP_KINDS; k++)
		for (size_t u = 0; u < TOP_UNITS; u++)
			if (k != TOP_CPU)
				json_pair(j, top_type(k, u)->name, s->sums.values[k][u]);
			else if (u == TOP_BYTES && s->samples)
				json_pair(j, top_type(k, u)->name, s->sums.values[k][u]);
	json_object_end(j);
}

static void json_cpu(const struct top_status *s, struct json *j)
{
	char line[ERR_LINE_MAX];

	json_object_begin(j);
	json_pair(j, "available", s->samples);
	json_pair(j, "cause",
		  s->no_samples.text[0] ? err_cause_name(s->no_samples.cause) : (const char *)NULL);
	json_pair(j, "reason",
		  s->no_samples.text[0] ? err_describe(&s->no_samples, 0, line) : NULL);
	json_pair(j, "cpus", s->cpus);
	json_pair(j, "processes", s->sums.running);
	json_pair(j, "samples", s->cpu_samples);
	json_pair(j, "samples_lost", s->cpu_lost);
	json_object_end(j);
}

static void json_status(const struct top_status *s, struct json *j)
{
	json_key(j, "not_profiled");
	json_array_begin(j);
	for (size_t i = 0; i < s->n_refused; i++) {
		json_object_begin(j);
		json_pair(j, "cause", err_cause_name(s->refused[i].cause));
		json_pair(j, "reason", s->refused[i].reason);
		json_pair(j, "processes", s->refused[i].processes);
		json_object_end(j);
	}
	json_array_end(j);
	json_pair(j, "not_go", s->not_go);
	json_pair(j, "slow", s->slow);
	json_pair(j, "lost_records", s->lost_records);
	json_pair(j, "failures", s->failures);
	json_pair(j, "cpu_share", s->cpu_share);
	json_pair(j, "trouble", s->trouble[0] ? s->trouble : NULL);
}

static int batch_json(const struct top_batch *b, const struct top_refresh *refresh, struct buf *out)
{
	static const char *const rows[TOP_GROUPS] = {"functions", "services", "processes"};
	struct json j = json_to(out);
	int r;

	json_object_begin(&j);
	json_pair(&j, "time_ms", refresh->time_ns / (int64_t)NS_PER_MS);
	json_pair(&j, "interval_ms", refresh->status->interval_ns / NS_PER_MS);
	json_pair(&j, "type", top_type(b->view.kind, b->view.unit)->name);
	json_pair(&j, "per_second", (bool)(b->view.kind != TOP_LIVE));
	json_pair(&j, "complete", refresh->status->looked);
	json_pair(&j, "measuring", refresh->status->measuring);
	json_key(&j, "totals");
	json_totals(refresh->status, &j);
	json_pair(&j, "total", refresh->table->total);
	json_key(&j, rows[b->view.group]);
	json_rows(b, refresh->table, &j);
	json_key(&j, "profiled");
	json_deltas(refresh, &j);
	json_key(&j, "cpu");
	json_cpu(refresh->status, &j);
	json_status(refresh->status, &j);
	json_object_end(&j);
	r = json_finish(&j);
	return r < 0 ? r : buf_append_byte(out, '\n');
}

static void table_releasep(struct top_table *t)
{
	top_table_release(t);
}

/* Get the status after building the table, so that it covers everything in it. */
static int batch_refresh(struct top_feed *feed, const struct top_batch *b,
			 struct top_status *status, bool first, struct err *err)
{
	_cleanup_free_ struct top_process_delta *deltas = NULL;
	_cleanup_(table_releasep) struct top_table table = {};
	_cleanup_(buf_release) struct buf out = {};
	struct top_refresh refresh = {
		.status = status, .table = &table, .time_ns = (int64_t)clock_unix_ns()};
	int r = top_feed_table(feed, &b->view, &table, err);

	if (r == 0)
		r = top_feed_status(feed, status, err);
	if (r == 0)
		r = top_feed_take_deltas(feed, &deltas, &refresh.n_deltas, err);
	if (r < 0)
		return r;
	refresh.deltas = deltas;
	if (!first && !b->json)
		r = buf_append_byte(&out, '\n');
	if (r == 0)
		r = b->json ? batch_json(b, &refresh, &out) : batch_text(b, &refresh, &out);
	return r < 0 ? err_oom(err) : report_print(&out, err);
}

int top_batch_run(struct top_feed *feed, const struct top_batch *b, int signals, struct err *err)
{
	struct top_status status;
	int r = wait_first(feed, b->view.kind, BATCH_LIMIT_NS, signals, &status, err);

	/* Without a count there are more tables to come. */
	if (r == -ETIMEDOUT && !b->count)
		r = 0;
	for (uint64_t i = 0; r == 0 && !(i && status.ended); i++) {
		r = batch_refresh(feed, b, &status, i == 0, err);
		if (r < 0 || i + 1 == b->count)
			break;
		r = batch_wait(feed, signals, -1, err);
		if (r == 0)
			r = top_feed_status(feed, &status, err);
	}
	return r == -EINTR ? 0 : r;
}
