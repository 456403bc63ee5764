/* tests/fuzz/proc/fuzz_maps.c: any text as the files of /proc: maps, stat, cgroup, environ. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "proc/info.h"
#include "proc/maps.h"
#include "proc/stat.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void assert_clean(const char *name, size_t cap)
{
	assert(memchr(name, 0, cap));
	for (; *name; name++)
		assert((unsigned char)*name >= 0x20 && *name != 0x7f);
}

static void feed_maps(struct view text)
{
	_cleanup_(proc_maps_release) struct proc_maps maps = {0};
	struct err err = {};

	if (proc_maps_parse(text, &maps, &err) < 0) {
		assert(maps.len == 0 && err.text[0]);
		return;
	}
	for (size_t i = 0; i < maps.len; i++) {
		const struct proc_map *m = &maps.maps[i];

		assert(m->start < m->end && (i == 0 || maps.maps[i - 1].end <= m->start));
		assert(proc_maps_find(&maps, m->start) == m);
		assert(proc_maps_find(&maps, m->end - 1) == m);
		(void)strlen(m->path);
	}
}

static void feed_info(struct view text)
{
	_cleanup_free_ char *s = strndup((const char *)text.data, text.len);
	struct proc_info info = {0};

	if (!s)
		return;
	proc_info_parse_cgroup(&info, s);
	proc_info_parse_mounts(&info, s);
	proc_info_parse_environ(&info, text);
	proc_info_name_service(&info);
	assert(info.service[0]);
	assert_clean(info.container, sizeof(info.container));
	assert_clean(info.unit, sizeof(info.unit));
	assert_clean(info.pod, sizeof(info.pod));
	assert_clean(info.service, sizeof(info.service));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct view text = view_of(data, size);
	struct proc_stat st;

	if (size == 0)
		return 0;
	feed_maps(text);
	feed_info(text);
	if (proc_stat_parse(text, &st) == 0)
		assert_clean(st.comm, sizeof(st.comm));
	return 0;
}
