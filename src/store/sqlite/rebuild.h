/*
 * src/store/sqlite/rebuild.h: makes a page of a day file anew of which nothing is left, from what
 * the others know. A page that only says where others are then costs none of their rows.
 *
 * Day files keep a map of each page's parent (SQLite's auto_vacuum), so the children of a page
 * that is lost are known; what they hold tells their order, and the keys between them:
 *
 *   page 2, and each 818th after it: 817 entries, for the pages that follow it
 *   entry  offset 0   kind: root of a table, free, overflow, child
 *          1          parent, big-endian
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "store/sqlite/seal.h"

struct store_rebuild {
	void *ctx;
	uint32_t n_pages;
	/*
	 * A version of a page: 0 is the file's, later ones were committed to the log. Returns 1, 0
	 * if it is damaged, or -ENOENT if there are no more.
	 */
	int (*read)(void *ctx, uint32_t number, unsigned int version, uint8_t *page);
	/* Told of each child that cannot be read in any version: what it held is lost. */
	void (*lost)(void *ctx, uint32_t number);
};

/*
 * A page that holds the places of others. Every version of these fits what is made, because a
 * change of their order would have changed the page itself; so the log must not have it. False if
 * it was no such page, or too little is left of the others.
 */
bool store_rebuild_interior(const struct store_rebuild *r, uint32_t number, uint8_t *page);

/* The first page, from that of a new file, if this one has its tables at the same places. */
bool store_rebuild_first(const struct store_rebuild *r, const uint8_t *fresh, uint8_t *page);
