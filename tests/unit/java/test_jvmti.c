/*
 * tests/unit/java/test_jvmti.c: our library for JVMs in a JVM that is not one, and what is read of
 * it when somebody forges it.
 */
#include "java/jvmti/jvmti.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/io.h"
#include "java/jvmti/builder.h"
#include "java/jvmti/load.h"
#include "java/jvmti/ring.h"
#include "profile/profile.h"
#include "test_jvmti.h"
/* The library is no part of what tests are linked with. */
#include "java/agent_lib/agent.c"
#include "java/agent_lib/park.c"
#include "java/agent_lib/session.c"

static struct fake_class string_class = {"Ljava/lang/String;"}, bytes_class = {"[B"},
			 app_class = {"Lapp/Main;"};
static struct fake_method make_method = {&app_class, "make", 41},
			  main_method = {&app_class, "main", 7};

static struct java_ring ring;
static struct java_jvmti_builder builder;
static char ring_path[64];

static int setup_with(uint64_t idle_ns, uint64_t data_bytes)
{
	struct java_ring_options o = {.data_bytes = data_bytes,
				      .idle_ns = idle_ns,
				      .interval_bytes = 512 << 10,
				      .wanted = JAVA_RING_ALLOCS | JAVA_RING_LOCKS,
				      .depth = 64};
	struct java_jfr_builder_options profile = {.label_threads = true, .label_classes = true};
	int fd;

	strcpy(ring_path, "/tmp/sonde-ring-XXXXXX");
	fd = mkostemp(ring_path, O_CLOEXEC);
	if (fd < 0 || java_ring_create_take(&ring, fd, &o, NULL) < 0 ||
	    java_jvmti_builder_init(&builder, &profile) < 0)
		return -1;
	memset(&fake, 0, sizeof(fake));
	memset(&agent, 0, sizeof(agent));
	memset(&park, 0, sizeof(park));
	fake.stack[0] = (struct jvm_frame){&make_method, 3};
	fake.stack[1] = (struct jvm_frame){&main_method, 12};
	fake.depth = 2;
	return 0;
}

static int setup(void **state)
{
	(void)state;
	return setup_with(60 * NS_PER_SEC, JAVA_RING_DATA_MIN);
}

static int teardown(void **state)
{
	char stop[] = "stop";

	(void)state;
	(void)Agent_OnAttach(&fake_vm, stop, NULL);
	java_ring_release(&ring);
	java_jvmti_builder_release(&builder);
	return unlink(ring_path) == 0 && fake.allocated == 0 && fake.refs == 0 ? 0 : -1;
}

static int32_t start(void)
{
	char command[96];

	(void)snprintf(command, sizeof(command), "start,%s", ring_path);
	return Agent_OnAttach(&fake_vm, command, NULL);
}

static void take_in(void)
{
	struct java_ring_record record;
	struct err err;
	int r;

	assert_int_equal(java_ring_read(&ring, &err), 0);
	while ((r = java_ring_next(&ring, &record)) > 0)
		assert_int_equal(java_jvmti_builder_add(&builder, &record), 0);
	assert_int_equal(r, 0);
	assert_int_equal(java_ring_done(&ring, &err), 0);
}

static struct profile *take(enum java_jfr_profile_kind kind)
{
	struct profile *p = NULL;

	assert_int_equal(java_jvmti_builder_take(&builder, kind, &p, NULL), 0);
	return p;
}

static const char *frame_name_at(const struct profile *p, uint32_t stack, uint32_t i, int64_t *line)
{
	uint32_t n;
	const uint32_t *locations = profile_stack_at(p, stack, &n);
	const struct profile_location *l;

	assert_true(i < n);
	l = profile_location_at(p, locations[i]);
	*line = l->lines[0].line;
	return profile_cstring(p, profile_function_at(p, l->lines[0].function)->name);
}

static void allocations_come_out_with_their_names(void **state)
{
	_cleanup_(profile_freep) struct profile *p = NULL;
	const struct profile_sample *s;
	int64_t line;

	(void)state;
	assert_int_equal(start(), JAVA_RING_OK);
	assert_int_equal(fake.interval, 512 << 10);
	fake_alloc(&string_class, 32);
	fake_alloc(&string_class, 32);
	fake_alloc(&bytes_class, 8 << 20);
	take_in();
	p = take(JAVA_JFR_PROFILE_ALLOC);
	assert_int_equal(profile_n_samples(p), 2);
	s = profile_sample_at(p, 0);
	/* 32 bytes each 512 KB. */
	assert_in_range(s->values[0], 2 * 16384, 2 * 16384 + 2);
	assert_in_range(s->values[1], 2 * 16384 * 32, 2 * 16384 * 32 + 64);
	assert_string_equal(frame_name_at(p, s->stack, 0, &line), "java.lang.String");
	assert_string_equal(frame_name_at(p, s->stack, 1, &line), "app.Main.make");
	assert_int_equal(line, 41);
	assert_string_equal(frame_name_at(p, s->stack, 2, &line), "app.Main.main");
	assert_int_equal(line, 8);
	assert_int_equal(s->n_labels, 2);
	assert_string_equal(profile_cstring(p, s->labels[0].str), "main");
	assert_string_equal(profile_cstring(p, s->labels[1].str), "java.lang.String");
	s = profile_sample_at(p, 1);
	assert_int_equal(s->values[0], 1);
	assert_in_range(s->values[1], 8 << 20, (8 << 20) + 2);
}

static void waits_are_added_up_until_they_are_worth_an_event(void **state)
{
	_cleanup_(profile_freep) struct profile *p = NULL;
	const struct profile_sample *s;
	char stop[] = "stop";
	int64_t line, waits = 0;

	(void)state;
	assert_int_equal(start(), JAVA_RING_OK);
	for (int i = 0; i < 3; i++) {
		fake_monitor(TI_EVENT_CONTENDED_ENTER, &app_class);
		/* Two of 600 us are an event, the third is left. */
		fake.local = (void *)((uintptr_t)fake.local - 600000);
		fake_monitor(TI_EVENT_CONTENDED_ENTERED, &app_class);
		assert_null(fake.local);
	}
	assert_int_equal(Agent_OnAttach(&fake_vm, stop, NULL), JAVA_RING_OK);
	take_in();
	p = take(JAVA_JFR_PROFILE_LOCK);
	assert_int_equal(profile_n_samples(p), 2);
	for (size_t i = 0; i < 2; i++)
		waits += profile_sample_at(p, i)->values[0];
	assert_int_equal(waits, 3);
	s = profile_sample_at(p, 0);
	assert_int_equal(s->values[0], 2);
	assert_true(s->values[1] >= 1200000);
	assert_string_equal(frame_name_at(p, s->stack, 0, &line), "app.Main");
	assert_string_equal(frame_name_at(p, s->stack, 1, &line), "app.Main.make");
	s = profile_sample_at(p, 1);
	assert_true(s->values[1] >= 600000);
	assert_string_equal(frame_name_at(p, s->stack, 0, &line), "[no stack]");
}

static void waits_for_locks_of_the_library_are_seen_and_idle_threads_are_not(void **state)
{
	struct fake_class lock = {"Ljava/util/concurrent/locks/ReentrantLock$NonfairSync;"},
			  queue = {"Ljava/util/concurrent/SynchronousQueue$TransferStack;"};
	_cleanup_(profile_freep) struct profile *p = NULL;
	struct java_ring_counts counts;
	char stop[] = "stop";
	int64_t line;

	(void)state;
	assert_int_equal(start(), JAVA_RING_OK);
	assert_int_equal(java_ring_counts(&ring, &counts), 0);
	assert_true(counts.sees_parks);
	/* The JVM's table is as it was, and its method is ours. */
	assert_ptr_equal(fake_jni_table[JNI_REGISTER_NATIVES], (const void *)fake_register_natives);
	assert_ptr_equal(fake.park, on_park);
	agent.wait_ns = MIN_WAIT_NS;
	fake_wait_parked(&lock, 1);
	fake_wait_parked(&queue, 10);
	fake_wait_parked(NULL, 100);
	/* Whoever waits, the JVM's own function does the waiting. */
	assert_int_equal(fake.parked, 111);
	assert_int_equal(Agent_OnAttach(&fake_vm, stop, NULL), JAVA_RING_OK);
	assert_ptr_equal(fake.park, fake_jvm_park);
	/* One that waited all the time comes back through ours. */
	on_park(&fake_jni, &fake_unsafe, 0, 1000);
	assert_int_equal(fake.parked, 1111);
	take_in();
	p = take(JAVA_JFR_PROFILE_LOCK);
	assert_int_equal(profile_n_samples(p), 1);
	assert_int_equal(profile_sample_at(p, 0)->values[0], 1);
	assert_string_equal(frame_name_at(p, profile_sample_at(p, 0)->stack, 0, &line),
			    "java.util.concurrent.locks.ReentrantLock$NonfairSync");
}

static void threads_that_queue_for_connections_are_counted_apart(void **state)
{
	struct fake_class socket = {"Lsun/nio/ch/ServerSocketChannelImpl;"},
			  lock = {"Ljava/util/concurrent/locks/ReentrantLock$NonfairSync;"};
	struct fake_method accept = {&socket, "accept", 5};
	_cleanup_(profile_freep) struct profile *p = NULL;

	(void)state;
	assert_int_equal(start(), JAVA_RING_OK);
	agent.wait_ns = MIN_WAIT_NS;
	fake_wait_parked(&lock, 0);
	fake.stack[1] = (struct jvm_frame){&accept, 0};
	fake_wait_parked(&lock, 0);
	take_in();
	p = take(JAVA_JFR_PROFILE_LOCK);
	assert_int_equal(profile_n_samples(p), 1);
	assert_int_equal(profile_sample_at(p, 0)->values[0], 1);
	assert_int_equal(builder.idle_waits, 1);
	assert_true(builder.idle_ns > 0);
}

static void a_jvm_whose_threads_park_elsewhere_is_left_as_it_is(void **state)
{
	struct java_ring_counts counts;

	(void)state;
	fake.has_no_unsafe = true;
	assert_int_equal(start(), JAVA_RING_OK);
	assert_int_equal(java_ring_counts(&ring, &counts), 0);
	assert_false(counts.sees_parks);
	assert_null(fake.park);
	assert_true(fake.events[TI_EVENT_CONTENDED_ENTER]);
}

/* Nothing is enabled, nothing is held, nothing is mapped. */
static void assert_idle(void)
{
	_cleanup_(buf_release) struct buf maps = buf_with_max((size_t)8 << 20);

	assert_true(!fake.park || fake.park == fake_jvm_park);
	for (int i = 0; i < TI_EVENT_END; i++)
		assert_false(fake.events[i]);
	assert_int_equal(fake.capabilities, 0);
	assert_int_equal(fake.interval, DEFAULT_INTERVAL);
	assert_null(session);
	assert_int_equal(gate, 0);
	assert_int_equal(io_read_file(AT_FDCWD, "/proc/self/maps", &maps, NULL), 0);
	assert_null(strstr(buf_cstr(&maps), ring_path));
}

static void a_stopped_agent_leaves_nothing(void **state)
{
	char stop[] = "stop";

	(void)state;
	assert_int_equal(start(), JAVA_RING_OK);
	fake_alloc(&string_class, 32);
	assert_int_equal(Agent_OnAttach(&fake_vm, stop, NULL), JAVA_RING_OK);
	assert_idle();
	assert_int_equal(Agent_OnAttach(&fake_vm, stop, NULL), JAVA_RING_OK);
}

static int setup_forgotten(void **state)
{
	(void)state;
	return setup_with(1, JAVA_RING_DATA_MIN);
}

static void an_agent_without_sonde_ends_at_the_next_event(void **state)
{
	struct java_ring_counts counts;

	(void)state;
	assert_int_equal(start(), JAVA_RING_OK);
	fake_alloc(&string_class, 32);
	assert_true(fake.events[TI_EVENT_SAMPLED_OBJECT_ALLOC]);
	/* The beat has changed since. */
	take_in();
	fake_alloc(&string_class, 32);
	assert_true(fake.events[TI_EVENT_SAMPLED_OBJECT_ALLOC]);
	assert_int_equal(java_ring_counts(&ring, &counts), 0);
	assert_false(counts.has_ended);
	fake_alloc(&string_class, 32);
	assert_idle();
	assert_int_equal(java_ring_counts(&ring, &counts), 0);
	assert_true(counts.has_ended);
	assert_int_equal(start(), JAVA_RING_OK);
	assert_true(fake.events[TI_EVENT_SAMPLED_OBJECT_ALLOC]);
}

static void a_second_start_ends_the_first(void **state)
{
	(void)state;
	assert_int_equal(start(), JAVA_RING_OK);
	fake_alloc(&string_class, 32);
	assert_int_equal(start(), JAVA_RING_OK);
	assert_int_equal(gate, 1);
	fake_alloc(&string_class, 32);
	assert_true(fake.events[TI_EVENT_CONTENDED_ENTER]);
}

static void a_capability_that_another_has_is_an_error(void **state)
{
	(void)state;
	fake.refuse_capabilities = 98;
	assert_int_equal(start(), JAVA_RING_ERR_CAPABILITY + 98);
	fake.interval = DEFAULT_INTERVAL;
	assert_idle();
}

static void commands_and_files_that_make_no_sense_are_refused(void **state)
{
	char none[] = "", start_none[] = "start,/nonexistent", word[] = "stop it";
	uint64_t value = 0;

	(void)state;
	assert_int_equal(Agent_OnAttach(&fake_vm, NULL, NULL), JAVA_RING_ERR_COMMAND);
	assert_int_equal(Agent_OnAttach(&fake_vm, none, NULL), JAVA_RING_ERR_COMMAND);
	assert_int_equal(Agent_OnAttach(&fake_vm, word, NULL), JAVA_RING_ERR_COMMAND);
	assert_int_equal(Agent_OnAttach(&fake_vm, start_none, NULL), JAVA_RING_ERR_FILE);
	/* A ring that is larger than its file would be written behind its end. */
	value = 2 * JAVA_RING_DATA_MIN;
	assert_int_equal(pwrite(ring.fd, &value, 8, offsetof(struct java_ring_header, data_bytes)),
			 8);
	assert_int_equal(start(), JAVA_RING_ERR_FILE);
	value = JAVA_RING_DATA_MIN;
	assert_int_equal(pwrite(ring.fd, &value, 8, offsetof(struct java_ring_header, data_bytes)),
			 8);
	assert_int_equal(start(), JAVA_RING_OK);
}

static void events_without_room_are_counted(void **state)
{
	struct java_ring_counts counts;

	(void)state;
	assert_int_equal(start(), JAVA_RING_OK);
	for (int i = 0; i < 5000; i++)
		fake_alloc(&string_class, 32);
	assert_int_equal(java_ring_counts(&ring, &counts), 0);
	assert_int_equal(counts.events, 5000);
	assert_in_range(counts.dropped, 1, 4999);
	take_in();
	assert_int_equal(builder.events[JAVA_JFR_PROFILE_ALLOC] + counts.dropped, 5000);
	/* And there is room again. */
	fake_alloc(&string_class, 32);
	take_in();
	assert_int_equal(builder.events[JAVA_JFR_PROFILE_ALLOC] + counts.dropped, 5001);
}

static void an_agent_stays_in_its_ring_whatever_the_positions_say(void **state)
{
	static const uint64_t heads[] = {8, JAVA_RING_DATA_MIN - 8, JAVA_RING_DATA_MIN + 16,
					 UINT64_MAX - 7};
	struct java_ring_counts counts;

	(void)state;
	assert_int_equal(start(), JAVA_RING_OK);
	for (size_t i = 0; i < ARRAY_SIZE(heads); i++) {
		assert_int_equal(
			pwrite(ring.fd, &heads[i], 8, offsetof(struct java_ring_header, head)), 8);
		fake_alloc(&string_class, 32);
	}
	assert_int_equal(java_ring_counts(&ring, &counts), 0);
	assert_int_equal(counts.dropped, ARRAY_SIZE(heads));
}

static void a_ring_goes_round_and_round(void **state)
{
	_cleanup_(profile_freep) struct profile *p = NULL;
	struct java_ring_counts counts;

	(void)state;
	assert_int_equal(start(), JAVA_RING_OK);
	for (int i = 0; i < 20000; i++) {
		fake.stack[0].location = i % 3 * 10;
		fake.depth = 1 + i % 2;
		fake_alloc(i % 2 ? &string_class : &bytes_class, 32);
		if (i % 97 == 0)
			take_in();
	}
	take_in();
	assert_int_equal(java_ring_counts(&ring, &counts), 0);
	assert_int_equal(counts.dropped, 0);
	assert_int_equal(builder.events[JAVA_JFR_PROFILE_ALLOC], 20000);
	assert_true(ring.tail > 20 * JAVA_RING_DATA_MIN / 2);
	p = take(JAVA_JFR_PROFILE_ALLOC);
	for (size_t i = 0; i < profile_n_samples(p); i++) {
		int64_t line;

		assert_string_equal(frame_name_at(p, profile_sample_at(p, i)->stack, 1, &line),
				    "app.Main.make");
	}
}

static void too_many_samples_widen_the_interval(void **state)
{
	(void)state;
	assert_int_equal(start(), JAVA_RING_OK);
	/* No machine is so slow that these take seconds. */
	for (int i = 0; i < 4 * PACE_WINDOW_EVENTS; i++)
		fake_alloc(&string_class, 32);
	assert_true(fake.interval > 512 << 10);
	assert_int_equal(fake.interval, (int32_t)agent.interval_bytes);
}

static void samples_weigh_what_they_were_drawn_with(void **state)
{
	struct drawn *d = NULL;

	(void)state;
	assert_int_equal(drawn_with(&fake_jni, 512 << 10), 512 << 10);
	assert_int_equal(drawn_with(&fake_jni, 2 << 20), 512 << 10);
	assert_int_equal(drawn_with(&fake_jni, 2 << 20), 2 << 20);
	for (size_t i = 0; i < MAX_DRAWN; i++)
		if (agent.drawn[i].thread == &fake_jni)
			d = &agent.drawn[i];
	assert_non_null(d);
}

static void deep_stacks_are_cut_and_say_so(void **state)
{
	_cleanup_(profile_freep) struct profile *p = NULL;
	uint32_t n;
	int64_t line;

	(void)state;
	for (int i = 0; i < 300; i++)
		fake.stack[i] = (struct jvm_frame){&make_method, 0};
	fake.depth = 300;
	assert_int_equal(start(), JAVA_RING_OK);
	fake_alloc(&string_class, 32);
	take_in();
	assert_int_equal(builder.truncated, 1);
	p = take(JAVA_JFR_PROFILE_ALLOC);
	(void)profile_stack_at(p, profile_sample_at(p, 0)->stack, &n);
	assert_int_equal(n, 66);
	assert_string_equal(frame_name_at(p, profile_sample_at(p, 0)->stack, 65, &line),
			    "[stack is deeper than was recorded]");
}

/* Writes a record as a target might. */
static void forge(const void *record, size_t len, uint64_t head)
{
	assert_int_equal(pwrite(ring.fd, record, len, JAVA_RING_HEADER_BYTES), (ssize_t)len);
	assert_int_equal(pwrite(ring.fd, &head, 8, offsetof(struct java_ring_header, head)), 8);
}

static void forged_records_are_refused(void **state)
{
	struct java_ring_event e = {.record = {.commit = 1, .len = 64, .kind = JAVA_RING_ALLOC}};
	struct java_ring_record record;
	struct err err;

	(void)state;
	/* Names and frames that go past the record. */
	e.class_len = 100;
	forge(&e, sizeof(e), 64);
	assert_int_equal(java_ring_read(&ring, &err), 0);
	assert_int_equal(java_ring_next(&ring, &record), -EBADMSG);
	e.class_len = 0;
	e.record.n_frames = 7;
	forge(&e, sizeof(e), 64);
	assert_int_equal(java_ring_read(&ring, &err), 0);
	assert_int_equal(java_ring_next(&ring, &record), -EBADMSG);
	e.record.n_frames = 0;
	e.record.kind = 9;
	forge(&e, sizeof(e), 64);
	assert_int_equal(java_ring_read(&ring, &err), 0);
	assert_int_equal(java_ring_next(&ring, &record), -EBADMSG);
	/* Lengths that are none. */
	e.record.kind = JAVA_RING_ALLOC;
	for (size_t i = 0; i < 4; i++) {
		e.record.len = (const uint32_t[]){0, 8, 72, 1u << 31}[i];
		forge(&e, sizeof(e), 64);
		assert_int_equal(java_ring_read(&ring, &err), -EBADMSG);
	}
	e.record.len = 64;
	forge(&e, sizeof(e), JAVA_RING_DATA_MIN + 16);
	assert_int_equal(java_ring_read(&ring, &err), -EBADMSG);
	forge(&e, sizeof(e), 64);
	assert_int_equal(java_ring_read(&ring, &err), 0);
	assert_int_equal(java_ring_next(&ring, &record), 1);
}

static void a_record_that_is_being_written_is_waited_for(void **state)
{
	struct java_ring_event e = {.record = {.commit = 0, .len = 48, .kind = JAVA_RING_ALLOC}};
	struct java_ring_record record;
	struct err err;

	(void)state;
	forge(&e, sizeof(e), 48);
	assert_int_equal(java_ring_read(&ring, &err), 0);
	assert_int_equal(java_ring_next(&ring, &record), 0);
	assert_int_equal(java_ring_done(&ring, &err), 0);
	e.record.commit = 1;
	forge(&e, sizeof(e), 48);
	assert_int_equal(java_ring_read(&ring, &err), 0);
	assert_int_equal(java_ring_next(&ring, &record), 1);
}

static void a_ring_that_is_cut_short_is_an_error(void **state)
{
	struct java_ring_event e = {.record = {.commit = 1, .len = 48, .kind = JAVA_RING_ALLOC}};
	struct err err;

	(void)state;
	forge(&e, sizeof(e), JAVA_RING_DATA_MIN);
	assert_int_equal(ftruncate(ring.fd, 5000), 0);
	assert_int_equal(java_ring_read(&ring, &err), -EBADMSG);
}

static void frames_without_a_name_are_called_unknown(void **state)
{
	_cleanup_(profile_freep) struct profile *p = NULL;
	uint32_t frames[] = {5, UINT32_MAX};
	struct java_ring_record r = {.kind = JAVA_RING_ALLOC,
				     .a = UINT64_MAX,
				     .b = UINT64_MAX,
				     .frames = view_of(frames, sizeof(frames))};
	int64_t line;

	(void)state;
	assert_int_equal(java_jvmti_builder_add(&builder, &r), 0);
	p = take(JAVA_JFR_PROFILE_ALLOC);
	assert_true(profile_sample_at(p, 0)->values[1] > 0);
	assert_string_equal(frame_name_at(p, profile_sample_at(p, 0)->stack, 1, &line),
			    "[unknown method]");
}

static void weights_make_up_for_what_was_not_sampled(void **state)
{
	(void)state;
	assert_true(fabs(java_jvmti_weight(1 << 20, 1 << 20) - 1 / (1 - exp(-1))) < 1e-9);
	assert_true(fabs(java_jvmti_weight(16, 1 << 20) - 65536.5) < 1e-3);
	assert_true(java_jvmti_weight(1ULL << 40, 1 << 20) == 1);
	assert_true(java_jvmti_weight(0, 1) == 1);
	assert_true(java_jvmti_weight(1, 0) == 1);
}

static void answers_to_a_load_are_understood(void **state)
{
	int code = 7;

	(void)state;
	assert_int_equal(java_jvmti_parse_answer(view_str("return code: 0\n"), &code), 0);
	assert_int_equal(code, 0);
	assert_int_equal(java_jvmti_parse_answer(view_str("return code: 1098"), &code), 0);
	assert_int_equal(code, 1098);
	assert_int_equal(java_jvmti_parse_answer(view_str("-1\n"), &code), 0);
	assert_int_equal(code, -1);
	assert_int_equal(java_jvmti_parse_answer(view_str("x.so was not loaded."), &code), -ENOENT);
	assert_int_equal(java_jvmti_parse_answer(view_str("0x is not it"), &code), -ENOENT);
	assert_int_equal(java_jvmti_parse_answer(view_str(""), &code), -ENOENT);
	assert_int_equal(code, -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(allocations_come_out_with_their_names, setup,
						teardown),
		cmocka_unit_test_setup_teardown(waits_are_added_up_until_they_are_worth_an_event,
						setup, teardown),
		cmocka_unit_test_setup_teardown(
			waits_for_locks_of_the_library_are_seen_and_idle_threads_are_not, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			threads_that_queue_for_connections_are_counted_apart, setup, teardown),
		cmocka_unit_test_setup_teardown(a_jvm_whose_threads_park_elsewhere_is_left_as_it_is,
						setup, teardown),
		cmocka_unit_test_setup_teardown(a_stopped_agent_leaves_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(an_agent_without_sonde_ends_at_the_next_event,
						setup_forgotten, teardown),
		cmocka_unit_test_setup_teardown(a_second_start_ends_the_first, setup, teardown),
		cmocka_unit_test_setup_teardown(a_capability_that_another_has_is_an_error, setup,
						teardown),
		cmocka_unit_test_setup_teardown(commands_and_files_that_make_no_sense_are_refused,
						setup, teardown),
		cmocka_unit_test_setup_teardown(events_without_room_are_counted, setup, teardown),
		cmocka_unit_test_setup_teardown(
			an_agent_stays_in_its_ring_whatever_the_positions_say, setup, teardown),
		cmocka_unit_test_setup_teardown(a_ring_goes_round_and_round, setup, teardown),
		cmocka_unit_test_setup_teardown(too_many_samples_widen_the_interval, setup,
						teardown),
		cmocka_unit_test_setup_teardown(samples_weigh_what_they_were_drawn_with, setup,
						teardown),
		cmocka_unit_test_setup_teardown(deep_stacks_are_cut_and_say_so, setup, teardown),
		cmocka_unit_test_setup_teardown(forged_records_are_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(a_record_that_is_being_written_is_waited_for, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_ring_that_is_cut_short_is_an_error, setup,
						teardown),
		cmocka_unit_test_setup_teardown(frames_without_a_name_are_called_unknown, setup,
						teardown),
		cmocka_unit_test(weights_make_up_for_what_was_not_sampled),
		cmocka_unit_test(answers_to_a_load_are_understood),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
