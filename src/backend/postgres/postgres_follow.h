/* Following the changes over one connection, for postgres_events.c and postgres_follow_*.c only. A source of changes is
 * a row of functions; the thread of the events calls them.
 */
#pragma once

#include "backend/postgres/postgres_events.h"
#include "backend/postgres/postgres_logical.h"
#include "backend/receivers.h"
#include "base/clock.h"
#include "base/limits.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { FOLLOW_OPERATION_MS = 20000, FOLLOW_DEEP_MS = 1000, FOLLOW_CHANNEL_CHARS = 100 };

struct postgres_events {
    struct postgres_events_config config;
    char *abbr; /* owned */
    int poll_ms, published_ms;
    char changes[FOLLOW_CHANNEL_CHARS], broadcasts[FOLLOW_CHANNEL_CHARS]; /* channels of notifications */
    pthread_t thread;
    atomic_bool is_stopping;
    struct receivers *receivers; /* owned */
    struct postgres_outbox_key
        *reported; /* owned, the thread's own: changes after the position that were reported already */
    size_t n_reported;

    pthread_mutex_t lock; /* guards the members below */
    char *position;       /* owned: a snapshot; NULL: not known, the next look begins with a gap */
    uint64_t after;       /* place in the server's log when the first subscriber came */
    bool is_unsure;       /* a subscriber came whose place is not known: a gap is due */
    unsigned generation;  /* of the position: raised by the first subscriber */
    struct postgres_events_status status;
    uint64_t n_failures;    /* attempts to connect, and connections that broke */
    pthread_cond_t changed; /* state or n_failures */
};

/* What the thread knows of one connection. */
struct follower {
    struct postgres_events *ev;
    const struct follow_source *source;
    struct pg_link *link;            /* owned: statements and notifications */
    struct pg_link *stream_link;     /* owned; NULL: none */
    struct postgres_outbox *outbox;  /* owned */
    struct postgres_logical *stream; /* owned; NULL: none */
    bool has_gap;                    /* to report after the next look */
    bool is_notified;                /* a writer has sent a notification */
    bool is_resting;                 /* writers send one */
    bool is_unnotified;              /* writers never send one */
    bool must_settle;                /* the next look decides until_xid */
    uint64_t until_xid;              /* transactions before it may end without a notification */
    uint64_t unrecorded_xid;         /* transactions before it may have changes that are not in the outbox; 0: none */
    uint64_t oldest;                 /* of the last look */
    size_t n_delivered;              /* changes of the range that is being delivered */
    int64_t last_change_ms, next_prune_ms, next_want_ms, next_published_ms;
};

struct follow_source {
    bool is_logical;
    /* Every change that commits after the return is reported. */
    int (*begin)(struct follower *f, struct err *e);
    /* Reports what is there; *ret_wait_ms: until the next call, when nothing comes on a connection. */
    int (*round)(struct follower *f, int64_t *ret_wait_ms, struct err *e);
    void (*end)(struct follower *f);
};
extern const struct follow_source follow_outbox, follow_logical;

/* postgres_events.c. Both deliver between receivers_begin() and receivers_end(). */
void follow_deliver(void *arg, const struct backend_event *event); /* arg: the follower */
void follow_note_gap(void *arg);
void follow_deliver_gap(struct follower *f);
bool follow_has_subscriber(struct postgres_events *ev);
bool follow_take_unsure(struct postgres_events *ev); /* and forgets it */
/* What the stream lacks is told; a table that is not published is a reason against it only where there is a choice.
 * *ret_note: that table, "" for none. */
int follow_find_lack(struct follower *f, struct arena *a, const char **ret_lack, const char **ret_note,
                     struct err *e) MUST_CHECK;
/* Tells, once, that changes of a table do not come by the stream ("": that they come again). Whether that is news. */
bool follow_note_unpublished(struct follower *f, const char *note);
/* Takes the text over. */
void follow_set_position(struct postgres_events *ev, char *position, bool is_new_reader);
struct net_wait follow_wait(struct postgres_events *ev, int64_t ms);
