/* The client of the hosted service's realtime protocol (facts A): changes of tables, broadcasts, presence.
 *
 * One WebSocket and one thread, which connects, joins, sends heartbeats, renews the user's token and joins again after
 * a loss (1, 2, 5, 10 s with jitter). Each table with its filter, each topic and the presence have a channel of their
 * own, so that one refusal concerns one of them. Nothing is lost silently: a gap is reported for a table each time its
 * subscription has become live, and then rows must be read.
 *
 * Threads: every function is for any thread and does not wait for the network, except hosted_realtime_broadcast() to a
 * topic that is not listened to (one HTTP request), hosted_realtime_settle() and hosted_realtime_close(). Callbacks
 * come on the client's thread, one at a time, without a lock held: they must be quick and may call every function but
 * close, settle and broadcast. No callback comes after close.
 *
 *     r = hosted_realtime_open(&config, &rt, e);
 *     r = hosted_realtime_watch(rt, "orders", NULL, e);
 *     r = hosted_realtime_listen(rt, "task-retry-triage", false, e);
 *     r = hosted_realtime_track(rt, &me, e);
 *     r = hosted_realtime_settle(rt, &wait, e);          everything above is joined, or was refused once
 *     rt = hosted_realtime_close(rt);
 */
#pragma once

#include "backend/backend.h"
#include "backend/monitor.h"
#include "net/guard.h"

struct hosted_realtime;
struct hosted_times;

/* A committed change, borrowed for the call. */
struct hosted_change {
    enum backend_op op;
    const char *table;                    /* as backend_table_name() returns it: "orders", "sales.orders" */
    struct json_value record, old_record; /* objects; absent: record on DELETE, old_record on INSERT */
    const char *commit_at;                /* as the server wrote it; "" when it wrote none */
    int64_t commit_ms;                    /* the same since 1970; 0: not known */
    bool is_cut;                          /* the server has left values out (row too large): read the row */
};

struct hosted_token {
    const char *text;   /* the access token of the signed-in user; NULL: anonymous, the key counts */
    int64_t expires_ms; /* since 1970; 0: read from the token */
};

/* Copied, with its texts. */
struct hosted_realtime_config {
    const char *url;                  /* of the project: "https://ref.supabase.co", "http://127.0.0.1:3001" */
    const char *key;                  /* publishable, or the older anon key */
    const char *abbr;                 /* of the backend's own tables: names the channels */
    bool is_v1;                       /* vsn 1.0.0 instead of 2.0.0 */
    const struct guard *guard;        /* borrowed; NULL: the administrator named the address */
    const struct hosted_times *times; /* borrowed; NULL: the usual ones (hosted_session.h) */

    /* Texts into the arena. Asked before each join and before the token expires; may refresh it over HTTP within the
     * wait (10 s, ended by close). A failure is a failed attempt to join. NULL: always anonymous. */
    int (*token)(void *arg, const struct net_wait *wait, struct arena *a, struct hosted_token *ret, struct err *e);
    /* All may be NULL. */
    void (*on_change)(void *arg, const struct hosted_change *change);
    void (*on_gap)(void *arg, const char *table); /* changes before this moment are not known */
    /* payload_json: any JSON; "null" for a payload of bytes. */
    void (*on_broadcast)(void *arg, const char *topic, const char *event, const char *payload_json);
    void (*on_presence)(void *arg); /* the list has changed */
    void (*on_state)(void *arg);    /* a state of hosted_realtime_monitor() has changed */
    void *arg;
};

/* Returns before the first connection. -EINVAL BAD_URL; -EAGAIN when no thread can be started. */
int hosted_realtime_open(const struct hosted_realtime_config *c, struct hosted_realtime **ret,
                         struct err *e) MUST_CHECK;
/* Says goodbye within a second and joins the thread. NULL is fine; returns NULL. */
struct hosted_realtime *hosted_realtime_close(struct hosted_realtime *rt);

/* filter: one condition as the server reads it ("status=eq.pending"), or NULL. A repeat does nothing. -EINVAL
 * VALIDATION_ERROR; -ENOSPC TOO_MANY_SUBSCRIPTIONS above LIMIT_HOSTED_CHANNELS of all kinds. */
int hosted_realtime_watch(struct hosted_realtime *rt, const char *table, const char *filter, struct err *e) MUST_CHECK;
void hosted_realtime_unwatch(struct hosted_realtime *rt, const char *table, const char *filter);

/* topic without "realtime:". A topic is public or private for all who listen. The own broadcasts are heard as well. */
int hosted_realtime_listen(struct hosted_realtime *rt, const char *topic, bool is_private, struct err *e) MUST_CHECK;
void hosted_realtime_unlisten(struct hosted_realtime *rt, const char *topic);

struct hosted_broadcast {
    const char *topic, *event, *payload_json;
    bool is_private;
};
/* Over the socket when the topic is joined, else one HTTP request (10 s). Delivery is not promised. -E2BIG TOO_LARGE
 * above LIMIT_BROADCAST_BYTES, -EAGAIN OVERLOADED while too many wait; errors of http_call(). */
int hosted_realtime_broadcast(struct hosted_realtime *rt, const struct hosted_broadcast *b, struct err *e) MUST_CHECK;

/* Published once, and again after each new connection; a repeat with the same record sends nothing. The server limits
 * the calls (5 in 30 s), so a record must not be tracked as a sign of life. */
int hosted_realtime_track(struct hosted_realtime *rt, const struct backend_presence *p, struct err *e) MUST_CHECK;
void hosted_realtime_untrack(struct hosted_realtime *rt);
/* The machines that are there, `instance` included, in the order of online_at and machine_id; at most LIMIT_LIST. A
 * machine id that two services track is there twice. -EAGAIN STORE_UNAVAILABLE while the presence is not joined. */
int hosted_realtime_presences(struct hosted_realtime *rt, struct arena *a, struct backend_presences *ret,
                              struct err *e) MUST_CHECK;

/* Waits until every channel that is wanted now is live, and its gap reported, or has failed once. Fails like
 * net_wait_left(). */
int hosted_realtime_settle(struct hosted_realtime *rt, const struct net_wait *wait, struct err *e) MUST_CHECK;
/* The user has signed in or out, or has another token: it is asked for now. */
void hosted_realtime_renew(struct hosted_realtime *rt);
void hosted_realtime_monitor(struct hosted_realtime *rt, struct arena *a, struct backend_monitor *ret);
