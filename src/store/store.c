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

int store_series_many(struct store *store, const struct store_window *window,
		      const struct store_series_request *requests, size_t n, struct err *err)
{
	int r = check_window(window->from_ns, window->to_ns, err);

	for (size_t i = 0; r == 0 && i < n; i++)
		if (requests[i].step_ns <= 0)
			r = err_set(err, -EINVAL, "the step of a series must be positive");
	return r < 0 ? r : store->ops->series(store, window, requests, n, err);
}

int store_series(struct store *store, const struct store_window *window, int64_t step_ns,
		 double *points, size_t n_points, struct err *err)
{
	const struct store_series_request one = {.service = window->service,
						 .type = window->type,
						 .step_ns = step_ns,
						 .points = points,
						 .n_points = n_points};

	return store_series_many(store, window, &one, 1, err);
}

int store_label_totals(struct store *store, const struct store_window *window, const char *key,
		       struct store_label_total **ret_totals, size_t *ret_len, struct err *err)
{
	int r = check_window(window->from_ns, window->to_ns, err);

	return r < 0 ? r : store->ops->label_totals(store, window, key, ret_totals, ret_len, err);
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

#define MINUTE_NS 60000000000LL

int store_overview(struct store *store, const struct store_overview_query *q,
		   struct store_overview *ret_overview, struct err *err)
{
	int r = check_window(q->from_ns, q->to_ns, err);

	if (r < 0)
		return r;
	if (q->step_ns <= 0 || q->from_ns < 0 || q->from_ns % MINUTE_NS || q->to_ns % MINUTE_NS ||
	    q->step_ns % MINUTE_NS)
		return err_set(err, -EINVAL, "an overview has steps of whole minutes");
	return store->ops->overview(store, q, ret_overview, err);
}

void store_overview_release(struct store_overview *overview)
{
	arena_release(&overview->memory);
	*overview = (struct store_overview){0};
}

void store_status(struct store *store, struct store_status *ret_status)
{
	store->ops->status(store, ret_status);
}
