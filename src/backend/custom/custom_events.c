/* The inner backend's events, with rows of Custom Mode as tasks know them. Each subscriber has a wrapper of its own, so
 * that whoever wants the tables as they are subscribes to the inner backend. */
#include "backend/custom/custom_private.h"

#include "base/log.h"

#include <stdlib.h>

struct custom_subscriber {
    struct custom_subscriber *next;
    struct custom *custom;
    backend_event_fn *fn;
    backend_gap_fn *on_gap;
    void *arg;
};

static void pass_gap(void *arg)
{
    struct custom_subscriber *s = arg;

    if (s->on_gap)
        s->on_gap(s->arg);
}

/* ---- one change ---- */

struct change {
    struct json_value new_record, old_record;
    struct backend_row new_row, old_row;
};

static bool read_row(const struct custom_view *v, const struct backend_row *in, struct arena *a,
                     struct json_value *ret_record, struct backend_row *ret)
{
    return in && in->raw_data && json_parse(a, slice_of(in->raw_data), ret_record, NULL) == 0 &&
           custom_record_read(v, *ret_record, a, ret);
}

/* A row begins to wait because somebody gave it back: that is no new work. */
static bool is_given_back(const struct change *x)
{
    return status_is_leased(x->old_row.status) || status_is_claimable(x->old_row.status);
}

/* Work is a row that waits and whose data is new, or that was made to wait from a status of the app's own. Whoever
 * looks into any other change reads the row, which says what this service knows beside the table. */
static bool is_work(const struct backend_event *event, const struct change *x)
{
    if (strcmp(x->new_row.status, STATUS_PENDING) != 0)
        return false;
    return event->op == BACKEND_INSERT || !is_given_back(x) ||
           !custom_record_is_same_data(x->new_record, x->old_record);
}

static void report(struct custom_subscriber *s, const struct backend_event *event, struct change *x)
{
    struct backend_event mapped = *event;

    mapped.work = NULL;
    mapped.new_row = event->new_row ? &x->new_row : NULL;
    mapped.old_row = event->old_row ? &x->old_row : NULL;
    mapped.is_lease_only = event->new_row && !is_work(event, x);
    if (event->op == BACKEND_UPDATE) {
        x->new_row.event = BACKEND_UPDATE;
        x->new_row.old_data = x->old_row.raw_data;
    } else if (event->op == BACKEND_INSERT) {
        x->new_row.event = BACKEND_INSERT;
    }
    if (event->new_row)
        x->new_row.attempted_by = x->new_row.attempted_by ? x->new_row.attempted_by : "[]";
    s->fn(s->arg, &mapped);
}

/* Changes whose records cannot be read are looked for by the sweep. */
static void map(struct custom_subscriber *s, const struct custom_view *v, const struct backend_event *event,
                struct arena *a)
{
    struct change x = { 0 };
    bool has_new = !event->new_row || read_row(v, event->new_row, a, &x.new_record, &x.new_row);
    bool has_old = !event->old_row || read_row(v, event->old_row, a, &x.old_record, &x.old_row);

    if (!has_new || !has_old) {
        log_debug("backend", NULL, "a change of table %s cannot be read", LOG_Q(v->table));
        pass_gap(s);
        return;
    }
    if (event->op == BACKEND_UPDATE && event->old_row && custom_record_is_beat(x.new_record, x.old_record))
        return;
    report(s, event, &x);
}

/* The facts are read by a worker: a change that comes before is found by its sweep. */
static void pass_event(void *arg, const struct backend_event *event)
{
    struct custom_subscriber *s = arg;
    AUTO(arena_freep) struct arena *a = arena_new();
    struct custom_view view;
    bool has_facts;

    if (!custom_tables_find(s->custom->tables, event->table, a, &view, &has_facts))
        s->fn(s->arg, event);
    else if (has_facts)
        map(s, &view, event, a);
    else
        pass_gap(s);
}

/* ---- subscribers ---- */

int custom_subscribe(struct backend *b, backend_event_fn *fn, backend_gap_fn *on_gap, void *arg, struct err *e)
{
    struct custom *c = custom_of(b);
    struct custom_subscriber *s = xcalloc(1, sizeof(*s));
    int r;

    *s = (struct custom_subscriber){ .custom = c, .fn = fn, .on_gap = on_gap, .arg = arg };
    r = c->config.inner->ops->subscribe(c->config.inner, pass_event, pass_gap, s, e);
    if (r < 0) {
        free(s);
        return r;
    }
    pthread_mutex_lock(&c->lock);
    s->next = c->subscribers;
    c->subscribers = s;
    pthread_mutex_unlock(&c->lock);
    return 0;
}

static struct custom_subscriber *take(struct custom *c, void *arg)
{
    struct custom_subscriber **at = &c->subscribers, *s;

    pthread_mutex_lock(&c->lock);
    while (*at && (*at)->arg != arg)
        at = &(*at)->next;
    s = *at;
    if (s)
        *at = s->next;
    pthread_mutex_unlock(&c->lock);
    return s;
}

void custom_unsubscribe(struct backend *b, void *arg)
{
    struct custom *c = custom_of(b);
    struct custom_subscriber *s = take(c, arg);

    if (!s)
        return;
    c->config.inner->ops->unsubscribe(c->config.inner, s);
    free(s);
}
