/*
 * src/store/sqlite/share.h: who has to give way if the store is over --max-disk.
 *
 * Each owner has an equal share. The one that is furthest above its share loses its own oldest
 * data; if one of its services has grown far beyond the others, that one does. If nobody is above,
 * the oldest day goes. So nobody pushes out what others have stored.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a service has in a file. */
struct store_share {
	size_t file;	  /* its number, from the oldest */
	uint32_t service; /* in that file */
	uint32_t uid;
	uint64_t name; /* a hash: the same in all files */
	uint64_t bytes;
	bool refused; /* its owner is, and has nothing more to give */
};

/* Who has to give way. */
struct store_share_verdict {
	enum {
		STORE_SHARE_DAY,     /* the oldest day */
		STORE_SHARE_OWNER,   /* all services of uid */
		STORE_SHARE_SERVICE, /* one of them */
	} kind;
	uint32_t uid;  /* of whoever has most */
	uint64_t name; /* of the service */
	uint64_t owners;
	uint64_t has;	/* bytes, of the owner */
	uint64_t share; /* bytes that it may have */
};
/* Sorts the shares. */
struct store_share_verdict store_share_judge(struct store_share *shares, size_t n,
					     uint64_t max_bytes);
/* Whether it is about what this one has. */
bool store_share_concerns(const struct store_share_verdict *verdict,
			  const struct store_share *share);
