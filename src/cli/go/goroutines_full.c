/* src/cli/go/goroutines_full.c: every goroutine, in the format of a goroutine dump. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/map.h"
#include "cli/go/goroutines.h"

/* runtime/traceback.go: number of frames printed at each end. */
#define FULL_INNER_FRAMES 50
#define FULL_OUTER_FRAMES 50

/* Texts of stacks, stored once: thousands of goroutines share them. */
struct full {
	struct golang_goroutines *gs;
	struct buf *out;
	struct buf texts;
	struct map known; /* stack -> offset << 32 | length of its text */
	size_t frames;	  /* of the current stack */
	size_t skip_from, skip_to;
	bool any;
	bool all; /* a goroutine of the runtime itself: its frames are all there is */
};

static void full_release(struct full *f)
{
	buf_release(&f->texts);
	map_release(&f->known);
}

static int put_frame(struct buf *out, const struct golang_goroutine_frame *frame, bool with_args)
{
	int r = goroutines_put_name(frame->function, out);

	if (r == 0)
		r = buf_append_str(out, with_args ? "(...)\n\t" : "\n\t");
	if (r == 0)
		r = goroutines_put_text(frame->file, out);
	if (r == 0)
		r = buf_printf(out, ":%lld", (long long)frame->line);
	if (r == 0 && !frame->inlined && frame->pc > frame->entry)
		r = buf_printf(out, " +0x%llx", (unsigned long long)(frame->pc - frame->entry));
	return r < 0 ? r : buf_append_byte(out, '\n');
}

static int count_emit(void *context, const struct golang_goroutine_frame *frame)
{
	struct full *f = context;

	f->frames += f->all || goroutines_frame_shown(frame, !f->any);
	f->any = true;
	return 0;
}

static int text_emit(void *context, const struct golang_goroutine_frame *frame)
{
	struct full *f = context;
	bool shown = f->all || goroutines_frame_shown(frame, !f->any);

	f->any = true;
	if (!shown)
		return 0;
	f->frames++;
	if (f->frames == f->skip_from)
		return buf_printf(&f->texts, "...%zu frames elided...\n",
				  f->skip_to - f->skip_from);
	if (f->frames > f->skip_from && f->frames < f->skip_to)
		return 0;
	return put_frame(&f->texts, frame, true);
}

static int count_frames(struct full *f, uint32_t stack, bool all)
{
	f->frames = 0;
	f->any = false;
	f->all = all;
	return golang_goroutines_frames(f->gs, stack, count_emit, f);
}

static int put_stack(struct full *f, uint32_t stack)
{
	uint64_t at = f->texts.len, known;
	int r;

	if (!map_get(&f->known, stack, &known)) {
		r = count_frames(f, stack, false);
		if (r >= 0 && f->frames == 0)
			r = count_frames(f, stack, true);
		f->skip_from = SIZE_MAX;
		f->skip_to = SIZE_MAX;
		if (f->frames > FULL_INNER_FRAMES + FULL_OUTER_FRAMES) {
			f->skip_from = FULL_INNER_FRAMES + 1;
			f->skip_to = f->frames - FULL_OUTER_FRAMES + 1;
		}
		f->frames = 0;
		f->any = false;
		if (r >= 0)
			r = golang_goroutines_frames(f->gs, stack, text_emit, f);
		known = at << 32 | (f->texts.len - at);
		if (r >= 0)
			r = map_put(&f->known, stack, known);
		if (r < 0)
			return r;
	}
	return buf_append(f->out, f->texts.data + (known >> 32), (uint32_t)known);
}

/* Of the go statement. */
struct creator {
	struct buf *out;
	uint64_t parent;
};

static int creator_emit(void *context, const struct golang_goroutine_frame *frame)
{
	const struct creator *c = context;
	int r;

	if (!goroutines_frame_shown(frame, false))
		return 0;
	r = buf_append_str(c->out, "created by ");
	if (r == 0)
		r = goroutines_put_name(frame->function, c->out);
	if (r == 0 && c->parent)
		r = buf_printf(c->out, " in goroutine %llu", (unsigned long long)c->parent);
	if (r == 0)
		r = buf_append_str(c->out, "\n\t");
	if (r == 0)
		r = goroutines_put_text(frame->file, c->out);
	if (r == 0)
		r = buf_printf(c->out, ":%lld", (long long)frame->line);
	if (r == 0 && frame->pc > frame->entry)
		r = buf_printf(c->out, " +0x%llx", (unsigned long long)(frame->pc - frame->entry));
	return r < 0 ? r : buf_append_byte(c->out, '\n');
}

static int put_header(const struct full *f, const struct golang_goroutine *g)
{
	const char *const *labels = golang_goroutine_labels(f->gs, g->labels);
	uint64_t minutes = g->wait_ns / (60 * NS_PER_SEC);
	int r = buf_printf(f->out, "goroutine %llu [%s%s", (unsigned long long)g->id,
			   g->wait_reason[0] ? g->wait_reason : golang_g_state_name(g->state),
			   g->leaked ? " (leaked)" : "");

	if (r == 0 && minutes)
		r = buf_printf(f->out, ", %llu minutes", (unsigned long long)minutes);
	if (r == 0 && g->locked_to_thread)
		r = buf_append_str(f->out, ", locked to thread");
	if (r == 0)
		r = buf_append_str(f->out, labels[0] ? "] {" : "]");
	for (const char *const *l = labels; r == 0 && l[0] && l[1]; l += 2) {
		r = buf_append_str(f->out, l == labels ? "" : ", ");
		if (r == 0)
			r = goroutines_put_text(view_str(l[0]), f->out);
		if (r == 0)
			r = buf_append_str(f->out, ": ");
		if (r == 0)
			r = goroutines_put_text(view_str(l[1]), f->out);
	}
	return r < 0 ? r : buf_append_str(f->out, labels[0] ? "}:\n" : ":\n");
}

static int put_goroutine(struct full *f, const struct golang_goroutine *g)
{
	struct creator creator = {.out = f->out, .parent = g->parent_id};
	int r = put_header(f, g);

	if (r == 0 && g->stack != GOLANG_NO_STACK)
		r = put_stack(f, g->stack);
	else if (r == 0)
		r = buf_append_str(
			f->out, g->state == GOLANG_G_RUNNING
					? "\tgoroutine running on other thread; stack unavailable\n"
					: "\tstack unavailable: it could not be verified\n");
	if (r == 0)
		r = golang_goroutines_site(f->gs, g->created_by, creator_emit, &creator);
	return r < 0 ? r : buf_append_byte(f->out, '\n');
}

static int by_id(const void *a, const void *b)
{
	const struct golang_goroutine *x = *(const struct golang_goroutine *const *)a;
	const struct golang_goroutine *y = *(const struct golang_goroutine *const *)b;

	return x->id < y->id ? -1 : x->id > y->id;
}

int goroutines_full(const struct goroutines_view *v, struct buf *out, struct err *err)
{
	_cleanup_(full_release) struct full f = {.gs = v->goroutines, .out = out};
	size_t n = golang_goroutines_count(v->goroutines), kept = 0;
	_cleanup_free_ const struct golang_goroutine **list = calloc(n + 1, sizeof(void *));
	int r = 0;

	if (!list)
		return err_oom(err);
	for (size_t i = 0; i < n; i++) {
		const struct golang_goroutine *g = golang_goroutine_at(v->goroutines, i);

		if (!v->keep || v->keep(v->context, g))
			list[kept++] = g;
	}
	qsort(list, kept, sizeof(void *), by_id);
	for (size_t i = 0; i < kept && r >= 0; i++)
		r = put_goroutine(&f, list[i]);
	return r < 0 ? err_set(err, r, "cannot write the goroutines: %s", strerror(-r)) : 0;
}
