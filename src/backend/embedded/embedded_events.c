/* The thread that follows the change log and delivers to the receivers. */
#include "backend/embedded/embedded.h"
#include "backend/embedded/embedded_log.h"
#include "backend/receivers.h"
#include "base/clock.h"
#include "base/cond.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/thread.h"

enum { TRIM_EVERY_MS = 10000, DEFAULT_POLL_MS = 50 };

struct message {
    char *channel, *event, *payload; /* owned */
    struct message *next;
};

struct embedded_events {
    struct embedded *backend; /* borrowed */
    int poll_ms;
    pthread_t thread;
    bool has_thread;

    pthread_mutex_t lock; /* guards the members up to n_messages */
    pthread_cond_t wake;
    bool is_woken, is_stopping;
    struct message *first_message, **last_message;
    size_t n_messages;

    struct receivers *receivers; /* owned */
    struct embedded_log log;     /* between receivers_begin() and receivers_end() */
};

/* --- the thread --- */

static void notify_event(void *arg, const struct backend_event *event)
{
    struct embedded_events *ev = arg;

    receivers_event(ev->receivers, event);
}

static void notify_gap(void *arg)
{
    struct embedded_events *ev = arg;

    receivers_gap(ev->receivers);
}

static void follow_log(struct embedded_events *ev)
{
    const struct embedded_log_sink sink = { notify_event, notify_gap, ev };
    struct err e = { 0 };

    if (!receivers_has_subscriber(ev->receivers))
        return; /* the first call starts at the end of the log */
    if (embedded_log_read(&ev->log, &sink, &e) < 0) {
        receivers_fault(ev->receivers, e.text);
        log_debug("backend", NULL, "cannot follow the changes: %s", LOG_Q(e.text));
    }
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

static void notify_messages(struct embedded_events *ev)
{
    struct message *m;

    while ((m = take_message(ev))) {
        receivers_broadcast(ev->receivers, m->channel, m->event, m->payload);
        message_free(m);
    }
}

/* Waits until woken or until it is time to look for changes of other processes; false: stop. */
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
        receivers_begin(ev->receivers);
        follow_log(ev);
        notify_messages(ev);
        receivers_end(ev->receivers);
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

/* --- open and close --- */

struct embedded_events *embedded_events_new(struct embedded *b, int poll_ms)
{
    struct embedded_events *ev = xcalloc(1, sizeof(*ev));

    ev->backend = b;
    ev->poll_ms = poll_ms > 0 ? poll_ms : DEFAULT_POLL_MS;
    ev->last_message = &ev->first_message;
    ev->is_woken = true; /* the first round trims */
    pthread_mutex_init(&ev->lock, NULL);
    cond_init(&ev->wake);
    ev->receivers = receivers_new();
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
    receivers_free(ev->receivers);
    embedded_log_close(&ev->log);
    pthread_cond_destroy(&ev->wake);
    pthread_mutex_destroy(&ev->lock);
    free(ev);
    return NULL;
}

/* --- interface --- */

int embedded_subscribe(struct backend *b, backend_event_fn *fn, backend_gap_fn *on_gap, void *arg, struct err *e)
{
    struct embedded_events *ev = embedded_of(b)->events;
    int r = 0;

    receivers_begin(ev->receivers);
    if (!receivers_has_subscriber(ev->receivers))
        r = embedded_log_seek_end(&ev->log, e);
    if (r == 0)
        r = receivers_subscribe(ev->receivers, fn, on_gap, arg, e);
    receivers_end(ev->receivers);
    return r;
}

void embedded_unsubscribe(struct backend *b, void *arg)
{
    receivers_unsubscribe(embedded_of(b)->events->receivers, arg);
}

int embedded_listen(struct backend *b, const char *channel, backend_broadcast_fn *fn, void *arg, struct err *e)
{
    receivers_listen(embedded_of(b)->events->receivers, channel, fn, arg);
    return 0;
}

void embedded_unlisten(struct backend *b, void *arg)
{
    receivers_unlisten(embedded_of(b)->events->receivers, arg);
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

void embedded_monitor(struct backend *b, struct arena *a, struct backend_monitor *ret)
{
    receivers_monitor(embedded_of(b)->events->receivers, a, ret);
    ret->way = "change log";
    ret->state = BACKEND_LINK_LIVE;
    ret->is_whole = true;
}
