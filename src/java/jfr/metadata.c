/*
 * src/java/jfr/metadata.c: see metadata.h.
 *
 * First walks the tree and records classes and fields, then binds fields to their types. With a
 * type of zero bytes, a forged count could run forever, so fields of such types are dropped. A type
 * that contains itself cannot have a value, so it is marked.
 */
#include "java/jfr/metadata.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "java/jfr/cursor.h"

#define META_MAX_BYTES ((size_t)64 << 20)
#define META_MAX_TYPES 65536
#define META_MAX_DEPTH 16    /* of elements */
#define META_MAX_NESTING 16  /* of types */
#define META_MAX_FIELDS 4096 /* of a type */

enum word {
	WORD_OTHER,
	WORD_CLASS,
	WORD_FIELD,
	WORD_NAME,
	WORD_ID,
	WORD_SUPER,
	WORD_POOL,
	WORD_DIMENSION,
	WORD_N,
};

struct string {
	struct view text;
	enum word word;
};

struct class
{
	struct class *next;
	struct field *fields, **tail;
	uint32_t n_fields;
	uint64_t id;
	struct view name;
	bool is_event;
};

struct field {
	struct field *next;
	struct java_jfr_field field;
};

struct reader {
	struct java_jfr_cursor cursor;
	struct arena *arena;
	struct arena scratch; /* needed only while reading */
	struct string *strings;
	uint64_t n_strings;
	struct class *classes, **tail;
	uint32_t n_classes;
};

struct attributes {
	const struct string *of[WORD_N];
};

static enum word word_of(struct view text)
{
	static const char *const words[WORD_N] = {
		[WORD_CLASS] = "class",	       [WORD_FIELD] = "field",
		[WORD_NAME] = "name",	       [WORD_ID] = "id",
		[WORD_SUPER] = "superType",    [WORD_POOL] = "constantPool",
		[WORD_DIMENSION] = "dimension"};

	for (enum word w = WORD_CLASS; w < WORD_N; w++)
		if (view_eq(text, view_str(words[w])))
			return w;
	return WORD_OTHER;
}

static int read_strings(struct reader *rd)
{
	_cleanup_(buf_release) struct buf scratch = {0};
	uint64_t n = java_jfr_count(&rd->cursor);

	rd->strings = arena_alloc(&rd->scratch, n * sizeof(*rd->strings) + 1);
	if (!rd->strings)
		return -E2BIG;
	for (uint64_t i = 0; i < n && !rd->cursor.bad; i++) {
		struct java_jfr_text text;

		buf_clear(&scratch);
		text = java_jfr_read_text(&rd->cursor, &scratch);
		if (text.kind == JAVA_JFR_TEXT_SCRATCH)
			text.bytes = buf_view(&scratch);
		else if (text.kind != JAVA_JFR_TEXT_BYTES)
			text.bytes = view_str("");
		rd->strings[i].text.len = text.bytes.len;
		rd->strings[i].text.data =
			arena_dup(rd->arena, text.bytes.len ? text.bytes.data : (const void *)"",
				  text.bytes.len);
		if (!rd->strings[i].text.data)
			return -E2BIG;
		rd->strings[i].word = word_of(text.bytes);
	}
	rd->n_strings = n;
	return rd->cursor.bad ? -EBADMSG : 0;
}

static const struct string *read_string(struct reader *rd)
{
	static const struct string none = {0};
	uint64_t i = java_jfr_varint(&rd->cursor);

	if (i < rd->n_strings)
		return &rd->strings[i];
	(void)java_jfr_fail(&rd->cursor);
	return &none;
}

static uint64_t number_of(const struct string *s)
{
	uint64_t n = 0;

	/* More digits wrap around to a number that no type has. */
	for (size_t i = 0; s && i < s->text.len && i < 19; i++)
		n = n * 10 + (uint64_t)(s->text.data[i] - '0');
	return n;
}

static struct view text_of(const struct string *s)
{
	return s ? s->text : view_str("");
}

static int add_class(struct reader *rd, const struct attributes *a, struct class **ret_class)
{
	struct class *c;

	if (!a->of[WORD_ID] || !a->of[WORD_NAME])
		return -EBADMSG;
	if (rd->n_classes == META_MAX_TYPES)
		return -E2BIG;
	c = arena_alloc(&rd->scratch, sizeof(*c));
	if (!c)
		return -E2BIG;
	c->id = number_of(a->of[WORD_ID]);
	c->name = text_of(a->of[WORD_NAME]);
	c->is_event = view_eq(text_of(a->of[WORD_SUPER]), view_str("jdk.jfr.Event"));
	c->tail = &c->fields;
	*rd->tail = c;
	rd->tail = &c->next;
	rd->n_classes++;
	*ret_class = c;
	return 0;
}

static int add_field(struct reader *rd, const struct attributes *a, struct class *c)
{
	struct field *f;

	if (!a->of[WORD_CLASS] || !a->of[WORD_NAME])
		return -EBADMSG;
	if (c->n_fields == META_MAX_FIELDS)
		return -E2BIG;
	f = arena_alloc(&rd->scratch, sizeof(*f));
	if (!f)
		return -E2BIG;
	f->field = (struct java_jfr_field){
		.name = text_of(a->of[WORD_NAME]),
		.type_id = number_of(a->of[WORD_CLASS]),
		.pooled = view_eq(text_of(a->of[WORD_POOL]), view_str("true")),
		.array = number_of(a->of[WORD_DIMENSION]) > 0,
	};
	*c->tail = f;
	c->tail = &f->next;
	c->n_fields++;
	return 0;
}

/* parent: the class that directly contains it. */
static int read_element(struct reader *rd, struct class *parent, unsigned int depth)
{
	struct attributes attributes = {0};
	const struct string *name;
	struct class *class = NULL;
	uint64_t n;
	int r = 0;

	if (depth > META_MAX_DEPTH)
		return -E2BIG;
	name = read_string(rd);
	n = java_jfr_count(&rd->cursor);
	for (uint64_t i = 0; i < n && !rd->cursor.bad; i++) {
		const struct string *key = read_string(rd);

		attributes.of[key->word] = read_string(rd);
	}
	n = java_jfr_count(&rd->cursor);
	if (rd->cursor.bad)
		return -EBADMSG;
	if (name->word == WORD_CLASS)
		r = add_class(rd, &attributes, &class);
	else if (name->word == WORD_FIELD && parent)
		r = add_field(rd, &attributes, parent);
	for (uint64_t i = 0; r == 0 && i < n; i++)
		r = read_element(rd, class, depth + 1);
	return r;
}

static enum java_jfr_kind kind_of(struct view name)
{
	static const char *const names[JAVA_JFR_N_KINDS] = {[JAVA_JFR_BOOLEAN] = "boolean",
							    [JAVA_JFR_BYTE] = "byte",
							    [JAVA_JFR_CHAR] = "char",
							    [JAVA_JFR_SHORT] = "short",
							    [JAVA_JFR_INT] = "int",
							    [JAVA_JFR_LONG] = "long",
							    [JAVA_JFR_FLOAT] = "float",
							    [JAVA_JFR_DOUBLE] = "double",
							    [JAVA_JFR_STRING] = "java.lang.String"};

	for (enum java_jfr_kind k = JAVA_JFR_BOOLEAN; k < JAVA_JFR_N_KINDS; k++)
		if (view_eq(name, view_str(names[k])))
			return k;
	return JAVA_JFR_STRUCT;
}

static int keep_fields(struct java_jfr_meta *m, struct java_jfr_type *type, const struct class *c)
{
	struct java_jfr_field *fields = arena_alloc(&m->arena, c->n_fields * sizeof(*fields) + 1);
	uint32_t n = 0;

	if (!fields)
		return -E2BIG;
	for (const struct field *f = c->fields; f; f = f->next)
		fields[n++] = f->field;
	type->fields = fields;
	type->n_fields = type->n_declared = n;
	return 0;
}

static int keep_types(struct java_jfr_meta *m, const struct reader *rd)
{
	m->types = arena_alloc(&m->arena, rd->n_classes * sizeof(*m->types) + 1);
	m->small = arena_alloc(&m->arena, JAVA_JFR_SMALL_IDS * sizeof(*m->small));
	if (!m->types || !m->small)
		return -E2BIG;
	for (const struct class *c = rd->classes; c; c = c->next) {
		struct java_jfr_type *type = &m->types[m->n_types];
		int r;

		*type = (struct java_jfr_type){.id = c->id,
					       .name = c->name,
					       .kind = kind_of(c->name),
					       .is_event = c->is_event,
					       .number = m->n_types++};
		r = keep_fields(m, type, c);
		if (r == 0)
			r = map_put(&m->by_id, c->id, type->number);
		if (r < 0)
			return r;
		if (c->id < JAVA_JFR_SMALL_IDS)
			m->small[c->id] = type->number + 1;
	}
	return 0;
}

enum visit { VISIT_NONE, VISIT_OPEN, VISIT_DONE };

/*
 * Drops fields without bytes. A type that is reached while still open contains itself: unreadable.
 */
static void settle(struct java_jfr_meta *m, struct java_jfr_type *type, uint8_t *visits,
		   unsigned int depth)
{
	struct java_jfr_field *fields = (struct java_jfr_field *)type->fields;
	uint32_t n = 0;

	if (visits[type->number] == VISIT_DONE)
		return;
	if (visits[type->number] == VISIT_OPEN || depth > META_MAX_NESTING) {
		type->unreadable = true;
		return;
	}
	visits[type->number] = VISIT_OPEN;
	for (uint32_t i = 0; type->kind == JAVA_JFR_STRUCT && i < type->n_declared; i++) {
		struct java_jfr_type *of = (struct java_jfr_type *)fields[i].type;

		if (!fields[i].pooled && !of)
			type->unreadable = true;
		if (!fields[i].pooled && of) {
			settle(m, of, visits, depth + 1);
			type->unreadable |= of->unreadable;
			type->nesting = MAX(type->nesting, of->nesting + 1);
			if (!fields[i].array && of->kind == JAVA_JFR_STRUCT && of->n_fields == 0)
				continue;
		}
		fields[n++] = fields[i];
	}
	type->n_fields = n;
	type->unreadable |= type->nesting > META_MAX_NESTING;
	visits[type->number] = VISIT_DONE;
}

static int bind_fields(struct java_jfr_meta *m, struct arena *scratch)
{
	uint8_t *visits = arena_alloc(scratch, m->n_types + 1);

	if (!visits)
		return -E2BIG;
	for (uint32_t t = 0; t < m->n_types; t++) {
		struct java_jfr_field *fields = (struct java_jfr_field *)m->types[t].fields;

		for (uint32_t i = 0; i < m->types[t].n_fields; i++)
			fields[i].type = java_jfr_meta_type(m, fields[i].type_id);
	}
	for (uint32_t t = 0; t < m->n_types; t++)
		settle(m, &m->types[t], visits, 0);
	return 0;
}

/* Skips what differs between metadata events of the same JVM. */
static bool read_prologue(struct java_jfr_cursor *c)
{
	(void)java_jfr_varint(c);
	if (java_jfr_varint(c) != 0)
		return false;
	for (int i = 0; i < 3; i++)
		(void)java_jfr_varint(c);
	return !c->bad;
}

uint64_t java_jfr_meta_hash(struct view event)
{
	struct java_jfr_cursor c = java_jfr_cursor_of(event);

	return read_prologue(&c) ? hash_bytes(c.at, java_jfr_left(&c)) | 1 : 0;
}

static int parse(struct reader *rd, struct java_jfr_meta *m)
{
	int r;

	if (!read_prologue(&rd->cursor))
		return -EBADMSG;
	m->hash = hash_bytes(rd->cursor.at, java_jfr_left(&rd->cursor)) | 1;
	r = read_strings(rd);
	if (r == 0)
		r = read_element(rd, NULL, 0);
	if (r == 0)
		r = keep_types(m, rd);
	return r < 0 ? r : bind_fields(m, &rd->scratch);
}

int java_jfr_meta_parse(struct view event, struct java_jfr_meta *ret_meta, struct err *err)
{
	struct java_jfr_meta m = {.arena.max = META_MAX_BYTES};
	struct reader rd = {.cursor = java_jfr_cursor_of(event),
			    .arena = &m.arena,
			    .scratch.max = META_MAX_BYTES};
	int r;

	rd.tail = &rd.classes;
	r = parse(&rd, &m);
	arena_release(&rd.scratch);
	if (r < 0) {
		java_jfr_meta_release(&m);
		return r == -EBADMSG ? err_set(err, r, "has malformed metadata")
				     : err_set(err, r, "has metadata that is too large");
	}
	*ret_meta = m;
	return 0;
}

void java_jfr_meta_release(struct java_jfr_meta *m)
{
	arena_release(&m->arena);
	map_release(&m->by_id);
	*m = (struct java_jfr_meta){0};
}

const struct java_jfr_type *java_jfr_meta_type(const struct java_jfr_meta *m, uint64_t id)
{
	uint64_t number;

	if (id < JAVA_JFR_SMALL_IDS && m->small)
		return m->small[id] ? &m->types[m->small[id] - 1] : NULL;
	return map_get(&m->by_id, id, &number) ? &m->types[number] : NULL;
}

const struct java_jfr_type *java_jfr_meta_named(const struct java_jfr_meta *m, const char *name)
{
	for (uint32_t i = 0; i < m->n_types; i++)
		if (view_eq(m->types[i].name, view_str(name)))
			return &m->types[i];
	return NULL;
}
