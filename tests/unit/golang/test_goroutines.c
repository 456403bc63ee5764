/* tests/unit/golang/test_goroutines.c: goroutines of a made-up program, and of forged ones. */
#include "golang/goroutine/goroutines.h"

#include <elf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "golang/goroutine/state.h"
#include "mem_fake.h"
#include "test_fake.h"
#include "test_goroutines.h"

enum {
	RUNNABLE = 1,
	RUNNING = 2,
	SYSCALL = 3,
	WAITING = 4,
	DEAD = 6,
	COPYSTACK = 8,
	SCAN = 0x1000,
};

struct fixture {
	struct world world;
	struct golang_process *process;
	struct golang_goroutines *gs;
};

static const struct golang_g_layout *layout(void)
{
	const struct golang_g_layout *l;

	assert_int_equal(golang_g_layout_for(27, &l, NULL), 0);
	return l;
}

static void add(struct fixture *f, uint64_t id, uint32_t status, enum world_function start)
{
	const uint64_t pcs[] = {world_pc(WORLD_GOPARK, 0x10), world_pc(start, 0x20),
				world_pc(WORLD_GOEXIT, 1)};

	world_add(&f->world, &(struct world_g){.id = id,
					       .status = status,
					       .reason = 2,
					       .start = world_pc(start, 0),
					       .pcs = pcs,
					       .n_pcs = 3});
}

static int try_open(struct fixture *f, const struct golang_goroutines_options *options)
{
	struct err err;

	f->process = world_open_take(fake_of_amd64(), &f->world);
	assert_non_null(f->process);
	return golang_goroutines_new(f->process, options, &f->gs, &err);
}

static void read_all(struct fixture *f, const struct golang_goroutines_options *options)
{
	struct err err;

	assert_int_equal(try_open(f, options), 0);
	assert_int_equal(golang_goroutines_read(f->gs, &err), 0);
}

static void fixture_close(struct fixture *f)
{
	golang_goroutines_free(f->gs);
	golang_process_close(f->process);
}

static const struct golang_goroutine *find(const struct fixture *f, uint64_t id)
{
	for (size_t i = 0; i < golang_goroutines_count(f->gs); i++)
		if (golang_goroutine_at(f->gs, i)->id == id)
			return golang_goroutine_at(f->gs, i);
	return NULL;
}

static int join(void *context, const struct golang_goroutine_frame *frame)
{
	char *text = context;
	size_t n = strlen(text);

	return snprintf(text + n, 256 - n, "%.*s ", (int)frame->function.len,
			(const char *)frame->function.data) < 0
		       ? -EINVAL
		       : 0;
}

static void assert_stack(const struct fixture *f, uint64_t id, const char *names)
{
	const struct golang_goroutine *g = find(f, id);
	char text[256] = "";

	assert_non_null(g);
	assert_int_not_equal(g->stack, GOLANG_NO_STACK);
	assert_int_equal(golang_goroutines_frames(f->gs, g->stack, join, text), 0);
	assert_string_equal(text, names);
}

static void waiting_goroutine_is_unwound_to_its_root(void **state)
{
	struct fixture f = {0};
	char creator[256] = "";

	(void)state;
	world_build(&f.world);
	add(&f, 7, WAITING, WORLD_WORKER);
	read_all(&f, NULL);
	assert_stack(&f, 1, "runtime.gopark runtime.main runtime.goexit ");
	assert_stack(&f, 7, "runtime.gopark main.worker runtime.goexit ");
	assert_string_equal(find(&f, 7)->wait_reason, "chan receive");
	assert_int_equal(find(&f, 7)->parent_id, 1);
	assert_int_equal(find(&f, 1)->created_by, 0);
	assert_int_equal(golang_goroutines_site(f.gs, find(&f, 7)->created_by, join, creator), 1);
	assert_string_equal(creator, "main.spawn ");
	assert_int_equal(golang_goroutines_stats(f.gs)->states[GOLANG_G_WAITING], 2);
	fixture_close(&f);
}

static void running_goroutine_is_never_shown_with_its_old_stack(void **state)
{
	struct fixture f = {0};

	(void)state;
	world_build(&f.world);
	add(&f, 7, RUNNING, WORLD_WORKER);
	read_all(&f, NULL);
	assert_int_equal(find(&f, 7)->state, GOLANG_G_RUNNING);
	assert_int_equal(find(&f, 7)->stack, GOLANG_NO_STACK);
	assert_string_equal(find(&f, 7)->wait_reason, "");
	assert_int_equal(find(&f, 7)->start_pc, world_pc(WORLD_WORKER, 0));
	fixture_close(&f);
}

static void dead_goroutines_are_not_counted(void **state)
{
	struct fixture f = {0};

	(void)state;
	world_build(&f.world);
	add(&f, 7, DEAD, WORLD_WORKER);
	read_all(&f, NULL);
	assert_int_equal(golang_goroutines_count(f.gs), 1);
	assert_int_equal(golang_goroutines_stats(f.gs)->bad, 0);
	fixture_close(&f);
}

static void the_look_of_the_collector_changes_nothing(void **state)
{
	struct fixture f = {0};

	(void)state;
	world_build(&f.world);
	add(&f, 7, WAITING | SCAN, WORLD_WORKER);
	read_all(&f, NULL);
	assert_stack(&f, 7, "runtime.gopark main.worker runtime.goexit ");
	fixture_close(&f);
}

static void goroutines_of_the_runtime_are_left_out_unless_asked_for(void **state)
{
	const struct golang_goroutines_options all = {.system = true};

	(void)state;
	for (int asked = 0; asked < 2; asked++) {
		struct fixture f = {0};

		world_build(&f.world);
		add(&f, 7, WAITING, WORLD_GC_WORKER);
		read_all(&f, asked ? &all : NULL);
		assert_int_equal(golang_goroutines_count(f.gs), asked ? 2 : 1);
		assert_int_equal(golang_goroutines_stats(f.gs)->system, asked ? 0 : 1);
		fixture_close(&f);
	}
}

static void goroutine_in_a_system_call_is_unwound_from_where_it_entered(void **state)
{
	const uint64_t pcs[] = {world_pc(WORLD_WORKER, 0x30), world_pc(WORLD_GOEXIT, 1)};
	struct fixture f = {0};

	(void)state;
	world_build(&f.world);
	world_add(&f.world, &(struct world_g){.id = 7,
					      .status = SYSCALL,
					      .start = world_pc(WORLD_WORKER, 0),
					      .pcs = pcs,
					      .n_pcs = 2,
					      .in_syscall = true});
	read_all(&f, NULL);
	assert_int_equal(find(&f, 7)->state, GOLANG_G_SYSCALL);
	assert_stack(&f, 7, "main.worker runtime.goexit ");
	fixture_close(&f);
}

static void goroutine_that_has_not_begun_is_at_its_start(void **state)
{
	const uint64_t pcs[] = {world_pc(WORLD_WORKER, 0)};
	struct fixture f = {0};

	(void)state;
	world_build(&f.world);
	world_add(&f.world,
		  &(struct world_g){
			  .id = 7, .status = RUNNABLE, .start = pcs[0], .pcs = pcs, .n_pcs = 1});
	/* No frame yet: the return address is at sp. */
	world_u64(&f.world, WORLD_STACKS + 2 * WORLD_STACK_BYTES - 8, world_pc(WORLD_GOEXIT, 1));
	read_all(&f, NULL);
	assert_stack(&f, 7, "main.worker runtime.goexit ");
	fixture_close(&f);
}

static void assert_incomplete(const uint64_t *pcs, size_t n)
{
	struct fixture f = {0};

	world_build(&f.world);
	world_add(&f.world, &(struct world_g){.id = 7,
					      .status = WAITING,
					      .start = world_pc(WORLD_WORKER, 0),
					      .pcs = pcs,
					      .n_pcs = n});
	read_all(&f, NULL);
	assert_int_equal(golang_goroutines_stats(f.gs)->incomplete, 1);
	assert_int_equal(golang_goroutines_stats(f.gs)->total, 2);
	assert_int_equal(find(&f, 7)->stack, GOLANG_NO_STACK);
	fixture_close(&f);
}

static void stack_that_does_not_lead_to_the_root_is_not_shown(void **state)
{
	const uint64_t wild[] = {world_pc(WORLD_GOPARK, 0x10), 0x4141414141414141};
	const uint64_t endless[] = {world_pc(WORLD_WORKER, 0x20), world_pc(WORLD_WORKER, 0x20)};
	const uint64_t switches[] = {world_pc(WORLD_SYSTEMSTACK, 0x20), world_pc(WORLD_GOEXIT, 1)};

	(void)state;
	assert_incomplete(wild, 2);
	assert_incomplete(endless, 2);
	assert_incomplete(switches, 2);
}

static void stacks_of_one_leaf_and_height_are_told_apart_in_constant_memory(void **state)
{
	struct fixture f = {0};
	size_t used = 0;
	struct err err;

	(void)state;
	world_build(&f.world);
	add(&f, 7, WAITING, WORLD_WORKER);
	add(&f, 8, WAITING, WORLD_SPAWN);
	add(&f, 9, WAITING, WORLD_WORKER);
	read_all(&f, NULL);
	used = f.gs->unwind.nodes_arena.used;
	for (size_t i = 0; i < 100; i++)
		assert_int_equal(golang_goroutines_read(f.gs, &err), 0);
	assert_stack(&f, 7, "runtime.gopark main.worker runtime.goexit ");
	assert_stack(&f, 8, "runtime.gopark main.spawn runtime.goexit ");
	assert_int_equal(find(&f, 9)->stack, find(&f, 7)->stack);
	assert_int_equal(f.gs->unwind.nodes_arena.used, used);
	fixture_close(&f);
}

/* What a stack was is not what it is. */
static void known_stack_that_has_changed_is_walked_anew(void **state)
{
	const uint64_t changed[] = {world_pc(WORLD_SPAWN, 0x20), 0x4141414141414141};
	const char *const stacks[] = {"runtime.gopark main.spawn runtime.goexit ", NULL};
	struct fixture f = {0};
	struct err err;

	(void)state;
	world_build(&f.world);
	add(&f, 7, WAITING, WORLD_WORKER);
	read_all(&f, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(changed); i++) {
		/* The return address of the leaf, below two frames. */
		world_u64(&f.world,
			  WORLD_STACKS + 2 * WORLD_STACK_BYTES - 8 - 2 * 0x20 + WORLD_FRAME,
			  changed[i]);
		assert_int_equal(golang_goroutines_read(f.gs, &err), 0);
		if (stacks[i])
			assert_stack(&f, 7, stacks[i]);
		else
			assert_int_equal(find(&f, 7)->stack, GOLANG_NO_STACK);
	}
	fixture_close(&f);
}

static void wild_and_doubled_entries_of_the_list_are_counted(void **state)
{
	struct fixture f = {0};

	(void)state;
	world_build(&f.world);
	add(&f, 7, WAITING, WORLD_WORKER);
	add(&f, 8, WAITING, WORLD_WORKER);
	add(&f, 9, WAITING, WORLD_WORKER);
	world_u64(&f.world, WORLD_LIST + 16, 0xdead0000);
	world_u64(&f.world, WORLD_LIST + 24, WORLD_BASE + world_g_at(1));
	read_all(&f, NULL);
	assert_int_equal(golang_goroutines_stats(f.gs)->bad, 2);
	assert_int_equal(golang_goroutines_count(f.gs), 2);
	assert_stack(&f, 7, "runtime.gopark main.worker runtime.goexit ");
	fixture_close(&f);
}

static void goroutines_that_share_memory_are_counted_once(void **state)
{
	struct fixture f = {0};

	(void)state;
	world_build(&f.world);
	add(&f, 7, WAITING, WORLD_WORKER);
	add(&f, 8, WAITING, WORLD_WORKER);
	world_u64(&f.world, WORLD_LIST + 16, WORLD_BASE + world_g_at(1) + 8);
	read_all(&f, NULL);
	assert_int_equal(golang_goroutines_stats(f.gs)->bad, 1);
	assert_int_equal(golang_goroutines_count(f.gs), 2);
	assert_non_null(find(&f, 7));
	fixture_close(&f);
}

static void long_list_of_nothing_takes_no_memory(void **state)
{
	enum { ENTRIES = 1 << 20, AT = 0x40000000 };
	uint64_t *list = calloc(ENTRIES, sizeof(*list));
	struct fixture f = {0};
	struct err err;

	(void)state;
	assert_non_null(list);
	world_build(&f.world);
	assert_int_equal(try_open(&f, NULL), 0);
	assert_int_equal(proc_mem_fake_add(f.process->mem, AT, list, ENTRIES * sizeof(*list)), 0);
	list[ENTRIES / 2] = WORLD_BASE + world_g_at(0);
	list[ENTRIES - 1] = WORLD_BASE + world_g_at(0) + 1;
	world_u64(&f.world, WORLD_ALLGS, AT);
	world_u64(&f.world, WORLD_ALLGS + 8, ENTRIES);
	world_u64(&f.world, WORLD_ALLGS + 16, ENTRIES);
	assert_int_equal(golang_goroutines_read(f.gs, &err), 0);
	assert_int_equal(golang_goroutines_count(f.gs), 1);
	assert_int_equal(golang_goroutines_stats(f.gs)->bad, ENTRIES - 1);
	assert_in_range(f.gs->todo_cap + f.gs->again_cap + f.gs->cap, 3, 3 * 1024);
	fixture_close(&f);
	free(list);
}

static void list_beyond_the_limit_is_refused(void **state)
{
	const struct golang_goroutines_options options = {.limit = 2};
	struct fixture f = {0};
	struct err err;

	(void)state;
	world_build(&f.world);
	for (uint64_t id = 1; id <= 3; id++)
		add(&f, id, WAITING, WORLD_WORKER);
	assert_int_equal(try_open(&f, &options), 0);
	assert_int_equal(golang_goroutines_read(f.gs, &err), -E2BIG);
	assert_string_equal(err.text, "it has more than 2 goroutines");
	assert_int_equal(golang_goroutines_count(f.gs), 0);
	fixture_close(&f);
}

static void forged_bounds_of_a_stack_are_refused(void **state)
{
	struct fixture f = {0};

	(void)state;
	world_build(&f.world);
	add(&f, 7, WAITING, WORLD_WORKER);
	world_u64(&f.world, world_g_at(1) + 8, UINT64_MAX - 7);
	read_all(&f, NULL);
	assert_int_equal(golang_goroutines_stats(f.gs)->bad, 1);
	assert_null(find(&f, 7));
	fixture_close(&f);
}

static void saved_context_outside_of_the_stack_is_never_followed(void **state)
{
	struct fixture f = {0};

	(void)state;
	world_build(&f.world);
	add(&f, 7, WAITING, WORLD_WORKER);
	world_u64(&f.world, world_g_at(1) + layout()->sched_sp, WORLD_BASE);
	read_all(&f, NULL);
	assert_int_equal(golang_goroutines_stats(f.gs)->unverified, 1);
	assert_int_equal(find(&f, 7)->stack, GOLANG_NO_STACK);
	fixture_close(&f);
}

static void absurd_lengths_of_the_list_are_refused(void **state)
{
	struct fixture f = {0};
	struct err err;

	(void)state;
	world_build(&f.world);
	assert_int_equal(try_open(&f, NULL), 0);
	world_u64(&f.world, WORLD_ALLGS + 8, 9);
	assert_int_equal(golang_goroutines_read(f.gs, &err), -EBADMSG);
	world_u64(&f.world, WORLD_ALLGS + 8, (uint64_t)1 << 60);
	world_u64(&f.world, WORLD_ALLGS + 16, (uint64_t)1 << 60);
	assert_int_equal(golang_goroutines_read(f.gs, &err), -EBADMSG);
	assert_int_equal(golang_goroutines_count(f.gs), 0);
	fixture_close(&f);
}

static void list_that_does_not_lead_to_goroutines_is_refused(void **state)
{
	struct fixture f = {0};

	(void)state;
	world_build(&f.world);
	world_u64(&f.world, world_g_at(0) + layout()->start_pc, world_pc(WORLD_MAIN, 4));
	assert_int_equal(try_open(&f, NULL), -ENOTSUP);
	fixture_close(&f);
}

static void main_goroutine_of_a_library_may_be_gone(void **state)
{
	struct fixture f = {0};

	(void)state;
	world_build(&f.world);
	world_u64(&f.world, world_g_at(0) + layout()->goid, 3);
	world_u64(&f.world, world_g_at(0) + layout()->start_pc, world_pc(WORLD_WORKER, 0));
	read_all(&f, NULL);
	assert_int_equal(golang_goroutines_count(f.gs), 1);
	fixture_close(&f);
}

/* A slice of one pair at WORLD_LABELS. */
static void add_label(struct fixture *f, size_t i, uint64_t value_len)
{
	size_t at = WORLD_LABELS;

	memcpy(f->world.bytes + at + 0x80, "keyvalue", 8);
	world_u64(&f->world, at, WORLD_BASE + at + 0x20);
	world_u64(&f->world, at + 8, 1);
	world_u64(&f->world, at + 16, 1);
	world_u64(&f->world, at + 0x20, WORLD_BASE + at + 0x80);
	world_u64(&f->world, at + 0x28, 3);
	world_u64(&f->world, at + 0x30, WORLD_BASE + at + 0x83);
	world_u64(&f->world, at + 0x38, value_len);
	world_u64(&f->world, world_g_at(i) + layout()->labels, WORLD_BASE + at);
}

static void labels_are_read_and_forged_ones_are_counted(void **state)
{
	const struct golang_goroutines_options with = {.labels = true};
	struct fixture f = {0};
	const char *const *list;
	struct err err;

	(void)state;
	world_build(&f.world);
	add(&f, 7, WAITING, WORLD_WORKER);
	add_label(&f, 1, 5);
	read_all(&f, &with);
	list = golang_goroutine_labels(f.gs, find(&f, 7)->labels);
	assert_string_equal(list[0], "key");
	assert_string_equal(list[1], "value");
	assert_null(list[2]);
	assert_null(golang_goroutine_labels(f.gs, find(&f, 1)->labels)[0]);

	add_label(&f, 1, (uint64_t)1 << 40);
	assert_int_equal(golang_goroutines_read(f.gs, &err), 0);
	assert_int_equal(golang_goroutines_stats(f.gs)->labels_lost, 1);
	assert_int_equal(find(&f, 7)->labels, 0);
	fixture_close(&f);
}

static void wait_reasons_have_no_control_characters(void **state)
{
	struct fixture f = {0};

	(void)state;
	world_build(&f.world);
	world_reason(&f.world, 2, "chan\033[2J");
	read_all(&f, NULL);
	assert_string_equal(find(&f, 1)->wait_reason, "chan?[2J");
	fixture_close(&f);
}

/* Pairs of which each set of labels takes 256, one further on than the set before. */
struct many_labels {
	uint64_t pairs[4096][4];
	char texts[4096][8];
	uint64_t slice[3];
	uint64_t g[2]; /* the pointer to its labels, its number */
};

static int64_t many_labels_at(struct golang_labels *l, struct many_labels *m, size_t i)
{
	uint64_t slice = (uint64_t)(uintptr_t)&m->slice;

	m->slice[0] = (uint64_t)(uintptr_t)m->pairs[i];
	m->slice[1] = m->slice[2] = 256;
	m->g[0] = slice;
	/* It is another set at the same address. */
	map_release(&l->by_address);
	return golang_labels_at(l, slice, (uint64_t)(uintptr_t)&m->g[0],
				(uint64_t)(uintptr_t)&m->g[1], 7);
}

static void labels_beyond_the_limit_are_lost(void **state)
{
	struct many_labels *m = calloc(1, sizeof(*m));
	struct golang_labels labels;
	struct proc_mem *mem;
	struct err err;
	size_t n = 0;

	(void)state;
	assert_non_null(m);
	assert_int_equal(proc_mem_open_fake(&mem, &err), 0);
	assert_int_equal(proc_mem_fake_add(mem, (uint64_t)(uintptr_t)m, m, sizeof(*m)), 0);
	for (size_t i = 0; i < ARRAY_SIZE(m->pairs); i++) {
		uint64_t text = (uint64_t)(uintptr_t)m->texts[i];

		(void)snprintf(m->texts[i], sizeof(m->texts[i]), "%zu", i);
		memcpy(m->pairs[i], (uint64_t[]){text, strlen(m->texts[i]), text, 1}, 32);
	}
	m->g[1] = 7;
	golang_labels_init(&labels, mem, false);
	while (many_labels_at(&labels, m, n) > 0)
		n++;
	/* A set of 256 pairs is 512 strings. */
	assert_int_equal(n, (1 << 19) / 512);
	assert_int_equal(many_labels_at(&labels, m, n), -E2BIG);
	assert_string_equal(golang_labels_list(&labels, (uint32_t)n)[511], "1");
	assert_null(golang_labels_list(&labels, (uint32_t)n + 1)[0]);
	golang_labels_clear(&labels);
	assert_int_equal(many_labels_at(&labels, m, n), 1);
	golang_labels_release(&labels);
	proc_mem_close(mem);
	free(m);
}

static void profile_counts_goroutines_by_stack(void **state)
{
	struct fixture f = {0};
	struct profile *p;
	struct err err;
	int64_t sum = 0;

	(void)state;
	world_build(&f.world);
	add(&f, 7, WAITING, WORLD_WORKER);
	add(&f, 8, WAITING, WORLD_WORKER);
	add(&f, 9, RUNNING, WORLD_WORKER);
	read_all(&f, NULL);
	assert_int_equal(golang_goroutines_profile(f.gs, true, NULL, NULL, &p, &err), 0);
	assert_int_equal(profile_find_type(p, "goroutine"), 0);
	assert_int_equal(profile_n_samples(p), 3);
	assert_int_equal(profile_sample_at(p, 0)->values[0], 2);
	for (size_t i = 0; i < 3; i++)
		sum += profile_sample_at(p, i)->values[0];
	assert_int_equal(sum, 4);
	assert_string_equal(profile_cstring(p, profile_sample_at(p, 0)->labels[0].str), "waiting");
	profile_free(p);
	fixture_close(&f);
}

/* The values of all types of the sample whose leaf and caller are these. */
static void assert_by_state(const struct profile *p, const char *leaf, const char *caller,
			    const int64_t values[5])
{
	for (size_t i = 0; i < profile_n_samples(p); i++) {
		const struct profile_sample *s = profile_sample_at(p, i);
		const char *names[2] = {"", ""};
		uint32_t n;
		const uint32_t *locations = profile_stack_at(p, s->stack, &n);

		for (uint32_t k = 0; k < MIN(n, 2U); k++) {
			const struct profile_location *l = profile_location_at(p, locations[k]);

			names[k] = profile_cstring(
				p, profile_function_at(p, l->lines[0].function)->name);
		}
		if (strcmp(names[0], leaf) != 0 || strcmp(names[1], caller) != 0)
			continue;
		assert_memory_equal(s->values, values, 5 * sizeof(values[0]));
		return;
	}
	fail_msg("there is no sample of %s", leaf);
}

static void states_are_types_of_one_sample(void **state)
{
	const int64_t worker[] = {2, 1, 1, 0, 0}, main_waits[] = {1, 1, 0, 0, 0};
	const int64_t running[] = {1, 0, 0, 1, 0};
	_cleanup_(profile_freep) struct profile *p = NULL;
	struct fixture f = {0};
	struct err err;

	(void)state;
	world_build(&f.world);
	add(&f, 7, WAITING, WORLD_WORKER);
	add(&f, 8, RUNNABLE, WORLD_WORKER);
	add(&f, 9, RUNNING, WORLD_SPAWN);
	read_all(&f, NULL);
	assert_int_equal(golang_goroutines_by_state(f.gs, &p, &err), 0);
	assert_int_equal(profile_n_types(p), 5);
	assert_int_equal(profile_n_samples(p), 3);
	assert_by_state(p, "runtime.gopark", "main.worker", worker);
	assert_by_state(p, "runtime.gopark", "runtime.main", main_waits);
	assert_by_state(p, "[running]", "main.spawn", running);
	fixture_close(&f);
}

static void max_reads_some_stacks_and_counts_all(void **state)
{
	const struct golang_goroutines_options some = {.max = 2};
	struct fixture f = {0};
	struct profile *p;
	struct err err;
	size_t stacks = 0;

	(void)state;
	world_build(&f.world);
	for (uint64_t id = 7; id < 12; id++)
		add(&f, id, WAITING, WORLD_WORKER);
	read_all(&f, &some);
	for (size_t i = 0; i < golang_goroutines_count(f.gs); i++)
		stacks += golang_goroutine_at(f.gs, i)->stack != GOLANG_NO_STACK;
	assert_int_equal(golang_goroutines_stats(f.gs)->total, 6);
	assert_int_equal(golang_goroutines_stats(f.gs)->sampled, 2);
	assert_int_equal(golang_goroutines_stats(f.gs)->unverified, 0);
	assert_int_equal(stacks, 2);
	assert_int_equal(golang_goroutines_profile(f.gs, false, NULL, NULL, &p, &err), 0);
	assert_int_equal(profile_sample_at(p, 0)->values[0] * (int64_t)profile_n_samples(p), 6);
	profile_free(p);
	fixture_close(&f);
}

/* One that is read again because it changed is neither more nor less of a sample than before. */
static void max_takes_no_more_of_those_that_change(void **state)
{
	const struct golang_goroutines_options some = {.max = 2};
	_cleanup_(profile_freep) struct profile *p = NULL;
	struct fixture f = {0};
	struct err err;
	int64_t sum = 0;

	(void)state;
	world_build(&f.world);
	for (uint64_t id = 7; id < 12; id++)
		add(&f, id, COPYSTACK, WORLD_WORKER);
	read_all(&f, &some);
	assert_int_equal(golang_goroutines_stats(f.gs)->total, 6);
	assert_true(golang_goroutines_stats(f.gs)->retries > 0);
	assert_int_equal(golang_goroutines_by_state(f.gs, &p, &err), 0);
	for (size_t i = 0; i < profile_n_samples(p); i++)
		sum += profile_sample_at(p, i)->values[0];
	assert_int_equal(sum, 6);
	fixture_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(waiting_goroutine_is_unwound_to_its_root),
		cmocka_unit_test(running_goroutine_is_never_shown_with_its_old_stack),
		cmocka_unit_test(dead_goroutines_are_not_counted),
		cmocka_unit_test(the_look_of_the_collector_changes_nothing),
		cmocka_unit_test(goroutines_of_the_runtime_are_left_out_unless_asked_for),
		cmocka_unit_test(goroutine_in_a_system_call_is_unwound_from_where_it_entered),
		cmocka_unit_test(goroutine_that_has_not_begun_is_at_its_start),
		cmocka_unit_test(stack_that_does_not_lead_to_the_root_is_not_shown),
		cmocka_unit_test(stacks_of_one_leaf_and_height_are_told_apart_in_constant_memory),
		cmocka_unit_test(known_stack_that_has_changed_is_walked_anew),
		cmocka_unit_test(wild_and_doubled_entries_of_the_list_are_counted),
		cmocka_unit_test(goroutines_that_share_memory_are_counted_once),
		cmocka_unit_test(long_list_of_nothing_takes_no_memory),
		cmocka_unit_test(list_beyond_the_limit_is_refused),
		cmocka_unit_test(forged_bounds_of_a_stack_are_refused),
		cmocka_unit_test(saved_context_outside_of_the_stack_is_never_followed),
		cmocka_unit_test(absurd_lengths_of_the_list_are_refused),
		cmocka_unit_test(list_that_does_not_lead_to_goroutines_is_refused),
		cmocka_unit_test(main_goroutine_of_a_library_may_be_gone),
		cmocka_unit_test(labels_are_read_and_forged_ones_are_counted),
		cmocka_unit_test(wait_reasons_have_no_control_characters),
		cmocka_unit_test(labels_beyond_the_limit_are_lost),
		cmocka_unit_test(profile_counts_goroutines_by_stack),
		cmocka_unit_test(states_are_types_of_one_sample),
		cmocka_unit_test(max_reads_some_stacks_and_counts_all),
		cmocka_unit_test(max_takes_no_more_of_those_that_change),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
