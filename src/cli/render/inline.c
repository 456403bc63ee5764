/*
 * src/cli/render/inline.c: marks inlined functions, as `go tool pprof -top` does.
 *
 * pprof looks at the edges of the call graph it shows. A function whose incoming edges are all
 * inlined calls is "(inline)", with only some "(partial-inline)". An edge is inlined if every call
 * on it was.
 */
#include <errno.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/map.h"
#include "cli/render/render.h"
#include "profile/frames.h"

#define RENDER_NOBODY UINT32_MAX

struct render_edge {
	int64_t weight;
	uint32_t callee;
	uint32_t last_sample; /* + 1: an edge counts once per sample */
	bool inlined;
};

struct render_edges {
	struct map index; /* caller << 32 | callee */
	struct render_edge *edges;
	size_t len;
	size_t cap;
};

static void render_edges_release(struct render_edges *e)
{
	map_release(&e->index);
	free(e->edges);
}

static struct render_edge *render_edge_at(struct render_edges *e, uint32_t caller, uint32_t callee)
{
	uint64_t key = (uint64_t)caller << 32 | callee;
	uint64_t i;

	if (map_get(&e->index, key, &i))
		return &e->edges[i];
	if (e->len == e->cap) {
		size_t cap = e->cap ? e->cap * 2 : 256;
		struct render_edge *grown = reallocarray(e->edges, cap, sizeof(*grown));

		if (!grown)
			return NULL;
		e->edges = grown;
		e->cap = cap;
	}
	if (map_put(&e->index, key, e->len) < 0)
		return NULL;
	e->edges[e->len] = (struct render_edge){.callee = callee, .inlined = true};
	return &e->edges[e->len++];
}

struct render_walk {
	struct render_edges edges;
	const uint8_t *marks;
	uint32_t sample;
	int64_t weight;
};

static int render_walk_stack(struct render_walk *w, const struct profile_frame *frames, size_t n)
{
	uint32_t caller = RENDER_NOBODY;

	for (size_t i = 0; i < n; i++) {
		struct render_edge *edge;
		uint32_t name = frames[i].name;

		if (!(w->marks[name] & RENDER_KEPT))
			continue;
		if (caller != RENDER_NOBODY && caller != name) {
			edge = render_edge_at(&w->edges, caller, name);
			if (!edge)
				return -ENOMEM;
			if (edge->last_sample != w->sample + 1) {
				edge->last_sample = w->sample + 1;
				edge->inlined &= frames[i].inlined;
				if (__builtin_add_overflow(edge->weight, w->weight, &edge->weight))
					edge->weight = INT64_MAX;
			}
		}
		caller = name;
	}
	return 0;
}

static int render_collect_edges(const struct render *r, struct render_walk *w, struct err *err)
{
	_cleanup_(profile_frames_release) struct profile_frames frames = {};
	int k = profile_frames_init(&frames, r->profile, err);

	for (size_t s = 0; k == 0 && s < profile_n_samples(r->profile); s++) {
		const struct profile_sample *sample = profile_sample_at(r->profile, s);
		const struct profile_frame *stack;
		size_t n;

		w->sample = (uint32_t)s;
		w->weight = sample->values[r->type];
		if (!w->weight)
			continue;
		k = profile_frames_of(&frames, sample, &stack, &n, err);
		if (k == 0 && render_walk_stack(w, stack, n) < 0)
			k = err_oom(err);
	}
	return k;
}

static void render_walk_release(struct render_walk *w)
{
	render_edges_release(&w->edges);
}

int render_mark_inlined(const struct render *r, uint64_t edge_cutoff, uint8_t *marks,
			struct err *err)
{
	_cleanup_(render_walk_release) struct render_walk w = {.marks = marks};
	int k = render_collect_edges(r, &w, err);

	for (size_t i = 0; k == 0 && i < w.edges.len; i++) {
		const struct render_edge *e = &w.edges.edges[i];
		uint64_t weight = e->weight < 0 ? -(uint64_t)e->weight : (uint64_t)e->weight;

		if (weight >= edge_cutoff)
			marks[e->callee] |= e->inlined ? RENDER_INLINE : RENDER_CALLED;
	}
	return k;
}
