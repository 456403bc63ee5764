/*
 * tests/unit/cli/test_top_screen.c: the keys and the screen of `sonde top`, on a terminal that is a
 * grid of characters here.
 */
#include "cli/top/ui.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "cli/term.h"
#include "test_top.h"

#define GRID_MAX 256

/* Knows what the screen uses: places, colours, clearing; and fails at anything else. */
struct grid {
	size_t columns;
	size_t lines;
	size_t x;
	size_t y;
	char cells[GRID_MAX][GRID_MAX];
	bool coloured;
	bool reversed[GRID_MAX]; /* lines that have something reversed */
};

static void grid_escape(struct grid *g, const char *params, char last)
{
	if (last == 'H') {
		assert_string_equal(params, "");
		g->x = g->y = 0;
	} else if (last == 'K') {
		assert_in_range(g->x, 0, g->columns - 1);
		memset(&g->cells[g->y][g->x], ' ', g->columns - g->x);
	} else if (last == 'J') {
		memset(&g->cells[g->y][g->x], ' ', g->columns - g->x);
		for (size_t y = g->y + 1; y < g->lines; y++)
			memset(g->cells[y], ' ', g->columns);
	} else {
		assert_int_equal(last, 'm');
		g->coloured = true;
		g->reversed[g->y] |= strcmp(params, "7") == 0;
	}
}

static void grid_feed(struct grid *g, const struct buf *bytes)
{
	for (size_t i = 0; i < bytes->len; i++) {
		char c = (char)bytes->data[i];

		/* One column: '~' in the grid. */
		if (i + 3 <= bytes->len && memcmp(&bytes->data[i], TERM_ELLIPSIS, 3) == 0) {
			c = '~';
			i += 2;
		}
		if (c == '\r') {
			g->x = 0;
		} else if (c == '\n') {
			/* The last line would scroll. */
			assert_in_range(++g->y, 1, g->lines - 1);
		} else if (c == '\033') {
			char params[16] = "";
			size_t n = 0;

			assert_int_equal(bytes->data[++i], '[');
			for (i++; bytes->data[i] < 0x40; i++)
				params[n++] = (char)bytes->data[i];
			grid_escape(g, params, (char)bytes->data[i]);
		} else {
			assert_in_range((unsigned char)c, 0x20, 0x7e);
			/* Nothing is ever cut by the edge. */
			assert_in_range(g->x, 0, g->columns - 1);
			g->cells[g->y][g->x++] = c;
		}
	}
}

static struct grid draw(struct top_ui *ui)
{
	_cleanup_(buf_release) struct buf out = {};
	struct grid g = {.columns = ui->columns, .lines = ui->lines};

	/* What was there before must go. */
	for (size_t y = 0; y < g.lines; y++)
		memset(g.cells[y], '#', g.columns);
	assert_int_equal(top_screen_draw(ui, &out), 0);
	grid_feed(&g, &out);
	for (size_t y = 0; y < g.lines; y++)
		assert_null(strchr(g.cells[y], '#'));
	return g;
}

static bool has(const struct grid *g, const char *text)
{
	for (size_t y = 0; y < g->lines; y++)
		if (strstr(g->cells[y], text))
			return true;
	return false;
}

struct fixture {
	struct top_model *model;
	struct top_ui ui;
};

static void fixture_table(struct fixture *f)
{
	const struct top_view view = top_ui_view(&f->ui);
	struct top_table table;

	assert_int_equal(top_model_table(f->model, &view, &table, NULL), 0);
	top_ui_take_table(&f->ui, &table);
	top_model_sums(f->model, &f->ui.status.sums);
}

static unsigned int press(struct fixture *f, int key)
{
	unsigned int todo = top_ui_press(&f->ui, key);

	if (todo & TOP_DO_TABLE)
		fixture_table(f);
	return todo;
}

static int set_up(void **state)
{
	static const struct fake_sample samples[] = {
		{{"main.main", "main.handle", "encoding/json.Marshal"}, {4, 4000, 1, 100}},
		{{"main.main", "main.handle", "example.com/deep/path/cache.(*Cache).Put"},
		 {1, 1000, 9, 900}},
		{{"main.main"}, {1, 10, 1, 10}},
	};
	const struct top_subject info = fake_process(42, "api");
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	assert_int_equal(top_model_new(&f->model, NULL), 0);
	fake_add(f->model, &info, 1, samples, 3);
	fake_add(f->model, &info, 2, samples, 3);
	f->ui = (struct top_ui){.unit = TOP_BYTES,
				.interval_ns = 2 * NS_PER_SEC,
				.columns = 100,
				.lines = 24,
				.clock = "12:03:04"};
	f->ui.status = (struct top_status){.looked = true, .intervals = 2, .profiled = 1};
	f->ui.status.cpu_share = 0.004;
	fixture_table(f);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	top_ui_release(&f->ui);
	top_model_free(f->model);
	free(f);
	return 0;
}

static void every_window_is_filled_and_never_overrun(void **state)
{
	static const size_t columns[] = {1,  5,	 12, 14, 20, 30, 39,  40,
					 45, 59, 60, 71, 72, 80, 120, 250};
	static const size_t lines[] = {2, 3, 4, 5, 6, 8, 9, 10, 13, 14, 15, 24, 40};
	struct fixture *f = *state;

	for (size_t c = 0; c < ARRAY_SIZE(columns); c++) {
		for (size_t l = 0; l < ARRAY_SIZE(lines); l++) {
			for (int colour = 0; colour < 2; colour++) {
				f->ui.columns = columns[c];
				f->ui.lines = lines[l];
				f->ui.colour = colour;
				fixture_table(f);
				assert_int_equal(draw(&f->ui).coloured, colour);
				f->ui.help = true;
				(void)draw(&f->ui);
				f->ui.help = false;
			}
		}
	}
}

static void the_table_has_rates_shares_names_and_places(void **state)
{
	struct fixture *f = *state;
	struct grid g = draw(&f->ui);

	assert_true(has(&g, "sonde top  12:03:04  every 2s  using 0.4% of a CPU"));
	assert_true(has(&g, "1 process in 1 service: 1010B live, 4.89kB/s and 6 objects/s"));
	assert_non_null(strstr(g.cells[3], "FLAT/s  FLAT%      CUM/s   CUM%  FUNCTION"));
	assert_non_null(strstr(g.cells[3], "WHERE"));
	assert_non_null(strstr(g.cells[4], ">    3.91kB 79.84%     3.91kB 79.84%  encoding/json."));
	assert_non_null(strstr(g.cells[4], "api"));
	assert_true(has(&g, "c/a/l cpu/alloc/live"));
}

static void narrow_windows_keep_values_and_names(void **state)
{
	struct fixture *f = *state;
	struct grid g;

	f->ui.columns = 40;
	f->ui.lines = 15;
	fixture_table(f);
	g = draw(&f->ui);
	assert_true(has(&g, "    FLAT/s      CUM/s  FUNCTION"));
	assert_false(has(&g, "WHERE"));
	/* The path goes first, then the beginning. */
	assert_true(has(&g, "json.Marshal"));
	assert_true(has(&g, "~he.(*Cache).Put"));
}

static void keys_choose_what_is_shown(void **state)
{
	struct fixture *f = *state;
	struct grid g;

	(void)press(f, 'l');
	g = draw(&f->ui);
	assert_true(has(&g, "Live heap by function, flat first"));
	assert_string_equal(f->ui.table.rows[0].name, "example.com/deep/path/cache.(*Cache).Put");
	(void)press(f, 'o');
	assert_int_equal(f->ui.table.rows[0].flat, 9);
	(void)press(f, 's');
	assert_string_equal(f->ui.table.rows[0].name, "main.main");
	(void)press(f, 'g');
	assert_string_equal(f->ui.table.rows[0].name, "api");
	(void)press(f, 'g');
	assert_string_equal(f->ui.table.rows[0].name, "42 api");
	(void)press(f, 'g');
	(void)press(f, 'a');
	g = draw(&f->ui);
	assert_true(has(&g, "Allocations by function, cum first"));
	assert_int_equal(press(f, 'q'), TOP_DO_QUIT);
	assert_int_equal(press(f, 'x'), 0);
}

static void enter_shows_callers_and_escape_goes_back(void **state)
{
	struct fixture *f = *state;
	struct grid g;

	(void)press(f, TOP_KEY_ENTER);
	g = draw(&f->ui);
	assert_true(has(&g, "callers of json.Marshal"));
	assert_true(has(&g, "CALLER"));
	assert_string_equal(f->ui.table.rows[0].name, "main.handle");
	(void)press(f, TOP_KEY_ENTER);
	(void)press(f, TOP_KEY_ENTER);
	/* Nobody calls main.main: there is no way on. */
	assert_string_equal(f->ui.table.rows[0].name, "(nobody)");
	assert_int_equal(press(f, TOP_KEY_ENTER), 0);
	(void)press(f, TOP_KEY_ESCAPE);
	assert_string_equal(f->ui.table.rows[0].name, "encoding/json.Marshal");
	assert_int_equal(press(f, TOP_KEY_ESCAPE), 0);
	(void)press(f, 'g');
	(void)press(f, TOP_KEY_ENTER);
	g = draw(&f->ui);
	assert_true(has(&g, "by function, flat first, service api"));
	(void)press(f, TOP_KEY_ESCAPE);
	assert_int_equal(f->ui.group, TOP_SERVICES);
}

static void the_filter_is_typed_and_taken_back(void **state)
{
	struct fixture *f = *state;
	struct grid g;

	(void)press(f, '/');
	for (const char *c = "JSOnx"; *c; c++)
		(void)press(f, *c);
	g = draw(&f->ui);
	assert_true(has(&g, "Filter: JSOnx_"));
	assert_true(has(&g, "Nothing matches 'JSOnx'."));
	(void)press(f, TOP_KEY_BACKSPACE);
	assert_int_equal(f->ui.table.len, 1);
	/* In a filter q is a letter. */
	assert_false(press(f, 'q') & TOP_DO_QUIT);
	(void)press(f, TOP_KEY_BACKSPACE);
	(void)press(f, TOP_KEY_ENTER);
	g = draw(&f->ui);
	assert_true(has(&g, "matching 'JSOn': 1 of 4"));
	(void)press(f, '/');
	(void)press(f, 'U' & 0x1f);
	assert_int_equal(f->ui.table.len, 4);
	(void)press(f, TOP_KEY_ESCAPE);
	assert_string_equal(f->ui.filter, "JSOn");
	(void)press(f, TOP_KEY_ESCAPE);
	assert_int_equal(f->ui.table.len, 4);
	(void)press(f, '/');
	for (int i = 0; i < 200; i++)
		(void)press(f, 'y');
	assert_int_equal(strlen(f->ui.filter), sizeof(f->ui.filter) - 1);
	(void)draw(&f->ui);
}

static void the_selection_stays_with_its_name(void **state)
{
	struct fixture *f = *state;

	(void)press(f, TOP_KEY_DOWN);
	assert_string_equal(f->ui.table.rows[f->ui.selected].name,
			    "example.com/deep/path/cache.(*Cache).Put");
	/* As a refresh would do when others grow. */
	f->ui.by_total = true;
	fixture_table(f);
	assert_int_equal(f->ui.selected, 3);
	(void)press(f, TOP_KEY_HOME);
	f->ui.by_total = false;
	fixture_table(f);
	assert_int_equal(f->ui.selected, 0);
}

static void scrolling_shows_the_selected_row(void **state)
{
	struct fixture *f = *state;
	struct grid g;

	f->ui.lines = 6;
	f->ui.colour = true;
	fixture_table(f);
	assert_int_equal(top_screen_rows(&f->ui), 3);
	(void)press(f, TOP_KEY_END);
	assert_int_equal(f->ui.offset, 1);
	g = draw(&f->ui);
	assert_non_null(strstr(g.cells[4], ">"));
	assert_true(g.reversed[4]);
	(void)press(f, TOP_KEY_PAGE_UP);
	assert_int_equal(f->ui.selected, 0);
	assert_int_equal(f->ui.offset, 0);
	(void)press(f, TOP_KEY_PAGE_DOWN);
	(void)press(f, TOP_KEY_PAGE_DOWN);
	assert_int_equal(f->ui.selected, 3);
	f->ui.max_rows = 2;
	fixture_table(f);
	assert_int_equal(f->ui.selected, 1);
}

static void pause_and_intervals_are_for_the_loop(void **state)
{
	struct fixture *f = *state;
	struct grid g;

	assert_true(press(f, 'p') & TOP_DO_PAUSE);
	g = draw(&f->ui);
	assert_true(has(&g, "PAUSED"));
	assert_true(press(f, '+') & TOP_DO_INTERVAL);
	assert_int_equal(f->ui.interval_ns, 5 * NS_PER_SEC);
	(void)press(f, '-');
	(void)press(f, '-');
	(void)press(f, '-');
	assert_int_equal(f->ui.interval_ns, 500 * NS_PER_MS);
	assert_int_equal(press(f, '-'), 0);
	(void)press(f, '?');
	g = draw(&f->ui);
	assert_true(has(&g, "sonde top keys"));
	/* It goes back, and does nothing else. */
	assert_int_equal(press(f, 'q'), TOP_DO_DRAW);
	assert_false(f->ui.help);
}

static void the_foot_says_what_is_missing(void **state)
{
	struct fixture *f = *state;
	struct top_status *s = &f->ui.status;
	struct grid g;

	s->not_profiled = 3;
	s->n_refused = 2;
	(void)snprintf(s->refused[0].reason, sizeof(s->refused[0].reason), "profiling is off");
	s->refused[0].processes = 2;
	(void)snprintf(s->refused[1].reason, sizeof(s->refused[1].reason), "no \033[permission");
	s->refused[1].processes = 1;
	s->not_go = 200;
	s->lost_records = 7;
	s->slow = 1;
	f->ui.columns = 150;
	g = draw(&f->ui);
	assert_true(has(&g, "3 not profiled: profiling is off (2), no ?[permission (1)"));
	assert_true(has(&g, "7 records lost"));
	assert_true(has(&g, "200 not Go"));
	assert_true(has(&g, "1 not responding"));
	(void)snprintf(s->trouble, sizeof(s->trouble), "there is trouble");
	g = draw(&f->ui);
	assert_true(has(&g, "there is trouble | 3 not profiled"));
}

static void cpu_time_has_a_key_and_is_in_cores(void **state)
{
	static const struct fake_sample burn = {{"main", "burn"}, {100, 1500000000}};
	const struct top_subject info = fake_process(7, "native");
	struct fixture *f = *state;
	struct top_status *s = &f->ui.status;
	struct grid g;

	s->samples = s->sampled = true;
	s->cpus = 4;
	fake_add_cpu(f->model, &info, 1, &burn, 1);
	/* Whatever was chosen before, time is no object. */
	(void)press(f, 'o');
	(void)press(f, 'c');
	g = draw(&f->ui);
	assert_true(has(&g, "CPU by function, flat first"));
	assert_true(has(&g, "0.75 of 4 cores | 1 process in 1 service:"));
	assert_true(has(&g, "CORES  FLAT%  CUM CORES"));
	assert_true(has(&g, "0.750   100%      0.750   100%  burn"));
	(void)press(f, 'g');
	g = draw(&f->ui);
	assert_true(has(&g, "native"));
	(void)press(f, 'l');
	g = draw(&f->ui);
	assert_false(has(&g, "native"));
}

static void without_samples_the_foot_and_the_table_say_why(void **state)
{
	struct fixture *f = *state;
	struct grid g;

	(void)err_lack(&f->ui.status.no_samples, 0, ERR_CAUSE_PRIVILEGE, "run sonde as root",
		       "no CPU samples: not enough permissions");
	g = draw(&f->ui);
	assert_true(has(&g, "encoding/json.Marshal"));
	assert_true(has(&g, "no CPU samples: not enough permissions; run sonde as root"));
	assert_false(has(&g, " cores "));
	(void)press(f, 'c');
	g = draw(&f->ui);
	assert_true(has(&g, "There are no CPU samples: not enough permissions"));
}

static void values_and_shares_fit_their_columns(void **state)
{
	(void)state;
	assert_string_equal(top_value(1, TOP_LIVE, TOP_BYTES).text, "1B");
	assert_string_equal(top_value(1234567890, TOP_LIVE, TOP_OBJECTS).text, "1234567890");
	assert_string_equal(top_value(123456789012, TOP_LIVE, TOP_OBJECTS).text, "1.235e+11");
	assert_in_range(strlen(top_value(INT64_MAX, TOP_LIVE, TOP_BYTES).text), 1, TOP_VALUE_CELLS);
	assert_string_equal(top_value(1250000000, TOP_CPU, TOP_BYTES).text, "1.250");
	assert_string_equal(top_value(500000, TOP_CPU, TOP_OBJECTS).text, "0.001");
	assert_in_range(strlen(top_value(INT64_MAX, TOP_CPU, TOP_BYTES).text), 1, TOP_VALUE_CELLS);
	assert_string_equal(top_share(1, 3).text, "33.33%");
	assert_string_equal(top_share(1, 80000).text, "<0.01%");
	for (int64_t total = 1; total < INT64_MAX / 10; total *= 7)
		assert_in_range(strlen(top_share(1, total).text), 1, TOP_SHARE_CELLS);
}

static void an_empty_table_says_why(void **state)
{
	struct top_view view = {.kind = TOP_ALLOC};
	struct top_status s = {};
	struct top_table t = {};
	char text[160];

	(void)state;
	top_describe_nothing(&view, &s, &t, text, sizeof(text));
	assert_string_equal(text, "Scanning processes...");
	s.looked = true;
	top_describe_nothing(&view, &s, &t, text, sizeof(text));
	assert_non_null(strstr(text, "No Go process"));
	s.sums.processes = 1;
	s.measuring = true;
	top_describe_nothing(&view, &s, &t, text, sizeof(text));
	assert_non_null(strstr(text, "second collection"));
	s.measuring = false;
	top_describe_nothing(&view, &s, &t, text, sizeof(text));
	assert_string_equal(text, "No recent allocations.");
}

static int decode(const char *bytes, bool at_end, size_t want_used)
{
	int key = -1;

	assert_int_equal(top_key_decode((const uint8_t *)bytes, strlen(bytes), at_end, &key),
			 want_used);
	return key;
}

static void bytes_of_the_terminal_are_keys(void **state)
{
	(void)state;
	assert_int_equal(decode("ab", false, 1), 'a');
	assert_int_equal(decode("\r", false, 1), TOP_KEY_ENTER);
	assert_int_equal(decode("\x7f", false, 1), TOP_KEY_BACKSPACE);
	assert_int_equal(decode("\033[A", false, 3), TOP_KEY_UP);
	assert_int_equal(decode("\033OBx", false, 3), TOP_KEY_DOWN);
	assert_int_equal(decode("\033[5~", false, 4), TOP_KEY_PAGE_UP);
	assert_int_equal(decode("\033[6;2~", false, 6), TOP_KEY_NONE);
	assert_int_equal(decode("\033[1;5H", false, 6), TOP_KEY_HOME);
	assert_int_equal(decode("\033[F", false, 3), TOP_KEY_END);
	assert_int_equal(decode("\033[99999999999999~", false, 17), TOP_KEY_NONE);
	/* The rest may be under way. */
	(void)decode("\033", false, 0);
	(void)decode("\033[", false, 0);
	(void)decode("\033[5", false, 0);
	assert_int_equal(decode("\033", true, 1), TOP_KEY_ESCAPE);
	assert_int_equal(decode("\033q", false, 1), TOP_KEY_ESCAPE);
	assert_int_equal(decode("\033[5", true, 3), TOP_KEY_NONE);
	/* But not for ever. */
	assert_int_equal(decode("\033[111111111111111111", false, 20), TOP_KEY_NONE);
}

#define test(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(every_window_is_filled_and_never_overrun),
		test(the_table_has_rates_shares_names_and_places),
		test(narrow_windows_keep_values_and_names),
		test(keys_choose_what_is_shown),
		test(enter_shows_callers_and_escape_goes_back),
		test(the_filter_is_typed_and_taken_back),
		test(the_selection_stays_with_its_name),
		test(scrolling_shows_the_selected_row),
		test(pause_and_intervals_are_for_the_loop),
		test(the_foot_says_what_is_missing),
		test(cpu_time_has_a_key_and_is_in_cores),
		test(without_samples_the_foot_and_the_table_say_why),
		cmocka_unit_test(values_and_shares_fit_their_columns),
		cmocka_unit_test(an_empty_table_says_why),
		cmocka_unit_test(bytes_of_the_terminal_are_keys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
