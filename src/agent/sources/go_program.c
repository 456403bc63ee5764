/* src/agent/sources/go_program.c: see go_program.h. */
#include "agent/sources/go_program.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "proc/mem.h"

/* If a program claims more than this, read none: the list alone would use up our memory. */
#define PROGRAM_MAX_GOROUTINES 2000000

struct agent_go_program {
	atomic_uint refs;
	pthread_mutex_t busy; /* protects everything below */
	struct golang_process *process;
	struct golang_goroutines *goroutines; /* NULL: not requested yet */
	uint64_t n_goroutines;
};

static int program_open_mem(const struct source_target *target, struct proc_mem **ret_mem,
			    struct err *err)
{
	_cleanup_(proc_mem_closep) struct proc_mem *mem = NULL;
	int r = proc_mem_open(target->info.id.pid, &mem, err);

	if (r < 0)
		return r;
	proc_mem_never_wait(mem);
	r = proc_id_check(&target->info.id, err);
	if (r < 0)
		return r;
	*ret_mem = TAKE_PTR(mem);
	return 0;
}

/* Shared by its sources. */
struct go_share {
	bool asked; /* whether its runtime has been probed */
	bool is_go;
	bool is_unsupported;		  /* whatever it is */
	struct agent_go_program *program; /* NULL: not open */
};

static void go_share_release(void *arg)
{
	struct go_share *share = arg;

	agent_go_program_unref(share->program);
}

static const struct source_share_kind go_share_kind = {
	.bytes = sizeof(struct go_share),
	.release = go_share_release,
};

int agent_go_program_probe(struct source_shares *shares, struct source_target *target,
			   struct source_answer *ret_answer, struct err *err)
{
	_cleanup_(proc_mem_closep) struct proc_mem *mem = NULL;
	struct go_share *share = source_share(shares, &go_share_kind, err);
	int r = share ? shares->denied : -ENOMEM;

	if (r == 0 && !share->asked) {
		r = program_open_mem(target, &mem, err);
		if (r == -EPERM || r == -EACCES)
			shares->denied = r;
		if (r == 0)
			r = golang_detect(mem, target->runtime, sizeof(target->runtime), err);
		share->is_unsupported = r == -ENOTSUP;
		if (r < 0 && !share->is_unsupported)
			return r;
		share->asked = true;
		share->is_go = r > 0;
		r = MAX(r, 0);
	}
	if (r < 0)
		return r;
	*ret_answer = (struct source_answer){.yes = true, .of_file = !share->is_go};
	if (share->is_unsupported)
		source_answer_no(ret_answer, ERR_CAUSE_UNSUPPORTED, "unsupported: 32-bit program",
				 "");
	else if (!share->is_go)
		source_answer_no(ret_answer, ERR_CAUSE_NOT_GO, "not a Go program", "");
	return 0;
}

static struct agent_go_program *program_new(void)
{
	struct agent_go_program *p = calloc(1, sizeof(*p));
	pthread_mutexattr_t attr;

	if (!p)
		return NULL;
	p->refs = 1;
	/* The reader of an OOM snapshot is in a hurry, and may have to wait for one that is not. */
	(void)pthread_mutexattr_init(&attr);
	(void)pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT);
	if (pthread_mutex_init(&p->busy, &attr)) {
		free(p);
		return NULL;
	}
	return p;
}

static struct agent_go_program *go_program_ref(struct agent_go_program *p)
{
	atomic_fetch_add(&p->refs, 1);
	return p;
}

int agent_go_program_get(struct source_shares *shares, const struct source_target *target,
			 struct agent_go_program **ret_program, struct err *err)
{
	struct go_share *share = source_share(shares, &go_share_kind, err);
	struct proc_mem *mem = NULL;
	struct agent_go_program *p;
	int r;

	if (!share)
		return -ENOMEM;
	if (!share->program) {
		p = program_new();
		if (!p)
			return err_oom(err);
		r = program_open_mem(target, &mem, err);
		if (r == 0)
			r = golang_process_open_take(mem, NULL, &p->process, err);
		if (r < 0) {
			agent_go_program_unref(p);
			return r;
		}
		share->program = p;
	}
	*ret_program = go_program_ref(share->program);
	return 0;
}

void agent_go_program_unref(struct agent_go_program *p)
{
	if (!p || atomic_fetch_sub(&p->refs, 1) > 1)
		return;
	golang_goroutines_free(p->goroutines);
	golang_process_close(p->process);
	(void)pthread_mutex_destroy(&p->busy);
	free(p);
}

void agent_go_program_lock(struct agent_go_program *p)
{
	(void)pthread_mutex_lock(&p->busy);
}

bool agent_go_program_try_lock(struct agent_go_program *p)
{
	return pthread_mutex_trylock(&p->busy) == 0;
}

bool agent_go_program_lock_in_time(struct agent_go_program *p, uint64_t ns)
{
	uint64_t until_ns = clock_mono_ns() + ns;
	const struct timespec until = {.tv_sec = (time_t)(until_ns / NS_PER_SEC),
				       .tv_nsec = (long)(until_ns % NS_PER_SEC)};

	return pthread_mutex_clocklock(&p->busy, CLOCK_MONOTONIC, &until) == 0;
}

void agent_go_program_unlock(struct agent_go_program *p)
{
	golang_process_trim(p->process);
	(void)pthread_mutex_unlock(&p->busy);
}

void agent_go_program_unlock_last(struct agent_go_program *p)
{
	(void)pthread_mutex_unlock(&p->busy);
}

struct golang_process *agent_go_program_process(struct agent_go_program *p)
{
	return p->process;
}

int agent_go_program_goroutines(struct agent_go_program *p, uint64_t max,
				struct golang_goroutines **ret_goroutines, struct err *err)
{
	const struct golang_goroutines_options options = {.max = max,
							  .limit = PROGRAM_MAX_GOROUTINES};
	int r = 0;

	if (!p->goroutines)
		r = golang_goroutines_new(p->process, &options, &p->goroutines, err);
	if (r == 0)
		*ret_goroutines = p->goroutines;
	return r;
}

uint64_t agent_go_program_n_goroutines(const struct agent_go_program *p)
{
	return p->n_goroutines;
}

void agent_go_program_set_n_goroutines(struct agent_go_program *p, uint64_t n)
{
	p->n_goroutines = n;
}
