/* src/java/jfr/pools.c: see pools.h. */
#include "java/jfr/pools.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "java/jfr/cursor.h"

/* Bytes: an empty pool is short, but its plan is not. */
#define POOLS_MAX_PLANS ((size_t)4 << 20)
#define POOLS_MAX_TYPES 65536 /* per checkpoint */

struct stack_entry {
	uint64_t first; /* frame */
	uint32_t n;
	bool truncated;
};

/* The state of reading one checkpoint. */
struct reader {
	struct java_jfr_pools *pools;
	const struct java_jfr_meta *meta;
	struct java_jfr_cursor cursor;
	struct arena arena; /* of plans */
	struct buf scratch;
	struct java_jfr_plan frames; /* built when the first stack is read */
};

void java_jfr_pools_release(struct java_jfr_pools *p)
{
	arena_release(&p->bytes);
	buf_release(&p->texts);
	buf_release(&p->frames);
	buf_release(&p->stacks);
	buf_release(&p->methods);
	buf_release(&p->threads);
	map_release(&p->stack_keys);
	map_release(&p->method_keys);
	map_release(&p->class_keys);
	map_release(&p->thread_keys);
	for (uint32_t i = 0; i < p->n_text_pools; i++)
		map_release(&p->text_pools[i].texts);
	*p = (struct java_jfr_pools){.limit = p->limit};
}

static int spend(struct java_jfr_pools *p, size_t bytes)
{
	if (bytes > p->limit - p->used)
		return -E2BIG;
	p->used += bytes;
	return 0;
}

static int put(struct java_jfr_pools *p, struct map *m, uint64_t key, uint64_t value)
{
	/* Three eighths to three quarters of a map's slots are in use. */
	int r = spend(p, 32);

	return r < 0 ? r : map_put(m, key, value);
}

/* Appends an item and returns its index. */
static int append(struct java_jfr_pools *p, struct buf *items, const void *item, size_t size,
		  uint64_t *ret_index)
{
	int r = spend(p, size);

	items->max = p->limit;
	*ret_index = items->len / size;
	return r < 0 ? r : buf_append(items, item, size);
}

static int keep_text(struct java_jfr_pools *p, struct view text, struct view *ret_text)
{
	void *copy;

	*ret_text = view_str("");
	if (text.len == 0)
		return 0;
	if (spend(p, text.len + 8) < 0)
		return -E2BIG;
	p->bytes.max = 2 * p->limit; /* including what blocks waste */
	copy = arena_dup(&p->bytes, text.data, text.len);
	if (!copy)
		return -E2BIG;
	*ret_text = view_of(copy, text.len);
	return 0;
}

static struct java_jfr_text_pool *text_pool(const struct java_jfr_pools *p, uint64_t type)
{
	for (uint32_t i = 0; i < p->n_text_pools; i++)
		if (p->text_pools[i].type == type)
			return (struct java_jfr_text_pool *)&p->text_pools[i];
	return NULL;
}

typedef int (*read_entry)(struct reader *rd, const struct java_jfr_plan *plan, uint64_t key);

static int read_text_entry(struct reader *rd, const struct java_jfr_plan *plan, uint64_t key)
{
	struct java_jfr_text_pool *pool = text_pool(rd->pools, plan->type->id);
	struct java_jfr_text text;
	struct view kept;
	uint64_t index;
	int r;

	buf_clear(&rd->scratch);
	text = java_jfr_read_text(&rd->cursor, &rd->scratch);
	if (text.kind == JAVA_JFR_TEXT_SCRATCH)
		text.bytes = buf_view(&rd->scratch);
	/* No JVM writes a constant that is a key itself. */
	if (rd->cursor.bad || text.kind == JAVA_JFR_TEXT_KEY || map_get(&pool->texts, key, &index))
		return rd->cursor.bad ? -EBADMSG : 0;
	r = keep_text(rd->pools, text.kind == JAVA_JFR_TEXT_NULL ? view_str("") : text.bytes,
		      &kept);
	if (r == 0)
		r = append(rd->pools, &rd->pools->texts, &kept, sizeof(kept), &index);
	return r < 0 ? r : put(rd->pools, &pool->texts, key, index);
}

static int read_method(struct reader *rd, const struct java_jfr_plan *plan, uint64_t key)
{
	struct java_jfr_value v[2];
	uint64_t index;
	int r;

	java_jfr_plan_run(plan, &rd->cursor, &rd->scratch, v);
	if (rd->cursor.bad)
		return -EBADMSG;
	r = append(rd->pools, &rd->pools->methods,
		   &(struct java_jfr_method){.type = (uint64_t)v[0].number,
					     .name = (uint64_t)v[1].number},
		   sizeof(struct java_jfr_method), &index);
	return r < 0 ? r : put(rd->pools, &rd->pools->method_keys, key, index);
}

static int read_class(struct reader *rd, const struct java_jfr_plan *plan, uint64_t key)
{
	struct java_jfr_value name;

	java_jfr_plan_run(plan, &rd->cursor, &rd->scratch, &name);
	if (rd->cursor.bad)
		return -EBADMSG;
	return put(rd->pools, &rd->pools->class_keys, key, (uint64_t)name.number);
}

static const char *const thread_fields[] = {"javaName", "osName", "javaThreadId", "osThreadId",
					    "virtual"};

/* Thread names may be keys into the string pool, which is known by then. */
static struct view text_of(const struct java_jfr_pools *p, const struct java_jfr_value *v)
{
	struct view text;

	if (v->kind == JAVA_JFR_VALUE_TEXT)
		return v->text;
	if (v->kind == JAVA_JFR_VALUE_KEY && v->type &&
	    java_jfr_pools_text(p, v->type->id, (uint64_t)v->number, &text))
		return text;
	return view_str("");
}

static bool is_same_thread(const struct java_jfr_pools *p, uint64_t key, struct view java_name)
{
	struct java_jfr_thread known;

	return java_jfr_pools_thread(p, key, &known) && view_eq(known.java_name, java_name);
}

/* Repeated in later checkpoints, possibly with a new name. */
static int read_thread(struct reader *rd, const struct java_jfr_plan *plan, uint64_t key)
{
	struct java_jfr_value v[ARRAY_SIZE(thread_fields)];
	struct java_jfr_thread thread = {0};
	uint64_t index;
	int r;

	java_jfr_plan_run(plan, &rd->cursor, &rd->scratch, v);
	if (rd->cursor.bad)
		return -EBADMSG;
	if (is_same_thread(rd->pools, key, text_of(rd->pools, &v[0])))
		return 0;
	thread.java_id = v[2].number;
	thread.os_id = v[3].number;
	thread.is_virtual = v[4].number != 0;
	r = keep_text(rd->pools, text_of(rd->pools, &v[0]), &thread.java_name);
	if (r == 0)
		r = keep_text(rd->pools, text_of(rd->pools, &v[1]), &thread.os_name);
	if (r == 0)
		r = append(rd->pools, &rd->pools->threads, &thread, sizeof(thread), &index);
	return r < 0 ? r : put(rd->pools, &rd->pools->thread_keys, key, index);
}

static const char *const frame_fields[] = {"method", "lineNumber", "type"};

/* bytes: the array of frames, whose structure was checked while skipping it. */
static int read_frames(struct reader *rd, const struct java_jfr_type *type, struct view bytes,
		       struct stack_entry *stack)
{
	struct java_jfr_cursor c = java_jfr_cursor_of(bytes);
	uint64_t n = java_jfr_count(&c), index;
	int r = 0;

	if (rd->frames.type != type)
		r = java_jfr_plan_make(rd->meta, type, frame_fields, ARRAY_SIZE(frame_fields), true,
				       &rd->arena, &rd->frames);
	for (uint64_t i = 0; r == 0 && i < n; i++) {
		struct java_jfr_value v[ARRAY_SIZE(frame_fields)];
		struct java_jfr_frame frame;

		java_jfr_plan_run(&rd->frames, &c, &rd->scratch, v);
		frame = (struct java_jfr_frame){.method = (uint64_t)v[0].number,
						.line = (int32_t)v[1].number,
						.type = (uint64_t)v[2].number};
		r = append(rd->pools, &rd->pools->frames, &frame, sizeof(frame), &index);
		if (i == 0)
			stack->first = index;
	}
	stack->n = (uint32_t)n;
	return c.bad ? -EBADMSG : r;
}

static const char *const stack_fields[] = {"truncated", "frames"};

static const struct java_jfr_type *frames_of(const struct java_jfr_type *type)
{
	for (uint32_t i = 0; i < type->n_fields; i++) {
		const struct java_jfr_field *f = &type->fields[i];

		if (f->array && !f->pooled && view_eq(f->name, view_str("frames")) &&
		    f->type->kind == JAVA_JFR_STRUCT && f->type->n_fields > 0)
			return f->type;
	}
	return NULL;
}

static int read_stack(struct reader *rd, const struct java_jfr_plan *plan, uint64_t key)
{
	const struct java_jfr_type *frames;
	struct java_jfr_value v[ARRAY_SIZE(stack_fields)];
	struct stack_entry stack = {0};
	uint64_t index;
	int r = 0;

	java_jfr_plan_run(plan, &rd->cursor, &rd->scratch, v);
	if (rd->cursor.bad)
		return -EBADMSG;
	stack.truncated = v[0].number != 0;
	frames = frames_of(plan->type);
	/* Later checkpoints of a live chunk repeat stacks. */
	if (map_get(&rd->pools->stack_keys, key, &index))
		return 0;
	if (frames && v[1].kind == JAVA_JFR_VALUE_BYTES)
		r = read_frames(rd, frames, v[1].text, &stack);
	if (r == 0)
		r = append(rd->pools, &rd->pools->stacks, &stack, sizeof(stack), &index);
	return r < 0 ? r : put(rd->pools, &rd->pools->stack_keys, key, index);
}

static int skip_entry(struct reader *rd, const struct java_jfr_plan *plan, uint64_t key)
{
	(void)key;
	java_jfr_skip(plan->type, &rd->cursor);
	return rd->cursor.bad ? -EBADMSG : 0;
}

static bool is_text(const struct java_jfr_type *type)
{
	return type->kind == JAVA_JFR_STRING ||
	       (type->kind == JAVA_JFR_STRUCT && type->n_fields == 1 && !type->fields[0].array &&
		!type->fields[0].pooled && type->fields[0].type->kind == JAVA_JFR_STRING);
}

static const struct pool_kind {
	const char *type;
	read_entry read;
	const char *const *fields;
	size_t n_fields;
} pool_kinds[] = {
	{"jdk.types.StackTrace", read_stack, stack_fields, ARRAY_SIZE(stack_fields)},
	{"jdk.types.Method", read_method, (const char *const[]){"type", "name"}, 2},
	{"java.lang.Class", read_class, (const char *const[]){"name"}, 1},
	{"java.lang.Thread", read_thread, thread_fields, ARRAY_SIZE(thread_fields)},
};

static bool keeps_texts(struct java_jfr_pools *p, const struct java_jfr_type *type)
{
	if (!is_text(type))
		return false;
	if (text_pool(p, type->id))
		return true;
	if (p->n_text_pools == JAVA_JFR_MAX_TEXT_POOLS)
		return false;
	p->text_pools[p->n_text_pools++] = (struct java_jfr_text_pool){.type = type->id};
	if (view_eq(type->name, view_str("jdk.types.Symbol")))
		p->symbol_type = type->id;
	else if (view_eq(type->name, view_str("jdk.types.FrameType")))
		p->frame_type_type = type->id;
	return true;
}

static int choose(struct reader *rd, const struct java_jfr_type *type,
		  struct java_jfr_plan *ret_plan, read_entry *ret_read)
{
	for (size_t i = 0; !type->unreadable && i < ARRAY_SIZE(pool_kinds); i++) {
		const struct pool_kind *k = &pool_kinds[i];

		if (!view_eq(type->name, view_str(k->type)))
			continue;
		*ret_read = k->read;
		return java_jfr_plan_make(rd->meta, type, k->fields, k->n_fields, true, &rd->arena,
					  ret_plan);
	}
	*ret_plan = (struct java_jfr_plan){.type = type};
	*ret_read =
		!type->unreadable && keeps_texts(rd->pools, type) ? read_text_entry : skip_entry;
	return 0;
}

static int read_pool(struct reader *rd, struct err *err)
{
	uint64_t id = java_jfr_varint(&rd->cursor);
	uint64_t n = java_jfr_count(&rd->cursor);
	const struct java_jfr_type *type = java_jfr_meta_type(rd->meta, id);
	struct java_jfr_plan plan;
	read_entry read;
	int r;

	if (rd->cursor.bad || !type)
		return err_set(err, -EBADMSG, "has a malformed constant pool");
	r = choose(rd, type, &plan, &read);
	for (uint64_t i = 0; r == 0 && i < n; i++) {
		uint64_t key = java_jfr_varint(&rd->cursor);

		r = rd->cursor.bad ? -EBADMSG : read(rd, &plan, key);
	}
	if (r == -EBADMSG)
		return err_set(err, r, "has malformed constants of type '%.*s'",
			       (int)MIN(type->name.len, (size_t)100),
			       (const char *)type->name.data);
	return r < 0 ? err_set(err, r, "has constants that exceed the memory limit") : 0;
}

int java_jfr_pools_add(struct java_jfr_pools *p, const struct java_jfr_meta *m, struct view event,
		       struct err *err)
{
	struct reader rd = {.pools = p,
			    .meta = m,
			    .cursor = java_jfr_cursor_of(event),
			    .arena.max = POOLS_MAX_PLANS};
	uint64_t n;
	int r = 0;

	for (int i = 0; i < 5; i++)
		(void)java_jfr_varint(&rd.cursor);
	(void)java_jfr_byte(&rd.cursor);
	n = java_jfr_count(&rd.cursor);
	if (rd.cursor.bad || n > POOLS_MAX_TYPES)
		return err_set(err, -EBADMSG, "has a malformed checkpoint");
	for (uint64_t i = 0; r == 0 && i < n; i++)
		r = read_pool(&rd, err);
	arena_release(&rd.arena);
	buf_release(&rd.scratch);
	return r;
}

bool java_jfr_pools_stack(const struct java_jfr_pools *p, uint64_t key,
			  struct java_jfr_stack *ret_stack)
{
	const struct stack_entry *stack;
	uint64_t index;

	if (!map_get(&p->stack_keys, key, &index))
		return false;
	stack = &((const struct stack_entry *)p->stacks.data)[index];
	*ret_stack = (struct java_jfr_stack){
		.frames = stack->n ? &((const struct java_jfr_frame *)p->frames.data)[stack->first]
				   : NULL,
		.n_frames = stack->n,
		.truncated = stack->truncated,
		.key = key,
		.pools = p,
	};
	return true;
}

bool java_jfr_pools_method(const struct java_jfr_pools *p, uint64_t key,
			   struct java_jfr_method *ret_method)
{
	uint64_t index;

	if (!map_get(&p->method_keys, key, &index))
		return false;
	*ret_method = ((const struct java_jfr_method *)p->methods.data)[index];
	return true;
}

bool java_jfr_pools_text(const struct java_jfr_pools *p, uint64_t type, uint64_t key,
			 struct view *ret_text)
{
	const struct java_jfr_text_pool *pool = text_pool(p, type);
	uint64_t index;

	if (!pool || !map_get(&pool->texts, key, &index))
		return false;
	*ret_text = ((const struct view *)p->texts.data)[index];
	return true;
}

bool java_jfr_pools_symbol(const struct java_jfr_pools *p, uint64_t key, struct view *ret_text)
{
	return java_jfr_pools_text(p, p->symbol_type, key, ret_text);
}

bool java_jfr_pools_frame_type(const struct java_jfr_pools *p, uint64_t key, struct view *ret_text)
{
	return java_jfr_pools_text(p, p->frame_type_type, key, ret_text);
}

bool java_jfr_pools_class(const struct java_jfr_pools *p, uint64_t key, struct view *ret_name)
{
	uint64_t name;

	return map_get(&p->class_keys, key, &name) && java_jfr_pools_symbol(p, name, ret_name);
}

bool java_jfr_pools_thread(const struct java_jfr_pools *p, uint64_t key,
			   struct java_jfr_thread *ret_thread)
{
	uint64_t index;

	if (!map_get(&p->thread_keys, key, &index))
		return false;
	*ret_thread = ((const struct java_jfr_thread *)p->threads.data)[index];
	return true;
}
