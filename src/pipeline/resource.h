/*
 * src/pipeline/resource.h: what a record is about: a process, or whatever else has a name.
 *
 * A resource is a set of labels under OpenTelemetry's names: service.name, host.name, process.pid,
 * container.id, k8s.pod.uid, systemd.unit, ... Equal sets are the same pointer, so resources are
 * compared by address and cost their memory once. They are counted: short-lived processes do not
 * pile up.
 *
 * All functions are safe from any thread.
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
#define RESOURCE_MAX_BYTES 8192 /* keys and values of one */

struct resource {
	const char *service;	/* the value of service.name, never "" */
	struct proc_id process; /* of this machine; pid 0: none */
	uid_t uid;		/* whom it belongs to: budgets are by it */
	size_t n_labels;
	const struct label *labels; /* sorted by key, each once, no value "" */
	size_t bytes;		    /* of memory */
};

struct resources; /* the table; opaque */

/* max: how many there can be at a time. */
int resources_new(size_t max, struct resources **ret_resources, struct err *err);
/* All must have been given back, or they dangle. */
void resources_free(struct resources *resources);
DEFINE_CLEANUP(struct resources, resources_free)

/*
 * The one with these labels, process and uid, made if there is none; to be given back. Labels whose
 * key or value is "" are left out; of several with one key the last counts. -EINVAL without
 * service.name, -E2BIG past a limit.
 */
int resource_get(struct resources *resources, const struct resource *like,
		 const struct resource **ret_resource, struct err *err);
const struct resource *resource_ref(const struct resource *resource);
void resource_unref(const struct resource *resource); /* NULL is fine */
DEFINE_CLEANUP(const struct resource, resource_unref)

/* The value of a label; NULL when it has none. */
const char *resource_label(const struct resource *resource, const char *key);
