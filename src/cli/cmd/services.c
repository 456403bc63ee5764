/* src/cli/cmd/services.c: `sonde services`: lists services with stored profiles. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/data_dir.h"
#include "cli/json_pair.h"
#include "cli/options.h"
#include "cli/render/report.h"
#include "cli/render/units.h"
#include "cli/term.h"

enum { SERVICES_DATA_DIR, SERVICES_FROM, SERVICES_TO, SERVICES_JSON, SERVICES_N };

static const struct cli_option services_options[SERVICES_N] = {
	[SERVICES_DATA_DIR] = {.name = "data-dir", .arg = "DIR", .help = DATA_DIR_HELP},
	[SERVICES_FROM] = {.name = "from",
			   .arg = "TIME",
			   .help = "start of the window (default: one hour before --to)"},
	[SERVICES_TO] = {.name = "to", .arg = "TIME", .help = "end of the window (default: now)"},
	[SERVICES_JSON] = {.name = "json", .help = "print JSON"},
};

struct services {
	struct store *store;
	struct store_window window;
	struct store_stream *streams;
	size_t len;
};

static void services_release(struct services *s)
{
	free(s->streams);
	store_close(s->store);
}

static int services_value(const struct services *s, const struct store_stream *stream,
			  double *ret_value, struct err *err)
{
	struct store_window w = s->window;

	w.service = stream->service;
	w.type = stream->type;
	*ret_value = NAN;
	return store_series(s->store, &w, w.to_ns - w.from_ns, ret_value, 1, err);
}

static void services_time(char dst[32], int64_t ns)
{
	time_t t = (time_t)(ns / (int64_t)NS_PER_SEC);
	struct tm tm;

	dst[0] = '\0';
	if (localtime_r(&t, &tm))
		(void)strftime(dst, 32, "%Y-%m-%d %H:%M:%S", &tm);
}

static int services_print_row(const struct services *s, const struct store_stream *stream,
			      const int widths[2], struct buf *out, struct err *err)
{
	const char *unit = strrchr(stream->type, ':');
	char service[sizeof(stream->service)], type[sizeof(stream->type)];
	char label[UNITS_LABEL_LEN] = "-", last[32];
	double value;
	int r = services_value(s, stream, &value, err);

	if (r < 0)
		return r;
	memcpy(service, stream->service, sizeof(service));
	memcpy(type, stream->type, sizeof(type));
	text_clean(service, strlen(service));
	text_clean(type, strlen(type));
	if (!isnan(value) && fabs(value) < 9e18)
		(void)units_label(label, llround(value), unit ? unit + 1 : "", "auto");
	services_time(last, stream->last_ns);
	r = buf_printf(out, "%-*s  %-*s  %12s  %-8s  %s\n", widths[0], service, widths[1], type,
		       label, stream->snapshot ? "average" : "sum", last);
	return r < 0 ? err_oom(err) : 0;
}

static int services_print_table(const struct services *s, struct buf *out, struct err *err)
{
	bool coloured = term_wants_colour(STDOUT_FILENO);
	int widths[2] = {(int)strlen("SERVICE"), (int)strlen("TYPE")};
	int r;

	for (size_t i = 0; i < s->len; i++) {
		widths[0] = MAX(widths[0], (int)strlen(s->streams[i].service));
		widths[1] = MAX(widths[1], (int)strlen(s->streams[i].type));
	}
	r = buf_printf(out, "%s%-*s  %-*s  %12s  %-8s  %s%s\n", coloured ? TERM_BOLD : "",
		       widths[0], "SERVICE", widths[1], "TYPE", "VALUE", "MODE", "LAST",
		       coloured ? TERM_RESET : "");
	if (r < 0)
		return err_oom(err);
	for (size_t i = 0; r == 0 && i < s->len; i++)
		r = services_print_row(s, &s->streams[i], widths, out, err);
	return r;
}

static int services_print_json(const struct services *s, struct buf *out, struct err *err)
{
	struct json j = json_to(out);
	int r = 0;

	json_array_begin(&j);
	for (size_t i = 0; r == 0 && i < s->len; i++) {
		const struct store_stream *stream = &s->streams[i];
		double value = NAN;

		r = services_value(s, stream, &value, err);
		json_object_begin(&j);
		json_pair(&j, "service", stream->service);
		json_pair(&j, "type", stream->type);
		json_pair(&j, "mode", stream->snapshot ? "snapshot" : "delta");
		json_pair(&j, "first", stream->first_ns / (int64_t)NS_PER_MS);
		json_pair(&j, "last", stream->last_ns / (int64_t)NS_PER_MS);
		json_pair(&j, "value", value);
		json_object_end(&j);
	}
	json_array_end(&j);
	if (r < 0)
		return r;
	return json_finish(&j) < 0 || buf_append_byte(out, '\n') < 0 ? err_oom(err) : 0;
}

static int services_run(const struct cli_args *args)
{
	_cleanup_(services_release) struct services s = {0};
	_cleanup_(buf_release) struct buf out = {};
	struct err err = {};
	int r = data_dir_window(args->values[SERVICES_FROM], args->values[SERVICES_TO], &s.window,
				&err);

	if (r < 0)
		return cli_fail_usage("services", &err);
	r = data_dir_open(args->values[SERVICES_DATA_DIR], &s.store, &err);
	if (r == 0)
		r = store_streams(s.store, s.window.from_ns, s.window.to_ns, &s.streams, &s.len,
				  &err);
	if (s.store)
		data_dir_tell_damage(s.store);
	if (r < 0)
		return cli_fail(r, &err);
	if (s.len == 0 && !args->values[SERVICES_JSON])
		cli_note("Nothing was collected in this window; try --from -7d.");
	if (args->values[SERVICES_JSON])
		r = services_print_json(&s, &out, &err);
	else if (s.len > 0)
		r = services_print_table(&s, &out, &err);
	if (r == 0)
		r = report_print(&out, &err);
	return r < 0 ? cli_fail(r, &err) : CLI_OK;
}

const struct cli_command cmd_services = {
	.name = "services",
	.summary = "List the services with profiles stored by `sonde run`",
	.operands = "",
	.options = services_options,
	.n_options = ARRAY_SIZE(services_options),
	.notes = "TIME is now, -1h, 12:03, 2026-11-15T12:03:00Z, or milliseconds since 1970.\n",
	.run = services_run,
};
