/*
 * bench/store_clickhouse.c: ClickHouse on loopback, over HTTP: a column store without our tricks.
 * The CPU time is the server's own, background merges included; making the batches is not counted.
 * As with plain rows, stacks are hashes that cost nothing: no names are sent.
 *
 * The place is "PORT PID BATCH": where the server listens, whose CPU time counts, and how many
 * minutes go into one insert.
 */
#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "store_engine.h"

#define MAX_BATCH ((size_t)512 << 20)

enum { SERVICE, TYPE, TS, LABELS, STACK, VALUE, N_COLUMNS };
static const char *const columns[N_COLUMNS][2] = {
	{"Service", "String"},	  {"Type", "String"},	   {"Ts", "DateTime"},
	{"LabelsHash", "UInt64"}, {"StackHash", "UInt64"}, {"Value", "Int64"},
};

static const char schema[] =
	"CREATE TABLE profile_samples (Service String, Type String, Ts DateTime, LabelsHash "
	"UInt64, "
	"StackHash UInt64, Value Int64) ENGINE = MergeTree PARTITION BY toDate(Ts) ORDER BY "
	"(Service, Type, toStartOfHour(Ts), StackHash, LabelsHash, Ts)";

struct clickhouse {
	struct engine base;
	unsigned int port;
	clockid_t clock; /* of the server */
	unsigned int batch;
	unsigned int minutes; /* in the batch */
	uint64_t start_ns;    /* of its CPU time, when writing began */
	uint64_t rows;
	struct buf data[N_COLUMNS];
	struct buf request;
	struct buf answer;
};

static uint64_t clickhouse_cpu_ns(struct engine *base)
{
	struct timespec t;

	if (clock_gettime(((struct clickhouse *)base)->clock, &t) < 0)
		engine_fail("the ClickHouse server is gone");
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void must(int r)
{
	if (r < 0)
		engine_fail("a batch for ClickHouse is too large: %s", strerror(-r));
}

static void send_all(int fd, struct view bytes)
{
	while (bytes.len > 0) {
		ssize_t n = write(fd, bytes.data, bytes.len);

		if (n <= 0)
			engine_fail("ClickHouse does not take more: %m");
		bytes = view_of(bytes.data + n, bytes.len - (size_t)n);
	}
}

/* One request on a connection of its own; the answer's body lies in c->answer, NUL at its end. */
static const char *ask(struct clickhouse *c, const char *query, struct view body)
{
	const struct sockaddr_in to = {
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)c->port),
		.sin_addr = {htonl(INADDR_LOOPBACK)},
	};
	_cleanup_close_ int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	uint8_t bytes[65536];
	const char *text;
	ssize_t n;

	if (fd < 0 || connect(fd, (const struct sockaddr *)&to, sizeof(to)) < 0)
		engine_fail("no ClickHouse on port %u: %m", c->port);
	buf_clear(&c->request);
	must(buf_append_str(&c->request, "POST /?query="));
	for (const char *p = query; *p; p++)
		must(buf_printf(&c->request, "%%%02x", (unsigned char)*p));
	must(buf_printf(&c->request, " HTTP/1.0\r\nContent-Length: %zu\r\n\r\n", body.len));
	send_all(fd, buf_view(&c->request));
	send_all(fd, body);
	buf_clear(&c->answer);
	while ((n = read(fd, bytes, sizeof(bytes))) > 0)
		must(buf_append(&c->answer, bytes, (size_t)n));
	text = buf_cstr(&c->answer);
	if (!text || strncmp(text, "HTTP/1.", 7) != 0 || strncmp(text + 8, " 200", 4) != 0)
		engine_fail("ClickHouse says: %.300s", text ? text : "");
	text = strstr(text, "\r\n\r\n");
	return text ? text + 4 : "";
}

static struct engine *clickhouse_open(const char *place, struct load *load)
{
	struct clickhouse *c = calloc(1, sizeof(*c));
	char *rest;
	pid_t pid;

	(void)load;
	if (!c)
		engine_fail("no memory");
	c->base.ops = &engine_clickhouse;
	c->port = (unsigned int)strtoul(place, &rest, 10);
	pid = (pid_t)strtol(rest, &rest, 10);
	c->batch = (unsigned int)strtoul(rest, NULL, 10);
	if (c->batch == 0 || clock_getcpuclockid(pid, &c->clock) != 0)
		engine_fail("%s: PORT PID BATCH is wanted", place);
	for (unsigned int i = 0; i < N_COLUMNS; i++)
		c->data[i].max = MAX_BATCH;
	(void)ask(c, "DROP TABLE IF EXISTS profile_samples", view_of("", 0));
	(void)ask(c, schema, view_of("", 0));
	c->start_ns = clickhouse_cpu_ns(&c->base);
	return &c->base;
}

static void put_text(struct buf *b, const char *text)
{
	must(buf_append_varint(b, strlen(text)));
	must(buf_append_str(b, text));
}

static void clickhouse_write(struct engine *base, const struct load_draw *d)
{
	struct clickhouse *c = (struct clickhouse *)base;
	uint32_t ts = (uint32_t)(d->time_ns / 1000000000);
	uint64_t labels = (d->pid + 1) * 0x9e3779b97f4a7c15ULL;

	for (uint32_t i = 0; i < d->n; i++) {
		uint64_t stack =
			((uint64_t)d->service << 32 | (d->stacks[i] + 1)) * 0x9e3779b97f4a7c15ULL;

		stack ^= stack >> 29; /* as a hash of the frames would be spread */
		for (unsigned int t = 0; t < LOAD_TYPES; t++) {
			if (d->values[i][t] == 0)
				continue;
			put_text(&c->data[SERVICE], load_service(d->service));
			put_text(&c->data[TYPE], load_type(t));
			must(buf_append(&c->data[TS], &ts, sizeof(ts)));
			must(buf_append(&c->data[LABELS], &labels, sizeof(labels)));
			must(buf_append(&c->data[STACK], &stack, sizeof(stack)));
			must(buf_append(&c->data[VALUE], &d->values[i][t], sizeof(int64_t)));
			c->rows++;
		}
	}
}

/* ClickHouse's Native format: a block of columns. */
static void flush(struct clickhouse *c)
{
	_cleanup_(buf_release) struct buf body = {.max = MAX_BATCH};

	if (c->rows == 0)
		return;
	must(buf_append_varint(&body, N_COLUMNS));
	must(buf_append_varint(&body, c->rows));
	for (unsigned int i = 0; i < N_COLUMNS; i++) {
		put_text(&body, columns[i][0]);
		put_text(&body, columns[i][1]);
		must(buf_append(&body, c->data[i].data, c->data[i].len));
		buf_clear(&c->data[i]);
	}
	c->rows = 0;
	c->minutes = 0;
	(void)ask(c, "INSERT INTO profile_samples FORMAT Native", buf_view(&body));
}

static void clickhouse_commit(struct engine *base, int64_t now_ns)
{
	struct clickhouse *c = (struct clickhouse *)base;

	(void)now_ns;
	if (++c->minutes == c->batch)
		flush(c);
}

/* Parts are merged as the background would do in time, so that bytes and sums are at their best. */
static void clickhouse_settle(struct engine *base, int64_t now_ns)
{
	struct clickhouse *c = (struct clickhouse *)base;

	(void)now_ns;
	flush(c);
	base->write_cpu_ns = clickhouse_cpu_ns(base) - c->start_ns;
	(void)ask(c, "OPTIMIZE TABLE profile_samples FINAL", view_of("", 0));
	base->pack_cpu_ns = clickhouse_cpu_ns(base) - c->start_ns - base->write_cpu_ns;
}

static void clickhouse_sum(struct engine *base, unsigned int service, unsigned int type,
			   const int64_t window_ns[2], struct engine_sum *ret)
{
	struct clickhouse *c = (struct clickhouse *)base;
	int64_t from = window_ns[0] / 1000000000, to = window_ns[1] / 1000000000;
	char query[1024];
	const char *text;
	uint64_t before;

	flush(c);
	before = clickhouse_cpu_ns(base);
	(void)snprintf(query, sizeof(query),
		       "SELECT count(), sum(v) FROM (SELECT StackHash, sum(Value) AS v FROM "
		       "profile_samples WHERE Service='%s' AND Type='%s' AND "
		       "toStartOfHour(Ts)>=toStartOfHour(toDateTime(%" PRId64 ")) AND "
		       "toStartOfHour(Ts)<=toDateTime(%" PRId64 ") AND Ts>=toDateTime(%" PRId64
		       ") AND Ts<toDateTime(%" PRId64 ") GROUP BY StackHash)",
		       load_service(service), load_type(type), from, to, from, to);
	text = ask(c, query, view_of("", 0));
	c->start_ns += clickhouse_cpu_ns(base) - before; /* it is no part of writing */
	*ret = (struct engine_sum){0};
	if (sscanf(text, "%" SCNu64 " %" SCNd64, &ret->stacks, &ret->total) != 2)
		engine_fail("ClickHouse answers: %.100s", text);
}

static uint64_t clickhouse_bytes(struct engine *base)
{
	return strtoull(ask((struct clickhouse *)base,
			    "SELECT sum(bytes_on_disk) FROM system.parts WHERE active AND "
			    "table='profile_samples'",
			    view_of("", 0)),
			NULL, 10);
}

static void clickhouse_close(struct engine *base)
{
	struct clickhouse *c = (struct clickhouse *)base;

	for (unsigned int i = 0; i < N_COLUMNS; i++)
		buf_release(&c->data[i]);
	buf_release(&c->request);
	buf_release(&c->answer);
	free(c);
}

const struct engine_ops engine_clickhouse = {
	.open = clickhouse_open,
	.write = clickhouse_write,
	.commit = clickhouse_commit,
	.settle = clickhouse_settle,
	.sum = clickhouse_sum,
	.cpu_ns = clickhouse_cpu_ns,
	.bytes = clickhouse_bytes,
	.close = clickhouse_close,
};
