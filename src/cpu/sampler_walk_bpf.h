/* src/cpu/sampler_walk_bpf.h: the walk in BPF, through the maps that user space has laid out. */
#pragma once

#include "cpu/sampler_bpf.h"

#include "cpu/sampler_maps_bpf.h"
#include "cpu/sampler_shared.h"
#include "cpu/sampler_walk.h"

static __always_inline struct sampler_copy *walk_record(const struct walk *w)
{
	u32 slot = w->slot;

	return bpf_map_lookup_elem(&scratches, &slot);
}

static __always_inline const struct sampler_mapping *walk_mapping(const struct walk *w, u32 number)
{
	return bpf_map_lookup_elem(&mappings, &number);
}

static __always_inline const struct sampler_file *walk_file(const struct walk *w, u32 id)
{
	return bpf_map_lookup_elem(&files, &id);
}

static __always_inline const struct sampler_chunk *walk_chunk(const struct walk *w, u32 number)
{
	void *chunk = bpf_map_lookup_elem(&chunks, &number);
	u32 zero = 0;

	return chunk ? bpf_map_lookup_elem(chunk, &zero) : NULL;
}

static __always_inline const struct unwind_rule *walk_rule(const struct walk *w, u32 number)
{
	return bpf_map_lookup_elem(&rules, &number);
}

static __always_inline long walk_read(struct walk *w, void *dst, u32 size, u64 address)
{
	return bpf_probe_read_user(dst, size, (void *)address);
}

static int walk_loop(u32 i, struct walk *w)
{
	return walk_step(w) ? 1 : 0;
}
