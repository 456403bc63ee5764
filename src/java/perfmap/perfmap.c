/* src/java/perfmap/perfmap.c: see perfmap.h. */
#include "java/perfmap/perfmap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "java/attach/attach.h"
#include "java/hsperf.h"
#include "java/perfmap/files.h"
#include "java/recorder/note.h"
#include "proc/info.h"
#include "proc/lock.h"
#include "proc/ns.h"

/* The first release whose command takes a file name. */
#define PERFMAP_FILE_MAJOR 22
/* A JVM may spend this share of its time on it. */
#define PERFMAP_SHARE 100
#define PERFMAP_FAILED_NS (60 * NS_PER_SEC)
#define PERFMAP_NOTES "java-perf-maps"

/* They tell whether code has changed. */
struct perfmap_counters {
	int64_t compiles;
	int64_t time;
};

struct java_perfmap {
	struct proc_id id;
	char *notes;
	struct java_attach *attach;
	struct java_hsperf *hsperf; /* NULL: the JVM has none */
	struct java_perfmap_files files;
	struct java_note note;
	int lock;
	bool noted;
	uint64_t min_ns;
	uint64_t next_ns; /* no update before this */
	struct perfmap_counters counters;
	struct java_perfmap_stats stats;
};

/* Notes of perf maps are kept apart from those of recordings: a JVM may have both. */
static int perfmap_notes(const char *state_dir, char **ret_dir, struct err *err)
{
	return asprintf(ret_dir, "%s/" PERFMAP_NOTES, state_dir) < 0 ? err_oom(err) : 0;
}

/* A recording has a separate lock (java_recording_lock()). */
static int perfmap_lock(const struct proc_id *id, int *ret_fd, struct err *err)
{
	int r = proc_lock(id, "java-map", ret_fd, err);

	if (r == -EBUSY)
		err_write(err, "another sonde already manages the perf map of process %d",
			  (int)id->pid);
	return r;
}

static bool perfmap_in_namespace(pid_t pid, uint64_t mount_ns)
{
	uint64_t its;

	return proc_ns_read(pid, "mnt", &its) == 0 && its == mount_ns;
}

/* The /tmp in the note: through the process, or any other in the same namespace. */
static int perfmap_find_tmp(const struct java_note *note, int *ret_tmp)
{
	_cleanup_free_ pid_t *pids = NULL;
	size_t len;
	int r;

	if (!proc_id_gone(&note->id))
		return java_target_open_path(note->id.pid, "/tmp", ret_tmp);
	r = proc_list(&pids, &len, NULL);
	if (r < 0)
		return r;
	for (size_t i = 0; i < len; i++)
		if (perfmap_in_namespace(pids[i], note->mount_ns))
			return java_target_open_path(pids[i], "/tmp", ret_tmp);
	return -ENOENT;
}

/* With the lock held. */
static int perfmap_undo(const char *notes, const struct java_note *note, struct err *err)
{
	struct java_perfmap_files files = {.tmp = -1};
	int tmp = -1, r = 0;

	if (note->token)
		r = perfmap_find_tmp(note, &tmp);
	if (note->token && r == 0) {
		java_perfmap_files_init(&files, tmp, note->before, note);
		r = java_perfmap_files_remove(&files);
		java_perfmap_files_release(&files);
	}
	/* An empty namespace is gone, along with its files. */
	if (r < 0 && r != -ENOENT)
		return err_set(err, r, "cannot remove %s from the /tmp of process %d: %s",
			       note->before, (int)note->id.pid, strerror(-r));
	return java_note_remove(notes, note, err);
}

static int perfmap_restore_one(const char *notes, const struct java_note *note, struct err *err)
{
	_cleanup_close_ int lock = -1;
	int r = perfmap_lock(&note->id, &lock, err);

	if (r < 0)
		return r;
	java_attach_clean(&note->id);
	return perfmap_undo(notes, note, err);
}

int java_perfmaps_restore(const char *state_dir, struct err *err)
{
	_cleanup_free_ struct java_note *list = NULL;
	_cleanup_free_ char *notes = NULL;
	size_t len = 0;
	int done = 0, r;

	r = perfmap_notes(state_dir, &notes, err);
	if (r == 0)
		r = java_notes_read(notes, &list, &len, err);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	for (size_t i = 0; i < len; i++)
		done += perfmap_restore_one(notes, &list[i], err) == 0 && list[i].token;
	return done;
}

/* Undoes what an earlier sonde left, as our note would replace its note. With the lock held. */
static int perfmap_clear(struct java_perfmap *m, struct err *err)
{
	_cleanup_free_ struct java_note *list = NULL;
	size_t len = 0;
	int r = java_notes_read(m->notes, &list, &len, err);

	for (size_t i = 0; r == 0 && i < len; i++)
		if (list[i].id.pid == m->id.pid && list[i].id.start_ticks == m->id.start_ticks)
			r = perfmap_undo(m->notes, &list[i], err);
	return r;
}

static void perfmap_open_counters(struct java_perfmap *m)
{
	_cleanup_(proc_maps_release) struct proc_maps maps = {0};

	if (proc_maps_read(m->id.pid, &maps, NULL) == 0)
		(void)java_hsperf_open(&m->id, &maps, &m->hsperf, NULL);
}

/* False if the JVM has none, or different ones. */
static bool perfmap_count(struct java_perfmap *m, struct perfmap_counters *ret)
{
	struct perfmap_counters c;

	if (!m->hsperf || java_hsperf_read(m->hsperf, NULL) < 0 ||
	    !java_hsperf_number(m->hsperf, "sun.ci.totalCompiles", &c.compiles) ||
	    !java_hsperf_number(m->hsperf, "java.ci.totalTime", &c.time))
		return false;
	*ret = c;
	return true;
}

static int perfmap_fail(const struct java_perfmap *m, int r, struct err *err)
{
	int pid = (int)m->id.pid;

	if (r == -EEXIST)
		return err_lack(err, -EPERM, ERR_CAUSE_OTHER, "remove it",
				"process %d: /tmp/%s exists and is not its perf map", pid,
				m->files.name);
	if (r == -ENODATA)
		return err_set(err, -EIO, "the JVM of process %d wrote nothing to /tmp/%s", pid,
			       m->files.name);
	return err_set(err, r, "process %d: cannot create a perf map in its /tmp: %s", pid,
		       strerror(-r));
}

static int perfmap_ask(struct java_perfmap *m, bool by_name, struct err *err)
{
	_cleanup_(buf_release) struct buf answer = buf_with_max((size_t)64 << 10);
	char command[96] = "Compiler.perfmap";

	if (!by_name)
		(void)snprintf(command, sizeof(command), "Compiler.perfmap /tmp/%s", m->files.raw);
	return java_attach_jcmd(m->attach, command, &answer, err);
}

static int perfmap_write(struct java_perfmap *m, struct err *err)
{
	bool by_name = java_attach_vm(m->attach)->major < PERFMAP_FILE_MAJOR;
	struct java_perfmap_copied copied = {0};
	_cleanup_close_ int raw = -1;
	struct java_target target;
	uint64_t begin, spent;
	int r;

	m->next_ns = clock_mono_ns() + PERFMAP_FAILED_NS;
	r = java_target_read(&m->id, &target, err);
	if (r < 0)
		return r;
	r = java_perfmap_files_begin(&m->files, &target, by_name, &raw);
	if (r < 0)
		return perfmap_fail(m, r, err);
	begin = clock_mono_ns();
	r = perfmap_ask(m, by_name, err);
	if (r < 0)
		return r;
	spent = clock_mono_ns() - begin;
	r = java_perfmap_files_finish(&m->files, &target, raw, &copied);
	if (r < 0)
		return perfmap_fail(m, r, err);
	m->stats.written++;
	m->stats.spent_ns += spent;
	m->stats.functions = copied.functions;
	m->stats.is_cut = copied.is_cut;
	m->next_ns = clock_mono_ns() + MAX(m->min_ns, PERFMAP_SHARE * spent);
	return 0;
}

/* Refuses whatever it can before touching the JVM. */
static int perfmap_check(const struct java_perfmap *m, struct err *err)
{
	struct java_vm vm;
	int pid = (int)m->id.pid, r = java_detect_pid(m->id.pid, &vm, err);

	if (r < 0)
		return r;
	if (r == 0 || vm.kind != JAVA_HOTSPOT)
		return err_lack(err, -ENOTSUP, ERR_CAUSE_NOT_JAVA, "",
				"process %d is not a HotSpot JVM", pid);
	if (vm.major && vm.major < JAVA_PERFMAP_MAJOR)
		return err_lack(err, -ENOTSUP, ERR_CAUSE_UNKNOWN_VERSION, "",
				"process %d runs JDK %s, which cannot write a perf map (JDK %d "
				"and later can)",
				pid, vm.version, JAVA_PERFMAP_MAJOR);
	return 0;
}

/* 1: the user has one already. */
static int perfmap_look(struct java_perfmap *m, struct err *err)
{
	struct java_target target;
	char name[32];
	int r;

	r = java_target_read(&m->id, &target, err);
	if (r == 0)
		r = java_target_open_tmp(&target, &m->files.tmp, err);
	if (r == 0)
		r = java_note_make(&m->id, &m->note, err);
	if (r < 0)
		return r;
	(void)snprintf(name, sizeof(name), "perf-%d.map", (int)target.status.inner_pid);
	(void)snprintf(m->note.before, sizeof(m->note.before), "%s", name);
	java_perfmap_files_init(&m->files, m->files.tmp, name, &m->note);
	switch (java_perfmap_files_look(&m->files, &target)) {
	case JAVA_PERFMAP_USERS:
		return 1;
	case JAVA_PERFMAP_OTHER:
		return perfmap_fail(m, -EEXIST, err);
	default:
		return 0;
	}
}

/* From here on, cleanup is needed. */
static int perfmap_begin(struct java_perfmap *m, struct err *err)
{
	int r = java_note_save(m->notes, &m->note, err);

	if (r < 0)
		return r;
	m->noted = true;
	r = java_attach_open(&m->id, 0, &m->attach, err);
	if (r < 0)
		return r;
	perfmap_open_counters(m);
	(void)perfmap_count(m, &m->counters);
	return perfmap_write(m, err);
}

static int perfmap_prepare(struct java_perfmap *m, const char *state_dir, struct err *err)
{
	int r = perfmap_check(m, err);

	if (r == 0)
		r = perfmap_notes(state_dir, &m->notes, err);
	if (r < 0)
		return r;
	if (mkdir(m->notes, 0700) < 0 && errno != EEXIST)
		return err_set(err, -errno, "cannot create %s: %s", m->notes, strerror(errno));
	r = perfmap_lock(&m->id, &m->lock, err);
	return r < 0 ? r : perfmap_clear(m, err);
}

int java_perfmap_start(const struct proc_id *id, const struct java_perfmap_options *o,
		       struct java_perfmap **ret_map, struct err *err)
{
	_cleanup_(java_perfmap_freep) struct java_perfmap *m = calloc(1, sizeof(*m));
	int r;

	if (!m)
		return err_oom(err);
	m->lock = m->files.tmp = -1;
	m->id = *id;
	m->min_ns = o->min_ns ? o->min_ns : JAVA_PERFMAP_MIN_NS;
	r = perfmap_prepare(m, o->state_dir, err);
	if (r == 0)
		r = perfmap_look(m, err);
	m->stats.is_users = r > 0;
	if (r == 0)
		r = perfmap_begin(m, err);
	if (r < 0)
		return r;
	*ret_map = TAKE_PTR(m);
	return 0;
}

int java_perfmap_keep(struct java_perfmap *m, struct err *err)
{
	struct perfmap_counters c = m->counters;
	uint64_t now = clock_mono_ns();
	int r;

	if (proc_id_gone(&m->id))
		return err_set(err, -ESRCH, "process %d has exited", (int)m->id.pid);
	if (m->stats.is_users || now < m->next_ns)
		return 0;
	if (perfmap_count(m, &c)) {
		if (c.compiles == m->counters.compiles && c.time == m->counters.time)
			return 0;
	} else if (now < m->next_ns + JAVA_PERFMAP_BLIND_NS) {
		return 0;
	}
	r = perfmap_write(m, err);
	if (r < 0)
		return r;
	m->counters = c;
	return 1;
}

int java_perfmap_stop(struct java_perfmap *m, struct err *err)
{
	int r;

	if (!m->noted)
		return 0;
	m->noted = false;
	/* Through the open descriptor: the JVM may be gone. */
	r = java_perfmap_files_remove(&m->files);
	if (r < 0)
		r = err_set(err, r, "process %d: cannot remove /tmp/%s: %s", (int)m->id.pid,
			    m->files.name, strerror(-r));
	else
		r = java_note_remove(m->notes, &m->note, err);
	/* Whoever restores later must be able to lock it. */
	closep(&m->lock);
	m->lock = -1;
	return r;
}

void java_perfmap_free(struct java_perfmap *m)
{
	if (!m)
		return;
	(void)java_perfmap_stop(m, NULL);
	java_hsperf_close(m->hsperf);
	java_attach_close(m->attach);
	java_perfmap_files_release(&m->files);
	closep(&m->lock);
	free(m->notes);
	free(m);
}

void java_perfmap_stats(const struct java_perfmap *m, struct java_perfmap_stats *ret_stats)
{
	*ret_stats = m->stats;
}
