/* src/pipeline/source.c: see source.h. */
#include "pipeline/source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void *source_share(struct source_shares *shares, const struct source_share_kind *kind,
		   struct err *err)
{
	void *share;

	for (size_t i = 0; i < shares->len; i++)
		if (shares->items[i].kind == kind)
			return shares->items[i].share;
	share = shares->len < SOURCE_MAX_SHARES ? calloc(1, kind->bytes) : NULL;
	if (!share) {
		(void)err_oom(err);
		return NULL;
	}
	shares->items[shares->len].kind = kind;
	shares->items[shares->len++].share = share;
	return share;
}

void source_shares_clear(struct source_shares *shares)
{
	for (size_t i = 0; i < shares->len; i++) {
		shares->items[i].kind->release(shares->items[i].share);
		free(shares->items[i].share);
	}
	*shares = (struct source_shares){0};
}

void source_reading_release(struct source_reading *reading)
{
	profile_free(reading->profile);
	metrics_free(reading->metrics);
	reading->profile = NULL;
	reading->metrics = NULL;
}

void source_answer_no(struct source_answer *answer, enum err_cause cause, const char *reason,
		      const char *remedy)
{
	answer->yes = false;
	answer->cause = cause;
	(void)snprintf(answer->reason, sizeof(answer->reason), "%s", reason);
	(void)snprintf(answer->remedy, sizeof(answer->remedy), "%s", remedy);
}

void source_answer_refuse(struct source_answer *answer, int code, const struct err *err)
{
	enum err_cause cause = err_cause_of(code, err);

	answer->may_change = cause != ERR_CAUSE_DENIED && !err_cause_is_of_machine(cause);
	/*
	 * The same text for all, so that they can be counted. Only namespaces and security modules
	 * deny root.
	 */
	if (cause == ERR_CAUSE_DENIED)
		source_answer_no(answer, cause, "not enough permissions",
				 geteuid() == 0 ? "run sonde on the host" : "run sonde as root");
	else
		source_answer_no(answer, cause, err->text[0] ? err->text : strerror(-code),
				 err->remedy);
}
