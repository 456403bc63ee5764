/*
 * tests/unit/profile/test_pprof.c: what is encoded decodes to the same, what others may write is
 * read, and what nobody may write is refused with a sentence.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "base/gzip.h"
#include "profile/pprof.h"

static uint32_t add_string(struct profile *p, const char *s)
{
	uint32_t id;

	assert_int_equal(profile_add_string(p, view_str(s), &id), 0);
	return id;
}

static void add_tables(struct profile *p)
{
	struct profile_mapping m = {.start = 0x400000,
				    .end = 0x500000,
				    .offset = 0x1000,
				    .file = add_string(p, "/usr/bin/app"),
				    .build_id = add_string(p, "abcdef"),
				    .has_functions = true,
				    .has_line_numbers = true};
	struct profile_function inner = {.name = add_string(p, "pkg.Inner[go.shape.int]"),
					 .system_name = add_string(p, "pkg.Inner[...]"),
					 .file = add_string(p, "/src/inner.go"),
					 .start_line = 10};
	struct profile_function outer = {.name = add_string(p, "main.main"), .start_line = -1};
	struct profile_line lines[] = {{.function = 0, .line = 12, .column = 5},
				       {.function = 1, .line = 30}};
	uint32_t id;

	assert_int_equal(profile_add_mapping(p, &m, &id), 0);
	assert_int_equal(profile_add_function(p, &inner, &id), 0);
	assert_int_equal(profile_add_function(p, &outer, &id), 0);
	assert_int_equal(profile_add_location(p, 0x401234, 0, lines, 2, &id), 0);
	assert_int_equal(profile_add_location(p, UINT64_MAX, PROFILE_NO_MAPPING, NULL, 0, &id), 0);
	profile_set_folded(p, id);
}

/* A profile with a bit of everything. */
static struct profile *rich_profile(void)
{
	struct profile *p = profile_new();
	struct profile_label labels[2];
	int64_t values[] = {-3, INT64_MIN};
	int64_t more[] = {INT64_MAX, 0};
	uint32_t frames[] = {0, 1, 0};
	uint32_t stack, empty;

	assert_int_equal(profile_add_type(p, "alloc_objects", "count"), 0);
	assert_int_equal(profile_add_type(p, "alloc_space", "bytes"), 0);
	add_tables(p);
	labels[0] = (struct profile_label){
		.key = add_string(p, "bytes"), .num = 48, .num_unit = add_string(p, "bytes")};
	labels[1] = (struct profile_label){.key = add_string(p, "thread"),
					   .str = add_string(p, "main")};
	assert_int_equal(profile_add_stack(p, frames, 3, &stack), 0);
	assert_int_equal(profile_add_stack(p, NULL, 0, &empty), 0);
	assert_int_equal(profile_add_sample(p, stack, values, labels, 2), 0);
	assert_int_equal(profile_add_sample(p, empty, more, NULL, 0), 0);
	assert_int_equal(profile_add_sample(p, stack, values, labels, 1), 0);
	assert_int_equal(profile_add_comment(p, view_str("a comment")), 0);
	assert_int_equal(profile_add_comment(p, view_str("")), 0);
	*profile_header(p) = (struct profile_header){
		.time_ns = 1700000000123456789,
		.duration_ns = 15000000000,
		.period_type = *profile_type_at(p, 1),
		.period = 524288,
		.default_type = add_string(p, "alloc_space"),
		.drop_frames = add_string(p, "drop.*"),
		.keep_frames = add_string(p, "keep.*"),
		.doc_url = add_string(p, "https://example.com/"),
	};
	return p;
}

static void assert_same_string(const struct profile *a, uint32_t i, const struct profile *b,
			       uint32_t k)
{
	assert_true(view_eq(profile_string(a, i), profile_string(b, k)));
}

static void assert_same_tables(const struct profile *a, const struct profile *b)
{
	assert_int_equal(profile_n_mappings(a), profile_n_mappings(b));
	assert_int_equal(profile_n_functions(a), profile_n_functions(b));
	assert_int_equal(profile_n_locations(a), profile_n_locations(b));
	for (size_t i = 0; i < profile_n_mappings(a); i++) {
		struct profile_mapping x = *profile_mapping_at(a, i);
		struct profile_mapping y = *profile_mapping_at(b, i);

		assert_same_string(a, x.file, b, y.file);
		assert_same_string(a, x.build_id, b, y.build_id);
		assert_true(x.start == y.start && x.end == y.end && x.offset == y.offset);
		assert_int_equal(x.has_functions, y.has_functions);
		assert_int_equal(x.has_filenames, y.has_filenames);
		assert_int_equal(x.has_line_numbers, y.has_line_numbers);
		assert_int_equal(x.has_inline_frames, y.has_inline_frames);
	}
	for (size_t i = 0; i < profile_n_functions(a); i++) {
		const struct profile_function *x = profile_function_at(a, i);
		const struct profile_function *y = profile_function_at(b, i);

		assert_same_string(a, x->name, b, y->name);
		assert_same_string(a, x->system_name, b, y->system_name);
		assert_same_string(a, x->file, b, y->file);
		assert_true(x->start_line == y->start_line);
	}
	for (size_t i = 0; i < profile_n_locations(a); i++) {
		const struct profile_location *x = profile_location_at(a, i);
		const struct profile_location *y = profile_location_at(b, i);

		assert_true(x->address == y->address && x->mapping == y->mapping);
		assert_int_equal(x->is_folded, y->is_folded);
		assert_int_equal(x->n_lines, y->n_lines);
		if (x->n_lines)
			assert_memory_equal(x->lines, y->lines, x->n_lines * sizeof(*x->lines));
	}
}

static void assert_same_samples(const struct profile *a, const struct profile *b)
{
	assert_int_equal(profile_n_samples(a), profile_n_samples(b));
	for (size_t i = 0; i < profile_n_samples(a); i++) {
		const struct profile_sample *x = profile_sample_at(a, i);
		const struct profile_sample *y = profile_sample_at(b, i);
		uint32_t nx, ny;
		const uint32_t *sx = profile_stack_at(a, x->stack, &nx);
		const uint32_t *sy = profile_stack_at(b, y->stack, &ny);

		assert_int_equal(nx, ny);
		if (nx)
			assert_memory_equal(sx, sy, nx * sizeof(*sx));
		assert_memory_equal(x->values, y->values, profile_n_types(a) * sizeof(int64_t));
		assert_int_equal(x->n_labels, y->n_labels);
		for (uint32_t k = 0; k < x->n_labels; k++) {
			assert_same_string(a, x->labels[k].key, b, y->labels[k].key);
			assert_same_string(a, x->labels[k].str, b, y->labels[k].str);
			assert_same_string(a, x->labels[k].num_unit, b, y->labels[k].num_unit);
			assert_true(x->labels[k].num == y->labels[k].num);
		}
	}
}

static void assert_same_header(const struct profile *a, const struct profile *b)
{
	const struct profile_header *x = profile_header_const(a);
	const struct profile_header *y = profile_header_const(b);

	assert_int_equal(profile_n_types(a), profile_n_types(b));
	for (size_t i = 0; i < profile_n_types(a); i++) {
		assert_same_string(a, profile_type_at(a, i)->type, b, profile_type_at(b, i)->type);
		assert_same_string(a, profile_type_at(a, i)->unit, b, profile_type_at(b, i)->unit);
	}
	assert_true(x->time_ns == y->time_ns && x->duration_ns == y->duration_ns);
	assert_true(x->period == y->period);
	assert_same_string(a, x->period_type.type, b, y->period_type.type);
	assert_same_string(a, x->period_type.unit, b, y->period_type.unit);
	assert_same_string(a, x->default_type, b, y->default_type);
	assert_same_string(a, x->drop_frames, b, y->drop_frames);
	assert_same_string(a, x->keep_frames, b, y->keep_frames);
	assert_same_string(a, x->doc_url, b, y->doc_url);
	assert_int_equal(profile_n_comments(a), profile_n_comments(b));
	for (size_t i = 0; i < profile_n_comments(a); i++)
		assert_same_string(a, profile_comment_at(a, i), b, profile_comment_at(b, i));
}

static void what_is_encoded_decodes_to_the_same(void **state)
{
	_cleanup_(profile_freep) struct profile *p = rich_profile();
	_cleanup_(profile_freep) struct profile *q = NULL;
	_cleanup_(buf_release) struct buf packed = {0}, again = {0};
	struct err err = {0};

	(void)state;
	assert_int_equal(profile_encode_pprof(p, &packed, &err), 0);
	assert_int_equal(profile_decode_pprof(buf_view(&packed), &q, &err), 0);
	assert_same_header(p, q);
	assert_same_tables(p, q);
	assert_same_samples(p, q);
	assert_int_equal(profile_encode_pprof(q, &again, &err), 0);
	assert_true(view_eq(buf_view(&packed), buf_view(&again)));
}

static void a_profile_without_samples_survives(void **state)
{
	_cleanup_(profile_freep) struct profile *p = profile_new();
	_cleanup_(profile_freep) struct profile *q = NULL;
	_cleanup_(buf_release) struct buf packed = {0};
	struct err err = {0};

	(void)state;
	assert_int_equal(profile_encode_pprof(p, &packed, &err), 0);
	assert_int_equal(profile_decode_pprof(buf_view(&packed), &q, &err), 0);
	assert_int_equal(profile_n_samples(q), 0);
}

static void encoding_into_too_small_a_buffer_leaves_it_as_it_was(void **state)
{
	_cleanup_(profile_freep) struct profile *p = rich_profile();
	_cleanup_(buf_release) struct buf out = buf_with_max(64);
	struct err err = {0};

	(void)state;
	assert_int_equal(buf_append_str(&out, "before"), 0);
	assert_int_equal(profile_encode_pprof(p, &out, &err), -E2BIG);
	assert_true(view_eq(buf_view(&out), view_str("before")));
	assert_non_null(strstr(err.text, "larger than"));
}

/* Writes messages by hand, as other programs do. */

static void put(struct buf *b, uint32_t field, uint64_t value)
{
	assert_int_equal(buf_append_varint(b, field << 3), 0);
	assert_int_equal(buf_append_varint(b, value), 0);
}

static void put_bytes(struct buf *b, uint32_t field, const void *data, size_t len)
{
	assert_int_equal(buf_append_varint(b, field << 3 | 2), 0);
	assert_int_equal(buf_append_varint(b, len), 0);
	assert_int_equal(buf_append(b, data, len), 0);
}

static void put_string(struct buf *b, const char *s)
{
	put_bytes(b, 6, s, strlen(s));
}

/* Appends a message of numbers: n pairs of field number and value. */
static void put_msg(struct buf *b, uint32_t field, const uint64_t *pairs, size_t n)
{
	_cleanup_(buf_release) struct buf msg = {0};

	for (size_t i = 0; i < n; i++)
		put(&msg, (uint32_t)pairs[2 * i], pairs[2 * i + 1]);
	put_bytes(b, field, msg.data, msg.len);
}

#define PUT_MSG(b, field, ...)                                                                     \
	put_msg(b, field, (const uint64_t[]){__VA_ARGS__},                                         \
		sizeof((const uint64_t[]){__VA_ARGS__}) / (2 * sizeof(uint64_t)))

static void put_strings(struct buf *b)
{
	put_string(b, "");
	put_string(b, "samples");
	put_string(b, "count");
	put_string(b, "main.main");
}

static void put_type(struct buf *b)
{
	PUT_MSG(b, 1, 1, 1, 2, 2);
}

/* A location with one line of the function. */
static void put_location(struct buf *b, uint64_t id, uint64_t function)
{
	_cleanup_(buf_release) struct buf msg = {0};

	put(&msg, 1, id);
	put(&msg, 3, 0x1000);
	PUT_MSG(&msg, 4, 1, function, 2, 77);
	put_bytes(b, 4, msg.data, msg.len);
}

static void expect_bad(const struct buf *msg, const char *sentence)
{
	struct profile *untouched = (void *)1;
	struct profile *p = untouched;
	struct err err = {0};

	assert_int_equal(profile_decode_pprof(buf_view(msg), &p, &err), -EBADMSG);
	assert_ptr_equal(p, untouched);
	if (!strstr(err.text, sentence))
		fail_msg("\"%s\" does not say \"%s\"", err.text, sentence);
}

static void forward_references_and_sparse_ids_and_unpacked_fields_are_read(void **state)
{
	_cleanup_(profile_freep) struct profile *p = NULL;
	_cleanup_(buf_release) struct buf msg = {0};
	const struct profile_location *leaf;
	struct err err = {0};
	uint32_t n;

	(void)state;
	PUT_MSG(&msg, 2, 1, UINT64_MAX, 1, 5, 2, 41); /* locations one by one, then the value */
	put_location(&msg, UINT64_MAX, 1ULL << 40);
	put_location(&msg, 5, 9);
	PUT_MSG(&msg, 5, 1, 9);
	PUT_MSG(&msg, 5, 1, 1ULL << 40, 2, 3, 5, 70);
	put_type(&msg);
	put_strings(&msg);
	assert_int_equal(profile_decode_pprof(buf_view(&msg), &p, &err), 0);
	assert_int_equal(profile_n_samples(p), 1);
	assert_true(profile_sample_at(p, 0)->values[0] == 41);
	leaf = profile_location_at(p, profile_stack_at(p, 0, &n)[0]);
	assert_int_equal(n, 2);
	assert_true(leaf->lines[0].line == 77);
	assert_string_equal(
		profile_cstring(p, profile_function_at(p, leaf->lines[0].function)->name),
		"main.main");
}

static void unknown_fields_of_every_wire_type_are_skipped(void **state)
{
	_cleanup_(profile_freep) struct profile *p = NULL;
	_cleanup_(buf_release) struct buf msg = {0};
	struct err err = {0};

	(void)state;
	put(&msg, 99, 5);
	put_bytes(&msg, 98, "junk", 4);
	assert_int_equal(buf_append(&msg,
				    "\xb9\x06"
				    "12345678",
				    10),
			 0); /* 103, fixed64 */
	assert_int_equal(buf_append(&msg,
				    "\xbd\x06"
				    "1234",
				    6),
			 0); /* 103, fixed32 */
	put_strings(&msg);
	put_type(&msg);
	PUT_MSG(&msg, 2, 2, 3, 50, 4);
	assert_int_equal(profile_decode_pprof(buf_view(&msg), &p, &err), 0);
	assert_int_equal(profile_n_samples(p), 1);
}

static void gzip_members_of_one_message_are_read(void **state)
{
	_cleanup_(profile_freep) struct profile *p = rich_profile();
	_cleanup_(profile_freep) struct profile *q = NULL;
	_cleanup_(buf_release) struct buf packed = {0}, plain = {0}, members = {0};
	struct err err = {0};

	(void)state;
	assert_int_equal(profile_encode_pprof(p, &packed, &err), 0);
	assert_int_equal(gzip_unpack(buf_view(&packed), &plain, &err), 0);
	for (int i = 0; i < 2; i++) {
		_cleanup_(gzip_writer_freep) struct gzip_writer *w = NULL;
		size_t from = i ? plain.len / 2 : 0;
		size_t to = i ? plain.len : plain.len / 2;

		assert_int_equal(gzip_writer_new(&members, &w, &err), 0);
		assert_int_equal(gzip_writer_write(w, view_of(plain.data + from, to - from)), 0);
		assert_int_equal(gzip_writer_finish(w), 0);
	}
	assert_int_equal(profile_decode_pprof(buf_view(&members), &q, &err), 0);
	assert_same_samples(p, q);
}

static void references_to_nothing_are_malformed(void **state)
{
	_cleanup_(buf_release) struct buf base = {0};
	size_t len;

	(void)state;
	put_strings(&base);
	put_type(&base);
	len = base.len;

	PUT_MSG(&base, 2, 1, 8, 2, 1);
	expect_bad(&base, "missing location 8");
	base.len = len;
	put_location(&base, 1, 6);
	expect_bad(&base, "missing function 6");
	base.len = len;
	put_location(&base, 1, 0);
	expect_bad(&base, "missing function 0");
	base.len = len;
	PUT_MSG(&base, 4, 1, 1, 2, 3);
	expect_bad(&base, "missing mapping 3");
	base.len = len;
	PUT_MSG(&base, 5, 1, 1, 2, 4);
	expect_bad(&base, "no string 4");
	base.len = len;
	PUT_MSG(&base, 5, 1, 1, 2, UINT64_MAX);
	expect_bad(&base, "no string 18446744073709551615");
	base.len = len;
	put(&base, 14, 1ULL << 62); /* times four it would be 0 */
	expect_bad(&base, "no string");
}

static void ids_that_are_missing_or_twice_are_malformed(void **state)
{
	static const uint32_t kinds[] = {3, 4, 5};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		_cleanup_(buf_release) struct buf msg = {0};
		size_t len;

		put_strings(&msg);
		put_type(&msg);
		len = msg.len;
		put_bytes(&msg, kinds[i], NULL, 0);
		expect_bad(&msg, "without an id");
		msg.len = len;
		PUT_MSG(&msg, kinds[i], 1, 7);
		PUT_MSG(&msg, kinds[i], 1, 7);
		expect_bad(&msg, "the id 7");
	}
}

static void a_wrong_number_of_values_is_malformed(void **state)
{
	_cleanup_(buf_release) struct buf msg = {0}, untyped = {0};
	size_t len;

	(void)state;
	put_strings(&msg);
	put_type(&msg);
	len = msg.len;
	put_bytes(&msg, 2, NULL, 0);
	expect_bad(&msg, "fewer values");
	msg.len = len;
	PUT_MSG(&msg, 2, 2, 1, 2, 1);
	expect_bad(&msg, "more values");
	put_strings(&untyped);
	put_bytes(&untyped, 2, NULL, 0);
	expect_bad(&untyped, "without sample types");
}

static void string_tables_must_be_there_and_begin_with_the_empty_string(void **state)
{
	_cleanup_(buf_release) struct buf none = {0}, wrong = {0}, empty = {0};

	(void)state;
	put(&none, 12, 1);
	expect_bad(&none, "no string table");
	put_string(&wrong, "x");
	expect_bad(&wrong, "first string is not empty");
	expect_bad(&empty, "it is empty");
}

static void profiles_written_into_one_file_are_noticed(void **state)
{
	_cleanup_(profile_freep) struct profile *p = rich_profile();
	_cleanup_(buf_release) struct buf twice = {0};
	struct err err = {0};

	(void)state;
	assert_int_equal(profile_encode_pprof(p, &twice, &err), 0);
	assert_int_equal(profile_encode_pprof(p, &twice, &err), 0);
	expect_bad(&twice, "several profiles in one file");
}

static void a_field_of_the_wrong_wire_type_is_malformed(void **state)
{
	_cleanup_(buf_release) struct buf msg = {0};
	size_t len;

	(void)state;
	put_strings(&msg);
	put_type(&msg);
	len = msg.len;
	put(&msg, 2, 1);
	expect_bad(&msg, "wrong wire type for field 2");
	msg.len = len;
	put_bytes(&msg, 12, "x", 1);
	expect_bad(&msg, "wrong wire type for field 12");
	msg.len = len;
	assert_int_equal(buf_append_byte(&msg, 5 << 3 | 3), 0); /* a group */
	expect_bad(&msg, "unknown wire type");
}

static void text_and_every_truncation_are_refused(void **state)
{
	_cleanup_(profile_freep) struct profile *p = rich_profile();
	_cleanup_(buf_release) struct buf packed = {0}, plain = {0}, text = {0};
	struct err err = {0};

	(void)state;
	assert_int_equal(buf_append_str(&text, "heap profile: 1: 2 [3: 4] @ heap/1048576\n"), 0);
	expect_bad(&text, "not a valid pprof profile");
	assert_int_equal(profile_encode_pprof(p, &packed, &err), 0);
	assert_int_equal(gzip_unpack(buf_view(&packed), &plain, &err), 0);
	for (size_t n = 0; n < packed.len; n++) {
		struct profile *q = NULL;

		assert_true(profile_decode_pprof(view_of(packed.data, n), &q, &err) == -EBADMSG);
	}
	/* Cut plain messages may be whole by chance, but must never be read past their end. */
	for (size_t n = 0; n < plain.len; n++) {
		_cleanup_(freep) uint8_t *exact = malloc(n ? n : 1);
		_cleanup_(profile_freep) struct profile *q = NULL;

		memcpy(exact, plain.data, n);
		(void)profile_decode_pprof(view_of(exact, n), &q, &err);
	}
}

static void more_types_than_we_hold_are_too_big(void **state)
{
	_cleanup_(buf_release) struct buf msg = {0};
	struct profile *p = NULL;
	struct err err = {0};

	(void)state;
	put_strings(&msg);
	for (int i = 0; i < PROFILE_MAX_TYPES + 1; i++)
		put_type(&msg);
	assert_int_equal(profile_decode_pprof(buf_view(&msg), &p, &err), -E2BIG);
	assert_non_null(strstr(err.text, "more than 16 sample types"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_encoded_decodes_to_the_same),
		cmocka_unit_test(a_profile_without_samples_survives),
		cmocka_unit_test(encoding_into_too_small_a_buffer_leaves_it_as_it_was),
		cmocka_unit_test(forward_references_and_sparse_ids_and_unpacked_fields_are_read),
		cmocka_unit_test(unknown_fields_of_every_wire_type_are_skipped),
		cmocka_unit_test(gzip_members_of_one_message_are_read),
		cmocka_unit_test(references_to_nothing_are_malformed),
		cmocka_unit_test(ids_that_are_missing_or_twice_are_malformed),
		cmocka_unit_test(a_wrong_number_of_values_is_malformed),
		cmocka_unit_test(string_tables_must_be_there_and_begin_with_the_empty_string),
		cmocka_unit_test(profiles_written_into_one_file_are_noticed),
		cmocka_unit_test(a_field_of_the_wrong_wire_type_is_malformed),
		cmocka_unit_test(text_and_every_truncation_are_refused),
		cmocka_unit_test(more_types_than_we_hold_are_too_big),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
