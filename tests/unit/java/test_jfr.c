/* tests/unit/java/test_jfr.c: recordings that we wrote ourselves, right, growing and forged ones.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "java/jfr/jfr.h"
#include "test_jfr.h"

static const char *const all_fields[] = {"flag",   "small", "letter", "brief",	 "whole", "wide",
					 "single", "real",  "text",   "numbers", "kind",  "absent"};
static const char *const alloc_fields[] = {"weight", "objectClass", "stackTrace", "eventThread",
					   "startTime"};

static const struct java_jfr_query test_queries[] = {
	{"test.All", all_fields, ARRAY_SIZE(all_fields)},
	{"jdk.ObjectAllocationSample", alloc_fields, ARRAY_SIZE(alloc_fields)},
};

static const struct java_jfr_options test_options = {.queries = test_queries,
						     .n_queries = ARRAY_SIZE(test_queries)};
static const struct java_jfr_options live_options = {
	.queries = test_queries, .n_queries = ARRAY_SIZE(test_queries), .live = true};

static struct java_jfr *open_forged(const struct forge *f)
{
	struct java_jfr *j = NULL;
	struct err err;

	assert_int_equal(java_jfr_open_take(f_file(f->out.data, f->out.len), "test.jfr",
					    &test_options, &j, &err),
			 0);
	return j;
}

/* How many events there are, or the first error. */
static int drain(struct java_jfr *j, struct err *err)
{
	struct java_jfr_event e;
	int n = 0, r;

	while ((r = java_jfr_next(j, &e, err)) == 1)
		n++;
	return r < 0 ? r : n;
}

static int drain_forged(struct forge *f, struct err *err)
{
	struct java_jfr *j = open_forged(f);
	int r = drain(j, err);

	java_jfr_close(j);
	buf_release(&f->out);
	return r;
}

static struct forge simple_chunk(int n_events)
{
	struct forge f = {0};

	f_chunk(&f);
	f_metadata(&f);
	for (int i = 0; i < n_events; i++)
		f_alloc(&f, 300 + i, 1, 1, 1000 + i);
	f_constants(&f);
	f_finish(&f);
	return f;
}

static void put_all_types(struct forge *f)
{
	f_begin(f, E_ALL);
	f_num(f, 200);
	f_byte(f, 1);
	f_byte(f, 0xfe);
	f_num(f, 'x');
	f_num(f, (uint16_t)-3);
	f_num(f, (uint32_t)-4);
	f_num(f, (uint64_t)INT64_MIN);
	f_big(f, 0x3fc00000, 4);
	f_big(f, 0xc004000000000000, 8);
	f_text(f, "plain");
	f_nums(f, 4, 3L, 7L, 8L, 9L);
	f_num(f, 1);
	f_end(f);
}

static void values_have_the_declared_types(void **state)
{
	struct forge f = {0};
	const struct java_jfr_value *v;
	struct java_jfr_event e;
	struct view name;
	struct err err;
	struct java_jfr *j;

	(void)state;
	f_chunk(&f);
	f_metadata(&f);
	put_all_types(&f);
	f_constants(&f);
	f_finish(&f);
	j = open_forged(&f);
	assert_int_equal(java_jfr_next(j, &e, &err), 1);
	assert_int_equal(e.query, 0);
	v = e.values;
	assert_int_equal(v[0].number, 1);
	assert_int_equal(v[1].number, -2);
	assert_int_equal(v[2].number, 'x');
	assert_int_equal(v[3].number, -3);
	assert_int_equal(v[4].number, -4);
	assert_true(v[5].number == INT64_MIN);
	assert_true(v[6].real == 1.5);
	assert_true(v[7].real == -2.5);
	assert_true(view_eq(v[8].text, view_str("plain")));
	assert_int_equal(v[9].kind, JAVA_JFR_VALUE_BYTES);
	assert_true(java_jfr_class_name(j, &v[10], &name));
	assert_true(view_eq(name, view_str("app/Main")));
	assert_int_equal(v[11].kind, JAVA_JFR_VALUE_NONE);
	assert_int_equal(java_jfr_next(j, &e, &err), 0);
	java_jfr_close(j);
	buf_release(&f.out);
}

static void put_encoded(struct forge *f, const uint8_t *text, size_t len)
{
	f_begin(f, E_ALL);
	f_num(f, 200);
	f_nums(f, 6, 0L, 0L, 0L, 0L, 0L, 0L);
	f_big(f, 0, 4);
	f_big(f, 0, 8);
	(void)buf_append(&f->out, text, len);
	f_nums(f, 2, 0L, 0L);
	f_end(f);
}

static void strings_of_all_encodings_are_read(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
		const char *text; /* NULL for null */
	} cases[] = {
		/* First, when nothing was decoded yet and there is no memory for it. */
		{"\4\0", 2, ""},
		{"\5\0", 2, ""},
		{"\0", 1, NULL},
		{"\1", 1, ""},
		{"\2\x05", 2, "pooled"},
		{"\3\2ab", 4, "ab"},
		{"\4\3a\xe4\x01z", 6, "a\xc3\xa4z"},
		{"\4\2\xbd\xb0\x03\x80\xbc\x03", 8, "\xf0\x9f\x98\x80"}, /* a pair */
		{"\4\1\xbd\xb0\x03", 5, "\xef\xbf\xbd"},		 /* half of one */
		{"\5\2a\xe4", 4, "a\xc3\xa4"},
	};
	struct forge f = {0};
	struct java_jfr_event e;
	struct err err;
	struct java_jfr *j;

	(void)state;
	f_chunk(&f);
	f_metadata(&f);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		put_encoded(&f, (const uint8_t *)cases[i].bytes, cases[i].len);
	f_checkpoint(&f, 1);
	f_nums(&f, 2, (long)T_STRING, 1L);
	f_symbol(&f, 5, "pooled");
	f_end(&f);
	f_finish(&f);
	j = open_forged(&f);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct view text;
		bool known;

		assert_int_equal(java_jfr_next(j, &e, &err), 1);
		known = java_jfr_text(j, &e.values[8], &text);
		assert_int_equal(known, cases[i].text != NULL);
		assert_true(!known || view_eq(text, view_str(cases[i].text)));
	}
	java_jfr_close(j);
	buf_release(&f.out);
}

static void stacks_and_threads_are_looked_up(void **state)
{
	struct forge f = simple_chunk(1);
	struct view class_name, method, type;
	struct java_jfr_thread thread;
	struct java_jfr_stack stack;
	struct java_jfr_event e;
	struct err err;
	struct java_jfr *j = open_forged(&f);

	(void)state;
	assert_int_equal(java_jfr_next(j, &e, &err), 1);
	assert_true(java_jfr_stack(j, &e.values[2], &stack));
	assert_int_equal(stack.n_frames, 2);
	assert_true(java_jfr_method_names(&stack, &stack.frames[0], &class_name, &method));
	assert_true(view_eq(class_name, view_str("app/Main")));
	assert_true(view_eq(method, view_str("work")));
	assert_int_equal(stack.frames[0].line, 7);
	assert_true(java_jfr_frame_type(&stack, &stack.frames[0], &type));
	assert_true(view_eq(type, view_str("JIT compiled")));
	assert_true(java_jfr_thread(j, &e.values[3], &thread));
	assert_true(view_eq(thread.java_name, view_str("worker-7")));
	assert_int_equal(thread.os_id, 4711);
	/* 300 ticks, 200 after the start, at 2 GHz. */
	assert_true(java_jfr_time_ns(j, e.values[4].number) == 1000000000100);
	java_jfr_close(j);
	buf_release(&f.out);
}

static void chunks_follow_each_other(void **state)
{
	struct forge f = simple_chunk(3), second = simple_chunk(2);
	struct err err;
	struct java_jfr *j;
	size_t n;

	(void)state;
	(void)buf_append(&f.out, second.out.data, second.out.len);
	j = open_forged(&f);
	assert_int_equal(drain(j, &err), 5);
	assert_int_equal(java_jfr_stats(j)->chunks, 2);
	assert_int_equal(java_jfr_stats(j)->cut_bytes, 0);
	assert_string_equal((const char *)java_jfr_tallies(j, &n)[2].name.data,
			    "jdk.ObjectAllocationSample");
	assert_int_equal(java_jfr_tallies(j, &n)[2].count, 5);
	java_jfr_close(j);
	buf_release(&f.out);
	buf_release(&second.out);
}

static void fed_bytes_give_the_same_events(void **state)
{
	struct forge f = simple_chunk(3), second = simple_chunk(2);
	struct java_jfr *j = NULL;
	struct err err;
	int n = 0;

	(void)state;
	(void)buf_append(&f.out, second.out.data, second.out.len);
	assert_int_equal(java_jfr_open_feed("pipe", &test_options, &j, &err), 0);
	for (size_t i = 0; i < f.out.len; i++) {
		int r;

		assert_int_equal(java_jfr_feed(j, view_of(f.out.data + i, 1), &err), 0);
		r = drain(j, &err);
		assert_true(r >= 0);
		n += r;
	}
	assert_int_equal(n, 5);
	java_jfr_close(j);
	buf_release(&f.out);
	buf_release(&second.out);
}

static void a_file_that_was_cut_gives_what_is_complete(void **state)
{
	struct forge f = simple_chunk(3), second = simple_chunk(2);
	struct err err;
	struct java_jfr *j;

	(void)state;
	(void)buf_append(&f.out, second.out.data, second.out.len - 10);
	j = open_forged(&f);
	assert_int_equal(drain(j, &err), 3);
	assert_int_equal(java_jfr_stats(j)->cut_bytes, second.out.len - 10);
	java_jfr_close(j);
	buf_release(&f.out);
	buf_release(&second.out);
}

static void rewrite(int fd, const struct forge *f)
{
	assert_true(pwrite(fd, f->out.data, f->out.len, 0) == (ssize_t)f->out.len);
}

static void a_growing_chunk_is_followed_without_a_gap(void **state)
{
	struct forge f = simple_chunk(2);
	struct java_jfr *j = NULL;
	struct java_jfr_event e;
	struct java_jfr_stack stack;
	struct err err;
	int fd;

	(void)state;
	f_state(&f, 1);
	fd = f_file(f.out.data, f.out.len);
	assert_int_equal(java_jfr_open_take(dup(fd), "live", &live_options, &j, &err), 0);
	assert_int_equal(drain(j, &err), 2);
	assert_int_equal(drain(j, &err), 0);
	/* Bytes that the header does not tell of yet are not there. */
	f_alloc(&f, 400, 1, 1, 9);
	f_constants(&f);
	rewrite(fd, &f);
	assert_int_equal(drain(j, &err), 0);
	f_finish(&f);
	f_state(&f, JAVA_JFR_STATE_REWRITTEN);
	rewrite(fd, &f);
	assert_int_equal(drain(j, &err), 0);
	f_state(&f, 2);
	rewrite(fd, &f);
	assert_int_equal(java_jfr_next(j, &e, &err), 1);
	assert_true(java_jfr_stack(j, &e.values[2], &stack));
	assert_int_equal(drain(j, &err), 0);
	assert_false(java_jfr_finished(j));
	f_state(&f, JAVA_JFR_STATE_FINISHED);
	rewrite(fd, &f);
	assert_int_equal(drain(j, &err), 0);
	assert_true(java_jfr_finished(j));
	close(fd);
	java_jfr_close(j);
	buf_release(&f.out);
}

static void stacks_of_the_chunk_before_count_in_a_live_file(void **state)
{
	struct forge f = simple_chunk(1), bare = {0};
	struct java_jfr *j = NULL;
	struct java_jfr_event e;
	struct java_jfr_stack stack;
	struct err err;

	(void)state;
	f_chunk(&bare);
	f_metadata(&bare);
	f_alloc(&bare, 300, 1, 1, 5);
	f_finish(&bare);
	assert_int_equal(
		java_jfr_open_take(f_file(f.out.data, f.out.len), "1", &live_options, &j, &err), 0);
	assert_int_equal(drain(j, &err), 1);
	assert_int_equal(java_jfr_switch_take(j, f_file(bare.out.data, bare.out.len), "2", &err),
			 0);
	assert_int_equal(java_jfr_next(j, &e, &err), 1);
	assert_true(java_jfr_stack(j, &e.values[2], &stack));
	java_jfr_close(j);
	/* In a file that is no live one it would be a guess. */
	(void)buf_append(&f.out, bare.out.data, bare.out.len);
	j = open_forged(&f);
	assert_int_equal(java_jfr_next(j, &e, &err), 1);
	assert_int_equal(java_jfr_next(j, &e, &err), 1);
	assert_false(java_jfr_stack(j, &e.values[2], &stack));
	java_jfr_close(j);
	buf_release(&f.out);
	buf_release(&bare.out);
}

static void a_chunk_that_shrinks_is_an_error(void **state)
{
	struct forge f = simple_chunk(2), less = simple_chunk(1);
	struct java_jfr *j = NULL;
	struct err err;
	int fd;

	(void)state;
	f_state(&f, 1);
	f_state(&less, 2);
	fd = f_file(f.out.data, f.out.len);
	assert_int_equal(java_jfr_open_take(dup(fd), "live", &live_options, &j, &err), 0);
	assert_int_equal(drain(j, &err), 2);
	rewrite(fd, &less);
	assert_int_equal(drain(j, &err), -EBADMSG);
	close(fd);
	java_jfr_close(j);
	buf_release(&f.out);
	buf_release(&less.out);
}

static void what_is_no_recording_is_refused(void **state)
{
	struct forge text = {0}, old = simple_chunk(1), fixed = simple_chunk(1);
	struct java_jfr *j = NULL;
	struct err err;

	(void)state;
	(void)buf_append(&text.out, forge_types, 100);
	assert_int_equal(drain_forged(&text, &err), -EBADMSG);
	assert_string_equal(err.text, "test.jfr is not a JFR recording");
	old.out.data[5] = 0;
	assert_int_equal(drain_forged(&old, &err), -ENOTSUP);
	fixed.out.data[67] = 0;
	assert_int_equal(drain_forged(&fixed, &err), -ENOTSUP);
	assert_int_equal(java_jfr_open_take(f_file("", 0), "empty.jfr", &test_options, &j, &err),
			 -EBADMSG);
	assert_string_equal(err.text, "empty.jfr is empty");
}

static void events_without_size_are_refused(void **state)
{
	struct forge f = simple_chunk(0);
	struct err err;

	(void)state;
	f_byte(&f, 0);
	f_finish(&f);
	assert_int_equal(drain_forged(&f, &err), -EBADMSG);
}

static void checkpoints_that_go_round_in_circles_are_refused(void **state)
{
	struct forge f = simple_chunk(1);
	struct err err;

	(void)state;
	/* The distance of the next one leads to where it lies itself, or forwards. */
	f.checkpoint = f.out.len - f.start + 1;
	f_checkpoint(&f, 0);
	f_end(&f);
	f_finish(&f);
	assert_int_equal(drain_forged(&f, &err), -EBADMSG);
}

static void checkpoints_that_overlap_are_refused(void **state)
{
	struct forge f = simple_chunk(1);
	size_t first = f.checkpoint, grown;
	struct err err;

	(void)state;
	f_checkpoint(&f, 0);
	f_end(&f);
	/* The first claims the bytes of the second for itself. */
	grown = f.out.len - f.start - first;
	f.event = f.start + first;
	f_end(&f);
	assert_true(grown > 0);
	f_finish(&f);
	assert_int_equal(drain_forged(&f, &err), -EBADMSG);
}

static void counts_beyond_the_bytes_are_refused(void **state)
{
	struct forge f = {0};
	struct err err;

	(void)state;
	f_chunk(&f);
	f_metadata(&f);
	f_checkpoint(&f, 1);
	f_nums(&f, 4, (long)T_STACK, 1L, 1L, 0L);
	f_num(&f, UINT64_C(1) << 60);
	f_end(&f);
	f_finish(&f);
	assert_int_equal(drain_forged(&f, &err), -EBADMSG);
}

/* Types: each list is a chunk's metadata, with an event 101 of one such value. */
static int drain_types(const struct forge_type *types, size_t n, struct java_jfr_stats *ret_stats)
{
	static const char *const fields[] = {"last"};
	const struct java_jfr_query query = {"test.Event", fields, 1};
	const struct java_jfr_options options = {.queries = &query, .n_queries = 1};
	struct forge f = {0};
	struct java_jfr *j = NULL;
	struct err err;
	int r;

	f_chunk(&f);
	f_metadata_of(&f, types, n);
	f_begin(&f, 101);
	for (int i = 0; i < 64; i++)
		f_num(&f, 40);
	f_end(&f);
	f_finish(&f);
	assert_int_equal(
		java_jfr_open_take(f_file(f.out.data, f.out.len), "types.jfr", &options, &j, &err),
		0);
	r = drain(j, &err);
	*ret_stats = *java_jfr_stats(j);
	java_jfr_close(j);
	buf_release(&f.out);
	return r;
}

static void types_that_contain_themselves_have_no_values(void **state)
{
	static const struct forge_type itself[] = {{101, "test.Event", "self:101 last:1"},
						   {1, "boolean", ""}};
	static const struct forge_type circle[] = {{101, "test.Event", "a:50 last:1"},
						   {50, "a", "b:51"},
						   {51, "b", "a:50"},
						   {1, "boolean", ""}};
	struct java_jfr_stats stats;

	(void)state;
	assert_int_equal(drain_types(itself, ARRAY_SIZE(itself), &stats), 0);
	assert_int_equal(stats.malformed, 1);
	assert_int_equal(drain_types(circle, ARRAY_SIZE(circle), &stats), 0);
	assert_int_equal(stats.malformed, 1);
}

static void types_without_bytes_cost_nothing(void **state)
{
	static const struct forge_type empty[] = {{101, "test.Event", "many:50[] last:1"},
						  {50, "a", "x:51 y:51 z:51"},
						  {51, "b", ""},
						  {1, "boolean", ""}};
	struct java_jfr_stats stats;

	(void)state;
	assert_int_equal(drain_types(empty, ARRAY_SIZE(empty), &stats), 1);
}

static void deep_types_are_refused(void **state)
{
	struct forge_type types[42] = {{101, "test.Event", "a:60 last:1"}, {1, "boolean", ""}};
	static char names[40][2][16];
	struct java_jfr_stats stats;

	(void)state;
	/* The innermost comes first, so that each by itself looks shallow when it is met. */
	for (int i = 0; i < 40; i++) {
		(void)snprintf(names[i][0], 16, "t%d", i);
		(void)snprintf(names[i][1], 16, "f:%d", i == 0 ? 1 : 99 - i + 1);
		types[2 + i] = (struct forge_type){99 - i, names[i][0], names[i][1]};
	}
	assert_int_equal(drain_types(types, ARRAY_SIZE(types), &stats), 0);
	assert_int_equal(stats.malformed, 1);
}

static void constants_end_at_the_limit_of_memory(void **state)
{
	struct java_jfr_options options = test_options;
	struct forge f = {0};
	struct java_jfr *j = NULL;
	struct err err;

	(void)state;
	f_chunk(&f);
	f_metadata(&f);
	f_checkpoint(&f, 1);
	f_nums(&f, 2, (long)T_SYMBOL, 100000L);
	for (long i = 0; i < 100000; i++)
		f_symbol(&f, i, "a name of a symbol");
	f_end(&f);
	f_finish(&f);
	options.max_bytes = 4 << 20;
	assert_int_equal(
		java_jfr_open_take(f_file(f.out.data, f.out.len), "big", &options, &j, &err), 0);
	assert_int_equal(drain(j, &err), -E2BIG);
	java_jfr_close(j);
	buf_release(&f.out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_have_the_declared_types),
		cmocka_unit_test(strings_of_all_encodings_are_read),
		cmocka_unit_test(stacks_and_threads_are_looked_up),
		cmocka_unit_test(chunks_follow_each_other),
		cmocka_unit_test(fed_bytes_give_the_same_events),
		cmocka_unit_test(a_file_that_was_cut_gives_what_is_complete),
		cmocka_unit_test(a_growing_chunk_is_followed_without_a_gap),
		cmocka_unit_test(stacks_of_the_chunk_before_count_in_a_live_file),
		cmocka_unit_test(a_chunk_that_shrinks_is_an_error),
		cmocka_unit_test(what_is_no_recording_is_refused),
		cmocka_unit_test(events_without_size_are_refused),
		cmocka_unit_test(checkpoints_that_go_round_in_circles_are_refused),
		cmocka_unit_test(checkpoints_that_overlap_are_refused),
		cmocka_unit_test(counts_beyond_the_bytes_are_refused),
		cmocka_unit_test(types_that_contain_themselves_have_no_values),
		cmocka_unit_test(types_without_bytes_cost_nothing),
		cmocka_unit_test(deep_types_are_refused),
		cmocka_unit_test(constants_end_at_the_limit_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
