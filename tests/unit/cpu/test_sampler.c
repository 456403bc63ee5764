/*
 * tests/unit/cpu/test_sampler.c: samples children of this test. Needs root and BPF; where these are
 * missing the test is skipped. How long things take is left open: it waits until they are seen.
 */
#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "cpu/sampler/sampler.h"
#include "cpu_possible.h"

/*
 * On a busy machine a child may get a hundredth of a CPU. All but one of the tests sample their
 * child only: whatever else runs, its code would be read first.
 */
#define PATIENCE_NS (240 * NS_PER_SEC)

static volatile uint64_t sink;

__attribute__((noinline)) static void burn(void)
{
	for (int i = 0; i < 100000; i++)
		sink += (uint64_t)i;
}

__attribute__((noinline)) static void nap(void)
{
	(void)nanosleep(&(struct timespec){.tv_nsec = 3000000}, NULL);
	sink++;
}

static bool is_early(uint64_t since_ns)
{
	return clock_mono_ns() - since_ns < PATIENCE_NS;
}

static void burn_forever(void)
{
	for (;;)
		burn();
}

static void nap_forever(void)
{
	for (;;)
		nap();
}

static pid_t start(void (*body)(void))
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid)
		return pid;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)prctl(PR_SET_NAME, "sonde-child");
	body();
	_exit(0);
}

static void end(pid_t pid)
{
	(void)kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static struct cpu_sampler *open_sampler(struct cpu_sampler_options options)
{
	struct cpu_sampler *s = NULL;
	struct err err = {0};

	if (cpu_sampler_open(&options, &s, &err) < 0)
		fail_msg("%s", err.text);
	return s;
}

/* What was seen of one process. */
struct seen {
	pid_t pid;
	uint64_t whole; /* samples whose stack reached the root, */
	uint64_t named; /* ... and has a frame of this very program */
	uint64_t count;
	uint64_t value_ns;
	uint64_t offcpu;
	uint64_t generation[8]; /* that differ */
	size_t generations;
	char comm[16];
	uid_t uid, owner;
	bool exec, exit;
};

static void see_generation(struct seen *seen, uint64_t generation)
{
	for (size_t i = 0; i < seen->generations; i++)
		if (seen->generation[i] == generation)
			return;
	assert_true(seen->generations < ARRAY_SIZE(seen->generation));
	seen->generation[seen->generations++] = generation;
}

static int see_stack(void *context, const struct cpu_stack *stack)
{
	struct seen *seen = context;
	char self[512];
	ssize_t n;

	if (stack->process->pid != seen->pid)
		return 0;
	seen->count += stack->count;
	seen->value_ns += stack->value_ns;
	seen->offcpu += stack->offcpu ? stack->count : 0;
	see_generation(seen, stack->process->generation);
	seen->uid = stack->process->uid;
	seen->owner = stack->process->owner;
	memcpy(seen->comm, stack->process->comm, sizeof(seen->comm));
	assert_true(stack->n_user <= CPU_STACK_MAX && stack->n_kernel <= CPU_STACK_MAX);
	if (stack->n_user)
		assert_false(stack->user[0].is_return);
	if (stack->end != CPU_STACK_ROOT)
		return 0;
	seen->whole += stack->count;
	n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	assert_true(n > 0);
	self[n] = 0;
	for (size_t i = 0; i < stack->n_user; i++)
		if (stack->user[i].file && strcmp(stack->user[i].file->path, self) == 0) {
			seen->named += stack->count;
			break;
		}
	return 0;
}

static void see_event(void *context, const struct cpu_event *event)
{
	struct seen *seen = context;

	if (event->pid != seen->pid)
		return;
	seen->exec |= event->kind == CPU_EVENT_EXEC;
	seen->exit |= event->kind == CPU_EVENT_EXIT;
}

static void round_of(struct cpu_sampler *s, struct seen *seen)
{
	struct err err = {0};

	if (cpu_sampler_poll(s, 20, see_event, seen, &err) < 0 ||
	    cpu_sampler_drain(s, see_stack, seen, &err) < 0)
		fail_msg("%s", err.text);
}

static void busy_process_is_seen_with_whole_stacks(void **state)
{
	_cleanup_(cpu_sampler_closep) struct cpu_sampler *s =
		open_sampler((struct cpu_sampler_options){.hz = 199, .kernel = true});
	struct seen seen = {.pid = start(burn_forever)};
	struct cpu_losses losses;

	(void)state;
	/* Its first samples may come before it has its name. */
	for (uint64_t since = clock_mono_ns();
	     is_early(since) && (seen.named < 20 || strcmp(seen.comm, "sonde-child"));)
		round_of(s, &seen);
	end(seen.pid);
	assert_true(seen.named >= 20);
	assert_string_equal(seen.comm, "sonde-child");
	assert_int_equal(seen.generations, 1);
	assert_int_equal(seen.value_ns, seen.count * (1000000000 / 199));
	assert_int_equal(seen.offcpu, 0);
	cpu_sampler_losses(s, &losses);
	assert_true(losses.samples >= seen.count);
	assert_true(losses.ends[CPU_STACK_ROOT] >= seen.whole);
}

static void burn_as_another(void)
{
	if (setuid(100001) < 0)
		_exit(1);
	burn_forever();
}

/* Budgets are per owner: ids that one user was given have one. */
static void process_of_a_subordinate_id_is_its_users(void **state)
{
	char path[] = "/tmp/sonde-subuid-XXXXXX";
	struct seen seen = {.pid = start(burn_as_another)};
	_cleanup_(cpu_sampler_closep) struct cpu_sampler *s = NULL;
	_cleanup_close_ int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "1000:100000:65536\n", 18), 18);
	s = open_sampler(
		(struct cpu_sampler_options){.hz = 199, .pid = seen.pid, .subuid_path = path});
	assert_int_equal(unlink(path), 0);
	for (uint64_t since = clock_mono_ns(); is_early(since) && seen.uid != 100001;)
		round_of(s, &seen);
	end(seen.pid);
	assert_int_equal(seen.uid, 100001);
	assert_int_equal(seen.owner, 1000);
}

static void only_the_chosen_process_is_sampled(void **state)
{
	struct seen seen = {.pid = start(burn_forever)}, other = {.pid = start(burn_forever)};
	_cleanup_(cpu_sampler_closep) struct cpu_sampler *s =
		open_sampler((struct cpu_sampler_options){.hz = 199, .pid = seen.pid});
	struct cpu_losses losses;
	struct err err = {0};

	(void)state;
	for (uint64_t since = clock_mono_ns(); is_early(since) && seen.named < 10;)
		round_of(s, &seen);
	end(seen.pid);
	end(other.pid);
	assert_true(seen.named >= 10);
	assert_int_equal(cpu_sampler_drain(s, see_stack, &seen, &err), 0);
	cpu_sampler_losses(s, &losses);
	assert_int_equal(losses.samples, seen.count + losses.lost_ring + losses.lost_table);
}

static void stacks_outlive_their_process(void **state)
{
	struct seen seen = {.pid = start(burn_forever)};
	_cleanup_(cpu_sampler_closep) struct cpu_sampler *s =
		open_sampler((struct cpu_sampler_options){.hz = 199, .pid = seen.pid});
	struct cpu_losses losses = {0};
	struct err err = {0};

	(void)state;
	for (uint64_t since = clock_mono_ns();
	     is_early(since) && losses.ends[CPU_STACK_ROOT] < 20;) {
		assert_int_equal(cpu_sampler_poll(s, 20, NULL, NULL, &err), 0);
		cpu_sampler_losses(s, &losses);
	}
	end(seen.pid);
	/* The end is told before anything is drained. */
	assert_int_equal(cpu_sampler_poll(s, 20, NULL, NULL, &err), 0);
	assert_int_equal(cpu_sampler_drain(s, see_stack, &seen, &err), 0);
	assert_true(seen.named > 0);
}

/* Nobody answers the sampler meanwhile: all of its samples come before its code is known. */
static void let_it_burn(const struct cpu_sampler *s)
{
	struct cpu_losses losses = {0};

	for (uint64_t since = clock_mono_ns(); is_early(since) && losses.samples < 20;) {
		(void)nanosleep(&(struct timespec){.tv_nsec = 3000000}, NULL);
		cpu_sampler_losses(s, &losses);
	}
}

static void first_samples_have_whole_stacks_too(void **state)
{
	struct seen seen = {.pid = start(burn_forever)};
	_cleanup_(cpu_sampler_closep) struct cpu_sampler *s = open_sampler(
		(struct cpu_sampler_options){.hz = 199, .pid = seen.pid, .kernel = true});
	struct cpu_losses losses;

	(void)state;
	let_it_burn(s);
	cpu_sampler_losses(s, &losses);
	assert_int_equal(losses.ends[CPU_STACK_ROOT], 0);
	round_of(s, &seen);
	end(seen.pid);
	assert_true(seen.count >= 10);
	assert_int_equal(seen.whole, seen.count);
	assert_true(seen.named >= 10);
	cpu_sampler_losses(s, &losses);
	assert_true(losses.ends[CPU_STACK_ROOT] >= seen.whole);
}

static void forked_process_that_is_gone_is_walked_by_what_its_parent_maps(void **state)
{
	struct seen seen = {.pid = start(burn_forever)};
	_cleanup_(cpu_sampler_closep) struct cpu_sampler *s =
		open_sampler((struct cpu_sampler_options){.hz = 199, .pid = seen.pid});

	(void)state;
	let_it_burn(s);
	end(seen.pid);
	round_of(s, &seen);
	assert_true(seen.named >= 10);
}

static void program_that_is_gone_before_it_is_known_is_counted_as_such(void **state)
{
	struct seen seen = {.pid = fork()};
	struct cpu_sampler *s;
	struct cpu_losses losses;

	(void)state;
	if (seen.pid == 0) {
		execl("/bin/sh", "sh", "-c", "while :; do :; done", NULL);
		_exit(1);
	}
	s = open_sampler((struct cpu_sampler_options){.hz = 199, .pid = seen.pid});
	let_it_burn(s);
	end(seen.pid);
	round_of(s, &seen);
	assert_true(seen.count >= 10);
	assert_int_equal(seen.named, 0);
	cpu_sampler_losses(s, &losses);
	assert_int_equal(losses.samples, seen.count);
	assert_int_equal(losses.ends[CPU_STACK_NOT_LOADED] + seen.whole, seen.count);
	assert_true(losses.ends[CPU_STACK_NOT_LOADED] >= 10);
	cpu_sampler_close(s);
}

/* A child that burns until it is told to become another program. */
static pid_t start_to_exec(int go[2], const char *script)
{
	pid_t pid;
	char byte;

	assert_int_equal(pipe(go), 0);
	(void)fcntl(go[0], F_SETFL, O_NONBLOCK);
	pid = fork();
	assert_true(pid >= 0);
	if (pid)
		return pid;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (read(go[0], &byte, 1) != 1)
		burn();
	execl("/bin/sh", "sh", "-c", script, NULL);
	_exit(1);
}

static void let_it_exec(int go[2])
{
	assert_int_equal(write(go[1], "x", 1), 1);
	(void)close(go[0]);
	(void)close(go[1]);
}

static void exec_and_exit_are_told(void **state)
{
	int go[2];
	struct seen seen = {.pid = start_to_exec(go, "exit 0")};
	_cleanup_(cpu_sampler_closep) struct cpu_sampler *s = open_sampler(
		(struct cpu_sampler_options){.hz = 19, .pid = seen.pid, .events = true});

	(void)state;
	let_it_exec(go);
	assert_int_equal(waitpid(seen.pid, NULL, 0), seen.pid);
	for (uint64_t since = clock_mono_ns(); is_early(since) && !(seen.exec && seen.exit);)
		round_of(s, &seen);
	assert_true(seen.exec);
	assert_true(seen.exit);
}

static void exec_makes_another_process(void **state)
{
	int go[2];
	struct seen seen = {.pid = start_to_exec(go, "while :; do :; done")};
	_cleanup_(cpu_sampler_closep) struct cpu_sampler *s =
		open_sampler((struct cpu_sampler_options){.hz = 199, .pid = seen.pid});
	uint64_t then;

	(void)state;
	for (uint64_t since = clock_mono_ns(); is_early(since) && seen.count < 5;)
		round_of(s, &seen);
	assert_int_equal(seen.generations, 1);
	let_it_exec(go);
	for (uint64_t since = clock_mono_ns(); is_early(since) && seen.generations < 2;)
		round_of(s, &seen);
	then = seen.count;
	for (uint64_t since = clock_mono_ns(); is_early(since) && seen.count < then + 5;)
		round_of(s, &seen);
	end(seen.pid);
	assert_int_equal(seen.generations, 2);
	assert_string_equal(seen.comm, "sh");
}

static void waits_are_seen_off_cpu(void **state)
{
	struct seen seen = {.pid = start(nap_forever)};
	_cleanup_(cpu_sampler_closep) struct cpu_sampler *s = open_sampler(
		(struct cpu_sampler_options){.pid = seen.pid, .offcpu_min_ns = 1000000});

	(void)state;
	for (uint64_t since = clock_mono_ns(); is_early(since) && seen.named < 20;)
		round_of(s, &seen);
	end(seen.pid);
	assert_true(seen.named >= 20);
	assert_int_equal(seen.offcpu, seen.count);
	assert_true(seen.value_ns >= seen.count * 3000000);
}

static void two_samplers_do_not_disturb_each_other(void **state)
{
	pid_t pid = start(burn_forever);
	struct cpu_sampler_options options = {.hz = 199, .pid = pid};
	struct cpu_sampler *first = open_sampler(options);
	_cleanup_(cpu_sampler_closep) struct cpu_sampler *second = open_sampler(options);
	struct seen a = {.pid = pid}, b = {.pid = pid};

	(void)state;
	for (uint64_t since = clock_mono_ns(); is_early(since) && (a.named < 10 || b.named < 10);) {
		round_of(first, &a);
		round_of(second, &b);
	}
	assert_true(a.named >= 10 && b.named >= 10);
	cpu_sampler_close(first);
	b = (struct seen){.pid = pid};
	for (uint64_t since = clock_mono_ns(); is_early(since) && b.named < 10;)
		round_of(second, &b);
	end(pid);
	assert_true(b.named >= 10);
}

static size_t count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	size_t n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static void closing_leaves_nothing_open(void **state)
{
	size_t before = 0;

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct seen seen = {.pid = start(burn_forever)};
		struct cpu_sampler *s = open_sampler((struct cpu_sampler_options){
			.hz = 199, .pid = seen.pid, .offcpu_min_ns = 1000000});

		for (uint64_t since = clock_mono_ns(); is_early(since) && !seen.named;)
			round_of(s, &seen);
		end(seen.pid);
		cpu_sampler_close(s);
		/* The first time libraries may open what they keep. */
		if (i == 0)
			before = count_fds();
		assert_int_equal(count_fds(), before);
	}
}

static void what_cannot_be_sampled_is_said(void **state)
{
	struct cpu_sampler_options options = {.hz = 99, .pid = 0x7ffffff0};
	struct cpu_sampler *s = NULL;
	struct err err = {0};

	(void)state;
	assert_int_equal(cpu_sampler_open(&options, &s, &err), -ESRCH);
	assert_true(strlen(err.text) > 0);
	options = (struct cpu_sampler_options){.hz = 100000000};
	assert_int_equal(cpu_sampler_open(&options, &s, &err), -EINVAL);
	assert_non_null(strstr(err.text, "perf_event_max_sample_rate"));
	assert_null(s);
}

static void without_privilege_the_sentence_says_what_would_help(void **state)
{
	int status;
	pid_t pid = fork();

	(void)state;
	if (pid == 0) {
		struct cpu_sampler_options options = {.hz = 99};
		struct cpu_sampler *s = NULL;
		struct err err = {0};

		if (setgid(65534) < 0 || setuid(65534) < 0)
			_exit(2);
		_exit(cpu_sampler_open(&options, &s, &err) == -EPERM && strstr(err.text, "CAP_BPF")
			      ? 0
			      : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(busy_process_is_seen_with_whole_stacks),
		cmocka_unit_test(process_of_a_subordinate_id_is_its_users),
		cmocka_unit_test(only_the_chosen_process_is_sampled),
		cmocka_unit_test(stacks_outlive_their_process),
		cmocka_unit_test(first_samples_have_whole_stacks_too),
		cmocka_unit_test(forked_process_that_is_gone_is_walked_by_what_its_parent_maps),
		cmocka_unit_test(program_that_is_gone_before_it_is_known_is_counted_as_such),
		cmocka_unit_test(exec_and_exit_are_told),
		cmocka_unit_test(exec_makes_another_process),
		cmocka_unit_test(waits_are_seen_off_cpu),
		cmocka_unit_test(two_samplers_do_not_disturb_each_other),
		cmocka_unit_test(closing_leaves_nothing_open),
		cmocka_unit_test(what_cannot_be_sampled_is_said),
		cmocka_unit_test(without_privilege_the_sentence_says_what_would_help),
	};

	if (!cpu_is_possible())
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
