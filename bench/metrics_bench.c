/*
 * bench/metrics_bench.c: a day of metrics in the store, and in plain rows beside it.
 *
 *   metrics_bench day|rows|floats|fleet|memory RECORDED FOLDER
 *
 * RECORDED is what bench/metrics.py has recorded of real programs, a series a line:
 *
 *   PROGRAM RUNTIME KIND NAME ATTRIBUTES VALUE...
 *
 * 30 Go programs and 5 JVMs live through a day, each as one of the recorded ones: 20 readings in a
 * row from somewhere in the recording, then 20 from elsewhere. That alone would repeat numbers,
 * which a packer could find: those that were different in more than half of the readings are moved
 * by up to a quarter of their usual change, in the units that they come in. Gauges are what was
 * read, counters what came since the reading before. Readings come every 15 s, up to 3 ms late.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include <sqlite3.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "pipeline/metrics.h"
#include "store/sqlite/sqlite.h"

#define STEP_NS 15000000000LL
#define DAY_NS 86400000000000LL
#define START_NS (20000 * DAY_NS)
#define START_DAY "2024-10-04"
#define STEPS 5760
#define RUN 20
#define MAX_SERIES 200
#define MAX_VALUES 1000
#define MAX_PROGRAMS 32
#define GO_PROGRAMS 30
#define JVMS 5
#define FLEET 200
#define MANY 10000
#define ROUNDS 9

struct recorded {
	struct metric metric;
	char *text; /* of the names */
	const char *attribute;
	double values[MAX_VALUES];
	size_t n;
	double unit; /* that all are multiples of */
	double move; /* by how much they are moved, in units; 0: not at all */
};

struct program {
	char name[64];
	bool java;
	struct recorded *series[MAX_SERIES];
	size_t n;
};

static struct program programs[MAX_PROGRAMS];
static size_t n_programs;
static uint64_t dice = 88172645463325252ULL;
static int64_t now_ns = START_NS;

static void fail(const char *what)
{
	(void)fprintf(stderr, "metrics_bench: %s\n", what);
	exit(1);
}

static uint64_t roll(void)
{
	dice ^= dice << 13;
	dice ^= dice >> 7;
	dice ^= dice << 17;
	return dice;
}

static double roll_to(double most)
{
	return (double)(roll() >> 11) / 9007199254740992.0 * most;
}

static double cpu_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static double status_mb(const char *field)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/self/status", "re");
	char line[256];

	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, field, strlen(field)) == 0)
			return strtod(line + strlen(field) + 1, NULL) / 1024;
	return 0;
}

/* --- the recording */

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* In which units they come, and by how much they usually change. */
static void study(struct recorded *r)
{
	double changes[MAX_VALUES];
	uint64_t unit = 0;
	size_t n = 0, moved = 0;

	for (size_t i = 0; i < r->n; i++) {
		uint64_t a = (uint64_t)fabs(isnan(r->values[i]) ? 0 : r->values[i]);

		while (a) {
			uint64_t rest = unit % a;

			unit = a;
			a = rest;
		}
		if (i == 0 || isnan(r->values[i]) || isnan(r->values[i - 1]))
			continue;
		changes[n] = fabs(r->values[i] - r->values[i - 1]);
		moved += changes[n++] != 0;
	}
	r->unit = unit ? (double)unit : 1;
	if (n == 0 || moved * 2 <= n)
		return;
	qsort(changes, n, sizeof(*changes), compare_doubles);
	r->move = changes[n / 2] / r->unit / 4;
}

static struct program *find_program(const char *name, bool java)
{
	for (size_t i = 0; i < n_programs; i++)
		if (strcmp(programs[i].name, name) == 0)
			return &programs[i];
	if (n_programs == MAX_PROGRAMS)
		fail("too many programs");
	(void)snprintf(programs[n_programs].name, sizeof(programs[0].name), "%s", name);
	programs[n_programs].java = java;
	return &programs[n_programs++];
}

static void load_line(char *line)
{
	struct recorded *r = calloc(1, sizeof(*r));
	char *words[5], *rest = line, *word;
	struct program *p;

	for (size_t i = 0; i < 5; i++) {
		words[i] = strsep(&rest, " \n");
		if (!words[i] || !rest || !r)
			fail("a line of the recording is malformed");
	}
	p = find_program(words[0], strcmp(words[1], "java") == 0);
	if (p->n == MAX_SERIES)
		fail("too many series");
	r->text = strdup(words[3]);
	r->attribute = strcmp(words[4], "-") == 0 ? NULL : strdup(words[4]);
	r->metric = (struct metric){
		.name = r->text,
		.kind = strcmp(words[2], "counter") == 0 ? METRIC_COUNTER : METRIC_GAUGE,
		.unit = "count",
		.attributes = {r->attribute ? "attributes" : NULL},
	};
	while ((word = strsep(&rest, " \n")) && r->n < MAX_VALUES)
		if (*word)
			r->values[r->n++] = strcmp(word, "-") == 0 ? NAN : strtod(word, NULL);
	if (r->n <= RUN)
		fail("the recording is too short");
	study(r);
	p->series[p->n++] = r;
}

static void load(const char *path)
{
	_cleanup_fclose_ FILE *f = fopen(path, "re");
	_cleanup_free_ char *line = NULL;
	size_t cap = 0;

	if (!f)
		fail("the recording cannot be read");
	while (getline(&line, &cap, f) > 0)
		load_line(line);
}

/* --- a day of it */

struct instance {
	const struct program *program;
	char service[64];
	char pid[16];
	size_t at; /* in the recording */
	size_t left;
};

static size_t draw(struct instance *in, struct metric_point *points)
{
	const struct program *p = in->program;
	size_t n = p->series[0]->n;

	if (in->left == 0) {
		in->at = (size_t)roll_to((double)(n - RUN));
		in->left = RUN;
	}
	for (size_t i = 0; i < p->n; i++) {
		const struct recorded *r = p->series[i];
		double v = r->values[MIN(in->at, r->n - 1)];

		if (!isnan(v) && v != 0 && r->move >= 1)
			v = MAX(v + floor(roll_to(2 * r->move) - r->move) * r->unit, 0);
		points[i] = (struct metric_point){.metric = &r->metric,
						  .attributes = {r->attribute},
						  .value = v,
						  .increase = v};
	}
	in->at++;
	in->left--;
	return p->n;
}

static size_t make_instances(struct instance *to, size_t go, size_t java)
{
	size_t n = 0;

	for (size_t i = 0, turn = 0; n < go + java && i < (go + java) * MAX_PROGRAMS; i++) {
		const struct program *p = &programs[turn++ % n_programs];
		size_t same = 0;

		for (size_t k = 0; k < n; k++)
			same += to[k].program->java == p->java;
		if (same == (p->java ? java : go))
			continue;
		to[n] = (struct instance){.program = p};
		(void)snprintf(to[n].service, sizeof(to[n].service), "%.50s-%zu", p->name, n);
		(void)snprintf(to[n].pid, sizeof(to[n].pid), "%zu", 1000 + n);
		n++;
	}
	if (n < go + java)
		fail("the recording has no Go program or no JVM");
	return n;
}

/* --- the store */

static int64_t clock_of(void *ctx)
{
	(void)ctx;
	return now_ns;
}

static struct store *open_store(const char *dir)
{
	const struct store_sqlite_config config = {.dir = dir,
						   .now_ns = clock_of,
						   .max_series = 1 << 20,
						   .max_series_in_all = 1 << 20};
	struct store *store = NULL;
	struct err err = {};

	if (store_sqlite_open(&config, &store, &err) < 0)
		fail(err.text);
	return store;
}

static void write_instance(struct store *store, const struct instance *in, const char *service,
			   struct metric_point *points, size_t n)
{
	const struct label labels[] = {{"host.name", "bench"}, {"process.pid", in->pid}};
	const struct metrics metrics = {.points = points, .len = n};
	const struct store_metrics e = {.service = service,
					.labels = labels,
					.n_labels = 2,
					.time_ns = now_ns,
					.metrics = &metrics};
	struct err err = {};

	if (store_write_metrics(store, &e, &err) < 0)
		fail(err.text);
}

static double file_bytes(const char *dir, const char *name)
{
	char path[512];
	struct stat st;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	return stat(path, &st) == 0 ? (double)st.st_size : 0;
}

static void put(struct json *j, const char *key, double value)
{
	json_key(j, key);
	json_double(j, value);
}

static uint64_t count_points(const struct metric_point *points, size_t n)
{
	uint64_t found = 0;

	for (size_t i = 0; i < n; i++)
		found += !isnan(points[i].value);
	return found;
}

static int compare(const void *a, const void *b)
{
	return compare_doubles(a, b);
}

/* The median of several, in ms of CPU. */
static double query_ms(struct store *store, const char *service, const char *metric,
		       int64_t from_ns, size_t *ret_series)
{
	const struct store_metric_query q = {.service = service,
					     .metric = metric,
					     .from_ns = from_ns,
					     .to_ns = from_ns + DAY_NS,
					     .step_ns = DAY_NS / 288,
					     .n_points = 288};
	double took[ROUNDS];
	struct err err = {};

	for (size_t i = 0; i < ROUNDS; i++) {
		struct store_metric_answer a = {0};

		took[i] = cpu_ms();
		if (store_metrics(store, &q, &a, &err) < 0)
			fail(err.text);
		took[i] = cpu_ms() - took[i];
		*ret_series = a.len;
		store_metric_answer_release(&a);
	}
	qsort(took, ROUNDS, sizeof(*took), compare);
	return took[ROUNDS / 2];
}

struct day {
	struct instance instances[FLEET];
	size_t n;
	const char *fleet; /* all are processes of this service; NULL: each is one */
	bool floats;
	uint64_t points;
	uint64_t series;
	double write_ms;
	double pack_ms;
};

static void make_floats(struct metric_point *points, size_t n)
{
	for (size_t i = 0; i < n; i++)
		points[i].value = points[i].increase = 100 + roll_to(10);
}

static void run_day(struct day *d, struct store *store)
{
	static struct metric_point points[MAX_SERIES];
	struct err err = {};
	double began;

	for (size_t i = 0; i < d->n; i++)
		d->series += d->instances[i].program->n;
	for (size_t step = 0; step < STEPS; step++) {
		now_ns = START_NS + (int64_t)step * STEP_NS + (int64_t)roll_to(3) * 1000000;
		for (size_t i = 0; i < d->n; i++) {
			struct instance *in = &d->instances[i];
			size_t n = draw(in, points);

			if (d->floats)
				make_floats(points, n);
			d->points += count_points(points, n);
			began = cpu_ms();
			write_instance(store, in, d->fleet ? d->fleet : in->service, points, n);
			d->write_ms += cpu_ms() - began;
		}
		began = cpu_ms();
		if (store_commit(store, &err) < 0)
			fail(err.text);
		d->write_ms += cpu_ms() - began;
		if (step % 240 != 20)
			continue;
		began = cpu_ms();
		if (store_maintain(store, now_ns, &err) < 0)
			fail(err.text);
		d->pack_ms += cpu_ms() - began;
	}
	began = cpu_ms();
	now_ns = START_NS + DAY_NS + 3600000000000LL;
	if (store_maintain(store, now_ns, &err) < 0)
		fail(err.text);
	d->pack_ms += cpu_ms() - began;
}

static void report_day(const struct day *d, const char *dir, struct json *j)
{
	put(j, "series", (double)d->series);
	put(j, "points", (double)d->points);
	put(j, "bytes", file_bytes(dir, START_DAY ".db"));
	put(j, "bytes_per_point", file_bytes(dir, START_DAY ".db") / (double)d->points);
	put(j, "write_us_per_point", d->write_ms * 1e3 / (double)d->points);
	put(j, "pack_us_per_point", d->pack_ms * 1e3 / (double)d->points);
}

static void bench_day(const char *dir, bool floats, struct json *j)
{
	struct store *store = open_store(dir);
	static struct day d;

	d.n = make_instances(d.instances, GO_PROGRAMS, JVMS);
	d.floats = floats;
	run_day(&d, store);
	store_close(store);
	report_day(&d, dir, j);
}

/* One service with many processes: as many series of one metric. */
static void bench_fleet(const char *dir, struct json *j)
{
	struct store *store = open_store(dir);
	static struct day d;
	size_t series = 0;
	double ms;

	d.fleet = "fleet";
	d.n = make_instances(d.instances, FLEET, 0);
	run_day(&d, store);
	report_day(&d, dir, j);
	ms = query_ms(store, d.fleet, d.instances[0].program->series[0]->metric.name, START_NS,
		      &series);
	put(j, "query_series", (double)series);
	put(j, "query_24h_ms", ms);
	store_close(store);
}

/* What the writer holds when so many series are active. */
static void bench_memory(const char *dir, struct json *j)
{
	struct store *store = open_store(dir);
	static struct instance in;
	double before, peak = 0;
	size_t n, written = 0;
	struct err err = {};

	static struct metric_point points[MAX_SERIES];
	(void)make_instances(&in, 1, 0);
	before = status_mb("VmRSS");
	for (size_t step = 0; step < 20; step++) {
		now_ns = START_NS + (int64_t)step * STEP_NS;
		written = 0;
		for (size_t i = 0; written < MANY; i++) {
			(void)snprintf(in.pid, sizeof(in.pid), "%zu", i);
			(void)snprintf(in.service, sizeof(in.service), "service-%zu", i / 20);
			n = MIN(draw(&in, points), MANY - written);
			write_instance(store, &in, in.service, points, n);
			written += n;
		}
		if (store_commit(store, &err) < 0)
			fail(err.text);
	}
	now_ns = START_NS + 2 * 3600000000000LL;
	if (store_maintain(store, now_ns, &err) < 0)
		fail(err.text);
	peak = status_mb("VmHWM");
	put(j, "series", (double)written);
	put(j, "memory_mb", peak - before);
	store_close(store);
}

/* --- plain rows */

static void bench_rows(const char *dir, struct json *j)
{
	static struct day d;
	static struct metric_point points[MAX_SERIES];
	char path[512];
	sqlite3_stmt *stmt;
	sqlite3 *db;
	double began = 0;

	(void)snprintf(path, sizeof(path), "%s/rows.db", dir);
	if (sqlite3_open(path, &db) != SQLITE_OK ||
	    sqlite3_exec(db,
			 "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
			 "CREATE TABLE point(series INTEGER, ms INTEGER, value REAL,"
			 " PRIMARY KEY(series, ms)) WITHOUT ROWID",
			 NULL, NULL, NULL) != SQLITE_OK ||
	    sqlite3_prepare_v2(db, "INSERT INTO point VALUES(?,?,?)", -1, &stmt, NULL) != SQLITE_OK)
		fail(sqlite3_errmsg(db));
	d.n = make_instances(d.instances, GO_PROGRAMS, JVMS);
	for (size_t step = 0; step < STEPS; step++) {
		int64_t ms = (START_NS + (int64_t)step * STEP_NS) / 1000000 + (int64_t)roll_to(3);

		(void)sqlite3_exec(db, "BEGIN", NULL, NULL, NULL);
		for (size_t i = 0; i < d.n; i++) {
			size_t n = draw(&d.instances[i], points);

			d.points += count_points(points, n);
			began = cpu_ms();
			for (size_t k = 0; k < n; k++) {
				if (isnan(points[k].value))
					continue;
				(void)sqlite3_bind_int64(stmt, 1, (int64_t)(i * MAX_SERIES + k));
				(void)sqlite3_bind_int64(stmt, 2, ms);
				(void)sqlite3_bind_double(stmt, 3, points[k].value);
				if (sqlite3_step(stmt) != SQLITE_DONE)
					fail(sqlite3_errmsg(db));
				(void)sqlite3_reset(stmt);
			}
			d.write_ms += cpu_ms() - began;
		}
		began = cpu_ms();
		(void)sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
		d.write_ms += cpu_ms() - began;
	}
	(void)sqlite3_finalize(stmt);
	(void)sqlite3_close(db);
	put(j, "points", (double)d.points);
	put(j, "bytes_per_point", file_bytes(dir, "rows.db") / (double)d.points);
	put(j, "write_us_per_point", d.write_ms * 1e3 / (double)d.points);
}

int main(int argc, char **argv)
{
	_cleanup_(buf_release) struct buf out = {0};
	struct json j = json_to(&out);

	if (argc != 4)
		fail("usage: metrics_bench day|rows|floats|fleet|memory RECORDED FOLDER");
	load(argv[2]);
	json_object_begin(&j);
	if (strcmp(argv[1], "rows") == 0)
		bench_rows(argv[3], &j);
	else if (strcmp(argv[1], "fleet") == 0)
		bench_fleet(argv[3], &j);
	else if (strcmp(argv[1], "memory") == 0)
		bench_memory(argv[3], &j);
	else
		bench_day(argv[3], strcmp(argv[1], "floats") == 0, &j);
	json_object_end(&j);
	(void)printf("%s\n", buf_cstr(&out));
	return 0;
}
