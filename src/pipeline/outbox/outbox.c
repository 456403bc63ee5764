/* src/pipeline/outbox/outbox.c: see outbox.h. */
#include "pipeline/outbox/outbox.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "pipeline/outbox/mail.h"
#include "pipeline/outbox/queue.h"
#include "proc/caps.h"

/* This part of the limit wakes the thread without a flush. */
#define OUTBOX_WAKE_SHARE 128
/* Records of one message, in memory; the message itself is smaller. */
#define OUTBOX_BATCH_BYTES ((size_t)1 << 20)
#define OUTBOX_BATCH_LEN 512
/* At the end: for calls still running when time is up. */
#define OUTBOX_LEAVE_NS (200 * NS_PER_MS)

struct outbox {
	struct sink_row row;
	struct outbox_mail *mail; /* NULL for local sinks */
	size_t max_bytes;
	size_t wake_bytes;
	pthread_mutex_t lock; /* protects everything below; never held during a call */
	pthread_cond_t work;  /* for the writer */
	pthread_cond_t news;  /* something was flushed; a thread starts a call, or exits */
	struct outbox_queue queue;
	/* What the writer is working on. */
	size_t busy_len;
	size_t busy_bytes;
	uint64_t busy_since_ns;
	uint64_t flushed; /* number of the last completed flush */
	bool hurried;	  /* write what is there, without waiting for more */
	bool failed;	  /* some write has, since that flush */
	size_t threads;
	size_t at_work; /* threads in a call that may hang */
	bool ending;
	bool orphaned; /* the last thread releases it */
	uint64_t until_ns;
	uint64_t written;
	uint64_t dropped;
	uint64_t failures;
	char trouble[256];
};

static void outbox_release(struct outbox *o)
{
	outbox_nodes_free(o->queue.head);
	outbox_mail_close(o->mail);
	(void)pthread_cond_destroy(&o->work);
	(void)pthread_cond_destroy(&o->news);
	(void)pthread_mutex_destroy(&o->lock);
	free(o);
}

static void cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t ns)
{
	struct timespec t = {.tv_sec = (time_t)(ns / NS_PER_SEC),
			     .tv_nsec = (long)(ns % NS_PER_SEC)};

	(void)pthread_cond_timedwait(cond, lock, &t);
}

/* --- around calls ---------------------------------------------------------------------------- */

static void call_begin(struct outbox *o)
{
	o->at_work++;
	(void)pthread_cond_broadcast(&o->news);
	(void)pthread_mutex_unlock(&o->lock);
}

static void call_end(struct outbox *o)
{
	(void)pthread_mutex_lock(&o->lock);
	o->at_work--;
}

/* With the lock held. */
static void outbox_failed(struct outbox *o, const struct err *err)
{
	o->failures++;
	o->failed = true;
	(void)snprintf(o->trouble, sizeof(o->trouble), "%.255s",
		       err->text[0] ? err->text : "the sink gave no reason");
}

static void thread_leave(struct outbox *o)
{
	bool release;

	if (o->threads == 1) {
		call_begin(o);
		o->row.ops->close(o->row.sink);
		call_end(o);
	}
	o->threads--;
	release = o->orphaned && o->threads == 0;
	(void)pthread_cond_broadcast(&o->news);
	(void)pthread_mutex_unlock(&o->lock);
	if (release)
		outbox_release(o);
}

/* --- the writer ------------------------------------------------------------------------------ */

/* A record that cannot be encoded, or makes a message too large, must not affect others. */
static void write_messages(struct outbox *o, struct record *const *records, size_t n)
{
	_cleanup_(buf_release) struct buf message = buf_with_max(OUTBOX_MAIL_MAX);
	struct err err = {0};
	int r = o->row.ops->encode(o->row.sink, records, n, &message, &err);
	bool divide = r < 0;

	if (r == 0) {
		r = outbox_mail_put(o->mail, &message, n, &err);
		divide = r == -E2BIG;
	}
	if (divide && n > 1) {
		buf_release(&message);
		write_messages(o, records, n / 2);
		write_messages(o, records + n / 2, n - n / 2);
	} else if (r < 0) {
		(void)pthread_mutex_lock(&o->lock);
		o->dropped += n;
		outbox_failed(o, &err);
		(void)pthread_mutex_unlock(&o->lock);
	}
}

static void write_record(struct outbox *o, struct record *record)
{
	struct err err = {0};
	int r = o->row.ops->write(o->row.sink, record, &err);

	(void)pthread_mutex_lock(&o->lock);
	if (r < 0) {
		o->dropped++;
		outbox_failed(o, &err);
	} else {
		o->written++;
	}
	(void)pthread_mutex_unlock(&o->lock);
}

static void write_batch(struct outbox *o, const struct outbox_node *nodes)
{
	struct record *records[OUTBOX_BATCH_LEN];
	size_t n = 0;

	if (!o->mail) {
		write_record(o, nodes->record);
		return;
	}
	for (; nodes; nodes = nodes->next)
		records[n++] = nodes->record;
	write_messages(o, records, n);
}

static int flush_sink(struct outbox *o, struct err *err)
{
	if (!o->mail)
		return o->row.ops->flush(o->row.sink, err);
	return outbox_mail_sync(o->mail, err);
}

static void writer_flush(struct outbox *o)
{
	uint64_t number = o->queue.due;
	struct err err = {0};
	int r;

	o->queue.due = 0;
	call_begin(o);
	r = flush_sink(o, &err);
	call_end(o);
	if (r < 0)
		outbox_failed(o, &err);
	/* All is well if nothing failed between two flushes. */
	if (!o->failed)
		o->trouble[0] = 0;
	o->failed = false;
	o->flushed = number;
	(void)pthread_cond_broadcast(&o->news);
}

static void writer_write(struct outbox *o)
{
	size_t before = o->queue.bytes, n;
	struct outbox_node *nodes = outbox_queue_take(&o->queue, OUTBOX_BATCH_BYTES,
						      o->mail ? OUTBOX_BATCH_LEN : 1, &n);

	o->busy_len = n;
	o->busy_bytes = before - o->queue.bytes;
	o->busy_since_ns = nodes->queued_ns;
	call_begin(o);
	write_batch(o, nodes);
	outbox_nodes_free(nodes);
	call_end(o);
	o->busy_len = o->busy_bytes = 0;
}

/* Does the next step, with the lock held; false at the end. */
static bool writer_step(struct outbox *o)
{
	struct outbox_queue *q = &o->queue;

	o->hurried = o->hurried && q->head;
	while (!o->ending && !o->hurried && o->flushed == q->flushes && q->bytes < o->wake_bytes)
		(void)pthread_cond_wait(&o->work, &o->lock);
	if (o->ending && clock_mono_ns() >= o->until_ns)
		return false;
	if (q->due)
		writer_flush(o);
	else if (q->head)
		writer_write(o);
	else
		return !o->ending;
	return true;
}

/* Sinks write our own files, wherever these lie, and to the network. */
static void thread_begin(void)
{
	(void)proc_caps_keep(PROC_CAP(CAP_DAC_OVERRIDE), NULL);
}

static void *writer_thread(void *arg)
{
	struct outbox *o = arg;

	thread_begin();
	(void)pthread_mutex_lock(&o->lock);
	while (writer_step(o))
		;
	if (o->mail)
		outbox_mail_put_last(o->mail);
	thread_leave(o);
	return NULL;
}

static void *sender_thread(void *arg)
{
	struct outbox *o = arg;

	thread_begin();
	while (outbox_mail_wait(o->mail)) {
		(void)pthread_mutex_lock(&o->lock);
		call_begin(o);
		outbox_mail_send(o->mail);
		call_end(o);
		(void)pthread_mutex_unlock(&o->lock);
	}
	(void)pthread_mutex_lock(&o->lock);
	thread_leave(o);
	return NULL;
}

/* --- opening and closing --------------------------------------------------------------------- */

static void locks_init(struct outbox *o)
{
	pthread_condattr_t attr;

	(void)pthread_mutex_init(&o->lock, NULL);
	(void)pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&o->work, &attr);
	(void)pthread_cond_init(&o->news, &attr);
	(void)pthread_condattr_destroy(&attr);
}

static int thread_start(struct outbox *o, void *(*run)(void *), struct err *err)
{
	pthread_attr_t attr;
	pthread_t thread;
	int r = pthread_attr_init(&attr);

	if (r == 0) {
		(void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
		r = pthread_create(&thread, &attr, run, o);
		(void)pthread_attr_destroy(&attr);
	}
	if (r)
		return err_set(err, -r, "cannot start a thread for sink %s: %s", o->row.ops->name,
			       strerror(r));
	o->threads++;
	return 0;
}

static int outbox_start(struct outbox *o, struct err *err)
{
	int r;

	(void)pthread_mutex_lock(&o->lock);
	r = thread_start(o, writer_thread, err);
	if (r == 0 && o->mail)
		r = thread_start(o, sender_thread, err);
	(void)pthread_mutex_unlock(&o->lock);
	return r;
}

static int outbox_open_mail(struct outbox *o, const struct outbox_config *config, struct err *err)
{
	const struct spool_config spool = {.dir = config->spool_dir,
					   .max_bytes = config->spool_max_bytes};

	if (!spool.dir)
		return err_set(err, -EINVAL, "sink %s needs a spool directory", o->row.ops->name);
	return outbox_mail_open(&o->row, &spool, &o->mail, err);
}

int outbox_open(const struct sink_row *row, const struct outbox_config *config,
		struct outbox **ret_outbox, struct err *err)
{
	struct outbox *o = calloc(1, sizeof(*o));
	int r = 0;

	if (!o) {
		row->ops->close(row->sink);
		return err_oom(err);
	}
	o->row = *row;
	o->max_bytes = config->max_bytes ? config->max_bytes : OUTBOX_MAX_BYTES;
	o->wake_bytes = o->max_bytes / OUTBOX_WAKE_SHARE + 1;
	locks_init(o);
	if (row->ops->encode)
		r = outbox_open_mail(o, config, err);
	if (r == 0)
		r = outbox_start(o, err);
	if (r == 0) {
		*ret_outbox = o;
	} else if (o->threads) {
		(void)outbox_close(o, 0);
	} else {
		row->ops->close(row->sink);
		outbox_release(o);
	}
	return r;
}

bool outbox_close(struct outbox *o, uint64_t until_ns)
{
	uint64_t now = clock_mono_ns();
	uint64_t leave = MAX(until_ns, now + OUTBOX_LEAVE_NS);
	bool all;

	(void)pthread_mutex_lock(&o->lock);
	if (o->queue.unflushed)
		outbox_queue_flush(&o->queue);
	o->ending = true;
	o->until_ns = until_ns;
	(void)pthread_cond_broadcast(&o->work);
	if (o->mail)
		outbox_mail_end(o->mail, until_ns > now ? now + (until_ns - now) / 2 : now);
	/* A thread outside a call is sure to exit. */
	while (o->threads > o->at_work || (o->threads && clock_mono_ns() < leave)) {
		if (o->threads > o->at_work)
			(void)pthread_cond_wait(&o->news, &o->lock);
		else
			cond_wait_until(&o->news, &o->lock, leave);
	}
	all = o->threads == 0;
	o->orphaned = !all;
	(void)pthread_mutex_unlock(&o->lock);
	if (all)
		outbox_release(o);
	return all;
}

/* --- for producers --------------------------------------------------------------------------- */

/* The excess over the limit, to be freed without the lock. With the lock held. */
static struct outbox_node *outbox_make_room(struct outbox *o)
{
	size_t room = o->max_bytes > o->busy_bytes ? o->max_bytes - o->busy_bytes : 0;
	size_t n;
	struct outbox_node *gone = outbox_queue_trim(&o->queue, room, &n);

	o->dropped += n;
	return gone;
}

/* With the lock held. */
static void outbox_refused(struct outbox *o, size_t bytes)
{
	o->failed = true;
	(void)snprintf(o->trouble, sizeof(o->trouble),
		       "a record of %zu KB was dropped: at most %zu KB wait for a sink",
		       bytes >> 10, o->max_bytes >> 10);
}

void outbox_put(struct outbox *o, struct record *record)
{
	struct outbox_node *node = outbox_node_new(record), *gone = NULL;
	size_t before;

	(void)pthread_mutex_lock(&o->lock);
	/* A record that is too large by itself must not push out the others. */
	if (!node || node->bytes > o->max_bytes) {
		o->dropped++;
		if (node)
			outbox_refused(o, node->bytes);
		gone = node;
	} else {
		before = o->queue.bytes;
		outbox_queue_push(&o->queue, node);
		if (before < o->wake_bytes && o->queue.bytes >= o->wake_bytes)
			(void)pthread_cond_signal(&o->work);
		gone = outbox_make_room(o);
	}
	(void)pthread_mutex_unlock(&o->lock);
	outbox_nodes_free(gone);
}

void outbox_hurry(struct outbox *o)
{
	(void)pthread_mutex_lock(&o->lock);
	o->hurried = true;
	(void)pthread_cond_signal(&o->work);
	(void)pthread_mutex_unlock(&o->lock);
}

void outbox_flush(struct outbox *o)
{
	(void)pthread_mutex_lock(&o->lock);
	outbox_queue_flush(&o->queue);
	(void)pthread_cond_signal(&o->work);
	(void)pthread_mutex_unlock(&o->lock);
}

/* With the lock held. */
static uint64_t outbox_lag(const struct outbox *o)
{
	uint64_t now = clock_mono_ns(), lag = 0;

	if (o->queue.head)
		lag = now - MIN(o->queue.head->queued_ns, now);
	if (o->busy_len)
		lag = MAX(lag, now - MIN(o->busy_since_ns, now));
	return lag;
}

void outbox_status(struct outbox *o, struct outbox_status *ret_status)
{
	(void)pthread_mutex_lock(&o->lock);
	*ret_status = (struct outbox_status){
		.name = o->row.ops->name,
		.written = o->written,
		.dropped = o->dropped,
		.failures = o->failures,
		.queued = o->queue.len + o->busy_len,
		.queued_bytes = o->queue.bytes + o->busy_bytes,
		.lag_ns = outbox_lag(o),
		.unflushed = o->queue.unflushed,
		.settled = o->flushed == o->queue.flushes,
	};
	memcpy(ret_status->trouble, o->trouble, sizeof(ret_status->trouble));
	(void)pthread_mutex_unlock(&o->lock);
	if (o->mail)
		outbox_mail_status(o->mail, ret_status);
}
