/*
 * src/pipeline/resource.h: what a record is about: a process, or anything else with a name.
 *
 * A resource is a set of labels with OpenTelemetry names: service.name, host.name, process.pid,
 * container.id, k8s.pod.uid, systemd.unit, ... Equal sets are the same pointer, so resources are
 * compared by address and use memory once. They are reference-counted, so short-lived processes do
 * not pile up.
 *
 * All functions are thread-safe.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/label.h"
#include "proc/id.h"

#define RESOURCE_MAX_LABELS 32
#define RESOURCE_MAX_BYTES 8192 /* keys and values of one resource */

struct resource {
	const char *service;	/* the value of service.name, never "" */
	struct proc_id process; /* on this machine; pid 0: none */
	uid_t uid; /* its owner; budgets are per uid. Of several of one user (proc/subuid.h), one */
	size_t n_labels;
	const struct label *labels; /* sorted by key, each key once, no value "" */
	size_t bytes;		    /* of memory */
};

struct resources; /* the table; opaque */

/* max: how many at a time. */
int resources_new(size_t max, struct resources **ret_resources, struct err *err);
/* All resources must have been released. */
void resources_free(struct resources *resources);
DEFINE_CLEANUP(struct resources, resources_free)

/*
 * The resource with these labels, process and uid; created if needed. Release it with
 * resource_unref(). Labels with an empty key or value are dropped; the last of several with the
 * same key counts. -EINVAL without service.name, -E2BIG over a limit.
 */
int resource_get(struct resources *resources, const struct resource *like,
		 const struct resource **ret_resource, struct err *err);
const struct resource *resource_ref(const struct resource *resource);
void resource_unref(const struct resource *resource); /* NULL is fine */
DEFINE_CLEANUP(const struct resource, resource_unref)

/* The value of a label; NULL if it has none. */
const char *resource_label(const struct resource *resource, const char *key);
