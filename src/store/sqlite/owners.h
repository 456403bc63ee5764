/*
 * src/store/sqlite/owners.h: whose the services of a day are, and how much of the file's
 * dictionaries each owner has used. An owner is a user id: whoever has one can make up as many
 * names, stacks and services as it likes, so that each has a budget.
 *
 *   owner(service, uid, bytes)   bytes: of names and stacks
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/map.h"

#define STORE_OWNER_UNKNOWN UINT32_MAX

/* Of one day. */
struct store_owner {
	struct store_owner *next;
	uint32_t uid;
	uint32_t services;
	uint32_t streams;
	uint32_t labelsets;
	uint32_t series; /* active, of metrics */
	uint64_t bytes;	 /* of names and stacks */
};

/* What a service, and an owner, may add to a day. */
struct store_budget {
	uint32_t stacks; /* of a service */
	uint32_t labelsets;
	uint32_t series; /* active */
	uint64_t bytes;	 /* of names and stacks */
	uint32_t owner_services;
	uint32_t owner_streams;
	uint32_t owner_labelsets;
	uint32_t owner_series;
	uint64_t owner_bytes;
	uint32_t series_in_all;
};

/* A zeroed one is empty. */
struct store_owners {
	struct store_owner *first;
	struct map by_uid;
};
/* Created if it is new; NULL if out of memory. */
struct store_owner *store_owners_get(struct store_owners *o, uint32_t uid);
/* A new hour: no series is active. */
void store_owners_begin_hour(struct store_owners *o);
void store_owners_release(struct store_owners *o);
