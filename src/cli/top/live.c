/* src/cli/top/live.c: the terminal of `sonde top`: raw mode, signals, main loop; see live.h. */
#include "cli/top/live.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"

/* Alternate screen, no cursor, no wrapping; and back. */
#define LIVE_BEGIN "\033[?1049h\033[?25l\033[?7l"
#define LIVE_END "\033[0m\033[?7h\033[?25h\033[?1049l"
#define LIVE_CLEAR "\033[2J"
/* How long to wait for the rest of a key's bytes. */
#define LIVE_KEY_MS 50
/* At first, redraw as data arrives. */
#define LIVE_EARLY_MS 250

struct live {
	struct top_feed *feed;
	struct top_ui *ui;
	int signals;
	struct termios before;
	bool raw;
	uint8_t keys[64];
	size_t n_keys;
	bool over;
	unsigned int todo;
};

int top_signals_open(struct err *err)
{
	static const int wanted[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT, SIGWINCH};
	sigset_t set;
	int fd;

	(void)sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
		(void)sigaddset(&set, wanted[i]);
	(void)pthread_sigmask(SIG_BLOCK, &set, NULL);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? err_set(err, -errno, "cannot wait for signals: %s", strerror(errno)) : fd;
}

int top_signals_take(int signals)
{
	struct signalfd_siginfo info;

	return read(signals, &info, sizeof(info)) == sizeof(info) ? (int)info.ssi_signo : 0;
}

/* Also called after another program had the terminal. */
static int live_begin(struct live *live, struct err *err)
{
	struct termios raw;
	int r;

	if (!live->raw && tcgetattr(STDIN_FILENO, &live->before) < 0)
		return err_set(err, -errno, "cannot read the terminal's settings: %s",
			       strerror(errno));
	raw = live->before;
	/* Ctrl-C and Ctrl-Z still send their signals. */
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO | IEXTEN);
	raw.c_cc[VMIN] = 1;
	raw.c_cc[VTIME] = 0;
	live->raw = true;
	if (tcsetattr(STDIN_FILENO, TCSANOW, &raw) < 0)
		return err_set(err, -errno, "cannot change the terminal's settings: %s",
			       strerror(errno));
	r = io_write_full(STDOUT_FILENO, LIVE_BEGIN, strlen(LIVE_BEGIN));
	live->todo |= TOP_DO_CLEAR | TOP_DO_DRAW;
	return r < 0 ? err_set(err, r, "cannot write to the terminal: %s", strerror(-r)) : 0;
}

static void live_end(struct live *live)
{
	if (!live->raw)
		return;
	live->raw = false;
	(void)io_write_full(STDOUT_FILENO, LIVE_END, strlen(LIVE_END));
	/* Discard pending input, so it does not reach the shell. */
	(void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &live->before);
}

static void live_measure(struct live *live)
{
	struct winsize ws = {};

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &ws) < 0 || !ws.ws_col || !ws.ws_row)
		ws = (struct winsize){.ws_col = 80, .ws_row = 24};
	live->ui->columns = ws.ws_col;
	live->ui->lines = ws.ws_row;
	/* The selection may now be off screen. */
	live->todo |= TOP_DO_TABLE | TOP_DO_CLEAR | TOP_DO_DRAW;
}

static int live_table(struct live *live, struct err *err)
{
	const struct top_view view = top_ui_view(live->ui);
	struct top_table table;
	int r = top_feed_table(live->feed, &view, &table, err);

	if (r < 0)
		return r;
	top_ui_take_table(live->ui, &table);
	return 0;
}

static int live_refresh(struct live *live, struct err *err)
{
	time_t now = time(NULL);
	struct tm tm;

	if (live->ui->paused)
		return 0;
	if (localtime_r(&now, &tm))
		(void)strftime(live->ui->clock, sizeof(live->ui->clock), "%H:%M:%S", &tm);
	live->todo |= TOP_DO_TABLE | TOP_DO_DRAW;
	return top_feed_status(live->feed, &live->ui->status, err);
}

static int live_draw(struct live *live, struct err *err)
{
	_cleanup_(buf_release) struct buf out = {};
	int r = live->todo & TOP_DO_CLEAR ? buf_append_str(&out, LIVE_CLEAR) : 0;

	if (r == 0)
		r = top_screen_draw(live->ui, &out);
	if (r < 0)
		return err_oom(err);
	r = io_write_full(STDOUT_FILENO, out.data, out.len);
	return r < 0 ? err_set(err, r, "cannot write to the terminal: %s", strerror(-r)) : 0;
}

/* Work to do before the next key. */
static int live_apply(struct live *live, struct err *err)
{
	unsigned int todo = live->todo;
	int r = 0;

	if (todo & TOP_DO_QUIT)
		live->over = true;
	if (todo & TOP_DO_PAUSE)
		top_feed_freeze(live->feed, live->ui->paused);
	if (todo & TOP_DO_INTERVAL)
		r = top_feed_set_interval(live->feed, live->ui->interval_ns, err);
	if (r == 0 && (todo & TOP_DO_TABLE))
		r = live_table(live, err);
	live->todo &= TOP_DO_DRAW | TOP_DO_CLEAR;
	return r;
}

static int live_do(struct live *live, struct err *err)
{
	int r = live_apply(live, err);

	if (r == 0 && !live->over && (live->todo & TOP_DO_DRAW))
		r = live_draw(live, err);
	live->todo = 0;
	return r;
}

/* at_end: nothing followed for a while. */
static int live_decode(struct live *live, bool at_end, struct err *err)
{
	size_t used;
	int key, r = 0;

	while (r == 0 && !live->over &&
	       (used = top_key_decode(live->keys, live->n_keys, at_end, &key)) > 0) {
		live->n_keys -= used;
		memmove(live->keys, live->keys + used, live->n_keys);
		live->todo |= top_ui_press(live->ui, key);
		r = live_apply(live, err);
	}
	return r;
}

static int live_read_keys(struct live *live, struct err *err)
{
	ssize_t n =
		read(STDIN_FILENO, live->keys + live->n_keys, sizeof(live->keys) - live->n_keys);

	if (n > 0) {
		live->n_keys += (size_t)n;
		return live_decode(live, false, err);
	}
	/* The terminal is gone. */
	if (n == 0 || (errno != EINTR && errno != EAGAIN))
		live->over = true;
	return 0;
}

static int live_signal(struct live *live, struct err *err)
{
	switch (top_signals_take(live->signals)) {
	case 0:
		return 0;
	case SIGWINCH:
		live_measure(live);
		return 0;
	case SIGTSTP:
		live_end(live);
		(void)raise(SIGSTOP);
		return live_begin(live, err);
	case SIGCONT:
		live_measure(live);
		return live_begin(live, err);
	default:
		live->over = true;
		return 0;
	}
}

static int live_timeout(const struct live *live)
{
	const struct top_status *s = &live->ui->status;

	if (live->n_keys)
		return LIVE_KEY_MS;
	return !live->ui->paused && (s->measuring || !s->looked) && s->intervals < 3 ? LIVE_EARLY_MS
										     : -1;
}

static int live_step(struct live *live, struct err *err)
{
	struct pollfd fds[] = {
		{.fd = STDIN_FILENO, .events = POLLIN},
		{.fd = live->signals, .events = POLLIN},
		{.fd = top_feed_fd(live->feed), .events = POLLIN},
	};
	int n = poll(fds, ARRAY_SIZE(fds), live_timeout(live));
	int r = 0;

	if (n < 0 && errno != EINTR)
		return err_set(err, -errno, "cannot wait for keys: %s", strerror(errno));
	if (n == 0 && live->n_keys)
		r = live_decode(live, true, err);
	else if (n == 0)
		r = live_refresh(live, err);
	if (n > 0 && fds[0].revents)
		r = live_read_keys(live, err);
	if (n > 0 && r == 0 && fds[1].revents)
		r = live_signal(live, err);
	if (n > 0 && r == 0 && fds[2].revents) {
		top_feed_acknowledge(live->feed);
		r = live_refresh(live, err);
	}
	return r < 0 ? r : live_do(live, err);
}

int top_live_run(struct top_feed *feed, struct top_ui *ui, int signals, struct err *err)
{
	_cleanup_(live_end) struct live live = {.feed = feed, .ui = ui, .signals = signals};
	int r = live_refresh(&live, err);

	if (r == 0)
		r = live_begin(&live, err);
	if (r == 0) {
		live_measure(&live);
		r = live_do(&live, err);
	}
	while (r == 0 && !live.over && !ui->status.ended)
		r = live_step(&live, err);
	return r;
}
