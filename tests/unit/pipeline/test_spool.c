/* tests/unit/pipeline/test_spool.c: messages outlive us, whole and in order, or are counted. */
#include "pipeline/spool/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/crc.h"
#include "base/io.h"
#include "run.h"

static char folder[64];
static char dir[80];

static int make_folder(void **state)
{
	(void)state;
	/* In memory where that can be: a kill is survived by what the kernel has, wherever it is.
	 */
	(void)snprintf(folder, sizeof(folder), "%s/sonde-spool-XXXXXX",
		       access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	if (!mkdtemp(folder))
		return -1;
	(void)snprintf(dir, sizeof(dir), "%s/spool", folder);
	return 0;
}

static int remove_folder(void **state)
{
	(void)state;
	run_in("/", "rm -r %s", folder);
	return 0;
}

static struct spool *spool_with(uint64_t max_bytes, uint64_t segment_bytes)
{
	struct spool *s = NULL;
	struct err err = {0};
	int r = spool_open(&(struct spool_config){.dir = dir,
						  .max_bytes = max_bytes,
						  .segment_bytes = segment_bytes},
			   &s, &err);

	if (r < 0)
		fail_msg("%s", err.text);
	return s;
}

static struct spool_status status_of(const struct spool *s)
{
	struct spool_status status;

	spool_status(s, &status);
	return status;
}

/* Message number i is i, in as many bytes as are asked for. */
static void append(struct spool *s, uint64_t number, size_t bytes)
{
	_cleanup_free_ uint8_t *message = calloc(1, bytes);
	struct err err = {0};

	assert_non_null(message);
	memcpy(message, &number, sizeof(number));
	assert_int_equal(spool_append(s, view_of(message, bytes), &err), 0);
}

/* The number of the oldest message, which goes; UINT64_MAX when there is none. */
static uint64_t take(struct spool *s)
{
	_cleanup_(buf_release) struct buf message = {0};
	struct err err = {0};
	uint64_t number;

	if (spool_peek(s, &message, &err) == 0)
		return UINT64_MAX;
	assert_true(view_u64(buf_view(&message), 0, &number));
	assert_int_equal(spool_pop(s, &err), 0);
	return number;
}

static size_t files(void)
{
	char command[128], line[32];
	FILE *f;

	(void)snprintf(command, sizeof(command), "ls %s | grep -c spool", dir);
	f = popen(command, "r");
	assert_non_null(f);
	assert_non_null(fgets(line, sizeof(line), f));
	(void)pclose(f);
	return (size_t)atoi(line);
}

static void messages_come_back_in_order(void **state)
{
	_cleanup_(spool_closep) struct spool *s = spool_with(1 << 20, 0);
	struct err err = {0};

	(void)state;
	assert_int_equal(take(s), UINT64_MAX);
	/* Nothing was seen, so nothing goes. */
	assert_int_equal(spool_pop(s, &err), 0);
	for (uint64_t i = 0; i < 100; i++)
		append(s, i, 8 + i * 7);
	assert_int_equal(spool_sync(s, &err), 0);
	assert_int_equal(status_of(s).messages, 100);
	for (uint64_t i = 0; i < 100; i++) {
		assert_int_equal(take(s), i);
		append(s, 100 + i, 8);
	}
	for (uint64_t i = 100; i < 200; i++)
		assert_int_equal(take(s), i);
	assert_int_equal(take(s), UINT64_MAX);
	assert_int_equal(status_of(s).messages, 0);
	assert_int_equal(status_of(s).dropped + status_of(s).damaged, 0);
}

static void file_is_as_the_header_says(void **state)
{
	_cleanup_(buf_release) struct buf file = {0}, position = {0};
	_cleanup_(spool_closep) struct spool *s = spool_with(1 << 20, 0);
	char path[128];
	struct err err = {0};
	uint32_t word;
	uint64_t number;

	(void)state;
	assert_int_equal(spool_append(s, view_str("first"), &err), 0);
	append(s, 2, 8);
	assert_int_equal(spool_peek(s, &file, &err), 1);
	assert_true(view_eq(buf_view(&file), view_str("first")));
	assert_int_equal(spool_pop(s, &err), 0);
	buf_clear(&file);
	(void)snprintf(path, sizeof(path), "%s/0000000000000001.spool", dir);
	assert_int_equal(io_read_file(AT_FDCWD, path, &file, &err), 0);
	assert_int_equal(file.len, 16 + 8 + 5 + 8 + 8);
	assert_memory_equal(file.data, "sondespl\1\0\0\0", 12);
	assert_true(view_u32(buf_view(&file), 12, &word));
	assert_int_equal(word, crc32c(view_of(file.data, 12)));
	assert_true(view_u32(buf_view(&file), 16, &word));
	assert_int_equal(word, 5);
	assert_true(view_u32(buf_view(&file), 20, &word));
	assert_int_equal(word, crc32c(view_str("first")));
	assert_memory_equal(file.data + 24, "first", 5);
	(void)snprintf(path, sizeof(path), "%s/position", dir);
	assert_int_equal(io_read_file(AT_FDCWD, path, &position, &err), 0);
	assert_int_equal(position.len, 20);
	assert_true(view_u64(buf_view(&position), 0, &number));
	assert_int_equal(number, 1);
	assert_true(view_u64(buf_view(&position), 8, &number));
	assert_int_equal(number, 16 + 8 + 5);
	assert_true(view_u32(buf_view(&position), 16, &word));
	assert_int_equal(word, crc32c(view_of(position.data, 16)));
}

static void messages_outlive_a_close(void **state)
{
	struct spool *s = spool_with(1 << 20, 4096);

	(void)state;
	for (uint64_t i = 0; i < 100; i++)
		append(s, i, 500);
	for (uint64_t i = 0; i < 30; i++)
		assert_int_equal(take(s), i);
	spool_close(s);
	for (int round = 0; round < 3; round++) {
		s = spool_with(1 << 20, 4096);
		assert_int_equal(status_of(s).messages, 70);
		assert_int_equal(take(s), 30 + round);
		append(s, 100 + (uint64_t)round, 500);
		append(s, 200, 500);
		spool_close(s);
		s = spool_with(1 << 20, 4096);
		assert_int_equal(status_of(s).messages, 71);
		spool_close(s);
		/* What was put last is cut off again, as a torn write would leave it. */
		run_in(dir, "f=$(ls *.spool | tail -1); truncate -s -1 $f");
	}
	s = spool_with(1 << 20, 4096);
	assert_int_equal(status_of(s).damaged, 1);
	for (uint64_t i = 33; i < 103; i++)
		assert_int_equal(take(s), i);
	assert_int_equal(take(s), UINT64_MAX);
	spool_close(s);
	s = spool_with(1 << 20, 4096);
	assert_int_equal(take(s), UINT64_MAX);
	assert_int_equal(status_of(s).damaged, 0);
	spool_close(s);
	spool_close(NULL);
}

static void segments_go_when_all_was_taken(void **state)
{
	struct spool *s = spool_with(1 << 20, 4096);

	(void)state;
	for (uint64_t i = 0; i < 100; i++)
		append(s, i, 1000);
	assert_true(files() > 20);
	assert_true(status_of(s).bytes > 100 * 1000);
	for (uint64_t i = 0; i < 100; i++)
		assert_int_equal(take(s), i);
	assert_int_equal(files(), 1);
	assert_true(status_of(s).bytes <= 4096);
	spool_close(s);
}

static void oldest_go_when_the_limit_is_reached(void **state)
{
	struct spool *s = spool_with(64 << 10, 4096);
	_cleanup_free_ uint8_t *large = calloc(1, 64 << 10);
	uint64_t first, n = 0;
	struct err err = {0};

	(void)state;
	for (uint64_t i = 0; i < 1000; i++) {
		append(s, i, 1000);
		assert_true(status_of(s).bytes <= 64 << 10);
	}
	assert_int_equal(status_of(s).messages + status_of(s).dropped, 1000);
	assert_true(status_of(s).messages > 50);
	/* What is left are the last ones. */
	first = take(s);
	assert_int_equal(first, status_of(s).dropped);
	for (n = first + 1; n < 1000; n++)
		assert_int_equal(take(s), n);
	/* One that fills all of it. */
	append(s, 1000, 1000);
	assert_int_equal(spool_append(s, view_of(large, (64 << 10) - 24), &err), 0);
	assert_int_equal(take(s), 0);
	assert_int_equal(status_of(s).messages, 0);
	assert_int_equal(spool_append(s, view_of(large, (64 << 10) - 23), &err), -E2BIG);
	assert_int_equal(spool_append(s, view_of(large, 0), &err), -EINVAL);
	spool_close(s);
	/* A limit that is lower than before. */
	s = spool_with(64 << 10, 4096);
	for (uint64_t i = 0; i < 60; i++)
		append(s, i, 1000);
	spool_close(s);
	s = spool_with(16 << 10, 4096);
	assert_true(status_of(s).bytes <= 16 << 10);
	assert_int_equal(take(s), status_of(s).dropped);
	spool_close(s);
}

static void message_that_was_dropped_meanwhile_takes_no_other_with_it(void **state)
{
	_cleanup_(buf_release) struct buf message = {0};
	_cleanup_(spool_closep) struct spool *s = spool_with(8 << 10, 1024);
	struct err err = {0};
	uint64_t oldest;

	(void)state;
	for (uint64_t i = 0; i < 8; i++)
		append(s, i, 900);
	assert_int_equal(spool_peek(s, &message, &err), 1);
	/* While it is being sent, it is pushed out. */
	for (uint64_t i = 8; i < 12; i++)
		append(s, i, 900);
	oldest = status_of(s).dropped;
	assert_true(oldest > 0);
	assert_int_equal(spool_pop(s, &err), 0);
	assert_int_equal(take(s), oldest);
}

static void damaged_messages_are_skipped_and_counted(void **state)
{
	struct spool *s = spool_with(1 << 20, 4096);

	(void)state;
	for (uint64_t i = 0; i < 12; i++)
		append(s, i, 1000);
	/* Of the first segment the second message, of the second the length of its first one. */
	run_in(dir, "printf x | dd of=0000000000000001.spool bs=1 seek=$((16 + 1008 + 500)) "
		    "conv=notrunc; printf '\\377\\377\\377\\377' | dd of=0000000000000002.spool "
		    "bs=1 seek=16 conv=notrunc");
	assert_int_equal(take(s), 0);
	assert_int_equal(take(s), 2);
	assert_int_equal(take(s), 3);
	/* Of the second, nobody knows where the others begin, or how many they are. */
	for (uint64_t i = 8; i < 12; i++)
		assert_int_equal(take(s), i);
	assert_int_equal(take(s), UINT64_MAX);
	assert_int_equal(status_of(s).damaged, 2);
	assert_int_equal(status_of(s).messages, 0);
	spool_close(s);
}

static void files_that_are_not_ours_do_no_harm(void **state)
{
	static const uint8_t large[4096];
	struct spool *s = spool_with(1 << 20, 4096);
	struct err err = {0};

	(void)state;
	for (uint64_t i = 0; i < 8; i++)
		append(s, i, 1000);
	spool_close(s);
	run_in(dir,
	       "mkfifo 0000000000000007.spool; ln -s /etc/passwd 0000000000000008.spool; "
	       "mkdir 0000000000000009.spool; echo hello, what is this > 0000000000000010.spool; "
	       "touch 0000000000000011.spool 12.spool 00000000000000xx.spool; "
	       "truncate -s 1T 0000000000000013.spool; rm -f position; ln -s /etc/passwd position");
	s = spool_with(1 << 20, 4096);
	/* The text, and the one that is too large. */
	assert_int_equal(status_of(s).damaged, 2);
	append(s, 8, 1000);
	append(s, 9, 4000);
	for (uint64_t i = 0; i < 10; i++)
		assert_int_equal(take(s), i);
	assert_int_equal(take(s), UINT64_MAX);
	spool_close(s);
	/* The highest number there is leaves none for the next segment. */
	run_in(dir, "touch 9999999999999999.spool");
	s = spool_with(1 << 20, 4096);
	assert_int_equal(spool_append(s, view_of(large, sizeof(large)), &err), -EOVERFLOW);
	assert_string_equal(err.remedy, "empty the directory");
	spool_close(s);
}

static void position_of_something_else_is_not_believed(void **state)
{
	static const struct {
		uint64_t number;
		uint64_t at;
		uint64_t first; /* that comes */
	} positions[] = {
		{0, 16, 0},	    {1, 16, 0},		{1, 16 + 1008, 1},   {1, 16 + 1007, 0},
		{1, 0, 0},	    {1, UINT64_MAX, 0}, {2, 16, 4},	     {2, 16 + 4 * 1008, 8},
		{3, UINT64_MAX, 8}, {4, 16, 0},		{UINT64_MAX, 16, 0},
	};
	char path[128];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(positions); i++) {
		struct spool *s = spool_with(1 << 20, 4096);
		uint8_t bytes[20];
		struct err err = {0};
		uint32_t crc;

		for (uint64_t n = 0; n < 12; n++)
			append(s, n, 1000);
		spool_close(s);
		memcpy(bytes, &positions[i].number, 8);
		memcpy(bytes + 8, &positions[i].at, 8);
		crc = crc32c(view_of(bytes, 16));
		memcpy(bytes + 16, &crc, 4);
		(void)snprintf(path, sizeof(path), "%s/position", dir);
		assert_int_equal(io_write_file(path, view_of(bytes, 20), &err), 0);
		s = spool_with(1 << 20, 4096);
		assert_int_equal(status_of(s).messages, 12 - positions[i].first);
		for (uint64_t n = positions[i].first; n < 12; n++)
			assert_int_equal(take(s), n);
		assert_int_equal(take(s), UINT64_MAX);
		spool_close(s);
		run_in(dir, "rm -f *");
	}
}

static void folder_must_be_ours_alone(void **state)
{
	struct spool_config config = {.dir = dir, .max_bytes = 1 << 20};
	struct spool *s = spool_with(1 << 20, 0), *other = NULL;
	struct err err = {0};
	struct stat st;

	(void)state;
	assert_int_equal(stat(dir, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	assert_int_equal(spool_open(&config, &other, &err), -EBUSY);
	assert_non_null(strstr(err.text, "another process"));
	spool_close(s);
	assert_int_equal(chmod(dir, 0750), 0);
	assert_int_equal(spool_open(&config, &other, &err), -EPERM);
	assert_non_null(strstr(err.remedy, "chmod 700"));
	assert_int_equal(chmod(dir, 0700), 0);
	if (geteuid() == 0) {
		assert_int_equal(chown(dir, 12345, 0), 0);
		assert_int_equal(spool_open(&config, &other, &err), -EPERM);
		assert_non_null(strstr(err.remedy, "chown 0"));
	}
	run_in(folder, "rmdir spool; mkdir -m 700 real; ln -s real spool");
	assert_true(spool_open(&config, &other, &err) < 0);
	assert_non_null(strstr(err.text, dir));
	run_in(folder, "rm spool; touch spool");
	assert_int_equal(spool_open(&config, &other, &err), -ENOTDIR);
	config.dir = "/nonexistent/spool";
	assert_int_equal(spool_open(&config, &other, &err), -ENOENT);
	config.max_bytes = 0;
	assert_int_equal(spool_open(&config, &other, &err), -EINVAL);
}

/* --- kill -9 --------------------------------------------------------------------------------- */

/* What the writer says: so far it was synced, so far taken. */
struct progress {
	uint64_t synced;
	uint64_t popped;
};

/* Every byte depends on the number, so that a torn message is seen. */
static size_t message_make(uint64_t number, uint8_t *message)
{
	size_t bytes = 16 + number * 7919 % 3000;

	for (size_t i = 8; i < bytes; i++)
		message[i] = (uint8_t)(number * 31 + i);
	memcpy(message, &number, sizeof(number));
	return bytes;
}

static void tell(int fd, const struct progress *progress)
{
	if (write(fd, progress, sizeof(*progress)) != sizeof(*progress))
		_exit(1);
}

/* Never comes back. Says what it has done after it did. */
static void writer(int fd, struct progress now, uint64_t next)
{
	static uint8_t message[4096];
	struct buf got = {0};
	struct spool *s = NULL;
	struct err err = {0};

	if (spool_open(&(struct spool_config){.dir = dir,
					      .max_bytes = 64 << 20,
					      .segment_bytes = 256 << 10},
		       &s, &err) < 0)
		_exit(1);
	for (;; next++) {
		if (spool_append(s, view_of(message, message_make(next, message)), &err) < 0)
			_exit(2);
		if (next % 5 == 4) {
			if (spool_sync(s, &err) < 0)
				_exit(3);
			now.synced = next + 1;
			tell(fd, &now);
		}
		if (next % 3 == 2) {
			if (spool_peek(s, &got, &err) != 1)
				_exit(4);
			memcpy(&now.popped, got.data, 8);
			now.popped++;
			if (spool_pop(s, &err) < 0)
				_exit(5);
			tell(fd, &now);
		}
	}
}

/* Reads what the writer said until it is gone. */
static void listen_and_kill(pid_t pid, int fd, unsigned int lines, struct progress *last)
{
	struct progress p;
	int status;

	while (read(fd, &p, sizeof(p)) == sizeof(p)) {
		*last = p;
		if (lines-- == 0)
			assert_int_equal(kill(pid, SIGKILL), 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* Everything that was synced and not taken is there, once, whole and in order. */
static uint64_t check_what_is_left(const struct progress *progress)
{
	struct spool *s = spool_with(64 << 20, 256 << 10);
	_cleanup_(buf_release) struct buf message = {0};
	uint8_t want[4096];
	uint64_t number, first = UINT64_MAX, next = 0;
	struct err err = {0};

	assert_int_equal(status_of(s).dropped, 0);
	/* At most the message that was being written. */
	assert_true(status_of(s).damaged <= 1);
	while (spool_peek(s, &message, &err) == 1) {
		assert_true(view_u64(buf_view(&message), 0, &number));
		if (first == UINT64_MAX)
			first = next = number;
		assert_int_equal(number, next);
		assert_int_equal(message.len, message_make(number, want));
		assert_memory_equal(message.data, want, message.len);
		assert_int_equal(spool_pop(s, &err), 0);
		next++;
	}
	assert_true(status_of(s).damaged <= 1);
	assert_int_equal(status_of(s).messages, 0);
	/* One more may have been taken than it had the time to say. */
	if (first == UINT64_MAX)
		assert_true(progress->synced <= progress->popped + 1);
	else
		assert_true(first >= progress->popped && first <= progress->popped + 1 &&
			    next >= progress->synced);
	spool_close(s);
	return first == UINT64_MAX ? progress->popped : next;
}

static void every_synced_message_survives_a_kill(void **state)
{
	struct progress progress = {0};
	uint64_t next = 0;
	unsigned int seed = 1;

	(void)state;
	for (int round = 0; round < 200; round++) {
		int pipe_fds[2];
		pid_t pid;

		assert_int_equal(pipe(pipe_fds), 0);
		pid = fork();
		assert_true(pid >= 0);
		if (pid == 0) {
			(void)close(pipe_fds[0]);
			writer(pipe_fds[1], progress, next);
		}
		(void)close(pipe_fds[1]);
		listen_and_kill(pid, pipe_fds[0], (unsigned int)rand_r(&seed) % 200, &progress);
		(void)close(pipe_fds[0]);
		next = check_what_is_left(&progress);
		progress = (struct progress){.synced = next, .popped = next};
	}
	assert_true(next > 5000);
}

/* --- a full disk ----------------------------------------------------------------------------- */

/* In a mount namespace of its own, with a disk of 256 KB. What went wrong, or 0. */
static int fill_the_disk(void)
{
	static uint8_t message[16 << 10];
	struct spool_status before, after;
	struct spool *s = NULL;
	struct err err = {0};
	uint64_t number = 0, first;
	struct buf got = {0};
	int fd;

	if (spool_open(&(struct spool_config){.dir = dir,
					      .max_bytes = 64 << 20,
					      .segment_bytes = 32 << 10},
		       &s, &err) < 0)
		return 2;
	/* It goes on, at the cost of the oldest. */
	for (; number < 100; number++) {
		memcpy(message, &number, sizeof(number));
		if (spool_append(s, view_of(message, sizeof(message)), &err) < 0)
			return 3;
	}
	spool_status(s, &before);
	if (before.dropped == 0 || before.dropped + before.messages != number)
		return 4;
	if (spool_peek(s, &got, &err) != 1)
		return 5;
	memcpy(&first, got.data, 8);
	if (first != before.dropped)
		return 6;
	/* Somebody else takes all the space that is left, and all that we give up. */
	fd = open("hog", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	for (int i = 0; i < 1000; i++) {
		while (write(fd, message, 4096) > 0 || write(fd, message, 1) > 0)
			;
		if (spool_append(s, view_of(message, sizeof(message)), &err) < 0)
			break;
	}
	if (!strstr(err.text, "No space") || !err.remedy[0])
		return 7;
	/* There is room again. */
	if (ftruncate(fd, 0) < 0)
		return 8;
	number = 1234;
	memcpy(message, &number, sizeof(number));
	if (spool_append(s, view_of(message, sizeof(message)), &err) < 0)
		return 9;
	/* Positions too. */
	for (first = 0; spool_peek(s, &got, &err) == 1;) {
		memcpy(&first, got.data, 8);
		if (spool_pop(s, &err) < 0)
			return 10;
	}
	spool_status(s, &after);
	buf_release(&got);
	spool_close(s);
	(void)close(fd);
	return first != 1234 || after.damaged ? 11 : 0;
}

static void full_disk_costs_the_oldest_and_is_said(void **state)
{
	int status = 0;
	pid_t pid = fork();

	(void)state;
	assert_true(pid >= 0);
	if (pid == 0) {
		if (unshare(CLONE_NEWNS) < 0 ||
		    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
		    mount("tmpfs", folder, "tmpfs", 0, "size=256k") < 0 || chdir(folder) < 0)
			_exit(77);
		_exit(fill_the_disk());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

#define SPOOL_TEST(f) cmocka_unit_test_setup_teardown(f, make_folder, remove_folder)

int main(void)
{
	const struct CMUnitTest tests[] = {
		SPOOL_TEST(messages_come_back_in_order),
		SPOOL_TEST(file_is_as_the_header_says),
		SPOOL_TEST(messages_outlive_a_close),
		SPOOL_TEST(segments_go_when_all_was_taken),
		SPOOL_TEST(oldest_go_when_the_limit_is_reached),
		SPOOL_TEST(message_that_was_dropped_meanwhile_takes_no_other_with_it),
		SPOOL_TEST(damaged_messages_are_skipped_and_counted),
		SPOOL_TEST(files_that_are_not_ours_do_no_harm),
		SPOOL_TEST(position_of_something_else_is_not_believed),
		SPOOL_TEST(folder_must_be_ours_alone),
		SPOOL_TEST(every_synced_message_survives_a_kill),
		SPOOL_TEST(full_disk_costs_the_oldest_and_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
