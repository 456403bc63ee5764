/*
 * tests/fuzz/golang/fuzz_pclntab.c: any bytes as module data and the tables they point at. The
 * first byte chooses the release; the rest is memory with the module data at its start.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "golang/binary/refs.h"
#include "golang/buckets/bucket.h"
#include "golang/symbols/symbolizer.h"
#include "mem_fake.h"

#define BASE ((uint64_t)0x10000)
/* Of what a reading may cost: so little that inputs stay quick and still run dry. */
#define WORK ((uint64_t)1 << 16)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look_at(struct golang_pclntab *t, uint64_t pc)
{
	struct golang_func f;
	struct golang_inlined in;
	int64_t index, line;

	if (!golang_pclntab_func_at(t, pc, &f))
		return;
	assert(f.entry <= pc && pc < f.end);
	assert(golang_pclntab_name(t, f.name).data);
	assert(golang_pclntab_file_line(t, &f, pc, &line).data);
	assert(line >= 0);
	index = golang_pclntab_inline_at(t, &f, pc);
	if (golang_pclntab_inlined(t, &f, index, &in))
		assert(index >= 0 && golang_pclntab_name(t, in.name).data);
}

static void find_by_name(struct golang_process *p, struct golang_module *m)
{
	static const char *const names[] = {"runtime.main", "main.main", "", "main.leaf"};
	static struct golang_refs refs;
	struct golang_func funcs[ARRAY_SIZE(names)];
	struct err err = {};

	if (golang_pclntab_find_named(&m->tables, names, funcs, ARRAY_SIZE(names), &err) < 0) {
		assert(err.text[0]);
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		assert(funcs[i].end >= funcs[i].entry);
		golang_refs_of(m, p->mem, &funcs[i], &refs);
	}
}

static void symbolize(struct golang_process *p, const struct golang_pclntab *t)
{
	_cleanup_(profile_freep) struct profile *profile = profile_new();
	_cleanup_(golang_symbolizer_release) struct golang_symbolizer s = {0};
	uint32_t locations[GOLANG_BUCKET_MAX_DEPTH + GOLANG_MAX_INLINE + 1];
	uint64_t step = (t->max_pc - t->min_pc) / 61 + 1;
	uint64_t pcs[64];
	struct err err;

	if (!profile)
		return;
	golang_symbolizer_init(&s, p, profile);
	p->cache.work_left = WORK;
	for (size_t i = 0; i < ARRAY_SIZE(pcs); i++)
		pcs[i] = t->min_pc + i * step;
	/* Where a stack ends, the callers of inlined calls are put back. */
	for (size_t n = 1; n <= ARRAY_SIZE(pcs); n *= 8) {
		size_t hidden = golang_symbolizer_hidden(&s, pcs, n);
		int r;

		assert(hidden <= n);
		r = golang_symbolizer_stack(&s, pcs + hidden, n - hidden, locations, &err);
		assert(r <= (int)(n + GOLANG_MAX_INLINE));
		for (int i = 0; i < r; i++)
			assert(locations[i] < profile_n_locations(profile));
	}
	assert(golang_symbolizer_finish(&s, &err) == 0);
}

static void walk(struct golang_process *p)
{
	for (size_t i = 0; i < p->n_modules; i++) {
		struct golang_pclntab *t = &p->modules[i].tables;

		p->cache.work_left = WORK;
		for (uint64_t off = 0; off < 512; off += 12)
			look_at(t, t->min_pc + off);
		look_at(t, t->max_pc - 1);
		look_at(t, t->max_pc);
		look_at(t, t->min_pc - 1);
		find_by_name(p, &p->modules[i]);
		if (i >= 2)
			break;
	}
	symbolize(p, &p->modules[0].tables);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(proc_mem_closep) struct proc_mem *mem = NULL;
	struct golang_process p = {0};
	struct golang_module bare;
	struct err err;

	if (size < 2 || proc_mem_open_fake(&mem, &err) < 0 ||
	    proc_mem_fake_add(mem, BASE, data + 1, size - 1) < 0)
		return 0;
	p.mem = mem;
	(void)golang_layout_for(GOLANG_OLDEST_MINOR + data[0] % 11, &p.layout, &err);
	golang_mem_cache_init(&p.cache, mem, 8192, 16, 16);
	p.cache.work_left = WORK;
	p.modules = calloc(1, sizeof(*p.modules));
	err.text[0] = 0;
	if (golang_module_load(&bare, &p.cache, BASE, NULL, NULL) == 0) {
		look_at(&bare.tables, bare.tables.min_pc);
		golang_module_release(&bare);
	}
	if (p.modules && golang_module_load(p.modules, &p.cache, BASE, p.layout, &err) == 0) {
		p.n_modules = 1;
		assert(golang_process_refresh(&p, &err) >= 0);
		walk(&p);
	} else {
		assert(err.text[0]);
	}
	for (size_t i = 0; i < p.n_modules; i++)
		golang_module_release(&p.modules[i]);
	free(p.modules);
	golang_mem_cache_release(&p.cache);
	return 0;
}
