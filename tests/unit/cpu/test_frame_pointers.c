/* tests/unit/cpu/test_frame_pointers.c: a JVM's flag, in tables like HotSpot's, in our own memory.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "cpu/unwind/frame_pointers.h"

struct field {
	const char *type, *name, *type_string;
	int32_t is_static;
	uint64_t offset;
	void *address;
};

struct type {
	const char *name, *super;
	int32_t flags[3];
	uint64_t size;
};

struct flag {
	void *value;
	const char *name;
	int32_t flags, type;
};

static uint8_t values[3] = {0, 1, 1};
static struct flag flags[] = {{&values[0], "UseSerialGC", 0, 0},
			      {&values[1], "PreserveFramePointer", 0, 0},
			      {&values[2], "PreserveFramePointers", 0, 0}};
static struct flag *first_flag = flags;
static uint64_t n_flags = ARRAY_SIZE(flags);
static struct field fields[] = {
	{"Klass", "_name", "Symbol*", 0, 8, NULL},
	{"JVMFlag", "_name", "const char*", 0, offsetof(struct flag, name), NULL},
	{"JVMFlag", "_addr", "void*", 0, offsetof(struct flag, value), NULL},
	{"JVMFlag", "flags", "JVMFlag*", 1, 0, &first_flag},
	{"JVMFlag", "numFlags", "size_t", 1, 0, &n_flags},
	{NULL, NULL, NULL, 0, 0, NULL},
};
static struct type types[] = {{"Klass", NULL, {0}, 96},
			      {"JVMFlag", NULL, {0}, sizeof(struct flag)},
			      {NULL, NULL, {0}, 0}};

/* Each is behind its own word, as the library exports them. */
static uint64_t words[CPU_HOTSPOT_WORDS];
static struct cpu_hotspot hotspot;

static int setup(void **state)
{
	const uint64_t is[CPU_HOTSPOT_WORDS] = {
		[CPU_HOTSPOT_STRUCTS] = (uintptr_t)fields,
		[CPU_HOTSPOT_STRUCT_STRIDE] = sizeof(fields[0]),
		[CPU_HOTSPOT_STRUCT_TYPE] = offsetof(struct field, type),
		[CPU_HOTSPOT_STRUCT_FIELD] = offsetof(struct field, name),
		[CPU_HOTSPOT_STRUCT_OFFSET] = offsetof(struct field, offset),
		[CPU_HOTSPOT_STRUCT_ADDRESS] = offsetof(struct field, address),
		[CPU_HOTSPOT_TYPES] = (uintptr_t)types,
		[CPU_HOTSPOT_TYPE_STRIDE] = sizeof(types[0]),
		[CPU_HOTSPOT_TYPE_NAME] = offsetof(struct type, name),
		[CPU_HOTSPOT_TYPE_SIZE] = offsetof(struct type, size),
	};

	(void)state;
	memcpy(words, is, sizeof(words));
	for (size_t i = 0; i < CPU_HOTSPOT_WORDS; i++)
		hotspot.words[i] = (uintptr_t)&words[i] - 0x1000;
	n_flags = ARRAY_SIZE(flags);
	values[1] = 1;
	return 0;
}

static int ask(bool *ret_flag)
{
	_cleanup_(proc_mem_closep) struct proc_mem *mem = NULL;

	assert_int_equal(proc_mem_open_bare(getpid(), &mem, NULL), 0);
	return cpu_hotspot_flag(&hotspot, mem, 0x1000, ret_flag);
}

static void flag_is_read_from_the_tables(void **state)
{
	bool flag = false;

	(void)state;
	assert_int_equal(ask(&flag), 0);
	assert_true(flag);
	values[1] = 0;
	assert_int_equal(ask(&flag), 0);
	assert_false(flag);
}

static void tables_that_are_not_there_yet_say_nothing(void **state)
{
	bool flag;

	(void)state;
	words[CPU_HOTSPOT_STRUCTS] = 0;
	assert_int_equal(ask(&flag), -ENOENT);
}

static void forged_tables_say_nothing(void **state)
{
	bool flag;

	(void)state;
	n_flags = 1;
	assert_int_equal(ask(&flag), -ENOENT);
	n_flags = UINT64_MAX;
	assert_int_equal(ask(&flag), 0);
	values[1] = 17;
	assert_int_equal(ask(&flag), -ENOENT);
	for (size_t i = 0; i < CPU_HOTSPOT_WORDS; i++) {
		const uint64_t odd[] = {0, 7, 1 << 20, UINT64_MAX - 8};

		for (size_t j = 0; j < ARRAY_SIZE(odd); j++) {
			(void)setup(NULL);
			words[i] = odd[j];
			(void)ask(&flag);
		}
	}
}

/* No two of them in one window. */
static void names_scattered_on_purpose_are_given_up(void **state)
{
	enum { N = 3000, APART = 8192 };
	char *names = mmap(NULL, (size_t)N * APART, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct type *many = calloc(N + 2, sizeof(*many));
	bool flag;

	(void)state;
	assert_true(names != MAP_FAILED);
	assert_non_null(many);
	for (size_t i = 0; i < N; i++)
		many[i].name = names + i * APART;
	many[N] = types[1];
	words[CPU_HOTSPOT_TYPES] = (uintptr_t)many;
	assert_int_equal(ask(&flag), -ENOENT);
	/* There is nothing wrong with the table but that. */
	words[CPU_HOTSPOT_TYPES] = (uintptr_t)(many + N - 10);
	assert_int_equal(ask(&flag), 0);
	free(many);
	(void)munmap(names, (size_t)N * APART);
}

static void runtimes_are_told_by_their_files(void **state)
{
	struct cpu_runtime runtime;
	bool keeps;

	(void)state;
	runtime = (struct cpu_runtime){.kind = CPU_RUNTIME_NONE};
	assert_int_equal(cpu_runtime_keeps_fp(&runtime, getpid(), 0, &keeps), 0);
	assert_false(keeps);
	runtime.kind = CPU_RUNTIME_V8;
	assert_int_equal(cpu_runtime_keeps_fp(&runtime, getpid(), 0, &keeps), 0);
	assert_true(keeps);
	runtime = (struct cpu_runtime){.kind = CPU_RUNTIME_HOTSPOT, .hotspot = hotspot};
	assert_int_equal(cpu_runtime_keeps_fp(&runtime, getpid(), 0x1000, &keeps), 0);
	assert_true(keeps);
	assert_true(cpu_runtime_keeps_fp(&runtime, 0x7ffffff0, 0x1000, &keeps) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(flag_is_read_from_the_tables, setup),
		cmocka_unit_test_setup(tables_that_are_not_there_yet_say_nothing, setup),
		cmocka_unit_test_setup(forged_tables_say_nothing, setup),
		cmocka_unit_test_setup(names_scattered_on_purpose_are_given_up, setup),
		cmocka_unit_test_setup(runtimes_are_told_by_their_files, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
