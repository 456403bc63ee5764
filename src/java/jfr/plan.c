/* src/java/jfr/plan.c: see plan.h. */
#include "java/jfr/plan.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"

#define SLOT_NONE UINT8_MAX

struct jfr_step {
	const struct jfr_field *field;
	uint32_t repeat; /* so many numbers to walk over; 0: the field */
	uint8_t slot;
};

static bool is_number(const struct jfr_field *f)
{
	return !f->array && (f->pooled || (f->type->kind >= JFR_CHAR && f->type->kind <= JFR_LONG));
}

static void skip_field(const struct jfr_field *f, struct jfr_cursor *c)
{
	uint64_t n = f->array ? jfr_count(c) : 1;

	if (!f->pooled && f->type->kind == JFR_STRUCT && f->type->n_fields == 0)
		return;
	for (uint64_t i = 0; i < n && !c->bad; i++) {
		if (f->pooled)
			(void)jfr_varint(c);
		else
			jfr_skip(f->type, c);
	}
}

void jfr_skip(const struct jfr_type *type, struct jfr_cursor *c)
{
	if (type->unreadable) {
		(void)jfr_fail(c);
		return;
	}
	switch (type->kind) {
	case JFR_BOOLEAN:
	case JFR_BYTE:
		(void)jfr_byte(c);
		return;
	case JFR_FLOAT:
		jfr_skip_bytes(c, 4);
		return;
	case JFR_DOUBLE:
		jfr_skip_bytes(c, 8);
		return;
	case JFR_STRING:
		(void)jfr_read_text(c, NULL);
		return;
	case JFR_STRUCT:
		for (uint32_t i = 0; i < type->n_fields && !c->bad; i++)
			skip_field(&type->fields[i], c);
		return;
	default:
		(void)jfr_varint(c);
	}
}

static uint8_t slot_of(const struct jfr_field *f, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (view_eq(f->name, view_str(names[i])))
			return (uint8_t)i;
	return SLOT_NONE;
}

int jfr_plan_make(const struct jfr_meta *m, const struct jfr_type *type, const char *const *names,
		  size_t n_names, bool whole, struct arena *arena, struct jfr_plan *ret_plan)
{
	struct jfr_plan plan = {.type = type,
				.strings = jfr_meta_named(m, "java.lang.String"),
				.n_slots = (uint32_t)n_names};
	uint32_t last = 0;

	plan.steps = arena_alloc(arena, type->n_fields * sizeof(*plan.steps) + 1);
	if (!plan.steps)
		return -E2BIG;
	for (uint32_t i = 0; i < type->n_fields && !type->unreadable; i++) {
		const struct jfr_field *f = &type->fields[i];
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

static struct jfr_value read_text(const struct jfr_plan *plan, struct jfr_cursor *c,
				  struct buf *scratch)
{
	struct jfr_text text = jfr_read_text(c, scratch);

	switch (text.kind) {
	case JFR_TEXT_BYTES:
		return (struct jfr_value){.kind = JFR_VALUE_TEXT, .text = text.bytes};
	case JFR_TEXT_SCRATCH:
		/* Where it lies is known when scratch has stopped growing. */
		return (struct jfr_value){.kind = JFR_VALUE_TEXT,
					  .number = (int64_t)text.number + 1,
					  .text = {.len = text.bytes.len}};
	case JFR_TEXT_KEY:
		return (struct jfr_value){.kind = JFR_VALUE_KEY,
					  .number = (int64_t)text.number,
					  .type = plan->strings};
	default:
		return (struct jfr_value){0};
	}
}

static int64_t narrow(enum jfr_kind kind, uint64_t bits)
{
	switch (kind) {
	case JFR_BYTE:
		return (int64_t)((bits & 0xff) ^ 0x80) - 0x80;
	case JFR_CHAR:
		return (uint16_t)bits;
	case JFR_SHORT:
		return (int16_t)bits;
	case JFR_INT:
		return (int32_t)bits;
	default:
		return (int64_t)bits;
	}
}

static struct jfr_value read_value(const struct jfr_plan *plan, const struct jfr_field *f,
				   struct jfr_cursor *c, struct buf *scratch)
{
	struct jfr_value v = {.kind = JFR_VALUE_INTEGER};
	const uint8_t *from = c->at;

	if (f->array || (!f->pooled && f->type->kind == JFR_STRUCT)) {
		skip_field(f, c);
		v.kind = JFR_VALUE_BYTES;
		v.text = view_of(from, (size_t)(c->at - from));
		return v;
	}
	if (f->pooled)
		return (struct jfr_value){
			.kind = JFR_VALUE_KEY, .number = (int64_t)jfr_varint(c), .type = f->type};
	if (f->type->kind == JFR_STRING)
		return read_text(plan, c, scratch);
	if (f->type->kind == JFR_FLOAT || f->type->kind == JFR_DOUBLE) {
		bool is_double = f->type->kind == JFR_DOUBLE;

		v.kind = JFR_VALUE_REAL;
		v.real = real_of(jfr_big_endian(c, is_double ? 8 : 4), is_double);
		return v;
	}
	if (f->type->kind == JFR_BOOLEAN)
		v.number = jfr_byte(c) != 0;
	else if (f->type->kind == JFR_BYTE)
		v.number = narrow(JFR_BYTE, jfr_byte(c));
	else
		v.number = narrow(f->type->kind, jfr_varint(c));
	v.real = (double)v.number;
	return v;
}

void jfr_plan_run(const struct jfr_plan *plan, struct jfr_cursor *c, struct buf *scratch,
		  struct jfr_value *values)
{
	memset(values, 0, plan->n_slots * sizeof(*values));
	buf_clear(scratch);
	if (plan->type->unreadable)
		(void)jfr_fail(c);
	for (uint32_t i = 0; i < plan->n_steps && !c->bad; i++) {
		const struct jfr_step *s = &plan->steps[i];

		if (s->repeat)
			for (uint32_t k = 0; k < s->repeat; k++)
				(void)jfr_varint(c);
		else if (s->slot == SLOT_NONE)
			skip_field(s->field, c);
		else
			values[s->slot] = read_value(plan, s->field, c, scratch);
	}
	for (uint32_t i = 0; i < plan->n_slots; i++)
		if (values[i].kind == JFR_VALUE_TEXT && values[i].number > 0) {
			values[i].text.data = scratch->data + values[i].number - 1;
			values[i].number = 0;
		}
}
