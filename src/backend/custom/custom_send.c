/* One end of a task, told to its app once. */
#include "backend/custom/custom_delivery_private.h"
#include "backend/custom/custom_request.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/metrics.h"
#include "net/http_date.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_DOUBLINGS = 20, WHY_CHARS = 400 };

pthread_mutex_t *custom_order_begin(struct custom_deliveries *d, const struct app_delivery_row *row)
{
    pthread_mutex_t *order = &d->orders[hash_fast(slice_of(row->row_id)) % CUSTOM_ORDERS];

    pthread_mutex_lock(order);
    return order;
}

void custom_order_end(pthread_mutex_t *order)
{
    pthread_mutex_unlock(order);
}

void custom_report(struct custom_deliveries *d, const struct app_delivery_row *row, enum custom_delivery_state state,
                   const char *error)
{
    const struct backend_lease lease = custom_lease_of(row);
    const char *name = custom_delivery_state_name(state);
    char labels[64];

    snprintf(labels, sizeof(labels), "state=\"%s\"", name);
    metric_add(metric_counter("hearth_custom_deliveries_total",
                              "Ends of tasks of apps in Custom Mode, by what became of them", labels),
               1);
    if (error)
        log_write(state == CUSTOM_WAITING && row->n_tries > 1 ? LOG_DEBUG : LOG_WARN, "custom", NULL,
                  "end of %s in %s for app %s: %s: %s", LOG_Q(row->row_id), LOG_Q(row->table_name), LOG_Q(row->app_id),
                  name, LOG_Q(error));
    if (d->config.calls->on_change)
        d->config.calls->on_change(d->config.arg, &lease, state, error);
}

/* Stored first, told then. A person may have dropped the end meanwhile. */
static void finish(struct custom_deliveries *d, const struct app_delivery_row *row, enum custom_delivery_state state,
                   int64_t status, const char *error)
{
    const struct app_delivery_row end = {
        .id = row->id, .state = custom_delivery_state_name(state), .status = status, .error = error
    };
    pthread_mutex_t *order = custom_order_begin(d, row);
    struct err e = { 0 };
    int r = store_app_deliveries_finish(d->config.store, &end, &e);

    if (r == 0)
        custom_report(d, row, state, error);
    custom_order_end(order);
    if (r < 0 && r != -ENOENT)
        log_error("custom", NULL, "delivery %s cannot be recorded, so it will be sent again: %s", row->id,
                  LOG_Q(e.text));
}

void custom_end_lost(struct custom_deliveries *d, const struct app_delivery_row *row, const char *why)
{
    finish(d, row, CUSTOM_DROPPED, row->status, why);
}

/* ---- another try ---- */

static int64_t pause_ms(const struct custom_deliveries *d, int64_t n_tries)
{
    int64_t doublings = MIN(MAX(n_tries - 1, 0), MOST_DOUBLINGS);

    return MIN(d->config.pause_ms << doublings, LIMIT_DELIVERY_PAUSE_MS);
}

static void postpone(struct custom_deliveries *d, const struct app_delivery_row *row, int64_t status, int64_t wait_ms,
                     const char *error)
{
    const struct app_delivery_row next = {
        .id = row->id, .status = status, .error = error, .next_ms = clock_wall_ms() + wait_ms
    };
    pthread_mutex_t *order = custom_order_begin(d, row);
    struct err e = { 0 };
    int r = store_app_deliveries_postpone(d->config.store, &next, &e);

    if (r == 0)
        custom_report(d, row, CUSTOM_WAITING, error);
    custom_order_end(order);
    if (r < 0 && r != -ENOENT)
        log_error("custom", NULL, "delivery %s cannot be put off: %s", row->id, LOG_Q(e.text));
}

/* row->n_tries counts the try that has failed. */
static void try_later(struct custom_deliveries *d, const struct app_delivery_row *row, int64_t status, int64_t least_ms,
                      const char *error)
{
    if (status == 0 && custom_keeper_is_starting(d, row->app_id))
        postpone(d, row, status, LIMIT_DELIVERY_START_PAUSE_MS, error);
    else if (row->n_tries >= d->config.tries)
        finish(d, row, CUSTOM_DEAD, status, error);
    else
        postpone(d, row, status, MAX(pause_ms(d, row->n_tries), least_ms), error);
}

/* ---- the app's answer ---- */

static int64_t retry_after_of(const struct http_answer *answer)
{
    const char *text = http_answer_header(answer, "retry-after");
    int64_t at_ms = 0;

    if (!text)
        return 0;
    if (*text >= '0' && *text <= '9')
        at_ms = MIN(strtol(text, NULL, 10), LIMIT_DELIVERY_PAUSE_MS / 1000) * INT64_C(1000);
    else if (http_date_parse(text, &at_ms) == 0)
        at_ms -= clock_wall_ms();
    return MIN(MAX(at_ms, 0), LIMIT_DELIVERY_PAUSE_MS);
}

/* An answer that another try would get again. */
static bool is_final(int status)
{
    return status < 500 && status != 408 && status != 425 && status != 429;
}

/* The app has said that it accepted the end; its row must show it, or the work is done again. */
static void accepted(struct custom_deliveries *d, const struct app_delivery_row *row, int status)
{
    const struct backend_lease lease = custom_lease_of(row);
    bool is_held = d->config.calls->holds(d->config.arg, &lease, NULL) == CUSTOM_HELD;

    finish(
        d, row, CUSTOM_DELIVERED, status,
        is_held
            ? "The app accepted the end but left its row claimed: the work will be done again once the lease is stale."
            : NULL);
}

static void read_answer(struct custom_deliveries *d, const struct app_delivery_row *row,
                        const struct http_answer *answer, struct arena *a)
{
    const char *error;

    if (answer->status >= 200 && answer->status <= 299) {
        accepted(d, row, answer->status);
        return;
    }
    error = arena_printf(a, "The app answered /api/task-webhook with status %d: %.*s", answer->status,
                         (int)MIN(answer->body.n, (size_t)WHY_CHARS), answer->body.n ? answer->body.p : "");
    if (is_final(answer->status))
        finish(d, row, CUSTOM_DEAD, answer->status, error);
    else
        try_later(d, row, answer->status, retry_after_of(answer), error);
}

/* ---- the request ---- */

static int send_body(struct custom_deliveries *d, const struct custom_place *at, struct app_delivery_row *row,
                     struct arena *a)
{
    const struct custom_request request = { .path = "api/task-webhook",
                                            .event_id = row->id,
                                            .body = slice_of(row->body),
                                            .total_ms = d->config.net.webhook_ms };
    struct http_answer answer = { 0 };
    struct err why = { 0 };
    int r = store_app_deliveries_begin(d->config.store, row->id, &why);

    if (r < 0)
        return r == -ENOENT ? 0 : r;
    row->n_tries++;
    r = custom_request_send(&d->config.net, at, &request, a, &answer, &why);
    if (r == -ECANCELED)
        return r;
    if (r < 0) {
        try_later(d, row, 0, 0, why.text);
        return -EAGAIN;
    }
    read_answer(d, row, &answer, a);
    return 0;
}

/* Is it still our end to tell? 1, or 0 when it is over; negative: the database does not say. */
static int check_lease(struct custom_deliveries *d, const struct app_delivery_row *row)
{
    const struct backend_lease lease = custom_lease_of(row);
    struct err why = { 0 };
    int held = d->config.calls->holds(d->config.arg, &lease, &why);

    if (held == CUSTOM_HELD)
        return 1;
    if (held == CUSTOM_ENDED && row->n_tries > 0 && row->status == 0)
        finish(d, row, CUSTOM_DELIVERED, 0, NULL); /* the try without an answer did it */
    else if (held == CUSTOM_ENDED)
        custom_end_lost(d, row, "The row was completed or failed by somebody else.");
    else if (held == CUSTOM_LOST)
        custom_end_lost(d, row, "The lease was lost: the row waits again, another machine has it, or it is gone.");
    else
        postpone(d, row, row->status, pause_ms(d, row->n_tries + 1), why.text);
    return held < 0 ? held : 0;
}

int custom_send(struct custom_deliveries *d, const struct app_delivery_row *in, struct arena *a)
{
    struct app_delivery_row row = *in;
    struct custom_place place = { 0 };
    struct err why = { 0 };
    int r = check_lease(d, &row);

    if (r <= 0)
        return r < 0 ? -EAGAIN : 0;
    r = d->config.calls->place(d->config.arg, row.app_id, row.table_name, a, &place, &why);
    if (r == -ENOENT) {
        finish(d, &row, CUSTOM_DEAD, row.status, "The app is no longer registered.");
        return 0;
    }
    if (r < 0) {
        postpone(d, &row, row.status, pause_ms(d, row.n_tries + 1), why.text);
        return -EAGAIN;
    }
    place.app_id = row.app_id;
    return send_body(d, &place, &row, a);
}
