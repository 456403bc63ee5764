/* tests/unit/oom/test_limit.c: limits of made-up control groups, of version 1 and 2. */
#include "oom/limit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/clock.h"

#define MB (UINT64_C(1) << 20)

static char folder[] = "/tmp/sonde-limit-XXXXXX";

/* In its place: who has it open sees it. */
static void put(const char *path, const char *text)
{
	char full[512];
	FILE *f;

	(void)snprintf(full, sizeof(full), "%s/%s", folder, path);
	f = fopen(full, "w");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static void make(const char *path)
{
	char full[512];

	(void)snprintf(full, sizeof(full), "%s/%s", folder, path);
	(void)mkdir(full, 0700);
}

static int setup(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	make("pod");
	make("pod/app");
	return 0;
}

static int teardown(void **state)
{
	char command[128];

	(void)state;
	(void)snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command);
}

static struct oom_mounts mounts_of(const char *root, bool v1)
{
	struct oom_mounts m = {};
	struct oom_mount *mount = v1 ? &m.v1 : &m.v2;

	(void)snprintf(mount->dir, sizeof(mount->dir), "%s", folder);
	(void)snprintf(mount->root, sizeof(mount->root), "%s", root);
	return m;
}

static bool near(const struct oom_mounts *m, const char *cgroup, struct oom_fill *fill)
{
	_cleanup_(oom_limit_closep) struct oom_limit *limit = NULL;

	assert_int_equal(oom_limit_open(m, cgroup, &limit, NULL), 0);
	return oom_limit_is_near(limit, 90, fill);
}

static void mounts_are_found_of_both_versions(void **state)
{
	struct oom_mounts m;

	(void)state;
	oom_mounts_parse(
		"25 1 0:22 / /sys rw - sysfs sysfs rw\n"
		"30 25 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,memoryless\n"
		"31 25 0:27 /a /sys/fs/cgroup/memory rw shared:9 - cgroup cgroup rw,memory\n"
		"32 25 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
		"33 25 0:28 / /again rw - cgroup2 cgroup2 rw\n"
		"no line at all\n34 - x\n - cgroup2 a b\n",
		false, &m);
	assert_string_equal(m.v1.dir, "/sys/fs/cgroup/memory");
	assert_string_equal(m.v1.root, "/a");
	assert_string_equal(m.v2.dir, "/sys/fs/cgroup/unified");
	assert_string_equal(m.v2.root, "");
}

static void group_is_near_from_the_share_on(void **state)
{
	struct oom_mounts m = mounts_of("", false);
	struct oom_fill fill;

	(void)state;
	put("pod/app/memory.max", "104857600\n");
	put("pod/app/memory.stat", "anon 1\ninactive_file 0\n");
	put("pod/app/memory.current", "94371839\n");
	assert_false(near(&m, "0::/pod/app\n", &fill));
	put("pod/app/memory.current", "94371840\n");
	assert_true(near(&m, "0::/pod/app\n", &fill));
	assert_int_equal(fill.limit_bytes, 100 * MB);
	assert_int_equal(fill.used_bytes, 90 * MB);
}

static void cache_that_would_be_dropped_does_not_count(void **state)
{
	struct oom_mounts m = mounts_of("", false);
	struct oom_fill fill;

	(void)state;
	put("pod/app/memory.max", "104857600\n");
	put("pod/app/memory.current", "104857600\n");
	put("pod/app/memory.stat", "anon 1\nactive_file 104857600\ninactive_file 10485761\n");
	assert_false(near(&m, "0::/pod/app\n", &fill));
	put("pod/app/memory.stat", "anon 1\nactive_file 104857600\ninactive_file 10485760\n");
	assert_true(near(&m, "0::/pod/app\n", &fill));
	/* More of it than there is memory is no negative use. */
	put("pod/app/memory.stat", "anon 1\ninactive_file 99999999999\n");
	assert_false(near(&m, "0::/pod/app\n", &fill));
}

static uint64_t left_s(struct oom_limit *limit, const char *pod, const char *app, uint64_t now_s)
{
	struct oom_fill fill;
	uint64_t left;

	put("pod/memory.current", pod);
	put("pod/app/memory.current", app);
	assert_false(oom_limit_is_near(limit, 90, &fill));
	left = oom_limit_left_ns(limit, 90, now_s * NS_PER_SEC);
	return left == UINT64_MAX ? left : left / NS_PER_SEC;
}

static void time_until_a_limit_is_near_follows_how_fast_groups_grow(void **state)
{
	_cleanup_(oom_limit_closep) struct oom_limit *limit = NULL;
	struct oom_mounts m = mounts_of("", false);

	(void)state;
	put("pod/memory.max", "1000\n");
	put("pod/memory.stat", "inactive_file 0\n");
	put("pod/memory.current", "0\n");
	put("pod/app/memory.max", "100\n");
	put("pod/app/memory.stat", "anon 1\ninactive_file 50\n");
	put("pod/app/memory.current", "0\n");
	assert_int_equal(oom_limit_open(&m, "0::/pod/app\n", &limit, NULL), 0);
	/* Nothing to compare with yet. */
	assert_int_equal(left_s(limit, "10\n", "10\n", 1), 0);
	/* None grows; one shrinks. */
	assert_true(left_s(limit, "10\n", "5\n", 2) == UINT64_MAX);
	/* 20 in a second: 65 of 90 are missing. */
	assert_int_equal(left_s(limit, "10\n", "25\n", 3), 3);
	/* 10 in four seconds: 55 are missing. */
	assert_int_equal(left_s(limit, "10\n", "35\n", 7), 22);
	/* The one above is faster: 500 in a second, 390 of 900 are missing. */
	assert_int_equal(left_s(limit, "510\n", "36\n", 8), 0);
	/* Full of cache that would be dropped: not near, and not coming nearer. */
	assert_true(left_s(limit, "510\n", "99\n", 9) == UINT64_MAX);
}

static void limit_of_a_group_above_counts(void **state)
{
	struct oom_mounts m = mounts_of("", false);
	struct oom_fill fill;

	(void)state;
	put("pod/app/memory.max", "max\n");
	put("pod/app/memory.current", "1\n");
	put("pod/memory.max", "1048576\n");
	put("pod/memory.current", "1048576\n");
	assert_true(near(&m, "0::/pod/app\n", &fill));
	assert_int_equal(fill.limit_bytes, MB);
	put("pod/memory.max", "max\n");
	assert_false(near(&m, "0::/pod/app\n", &fill));
}

static void version_1_is_read_below_what_is_mounted(void **state)
{
	struct oom_mounts m = mounts_of("/docker", true);
	const char *cgroup = "5:cpu,cpuacct:/x\n4:memory:/docker/pod/app\n0::/pod/app\n";
	struct oom_fill fill;

	(void)state;
	put("pod/app/memory.limit_in_bytes", "1048576\n");
	put("pod/app/memory.usage_in_bytes", "1000000\n");
	assert_true(near(&m, cgroup, &fill));
	put("pod/app/memory.stat", "inactive_file 0\ntotal_inactive_file 1000000\n");
	assert_false(near(&m, cgroup, &fill));
	/* "No limit" is a number. */
	put("pod/app/memory.limit_in_bytes", "9223372036854771712\n");
	assert_false(near(&m, cgroup, &fill));
	/* A group beside the one that is mounted is none of what we see. */
	put("pod/app/memory.limit_in_bytes", "1048576\n");
	assert_false(near(&m, "4:memory:/dockerx/pod/app\n", &fill));
}

static void what_is_forged_or_outside_is_not_looked_at(void **state)
{
	struct oom_mounts m = mounts_of("", false);
	struct oom_fill fill;
	char path[8192];

	(void)state;
	put("pod/app/memory.max", "0\n");
	put("pod/app/memory.current", "5\n");
	assert_false(near(&m, "0::/pod/app\n", &fill));
	put("pod/app/memory.max", "-5\n");
	assert_false(near(&m, "0::/pod/app\n", &fill));
	put("pod/app/memory.max", "1\n");
	assert_false(near(&m, "0::/pod/../pod/app\n", &fill));
	assert_false(near(&m, "0::pod/app\n", &fill));
	assert_false(near(&m, "0:/pod/app", &fill));
	memset(path, '/', sizeof(path) - 1);
	memcpy(path, "0::", 3);
	path[sizeof(path) - 1] = 0;
	assert_false(near(&m, path, &fill));
	assert_true(near(&m, "0::/pod/app", &fill));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mounts_are_found_of_both_versions),
		cmocka_unit_test(group_is_near_from_the_share_on),
		cmocka_unit_test(cache_that_would_be_dropped_does_not_count),
		cmocka_unit_test(time_until_a_limit_is_near_follows_how_fast_groups_grow),
		cmocka_unit_test(limit_of_a_group_above_counts),
		cmocka_unit_test(version_1_is_read_below_what_is_mounted),
		cmocka_unit_test(what_is_forged_or_outside_is_not_looked_at),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
