/*
 * src/pipeline/outbox_mail.h: the remote half of an outbox: messages in a spool, and their sending.
 *
 * One thread puts messages in, another brings them away; neither waits for the other's calls but
 * for those of the disk. A message that cannot be sent now is tried again after a second, then
 * after ever longer, up to a minute.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "pipeline/outbox.h"
#include "pipeline/spool.h"

/* What is put has at most so many bytes. */
#define OUTBOX_MAIL_MAX (SPOOL_MAX_MESSAGE - 16)

struct outbox_mail; /* opaque */

/* The sink stays the caller's. */
int outbox_mail_open(const struct sink_row *row, const struct spool_config *config,
		     struct outbox_mail **ret_mail, struct err *err);
void outbox_mail_close(struct outbox_mail *mail); /* NULL is fine */

/* A message of so many records. It may be appended to. */
int outbox_mail_put(struct outbox_mail *mail, struct buf *message, size_t records, struct err *err);
int outbox_mail_sync(struct outbox_mail *mail, struct err *err);
/* Nothing more will be put. */
void outbox_mail_put_last(struct outbox_mail *mail);

/* Waits for a message to be sent; false when the end has come. */
bool outbox_mail_wait(struct outbox_mail *mail);
/* Tries to send the oldest one. */
void outbox_mail_send(struct outbox_mail *mail);
/* The end comes when all was sent, when one cannot be sent, or until_ns. */
void outbox_mail_end(struct outbox_mail *mail, uint64_t until_ns);

/* Adds its share. */
void outbox_mail_status(struct outbox_mail *mail, struct outbox_status *status);
