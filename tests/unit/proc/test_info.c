/* tests/unit/proc/test_info.c: names of processes, containers, pods, units and services. */
#include "proc/info.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "child.h"

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define ID2 "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"
#define UID "12345678-9abc-def0-1234-56789abcdef0"
#define UID_ "12345678_9abc_def0_1234_56789abcdef0"
#define STATIC_UID "0123456789abcdef0123456789abcdef"

static const struct {
	const char *text;
	const char *container;
	const char *pod;
	const char *unit;
} cgroups[] = {
	{"", "", "", ""},
	{"0::/\n", "", "", ""},
	{"nonsense\n:::\n::\n0:\n", "", "", ""},
	{"0::/system.slice/docker-" ID ".scope\n", ID, "", ""},
	{"12:cpuset:/docker/" ID "\n0::/\n", ID, "", ""},
	{"0::/docker/" ID "/docker/" ID2 "\n", ID2, "", ""},
	{"0::/../docker-" ID ".scope/init\n", ID, "", ""},
	{"0::/machine.slice/libpod-" ID ".scope/container\n", ID, "", ""},
	{"0::/machine.slice/libpod-conmon-" ID ".scope\n", "", "", ""},
	{"0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID
	 ".scope/container",
	 ID, "", ""},
	{"0::/kubepods/burstable/pod" UID "/" ID "\n", ID, UID, ""},
	{"0::/kubepods/pod" STATIC_UID "/" ID "\n", ID, STATIC_UID, ""},
	{"0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" UID_
	 ".slice/cri-containerd-" ID ".scope\n",
	 ID, UID, ""},
	{"0::/kubepods.slice/kubepods-pod" UID_ ".slice/crio-" ID ".scope\n", ID, UID, ""},
	{"11:memory:/system.slice/containerd.service/kubepods-besteffort-pod" UID_
	 ".slice:cri-containerd:" ID "\n",
	 ID, UID, "containerd.service"},
	{"4:devices:/\n1:name=systemd:/kubepods/besteffort/pod" UID "/" ID "\n", ID, UID, ""},
	{"0::/home/pod" UID "/x\n", "", "", ""},
	{"0::/ecs/task/" ID "\n", ID, "", ""},
	{"0::/lxc/web1\n", "web1", "", ""},
	{"0::/lxc.payload.web1/system.slice/nginx.service\n", "web1", "", "nginx.service"},
	{"0::/lxc.payload/web2\n", "web2", "", ""},
	{"0::/system.slice/nginx.service\n", "", "", "nginx.service"},
	{"0::/system.slice/foo.service/supervisor/worker\n", "", "", "foo.service"},
	{"0::/system.slice/system-postgresql.slice/postgresql@15-main.service\n", "", "",
	 "postgresql@15-main.service"},
	{"0::/user.slice/user-1000.slice/session-3.scope\n", "", "", ""},
	{"0::/user.slice/user-1000.slice/user@1000.service/init.scope\n", "", "", ""},
	{"0::/user.slice/user-1000.slice/user@1000.service/app.slice/app.service\n", "", "",
	 "app.service"},
	{"0::/user.slice/user-1000.slice/user@1000.service/app.slice/vte-1.scope\n", "", "", ""},
	{"12:pids:/system.slice/ssh.service\n1:name=systemd:/system.slice/ssh.service\n", "", "",
	 "ssh.service"},
	{"0::/.service\n", "", "", ""},
	{"0::/a\033[1m.service\n", "", "", "a?[1m.service"},
	{"0::/docker/" ID "0\n", "", "", ""},
	{"0::/docker/0123456789ABCDEF0123456789ABCDEF0123456789ABCDEF0123456789ABCDEF\n", "", "",
	 ""},
};

static void cgroup_names_tell_container_pod_and_unit(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cgroups); i++) {
		struct proc_info info = {.container = "x", .pod = "x", .unit = "x"};

		proc_info_parse_cgroup(&info, cgroups[i].text);
		assert_string_equal(info.container, cgroups[i].container);
		assert_string_equal(info.pod, cgroups[i].pod);
		assert_string_equal(info.unit, cgroups[i].unit);
	}
}

static void only_the_outermost_name_proves_a_workload(void **state)
{
	static const struct {
		const char *text;
		const char *workload;
	} cases[] = {
		{"0::/\n", ""},
		{"0::/system.slice/docker-" ID ".scope\n", "container 0123456789ab"},
		{"0::/docker/" ID "/docker/" ID2 "\n", "container 0123456789ab"},
		{"0::/docker/" ID "/system.slice/nginx.service\n", "container 0123456789ab"},
		{"0::/kubepods/burstable/pod" UID "/" ID "\n", "pod " UID},
		{"0::/docker/" ID "/kubepods/pod" UID "/" ID2 "\n", "container 0123456789ab"},
		{"11:memory:/system.slice/containerd.service/kubepods-besteffort-pod" UID_
		 ".slice:cri-containerd:" ID "\n",
		 "pod " UID},
		{"0::/lxc.payload.web1/system.slice/nginx.service\n", "container web1"},
		{"0::/system.slice/nginx.service\n", "unit nginx.service"},
		/* A unit with cgroups of its own makes up neither units nor containers. */
		{"0::/system.slice/ci.service/nginx.service\n", "unit ci.service"},
		{"0::/system.slice/ci.service/docker-" ID ".scope\n", "unit ci.service"},
		{"0::/system.slice/ci.service/lxc/web1\n", "unit ci.service"},
		/* Nor does a user. */
		{"0::/user.slice/user-1000.slice/session-3.scope\n", ""},
		{"0::/user.slice/user-1000.slice/user@1000.service/app.slice/nginx.service\n", ""},
		{"0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID
		 ".scope/container\n",
		 ""},
		{"0::/user.slice/user-1000.slice/user@1000.service/lxc/web1\n", ""},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct proc_info info = {.workload = "x"};

		proc_info_parse_cgroup(&info, cases[i].text);
		assert_string_equal(info.workload, cases[i].workload);
	}
}

#define OVERLAY(layers) "700 600 0:50 / / rw,relatime - overlay overlay rw," layers "\n"

static void containers_of_one_image_are_one_workload(void **state)
{
	static const char *const same[] = {
		/* Docker's own layer on top differs from container to container. */
		OVERLAY("lowerdir=/d/overlay2/l/INIT1:/d/overlay2/l/B:/d/overlay2/l/A,upperdir=/x"),
		OVERLAY("lowerdir=/d/overlay2/l/INIT2:/d/overlay2/l/B:/d/overlay2/l/A,upperdir=/y"),
		"701 700 0:51 / /proc rw - proc proc rw\n" OVERLAY(
			"lowerdir=/d/overlay2/l/INIT3:/d/overlay2/l/B:/d/overlay2/l/A"),
	};
	static const char *const others[] = {
		"",
		"700 600 8:1 / / rw - ext4 /dev/sda1 rw,lowerdir=/a\n",
		"700 600 0:50 / /mnt rw - overlay overlay rw,lowerdir=/a\n",
		"700 600 0:50 / /\n",
		"700 600\n\n \n/ / / / / /\n",
		OVERLAY("upperdir=/x"),
		OVERLAY("lowerdir="),
		OVERLAY("lowerdir=/d/overlay2/l/INIT1"),
	};
	struct proc_info a = {0}, b = {0};

	(void)state;
	proc_info_parse_mounts(&a, same[0]);
	assert_int_equal(strncmp(a.image, "image ", 6), 0);
	for (size_t i = 0; i < ARRAY_SIZE(same); i++) {
		proc_info_parse_mounts(&b, same[i]);
		assert_string_equal(b.image, a.image);
	}
	proc_info_parse_mounts(&b, OVERLAY("lowerdir=/c/1/fs:/c/2/fs"));
	assert_string_not_equal(b.image, a.image);
	proc_info_parse_mounts(&a, OVERLAY("lowerdir+=/c/1/fs,lowerdir+=/c/2/fs"));
	assert_string_equal(b.image, a.image);
	proc_info_parse_mounts(&a, OVERLAY("lowerdir=/c/2/fs:/c/1/fs"));
	assert_string_not_equal(b.image, a.image);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		proc_info_parse_mounts(&b, others[i]);
		assert_string_equal(b.image, "");
	}
}

static void who_owns_a_name_is_not_its_own_word(void **state)
{
	static const struct {
		struct proc_info info;
		const char *owner;
		enum proc_rank rank;
	} cases[] = {
		/* Only its manager's name for it is proven. */
		{{.unit = "nginx.service", .workload = "unit nginx.service", .uid = 33},
		 "unit nginx.service",
		 PROC_RANK_PROVEN},
		{{.service = "shop",
		  .unit = "nginx.service",
		  .workload = "unit nginx.service",
		  .uid = 33},
		 "unit nginx.service",
		 PROC_RANK_UNIT},
		{{.service = "shop", .workload = "unit nginx.service", .uid = 0},
		 "unit nginx.service",
		 PROC_RANK_ROOT},
		{{.unit = "inner.service", .workload = "unit ci.service", .uid = 33},
		 "unit ci.service",
		 PROC_RANK_UNIT},
		{{.unit = "nginx.service", .uid = 1000}, "uid 1000", PROC_RANK_USER},
		{{.container = "web1", .workload = "container web1"},
		 "container web1",
		 PROC_RANK_PROVEN},
		{{.container = "web1", .uid = 1000}, "uid 1000", PROC_RANK_USER},
		/* People's jobs in a unit, of cron for one, are theirs. */
		{{.service = "shop", .workload = "unit cron.service", .uid = 1000},
		 "uid 1000",
		 PROC_RANK_USER},
		{{.service = "shop", .workload = "unit cron.service", .uid = 65534},
		 "uid 65534",
		 PROC_RANK_USER},
		/* Root in a container is nobody outside. */
		{{.container = ID, .workload = "container 0123456789ab", .exe = "/a", .uid = 0},
		 "container 0123456789ab",
		 PROC_RANK_CONTAINER},
		{{.container = ID, .workload = "pod " UID, .image = "image 12", .uid = 7},
		 "image 12",
		 PROC_RANK_CONTAINER},
		{{.exe = "/usr/bin/shop", .uid = 0}, "uid 0", PROC_RANK_ROOT},
		{{.comm = "shop", .uid = 65534}, "uid 65534", PROC_RANK_USER},
		{{.comm = "shop", .uid = PROC_UID_UNKNOWN}, "", PROC_RANK_USER},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct proc_info info = cases[i].info;

		proc_info_name_service(&info);
		assert_string_equal(info.owner, cases[i].owner);
		assert_int_equal(info.rank, cases[i].rank);
	}
}

static void what_is_left_of_a_process_is_its_user(void **state)
{
	struct proc_info info;

	(void)state;
	proc_info_of_exited(42, "sixteen-letters!", 65534, 0, &info);
	assert_int_equal(info.id.pid, 42);
	assert_string_equal(info.service, "sixteen-letters!");
	assert_string_equal(info.owner, "uid 65534");
	/* Perhaps root of a container. */
	proc_info_of_exited(42, "sh", 0, 1ULL << 60, &info);
	assert_string_equal(info.owner, "");
	assert_int_equal(info.rank, PROC_RANK_USER);
}

static void environment_names_the_service(void **state)
{
#define ENV(s) s, sizeof(s)
	static const struct {
		const char *env;
		size_t len;
		const char *service;
	} cases[] = {
		{ENV("A=1\0OTEL_SERVICE_NAME=shop\0B=2"), "shop"},
		{ENV("OTEL_SERVICE_NAME=one\0OTEL_SERVICE_NAME=two"), "one"},
		{ENV("XOTEL_SERVICE_NAME=no\0OTEL_SERVICE_NAMES=no"), ""},
		{ENV("OTEL_SERVICE_NAME="), ""},
		{ENV("OTEL_SERVICE_NAME=  \0OTEL_RESOURCE_ATTRIBUTES=service.name=b"), "b"},
		{ENV("OTEL_RESOURCE_ATTRIBUTES=a=b, service.name = my%20shop%2c1 ,c=d"),
		 "my shop,1"},
		{ENV("OTEL_RESOURCE_ATTRIBUTES=service.name=a\0OTEL_SERVICE_NAME=b"), "b"},
		{ENV("OTEL_RESOURCE_ATTRIBUTES=service.name=a,service.name=b"), "b"},
		{ENV("OTEL_RESOURCE_ATTRIBUTES=service.namespace=a,,=,x"), ""},
		{ENV("OTEL_RESOURCE_ATTRIBUTES=service.name=100%,x=%zz"), "100%"},
		{ENV("OTEL_RESOURCE_ATTRIBUTES=service.name=a%1bb%00c"), "a?b?c"},
		{"OTEL_SERVICE_NAME=cut", 21, ""},
		{"", 0, ""},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct proc_info info = {0};

		proc_info_parse_environ(&info, view_of(cases[i].env, cases[i].len));
		assert_string_equal(info.service, cases[i].service);
	}
}

static void environment_says_which_namespace_and_version(void **state)
{
	static const char env[] = "OTEL_SERVICE_NAME=cart\0"
				  "OTEL_RESOURCE_ATTRIBUTES=service.version=1.4.2%2Bdirty,"
				  "service.namespace = shop ,service.versions=9\0"
				  "SONDE_PROFILING=disabled";
	static const char long_env[] = "OTEL_RESOURCE_ATTRIBUTES=service.version="
				       "0123456789abcdef0123456789abcdef"
				       "0123456789abcdef0123456789abcdef,service.name=cart";
	struct proc_info info = {0};

	(void)state;
	proc_info_parse_environ(&info, view_of(env, sizeof(env)));
	assert_string_equal(info.service, "cart");
	assert_string_equal(info.namespace, "shop");
	assert_string_equal(info.version, "1.4.2+dirty");
	assert_true(info.opted_out);

	info = (struct proc_info){0};
	proc_info_parse_environ(&info, view_of(long_env, sizeof(long_env)));
	assert_string_equal(info.service, "cart");
	assert_string_equal(info.namespace, "");
	assert_int_equal(strlen(info.version), sizeof(info.version) - 1);
}

static void service_falls_back_to_what_a_person_would_call_it(void **state)
{
	static const struct {
		struct proc_info info;
		const char *service;
	} cases[] = {
		{{.service = "set", .unit = "a.service", .comm = "c"}, "set"},
		{{.unit = "nginx.service", .exe = "/usr/sbin/nginx", .comm = "c"}, "nginx"},
		{{.container = ID, .exe = "/app/shop", .comm = "c"}, "shop"},
		{{.container = ID, .unit = "docker.service", .exe = "/app/shop"}, "shop"},
		{{.container = "web1", .unit = "nginx.service", .exe = "/x"}, "web1"},
		{{.exe = "/usr/bin/prog", .comm = "c"}, "prog"},
		{{.program = "shop.py", .exe = "/usr/bin/python3", .comm = "c"}, "shop.py"},
		{{.program = "shop.py", .unit = "a.service", .exe = "/usr/bin/python3"}, "a"},
		{{.comm = "kworker/0:1"}, "kworker/0:1"},
		{{.id = {.pid = 1}}, "?"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct proc_info info = cases[i].info;

		proc_info_name_service(&info);
		assert_string_equal(info.service, cases[i].service);
	}
}

static void a_program_keeps_its_name_until_it_calls_exec(void **state)
{
	struct proc_info before = {.program = "shop.py", .command = "python3 shop.py"};
	struct proc_info now = {.program = "title", .command = "title: worker"};

	(void)state;
	proc_info_name_service(&before);
	proc_info_name_service(&now);
	proc_info_keep_program(&now, &before);
	assert_string_equal(now.service, "shop.py");
	assert_string_equal(now.program, "shop.py");
	assert_string_equal(now.command, "python3 shop.py");
	/* What has another name by a better word keeps that. */
	now = (struct proc_info){.program = "title", .service = "shop"};
	proc_info_name_service(&now);
	proc_info_keep_program(&now, &before);
	assert_string_equal(now.service, "shop");
}

static void become_sleep(void)
{
	static char arg0[] = "sleep", arg1[] = "60";
	static char env[] = "OTEL_SERVICE_NAME=night\tshift";

	(void)execve("/bin/sleep", (char *[]){arg0, arg1, NULL}, (char *[]){env, NULL});
}

static void info_of_a_real_process_has_command_executable_and_service(void **state)
{
	struct child c = child_start(child_nothing, become_sleep);
	struct proc_info info;
	struct proc_id id;
	struct err err;

	(void)state;
	child_go(&c);
	child_wait_comm(&c, "sleep");
	/* An exec gives the new name first and the environment a little later. */
	for (int tries = 0; tries < 100000; tries++) {
		assert_int_equal(proc_info_read(c.pid, &info, &err), 0);
		if (strcmp(info.service, "sleep") != 0)
			break;
		(void)usleep(1000);
	}
	assert_string_equal(info.comm, "sleep");
	assert_string_equal(strrchr(info.exe, '/'), "/sleep");
	assert_string_equal(info.service, "night?shift");
	assert_string_equal(info.program, "sleep");
	assert_string_equal(info.command, "sleep 60");
	assert_int_equal(info.parent, getpid());
	assert_int_equal(info.uid, getuid());
	assert_true(info.owner[0]);
	assert_false(info.kernel_thread);
	assert_int_equal(proc_id_of(c.pid, &id, &err), 0);
	assert_int_equal(info.id.pid, id.pid);
	assert_int_equal(info.id.start_ticks, id.start_ticks);
	child_end(&c);
	assert_int_equal(proc_info_read(c.pid, &info, &err), -ESRCH);
	assert_string_equal(info.comm, "sleep");
}

static char script_path[] = "/tmp/sonde-script-XXXXXX";

static void become_script(void)
{
	(void)chdir("/");
	(void)execl("/bin/sh", "sh", "-eu", "-o", "noclobber", script_path, "--token=x",
		    (char *)NULL);
}

static void a_script_is_what_a_shell_is_called_by(void **state)
{
	int fd = mkstemp(script_path);
	struct proc_info info;
	struct err err;
	struct child c;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "sleep 60\n:\n", 11), 11);
	close(fd);
	c = child_start(child_nothing, become_script);
	child_go(&c);
	for (int tries = 0; tries < 100000; tries++) {
		assert_int_equal(proc_info_read(c.pid, &info, &err), 0);
		if (strstr(info.command, "--token"))
			break;
		(void)usleep(1000);
	}
	assert_string_equal(info.program, strrchr(script_path, '/') + 1);
	assert_non_null(strstr(info.command, "--token=***"));
	/* Nothing of its memory is read. */
	assert_int_equal(proc_info_read_shallow(c.pid, &info, &err), 0);
	assert_string_equal(info.command, "");
	assert_string_equal(info.program, strrchr(info.exe, '/') + 1);
	child_end(&c);
	assert_int_equal(unlink(script_path), 0);
}

static char copy_path[] = "/tmp/sonde-XXXXXX";

static void become_copy(void)
{
	(void)execl(copy_path, "copy", "60", (char *)NULL);
}

static void info_of_a_deleted_executable_keeps_its_name(void **state)
{
	int fd = mkstemp(copy_path);
	struct proc_info info;
	char command[128];
	struct child c;
	struct err err;

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	(void)snprintf(command, sizeof(command), "cp /bin/sleep %s && chmod 700 %s", copy_path,
		       copy_path);
	assert_int_equal(system(command), 0);
	c = child_start(child_nothing, become_copy);
	child_go(&c);
	child_wait_comm(&c, strrchr(copy_path, '/') + 1);
	assert_int_equal(unlink(copy_path), 0);
	assert_int_equal(proc_info_read(c.pid, &info, &err), 0);
	assert_string_equal(info.exe, copy_path);
	child_end(&c);
}

static void list_is_sorted_and_holds_this_process(void **state)
{
	_cleanup_free_ pid_t *pids = NULL;
	bool found = false;
	struct err err;
	size_t n;

	(void)state;
	assert_int_equal(proc_list(&pids, &n, &err), 0);
	assert_true(n > 0);
	for (size_t i = 0; i < n; i++) {
		assert_true(i == 0 || pids[i] > pids[i - 1]);
		found |= pids[i] == getpid();
	}
	assert_true(found);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cgroup_names_tell_container_pod_and_unit),
		cmocka_unit_test(only_the_outermost_name_proves_a_workload),
		cmocka_unit_test(containers_of_one_image_are_one_workload),
		cmocka_unit_test(who_owns_a_name_is_not_its_own_word),
		cmocka_unit_test(what_is_left_of_a_process_is_its_user),
		cmocka_unit_test(environment_names_the_service),
		cmocka_unit_test(environment_says_which_namespace_and_version),
		cmocka_unit_test(service_falls_back_to_what_a_person_would_call_it),
		cmocka_unit_test(a_program_keeps_its_name_until_it_calls_exec),
		cmocka_unit_test(a_script_is_what_a_shell_is_called_by),
		cmocka_unit_test(info_of_a_real_process_has_command_executable_and_service),
		cmocka_unit_test(info_of_a_deleted_executable_keeps_its_name),
		cmocka_unit_test(list_is_sorted_and_holds_this_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
