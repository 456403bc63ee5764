/*
 * src/cli/go/goroutines.h: what `sonde goroutines` shows: similar goroutines as one row, and over
 * several reads the rows that only grow.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/intern.h"
#include "golang/goroutine/goroutines.h"

#define GOROUTINES_MAX_READINGS 4

/* Goroutines with the same stack, state, wait reason and creation site. */
struct goroutines_row {
	uint32_t stack; /* or GOLANG_NO_STACK */
	enum golang_g_state state;
	const char *wait_reason;
	uint64_t created_by;
	bool is_main;	   /* which nobody created */
	uint64_t start_pc; /* of those without a stack */
	uint32_t labels;   /* if rows are split by labels */
	uint64_t counts[GOROUTINES_MAX_READINGS];
	uint64_t longest_ns; /* of the last read */
	uint64_t left;	     /* present in one read, and elsewhere or gone in the next */
	uint64_t fresh;	     /* in the last read, but not in the first */
};

struct goroutines_seen {
	uint64_t id;
	uint32_t row;
};

/* A zeroed view is empty. */
struct goroutines_view {
	struct golang_goroutines *goroutines; /* borrowed */
	bool (*keep)(void *context, const struct golang_goroutine *g);
	void *context;
	bool by_labels;	    /* rows are also split by labels */
	struct intern keys; /* ids are row numbers */
	struct goroutines_row *rows;
	size_t rows_cap;
	size_t n_readings;
	struct goroutines_seen *first, *last; /* goroutines of these reads, by id */
	size_t n_first, n_last;
	uint64_t shown; /* of the last read: those selected by keep */
};

void goroutines_view_release(struct goroutines_view *v);
/* Adds the current read; the last one completes the view. */
int goroutines_view_add(struct goroutines_view *v, struct err *err);

/*
 * A leak: goroutines wait at the same place, none has left, and new ones arrived repeatedly. One
 * that was elsewhere before, or has just arrived, does not count.
 */
bool goroutines_row_leaks(const struct goroutines_view *v, const struct goroutines_row *row);
uint64_t goroutines_row_count(const struct goroutines_view *v, const struct goroutines_row *row);
/* Rows of the last read (all rows if there were several), largest first. */
int goroutines_view_sorted(const struct goroutines_view *v, const struct goroutines_row ***ret_rows,
			   size_t *ret_n, struct err *err);
/* "chan receive", or the state. */
const char *goroutines_row_state(const struct goroutines_row *row);

/* Appends "main.worker main.go:12": the innermost frame that a goroutine dump shows. */
int goroutines_put_place(struct golang_goroutines *gs, const struct goroutines_row *row,
			 struct buf *out);
/* The same for the go statement; nothing for the main goroutine, "[C thread]" for a callback. */
int goroutines_put_creator(struct golang_goroutines *gs, const struct goroutines_row *row,
			   struct buf *out);
/* Would runtime.Stack show this frame? */
bool goroutines_frame_shown(const struct golang_goroutine_frame *frame, bool first);
/* The name as tracebacks print it, cleaned for terminals. */
int goroutines_put_name(struct view name, struct buf *out);
int goroutines_put_text(struct view text, struct buf *out);

struct report; /* cli/render/report.h: how many rows, and for which terminal */
int goroutines_top(const struct goroutines_view *v, const struct report *report, struct buf *out,
		   struct err *err);
int goroutines_full(const struct goroutines_view *v, struct buf *out, struct err *err);

struct proc_info;
struct golang_facts;
struct goroutines_source {
	const struct proc_info *process; /* NULL for a core */
	const struct golang_facts *facts;
	const char *core;
};
int goroutines_json(const struct goroutines_view *v, const struct goroutines_source *source,
		    struct buf *out, struct err *err);
