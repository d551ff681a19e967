/* Shared by the files of src/apps: the apps that have been started, under one mutex.
 *
 * A slot is made at an app's first start and freed when the app is removed. The status serves as the slot's lock: the
 * thread that changes an idle slot (stopped or in error) to STARTING may launch the app. The loop reports the end of
 * the child but may not wait: it marks the slot, and a worker does the rest (chores.c): due restarts, and grants that
 * end with the app.
 */
#pragma once

#include "apps/apps.h"
#include "base/uuid.h"

#include <pthread.h>

enum {
    APP_CRASHES_KEPT = 128, /* above the largest apps.restart_limit */
    APP_CRASH_WINDOW_MS = 10 * 60 * 1000,
    APP_WAIT_MS = 60000, /* to wait for another thread's start or stop; the supervisor kills long before that */
};

struct app_slot {
    struct app_slot *next;
    struct apps *apps; /* borrowed */
    char app_id[UUID_SIZE];
    struct child_log *log; /* one reference; across restarts */
    enum app_status status;
    char message[640]; /* "": none */
    uint16_t port;
    int64_t n_restarts;    /* since a person or the service started it */
    int64_t started_at_ms; /* wall clock; 0: never */
    uint64_t launch;       /* of the process, in identity/launches.h; 0: none */
    struct child *child;   /* one reference; NULL when none runs */
    bool is_wanted;        /* the app is meant to run */
    bool is_removing;
    size_t n_users;       /* threads that wait while they use the slot */
    bool has_ended_early; /* the child ended before the start had returned */
    struct child_exit early;
    int64_t restart_at_ms;                /* monotonic; 0: no restart is planned */
    bool is_end_unreported;               /* the grants `until the app stops` are still to be ended */
    int64_t crashes_ms[APP_CRASHES_KEPT]; /* monotonic, oldest first; those within the window */
    size_t n_crashes;
};

struct apps {
    struct apps_config config; /* data_dir and base_url borrowed */
    pthread_mutex_t mutex;     /* guards slots, their members, and the members below */
    pthread_cond_t changed;    /* on the monotonic clock; signals a change of a status */
    struct app_slot *slots;    /* owned */
    size_t n_launching;
    bool is_closing;
    int64_t next_port;
    struct loop_timer *chores; /* owned; loop thread; NULL without a service */
};

/* slots.c; the caller holds the mutex. */
struct app_slot *slot_find(struct apps *apps, const char *app_id);
struct app_slot *slot_take(struct apps *apps, const char *app_id); /* found or made */
void slot_drop(struct apps *apps, struct app_slot *slot);
struct app_slot *slot_free(struct app_slot *slot);
/* Wakes threads that wait for a change. message NULL: none. */
void slot_set(struct app_slot *slot, enum app_status status, const char *message);
bool slot_is_idle(const struct app_slot *slot);
/* Waits for a change and releases the mutex while it waits. -ETIMEDOUT when the deadline (monotonic) passes. */
int slots_wait(struct apps *apps, int64_t deadline_ms) MUST_CHECK;
/* The child has ended: the slot becomes idle, or a restart is planned. */
void slot_end(struct app_slot *slot, const struct child_exit *how);

/* Launches the app whose slot the caller made STARTING; called without the mutex (run.c). */
int app_launch(struct app_slot *slot, struct err *e) MUST_CHECK;

/* chores.c */
void chores_on_time(void *apps);         /* the timer; loop thread */
void chores_schedule(struct apps *apps); /* any thread: sets the timer for the next due chore */

/* Notifies the listener that the app has changed; any thread, without the mutex. */
void apps_notify(struct apps *apps, const char *app_id);
