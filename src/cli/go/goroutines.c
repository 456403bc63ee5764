/* src/cli/go/goroutines.c: see goroutines.h. */
#include "cli/go/goroutines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/term.h"

#define VIEW_MAX_ROWS ((size_t)1 << 24)

struct row_key {
	uint64_t stack;
	uint64_t state;
	const char *wait_reason;
	uint64_t created_by;
	uint64_t start_pc;
	uint64_t labels;
};

void goroutines_view_release(struct goroutines_view *v)
{
	intern_release(&v->keys);
	free(v->rows);
	free(v->first);
	free(v->last);
}

static int row_for(struct goroutines_view *v, const struct golang_goroutine *g, uint32_t *ret_row)
{
	const struct row_key key = {
		.stack = g->stack,
		.state = g->state,
		.wait_reason = g->wait_reason,
		.created_by = g->created_by,
		.start_pc = g->stack == GOLANG_NO_STACK ? g->start_pc : 0,
		.labels = v->by_labels ? g->labels : 0,
	};
	uint32_t before = v->keys.len;
	int r = intern_add(&v->keys, view_of(&key, sizeof(key)), ret_row);

	if (r < 0 || v->keys.len == before)
		return r;
	if (*ret_row >= v->rows_cap) {
		size_t cap = MAX((size_t)64, v->rows_cap * 2);
		void *p = cap > VIEW_MAX_ROWS ? NULL : reallocarray(v->rows, cap, sizeof(*v->rows));

		if (!p)
			return -ENOMEM;
		v->rows = p;
		v->rows_cap = cap;
	}
	v->rows[*ret_row] = (struct goroutines_row){
		.stack = g->stack,
		.state = g->state,
		.wait_reason = g->wait_reason,
		.created_by = g->created_by,
		.is_main = g->id == 1,
		.start_pc = key.start_pc,
		.labels = (uint32_t)key.labels,
	};
	return 0;
}

static int seen_compare(const void *a, const void *b)
{
	const struct goroutines_seen *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

static const struct goroutines_seen *seen_find(const struct goroutines_seen *seen, size_t n,
					       uint64_t id)
{
	const struct goroutines_seen key = {.id = id};

	return n ? bsearch(&key, seen, n, sizeof(*seen), seen_compare) : NULL;
}

/* A waiting goroutine that could not be read briefly is assumed to be where it was. */
static bool has_left(const struct goroutines_view *v, const struct goroutines_seen *before,
		     const struct goroutines_seen *now)
{
	return !now || (now->row != before->row && !(v->rows[now->row].state == GOLANG_G_WAITING &&
						     v->rows[now->row].stack == GOLANG_NO_STACK));
}

static void count_moves(struct goroutines_view *v, const struct goroutines_seen *before,
			size_t n_before, const struct goroutines_seen *now, size_t n)
{
	for (size_t i = 0; i < n_before; i++)
		if (has_left(v, &before[i], seen_find(now, n, before[i].id)))
			v->rows[before[i].row].left++;
	for (uint32_t i = 0; i < v->keys.len; i++)
		v->rows[i].fresh = 0;
	for (size_t i = 0; i < n; i++)
		if (!seen_find(v->first, v->n_first, now[i].id))
			v->rows[now[i].row].fresh++;
}

int goroutines_view_add(struct goroutines_view *v, struct err *err)
{
	size_t n = golang_goroutines_count(v->goroutines), n_seen = 0;
	_cleanup_free_ struct goroutines_seen *seen = calloc(n + 1, sizeof(*seen));
	size_t reading = v->n_readings++;

	if (!seen)
		return err_oom(err);
	for (uint32_t i = 0; i < v->keys.len; i++)
		v->rows[i].longest_ns = 0;
	for (size_t i = 0; i < n; i++) {
		const struct golang_goroutine *g = golang_goroutine_at(v->goroutines, i);
		uint32_t row;

		if (v->keep && !v->keep(v->context, g))
			continue;
		if (row_for(v, g, &row) < 0)
			return err_oom(err);
		v->rows[row].counts[reading]++;
		v->rows[row].longest_ns = MAX(v->rows[row].longest_ns, g->wait_ns);
		seen[n_seen++] = (struct goroutines_seen){.id = g->id, .row = row};
	}
	v->shown = n_seen;
	if (n_seen)
		qsort(seen, n_seen, sizeof(*seen), seen_compare);
	if (reading == 0) {
		v->first = TAKE_PTR(seen);
		v->n_first = n_seen;
		return 0;
	}
	if (reading == 1)
		count_moves(v, v->first, v->n_first, seen, n_seen);
	else
		count_moves(v, v->last, v->n_last, seen, n_seen);
	free(v->last);
	v->last = TAKE_PTR(seen);
	v->n_last = n_seen;
	return 0;
}

uint64_t goroutines_row_count(const struct goroutines_view *v, const struct goroutines_row *row)
{
	return v->n_readings ? row->counts[v->n_readings - 1] : 0;
}

bool goroutines_row_leaks(const struct goroutines_view *v, const struct goroutines_row *row)
{
	size_t grew = 0;

	if (v->n_readings < 2 || row->state != GOLANG_G_WAITING || row->stack == GOLANG_NO_STACK)
		return false;
	for (size_t i = 1; i < v->n_readings; i++)
		grew += row->counts[i] > row->counts[i - 1];
	return grew >= MIN((size_t)2, v->n_readings - 1) && row->left == 0 && row->fresh > 0;
}

static int row_compare(const void *a, const void *b, void *arg)
{
	const struct goroutines_row *x = *(const struct goroutines_row *const *)a;
	const struct goroutines_row *y = *(const struct goroutines_row *const *)b;
	const struct goroutines_view *v = arg;
	uint64_t m = goroutines_row_count(v, x), n = goroutines_row_count(v, y);
	bool p = goroutines_row_leaks(v, x), q = goroutines_row_leaks(v, y);

	if (p != q)
		return p ? -1 : 1;
	if (m != n)
		return m > n ? -1 : 1;
	return x < y ? -1 : x > y;
}

int goroutines_view_sorted(const struct goroutines_view *v, const struct goroutines_row ***ret_rows,
			   size_t *ret_n, struct err *err)
{
	const struct goroutines_row **rows = calloc((size_t)v->keys.len + 1, sizeof(void *));
	size_t n = 0;

	if (!rows)
		return err_oom(err);
	for (uint32_t i = 0; i < v->keys.len; i++)
		if (v->n_readings > 1 || goroutines_row_count(v, &v->rows[i]))
			rows[n++] = &v->rows[i];
	qsort_r(rows, n, sizeof(void *), row_compare, (void *)(uintptr_t)v);
	*ret_rows = rows;
	*ret_n = n;
	return 0;
}

const char *goroutines_row_state(const struct goroutines_row *row)
{
	return row->wait_reason[0] ? row->wait_reason : golang_g_state_name(row->state);
}

int goroutines_put_text(struct view text, struct buf *out)
{
	size_t at = out->len;
	int r = buf_append(out, text.data, text.len);

	if (r == 0)
		text_clean((char *)out->data + at, text.len);
	return r;
}

/* runtime/traceback.go, printFuncName and funcNameForPrint: type arguments are omitted. */
int goroutines_put_name(struct view name, struct buf *out)
{
	const uint8_t *open = name.len ? memchr(name.data, '[', name.len) : NULL;
	const uint8_t *close = name.len ? memrchr(name.data, ']', name.len) : NULL;
	int r;

	if (view_eq(name, view_str("runtime.gopanic")))
		name = view_str("panic");
	else if (open && close && close > open) {
		size_t head = (size_t)(open - name.data), tail = (size_t)(close - name.data) + 1;

		r = goroutines_put_text(view_of(name.data, head), out);
		if (r == 0)
			r = buf_append_str(out, "[...]");
		return r < 0 ? r
			     : goroutines_put_text(view_of(name.data + tail, name.len - tail), out);
	}
	return goroutines_put_text(name, out);
}

static bool is_upper(const uint8_t *p, const uint8_t *end)
{
	return p < end && *p >= 'A' && *p <= 'Z';
}

/* "runtime.Gosched", "runtime.(*Func).Entry": callable from outside the runtime. */
static bool is_exported(struct view name)
{
	const uint8_t *p = name.data + strlen("runtime."), *end = name.data + name.len;
	const uint8_t *dot = memrchr(p, '.', (size_t)(end - p));

	if (!dot)
		return is_upper(p, end);
	if (end - p >= 2 && p[0] == '(' && p[1] == '*')
		p += 2;
	return is_upper(dot + 1, end) && is_upper(p, dot);
}

/* runtime/traceback.go, showfuncinfo. */
bool goroutines_frame_shown(const struct golang_goroutine_frame *frame, bool first)
{
	struct view name = frame->function;

	if (!name.len || !memchr(name.data, '.', name.len))
		return false;
	if (!view_starts_with(name, "runtime."))
		return true;
	return (view_eq(name, view_str("runtime.gopanic")) && !first) ||
	       view_eq(name, view_str("runtime.runFinalizers")) ||
	       view_eq(name, view_str("runtime.runCleanups")) || is_exported(name);
}

struct place {
	struct buf *out;
	bool done;
};

static int place_put(struct place *p, const struct golang_goroutine_frame *frame)
{
	const uint8_t *slash =
		frame->file.len ? memrchr(frame->file.data, '/', frame->file.len) : NULL;
	struct view file = frame->file;
	int r = goroutines_put_name(frame->function, p->out);

	if (slash)
		file = view_of(slash + 1, (size_t)(file.data + file.len - slash) - 1);
	if (r == 0)
		r = buf_append_byte(p->out, ' ');
	if (r == 0)
		r = goroutines_put_text(file, p->out);
	if (r == 0)
		r = buf_printf(p->out, ":%lld", (long long)frame->line);
	p->done = true;
	return r;
}

/* Waiting happens below the functions that people know; show their callers. */
static bool is_plumbing(struct view name)
{
	return view_starts_with(name, "internal/") || view_starts_with(name, "sync.") ||
	       view_starts_with(name, "syscall.") ||
	       memmem(name.data, name.len, ".runtime_", strlen(".runtime_"));
}

static int place_emit(void *context, const struct golang_goroutine_frame *frame)
{
	struct place *p = context;

	if (p->done || !goroutines_frame_shown(frame, false) || is_plumbing(frame->function))
		return 0;
	return place_put(p, frame);
}

static int site_emit(void *context, const struct golang_goroutine_frame *frame)
{
	return place_put(context, frame);
}

/* Goroutines of the runtime have no other frames: take the innermost. */
static int any_emit(void *context, const struct golang_goroutine_frame *frame)
{
	struct place *p = context;

	return p->done ? 0 : place_put(p, frame);
}

int goroutines_put_place(struct golang_goroutines *gs, const struct goroutines_row *row,
			 struct buf *out)
{
	struct place p = {.out = out};
	int r = 0;

	if (row->stack == GOLANG_NO_STACK) {
		r = buf_append_str(out, "started at ");
		if (r == 0)
			r = golang_goroutines_site(gs, row->start_pc, site_emit, &p);
		/* A thread of C that calls Go has a goroutine for it, which starts nowhere. */
		return r < 0 || p.done ? r : buf_append_str(out, "[C thread]");
	}
	r = golang_goroutines_frames(gs, row->stack, place_emit, &p);
	if (r >= 0 && !p.done)
		r = golang_goroutines_frames(gs, row->stack, any_emit, &p);
	return r;
}

int goroutines_put_creator(struct golang_goroutines *gs, const struct goroutines_row *row,
			   struct buf *out)
{
	struct place p = {.out = out};
	int r = golang_goroutines_site(gs, row->created_by, site_emit, &p);

	return r < 0 || p.done || row->is_main ? r : buf_append_str(out, "[C thread]");
}
