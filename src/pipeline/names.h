/*
 * src/pipeline/names.h: which process goes by which service name.
 *
 * Most names are a process's own word (proc/info.h). So a name belongs to one owner at a time, and
 * processes of others that claim it are kept apart: "shop (uid 65534)", "shop (image 1f0c…)". It is
 * nobody's to choose who has the plain name:
 *
 *   - who has a better right to it has it at once: the manager that gave the name, then root, then
 *     units of the system, then containers, then anybody;
 *   - among equals, who has had it keeps it until none of its processes has been there for a while
 *     (a new image of the same service comes after the old one);
 *   - against a lesser right it is kept for a month.
 *
 * Time is that for which we watched, so that no clock decides. It is all kept on disk, so that a
 * restart changes nothing.
 *
 * All functions are thread-safe.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "proc/info.h"

/*
 * Names that are kept, of all and of one owner; those beyond are never plain. Nobody else's keep
 * root's out.
 */
#define PIPELINE_NAMES_MAX 4096
#define PIPELINE_NAMES_MAX_OWNED 512
#define PIPELINE_NAMES_MAX_ROOT 16384
/* How long the owner must be away before an equal or a lesser one has the name. */
#define PIPELINE_NAMES_AWAY_NS (120 * NS_PER_SEC)
#define PIPELINE_NAMES_LONG_AWAY_NS (UINT64_C(30) * 86400 * NS_PER_SEC)

struct pipeline_names; /* opaque */

int pipeline_names_new(struct pipeline_names **ret_names, struct err *err);
void pipeline_names_free(struct pipeline_names *names);
DEFINE_CLEANUP(struct pipeline_names, pipeline_names_free)

/* Makes info->service, as the process claims it, the name that it goes by. */
void pipeline_names_settle(struct pipeline_names *names, struct proc_info *info);
/* Counts how often a name has changed hands: others may then go by another one. */
uint64_t pipeline_names_turns(struct pipeline_names *names);
/* So much time has passed; owners of which nothing was settled in it were away. */
void pipeline_names_tick(struct pipeline_names *names, uint64_t passed_ns);

/* As text, for the disk. */
int pipeline_names_write(struct pipeline_names *names, struct buf *text);
/* Adds what was written; what is malformed is left out. */
void pipeline_names_read(struct pipeline_names *names, struct view text);
/* Whether something worth writing has changed since the last call. */
bool pipeline_names_changed(struct pipeline_names *names);
