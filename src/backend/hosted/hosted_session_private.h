/* The state of hosted_session.h, for its files only. */
#pragma once

#include "backend/hosted/hosted_presence.h"
#include "backend/hosted/hosted_session.h"
#include "base/realtime_wire.h"

#include <sys/queue.h>

enum hosted_kind { HOSTED_TABLE, HOSTED_TOPIC, HOSTED_PRESENCE };

enum hosted_step {
    HOSTED_IDLE,       /* to be joined at due_ms */
    HOSTED_JOINING,    /* the join is sent; the reply comes until due_ms */
    HOSTED_CONFIRMING, /* joined; the server says until due_ms that changes arrive */
    HOSTED_JOINED
};

enum { HOSTED_SEEN = 64, HOSTED_WHY = 400, HOSTED_REF = 24 };

struct hosted_fault {
    char text[HOSTED_WHY]; /* "": none */
    int64_t wall_ms;
};

struct hosted_channel {
    TAILQ_ENTRY(hosted_channel) links;
    enum hosted_kind kind;
    char *topic;          /* owned; with "realtime:" */
    char *table, *filter; /* owned; of HOSTED_TABLE, filter NULL: none */
    bool is_private;
    bool is_wanted; /* false: left and freed by the next tick */
    enum hosted_step step;
    int64_t due_ms;
    bool is_at_server;   /* the server may have the channel */
    bool has_failed;     /* since it was live last */
    unsigned n_failures; /* in a row */
    char join_ref[HOSTED_REF];
    int64_t binding;            /* the server's number of the subscription */
    uint64_t seen[HOSTED_SEEN]; /* hashes of the latest events: a ring */
    size_t n_seen;
    int64_t n_events, n_gaps, n_retries, event_wall_ms, lag_ms;
    struct hosted_fault fault;
};
TAILQ_HEAD(hosted_channels, hosted_channel);

struct hosted_spoken { /* a broadcast that waits for the next tick */
    STAILQ_ENTRY(hosted_spoken) links;
    char *topic, *event, *payload; /* owned; topic with "realtime:" */
};
STAILQ_HEAD(hosted_speech, hosted_spoken);

struct hosted_session {
    struct hosted_session_config config;
    char *abbr;  /* owned, as token and record */
    char *token; /* NULL: none */
    bool needs_token;
    struct hosted_channels channels;
    size_t n_channels;
    struct hosted_speech speech;
    size_t n_speech, n_speech_bytes;
    uint64_t last_ref, n_states;

    bool is_connected;
    unsigned n_lost; /* ends in a row */
    int64_t n_connects, n_ignored;
    struct hosted_fault fault;
    int64_t beat_ms;           /* when the next heartbeat, or the reply to the last, is due */
    char beat_ref[HOSTED_REF]; /* "": no reply is due */

    char *record;     /* what is to be tracked, JSON; NULL: nothing */
    char *machine_id; /* owned; the key of the presence */
    bool is_tracked;  /* the server has confirmed the record */
    bool is_track_sent, must_untrack;
    int64_t track_due_ms;
    char track_ref[HOSTED_REF];
    struct hosted_presence *presence; /* owned */
    bool is_presence_known;           /* a state has come since the connection */
};

/* hosted_session.c */
void hosted_session_changed(struct hosted_session *s);
void hosted_fault_set(struct hosted_fault *f, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* The channel is to be joined again, after a while. */
void hosted_channel_fail(struct hosted_session *s, struct hosted_channel *ch, int64_t now_ms, const char *why);
void hosted_channel_live(struct hosted_session *s, struct hosted_channel *ch);

/* hosted_session_send.c */
int hosted_send_join(struct hosted_session *s, struct hosted_channel *ch, int64_t now_ms, struct err *e) MUST_CHECK;
int hosted_send_leave(struct hosted_session *s, struct hosted_channel *ch, struct err *e) MUST_CHECK;
int hosted_send_heartbeat(struct hosted_session *s, struct err *e) MUST_CHECK;
int hosted_send_token(struct hosted_session *s, struct hosted_channel *ch, struct err *e) MUST_CHECK;
int hosted_send_track(struct hosted_session *s, struct hosted_channel *ch, struct err *e) MUST_CHECK;
int hosted_send_broadcast(struct hosted_session *s, struct hosted_channel *ch, const struct hosted_spoken *b,
                          struct err *e) MUST_CHECK;

/* hosted_session_words.c */
/* What a person can do about a refusal, with the server's words. */
void hosted_words(struct hosted_session *s, const char *what, struct slice said, char ret[HOSTED_WHY]);
