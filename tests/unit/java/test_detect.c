/* tests/unit/java/test_detect.c: which Java it is, by what is mapped. */
#include "java/detect.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "java/attach/target.h"

static void versions_are_understood(void **state)
{
	static const struct {
		const char *text;
		unsigned int major;
		unsigned int update;
	} cases[] = {
		{"1.8.0_462", 8, 462},
		{"1.8.0_262-b10", 8, 262},
		{"1.8.0", 8, 0},
		{"11.0.24", 11, 24},
		{"17.0.15", 17, 15},
		{"25", 25, 0},
		{"25-ea", 25, 0},
		{"21.0.12+7", 21, 12},
		{"", 0, 0},
		{"unknown", 0, 0},
		{"1.", 0, 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		unsigned int major, update;

		java_parse_version(cases[i].text, &major, &update);
		assert_int_equal(major, cases[i].major);
		assert_int_equal(update, cases[i].update);
	}
}

/* What a process with that library is taken for. */
static int detect_with(const char *path, struct java_vm *ret_vm)
{
	_cleanup_(proc_maps_release) struct proc_maps maps = {};
	struct proc_id id;

	assert_int_equal(proc_id_of(getpid(), &id, NULL), 0);
	assert_int_equal(proc_maps_add(&maps,
				       &(struct proc_map){.start = 0x1000,
							  .end = 0x2000,
							  .flags = PROC_MAP_READ | PROC_MAP_EXEC,
							  .path = path},
				       NULL),
			 0);
	if (strstr(path, "j9vm"))
		assert_int_equal(
			proc_maps_add(&maps,
				      &(struct proc_map){.start = 0x3000,
							 .end = 0x4000,
							 .path = "/opt/jdk/lib/server/libjvm.so"},
				      NULL),
			0);
	return java_detect(&id, &maps, ret_vm, NULL);
}

static void hotspot_is_known_by_its_library_only(void **state)
{
	struct java_vm vm;

	(void)state;
	assert_int_equal(detect_with("/opt/no/such/lib/server/libjvm.so", &vm), 1);
	assert_int_equal(vm.kind, JAVA_HOTSPOT);
	assert_int_equal(vm.commands, JAVA_COMMANDS_UNKNOWN);
	assert_string_equal(vm.name, "HotSpot");
	assert_int_equal(vm.major, 0);
	assert_string_equal(vm.reason, "unknown version");
	assert_int_equal(detect_with("/usr/bin/java", &vm), 0);
	assert_int_equal(detect_with("/opt/libjvm.so/other", &vm), 0);
	assert_int_equal(detect_with("", &vm), 0);
}

static void others_are_named_and_refused(void **state)
{
	struct java_vm vm;

	(void)state;
	assert_int_equal(detect_with("/opt/jdk/lib/default/libj9vm29.so", &vm), 1);
	assert_int_equal(vm.kind, JAVA_OPENJ9);
	assert_string_equal(vm.name, "OpenJ9");
	assert_non_null(vm.reason);
	assert_int_equal(vm.commands, JAVA_COMMANDS_NO);
	assert_int_equal(detect_with("/apex/lib64/libart.so", &vm), 1);
	assert_int_equal(vm.kind, JAVA_OTHER);
	assert_non_null(vm.reason);
}

static void only_JDK_8_hides_allocations_and_not_with_every_collector(void **state)
{
	static const struct {
		unsigned int major;
		const char *collector, *arguments;
		bool hides;
	} cases[] = {
		{8, "PSScavenge", "", true},
		{8, "PSScavenge", "-Xmx64m -Dx=-XX:-FastTLABRefill -XX:+UseParallelGC", true},
		{8, "Copy", "-XX:+UseSerialGC", true},
		{8, "PCopy", "-XX:+UseConcMarkSweepGC", true},
		{8, "", "", true},
		{8, "PSScavenge", "-XX:-FastTLABRefill", false},
		{8, "PSScavenge", "-Xmx64m -XX:-FastTLABRefill -Dx=1", false},
		{8, "PSScavenge", "-XX:-FastTLABRefill -XX:+FastTLABRefill", true},
		{8, "PSScavenge", "-XX:-FastTLABRefills -XX:-FastTLAB", true},
		{8, "PSScavenge", "-XX:-TieredCompilation", false},
		{8, "G1 incremental collections", "-XX:+UseG1GC", false},
		{11, "PSScavenge", "-XX:+UseParallelGC", false},
		{0, "", "", false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		if (java_hides_allocs(cases[i].major, cases[i].collector,
				      view_str(cases[i].arguments)) != cases[i].hides)
			fail_msg("%u '%s' '%s'", cases[i].major, cases[i].collector,
				 cases[i].arguments);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(versions_are_understood),
		cmocka_unit_test(hotspot_is_known_by_its_library_only),
		cmocka_unit_test(others_are_named_and_refused),
		cmocka_unit_test(only_JDK_8_hides_allocations_and_not_with_every_collector),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
