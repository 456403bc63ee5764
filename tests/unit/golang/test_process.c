/* tests/unit/golang/test_process.c: a made-up program is opened and read, whole and damaged. */
#include "golang/process.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "child.h"
#include "golang/heap/heap.h"
#include "mem_fake.h"
#include "test_program.h"

static struct proc_mem *memory_of(const struct program *p)
{
	struct proc_mem *mem;
	struct err err;

	assert_int_equal(proc_mem_open_fake(&mem, &err), 0);
	assert_int_equal(proc_mem_fake_add(mem, PROGRAM_BASE, p->bytes, PROGRAM_BYTES), 0);
	return mem;
}

static int program_open(const struct program *p, const struct golang_options *options,
			struct golang_process **ret_process, struct err *err)
{
	err->text[0] = 0;
	return golang_process_open_take(memory_of(p), options, ret_process, err);
}

static int64_t value_of(const struct profile *p, size_t sample, const char *type)
{
	return profile_sample_at(p, sample)->values[profile_find_type(p, type)];
}

static const char *leaf_of(const struct profile *p, size_t sample)
{
	uint32_t n;
	const uint32_t *stack = profile_stack_at(p, profile_sample_at(p, sample)->stack, &n);
	const struct profile_location *l = profile_location_at(p, stack[0]);

	return profile_cstring(p, profile_function_at(p, l->lines[0].function)->name);
}

/* The code that the program consists of is amd64's. */
static bool is_amd64(void)
{
	_cleanup_(proc_mem_closep) struct proc_mem *mem = NULL;
	struct err err;

	assert_int_equal(proc_mem_open_fake(&mem, &err), 0);
	return proc_mem_machine(mem) == EM_X86_64;
}

static void program_is_found_and_read_from_memory_alone(void **state)
{
	_cleanup_(golang_process_closep) struct golang_process *process = NULL;
	_cleanup_(golang_heap_freep) struct golang_heap *heap = NULL;
	_cleanup_(profile_freep) struct profile *profile = NULL;
	const struct golang_facts *facts;
	static struct program p;
	struct err err;

	(void)state;
	program_build(&p);
	program_bucket(&p, 64, 5, 3);
	program_bucket(&p, 128, 2, 0);
	assert_int_equal(program_open(&p, NULL, &process, &err), 0);
	facts = golang_process_facts(process);
	assert_string_equal(facts->version, "go1.27.3");
	assert_string_equal(facts->tables_how, "scan");
	assert_int_equal(facts->load_bias, PROGRAM_BASE);
	assert_int_equal(facts->n_functions, PROGRAM_N_FUNCTIONS);
	if (!is_amd64())
		return;
	assert_string_equal(facts->variables_how, "code references");
	assert_true(facts->has_heap);
	assert_int_equal(golang_heap_new(process, &heap, &err), 0);
	assert_int_equal(golang_heap_read(heap, &err), 0);
	assert_int_equal(golang_heap_stats(heap)->buckets, 2);
	assert_int_equal(golang_heap_stats(heap)->cycle, 9);
	assert_int_equal(golang_heap_profile(heap, &profile, &err), 0);
	assert_int_equal(profile_n_samples(profile), 2);
	/* Newest first; the allocator is hidden, and goexit never shown. */
	assert_string_equal(leaf_of(profile, 0), "main.main");
	assert_int_equal(value_of(profile, 0, "alloc_space"), 256);
	assert_int_equal(value_of(profile, 1, "alloc_objects"), 5);
	assert_int_equal(value_of(profile, 1, "inuse_objects"), 2);
	assert_int_equal(value_of(profile, 1, "inuse_space"), 128);
	assert_int_equal(golang_heap_stats(heap)->unknown_frames, 0);
}

static void unknown_release_is_refused_unless_one_is_assumed(void **state)
{
	_cleanup_(golang_process_closep) struct golang_process *process = NULL;
	const struct golang_options options = {.assume_layout = "1.27"};
	const struct golang_options nonsense = {.assume_layout = "newest"};
	static struct program p;
	struct err err;

	(void)state;
	program_build(&p);
	memcpy(p.bytes + PROGRAM_BUILDINFO + 33, "go1.99.9", 8);
	assert_int_equal(program_open(&p, NULL, &process, &err), -ENOTSUP);
	assert_int_equal(err.cause, ERR_CAUSE_UNKNOWN_VERSION);
	assert_non_null(strstr(err.remedy, "--assume-layout"));
	assert_null(process);
	assert_int_equal(program_open(&p, &nonsense, &process, &err), -EINVAL);
	assert_int_equal(program_open(&p, &options, &process, &err), 0);
	assert_string_equal(golang_process_facts(process)->version_how, "--assume-layout");
	assert_string_equal(golang_process_facts(process)->version, "go1.99.9");
}

static void release_that_contradicts_the_tables_is_refused(void **state)
{
	_cleanup_(golang_process_closep) struct golang_process *process = NULL;
	static struct program p;
	struct err err;

	(void)state;
	program_build(&p);
	memcpy(p.bytes + PROGRAM_BUILDINFO + 33, "go1.18.1", 8);
	assert_int_equal(program_open(&p, NULL, &process, &err), -ENOTSUP);
	assert_non_null(strstr(err.text, "1.18"));
	/* Without build info, and without code that tells: it says so. */
	p.bytes[PROGRAM_BUILDINFO] = 0;
	assert_int_equal(program_open(&p, NULL, &process, &err), -ENOTSUP);
	assert_non_null(strstr(err.text, "without version information"));
}

static void memory_without_a_go_program_is_refused(void **state)
{
	_cleanup_(golang_process_closep) struct golang_process *process = NULL;
	static struct program p;
	char version[64];
	struct err err;

	(void)state;
	program_build(&p);
	p.bytes[PROGRAM_HEADER] = 0;
	assert_int_equal(program_open(&p, NULL, &process, &err), -ENOTSUP);
	assert_int_equal(err.cause, ERR_CAUSE_NOT_GO);
	program_build(&p);
	p.bytes[0] = 0; /* no ELF header */
	assert_int_equal(program_open(&p, NULL, &process, &err), -ENOTSUP);
	program_build(&p);
	program_u64(&p, PROGRAM_MODULE, 0); /* no module data */
	assert_int_equal(program_open(&p, NULL, &process, &err), -ENOTSUP);
	assert_non_null(strstr(err.text, "module data"));
	{
		_cleanup_(proc_mem_closep) struct proc_mem *mem = NULL;

		program_build(&p);
		mem = memory_of(&p);
		assert_int_equal(golang_detect(mem, version, sizeof(version), &err), 1);
		assert_string_equal(version, "go1.27.3");
		p.bytes[PROGRAM_HEADER] = 0;
		assert_int_equal(golang_detect(mem, version, sizeof(version), &err), 0);
	}
}

static void variables_that_lead_nowhere_leave_no_heap(void **state)
{
	static const struct {
		size_t off;
		uint64_t value;
		const char *sentence;
	} damages[] = {
		{PROGRAM_MBUCKETS, 0x1234, "does not point to a bucket"},
		{PROGRAM_MBUCKETS, PROGRAM_BASE, "does not point to a bucket"},
		{PROGRAM_RATE, UINT64_MAX, "impossible values"},
		{PROGRAM_CYCLE, UINT32_MAX, "impossible values"},
		{PROGRAM_CODE, 0, "not found in the code: mbuckets"},
		{PROGRAM_CODE + 4 * PROGRAM_CODE_BYTES, 0, "MemProfileRate"},
	};
	static struct program p;
	struct err err;

	(void)state;
	if (!is_amd64())
		skip();
	for (size_t i = 0; i < ARRAY_SIZE(damages); i++) {
		_cleanup_(golang_process_closep) struct golang_process *process = NULL;
		_cleanup_(golang_heap_freep) struct golang_heap *heap = NULL;

		program_build(&p);
		program_bucket(&p, 64, 5, 3);
		program_u64(&p, damages[i].off, damages[i].value);
		assert_int_equal(program_open(&p, NULL, &process, &err), 0);
		assert_false(golang_process_facts(process)->has_heap);
		assert_int_equal(golang_heap_new(process, &heap, &err), -ENOTSUP);
		if (!strstr(err.text, damages[i].sentence))
			fail_msg("'%s' does not say '%s'", err.text, damages[i].sentence);
	}
}

static void before_the_first_gc_all_cycles_count(void **state)
{
	_cleanup_(golang_process_closep) struct golang_process *process = NULL;
	_cleanup_(golang_heap_freep) struct golang_heap *heap = NULL;
	_cleanup_(profile_freep) struct profile *profile = NULL;
	static struct program p;
	struct err err;

	(void)state;
	if (!is_amd64())
		skip();
	program_build(&p);
	program_bucket(&p, 64, 0, 0);
	program_u32(&p, PROGRAM_CYCLE, 0);
	/* future[2], where a program that has just begun counts. */
	program_u64(&p, PROGRAM_BUCKETS + 48 + 8 * PROGRAM_DEPTH + 48, 7);
	assert_int_equal(program_open(&p, NULL, &process, &err), 0);
	assert_int_equal(golang_heap_new(process, &heap, &err), 0);
	assert_int_equal(golang_heap_read(heap, &err), 0);
	assert_true(golang_heap_stats(heap)->before_first_gc);
	assert_int_equal(golang_heap_profile(heap, &profile, &err), 0);
	assert_int_equal(value_of(profile, 0, "inuse_objects"), 7);
}

static char data_path[] = "/tmp/sonde-data-XXXXXX";

/* As SQLite maps the index of its log. */
static void map_shared(void)
{
	int fd = open(data_path, O_RDWR | O_CLOEXEC);

	if (fd < 0 || mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED)
		_exit(1);
}

static void map_private(void)
{
	int fd = open(data_path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0) == MAP_FAILED)
		_exit(1);
}

/* Whether another process sees the lock of this one. */
static bool is_locked(void)
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		struct flock lock = {.l_type = F_WRLCK};
		int fd = open(data_path, O_RDWR | O_CLOEXEC);

		_exit(fd < 0 || fcntl(fd, F_GETLK, &lock) < 0 || lock.l_type == F_UNLCK);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status == 0;
}

static void locks_on_what_a_process_maps_outlive_a_look_at_it(void **state)
{
	const child_fn ways[] = {map_shared, map_private};
	struct flock lock = {.l_type = F_WRLCK};
	int fd = mkstemp(data_path);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 4096), 0);
	assert_int_equal(fcntl(fd, F_SETLK, &lock), 0);
	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		_cleanup_(proc_mem_closep) struct proc_mem *mem = NULL;
		struct child c = child_start(ways[i], child_nothing);
		char version[32];
		struct err err;

		assert_int_equal(proc_mem_open(c.pid, &mem, &err), 0);
		assert_int_equal(golang_detect(mem, version, sizeof(version), &err), 0);
		assert_true(is_locked());
		child_end(&c);
	}
	(void)close(fd);
	(void)unlink(data_path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(program_is_found_and_read_from_memory_alone),
		cmocka_unit_test(unknown_release_is_refused_unless_one_is_assumed),
		cmocka_unit_test(release_that_contradicts_the_tables_is_refused),
		cmocka_unit_test(memory_without_a_go_program_is_refused),
		cmocka_unit_test(variables_that_lead_nowhere_leave_no_heap),
		cmocka_unit_test(before_the_first_gc_all_cycles_count),
		cmocka_unit_test(locks_on_what_a_process_maps_outlive_a_look_at_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
