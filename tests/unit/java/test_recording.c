/* tests/unit/java/test_recording.c: notes of what is in a JVM, its answers, its file system. */
#include "java/recorder/recording.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/io.h"
#include "java/recorder/commands.h"
#include "java/recorder/cost.h"
#include "java/recorder/mount.h"
#include "java/recorder/note.h"
#include "java/recorder/undo.h"
#include "test_state.h"

static void notes_outlive_us(void **state)
{
	_cleanup_free_ struct java_note *notes = NULL;
	struct proc_id id = own_id();
	struct java_note note;
	struct err err;
	size_t len;

	(void)state;
	assert_int_equal(java_note_make(&id, &note, &err), 0);
	assert_int_equal(java_note_save(dir, &note, &err), 0);
	strcpy(note.before, "/var/my tmp");
	assert_int_equal(java_note_save(dir, &note, &err), 0);
	assert_int_equal(java_notes_read(dir, &notes, &len, &err), 0);
	assert_int_equal(len, 1);
	assert_int_equal(notes[0].id.pid, getpid());
	assert_int_equal(notes[0].id.start_ticks, note.id.start_ticks);
	assert_int_equal(notes[0].mount_ns, note.mount_ns);
	assert_int_equal(notes[0].token, note.token);
	assert_string_equal(notes[0].before, "/var/my tmp");
	assert_int_equal(java_note_remove(dir, &note, &err), 0);
	assert_int_equal(java_note_remove(dir, &note, &err), 0);
}

static void lines_that_make_no_sense_are_no_notes(void **state)
{
	static const char *const bad[] = {"",
					  "1",
					  "1 2 3 4",
					  "0 2 3 4 /tmp",
					  "-1 2 3 4 /tmp",
					  "99999999999 2 3 4 /tmp",
					  "1 2 3 xyz /tmp",
					  "1 2 99999999999999999999999 4 /tmp"};
	char longest[400];
	struct java_note note;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(java_note_parse(view_str(bad[i]), &note), -EBADMSG);
	(void)snprintf(longest, sizeof(longest), "1 2 3 4 /%0300d", 0);
	assert_int_equal(java_note_parse(view_str(longest), &note), -EBADMSG);
	assert_int_equal(java_note_parse(view_str("1 2 3 ff \n"), &note), 0);
	assert_int_equal(note.token, 0xff);
	assert_string_equal(note.before, "");
}

static void what_a_dead_process_had_is_taken_away(void **state)
{
	struct err err = {};
	struct java_note note;
	struct proc_id id;
	pid_t child = fork();

	(void)state;
	if (child == 0)
		for (;;)
			(void)pause();
	assert_int_equal(proc_id_of(child, &id, NULL), 0);
	assert_int_equal(java_note_make(&id, &note, &err), 0);
	strcpy(note.before, "/tmp");
	assert_int_equal(java_note_save(dir, &note, &err), 0);
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(java_recordings_restore(dir, &err), geteuid() == 0 ? 1 : 0);
	(void)java_note_remove(dir, &note, &err);
}

static void a_note_that_was_never_finished_goes(void **state)
{
	struct proc_id id = own_id();
	struct err err = {};
	char path[160];
	int fd, lock;

	(void)state;
	(void)snprintf(path, sizeof(path), "%s/.java-recording-%d-%llu.new", dir, (int)id.pid,
		       (unsigned long long)id.start_ticks);
	fd = open(path, O_CREAT | O_EXCL | O_WRONLY, 0600);
	assert_true(fd >= 0);
	close(fd);
	/* Not while somebody writes it. */
	assert_int_equal(java_recording_lock(&id, &lock, &err), 0);
	assert_int_equal(java_recordings_restore(dir, &err), 0);
	assert_int_equal(access(path, F_OK), 0);
	close(lock);
	assert_int_equal(java_recordings_restore(dir, &err), 0);
	assert_int_equal(access(path, F_OK), -1);
}

static void what_another_of_us_works_on_stays(void **state)
{
	struct proc_id id = own_id();
	struct java_note note;
	struct err err = {};
	int lock, again;

	(void)state;
	assert_int_equal(java_note_make(&id, &note, &err), 0);
	assert_int_equal(java_note_save(dir, &note, &err), 0);
	assert_int_equal(java_recording_lock(&id, &lock, &err), 0);
	assert_int_equal(java_recording_lock(&id, &again, &err), -EBUSY);
	assert_int_equal(java_recordings_restore(dir, &err), 0);
	close(lock);
	assert_int_equal(java_note_remove(dir, &note, &err), 0);
}

static void a_process_without_java_is_not_recorded(void **state)
{
	const struct java_recording_options options = {.state_dir = dir};
	struct java_recording *rec;
	struct proc_id id = own_id();
	struct err err;

	(void)state;
	assert_int_equal(java_recording_start(&id, &options, &rec, &err), -ENOTSUP);
}

static void recordings_are_told_apart(void **state)
{
	static const struct {
		const char *text;
		int found;
	} cases[] = {
		{"No available recordings.\n\nUse jcmd 1 JFR.start to start a recording.\n", 0},
		{"Recording 1: name=sonde-1 maxsize=8.0MB maxage=2m (running)\n",
		 JAVA_RECORDER_OURS},
		{"Recording 1: name=other (stopped)\n", JAVA_RECORDER_OTHERS},
		{"Recording: recording=1 name=\"sonde-1\" (running)\nRecording: recording=2 "
		 "name=\"b\"\n",
		 JAVA_RECORDER_OURS | JAVA_RECORDER_OTHERS},
		{"", -EBADMSG},
		{"java.lang.IllegalArgumentException: Unknown diagnostic command\n", -EBADMSG},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(java_recorder_parse_check(view_str(cases[i].text), "sonde-1"),
				 cases[i].found);
}

static void directories_are_taken_as_they_can_be_given_back(void **state)
{
	static const struct {
		const char *text;
		int code;
		const char *path;
	} cases[] = {
		{"Current configuration:\n\nRepository path: /tmp/2026_11_15_11_04_42_1\n", 0,
		 "/tmp"},
		{"Repository path: /a b/c/2026\nStack depth: 64\n", 0, "/a b/c"},
		{"Repository path: /2026\n", 0, "/"},
		{"Repository path: N/A\n", 0, ""},
		{"Repository path: relative\n", -EBADMSG, "-"},
		{"Repository path: /a\" b/2026\n", -EBADMSG, "-"},
		{"Repository path: \n", -EBADMSG, "-"},
		{"Stack depth: 64\n", -EBADMSG, "-"},
		{"", -EBADMSG, "-"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char path[32] = "-";

		assert_int_equal(
			java_recorder_parse_directory(view_str(cases[i].text), path, sizeof(path)),
			cases[i].code);
		assert_string_equal(path, cases[i].path);
	}
}

static void properties_are_unescaped(void **state)
{
	static const char text[] = "#Sun Nov 15\njava.io.tmpdir.x=/no\njava.io.tmpdir=/a\\:b\\=c\n"
				   "bad=/\\u0041\nend=/x\\";
	char value[32];

	(void)state;
	assert_int_equal(java_recorder_parse_property(view_str(text), "java.io.tmpdir", value,
						      sizeof(value)),
			 0);
	assert_string_equal(value, "/a:b=c");
	assert_int_equal(java_recorder_parse_property(view_str(text), "none", value, sizeof(value)),
			 -ENOENT);
	assert_int_equal(java_recorder_parse_property(view_str(text), "bad", value, sizeof(value)),
			 -EBADMSG);
	assert_int_equal(java_recorder_parse_property(view_str(text), "end", value, sizeof(value)),
			 -EBADMSG);
	assert_int_equal(java_recorder_parse_property(view_str(text), "java.io.tmpdir", value, 3),
			 -EBADMSG);
}

static bool settings_have(unsigned int major, const struct java_recording_options *options,
			  const char *word)
{
	_cleanup_(buf_release) struct buf text = {};

	assert_int_equal(java_recording_settings(major, options, &text), 0);
	return strstr(buf_cstr(&text), word) != NULL;
}

static void settings_are_those_of_the_release(void **state)
{
	const struct java_recording_options plain = {};
	const struct java_recording_options calm = {.park_ms = JAVA_RECORDING_CALM_MS};
	const struct java_recording_options more = {.cpu_time = true, .totals_ns = 5 * NS_PER_SEC};

	(void)state;
	assert_true(settings_have(8, &plain, "InNewTLAB"));
	assert_false(settings_have(8, &plain, "ObjectAllocationSample"));
	assert_true(settings_have(8, &plain, "ThreadAllocationStatistics"));
	assert_true(settings_have(8, &more, ">everyChunk<"));
	assert_false(settings_have(11, &plain, "ThreadAllocationStatistics"));
	assert_true(settings_have(25, &plain, ">everyChunk<"));
	assert_true(settings_have(25, &more, ">5000 ms<"));
	assert_true(settings_have(17, &plain, "\"throttle\">150/s<"));
	assert_false(settings_have(17, &plain, "TLAB"));
	assert_true(settings_have(17, &plain, "\"threshold\">1 ms<"));
	assert_false(settings_have(17, &plain, "10 ms"));
	assert_true(settings_have(17, &calm, "\"threshold\">10 ms<"));
	assert_true(settings_have(17, &calm, "\"threshold\">1 ms<"));
	assert_false(settings_have(17, &more, "CPUTimeSample"));
	assert_false(settings_have(25, &plain, "CPUTimeSample"));
	assert_true(settings_have(25, &more, "CPUTimeSample"));
}

static void *rename_and_wait(void *arg)
{
	(void)prctl(PR_SET_NAME, "JFR Recorder Thread");
	(void)pthread_barrier_wait(arg);
	(void)pthread_barrier_wait(arg);
	return NULL;
}

static void only_the_first_recording_is_costly(void **state)
{
	struct java_vm vm = {.id = own_id(), .kind = JAVA_HOTSPOT, .major = 17};
	pthread_barrier_t both;
	pthread_t thread;

	(void)state;
	assert_true(java_recorder_is_costly(&vm));
	vm.major = 25;
	assert_true(java_recorder_is_costly(&vm));
	assert_int_equal(pthread_barrier_init(&both, NULL, 2), 0);
	assert_int_equal(pthread_create(&thread, NULL, rename_and_wait, &both), 0);
	(void)pthread_barrier_wait(&both);
	assert_false(java_recorder_is_costly(&vm));
	(void)pthread_barrier_wait(&both);
	(void)pthread_join(thread, NULL);
	(void)pthread_barrier_destroy(&both);
}

static void do_nothing(int signal)
{
	(void)signal;
}

static void who_has_the_signal_for_CPU_time_is_a_rival(void **state)
{
	struct java_vm vm = {.id = own_id(), .kind = JAVA_HOTSPOT, .major = 25};

	(void)state;
	assert_false(java_recorder_has_rival(&vm));
	(void)signal(SIGPROF, do_nothing);
	assert_true(java_recorder_has_rival(&vm));
	/* Older recorders do not need it. */
	vm.major = 17;
	assert_false(java_recorder_has_rival(&vm));
	(void)signal(SIGPROF, SIG_DFL);
}

static void a_file_system_comes_and_goes(void **state)
{
	static const char name[] = ".sonde-test", path[] = "/tmp/.sonde-test";
	_cleanup_(buf_release) struct buf text = {};
	struct proc_id id = own_id();
	struct java_target target;
	struct java_note note;
	struct err err = {};
	struct statfs fs;
	struct stat st;
	int fd = -1;

	(void)state;
	assert_int_equal(java_target_read(&id, &target, &err), 0);
	assert_int_equal(java_note_make(&id, &note, &err), 0);
	if (geteuid() != 0) {
		assert_int_equal(java_mount_make(&target, name, view_str("x"), &fd, &err), -EPERM);
		assert_int_equal(access(path, F_OK), -1);
		return;
	}
	target.status.euid = target.status.fsuid = 1234;
	assert_int_equal(java_mount_make(&target, name, view_str("hello"), &fd, &err), 0);
	assert_int_equal(statfs(path, &fs), 0);
	assert_int_equal(fs.f_type, TMPFS_MAGIC);
	assert_int_equal((uint64_t)fs.f_blocks * (uint64_t)fs.f_bsize, JAVA_MOUNT_BYTES);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_uid, 1234);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(io_read_file(fd, JAVA_MOUNT_SETTINGS, &text, &err), 0);
	assert_string_equal(buf_cstr(&text), "hello");
	/* The name is taken: nothing is mounted over it. */
	assert_int_equal(java_mount_make(&target, name, view_str("x"), &fd, &err), -EEXIST);
	/* A link to it is not it. */
	assert_int_equal(symlink(path, "/tmp/.sonde-link"), 0);
	assert_true(java_mount_remove(note.mount_ns, getpid(), ".sonde-link", &err) < 0);
	assert_int_equal(unlink("/tmp/.sonde-link"), 0);
	assert_int_equal(statfs(path, &fs), 0);
	assert_int_equal(fs.f_type, TMPFS_MAGIC);
	/* A process that is gone is no hindrance, for others are in the same namespace. */
	assert_int_equal(java_mount_remove(note.mount_ns, 0, name, &err), 0);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(java_mount_remove(note.mount_ns, getpid(), name, &err), 0);
	close(fd);
}

static void a_directory_that_is_not_ours_stays(void **state)
{
	static const char name[] = ".sonde-other", path[] = "/tmp/.sonde-other";
	struct proc_id id = own_id();
	struct java_note note;
	struct err err = {};

	(void)state;
	assert_int_equal(java_note_make(&id, &note, &err), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(mkdir("/tmp/.sonde-other/full", 0700), 0);
	assert_true(java_mount_remove(note.mount_ns, getpid(), name, &err) < 0);
	assert_int_equal(rmdir("/tmp/.sonde-other/full"), 0);
	assert_int_equal(rmdir(path), 0);
	/* Nor is a link followed. */
	assert_int_equal(symlink(dir, path), 0);
	assert_true(java_mount_remove(note.mount_ns, getpid(), name, &err) < 0);
	assert_int_equal(unlink(path), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(notes_outlive_us, setup, teardown),
		cmocka_unit_test(lines_that_make_no_sense_are_no_notes),
		cmocka_unit_test_setup_teardown(what_a_dead_process_had_is_taken_away, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_note_that_was_never_finished_goes, setup,
						teardown),
		cmocka_unit_test_setup_teardown(what_another_of_us_works_on_stays, setup, teardown),
		cmocka_unit_test_setup_teardown(a_process_without_java_is_not_recorded, setup,
						teardown),
		cmocka_unit_test(recordings_are_told_apart),
		cmocka_unit_test(directories_are_taken_as_they_can_be_given_back),
		cmocka_unit_test(properties_are_unescaped),
		cmocka_unit_test(settings_are_those_of_the_release),
		cmocka_unit_test(only_the_first_recording_is_costly),
		cmocka_unit_test(who_has_the_signal_for_CPU_time_is_a_rival),
		cmocka_unit_test(a_file_system_comes_and_goes),
		cmocka_unit_test_setup_teardown(a_directory_that_is_not_ours_stays, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
