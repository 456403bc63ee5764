/* src/cli/cmd/store.c: `sonde store`: looks for damage in stored profiles, and takes it out. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/data_dir.h"
#include "cli/json_pair.h"
#include "cli/options.h"
#include "cli/render/report.h"
#include "cli/render/units.h"
#include "cli/term.h"
#include "store/sqlite/sqlite.h"

enum { STORE_DATA_DIR, STORE_JSON, STORE_N };

static const struct cli_option store_options[STORE_N] = {
	[STORE_DATA_DIR] = {.name = "data-dir", .arg = "DIR", .help = DATA_DIR_HELP},
	[STORE_JSON] = {.name = "json", .help = "print JSON"},
};

struct store_listing {
	struct buf out;
	struct json json;
	bool as_json;
	size_t files;
	size_t damaged; /* files, still */
	size_t without_checksums;
	size_t deleted;
	uint64_t lost; /* pages and rows of the others */
};

static const char *store_state(const struct store_sqlite_report *r)
{
	if (r->repaired)
		return r->unreadable ? "deleted" : "repaired";
	if (r->unknown)
		return "newer version";
	if (r->unreadable)
		return "unreadable";
	if (r->damaged > 0)
		return "damaged";
	if (r->corrected > 0)
		return "correctable";
	return r->checksums ? "whole" : "no checksums";
}

static void store_print_json(struct json *j, const struct store_sqlite_report *r)
{
	json_object_begin(j);
	json_pair(j, "file", r->name);
	json_pair(j, "state", store_state(r));
	json_pair(j, "bytes", r->bytes);
	json_pair(j, "rows", r->rows);
	json_pair(j, "damaged", r->damaged);
	json_pair(j, "corrected", r->corrected);
	json_pair(j, "checksums", r->checksums);
	json_key(j, "findings");
	json_array_begin(j);
	for (size_t i = 0; i < r->n_findings; i++)
		json_cstring(j, r->findings[i]);
	json_array_end(j);
	json_object_end(j);
}

static int store_print_row(struct buf *out, const struct store_sqlite_report *r)
{
	char size[UNITS_LABEL_LEN];
	int ret = buf_printf(out, "%-28s  %10s  %10llu  %8llu  %9llu  %s\n", r->name,
			     units_label(size, (int64_t)r->bytes, "bytes", "auto"),
			     (unsigned long long)r->rows, (unsigned long long)r->damaged,
			     (unsigned long long)r->corrected, store_state(r));

	for (size_t i = 0; ret >= 0 && i < r->n_findings; i++)
		ret = buf_printf(out, "  %s\n", r->findings[i]);
	if (ret >= 0 && r->damaged > r->n_findings)
		ret = buf_printf(out, "  and %llu more\n",
				 (unsigned long long)(r->damaged - r->n_findings));
	return ret < 0 ? -ENOMEM : 0;
}

static int store_report(void *ctx, const struct store_sqlite_report *r)
{
	struct store_listing *l = ctx;

	l->files++;
	l->damaged += !r->repaired && r->damaged + r->corrected > 0;
	l->deleted += r->repaired && r->unreadable;
	l->lost += r->unreadable ? 0 : r->damaged;
	l->without_checksums += !r->checksums && !r->unreadable && !r->unknown && !r->repaired;
	if (!l->as_json)
		return store_print_row(&l->out, r);
	store_print_json(&l->json, r);
	return 0;
}

static void store_tell(const struct store_listing *l, bool repair)
{
	if (l->files == 0)
		cli_note("Nothing is stored there.");
	else if (l->damaged > 0)
		cli_note("%zu of %zu files are damaged: stop sonde and run `sonde store repair`, "
			 "which keeps all that is whole.",
			 l->damaged, l->files);
	else if (repair && l->lost > 0)
		cli_note("%llu damaged pieces were dropped; the rest is kept.",
			 (unsigned long long)l->lost);
	if (l->deleted > 0)
		cli_note("%zu files could not be read at all and were deleted.", l->deleted);
	if (l->without_checksums > 0)
		cli_note("%zu files were written by an older sonde and have no checksums of their "
			 "pages: only their structure and their blocks were checked.",
			 l->without_checksums);
}

static int store_look(struct store *store, bool repair, struct store_listing *l, struct err *err)
{
	int r;

	if (l->as_json)
		json_array_begin(&l->json);
	else if (buf_printf(&l->out, "%-28s  %10s  %10s  %8s  %9s  %s\n", "FILE", "SIZE", "ROWS",
			    "DAMAGED", "CORRECTED", "STATE") < 0)
		return err_oom(err);
	term_status(repair ? "repairing stored files" : "checking stored files");
	r = repair ? store_sqlite_repair(store, store_report, l, err)
		   : store_sqlite_check(store, store_report, l, err);
	term_status(NULL);
	if (r < 0 || !l->as_json)
		return r == -ENOMEM ? err_oom(err) : r;
	json_array_end(&l->json);
	return json_finish(&l->json) < 0 || buf_append_byte(&l->out, '\n') < 0 ? err_oom(err) : 0;
}

static void listing_release(struct store_listing *l)
{
	buf_release(&l->out);
}

static int store_run(const struct cli_args *args)
{
	_cleanup_(listing_release) struct store_listing l = {.as_json = args->values[STORE_JSON]};
	_cleanup_(store_closep) struct store *store = NULL;
	_cleanup_free_ char *dir = NULL;
	_cleanup_(data_dir_unlockp) int lock = -1;
	bool repair = strcmp(args->operands[0], "repair") == 0;
	struct err err = {};
	int r;

	if (!repair && strcmp(args->operands[0], "check") != 0) {
		(void)err_set(&err, -EINVAL, "'%s' is neither check nor repair", args->operands[0]);
		return cli_fail_usage("store", &err);
	}
	l.json = json_to(&l.out);
	r = data_dir_path(args->values[STORE_DATA_DIR], &dir, &err);
	if (r == 0)
		r = data_dir_open(dir, &store, &err);
	if (r == 0 && repair)
		r = data_dir_lock(dir, &lock, NULL, &err);
	if (r == 0)
		r = store_look(store, repair, &l, &err);
	if (r == 0)
		r = report_print(&l.out, &err);
	if (r < 0)
		return cli_fail(r, &err);
	store_tell(&l, repair);
	return l.damaged > 0 ? CLI_FAILURE : CLI_OK;
}

const struct cli_command cmd_store = {
	.name = "store",
	.summary = "Check stored profiles for damage, or repair them",
	.operands = "check|repair",
	.min_operands = 1,
	.max_operands = 1,
	.options = store_options,
	.n_options = ARRAY_SIZE(store_options),
	.notes = "check reads every page and row of all files and changes nothing; sonde may be\n"
		 "running. It exits with 1 if anything is damaged. repair writes damaged files\n"
		 "anew with all that is whole, and says what was dropped; stop sonde first.\n"
		 "\n"
		 "A page with one flipped bit is corrected whenever it is read, and one that only\n"
		 "says where others are is made anew. Files of older versions have checksums in\n"
		 "their blocks only, not in their pages.\n",
	.run = store_run,
};
