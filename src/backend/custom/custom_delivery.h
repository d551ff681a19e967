/* The ends of Custom Mode tasks on their way to the apps: POST {base}/api/task-webhook, kept in hearth.db until the app
 * has accepted it.
 *
 * custom_delivery_put() returns when the end is on disk: from then on the result is not lost. Threads of its own, which
 * are started with the first end, send each one with the same content until the app answers 2xx, or the row shows that
 * the lease is lost. Meanwhile the lease is kept alive. An end that the app refuses, or that was tried too often, is a
 * dead letter: it keeps its lease until a person has it tried again or drops it. Any thread; calls may block.
 *
 *     r = custom_deliveries_open(&config, &d, e);
 *     r = custom_delivery_put(d, &(struct custom_end){ .app_id = id, .lease = lease, .content = json }, e);
 */
#pragma once

#include "backend/backend.h"
#include "backend/custom/custom_lock.h"

struct store;

/* What the row says about a lease. */
enum custom_hold {
    CUSTOM_LOST,  /* another machine has the row, it waits again, or it is gone */
    CUSTOM_HELD,  /* claimed or processing, and ours */
    CUSTOM_ENDED, /* completed or failed */
};

enum custom_delivery_state {
    CUSTOM_NONE,      /* no such delivery */
    CUSTOM_WAITING,   /* for the app */
    CUSTOM_DEAD,      /* for a person */
    CUSTOM_DELIVERED, /* kept for a day without its content */
    CUSTOM_DROPPED    /* the lease was lost, or a person dropped it; kept for a day as well */
};
const char *custom_delivery_state_name(enum custom_delivery_state s); /* "none", "waiting", "dead", ... */
int custom_delivery_state_of(const char *name);                       /* -EINVAL */

/* Called on threads of the deliveries; they may wait for the database. */
struct custom_delivery_calls {
    /* Where the app that has the table answers now: 0, with base_url NULL while it does not run. -ENOENT: it is no
     * longer registered. */
    int (*place)(void *arg, const char *app_id, const char *table, struct arena *a, struct custom_place *ret,
                 struct err *e);
    /* An enum custom_hold, read from the row; negative: unknown now. */
    int (*holds)(void *arg, const struct backend_lease *l, struct err *e);
    int (*beat)(void *arg, const struct backend_lease *l, struct err *e);    /* -ESTALE: the lease is lost */
    int (*release)(void *arg, const struct backend_lease *l, struct err *e); /* a person dropped the end */
    /* The delivery of this lease is in another state, or was tried; error NULL: none. May be NULL. */
    void (*on_change)(void *arg, const struct backend_lease *l, enum custom_delivery_state state, const char *error);
};

/* Copied. */
struct custom_deliveries_config {
    struct store *store;
    struct custom_net net;
    const struct custom_delivery_calls *calls;
    void *arg;
    int64_t beat_ms;         /* between two heartbeats of one lease */
    int64_t tries, pause_ms; /* before an end is a dead letter; pause after the first try, doubled up to 5 minutes */
};

struct custom_deliveries;

/* Does not call back before custom_deliveries_start(). */
int custom_deliveries_open(const struct custom_deliveries_config *c, struct custom_deliveries **ret,
                           struct err *e) MUST_CHECK;
/* Resumes what an earlier process left; without it (command line) ends are only stored. */
int custom_deliveries_start(struct custom_deliveries *d, struct err *e) MUST_CHECK;
/* No call comes back after it. NULL is fine. */
void custom_deliveries_leave(
    struct custom_deliveries *d); /* does not wait; running requests end. custom_deliveries_close() follows */
struct custom_deliveries *custom_deliveries_close(struct custom_deliveries *d);

struct custom_end {
    const char *app_id;
    const struct backend_lease *lease;
    bool is_fail;
    const char *content; /* of complete: the result as JSON (no object: sent as {"value": ...}); of fail: the message */
};
/* Stores the end. A repeat for the same lease changes nothing and returns 0. -E2BIG TOO_LARGE: the body has more than
 * LIMIT_DELIVERY_BYTES. */
int custom_delivery_put(struct custom_deliveries *d, const struct custom_end *in, struct err *e) MUST_CHECK;
/* The state of this lease's end: an enum custom_delivery_state, or an error. */
int custom_delivery_find(struct custom_deliveries *d, const struct backend_lease *l, struct err *e) MUST_CHECK;
/* Has the app so few ends that it has not accepted that it may get another task? -EBUSY APP_BEHIND: it has
 * LIMIT_APP_DELIVERIES of them. */
int custom_delivery_check_room(struct custom_deliveries *d, const char *app_id, struct err *e) MUST_CHECK;
/* The app runs again, though it may not listen yet: what waits for it is tried at once, and often for a while. */
void custom_deliveries_hasten(struct custom_deliveries *d, const char *app_id);
/* Has any end of this row been stored that the app has not yet accepted (waiting or dead)? 1, 0, or an error. */
int custom_delivery_is_open(struct custom_deliveries *d, const char *table, const char *row_id,
                            struct err *e) MUST_CHECK;

/* For a person: any state but none. Texts live in the arena. */
struct custom_delivery {
    const char *id; /* UUID: the value of the header x-<abbr>-event-id */
    const char *app_id, *table, *row_id, *machine_id, *action;
    int64_t attempt, n_tries, n_bytes;
    enum custom_delivery_state state;
    int64_t status;                                /* of the last answer; 0: none */
    const char *error;                             /* of the last try; NULL: none */
    const char *created_at, *updated_at, *next_at; /* next_at: of waiting ones; else NULL */
};
struct custom_delivery_list {
    struct custom_delivery *items;
    size_t n;
};
/* The newest first; app_id NULL: of all; state CUSTOM_NONE: waiting and dead ones. limit 0: LIMIT_LIST_DEFAULT. */
int custom_delivery_all(struct custom_deliveries *d, const char *app_id, enum custom_delivery_state state,
                        int64_t limit, struct arena *a, struct custom_delivery_list *ret, struct err *e) MUST_CHECK;
/* Tries it at once, and as often as a new one. -ENOENT DELIVERY_NOT_FOUND; -EBUSY DELIVERY_FINISHED: it was delivered
 * or dropped. */
int custom_delivery_retry(struct custom_deliveries *d, const char *id, struct err *e) MUST_CHECK;
/* Gives up the end and its lease: the row waits again, for any machine. The errors of retry. */
int custom_delivery_drop(struct custom_deliveries *d, const char *id, struct err *e) MUST_CHECK;
