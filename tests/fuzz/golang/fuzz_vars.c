/*
 * tests/fuzz/golang/fuzz_vars.c: any bytes as the code and the data of a program, in which the
 * variables of goroutines, waits and metrics are looked for and then read. Its length chooses the
 * release.
 */
#include <assert.h>
#include <string.h>

#include "../../unit/golang/test_goroutines.h"
#include "../no_sleep.h"
#include "golang/contention/state.h"
#include "golang/goroutine/goroutines.h"
#include "golang/metrics/metrics.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look_for_goroutines(struct golang_process *process)
{
	_cleanup_(golang_goroutines_freep) struct golang_goroutines *gs = NULL;
	struct err err = {};

	if (golang_goroutines_new(process, NULL, &gs, &err) < 0 ||
	    golang_goroutines_read(gs, &err) < 0)
		assert(err.text[0]);
}

static void look_for_waits(struct golang_process *process, enum golang_contention_kind kind)
{
	_cleanup_(golang_contention_freep) struct golang_contention *c = NULL;
	struct err err = {};

	if (golang_contention_new(process, kind, &c, &err) < 0) {
		assert(err.text[0] && !c);
		return;
	}
	/* Measuring takes time that a fuzzer has better use for. */
	c->stats.ticks_per_second = 1e9;
	if (golang_contention_read(c, &err) < 0)
		assert(err.text[0]);
}

static void look_for_metrics(struct golang_process *process)
{
	_cleanup_(golang_metrics_freep) struct golang_metrics_reader *reader = NULL;
	struct golang_metrics m;
	struct err err = {};

	if (golang_metrics_new(process, &reader, &err) < 0 ||
	    golang_metrics_read(reader, &m, &err) < 0)
		assert(err.text[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(golang_process_closep) struct golang_process *process = NULL;
	static struct world world;
	struct err err = {};

	process = world_open_forged(&world, WORLD_CODE, data, size);
	if (!process)
		return 0;
	process->vars.mbuckets = WORLD_BASE + WORLD_ALLGS + 0x800;
	(void)golang_layout_for(GOLANG_OLDEST_MINOR + size % 11U, &process->layout, &err);
	look_for_goroutines(process);
	look_for_waits(process, GOLANG_BLOCK);
	look_for_waits(process, GOLANG_MUTEX);
	look_for_metrics(process);
	return 0;
}
