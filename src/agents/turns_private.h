/* The internals that turns.c, turn_run.c and turn_events.c share; no other file includes this. */
#pragma once

#include "agents/turn_pool.h"
#include "agents/turns.h"
#include "base/loop.h"
#include "llm/ring.h"
#include "base/uuid.h"
#include "store/tables/conversations.h"

#include <pthread.h>

struct viewer; /* turn_events.c; loop thread */

/* The events of a turn: each is the text of a server-sent event, numbered from 1. */
struct turn_events {
    pthread_mutex_t lock; /* guards this paragraph */
    pthread_cond_t room;  /* a viewer has taken events */
    struct llm_ring ring;
    int64_t n_bytes;     /* ever added */
    int64_t n_taken;     /* of them, taken by the slowest viewer that is waited for; n_bytes without one */
    int64_t late_before; /* viewers that have taken less made the turn wait for too long; 0: none is marked yet */
    bool is_ended, is_posted;

    atomic_size_t n_viewers;
    struct viewer *viewers; /* loop thread */
};

struct agent_turn {
    struct agent_turn *next; /* under turns->lock: of all that run, wait or are kept */
    atomic_size_t n_refs;
    struct agent_turns *turns; /* borrowed */
    struct arena *arena;       /* owned: the copies in job and caller, later the end */
    struct agent_turn_job job;
    struct caller caller;
    struct agent_turn_client client;
    _Atomic int64_t id; /* of its row; 0: not stored yet */
    char uuid[UUID_SIZE];
    atomic_bool is_cancelled;
    bool is_active;            /* under turns->lock: runs or waits */
    int64_t ended_ms;          /* under turns->lock: clock_mono_ms(), once it is not active */
    pthread_mutex_t emit_lock; /* one event at a time; the loop never takes it */
    bool was_shown;            /* under emit_lock: on_event was called */
    bool is_stopped;           /* by the end of the service */
    struct agent_turn_end end; /* turn's thread, until on_end was called */
    struct err error;
    struct turn_events events;
};

struct agent_turns {
    struct agent_turns_config config;
    struct turn_pool *pool; /* owned; NULL without a service */
    pthread_mutex_t lock;   /* guards this paragraph */
    struct agent_turn *first;
    size_t n_kept;
    atomic_bool is_leaving; /* no turn begins any more */

    struct viewer *viewers; /* loop thread: all */
    struct viewer *idle;    /* loop thread: of sessions without a turn */
    bool has_ended_streams; /* loop thread */
};

/* ---- turn_run.c: on the turn's thread ---- */

void turn_run(struct agent_turn *turn);

/* ---- turn_events.c ---- */

void turn_events_init(struct turn_events *events);
void turn_events_clear(struct turn_events *events);
/* Turn's thread: {"type": type, member: text, more_name: more}; member NULL: the type alone; more_name NULL: no more.
 */
struct turn_event {
    const char *type, *member, *more_name, *more;
    struct slice text;
    bool is_failure; /* the client of a turn without any other event is not shown it, but gets the error in on_end */
};
void turn_emit(struct agent_turn *turn, const struct turn_event *event);
/* The last event was emitted. */
void turn_events_end(struct agent_turn *turn);
/* Loop thread: a turn of the session has begun; its viewers follow it. */
void turn_events_begin(void *turn);

/* ---- turns.c ---- */

/* The turn is stored: from now on the session's next turn may begin. Before the turn's last events, so that a client
 * that has seen them is not refused. */
void turns_release(struct agent_turn *turn);
/* The turn of the session that is active, else the one that ended last, if it is kept. A reference. */
struct agent_turn *turns_latest(struct agent_turns *turns, const char *session_id);
