/* src/store/store.c: dispatches each call to the kind of store. */
#include "store/store.h"

#include <errno.h>

#include "store/backend.h"

int store_write(struct store *store, const struct store_entry *entry, struct err *err)
{
	return store->ops->write(store, entry, err);
}

int store_write_metrics(struct store *store, const struct store_metrics *metrics, struct err *err)
{
	return store->ops->write_metrics(store, metrics, err);
}

int store_write_event(struct store *store, const struct store_event *event, struct err *err)
{
	return store->ops->write_event(store, event, err);
}

int store_commit(struct store *store, struct err *err)
{
	return store->ops->commit(store, err);
}

int store_maintain(struct store *store, int64_t now_ns, struct err *err)
{
	return store->ops->maintain(store, now_ns, err);
}

void store_close(struct store *store)
{
	if (store)
		store->ops->close(store);
}

static int check_window(int64_t from_ns, int64_t to_ns, struct err *err)
{
	if (from_ns > to_ns)
		return err_set(err, -EINVAL, "the window ends before it starts");
	return 0;
}

int store_sum(struct store *store, const struct store_window *window, struct store_sum *ret_sum,
	      struct err *err)
{
	int r = check_window(window->from_ns, window->to_ns, err);

	return r < 0 ? r : store->ops->sum(store, window, ret_sum, err);
}

int store_series(struct store *store, const struct store_window *window, int64_t step_ns,
		 double *points, size_t n_points, struct err *err)
{
	int r = check_window(window->from_ns, window->to_ns, err);

	if (r < 0)
		return r;
	if (step_ns <= 0)
		return err_set(err, -EINVAL, "the step of a series must be positive");
	return store->ops->series(store, window, step_ns, points, n_points, err);
}

int store_curve(struct store *store, const struct store_window *window,
		const struct store_function *function, const struct store_curve *curve,
		struct err *err)
{
	int r = check_window(window->from_ns, window->to_ns, err);

	if (r < 0)
		return r;
	if (curve->step_ns <= 0)
		return err_set(err, -EINVAL, "the step of a series must be positive");
	return store->ops->curve(store, window, function, curve, err);
}

int store_streams(struct store *store, int64_t from_ns, int64_t to_ns,
		  struct store_stream **ret_streams, size_t *ret_len, struct err *err)
{
	int r = check_window(from_ns, to_ns, err);

	return r < 0 ? r : store->ops->streams(store, from_ns, to_ns, ret_streams, ret_len, err);
}

int store_labelsets(struct store *store, const char *service, int64_t from_ns, int64_t to_ns,
		    struct store_labelset **ret_sets, size_t *ret_len, struct err *err)
{
	int r = check_window(from_ns, to_ns, err);

	return r < 0 ? r
		     : store->ops->labelsets(store, service, from_ns, to_ns, ret_sets, ret_len,
					     err);
}

int store_metrics(struct store *store, const struct store_metric_query *query,
		  struct store_metric_answer *ret_answer, struct err *err)
{
	int r = check_window(query->from_ns, query->to_ns, err);

	if (r < 0)
		return r;
	if (query->metric && query->step_ns <= 0)
		return err_set(err, -EINVAL, "the step of a series must be positive");
	return store->ops->metrics(store, query, ret_answer, err);
}

void store_metric_answer_release(struct store_metric_answer *answer)
{
	arena_release(&answer->memory);
	*answer = (struct store_metric_answer){0};
}

int store_events(struct store *store, const char *service, int64_t from_ns, int64_t to_ns,
		 struct store_events_answer *ret_answer, struct err *err)
{
	int r = check_window(from_ns, to_ns, err);

	return r < 0 ? r : store->ops->events(store, service, from_ns, to_ns, ret_answer, err);
}

void store_events_answer_release(struct store_events_answer *answer)
{
	arena_release(&answer->memory);
	*answer = (struct store_events_answer){0};
}

void store_status(struct store *store, struct store_status *ret_status)
{
	store->ops->status(store, ret_status);
}
