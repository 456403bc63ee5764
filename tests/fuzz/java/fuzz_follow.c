/*
 * tests/fuzz/java/fuzz_follow.c: whatever a target does to the directory of its recordings while it
 * is followed, the follower goes on, and gives events that profiles can be made of (fuzz_jfr.c has
 * more to say of these).
 *
 * The input is a list of steps: what to do, with which of a few files, and how many of the bytes
 * that follow belong to it.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "java/jfr/follow.h"
#include "java/jfr/profiler.h"

#define FUZZ_MAX_BYTES ((size_t)1 << 20)
#define FUZZ_MAX_STEPS 64

enum step {
	STEP_WRITE,  /* a new file of these bytes */
	STEP_APPEND, /* more of them */
	STEP_PATCH,  /* these bytes, from the one that the first of them says */
	STEP_SIZES,  /* the header says how long it is, which is hard to guess */
	STEP_CUT,
	STEP_REPLACE, /* by a file of another name */
	STEP_REMOVE,
	STEP_LINK,
	STEP_FOLDER,
	STEP_FOLLOW,
	STEP_N,
};

static const char *const folders[] = {"2026_01_02_03_04_05_77", "2026_01_02_03_04_06_77"};
static const char *const files[] = {
	"2026_01_02_03_04_05_77/2026_01_02_03_04_05.jfr",
	"2026_01_02_03_04_05_77/2026_01_02_03_04_06.jfr",
	"2026_01_02_03_04_05_77/2026_01_02_03_04_06_1.jfr",
	"2026_01_02_03_04_06_77/2026_01_02_03_04_07.jfr",
	"2026_01_02_03_04_05_77/notes.jfr",
};

struct run {
	int dirfd;
	struct java_jfr_follow *follow;
	struct java_jfr_profiler *profiler;
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

/* One for all inputs, in memory where there is such a file system. */
static char directory_path[64];

static void remove_directory(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
		char path[128];

		(void)snprintf(path, sizeof(path), "%s/%s", directory_path, folders[i]);
		(void)rmdir(path);
	}
	(void)rmdir(directory_path);
}

static int directory(void)
{
	static int dirfd = -1;

	if (dirfd >= 0)
		return dirfd;
	(void)snprintf(directory_path, sizeof(directory_path), "%s/sonde-fuzz-XXXXXX",
		       access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	require(mkdtemp(directory_path) != NULL && atexit(remove_directory) == 0);
	dirfd = open(directory_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	require(dirfd >= 0);
	require(mkdirat(dirfd, folders[0], 0700) == 0 && mkdirat(dirfd, folders[1], 0700) == 0);
	return dirfd;
}

static void write_file(int dirfd, const char *name, int flags, off_t at, struct view bytes)
{
	int fd = openat(dirfd, name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | flags, 0600);

	if (fd < 0)
		return;
	require(pwrite(fd, bytes.data, bytes.len, at) == (ssize_t)bytes.len);
	close(fd);
}

static off_t size_of(int dirfd, const char *name)
{
	struct stat st;

	return fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode)
		       ? st.st_size
		       : 0;
}

static void write_sizes(int dirfd, const char *name)
{
	off_t size = size_of(dirfd, name);
	uint8_t bytes[8];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)((uint64_t)size >> (56 - 8 * i));
	if (size >= 16)
		write_file(dirfd, name, 0, 8, view_of(bytes, sizeof(bytes)));
}

static void follow(struct run *run)
{
	struct java_jfr_event e;
	struct err err = {0};
	int r;

	while ((r = java_jfr_follow_next(run->follow, &e, &err)) == 1)
		require(java_jfr_profiler_add(run->profiler, java_jfr_follow_parser(run->follow),
					      &e, &err) == 0);
	require(r == 0);
}

static void take_step(struct run *run, enum step step, uint8_t which, struct view bytes)
{
	const char *name = files[which % ARRAY_SIZE(files)];
	const char *other = files[(which + 1) % ARRAY_SIZE(files)];

	switch (step) {
	case STEP_WRITE:
		write_file(run->dirfd, name, O_CREAT | O_TRUNC, 0, bytes);
		break;
	case STEP_APPEND:
		write_file(run->dirfd, name, 0, size_of(run->dirfd, name), bytes);
		break;
	case STEP_PATCH:
		if (bytes.len > 1)
			write_file(run->dirfd, name, 0, bytes.data[0],
				   view_of(bytes.data + 1, bytes.len - 1));
		break;
	case STEP_SIZES:
		write_sizes(run->dirfd, name);
		break;
	case STEP_CUT:
		write_file(run->dirfd, name, O_TRUNC, 0, view_of("", 0));
		break;
	case STEP_REPLACE:
		(void)renameat(run->dirfd, other, run->dirfd, name);
		break;
	case STEP_REMOVE:
		(void)unlinkat(run->dirfd, name, 0);
		break;
	case STEP_LINK:
		(void)symlinkat(strrchr(other, '/') + 1, run->dirfd, name);
		break;
	case STEP_FOLDER:
		(void)mkdirat(run->dirfd, name, 0700);
		break;
	default:
		follow(run);
	}
}

static void run_steps(struct run *run, const uint8_t *data, size_t size)
{
	for (size_t at = 0, n = 0; n < FUZZ_MAX_STEPS && size - at >= 4; n++) {
		size_t len = (size_t)data[at + 2] << 8 | data[at + 3];

		len = MIN(len, size - at - 4);
		take_step(run, (enum step)(data[at] % STEP_N), data[at + 1],
			  view_of(data + at + 4, len));
		at += 4 + len;
	}
	/* A file that was never finished is given up after some calls. */
	for (int i = 0; i < 4; i++)
		follow(run);
}

static void check_profiles(struct java_jfr_profiler *profiler)
{
	struct err err;

	for (int k = 0; k < JAVA_JFR_PROFILE_N; k++) {
		_cleanup_(profile_freep) struct profile *p = NULL;

		require(java_jfr_profiler_take(profiler, (enum java_jfr_profile_kind)k, 0, 0, &p,
					       &err) == 0);
		require(profile_n_types(p) > 0);
	}
}

static void clear(int dirfd)
{
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		(void)unlinkat(dirfd, files[i], 0);
		(void)unlinkat(dirfd, files[i], AT_REMOVEDIR);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct java_jfr_builder_options labels = {
		.label_threads = true, .label_classes = true, .max_bytes = FUZZ_MAX_BYTES};
	struct java_jfr_options options = {.max_bytes = FUZZ_MAX_BYTES, .patience_ns = 1};
	struct run run = {.dirfd = directory()};
	struct err err;

	options.queries = java_jfr_profiler_queries(&options.n_queries);
	require(java_jfr_follow_open(run.dirfd, &options, &run.follow, &err) == 0);
	require(java_jfr_profiler_new(&labels, &run.profiler, &err) == 0);
	java_jfr_profiler_use_counts(run.profiler);
	run_steps(&run, data, size);
	check_profiles(run.profiler);
	java_jfr_profiler_free(run.profiler);
	java_jfr_follow_close(run.follow);
	clear(run.dirfd);
	return 0;
}
