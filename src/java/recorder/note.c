/* src/java/recorder/note.c: see note.h. */
#include "java/recorder/note.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "proc/ns.h"

#define NOTE_PREFIX "java-recording-"
#define NOTE_MAX ((size_t)1024)

static void closedirp(DIR **dir)
{
	if (*dir)
		(void)closedir(*dir);
}

int java_note_make(const struct proc_id *id, struct java_note *ret_note, struct err *err)
{
	struct java_note note = {.id = *id};
	int r = proc_ns_read(id->pid, "mnt", &note.mount_ns);

	if (r < 0)
		return err_set(err, r, "process %d: cannot read its mount namespace: %s",
			       (int)id->pid, strerror(-r));
	if (getrandom(&note.token, sizeof(note.token), 0) != sizeof(note.token))
		return err_set(err, -EIO, "cannot get random numbers from the kernel");
	note.token = note.token ? note.token : 1;
	*ret_note = note;
	return 0;
}

void java_note_dir_name(const struct java_note *note, char dst[JAVA_NOTE_NAME])
{
	(void)snprintf(dst, JAVA_NOTE_NAME, ".sonde-%016" PRIx64, note->token);
}

void java_note_recording_name(const struct java_note *note, char dst[JAVA_NOTE_NAME])
{
	(void)snprintf(dst, JAVA_NOTE_NAME, "sonde-%016" PRIx64, note->token);
}

/* The file, and the temporary one that replaces it once synced. */
struct note_names {
	char name[96];
	char beside[112];
};

static void note_name(const struct java_note *note, struct note_names *names)
{
	(void)snprintf(names->name, sizeof(names->name), NOTE_PREFIX "%d-%" PRIu64,
		       (int)note->id.pid, note->id.start_ticks);
	(void)snprintf(names->beside, sizeof(names->beside), ".%s.new", names->name);
}

static int note_failed(const char *dir, int r, struct err *err)
{
	return err_set(err, r, "cannot record changes to a JVM in %s: %s", dir, strerror(-r));
}

int java_note_save(const char *dir, const struct java_note *note, struct err *err)
{
	_cleanup_(buf_release) struct buf text = buf_with_max(NOTE_MAX);
	_cleanup_close_ int fd = -1, dirfd = -1;
	struct note_names n;
	int r;

	note_name(note, &n);
	if (buf_printf(&text, "%d %" PRIu64 " %" PRIu64 " %" PRIx64 " %s\n", (int)note->id.pid,
		       note->id.start_ticks, note->mount_ns, note->token, note->before) < 0)
		return err_oom(err);
	dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dirfd < 0)
		return note_failed(dir, -errno, err);
	fd = openat(dirfd, n.beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	r = fd < 0 ? -errno : io_write_full(fd, text.data, text.len);
	if (r == 0 &&
	    (fsync(fd) < 0 || renameat(dirfd, n.beside, dirfd, n.name) < 0 || fsync(dirfd) < 0))
		r = -errno;
	if (r < 0)
		(void)unlinkat(dirfd, n.beside, 0);
	return r < 0 ? note_failed(dir, r, err) : 0;
}

int java_note_remove(const char *dir, const struct java_note *note, struct err *err)
{
	_cleanup_close_ int dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct note_names n;

	note_name(note, &n);
	if (dirfd < 0 || (unlinkat(dirfd, n.beside, 0) < 0 && errno != ENOENT) ||
	    (note->token && unlinkat(dirfd, n.name, 0) < 0 && errno != ENOENT) || fsync(dirfd) < 0)
		return note_failed(dir, -errno, err);
	return 0;
}

/* Takes a number and the blank after it; false if there is none. */
static bool note_number(char **line, int base, uint64_t *ret_number)
{
	char *end;

	errno = 0;
	*ret_number = strtoull(*line, &end, base);
	if (errno || end == *line || **line == '-' || *end != ' ')
		return false;
	*line = end + 1;
	return true;
}

int java_note_parse(struct view line, struct java_note *ret_note)
{
	struct java_note note = {};
	char text[NOTE_MAX + 1];
	char *at = text;
	uint64_t pid;

	if (line.len > NOTE_MAX || !view_copy(line, 0, text, line.len))
		return -EBADMSG;
	text[line.len] = 0;
	text[strcspn(text, "\n")] = 0;
	if (!note_number(&at, 10, &pid) || !note_number(&at, 10, &note.id.start_ticks) ||
	    !note_number(&at, 10, &note.mount_ns) || !note_number(&at, 16, &note.token) ||
	    pid == 0 || pid > INT_MAX || strlen(at) >= sizeof(note.before))
		return -EBADMSG;
	note.id.pid = (pid_t)pid;
	memcpy(note.before, at, strlen(at) + 1);
	*ret_note = note;
	return 0;
}

/* ".java-recording-PID-START.new": its writer was killed before finishing it. */
static bool note_is_torn(const char *name, struct java_note *note)
{
	static const char prefix[] = "." NOTE_PREFIX;
	unsigned long long pid, start;
	char *end;

	if (strncmp(name, prefix, sizeof(prefix) - 1) != 0)
		return false;
	errno = 0;
	pid = strtoull(name + sizeof(prefix) - 1, &end, 10);
	if (errno || pid == 0 || pid > INT_MAX || *end != '-')
		return false;
	start = strtoull(end + 1, &end, 10);
	if (errno || strcmp(end, ".new") != 0)
		return false;
	note->id = (struct proc_id){.pid = (pid_t)pid, .start_ticks = start};
	return true;
}

static bool note_read(int dirfd, const char *name, struct java_note *ret_note)
{
	_cleanup_(buf_release) struct buf text = buf_with_max(NOTE_MAX);
	struct java_note torn = {};

	if (note_is_torn(name, &torn)) {
		*ret_note = torn;
		return true;
	}
	if (strncmp(name, NOTE_PREFIX, strlen(NOTE_PREFIX)) != 0)
		return false;
	return io_read_file(dirfd, name, &text, NULL) == 0 &&
	       java_note_parse(buf_view(&text), ret_note) == 0;
}

int java_notes_read(const char *dir, struct java_note **ret_notes, size_t *ret_len, struct err *err)
{
	_cleanup_free_ struct java_note *notes = NULL;
	_cleanup_(closedirp) DIR *d = opendir(dir);
	const struct dirent *entry;
	size_t len = 0, cap = 0;

	if (!d)
		return note_failed(dir, -errno, err);
	while (len < JAVA_NOTES_MAX && (entry = readdir(d))) {
		struct java_note note;

		if (!note_read(dirfd(d), entry->d_name, &note))
			continue;
		if (len == cap) {
			size_t more = cap ? cap * 2 : 16;
			void *grown = reallocarray(notes, more, sizeof(*notes));

			if (!grown)
				return err_oom(err);
			notes = grown;
			cap = more;
		}
		notes[len++] = note;
	}
	*ret_notes = TAKE_PTR(notes);
	*ret_len = len;
	return 0;
}
