/* src/profile/pprof.h: the pprof wire format (profile.proto, gzipped). */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/view.h"
#include "profile/profile.h"

#define PPROF_MAX_UNPACKED ((size_t)512 << 20)

/* Appends the gzipped message to out. Samples keep their order. */
int pprof_encode(const struct profile *p, struct buf *out, struct err *err);
/* Accepts gzip or plain. Malformed input is -EBADMSG, too large is -E2BIG; both say where. */
int pprof_decode(struct view data, struct profile **ret_profile, struct err *err);
