/* tests/unit/java/test_hsperf.c: a JVM's counters, and files that only look like them. */
#include "java/hsperf.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "base/buf.h"
#include "java/metrics.h"

struct file {
	uint8_t bytes[8192];
	uint32_t used;
	uint32_t n;
};

static void put_u32(struct file *f, uint32_t off, uint32_t value)
{
	memcpy(f->bytes + off, &value, sizeof(value));
}

static void finish(struct file *f)
{
	static const uint8_t head[] = {0xca, 0xfe, 0xc0, 0xc0, 1, 2, 0, 1};

	memcpy(f->bytes, head, sizeof(head));
	put_u32(f, 8, f->used);
	put_u32(f, 24, 32);
	put_u32(f, 28, f->n);
}

/* Returns where the entry lies. */
static uint32_t add(struct file *f, const char *name, char type, const void *value, uint32_t len)
{
	uint32_t at = f->used ? f->used : 32;
	uint32_t data = (20 + (uint32_t)strlen(name) + 1 + 7) & ~7U;

	put_u32(f, at, (data + len + 7) & ~7U);
	put_u32(f, at + 4, 20);
	put_u32(f, at + 8, type == 'B' ? len : 0);
	f->bytes[at + 12] = (uint8_t)type;
	put_u32(f, at + 16, data);
	memcpy(f->bytes + at + 20, name, strlen(name) + 1);
	memcpy(f->bytes + at + data, value, len);
	f->used = at + ((data + len + 7) & ~7U);
	f->n++;
	return at;
}

static uint32_t add_number(struct file *f, const char *name, int64_t value)
{
	return add(f, name, 'J', &value, sizeof(value));
}

static uint32_t add_text(struct file *f, const char *name, const char *value)
{
	return add(f, name, 'B', value, (uint32_t)strlen(value) + 1);
}

static struct java_hsperf *open_file(const struct file *f, size_t len)
{
	int fd = memfd_create("hsperf", MFD_CLOEXEC);
	struct java_hsperf *h;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, f->bytes, len), (ssize_t)len);
	assert_int_equal(java_hsperf_open_take(fd, &h, NULL), 0);
	return h;
}

static void counters_are_read_by_name(void **state)
{
	_cleanup_(java_hsperf_closep) struct java_hsperf *h = NULL;
	struct file f = {};
	int64_t number;
	char text[8];

	(void)state;
	add_number(&f, "sun.rt.safepoints", 42);
	add_text(&f, "sun.gc.cause", "No \033GC");
	finish(&f);
	h = open_file(&f, sizeof(f.bytes));
	assert_int_equal(java_hsperf_read(h, NULL), 0);
	assert_true(java_hsperf_number(h, "sun.rt.safepoints", &number));
	assert_int_equal(number, 42);
	assert_true(java_hsperf_text(h, "sun.gc.cause", text, sizeof(text)));
	assert_string_equal(text, "No ?GC");
	assert_false(java_hsperf_number(h, "sun.gc.cause", &number));
	assert_false(java_hsperf_number(h, "sun.rt.safe", &number));
}

static void every_wrong_length_is_refused(void **state)
{
	static const uint32_t wrong[] = {1, 19, 0x7fffffff, 0xffffffff};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		for (uint32_t field = 0; field <= 16; field += 4) {
			_cleanup_(java_hsperf_closep) struct java_hsperf *h = NULL;
			struct java_counter c;
			struct file f = {};
			size_t at = 0;
			uint32_t entry = add_text(&f, "some.name", "value");

			/* The fourth word holds the type and three bytes that do not matter. */
			if (field == 12)
				continue;
			put_u32(&f, entry + field, wrong[i]);
			finish(&f);
			h = open_file(&f, sizeof(f.bytes));
			assert_int_equal(java_hsperf_read(h, NULL), 0);
			/* A text of one byte is a text. */
			if (field == 8 && wrong[i] < 64)
				continue;
			assert_int_equal(java_hsperf_next(h, &at, &c), -EBADMSG);
		}
}

static void headers_that_make_no_sense_are_refused(void **state)
{
	static const struct {
		uint32_t off;
		uint32_t value;
		int code;
	} cases[] = {
		{0, 0, -EBADMSG},	    {4, 0x01000200, -ENOTSUP}, /* big-endian */
		{4, 0x01000301, -ENOTSUP},  {4, 0x00000201, -EAGAIN},
		{8, 8193, -EBADMSG},	    {8, 0xffffffff, -EBADMSG},
		{24, 0, -EBADMSG},	    {24, 0x7fffffff, 0},
		{28, 0x7fffffff, -EBADMSG}, {28, 0, 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_(java_hsperf_closep) struct java_hsperf *h = NULL;
		struct java_counter c;
		struct file f = {};
		size_t at = 0;

		add_number(&f, "a", 1);
		finish(&f);
		put_u32(&f, cases[i].off, cases[i].value);
		h = open_file(&f, sizeof(f.bytes));
		assert_int_equal(java_hsperf_read(h, NULL), cases[i].code);
		assert_int_equal(java_hsperf_next(h, &at, &c), 0);
	}
}

static void a_file_that_shrinks_is_an_error_and_one_that_grows_has_a_limit(void **state)
{
	_cleanup_(java_hsperf_closep) struct java_hsperf *h = NULL;
	struct file f = {};
	int fd;

	(void)state;
	add_number(&f, "a", 1);
	finish(&f);
	h = open_file(&f, 40);
	assert_int_equal(java_hsperf_read(h, NULL), -EBADMSG);
	java_hsperf_close(h);
	fd = memfd_create("hsperf", MFD_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)1 << 40), 0);
	assert_int_equal(java_hsperf_open_take(fd, &h, NULL), 0);
	assert_int_equal(java_hsperf_read(h, NULL), -E2BIG);
}

static void an_entry_being_made_ends_the_list(void **state)
{
	_cleanup_(java_hsperf_closep) struct java_hsperf *h = NULL;
	struct java_counter c;
	struct file f = {};
	size_t at = 0;

	(void)state;
	add_number(&f, "a", 1);
	f.used += 64;
	f.n++;
	finish(&f);
	h = open_file(&f, sizeof(f.bytes));
	assert_int_equal(java_hsperf_read(h, NULL), 0);
	assert_int_equal(java_hsperf_next(h, &at, &c), 1);
	assert_int_equal(java_hsperf_next(h, &at, &c), 0);
}

static void a_later_reading_sees_new_values(void **state)
{
	_cleanup_(java_hsperf_closep) struct java_hsperf *h = NULL;
	struct file f = {};
	int fd = memfd_create("hsperf", MFD_CLOEXEC);
	int64_t number;
	uint32_t at;

	(void)state;
	at = add_number(&f, "a", 1);
	finish(&f);
	assert_int_equal(write(fd, f.bytes, sizeof(f.bytes)), sizeof(f.bytes));
	assert_int_equal(java_hsperf_open_take(fd, &h, NULL), 0);
	assert_int_equal(java_hsperf_read(h, NULL), 0);
	number = 2;
	assert_int_equal(pwrite(fd, &number, sizeof(number), at + 24), sizeof(number));
	assert_true(java_hsperf_number(h, "a", &number));
	assert_int_equal(number, 1);
	assert_int_equal(java_hsperf_read(h, NULL), 0);
	assert_true(java_hsperf_number(h, "a", &number));
	assert_int_equal(number, 2);
}

static int write_point(void *arg, const struct metric_point *p)
{
	int r = buf_printf(arg, "%s", p->metric->name);

	for (size_t i = 0; r == 0 && i < METRIC_MAX_ATTRIBUTES; i++)
		if (p->attributes[i])
			r = buf_printf(arg, " %s=%s", p->metric->labels[i], p->attributes[i]);
	return r < 0 ? r : buf_printf(arg, " %g\n", p->value);
}

static void counters_become_metrics(void **state)
{
	static const char expected[] = "jvm.info vm=OpenJDK version=17.0.15 1\n"
				       "jvm.uptime 2.5e+09\n"
				       "jvm.safepoint.count 3\n"
				       "jvm.safepoint.time 2e+09\n"
				       "jvm.safepoint.sync.time 0\n"
				       "jvm.memory.used generation=old space=tenured 70\n"
				       "jvm.memory.committed generation=old space=tenured 100\n"
				       "jvm.gc.collections gc=PSScavenge 5\n"
				       "jvm.gc.time gc=PSScavenge 1.5e+09\n";
	_cleanup_(java_hsperf_closep) struct java_hsperf *h = NULL;
	_cleanup_(buf_release) struct buf text = {};
	struct java_metrics m;
	struct file f = {};

	(void)state;
	add_number(&f, "sun.gc.collector.0.time", 3000);
	add_number(&f, "sun.gc.generation.1.space.0.used", 70);
	add_number(&f, "sun.gc.generation.1.space.0.capacity", 100);
	add_text(&f, "sun.gc.generation.1.space.0.name", "tenured");
	add_text(&f, "sun.gc.generation.1.name", "old");
	/* Out of bounds, and nonsense. */
	add_number(&f, "sun.gc.generation.9.space.9.used", 1);
	add_number(&f, "sun.gc.generation.x.space.0.used", 1);
	add_number(&f, "sun.gc.collector.9.time", 1);
	add_number(&f, "sun.gc.collector.", 1);
	add_number(&f, "sun.gc.collector.0.invocations", 5);
	add_text(&f, "sun.gc.collector.0.name", "PSScavenge");
	add_number(&f, "sun.rt.safepoints", 3);
	add_number(&f, "sun.rt.safepointTime", 4000);
	add_number(&f, "sun.rt.safepointSyncTime", -4000);
	add_number(&f, "sun.rt.createVmBeginTime", 1000);
	add_number(&f, "sun.os.hrt.frequency", 2000);
	add_text(&f, "java.property.java.version", "17.0.15");
	add_text(&f, "java.property.java.vm.name", "OpenJDK");
	finish(&f);
	h = open_file(&f, sizeof(f.bytes));
	assert_int_equal(java_hsperf_read(h, NULL), 0);
	assert_int_equal(java_metrics_read(h, &m, NULL), 0);
	assert_int_equal(java_metrics_each(&m, 3500, write_point, &text), 0);
	assert_string_equal(buf_cstr(&text), expected);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counters_are_read_by_name),
		cmocka_unit_test(every_wrong_length_is_refused),
		cmocka_unit_test(headers_that_make_no_sense_are_refused),
		cmocka_unit_test(a_file_that_shrinks_is_an_error_and_one_that_grows_has_a_limit),
		cmocka_unit_test(an_entry_being_made_ends_the_list),
		cmocka_unit_test(a_later_reading_sees_new_values),
		cmocka_unit_test(counters_become_metrics),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
