/* src/features/probe.c: see probe.h. */
#include "features/probe.h"

#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cpu/sampler/sampler.h"
#include "cpu/symbols/kallsyms.h"
#include "java/recorder/mount.h"
#include "oom/mounts.h"
#include "oom/victims.h"
#include "proc/host.h"

/* Less than this fills up before anyone notices. */
#define PROBE_MIN_DISK_BYTES ((uint64_t)32 << 20)

static int try_sampler(bool cpu, bool offcpu, struct err *err)
{
	const struct cpu_sampler_options options = {
		.hz = cpu, .pid = getpid(), .offcpu_min_ns = offcpu ? 1000000000 : 0};
	_cleanup_(cpu_sampler_closep) struct cpu_sampler *sampler = NULL;

	return cpu_sampler_open(&options, &sampler, err);
}

/* Try both at once, and each alone only if that fails. */
static void probe_cpu(struct features *f)
{
	struct err err = {};
	int r = try_sampler(true, true, &err);

	features_set(f, FEATURES_CPU, r, &err);
	features_set(f, FEATURES_OFFCPU, r, &err);
	if (r == 0)
		return;
	features_set(f, FEATURES_CPU, try_sampler(true, false, &err), &err);
	features_set(f, FEATURES_OFFCPU, try_sampler(false, true, &err), &err);
}

static void probe_oom(struct features *f)
{
	_cleanup_(oom_victims_closep) struct oom_victims *victims = NULL;
	_cleanup_(oom_mounts_close) struct oom_mounts mounts = {};
	struct err err = {};

	features_set(f, FEATURES_OOM_KILLS, oom_victims_open(&victims, &err), &err);
	features_set(f, FEATURES_OOM_LIMITS, oom_mounts_open(&mounts, &err), &err);
}

/* Go and Java profiles read process memory, or need the same permission. */
static void probe_memory(struct features *f)
{
	static const enum features_id ids[] = {FEATURES_GO, FEATURES_JAVA_COUNTERS, FEATURES_JAVA};
	struct err err = {};
	bool own;
	int r = proc_host_check_memory(&own, &err);

	for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
		if (r < 0 && own)
			features_limit(f, ids[i], &err);
		else
			features_set(f, ids[i], r, &err);
	}
	r = java_mount_check(&err);
	if (r < 0)
		features_set(f, FEATURES_JAVA, r, &err);
}

void features_probe_host(struct features *f)
{
	struct err err = {};

	probe_memory(f);
	features_set(f, FEATURES_KERNEL_NAMES, cpu_kallsyms_check(CPU_KALLSYMS_PATH, &err), &err);
	features_set(f, FEATURES_HOST_PIDS, proc_host_check_pids(&err), &err);
}

/* Tested by creating a directory inside and removing it. */
static int try_dir(const char *dir)
{
	_cleanup_free_ char *path = NULL;

	if (asprintf(&path, "%s/.sonde-XXXXXX", dir) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	if (!mkdtemp(path))
		return -errno;
	(void)rmdir(path);
	return 0;
}

/* Created on demand: then its future parent must be writable. */
static int probe_dir(char *dir, struct err *err)
{
	static const char another[] = "choose another directory with --data-dir";
	struct statvfs fs;
	int r;

	while (access(dir, F_OK) < 0 && errno == ENOENT && strcmp(dir, "/") != 0 &&
	       strcmp(dir, ".") != 0)
		(void)dirname(dir);
	r = try_dir(dir);
	if (r < 0)
		return err_lack(err, r,
				r == -EACCES || r == -EPERM ? ERR_CAUSE_PRIVILEGE : ERR_CAUSE_DISK,
				another, "cannot write to %s: %s", dir, strerror(-r));
	if (statvfs(dir, &fs) == 0 && (uint64_t)fs.f_bavail * fs.f_frsize < PROBE_MIN_DISK_BYTES)
		return err_lack(err, -ENOSPC, ERR_CAUSE_DISK,
				"free disk space, or choose another directory with --data-dir",
				"the disk of %s has only %llu MB left", dir,
				(unsigned long long)fs.f_bavail * fs.f_frsize >> 20);
	return 0;
}

static void probe_store(struct features *f, const char *data_dir)
{
	_cleanup_free_ char *dir = strdup(data_dir);
	struct err err = {};
	int r = dir ? probe_dir(dir, &err) : err_oom(&err);

	features_set(f, FEATURES_STORE, r, &err);
}

void features_probe(const char *data_dir, struct features *ret_features)
{
	struct features f = {};

	probe_cpu(&f);
	probe_oom(&f);
	features_probe_host(&f);
	if (data_dir)
		probe_store(&f, data_dir);
	features_settle(&f);
	*ret_features = f;
}
