/* src/cli/cmd/jfr_summary.c: see jfr_summary.h. */
#include "cli/cmd/jfr_summary.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/text.h"
#include "cli/render/units.h"
#include "cli/term.h"
#include "profile/tree.h"

#define SUMMARY_NAME_COLUMNS 44

static const char *const kind_names[JAVA_JFR_PROFILE_N] = {[JAVA_JFR_PROFILE_CPU] = "cpu",
							   [JAVA_JFR_PROFILE_ALLOC] = "alloc",
							   [JAVA_JFR_PROFILE_LOCK] = "lock"};

static int put_clean(struct buf *out, struct view text)
{
	size_t at = out->len;
	int r = buf_append(out, text.data, text.len);

	if (r == 0)
		text_clean((char *)out->data + at, text.len);
	return r;
}

static int put_head(const char *name, const struct java_jfr_stats *stats, struct buf *out)
{
	time_t seconds = (time_t)(stats->start_ns / (int64_t)NS_PER_SEC);
	char time[64] = "unknown", duration[UNITS_LABEL_LEN];
	struct tm tm;
	int r;

	if (localtime_r(&seconds, &tm))
		(void)strftime(time, sizeof(time), "%Y-%m-%d %H:%M:%S %Z", &tm);
	r = buf_append_str(out, "Recording: ");
	if (r == 0)
		r = put_clean(out, view_str(name));
	if (r < 0)
		return r;
	return buf_printf(out, "\nVersion: %u.%u, %llu chunk%s%s\nTime: %s\nDuration: %s\n",
			  stats->major, stats->minor, (unsigned long long)stats->chunks,
			  stats->chunks == 1 ? "" : "s", stats->unfinished ? ", unfinished" : "",
			  time, units_label(duration, stats->duration_ns, "nanoseconds", "auto"));
}

static int put_profile(enum java_jfr_profile_kind kind, struct profile *p,
		       const struct java_jfr_profiler_stats *stats, struct buf *out)
{
	int r = buf_printf(out, "  %-6s %10llu", kind_names[kind],
			   (unsigned long long)stats->events[kind]);

	for (size_t t = 0; r == 0 && stats->events[kind] && t < profile_n_types(p); t++) {
		const struct profile_type *type = profile_type_at(p, t);
		char label[UNITS_LABEL_LEN];

		units_label(label, profile_total(p, t), profile_cstring(p, type->unit), "auto");
		r = buf_printf(out, "%s%s %s", t ? ", " : "  ", profile_cstring(p, type->type),
			       label);
	}
	return r < 0 ? r : buf_append_byte(out, '\n');
}

static int by_count(const void *a, const void *b)
{
	const struct java_jfr_tally *x = a, *y = b;
	size_t n = MIN(x->name.len, y->name.len);
	int order;

	if (x->count != y->count)
		return x->count < y->count ? 1 : -1;
	order = n ? memcmp(x->name.data, y->name.data, n) : 0;
	return order ? order : (x->name.len > y->name.len) - (x->name.len < y->name.len);
}

static int put_events(const struct java_jfr *j, struct buf *out)
{
	_cleanup_free_ struct java_jfr_tally *sorted = NULL;
	const struct java_jfr_tally *tallies;
	size_t n;
	int r;

	tallies = java_jfr_tallies(j, &n);
	sorted = calloc(n + 1, sizeof(*sorted));
	if (!sorted)
		return -ENOMEM;
	memcpy(sorted, tallies, n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), by_count);
	r = buf_printf(out, "\n%-*s %12s %14s\n", SUMMARY_NAME_COLUMNS, "Event", "Count",
		       "Size (bytes)");
	for (size_t i = 0; r == 0 && i < n && sorted[i].count; i++) {
		size_t pad = sorted[i].name.len < SUMMARY_NAME_COLUMNS
				     ? SUMMARY_NAME_COLUMNS - sorted[i].name.len
				     : 0;

		r = put_clean(out, sorted[i].name);
		if (r == 0)
			r = buf_printf(out, "%*s %12llu %14llu\n", (int)pad, "",
				       (unsigned long long)sorted[i].count,
				       (unsigned long long)sorted[i].bytes);
	}
	return r;
}

int jfr_summary(const char *name, const struct java_jfr *j, struct profile *const *profiles,
		const struct java_jfr_profiler_stats *stats, struct buf *out)
{
	int r = put_head(name, java_jfr_stats(j), out);

	if (r == 0)
		r = buf_append_str(out, "\nProfile     Events  Total\n");
	for (int k = 0; r == 0 && k < JAVA_JFR_PROFILE_N; k++)
		r = put_profile((enum java_jfr_profile_kind)k, profiles[k], stats, out);
	return r < 0 ? r : put_events(j, out);
}
