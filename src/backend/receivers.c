#include "backend/receivers.h"

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

struct receivers {
    pthread_mutex_t lock; /* guards the members below; recursive, because a callback may add and remove receivers */
    unsigned depth;       /* of receivers_begin() */
    struct receiver *subscribers, *listeners; /* owned */
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

void receivers_event(struct receivers *rs, const struct backend_event *event)
{
    for (struct receiver *to = rs->subscribers; to; to = to->next)
        if (to->arg)
            to->on_event(to->arg, event);
}

void receivers_gap(struct receivers *rs)
{
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
