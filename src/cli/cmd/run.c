/*
 * src/cli/cmd/run.c: `sonde run`: collects, stores and serves the profiles of this machine until
 * stopped.
 *
 * The store, the agent and the server work in their own threads; this one waits for a signal and
 * logs.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/agent.h"
#include "agent/sinks/sinks.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/cmd/run_caps.h"
#include "cli/data_dir.h"
#include "cli/go/rate.h"
#include "cli/log.h"
#include "cli/options.h"
#include "java/recorder/note.h"
#include "proc/caps.h"
#include "server/server.h"
#include "store/sqlite/sqlite.h"
#include "store/store.h"

#define RUN_MIN_INTERVAL_NS (100 * NS_PER_MS)
#define RUN_MAX_INTERVAL_NS (3600 * NS_PER_SEC)
#define RUN_MAX_GOROUTINES_NS (86400 * NS_PER_SEC)
#define RUN_MIN_DISK_BYTES ((uint64_t)16 << 20)
#define RUN_MAX_HZ 999
#define RUN_CHECK_NS (1 * NS_PER_SEC)
/* Time limits for a client to send a request and to read the response. */
#define RUN_REQUEST_NS (30 * NS_PER_SEC)
#define RUN_ANSWER_NS (60 * NS_PER_SEC)
/* Per service and day. */
#define RUN_MAX_LABELSETS 100000
/* Active series of metrics. */
#define RUN_MAX_SERIES_OF_OWNER 20000
#define RUN_MAX_SERIES 40000

enum {
	RUN_LISTEN,
	RUN_DATA_DIR,
	RUN_INTERVAL,
	RUN_RETENTION,
	RUN_MAX_DISK,
	RUN_SPOOL_MAX,
	RUN_CPU_HZ,
	RUN_CPU_LINES,
	RUN_OFFCPU,
	RUN_GO_HEAP,
	RUN_GOROUTINES,
	RUN_OOM_WATCH,
	RUN_JAVA,
	RUN_ASYNC,
	RUN_KEEP_RATE,
	RUN_VERBOSE,
	RUN_N,
};

static const struct cli_option run_options[RUN_N] = {
	[RUN_LISTEN] = {.name = "listen",
			.arg = "ADDRESS",
			.help = "address of the web page and API (default 127.0.0.1:7780)"},
	[RUN_DATA_DIR] = {.name = "data-dir", .arg = "DIR", .help = DATA_DIR_HELP},
	[RUN_INTERVAL] = {.name = "interval",
			  .arg = "DURATION",
			  .help = "collection interval (default 15s)"},
	[RUN_RETENTION] = {.name = "retention",
			   .arg = "DURATION",
			   .help = "how long to keep profiles (default 7d)"},
	[RUN_MAX_DISK] =
		{.name = "max-disk",
		 .arg = "SIZE",
		 .help = "disk space for profiles (default 2G); the oldest are deleted first"},
	[RUN_SPOOL_MAX] = {.name = "spool-max",
			   .arg = "SIZE",
			   .help = "disk space for data that waits for a remote sink (default "
				   "512M)"},
	[RUN_CPU_HZ] = {.name = "cpu-hz",
			.arg = "N",
			.help = "CPU samples per second per CPU (default 99); 0 turns them off"},
	[RUN_CPU_LINES] = {.name = "cpu-lines",
			   .help = "look up source lines and inlined calls of native code"},
	[RUN_OFFCPU] = {.name = "offcpu",
			.arg = "DURATION",
			.help = "also profile waits of threads at least this long"},
	[RUN_GO_HEAP] =
		{.name = "go-heap",
		 .arg = "MODE",
		 .help = "enabled (default), disabled, or force: also if the program has it off"},
	[RUN_GOROUTINES] = {.name = "goroutine-interval",
			    .arg = "DURATION",
			    .help = "goroutine collection interval (default 60s); 0 turns it off"},
	[RUN_OOM_WATCH] = {.name = "oom-watch",
			   .arg = "PERCENT",
			   .help = "snapshot Go processes on OOM kill or at this share of their "
				   "limit (default 90); 0: off"},
	[RUN_JAVA] = {.name = "java",
		      .help = "also profile allocations and locks of Java processes"},
	[RUN_ASYNC] = {.name = "async-profiler",
		       .arg = "FILE",
		       .help = "with --java: load this libasyncProfiler.so and use it instead"},
	[RUN_KEEP_RATE] = {.name = "keep-rate",
			   .help = "with --go-heap force: leave sampling on at exit"},
	[RUN_VERBOSE] = {.name = "verbose", .help = "log more", .letter = 'v'},
};

/* data_dir_path() handles SONDE_DATA_DIR. */
static const char *const run_variables[RUN_N] = {
	[RUN_LISTEN] = "SONDE_LISTEN",
	[RUN_INTERVAL] = "SONDE_INTERVAL",
	[RUN_RETENTION] = "SONDE_RETENTION",
	[RUN_MAX_DISK] = "SONDE_MAX_DISK",
	[RUN_SPOOL_MAX] = "SONDE_SPOOL_MAX",
	[RUN_GO_HEAP] = "SONDE_GO_HEAP",
	[RUN_CPU_HZ] = "SONDE_CPU_HZ",
	[RUN_CPU_LINES] = "SONDE_CPU_LINES",
	[RUN_OFFCPU] = "SONDE_OFFCPU",
	[RUN_KEEP_RATE] = "SONDE_KEEP_RATE",
	[RUN_VERBOSE] = "SONDE_VERBOSE",
	[RUN_OOM_WATCH] = "SONDE_OOM_WATCH",
	[RUN_GOROUTINES] = "SONDE_GOROUTINE_INTERVAL",
	[RUN_JAVA] = "SONDE_JAVA",
	[RUN_ASYNC] = "SONDE_ASYNC_PROFILER",
};

struct run_config {
	const char *listen;
	char *data_dir;
	uint64_t retention_ns;
	uint64_t max_disk;
	struct agent_config agent;
	bool verbose;
};

static void run_config_release(struct run_config *c)
{
	free(c->data_dir);
}

/* A value and its origin, for messages. */
struct run_value {
	const char *text;
	char name[32];
};

static struct run_value run_value(const struct cli_args *args, int option, const char *fallback)
{
	struct run_value v = {.text = args->values[option]};
	const char *variable = getenv(run_variables[option]);

	(void)snprintf(v.name, sizeof(v.name), "--%s", run_options[option].name);
	if (!v.text && variable && variable[0]) {
		v.text = variable;
		(void)snprintf(v.name, sizeof(v.name), "%s", run_variables[option]);
	}
	if (!v.text)
		v.text = fallback;
	return v;
}

/* A switch is on by its option, or by a variable other than 0. */
static bool run_switch(const struct cli_args *args, int option)
{
	return strcmp(run_value(args, option, "0").text, "0") != 0;
}

static int run_parse_size(const struct run_value *v, uint64_t *ret_bytes, struct err *err)
{
	static const char units[] = "KMGT";
	uint64_t number, bytes;
	const char *unit;
	char *end;

	errno = 0;
	number = strtoull(v->text, &end, 10);
	if (errno || end == v->text || v->text[0] == '-' || v->text[0] == '+')
		return err_set(err, -EINVAL, "%s must be a size such as 500M or 2G, not '%s'",
			       v->name, v->text);
	unit = *end ? strchr(units, *end & ~0x20) : NULL;
	if ((*end && (!unit || end[1])) ||
	    __builtin_mul_overflow(number, unit ? 1ULL << (10 * (unit - units + 1)) : 1, &bytes))
		return err_set(err, -EINVAL, "%s must be a size such as 500M or 2G, not '%s'",
			       v->name, v->text);
	if (bytes < RUN_MIN_DISK_BYTES)
		return err_set(err, -EINVAL, "%s must be at least 16M", v->name);
	*ret_bytes = bytes;
	return 0;
}

static int run_parse_mode(const struct run_value *v, enum agent_go_heap *ret_mode, struct err *err)
{
	static const char *const names[] = {
		[AGENT_GO_HEAP_ENABLED] = "enabled",
		[AGENT_GO_HEAP_DISABLED] = "disabled",
		[AGENT_GO_HEAP_FORCE] = "force",
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (strcmp(v->text, names[i]) == 0) {
			*ret_mode = (enum agent_go_heap)i;
			return 0;
		}
	}
	return err_set(err, -EINVAL, "%s must be enabled, disabled or force, not '%s'", v->name,
		       v->text);
}

static int run_parse_cpu(const struct cli_args *args, struct agent_config *c, struct err *err)
{
	struct run_value hz = run_value(args, RUN_CPU_HZ, "99");
	struct run_value offcpu = run_value(args, RUN_OFFCPU, NULL);
	uint64_t number = 0;
	int r = 0;

	if (strcmp(hz.text, "0") != 0)
		r = cli_parse_number(hz.name, hz.text, RUN_MAX_HZ, &number, err);
	if (r == 0 && offcpu.text)
		r = cli_parse_duration(offcpu.name, offcpu.text, &c->offcpu_min_ns, err);
	c->cpu_hz = (unsigned int)number;
	c->cpu_lines = run_switch(args, RUN_CPU_LINES);
	return r;
}

static int run_parse_oom(const struct cli_args *args, struct agent_config *c, struct err *err)
{
	struct run_value percent = run_value(args, RUN_OOM_WATCH, "90");
	uint64_t number = 0;
	int r = 0;

	if (strcmp(percent.text, "0") != 0)
		r = cli_parse_number(percent.name, percent.text, 100, &number, err);
	c->oom_percent = (unsigned int)number;
	return r;
}

/* Parsed after the interval, which is its minimum. */
static int run_parse_goroutines(const struct cli_args *args, struct agent_config *c,
				struct err *err)
{
	struct run_value v = run_value(args, RUN_GOROUTINES, "60s");
	uint64_t ns = 0;
	int r;

	if (strcmp(v.text, "0") == 0 || strcmp(v.text, "off") == 0)
		return 0;
	r = cli_parse_duration(v.name, v.text, &ns, err);
	if (r == 0 && ns > RUN_MAX_GOROUTINES_NS)
		r = err_set(err, -EINVAL, "%s must be at most 24h", v.name);
	if (r == 0)
		c->goroutine_interval_ns = MAX(ns, c->interval_ns);
	return r;
}

static int run_parse_java(const struct cli_args *args, struct agent_config *c, struct err *err)
{
	/* A switch has no value. */
	struct run_value v = run_value(args, RUN_JAVA, "off");

	if (args->values[RUN_JAVA] || strcmp(v.text, "on") == 0)
		c->java = true;
	else if (strcmp(v.text, "off") != 0)
		return err_set(err, -EINVAL, "%s must be on or off, not '%s'", v.name, v.text);
	c->java_async = run_value(args, RUN_ASYNC, NULL).text;
	if (c->java_async && !c->java)
		return err_set(err, -EINVAL, "--async-profiler requires --java");
	return 0;
}

static int run_parse(const struct cli_args *args, struct run_config *c, struct err *err)
{
	struct run_value interval = run_value(args, RUN_INTERVAL, "15s");
	struct run_value retention = run_value(args, RUN_RETENTION, "7d");
	struct run_value max_disk = run_value(args, RUN_MAX_DISK, "2G");
	struct run_value spool_max = run_value(args, RUN_SPOOL_MAX, "512M");
	struct run_value go_heap = run_value(args, RUN_GO_HEAP, "enabled");
	int r;

	c->listen = run_value(args, RUN_LISTEN, "127.0.0.1:7780").text;
	c->verbose = run_switch(args, RUN_VERBOSE);
	c->agent.keep_rate = run_switch(args, RUN_KEEP_RATE);
	r = data_dir_path(args->values[RUN_DATA_DIR], &c->data_dir, err);
	if (r == 0)
		r = cli_parse_duration(interval.name, interval.text, &c->agent.interval_ns, err);
	if (r == 0 && (c->agent.interval_ns < RUN_MIN_INTERVAL_NS ||
		       c->agent.interval_ns > RUN_MAX_INTERVAL_NS))
		r = err_set(err, -EINVAL, "%s must be between 100ms and 1h", interval.name);
	if (r == 0)
		r = cli_parse_duration(retention.name, retention.text, &c->retention_ns, err);
	if (r == 0 && c->retention_ns > INT64_MAX)
		r = err_set(err, -EINVAL, "%s is too long", retention.name);
	if (r == 0)
		r = run_parse_size(&max_disk, &c->max_disk, err);
	if (r == 0)
		r = run_parse_size(&spool_max, &c->agent.spool_max_bytes, err);
	if (r == 0)
		r = run_parse_mode(&go_heap, &c->agent.go_heap, err);
	if (r == 0)
		r = run_parse_cpu(args, &c->agent, err);
	if (r == 0)
		r = run_parse_oom(args, &c->agent, err);
	if (r == 0)
		r = run_parse_goroutines(args, &c->agent, err);
	if (r == 0)
		r = run_parse_java(args, &c->agent, err);
	if (r == 0 && c->agent.keep_rate && c->agent.go_heap != AGENT_GO_HEAP_FORCE)
		r = err_set(err, -EINVAL, "--keep-rate requires --go-heap force");
	c->agent.state_dir = c->data_dir;
	return r;
}

/* Blocks them in all threads started later; this one waits for them. */
static sigset_t run_block_signals(void)
{
	sigset_t stop;

	(void)sigemptyset(&stop);
	(void)sigaddset(&stop, SIGTERM);
	(void)sigaddset(&stop, SIGINT);
	(void)sigaddset(&stop, SIGHUP);
	(void)pthread_sigmask(SIG_BLOCK, &stop, NULL);
	(void)signal(SIGPIPE, SIG_IGN);
	return stop;
}

static int run_announce(const struct run_config *c, const struct server *server, struct err *err)
{
	const char *colon = strrchr(c->listen, ':');
	int host = colon ? (int)(colon - c->listen) : (int)strlen(c->listen);

	if (printf("sonde is ready: http://%.*s:%u/\n", host, c->listen, server_port(server)) < 0 ||
	    fflush(stdout) < 0)
		return err_set(err, -errno, "cannot write to stdout: %s", strerror(errno));
	log_event(LOG_INFO, "started", "data_dir", c->data_dir, "listen", c->listen, NULL);
	return 0;
}

/* Logs features that do not work, or not for all processes. */
static void run_tell_features(struct agent *agent)
{
	struct features features;

	agent_features(agent, &features);
	for (size_t i = 0; i < FEATURES_N; i++) {
		const struct features_row *f = &features.rows[i];

		if (features_is_missing(f))
			log_event(LOG_WARN, features_title(i), "feature", features_name(i), "state",
				  features_state_name(f->state), "reason", f->reason, "remedy",
				  f->remedy[0] ? f->remedy : "none", NULL);
	}
}

/* What was logged last. */
struct run_told {
	char trouble[sizeof(((struct agent_health *)0)->trouble)];
	char damage[sizeof(((struct store_status *)0)->damage)];
	char budget[sizeof(((struct store_status *)0)->budget)];
	bool clock_ahead;
};

static bool run_is_news(char *last, size_t size, const char *text)
{
	if (strcmp(text, last) == 0)
		return false;
	(void)snprintf(last, size, "%s", text);
	return true;
}

/* Seconds that pass, and counts that grow, are no news. */
static bool run_differs_by_numbers_only(const char *a, const char *b)
{
	static const char digits[] = "0123456789";

	for (;; a++, b++) {
		a += strspn(a, digits);
		b += strspn(b, digits);
		if (*a != *b || !*a)
			return *a == *b;
	}
}

static void run_report_store(struct store *store, struct run_told *told)
{
	struct store_status s = {0};
	char hours[32];

	store_status(store, &s);
	if (run_is_news(told->damage, sizeof(told->damage), s.damage) && s.damage[0])
		log_event(LOG_WARN, "damage", "reason", s.damage, NULL);
	if (run_is_news(told->budget, sizeof(told->budget), s.budget) && s.budget[0])
		log_event(LOG_WARN, "over budget", "reason", s.budget, NULL);
	if (told->clock_ahead == (s.clock_ahead_ns > 0))
		return;
	told->clock_ahead = s.clock_ahead_ns > 0;
	(void)snprintf(hours, sizeof(hours), "%lld",
		       (long long)(s.clock_ahead_ns / (int64_t)(3600 * NS_PER_SEC)));
	if (told->clock_ahead)
		log_event(LOG_WARN, "the clock jumped ahead", "hours", hours, "reason",
			  "no day is deleted by it until 24 hours confirm it", NULL);
	else
		log_event(LOG_WARN, "the clock is trusted again", NULL);
}

/* Logs changes of health since the last call. */
static void run_report(struct agent *agent, struct store *store, struct run_told *told)
{
	struct agent_health h;

	agent_health(agent, &h);
	if (!run_differs_by_numbers_only(told->trouble, h.trouble)) {
		(void)snprintf(told->trouble, sizeof(told->trouble), "%s", h.trouble);
		if (h.trouble[0])
			log_event(LOG_WARN, "trouble", "reason", h.trouble, NULL);
		else
			log_event(LOG_WARN, "recovered", NULL);
	}
	run_report_store(store, told);
}

static void run_wait(struct agent *agent, struct store *store, const sigset_t *stop)
{
	const struct timespec step = {.tv_sec = RUN_CHECK_NS / NS_PER_SEC};
	struct run_told told = {0};
	int signal_number;

	while ((signal_number = sigtimedwait(stop, NULL, &step)) < 0) {
		run_report(agent, store, &told);
		/* A disk that is full is the store's to tell. */
		(void)agent_save_names(agent, NULL);
	}
	(void)agent_save_names(agent, NULL);
	log_event(LOG_NOTICE, "stopping", "signal", strsignal(signal_number), NULL);
	/* A second signal means: do not wait for the rest. */
	(void)pthread_sigmask(SIG_UNBLOCK, stop, NULL);
}

/* Borrows the store. */
static int run_start_agent(const struct run_config *c, struct store *store,
			   struct agent **ret_agent, struct err *err)
{
	const struct agent_sink_configs configs = {.store = store};
	struct sink_row sinks[PIPELINE_MAX_SINKS];
	struct agent_parts parts = {.sinks = sinks};
	int r = agent_sinks_open(&configs, sinks, &parts.n_sinks, err);

	return r < 0 ? r : agent_start(&c->agent, &parts, ret_agent, err);
}

static void run_restore_in(const char *dir)
{
	char line[ERR_LINE_MAX], settled[16];
	struct err err = {};
	int r = go_rates_restore(dir, &err);

	(void)snprintf(settled, sizeof(settled), "%d", r);
	if (r < 0)
		log_event(LOG_WARN, "cannot restore rates forced by an earlier sonde", "reason",
			  err_describe(&err, r, line), NULL);
	else if (r > 0)
		log_event(LOG_INFO, "restored rates forced by an earlier sonde", "data_dir", dir,
			  "count", settled, NULL);
}

/* Restores rates that a killed sonde, an agent or another command, left in Go processes. */
static void run_restore_rates(const struct run_config *c)
{
	_cleanup_free_ char *usual = NULL;

	run_restore_in(c->data_dir);
	if (data_dir_path(NULL, &usual, NULL) == 0 && strcmp(usual, c->data_dir) != 0)
		run_restore_in(usual);
}

/* Whether we write into processes, or did before and have left something. */
static bool run_writes(const struct run_config *c)
{
	_cleanup_free_ char *usual = NULL;

	return c->agent.go_heap == AGENT_GO_HEAP_FORCE || go_rates_are_noted(c->data_dir) ||
	       (data_dir_path(NULL, &usual, NULL) == 0 && go_rates_are_noted(usual));
}

static int run_lock(const struct run_config *c, int *ret_lock, struct err *err)
{
	pid_t killed = 0;
	char pid[16];
	int r = data_dir_lock(c->data_dir, ret_lock, &killed, err);

	(void)snprintf(pid, sizeof(pid), "%d", (int)killed);
	/* Of some ends nobody can tell who meets them. */
	if (r == 0 && killed)
		log_event(LOG_WARN, "the last sonde was killed, or the machine went down", "pid",
			  pid, NULL);
	return r;
}

static int run_serve(const struct run_config *c, struct err *err)
{
	const struct store_sqlite_config store_config = {
		.dir = c->data_dir,
		.retention_ns = (int64_t)c->retention_ns,
		.max_bytes = c->max_disk,
		.max_labelsets = RUN_MAX_LABELSETS,
		.max_series_of_owner = RUN_MAX_SERIES_OF_OWNER,
		.max_series_in_all = RUN_MAX_SERIES,
	};
	struct server_config server_config = {
		.listen = c->listen,
		.interval_ns = c->agent.interval_ns,
		.request_ns = RUN_REQUEST_NS,
		.answer_ns = RUN_ANSWER_NS,
	};
	/* Released in reverse order: nobody loses what it borrows. */
	_cleanup_(data_dir_unlockp) int lock = -1;
	_cleanup_(store_closep) struct store *store = NULL;
	_cleanup_(agent_stopp) struct agent *agent = NULL;
	_cleanup_(server_stopp) struct server *server = NULL;
	sigset_t stop = run_block_signals();
	int r;

	r = data_dir_make(c->data_dir, err);
	if (r == 0)
		r = run_lock(c, &lock, err);
	if (r == 0)
		run_restore_rates(c);
	/* Before the first thread. */
	if (r == 0)
		r = proc_caps_keep(cmd_run_caps(&c->agent, c->listen), err);
	server_config.keep_caps = cmd_run_folder_caps(c->data_dir);
	if (r == 0)
		r = store_sqlite_open(&store_config, &store, err);
	if (r == 0)
		r = run_start_agent(c, store, &agent, err);
	if (r == 0)
		r = server_start(&server_config, agent, store, &server, err);
	/* This thread only waits from now on. */
	if (r == 0)
		r = proc_caps_keep(cmd_run_folder_caps(c->data_dir), err);
	/* The address comes last: whoever started us by hand looks for it. */
	if (r == 0)
		run_tell_features(agent);
	if (r == 0)
		r = run_announce(c, server, err);
	if (r == 0)
		run_wait(agent, store, &stop);
	return r;
}

/* A JVM that does not respond, or that someone else records, keeps what we put into it. */
static void run_tell_what_stays(const struct run_config *c)
{
	_cleanup_free_ struct java_note *notes = NULL;
	size_t n = 0;

	if (java_notes_read(c->agent.state_dir, &notes, &n, NULL) < 0)
		return;
	for (size_t i = 0; i < n; i++)
		cli_note("sonde's tmpfs is still mounted in the /tmp of process %d; the next "
			 "start of sonde removes it",
			 (int)notes[i].id.pid);
}

/* Every end has a line in the log; those by signals are log_fatal_signals()'s. */
static int run_end(int r, const struct err *err)
{
	int code = r < 0 ? cli_exit_code(r) : CLI_OK;
	char line[ERR_LINE_MAX], text[8];

	(void)snprintf(text, sizeof(text), "%d", code);
	if (r < 0)
		log_event(LOG_ERROR, "exiting", "reason", err_describe(err, r, line), "code", text,
			  NULL);
	else
		log_event(LOG_NOTICE, "stopped", "code", text, NULL);
	return code;
}

static int run_run(const struct cli_args *args)
{
	_cleanup_(run_config_release) struct run_config config = {};
	struct err err = {};
	int r = run_parse(args, &config, &err);

	if (r < 0)
		return cli_fail_usage("run", &err);
	if (config.verbose)
		log_set_level(LOG_INFO);
	r = cli_begin_many(run_writes(&config), &err);
	/* Not in the aides, which were forked just now. */
	log_fatal_signals();
	if (r == 0)
		r = run_serve(&config, &err);
	if (r == 0)
		run_tell_what_stays(&config);
	return run_end(r, &err);
}

const struct cli_command cmd_run = {
	.name = "run",
	.summary = "Profile this machine continuously and serve a web page (default)",
	.operands = "",
	.options = run_options,
	.n_options = ARRAY_SIZE(run_options),
	.notes =
		"Collects CPU profiles of every process; of Go processes also heap, goroutine,\n"
		"block and mutex profiles and runtime statistics. CPU profiles need root, or\n"
		"CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH; without them the\n"
		"rest still works. The port has no authentication: every user of this machine can\n"
		"read it.\n"
		"\n"
		"Every option can also be set in the environment: SONDE_LISTEN, SONDE_DATA_DIR,\n"
		"SONDE_INTERVAL, SONDE_RETENTION, SONDE_MAX_DISK, SONDE_CPU_HZ, SONDE_CPU_LINES,\n"
		"SONDE_OFFCPU, SONDE_GO_HEAP, SONDE_GOROUTINE_INTERVAL, SONDE_OOM_WATCH,\n"
		"SONDE_JAVA (on or off), SONDE_ASYNC_PROFILER, SONDE_KEEP_RATE, SONDE_VERBOSE.\n"
		"SONDE_PROFILING=disabled in a process's environment opts it out; SONDE_JAVA=off\n"
		"opts a JVM out of recording. On SIGTERM or Ctrl-C sonde restores the sampling\n"
		"rates it forced, stops its JVM recordings, and exits.\n",
	.run = run_run,
};
