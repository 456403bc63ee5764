/*
 * src/pipeline/event.h: something that happened to a resource at one moment: a kill for want of
 * memory, a deployment.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "pipeline/registry.h"
#include "profile/profile.h"

#define EVENT_MAX_ATTRIBUTES 8

struct event {
	const struct event_kind *kind; /* a row of the registry */
	char sentence[256];	       /* for people */
	struct event_attribute {
		char key[32];
		char value[64];
	} attributes[EVENT_MAX_ATTRIBUTES];
	size_t n_attributes;
	/* What it looked like then; NULL when there is no picture. */
	struct profile *profile;
	uint32_t snapshot_types; /* as in struct record_profile */
};

struct event *event_new(enum event_id id); /* NULL without memory */
void event_free(struct event *event);
DEFINE_CLEANUP(struct event, event_free)
/* Replaces what the key had. Values that are too long are cut, attributes beyond the limit left
 * out. */
void event_add(struct event *event, const char *key, const char *value);
const char *event_attribute(const struct event *event, const char *key); /* NULL: none */
