/* bench/store_load.c: draws profiles by a seed; see store_load.h. */
#include "store_load.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define N_GUIDE 65536
#define DEPLOY_MINUTES 2880
#define SEED 42

static const char *const type_names[LOAD_TYPES][2] = {{"samples", "count"},
						      {"cpu", "nanoseconds"},
						      {"alloc_space", "bytes"},
						      {"delay", "nanoseconds"}};

struct service {
	uint32_t offsets[LOAD_STACKS + 1];
	uint16_t *frames; /* root first */
	uint32_t sizes[LOAD_STACKS];
	double base[LOAD_TYPES];
	uint8_t versions[LOAD_STACKS];
	uint32_t deploy; /* that the versions are of */
};

struct load {
	uint64_t seed;
	double cumulated[LOAD_STACKS];
	uint16_t guide[N_GUIDE]; /* where to begin to look in cumulated */
	uint16_t ranks[LOAD_TYPES][LOAD_STACKS];
	char names[LOAD_FUNCTIONS][96];
	char files[LOAD_FUNCTIONS][48];
	struct view views[LOAD_FUNCTIONS][2];
	uint32_t known[LOAD_FUNCTIONS]; /* location + 1 in the profile being made */
	struct service services[LOAD_SERVICES];
	/* Of the collection being drawn: where a stack is in stacks and values, plus 1. */
	uint32_t places[LOAD_STACKS];
	uint32_t drawn[LOAD_STACKS];
	uint32_t stacks[LOAD_STACKS];
	int64_t values[LOAD_STACKS][LOAD_TYPES];
};

static uint64_t mix(uint64_t z)
{
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return z ^ z >> 31;
}

static uint64_t draw(struct load *l)
{
	return mix(l->seed += 0x9e3779b97f4a7c15ULL);
}

static double draw_unit(struct load *l)
{
	return (double)(draw(l) >> 11) / 9007199254740992.0;
}

static void make_names(struct load *l)
{
	static const char *const packages[] = {"github.com/acme/platform/internal/", "net/http.",
					       "runtime.", "database/sql.", "encoding/json."};
	static const char *const types[] = {"(*Server)", "(*Conn)", "(*Pool)", "(*Tx)"};
	static const char *const verbs[] = {"process", "handle", "readLoop", "encodeValue"};

	for (unsigned int i = 0; i < LOAD_FUNCTIONS; i++) {
		(void)snprintf(l->names[i], sizeof(l->names[i]), "%s%s.%s%04u",
			       packages[draw(l) % 5], types[draw(l) % 4], verbs[draw(l) % 4], i);
		(void)snprintf(l->files[i], sizeof(l->files[i]), "/src/internal/server/file_%u.go",
			       i % 900);
		l->views[i][0] = view_str(l->names[i]);
		l->views[i][1] = view_str(l->files[i]);
	}
}

/* Most stacks begin as another one does. */
static void make_service(struct load *l, struct service *s, unsigned int number)
{
	uint32_t at = 0;

	s->frames = malloc((size_t)LOAD_STACKS * LOAD_DEPTH * sizeof(*s->frames));
	if (!s->frames)
		exit(1);
	for (int t = 0; t < LOAD_TYPES; t++)
		s->base[t] = 300 * exp(draw_unit(l) * log(2000.0 / 300));
	for (uint32_t i = 0; i < LOAD_STACKS; i++) {
		uint32_t depth = 10 + (uint32_t)(draw(l) % 51 + draw(l) % 51) / 2, shared = 0;

		depth = MIN(depth, LOAD_DEPTH);
		s->sizes[i] = 16U << draw(l) % 12;
		s->offsets[i] = at;
		if (i > 0) {
			uint32_t j = (uint32_t)(draw(l) % i);
			uint32_t most = MIN(s->offsets[j + 1] - s->offsets[j], depth - 1);

			shared = (uint32_t)((0.5 + 0.45 * draw_unit(l)) * most);
			memcpy(s->frames + at, s->frames + s->offsets[j],
			       shared * sizeof(*s->frames));
		}
		for (uint32_t k = shared; k < depth; k++) {
			double u = draw_unit(l);
			uint32_t f = (uint32_t)(5500 * u * u);

			s->frames[at + k] =
				(uint16_t)(f < 3000 ? f : 3000 + (number * 811 + f * 3) % 12000);
		}
		at += depth;
		s->offsets[i + 1] = at;
	}
}

static void make_law(struct load *l)
{
	double sum = 0;
	unsigned int rank = 0;

	for (unsigned int i = 0; i < LOAD_STACKS; i++)
		l->cumulated[i] = sum += 1.0 / (i + 1);
	for (unsigned int i = 0; i < LOAD_STACKS; i++)
		l->cumulated[i] /= sum;
	for (unsigned int i = 0; i < N_GUIDE; i++) {
		while (l->cumulated[rank] < (double)i / N_GUIDE)
			rank++;
		l->guide[i] = (uint16_t)rank;
	}
}

/* Each type ranks the stacks in an order of its own. */
static void make_ranks(struct load *l)
{
	for (unsigned int t = 0; t < LOAD_TYPES; t++) {
		for (unsigned int i = 0; i < LOAD_STACKS; i++)
			l->ranks[t][i] = (uint16_t)i;
		for (unsigned int i = LOAD_STACKS - 1; t > 0 && i > 0; i--) {
			unsigned int j = (unsigned int)(draw(l) % (i + 1));
			uint16_t swap = l->ranks[t][i];

			l->ranks[t][i] = l->ranks[t][j];
			l->ranks[t][j] = swap;
		}
	}
}

struct load *load_new(void)
{
	struct load *l = calloc(1, sizeof(*l));

	if (!l)
		exit(1);
	l->seed = SEED;
	make_law(l);
	make_ranks(l);
	make_names(l);
	for (unsigned int i = 0; i < LOAD_SERVICES; i++)
		make_service(l, &l->services[i], i);
	return l;
}

void load_free(struct load *l)
{
	for (unsigned int i = 0; i < LOAD_SERVICES; i++)
		free(l->services[i].frames);
	free(l);
}

unsigned int load_processes(unsigned int service)
{
	return 1 + service % 3;
}

const char *load_service(unsigned int service)
{
	static char names[LOAD_SERVICES][16];

	(void)snprintf(names[service], sizeof(names[service]), "service-%02u", service);
	return names[service];
}

const char *load_type(unsigned int type)
{
	static char names[LOAD_TYPES][48];

	(void)snprintf(names[type], sizeof(names[type]), "bench:%s:%s", type_names[type][0],
		       type_names[type][1]);
	return names[type];
}

const char *load_function(const struct load *l, unsigned int function, const char **ret_file)
{
	*ret_file = l->files[function];
	return l->names[function];
}

unsigned int load_line(unsigned int function)
{
	return 1 + function % 2000;
}

uint32_t load_frames(const struct load *l, unsigned int service, uint32_t stack,
		     uint16_t frames[LOAD_DEPTH])
{
	const struct service *s = &l->services[service];
	uint32_t i = stack % LOAD_STACKS, version = stack / LOAD_STACKS;
	uint32_t n = s->offsets[i + 1] - s->offsets[i];

	memcpy(frames, s->frames + s->offsets[i], n * sizeof(*frames));
	frames[n / 2] = (uint16_t)((frames[n / 2] + version * 37) % LOAD_FUNCTIONS);
	return n;
}

/* Brings the versions of the service's stacks up to the deploy of that minute. */
static uint32_t deploy(struct load *l, unsigned int service, uint32_t minute)
{
	struct service *s = &l->services[service];
	uint32_t first = service * 397 % DEPLOY_MINUTES;
	uint32_t wanted = minute < first ? 0 : 1 + (minute - first) / DEPLOY_MINUTES;

	for (; s->deploy < wanted; s->deploy++)
		for (uint32_t i = 0; i < LOAD_STACKS; i++)
			s->versions[i] +=
				mix((uint64_t)service << 40 | (uint64_t)s->deploy << 20 | i) % 4 ==
				0;
	return wanted;
}

static uint32_t draw_rank(struct load *l)
{
	double u = draw_unit(l);
	uint32_t rank = l->guide[(unsigned int)(u * N_GUIDE)];

	while (l->cumulated[rank] < u)
		rank++;
	return rank;
}

/* The place of a stack in the collection, which it gets if it has none. */
static uint32_t place_of(struct load *l, const struct service *s, uint32_t i, uint32_t *n)
{
	if (l->places[i] == 0) {
		l->drawn[*n] = i;
		l->stacks[*n] = i + LOAD_STACKS * (uint32_t)s->versions[i];
		memset(l->values[*n], 0, sizeof(l->values[*n]));
		l->places[i] = ++*n;
	}
	return l->places[i] - 1;
}

/* Distinct stacks of one type, with values as that type has them. */
static void draw_type(struct load *l, const struct service *s, unsigned int type, int wanted,
		      uint32_t *n)
{
	while (wanted > 0) {
		uint32_t i = l->ranks[type][draw_rank(l)];
		uint64_t x = draw(l);
		int64_t v = type == 0	? 10000000
			    : type == 1 ? 10000000 * (1 + (int64_t)(x & 3))
			    : type == 2 ? (int64_t)s->sizes[i] * (1 + (int64_t)(x & 63))
					: 1000 + (int64_t)(x & 0xfffff);
		int64_t *value = &l->values[place_of(l, s, i, n)][type];

		wanted -= *value == 0;
		*value += v;
	}
}

void load_draw(struct load *l, unsigned int service, unsigned int process, uint32_t minute,
	       struct load_draw *ret)
{
	static const double shares[3][3] = {{1}, {.6, .4}, {.5, .3, .2}};
	const struct service *s = &l->services[service];
	unsigned int deployed = deploy(l, service, minute);
	uint32_t n = 0;

	*ret = (struct load_draw){
		.service = service,
		.process = process,
		.pid = 1000 + service * 977 + process * 131 + deployed * 17,
		.time_ns = LOAD_START_NS + (int64_t)minute * LOAD_MINUTE_NS,
		.stacks = l->stacks,
		.values = l->values,
	};
	l->seed = mix((uint64_t)minute << 16 | service << 8 | process);
	for (unsigned int t = 0; t < LOAD_TYPES; t++) {
		double all = MIN(MAX(s->base[t] * (0.7 + 0.6 * draw_unit(l)), 300.0), 2000.0);
		int wanted = (int)(all * shares[load_processes(service) - 1][process]);

		draw_type(l, s, t, wanted, &n);
		ret->samples += (uint64_t)wanted;
	}
	ret->n = n;
	for (uint32_t i = 0; i < n; i++)
		l->places[l->drawn[i]] = 0;
}

static void need(int r)
{
	if (r < 0) {
		(void)fprintf(stderr, "store_bench: cannot make a profile: %s\n", strerror(-r));
		exit(1);
	}
}

static uint32_t location_of(struct load *l, struct profile *p, uint32_t f)
{
	struct profile_function fn = {0};
	struct profile_line line = {.line = load_line(f)};

	if (l->known[f] == 0) {
		need(profile_add_string(p, l->views[f][0], &fn.name));
		need(profile_add_string(p, l->views[f][1], &fn.file));
		need(profile_add_function(p, &fn, &line.function));
		need(profile_add_location(p, f, PROFILE_NO_MAPPING, &line, 1, &l->known[f]));
		l->known[f]++;
	}
	return l->known[f] - 1;
}

struct profile *load_profile(struct load *l, const struct load_draw *d)
{
	struct profile *p = profile_new();
	uint32_t locations[LOAD_DEPTH], stack;
	uint16_t frames[LOAD_DEPTH];

	if (!p)
		exit(1);
	memset(l->known, 0, sizeof(l->known));
	for (unsigned int t = 0; t < LOAD_TYPES; t++)
		need(profile_add_type(p, type_names[t][0], type_names[t][1]));
	for (uint32_t i = 0; i < d->n; i++) {
		uint32_t n = load_frames(l, d->service, d->stacks[i], frames);

		for (uint32_t k = 0; k < n; k++)
			locations[k] = location_of(l, p, frames[n - 1 - k]);
		need(profile_add_stack(p, locations, n, &stack));
		need(profile_add_sample(p, stack, d->values[i], NULL, 0));
	}
	return p;
}
