/*
 * src/proc/info.h: names of a process: command, executable, container, unit, service.
 *
 * The service name follows OpenTelemetry: OTEL_SERVICE_NAME or service.name in
 * OTEL_RESOURCE_ATTRIBUTES of the target's environment; else the container, if it has a name (LXC)
 * and not just an id; else the systemd unit, unless in a container; else the executable's name;
 * else the command. Control characters in names are replaced by '?'.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/view.h"
#include "proc/id.h"

#define PROC_UID_UNKNOWN ((uid_t) - 1)

struct proc_info {
	struct proc_id id;
	uid_t uid; /* real */
	char comm[32];
	char exe[512];	    /* "" if unreadable (kernel thread, no permission) */
	char container[80]; /* container id, "" if none */
	char unit[128];	    /* systemd unit, "" if none */
	char pod[64];	    /* Kubernetes pod uid, "" if none */
	char service[128];  /* never "" */
	char namespace[64]; /* service.namespace in OTEL_RESOURCE_ATTRIBUTES, "" if none */
	char version[64];   /* service.version, likewise */
	bool kernel_thread;
	bool opted_out; /* SONDE_PROFILING=disabled is in its environment */
	bool java_off;	/* SONDE_JAVA=off is */
};

int proc_info_read(pid_t pid, struct proc_info *ret_info, struct err *err);
/* Without the environment, which is in the process's memory: a hostile process can make us wait. */
int proc_info_read_shallow(pid_t pid, struct proc_info *ret_info, struct err *err);

/* Fills container, unit and pod from the text of /proc/PID/cgroup (v1 and v2). */
void proc_info_parse_cgroup(struct proc_info *info, const char *text);

/*
 * Sets service, namespace, version, opted_out and java_off from the variables of an environment
 * (NUL-terminated).
 */
void proc_info_parse_environ(struct proc_info *info, struct view env);
/* Sets service from the other fields, unless already set. */
void proc_info_name_service(struct proc_info *info);

/* All pids in /proc in ascending order. The caller frees the array. */
int proc_list(pid_t **ret_pids, size_t *ret_len, struct err *err);
