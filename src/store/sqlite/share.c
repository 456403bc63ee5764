/* src/store/sqlite/share.c: see share.h. */
#include "store/sqlite/share.h"

#include <stdlib.h>

#include "base/cleanup.h"

/*
 * A service may have an eighth of its owner's share; or twice the mean, where there are but few.
 * Below that it is no hog.
 */
#define SERVICE_PART 8
#define SERVICE_MEANS 2

/* By owner, then service. */
static int compare_shares(const void *va, const void *vb)
{
	const struct store_share *a = va, *b = vb;

	if (a->uid != b->uid)
		return a->uid < b->uid ? -1 : 1;
	return a->name < b->name ? -1 : a->name > b->name;
}

/* The services of one owner: if one of them is a hog, that one. */
static void judge_services(const struct store_share *shares, size_t n,
			   struct store_share_verdict *v)
{
	uint64_t services = 0, most = 0, bytes = 0, limit, name = 0;

	for (size_t i = 0; i < n; i++) {
		bytes += shares[i].refused ? 0 : shares[i].bytes;
		if (i + 1 < n && shares[i + 1].name == shares[i].name)
			continue;
		services++;
		if (bytes > most) {
			most = bytes;
			name = shares[i].name;
		}
		bytes = 0;
	}
	limit = MAX(v->share / SERVICE_PART, v->share / MAX(services, 1U) * SERVICE_MEANS);
	if (most <= limit)
		return;
	v->kind = STORE_SHARE_SERVICE;
	v->name = name;
}

struct store_share_verdict store_share_judge(struct store_share *shares, size_t n,
					     uint64_t max_bytes)
{
	struct store_share_verdict v = {.kind = STORE_SHARE_DAY};
	size_t first = 0, begin = 0, end = 0;
	uint64_t bytes = 0;

	if (n > 0)
		qsort(shares, n, sizeof(*shares), compare_shares);
	for (size_t i = 0; i < n; i++) {
		bytes += shares[i].refused ? 0 : shares[i].bytes;
		if (i + 1 < n && shares[i + 1].uid == shares[i].uid)
			continue;
		v.owners++;
		if (bytes > v.has) {
			v.has = bytes;
			v.uid = shares[i].uid;
			begin = first;
			end = i + 1;
		}
		first = i + 1;
		bytes = 0;
	}
	v.share = max_bytes / MAX(v.owners, 1U);
	/* The days of a single owner are everybody's. */
	if (v.owners > 1 && v.has <= v.share)
		return v;
	if (v.owners > 1)
		v.kind = STORE_SHARE_OWNER;
	judge_services(shares + begin, end - begin, &v);
	return v;
}

bool store_share_concerns(const struct store_share_verdict *v, const struct store_share *share)
{
	return share->uid == v->uid && (v->kind != STORE_SHARE_SERVICE || share->name == v->name);
}
