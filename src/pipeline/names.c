/* src/pipeline/names.c: see names.h. */
#include "pipeline/names.h"

#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "proc/text.h"

#define NAMES_SLOTS 512 /* a power of two */
#define NAMES_HEAD "sonde services 1\n"
/* What an owner's absence is rounded to on disk, so that it is not written each time. */
#define NAMES_AWAY_STEP (3600 * NS_PER_SEC)

/* Who has at least one name. */
struct owner {
	struct owner *next;
	size_t n_names;
	char text[];
};

struct name {
	struct name *next;
	enum proc_rank rank;
	uint64_t away_ns;
	bool seen; /* since the last tick */
	struct owner *owner;
	char text[];
};

struct pipeline_names {
	pthread_mutex_t lock;
	struct name *slots[NAMES_SLOTS];
	struct owner *owners[NAMES_SLOTS];
	size_t len;
	bool changed;
	uint64_t turns;
};

int pipeline_names_new(struct pipeline_names **ret_names, struct err *err)
{
	struct pipeline_names *names = calloc(1, sizeof(*names));

	if (!names)
		return err_oom(err);
	(void)pthread_mutex_init(&names->lock, NULL);
	*ret_names = names;
	return 0;
}

static size_t slot_of(const char *text)
{
	return hash_bytes(text, strlen(text)) & (NAMES_SLOTS - 1);
}

static struct owner *owner_find(struct pipeline_names *names, const char *text)
{
	struct owner *o = names->owners[slot_of(text)];

	while (o && strcmp(o->text, text) != 0)
		o = o->next;
	return o;
}

/* For one more name; NULL if out of memory. */
static struct owner *owner_take(struct pipeline_names *names, const char *text)
{
	struct owner *o = owner_find(names, text);

	if (!o) {
		o = calloc(1, sizeof(*o) + strlen(text) + 1);
		if (!o)
			return NULL;
		memcpy(o->text, text, strlen(text) + 1);
		o->next = names->owners[slot_of(text)];
		names->owners[slot_of(text)] = o;
	}
	o->n_names++;
	return o;
}

static void owner_give(struct pipeline_names *names, struct owner *o)
{
	struct owner **at = &names->owners[slot_of(o->text)];

	if (--o->n_names)
		return;
	while (*at != o)
		at = &(*at)->next;
	*at = o->next;
	free(o);
}

static void name_free(struct pipeline_names *names, struct name *n)
{
	owner_give(names, n->owner);
	free(n);
}

void pipeline_names_free(struct pipeline_names *names)
{
	if (!names)
		return;
	for (size_t i = 0; i < NAMES_SLOTS; i++) {
		while (names->slots[i]) {
			struct name *n = names->slots[i];

			names->slots[i] = n->next;
			name_free(names, n);
		}
	}
	(void)pthread_mutex_destroy(&names->lock);
	free(names);
}

static struct name *name_find(struct pipeline_names *names, const char *text)
{
	struct name *n = names->slots[slot_of(text)];

	while (n && strcmp(n->text, text) != 0)
		n = n->next;
	return n;
}

static bool may_add(struct pipeline_names *names, const char *owner, enum proc_rank rank)
{
	const struct owner *o;

	if (rank >= PROC_RANK_ROOT)
		return names->len < PIPELINE_NAMES_MAX_ROOT;
	o = owner_find(names, owner);
	return names->len < PIPELINE_NAMES_MAX && (!o || o->n_names < PIPELINE_NAMES_MAX_OWNED);
}

/* NULL if out of memory, or over a limit. */
static struct name *name_add(struct pipeline_names *names, const char *text, const char *owner,
			     enum proc_rank rank)
{
	struct name **slot = &names->slots[slot_of(text)], *n;

	if (!may_add(names, owner, rank))
		return NULL;
	n = calloc(1, sizeof(*n) + strlen(text) + 1);
	if (!n)
		return NULL;
	n->owner = owner_take(names, owner);
	if (!n->owner) {
		free(n);
		return NULL;
	}
	n->rank = rank;
	memcpy(n->text, text, strlen(text) + 1);
	n->next = *slot;
	*slot = n;
	names->len++;
	return n;
}

static bool may_take(const struct name *n, const struct proc_info *info)
{
	if (info->rank > n->rank)
		return true;
	if (n->seen)
		return false;
	return n->away_ns >=
	       (info->rank == n->rank ? PIPELINE_NAMES_AWAY_NS : PIPELINE_NAMES_LONG_AWAY_NS);
}

/* Whether the plain name is theirs, as of now. */
static bool name_claim(struct pipeline_names *names, const struct proc_info *info)
{
	struct name *n = name_find(names, info->service);

	if (!n) {
		n = name_add(names, info->service, info->owner, info->rank);
		if (!n)
			return false;
		names->changed = true;
	} else if (strcmp(n->owner->text, info->owner) != 0) {
		struct owner *owner = may_take(n, info) ? owner_take(names, info->owner) : NULL;

		if (!owner)
			return false;
		owner_give(names, n->owner);
		n->owner = owner;
		n->rank = info->rank;
		names->changed = true;
		names->turns++;
	} else if (info->rank > n->rank) {
		/* Once root's, always root's: also where it was a unit's worker that came first. */
		n->rank = info->rank;
		names->changed = true;
	}
	/* The disk says that it is away. */
	names->changed |= n->away_ns >= NAMES_AWAY_STEP;
	n->seen = true;
	n->away_ns = 0;
	return true;
}

/* Nobody may call itself as another is shown. */
static void name_unmask(char *text)
{
	static const char *const kinds[] = {"(uid",   "(unit",	  "(container",
					    "(image", "(unknown", "(pod"};

	/* With whatever blanks: there are some that no terminal tells apart. */
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		for (char *at = text; (at = strstr(at, kinds[i])); at++)
			if (!isalnum((unsigned char)at[strlen(kinds[i])]))
				at[0] = '[';
}

/* The end of a long name goes, never the owner. */
static void name_mark(struct proc_info *info)
{
	char mark[sizeof(info->owner) + 4];
	size_t cap = sizeof(info->service) - 1, len = strlen(info->service), n;

	(void)snprintf(mark, sizeof(mark), " (%s)", info->owner[0] ? info->owner : "unknown");
	n = MIN(strlen(mark), cap - 1);
	len = MIN(len, cap - n);
	/* Not in the middle of a character. */
	while (len && ((unsigned char)info->service[len] & 0xc0) == 0x80)
		len--;
	memcpy(info->service + len, mark, n);
	info->service[len + n] = 0;
}

void pipeline_names_settle(struct pipeline_names *names, struct proc_info *info)
{
	bool plain;

	name_unmask(info->service);
	(void)pthread_mutex_lock(&names->lock);
	plain = name_claim(names, info);
	(void)pthread_mutex_unlock(&names->lock);
	if (!plain)
		name_mark(info);
}

uint64_t pipeline_names_turns(struct pipeline_names *names)
{
	uint64_t turns;

	(void)pthread_mutex_lock(&names->lock);
	turns = names->turns;
	(void)pthread_mutex_unlock(&names->lock);
	return turns;
}

void pipeline_names_tick(struct pipeline_names *names, uint64_t passed_ns)
{
	(void)pthread_mutex_lock(&names->lock);
	for (size_t i = 0; i < NAMES_SLOTS; i++) {
		struct name **at = &names->slots[i], *n;

		while ((n = *at)) {
			uint64_t before = n->away_ns;

			n->away_ns = n->seen ? 0 : before + passed_ns;
			n->seen = false;
			names->changed |= before / NAMES_AWAY_STEP != n->away_ns / NAMES_AWAY_STEP;
			if (n->away_ns < PIPELINE_NAMES_LONG_AWAY_NS) {
				at = &n->next;
				continue;
			}
			*at = n->next;
			name_free(names, n);
			names->len--;
		}
	}
	(void)pthread_mutex_unlock(&names->lock);
}

/* --- on disk --------------------------------------------------------------------------------- */

/* A line is RANK AWAY OWNER NAME, with tabs between; names have none. AWAY is in seconds. */
int pipeline_names_write(struct pipeline_names *names, struct buf *text)
{
	int r = buf_printf(text, "%s", NAMES_HEAD);

	(void)pthread_mutex_lock(&names->lock);
	for (size_t i = 0; i < NAMES_SLOTS; i++) {
		for (const struct name *n = names->slots[i]; n && r == 0; n = n->next) {
			uint64_t away_ns = n->away_ns / NAMES_AWAY_STEP * NAMES_AWAY_STEP;

			r = buf_printf(text, "%d\t%llu\t%s\t%s\n", (int)n->rank,
				       away_ns / NS_PER_SEC, n->owner->text, n->text);
		}
	}
	(void)pthread_mutex_unlock(&names->lock);
	return r;
}

/* Up to the character; what follows it stays in line. False if there is none. */
static bool text_take(struct view *line, char end, struct view *ret)
{
	const uint8_t *at = line->len ? memchr(line->data, end, line->len) : NULL;

	if (!at)
		return false;
	*ret = view_of(line->data, (size_t)(at - line->data));
	*line = view_of(at + 1, line->len - ret->len - 1);
	return true;
}

static bool text_number(struct view v, uint64_t max, uint64_t *ret)
{
	uint64_t n = 0;

	if (!v.len || v.len > 10)
		return false;
	for (size_t i = 0; i < v.len; i++) {
		if (v.data[i] < '0' || v.data[i] > '9')
			return false;
		n = n * 10 + (v.data[i] - '0');
	}
	*ret = n;
	return n <= max;
}

static void read_line(struct pipeline_names *names, struct view line)
{
	struct proc_info info = {0}; /* for the sizes of its texts */
	struct view rank, away, owner;
	uint64_t rank_n, away_s;
	struct name *n;

	if (!text_take(&line, '\t', &rank) || !text_take(&line, '\t', &away) ||
	    !text_take(&line, '\t', &owner) || !text_number(rank, PROC_RANK_PROVEN, &rank_n) ||
	    !text_number(away, PIPELINE_NAMES_LONG_AWAY_NS / NS_PER_SEC, &away_s) || !line.len ||
	    line.len >= sizeof(info.service) || owner.len >= sizeof(info.owner))
		return;
	proc_text_copy(info.service, sizeof(info.service), line);
	proc_text_copy(info.owner, sizeof(info.owner), owner);
	if (name_find(names, info.service))
		return;
	n = name_add(names, info.service, info.owner, (enum proc_rank)rank_n);
	if (n)
		n->away_ns = away_s * NS_PER_SEC;
}

void pipeline_names_read(struct pipeline_names *names, struct view text)
{
	struct view line;

	if (!text_take(&text, '\n', &line) || line.len + 1 != strlen(NAMES_HEAD) ||
	    memcmp(line.data, NAMES_HEAD, line.len) != 0)
		return;
	(void)pthread_mutex_lock(&names->lock);
	while (text_take(&text, '\n', &line))
		read_line(names, line);
	(void)pthread_mutex_unlock(&names->lock);
}

bool pipeline_names_changed(struct pipeline_names *names)
{
	bool changed;

	(void)pthread_mutex_lock(&names->lock);
	changed = names->changed;
	names->changed = false;
	(void)pthread_mutex_unlock(&names->lock);
	return changed;
}
