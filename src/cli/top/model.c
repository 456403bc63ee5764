/* src/cli/top/model.c: see model.h. */
#include "cli/top/model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/sum.h"
#include "base/text.h"
#include "cli/term.h"
#include "cli/top/readings.h"
#include "profile/frames.h"

#define TOP_MAX_NAME_BYTES ((size_t)32 << 20)
#define TOP_MAX_STACK_BYTES ((size_t)96 << 20)
#define TOP_MAX_NAME 1024
#define TOP_MAX_DEPTH 1024
/* After this time about a third of a sample is left. */
#define TOP_MEMORY_NS (5.0 * (double)NS_PER_SEC)

const struct registry_type *top_type(enum top_kind kind, enum top_unit unit)
{
	static const enum type_id ids[TOP_KINDS][TOP_UNITS] = {
		[TOP_ALLOC] = {[TOP_OBJECTS] = TYPE_GO_HEAP_ALLOC_OBJECTS,
			       [TOP_BYTES] = TYPE_GO_HEAP_ALLOC_SPACE},
		[TOP_LIVE] = {[TOP_OBJECTS] = TYPE_GO_HEAP_INUSE_OBJECTS,
			      [TOP_BYTES] = TYPE_GO_HEAP_INUSE_SPACE},
		[TOP_CPU] = {[TOP_OBJECTS] = TYPE_CPU_SAMPLES, [TOP_BYTES] = TYPE_CPU_TIME},
	};

	return &registry_types[ids[kind][unit]];
}

int top_model_new(struct top_model **ret_model, struct err *err)
{
	struct top_model *m = calloc(1, sizeof(*m));

	if (!m)
		return err_oom(err);
	m->names.bytes.max = TOP_MAX_NAME_BYTES;
	m->stacks.bytes.max = TOP_MAX_STACK_BYTES;
	*ret_model = m;
	return 0;
}

static void process_release(struct top_process *p)
{
	for (size_t i = 0; i < TOP_KINDS; i++)
		free(p->kinds[i].at);
}

static void model_clear(struct top_model *m)
{
	for (size_t i = 0; i < m->len; i++)
		process_release(&m->processes[i]);
	free(m->processes);
	m->processes = NULL;
	m->len = 0;
	intern_release(&m->names);
	intern_release(&m->stacks);
}

void top_model_free(struct top_model *m)
{
	if (!m)
		return;
	model_clear(m);
	free(m);
}

static int model_name(struct top_model *m, struct view name, uint32_t *ret_id)
{
	char clean[TOP_MAX_NAME];
	size_t len = MIN(name.len, sizeof(clean));

	if (len)
		memcpy(clean, name.data, len);
	text_clean(clean, len);
	return intern_add(&m->names, view_of(clean, len), ret_id);
}

/* One profile being added to the model. */
struct top_intake {
	struct top_model *model;
	struct profile *profile;
	struct profile_frames frames;
	uint32_t *names; /* our id + 1 by string id of the profile, 0: not yet */
	int types[TOP_KINDS][TOP_UNITS];
	struct top_samples kinds[TOP_KINDS];
};

static void intake_release(struct top_intake *in)
{
	profile_frames_release(&in->frames);
	free(in->names);
	for (size_t i = 0; i < TOP_KINDS; i++)
		free(in->kinds[i].at);
}

static int intake_stack(struct top_intake *in, const struct profile_sample *s, uint32_t *ret_stack,
			struct err *err)
{
	uint32_t stack[TOP_MAX_DEPTH];
	const struct profile_frame *frames;
	size_t len, skip;
	int r = profile_frames_of(&in->frames, s, &frames, &len, err);

	if (r < 0)
		return r;
	/* Of absurdly deep stacks, keep the leaf side. */
	skip = len > TOP_MAX_DEPTH ? len - TOP_MAX_DEPTH : 0;
	for (size_t i = skip; i < len; i++) {
		uint32_t *name = &in->names[frames[i].name];
		uint32_t id = 0;

		if (*name == 0) {
			r = model_name(in->model, profile_string(in->profile, frames[i].name), &id);
			if (r < 0)
				return r;
			*name = id + 1;
		}
		stack[i - skip] = *name - 1;
	}
	return intern_add(&in->model->stacks, view_of(stack, (len - skip) * sizeof(*stack)),
			  ret_stack);
}

static int intake_sample(struct top_intake *in, const struct profile_sample *s, struct err *err)
{
	bool has_stack = false;
	uint32_t stack = 0;
	int r;

	for (size_t k = 0; k < TOP_KINDS; k++) {
		struct top_samples *kind = &in->kinds[k];
		struct top_sample sample = {};

		for (size_t u = 0; u < TOP_UNITS; u++)
			if (in->types[k][u] >= 0)
				sample.values[u] = (double)s->values[in->types[k][u]];
		if (sample.values[TOP_OBJECTS] == 0 && sample.values[TOP_BYTES] == 0)
			continue;
		if (!has_stack) {
			r = intake_stack(in, s, &stack, err);
			if (r < 0)
				return r;
			has_stack = true;
		}
		sample.stack = stack;
		kind->at[kind->len++] = sample;
	}
	return 0;
}

static int intake_fill(struct top_intake *in, struct err *err)
{
	size_t n = profile_n_samples(in->profile);
	int r = profile_frames_init(&in->frames, in->profile, err);

	if (r < 0)
		return r;
	in->names = calloc(profile_n_strings(in->profile) + 1, sizeof(*in->names));
	if (!in->names)
		return -ENOMEM;
	for (size_t k = 0; k < TOP_KINDS; k++) {
		in->kinds[k].at = calloc(n + 1, sizeof(*in->kinds[k].at));
		if (!in->kinds[k].at)
			return -ENOMEM;
		for (size_t u = 0; u < TOP_UNITS; u++)
			in->types[k][u] = profile_find_type(in->profile, top_type(k, u)->name);
	}
	for (size_t i = 0; i < n && r == 0; i++)
		r = intake_sample(in, profile_sample_at(in->profile, i), err);
	return r;
}

/* The index of the process, or where to insert it. */
static size_t model_find(const struct top_model *m, pid_t pid)
{
	size_t low = 0, high = m->len;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (m->processes[mid].id.pid < pid)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static int model_process(struct top_model *m, const struct top_subject *who,
			 struct top_process **ret_process)
{
	size_t i = model_find(m, who->id.pid);
	struct top_process *p;
	int r;

	if (i == m->len || m->processes[i].id.pid != who->id.pid) {
		p = reallocarray(m->processes, m->len + 1, sizeof(*p));
		if (!p)
			return -ENOMEM;
		m->processes = p;
		memmove(&p[i + 1], &p[i], (m->len - i) * sizeof(*p));
		p[i] = (struct top_process){.id = who->id};
		m->len++;
	}
	p = &m->processes[i];
	if (p->id.start_ticks != who->id.start_ticks) {
		process_release(p);
		*p = (struct top_process){.id = who->id};
	}
	r = model_name(m, view_str(who->service), &p->service);
	(void)snprintf(p->name, sizeof(p->name), "%.*s", (int)sizeof(p->name) - 1, who->name);
	text_clean(p->name, strlen(p->name));
	*ret_process = p;
	return r;
}

static void process_measure(struct top_process *p, struct top_samples *deltas, uint64_t now_ns,
			    bool frozen)
{
	uint64_t since_read = now_ns - p->read_ns;
	double keep = exp(-(double)since_read / TOP_MEMORY_NS);

	p->delta_ns += since_read;
	for (size_t i = 0; i < deltas->len; i++)
		for (size_t u = 0; u < TOP_UNITS; u++)
			p->delta[u] = sum_add(p->delta[u], (int64_t)deltas->at[i].values[u]);
	p->measured = true;
	/* Something is missing between what is shown and what follows: begin anew. */
	p->anew |= frozen;
	if (frozen)
		return;
	if (p->anew)
		keep = 0;
	p->anew = false;
	top_process_fade(p, deltas, keep);
	p->span_ns = p->span_ns * keep + (double)MAX(since_read, (uint64_t)1);
}

static void process_take(struct top_process *p, struct top_samples *kinds, uint64_t now_ns,
			 bool frozen)
{
	if (p->known)
		process_measure(p, &kinds[TOP_ALLOC], now_ns, frozen);
	if (!frozen || !p->kinds[TOP_LIVE].at)
		top_samples_take(&p->kinds[TOP_LIVE], &kinds[TOP_LIVE]);
	p->known = p->has_heap = true;
	p->read_ns = now_ns;
}

/* Fills the kinds, and finds their process. */
static int model_intake(struct top_model *m, const struct top_subject *who, struct top_intake *in,
			struct top_process **ret_process, struct err *err)
{
	int r = intake_fill(in, err);

	if (r == 0)
		r = model_process(m, who, ret_process);
	if (r == 0)
		return 0;
	if (r == -E2BIG) {
		model_clear(m);
		return err_set(
			err, r,
			"too many functions and stacks for top; select a --service or processes");
	}
	return err_oom(err);
}

int top_model_add(struct top_model *m, const struct top_subject *who, struct profile *profile,
		  uint64_t now_ns, struct err *err)
{
	_cleanup_(intake_release) struct top_intake in = {.model = m, .profile = profile};
	struct top_process *p;
	int r = model_intake(m, who, &in, &p, err);

	if (r == 0)
		process_take(p, in.kinds, now_ns, m->frozen);
	return r;
}

void top_model_add_counted(struct top_model *m, const struct proc_id *id, double bytes,
			   uint64_t now_ns)
{
	size_t i = model_find(m, id->pid);
	struct top_process *p = i < m->len ? &m->processes[i] : NULL;

	if (!p || p->id.pid != id->pid || p->id.start_ticks != id->start_ticks || !p->has_heap)
		return;
	if (p->count_ns && bytes >= 0 && !m->frozen) {
		p->counted = bytes * (double)NS_PER_SEC / (double)MAX(now_ns - p->count_ns, 1UL);
		p->is_counted = true;
	}
	p->count_ns = now_ns;
}

void top_model_begin_cpu(struct top_model *m, int64_t stamp_ns)
{
	if (!m->frozen)
		m->cpu_stamp_ns = stamp_ns;
}

int top_model_add_cpu(struct top_model *m, const struct top_subject *who, struct profile *profile,
		      int64_t stamp_ns, struct err *err)
{
	_cleanup_(intake_release) struct top_intake in = {.model = m, .profile = profile};
	struct top_process *p;
	int r;

	if (m->frozen)
		return 0;
	r = model_intake(m, who, &in, &p, err);
	if (r < 0)
		return r;
	top_samples_take(&p->kinds[TOP_CPU], &in.kinds[TOP_CPU]);
	p->cpu_span_ns = (uint64_t)MAX(profile_header_const(profile)->duration_ns, (int64_t)1);
	p->cpu_stamp_ns = m->cpu_stamp_ns = stamp_ns;
	return 0;
}

void top_model_rebase(struct top_model *m)
{
	for (size_t i = 0; i < m->len; i++) {
		m->processes[i].known = false;
		m->processes[i].anew = true;
		m->processes[i].count_ns = 0;
	}
}

void top_model_freeze(struct top_model *m, bool frozen)
{
	m->frozen = frozen;
}

static bool process_is_sampled(const struct top_model *m, const struct top_process *p)
{
	return m->cpu_stamp_ns && p->cpu_stamp_ns == m->cpu_stamp_ns;
}

static void process_end_heap(struct top_process *p)
{
	for (size_t k = 0; k < TOP_KINDS; k++) {
		if (k == TOP_CPU)
			continue;
		free(p->kinds[k].at);
		p->kinds[k] = (struct top_samples){};
	}
	p->has_heap = p->known = p->measured = p->is_counted = false;
	p->span_ns = p->sampled = 0;
	p->count_ns = 0;
}

void top_model_retain(struct top_model *m, const struct proc_id *ids, size_t n)
{
	size_t len = 0, k = 0;

	if (m->frozen)
		return;
	for (size_t i = 0; i < m->len; i++) {
		struct top_process *p = &m->processes[i];

		while (k < n && ids[k].pid < p->id.pid)
			k++;
		if (k < n && ids[k].pid == p->id.pid && ids[k].start_ticks == p->id.start_ticks)
			m->processes[len++] = *p;
		else if (process_is_sampled(m, p)) {
			process_end_heap(p);
			m->processes[len++] = *p;
		} else {
			process_release(p);
		}
	}
	m->len = len;
}

static double alloc_factor(const struct top_process *p)
{
	if (p->is_counted)
		return p->sampled > 0 ? p->counted / p->sampled : 0;
	return p->span_ns > 0 ? (double)NS_PER_SEC / p->span_ns : 0;
}

double top_process_factor(const struct top_model *m, const struct top_process *p,
			  enum top_kind kind)
{
	if (kind == TOP_LIVE)
		return 1;
	if (kind == TOP_ALLOC)
		return alloc_factor(p);
	if (!process_is_sampled(m, p) || !p->cpu_span_ns)
		return 0;
	return (double)NS_PER_SEC / (double)p->cpu_span_ns;
}

double top_process_sum(const struct top_model *m, const struct top_process *p, enum top_kind kind,
		       enum top_unit unit)
{
	const struct top_samples *samples = &p->kinds[kind];
	double sum = 0;

	/* Also where nothing of it was sampled. */
	if (kind == TOP_ALLOC && unit == TOP_BYTES && p->is_counted)
		return p->counted;
	for (size_t i = 0; i < samples->len; i++)
		sum += samples->at[i].values[unit];
	return sum * top_process_factor(m, p, kind);
}

const uint32_t *top_model_stack(const struct top_model *m, uint32_t stack, size_t *ret_len)
{
	struct view v = intern_get(&m->stacks, stack);

	*ret_len = v.len / sizeof(uint32_t);
	return (const void *)v.data;
}

static bool service_is_new(const struct top_model *m, size_t process)
{
	for (size_t i = 0; i < process; i++)
		if (m->processes[i].has_heap &&
		    m->processes[i].service == m->processes[process].service)
			return false;
	return true;
}

void top_model_sums(const struct top_model *m, struct top_sums *ret_sums)
{
	*ret_sums = (struct top_sums){};
	for (size_t i = 0; i < m->len; i++) {
		const struct top_process *p = &m->processes[i];

		ret_sums->running += process_is_sampled(m, p);
		ret_sums->processes += p->has_heap;
		ret_sums->measured += p->measured;
		ret_sums->services += p->has_heap && service_is_new(m, i);
		for (size_t k = 0; k < TOP_KINDS; k++)
			for (size_t u = 0; u < TOP_UNITS; u++)
				ret_sums->values[k][u] += top_process_sum(m, p, k, u);
	}
}

int top_model_take_deltas(struct top_model *m, struct top_process_delta **ret_deltas,
			  size_t *ret_len)
{
	struct top_process_delta *deltas = calloc(m->len + 1, sizeof(*deltas));
	size_t len = 0;

	if (!deltas)
		return -ENOMEM;
	for (size_t i = 0; i < m->len; i++) {
		struct top_process *p = &m->processes[i];
		struct view service = intern_get(&m->names, p->service);
		struct top_process_delta *d = &deltas[len];

		if (!p->has_heap)
			continue;
		len++;
		d->id = p->id;
		d->span_ns = p->delta_ns;
		memcpy(d->values, p->delta, sizeof(p->delta));
		p->delta_ns = 0;
		memset(p->delta, 0, sizeof(p->delta));
		(void)snprintf(d->service, sizeof(d->service), "%.*s",
			       (int)MIN(service.len, sizeof(d->service) - 1),
			       (const char *)service.data);
	}
	*ret_deltas = deltas;
	*ret_len = len;
	return 0;
}
