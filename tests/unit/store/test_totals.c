/*
 * tests/unit/store/test_totals.c: the overview says what the points say, against a plain model:
 * through restarts, late points, midnight, roll-ups, and with files that have no totals.
 */
#include "test_metrics.h"

#include <errno.h>

#include "store/sqlite/state.h"
#include "store/totals/block.h"

#define TYPE_LIVE "go_runtime:heap_live:bytes"
#define TYPE_CYCLES "go_runtime:gc_cycles:count"
#define MINUTE_NS (60 * SEC_NS)
#define DATE "2024-10-04"
#define N_FACTS 6000

enum { ALLOC, INUSE, LIVE, CYCLES, N_TYPES };
static const char *const types[N_TYPES] = {TYPE_ALLOC, TYPE_INUSE, TYPE_LIVE, TYPE_CYCLES};
static const char *const services[] = {"svc", "api", "db/worker"};
static const char *const pids[] = {"11", "22", "33"};

struct fact {
	int service, pid, type;
	int64_t time_ns;
	int64_t value;
};

struct model {
	struct fact facts[N_FACTS];
	size_t n, committed;
	uint64_t seed;
};

static uint64_t draw(struct model *m, uint64_t below)
{
	m->seed = m->seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (m->seed >> 33) % below;
}

static void add_fact(struct model *m, int service, int pid, int type, int64_t time_ns,
		     int64_t value)
{
	assert_true(m->n < N_FACTS);
	m->facts[m->n++] = (struct fact){service, pid, type, time_ns, value};
}

static void write_heap(struct model *m, struct rig *rig, int service, int pid, int64_t time_ns)
{
	struct profile *p = make_profile();
	int64_t alloc = 0, inuse = 0;
	struct err err = {};

	for (uint64_t n = draw(m, 4); n > 0; n--) {
		int64_t a = (int64_t)draw(m, 1000) * 512 - 4096, b = (int64_t)draw(m, 1U << 30);

		add_stack(p, (unsigned int)draw(m, 50), a, b);
		alloc += a;
		inuse += b;
	}
	if (write_profile(rig, services[service], pids[pid], time_ns, p, &err) < 0)
		fail_msg("%s", err.text);
	profile_free(p);
	add_fact(m, service, pid, ALLOC, time_ns, alloc);
	add_fact(m, service, pid, INUSE, time_ns, inuse);
}

static void write_gauges(struct model *m, struct rig *rig, int service, int pid, int64_t time_ns)
{
	struct metric_point points[] = {
		{.metric = &test_live, .value = (double)draw(m, 1U << 20), .increase = NAN},
		{.metric = &test_cycles, .value = 9, .increase = (double)draw(m, 100)},
	};

	assert_int_equal(write_points(rig, services[service], pids[pid], time_ns, points, 2), 0);
	add_fact(m, service, pid, LIVE, time_ns, (int64_t)points[0].value);
	add_fact(m, service, pid, CYCLES, time_ns, (int64_t)points[1].increase);
}

/* Whether one of the first n facts has the same service, type and time; and the same process. */
static bool is_met(const struct model *m, size_t n, const struct fact *f, bool same_process)
{
	for (size_t i = 0; i < n; i++)
		if (m->facts[i].service == f->service && m->facts[i].type == f->type &&
		    m->facts[i].time_ns == f->time_ns &&
		    (!same_process || m->facts[i].pid == f->pid))
			return true;
	return false;
}

static struct store_overview_cell want_cell(const struct model *m, int service, int type,
					    int64_t from_ns, int64_t to_ns)
{
	struct store_overview_cell c = {0};

	for (size_t i = 0; i < m->n; i++) {
		const struct fact *f = &m->facts[i];

		if (f->service != service || f->type != type || f->time_ns < from_ns ||
		    f->time_ns >= to_ns)
			continue;
		c.sum += f->value;
		c.times += !is_met(m, i, f, false);
		c.points += !is_met(m, i, f, true);
	}
	return c;
}

static const struct store_overview_service *find(const struct store_overview *o, const char *name)
{
	for (size_t i = 0; i < o->len; i++)
		if (strcmp(o->services[i].name, name) == 0)
			return &o->services[i];
	return NULL;
}

static void read_overview(struct rig *rig, int64_t from_ns, int64_t to_ns, int64_t step_ns,
			  struct store_overview *ret)
{
	struct store_overview_query q = {.from_ns = from_ns, .to_ns = to_ns, .step_ns = step_ns};
	struct err err = {};

	memcpy(q.types, types, sizeof(types));
	if (store_overview(rig->store, &q, ret, &err) < 0)
		fail_msg("%s", err.text);
}

static bool has_type(const struct store_overview *o, const struct store_overview_service *s,
		     const char *type)
{
	for (size_t i = 0; i < o->n_types; i++)
		if (strcmp(o->types[i], type) == 0)
			return s->types[i / 64] >> i % 64 & 1;
	return false;
}

static void check_service(const struct model *m, const struct store_overview *o, int service,
			  int64_t from_ns, int64_t to_ns, int64_t step_ns)
{
	const struct store_overview_service *s = find(o, services[service]);
	int64_t first = INT64_MAX, last = 0;

	for (int type = 0; type < N_TYPES; type++) {
		bool any = false;

		for (size_t i = 0; i < o->n_steps; i++) {
			int64_t begin = from_ns + (int64_t)i * step_ns;
			struct store_overview_cell want =
				want_cell(m, service, type, begin, MIN(begin + step_ns, to_ns));

			any |= want.times > 0;
			if (want.times == 0) {
				if (s && s->cells[type])
					assert_int_equal(s->cells[type][i].times, 0);
				continue;
			}
			assert_non_null(s);
			assert_non_null(s->cells[type]);
			assert_int_equal(s->cells[type][i].sum, want.sum);
			assert_int_equal(s->cells[type][i].times, want.times);
			assert_int_equal(s->cells[type][i].points, want.points);
		}
		if (s)
			assert_int_equal(has_type(o, s, types[type]), any);
	}
	for (size_t i = 0; i < m->n; i++)
		if (m->facts[i].service == service && m->facts[i].time_ns >= from_ns &&
		    m->facts[i].time_ns < to_ns) {
			first = MIN(first, m->facts[i].time_ns);
			last = MAX(last, m->facts[i].time_ns);
		}
	assert_int_equal(s != NULL, last > 0);
	if (s) {
		assert_int_equal(s->first_ns, first);
		assert_int_equal(s->last_ns, last);
	}
}

static void check_window(const struct model *m, struct rig *rig, int64_t from_ns, int64_t to_ns,
			 int64_t step_ns)
{
	struct store_overview o = {0};

	read_overview(rig, from_ns, to_ns, step_ns, &o);
	assert_int_equal(o.damaged, 0);
	for (int i = 0; i < (int)ARRAY_SIZE(services); i++)
		check_service(m, &o, i, from_ns, to_ns, step_ns);
	store_overview_release(&o);
}

static void check_windows(struct model *m, struct rig *rig)
{
	for (int i = 0; i < 6; i++) {
		int64_t from = DAY_0 + (int64_t)draw(m, 1800) * MINUTE_NS;
		int64_t step = (int64_t)(1 + draw(m, 45)) * MINUTE_NS;

		check_window(m, rig, from, from + (int64_t)(1 + draw(m, 40)) * step, step);
	}
	check_window(m, rig, DAY_0, DAY_0 + 2 * DAY_NS, 20 * MINUTE_NS);
	check_window(m, rig, DAY_0, DAY_0 + 2 * DAY_NS, 2 * DAY_NS);
}

/* A burst of writes around a time; some late, some of one time twice. */
static void write_burst(struct model *m, struct rig *rig, int64_t now_ns)
{
	for (int i = 0; i < 24; i++) {
		int64_t late = draw(m, 5) ? 0 : (int64_t)draw(m, 4000) * SEC_NS;
		int64_t time = MAX(now_ns - late, DAY_0);
		struct fact f = {.service = (int)draw(m, ARRAY_SIZE(services)),
				 .pid = (int)draw(m, ARRAY_SIZE(pids)),
				 .type = LIVE};

		f.time_ns = time / (15 * SEC_NS) * 15 * SEC_NS + (int64_t)draw(m, 2) * 7000000;
		if (draw(m, 2))
			write_heap(m, rig, f.service, f.pid, f.time_ns);
		else if (!is_met(m, m->n, &f, true))
			write_gauges(m, rig, f.service, f.pid, f.time_ns);
	}
}

static void overview_equals_a_plain_model_through_restarts_and_midnight(void **state)
{
	struct model *m = calloc(1, sizeof(*m));
	struct rig rig;

	(void)state;
	assert_non_null(m);
	rig_init(&rig);
	m->seed = 7;
	for (int round = 0; round < 80; round++) {
		/* Most of a day, over midnight, into the next one. */
		rig.now_ns = DAY_0 + round * 23 * MINUTE_NS;
		write_burst(m, &rig, rig.now_ns);
		if (draw(m, 6) == 0) {
			/* Killed: what was not committed is gone, of totals as of points. */
			m->n = m->committed;
			rig_reopen(&rig);
			continue;
		}
		assert_int_equal(store_commit(rig.store, NULL), 0);
		m->committed = m->n;
		if (draw(m, 3) == 0)
			assert_int_equal(store_maintain(rig.store, rig.now_ns, NULL), 0);
		if (draw(m, 4) == 0)
			rig_reopen(&rig);
		if (round % 20 == 19)
			check_windows(m, &rig);
	}
	assert_true(m->committed > 1000);
	assert_true(count_of(rig_day(&rig, DATE), "SELECT count(*) FROM total WHERE k<4096") > 50);
	assert_true(count_of(rig_day(&rig, DATE), "SELECT count(*) FROM total WHERE k>=4096") > 50);
	check_windows(m, &rig);
	/* Without totals, the points say the same. */
	store_close(rig.store);
	make_old(rig_day(&rig, DATE), 3);
	rig_open(&rig);
	check_windows(m, &rig);
	rig_release(&rig);
	free(m);
}

static void write_minutes(struct model *m, struct rig *rig, int minutes)
{
	for (int i = 0; i < minutes * 4; i++) {
		rig->now_ns = DAY_0 + i * 15 * SEC_NS;
		for (int service = 0; service < 3; service++)
			write_heap(m, rig, service, 0, rig->now_ns);
		assert_int_equal(store_commit(rig->store, NULL), 0);
	}
}

/* Flips what a row holds; the page's checksum is made right, the row's is not. */
static void damage_row(struct rig *rig, const char *where)
{
	char sql[200];

	(void)snprintf(sql, sizeof(sql), "UPDATE %s", where);
	run_sql(rig_day(rig, DATE), sql);
}

static void damaged_totals_are_counted_and_never_wrong(void **state)
{
	struct model *m = calloc(1, sizeof(*m));
	struct store_overview o = {0};
	struct rig rig;

	(void)state;
	assert_non_null(m);
	rig_init(&rig);
	write_minutes(m, &rig, 60);
	assert_int_equal(store_maintain(rig.store, rig.now_ns, NULL), 0);
	store_close(rig.store);
	/* Ten minutes have their minutes. */
	damage_row(&rig, "total SET data=x'010b01000000' WHERE k=4097");
	rig_open(&rig);
	read_overview(&rig, DAY_0, DAY_0 + HOUR_NS, 10 * MINUTE_NS, &o);
	assert_int_equal(o.damaged, 1);
	for (int i = 0; i < 3; i++)
		check_service(m, &o, i, DAY_0, DAY_0 + HOUR_NS, 10 * MINUTE_NS);
	store_overview_release(&o);
	store_close(rig.store);
	/* A minute is a gap. */
	damage_row(&rig, "total SET data=x'010b01000000' WHERE k=13");
	rig_open(&rig);
	read_overview(&rig, DAY_0, DAY_0 + HOUR_NS, MINUTE_NS, &o);
	assert_int_equal(o.damaged, 1);
	for (int i = 0; i < 3; i++) {
		const struct store_overview_service *s = find(&o, services[i]);

		assert_non_null(s);
		assert_int_equal(s->cells[ALLOC][13].times, 0);
		assert_int_equal(
			s->cells[ALLOC][12].sum,
			want_cell(m, i, ALLOC, DAY_0 + 12 * MINUTE_NS, DAY_0 + 13 * MINUTE_NS).sum);
	}
	store_overview_release(&o);
	rig_release(&rig);
	free(m);
}

static int forget_report(void *ctx, const struct store_sqlite_report *report)
{
	*(uint64_t *)ctx += report->damaged;
	return 0;
}

static void repair_of_damaged_totals_reads_the_points(void **state)
{
	struct model *m = calloc(1, sizeof(*m));
	uint64_t damaged = 0;
	struct rig rig;

	(void)state;
	assert_non_null(m);
	rig_init(&rig);
	write_minutes(m, &rig, 30);
	assert_int_equal(store_maintain(rig.store, rig.now_ns, NULL), 0);
	store_close(rig.store);
	damage_row(&rig, "total SET data=x'010b01000000' WHERE k=13");
	rig_open(&rig);
	assert_int_equal(store_sqlite_check(rig.store, forget_report, &damaged, NULL), 0);
	assert_int_equal(damaged, 1);
	assert_int_equal(store_sqlite_repair(rig.store, forget_report, &damaged, NULL), 0);
	check_window(m, &rig, DAY_0, DAY_0 + HOUR_NS, MINUTE_NS);
	damaged = 0;
	assert_int_equal(store_sqlite_check(rig.store, forget_report, &damaged, NULL), 0);
	assert_int_equal(damaged, 0);
	/* What comes later is in the points as well. */
	rig.now_ns += MINUTE_NS;
	write_heap(m, &rig, 1, 1, rig.now_ns);
	assert_int_equal(store_commit(rig.store, NULL), 0);
	check_window(m, &rig, DAY_0, DAY_0 + HOUR_NS, MINUTE_NS);
	rig_release(&rig);
	free(m);
}

static void a_service_that_gives_way_leaves_the_totals_of_its_hours(void **state)
{
	const uint8_t services_bits[STORE_DAY_MAX_STREAMS / 8 + 1] = {1U << 1};
	const struct store_totals_drop drop = {services_bits, 0, 1};
	struct model *m = calloc(1, sizeof(*m));
	struct store_writer_tools tools = {0};
	struct store_overview o = {0};
	struct store_writer w;
	struct err err = {};
	struct rig rig;

	(void)state;
	assert_non_null(m);
	rig_init(&rig);
	write_minutes(m, &rig, 90);
	assert_int_equal(store_maintain(rig.store, rig.now_ns, NULL), 0);
	store_close(rig.store);
	assert_int_equal(store_writer_open(&w, rig.dir, DAY_0 / DAY_NS, &err), 0);
	assert_int_equal(store_writer_begin(&w, &err), 0);
	assert_int_equal(store_totals_drop(&w, &tools, &drop, &err), 0);
	assert_int_equal(store_writer_commit(&w, &tools, &err), 0);
	store_writer_close(&w);
	store_writer_tools_release(&tools);
	rig_open(&rig);
	read_overview(&rig, DAY_0, DAY_0 + 2 * HOUR_NS, HOUR_NS / 2, &o);
	assert_int_equal(find(&o, services[0])->cells[ALLOC][0].times, 0);
	assert_int_equal(find(&o, services[0])->cells[ALLOC][1].times, 0);
	assert_int_equal(find(&o, services[0])->cells[ALLOC][2].times, 120);
	assert_int_equal(find(&o, services[0])->first_ns, DAY_0 + HOUR_NS);
	for (int i = 1; i < 3; i++)
		check_service(m, &o, i, DAY_0, DAY_0 + 2 * HOUR_NS, HOUR_NS / 2);
	store_overview_release(&o);
	rig_release(&rig);
	free(m);
}

/* --- what services are */

static void write_labelled(struct rig *rig, const char *service, const char *pid,
			   const char *runtime, const char *parent, int64_t time_ns)
{
	const struct label labels[] = {{"process.pid", pid},
				       {"process.runtime.description", runtime},
				       {"sonde.parent", parent}};
	struct profile *p = make_profile();
	struct store_entry e = {.service = service,
				.family = "go_heap",
				.labels = labels,
				.n_labels = parent    ? 3
					    : runtime ? 2
						      : 1,
				.time_ns = time_ns,
				.profile = p,
				.snapshot_types = 2};

	add_stack(p, 1, 1, 1);
	assert_int_equal(store_write(rig->store, &e, NULL), 0);
	profile_free(p);
}

static void services_have_the_runtime_and_parent_of_their_newest_process(void **state)
{
	const struct store_overview_service *s;
	struct store_overview o = {0};
	struct rig rig;

	(void)state;
	rig_init(&rig);
	write_labelled(&rig, "app", "1", "Go 1.26", "systemd", DAY_0);
	write_labelled(&rig, "app", "2", "Go 1.27", "cron", DAY_0 + 15 * SEC_NS);
	write_labelled(&rig, "app", "1", "Go 1.26", "systemd", DAY_0 + 30 * SEC_NS);
	write_labelled(&rig, "app", "3", NULL, NULL, DAY_0 + 30 * SEC_NS);
	write_labelled(&rig, "touch", "4", "native", "make", DAY_0);
	write_labelled(&rig, "touch", "5", "native", "make", DAY_0 + 59 * SEC_NS);
	write_labelled(&rig, "touch", "6", "native", "make", DAY_0 + 600 * SEC_NS);
	assert_int_equal(store_commit(rig.store, NULL), 0);
	read_overview(&rig, DAY_0, DAY_0 + HOUR_NS, HOUR_NS, &o);
	s = find(&o, "app");
	assert_non_null(s);
	assert_string_equal(s->runtime, "Go 1.27");
	assert_string_equal(s->parent, "cron");
	assert_false(s->lived);
	assert_int_equal(s->processes, 2);
	store_overview_release(&o);
	/* It is there for a minute; over a restart, its runtime stays. */
	rig_reopen(&rig);
	write_labelled(&rig, "app", "3", NULL, NULL, DAY_0 + 45 * SEC_NS);
	write_labelled(&rig, "app", "3", NULL, NULL, DAY_0 + 105 * SEC_NS);
	assert_int_equal(store_commit(rig.store, NULL), 0);
	rig_reopen(&rig);
	read_overview(&rig, DAY_0, DAY_0 + HOUR_NS, HOUR_NS, &o);
	s = find(&o, "app");
	assert_non_null(s);
	assert_string_equal(s->runtime, "Go 1.27");
	assert_true(s->lived);
	s = find(&o, "touch");
	assert_non_null(s);
	assert_string_equal(s->parent, "make");
	assert_false(s->lived);
	assert_int_equal(s->processes, 1);
	store_overview_release(&o);
	rig_release(&rig);
}

/* --- blocks */

static void any_number_of_times_fits_a_minute(void **state)
{
	struct store_totals_minute m = {0}, again = {0};
	struct store_totals_block b;
	struct store_totals_entry e = {.type = 3, .service = 9, .points = 1, .sum = -INT64_MAX};
	_cleanup_(store_codec_release) struct store_codec c = {0};
	_cleanup_(buf_release) struct buf out = {0}, lists = {0}, second = {0};

	(void)state;
	for (uint32_t ms = 0; ms < 60000; ms += 100)
		assert_int_equal(store_totals_minute_add(&m, &e, (ms * 7) % 60000), 0);
	e = (struct store_totals_entry){.type = 3, .service = 65534, .points = 1, .sum = 8};
	assert_int_equal(store_totals_minute_add(&m, &e, 59999), 0);
	assert_int_equal(store_totals_minute_encode(&c, &m, &out), 0);
	assert_int_equal(store_totals_open(&c, buf_view(&out), &lists, &b), 0);
	assert_int_equal(store_totals_next_type(&b), 1);
	assert_int_equal(store_totals_next(&b, &e), 1);
	assert_int_equal(e.sum, -INT64_MAX);
	assert_int_equal(e.points, 600);
	assert_int_equal(b.lists[e.times].n, 600);
	assert_int_equal(b.lists[e.times].last_ms, 59900);
	assert_int_equal(store_totals_next(&b, &e), 1);
	assert_int_equal(e.service, 65534);
	assert_int_equal(b.lists[e.times].first_ms, 59999);
	assert_int_equal(store_totals_next(&b, &e), 0);
	assert_int_equal(store_totals_next_type(&b), 0);
	assert_int_equal(store_totals_minute_decode(&c, buf_view(&out), &again), 0);
	assert_int_equal(store_totals_minute_encode(&c, &again, &second), 0);
	assert_int_equal(out.len, second.len);
	assert_memory_equal(out.data, second.data, out.len);
	store_totals_minute_release(&m);
	store_totals_minute_release(&again);
}

static void forged_blocks_are_refused(void **state)
{
	/* whole, lists, entries; then columns that are too short for what they claim. */
	static const uint8_t bodies[][12] = {
		{1, 0, 1, 0, 0, 0, 0},		/* an entry, but no group */
		{2, 0, 0, 0, 0, 0, 0},		/* neither a minute nor ten */
		{1, 2, 1, 0, 0, 0, 0},		/* more lists than entries */
		{1, 1, 1, 4, 0, 0, 0, 0},	/* a list without times */
		{1, 0, 1, 0, 6, 0, 1, 0, 0, 0}, /* a divisor of 0 */
	};
	_cleanup_(store_codec_release) struct store_codec c = {0};
	_cleanup_(buf_release) struct buf out = {0}, lists = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bodies); i++) {
		struct store_totals_block b;
		int r;

		assert_int_equal(store_codec_begin(&out, STORE_CODEC_TOTALS), 0);
		assert_int_equal(buf_append(&out, bodies[i], sizeof(bodies[i])), 0);
		store_codec_end(&out);
		r = store_totals_open(&c, buf_view(&out), &lists, &b);
		if (r == 0)
			r = store_totals_next_type(&b);
		assert_int_equal(r, -EBADMSG);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(overview_equals_a_plain_model_through_restarts_and_midnight),
		cmocka_unit_test(damaged_totals_are_counted_and_never_wrong),
		cmocka_unit_test(repair_of_damaged_totals_reads_the_points),
		cmocka_unit_test(a_service_that_gives_way_leaves_the_totals_of_its_hours),
		cmocka_unit_test(services_have_the_runtime_and_parent_of_their_newest_process),
		cmocka_unit_test(any_number_of_times_fits_a_minute),
		cmocka_unit_test(forged_blocks_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
