/* src/server/api/known.c: see known.h. */
#include "server/api/known.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/intern.h"

/* A service that was away for longer is new to those who look at the last hour. */
#define AWAY_NS (300 * (int64_t)NS_PER_SEC)

/* What is remembered of each name. */
struct known {
	struct server_known_service said;
	int64_t last_ns;
	bool lived;
	uint64_t words; /* hash of runtime and parent */
};

struct server_known {
	pthread_mutex_t lock;
	struct intern names; /* by id */
	struct intern types;
	struct buf services; /* struct known, by id */
};

struct server_known *server_known_new(void)
{
	struct server_known *k = calloc(1, sizeof(*k));

	if (k)
		(void)pthread_mutex_init(&k->lock, NULL);
	return k;
}

void server_known_free(struct server_known *k)
{
	if (!k)
		return;
	intern_release(&k->names);
	intern_release(&k->types);
	buf_release(&k->services);
	(void)pthread_mutex_destroy(&k->lock);
	free(k);
}

void server_known_lock(struct server_known *k)
{
	(void)pthread_mutex_lock(&k->lock);
}

void server_known_unlock(struct server_known *k)
{
	(void)pthread_mutex_unlock(&k->lock);
}

static struct known *find(struct server_known *k, const char *name)
{
	struct known fresh = {.said.first_ns = INT64_MAX};

	if (intern_add(&k->names, view_str(name), &fresh.said.id) < 0)
		return NULL;
	if (fresh.said.id == k->services.len / sizeof(fresh) &&
	    buf_append(&k->services, &fresh, sizeof(fresh)) < 0)
		return NULL;
	return (struct known *)(void *)k->services.data + fresh.said.id;
}

/* Adds the types of the answer; returns whether there are new ones. */
static bool add_types(struct server_known *k, struct known *s, const struct store_overview *answer,
		      const uint64_t *types)
{
	bool added = false;
	uint32_t number;

	for (size_t i = 0; i < answer->n_types; i++) {
		if (!(types[i / 64] >> i % 64 & 1) ||
		    intern_add(&k->types, view_str(answer->types[i]), &number) < 0 ||
		    number >= STORE_OVERVIEW_MAX_TYPES)
			continue;
		added |= !(s->said.types[number / 64] >> number % 64 & 1);
		s->said.types[number / 64] |= 1ULL << number % 64;
	}
	return added;
}

int server_known_tell(struct server_known *k, const struct store_overview *answer,
		      const struct store_overview_service *s, bool is_there, int64_t now_ns,
		      struct server_known_service *ret)
{
	struct known *known = find(k, s->name);
	uint64_t words = hash_mix(hash_bytes(s->runtime, strlen(s->runtime)) +
				  hash_mix(hash_bytes(s->parent, strlen(s->parent))));
	bool changed, is_short;

	if (!known)
		return -ENOMEM;
	known->lived |= s->lived;
	is_short = !known->lived && !is_there;
	changed = add_types(k, known, answer, s->types);
	changed |= known->words != words || known->said.is_short != is_short;
	if (s->first_ns > known->last_ns + AWAY_NS)
		known->said.changed_ns = s->first_ns;
	else if (changed)
		known->said.changed_ns = now_ns;
	known->words = words;
	known->said.is_short = is_short;
	known->said.first_ns = MIN(known->said.first_ns, s->first_ns);
	known->last_ns = MAX(known->last_ns, s->last_ns);
	*ret = known->said;
	return 0;
}

const char *server_known_type(const struct server_known *k, uint32_t number)
{
	return (const char *)intern_get(&k->types, number).data;
}
