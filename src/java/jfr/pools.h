/*
 * src/java/jfr/pools.h: the constants of a chunk that profiles need: stacks, methods, classes,
 * threads and texts.
 *
 *   checkpoint: size, 1, start, duration, distance to the one before, flags, pools
 *   pool:       type, count, (key, value)*
 *
 * Constants refer to each other by keys, which are resolved on demand, one step at a time, so
 * cycles are harmless. Key 0 is null. All other pools are skipped: a recording can contain command
 * lines and environments, which are none of our business.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/map.h"
#include "java/jfr/metadata.h"
#include "java/jfr/plan.h"

struct java_jfr_frame {
	uint64_t method; /* keys */
	uint64_t type;
	int32_t line; /* 0 if unknown */
};

struct java_jfr_stack {
	const struct java_jfr_frame *frames; /* leaf first */
	uint32_t n_frames;
	bool truncated;
	uint64_t key;
	const struct java_jfr_pools *pools; /* the pools its keys refer to */
};

struct java_jfr_method {
	uint64_t type; /* keys: its class, its name */
	uint64_t name;
};

struct java_jfr_thread {
	struct view java_name; /* empty if it has none */
	struct view os_name;
	int64_t java_id;
	int64_t os_id; /* inside the JVM's pid namespace */
	bool is_virtual;
};

#define JAVA_JFR_MAX_TEXT_POOLS 64

struct java_jfr_text_pool {
	uint64_t type;
	struct map texts; /* key to index + 1 in texts */
};

/* Empty if zeroed, and may be released; set limit first. */
struct java_jfr_pools {
	size_t limit;	/* bytes, approximately */
	size_t used;	/* of it */
	uint64_t epoch; /* unique among pools */
	struct arena bytes;
	struct buf texts;   /* of struct view */
	struct buf frames;  /* of struct java_jfr_frame */
	struct buf stacks;  /* of struct stack_entry */
	struct buf methods; /* of struct java_jfr_method */
	struct buf threads; /* of struct java_jfr_thread */
	struct map stack_keys, method_keys, class_keys, thread_keys;
	struct java_jfr_text_pool text_pools[JAVA_JFR_MAX_TEXT_POOLS];
	uint32_t n_text_pools;
	uint64_t symbol_type, frame_type_type;
};

void java_jfr_pools_release(struct java_jfr_pools *p);
/* Adds the contents of a checkpoint event. -EBADMSG, -E2BIG. */
int java_jfr_pools_add(struct java_jfr_pools *p, const struct java_jfr_meta *m, struct view event,
		       struct err *err);

/* All return false if not found. Valid until the pools are added to or released. */
bool java_jfr_pools_stack(const struct java_jfr_pools *p, uint64_t key,
			  struct java_jfr_stack *ret_stack);
bool java_jfr_pools_method(const struct java_jfr_pools *p, uint64_t key,
			   struct java_jfr_method *ret_method);
bool java_jfr_pools_class(const struct java_jfr_pools *p, uint64_t key, struct view *ret_name);
bool java_jfr_pools_thread(const struct java_jfr_pools *p, uint64_t key,
			   struct java_jfr_thread *ret_thread);
bool java_jfr_pools_symbol(const struct java_jfr_pools *p, uint64_t key, struct view *ret_text);
bool java_jfr_pools_frame_type(const struct java_jfr_pools *p, uint64_t key, struct view *ret_text);
/* For any type that is a string or contains just one. */
bool java_jfr_pools_text(const struct java_jfr_pools *p, uint64_t type, uint64_t key,
			 struct view *ret_text);
