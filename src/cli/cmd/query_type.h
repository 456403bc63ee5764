/*
 * src/cli/cmd/query_type.h: which of a service's stored types is meant by a word such as "mutex".
 *
 * In this order: the type itself, with or without its unit ("go_mutex:delay"); its family ("cpu"
 * is cpu:cpu, not java_cpu:cpu); its name ("delay"), or its family without the runtime ("mutex");
 * the first word of its name ("alloc"), or what it measures ("goroutines"). Of one family the
 * registry's first type is meant. Types of events, such as the heap at an OOM kill, are known by
 * type and family only, so that "inuse_space" stays the heap of every day; those of metrics, which
 * have no stacks, by type only.
 */
#pragma once

#include "base/err.h"
#include "store/store.h"

/*
 * The types in streams must be of one service. -EINVAL if the word means none of them, or types of
 * several families; the message lists them.
 */
int cmd_query_type_pick(const struct store_stream *streams, size_t n, const char *word,
			const struct store_stream **ret_stream, struct err *err);
/* Without a word: the heap in use, else CPU time, else the first by the registry. -ENOENT. */
int cmd_query_type_default(const struct store_stream *streams, size_t n,
			   const struct store_stream **ret_stream, struct err *err);
