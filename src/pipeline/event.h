/*
 * src/pipeline/event.h: something that happened to a resource at one moment: an OOM kill, a
 * deployment.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "pipeline/registry/registry.h"
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
	/* The snapshot; NULL if there is none. */
	struct profile *profile;
	uint32_t snapshot_types; /* as in struct record_profile */
};

struct event *event_new(enum event_id id); /* NULL if out of memory */
void event_free(struct event *event);
DEFINE_CLEANUP(struct event, event_free)
/* Replaces the key's value. Truncates long values, drops attributes over the limit. */
void event_add(struct event *event, const char *key, const char *value);
const char *event_attribute(const struct event *event, const char *key); /* NULL: none */
