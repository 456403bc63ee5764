/*
 * src/proc/info.h: names of a process: command, executable, container, unit, service.
 *
 * The service name follows OpenTelemetry: OTEL_SERVICE_NAME or service.name in
 * OTEL_RESOURCE_ATTRIBUTES of the target's environment; else the container, if it has a name (LXC)
 * and not just an id; else the systemd unit, unless in a container; else what its interpreter runs
 * (proc/cmdline.h); else the executable's name; else the command. Control characters in names are
 * replaced by '?'.
 *
 * Most of these names are the process's own word: anybody can set a variable or name a file. Who it
 * belongs to is not: its user, and what the machine's managers have put it into. So it has an
 * owner, by which equal names are told apart (pipeline/names.h).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/view.h"
#include "proc/id.h"

#define PROC_UID_UNKNOWN ((uid_t)-1)

/* How good a right to its name a process has; more is better. */
enum proc_rank {
	PROC_RANK_USER,	     /* anybody's */
	PROC_RANK_CONTAINER, /* in a container of this machine's manager */
	PROC_RANK_UNIT,	     /* in a unit of the system */
	PROC_RANK_ROOT,	     /* root's, or of whoever runs sonde, outside of containers */
	PROC_RANK_PROVEN,    /* the manager gave it the name */
};

struct proc_info {
	struct proc_id id;
	uid_t uid; /* real */
	char comm[32];
	uint64_t exec_image; /* see proc_stat: another after each exec; 0 if unknown */
	char exe[512];	     /* "" if unreadable (kernel thread, no permission) */
	char container[80];  /* container id, "" if none */
	char unit[128];	     /* systemd unit, "" if none */
	char pod[64];	     /* Kubernetes pod uid, "" if none */
	/*
	 * What the machine's own managers have put it into, by its outermost name: "unit
	 * a.service", "pod UID", "container ID"; "" if nothing. What a user, or a container, names
	 * inside of its own is not this.
	 */
	char workload[160];
	char image[32];	   /* "image HASH": the same for all containers of one; "" if unknown */
	char program[128]; /* what it runs: script, module, class, executable; never "" */
	char command[257]; /* its command line without secrets, cut; "" if unknown */
	char service[128]; /* never "" */
	/* Set by the agent: */
	char runtime[32];	  /* "Go 1.27", "Python 3.11", "native"; "" if unknown */
	char build_id[96];	  /* of the executable, as its linker noted it; "" if unknown */
	bool build_is_go;	  /* it is Go's own, not GNU's */
	char parent_service[128]; /* of the nearest ancestor that is not short-lived; "" if none */
	char namespace[64];	  /* service.namespace in OTEL_RESOURCE_ATTRIBUTES, "" if none */
	char version[64];	  /* service.version, likewise */
	pid_t parent;		  /* 0: unknown */
	pid_t elder; /* the nearest ancestor that is not short-lived, by the sampler; 0: unknown */
	bool kernel_thread;
	bool opted_out; /* SONDE_PROFILING=disabled is in its environment */
	bool java_off;	/* SONDE_JAVA=off is */
	bool no_answer; /* it does not let us read its environment (see aides.h) */
	enum proc_rank rank;
	char owner[160]; /* one of workload, image and "uid N"; "" if nobody is known */
};

int proc_info_read(pid_t pid, struct proc_info *ret_info, struct err *err);
/*
 * Without environment and command line, which are in the process's memory: a hostile process can
 * make us wait.
 */
int proc_info_read_shallow(pid_t pid, struct proc_info *ret_info, struct err *err);

/*
 * What can be known of a process that is not responding, -ETIMEDOUT for those above; nothing proves
 * that the pid is not another's by now, and its start time is 0.
 */
int proc_info_read_silent(pid_t pid, struct proc_info *ret_info);

/*
 * What can be known of a process that has exited: the kernel's records of its user and of its
 * cgroup, by inode (0: unknown).
 */
void proc_info_of_exited(pid_t pid, const char *comm, uid_t uid, uint64_t cgroup,
			 struct proc_info *ret_info);

/* Fills container, unit, pod and workload from the text of /proc/PID/cgroup (v1 and v2). */
void proc_info_parse_cgroup(struct proc_info *info, const char *text);
/* Fills image from the text of /proc/PID/mountinfo. */
void proc_info_parse_mounts(struct proc_info *info, const char *text);

/*
 * Sets service, namespace, version, opted_out and java_off from the variables of an environment
 * (NUL-terminated).
 */
void proc_info_parse_environ(struct proc_info *info, struct view env);
/* Sets program and service from the other fields, unless already set; and owner and rank. */
void proc_info_name_service(struct proc_info *info);
/*
 * It has not called exec since `before` was read: a title, or another name for its first thread,
 * changes nothing.
 */
void proc_info_keep_program(struct proc_info *info, const struct proc_info *before);

/* All pids in /proc in ascending order. The caller frees the array. */
int proc_list(pid_t **ret_pids, size_t *ret_len, struct err *err);
