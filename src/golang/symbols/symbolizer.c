/* src/golang/symbols/symbolizer.c: see symbolizer.h. */
#include "golang/symbols/symbolizer.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "golang/buckets/bucket.h"

#define SYMBOLIZER_MAX_PCS (GOLANG_BUCKET_MAX_DEPTH + GOLANG_MAX_INLINE)
/* Half a million addresses; their maps take about the same again. */
#define SYMBOLIZER_MEMORY ((size_t)32 << 20)
/* There are few leaves: the functions that allocate. */
#define SYMBOLIZER_MAX_HIDDEN ((size_t)1 << 18)
/*
 * Files opened for their build ids; the target controls them, and they may be as expensive as ELF
 * allows.
 */
#define SYMBOLIZER_MAX_FILES 256

/* One return address as shown by CallersFrames. */
struct golang_frame {
	uint64_t pc;	/* of the call */
	uint64_t entry; /* of the containing function, 0 outside Go */
	uint32_t name;	/* string ids */
	uint32_t file;
	int64_t line;
	int32_t start_line;
	bool inlined;
	bool is_goexit;
	bool unknown;
};

/* An emitted location: it represents n_pcs entries of the stack. */
struct golang_location {
	uint32_t id;
	uint32_t n_pcs;
};

/* Entries that may form one location: calls inlined into the same function. */
struct deck {
	uint64_t pcs[SYMBOLIZER_MAX_PCS];
	const struct golang_frame *frames[SYMBOLIZER_MAX_PCS];
	size_t len;
};

void golang_symbolizer_init(struct golang_symbolizer *s, struct golang_process *process,
			    struct profile *profile)
{
	*s = (struct golang_symbolizer){
		.process = process,
		.profile = profile,
		.cgo = {.mem = process->mem},
		.arena = {.max = SYMBOLIZER_MEMORY},
	};
	golang_mem_cache_refill(&process->cache);
}

void golang_symbolizer_release(struct golang_symbolizer *s)
{
	/* Tables are not needed before the next profile; until then they only take memory. */
	if (s->process)
		golang_mem_cache_release(&s->process->cache);
	golang_cgo_release(&s->cgo);
	arena_release(&s->arena);
	map_release(&s->frames);
	map_release(&s->locations);
	map_release(&s->functions);
	map_release(&s->hidden);
}

/* The build id of the file behind a mapping, as a string of the profile; 0 if none. */
static uint32_t build_id_of(struct golang_symbolizer *s, const struct proc_map *map)
{
	struct golang_image image = {0};
	char build_id[128];
	uint32_t id = 0;

	if (map->path[0] != '/' || golang_image_of_map(s->process->mem, map, &image, NULL) < 0)
		return 0;
	if (elf_image_build_id(image.elf, build_id, sizeof(build_id)) &&
	    profile_add_string(s->profile, view_str(build_id), &id) < 0)
		id = 0;
	golang_image_release(&image);
	return id;
}

int golang_symbolizer_mappings(struct golang_symbolizer *s, struct err *err)
{
	const struct proc_maps *maps;
	size_t files = 0;
	/* Libraries and plugins may have been loaded since the process was opened. */
	int r = proc_mem_refresh_maps(s->process->mem, err);

	if (r < 0)
		return r;
	maps = proc_mem_maps(s->process->mem);
	for (size_t i = 0; i < maps->len; i++) {
		const struct proc_map *map = &maps->maps[i];
		struct profile_mapping mapping = {
			.start = map->start, .end = map->end, .offset = map->offset};
		uint32_t id;

		/* Unnamed executable memory belongs to no file; runtime/pprof omits it as well. */
		if (!(map->flags & PROC_MAP_EXEC) || map->path[0] == 0)
			continue;
		if (profile_add_string(s->profile, view_str(map->path), &mapping.file) < 0)
			return err_oom(err);
		if (files++ < SYMBOLIZER_MAX_FILES)
			mapping.build_id = build_id_of(s, map);
		if (profile_add_mapping(s->profile, &mapping, &id) < 0)
			return err_oom(err);
	}
	return 0;
}

/* The function at pc; also finds plugins opened since the last refresh. */
static bool func_at(struct golang_symbolizer *s, uint64_t pc, struct golang_pclntab **ret_tables,
		    struct golang_func *ret_func)
{
	if (golang_process_func_at(s->process, pc, ret_tables, ret_func))
		return true;
	if (s->refreshed)
		return false;
	s->refreshed = true;
	/* New libraries, too: cgo.c needs their names. */
	(void)proc_mem_refresh_maps(s->process->mem, NULL);
	return golang_process_refresh(s->process, NULL) > 0 &&
	       golang_process_func_at(s->process, pc, ret_tables, ret_func);
}

/* Name and start line of the innermost function at pc; true if it is inlined. */
static bool innermost(struct golang_pclntab *t, const struct golang_func *f, uint64_t pc,
		      uint32_t *ret_name, int32_t *ret_start_line)
{
	struct golang_inlined in;
	int64_t index = golang_pclntab_inline_at(t, f, pc);

	if (index >= 0 && golang_pclntab_inlined(t, f, index, &in)) {
		*ret_name = in.name;
		*ret_start_line = in.start_line;
		return true;
	}
	*ret_name = f->name;
	*ret_start_line = f->start_line;
	return false;
}

static int frame_native(struct golang_symbolizer *s, uint64_t pc, struct golang_frame *frame)
{
	struct view name = golang_cgo_name(&s->cgo, pc - 1);

	frame->pc = pc - 1;
	frame->unknown = name.len == 0;
	s->unknown += frame->unknown;
	return profile_add_string(s->profile, name, &frame->name);
}

static int frame_go(struct golang_symbolizer *s, struct golang_pclntab *t,
		    const struct golang_func *f, uint64_t pc, struct golang_frame *frame)
{
	struct view text;
	uint32_t name;
	int r;

	frame->pc = pc > f->entry ? pc - 1 : pc;
	frame->entry = f->entry;
	frame->inlined = innermost(t, f, frame->pc, &name, &frame->start_line);
	text = golang_pclntab_name(t, name);
	frame->is_goexit = view_eq(text, view_str("runtime.goexit"));
	r = profile_add_string(s->profile, text, &frame->name);
	if (r < 0)
		return r;
	text = golang_pclntab_file_line(t, f, frame->pc, &frame->line);
	return profile_add_string(s->profile, text, &frame->file);
}

static int frame_for(struct golang_symbolizer *s, uint64_t pc,
		     const struct golang_frame **ret_frame)
{
	struct golang_frame *frame;
	struct golang_pclntab *t;
	struct golang_func f;
	uint64_t value;
	int r;

	if (map_get(&s->frames, pc, &value)) {
		*ret_frame = (const struct golang_frame *)(uintptr_t)value;
		return 0;
	}
	frame = arena_alloc(&s->arena, sizeof(*frame));
	if (!frame)
		return -E2BIG;
	r = func_at(s, pc, &t, &f) ? frame_go(s, t, &f, pc, frame) : frame_native(s, pc, frame);
	if (r == 0)
		r = map_put(&s->frames, pc, (uint64_t)(uintptr_t)frame);
	if (r < 0)
		return r;
	*ret_frame = frame;
	return 0;
}

/* Does runtime/pprof hide this entry at the top of a stack? */
static bool is_hidden(struct golang_symbolizer *s, uint64_t pc)
{
	struct golang_pclntab *t;
	struct golang_func f;
	int32_t start_line;
	struct view text;
	uint32_t name;

	/* It passes the return address itself to FuncForPC, not the call. */
	if (!func_at(s, pc, &t, &f))
		return false;
	(void)innermost(t, &f, pc, &name, &start_line);
	text = golang_pclntab_name(t, name);
	return view_starts_with(text, "runtime.") || (s->process->layout->hides_internal_runtime &&
						      view_starts_with(text, "internal/runtime/"));
}

size_t golang_symbolizer_hidden(struct golang_symbolizer *s, const uint64_t *pcs, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t hidden;

		if (!map_get(&s->hidden, pcs[i], &hidden)) {
			hidden = is_hidden(s, pcs[i]);
			/* Only a cache: if out of memory, compute it again. */
			if (s->hidden.len < SYMBOLIZER_MAX_HIDDEN)
				(void)map_put(&s->hidden, pcs[i], hidden);
		}
		if (!hidden)
			return i;
	}
	return 0;
}

/* The depth limit may have separated an inlined call from its callers: adds them back. */
static size_t expand_last(struct golang_symbolizer *s, uint64_t *pcs, size_t n)
{
	const struct golang_layout *l = s->process->layout;
	struct golang_pclntab *t;
	struct golang_func f;
	struct golang_inlined in;
	uint64_t pc;
	int64_t index;
	uint8_t callee = 0;

	if (n == 0)
		return 0;
	pc = pcs[n - 1] - 1;
	if (!func_at(s, pc, &t, &f) || golang_pclntab_inline_at(t, &f, pc) < 0)
		return n;
	n--;
	for (size_t steps = 0; steps < GOLANG_MAX_INLINE; steps++) {
		uint8_t id = f.func_id;

		index = golang_pclntab_inline_at(t, &f, pc);
		if (index >= 0 && golang_pclntab_inlined(t, &f, index, &in))
			id = in.func_id;
		else
			index = -1;
		if (!golang_layout_elides(l, id, callee))
			pcs[n++] = pc + 1;
		if (index < 0 || n == SYMBOLIZER_MAX_PCS)
			break;
		callee = id;
		pc = f.entry + (uint64_t)(int64_t)in.parent_pc;
	}
	return n;
}

static bool deck_add(struct deck *d, uint64_t pc, const struct golang_frame *frame)
{
	const struct golang_frame *last = d->len ? d->frames[d->len - 1] : NULL;

	/* Join only calls inlined into the same function; the same name twice is recursion. */
	if (last && (!last->inlined || !last->entry || !frame->entry ||
		     last->entry != frame->entry || last->name == frame->name))
		return false;
	d->pcs[d->len] = pc;
	d->frames[d->len++] = frame;
	return true;
}

/* runtime/pprof has one function per name, with the file and start line seen first. */
static int function_for(struct golang_symbolizer *s, const struct golang_frame *frame,
			uint32_t *ret_id)
{
	const struct profile_function f = {
		.name = frame->name,
		.system_name = frame->name,
		.file = frame->file,
		.start_line = frame->start_line,
	};
	uint64_t id;
	int r;

	if (map_get(&s->functions, frame->name, &id)) {
		*ret_id = (uint32_t)id;
		return 0;
	}
	r = profile_add_function(s->profile, &f, ret_id);
	return r < 0 ? r : map_put(&s->functions, frame->name, *ret_id);
}

/* Mappings were added in address order. */
static uint32_t mapping_for(const struct profile *p, uint64_t pc)
{
	size_t lo = 0, hi = profile_n_mappings(p);

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		const struct profile_mapping *m = profile_mapping_at(p, mid);

		if (pc >= m->start && pc < m->end)
			return (uint32_t)mid;
		if (pc < m->start)
			hi = mid;
		else
			lo = mid + 1;
	}
	return PROFILE_NO_MAPPING;
}

/* Turns the deck into a location, and empties it. Returns 1 if there was one. */
static int deck_emit(struct golang_symbolizer *s, struct deck *d, uint32_t *ret_id)
{
	struct profile_line lines[SYMBOLIZER_MAX_PCS];
	struct golang_location *location;
	uint32_t n_lines = 0;
	int r;

	if (d->len == 0)
		return 0;
	for (size_t i = 0; i < d->len; i++) {
		if (d->frames[i]->unknown)
			continue;
		lines[n_lines] = (struct profile_line){.line = d->frames[i]->line};
		r = function_for(s, d->frames[i], &lines[n_lines].function);
		if (r < 0)
			return r;
		n_lines++;
	}
	location = arena_alloc(&s->arena, sizeof(*location));
	if (!location)
		return -E2BIG;
	r = profile_add_location(s->profile, d->frames[0]->pc, mapping_for(s->profile, d->pcs[0]),
				 lines, n_lines, &location->id);
	if (r == 0)
		r = map_put(&s->locations, d->pcs[0], (uint64_t)(uintptr_t)location);
	if (r < 0)
		return r;
	location->n_pcs = (uint32_t)d->len;
	d->len = 0;
	*ret_id = location->id;
	return 1;
}

/* The location emitted earlier for a stack entry, or NULL. */
static const struct golang_location *location_for(const struct golang_symbolizer *s, uint64_t pc)
{
	uint64_t value;

	if (!map_get(&s->locations, pc, &value))
		return NULL;
	return (const struct golang_location *)(uintptr_t)value;
}

/*
 * Handles the entry pcs[*i] and advances *i. A known location covers the entries it was made from;
 * others collect in the deck until one does not belong.
 */
static int stack_step(struct golang_symbolizer *s, struct deck *d, const uint64_t *pcs, size_t *i,
		      uint32_t *locations, int *n)
{
	const struct golang_location *known = location_for(s, pcs[*i]);
	const struct golang_frame *frame;
	int r = frame_for(s, pcs[*i], &frame);

	if (r < 0)
		return r;
	if (!frame->is_goexit && (!known || d->len) && deck_add(d, pcs[*i], frame)) {
		(*i)++;
		return 0;
	}
	r = deck_emit(s, d, &locations[*n]);
	if (r < 0)
		return r;
	*n += r;
	if (frame->is_goexit) {
		(*i)++;
		return 0;
	}
	/* The location just emitted may be this entry's. */
	known = location_for(s, pcs[*i]);
	if (known) {
		locations[(*n)++] = known->id;
		*i += known->n_pcs;
		return 0;
	}
	(void)deck_add(d, pcs[(*i)++], frame);
	return 0;
}

int golang_symbolizer_error(int code, struct err *err)
{
	return err_set(err, code, "cannot build the profile: %s",
		       code == -E2BIG ? "it is too large" : strerror(-code));
}

int golang_symbolizer_stack(struct golang_symbolizer *s, const uint64_t *pcs, size_t n,
			    uint32_t *locations, struct err *err)
{
	uint64_t stack[SYMBOLIZER_MAX_PCS];
	struct deck d;
	int n_locations = 0;
	int r = 0;

	if (n > GOLANG_BUCKET_MAX_DEPTH)
		return err_set(err, -EBADMSG, "a stack of %zu frames", n);
	d.len = 0;
	if (n)
		memcpy(stack, pcs, n * sizeof(*pcs));
	n = expand_last(s, stack, n);
	for (size_t i = 0; i < n && r >= 0;)
		r = stack_step(s, &d, stack, &i, locations, &n_locations);
	if (r >= 0)
		r = deck_emit(s, &d, &locations[n_locations]);
	/* Answers past that point cannot be trusted. */
	if (r >= 0 && golang_mem_cache_spent(&s->process->cache))
		return err_set(err, -E2BIG,
			       "Go's tables need more work to read than any real program's: they "
			       "are damaged or forged");
	return r < 0 ? golang_symbolizer_error(r, err) : n_locations + r;
}

/* Properties of the addresses in a mapping. */
enum {
	MAPPING_USED = 1,
	MAPPING_LACKS_FUNCTIONS = 2,
	MAPPING_LACKS_LINES = 4,
};

static uint8_t location_marks(const struct profile_location *l)
{
	uint8_t marks = MAPPING_USED;

	if (l->n_lines == 0)
		marks |= MAPPING_LACKS_FUNCTIONS;
	for (uint32_t i = 0; i < l->n_lines; i++)
		if (l->lines[i].line == 0)
			marks |= MAPPING_LACKS_LINES;
	return marks;
}

int golang_symbolizer_finish(struct golang_symbolizer *s, struct err *err)
{
	struct profile *p = s->profile;
	uint32_t n = (uint32_t)profile_n_mappings(p);
	_cleanup_free_ uint8_t *marks = calloc((size_t)n + 1, sizeof(*marks));

	if (!marks)
		return err_oom(err);
	for (size_t i = 0; i < profile_n_locations(p); i++) {
		const struct profile_location *l = profile_location_at(p, i);

		if (l->mapping < n)
			marks[l->mapping] |= location_marks(l);
	}
	for (uint32_t i = 0; i < n; i++) {
		struct profile_mapping m = *profile_mapping_at(p, i);

		m.has_functions =
			(marks[i] & (MAPPING_USED | MAPPING_LACKS_FUNCTIONS)) == MAPPING_USED;
		m.has_filenames = m.has_line_numbers = m.has_inline_frames =
			marks[i] == MAPPING_USED;
		profile_set_mapping(p, i, &m);
	}
	return 0;
}
