/*
 * src/agent/state.h: shared by the files of this room; tests start agents through it.
 *
 * The loop's thread owns the targets, decides and writes; threads of the pool read. Between them
 * goes a struct agent_job, which belongs to one side at a time.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "agent/agent.h"
#include "agent/schedule/builds.h"
#include "agent/schedule/pool.h"
#include "agent/schedule/processes.h"
#include "agent/sources/java_programs.h"
#include "pipeline/inbox.h"
#include "pipeline/live.h"
#include "pipeline/pipeline.h"
#include "proc/maps.h"

/* More are listed with the reason; each costs three descriptors and some hundred kilobytes. */
#define AGENT_MAX_PROFILED 2000
/* Known processes; each costs two kilobytes. */
#define AGENT_MAX_TARGETS 8192

/* What a job does, in this order. */
enum {
	AGENT_JOB_CLOSE = 1 << 0,
	AGENT_JOB_LOOK = 1 << 1, /* find its name, and which sources can read it */
	AGENT_JOB_COLLECT = 1 << 2,
};

struct agent_job {
	struct agent_pool_job pool; /* first */
	struct agent_slot *slot;
	unsigned int what;
	bool may_open; /* one more process may be profiled */
	int result;    /* -ESRCH: it has exited */
	struct source_target target;
	uint64_t image; /* as in proc_stat */
	struct source_shares shares;
	struct {
		bool ask; /* close it if open, and probe it */
		bool due; /* collect it if open */
		bool collected;
		void *state;
		struct source_answer answer;
		struct source_reading reading;
		int result; /* of collect */
		uint64_t cost_ns;
		struct err err;
	} sources[AGENT_SOURCES_MAX];
};

/* One process. */
struct agent_slot {
	struct source_target target;
	uint64_t image;	       /* as in proc_stat */
	struct agent_job *job; /* the running job, or NULL */
	uint64_t job_ns;       /* since when */
	uint64_t job_interval; /* the last one in which it was reported as slow */
	uint64_t found_ns;
	uint64_t looked_ns; /* 0: not yet */
	uint64_t asked_ns;  /* some of its sources, too */
	uint64_t retry_ns;  /* do nothing before */
	uint64_t collected; /* number of the interval of its last collection */
	bool gone;
	bool look_again;		 /* all of it; for single sources see ask_again */
	uint64_t exec_ns;		 /* since when, because of an exec */
	char claim[128];		 /* the service name by its own word */
	uint64_t rss_bytes;		 /* as of the last interval; 0: unknown */
	const struct resource *resource; /* NULL: not examined yet */
	const struct resource *before;	 /* of the program before the last exec, or NULL */
	uint64_t before_exe;		 /* hash of its name, */
	uint64_t before_image;		 /* and what tells it from others of that name */
	struct live pushed;		 /* metrics from sources that push */
	struct source_shares shares;
	/*
	 * There are many processes, and most sources have nothing to say about them: so texts are
	 * allocated, and NULL if empty.
	 */
	struct agent_slot_source {
		void *state; /* NULL: not open */
		bool yes;    /* this and the next: as in struct source_answer */
		enum err_cause cause;
		bool may_change;
		bool of_file;
		bool slow;
		bool ask_again;
		uint32_t spacing;   /* read in every n-th of its intervals; 0: as 1 */
		int64_t period;	    /* the one in which it was last read; see agent_slot_is_due() */
		char collector[16]; /* of the last read */
		struct live live;   /* metrics of the last read */
		char *reason;
		char *remedy;
		char *trouble;
		uint64_t collections;
		uint64_t failures;
		int64_t last_ns;
		int64_t stamp_ns; /* of the last read */
		uint64_t last_cost_ns;
	} sources[]; /* n_sources of them */
};

/* A pid that we know: a target, or NULL (a kernel thread). */
struct agent_known {
	pid_t pid;
	struct agent_slot *slot;
};

/* A process that has exited: see agent/schedule/departed.c. */
struct agent_departed {
	struct proc_id id;
	uint64_t image; /* as in proc_info */
	uint64_t exe;	/* hash of its name */
	char comm[32];
	bool opted_out;
	const struct resource *resource; /* NULL: none */
	uint64_t until_ns;
};
#define AGENT_DEPARTED_MAX 1024
/* What the kernel keeps of a name, without its NUL. */
#define AGENT_COMM_LENGTH 15

struct agent_interval {
	uint64_t number; /* from 1 */
	uint64_t begin_ns;
	uint64_t end_ns;
	int64_t stamp_ns; /* its end since 1970, a multiple of its length */
	int64_t start_ns; /* the end of the one before; 0: there was none */
	uint64_t late_ns; /* intervals that it lasts too long, in stamp_ns */
};

struct agent {
	struct agent_config config;
	const struct agent_processes_ops *procs;
	struct source_row sources[AGENT_SOURCES_MAX]; /* sources that are asked */
	size_t n_sources;
	struct agent_pusher {
		const struct source_ops *ops;
		void *state;
		bool stopped;
		bool hangs;	      /* its thread did not end */
	} pushers[AGENT_SOURCES_MAX]; /* running sources that push */
	size_t n_pushers;
	struct agent_source_configs configs; /* of all sources */
	struct pipeline *pipeline;
	struct inbox inbox;		 /* what sources pushed */
	struct delivery_list mail;	 /* of the loop: to be written */
	struct agent_cpu *cpu;		 /* NULL: not wanted, or not possible here; */
	struct source_answer cpu_answer; /* then the reason */
	struct features features;	 /* as of the start, except OOM kills */
	struct agent_oom *oom;		 /* NULL: not wanted, or not possible here */
	struct agent_pool *pool;
	struct agent_builds *builds;
	char *names_path; /* where the names of services are kept; NULL: nowhere */
	uint64_t names_turns;
	uint64_t names_by_ns;
	bool names_unsaved; /* of agent_save_names() alone */
	bool named;	    /* see agent_targets_name() */
	pthread_t thread;
	atomic_bool stopping;
	bool wants_cpu;
	bool hides_commands; /* others must not see command lines either */
	struct agent_listings *listings;

	/* Owned by the loop; others only read, with the lock. */
	pthread_mutex_t lock;
	struct agent_known *known; /* by pid */
	size_t n_known;
	struct agent_slot **leaving; /* exited, but not closed yet */
	size_t n_leaving;
	struct agent_health health;
	bool too_many;
	struct agent_departed departed[AGENT_DEPARTED_MAX]; /* a ring */
	size_t n_departed;				    /* ever */
	struct live machine;				    /* metrics of the machine */

	uint64_t watched_end_ns; /* when the interval should end; 0: none runs */

	struct proc_info self;	  /* this process */
	struct agent_health told; /* in our own metrics */
	struct agent_interval interval;
	uint64_t scan_ns;	/* when to scan for new processes, */
	uint64_t heard_scan_ns; /* or, after hearing of one, when */
	uint64_t census;	/* as of the last list; 0: read it again */
	size_t jobs_out;
	uint64_t answered_ns;	/* when the last one returned */
	uint64_t drain_ns;	/* when the shutdown began */
	size_t n_open;		/* targets with an open source, or about to have one */
	atomic_bool exec_heard; /* since the last scan */
	bool untidy;		/* much memory was freed in small pieces in this interval */
};

/* With a made-up machine, for tests. */
int agent_start_in(const struct agent_processes_ops *procs, const struct agent_config *config,
		   const struct agent_parts *parts, struct agent **ret_agent, struct err *err);

/* Once; false if one hangs: then nothing it uses may be freed. */
bool agent_stop_pushers(struct agent *agent);

/* listing.c: the thread that reads source files. NULL is fine. */
int agent_listings_start(struct agent_listings **ret_listings, struct err *err);
void agent_listings_stop(struct agent_listings *listings);

/* loop.c: the thread. */
void *agent_loop(void *agent);
/* agent/schedule/job.c: runs in a thread of the pool. */
void agent_work(struct agent_pool_job *job, void *agent);
uint64_t agent_thread_cpu_ns(void);

/* agent/schedule/slot.c: one process, and the results of its jobs. For the loop, with the lock. */
struct agent_slot *agent_slot_new(const struct agent *agent, pid_t pid, const struct proc_stat *st);
void agent_slot_free(const struct agent *agent, struct agent_slot *slot);
bool agent_slot_is_open(const struct agent *agent, const struct agent_slot *slot);
const char *agent_slot_text(const char *text); /* "" for NULL */
void agent_slot_answer(const struct agent_slot_source *reader, struct source_answer *ret_answer);
/* Whether to read a source in this interval. */
bool agent_slot_is_due(const struct agent *agent, const struct agent_slot *slot, size_t reader);
/* The same before it is opened: between periods it waits for the next. */
bool agent_slot_is_due_first(const struct agent *agent, size_t reader);
/* Whether to probe a source that said no again, now or later. */
bool agent_slot_asks_again(const struct agent_slot_source *reader);
void agent_slot_say_slow(struct agent *agent, struct agent_slot *slot, uint64_t now);
/* Whether they are of one program: a rename changes its name, an exec of itself its image. */
bool agent_slot_same_program(const struct proc_info *one, const struct proc_info *other);
/* Whether it is of the program before the last exec. */
bool agent_slot_was_program(const struct agent_slot *slot, const struct proc_info *info);
/* Names of services change hands. */
void agent_slot_settle_name(struct agent *agent, struct agent_slot *slot);
void agent_slot_take_looks(struct agent *agent, struct agent_slot *slot,
			   const struct agent_job *job);
void agent_slot_take_readings(struct agent *agent, struct agent_slot *slot, struct agent_job *job);
void agent_slot_deliver_memory(struct agent *agent, const struct agent_slot *slot,
			       struct record_time when);

/* agent/schedule/runtime.c: "Go 1.27", "" if unknown; exe, maps as in proc_info; maps or NULL. */
void agent_runtime_describe(const char *runtime, const char *exe, bool is_native,
			    const struct proc_maps *maps, char *dst, size_t cap);
bool agent_runtime_needs_maps(const char *exe);

/* agent/schedule/parents.c: fills parent_service; "" if it is not known. */
void agent_targets_find_parent(const struct agent *agent, struct proc_info *info);

/* agent/schedule/departed.c: whom records are about that come after an exit. */
void agent_departed_add(struct agent *agent, const struct agent_slot *slot);
const struct agent_departed *agent_departed_find(const struct agent *agent,
						 const struct proc_info *info);
void agent_departed_forget(struct agent *agent, uint64_t now); /* those before it */

/* agent/schedule/targets.c: the known processes. */
void agent_targets_discover(struct agent *agent);
/* At the start of an interval: finds execs and reused pids. */
void agent_targets_verify(struct agent *agent);
/* The target with this pid; NULL if there is none. */
struct agent_slot *agent_targets_find(const struct agent *agent, pid_t pid);
/* Starts the jobs that are due; returns when to call again. */
uint64_t agent_targets_send_due(struct agent *agent);
/*
 * At the start little is written until those that are there were examined, or a while has passed:
 * whoever is examined first would have the names of others. Only root's are safe from the start.
 */
void agent_targets_name(struct agent *agent);
/* What to do with a delivery; one to take then has a resource. */
enum agent_delivery_verdict { AGENT_DELIVERY_TAKE, AGENT_DELIVERY_LEAVE, AGENT_DELIVERY_LATER };
enum agent_delivery_verdict agent_targets_judge(struct agent *agent, struct delivery *delivery);
/* Takes a finished job; its records go into the mail. */
void agent_targets_receive(struct agent *agent, struct agent_job *job);
/* A job that came back after we stopped waiting. */
void agent_targets_drop(struct agent_pool_job *job, void *agent);
/* How long to wait for running jobs at the end. */
uint64_t agent_targets_patience_ns(const struct agent *agent);
/* Closes everything that is open and responds. */
void agent_targets_close_all(struct agent *agent);
void agent_targets_free(struct agent *agent);
