/*
 * src/profile/pprof.h: the pprof wire format (profile.proto, gzipped).
 *
 *   Profile: 1 sample_type*  2 sample*   3 mapping*     4 location*       5 function*
 *            6 string_table* 7 drop      8 keep         9 time_nanos     10 duration_nanos
 *           11 period_type  12 period   13 comment*    14 default_type   15 doc_url
 *
 * On the wire, strings are indexes into string_table, and mappings, functions and locations have
 * ids of the writer's choice, except 0. Messages may refer to later ones.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/view.h"
#include "profile/profile.h"

#define PROFILE_PPROF_MAX_UNPACKED ((size_t)512 << 20)

/*
 * Appends the gzipped message to out, compressing as it goes: the whole message is never in memory.
 * Samples keep their order; ids are index + 1; equal profiles give equal bytes. -E2BIG at out's
 * maximum.
 */
int profile_encode_pprof(const struct profile *p, struct buf *out, struct err *err);
/* Accepts gzip or plain. -EBADMSG for malformed input, -E2BIG if too large; both say where. */
int profile_decode_pprof(struct view data, struct profile **ret_profile, struct err *err);
