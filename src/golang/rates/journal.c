/* src/golang/rates/journal.c: see journal.h. */
#include "golang/rates/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"

#define JOURNAL_NAME "forced-rates"
#define JOURNAL_BESIDE JOURNAL_NAME ".new"
#define JOURNAL_LOCK JOURNAL_NAME ".lock"
#define JOURNAL_LINE_MAX ((size_t)128)
#define JOURNAL_BYTES_MAX (GOLANG_RATE_NOTES_MAX * JOURNAL_LINE_MAX)
/* Others hold the lock only while writing one small file. */
#define JOURNAL_PATIENCE_NS (10 * NS_PER_SEC)
#define JOURNAL_PAUSE_NS (5 * NS_PER_MS)

struct golang_rate_journal {
	char *dir;
};

/* The directory and its lock while the file is read or changed. */
struct journal_session {
	const struct golang_rate_journal *journal;
	int dirfd;
	int lock;
	struct golang_rate_note *notes;
	size_t len;
};

static const char *const kind_names[] = {
	[GOLANG_RATE_HEAP] = "",
	[GOLANG_RATE_BLOCK] = "block",
	[GOLANG_RATE_MUTEX] = "mutex",
};

int golang_rate_journal_open(const char *dir, struct golang_rate_journal **ret_journal,
			     struct err *err)
{
	_cleanup_(golang_rate_journal_closep) struct golang_rate_journal *j = calloc(1, sizeof(*j));

	if (!j)
		return err_oom(err);
	j->dir = strdup(dir);
	if (!j->dir)
		return err_oom(err);
	*ret_journal = TAKE_PTR(j);
	return 0;
}

void golang_rate_journal_close(struct golang_rate_journal *j)
{
	if (!j)
		return;
	free(j->dir);
	free(j);
}

/* Removes the first word of the line; false if there is none. */
static bool line_word(struct view *line, char dst[static 32])
{
	size_t n = 0;

	while (n < line->len && line->data[n] != ' ')
		n++;
	if (n == 0 || n >= 32)
		return false;
	memcpy(dst, line->data, n);
	dst[n] = 0;
	/* A blank must be followed by another word. */
	*line = view_of(line->data + n, line->len - n);
	if (line->len == 1)
		return false;
	if (line->len)
		*line = view_of(line->data + 1, line->len - 1);
	return true;
}

static bool line_number(struct view *line, int base, uint64_t max, uint64_t *ret_number)
{
	static const char digits[] = "0123456789abcdef";
	char word[32];
	char *end;

	if (!line_word(line, word) || strspn(word, digits) != strlen(word))
		return false;
	errno = 0;
	*ret_number = strtoull(word, &end, base);
	return !errno && !*end && *ret_number <= max;
}

/* A program may have set a negative rate. */
static bool line_rate(struct view *line, int64_t *ret_rate)
{
	bool negative = line->len && line->data[0] == '-';
	uint64_t number;

	if (negative)
		*line = view_of(line->data + 1, line->len - 1);
	if (!line_number(line, 10, (uint64_t)INT64_MAX + negative, &number))
		return false;
	*ret_rate = (int64_t)(negative ? 0 - number : number);
	return true;
}

static bool line_kind(struct view *line, enum golang_rate_kind *ret_kind)
{
	char word[32];

	if (!line->len) {
		*ret_kind = GOLANG_RATE_HEAP;
		return true;
	}
	if (!line_word(line, word) || line->len)
		return false;
	for (size_t i = GOLANG_RATE_BLOCK; i < ARRAY_SIZE(kind_names); i++)
		if (strcmp(word, kind_names[i]) == 0) {
			*ret_kind = (enum golang_rate_kind)i;
			return true;
		}
	return false;
}

static bool line_parse(struct view line, struct golang_rate_note *ret_note)
{
	struct golang_rate_note x;
	uint64_t pid;

	if (!line_number(&line, 10, INT_MAX, &pid) || pid == 0 ||
	    !line_number(&line, 10, UINT64_MAX, &x.id.start_ticks) ||
	    !line_number(&line, 16, UINT64_MAX, &x.space) || !line_rate(&line, &x.old) ||
	    !line_rate(&line, &x.ours) || !line_kind(&line, &x.kind))
		return false;
	x.id.pid = (pid_t)pid;
	*ret_note = x;
	return true;
}

size_t golang_rate_notes_parse(struct view text,
			       struct golang_rate_note notes[static GOLANG_RATE_NOTES_MAX])
{
	size_t len = 0, begin = 0;

	while (begin < text.len && len < GOLANG_RATE_NOTES_MAX) {
		const uint8_t *newline = memchr(text.data + begin, '\n', text.len - begin);
		size_t end = newline ? (size_t)(newline - text.data) : text.len;

		/* A line without a newline is incomplete. */
		if (newline && line_parse(view_of(text.data + begin, end - begin), &notes[len]))
			len++;
		begin = end + 1;
	}
	return len;
}

int golang_rate_notes_print(const struct golang_rate_note *notes, size_t len, struct buf *out)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < len; i++) {
		const struct golang_rate_note *x = &notes[i];

		r = buf_printf(out, "%d %" PRIu64 " %" PRIx64 " %" PRId64 " %" PRId64 "%s%s\n",
			       (int)x->id.pid, x->id.start_ticks, x->space, x->old, x->ours,
			       x->kind ? " " : "", kind_names[x->kind]);
	}
	return r;
}

/* Returns r, with the path in the message. */
static int session_failed(const struct journal_session *s, int r, struct err *err)
{
	return err_lack(err, r, ERR_CAUSE_DISK, GOLANG_RATE_JOURNAL_REMEDY,
			"cannot record forced rates in %s/" JOURNAL_NAME ": %s", s->journal->dir,
			strerror(-r));
}

static int session_forged(const struct journal_session *s, const char *name, struct err *err)
{
	return err_lack(err, -EBADMSG, ERR_CAUSE_MALFORMED,
			"find out who put it there, and remove it",
			"%s%s%s is writable by others; no rate is restored from it",
			s->journal->dir, name[0] ? "/" : "", name);
}

static int session_open_file(const struct journal_session *s, const char *name, int flags,
			     int *ret_fd, struct err *err)
{
	_cleanup_close_ int fd = openat(
		s->dirfd, name, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0600);
	struct stat st;

	if (fd < 0 && errno == ENOENT)
		return -ENOENT;
	if (fd < 0 && errno == ELOOP)
		return session_forged(s, name, err);
	if (fd < 0 || fstat(fd, &st) < 0)
		return session_failed(s, -errno, err);
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_nlink != 1 ||
	    (st.st_mode & (S_IWGRP | S_IWOTH)))
		return session_forged(s, name, err);
	*ret_fd = TAKE_FD(fd);
	return 0;
}

static int session_lock(struct journal_session *s, struct err *err)
{
	uint64_t until = clock_mono_ns() + JOURNAL_PATIENCE_NS;
	int r = session_open_file(s, JOURNAL_LOCK, O_RDWR | O_CREAT, &s->lock, err);

	if (r < 0)
		return r;
	while (flock(s->lock, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return session_failed(s, -errno, err);
		if (clock_mono_ns() > until)
			return session_failed(s, -EBUSY, err);
		clock_sleep_ns(JOURNAL_PAUSE_NS);
	}
	return 0;
}

static int session_read(struct journal_session *s, struct err *err)
{
	_cleanup_(buf_release) struct buf text = buf_with_max(JOURNAL_BYTES_MAX);
	_cleanup_close_ int fd = -1;
	int r;

	s->notes = calloc(GOLANG_RATE_NOTES_MAX, sizeof(*s->notes));
	if (!s->notes)
		return err_oom(err);
	r = session_open_file(s, JOURNAL_NAME, O_RDONLY, &fd, err);
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return r;
	r = io_read_all(fd, &text);
	/* Ours are never that long. */
	if (r == -E2BIG)
		return session_forged(s, JOURNAL_NAME, err);
	if (r < 0)
		return session_failed(s, r, err);
	s->len = golang_rate_notes_parse(buf_view(&text), s->notes);
	return 0;
}

static void session_end(struct journal_session *s)
{
	closep(&s->lock);
	closep(&s->dirfd);
	free(s->notes);
}

/* -ENOENT: no such directory. Reading needs no lock: the file is replaced atomically. */
static int session_begin(const struct golang_rate_journal *j, bool writes,
			 struct journal_session *s, struct err *err)
{
	struct stat st;
	int r = 0;

	*s = (struct journal_session){.journal = j, .dirfd = -1, .lock = -1};
	s->dirfd = open(j->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->dirfd < 0 || fstat(s->dirfd, &st) < 0)
		return session_failed(s, -errno, err);
	/* The file is checked, too, but others must not be able to remove it. */
	if ((st.st_uid != geteuid() && st.st_uid != 0) || (st.st_mode & S_IWOTH))
		return session_forged(s, "", err);
	if (writes)
		r = session_lock(s, err);
	return r < 0 ? r : session_read(s, err);
}

/* Writes all notes to a temporary file, syncs it, and renames it into place. */
static int session_save(const struct journal_session *s, struct err *err)
{
	_cleanup_(buf_release) struct buf text = buf_with_max(JOURNAL_BYTES_MAX);
	_cleanup_close_ int fd = -1;
	int r = golang_rate_notes_print(s->notes, s->len, &text);

	if (r < 0)
		return err_oom(err);
	/* Left by a killed sonde, or planted: never write through it. */
	(void)unlinkat(s->dirfd, JOURNAL_BESIDE, 0);
	fd = openat(s->dirfd, JOURNAL_BESIDE, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
		    0600);
	r = fd < 0 ? -errno : io_write_full(fd, text.data, text.len);
	if (r == 0 &&
	    (fsync(fd) < 0 || renameat(s->dirfd, JOURNAL_BESIDE, s->dirfd, JOURNAL_NAME) < 0 ||
	     fsync(s->dirfd) < 0))
		r = -errno;
	return r < 0 ? session_failed(s, r, err) : 0;
}

static size_t session_find(const struct journal_session *s, const struct golang_rate_note *note)
{
	size_t i = 0;

	while (i < s->len && (s->notes[i].id.pid != note->id.pid ||
			      s->notes[i].id.start_ticks != note->id.start_ticks ||
			      s->notes[i].kind != note->kind))
		i++;
	return i;
}

static bool session_has(const struct journal_session *s, size_t i,
			const struct golang_rate_note *note)
{
	return i < s->len && s->notes[i].space == note->space && s->notes[i].old == note->old &&
	       s->notes[i].ours == note->ours;
}

int golang_rate_journal_add(const struct golang_rate_journal *j,
			    const struct golang_rate_note *note, struct err *err)
{
	_cleanup_(session_end) struct journal_session s;
	int r = session_begin(j, true, &s, err);
	size_t i;

	if (r < 0 || !s.notes)
		return r;
	i = session_find(&s, note);
	if (i == GOLANG_RATE_NOTES_MAX)
		return err_set(err, -E2BIG, "more than %zu processes already have a forced rate",
			       GOLANG_RATE_NOTES_MAX);
	s.len = MAX(s.len, i + 1);
	s.notes[i] = *note;
	return session_save(&s, err);
}

int golang_rate_journal_remove(const struct golang_rate_journal *j,
			       const struct golang_rate_note *note, struct err *err)
{
	_cleanup_(session_end) struct journal_session s;
	int r = session_begin(j, true, &s, err);
	size_t i;

	if (r < 0)
		return r;
	i = session_find(&s, note);
	if (!session_has(&s, i, note))
		return 0;
	s.notes[i] = s.notes[--s.len];
	return session_save(&s, err);
}

int golang_rate_journal_has(const struct golang_rate_journal *j,
			    const struct golang_rate_note *note, struct err *err)
{
	_cleanup_(session_end) struct journal_session s;
	int r = session_begin(j, false, &s, err);

	return r < 0 ? r : session_has(&s, session_find(&s, note), note);
}

int golang_rate_journal_read(const struct golang_rate_journal *j,
			     struct golang_rate_note **ret_notes, size_t *ret_len, struct err *err)
{
	_cleanup_(session_end) struct journal_session s;
	int r = session_begin(j, false, &s, err);

	*ret_notes = NULL;
	*ret_len = 0;
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	*ret_notes = TAKE_PTR(s.notes);
	*ret_len = s.len;
	return 0;
}
