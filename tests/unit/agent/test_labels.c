/*
 * tests/unit/agent/test_labels.c: what records say of their process besides its name: runtime,
 * parent, command line; and of those that have exited.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/io.h"
#include "elf/image.h"
#include "test_fakes.h"

#define MINUTE_TICKS ((uint64_t)60 * (uint64_t)sysconf(_SC_CLK_TCK))

static void a_runtime_is_named_by_what_is_known_of_it(void **state)
{
	static const struct {
		const char *runtime, *exe, *library, *text;
		bool is_native;
	} cases[] = {
		{"go1.27.3", "/app/shop", NULL, "Go 1.27", false},
		{"go1.4", "/app/shop", NULL, "Go 1.4", false},
		{"java 21.0.5", "/usr/bin/java", NULL, "Java 21", false},
		{"java 1.8.0_462", "/usr/bin/java", NULL, "Java 8", false},
		{"java", "/usr/bin/java", NULL, "Java", false},
		{"python", "/usr/bin/python3.11", NULL, "Python 3.11", false},
		{"python", "/opt/bin/python3", "/opt/lib/libpython3.9.so.1.0", "Python 3.9", false},
		{"python", "/opt/bin/python3", NULL, "Python 3", false},
		{"python", "/root/.pyenv/versions/3.12.1/bin/python3", NULL, "Python 3.12", false},
		{"node", "/usr/bin/node", "/usr/lib/libnode.so.108", "Node 18", false},
		{"node", "/usr/bin/node", "/usr/lib/libnode.so.7", "Node", false},
		{"node", "/root/.nvm/versions/node/v20.11.0/bin/node", NULL, "Node 20", false},
		{"node", "/usr/bin/node18", NULL, "Node 18", false},
		{"ruby", "/usr/bin/ruby3.1", NULL, "Ruby 3.1", false},
		{"ruby", "/usr/local/bin/ruby", "/usr/local/lib/libruby.so.3.2", "Ruby 3.2", false},
		{"php", "/usr/sbin/php-fpm8.2", NULL, "PHP 8.2", false},
		{"perl", "/usr/bin/perl5.36.0", NULL, "Perl 5.36", false},
		{"perl", "/usr/bin/perl", NULL, "Perl", false},
		{"native", "/usr/sbin/nginx", NULL, "native", true},
		{"node", "/usr/bin/node_exporter", NULL, "native", true},
		/* Nobody could look. */
		{"native", "/usr/sbin/nginx", NULL, "", false},
		{"", "", NULL, "", false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct proc_map map = {.path = cases[i].library};
		struct proc_maps maps = {};
		char text[32];

		if (map.path)
			assert_int_equal(proc_maps_add(&maps, &map, NULL), 0);
		agent_runtime_describe(cases[i].runtime, cases[i].exe, cases[i].is_native, &maps,
				       text, sizeof(text));
		assert_string_equal(text, cases[i].text);
		if (map.path)
			assert_true(agent_runtime_needs_maps(cases[i].exe));
		proc_maps_release(&maps);
	}
	assert_false(agent_runtime_needs_maps("/usr/bin/python3.11"));
	assert_false(agent_runtime_needs_maps("/usr/sbin/nginx"));
}

/* A family: each has lived for so many seconds, and is the child of the one before. */
struct family {
	struct agent agent;
	struct agent_known known[4];
	struct agent_slot slots[4];
};

static void family_init(struct family *f, const uint64_t ages[4])
{
	uint64_t now = clock_boot_ns() / (NS_PER_SEC / (uint64_t)sysconf(_SC_CLK_TCK));

	*f = (struct family){.agent = {.known = f->known, .n_known = 4}};
	for (int i = 0; i < 4; i++) {
		struct proc_info *info = &f->slots[i].target.info;

		info->id = (struct proc_id){.pid = 10 + i,
					    .start_ticks = now - ages[i] * MINUTE_TICKS / 60};
		info->parent = i ? 9 + i : 0;
		(void)snprintf(info->service, sizeof(info->service), "service%d", i);
		f->slots[i].looked_ns = 1;
		f->known[i] = (struct agent_known){.pid = 10 + i, .slot = &f->slots[i]};
	}
}

static void a_parent_is_the_nearest_that_has_lived_for_a_minute(void **state)
{
	struct proc_info child = {.id = {.pid = 99, .start_ticks = UINT64_MAX}, .parent = 13};
	static struct family f;

	(void)state;
	family_init(&f, (uint64_t[4]){200, 100, 50, 5});
	agent_targets_find_parent(&f.agent, &child);
	assert_string_equal(child.parent_service, "service1");
	/* The sampler has found it already; those in between may be gone. */
	child.elder = 10;
	agent_targets_find_parent(&f.agent, &child);
	assert_string_equal(child.parent_service, "service0");
	/* It is there, but not examined: its name is still to come. */
	f.slots[0].looked_ns = 0;
	agent_targets_find_parent(&f.agent, &child);
	assert_string_equal(child.parent_service, "");
}

static void a_process_without_such_a_parent_has_none(void **state)
{
	struct proc_info child = {.id = {.pid = 99, .start_ticks = UINT64_MAX}, .parent = 13};
	static struct family f;

	(void)state;
	family_init(&f, (uint64_t[4]){50, 40, 30, 5});
	agent_targets_find_parent(&f.agent, &child);
	assert_string_equal(child.parent_service, "");
	/* Somebody unknown; and one that came later: the pid is another's by now. */
	child.parent = 77;
	agent_targets_find_parent(&f.agent, &child);
	assert_string_equal(child.parent_service, "");
	family_init(&f, (uint64_t[4]){500, 400, 300, 200});
	child.parent = 13;
	child.id.start_ticks = f.slots[3].target.info.id.start_ticks - 1;
	agent_targets_find_parent(&f.agent, &child);
	assert_string_equal(child.parent_service, "");
}

static void a_loop_of_parents_ends(void **state)
{
	struct proc_info child = {.id = {.pid = 99, .start_ticks = UINT64_MAX}, .parent = 13};
	static struct family f;

	(void)state;
	family_init(&f, (uint64_t[4]){5, 5, 5, 5});
	f.slots[3].target.info.parent = 13;
	agent_targets_find_parent(&f.agent, &child);
	assert_string_equal(child.parent_service, "");
}

/* One slot of an agent that runs nothing. */
struct lone {
	struct agent agent;
	struct agent_known known;
	struct agent_slot *slot;
};

static void lone_begin(struct lone *l)
{
	const struct sink_row sink = {.ops = &fake_sink};
	const struct pipeline_config config = {.sinks = &sink, .n_sinks = 1};
	const struct proc_stat st = {.comm = "python3", .start_ticks = 100, .parent = 1};

	*l = (struct lone){.agent = {.procs = &fake_world, .named = true}};
	l->agent.self.id.pid = getpid();
	l->agent.config.interval_ns = FAKE_INTERVAL_NS;
	delivery_list_init(&l->agent.mail);
	assert_int_equal(pthread_mutex_init(&l->agent.lock, NULL), 0);
	assert_int_equal(pipeline_open(&config, &l->agent.pipeline, NULL), 0);
	l->slot = agent_slot_new(&l->agent, 10, &st);
	assert_non_null(l->slot);
	l->known = (struct agent_known){.pid = 10, .slot = l->slot};
	l->agent.known = &l->known;
	l->agent.n_known = 1;
}

static void lone_end(struct lone *l)
{
	delivery_list_release(&l->agent.mail);
	agent_departed_forget(&l->agent, UINT64_MAX);
	live_clear(&l->agent.machine);
	agent_slot_free(&l->agent, l->slot);
	assert_true(pipeline_stop(l->agent.pipeline, clock_mono_ns() + NS_PER_SEC));
	pipeline_free(l->agent.pipeline);
	(void)pthread_mutex_destroy(&l->agent.lock);
}

static const char *lone_build = "";

static void lone_look(struct lone *l, const char *program, uint64_t image)
{
	struct agent_job job = {.what = AGENT_JOB_LOOK | AGENT_JOB_COLLECT, .image = image};
	struct proc_info *info = &job.target.info;

	info->id = l->slot->target.info.id;
	info->exec_image = image;
	info->rank = PROC_RANK_ROOT;
	(void)snprintf(info->comm, sizeof(info->comm), "python3");
	(void)snprintf(info->exe, sizeof(info->exe), "/usr/bin/python3.11");
	(void)snprintf(info->owner, sizeof(info->owner), "uid 0");
	(void)snprintf(info->program, sizeof(info->program), "%s", program);
	(void)snprintf(info->command, sizeof(info->command), "python3 %s", program);
	(void)snprintf(info->service, sizeof(info->service), "%s", program);
	(void)snprintf(info->runtime, sizeof(info->runtime), "%s", program);
	(void)snprintf(info->build_id, sizeof(info->build_id), "%s", lone_build);
	agent_slot_take_looks(&l->agent, l->slot, &job);
}

/* A process that runs this file; it ends with its input. */
static struct proc_info run_file(const char *path, int *ret_input)
{
	struct proc_info info = {0};
	int fds[2];

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	info.id.pid = fork();
	assert_true(info.id.pid >= 0);
	if (info.id.pid == 0) {
		if (dup2(fds[0], 0) == 0)
			(void)execl(path, path, (char *)NULL);
		_exit(127);
	}
	(void)close(fds[0]);
	*ret_input = fds[1];
	(void)snprintf(info.exe, sizeof(info.exe), "%s", path);
	return info;
}

static void copy_file(const char *from, const char *to)
{
	_cleanup_(buf_release) struct buf bytes = {0};

	assert_int_equal(io_read_file(AT_FDCWD, from, &bytes, NULL), 0);
	(void)unlink(to);
	assert_int_equal(io_write_file(to, buf_view(&bytes), NULL), 0);
	assert_int_equal(chmod(to, 0700), 0);
}

static void runs_by_now(struct proc_info *info)
{
	struct stat wanted, st = {0};
	char link[64];

	assert_int_equal(stat(info->exe, &wanted), 0);
	(void)snprintf(link, sizeof(link), "/proc/%d/exe", (int)info->id.pid);
	for (int i = 0; i < 2000 && st.st_ino != wanted.st_ino; i++) {
		clock_sleep_ns(5 * NS_PER_MS);
		assert_int_equal(stat(link, &st), 0);
	}
	assert_true(st.st_ino == wanted.st_ino);
}

static void stop(const struct proc_info *info, int input)
{
	int status;

	(void)close(input);
	assert_int_equal(waitpid(info->id.pid, &status, 0), info->id.pid);
}

static void a_build_is_read_once_from_the_file_that_runs(void **state)
{
	struct agent_builds *builds = agent_builds_new();
	char dir[] = "/tmp/sonde-builds-XXXXXX", path[64];
	_cleanup_(elf_image_closep) struct elf_image *image = NULL;
	_cleanup_close_ int cat = open("/bin/cat", O_RDONLY | O_CLOEXEC);
	struct proc_info first, second, gone = {.id.pid = -1};
	char expected[96];
	int inputs[2];

	(void)state;
	assert_non_null(builds);
	assert_non_null(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/shop", dir);
	assert_int_equal(elf_image_open_fd(cat, &image, NULL), 0);
	assert_true(elf_image_build_id(image, expected, sizeof(expected)));
	copy_file("/bin/cat", path);
	first = run_file(path, &inputs[0]);
	second = run_file(path, &inputs[1]);
	runs_by_now(&first);
	runs_by_now(&second);
	/* By now the name leads to another file. */
	copy_file("/bin/sh", path);
	assert_true(agent_builds_find(builds, &agent_processes_procfs, &first));
	assert_false(agent_builds_find(builds, &agent_processes_procfs, &second));
	assert_string_equal(first.build_id, expected);
	assert_string_equal(second.build_id, expected);
	assert_false(first.build_is_go);
	stop(&first, inputs[0]);
	first = run_file(path, &inputs[0]);
	runs_by_now(&first);
	assert_true(agent_builds_find(builds, &agent_processes_procfs, &first));
	assert_true(first.build_id[0] && strcmp(first.build_id, expected) != 0);
	assert_false(agent_builds_find(builds, &agent_processes_procfs, &gone));
	assert_string_equal(gone.build_id, "");
	stop(&first, inputs[0]);
	stop(&second, inputs[1]);
	(void)unlink(path);
	(void)rmdir(dir);
	agent_builds_free(builds);
}

static void a_build_that_shows_late_is_no_second_label(void **state)
{
	static struct lone l;
	const struct resource *first;

	(void)state;
	lone_begin(&l);
	lone_look(&l, "shop.py", 7);
	first = resource_ref(l.slot->resource);
	assert_null(resource_label(first, "process.executable.build_id.gnu"));
	lone_build = "00c0ffee";
	lone_look(&l, "shop.py", 7);
	assert_ptr_equal(l.slot->resource, first);
	lone_look(&l, "shop.py", 8);
	assert_string_equal(resource_label(l.slot->resource, "process.executable.build_id.gnu"),
			    "00c0ffee");
	assert_null(resource_label(l.slot->resource, "process.executable.build_id.go"));
	lone_build = "";
	resource_unref(first);
	lone_end(&l);
}

static void a_title_changes_no_label_and_an_exec_does(void **state)
{
	static struct lone l;
	const struct resource *first;

	(void)state;
	lone_begin(&l);
	lone_look(&l, "shop.py", 7);
	first = resource_ref(l.slot->resource);
	assert_string_equal(first->service, "shop.py");
	assert_string_equal(resource_label(first, "process.command_line"), "python3 shop.py");
	assert_string_equal(resource_label(first, "process.runtime.description"), "shop.py");
	lone_look(&l, "title", 7);
	assert_ptr_equal(l.slot->resource, first);
	assert_string_equal(l.slot->target.info.command, "python3 shop.py");
	lone_look(&l, "other.py", 8);
	assert_string_equal(l.slot->resource->service, "other.py");
	resource_unref(first);
	lone_end(&l);
}

/* What the sampler has of it: its name, or only that of its command. */
static const struct resource *lone_judge(struct lone *l, const char *exe, const char *comm,
					 enum agent_delivery_verdict expected)
{
	struct delivery *d =
		delivery_new(record_new_metrics(metrics_new()), (struct record_time){0});
	const struct resource *resource;

	assert_non_null(d);
	d->info.id = l->slot->target.info.id;
	(void)snprintf(d->info.exe, sizeof(d->info.exe), "%s", exe);
	(void)snprintf(d->info.comm, sizeof(d->info.comm), "%s", comm);
	(void)snprintf(d->info.service, sizeof(d->info.service), "shallow");
	assert_int_equal(agent_targets_judge(&l->agent, d), expected);
	/* To be compared, no more. */
	resource = d->resource;
	delivery_free(d);
	return resource;
}

static void what_comes_after_the_exit_goes_by_the_same_name(void **state)
{
	static struct lone l;

	(void)state;
	lone_begin(&l);
	lone_look(&l, "shop.py", 7);
	l.agent.n_known = 0;
	agent_departed_add(&l.agent, l.slot);
	assert_ptr_equal(lone_judge(&l, "/usr/bin/python3.11", "x", AGENT_DELIVERY_TAKE),
			 l.slot->resource);
	assert_ptr_equal(lone_judge(&l, "", "python3", AGENT_DELIVERY_TAKE), l.slot->resource);
	/* From before its exec, perhaps. */
	assert_ptr_not_equal(lone_judge(&l, "", "bash", AGENT_DELIVERY_TAKE), l.slot->resource);
	assert_ptr_not_equal(lone_judge(&l, "/bin/bash", "x", AGENT_DELIVERY_TAKE),
			     l.slot->resource);
	/* One that has opted out has done so to its end. */
	l.slot->target.info.opted_out = true;
	agent_departed_forget(&l.agent, UINT64_MAX);
	agent_departed_add(&l.agent, l.slot);
	(void)lone_judge(&l, "", "python3", AGENT_DELIVERY_LEAVE);
	lone_end(&l);
}

static void only_so_many_exits_are_remembered_and_not_for_long(void **state)
{
	static struct lone l;

	(void)state;
	lone_begin(&l);
	lone_look(&l, "shop.py", 7);
	for (int i = 0; i < 3 * AGENT_DEPARTED_MAX; i++) {
		l.slot->target.info.id.start_ticks++;
		agent_departed_add(&l.agent, l.slot);
	}
	assert_non_null(agent_departed_find(&l.agent, &l.slot->target.info));
	agent_departed_forget(&l.agent, clock_mono_ns());
	assert_non_null(agent_departed_find(&l.agent, &l.slot->target.info));
	agent_departed_forget(&l.agent, clock_mono_ns() + 60 * NS_PER_SEC);
	assert_null(agent_departed_find(&l.agent, &l.slot->target.info));
	lone_end(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_runtime_is_named_by_what_is_known_of_it),
		cmocka_unit_test(a_parent_is_the_nearest_that_has_lived_for_a_minute),
		cmocka_unit_test(a_process_without_such_a_parent_has_none),
		cmocka_unit_test(a_loop_of_parents_ends),
		cmocka_unit_test(a_build_is_read_once_from_the_file_that_runs),
		cmocka_unit_test(a_build_that_shows_late_is_no_second_label),
		cmocka_unit_test(a_title_changes_no_label_and_an_exec_does),
		cmocka_unit_test(what_comes_after_the_exit_goes_by_the_same_name),
		cmocka_unit_test(only_so_many_exits_are_remembered_and_not_for_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
