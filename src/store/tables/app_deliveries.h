/* Ends of tasks that apps in Custom Mode are told (table app_deliveries; backend/custom/custom_delivery.h). One for
 * each lease. Any thread; texts live in the arena.
 *
 * A waiting or dead end has its body; delivered and dropped ones are kept without it until store_app_deliveries_trim().
 */
#pragma once

#include "store/store.h"

struct app_delivery_row {
    int64_t seq;    /* in the order of their making */
    const char *id; /* UUID */
    const char *app_id, *table_name, *row_id, *machine_id;
    int64_t attempt;
    const char *action; /* complete, fail */
    const char *body;   /* only for store_app_deliveries_put() and from store_app_deliveries_next() */
    int64_t n_bytes;    /* of the body, as it was */
    const char *state;  /* waiting, dead, delivered, dropped */
    int64_t n_tries, status /* HTTP, of the last answer; 0: none */;
    const char *error; /* of the last try; NULL: none */
    int64_t next_ms;   /* clock_wall_ms() of the next try; 0: now */
    const char *created_at, *updated_at;
};

/* Reads app_id to body, without seq; the lease's end that is there already stays as it is. */
int store_app_deliveries_put(struct store *s, const struct app_delivery_row *row, struct err *e) MUST_CHECK;
/* By id, or, id NULL, by table_name, row_id, machine_id and attempt. -ENOENT DELIVERY_NOT_FOUND. */
int store_app_deliveries_get(struct store *s, struct arena *a, const struct app_delivery_row *which,
                             struct app_delivery_row *ret, struct err *e) MUST_CHECK;
/* How many ends of this app (NULL: any app), or of this row of a table, wait or are dead. */
int store_app_deliveries_count(struct store *s, const char *app_id, int64_t *ret, struct err *e) MUST_CHECK;
int store_app_deliveries_count_of_row(struct store *s, const char *table_name, const char *row_id, int64_t *ret,
                                      struct err *e) MUST_CHECK;

struct app_deliveries_query {
    const char *app_id; /* NULL: of all */
    const char *state;  /* NULL: waiting and dead */
    int64_t after_seq;  /* only later ones, the earliest first; -1: the newest first */
    int64_t limit;      /* as rows_limit() */
};
int store_app_deliveries_list(struct store *s, struct arena *a, const struct app_deliveries_query *q,
                              struct app_delivery_row **ret, size_t *ret_n, struct err *e) MUST_CHECK;
/* Every app with a waiting end, with the time of its earliest: app_id and next_ms of each row. */
int store_app_deliveries_apps(struct store *s, struct arena *a, struct app_delivery_row **ret, size_t *ret_n,
                              struct err *e) MUST_CHECK;
/* The app's earliest waiting end that is due at now_ms, with its body. A time more than LIMIT_DELIVERY_PAUSE_MS ahead
 * was written before the clock was set back, and is due. -ENOENT: none. */
int store_app_deliveries_next(struct store *s, struct arena *a, const char *app_id, int64_t now_ms,
                              struct app_delivery_row *ret, struct err *e) MUST_CHECK;

/* The next three change a waiting end: -ENOENT DELIVERY_NOT_FOUND when it waits no longer. */
/* Counts a try that now begins; its answer is not known. */
int store_app_deliveries_begin(struct store *s, const char *id, struct err *e) MUST_CHECK;
/* Another try at row->next_ms. Reads id, status, error and next_ms. */
int store_app_deliveries_postpone(struct store *s, const struct app_delivery_row *row, struct err *e) MUST_CHECK;
/* Reads id, state, status and error. */
int store_app_deliveries_finish(struct store *s, const struct app_delivery_row *row, struct err *e) MUST_CHECK;

/* Of a waiting or dead end; -ENOENT when it is neither. */
int store_app_deliveries_rearm(struct store *s, const char *id, struct err *e) MUST_CHECK;
int store_app_deliveries_drop(struct store *s, const char *id, const char *error, struct err *e) MUST_CHECK;
/* All waiting ends of the app are due now. */
int store_app_deliveries_hasten(struct store *s, const char *app_id, struct err *e) MUST_CHECK;
/* Removes the delivered and dropped ends that were last changed before this time. */
int store_app_deliveries_trim(struct store *s, int64_t before_ms, struct err *e) MUST_CHECK;
