/*
 * bench/store_load.h: the made-up load of the store's benchmark, the same for every engine.
 *
 * 30 services with 4 types, one collection a minute, 300 to 2,000 samples per type that are spread
 * over one to three processes, 20,000 stacks per service of which a Zipf law draws, 10 to 60 frames
 * deep. Every two days a service is deployed: its processes get new pids, and each stack gets
 * another frame in its middle with a chance of one in four. What is drawn depends on service,
 * process and minute only, so that a run with fewer services writes the same profiles.
 */
#pragma once

#include <stdint.h>

#include "profile/profile.h"

#define LOAD_SERVICES 30
#define LOAD_TYPES 4
#define LOAD_STACKS 20000
#define LOAD_FUNCTIONS 15000
#define LOAD_DEPTH 60
#define LOAD_DAY_NS 86400000000000LL
#define LOAD_MINUTE_NS 60000000000LL
#define LOAD_START_NS (20000 * LOAD_DAY_NS)
#define LOAD_START_DAY "2024-10-04"

struct load; /* opaque */

/* One drawn collection of one process; borrowed until the next one is drawn. */
struct load_draw {
	unsigned int service;
	unsigned int process;
	unsigned int pid;
	int64_t time_ns;
	const uint32_t *stacks; /* numbers that stay the same over the whole run */
	const int64_t (*values)[LOAD_TYPES];
	uint32_t n;
	uint64_t samples; /* values that are not 0 */
};

struct load *load_new(void); /* ends the program without memory */
void load_free(struct load *l);
unsigned int load_processes(unsigned int service);
const char *load_service(unsigned int service);
const char *load_type(unsigned int type); /* as the store names it */
const char *load_function(const struct load *l, unsigned int function, const char **ret_file);
unsigned int load_line(unsigned int function);
/* The functions of a stack, root first; returns how many. */
uint32_t load_frames(const struct load *l, unsigned int service, uint32_t stack,
		     uint16_t frames[LOAD_DEPTH]);
void load_draw(struct load *l, unsigned int service, unsigned int process, uint32_t minute,
	       struct load_draw *ret);
/* The draw as a reader would hand it over: with the functions and locations of its stacks. */
struct profile *load_profile(struct load *l, const struct load_draw *d);
