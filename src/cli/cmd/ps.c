/* src/cli/cmd/ps.c: `sonde ps`: lists processes and what can be profiled in each. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/json_pair.h"
#include "cli/options.h"
#include "cli/ps/list.h"
#include "cli/ps/metrics.h"
#include "cli/render/report.h"
#include "cli/term.h"
#include "proc/aide/aides.h"

enum { PS_ALL, PS_JSON, PS_LONG, PS_WIDE, PS_CORE, PS_EXE, PS_N_OPTIONS };

static const struct cli_option ps_options[PS_N_OPTIONS] = {
	[PS_ALL] = {.letter = 'a', .name = "all", .help = "include kernel threads"},
	[PS_JSON] = {.name = "json", .help = "print all details as JSON"},
	[PS_LONG] = {.letter = 'l', .name = "long", .help = "add Go runtime statistics"},
	[PS_WIDE] = {.letter = 'w', .name = "wide", .help = "do not truncate columns"},
	[PS_CORE] = {.name = "core", .arg = "FILE", .help = "show the program in a core file"},
	[PS_EXE] = {.name = "exe",
		    .arg = "FILE",
		    .help = "with --core: the executable, if it has moved"},
};

/* Runtime statistics come before the heap, which may be a whole sentence. */
enum {
	PS_PID,
	PS_RUNTIME,
	PS_EXECUTABLE,
	PS_SERVICE,
	PS_CPU,
	PS_METRICS,
	PS_HEAP = PS_METRICS + PS_METRICS_COLUMNS,
	PS_COLUMNS,
};

#define PS_CELL 832

struct ps_row {
	char cells[PS_COLUMNS][PS_CELL];
};

struct ps_table {
	const struct ps_list *list;
	bool with_metrics;
	size_t widths[PS_COLUMNS];
};

static bool ps_is_metric(size_t column)
{
	return column >= PS_METRICS && column < PS_METRICS + PS_METRICS_COLUMNS;
}

static bool ps_is_shown(const struct ps_table *t, size_t column)
{
	return t->with_metrics || !ps_is_metric(column);
}

static void ps_fill_row(const struct ps_entry *e, struct ps_row *row)
{
	const struct proc_info *i = &e->info;
	const char *version = e->version;

	(void)snprintf(row->cells[PS_PID], PS_CELL, "%d", (int)i->id.pid);
	if (i->id.pid == 0)
		(void)snprintf(row->cells[PS_PID], PS_CELL, "core");
	/* Go's version string already names the runtime. */
	if (strncmp(version, e->runtime, strlen(e->runtime)) == 0)
		version += strlen(e->runtime);
	(void)snprintf(row->cells[PS_RUNTIME], PS_CELL, "%s%s", e->runtime, version);
	if (i->exe[0])
		(void)snprintf(row->cells[PS_EXECUTABLE], PS_CELL, "%s", i->exe);
	else
		(void)snprintf(row->cells[PS_EXECUTABLE], PS_CELL, "[%s]", i->comm);
	(void)snprintf(row->cells[PS_SERVICE], PS_CELL, "%s%s%.12s%s", i->service,
		       i->container[0] ? " (" : "", i->container, i->container[0] ? ")" : "");
	(void)snprintf(row->cells[PS_CPU], PS_CELL, "%s%s%s", e->cpu.gives,
		       e->cpu.remedy[0] ? ": " : "", e->cpu.remedy);
	if (e->heap)
		(void)snprintf(row->cells[PS_HEAP], PS_CELL, "yes");
	else
		(void)snprintf(row->cells[PS_HEAP], PS_CELL, "%s%s%s", e->reason,
			       e->remedy[0] ? ": " : "", e->remedy);
	for (size_t c = 0; c < PS_METRICS_COLUMNS; c++)
		ps_metrics_cell(&e->metrics, c, row->cells[PS_METRICS + c], PS_CELL);
	for (size_t c = 0; c < PS_COLUMNS; c++)
		text_clean(row->cells[c], strlen(row->cells[c]));
}

static const char *ps_title(size_t column)
{
	static const char *const titles[PS_COLUMNS] = {
		[PS_PID] = "PID",	  [PS_RUNTIME] = "RUNTIME", [PS_EXECUTABLE] = "EXECUTABLE",
		[PS_SERVICE] = "SERVICE", [PS_CPU] = "CPU",	    [PS_HEAP] = "HEAP"};

	return ps_is_metric(column) ? ps_metrics_titles[column - PS_METRICS] : titles[column];
}

/* Names are UTF-8: continuation bytes are 10xxxxxx. */
static bool ps_is_further_byte(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

static size_t ps_letters(const char *s)
{
	size_t n = 0;

	for (; *s; s++)
		n += !ps_is_further_byte(*s);
	return n;
}

static char *ps_skip_letters(char *s, size_t n)
{
	for (; *s && n; n--)
		do
			s++;
		while (ps_is_further_byte(*s));
	return s;
}

/* Shrink the widest flexible column until it fits. */
static void ps_squeeze(struct ps_table *t, size_t width)
{
	static const size_t least[PS_COLUMNS] = {
		[PS_EXECUTABLE] = 12, [PS_SERVICE] = 7, [PS_CPU] = 12, [PS_HEAP] = 12};
	static const size_t order[] = {PS_CPU, PS_HEAP, PS_SERVICE, PS_EXECUTABLE};
	size_t sum = 0;

	for (size_t c = 0; c < PS_COLUMNS; c++)
		if (ps_is_shown(t, c))
			sum += t->widths[c] + (c ? 2 : 0);
	while (width && sum > width) {
		size_t widest = PS_COLUMNS;

		for (size_t k = 0; k < ARRAY_SIZE(order); k++)
			if (t->widths[order[k]] > least[order[k]] &&
			    (widest == PS_COLUMNS || t->widths[order[k]] > t->widths[widest]))
				widest = order[k];
		if (widest == PS_COLUMNS)
			break;
		t->widths[widest]--;
		sum--;
	}
}

/* The width of each column: its widest cell, less on a narrow terminal. */
static void ps_measure(struct ps_table *t, size_t width)
{
	for (size_t c = 0; c < PS_COLUMNS; c++)
		t->widths[c] = strlen(ps_title(c));
	for (size_t i = 0; i < t->list->len; i++) {
		struct ps_row row;

		ps_fill_row(&t->list->entries[i], &row);
		for (size_t c = 0; c < PS_COLUMNS; c++)
			t->widths[c] = MAX(t->widths[c], ps_letters(row.cells[c]));
	}
	ps_squeeze(t, width);
}

/* The end of a path matters most, and the start of a sentence. */
static void ps_shorten(char *cell, size_t column, size_t width)
{
	size_t letters = ps_letters(cell);

	if (letters <= width || width < 3)
		return;
	if (column == PS_EXECUTABLE) {
		const char *end = ps_skip_letters(cell, letters - (width - 2));

		(void)memmove(cell + 2, end, strlen(end) + 1);
		cell[0] = '.';
		cell[1] = '.';
	} else {
		(void)memcpy(ps_skip_letters(cell, width - 2), "..", sizeof(".."));
	}
}

static int ps_print_row(const struct ps_table *t, struct ps_row *row, const char *colour,
			struct buf *out)
{
	int r = buf_append_str(out, colour);

	for (size_t c = 0; r == 0 && c < PS_COLUMNS; c++) {
		const char *gap = c ? "  " : "";
		char *cell = row->cells[c];

		if (!ps_is_shown(t, c))
			continue;
		ps_shorten(cell, c, t->widths[c]);
		if (c == PS_PID || ps_is_metric(c))
			r = buf_printf(out, "%s%*s", gap, (int)t->widths[c], cell);
		else if (c + 1 < PS_COLUMNS)
			r = buf_printf(out, "%s%s%*s", gap, cell,
				       (int)(t->widths[c] - MIN(t->widths[c], ps_letters(cell))),
				       "");
		else
			r = buf_printf(out, "%s%s", gap, cell);
	}
	if (r == 0)
		r = buf_append_str(out, *colour ? TERM_RESET "\n" : "\n");
	return r;
}

/* What is missing on the machine, and thus affects every line above. */
static int ps_print_features(const struct features *features, struct buf *out)
{
	int r = features_missing(features) ? buf_append_str(out, "\nThis machine:\n") : 0;

	for (size_t i = 0; r == 0 && i < FEATURES_N; i++) {
		const struct features_row *f = &features->rows[i];

		if (features_is_missing(f))
			r = buf_printf(out, "  %s: %s: %s%s%s\n", features_title(i),
				       features_state_name(f->state), f->reason,
				       f->remedy[0] ? "; fix: " : "", f->remedy);
	}
	return r;
}

static int ps_print_table(struct ps_table *t, bool wide, struct buf *out)
{
	bool coloured = term_wants_colour(STDOUT_FILENO);
	struct ps_row row;
	int r;

	ps_measure(t, wide ? 0 : term_width(STDOUT_FILENO));
	for (size_t c = 0; c < PS_COLUMNS; c++)
		(void)snprintf(row.cells[c], PS_CELL, "%s", ps_title(c));
	r = ps_print_row(t, &row, coloured ? TERM_BOLD : "", out);
	for (size_t i = 0; r == 0 && i < t->list->len; i++) {
		const struct ps_entry *e = &t->list->entries[i];

		ps_fill_row(e, &row);
		r = ps_print_row(t, &row, coloured && e->heap ? TERM_GREEN : "", out);
	}
	return r < 0 ? r : ps_print_features(&t->list->features, out);
}

static void ps_json_text(struct json *j, const char *key, const char *value)
{
	json_pair(j, key, *value ? value : NULL);
}

static void ps_json_cause(struct json *j, bool available, enum err_cause cause)
{
	json_pair(j, "cause", available ? (const char *)NULL : err_cause_name(cause));
}

/*
 * Their names, in each entry, because the output is a list. `sonde doctor --json` has the details.
 */
static void ps_json_features(const struct features *features, struct json *j)
{
	json_key(j, "features_off");
	json_array_begin(j);
	for (size_t i = 0; i < FEATURES_N; i++)
		if (features_is_missing(&features->rows[i]))
			json_cstring(j, features_name(i));
	json_array_end(j);
}

static void ps_json_entry(const struct ps_entry *e, const struct features *features, struct json *j)
{
	json_object_begin(j);
	json_pair(j, "pid", e->info.id.pid);
	json_pair(j, "start_ticks", e->info.id.start_ticks);
	ps_json_text(j, "comm", e->info.comm);
	ps_json_text(j, "executable", e->info.exe);
	ps_json_text(j, "runtime", e->runtime);
	ps_json_text(j, "version", e->version);
	ps_json_text(j, "container", e->info.container);
	ps_json_text(j, "pod", e->info.pod);
	ps_json_text(j, "unit", e->info.unit);
	ps_json_text(j, "service", e->info.service);
	json_key(j, "profiles");
	json_object_begin(j);
	json_key(j, "cpu");
	json_object_begin(j);
	json_pair(j, "available", e->cpu.available);
	ps_json_cause(j, e->cpu.available, e->cpu.cause);
	ps_json_text(j, e->cpu.available ? "gives" : "reason", e->cpu.gives);
	ps_json_text(j, "remedy", e->cpu.remedy);
	json_object_end(j);
	json_key(j, "heap");
	json_object_begin(j);
	json_pair(j, "available", e->heap);
	ps_json_cause(j, e->heap, e->cause);
	ps_json_text(j, "reason", e->reason);
	ps_json_text(j, "remedy", e->remedy);
	json_object_end(j);
	json_object_end(j);
	json_key(j, "metrics");
	if (e->has_metrics)
		ps_metrics_json(&e->metrics, j);
	else
		json_null(j);
	ps_json_features(features, j);
	json_object_end(j);
}

static int ps_print_json(const struct ps_list *list, struct buf *out)
{
	struct json j = json_to(out);
	int r;

	json_array_begin(&j);
	for (size_t i = 0; i < list->len; i++)
		ps_json_entry(&list->entries[i], &list->features, &j);
	json_array_end(&j);
	r = json_finish(&j);
	return r < 0 ? r : buf_append_byte(out, '\n');
}

static int ps_parse_pids(const struct cli_args *args, pid_t pids[CLI_MAX_OPERANDS], struct err *err)
{
	if (args->n_operands && args->values[PS_CORE])
		return err_set(err, -EINVAL, "use either PIDs or --core FILE, not both");
	if (args->values[PS_EXE] && !args->values[PS_CORE])
		return err_set(err, -EINVAL, "--exe requires --core FILE");
	for (size_t i = 0; i < args->n_operands; i++) {
		uint64_t pid;
		int r = cli_parse_number("PID", args->operands[i], INT_MAX, &pid, err);

		if (r < 0)
			return r;
		pids[i] = (pid_t)pid;
	}
	return 0;
}

static void ps_say_missing(const struct ps_list *list)
{
	char missing[256];

	for (size_t i = 0; i < list->len; i++) {
		const struct ps_entry *e = &list->entries[i];

		if (!e->has_metrics)
			continue;
		golang_metrics_describe_missing(&e->metrics, missing, sizeof(missing));
		if (missing[0])
			cli_note("%d (%s): %s", (int)e->info.id.pid, e->info.comm, missing);
	}
}

static int ps_run(const struct cli_args *args)
{
	_cleanup_(ps_list_release) struct ps_list list = {};
	_cleanup_(buf_release) struct buf out = {};
	pid_t pids[CLI_MAX_OPERANDS];
	const struct ps_options options = {
		.kernel_threads = args->values[PS_ALL] != NULL,
		.metrics = args->values[PS_LONG] || args->values[PS_JSON],
		.pids = args->n_operands ? pids : NULL,
		.n_pids = args->n_operands,
	};
	struct ps_table table = {.list = &list, .with_metrics = args->values[PS_LONG] != NULL};
	struct err err = {};
	int r;

	if (ps_parse_pids(args, pids, &err) < 0)
		return cli_fail_usage("ps", &err);
	if (args->values[PS_CORE]) {
		r = ps_list_core(args->values[PS_CORE], args->values[PS_EXE], &list, &err);
	} else {
		r = cli_begin_many(false, &err);
		term_status("examining processes");
		if (r == 0)
			r = ps_list_read(&options, &list, &err);
		term_status(NULL);
		proc_aides_stop();
	}
	if (r < 0)
		return cli_fail(r, &err);
	if (args->values[PS_JSON])
		r = ps_print_json(&list, &out);
	else
		r = ps_print_table(&table, args->values[PS_WIDE] != NULL, &out);
	if (r == 0)
		r = report_print(&out, &err);
	if (r == 0 && args->values[PS_LONG])
		ps_say_missing(&list);
	return r < 0 ? cli_fail(r, &err) : CLI_OK;
}

const struct cli_command cmd_ps = {
	.name = "ps",
	.summary = "List processes and what can be profiled in each",
	.operands = "[PID...]",
	.max_operands = CLI_MAX_OPERANDS,
	.options = ps_options,
	.n_options = ARRAY_SIZE(ps_options),
	.notes = "CPU: yes means complete stacks with names; otherwise what is missing and the\n"
		 "fix. HEAP: yes for Go processes with a readable heap profile. Features that do\n"
		 "not work on this machine are listed below the table, as in sonde doctor.\n"
		 "\n"
		 "Columns of -l: LIVE heap, heap GOAL of the next garbage collection, memory\n"
		 "LIMIT, garbage collections (GCS), last GC PAUSE, share of CPU time spent in GC\n"
		 "(GC%), GOMAXPROCS (PROCS), GOROUTINES.\n",
	.run = ps_run,
};
