/*
 * tests/fuzz/golang/fuzz_goroutines.c: any bytes as the data of a program whose tables are in
 * order: the list of goroutines, their g's, stacks, labels and wait reasons. Its length chooses
 * what is asked for; its last bytes are the registers of a thread that handles a signal.
 */
#include <assert.h>
#include <string.h>

#include "../../unit/golang/test_goroutines.h"
#include "golang/goroutine/state.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int count_frame(void *context, const struct golang_goroutine_frame *frame)
{
	size_t *n = context;

	assert(frame->function.len);
	++*n;
	return 0;
}

static void check_reading(struct golang_goroutines *gs)
{
	const struct golang_goroutines_stats *s = golang_goroutines_stats(gs);
	uint64_t states = 0;

	for (size_t i = 0; i < GOLANG_G_STATES; i++)
		states += s->states[i];
	assert(states == s->total && golang_goroutines_count(gs) == s->total);
	for (size_t i = 0; i < golang_goroutines_count(gs); i++) {
		const struct golang_goroutine *g = golang_goroutine_at(gs, i);
		const char *const *labels = golang_goroutine_labels(gs, g->labels);
		size_t n = 0;

		assert(strlen(g->wait_reason) < 64);
		while (labels[0])
			labels += 2;
		assert(golang_goroutines_site(gs, g->created_by, count_frame, &n) >= 0);
		assert(golang_goroutines_site(gs, g->start_pc, count_frame, &n) >= 0);
		n = 0;
		if (g->stack == GOLANG_NO_STACK)
			continue;
		assert(g->state != GOLANG_G_RUNNING);
		assert(golang_goroutines_frames(gs, g->stack, count_frame, &n) == 0 && n > 0);
	}
}

/* A core has them; what leads to the end of its stack is data, too. */
static void interrupted(struct golang_goroutines *gs, const uint8_t *data, size_t size)
{
	struct proc_thread thread = {0};

	if (size < 16)
		return;
	memcpy(&thread.pc, data + size - 16, 8);
	memcpy(&thread.sp, data + size - 8, 8);
	gs->vars.sigtramp = world_pc(WORLD_SPAWN, 0);
	(void)golang_unwind_interrupted(&gs->unwind, &thread);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct golang_goroutines_options options = {
		.labels = true, .system = size % 2, .max = size / 4 % 4};
	_cleanup_(golang_goroutines_freep) struct golang_goroutines *gs = NULL;
	_cleanup_(golang_process_closep) struct golang_process *process = NULL;
	static struct world world;
	struct err err = {};

	process = world_open_forged(&world, WORLD_DATA, data, size);
	if (!process)
		return 0;
	if (golang_goroutines_new(process, &options, &gs, &err) < 0) {
		assert(err.text[0] && !gs);
		return 0;
	}
	gs->labels.is_map = size / 2 % 2;
	interrupted(gs, data, size);
	for (int i = 0; i < 2; i++) {
		_cleanup_(profile_freep) struct profile *profile = NULL, *states = NULL;

		err.text[0] = 0;
		if (golang_goroutines_read(gs, &err) < 0) {
			assert(err.text[0]);
			continue;
		}
		check_reading(gs);
		if (golang_goroutines_profile(gs, i, NULL, NULL, &profile, &err) < 0)
			assert(err.text[0] && !profile);
		if (golang_goroutines_by_state(gs, &states, &err) < 0)
			assert(err.text[0] && !states);
		golang_goroutines_trim(gs);
	}
	return 0;
}
