/* src/cli/cmd/query_type.c: see query_type.h. */
#include "cli/cmd/query_type.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "pipeline/registry/registry.h"

/* Of a list of types in a message. */
#define LIST_LEN 384

/* How a word names a type; the best is the smallest. */
enum query_type_rank {
	RANK_TYPE,
	RANK_FAMILY,
	RANK_NAME,
	RANK_PART,
	RANK_NONE,
};

/* A type in its parts, which lie in text. */
struct query_type {
	char text[sizeof(((struct store_stream *)0)->type)];
	const char *family;
	const char *name;
	size_t order; /* in the registry; TYPES if it is not there */
};

static void query_type_split(struct query_type *t, const struct store_stream *stream)
{
	const struct registry_type *known;
	const char *unit;
	char *rest = t->text;

	memcpy(t->text, stream->type, sizeof(t->text));
	t->family = strsep(&rest, ":");
	t->name = rest ? strsep(&rest, ":") : "";
	unit = rest ? rest : "";
	known = registry_type_find(t->family, t->name, unit);
	t->order = known ? (size_t)(known - registry_types) : TYPES;
}

static size_t query_type_order(const struct store_stream *stream)
{
	struct query_type t;

	query_type_split(&t, stream);
	return t.order;
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
	const char *unit = strrchr(stream->type, ':');
	size_t len = strlen(word);
	const char *runtime_end;
	struct query_type t;

	if (!len)
		return RANK_NONE;
	if (strcmp(stream->type, word) == 0 ||
	    (unit && strchr(word, ':') && len == (size_t)(unit - stream->type) &&
	     strncmp(stream->type, word, len) == 0))
		return RANK_TYPE;
	if (query_type_is_metric(stream->type))
		return RANK_NONE;
	query_type_split(&t, stream);
	runtime_end = strchr(t.family, '_');
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
				   enum query_type_rank rank, char dst[static LIST_LEN])
{
	size_t used = 0;

	dst[0] = '\0';
	for (size_t i = 0; i < n; i++) {
		const char *unit = strrchr(streams[i].type, ':');
		int len = unit ? (int)(unit - streams[i].type) : (int)strlen(streams[i].type);

		if (query_type_rank(&streams[i], word) > rank ||
		    query_type_is_metric(streams[i].type))
			continue;
		if (used + (size_t)len + 8 > LIST_LEN) {
			(void)snprintf(dst + used, LIST_LEN - used, ", ...");
			break;
		}
		used += (size_t)snprintf(dst + used, LIST_LEN - used, "%s%.*s", used ? ", " : "",
					 len, streams[i].type);
	}
	return dst;
}

static bool query_type_same_family(const struct store_stream *a, const struct store_stream *b)
{
	size_t len = strcspn(a->type, ":");

	return len == strcspn(b->type, ":") && strncmp(a->type, b->type, len) == 0;
}

int cmd_query_type_default(const struct store_stream *streams, size_t n,
			   const struct store_stream **ret_stream, struct err *err)
{
	const struct store_stream *best = NULL;

	for (size_t i = 0; i < n; i++) {
		size_t order = query_type_order(&streams[i]);

		if (order == TYPE_GO_HEAP_INUSE_SPACE) {
			*ret_stream = &streams[i];
			return 0;
		}
		if (query_type_is_metric(streams[i].type))
			continue;
		if (!best || order == TYPE_CPU_TIME ||
		    (query_type_order(best) != TYPE_CPU_TIME && order < query_type_order(best)))
			best = &streams[i];
	}
	if (!best)
		return err_set(err, -ENOENT, "there are metrics of it, but no profiles");
	*ret_stream = best;
	return 0;
}

int cmd_query_type_pick(const struct store_stream *streams, size_t n, const char *word,
			const struct store_stream **ret_stream, struct err *err)
{
	const struct store_stream *picked = NULL;
	enum query_type_rank best = RANK_NONE;
	bool several = false;
	char list[LIST_LEN];

	for (size_t i = 0; i < n; i++) {
		enum query_type_rank rank = query_type_rank(&streams[i], word);

		if (rank == RANK_NONE || rank > best)
			continue;
		several = rank == best && (several || !query_type_same_family(&streams[i], picked));
		if (rank < best || query_type_order(&streams[i]) < query_type_order(picked))
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
