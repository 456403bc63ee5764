/* src/bpf/skeleton.c: see skeleton.h. */
#include "bpf/skeleton.h"

#include <sys/mman.h>
#include <sys/utsname.h>

#include <bpf/libbpf.h>

#include "bpf/kernel.h"

static int quiet(enum libbpf_print_level level, const char *format, va_list args)
{
	(void)level;
	(void)format;
	(void)args;
	return 0;
}

int bpf_skeleton_prepare(struct err *err)
{
	/* libbpf's log is for authors of BPF programs; users get our message. */
	(void)libbpf_set_print(quiet);
	return bpf_kernel_check_btf(err);
}

static bool is_lacking(const struct bpf_need *need)
{
	return need && libbpf_probe_bpf_helper(need->type, need->helper, NULL) != 1;
}

static int explain_load(int code, const struct bpf_need *need, struct err *err)
{
	struct utsname host = {0};

	if (code == -EPERM || code == -EACCES || code == -ENOSYS)
		return bpf_kernel_explain("bpf()", code, err);
	if (is_lacking(need)) {
		(void)uname(&host);
		err_write(err, "%s need %s, which Linux %s lacks", need->what, need->name,
			  host.release);
		err_write_remedy(err, ERR_CAUSE_KERNEL, "use Linux %s or later", need->since);
		return -ENOTSUP;
	}
	if (code == -ENOMEM)
		return err_lack(err, code, ERR_CAUSE_OTHER,
				"raise RLIMIT_MEMLOCK: ulimit -l unlimited",
				"not enough locked memory for BPF maps");
	return bpf_kernel_explain("bpf()", code, err);
}

int bpf_skeleton_load(struct bpf_object_skeleton *skeleton, const struct bpf_need *need,
		      struct err *err)
{
	int r = bpf_object__load_skeleton(skeleton);

	return r < 0 ? explain_load(r, need, err) : 0;
}

int bpf_skeleton_attach(struct bpf_program *program, const char *tracepoint,
			struct bpf_link **ret_link, struct err *err)
{
	struct bpf_link *link = bpf_program__attach(program);
	int r;

	if (link) {
		*ret_link = link;
		return 0;
	}
	if (errno == ENOENT)
		return err_lack(err, -ENOTSUP, ERR_CAUSE_KERNEL, "use Linux 5.17 or later",
				"the kernel lacks the tracepoint %s", tracepoint);
	r = bpf_kernel_explain("bpf()", -errno, err);
	return err_prefix(err, r, "cannot attach to %s", tracepoint);
}

void *bpf_skeleton_map(const struct bpf_map *map, size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);

	return p == MAP_FAILED ? NULL : p;
}
