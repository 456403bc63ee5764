/* src/cli/cmd/query_type.c: see query_type.h. */
#include "cli/cmd/query_type.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "pipeline/registry/registry.h"

/* How a word names a type; the best is the smallest. */
enum query_type_rank {
	RANK_TYPE,
	RANK_FAMILY,
	RANK_NAME,
	RANK_PART,
	RANK_NONE,
};

/* A type in its parts. */
struct query_type {
	char family[sizeof(((struct store_stream *)0)->type)];
	const char *name;
	const char *unit;
	size_t order; /* in the registry; TYPES if it is not there */
};

static struct query_type query_type_split(const struct store_stream *stream)
{
	struct query_type t = {.name = "", .unit = "", .order = TYPES};
	const struct registry_type *known;
	char *rest = t.family;

	memcpy(t.family, stream->type, sizeof(t.family));
	(void)strsep(&rest, ":");
	if (rest)
		t.name = strsep(&rest, ":");
	if (rest)
		t.unit = rest;
	known = registry_type_find(t.family, t.name, t.unit);
	if (known)
		t.order = (size_t)(known - registry_types);
	return t;
}

static bool query_type_is_event(const char *family)
{
	for (size_t i = 0; i < EVENTS; i++)
		if (registry_events[i].family && strcmp(registry_events[i].family, family) == 0)
			return true;
	return false;
}

/* A series without stacks, stored under a type of its own. */
static bool query_type_is_metric(const char *type)
{
	for (size_t i = 0; i < METRICS; i++)
		if (registry_metrics[i].stream && strcmp(registry_metrics[i].stream, type) == 0)
			return true;
	return false;
}

/* Whether the text begins with the word, and this character follows. */
static bool query_type_begins(const char *text, const char *word, char next)
{
	size_t len = strlen(word);

	return strncmp(text, word, len) == 0 && text[len] == next;
}

static enum query_type_rank query_type_rank(const struct store_stream *stream, const char *word)
{
	struct query_type t = query_type_split(stream);
	const char *runtime_end = strchr(t.family, '_');
	const char *unit = strrchr(stream->type, ':');
	size_t len = strlen(word);

	if (!len)
		return RANK_NONE;
	if (strcmp(stream->type, word) == 0 ||
	    (unit && strchr(word, ':') && len == (size_t)(unit - stream->type) &&
	     strncmp(stream->type, word, len) == 0))
		return RANK_TYPE;
	if (query_type_is_metric(stream->type))
		return RANK_NONE;
	if (strcmp(t.family, word) == 0)
		return RANK_FAMILY;
	if (runtime_end && strcmp(runtime_end + 1, word) == 0)
		return RANK_NAME;
	if (query_type_is_event(t.family))
		return RANK_NONE;
	if (strcmp(t.name, word) == 0)
		return RANK_NAME;
	if (query_type_begins(t.name, word, '_') ||
	    (t.order < TYPES && strcmp(registry_types[t.order].measure, word) == 0))
		return RANK_PART;
	return RANK_NONE;
}

/* Those of this rank or better, without their units, as far as there is room. */
static const char *query_type_list(const struct store_stream *streams, size_t n, const char *word,
				   enum query_type_rank rank, char dst[static 384])
{
	size_t used = 0;

	dst[0] = '\0';
	for (size_t i = 0; i < n; i++) {
		const char *unit = strrchr(streams[i].type, ':');
		int len = unit ? (int)(unit - streams[i].type) : (int)strlen(streams[i].type);

		if (query_type_rank(&streams[i], word) > rank ||
		    query_type_is_metric(streams[i].type))
			continue;
		if (used + (size_t)len + 8 > 384) {
			(void)snprintf(dst + used, 384 - used, ", ...");
			break;
		}
		used += (size_t)snprintf(dst + used, 384 - used, "%s%.*s", used ? ", " : "", len,
					 streams[i].type);
	}
	return dst;
}

static bool query_type_same_family(const struct store_stream *a, const struct store_stream *b)
{
	return strcmp(query_type_split(a).family, query_type_split(b).family) == 0;
}

int cmd_query_type_pick(const struct store_stream *streams, size_t n, const char *word,
			const struct store_stream **ret_stream, struct err *err)
{
	const struct store_stream *picked = NULL;
	enum query_type_rank best = RANK_NONE;
	bool several = false;
	char list[384];

	for (size_t i = 0; i < n; i++) {
		enum query_type_rank rank = query_type_rank(&streams[i], word);

		if (rank == RANK_NONE || rank > best)
			continue;
		several = rank == best && (several || !query_type_same_family(&streams[i], picked));
		if (rank < best ||
		    query_type_split(&streams[i]).order < query_type_split(picked).order)
			picked = &streams[i];
		best = rank;
	}
	if (!picked)
		return err_set(err, -EINVAL, "no type '%s'; it has %s", word,
			       query_type_list(streams, n, word, RANK_NONE, list));
	if (several)
		return err_set(err, -EINVAL, "type '%s' is ambiguous: use one of %s", word,
			       query_type_list(streams, n, word, best, list));
	*ret_stream = picked;
	return 0;
}
