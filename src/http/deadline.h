/* Deadlines for many objects that share a few durations: one list for each duration, in order of expiry, and one timer
 * for all lists.
 *
 * Setting, changing and cancelling cost a few pointers, no heap and no system call. A deadline is embedded in its owner
 * and is in at most one list. Loop thread only.
 *
 *     http_deadline_set(&server->deadlines, &connection->deadline, WAIT_HEAD);
 */
#pragma once

#include "base/loop.h"

#include <sys/queue.h>

enum http_wait {
    WAIT_NONE,
    WAIT_FIRST, /* for the first byte of the first head */
    WAIT_IDLE,  /* for the first byte of a later head */
    WAIT_HEAD,
    WAIT_BODY,    /* HEAD, BODY: for the end of the head or body */
    WAIT_WRITE,   /* for the client to accept bytes */
    WAIT_COMMENT, /* an event stream has been silent */
    WAIT_LINGER,  /* for the client to close */
    WAIT_SOCKET,  /* for bytes of a WebSocket's client */
    WAIT_TURN,    /* for the next turn of the loop, to read the rest of a pipeline */
    WAITS
};

struct http_deadline {
    TAILQ_ENTRY(http_deadline) links;
    int64_t at_ms;
    enum http_wait wait; /* which list it is in */
};

TAILQ_HEAD(http_deadline_list, http_deadline);

struct http_deadlines {
    struct http_deadline_list lists[WAITS];
    int timeout_ms[WAITS];
    struct loop_timer *timer;                                         /* owned */
    int64_t armed_ms;                                                 /* when the timer fires; INT64_MAX: not armed */
    void (*on_expired)(struct http_deadline *d, enum http_wait wait); /* d has left its list */
};

void http_deadlines_init(struct http_deadlines *all, struct loop *l,
                         void (*on_expired)(struct http_deadline *d, enum http_wait wait));
void http_deadlines_clear(struct http_deadlines *all);
/* Starts now and replaces an earlier deadline. WAIT_NONE cancels. */
void http_deadline_set(struct http_deadlines *all, struct http_deadline *d, enum http_wait wait);
