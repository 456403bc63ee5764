/*
 * bench/store_bench.c: the embedded store beside plain rows in SQLite, on the same made-up load.
 *
 * 30 services with 4 types, one collection a minute, 300 to 2,000 samples per type, 20,000 stacks
 * per service of which a Zipf law draws, 10 to 60 frames deep, one to three processes each; all by
 * a seed. Making the profiles is not counted: only store_write, store_commit and store_maintain
 * are.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <sqlite3.h>

#include "base/clock.h"
#include "bench.h"
#include "store/sqlite.h"

#define N_SERVICES 30
#define N_TYPES 4
#define N_STACKS 20000
#define N_FUNCTIONS 15000
#define MAX_DEPTH 60
#define DAY_NS 86400000000000LL
#define MINUTE_NS 60000000000LL
#define START_NS (20000 * DAY_NS)

static const char *const type_names[N_TYPES][2] = {{"samples", "count"},
						   {"cpu", "nanoseconds"},
						   {"alloc_space", "bytes"},
						   {"delay", "nanoseconds"}};

struct service {
	uint32_t offsets[N_STACKS + 1];
	uint16_t *frames; /* root first */
	uint32_t sizes[N_STACKS];
	int base[N_TYPES];
	int processes;
};

struct load {
	uint64_t seed;
	double cumulated[N_STACKS];
	uint16_t ranks[N_TYPES][N_STACKS];
	char names[N_FUNCTIONS][96];
	char files[N_FUNCTIONS][48];
	struct service services[N_SERVICES];
	/* Of the profile being made: values by stack, and which stacks have some. */
	int64_t values[N_STACKS][N_TYPES];
	uint32_t drawn[N_STACKS];
	uint32_t n_drawn;
	uint64_t n_samples; /* non-zero values */
	int64_t now_ns;
};

static uint64_t draw(struct load *l)
{
	uint64_t z = (l->seed += 0x9e3779b97f4a7c15ULL);

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return z ^ z >> 31;
}

static double draw_unit(struct load *l)
{
	return (double)(draw(l) >> 11) / 9007199254740992.0;
}

static void make_names(struct load *l)
{
	static const char *const packages[] = {"github.com/acme/platform/internal/", "net/http.",
					       "runtime.", "database/sql.", "encoding/json."};
	static const char *const types[] = {"(*Server)", "(*Conn)", "(*Pool)", "(*Tx)"};
	static const char *const verbs[] = {"process", "handle", "readLoop", "encodeValue"};

	for (unsigned int i = 0; i < N_FUNCTIONS; i++) {
		(void)snprintf(l->names[i], sizeof(l->names[i]), "%s%s.%s%04u",
			       packages[draw(l) % 5], types[draw(l) % 4], verbs[draw(l) % 4], i);
		(void)snprintf(l->files[i], sizeof(l->files[i]), "/src/internal/server/file_%u.go",
			       i % 900);
	}
}

/* Most stacks begin as another one does. */
static void make_service(struct load *l, struct service *s, unsigned int number)
{
	uint32_t at = 0;

	s->frames = malloc((size_t)N_STACKS * MAX_DEPTH * sizeof(*s->frames));
	if (!s->frames)
		exit(1);
	s->processes = 1 + (int)number % 3;
	for (int t = 0; t < N_TYPES; t++)
		s->base[t] = (int)(300 * exp(draw_unit(l) * log(2000.0 / 300)));
	for (uint32_t i = 0; i < N_STACKS; i++) {
		uint32_t depth = 10 + (uint32_t)(draw(l) % 51 + draw(l) % 51) / 2, shared = 0;

		depth = MIN(depth, MAX_DEPTH);
		s->sizes[i] = 16U << draw(l) % 12;
		s->offsets[i] = at;
		if (i > 0) {
			uint32_t j = (uint32_t)(draw(l) % i);
			uint32_t most = MIN(s->offsets[j + 1] - s->offsets[j], depth - 1);

			shared = (uint32_t)((0.5 + 0.45 * draw_unit(l)) * most);
			memcpy(s->frames + at, s->frames + s->offsets[j],
			       shared * sizeof(*s->frames));
		}
		for (uint32_t k = shared; k < depth; k++) {
			double u = draw_unit(l);
			uint32_t f = (uint32_t)(5500 * u * u);

			s->frames[at + k] =
				(uint16_t)(f < 3000 ? f : 3000 + (number * 811 + f * 3) % 12000);
		}
		at += depth;
		s->offsets[i + 1] = at;
	}
}

static struct load *load_new(uint64_t seed)
{
	struct load *l = calloc(1, sizeof(*l));
	double sum = 0;

	if (!l)
		exit(1);
	l->seed = seed;
	for (unsigned int i = 0; i < N_STACKS; i++)
		l->cumulated[i] = sum += 1.0 / (i + 1);
	for (unsigned int i = 0; i < N_STACKS; i++)
		l->cumulated[i] /= sum;
	for (unsigned int t = 0; t < N_TYPES; t++) {
		for (unsigned int i = 0; i < N_STACKS; i++)
			l->ranks[t][i] = (uint16_t)i;
		for (unsigned int i = N_STACKS - 1; t > 0 && i > 0; i--) {
			unsigned int j = (unsigned int)(draw(l) % (i + 1));
			uint16_t swap = l->ranks[t][i];

			l->ranks[t][i] = l->ranks[t][j];
			l->ranks[t][j] = swap;
		}
	}
	make_names(l);
	for (unsigned int i = 0; i < N_SERVICES; i++)
		make_service(l, &l->services[i], i);
	return l;
}

static uint32_t draw_rank(struct load *l)
{
	double u = draw_unit(l);
	uint32_t low = 0, high = N_STACKS - 1;

	while (low < high) {
		uint32_t mid = (low + high) / 2;

		if (l->cumulated[mid] < u)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* Distinct stacks of one type, with values as that type has them. */
static void draw_type(struct load *l, const struct service *s, unsigned int type, int wanted)
{
	for (int n = 0; n < wanted;) {
		uint32_t stack = l->ranks[type][draw_rank(l)];
		uint64_t x = draw(l);
		int64_t v = type == 0	? 10000000
			    : type == 1 ? 10000000 * (1 + (int64_t)(x & 3))
			    : type == 2 ? (int64_t)s->sizes[stack] * (1 + (int64_t)(x & 63))
					: 1000 + (int64_t)(x & 0xfffff);
		bool fresh = true;

		for (unsigned int t = 0; t < N_TYPES; t++)
			fresh = fresh && l->values[stack][t] == 0;
		if (fresh)
			l->drawn[l->n_drawn++] = stack;
		n += l->values[stack][type] == 0;
		l->n_samples += l->values[stack][type] == 0;
		l->values[stack][type] += v;
	}
}

static void need(int r)
{
	if (r < 0) {
		(void)fprintf(stderr, "store_bench: %s\n", strerror(-r));
		exit(1);
	}
}

/* The drawn values as a profile: functions and locations are those of its stacks only. */
static struct profile *make_profile(struct load *l, const struct service *s)
{
	static uint32_t known[N_FUNCTIONS];
	struct profile *p = profile_new();
	uint32_t locations[MAX_DEPTH], stack;

	if (!p)
		exit(1);
	memset(known, 0, sizeof(known));
	for (unsigned int t = 0; t < N_TYPES; t++)
		need(profile_add_type(p, type_names[t][0], type_names[t][1]));
	for (uint32_t i = 0; i < l->n_drawn; i++) {
		const uint16_t *frames = s->frames + s->offsets[l->drawn[i]];
		uint32_t n = s->offsets[l->drawn[i] + 1] - s->offsets[l->drawn[i]];

		for (uint32_t k = 0; k < n; k++) {
			uint32_t f = frames[n - 1 - k];

			if (!known[f]) {
				struct profile_function fn = {0};
				struct profile_line line = {.line = 1 + f % 2000};

				need(profile_add_string(p, view_str(l->names[f]), &fn.name));
				need(profile_add_string(p, view_str(l->files[f]), &fn.file));
				need(profile_add_function(p, &fn, &line.function));
				need(profile_add_location(p, f, PROFILE_NO_MAPPING, &line, 1,
							  &known[f]));
				known[f]++;
			}
			locations[k] = known[f] - 1;
		}
		need(profile_add_stack(p, locations, n, &stack));
		need(profile_add_sample(p, stack, l->values[l->drawn[i]], NULL, 0));
	}
	return p;
}

/* The two things that are measured: the store, and plain rows with an index by stream and time. */
struct subject {
	struct store *store;
	sqlite3 *rows;
	sqlite3_stmt *insert;
	uint64_t store_cpu_ns;
	uint64_t pack_cpu_ns;
	uint64_t rows_cpu_ns;
	/* At the beginning of the last hour, when the dictionaries are there. */
	uint64_t steady_cpu_ns;
	uint64_t steady_samples;
};

static int64_t load_now(void *ctx)
{
	return ((struct load *)ctx)->now_ns;
}

static void write_rows(struct load *l, struct subject *b, unsigned int service,
		       unsigned int process)
{
	uint64_t start = clock_cpu_ns();

	for (uint32_t i = 0; i < l->n_drawn; i++) {
		for (unsigned int t = 0; t < N_TYPES; t++) {
			if (l->values[l->drawn[i]][t] == 0)
				continue;
			(void)sqlite3_bind_int64(b->insert, 1, service * N_TYPES + t);
			(void)sqlite3_bind_int64(b->insert, 2, l->now_ns / 1000000000);
			(void)sqlite3_bind_int64(b->insert, 3, process);
			(void)sqlite3_bind_int64(b->insert, 4, l->drawn[i]);
			(void)sqlite3_bind_int64(b->insert, 5, l->values[l->drawn[i]][t]);
			(void)sqlite3_step(b->insert);
			(void)sqlite3_reset(b->insert);
		}
	}
	b->rows_cpu_ns += clock_cpu_ns() - start;
}

static void write_store(struct load *l, struct subject *b, unsigned int service,
			unsigned int process)
{
	char name[32], pid[32];
	const struct store_label labels[] = {{"process.pid", pid}, {"host.name", "bench"}};
	struct profile *p = make_profile(l, &l->services[service]);
	const struct store_entry e = {
		.service = name,
		.family = "bench",
		.labels = labels,
		.n_labels = 2,
		.time_ns = l->now_ns,
		.duration_ns = MINUTE_NS,
		.profile = p,
	};
	struct err err = {""};
	uint64_t start;

	(void)snprintf(name, sizeof(name), "service-%u", service);
	(void)snprintf(pid, sizeof(pid), "%u", 1000 + service * 977 + process * 131);
	start = clock_cpu_ns();
	bench_check(store_write(b->store, &e, &err), &err);
	b->store_cpu_ns += clock_cpu_ns() - start;
	profile_free(p);
}

static void one_minute(struct load *l, struct subject *b, bool rows)
{
	static const double shares[3][3] = {{1}, {.6, .4}, {.5, .3, .2}};

	for (unsigned int i = 0; i < N_SERVICES; i++) {
		const struct service *s = &l->services[i];

		for (int c = 0; c < s->processes; c++) {
			for (unsigned int t = 0; t < N_TYPES; t++) {
				double n = s->base[t] * (0.7 + 0.6 * draw_unit(l));

				n = MIN(MAX(n, 300.0), 2000.0);
				draw_type(l, s, t, (int)(n * shares[s->processes - 1][c]));
			}
			write_store(l, b, i, (unsigned int)c);
			if (rows)
				write_rows(l, b, i, (unsigned int)c);
			for (uint32_t k = 0; k < l->n_drawn; k++)
				memset(l->values[l->drawn[k]], 0, sizeof(l->values[0]));
			l->n_drawn = 0;
		}
	}
}

static void commit(struct load *l, struct subject *b, bool rows)
{
	struct err err = {""};
	uint64_t start = clock_cpu_ns();

	bench_check(store_commit(b->store, &err), &err);
	b->store_cpu_ns += clock_cpu_ns() - start;
	start = clock_cpu_ns();
	bench_check(store_maintain(b->store, l->now_ns, &err), &err);
	b->pack_cpu_ns += clock_cpu_ns() - start;
	if (!rows)
		return;
	start = clock_cpu_ns();
	(void)sqlite3_exec(b->rows, "COMMIT; BEGIN", NULL, NULL, NULL);
	b->rows_cpu_ns += clock_cpu_ns() - start;
}

static void open_subject(struct subject *b, struct load *l, const char *dir)
{
	const struct store_sqlite_config config = {.dir = dir, .now_ns = load_now, .now_ctx = l};
	struct err err = {""};
	char path[512];

	bench_check(store_sqlite_open(&config, &b->store, &err), &err);
	(void)snprintf(path, sizeof(path), "%s/rows", dir);
	if (sqlite3_open(path, &b->rows) != SQLITE_OK ||
	    sqlite3_exec(b->rows,
			 "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
			 "CREATE TABLE sample(stream INT, time INT, process INT, stack INT,"
			 " value INT, PRIMARY KEY(stream, time, process, stack)) WITHOUT ROWID;"
			 "BEGIN",
			 NULL, NULL, NULL) != SQLITE_OK ||
	    sqlite3_prepare_v2(b->rows, "INSERT INTO sample VALUES(?,?,?,?,?)", -1, &b->insert,
			       NULL) != SQLITE_OK)
		exit(1);
}

static double median(double *values, size_t n)
{
	for (size_t i = 1; i < n; i++)
		for (size_t k = i; k > 0 && values[k] < values[k - 1]; k--) {
			double swap = values[k];

			values[k] = values[k - 1];
			values[k - 1] = swap;
		}
	return values[n / 2];
}

/* CPU milliseconds of the sum over the window, the median over services and types. */
static double time_sums(struct subject *b, int64_t from_ns, int64_t to_ns, size_t *ret_stacks)
{
	double ms[12];
	size_t n = 0;

	for (unsigned int i = 0; i < 12; i++) {
		char name[32], type[64];
		const struct store_window w = {
			.service = name, .type = type, .from_ns = from_ns, .to_ns = to_ns};
		struct store_sum sum = {0};
		struct err err = {""};
		uint64_t start = clock_cpu_ns();

		(void)snprintf(name, sizeof(name), "service-%u", i * 7 % N_SERVICES);
		(void)snprintf(type, sizeof(type), "bench:%s:%s", type_names[i % 4][0],
			       type_names[i % 4][1]);
		bench_check(store_sum(b->store, &w, &sum, &err), &err);
		ms[n++] = (double)(clock_cpu_ns() - start) / 1e6;
		*ret_stacks = profile_n_samples(sum.profile);
		profile_free(sum.profile);
	}
	return median(ms, n);
}

static double time_rows(struct subject *b, int64_t from_ns, int64_t to_ns)
{
	sqlite3_stmt *stmt;
	double ms[12];

	(void)sqlite3_prepare_v2(
		b->rows,
		"SELECT stack, sum(value) FROM sample WHERE stream=? AND time>=? AND"
		" time<? GROUP BY stack",
		-1, &stmt, NULL);
	for (unsigned int i = 0; i < 12; i++) {
		uint64_t start = clock_cpu_ns();

		(void)sqlite3_bind_int64(stmt, 1, i * 7 % N_SERVICES * N_TYPES + i % 4);
		(void)sqlite3_bind_int64(stmt, 2, from_ns / 1000000000);
		(void)sqlite3_bind_int64(stmt, 3, to_ns / 1000000000);
		while (sqlite3_step(stmt) == SQLITE_ROW)
			;
		(void)sqlite3_reset(stmt);
		ms[i] = (double)(clock_cpu_ns() - start) / 1e6;
	}
	(void)sqlite3_finalize(stmt);
	return median(ms, 12);
}

static uint64_t file_size(const char *dir, const char *name)
{
	char path[512];
	struct stat st;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	return stat(path, &st) == 0 ? (uint64_t)st.st_size : 0;
}

/* What the process holds, in MB: resident without files. */
static double anonymous_mb(void)
{
	char line[256];
	long kb = 0;
	FILE *f = fopen("/proc/self/status", "re");

	while (f && fgets(line, sizeof(line), f))
		(void)sscanf(line, "RssAnon: %ld", &kb);
	if (f)
		(void)fclose(f);
	return (double)kb / 1024;
}

/* What the dictionaries take: a day pays them once, however many hours it has. */
static uint64_t dictionary_bytes(const char *dir)
{
	sqlite3_stmt *stmt = NULL;
	uint64_t bytes = 0;
	char path[512];
	sqlite3 *db;

	(void)snprintf(path, sizeof(path), "%s/2024-10-04.db", dir);
	if (sqlite3_open(path, &db) == SQLITE_OK &&
	    sqlite3_prepare_v2(db,
			       "SELECT (SELECT sum(length(data)) FROM stack_chunk) +"
			       " (SELECT sum(length(data)) FROM frame_chunk)",
			       -1, &stmt, NULL) == SQLITE_OK &&
	    sqlite3_step(stmt) == SQLITE_ROW)
		bytes = (uint64_t)sqlite3_column_int64(stmt, 0);
	(void)sqlite3_finalize(stmt);
	(void)sqlite3_close(db);
	return bytes;
}

static void report(struct load *l, struct subject *b, const char *dir, const uint64_t *counts,
		   double writer_mb)
{
	uint64_t hours = counts[0], row_hours = counts[1], row_samples = counts[2];
	struct store_status status;
	struct buf out = {0};
	struct json j = json_to(&out);
	double all_s = (double)(b->store_cpu_ns + b->pack_cpu_ns) / 1e9;
	int64_t end = START_NS + (int64_t)hours * 60 * MINUTE_NS;
	size_t stacks = 0;

	store_status(b->store, &status);
	json_object_begin(&j);
	json_key(&j, "hours");
	json_uint(&j, hours);
	json_key(&j, "samples");
	json_uint(&j, l->n_samples);
	json_key(&j, "bytes_per_sample");
	json_double(&j, (double)status.bytes_on_disk / (double)l->n_samples);
	json_key(&j, "million_samples_per_cpu_s");
	json_double(&j, (double)l->n_samples / 1e6 / all_s);
	json_key(&j, "million_samples_per_cpu_s_without_packing");
	json_double(&j, (double)l->n_samples / 1e6 / ((double)b->store_cpu_ns / 1e9));
	json_key(&j, "million_samples_per_cpu_s_last_hour");
	json_double(&j, (double)(l->n_samples - b->steady_samples) / 1e6 /
				(all_s - (double)b->steady_cpu_ns / 1e9));
	json_key(&j, "writer_mb");
	json_double(&j, writer_mb);
	json_key(&j, "merge_1h_ms");
	json_double(&j, time_sums(b, end - 90 * MINUTE_NS, end - 30 * MINUTE_NS, &stacks));
	json_key(&j, "merge_all_ms");
	json_double(&j, time_sums(b, START_NS, end, &stacks));
	json_key(&j, "rows_hours");
	json_uint(&j, row_hours);
	json_key(&j, "rows_bytes_per_sample");
	json_double(&j, (double)file_size(dir, "rows") / (double)row_samples);
	json_key(&j, "rows_million_samples_per_cpu_s");
	json_double(&j, (double)row_samples / 1e6 / ((double)b->rows_cpu_ns / 1e9));
	json_key(&j, "rows_merge_1h_ms");
	json_double(&j, time_rows(b, START_NS, START_NS + 60 * MINUTE_NS));
	/* The day is over: what is left is packed and rolled up, and read as a whole. */
	l->now_ns = START_NS + DAY_NS + 60 * MINUTE_NS;
	bench_check(store_maintain(b->store, l->now_ns, NULL), &(struct err){"maintain"});
	store_status(b->store, &status);
	json_key(&j, "closed_bytes_per_sample");
	json_double(&j, (double)status.bytes_on_disk / (double)l->n_samples);
	json_key(&j, "dictionary_bytes");
	json_uint(&j, dictionary_bytes(dir));
	json_key(&j, "day_bytes_per_sample"); /* the same dictionaries over 24 hours */
	json_double(&j, ((double)(status.bytes_on_disk - dictionary_bytes(dir)) +
			 (double)dictionary_bytes(dir) * (double)hours / 24) /
				(double)l->n_samples);
	json_key(&j, "merge_rolled_day_ms");
	json_double(&j, time_sums(b, START_NS, START_NS + DAY_NS, &stacks));
	json_key(&j, "stacks");
	json_uint(&j, stacks);
	json_object_end(&j);
	(void)bench_print(&j);
	buf_release(&out);
}

int main(int argc, char **argv)
{
	struct subject b = {0};
	uint64_t counts[3] = {0}; /* hours; hours and samples of the plain rows */
	double before_mb, peak_mb = 0;
	struct load *l;

	if (argc != 4) {
		(void)fprintf(stderr, "usage: store_bench DIR HOURS ROWS_HOURS\n");
		return 2;
	}
	counts[0] = bench_number("HOURS", argv[2], 24);
	counts[1] = bench_number("ROWS_HOURS", argv[3], 24);
	l = load_new(42);
	l->now_ns = START_NS;
	open_subject(&b, l, argv[1]);
	before_mb = anonymous_mb();
	for (uint64_t minute = 0; minute < counts[0] * 60; minute++) {
		bool rows = minute < counts[1] * 60;

		l->now_ns = START_NS + (int64_t)minute * MINUTE_NS;
		if (minute + 60 == counts[0] * 60) {
			b.steady_cpu_ns = b.store_cpu_ns + b.pack_cpu_ns;
			b.steady_samples = l->n_samples;
		}
		one_minute(l, &b, rows);
		commit(l, &b, rows);
		if (rows)
			counts[2] = l->n_samples;
		peak_mb = MAX(peak_mb, anonymous_mb() - before_mb);
	}
	(void)sqlite3_finalize(b.insert);
	(void)sqlite3_exec(b.rows, "COMMIT; PRAGMA wal_checkpoint(TRUNCATE)", NULL, NULL, NULL);
	report(l, &b, argv[1], counts, peak_mb);
	(void)sqlite3_close(b.rows);
	store_close(b.store);
	for (unsigned int i = 0; i < N_SERVICES; i++)
		free(l->services[i].frames);
	free(l);
	return 0;
}
