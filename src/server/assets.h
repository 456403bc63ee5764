/*
 * src/server/assets.h: the web page, packed into the program by tools/embed_assets.py.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct server_asset {
	const char *path; /* "/index.html" */
	const char *type; /* for Content-Type */
	const char *etag; /* with its quotes */
	const uint8_t *data;
	size_t len;
	bool packed;	/* by gzip */
	bool immutable; /* the name changes with the contents */
};

/* Generated; sorted by path. */
extern const struct server_asset server_assets[];
extern const size_t server_n_assets;

/* Returns the page for "/" and its own paths; NULL for a missing file. */
const struct server_asset *server_assets_find(const char *path);
