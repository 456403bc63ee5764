/*
 * tests/oracle/dump/store_fill.c: a store as a busy machine leaves it, for
 * tests/oracle/test_cli.py.
 *
 *     store_fill DIR SERVICES MINUTES
 *
 * Service i is called service-00i, and has a CPU profile of a few functions every 15 seconds of the
 * last minutes: (i + 1) ms of CPU time each.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "pipeline/registry/registry.h"
#include "store/sqlite/sqlite.h"
#include "store/store.h"

#define STEP_NS (15 * (int64_t)NS_PER_SEC)
#define FRAMES 8
#define LEAVES 4

static int add_frame(struct profile *p, const char *format, size_t i, uint32_t *ret_location)
{
	struct profile_function f = {0};
	struct profile_line line = {.line = 1};
	char name[64];
	int r;

	(void)snprintf(name, sizeof(name), format, i);
	r = profile_add_string(p, view_str(name), &f.name);
	if (r == 0)
		r = profile_add_function(p, &f, &line.function);
	return r < 0 ? r : profile_add_location(p, 0, PROFILE_NO_MAPPING, &line, 1, ret_location);
}

static int add_stacks(struct profile *p, size_t service)
{
	int64_t values[] = {1, (int64_t)(service + 1) * (int64_t)NS_PER_MS / LEAVES};
	uint32_t stack[FRAMES], id;
	int r = 0;

	for (size_t i = 1; i < FRAMES && r == 0; i++)
		r = add_frame(p, "app.caller%zu", FRAMES - i, &stack[i]);
	for (size_t leaf = 0; leaf < LEAVES && r == 0; leaf++) {
		r = add_frame(p, "app.work%zu", leaf, &stack[0]);
		if (r == 0)
			r = profile_add_stack(p, stack, FRAMES, &id);
		if (r == 0)
			r = profile_add_sample(p, id, values, NULL, 0);
	}
	return r;
}

static int fill(struct store *store, size_t service, int64_t time_ns, struct err *err)
{
	_cleanup_(profile_freep) struct profile *p = profile_new();
	char name[32];
	struct store_entry entry = {.service = name,
				    .family = registry_types[TYPE_CPU_TIME].family,
				    .profile = p,
				    .time_ns = time_ns,
				    .duration_ns = STEP_NS};
	int r = p ? 0 : -ENOMEM;

	(void)snprintf(name, sizeof(name), "service-%03zu", service);
	if (r == 0)
		r = registry_type_add(p, TYPE_CPU_SAMPLES);
	if (r == 0)
		r = registry_type_add(p, TYPE_CPU_TIME);
	if (r == 0)
		r = add_stacks(p, service);
	return r < 0 ? err_oom(err) : store_write(store, &entry, err);
}

int main(int argc, char **argv)
{
	struct store_sqlite_config config = {.dir = argc == 4 ? argv[1] : NULL};
	_cleanup_(store_closep) struct store *store = NULL;
	size_t services = argc == 4 ? strtoul(argv[2], NULL, 10) : 0;
	size_t steps = argc == 4 ? strtoul(argv[3], NULL, 10) * 4 : 0;
	int64_t now_ns = (int64_t)clock_unix_ns();
	struct err err = {.text = "usage: store_fill DIR SERVICES MINUTES"};
	int r = services && steps ? store_sqlite_open(&config, &store, &err) : -EINVAL;

	for (size_t step = steps; step > 0 && r == 0; step--) {
		for (size_t i = 0; i < services && r == 0; i++)
			r = fill(store, i, now_ns - (int64_t)step * STEP_NS, &err);
		if (r == 0)
			r = store_commit(store, &err);
	}
	if (r < 0)
		(void)fprintf(stderr, "store_fill: %s\n", err.text);
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
