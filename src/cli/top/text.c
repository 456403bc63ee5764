/* src/cli/top/text.c: the texts of `sonde top`, on the screen and in pipes; see ui.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/render/units.h"
#include "cli/top/ui.h"

struct top_label top_value(int64_t value, enum top_kind kind, enum top_unit unit)
{
	char number[UNITS_LABEL_LEN];
	struct top_label label;

	if (kind == TOP_CPU)
		(void)snprintf(number, sizeof(number), "%.3f", (double)value / (double)NS_PER_SEC);
	else
		(void)units_label(number, value, unit == TOP_BYTES ? "bytes" : "count", "auto");
	if (strlen(number) > TOP_VALUE_CELLS)
		(void)snprintf(number, sizeof(number), "%.4g", (double)value);
	(void)snprintf(label.text, sizeof(label.text), "%s", number);
	return label;
}

const char *top_column(enum top_kind kind, bool cum)
{
	static const char *const columns[TOP_KINDS][2] = {[TOP_ALLOC] = {"FLAT/s", "CUM/s"},
							  [TOP_LIVE] = {"FLAT", "CUM"},
							  [TOP_CPU] = {"CORES", "CUM CORES"}};

	return columns[kind][cum];
}

struct top_label top_share(int64_t value, int64_t total)
{
	char share[UNITS_LABEL_LEN];
	struct top_label label;

	(void)units_percentage(share, value, total);
	/* A tiny share has many zeros after the point. */
	if (strlen(share) > TOP_SHARE_CELLS)
		(void)snprintf(share, sizeof(share), "<0.01%%");
	(void)snprintf(label.text, sizeof(label.text), "%s", share);
	return label;
}

static struct top_label sum_label(const struct top_sums *sums, enum top_kind kind)
{
	return top_value((int64_t)sums->values[kind][TOP_BYTES], kind, TOP_BYTES);
}

/* "0.84 of 2 cores | ", if known. */
static int describe_cpu(const struct top_status *s, struct buf *out)
{
	const struct top_sums *sums = &s->sums;

	if (!s->samples)
		return 0;
	if (!s->sampled)
		return buf_append_str(out, "sampling the CPUs... | ");
	return buf_printf(out, "%.2f of %zu cores | ",
			  sums->values[TOP_CPU][TOP_BYTES] / (double)NS_PER_SEC, s->cpus);
}

int top_describe_sums(const struct top_status *s, struct buf *out)
{
	const struct top_sums *sums = &s->sums;
	int r = describe_cpu(s, out);

	if (r < 0)
		return r;
	if (s->samples && !sums->processes)
		return buf_append_str(out, "no Go heaps");
	r = buf_printf(out, "%zu process%s in %zu service%s: %s live", sums->processes,
		       sums->processes == 1 ? "" : "es", sums->services,
		       sums->services == 1 ? "" : "s", sum_label(sums, TOP_LIVE).text);
	if (r < 0)
		return r;
	if (s->measuring)
		return buf_append_str(out, ", measuring rates...");
	return buf_printf(out, ", %s/s and %.0f objects/s allocated",
			  sum_label(sums, TOP_ALLOC).text, sums->values[TOP_ALLOC][TOP_OBJECTS]);
}

static void describe_refused(const struct top_status *s, char *dst, size_t len)
{
	size_t used = (size_t)snprintf(dst, len, "%zu not profiled: ", s->not_profiled);

	for (size_t i = 0; i < s->n_refused && used < len; i++)
		used += (size_t)snprintf(dst + used, len - used, "%s%s (%zu)", i ? ", " : "",
					 s->refused[i].reason, s->refused[i].processes);
}

bool top_describe_status(const struct top_status *s, size_t i, char *dst, size_t len)
{
	const struct {
		bool is;
		uint64_t n;
		const char *format;
	} counts[] = {
		{s->cpu_lost > 0, s->cpu_lost, "%llu CPU samples lost"},
		{s->slow > 0, s->slow, "%llu not responding"},
		{s->lost_records > 0, s->lost_records, "%llu records lost"},
		{s->failures > 0, s->failures, "%llu collections failed"},
		{s->not_go > 0, s->not_go, "%llu not Go: no heap"},
	};

	char line[ERR_LINE_MAX];

	if (s->trouble[0] && i-- == 0) {
		(void)snprintf(dst, len, "%s", s->trouble);
		return true;
	}
	if (s->no_samples.text[0] && i-- == 0) {
		(void)snprintf(dst, len, "%s", err_describe(&s->no_samples, 0, line));
		return true;
	}
	if (s->not_profiled && i-- == 0) {
		describe_refused(s, dst, len);
		return true;
	}
	for (size_t k = 0; k < ARRAY_SIZE(counts); k++) {
		if (!counts[k].is || i-- != 0)
			continue;
		(void)snprintf(dst, len, counts[k].format, (unsigned long long)counts[k].n);
		return true;
	}
	return false;
}

struct top_label top_describe_cost(const struct top_status *s)
{
	struct top_label label = {};

	if (!isnan(s->cpu_share))
		(void)snprintf(label.text, sizeof(label.text), "  using %.1f%% of a CPU",
			       s->cpu_share * 100);
	return label;
}

static void describe_no_cpu(const struct top_view *v, const struct top_status *s, char *dst,
			    size_t len)
{
	char line[ERR_LINE_MAX];

	if (s->no_samples.text[0])
		(void)snprintf(dst, len, "There are %s", err_describe(&s->no_samples, 0, line));
	else if (!s->samples)
		(void)snprintf(dst, len, "CPU sampling is off.");
	else if (!s->sampled && (s->cpu_samples || !s->cpu_collections))
		(void)snprintf(dst, len,
			       "Sampling... the first table appears at the end of the interval.");
	else if (v->callers_of)
		(void)snprintf(dst, len, "It is not running now.");
	else
		(void)snprintf(dst, len, "Nothing is running.");
}

void top_describe_nothing(const struct top_view *v, const struct top_status *s,
			  const struct top_table *t, char *dst, size_t len)
{
	if (t->hidden)
		(void)snprintf(dst, len, "Nothing matches '%s'.", v->filter);
	else if (v->kind == TOP_CPU)
		describe_no_cpu(v, s, dst, len);
	else if (!s->sums.processes && (!s->looked || (s->profiled && !s->intervals)))
		(void)snprintf(dst, len, "Scanning processes...");
	else if (!s->sums.processes)
		(void)snprintf(dst, len, "No Go process can be profiled%s",
			       geteuid() == 0 ? "; `sonde ps` shows why."
					      : "; run as root to see all users' processes.");
	else if (v->kind == TOP_ALLOC && s->measuring)
		(void)snprintf(dst, len, "Measuring... rates appear after the second collection.");
	else if (v->callers_of)
		(void)snprintf(dst, len, "It is not allocating now.");
	else if (v->kind == TOP_ALLOC)
		(void)snprintf(dst, len, "No recent allocations.");
	else
		(void)snprintf(dst, len, "Nothing is in use.");
}
