/*
 * src/cli/top/ui.h: the live table of `sonde top`: selection, keys, and the screen as bytes.
 * Nothing here touches a terminal; live.c does.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "cli/top/feed.h"
#include "cli/top/model.h"

#define TOP_MIN_INTERVAL_NS (100 * NS_PER_MS)
#define TOP_MAX_INTERVAL_NS (3600 * NS_PER_SEC)

struct top_ui {
	/* The user's choices. */
	enum top_kind kind;
	enum top_unit unit;
	enum top_group group;
	bool by_total;
	bool paused;
	bool help;
	bool typing; /* the filter */
	char filter[64];
	char filter_before[64]; /* restored by Esc */
	char callers_of[1100];	/* "" for none */
	char service[128];	/* only this one; "" for all */
	pid_t pid;		/* only this one; 0 for all */
	enum top_group group_before;
	uint64_t interval_ns;
	size_t max_rows; /* 0: as many as there are */

	/* The data. */
	struct top_table table;
	struct top_status status;
	size_t selected;
	size_t offset;	   /* the first row on the screen */
	char pinned[1100]; /* the selected name; "" for the first row */

	/* Where it is drawn. */
	size_t columns;
	size_t lines;
	bool colour;
	char clock[16]; /* "12:03:04" */
};

void top_ui_release(struct top_ui *ui);
/* Borrows from ui. */
struct top_view top_ui_view(const struct top_ui *ui);
/* Takes ownership of the table; the selection follows its name. */
void top_ui_take_table(struct top_ui *ui, struct top_table *table);

/* A key: a byte, or one of these. */
enum top_key {
	TOP_KEY_NONE = 256, /* unknown */
	TOP_KEY_UP,
	TOP_KEY_DOWN,
	TOP_KEY_LEFT,
	TOP_KEY_RIGHT,
	TOP_KEY_PAGE_UP,
	TOP_KEY_PAGE_DOWN,
	TOP_KEY_HOME,
	TOP_KEY_END,
	TOP_KEY_ENTER,
	TOP_KEY_ESCAPE,
	TOP_KEY_BACKSPACE,
};
/*
 * Decodes the first key of the input and returns its length. 0: the rest of a sequence may follow;
 * with at_end it does not, and Escape is a key by itself.
 */
size_t top_key_decode(const uint8_t *bytes, size_t len, bool at_end, int *ret_key);

/* What to do after a key. */
enum {
	TOP_DO_DRAW = 1 << 0,
	TOP_DO_TABLE = 1 << 1,	  /* the view has changed */
	TOP_DO_INTERVAL = 1 << 2, /* ui->interval_ns has */
	TOP_DO_PAUSE = 1 << 3,	  /* ui->paused has */
	TOP_DO_CLEAR = 1 << 4,	  /* the window, before it is drawn */
	TOP_DO_QUIT = 1 << 5,
};
unsigned int top_ui_press(struct top_ui *ui, int key);

/* How many rows fit. */
size_t top_screen_rows(const struct top_ui *ui);
/* The whole screen, to be written at once. */
int top_screen_draw(struct top_ui *ui, struct buf *out);

/* Maximum columns of values and shares. */
#define TOP_VALUE_CELLS 10
#define TOP_SHARE_CELLS 6
struct top_label {
	char text[64];
};
/* "45.3MB", "810000"; for TOP_CPU, cores: "1.250". */
struct top_label top_value(int64_t value, enum top_kind kind, enum top_unit unit);
/* "FLAT/s" and "CUM/s", "FLAT" and "CUM", or "CORES" and "CUM CORES". */
const char *top_column(enum top_kind kind, bool cum);
/* "12.34%". */
struct top_label top_share(int64_t value, int64_t total);
/*
 * "0.84 of 2 cores | 14 processes in 6 services: 1.20GB live, 45.3MB/s and 810000 objects/s
 * allocated".
 */
int top_describe_sums(const struct top_status *status, struct buf *out);
/* " using 0.4% of a CPU", or nothing at first. */
struct top_label top_describe_cost(const struct top_status *status);
/* The i-th status line, or false: what is not profiled, or was lost. */
bool top_describe_status(const struct top_status *status, size_t i, char *dst, size_t len);
/* Why the table is empty. */
void top_describe_nothing(const struct top_view *view, const struct top_status *status,
			  const struct top_table *table, char *dst, size_t len);
