/*
 * src/server/api/known.h: the services that clients of /api/overview have been told of: their ids,
 * which stay while the server runs, and when what is said of them changed, so that a refresh says
 * only that.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "store/store.h"

struct server_known; /* opaque; safe for threads */

struct server_known_service {
	uint32_t id;
	bool is_short;
	int64_t changed_ns;			       /* when a client was first told so */
	int64_t first_ns;			       /* of all that clients were told */
	uint64_t types[STORE_OVERVIEW_MAX_TYPES / 64]; /* numbers of the answer's types */
};

struct server_known *server_known_new(void); /* NULL: out of memory */
void server_known_free(struct server_known *k);
DEFINE_CLEANUP(struct server_known, server_known_free)

/* Between these two, the others may be called. */
void server_known_lock(struct server_known *k);
void server_known_unlock(struct server_known *k);
/*
 * Notes a service of the answer, and tells what is known of it with what was before. is_there: a
 * process of it is there now.
 */
int server_known_tell(struct server_known *k, const struct store_overview *answer,
		      const struct store_overview_service *s, bool is_there, int64_t now_ns,
		      struct server_known_service *ret);
/* The name of a type by its number in struct server_known_service. */
const char *server_known_type(const struct server_known *k, uint32_t number);
