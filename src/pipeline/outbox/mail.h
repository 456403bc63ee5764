/*
 * src/pipeline/outbox/mail.h: the remote half of an outbox: spools messages and sends them.
 *
 * One thread puts messages, another sends them; they wait for each other's disk calls only. A
 * message that cannot be sent is retried after a second, then less and less often, at least once a
 * minute.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "pipeline/outbox/outbox.h"
#include "pipeline/spool/spool.h"

/* The maximum size of a message. */
#define OUTBOX_MAIL_MAX (SPOOL_MAX_MESSAGE - 16)

struct outbox_mail; /* opaque */

/* Borrows the sink. */
int outbox_mail_open(const struct sink_row *row, const struct spool_config *config,
		     struct outbox_mail **ret_mail, struct err *err);
void outbox_mail_close(struct outbox_mail *mail); /* NULL is fine */

/* A message of this many records. Appends a trailer to it. */
int outbox_mail_put(struct outbox_mail *mail, struct buf *message, size_t records, struct err *err);
int outbox_mail_sync(struct outbox_mail *mail, struct err *err);
/* Nothing more will come. */
void outbox_mail_put_last(struct outbox_mail *mail);

/* Waits for a message to send; false at the end. */
bool outbox_mail_wait(struct outbox_mail *mail);
/* Tries to send the oldest message. */
void outbox_mail_send(struct outbox_mail *mail);
/* The end comes once everything was sent, a message cannot be sent, or at until_ns. */
void outbox_mail_end(struct outbox_mail *mail, uint64_t until_ns);

/* Adds its part. */
void outbox_mail_status(struct outbox_mail *mail, struct outbox_status *status);
