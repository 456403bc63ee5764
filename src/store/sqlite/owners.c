/* src/store/sqlite/owners.c: see owners.h. */
#include "store/sqlite/owners.h"

#include <stdlib.h>

struct store_owner *store_owners_get(struct store_owners *o, uint32_t uid)
{
	struct store_owner *owner;
	uint64_t known;

	if (map_get(&o->by_uid, uid, &known))
		return (struct store_owner *)(uintptr_t)known;
	owner = calloc(1, sizeof(*owner));
	if (!owner)
		return NULL;
	owner->uid = uid;
	if (map_put(&o->by_uid, uid, (uintptr_t)owner) < 0) {
		free(owner);
		return NULL;
	}
	owner->next = o->first;
	o->first = owner;
	return owner;
}

void store_owners_begin_hour(struct store_owners *o)
{
	for (struct store_owner *owner = o->first; owner; owner = owner->next)
		owner->series = 0;
}

void store_owners_release(struct store_owners *o)
{
	while (o->first) {
		struct store_owner *owner = o->first;

		o->first = owner->next;
		free(owner);
	}
	map_release(&o->by_uid);
}
