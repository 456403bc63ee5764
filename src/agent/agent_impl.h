/*
 * src/agent/agent_impl.h: what the files of this room share; tests start agents through it.
 *
 * The loop's thread owns the targets, decides and writes; threads of the pool do the reading. What
 * goes between them is a struct agent_job, which belongs to one side at a time.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "agent/agent.h"
#include "agent/java.h"
#include "agent/pool.h"
#include "agent/world.h"
#include "pipeline/inbox.h"
#include "pipeline/live.h"
#include "pipeline/pipeline.h"

/* More are shown with the reason; each costs three descriptors and some hundred kilobytes. */
#define AGENT_MAX_PROFILED 2000
/* Of processes that are known at all; each costs two kilobytes. */
#define AGENT_MAX_TARGETS 8192

/* What a job does, in this order. */
enum {
	JOB_CLOSE = 1 << 0,
	JOB_LOOK = 1 << 1, /* what is it called, which readers can read it */
	JOB_COLLECT = 1 << 2,
};

struct agent_job {
	struct pool_job pool; /* first */
	struct agent_slot *slot;
	unsigned int what;
	bool may_open; /* there is room for one more that is profiled */
	int result;    /* -ESRCH: it is gone */
	struct source_target target;
	uint64_t image; /* as in proc_stat */
	struct source_shares shares;
	struct {
		bool ask; /* to be closed, if it is open, and looked at */
		bool due; /* to be collected, if it is open */
		bool collected;
		void *state;
		struct source_answer answer;
		struct source_reading reading;
		int result; /* of collect */
		uint64_t cost_ns;
		struct err err;
	} sources[SOURCES_MAX];
};

/* One process. */
struct agent_slot {
	struct source_target target;
	uint64_t image;	       /* as in proc_stat */
	struct agent_job *job; /* that is out, or NULL */
	uint64_t job_ns;       /* since when */
	uint64_t job_interval; /* the last one in which it was said to be slow */
	uint64_t found_ns;
	uint64_t looked_ns; /* 0: not yet */
	uint64_t asked_ns;  /* also some of its readers alone */
	uint64_t retry_ns;  /* nothing is done before */
	uint64_t collected; /* the number of the interval in which it was */
	bool gone;
	bool look_again;		 /* all of it; some readers alone: see below */
	const struct resource *resource; /* NULL: not looked at yet */
	struct live pushed;		 /* metrics that nobody had to ask for */
	struct source_shares shares;
	/* There are many processes, and most readers have nothing to say of them: texts are their
	 * own, NULL where there is none. */
	struct agent_slot_source {
		void *state; /* NULL: not open */
		bool yes;    /* these are of struct source_answer */
		enum err_cause cause;
		bool may_change;
		bool of_file;
		bool slow;
		bool ask_again;
		uint32_t spacing; /* it is read in each so manieth of its intervals; 0: as 1 */
		int64_t period;	  /* the one of these in which it was read; see slot_is_due() */
		char way[16];	  /* of the last reading */
		struct live live; /* metrics, as of the last reading */
		char *reason;
		char *remedy;
		char *trouble;
		uint64_t collections;
		uint64_t failures;
		int64_t last_ns;
		int64_t stamp_ns; /* of the last reading */
		uint64_t last_cost_ns;
	} sources[]; /* as many as there are */
};

/* What is known of a pid: a target, or that it is none (a kernel thread). */
struct agent_known {
	pid_t pid;
	struct agent_slot *slot;
};

struct agent_interval {
	uint64_t number; /* from 1 */
	uint64_t begin_ns;
	uint64_t end_ns;
	int64_t stamp_ns; /* its end since 1970, a multiple of its length */
};

struct agent {
	struct agent_config config;
	const struct world_ops *world;
	struct source_row sources[SOURCES_MAX]; /* those that are asked */
	size_t n_sources;
	struct agent_pusher {
		const struct source_ops *ops;
		void *state;
		bool stopped;
		bool hangs;	/* in a thread that did not end */
	} pushers[SOURCES_MAX]; /* those that push, as far as they run */
	size_t n_pushers;
	struct source_configs configs; /* of all of them */
	struct pipeline *pipeline;
	struct inbox inbox;		 /* what sources push */
	struct delivery_list mail;	 /* of the loop: what is to be written */
	struct agent_cpu *cpu;		 /* NULL: not wanted, or not possible here; then */
	struct source_answer cpu_answer; /* says why */
	struct features features;	 /* as of the start, but for OOM kills */
	struct agent_oom *oom;		 /* NULL: not wanted, or not possible here */
	struct pool *pool;
	pthread_t thread;
	atomic_bool stopping;
	bool wants_cpu;

	/* Of the loop; others only look at them, with the lock. */
	pthread_mutex_t lock;
	struct agent_known *known; /* by pid */
	size_t n_known;
	struct agent_slot **leaving; /* gone, and still to be closed */
	size_t n_leaving;
	struct agent_health health;
	bool too_many;

	struct agent_interval interval;
	uint64_t scan_ns;	/* when to look for new processes again, */
	uint64_t heard_scan_ns; /* and when after one was heard of */
	uint64_t census;	/* as of the last list; 0: it is to be read again */
	size_t jobs_out;
	uint64_t answered_ns;	/* when the last of them came back */
	uint64_t drain_ns;	/* when the end began */
	size_t n_open;		/* targets with an open reader, or about to have one */
	atomic_bool exec_heard; /* one was, since the last look */
	bool untidy;		/* much memory was given back in pieces, in this interval */
};

/* On a machine of which tests make up what it has. */
int agent_start_in(const struct world_ops *world, const struct agent_config *config,
		   const struct agent_parts *parts, struct agent **ret_agent, struct err *err);

/* Once; false when one of them hangs, and with it all that it uses. */
bool agent_stop_pushers(struct agent *agent);

/* loop.c: the thread. */
void *agent_loop(void *agent);
/* work.c: what a thread of the pool does. */
void agent_work(struct pool_job *job, void *agent);
uint64_t agent_thread_cpu_ns(void);

/* slot.c: one process, and what came of its jobs. For the loop, with the lock. */
struct agent_slot *slot_new(const struct agent *agent, pid_t pid, const struct proc_stat *st);
void slot_free(const struct agent *agent, struct agent_slot *slot);
bool slot_is_open(const struct agent *agent, const struct agent_slot *slot);
const char *slot_text(const char *text); /* "" for NULL */
void slot_answer(const struct agent_slot_source *reader, struct source_answer *ret_answer);
/* Whether a reader is to be read in this interval. */
bool slot_is_due(const struct agent *agent, const struct agent_slot *slot, size_t reader);
/* The same for one that is about to be opened: between periods it waits for the next. */
bool slot_is_due_first(const struct agent *agent, size_t reader);
/* Whether it is to be asked, now or after a while, what it said no to. */
bool slot_asks_again(const struct agent_slot_source *reader);
void slot_say_slow(struct agent *agent, struct agent_slot *slot, uint64_t now);
void slot_take_looks(struct agent *agent, struct agent_slot *slot, const struct agent_job *job);
void slot_take_readings(struct agent *agent, struct agent_slot *slot, struct agent_job *job);

/* targets.c: processes come and go. */
void targets_discover(struct agent *agent);
/* At the beginning of an interval: finds execs and pids that were given to others. */
void targets_verify(struct agent *agent);
/* Sends out what is due; returns when to come back. */
uint64_t targets_send_due(struct agent *agent);
/* What to do with a delivery; one that is to be taken has a resource then. */
enum delivery_verdict { DELIVERY_TAKE, DELIVERY_LEAVE, DELIVERY_LATER };
enum delivery_verdict targets_judge(struct agent *agent, struct delivery *delivery);
/* Takes a job back. What it brought is in the mail then. */
void targets_receive(struct agent *agent, struct agent_job *job);
/* How long what is still out is waited for, at the end. */
uint64_t targets_patience_ns(const struct agent *agent);
/* Ends all: everything that is open is closed, as far as it answers. */
void targets_close_all(struct agent *agent);
void targets_release(struct agent *agent);
