/*
 * src/profile/pprof_encode.c: encodes gzipped profile.proto. Each top-level message is built in a
 * small buffer and passed to the compressor, so memory does not depend on the profile. The first
 * error sticks in the writer and is checked once, at the end.
 */
#include <errno.h>

#include "base/gzip.h"
#include "profile/pprof.h"
#include "profile/pprof_wire.h"

#define CHUNK_BYTES ((size_t)16 << 10)

struct pprof_writer {
	struct gzip_writer *gzip;
	struct buf chunk; /* complete fields waiting for the compressor */
	struct buf msg;	  /* the message being built */
	struct buf sub;	  /* a message or a packed field within it */
	int error;
};

static void pprof_writer_release(struct pprof_writer *w)
{
	buf_release(&w->chunk);
	buf_release(&w->msg);
	buf_release(&w->sub);
	gzip_writer_free(w->gzip);
}

static void put_varint(struct pprof_writer *w, struct buf *b, uint64_t value)
{
	int r = buf_append_varint(b, value);

	if (r < 0 && w->error == 0)
		w->error = r;
}

static void put_bytes(struct pprof_writer *w, struct buf *b, uint32_t field, struct view bytes)
{
	int r;

	put_varint(w, b, field << 3 | PROFILE_WIRE_BYTES);
	put_varint(w, b, bytes.len);
	r = buf_append(b, bytes.data, bytes.len);
	if (r < 0 && w->error == 0)
		w->error = r;
}

/* Readers take an absent field as 0. */
static void put_uint(struct pprof_writer *w, struct buf *b, uint32_t field, uint64_t value)
{
	if (value == 0)
		return;
	put_varint(w, b, field << 3 | PROFILE_WIRE_VARINT);
	put_varint(w, b, value);
}

static void put_int(struct pprof_writer *w, struct buf *b, uint32_t field, int64_t value)
{
	put_uint(w, b, field, (uint64_t)value);
}

static void flush_chunk(struct pprof_writer *w)
{
	int r;

	if (w->error < 0)
		return;
	r = gzip_writer_write(w->gzip, buf_view(&w->chunk));
	if (r < 0)
		w->error = r;
	buf_clear(&w->chunk);
}

/* Ends a top-level field. */
static void end_field(struct pprof_writer *w)
{
	if (w->chunk.len >= CHUNK_BYTES)
		flush_chunk(w);
}

/* Ends the message being built as a top-level field. */
static void end_msg(struct pprof_writer *w, uint32_t field)
{
	put_bytes(w, &w->chunk, field, buf_view(&w->msg));
	buf_clear(&w->msg);
	end_field(w);
}

static void end_sub(struct pprof_writer *w, uint32_t field)
{
	put_bytes(w, &w->msg, field, buf_view(&w->sub));
	buf_clear(&w->sub);
}

static void put_value_type(struct pprof_writer *w, uint32_t field, const struct profile_type *t)
{
	put_uint(w, &w->msg, PROFILE_VALUE_TYPE_TYPE, t->type);
	put_uint(w, &w->msg, PROFILE_VALUE_TYPE_UNIT, t->unit);
	end_msg(w, field);
}

static void put_sample(struct pprof_writer *w, const struct profile *p,
		       const struct profile_sample *s)
{
	uint32_t n;
	const uint32_t *stack = profile_stack_at(p, s->stack, &n);

	if (n > 0) {
		for (uint32_t i = 0; i < n; i++)
			put_varint(w, &w->sub, (uint64_t)stack[i] + 1);
		end_sub(w, PROFILE_SAMPLE_LOCATION);
	}
	for (size_t i = 0; i < profile_n_types(p); i++)
		put_varint(w, &w->sub, (uint64_t)s->values[i]);
	end_sub(w, PROFILE_SAMPLE_VALUE);
	for (uint32_t i = 0; i < s->n_labels; i++) {
		put_uint(w, &w->sub, PROFILE_LABEL_KEY, s->labels[i].key);
		put_uint(w, &w->sub, PROFILE_LABEL_STR, s->labels[i].str);
		put_int(w, &w->sub, PROFILE_LABEL_NUM, s->labels[i].num);
		put_uint(w, &w->sub, PROFILE_LABEL_NUM_UNIT, s->labels[i].num_unit);
		end_sub(w, PROFILE_SAMPLE_LABEL);
	}
	end_msg(w, PROFILE_SAMPLE);
}

static void put_mapping(struct pprof_writer *w, uint64_t id, const struct profile_mapping *m)
{
	put_uint(w, &w->msg, PROFILE_MAPPING_ID, id);
	put_uint(w, &w->msg, PROFILE_MAPPING_START, m->start);
	put_uint(w, &w->msg, PROFILE_MAPPING_LIMIT, m->end);
	put_uint(w, &w->msg, PROFILE_MAPPING_OFFSET, m->offset);
	put_uint(w, &w->msg, PROFILE_MAPPING_FILE, m->file);
	put_uint(w, &w->msg, PROFILE_MAPPING_BUILD_ID, m->build_id);
	put_uint(w, &w->msg, PROFILE_MAPPING_HAS_FUNCTIONS, m->has_functions);
	put_uint(w, &w->msg, PROFILE_MAPPING_HAS_FILENAMES, m->has_filenames);
	put_uint(w, &w->msg, PROFILE_MAPPING_HAS_LINE_NUMBERS, m->has_line_numbers);
	put_uint(w, &w->msg, PROFILE_MAPPING_HAS_INLINE_FRAMES, m->has_inline_frames);
	end_msg(w, PROFILE_MAPPING);
}

static void put_location(struct pprof_writer *w, uint64_t id, const struct profile_location *l)
{
	put_uint(w, &w->msg, PROFILE_LOCATION_ID, id);
	if (l->mapping != PROFILE_NO_MAPPING)
		put_uint(w, &w->msg, PROFILE_LOCATION_MAPPING, (uint64_t)l->mapping + 1);
	put_uint(w, &w->msg, PROFILE_LOCATION_ADDRESS, l->address);
	for (uint32_t i = 0; i < l->n_lines; i++) {
		put_uint(w, &w->sub, PROFILE_LINE_FUNCTION, (uint64_t)l->lines[i].function + 1);
		put_int(w, &w->sub, PROFILE_LINE_LINE, l->lines[i].line);
		put_uint(w, &w->sub, PROFILE_LINE_COLUMN, l->lines[i].column);
		end_sub(w, PROFILE_LOCATION_LINE);
	}
	put_uint(w, &w->msg, PROFILE_LOCATION_IS_FOLDED, l->is_folded);
	end_msg(w, PROFILE_LOCATION);
}

static void put_function(struct pprof_writer *w, uint64_t id, const struct profile_function *f)
{
	put_uint(w, &w->msg, PROFILE_FUNCTION_ID, id);
	put_uint(w, &w->msg, PROFILE_FUNCTION_NAME, f->name);
	put_uint(w, &w->msg, PROFILE_FUNCTION_SYSTEM_NAME, f->system_name);
	put_uint(w, &w->msg, PROFILE_FUNCTION_FILE, f->file);
	put_int(w, &w->msg, PROFILE_FUNCTION_START_LINE, f->start_line);
	end_msg(w, PROFILE_FUNCTION);
}

static void put_header(struct pprof_writer *w, const struct profile *p)
{
	const struct profile_header *h = profile_header_const(p);

	put_uint(w, &w->chunk, PROFILE_DROP_FRAMES, h->drop_frames);
	put_uint(w, &w->chunk, PROFILE_KEEP_FRAMES, h->keep_frames);
	put_int(w, &w->chunk, PROFILE_TIME_NANOS, h->time_ns);
	put_int(w, &w->chunk, PROFILE_DURATION_NANOS, h->duration_ns);
	if (h->period_type.type || h->period_type.unit)
		put_value_type(w, PROFILE_PERIOD_TYPE, &h->period_type);
	put_int(w, &w->chunk, PROFILE_PERIOD, h->period);
	if (profile_n_comments(p) > 0) {
		for (size_t i = 0; i < profile_n_comments(p); i++)
			put_varint(w, &w->msg, profile_comment_at(p, i));
		end_msg(w, PROFILE_COMMENT);
	}
	put_uint(w, &w->chunk, PROFILE_DEFAULT_TYPE, h->default_type);
	put_uint(w, &w->chunk, PROFILE_DOC_URL, h->doc_url);
}

static void put_profile(struct pprof_writer *w, const struct profile *p)
{
	for (size_t i = 0; i < profile_n_types(p); i++)
		put_value_type(w, PROFILE_SAMPLE_TYPE, profile_type_at(p, i));
	for (size_t i = 0; i < profile_n_samples(p) && w->error == 0; i++)
		put_sample(w, p, profile_sample_at(p, i));
	for (size_t i = 0; i < profile_n_mappings(p); i++)
		put_mapping(w, i + 1, profile_mapping_at(p, i));
	for (size_t i = 0; i < profile_n_locations(p) && w->error == 0; i++)
		put_location(w, i + 1, profile_location_at(p, i));
	for (size_t i = 0; i < profile_n_functions(p) && w->error == 0; i++)
		put_function(w, i + 1, profile_function_at(p, i));
	for (size_t i = 0; i < profile_n_strings(p) && w->error == 0; i++) {
		put_bytes(w, &w->chunk, PROFILE_STRING_TABLE, profile_string(p, (uint32_t)i));
		end_field(w);
	}
	put_header(w, p);
}

int profile_encode_pprof(const struct profile *p, struct buf *out, struct err *err)
{
	/* One message can be as large as the profile itself: a stack or a string. */
	_cleanup_(pprof_writer_release) struct pprof_writer w = {
		.chunk = buf_with_max(PROFILE_MAX_BYTES * 2),
		.msg = buf_with_max(PROFILE_MAX_BYTES * 2),
		.sub = buf_with_max(PROFILE_MAX_BYTES * 2),
	};
	size_t start = out->len;
	int r = gzip_writer_new(out, &w.gzip, err);

	if (r < 0)
		return r;
	put_profile(&w, p);
	flush_chunk(&w);
	if (w.error == 0)
		w.error = gzip_writer_finish(w.gzip);
	if (w.error < 0)
		out->len = start;
	if (w.error == -E2BIG)
		return err_set(err, -E2BIG,
			       "the encoded profile is larger than %zu MB; use a shorter window or "
			       "fewer processes",
			       (out->max ? out->max : BUF_DEFAULT_MAX) >> 20);
	return w.error < 0 ? err_oom(err) : 0;
}
