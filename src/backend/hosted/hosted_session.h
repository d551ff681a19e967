/* The protocol of one realtime client, without thread, lock and socket: which channels are wanted, what has been sent
 * for them, and what the server's messages mean. The caller serialises all calls, gives the time, and sends.
 *
 *     s = hosted_session_new(&config);
 *     r = hosted_session_watch(s, "orders", NULL, e);
 *     hosted_session_begin(s, now_ms);                          connected
 *     r = hosted_session_tick(s, now_ms, e);                    sends what is due
 *     hosted_session_take(s, arena, is_binary, bytes, now_ms, &news);
 */
#pragma once

#include "backend/hosted/hosted_realtime.h"

struct hosted_session;

/* How long the client waits; all in ms. */
struct hosted_times {
    int64_t heartbeat_ms, reply_ms; /* between heartbeats; for the reply to one, or to a join */
    int64_t confirm_ms;             /* from a join's reply until the server says that changes arrive */
    int64_t step_ms;                /* 1, 2, 5 and 10 of them lie between attempts */
    int64_t track_ms;               /* between two records of presence */
};
extern const struct hosted_times hosted_usual_times;

struct hosted_session_config {
    const char *abbr;                 /* borrowed */
    const struct hosted_times *times; /* borrowed; NULL: the usual ones */
    bool is_v1;
    int (*send)(void *arg, bool is_binary, struct slice message, struct err *e); /* queues */
    void *arg;
};

/* What a message means to the owner; texts are the arena's or the session's. */
struct hosted_news {
    bool has_change, has_presence;
    struct hosted_change change;
    const char *gap_table;                    /* NULL: no gap */
    const char *topic, *event, *payload_json; /* of a broadcast; NULL: none */
};

struct hosted_session *hosted_session_new(const struct hosted_session_config *c) MUST_CHECK;
struct hosted_session *hosted_session_free(struct hosted_session *s);

/* The functions of hosted_realtime.h; changes go out with the next tick. */
int hosted_session_watch(struct hosted_session *s, const char *table, const char *filter, struct err *e) MUST_CHECK;
void hosted_session_unwatch(struct hosted_session *s, const char *table, const char *filter);
int hosted_session_listen(struct hosted_session *s, const char *topic, bool is_private, struct err *e) MUST_CHECK;
void hosted_session_unlisten(struct hosted_session *s, const char *topic);
int hosted_session_track(struct hosted_session *s, const struct backend_presence *p, struct err *e) MUST_CHECK;
void hosted_session_untrack(struct hosted_session *s);
/* -ENOTCONN, without an error, when the topic is not joined: it goes another way. */
int hosted_session_broadcast(struct hosted_session *s, const struct hosted_broadcast *b, struct err *e) MUST_CHECK;
int hosted_session_presences(struct hosted_session *s, struct arena *a, struct backend_presences *ret,
                             struct err *e) MUST_CHECK;
void hosted_session_monitor(struct hosted_session *s, struct arena *a, struct backend_monitor *ret);
bool hosted_session_is_settled(struct hosted_session *s);
bool hosted_session_is_wanted(struct hosted_session *s); /* a channel is wanted: a connection is needed */

/* The connection: made, or lost (or not made) with a reason. */
void hosted_session_begin(struct hosted_session *s, int64_t now_ms);
void hosted_session_end(struct hosted_session *s, int64_t now_ms, const char *why);
/* Milliseconds until the next attempt to connect, longer after each hosted_session_end() in a row. */
int64_t hosted_session_pause_ms(struct hosted_session *s);
/* The user's token; NULL: none. Joined channels are told. */
void hosted_session_use_token(struct hosted_session *s, const char *token);
/* Has a refusal said that the token is not valid any more? Asked once. */
bool hosted_session_needs_token(struct hosted_session *s);
/* Sends what is due. -ECONNRESET UPSTREAM_CLOSED when the server left a heartbeat without a reply; errors of send. */
int hosted_session_tick(struct hosted_session *s, int64_t now_ms, struct err *e) MUST_CHECK;
/* When the next tick is due. */
int64_t hosted_session_due_ms(struct hosted_session *s, int64_t now_ms);
void hosted_session_take(struct hosted_session *s, struct arena *a, bool is_binary, struct slice bytes, int64_t now_ms,
                         struct hosted_news *ret);
/* Raised by each change of a state that the monitor shows. */
uint64_t hosted_session_n_states(struct hosted_session *s);
