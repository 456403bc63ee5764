/* src/server/assets.c: see assets.h. */
#include "server/assets.h"

#include <string.h>

#define PAGE "/index.html"

static const struct server_asset *assets_get(const char *path)
{
	for (size_t i = 0; i < server_n_assets; i++)
		if (strcmp(server_assets[i].path, path) == 0)
			return &server_assets[i];
	return NULL;
}

const struct server_asset *server_assets_find(const char *path)
{
	const struct server_asset *a = assets_get(path);
	const char *slash = strrchr(path, '/');

	if (a)
		return a;
	/* Other paths are routed by the page; files have a dot. */
	if (strncmp(path, "/assets/", 8) == 0 || (slash && strchr(slash, '.')))
		return NULL;
	return assets_get(PAGE);
}
