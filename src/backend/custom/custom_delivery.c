#include "backend/custom/custom_delivery_private.h"
#include "base/clock.h"
#include "base/cond.h"
#include "base/json_write.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/uuid.h"

#include <stdlib.h>
#include <string.h>

static const char *const state_names[] = { [CUSTOM_NONE] = "none",
                                           [CUSTOM_WAITING] = "waiting",
                                           [CUSTOM_DEAD] = "dead",
                                           [CUSTOM_DELIVERED] = "delivered",
                                           [CUSTOM_DROPPED] = "dropped" };

const char *custom_delivery_state_name(enum custom_delivery_state s)
{
    return state_names[s];
}

int custom_delivery_state_of(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(state_names); i++)
        if (strcmp(state_names[i], name) == 0)
            return (int)i;
    return -EINVAL;
}

/* ---- open and close ---- */

int custom_deliveries_open(const struct custom_deliveries_config *c, struct custom_deliveries **ret, struct err *e)
{
    struct custom_deliveries *d = xcalloc(1, sizeof(*d));

    d->config = *c;
    d->abbr = xstrdup(c->net.abbr);
    d->config.net.abbr = d->abbr;
    d->config.net.is_leaving = &d->is_stopping;
    pthread_mutex_init(&d->lock, NULL);
    cond_init(&d->changed);
    for (size_t i = 0; i < CUSTOM_ORDERS; i++)
        pthread_mutex_init(&d->orders[i], NULL);
    *ret = d;
    return 0;
}

int custom_deliveries_start(struct custom_deliveries *d, struct err *e)
{
    int64_t n_open = 0;
    int r;

    pthread_mutex_lock(&d->lock);
    d->is_started = true;
    pthread_mutex_unlock(&d->lock);
    r = store_app_deliveries_count(d->config.store, NULL, &n_open, e);
    return r < 0 || n_open == 0 ? r : custom_keeper_begin(d, e);
}

void custom_deliveries_leave(struct custom_deliveries *d)
{
    atomic_store(&d->is_stopping, true);
    custom_keeper_wake(d);
}

struct custom_deliveries *custom_deliveries_close(struct custom_deliveries *d)
{
    if (!d)
        return NULL;
    custom_deliveries_leave(d);
    custom_keeper_end(d);
    for (size_t i = 0; i < CUSTOM_ORDERS; i++)
        pthread_mutex_destroy(&d->orders[i]);
    pthread_cond_destroy(&d->changed);
    pthread_mutex_destroy(&d->lock);
    free(d->abbr);
    free(d);
    return NULL;
}

/* ---- the body ---- */

/* The interface wants an object; an agent may have given any JSON value. */
static int add_result(struct json_writer *w, const char *content, struct arena *a, struct err *e)
{
    struct json_value result = { 0 };
    int r = json_parse(a, slice_of(content), &result, e);

    if (r < 0)
        return r;
    if (json_type(result) == JSON_OBJECT) {
        json_add_value(w, "result", result);
        return 0;
    }
    json_begin_object_as(w, "result");
    json_add_value(w, "value", result);
    json_end(w);
    return 0;
}

static int write_body(const struct custom_end *in, struct buf *out, struct arena *a, struct err *e)
{
    struct json_writer w;
    int r = 0;

    json_write_init(&w, out);
    json_begin_object(&w);
    json_add_string(&w, "task_id", in->lease->row_id);
    json_add_string(&w, "action", in->is_fail ? "fail" : "complete");
    json_add_string(&w, "machine_id", in->lease->machine_id);
    json_begin_object_as(&w, "data");
    if (in->is_fail) {
        json_begin_object_as(&w, "error");
        json_add_string(&w, "message", in->content ? in->content : "");
        json_end(&w);
    } else {
        r = add_result(&w, in->content && *in->content ? in->content : "{}", a, e);
    }
    json_end(&w);
    json_end(&w);
    return r < 0 ? r : buf_check(out, e);
}

/* ---- one end ---- */

static int store_end(struct custom_deliveries *d, const struct custom_end *in, const char *body, struct err *e)
{
    char id[UUID_SIZE];
    const struct app_delivery_row row = {
        .id = id,
        .app_id = in->app_id,
        .table_name = in->lease->table,
        .row_id = in->lease->row_id,
        .machine_id = in->lease->machine_id,
        .attempt = in->lease->attempt,
        .action = in->is_fail ? "fail" : "complete",
        .body = body,
    };

    uuid_v4(id);
    return store_app_deliveries_put(d->config.store, &row, e);
}

int custom_delivery_put(struct custom_deliveries *d, const struct custom_end *in, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct err why = { 0 };
    struct buf body;
    int r;

    buf_init(&body, LIMIT_DELIVERY_BYTES);
    r = write_body(in, &body, a, e);
    if (r == 0)
        r = store_end(d, in, buf_str(&body), e);
    buf_clear(&body);
    if (r < 0)
        return r;
    if (custom_keeper_begin(d, &why) < 0) /* the end is stored, and told after the next start at the latest */
        log_error("custom", NULL, "%s", why.text);
    custom_keeper_wake(d);
    return 0;
}

int custom_delivery_find(struct custom_deliveries *d, const struct backend_lease *l, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct app_delivery_row which = {
        .table_name = l->table, .row_id = l->row_id, .machine_id = l->machine_id, .attempt = l->attempt
    };
    struct app_delivery_row row;
    struct err why = { 0 };
    int r = store_app_deliveries_get(d->config.store, a, &which, &row, &why);

    if (r == -ENOENT)
        return CUSTOM_NONE;
    return r < 0 ? err_set(e, r, why.code, "%s", why.text) : custom_delivery_state_of(row.state);
}

int custom_delivery_is_open(struct custom_deliveries *d, const char *table, const char *row_id, struct err *e)
{
    int64_t n = 0;
    int r = store_app_deliveries_count_of_row(d->config.store, table, row_id, &n, e);

    return r < 0 ? r : n > 0;
}

int custom_delivery_check_room(struct custom_deliveries *d, const char *app_id, struct err *e)
{
    int64_t n = 0;
    int r = store_app_deliveries_count(d->config.store, app_id, &n, e);

    if (r < 0 || n < LIMIT_APP_DELIVERIES)
        return r;
    return err_set(
        e, -EBUSY, "APP_BEHIND",
        "The app has not accepted %d ends of its tasks (`hearth backend deliveries`), so it gets no more tasks.",
        LIMIT_APP_DELIVERIES);
}

void custom_deliveries_hasten(struct custom_deliveries *d, const char *app_id)
{
    struct err e = { 0 };

    if (store_app_deliveries_hasten(d->config.store, app_id, &e) < 0)
        log_warn("custom", NULL, "deliveries cannot be hastened: %s", LOG_Q(e.text));
    custom_keeper_app_starts(d, app_id);
}

/* ---- for a person ---- */

static struct custom_delivery delivery_of(const struct app_delivery_row *row, struct arena *a)
{
    struct custom_delivery d = { .id = row->id,
                                 .app_id = row->app_id,
                                 .table = row->table_name,
                                 .row_id = row->row_id,
                                 .machine_id = row->machine_id,
                                 .action = row->action,
                                 .attempt = row->attempt,
                                 .n_tries = row->n_tries,
                                 .n_bytes = row->n_bytes,
                                 .state = (enum custom_delivery_state)MAX(custom_delivery_state_of(row->state), 0),
                                 .status = row->status,
                                 .error = row->error,
                                 .created_at = row->created_at,
                                 .updated_at = row->updated_at };
    char *text;

    if (d.state == CUSTOM_WAITING) {
        text = arena_alloc(a, TIME_TEXT_SIZE);
        clock_format(row->next_ms ? row->next_ms : clock_wall_ms(), text);
        d.next_at = text;
    }
    return d;
}

int custom_delivery_all(struct custom_deliveries *d, const char *app_id, enum custom_delivery_state state,
                        int64_t limit, struct arena *a, struct custom_delivery_list *ret, struct err *e)
{
    const struct app_deliveries_query q = {
        .app_id = app_id, .state = state ? custom_delivery_state_name(state) : NULL, .after_seq = -1, .limit = limit
    };
    struct app_delivery_row *rows = NULL;
    int r = store_app_deliveries_list(d->config.store, a, &q, &rows, &ret->n, e);

    if (r < 0)
        return r;
    ret->items = arena_array(a, ret->n, sizeof(*ret->items));
    for (size_t i = 0; i < ret->n; i++)
        ret->items[i] = delivery_of(&rows[i], a);
    return 0;
}

/* One that is still waiting or dead. */
static int find_open(struct custom_deliveries *d, const char *id, struct arena *a, struct app_delivery_row *ret,
                     struct err *e)
{
    struct err why = { 0 };
    int r = store_app_deliveries_get(d->config.store, a, &(struct app_delivery_row){ .id = id }, ret, &why);
    int state = r < 0 ? CUSTOM_NONE : custom_delivery_state_of(ret->state);

    if (r == -ENOENT)
        return err_set(e, r, "DELIVERY_NOT_FOUND", "There is no delivery with this id.");
    if (r < 0)
        return err_set(e, r, why.code, "%s", why.text);
    if (state != CUSTOM_WAITING && state != CUSTOM_DEAD)
        return err_set(e, -EBUSY, "DELIVERY_FINISHED", "The delivery is over: it was %s.", ret->state);
    return 0;
}

static int rearm(struct custom_deliveries *d, const struct app_delivery_row *row, struct err *e)
{
    pthread_mutex_t *order = custom_order_begin(d, row);
    int r = store_app_deliveries_rearm(d->config.store, row->id, e);

    if (r == 0)
        custom_report(d, row, CUSTOM_WAITING, NULL);
    custom_order_end(order);
    return r;
}

int custom_delivery_retry(struct custom_deliveries *d, const char *id, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct app_delivery_row row;
    int r = find_open(d, id, a, &row, e);

    if (r == 0)
        r = rearm(d, &row, e);
    if (r < 0)
        return r;
    custom_deliveries_hasten(d, row.app_id);
    return custom_keeper_begin(d, e);
}

static int drop(struct custom_deliveries *d, const struct app_delivery_row *row, struct err *e)
{
    static const char why[] = "A person dropped the end of the task.";
    pthread_mutex_t *order = custom_order_begin(d, row);
    int r = store_app_deliveries_drop(d->config.store, row->id, why, e);

    if (r == 0)
        custom_report(d, row, CUSTOM_DROPPED, why);
    custom_order_end(order);
    return r;
}

int custom_delivery_drop(struct custom_deliveries *d, const char *id, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct app_delivery_row row;
    struct backend_lease lease;
    struct err lost = { 0 };
    int r = find_open(d, id, a, &row, e);

    if (r == 0)
        r = drop(d, &row, e);
    if (r < 0)
        return r;
    lease = custom_lease_of(&row);
    if (d->config.calls->release(d->config.arg, &lease, &lost) < 0)
        log_info("custom", NULL, "the lease of %s in %s is left to the recovery: %s", LOG_Q(row.row_id),
                 LOG_Q(row.table_name), LOG_Q(lost.text));
    return 0;
}
