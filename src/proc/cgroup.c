/*
 * src/proc/cgroup.c: finds containers, pods and systemd units in cgroup paths.
 *
 * Managers use these forms, with either cgroup driver and version:
 *
 *   /docker/<id>                             /system.slice/docker-<id>.scope
 *   /kubepods/burstable/pod<uid>/<id>        /machine.slice/libpod-<id>.scope/container
 *   /kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod<u_i_d>.slice/
 *       cri-containerd-<id>.scope or crio-<id>.scope
 *   /system.slice/containerd.service/kubepods-burstable-pod<u_i_d>.slice:cri-containerd:<id>
 *   /lxc/<name>, /lxc.payload.<name>         /system.slice/nginx.service
 */
#include <string.h>

#include "base/cleanup.h"
#include "proc/info.h"
#include "proc/text.h"

#define CGROUP_ID_LEN 64
#define CGROUP_ID_SHOWN 12 /* as container managers show it */

static struct view view_from(struct view v, size_t off)
{
	return view_of(v.data + off, v.len - off);
}

static bool cgroup_is_hex(uint8_t c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

/* A container id is 64 hex digits, plain or as PREFIX-<id>.scope. */
static bool cgroup_container(struct view part, struct view *ret_id)
{
	static const char *const prefixes[] = {
		"docker-", "cri-containerd-", "containerd-", "nerdctl-", "crio-", "libpod-",
	};

	if (view_ends_with(part, ".scope"))
		part.len -= strlen(".scope");
	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++) {
		if (view_starts_with(part, prefixes[i])) {
			part = view_from(part, strlen(prefixes[i]));
			break;
		}
	}
	if (part.len != CGROUP_ID_LEN)
		return false;
	for (size_t i = 0; i < part.len; i++) {
		if (!cgroup_is_hex(part.data[i]))
			return false;
	}
	*ret_id = part;
	return true;
}

/* pod<uid>, or ...-pod<uid with _ for ->.slice; a static pod's uid has no dashes at all. */
static bool cgroup_pod(struct view part, char *dst, size_t cap)
{
	const uint8_t *pod;
	struct view uid;

	if (view_ends_with(part, ".slice"))
		part.len -= strlen(".slice");
	if (view_starts_with(part, "pod")) {
		uid = view_from(part, strlen("pod"));
	} else {
		pod = part.len ? memmem(part.data, part.len, "-pod", 4) : NULL;
		if (!pod)
			return false;
		uid = view_from(part, (size_t)(pod - part.data) + strlen("-pod"));
	}
	if ((uid.len != 32 && uid.len != 36) || uid.len >= cap)
		return false;
	for (size_t i = 0; i < uid.len; i++) {
		uint8_t c = uid.data[i] == '_' ? '-' : uid.data[i];

		if (!cgroup_is_hex(c) && c != '-')
			return false;
		dst[i] = (char)c;
	}
	dst[uid.len] = 0;
	return true;
}

static bool cgroup_lxc(struct view part, struct view parent, struct view *ret_name)
{
	if (view_starts_with(part, "lxc.payload.") && part.len > strlen("lxc.payload."))
		*ret_name = view_from(part, strlen("lxc.payload."));
	else if (view_eq(parent, view_str("lxc")) || view_eq(parent, view_str("lxc.payload")))
		*ret_name = part;
	else
		return false;
	return ret_name->len > 0;
}

/*
 * Parses one cgroup path; the innermost name of each kind wins. What lies below a user's manager,
 * or inside a container, is named by those: only the outermost name proves anything.
 */
struct cgroup_path {
	struct view container;
	struct view unit;
	char pod[64];
	bool kube;
	bool of_user;
	char workload[sizeof(((struct proc_info *)0)->workload)];
	bool is_contained; /* the workload is a container or a pod */
};

/* A unit that may name cgroups as it likes is itself; only managers of containers say more. */
static bool cgroup_is_manager(const char *workload)
{
	static const char *const managers[] = {
		"unit containerd", "unit docker", "unit crio", "unit podman",
		"unit kubelet",	   "unit k3s",	  "unit rke2", "unit snap.docker",
	};

	for (size_t i = 0; i < ARRAY_SIZE(managers); i++)
		if (strncmp(workload, managers[i], strlen(managers[i])) == 0)
			return true;
	return false;
}

static void cgroup_prove(struct cgroup_path *p, const char *kind, struct view name, bool contains)
{
	size_t n = strlen(kind);

	if (p->of_user || p->is_contained)
		return;
	if (p->workload[0] && !(contains && cgroup_is_manager(p->workload)))
		return;
	memcpy(p->workload, kind, n);
	proc_text_copy(p->workload + n, sizeof(p->workload) - n, name);
	p->is_contained = contains;
}

static void cgroup_part(struct cgroup_path *p, struct view part, struct view parent)
{
	char pod[sizeof(p->pod)];
	struct view name;

	if (view_starts_with(part, "kubepods"))
		p->kube = true;
	if (view_eq(part, view_str("user.slice")) || view_starts_with(part, "user@"))
		p->of_user = true;
	if (p->kube && cgroup_pod(part, pod, sizeof(pod))) {
		memcpy(p->pod, pod, sizeof(pod));
		cgroup_prove(p, "pod ", view_str(pod), true);
	}
	if (cgroup_container(part, &name)) {
		p->container = name;
		cgroup_prove(p, "container ", view_of(name.data, CGROUP_ID_SHOWN), true);
	} else if (cgroup_lxc(part, parent, &name)) {
		p->container = name;
		cgroup_prove(p, "container ", name, true);
	}

	/* user@1000.service manages a user's units, and scopes are started by hand. */
	if (view_ends_with(part, ".service") && part.len > strlen(".service")) {
		p->unit = view_starts_with(part, "user@") ? view_of(NULL, 0) : part;
		cgroup_prove(p, "unit ", part, false);
	} else if (view_ends_with(part, ".scope")) {
		p->unit = view_of(NULL, 0);
	}
}

static void cgroup_walk(struct cgroup_path *p, struct view path)
{
	struct view parent = {0};

	for (size_t at = 0, start = 0; at <= path.len; at++) {
		if (at < path.len && path.data[at] != '/' && path.data[at] != ':')
			continue;
		if (at > start) {
			struct view part = view_of(path.data + start, at - start);

			cgroup_part(p, part, parent);
			parent = part;
		}
		start = at + 1;
	}
}

/* "N:controllers:path" of version 1, "0::path" of version 2. */
static void cgroup_line(struct proc_info *info, struct view line)
{
	const uint8_t *colon = line.len ? memchr(line.data, ':', line.len) : NULL;
	struct cgroup_path p = {0};

	if (colon)
		line = view_from(line, (size_t)(colon - line.data) + 1);
	colon = colon && line.len ? memchr(line.data, ':', line.len) : NULL;
	if (!colon)
		return;
	cgroup_walk(&p, view_from(line, (size_t)(colon - line.data) + 1));
	if (!info->container[0] && p.container.len)
		proc_text_copy(info->container, sizeof(info->container), p.container);
	if (!info->unit[0] && p.unit.len)
		proc_text_copy(info->unit, sizeof(info->unit), p.unit);
	if (!info->pod[0])
		memcpy(info->pod, p.pod, sizeof(info->pod));
	if (!info->workload[0])
		memcpy(info->workload, p.workload, sizeof(info->workload));
}

void proc_info_parse_cgroup(struct proc_info *info, const char *text)
{
	info->container[0] = info->unit[0] = info->pod[0] = info->workload[0] = 0;
	while (*text) {
		size_t n = strcspn(text, "\n");

		cgroup_line(info, view_of(text, n));
		text += n + (text[n] == '\n');
	}
}
