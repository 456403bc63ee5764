/* src/profile/ops.h: merge and difference of profiles. */
#pragma once

#include "base/err.h"
#include "profile/profile.h"

/*
 * Adds all samples of the sources, times their factors, into one profile. Samples with the same
 * frames (addresses, functions, files, lines) and labels become one; samples with only zeros are
 * dropped. Types must agree (-EINVAL says which differ). The time is the earliest; the duration is
 * the sum of those with positive factors. Order: first appearance.
 */
struct profile_term {
	const struct profile *profile;
	int64_t factor;
	uint32_t without_types; /* bit i: omit its values of type i */
	/*
	 * Only one of so many equal parts, all of which add up to the whole. Values too small to be
	 * divided go to parts by chance. 0: the whole.
	 */
	uint32_t part;
	uint32_t parts;
};
int profile_merge(const struct profile_term *terms, size_t n, struct profile **ret_profile,
		  struct err *err);
/* after - before. */
int profile_diff(const struct profile *before, const struct profile *after,
		 struct profile **ret_profile, struct err *err);
