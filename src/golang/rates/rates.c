/* src/golang/rates/rates.c: see rates.h. */
#include "golang/rates/rates.h"

#include <elf.h>
#include <errno.h>

#include "base/hash.h"
#include "golang/contention/state.h"
#include "golang/heap/state.h"
#include "golang/process_state.h"
#include "proc/lock.h"

/* One runtime variable, eight bytes in all releases. */
struct rate_var {
	struct proc_mem *mem;
	uint64_t addr;
};

static struct rate_var var_of(struct golang_rate_of of)
{
	if (of.heap)
		return (struct rate_var){golang_process_mem(of.heap->process),
					 of.heap->process->vars.mem_profile_rate};
	return (struct rate_var){golang_process_mem(of.contention->process),
				 of.contention->vars.rate};
}

static enum golang_rate_kind kind_of(struct golang_rate_of of)
{
	if (of.heap)
		return GOLANG_RATE_HEAP;
	return of.contention->kind == GOLANG_BLOCK ? GOLANG_RATE_BLOCK : GOLANG_RATE_MUTEX;
}

static int var_read(struct rate_var var, int64_t *ret_rate, struct err *err)
{
	return proc_mem_check(var.mem, var.addr, ret_rate, sizeof(*ret_rate), err);
}

static int var_replace(struct rate_var var, int64_t old, int64_t rate, struct err *err)
{
	return proc_mem_replace(var.mem, var.addr, &old, &rate, sizeof(rate), err);
}

static int rates_lock(const struct proc_id *id, int *ret_fd, struct err *err)
{
	int r = proc_lock(id, "rate", ret_fd, err);

	if (r == -EBUSY)
		return err_lack(err, r, ERR_CAUSE_BUSY, "wait until it has finished",
				"another sonde has forced a sampling rate in process %d and will "
				"restore it",
				(int)id->pid);
	return r;
}

/* A value that differs between any two address spaces, because the kernel randomizes them. */
static uint64_t rates_space(const struct proc_mem *mem)
{
	uint64_t stack = 0, vdso = 0, entry = 0;

	(void)proc_mem_auxv(mem, AT_RANDOM, &stack);
	(void)proc_mem_auxv(mem, AT_SYSINFO_EHDR, &vdso);
	(void)proc_mem_auxv(mem, AT_ENTRY, &entry);
	/* Not seeded: the next sonde must compute the same. */
	return hash_mix(hash_mix(stack) ^ hash_mix(vdso + 1) ^ entry);
}

/* 1 if the program has changed it since: *ret_now. */
static int set_back(struct rate_var var, const struct golang_rate_note *note, int64_t *ret_now,
		    struct err *err)
{
	int r = var_read(var, ret_now, err);

	if (r < 0 || *ret_now != note->ours)
		return r < 0 ? r : 1;
	r = var_replace(var, note->ours, note->old, err);
	if (r != -ESTALE)
		return r;
	r = var_read(var, ret_now, err);
	return r < 0 ? r : 1;
}

/* A note about this very process, while we hold its lock: another sonde was killed. */
static int restore_own(const struct golang_rate_hold *hold, struct err *err)
{
	_cleanup_free_ struct golang_rate_note *notes = NULL;
	const struct golang_rate_note *own = &hold->note;
	size_t len;
	int64_t now;
	int r = golang_rate_journal_read(hold->journal, &notes, &len, err);

	for (size_t i = 0; r >= 0 && i < len; i++)
		if (notes[i].id.pid == own->id.pid && notes[i].kind == own->kind &&
		    notes[i].id.start_ticks == own->id.start_ticks && notes[i].space == own->space)
			r = set_back(var_of(hold->of), &notes[i], &now, err);
	return r < 0 ? r : 0;
}

static int hold_begin(struct golang_rate_hold *hold, struct err *err)
{
	struct rate_var var = var_of(hold->of);
	int r = restore_own(hold, err);

	if (r == 0)
		r = var_read(var, &hold->note.old, err);
	if (r == 0)
		r = golang_rate_journal_add(hold->journal, &hold->note, err);
	if (r < 0)
		return r;
	r = var_replace(var, hold->note.old, hold->note.ours, err);
	/* Whoever does not respond may have it written yet. */
	if (r < 0 && r != -ETIMEDOUT)
		(void)golang_rate_journal_remove(hold->journal, &hold->note, NULL);
	return r;
}

int golang_rate_hold(struct golang_rate_hold *hold, const struct golang_rate_journal *journal,
		     struct golang_rate_of of, const struct proc_id *id, int64_t rate,
		     struct err *err)
{
	struct golang_rate_hold h = {
		.journal = journal,
		.of = of,
		.note = {.id = *id,
			 .space = rates_space(var_of(of).mem),
			 .ours = rate,
			 .kind = kind_of(of)},
		.lock = -1,
	};
	int r = rates_lock(id, &h.lock, err);

	if (r < 0)
		return r;
	r = hold_begin(&h, err);
	if (r < 0) {
		closep(&h.lock);
		return r;
	}
	*hold = h;
	return 0;
}

static void hold_end(struct golang_rate_hold *hold)
{
	closep(&hold->lock);
	*hold = GOLANG_RATE_HOLD_NONE;
}

int golang_rate_release(struct golang_rate_hold *hold, int64_t *ret_now, struct err *err)
{
	int r = set_back(var_of(hold->of), &hold->note, ret_now, err);

	if (r >= 0 || r == -ESRCH)
		(void)golang_rate_journal_remove(hold->journal, &hold->note, NULL);
	hold_end(hold);
	return r;
}

void golang_rate_keep(struct golang_rate_hold *hold)
{
	(void)golang_rate_journal_remove(hold->journal, &hold->note, NULL);
	hold_end(hold);
}

static int restore_in(struct golang_process *process, const struct golang_rate_note *note,
		      struct err *err)
{
	_cleanup_(golang_contention_freep) struct golang_contention *contention = NULL;
	_cleanup_(golang_heap_freep) struct golang_heap *heap = NULL;
	int64_t now;
	int r;

	if (note->kind == GOLANG_RATE_HEAP)
		r = golang_heap_new(process, &heap, err);
	else
		r = golang_contention_new(
			process, note->kind == GOLANG_RATE_BLOCK ? GOLANG_BLOCK : GOLANG_MUTEX,
			&contention, err);
	if (r < 0 || (!heap && !contention))
		return r;
	return set_back(var_of((struct golang_rate_of){heap, contention}), note, &now, err);
}

/* Also 0 if there is nothing left to do. */
static int restore_one(const struct golang_rate_journal *journal,
		       const struct golang_rate_note *note, struct err *err)
{
	_cleanup_(golang_process_closep) struct golang_process *process = NULL;
	_cleanup_close_ int lock = -1;
	struct proc_mem *mem = NULL;
	int r;

	if (proc_id_gone(&note->id))
		return 0;
	r = rates_lock(&note->id, &lock, err);
	if (r < 0)
		return r;
	/* The previous holder of the lock may have restored it. */
	r = golang_rate_journal_has(journal, note, err);
	if (r > 0)
		r = proc_mem_open(note->id.pid, &mem, err);
	if (r < 0 || !mem)
		return r == -ESRCH ? 0 : r;
	proc_mem_never_wait(mem);
	if (rates_space(mem) != note->space || proc_id_gone(&note->id)) {
		proc_mem_close(mem);
		return 0;
	}
	r = golang_process_open_take(mem, NULL, &process, err);
	if (r == 0)
		r = restore_in(process, note, err);
	return r < 0 && r != -ESRCH ? r : 0;
}

int golang_rates_restore(const struct golang_rate_journal *journal, struct err *err)
{
	_cleanup_free_ struct golang_rate_note *notes = NULL;
	size_t len = 0;
	int settled = 0;
	int r = golang_rate_journal_read(journal, &notes, &len, err);

	for (size_t i = 0; r == 0 && i < len; i++) {
		if (restore_one(journal, &notes[i], NULL) < 0)
			continue;
		r = golang_rate_journal_remove(journal, &notes[i], err);
		settled++;
	}
	return r < 0 ? r : settled;
}
