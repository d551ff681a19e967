#include "backend/receivers.h"

#include "base/clock.h"
#include "base/limits.h"

#include <pthread.h>

/* A callback. arg NULL: the receiver has left; it is freed when no callback is running. */
struct receiver {
    backend_event_fn *on_event;
    backend_gap_fn *on_gap;
    backend_broadcast_fn *on_broadcast;
    char *channel; /* owned; of listeners */
    void *arg;
    struct receiver *next;
};

/* What has been reported of a table. */
struct followed {
    char *table; /* owned */
    int64_t n_events, event_wall_ms, lag_ms;
};

enum { FAULT_SIZE = 400 };

struct receivers {
    pthread_mutex_t lock; /* guards the members below; recursive, because a callback may add and remove receivers */
    unsigned depth;       /* of receivers_begin() */
    struct receiver *subscribers, *listeners; /* owned */

    pthread_mutex_t facts_lock; /* guards the members below, for a moment only */
    char fault[FAULT_SIZE];     /* "": none */
    int64_t fault_wall_ms;
    struct followed *followed;        /* owned; LIMIT_LIST */
    size_t n_followed, last_followed; /* the index of the table of the last event */
    int64_t n_gaps;
};

/* --- lists, under the lock --- */

static struct receiver *find_receiver(struct receiver *list, const void *arg)
{
    for (; list; list = list->next)
        if (list->arg == arg)
            return list;
    return NULL;
}

static void add_receiver(struct receiver **list, const struct receiver *in)
{
    struct receiver *added = xcalloc(1, sizeof(*added));

    *added = *in;
    added->next = NULL;
    while (*list)
        list = &(*list)->next;
    *list = added;
}

static void drop_left(struct receiver **list)
{
    struct receiver *left;

    while ((left = *list)) {
        if (left->arg) {
            list = &left->next;
            continue;
        }
        *list = left->next;
        free(left->channel);
        free(left);
    }
}

static void leave(struct receiver *list, const void *arg)
{
    for (; arg && list; list = list->next)
        if (list->arg == arg)
            list->arg = NULL;
}

/* --- open and close --- */

struct receivers *receivers_new(void)
{
    struct receivers *rs = xcalloc(1, sizeof(*rs));
    pthread_mutexattr_t recursive;

    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&rs->lock, &recursive);
    pthread_mutexattr_destroy(&recursive);
    pthread_mutex_init(&rs->facts_lock, NULL);
    return rs;
}

static void drop_all(struct receiver **list)
{
    for (struct receiver *to = *list; to; to = to->next)
        to->arg = NULL;
    drop_left(list);
}

struct receivers *receivers_free(struct receivers *rs)
{
    if (!rs)
        return NULL;
    drop_all(&rs->subscribers);
    drop_all(&rs->listeners);
    for (size_t i = 0; i < rs->n_followed; i++)
        free(rs->followed[i].table);
    free(rs->followed);
    pthread_mutex_destroy(&rs->facts_lock);
    pthread_mutex_destroy(&rs->lock);
    free(rs);
    return NULL;
}

/* --- delivery --- */

void receivers_begin(struct receivers *rs)
{
    pthread_mutex_lock(&rs->lock);
    if (rs->depth++ > 0)
        return; /* a callback may be running */
    drop_left(&rs->subscribers);
    drop_left(&rs->listeners);
}

void receivers_end(struct receivers *rs)
{
    rs->depth--;
    pthread_mutex_unlock(&rs->lock);
}

bool receivers_has_subscriber(const struct receivers *rs)
{
    for (const struct receiver *to = rs->subscribers; to; to = to->next)
        if (to->arg)
            return true;
    return false;
}

static struct followed *followed_of(struct receivers *rs, const char *table)
{
    if (rs->last_followed < rs->n_followed && strcmp(rs->followed[rs->last_followed].table, table) == 0)
        return &rs->followed[rs->last_followed];
    for (size_t i = 0; i < rs->n_followed; i++)
        if (strcmp(rs->followed[i].table, table) == 0) {
            rs->last_followed = i;
            return &rs->followed[i];
        }
    if (!rs->followed)
        rs->followed = xcalloc(LIMIT_LIST, sizeof(*rs->followed));
    if (rs->n_followed == LIMIT_LIST)
        return NULL;
    rs->last_followed = rs->n_followed++;
    rs->followed[rs->last_followed] = (struct followed){ .table = xstrdup(table), .lag_ms = -1 };
    return &rs->followed[rs->last_followed];
}

static void count_event(struct receivers *rs, const struct backend_event *event)
{
    struct followed *f = followed_of(rs, event->table);
    int64_t created_ms;

    if (!f)
        return;
    f->n_events++;
    f->event_wall_ms = clock_wall_ms();
    if (event->op == BACKEND_INSERT && event->new_row && event->new_row->created_at &&
        clock_parse(slice_of(event->new_row->created_at), &created_ms) == 0)
        f->lag_ms = MAX(f->event_wall_ms - created_ms, (int64_t)0);
}

void receivers_event(struct receivers *rs, const struct backend_event *event)
{
    pthread_mutex_lock(&rs->facts_lock);
    count_event(rs, event);
    pthread_mutex_unlock(&rs->facts_lock);
    for (struct receiver *to = rs->subscribers; to; to = to->next)
        if (to->arg)
            to->on_event(to->arg, event);
}

void receivers_gap(struct receivers *rs)
{
    pthread_mutex_lock(&rs->facts_lock);
    rs->n_gaps++;
    pthread_mutex_unlock(&rs->facts_lock);
    for (struct receiver *to = rs->subscribers; to; to = to->next)
        if (to->arg && to->on_gap)
            to->on_gap(to->arg);
}

void receivers_broadcast(struct receivers *rs, const char *channel, const char *event, const char *payload_json)
{
    for (struct receiver *to = rs->listeners; to; to = to->next)
        if (to->arg && strcmp(to->channel, channel) == 0)
            to->on_broadcast(to->arg, channel, event, payload_json);
}

/* --- the monitor --- */

void receivers_fault(struct receivers *rs, const char *text)
{
    pthread_mutex_lock(&rs->facts_lock);
    snprintf(rs->fault, sizeof(rs->fault), "%s", text);
    rs->fault_wall_ms = clock_wall_ms();
    pthread_mutex_unlock(&rs->facts_lock);
}

static const char *time_text(struct arena *a, int64_t wall_ms)
{
    char text[TIME_TEXT_SIZE];

    clock_format(wall_ms, text);
    return arena_strdup(a, text);
}

static void show_followed(struct receivers *rs, struct arena *a, struct backend_monitor *ret)
{
    pthread_mutex_lock(&rs->facts_lock);
    ret->items = arena_array(a, rs->n_followed, sizeof(*ret->items));
    for (; ret->n < rs->n_followed; ret->n++) {
        const struct followed *f = &rs->followed[ret->n];

        ret->items[ret->n] = (struct backend_subscription){
            .table = arena_strdup(a, f->table),
            .last_event_at = time_text(a, f->event_wall_ms),
            .lag_ms = f->lag_ms,
            .n_events = f->n_events,
            .n_gaps = rs->n_gaps,
        };
    }
    pthread_mutex_unlock(&rs->facts_lock);
}

void receivers_monitor(struct receivers *rs, struct arena *a, struct backend_monitor *ret)
{
    *ret = (struct backend_monitor){ 0 };
    show_followed(rs, a, ret);
    pthread_mutex_lock(&rs->facts_lock);
    if (rs->fault[0]) {
        ret->last_error = arena_strdup(a, rs->fault);
        ret->last_error_at = time_text(a, rs->fault_wall_ms);
    }
    pthread_mutex_unlock(&rs->facts_lock);
}

/* --- adding and removing --- */

int receivers_subscribe(struct receivers *rs, backend_event_fn *fn, backend_gap_fn *on_gap, void *arg, struct err *e)
{
    int r = 0;

    pthread_mutex_lock(&rs->lock);
    if (find_receiver(rs->subscribers, arg))
        r = err_set(e, -EEXIST, "ALREADY_EXISTS", "This receiver is there already");
    else
        add_receiver(&rs->subscribers, &(struct receiver){ .on_event = fn, .on_gap = on_gap, .arg = arg });
    pthread_mutex_unlock(&rs->lock);
    return r;
}

void receivers_unsubscribe(struct receivers *rs, void *arg)
{
    pthread_mutex_lock(&rs->lock);
    leave(rs->subscribers, arg);
    pthread_mutex_unlock(&rs->lock);
}

void receivers_listen(struct receivers *rs, const char *channel, backend_broadcast_fn *fn, void *arg)
{
    pthread_mutex_lock(&rs->lock);
    add_receiver(&rs->listeners, &(struct receiver){ .on_broadcast = fn, .channel = xstrdup(channel), .arg = arg });
    pthread_mutex_unlock(&rs->lock);
}

void receivers_unlisten(struct receivers *rs, void *arg)
{
    pthread_mutex_lock(&rs->lock);
    leave(rs->listeners, arg);
    pthread_mutex_unlock(&rs->lock);
}
