/*
 * tests/fuzz/java/fuzz_jfr.c: whatever bytes come as a recording, the parser refuses them or gives
 * events whose profiles every view can work on; as a file, byte by byte, and while it grows.
 *
 * The first byte chooses: 1: the size in the header is made right, which is hard to guess; 2: fed
 * in pieces; 4: a file that grows.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "java/jfr/profiler.h"
#include "profile/pprof.h"
#include "profile/tree.h"

#define FUZZ_MAX_BYTES ((size_t)8 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

static void check_profile(struct profile *p)
{
	_cleanup_(profile_tree_release) struct profile_tree tree = {0};
	_cleanup_(buf_release) struct buf collapsed = {0};
	_cleanup_(buf_release) struct buf packed = {0};
	struct err err;

	require(profile_n_types(p) > 0);
	require(profile_tree_build(p, 0, &tree, &err) == 0);
	require(profile_collapse(p, 0, &collapsed, &err) == 0);
	require(profile_encode_pprof(p, &packed, &err) == 0);
}

static void check_profiles(struct java_jfr_profiler *profiler)
{
	struct java_jfr_profiler_stats stats;
	struct err err;

	for (int k = 0; k < JAVA_JFR_PROFILE_N; k++) {
		_cleanup_(profile_freep) struct profile *p = NULL;

		require(java_jfr_profiler_take(profiler, (enum java_jfr_profile_kind)k, 0, 0, &p,
					       &err) == 0);
		check_profile(p);
	}
	java_jfr_profiler_stats(profiler, &stats);
}

static int feed(struct java_jfr *j, struct java_jfr_profiler *p, struct view bytes)
{
	struct err err;
	int r = 0;

	for (size_t at = 0; r == 0 && at < bytes.len; at += 997) {
		r = java_jfr_feed(j, view_of(bytes.data + at, MIN(bytes.len - at, (size_t)997)),
				  &err);
		if (r == 0)
			r = java_jfr_profiler_read(p, j, &err);
	}
	return r;
}

/* The second half comes later. */
static int grow(struct java_jfr *j, struct java_jfr_profiler *p, int fd, struct view bytes)
{
	struct err err;
	int r = java_jfr_profiler_read(p, j, &err);

	require(pwrite(fd, bytes.data, bytes.len, 0) == (ssize_t)bytes.len);
	return r < 0 ? r : java_jfr_profiler_read(p, j, &err);
}

static void read_all(struct view bytes, bool fed, bool live)
{
	const struct java_jfr_builder_options labels = {
		.label_threads = true, .label_classes = true, .max_bytes = FUZZ_MAX_BYTES};
	struct java_jfr_options options = {.live = live, .max_bytes = FUZZ_MAX_BYTES};
	_cleanup_(java_jfr_profiler_freep) struct java_jfr_profiler *p = NULL;
	_cleanup_(java_jfr_closep) struct java_jfr *j = NULL;
	_cleanup_close_ int fd = memfd_create("recording", MFD_CLOEXEC);
	size_t first = live ? bytes.len / 2 : bytes.len;
	struct err err;
	int r;

	require(fd >= 0 && write(fd, bytes.data, first) == (ssize_t)first);
	require(java_jfr_profiler_new(&labels, &p, &err) == 0);
	options.queries = java_jfr_profiler_queries(&options.n_queries);
	r = fed ? java_jfr_open_feed("fuzz", &options, &j, &err)
		: java_jfr_open_take(dup(fd), "fuzz", &options, &j, &err);
	if (r == 0 && fed)
		r = feed(j, p, bytes);
	else if (r == 0)
		r = live ? grow(j, p, fd, bytes) : java_jfr_profiler_read(p, j, &err);
	require(r <= 0);
	check_profiles(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy;

	if (size < 2)
		return 0;
	copy = malloc(size - 1);
	require(copy != NULL);
	memcpy(copy, data + 1, size - 1);
	for (size_t i = 0; (data[0] & 1) && size > 16 && i < 8; i++)
		copy[8 + i] = (uint8_t)((size - 1) >> (56 - 8 * i));
	read_all(view_of(copy, size - 1), data[0] & 2, (data[0] & 6) == 4);
	free(copy);
	return 0;
}
