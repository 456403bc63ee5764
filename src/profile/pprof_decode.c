/*
 * src/profile/pprof_decode.c: decodes profile.proto. Messages may refer to what comes later (Go's
 * own writer puts the string table last), so the input is walked several times. Each walk adds what
 * the next one refers to: strings; then types, mappings and functions; then locations; then
 * samples. A walk skips what it does not need by length, so it is cheap, and nothing is buffered.
 */
#include <errno.h>

#include "base/gzip.h"
#include "base/map.h"
#include "profile/pprof.h"
#include "profile/pprof_wire.h"

/* Mappings, functions or locations: limits the maps of their ids. */
#define PPROF_MAX_ENTRIES ((size_t)4 << 20)

struct decoder {
	struct view msg;
	struct profile *profile;
	struct buf strings; /* of uint32_t: the profile's id for each index of the string table */
	struct map mappings;
	struct map functions;
	struct map locations;
	struct buf scratch; /* of the array being collected: lines or location ids */
	struct buf labels;
	struct err *err;
	size_t at; /* offset of the current top-level field in msg, for messages */
};

static void decoder_release(struct decoder *d)
{
	buf_release(&d->strings);
	map_release(&d->mappings);
	map_release(&d->functions);
	map_release(&d->locations);
	buf_release(&d->scratch);
	buf_release(&d->labels);
	profile_free(d->profile);
}

#define AGAIN "collect or download the profile again"

static int bad(const struct decoder *d, const char *what)
{
	return err_lack(d->err, -EBADMSG, ERR_CAUSE_MALFORMED, AGAIN,
			"not a valid pprof profile: %s (at byte %zu of the unpacked message)", what,
			d->at);
}

static int bad_id(const struct decoder *d, const char *what, uint64_t id)
{
	return err_lack(d->err, -EBADMSG, ERR_CAUSE_MALFORMED, AGAIN,
			"not a valid pprof profile: %s %llu (at byte %zu of the unpacked message)",
			what, (unsigned long long)id, d->at);
}

static int bad_wire(const struct decoder *d, const struct profile_pprof_field *f)
{
	return bad_id(d, "the wrong wire type for field", f->number);
}

/* The message for what the model refused. */
static int refused(const struct decoder *d, int r)
{
	if (r == -E2BIG)
		return err_lack(d->err, r, ERR_CAUSE_LIMIT,
				"aggregate it with `go tool pprof -proto`",
				"the profile is too large: the limit is %zu MB of memory and %zu "
				"million functions or locations (stopped at byte %zu of the "
				"unpacked message)",
				PROFILE_MAX_BYTES >> 20, PPROF_MAX_ENTRIES >> 20, d->at);
	if (r == -ENOMEM)
		return err_oom(d->err);
	return bad(d, "it contradicts itself");
}

typedef int (*field_fn)(struct decoder *d, const struct profile_pprof_field *f, void *arg);

/* Records the offset of each field in *ret_at, unless NULL. */
static int each_field(struct decoder *d, struct view msg, size_t *ret_at, field_fn fn, void *arg)
{
	size_t off = 0;

	while (off < msg.len) {
		struct profile_pprof_field f;
		int r;

		if (ret_at)
			*ret_at = off;
		if (!profile_pprof_field_next(msg, &off, &f))
			return bad(d, "a truncated field, or one of unknown wire type");
		r = fn(d, &f, arg);
		if (r < 0)
			return r;
	}
	return 0;
}

#define MAX_NUMBERS 11

/* Most messages consist of numbers only, each with its own field number. */
struct numbers {
	uint64_t at[MAX_NUMBERS]; /* by field number */
};

static int take_number(struct decoder *d, const struct profile_pprof_field *f, void *arg)
{
	struct numbers *numbers = arg;

	if (f->number >= MAX_NUMBERS)
		return 0;
	if (f->wire != PROFILE_WIRE_VARINT)
		return bad_wire(d, f);
	numbers->at[f->number] = f->value;
	return 0;
}

static int take_message(struct decoder *d, const struct profile_pprof_field *f, struct numbers *ret)
{
	*ret = (struct numbers){0};
	if (f->wire != PROFILE_WIRE_BYTES)
		return bad_wire(d, f);
	return each_field(d, f->bytes, NULL, take_number, ret);
}

/* Calls fn for the number, or the numbers of a packed field. */
static int each_number(struct decoder *d, const struct profile_pprof_field *f,
		       int (*fn)(struct decoder *d, uint64_t value, void *arg), void *arg)
{
	size_t off = 0;

	if (f->wire == PROFILE_WIRE_VARINT)
		return fn(d, f->value, arg);
	if (f->wire != PROFILE_WIRE_BYTES)
		return bad_wire(d, f);
	while (off < f->bytes.len) {
		uint64_t value;
		int r;

		if (!view_varint(f->bytes, &off, &value))
			return bad(d, "a truncated packed number");
		r = fn(d, value, arg);
		if (r < 0)
			return r;
	}
	return 0;
}

static int take_string(struct decoder *d, uint64_t index, uint32_t *ret_id)
{
	if (index >= d->strings.len / sizeof(uint32_t))
		return bad_id(d, "it has no string", index);
	(void)view_u32(buf_view(&d->strings), index * sizeof(uint32_t), ret_id);
	return 0;
}

/* Fills *ids[i] with the strings at these indexes. */
static int take_strings(struct decoder *d, const struct numbers *n, const uint8_t *fields,
			uint32_t *const *ids, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		int r = take_string(d, n->at[fields[i]], ids[i]);

		if (r < 0)
			return r;
	}
	return 0;
}

static int put_id(struct decoder *d, struct map *ids, const char *what, uint64_t id, uint32_t index)
{
	uint64_t other;

	if (id == 0)
		return err_lack(d->err, -EBADMSG, ERR_CAUSE_MALFORMED, AGAIN,
				"not a valid pprof profile: a %s without an id (at byte %zu of the "
				"unpacked message)",
				what, d->at);
	if (map_get(ids, id, &other))
		return err_lack(
			d->err, -EBADMSG, ERR_CAUSE_MALFORMED,
			"if several profiles were written into one file, split them",
			"not a valid pprof profile: two %ss have the id %llu (the second at "
			"byte %zu of the unpacked message)",
			what, (unsigned long long)id, d->at);
	if (ids->len >= PPROF_MAX_ENTRIES)
		return refused(d, -E2BIG);
	return map_put(ids, id, index) < 0 ? err_oom(d->err) : 0;
}

/* First walk: strings. */

static int walk_strings(struct decoder *d, const struct profile_pprof_field *f, void *arg)
{
	bool *has_time = arg;
	uint32_t id;
	int r;

	if (f->number == PROFILE_TIME_NANOS) {
		if (*has_time)
			return bad(d, "several profiles in one file");
		*has_time = f->value != 0;
	}
	if (f->number != PROFILE_STRING_TABLE)
		return 0;
	if (f->wire != PROFILE_WIRE_BYTES)
		return bad_wire(d, f);
	if (d->strings.len == 0 && f->bytes.len > 0)
		return bad(d, "its first string is not empty");
	r = profile_add_string(d->profile, f->bytes, &id);
	if (r == 0)
		r = buf_append(&d->strings, &id, sizeof(id));
	return r < 0 ? refused(d, r) : 0;
}

/* Second walk: entities that refer to strings only. */

static int take_type(struct decoder *d, const struct profile_pprof_field *f,
		     struct profile_type *ret_type)
{
	static const uint8_t fields[] = {PROFILE_VALUE_TYPE_TYPE, PROFILE_VALUE_TYPE_UNIT};
	struct numbers n;
	int r = take_message(d, f, &n);

	if (r < 0)
		return r;
	return take_strings(d, &n, fields, (uint32_t *[]){&ret_type->type, &ret_type->unit}, 2);
}

static int take_sample_type(struct decoder *d, const struct profile_pprof_field *f)
{
	struct profile_type type;
	int r = take_type(d, f, &type);

	if (r < 0)
		return r;
	if (profile_n_types(d->profile) == PROFILE_MAX_TYPES)
		return err_set(d->err, -E2BIG,
			       "the profile has more than %d sample types, which is the limit",
			       PROFILE_MAX_TYPES);
	r = profile_add_type_ids(d->profile, type);
	return r < 0 ? refused(d, r) : 0;
}

static int take_mapping(struct decoder *d, const struct profile_pprof_field *f)
{
	static const uint8_t fields[] = {PROFILE_MAPPING_FILE, PROFILE_MAPPING_BUILD_ID};
	struct profile_mapping m;
	struct numbers n;
	uint32_t index;
	int r = take_message(d, f, &n);

	if (r < 0)
		return r;
	m = (struct profile_mapping){
		.start = n.at[PROFILE_MAPPING_START],
		.end = n.at[PROFILE_MAPPING_LIMIT],
		.offset = n.at[PROFILE_MAPPING_OFFSET],
		.has_functions = n.at[PROFILE_MAPPING_HAS_FUNCTIONS] != 0,
		.has_filenames = n.at[PROFILE_MAPPING_HAS_FILENAMES] != 0,
		.has_line_numbers = n.at[PROFILE_MAPPING_HAS_LINE_NUMBERS] != 0,
		.has_inline_frames = n.at[PROFILE_MAPPING_HAS_INLINE_FRAMES] != 0,
	};
	r = take_strings(d, &n, fields, (uint32_t *[]){&m.file, &m.build_id}, 2);
	if (r < 0)
		return r;
	r = profile_add_mapping(d->profile, &m, &index);
	if (r < 0)
		return refused(d, r);
	return put_id(d, &d->mappings, "mapping", n.at[PROFILE_MAPPING_ID], index);
}

static int take_function(struct decoder *d, const struct profile_pprof_field *f)
{
	static const uint8_t fields[] = {PROFILE_FUNCTION_NAME, PROFILE_FUNCTION_SYSTEM_NAME,
					 PROFILE_FUNCTION_FILE};
	struct profile_function fn;
	struct numbers n;
	uint32_t index;
	int r = take_message(d, f, &n);

	if (r < 0)
		return r;
	fn = (struct profile_function){.start_line = (int64_t)n.at[PROFILE_FUNCTION_START_LINE]};
	r = take_strings(d, &n, fields, (uint32_t *[]){&fn.name, &fn.system_name, &fn.file}, 3);
	if (r < 0)
		return r;
	r = profile_add_function(d->profile, &fn, &index);
	if (r < 0)
		return refused(d, r);
	return put_id(d, &d->functions, "function", n.at[PROFILE_FUNCTION_ID], index);
}

static int take_comment(struct decoder *d, uint64_t index, void *arg)
{
	uint32_t id = 0;
	int r = take_string(d, index, &id);

	(void)arg;
	if (r < 0)
		return r;
	r = profile_add_comment(d->profile, profile_string(d->profile, id));
	return r < 0 ? refused(d, r) : 0;
}

static int take_header(struct decoder *d, const struct profile_pprof_field *f)
{
	struct profile_header *h = profile_header(d->profile);

	if (f->number == PROFILE_PERIOD_TYPE)
		return take_type(d, f, &h->period_type);
	if (f->number == PROFILE_COMMENT)
		return each_number(d, f, take_comment, NULL);
	if (f->number < PROFILE_DROP_FRAMES || f->number > PROFILE_DOC_URL)
		return 0;
	if (f->wire != PROFILE_WIRE_VARINT)
		return bad_wire(d, f);
	switch (f->number) {
	case PROFILE_DROP_FRAMES:
		return take_string(d, f->value, &h->drop_frames);
	case PROFILE_KEEP_FRAMES:
		return take_string(d, f->value, &h->keep_frames);
	case PROFILE_DEFAULT_TYPE:
		return take_string(d, f->value, &h->default_type);
	case PROFILE_DOC_URL:
		return take_string(d, f->value, &h->doc_url);
	case PROFILE_TIME_NANOS:
		h->time_ns = (int64_t)f->value;
		break;
	case PROFILE_DURATION_NANOS:
		h->duration_ns = (int64_t)f->value;
		break;
	case PROFILE_PERIOD:
		h->period = (int64_t)f->value;
		break;
	}
	return 0;
}

static int walk_tables(struct decoder *d, const struct profile_pprof_field *f, void *arg)
{
	(void)arg;
	switch (f->number) {
	case PROFILE_SAMPLE_TYPE:
		return take_sample_type(d, f);
	case PROFILE_MAPPING:
		return take_mapping(d, f);
	case PROFILE_FUNCTION:
		return take_function(d, f);
	default:
		return take_header(d, f);
	}
}

/* Third walk: locations. */

static int take_line(struct decoder *d, const struct profile_pprof_field *f)
{
	struct profile_line line = {0};
	struct numbers n;
	uint64_t index;
	int r = take_message(d, f, &n);

	if (r < 0)
		return r;
	if (!map_get(&d->functions, n.at[PROFILE_LINE_FUNCTION], &index))
		return bad_id(d, "a line refers to the missing function",
			      n.at[PROFILE_LINE_FUNCTION]);
	line.function = (uint32_t)index;
	line.line = (int64_t)n.at[PROFILE_LINE_LINE];
	/* A column above four billion is not a column. */
	line.column =
		n.at[PROFILE_LINE_COLUMN] <= UINT32_MAX ? (uint32_t)n.at[PROFILE_LINE_COLUMN] : 0;
	r = buf_append(&d->scratch, &line, sizeof(line));
	return r < 0 ? refused(d, r) : 0;
}

static int take_location_field(struct decoder *d, const struct profile_pprof_field *f, void *arg)
{
	return f->number == PROFILE_LOCATION_LINE ? take_line(d, f) : take_number(d, f, arg);
}

static int walk_locations(struct decoder *d, const struct profile_pprof_field *f, void *arg)
{
	struct numbers n = {0};
	uint64_t mapping = PROFILE_NO_MAPPING;
	uint32_t index;
	int r;

	(void)arg;
	if (f->number != PROFILE_LOCATION)
		return 0;
	if (f->wire != PROFILE_WIRE_BYTES)
		return bad_wire(d, f);
	buf_clear(&d->scratch);
	r = each_field(d, f->bytes, NULL, take_location_field, &n);
	if (r < 0)
		return r;
	if (n.at[PROFILE_LOCATION_MAPPING] &&
	    !map_get(&d->mappings, n.at[PROFILE_LOCATION_MAPPING], &mapping))
		return bad_id(d, "a location refers to the missing mapping",
			      n.at[PROFILE_LOCATION_MAPPING]);
	r = profile_add_location(d->profile, n.at[PROFILE_LOCATION_ADDRESS], (uint32_t)mapping,
				 (const void *)d->scratch.data,
				 (uint32_t)(d->scratch.len / sizeof(struct profile_line)), &index);
	if (r < 0)
		return refused(d, r);
	if (n.at[PROFILE_LOCATION_IS_FOLDED])
		profile_set_folded(d->profile, index);
	return put_id(d, &d->locations, "location", n.at[PROFILE_LOCATION_ID], index);
}

/* Fourth walk: samples. */

struct values {
	int64_t at[PROFILE_MAX_TYPES];
	size_t len;
};

static int take_frame(struct decoder *d, uint64_t id, void *arg)
{
	uint64_t index;
	uint32_t location;
	int r;

	(void)arg;
	if (!map_get(&d->locations, id, &index))
		return bad_id(d, "a sample refers to the missing location", id);
	location = (uint32_t)index;
	r = buf_append(&d->scratch, &location, sizeof(location));
	return r < 0 ? refused(d, r) : 0;
}

static int take_value(struct decoder *d, uint64_t value, void *arg)
{
	struct values *values = arg;

	if (values->len == profile_n_types(d->profile))
		return bad(d, "a sample has more values than there are sample types");
	values->at[values->len++] = (int64_t)value;
	return 0;
}

static int take_label(struct decoder *d, const struct profile_pprof_field *f)
{
	static const uint8_t fields[] = {PROFILE_LABEL_KEY, PROFILE_LABEL_STR,
					 PROFILE_LABEL_NUM_UNIT};
	struct profile_label label = {0};
	struct numbers n;
	int r = take_message(d, f, &n);

	if (r < 0)
		return r;
	label.num = (int64_t)n.at[PROFILE_LABEL_NUM];
	r = take_strings(d, &n, fields, (uint32_t *[]){&label.key, &label.str, &label.num_unit}, 3);
	if (r < 0)
		return r;
	r = buf_append(&d->labels, &label, sizeof(label));
	return r < 0 ? refused(d, r) : 0;
}

static int take_sample_field(struct decoder *d, const struct profile_pprof_field *f, void *arg)
{
	switch (f->number) {
	case PROFILE_SAMPLE_LOCATION:
		return each_number(d, f, take_frame, NULL);
	case PROFILE_SAMPLE_VALUE:
		return each_number(d, f, take_value, arg);
	case PROFILE_SAMPLE_LABEL:
		return take_label(d, f);
	default:
		return 0;
	}
}

static int walk_samples(struct decoder *d, const struct profile_pprof_field *f, void *arg)
{
	struct values values = {.len = 0};
	uint32_t stack;
	int r;

	(void)arg;
	if (f->number != PROFILE_SAMPLE)
		return 0;
	if (f->wire != PROFILE_WIRE_BYTES)
		return bad_wire(d, f);
	buf_clear(&d->scratch);
	buf_clear(&d->labels);
	r = each_field(d, f->bytes, NULL, take_sample_field, &values);
	if (r < 0)
		return r;
	if (profile_n_types(d->profile) == 0)
		return bad(d, "samples without sample types");
	if (values.len != profile_n_types(d->profile))
		return bad(d, "a sample has fewer values than there are sample types");
	r = profile_add_stack(d->profile, (const void *)d->scratch.data,
			      (uint32_t)(d->scratch.len / sizeof(uint32_t)), &stack);
	if (r == 0)
		r = profile_add_sample(d->profile, stack, values.at, (const void *)d->labels.data,
				       (uint32_t)(d->labels.len / sizeof(struct profile_label)));
	return r < 0 ? refused(d, r) : 0;
}

static int walk(struct decoder *d, field_fn fn, void *arg)
{
	return each_field(d, d->msg, &d->at, fn, arg);
}

static int decode_message(struct view msg, struct profile **ret_profile, struct err *err)
{
	_cleanup_(decoder_release) struct decoder d = {.msg = msg, .err = err};
	bool has_time = false;
	int r;

	d.profile = profile_new();
	if (!d.profile)
		return err_oom(err);
	if (msg.len == 0)
		return bad(&d, "it is empty");
	r = walk(&d, walk_strings, &has_time);
	if (r < 0)
		return r;
	if (d.strings.len == 0)
		return bad(&d, "it has no string table");
	r = walk(&d, walk_tables, NULL);
	if (r < 0)
		return r;
	r = walk(&d, walk_locations, NULL);
	if (r < 0)
		return r;
	r = walk(&d, walk_samples, NULL);
	if (r < 0)
		return r;
	*ret_profile = TAKE_PTR(d.profile);
	return 0;
}

int profile_decode_pprof(struct view data, struct profile **ret_profile, struct err *err)
{
	_cleanup_(buf_release) struct buf unpacked = buf_with_max(PROFILE_PPROF_MAX_UNPACKED);
	int r;

	if (!gzip_is_packed(data)) {
		if (data.len > PROFILE_PPROF_MAX_UNPACKED)
			return err_set(err, -E2BIG,
				       "the profile is larger than the limit of %zu MB",
				       PROFILE_PPROF_MAX_UNPACKED >> 20);
		return decode_message(data, ret_profile, err);
	}
	r = gzip_unpack(data, &unpacked, err);
	if (r < 0)
		return r;
	return decode_message(buf_view(&unpacked), ret_profile, err);
}
