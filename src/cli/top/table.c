/* src/cli/top/table.c: the data of all processes as a table; see model.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/top/readings.h"

/* By name id: the sums of a function. */
struct top_sum {
	double flat;
	double cum;
	uint64_t sample;  /* the last sample that counted it, so recursion counts once */
	size_t process;	  /* likewise, + 1 */
	size_t processes; /* number of processes */
	uint32_t service; /* of the first of them */
	size_t services;  /* 2 for more than one */
};

struct top_builder {
	const struct top_model *model;
	const struct top_view *view;
	struct top_table *table;
	struct top_sum *sums;
	size_t n_sums;
	uint32_t callee; /* for view->callers_of */
	double total;
};

static const char *model_text(const struct top_model *m, uint32_t name)
{
	return (const char *)intern_get(&m->names, name).data;
}

/* In the table's arena. */
static const char *table_text(struct top_table *t, const char *text)
{
	return arena_dup(&t->arena, text, strlen(text) + 1);
}

static bool view_takes(const struct top_builder *b, const struct top_process *p)
{
	const struct top_view *v = b->view;

	/* Processes that do not run, or have no known heap, are omitted. */
	if (v->kind == TOP_CPU ? top_process_factor(b->model, p, TOP_CPU) == 0 : !p->has_heap)
		return false;
	return (!v->pid || v->pid == p->id.pid) &&
	       (!v->service || strcmp(v->service, model_text(b->model, p->service)) == 0);
}

static bool filter_takes(const struct top_view *v, const char *name)
{
	return !v->filter || !v->filter[0] || strcasestr(name, v->filter);
}

static void sum_note_process(struct top_sum *sum, const struct top_process *p, size_t process)
{
	if (sum->process == process + 1)
		return;
	if (sum->processes == 0) {
		sum->service = p->service;
		sum->services = 1;
	} else if (sum->service != p->service) {
		sum->services = 2;
	}
	sum->process = process + 1;
	sum->processes++;
}

/* Flat goes to the leaf, cum once to each function above it. */
static void stack_count(struct top_builder *b, const uint32_t *stack, size_t len, double value,
			uint64_t sample, size_t process)
{
	for (size_t i = 0; i < len; i++) {
		struct top_sum *sum = &b->sums[stack[i]];

		if (sum->sample == sample)
			continue;
		sum->sample = sample;
		sum->cum += value;
		sum_note_process(sum, &b->model->processes[process], process);
	}
	if (len)
		b->sums[stack[len - 1]].flat += value;
}

/* The outermost call's caller: then all callers together add up to the function's own value. */
static void stack_count_caller(struct top_builder *b, const uint32_t *stack, size_t len,
			       double value, size_t process)
{
	for (size_t i = 0; i < len; i++) {
		/* The sum after the last name is for those without a caller. */
		struct top_sum *sum = &b->sums[i ? stack[i - 1] : b->n_sums];

		if (stack[i] != b->callee)
			continue;
		if (stack[len - 1] == b->callee)
			sum->flat += value;
		sum->cum += value;
		sum_note_process(sum, &b->model->processes[process], process);
		return;
	}
}

static void functions_count(struct top_builder *b)
{
	uint64_t serial = 0;

	for (size_t i = 0; i < b->model->len; i++) {
		const struct top_process *p = &b->model->processes[i];
		const struct top_samples *samples = &p->kinds[b->view->kind];
		double factor = top_process_factor(b->model, p, b->view->kind);

		if (!view_takes(b, p))
			continue;
		b->total += top_process_sum(b->model, p, b->view->kind, b->view->unit);
		for (size_t s = 0; factor != 0 && s < samples->len; s++) {
			double value = samples->at[s].values[b->view->unit] * factor;
			size_t len;
			const uint32_t *stack =
				top_model_stack(b->model, samples->at[s].stack, &len);

			if (b->view->callers_of)
				stack_count_caller(b, stack, len, value, i);
			else
				stack_count(b, stack, len, value, ++serial, i);
		}
	}
}

static const char *sum_where(struct top_builder *b, const struct top_sum *sum)
{
	const char *service = model_text(b->model, sum->service);
	char where[192];

	if (sum->services > 1)
		(void)snprintf(where, sizeof(where), "%zu processes", sum->processes);
	else if (sum->processes > 1)
		(void)snprintf(where, sizeof(where), "%.140s x%zu", service, sum->processes);
	else
		(void)snprintf(where, sizeof(where), "%.140s", service);
	return table_text(b->table, where);
}

static int table_add(struct top_table *t, const struct top_row *row)
{
	/* In doubling steps. */
	if ((t->len & (t->len + 1)) == 0) {
		struct top_row *rows = reallocarray(t->rows, 2 * t->len + 2, sizeof(*rows));

		if (!rows)
			return -ENOMEM;
		t->rows = rows;
	}
	if (!row->name || !row->where || !row->service)
		return -ENOMEM;
	t->rows[t->len++] = *row;
	t->shown += row->flat;
	return 0;
}

static int functions_add(struct top_builder *b)
{
	int r = 0;

	for (size_t i = 0; i <= b->n_sums && r == 0; i++) {
		const struct top_sum *sum = &b->sums[i];
		const char *name = i < b->n_sums ? model_text(b->model, (uint32_t)i) : "(nobody)";
		struct top_row row = {.flat = llround(sum->flat),
				      .cum = llround(sum->cum),
				      .processes = sum->processes};

		if (!row.flat && !row.cum)
			continue;
		if (!filter_takes(b->view, name)) {
			b->table->hidden++;
			continue;
		}
		row.name = table_text(b->table, name);
		row.where = sum_where(b, sum);
		row.service = table_text(
			b->table, sum->services == 1 ? model_text(b->model, sum->service) : "");
		r = table_add(b->table, &row);
	}
	return r;
}

static int functions_build(struct top_builder *b)
{
	const struct top_view *v = b->view;

	b->n_sums = b->model->names.len;
	/* A function no longer present has no callers. */
	if (v->callers_of && !intern_find(&b->model->names, view_str(v->callers_of), &b->callee))
		return 0;
	b->sums = calloc(b->n_sums + 1, sizeof(*b->sums));
	if (!b->sums)
		return -ENOMEM;
	functions_count(b);
	return functions_add(b);
}

static int processes_build(struct top_builder *b)
{
	int r = 0;

	for (size_t i = 0; i < b->model->len && r == 0; i++) {
		const struct top_process *p = &b->model->processes[i];
		struct top_row row = {.processes = 1, .pid = p->id.pid};
		char name[96];
		double value;

		if (!view_takes(b, p))
			continue;
		value = top_process_sum(b->model, p, b->view->kind, b->view->unit);
		b->total += value;
		(void)snprintf(name, sizeof(name), "%d %s", (int)p->id.pid, p->name);
		if (!filter_takes(b->view, name)) {
			b->table->hidden++;
			continue;
		}
		row.flat = row.cum = llround(value);
		row.name = table_text(b->table, name);
		row.where = row.service = table_text(b->table, model_text(b->model, p->service));
		r = table_add(b->table, &row);
	}
	return r;
}

static int services_add(struct top_builder *b)
{
	int r = 0;

	for (size_t i = 0; i < b->n_sums && r == 0; i++) {
		const struct top_sum *sum = &b->sums[i];
		const char *name = model_text(b->model, (uint32_t)i);
		struct top_row row = {.flat = llround(sum->flat), .processes = sum->processes};
		char where[48];

		if (!sum->processes)
			continue;
		if (!filter_takes(b->view, name)) {
			b->table->hidden++;
			continue;
		}
		(void)snprintf(where, sizeof(where), "%zu process%s", sum->processes,
			       sum->processes == 1 ? "" : "es");
		row.cum = row.flat;
		row.name = row.service = table_text(b->table, name);
		row.where = table_text(b->table, where);
		r = table_add(b->table, &row);
	}
	return r;
}

static int services_build(struct top_builder *b)
{
	b->n_sums = b->model->names.len;
	b->sums = calloc(b->n_sums + 1, sizeof(*b->sums));
	if (!b->sums)
		return -ENOMEM;
	for (size_t i = 0; i < b->model->len; i++) {
		const struct top_process *p = &b->model->processes[i];
		double value;

		if (!view_takes(b, p))
			continue;
		value = top_process_sum(b->model, p, b->view->kind, b->view->unit);
		b->total += value;
		b->sums[p->service].flat += value;
		b->sums[p->service].processes++;
	}
	return services_add(b);
}

static int compare_values(int64_t a, int64_t b)
{
	return (a < b) - (a > b);
}

static int compare_flat(const void *a, const void *b)
{
	const struct top_row *x = a, *y = b;
	int c = compare_values(x->flat, y->flat);

	if (!c)
		c = compare_values(x->cum, y->cum);
	return c ? c : strcmp(x->name, y->name);
}

static int compare_cum(const void *a, const void *b)
{
	const struct top_row *x = a, *y = b;
	int c = compare_values(x->cum, y->cum);

	return c ? c : compare_flat(a, b);
}

int top_model_table(const struct top_model *m, const struct top_view *view,
		    struct top_table *ret_table, struct err *err)
{
	struct top_table table = {};
	struct top_builder b = {.model = m, .view = view, .table = &table};
	int r;

	if (view->callers_of || view->group == TOP_FUNCTIONS)
		r = functions_build(&b);
	else if (view->group == TOP_SERVICES)
		r = services_build(&b);
	else
		r = processes_build(&b);
	free(b.sums);
	if (r < 0) {
		top_table_release(&table);
		return err_oom(err);
	}
	table.total = llround(b.total);
	if (table.len)
		qsort(table.rows, table.len, sizeof(*table.rows),
		      view->by_total || view->callers_of ? compare_cum : compare_flat);
	*ret_table = table;
	return 0;
}

void top_table_release(struct top_table *table)
{
	arena_release(&table->arena);
	free(table->rows);
	*table = (struct top_table){};
}
