/*
 * tests/unit/java/test_attach.c: commands to a JVM that is none: a child with a file called
 * libjvm.so in its mappings, which listens, or does not, and says what the test wants.
 */
#include "java/attach/attach.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/clock.h"
#include "java/attach/wire.h"

/* For what must fail, and for what must not. */
#define SHORT_NS (100 * NS_PER_MS)
#define PATIENCE_NS (180 * NS_PER_SEC)

enum behaviour {
	NO_HANDLER,
	DEAF,	 /* takes the signal and does nothing */
	SILENT,	 /* listens and never answers */
	ENDLESS, /* answers for ever */
	DRIP,	 /* answers for ever, byte by byte */
	ECHO,	 /* answers with what it was asked, zeros as '|' */
	MODERN,	 /* that, and knows version 2 */
	FAILS,	 /* a number that is not 0 */
	NONSENSE,
};

struct fake {
	pid_t pid;
	struct proc_id id;
	char dir[32];
	char library[64];
	char socket[64];
	char trigger[64];
};

/* How many have come; shared with the child. */
static volatile int *signals;

static void on_quit(int signal)
{
	(void)signal;
	++*signals;
}

static int bind_at(const char *path)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	memcpy(name.sun_path, path, strlen(path) + 1);
	if (bind(fd, (const struct sockaddr *)&name, sizeof(name)) < 0 || listen(fd, 5) < 0)
		return -1;
	return fd;
}

static void answer(int fd, enum behaviour how)
{
	static const char zeros[65536];
	char text[4096] = "0\n";
	ssize_t n;

	if (how == SILENT)
		for (;;)
			(void)pause();
	n = read(fd, text + 2, sizeof(text) - 2);
	if (n <= 0)
		return;
	if (how == FAILS)
		(void)!write(fd, "101\nno \033such thing\nmore", 24);
	if (how == NONSENSE)
		(void)!write(fd, "hello", 5);
	if (how == MODERN && strcmp(text + 4, "getversion") == 0) {
		(void)!write(fd, "0\n2 streaming", 13);
		return;
	}
	for (ssize_t i = 0; i < n; i++)
		text[2 + i] = text[2 + i] ? text[2 + i] : '|';
	if (how == ECHO || how == MODERN)
		(void)!write(fd, text, (size_t)n + 2);
	while (how == DRIP && write(fd, zeros, 1) > 0)
		(void)usleep(1000);
	while (how == ENDLESS && write(fd, zeros, sizeof(zeros)) > 0)
		;
}

static _Noreturn void child_main(const struct fake *f, enum behaviour how, int ready)
{
	struct sigaction action = {.sa_handler = on_quit};
	int fd = open(f->library, O_RDONLY);
	int listener = -1;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)signal(SIGPIPE, SIG_IGN);
	(void)mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	if (how != NO_HANDLER)
		(void)sigaction(SIGQUIT, &action, NULL);
	(void)!write(ready, "x", 1);
	for (;;) {
		int client;

		if (listener < 0) {
			(void)usleep(1000);
			if (*signals && how != DEAF && how != NO_HANDLER)
				listener = bind_at(f->socket);
			continue;
		}
		client = accept(listener, NULL, NULL);
		if (client >= 0) {
			answer(client, how);
			close(client);
		}
	}
}

static void fake_start(struct fake *f, enum behaviour how)
{
	int ready[2], fd;
	char byte;

	*f = (struct fake){};
	*signals = 0;
	strcpy(f->dir, "/tmp/sonde-java-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	(void)snprintf(f->library, sizeof(f->library), "%s/libjvm.so", f->dir);
	fd = open(f->library, O_RDWR | O_CREAT, 0600);
	assert_int_equal(ftruncate(fd, 4096), 0);
	close(fd);
	assert_int_equal(pipe(ready), 0);
	f->pid = fork();
	if (f->pid <= 0) {
		(void)snprintf(f->socket, sizeof(f->socket), "/tmp/.java_pid%d", (int)getpid());
		child_main(f, how, ready[1]);
	}
	(void)snprintf(f->socket, sizeof(f->socket), "/tmp/.java_pid%d", (int)f->pid);
	(void)snprintf(f->trigger, sizeof(f->trigger), "/tmp/.attach_pid%d", (int)f->pid);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(ready[1]);
	assert_int_equal(proc_id_of(f->pid, &f->id, NULL), 0);
}

/* It must have lived until now, and have had so many signals, or get them soon. */
static void fake_end(struct fake *f, int expected)
{
	uint64_t until = clock_mono_ns() + PATIENCE_NS;
	int status;

	while (*signals < expected && clock_mono_ns() < until)
		clock_sleep_ns(NS_PER_MS);
	assert_true(proc_id_alive(&f->id));
	assert_int_equal(*signals, expected);
	(void)kill(f->pid, SIGKILL);
	assert_int_equal(waitpid(f->pid, &status, 0), f->pid);
	(void)unlink(f->socket);
	(void)unlink(f->library);
	assert_int_equal(rmdir(f->dir), 0);
	assert_int_equal(access(f->trigger, F_OK), -1);
}

static int open_fake(const struct fake *f, struct java_attach **ret, struct err *err)
{
	return java_attach_open(&f->id, PATIENCE_NS, ret, err);
}

static void a_process_without_a_handler_gets_no_signal(void **state)
{
	struct java_attach *a;
	struct err err;
	struct fake f;

	(void)state;
	fake_start(&f, NO_HANDLER);
	assert_int_equal(open_fake(&f, &a, &err), -EAGAIN);
	assert_non_null(strstr(err.text, "SIGQUIT"));
	fake_end(&f, 0);
}

static void a_stopped_process_gets_no_signal(void **state)
{
	struct java_attach *a;
	struct err err;
	struct fake f;
	int status;

	(void)state;
	fake_start(&f, DEAF);
	assert_int_equal(kill(f.pid, SIGSTOP), 0);
	assert_int_equal(waitpid(f.pid, &status, WUNTRACED), f.pid);
	assert_int_equal(open_fake(&f, &a, &err), -EAGAIN);
	assert_non_null(strstr(err.text, "stopped"));
	fake_end(&f, 0);
}

static void a_process_that_is_no_jvm_gets_no_signal(void **state)
{
	struct java_attach *a;
	struct err err;
	struct proc_id id;

	(void)state;
	/* It would end us. */
	assert_int_equal(proc_id_of(getpid(), &id, NULL), 0);
	assert_int_equal(java_attach_open(&id, PATIENCE_NS, &a, &err), -ENOTSUP);
}

static void a_jvm_that_does_not_listen_is_given_up(void **state)
{
	struct java_attach *a;
	struct err err;
	struct fake f;

	(void)state;
	fake_start(&f, DEAF);
	assert_int_equal(java_attach_open(&f.id, SHORT_NS, &a, &err), -ETIMEDOUT);
	fake_end(&f, 1);
}

static void commands_reach_the_jvm(void **state)
{
	_cleanup_(java_attach_closep) struct java_attach *a = NULL;
	_cleanup_(buf_release) struct buf text = {};
	struct err err;
	struct fake f;

	(void)state;
	fake_start(&f, ECHO);
	assert_int_equal(open_fake(&f, &a, &err), 0);
	assert_int_equal(java_attach_jcmd(a, "VM.version", &text, &err), 0);
	assert_string_equal(buf_cstr(&text), "1|jcmd|VM.version|||");
	java_attach_close(TAKE_PTR(a));
	/* It listens already. */
	assert_int_equal(open_fake(&f, &a, &err), 0);
	fake_end(&f, 1);
}

static void long_commands_need_version_2(void **state)
{
	char command[1201];

	(void)state;
	memset(command, 'x', sizeof(command));
	command[sizeof(command) - 1] = 0;
	for (int modern = 0; modern < 2; modern++) {
		_cleanup_(java_attach_closep) struct java_attach *a = NULL;
		_cleanup_(buf_release) struct buf text = {};
		struct err err;
		struct fake f;

		fake_start(&f, modern ? MODERN : ECHO);
		assert_int_equal(open_fake(&f, &a, &err), 0);
		assert_int_equal(java_attach_jcmd(a, command + 176, &text, &err), 0);
		assert_int_equal(text.len, strlen("1|jcmd||||") + 1024);
		assert_int_equal(java_attach_jcmd(a, command, &text, &err), modern ? 0 : -E2BIG);
		if (modern)
			assert_true(view_starts_with(buf_view(&text), "2|1206|jcmd|xxx"));
		fake_end(&f, 1);
	}
}

static void answers_are_bounded(void **state)
{
	static const struct {
		enum behaviour how;
		int code;
	} cases[] = {{SILENT, -ETIMEDOUT},
		     {DRIP, -ETIMEDOUT},
		     {ENDLESS, -E2BIG},
		     {FAILS, -EPROTO},
		     {NONSENSE, -EBADMSG}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_(java_attach_closep) struct java_attach *a = NULL;
		_cleanup_(buf_release) struct buf text = buf_with_max((size_t)1 << 20);
		struct err err = {};
		struct fake f;

		fake_start(&f, cases[i].how);
		assert_int_equal(open_fake(&f, &a, &err), 0);
		if (cases[i].code == -ETIMEDOUT) {
			/* It listens by now: only the answer is waited for. */
			java_attach_close(TAKE_PTR(a));
			assert_int_equal(java_attach_open(&f.id, SHORT_NS, &a, &err), 0);
		}
		assert_int_equal(java_attach_jcmd(a, "VM.version", &text, &err), cases[i].code);
		assert_null(strchr(err.text, '\033'));
		fake_end(&f, 1);
	}
}

static void expect_refusal(struct fake *f)
{
	struct java_attach *a;
	struct err err;

	assert_int_equal(open_fake(f, &a, &err), -EPERM);
}

static void links_in_place_of_the_socket_are_not_followed(void **state)
{
	char other[96];
	struct fake f;
	int fd;

	(void)state;
	fake_start(&f, DEAF);
	(void)snprintf(other, sizeof(other), "%s/other", f.dir);
	fd = bind_at(other);
	assert_true(fd >= 0);
	assert_int_equal(symlink(other, f.socket), 0);
	expect_refusal(&f);
	close(fd);
	assert_int_equal(unlink(other), 0);
	fake_end(&f, 0);
}

static void a_socket_of_another_process_is_not_spoken_to(void **state)
{
	struct fake f;
	int fd;

	(void)state;
	fake_start(&f, DEAF);
	fd = bind_at(f.socket);
	assert_true(fd >= 0);
	expect_refusal(&f);
	close(fd);
	fake_end(&f, 0);
}

static void links_in_place_of_the_trigger_are_not_written_through(void **state)
{
	char victim[96];
	struct fake f;

	(void)state;
	fake_start(&f, ECHO);
	(void)snprintf(victim, sizeof(victim), "%s/victim", f.dir);
	assert_int_equal(symlink(victim, f.trigger), 0);
	expect_refusal(&f);
	assert_int_equal(access(victim, F_OK), -1);
	assert_int_equal(access(f.socket, F_OK), -1);
	/* It was not ours to remove. */
	assert_int_equal(unlink(f.trigger), 0);
	fake_end(&f, 0);
}

static void what_was_left_by_a_killed_one_is_removed(void **state)
{
	struct fake f;
	int fd;

	(void)state;
	fake_start(&f, DEAF);
	fd = open(f.trigger, O_CREAT | O_EXCL | O_WRONLY, 0600);
	assert_true(fd >= 0);
	close(fd);
	java_attach_clean(&f.id);
	fake_end(&f, 0);
}

/* Of nobody, in a mount namespace where another directory is /tmp. */
static pid_t start_confined(const char *tmp)
{
	int ready[2];
	pid_t pid;
	char byte;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (unshare(CLONE_NEWNS) < 0 ||
		    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
		    mount(tmp, "/tmp", NULL, MS_BIND, NULL) < 0 || setgroups(0, NULL) < 0 ||
		    setresgid(65534, 65534, 65534) < 0 || setresuid(65534, 65534, 65534) < 0)
			_exit(1);
		(void)!write(ready[1], "x", 1);
		for (;;)
			(void)pause();
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return pid;
}

static void what_a_target_may_not_remove_is_not_removed_for_it(void **state)
{
	char dir[] = "/tmp/sonde-java-XXXXXX", path[96];
	struct proc_id id;
	pid_t pid;
	int fd;

	(void)state;
	if (geteuid() != 0)
		skip();
	assert_non_null(mkdtemp(dir));
	assert_int_equal(chmod(dir, 0755), 0);
	pid = start_confined(dir);
	(void)snprintf(path, sizeof(path), "%s/.attach_pid%d", dir, (int)pid);
	fd = open(path, O_CREAT | O_EXCL | O_WRONLY, 0600);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(proc_id_of(pid, &id, NULL), 0);
	java_attach_clean(&id);
	assert_int_equal(access(path, F_OK), 0);
	/* In a directory of its own it goes. */
	assert_int_equal(chown(path, 65534, 65534) | chown(dir, 65534, 65534), 0);
	java_attach_clean(&id);
	assert_int_equal(access(path, F_OK), -1);
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	assert_int_equal(rmdir(dir), 0);
}

/* From the third look on there is one more. */
static unsigned int n_looks, n_interrupts;

static unsigned int interrupts(void)
{
	return n_interrupts + (++n_looks > 3);
}

static void an_interrupt_ends_a_wait_and_leaves_time_to_clean_up(void **state)
{
	_cleanup_(java_attach_closep) struct java_attach *a = NULL;
	_cleanup_(buf_release) struct buf text = {};
	struct err err = {};
	uint64_t begin;
	struct fake f;

	(void)state;
	fake_start(&f, SILENT);
	assert_int_equal(open_fake(&f, &a, &err), 0);
	n_looks = n_interrupts = 0;
	java_attach_set_interrupt(interrupts);
	begin = clock_mono_ns();
	assert_int_equal(java_attach_jcmd(a, "VM.version", &text, &err), -EINTR);
	assert_true(clock_mono_ns() - begin < PATIENCE_NS / 2);
	/* Commands after that are given some time, and all together no more than that. */
	begin = clock_mono_ns();
	assert_int_equal(java_attach_jcmd(a, "VM.version", &text, &err), -ETIMEDOUT);
	assert_true(clock_mono_ns() - begin >= JAVA_ATTACH_GRACE_NS / 2);
	assert_true(clock_mono_ns() - begin < PATIENCE_NS / 2);
	assert_int_equal(java_attach_jcmd(a, "VM.version", &text, &err), -ETIMEDOUT);
	java_attach_set_interrupt(NULL);
	fake_end(&f, 1);
}

static void a_stopped_jvm_is_not_waited_for(void **state)
{
	_cleanup_(java_attach_closep) struct java_attach *a = NULL;
	_cleanup_(buf_release) struct buf text = {};
	struct err err = {};
	struct fake f;
	int status;

	(void)state;
	fake_start(&f, ECHO);
	assert_int_equal(open_fake(&f, &a, &err), 0);
	assert_int_equal(kill(f.pid, SIGSTOP), 0);
	assert_int_equal(waitpid(f.pid, &status, WUNTRACED), f.pid);
	assert_int_equal(java_attach_jcmd(a, "VM.version", &text, &err), -EAGAIN);
	assert_int_equal(kill(f.pid, SIGCONT), 0);
	assert_int_equal(java_attach_jcmd(a, "VM.version", &text, &err), 0);
	fake_end(&f, 1);
}

static void requests_have_the_form_of_their_version(void **state)
{
	_cleanup_(buf_release) struct buf b = {};

	(void)state;
	assert_int_equal(java_wire_request(1, "jcmd", "help", &b), 0);
	assert_true(view_eq(buf_view(&b), view_of("1\0jcmd\0help\0\0\0", 14)));
	buf_clear(&b);
	assert_int_equal(java_wire_request(2, "jcmd", "help", &b), 0);
	assert_true(view_eq(buf_view(&b), view_of("2\00010\0jcmd\0help\0", 15)));
}

static void only_answers_with_a_number_are_answers(void **state)
{
	static const struct {
		const char *text;
		int code;
		int status;
		const char *rest;
	} cases[] = {
		{"0\nhello\nyou", 0, 0, "hello\nyou"},
		{"101\n", 0, 101, ""},
		{"-1\nx", 0, -1, "x"},
		{"0", 0, 0, ""},
		{"", -EBADMSG, 0, ""},
		{"\n", -EBADMSG, 0, ""},
		{"-\n", -EBADMSG, 0, ""},
		{"1x\n", -EBADMSG, 0, ""},
		{"99999999999999999999\n", -EBADMSG, 0, ""},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct view rest = {};
		int status = 0;

		assert_int_equal(java_wire_parse(view_str(cases[i].text), &status, &rest),
				 cases[i].code);
		assert_int_equal(status, cases[i].status);
		assert_true(view_eq(rest, view_str(cases[i].rest)));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_process_without_a_handler_gets_no_signal),
		cmocka_unit_test(a_stopped_process_gets_no_signal),
		cmocka_unit_test(a_process_that_is_no_jvm_gets_no_signal),
		cmocka_unit_test(a_jvm_that_does_not_listen_is_given_up),
		cmocka_unit_test(commands_reach_the_jvm),
		cmocka_unit_test(long_commands_need_version_2),
		cmocka_unit_test(answers_are_bounded),
		cmocka_unit_test(links_in_place_of_the_socket_are_not_followed),
		cmocka_unit_test(a_socket_of_another_process_is_not_spoken_to),
		cmocka_unit_test(links_in_place_of_the_trigger_are_not_written_through),
		cmocka_unit_test(what_was_left_by_a_killed_one_is_removed),
		cmocka_unit_test(what_a_target_may_not_remove_is_not_removed_for_it),
		cmocka_unit_test(an_interrupt_ends_a_wait_and_leaves_time_to_clean_up),
		cmocka_unit_test(a_stopped_jvm_is_not_waited_for),
		cmocka_unit_test(requests_have_the_form_of_their_version),
		cmocka_unit_test(only_answers_with_a_number_are_answers),
	};

	signals = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (signals == MAP_FAILED)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
