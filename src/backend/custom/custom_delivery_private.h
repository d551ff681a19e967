/* The deliveries' own parts, private to this folder. */
#pragma once

#include "backend/custom/custom_delivery.h"
#include "base/pool.h"
#include "store/tables/app_deliveries.h"

#include <pthread.h>

/* An app that is being told, or that could not be reached. */
struct custom_turn {
    struct custom_turn *next; /* owned */
    char *app_id;             /* owned */
    bool is_busy;             /* a job of the pool has it */
    int n_failures;           /* in a row, without an answer */
    int64_t not_before_ms;    /* clock_mono_ms() */
    int64_t starts_until_ms;  /* the same: the app has been started, and may not listen yet */
    struct custom_deliveries *d;
};

enum { CUSTOM_ORDERS = 16 };

struct custom_deliveries {
    struct custom_deliveries_config config;
    char *abbr; /* owned; config.net.abbr */
    atomic_bool is_stopping;
    struct pool *pool; /* owned; NULL: not started */
    pthread_t keeper;
    pthread_mutex_t lock; /* guards the members below */
    pthread_cond_t changed;
    bool is_started, has_keeper, is_woken;
    struct custom_turn *turns; /* owned; apps leave the list when nothing is known about them */
    /* By row: held from the store of a state until it has been reported, so that reports come in the same order. */
    pthread_mutex_t orders[CUSTOM_ORDERS];
};

/* custom_keeper.c: the thread that chooses whose turn it is and keeps leases alive. */
int custom_keeper_begin(struct custom_deliveries *d, struct err *e) MUST_CHECK; /* idempotent */
void custom_keeper_wake(struct custom_deliveries *d);
/* For LIMIT_DELIVERY_START_MS the app is tried every LIMIT_DELIVERY_START_PAUSE_MS, and no try without an answer is its
 * end's last one. */
void custom_keeper_app_starts(struct custom_deliveries *d, const char *app_id);
bool custom_keeper_is_starting(struct custom_deliveries *d, const char *app_id);
void custom_keeper_end(struct custom_deliveries *d);

/* custom_send.c: one end of a task. -EAGAIN: no answer, the app is left alone for a while; -ECANCELED; else 0. */
int custom_send(struct custom_deliveries *d, const struct app_delivery_row *row, struct arena *a) MUST_CHECK;
/* The end is over without the app: the lease was lost, or a person dropped it. */
void custom_end_lost(struct custom_deliveries *d, const struct app_delivery_row *row, const char *why);
/* Around a store of a state and its custom_report(). */
pthread_mutex_t *custom_order_begin(struct custom_deliveries *d, const struct app_delivery_row *row);
void custom_order_end(pthread_mutex_t *order);
/* Tells the receiver of changes, the log and the metrics. */
void custom_report(struct custom_deliveries *d, const struct app_delivery_row *row, enum custom_delivery_state state,
                   const char *error);
static inline struct backend_lease custom_lease_of(const struct app_delivery_row *row)
{
    return (struct backend_lease){
        .table = row->table_name, .row_id = row->row_id, .machine_id = row->machine_id, .attempt = row->attempt
    };
}
