/*
 * src/cli/cmd/services.c: `sonde services`: lists services with stored profiles, by CPU time.
 * Programs that only ever lived for moments are one line for each of their parents.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
#include "query/overview.h"

#define MINUTE_NS (60 * (int64_t)NS_PER_SEC)
#define MAX_LINES 1000000
#define NAME_CELLS 48U /* on a terminal */
#define NAME_LEAST 12U
#define RUNTIME_CELLS 16U

enum {
	SERVICES_ALL,
	SERVICES_LINES,
	SERVICES_NAMES,
	SERVICES_DATA_DIR,
	SERVICES_FROM,
	SERVICES_TO,
	SERVICES_JSON,
	SERVICES_N
};

static const struct cli_option services_options[SERVICES_N] = {
	[SERVICES_ALL] = {.letter = 'a',
			  .name = "all",
			  .help = "list short-lived programs separately"},
	[SERVICES_LINES] = {.letter = 'n',
			    .name = "lines",
			    .arg = "N",
			    .help = "list at most N services (default: what fits the terminal)"},
	[SERVICES_NAMES] = {.name = "names", .help = "print names only, one per line"},
	[SERVICES_DATA_DIR] = {.name = "data-dir", .arg = "DIR", .help = DATA_DIR_HELP},
	[SERVICES_FROM] = {.name = "from",
			   .arg = "TIME",
			   .help = "start of the window (default: one hour before --to)"},
	[SERVICES_TO] = {.name = "to", .arg = "TIME", .help = "end of the window (default: now)"},
	[SERVICES_JSON] = {.name = "json", .help = "print JSON: each type of each service"},
};

/* A service, or the short-lived ones of one parent. */
struct row {
	char name[300];
	const char *runtime;
	uint64_t processes;
	int64_t cpu_ns;	      /* QUERY_OVERVIEW_GAP: unknown */
	int64_t memory_bytes; /* the same */
	uint64_t types[STORE_OVERVIEW_MAX_TYPES / 64];
	size_t folded; /* how many services; 0: it is one */
	const char *parent;
};

struct services {
	struct store *store;
	struct store_window window;
	struct store_stream *streams;
	size_t len;
	struct query_overview data;
	struct row *rows;
	size_t n_rows;
	size_t max_rows;
	struct buf *out;
};

static void services_release(struct services *s)
{
	free(s->streams);
	free(s->rows);
	query_overview_release(&s->data);
	store_close(s->store);
}

/* --- rows */

/* The sum of both; a gap adds nothing. */
static int64_t add_known(int64_t a, int64_t b)
{
	if (a == QUERY_OVERVIEW_GAP || b == QUERY_OVERVIEW_GAP)
		return MAX(a, b);
	return a + b;
}

static void row_add(struct row *row, const struct services *s,
		    const struct store_overview_service *service)
{
	row->cpu_ns = add_known(row->cpu_ns, query_overview_cpu_ns(&s->data, service, 0));
	row->memory_bytes =
		add_known(row->memory_bytes, query_overview_memory_bytes(&s->data, service, 0));
	row->processes += service->processes;
	for (size_t i = 0; i < ARRAY_SIZE(row->types); i++)
		row->types[i] |= service->types[i];
}

/* The row of the parent's short-lived programs; made if there is none. */
static struct row *find_folded(struct services *s, const char *parent)
{
	for (size_t i = 0; i < s->n_rows; i++)
		if (s->rows[i].folded > 0 && strcmp(s->rows[i].parent, parent) == 0)
			return &s->rows[i];
	s->rows[s->n_rows] = (struct row){.cpu_ns = QUERY_OVERVIEW_GAP,
					  .memory_bytes = QUERY_OVERVIEW_GAP,
					  .runtime = "",
					  .parent = parent};
	return &s->rows[s->n_rows++];
}

static void fold(struct services *s, const struct store_overview_service *service)
{
	struct row *row = find_folded(s, service->parent);

	row->folded++;
	row_add(row, s, service);
	/* They are gone: at which time there were how many is nobody's question. */
	row->processes = 0;
	row->memory_bytes = QUERY_OVERVIEW_GAP;
	(void)snprintf(row->name, sizeof(row->name),
		       *row->parent ? "(%zu short-lived, by %s)" : "(%zu short-lived)", row->folded,
		       row->parent);
}

static void list(struct services *s, const struct store_overview_service *service)
{
	struct row *row = &s->rows[s->n_rows++];

	*row = (struct row){.cpu_ns = QUERY_OVERVIEW_GAP,
			    .memory_bytes = QUERY_OVERVIEW_GAP,
			    .runtime = service->runtime};
	(void)snprintf(row->name, sizeof(row->name), "%s", service->name);
	row_add(row, s, service);
}

static int compare_rows(const void *va, const void *vb)
{
	const struct row *a = va, *b = vb;

	if (a->cpu_ns != b->cpu_ns)
		return a->cpu_ns < b->cpu_ns ? 1 : -1;
	return strcmp(a->name, b->name);
}

static int make_rows(struct services *s, bool all, struct err *err)
{
	int64_t now_ns = (int64_t)clock_unix_ns();

	s->rows = calloc(s->data.totals.len + 1, sizeof(*s->rows));
	if (!s->rows)
		return err_oom(err);
	for (size_t i = 0; i < s->data.totals.len; i++) {
		const struct store_overview_service *service = &s->data.totals.services[i];

		if (service == s->data.machine)
			continue;
		if (all || service->lived || query_overview_is_there(&s->data, service, now_ns))
			list(s, service);
		else
			fold(s, service);
	}
	qsort(s->rows, s->n_rows, sizeof(*s->rows), compare_rows);
	return 0;
}

/* --- the table */

/* "go_heap:inuse_space:bytes": "heap". Metrics are no profiles. */
static const char *type_word(const char *type)
{
	for (size_t i = 0; i < TYPES; i++) {
		const char *family = registry_types[i].family;
		size_t len = strlen(family);

		if (strncmp(type, family, len) != 0 || type[len] != ':')
			continue;
		if (strncmp(family, "go_", 3) == 0)
			return family + 3;
		return strncmp(family, "java_", 5) == 0 ? family + 5 : family;
	}
	return NULL;
}

static int print_types(const struct services *s, const struct row *row)
{
	const struct store_overview *t = &s->data.totals;
	char words[128] = " ";
	size_t len = 1;

	for (size_t i = 0; i < t->n_types; i++) {
		const char *word = type_word(t->types[i]);
		char padded[64];

		if (!word || !(row->types[i / 64] >> i % 64 & 1))
			continue;
		/* Each once: a heap profile has four types. */
		(void)snprintf(padded, sizeof(padded), " %.40s ", word);
		if (!strstr(words, padded) && len + strlen(padded) < sizeof(words))
			len += (size_t)snprintf(words + len, sizeof(words) - len, "%s", padded + 1);
	}
	return buf_printf(s->out, "%.*s\n", (int)MAX(len, 2U) - 2, words + 1);
}

/* Of the columns that are as wide as what is in them. */
struct widths {
	size_t name;
	size_t runtime;
};

/* As the page has it: what is small has a digit more, and something is never nothing. */
static void format_cores(char *dst, size_t size, double cores)
{
	if (cores > 0 && cores < 0.0005)
		(void)snprintf(dst, size, "<0.001");
	else
		(void)snprintf(dst, size, "%.*f", cores > 0 && cores < 0.0095 ? 3 : 2, cores);
}

static int print_row(const struct services *s, const struct row *row, const struct widths *widths)
{
	char name[sizeof(row->name)], runtime[64], memory[UNITS_LABEL_LEN] = "-";
	char cpu[32] = "-", processes[24] = "-";
	int64_t covered = MAX(s->data.covered_ns, 1);
	int r;

	memcpy(name, row->name, sizeof(name));
	text_clean(name, strlen(name));
	(void)snprintf(runtime, sizeof(runtime), "%s", *row->runtime ? row->runtime : "-");
	text_clean(runtime, strlen(runtime));
	if (row->cpu_ns != QUERY_OVERVIEW_GAP && s->data.covered_ns > 0)
		format_cores(cpu, sizeof(cpu), (double)row->cpu_ns / (double)covered);
	if (row->memory_bytes != QUERY_OVERVIEW_GAP)
		(void)units_label(memory, row->memory_bytes, "bytes", "auto");
	if (row->processes > 0)
		(void)snprintf(processes, sizeof(processes), "%llu",
			       (unsigned long long)row->processes);
	r = term_fit(s->out, name, widths->name, false);
	if (r == 0)
		r = buf_append_str(s->out, "  ");
	if (r == 0)
		r = term_fit(s->out, runtime, widths->runtime, false);
	if (r == 0)
		r = buf_printf(s->out, "  %5s  %7s  %10s  ", processes, cpu, memory);
	return r < 0 ? r : print_types(s, row);
}

/* As wide as the longest, and as the terminal allows. */
static struct widths measure(const struct services *s, size_t n)
{
	struct widths w = {.name = strlen("SERVICE"), .runtime = strlen("RUNTIME")};
	size_t width = term_width(STDOUT_FILENO), others;

	for (size_t i = 0; i < n; i++) {
		w.name = MAX(w.name, term_cells(s->rows[i].name));
		w.runtime = MAX(w.runtime, MIN(term_cells(s->rows[i].runtime), RUNTIME_CELLS));
	}
	if (width == 0)
		return w;
	/* The columns of numbers, the gaps between all of them, and some profiles. */
	others = w.runtime + 5 + 7 + 10 + 10 + strlen("cpu heap goroutine");
	w.name = MIN(w.name, NAME_CELLS);
	w.name = MIN(w.name, width > others + NAME_LEAST ? width - others : NAME_LEAST);
	return w;
}

static int print_table(const struct services *s, struct err *err)
{
	bool coloured = term_wants_colour(STDOUT_FILENO);
	size_t n = MIN(s->n_rows, s->max_rows);
	struct widths w = measure(s, n);
	int r = buf_printf(s->out, "%s%-*s  %-*s  %5s  %7s  %10s  %s%s\n",
			   coloured ? TERM_BOLD : "", (int)w.name, "SERVICE", (int)w.runtime,
			   "RUNTIME", "PROCS", "CORES", "MEMORY", "PROFILES",
			   coloured ? TERM_RESET : "");

	for (size_t i = 0; r == 0 && i < n; i++)
		r = print_row(s, &s->rows[i], &w);
	if (r == 0 && n < s->n_rows)
		r = buf_printf(s->out, "%s%zu more with less CPU time; -n %zu lists them all%s\n",
			       coloured ? TERM_DIM : "", s->n_rows - n, s->n_rows,
			       coloured ? TERM_RESET : "");
	return r < 0 ? err_oom(err) : 0;
}

static int compare_names(const void *va, const void *vb)
{
	return strcmp(*(const char *const *)va, *(const char *const *)vb);
}

static int print_names(const struct services *s, struct err *err)
{
	const struct store_overview *t = &s->data.totals;
	_cleanup_free_ const char **names = calloc(t->len + 1, sizeof(*names));
	size_t n = 0;
	int r = 0;

	if (!names)
		return err_oom(err);
	for (size_t i = 0; i < t->len; i++)
		if (&t->services[i] != s->data.machine)
			names[n++] = t->services[i].name;
	qsort(names, n, sizeof(*names), compare_names);
	for (size_t i = 0; r == 0 && i < n; i++) {
		char name[256];

		(void)snprintf(name, sizeof(name), "%s", names[i]);
		text_clean(name, strlen(name));
		r = buf_printf(s->out, "%s\n", name);
	}
	return r < 0 ? err_oom(err) : 0;
}

/* --- JSON */

static int services_value(const struct services *s, const struct store_stream *stream,
			  double *ret_value, struct err *err)
{
	struct store_window w = s->window;

	w.service = stream->service;
	w.type = stream->type;
	*ret_value = NAN;
	return store_series(s->store, &w, w.to_ns - w.from_ns, ret_value, 1, err);
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

/* Whole minutes, in which the totals are. */
static int read_totals(struct services *s, struct err *err)
{
	int64_t from = MAX(s->window.from_ns, 0) / MINUTE_NS * MINUTE_NS;
	int64_t to = (s->window.to_ns - 1) / MINUTE_NS * MINUTE_NS + MINUTE_NS;

	return query_overview_read(s->store, from, to, to - from, &s->data, err);
}

static int print_services(struct services *s, const struct cli_args *args, struct err *err)
{
	int r = read_totals(s, err);

	data_dir_tell_damage(s->store);
	if (r < 0)
		return r;
	if (args->values[SERVICES_NAMES])
		return print_names(s, err);
	r = make_rows(s, args->values[SERVICES_ALL] != NULL, err);
	if (r == 0 && s->n_rows == 0)
		cli_note("Nothing was collected in this window; try --from -7d.");
	return r < 0 || s->n_rows == 0 ? r : print_table(s, err);
}

static int print_streams(struct services *s, struct err *err)
{
	int r = store_streams(s->store, s->window.from_ns, s->window.to_ns, &s->streams, &s->len,
			      err);

	data_dir_tell_damage(s->store);
	return r < 0 ? r : services_print_json(s, s->out, err);
}

/* What fits the terminal, with its heading, the rest's line and the prompt. */
static int parse_lines(const char *value, size_t *ret_lines, struct err *err)
{
	size_t height = term_height(STDOUT_FILENO);
	uint64_t n = height > 4 ? height - 3 : height ? 1 : MAX_LINES;
	int r = value ? cli_parse_number("--lines", value, MAX_LINES, &n, err) : 0;

	*ret_lines = n;
	return r;
}

static int services_run(const struct cli_args *args)
{
	_cleanup_(services_release) struct services s = {0};
	_cleanup_(buf_release) struct buf out = {};
	struct err err = {};
	int r = data_dir_window(args->values[SERVICES_FROM], args->values[SERVICES_TO], &s.window,
				&err);

	if (r == 0)
		r = parse_lines(args->values[SERVICES_LINES], &s.max_rows, &err);
	if (r < 0)
		return cli_fail_usage("services", &err);
	s.out = &out;
	r = data_dir_open(args->values[SERVICES_DATA_DIR], &s.store, &err);
	if (r == 0)
		r = args->values[SERVICES_JSON] ? print_streams(&s, &err)
						: print_services(&s, args, &err);
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
