/* src/pipeline/event.c: see event.h. */
#include "pipeline/event.h"

#include <stdlib.h>
#include <string.h>

struct event *event_new(enum event_id id)
{
	struct event *event = calloc(1, sizeof(*event));

	if (event)
		event->kind = &registry_events[id];
	return event;
}

void event_free(struct event *event)
{
	if (!event)
		return;
	profile_free(event->profile);
	free(event);
}

/* As much of the text as fits, never part of a UTF-8 sequence. */
static void text_cut(char *dst, size_t room, const char *text)
{
	size_t len = strnlen(text, room);

	if (len == room) {
		len = room - 1;
		while (len > 0 && ((unsigned char)text[len] & 0xc0) == 0x80)
			len--;
	}
	memcpy(dst, text, len);
	dst[len] = 0;
}

static struct event_attribute *attribute_find(const struct event *event, const char *key)
{
	for (size_t i = 0; i < event->n_attributes; i++)
		if (strcmp(event->attributes[i].key, key) == 0)
			return (struct event_attribute *)&event->attributes[i];
	return NULL;
}

void event_add(struct event *event, const char *key, const char *value)
{
	struct event_attribute *at;
	char cut[sizeof(at->key)];

	text_cut(cut, sizeof(cut), key);
	at = attribute_find(event, cut);
	if (!at && event->n_attributes < EVENT_MAX_ATTRIBUTES) {
		at = &event->attributes[event->n_attributes++];
		memcpy(at->key, cut, sizeof(cut));
	}
	if (at)
		text_cut(at->value, sizeof(at->value), value);
}

const char *event_attribute(const struct event *event, const char *key)
{
	const struct event_attribute *at = attribute_find(event, key);

	return at ? at->value : NULL;
}
