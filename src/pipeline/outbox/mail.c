/* src/pipeline/outbox/mail.c: see mail.h. */
#include "pipeline/outbox/mail.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/hash.h"

#define MAIL_RETRY_MIN_NS NS_PER_SEC
#define MAIL_RETRY_MAX_NS (60 * NS_PER_SEC)

/* Follows each message in the spool. */
struct mail_trailer {
	uint64_t unix_ns; /* when it was spooled */
	uint32_t records;
	uint32_t zero;
};
_Static_assert(sizeof(struct mail_trailer) == SPOOL_MAX_MESSAGE - OUTBOX_MAIL_MAX, "the trailer");

struct outbox_mail {
	struct sink_row row;
	/* Held during calls to the spool. The other lock may be taken inside it. */
	pthread_mutex_t spool_lock;
	struct spool *spool;

	pthread_mutex_t lock; /* protects everything below; never held during a call */
	pthread_cond_t news;
	struct spool_status spooled;
	uint64_t oldest_unix_ns; /* when the oldest message was spooled; 0: unknown */
	uint64_t retry_ns;	 /* time of the next attempt; 0: at once */
	uint64_t backoff_ns;
	bool ending;
	bool put_last;
	uint64_t until_ns;
	uint64_t written; /* records */
	uint64_t dropped;
	uint64_t failures;
	char trouble[256];
};

int outbox_mail_open(const struct sink_row *row, const struct spool_config *config,
		     struct outbox_mail **ret_mail, struct err *err)
{
	_cleanup_free_ struct outbox_mail *mail = calloc(1, sizeof(*mail));
	pthread_condattr_t attr;
	int r;

	if (!mail)
		return err_oom(err);
	r = spool_open(config, &mail->spool, err);
	if (r < 0)
		return r;
	spool_status(mail->spool, &mail->spooled);
	mail->row = *row;
	(void)pthread_mutex_init(&mail->spool_lock, NULL);
	(void)pthread_mutex_init(&mail->lock, NULL);
	(void)pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&mail->news, &attr);
	(void)pthread_condattr_destroy(&attr);
	*ret_mail = TAKE_PTR(mail);
	return 0;
}

void outbox_mail_close(struct outbox_mail *mail)
{
	if (!mail)
		return;
	spool_close(mail->spool);
	(void)pthread_cond_destroy(&mail->news);
	(void)pthread_mutex_destroy(&mail->lock);
	(void)pthread_mutex_destroy(&mail->spool_lock);
	free(mail);
}

/* After a call to the spool, with its lock held, so that reported states stay in order. */
static void spool_leave(struct outbox_mail *mail)
{
	(void)pthread_mutex_lock(&mail->lock);
	spool_status(mail->spool, &mail->spooled);
	(void)pthread_cond_broadcast(&mail->news);
	(void)pthread_mutex_unlock(&mail->lock);
	(void)pthread_mutex_unlock(&mail->spool_lock);
}

int outbox_mail_put(struct outbox_mail *mail, struct buf *message, size_t records, struct err *err)
{
	const struct mail_trailer trailer = {.unix_ns = clock_unix_ns(),
					     .records = (uint32_t)records};
	int r;

	/* The sink needed none of the records. */
	if (message->len == 0) {
		(void)pthread_mutex_lock(&mail->lock);
		mail->written += records;
		(void)pthread_mutex_unlock(&mail->lock);
		return 0;
	}
	message->max = SPOOL_MAX_MESSAGE;
	if (buf_append(message, &trailer, sizeof(trailer)) < 0)
		return err_oom(err);
	(void)pthread_mutex_lock(&mail->spool_lock);
	r = spool_append(mail->spool, buf_view(message), err);
	spool_leave(mail);
	return r;
}

int outbox_mail_sync(struct outbox_mail *mail, struct err *err)
{
	int r;

	(void)pthread_mutex_lock(&mail->spool_lock);
	r = spool_sync(mail->spool, err);
	spool_leave(mail);
	return r;
}

void outbox_mail_put_last(struct outbox_mail *mail)
{
	(void)pthread_mutex_lock(&mail->lock);
	mail->put_last = true;
	(void)pthread_cond_broadcast(&mail->news);
	(void)pthread_mutex_unlock(&mail->lock);
}

void outbox_mail_end(struct outbox_mail *mail, uint64_t until_ns)
{
	(void)pthread_mutex_lock(&mail->lock);
	mail->ending = true;
	mail->until_ns = until_ns;
	(void)pthread_cond_broadcast(&mail->news);
	(void)pthread_mutex_unlock(&mail->lock);
}

/* With the lock held. */
static bool mail_is_done(const struct outbox_mail *mail, uint64_t now)
{
	return mail->ending && (now < mail->retry_ns || now >= mail->until_ns ||
				(mail->put_last && mail->spooled.messages == 0));
}

/* With the lock held. */
static void mail_sleep(struct outbox_mail *mail, uint64_t now)
{
	uint64_t ns = mail->ending ? mail->until_ns : mail->retry_ns;
	struct timespec t = {.tv_sec = (time_t)(ns / NS_PER_SEC),
			     .tv_nsec = (long)(ns % NS_PER_SEC)};

	if (now < ns)
		(void)pthread_cond_timedwait(&mail->news, &mail->lock, &t);
	else
		(void)pthread_cond_wait(&mail->news, &mail->lock);
}

bool outbox_mail_wait(struct outbox_mail *mail)
{
	uint64_t now = clock_mono_ns();
	bool done;

	(void)pthread_mutex_lock(&mail->lock);
	while (!(done = mail_is_done(mail, now)) &&
	       (mail->spooled.messages == 0 || now < mail->retry_ns)) {
		mail_sleep(mail, now);
		now = clock_mono_ns();
	}
	(void)pthread_mutex_unlock(&mail->lock);
	return !done;
}

static int mail_peek(struct outbox_mail *mail, struct buf *message,
		     struct mail_trailer *ret_trailer, struct err *err)
{
	struct mail_trailer trailer = {0};
	int r;

	(void)pthread_mutex_lock(&mail->spool_lock);
	r = spool_peek(mail->spool, message, err);
	spool_leave(mail);
	if (r > 0 && message->len >= sizeof(trailer)) {
		message->len -= sizeof(trailer);
		memcpy(&trailer, message->data + message->len, sizeof(trailer));
	}
	(void)pthread_mutex_lock(&mail->lock);
	mail->oldest_unix_ns = trailer.unix_ns;
	(void)pthread_mutex_unlock(&mail->lock);
	*ret_trailer = trailer;
	return r;
}

/* With the lock held. */
static void mail_failed(struct outbox_mail *mail, const struct err *err)
{
	mail->failures++;
	(void)snprintf(mail->trouble, sizeof(mail->trouble), "%.255s",
		       err->text[0] ? err->text : "the sink gave no reason");
}

/* With the lock held. */
static void mail_back_off(struct outbox_mail *mail)
{
	mail->backoff_ns =
		mail->backoff_ns ? MIN(mail->backoff_ns * 2, MAIL_RETRY_MAX_NS) : MAIL_RETRY_MIN_NS;
	/* Half of it to all of it, so that many machines do not retry at the same time. */
	mail->retry_ns = clock_mono_ns() + mail->backoff_ns / 2 +
			 hash_u64(clock_unix_ns()) % (mail->backoff_ns / 2);
}

static void mail_note(struct outbox_mail *mail, int r, uint32_t records, const struct err *err)
{
	(void)pthread_mutex_lock(&mail->lock);
	if (r < 0)
		mail_failed(mail, err);
	else
		mail->trouble[0] = 0;
	if (r == -EAGAIN) {
		mail_back_off(mail);
	} else {
		*(r < 0 ? &mail->dropped : &mail->written) += records;
		mail->retry_ns = mail->backoff_ns = 0;
	}
	(void)pthread_mutex_unlock(&mail->lock);
}

static void mail_pop(struct outbox_mail *mail)
{
	struct err err = {0};
	int r;

	(void)pthread_mutex_lock(&mail->spool_lock);
	r = spool_pop(mail->spool, &err);
	spool_leave(mail);
	if (r < 0) {
		(void)pthread_mutex_lock(&mail->lock);
		mail_failed(mail, &err);
		(void)pthread_mutex_unlock(&mail->lock);
	}
}

void outbox_mail_send(struct outbox_mail *mail)
{
	_cleanup_(buf_release) struct buf message = buf_with_max(SPOOL_MAX_MESSAGE);
	struct mail_trailer trailer;
	struct err err = {0};
	int r = mail_peek(mail, &message, &trailer, &err);

	if (r == 0)
		return;
	if (r < 0)
		r = -EAGAIN; /* a disk error: perhaps later */
	else if (trailer.records == 0)
		r = err_set(&err, -EBADMSG, "a message in the spool was not written by sonde");
	else
		r = mail->row.ops->send(mail->row.sink, buf_view(&message), &err);
	mail_note(mail, r, trailer.records, &err);
	if (r != -EAGAIN)
		mail_pop(mail);
}

void outbox_mail_status(struct outbox_mail *mail, struct outbox_status *status)
{
	uint64_t now = clock_unix_ns();

	(void)pthread_mutex_lock(&mail->lock);
	status->written += mail->written;
	status->dropped += mail->dropped;
	status->failures += mail->failures;
	status->spooled = mail->spooled.messages;
	status->spooled_bytes = mail->spooled.bytes;
	status->spool_lost = mail->spooled.dropped + mail->spooled.damaged;
	if (mail->spooled.messages && mail->oldest_unix_ns && mail->oldest_unix_ns < now)
		status->lag_ns = MAX(status->lag_ns, now - mail->oldest_unix_ns);
	if (mail->trouble[0])
		memcpy(status->trouble, mail->trouble, sizeof(status->trouble));
	(void)pthread_mutex_unlock(&mail->lock);
}
