/*
 * tests/fuzz/proc/fuzz_status.c: any text as /proc/PID/status, as mountinfo and as the groups of a
 * process.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "oom/limit.h"
#include "oom/mounts.h"
#include "proc/aide/foreign.h"
#include "proc/host.h"
#include "proc/status.h"

/* Each group that is looked for is a system call or more. */
#define GROUPS_MAX ((size_t)256)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void feed_status(const char *text)
{
	struct proc_status s;

	if (proc_status_parse(text, &s) == 0)
		assert(s.inner_pid > 0 && s.n_groups <= PROC_STATUS_GROUPS_MAX);
}

static void check_mount(const struct oom_mount *m)
{
	assert(memchr(m->dir, 0, sizeof(m->dir)) && memchr(m->root, 0, sizeof(m->root)));
	assert(m->dir[0] || !m->root[0]);
}

static void feed_mounts(char *text)
{
	static const char path[] = "/proc/sys/kernel/kptr_restrict";
	static struct oom_mounts mounts;
	char dir[256] = "";

	(void)proc_aide_has_mount(text, (uint8_t)text[0]);
	oom_mounts_parse(text, false, &mounts);
	check_mount(&mounts.v1);
	check_mount(&mounts.v2);
	/* Takes the text apart. */
	if (proc_host_parse_cover(text, path, "/proc", dir, sizeof(dir)))
		assert(strlen(dir) > strlen("/proc") && strncmp(dir, path, strlen(dir)) == 0);
}

static void feed_groups(const char *text)
{
	static const struct oom_mounts mounts = {
		.v1 = {.dir = "/nonexistent", .root = "/a"},
		.v2 = {.dir = "/nonexistent"},
	};
	struct oom_limit *limit = NULL;

	assert(oom_limit_open(&mounts, text, &limit, NULL) == 0);
	assert(oom_limit_left_ns(limit, 90, 1) == UINT64_MAX);
	oom_limit_close(limit);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_free_ char *text = strndup((const char *)data, size);

	if (!text)
		return 0;
	feed_status(text);
	feed_mounts(text);
	memcpy(text, data, strnlen((const char *)data, size));
	text[MIN(strlen(text), GROUPS_MAX)] = 0;
	feed_groups(text);
	return 0;
}
