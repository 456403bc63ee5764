/* src/cli/cmd/doctor.c: `sonde doctor`: what works on this machine, and how to fix the rest. */
#include <sys/utsname.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "cli/data_dir.h"
#include "cli/json_pair.h"
#include "cli/options.h"
#include "cli/render/report.h"
#include "cli/term.h"
#include "features/probe.h"

enum { DOCTOR_JSON, DOCTOR_DATA_DIR, DOCTOR_N };

static const struct cli_option doctor_options[DOCTOR_N] = {
	[DOCTOR_JSON] = {.name = "json", .help = "print JSON"},
	[DOCTOR_DATA_DIR] = {.name = "data-dir", .arg = "DIR", .help = DATA_DIR_HELP},
};

static const char *doctor_colour(enum features_state state)
{
	static const char *const colours[] = {[FEATURES_ON] = TERM_GREEN,
					      [FEATURES_LIMITED] = TERM_YELLOW,
					      [FEATURES_OFF] = TERM_RED};

	return term_wants_colour(STDOUT_FILENO) ? colours[state] : "";
}

/* Pad the state before colouring it: escape codes take no columns. */
static int doctor_print(const struct features *features, struct buf *out)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < FEATURES_N; i++) {
		const struct features_row *f = &features->rows[i];
		const char *colour = doctor_colour(f->state);

		r = buf_printf(out, "%-14s %s%-8s%s ", features_name(i), colour,
			       features_state_name(f->state), *colour ? TERM_RESET : "");
		if (r == 0 && f->state == FEATURES_ON)
			r = buf_printf(out, "%s\n", features_title(i));
		else if (r == 0)
			r = buf_printf(out, "%s%s%s\n", f->reason, f->remedy[0] ? "; fix: " : "",
				       f->remedy);
	}
	return r;
}

static int doctor_print_json(const struct features *features, struct buf *out)
{
	struct json j = json_to(out);
	struct utsname host = {0};
	int r;

	(void)uname(&host);
	json_object_begin(&j);
	json_pair(&j, "version", SONDE_VERSION);
	json_pair(&j, "kernel", (const char *)host.release);
	json_pair(&j, "missing", (uint64_t)features_missing(features));
	json_key(&j, "features");
	features_json(features, &j);
	json_object_end(&j);
	r = json_finish(&j);
	return r < 0 ? r : buf_append_byte(out, '\n');
}

static int doctor_run(const struct cli_args *args)
{
	_cleanup_(buf_release) struct buf out = {};
	_cleanup_free_ char *dir = NULL;
	struct features features;
	struct err err = {};
	int r = data_dir_path(args->values[DOCTOR_DATA_DIR], &dir, &err);

	if (r < 0)
		return cli_fail_usage("doctor", &err);
	term_status("trying what works on this machine");
	features_probe(dir, &features);
	term_status(NULL);
	if (args->values[DOCTOR_JSON])
		r = doctor_print_json(&features, &out);
	else
		r = doctor_print(&features, &out);
	if (r == 0)
		r = report_print(&out, &err);
	if (r < 0)
		return cli_fail(r, &err);
	return features_missing(&features) ? CLI_NOT_PROFILEABLE : CLI_OK;
}

const struct cli_command cmd_doctor = {
	.name = "doctor",
	.summary = "Check what works on this machine and how to fix the rest",
	.operands = "",
	.options = doctor_options,
	.n_options = ARRAY_SIZE(doctor_options),
	.notes = "Each feature is on, limited (works for some processes) or off, with the reason\n"
		 "and a fix. sonde tries each one: it loads and unloads BPF programs, but touches\n"
		 "no process. Exits with 3 unless everything is on.\n",
	.run = doctor_run,
};
