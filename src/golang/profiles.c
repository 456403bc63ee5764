/* src/golang/profiles.c: see profiles.h. */
#include "golang/profiles.h"

#include "golang/buckets/bucket.h"

int golang_profile_header(struct profile *p, const struct golang_profile_kind *kind, int64_t period,
			  int64_t time_ns)
{
	struct profile_header *h = profile_header(p);
	int r = 0;

	for (size_t i = 0; r == 0 && i < kind->n_types; i++)
		r = registry_type_add(p, kind->types[i]);
	h->time_ns = time_ns;
	h->period = period;
	if (r == 0)
		r = profile_add_string(p, view_str(kind->period[0]), &h->period_type.type);
	if (r == 0)
		r = profile_add_string(p, view_str(kind->period[1]), &h->period_type.unit);
	return r;
}

int golang_profile_names(struct golang_process *process, struct golang_stack_cache *names, size_t n,
			 golang_locate_fn locate, void *context, struct err *err)
{
	uint32_t locations[GOLANG_BUCKET_MAX_DEPTH + GOLANG_MAX_INLINE + 1];
	_cleanup_(golang_symbolizer_release) struct golang_symbolizer s = {0};
	_cleanup_(golang_stack_cache_import_release) struct golang_stack_cache_import in = {0};
	_cleanup_(profile_freep) struct profile *scratch = NULL;
	int r;

	if (names->n_stacks == n)
		return 0;
	scratch = profile_new();
	if (!scratch)
		return err_oom(err);
	golang_symbolizer_init(&s, process, scratch);
	r = golang_stack_cache_import_init(&in, names, scratch, n);
	/* Newest first, as in a profile: of functions with the same name, the first one wins. */
	for (size_t i = n; r == 0 && i-- > names->n_stacks;) {
		int found = locate(context, &s, i, locations, err);

		if (found < 0)
			return found;
		r = golang_stack_cache_import_stack(&in, i, locations, (size_t)found);
	}
	if (r < 0)
		return golang_symbolizer_error(r, err);
	golang_stack_cache_import_finish(&in);
	return 0;
}
