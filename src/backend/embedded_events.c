/* The thread that follows the change log and calls subscribers and listeners. */
#include "backend/embedded.h"
#include "backend/embedded_log.h"
#include "base/clock.h"
#include "base/cond.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/thread.h"

enum { TRIM_EVERY_MS = 10000, DEFAULT_POLL_MS = 50 };

/* Somebody to call. arg NULL: left; the thread takes it off the list when nobody walks it. */
struct receiver {
    backend_event_fn *on_event;
    backend_gap_fn *on_gap;
    backend_broadcast_fn *on_broadcast;
    char *channel;                      /* owned; of listeners */
    void *arg;
    struct receiver *next;
};

struct message {
    char *channel, *event, *payload;    /* owned */
    struct message *next;
};

struct embedded_events {
    struct embedded *backend;           /* borrowed */
    int poll_ms;
    pthread_t thread;
    bool has_thread;

    pthread_mutex_t lock;               /* of these */
    pthread_cond_t wake;
    bool is_woken, is_stopping;
    struct message *first_message, **last_message;
    size_t n_messages;

    pthread_mutex_t delivery;           /* of these; recursive, because a callback may subscribe and leave */
    struct receiver *subscribers, *listeners;
    struct embedded_log log;
};

/* --- lists of receivers, under the delivery lock --- */

static struct receiver *find_receiver(struct receiver *list, const void *arg)
{
    for (; list; list = list->next)
        if (list->arg == arg)
            return list;
    return NULL;
}

static bool has_receiver(const struct receiver *list)
{
    for (; list; list = list->next)
        if (list->arg)
            return true;
    return false;
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
    struct receiver *found = arg ? find_receiver(list, arg) : NULL;

    if (found)
        found->arg = NULL;
}

/* --- the thread --- */

static void tell_event(void *arg, const struct backend_event *event)
{
    struct embedded_events *ev = arg;

    for (struct receiver *to = ev->subscribers; to; to = to->next)
        if (to->arg)
            to->on_event(to->arg, event);
}

static void tell_gap(void *arg)
{
    struct embedded_events *ev = arg;

    for (struct receiver *to = ev->subscribers; to; to = to->next)
        if (to->arg && to->on_gap)
            to->on_gap(to->arg);
}

static void follow_log(struct embedded_events *ev)
{
    const struct embedded_log_sink sink = { tell_event, tell_gap, ev };
    struct err e = { 0 };

    if (!has_receiver(ev->subscribers))
        return;                         /* the first one starts at the end of the log */
    if (embedded_log_read(&ev->log, &sink, &e) < 0)
        log_debug("backend", NULL, "cannot follow the changes: %s", LOG_Q(e.text));
}

static struct message *take_message(struct embedded_events *ev)
{
    struct message *m;

    pthread_mutex_lock(&ev->lock);
    m = ev->first_message;
    if (m) {
        ev->first_message = m->next;
        ev->n_messages--;
        if (!m->next)
            ev->last_message = &ev->first_message;
    }
    pthread_mutex_unlock(&ev->lock);
    return m;
}

static void message_free(struct message *m)
{
    free(m->channel);
    free(m->event);
    free(m->payload);
    free(m);
}

static void tell_messages(struct embedded_events *ev)
{
    struct message *m;

    while ((m = take_message(ev))) {
        for (struct receiver *to = ev->listeners; to; to = to->next)
            if (to->arg && strcmp(to->channel, m->channel) == 0)
                to->on_broadcast(to->arg, m->channel, m->event, m->payload);
        message_free(m);
    }
}

/* Until woken or until it is time to look for another process's changes; false: stop. */
static bool wait_for_wake(struct embedded_events *ev)
{
    int64_t until_us = clock_mono_us() + (int64_t)ev->poll_ms * 1000;
    bool is_stopping;

    pthread_mutex_lock(&ev->lock);
    while (!ev->is_woken && !ev->is_stopping && cond_wait_until(&ev->wake, &ev->lock, until_us))
        ;
    ev->is_woken = false;
    is_stopping = ev->is_stopping;
    pthread_mutex_unlock(&ev->lock);
    return !is_stopping;
}

static void trim(struct embedded_events *ev, int64_t *next_ms)
{
    struct err e = { 0 };

    if (clock_mono_ms() < *next_ms)
        return;
    if (embedded_trim(ev->backend, &e) < 0)
        log_debug("backend", NULL, "cannot trim the change log: %s", LOG_Q(e.text));
    *next_ms = clock_mono_ms() + TRIM_EVERY_MS;
}

static void *events_main(void *arg)
{
    struct embedded_events *ev = arg;
    int64_t next_trim_ms = 0;

    while (wait_for_wake(ev)) {
        pthread_mutex_lock(&ev->delivery);
        drop_left(&ev->subscribers);
        drop_left(&ev->listeners);
        follow_log(ev);
        tell_messages(ev);
        pthread_mutex_unlock(&ev->delivery);
        trim(ev, &next_trim_ms);
    }
    return NULL;
}

void embedded_events_wake(struct embedded_events *ev)
{
    pthread_mutex_lock(&ev->lock);
    ev->is_woken = true;
    pthread_cond_signal(&ev->wake);
    pthread_mutex_unlock(&ev->lock);
}

/* --- life --- */

struct embedded_events *embedded_events_new(struct embedded *b, int poll_ms)
{
    struct embedded_events *ev = xcalloc(1, sizeof(*ev));
    pthread_mutexattr_t recursive;

    ev->backend = b;
    ev->poll_ms = poll_ms > 0 ? poll_ms : DEFAULT_POLL_MS;
    ev->last_message = &ev->first_message;
    ev->is_woken = true;                /* the first round trims */
    pthread_mutex_init(&ev->lock, NULL);
    cond_init(&ev->wake);
    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&ev->delivery, &recursive);
    pthread_mutexattr_destroy(&recursive);
    return ev;
}

int embedded_events_start(struct embedded_events *ev, struct err *e)
{
    struct embedded *em = ev->backend;
    int r;

    r = embedded_log_open(em->path, embedded_table_name(embedded_table_deletions(em->tables)), &ev->log, e);
    if (r < 0)
        return r;
    r = thread_start(&ev->thread, "backend-events", events_main, ev);
    if (r < 0)
        return err_errno(e, -r, "cannot start the thread of the backend's events");
    ev->has_thread = true;
    return 0;
}

void embedded_events_stop(struct embedded_events *ev)
{
    if (!ev || !ev->has_thread)
        return;
    pthread_mutex_lock(&ev->lock);
    ev->is_stopping = true;
    pthread_cond_signal(&ev->wake);
    pthread_mutex_unlock(&ev->lock);
    pthread_join(ev->thread, NULL);
    ev->has_thread = false;
    embedded_log_close(&ev->log);
}

struct embedded_events *embedded_events_free(struct embedded_events *ev)
{
    struct message *m;

    if (!ev)
        return NULL;
    while ((m = take_message(ev)))
        message_free(m);
    for (struct receiver *to = ev->subscribers; to; to = to->next)
        to->arg = NULL;
    for (struct receiver *to = ev->listeners; to; to = to->next)
        to->arg = NULL;
    drop_left(&ev->subscribers);
    drop_left(&ev->listeners);
    embedded_log_close(&ev->log);
    pthread_mutex_destroy(&ev->delivery);
    pthread_cond_destroy(&ev->wake);
    pthread_mutex_destroy(&ev->lock);
    free(ev);
    return NULL;
}

/* --- for callers --- */

static int add_once(struct receiver **list, const struct receiver *in, struct err *e)
{
    if (find_receiver(*list, in->arg))
        return err_set(e, -EEXIST, "ALREADY_EXISTS", "This receiver is there already");
    add_receiver(list, in);
    return 0;
}

int embedded_subscribe(struct backend *b, backend_event_fn *fn, backend_gap_fn *on_gap, void *arg, struct err *e)
{
    struct embedded_events *ev = embedded_of(b)->events;
    int r = 0;

    pthread_mutex_lock(&ev->delivery);
    if (!has_receiver(ev->subscribers))
        r = embedded_log_seek_end(&ev->log, e);
    if (r == 0)
        r = add_once(&ev->subscribers, &(struct receiver){ .on_event = fn, .on_gap = on_gap, .arg = arg }, e);
    pthread_mutex_unlock(&ev->delivery);
    return r;
}

/* After it returned arg is not called any more: it waits for a callback that runs, unless it is called from one. */
void embedded_unsubscribe(struct backend *b, void *arg)
{
    struct embedded_events *ev = embedded_of(b)->events;

    pthread_mutex_lock(&ev->delivery);
    leave(ev->subscribers, arg);
    pthread_mutex_unlock(&ev->delivery);
}

int embedded_listen(struct backend *b, const char *channel, backend_broadcast_fn *fn, void *arg, struct err *e)
{
    struct embedded_events *ev = embedded_of(b)->events;

    pthread_mutex_lock(&ev->delivery);
    add_receiver(&ev->listeners, &(struct receiver){ .on_broadcast = fn, .channel = xstrdup(channel), .arg = arg });
    pthread_mutex_unlock(&ev->delivery);
    return 0;
}

/* From every channel. */
void embedded_unlisten(struct backend *b, void *arg)
{
    struct embedded_events *ev = embedded_of(b)->events;

    pthread_mutex_lock(&ev->delivery);
    for (struct receiver *to = ev->listeners; to; to = to->next)
        if (to->arg == arg)
            to->arg = NULL;
    pthread_mutex_unlock(&ev->delivery);
}

int embedded_broadcast(struct backend *b, const char *channel, const char *event, const char *payload_json,
                       struct err *e)
{
    struct embedded_events *ev = embedded_of(b)->events;
    struct message *m = xcalloc(1, sizeof(*m));
    bool is_full;

    *m = (struct message){ xstrdup(channel), xstrdup(event), xstrdup(payload_json), NULL };
    pthread_mutex_lock(&ev->lock);
    is_full = ev->n_messages >= LIMIT_BROADCASTS_WAITING;
    if (!is_full) {
        *ev->last_message = m;
        ev->last_message = &m->next;
        ev->n_messages++;
        ev->is_woken = true;
        pthread_cond_signal(&ev->wake);
    }
    pthread_mutex_unlock(&ev->lock);
    if (!is_full)
        return 0;
    message_free(m);
    return err_set(e, -EAGAIN, "OVERLOADED", "%d broadcasts wait already", LIMIT_BROADCASTS_WAITING);
}
