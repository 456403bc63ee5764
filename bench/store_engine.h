/* bench/store_engine.h: what the store's benchmark asks of an engine that keeps the load. */
#pragma once

#include <stdint.h>

#include "store_load.h"

struct engine_sum {
	int64_t total;
	uint64_t stacks;
};

struct engine {
	const struct engine_ops *ops;
	uint64_t write_cpu_ns; /* of the engine alone, without making the load */
	uint64_t pack_cpu_ns;  /* of what it does later, where it can be told apart */
};

/* A failure ends the program with a sentence. */
struct engine_ops {
	struct engine *(*open)(const char *place, struct load *load);
	void (*write)(struct engine *e, const struct load_draw *d);
	void (*commit)(struct engine *e, int64_t now_ns); /* a minute is over */
	void (*settle)(struct engine *e, int64_t now_ns); /* all is written, the days are over */
	void (*sum)(struct engine *e, unsigned int service, unsigned int type,
		    const int64_t window_ns[2], struct engine_sum *ret);
	/* The function in 300 steps; returns its total. NULL: cannot. */
	int64_t (*curve)(struct engine *e, unsigned int service, unsigned int type,
			 const char *function, const int64_t window_ns[2]);
	uint64_t (*cpu_ns)(struct engine *e); /* spent so far, by whoever does the work */
	uint64_t (*bytes)(struct engine *e);
	void (*close)(struct engine *e);
};

extern const struct engine_ops engine_embedded;
extern const struct engine_ops engine_rows;
extern const struct engine_ops engine_clickhouse;

__attribute__((noreturn, format(printf, 1, 2))) void engine_fail(const char *fmt, ...);
