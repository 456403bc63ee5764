/* src/java/jfr/plan.c: see plan.h. */
#include "java/jfr/plan.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"

#define SLOT_NONE UINT8_MAX

struct jfr_step {
	const struct java_jfr_field *field;
	uint32_t repeat; /* how many numbers to skip; 0: the field */
	uint8_t slot;
};

static bool is_number(const struct java_jfr_field *f)
{
	return !f->array &&
	       (f->pooled || (f->type->kind >= JAVA_JFR_CHAR && f->type->kind <= JAVA_JFR_LONG));
}

static void skip_field(const struct java_jfr_field *f, struct java_jfr_cursor *c)
{
	uint64_t n = f->array ? java_jfr_count(c) : 1;

	if (!f->pooled && f->type->kind == JAVA_JFR_STRUCT && f->type->n_fields == 0)
		return;
	for (uint64_t i = 0; i < n && !c->bad; i++) {
		if (f->pooled)
			(void)java_jfr_varint(c);
		else
			java_jfr_skip(f->type, c);
	}
}

void java_jfr_skip(const struct java_jfr_type *type, struct java_jfr_cursor *c)
{
	if (type->unreadable) {
		(void)java_jfr_fail(c);
		return;
	}
	switch (type->kind) {
	case JAVA_JFR_BOOLEAN:
	case JAVA_JFR_BYTE:
		(void)java_jfr_byte(c);
		return;
	case JAVA_JFR_FLOAT:
		java_jfr_skip_bytes(c, 4);
		return;
	case JAVA_JFR_DOUBLE:
		java_jfr_skip_bytes(c, 8);
		return;
	case JAVA_JFR_STRING:
		(void)java_jfr_read_text(c, NULL);
		return;
	case JAVA_JFR_STRUCT:
		for (uint32_t i = 0; i < type->n_fields && !c->bad; i++)
			skip_field(&type->fields[i], c);
		return;
	default:
		(void)java_jfr_varint(c);
	}
}

static uint8_t slot_of(const struct java_jfr_field *f, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (view_eq(f->name, view_str(names[i])))
			return (uint8_t)i;
	return SLOT_NONE;
}

int java_jfr_plan_make(const struct java_jfr_meta *m, const struct java_jfr_type *type,
		       const char *const *names, size_t n_names, bool whole, struct arena *arena,
		       struct java_jfr_plan *ret_plan)
{
	struct java_jfr_plan plan = {.type = type,
				     .strings = java_jfr_meta_named(m, "java.lang.String"),
				     .n_slots = (uint32_t)n_names};
	uint32_t last = 0;

	plan.steps = arena_alloc(arena, type->n_fields * sizeof(*plan.steps) + 1);
	if (!plan.steps)
		return -E2BIG;
	for (uint32_t i = 0; i < type->n_fields && !type->unreadable; i++) {
		const struct java_jfr_field *f = &type->fields[i];
		struct jfr_step *before = plan.n_steps ? &plan.steps[plan.n_steps - 1] : NULL;
		uint8_t slot = slot_of(f, names, n_names);

		if (slot == SLOT_NONE && is_number(f) && before && before->repeat) {
			before->repeat++;
			continue;
		}
		plan.steps[plan.n_steps++] = (struct jfr_step){
			.field = f, .slot = slot, .repeat = slot == SLOT_NONE && is_number(f)};
		if (slot != SLOT_NONE)
			last = plan.n_steps;
	}
	if (!whole)
		plan.n_steps = last;
	*ret_plan = plan;
	return 0;
}

static double real_of(uint64_t bits, bool is_double)
{
	uint32_t narrow = (uint32_t)bits;
	double wide;
	float single;

	if (is_double) {
		memcpy(&wide, &bits, sizeof(wide));
		return wide;
	}
	memcpy(&single, &narrow, sizeof(single));
	return single;
}

static struct java_jfr_value read_text(const struct java_jfr_plan *plan, struct java_jfr_cursor *c,
				       struct buf *scratch)
{
	struct java_jfr_text text = java_jfr_read_text(c, scratch);

	switch (text.kind) {
	case JAVA_JFR_TEXT_BYTES:
		return (struct java_jfr_value){.kind = JAVA_JFR_VALUE_TEXT, .text = text.bytes};
	case JAVA_JFR_TEXT_SCRATCH:
		/* Its address is known only once scratch has stopped growing. */
		return (struct java_jfr_value){.kind = JAVA_JFR_VALUE_TEXT,
					       .number = (int64_t)text.number + 1,
					       .text = {.len = text.bytes.len}};
	case JAVA_JFR_TEXT_KEY:
		return (struct java_jfr_value){.kind = JAVA_JFR_VALUE_KEY,
					       .number = (int64_t)text.number,
					       .type = plan->strings};
	default:
		return (struct java_jfr_value){0};
	}
}

static int64_t narrow(enum java_jfr_kind kind, uint64_t bits)
{
	switch (kind) {
	case JAVA_JFR_BYTE:
		return (int64_t)((bits & 0xff) ^ 0x80) - 0x80;
	case JAVA_JFR_CHAR:
		return (uint16_t)bits;
	case JAVA_JFR_SHORT:
		return (int16_t)bits;
	case JAVA_JFR_INT:
		return (int32_t)bits;
	default:
		return (int64_t)bits;
	}
}

static struct java_jfr_value read_value(const struct java_jfr_plan *plan,
					const struct java_jfr_field *f, struct java_jfr_cursor *c,
					struct buf *scratch)
{
	struct java_jfr_value v = {.kind = JAVA_JFR_VALUE_INTEGER};
	const uint8_t *from = c->at;

	if (f->array || (!f->pooled && f->type->kind == JAVA_JFR_STRUCT)) {
		skip_field(f, c);
		v.kind = JAVA_JFR_VALUE_BYTES;
		v.text = view_of(from, (size_t)(c->at - from));
		return v;
	}
	if (f->pooled)
		return (struct java_jfr_value){.kind = JAVA_JFR_VALUE_KEY,
					       .number = (int64_t)java_jfr_varint(c),
					       .type = f->type};
	if (f->type->kind == JAVA_JFR_STRING)
		return read_text(plan, c, scratch);
	if (f->type->kind == JAVA_JFR_FLOAT || f->type->kind == JAVA_JFR_DOUBLE) {
		bool is_double = f->type->kind == JAVA_JFR_DOUBLE;

		v.kind = JAVA_JFR_VALUE_REAL;
		v.real = real_of(java_jfr_big_endian(c, is_double ? 8 : 4), is_double);
		return v;
	}
	if (f->type->kind == JAVA_JFR_BOOLEAN)
		v.number = java_jfr_byte(c) != 0;
	else if (f->type->kind == JAVA_JFR_BYTE)
		v.number = narrow(JAVA_JFR_BYTE, java_jfr_byte(c));
	else
		v.number = narrow(f->type->kind, java_jfr_varint(c));
	v.real = (double)v.number;
	return v;
}

void java_jfr_plan_run(const struct java_jfr_plan *plan, struct java_jfr_cursor *c,
		       struct buf *scratch, struct java_jfr_value *values)
{
	memset(values, 0, plan->n_slots * sizeof(*values));
	buf_clear(scratch);
	if (plan->type->unreadable)
		(void)java_jfr_fail(c);
	for (uint32_t i = 0; i < plan->n_steps && !c->bad; i++) {
		const struct jfr_step *s = &plan->steps[i];

		if (s->repeat)
			for (uint32_t k = 0; k < s->repeat; k++)
				(void)java_jfr_varint(c);
		else if (s->slot == SLOT_NONE)
			skip_field(s->field, c);
		else
			values[s->slot] = read_value(plan, s->field, c, scratch);
	}
	for (uint32_t i = 0; i < plan->n_slots; i++)
		if (values[i].kind == JAVA_JFR_VALUE_TEXT && values[i].number > 0) {
			/* With nothing but empty texts scratch has no memory. */
			values[i].text.data = values[i].text.len
						      ? scratch->data + (values[i].number - 1)
						      : (const uint8_t *)"";
			values[i].number = 0;
		}
}
