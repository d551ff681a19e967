/* The questions that wait for a person, and the calls that wait for the answers. Memory only.
 *
 * Embedded in struct identity. Any thread may make every call; the queue's lock is held for memory work only.
 * consent_queue_wait() blocks, so it is for workers. consent.c gives the answers their meaning and stores them.
 */
#pragma once

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/uuid.h"
#include "identity/consent.h"
#include <pthread.h>

struct queued_question {
    char prompt_id[UUID_SIZE];
    char *app_id, *app_name, *permission; /* owned */
    char requested_at[TIME_TEXT_SIZE];
    struct queued_question *next;
};

/* A waiting call; lives on that call's stack. */
struct consent_waiter {
    const char *app_id;
    struct consent_answer *answers; /* granted or denied is filled in by consent_queue_resolve() */
    size_t n;
    bool is_patient;       /* the call will wait: counts for LIMIT_CONSENT_WAITS_PER_APP */
    bool is_over;          /* the app is gone or reset */
    uint64_t seen_changes; /* consent_queue_changes() before the answers were read from the store */
    struct consent_waiter *next;
};

struct queue {
    pthread_mutex_t lock;
    pthread_cond_t changed;                    /* on CLOCK_MONOTONIC */
    struct queued_question *questions, **last; /* oldest first */
    size_t n_questions;
    struct consent_waiter *waiters;
    bool is_closing;    /* no call waits any more */
    uint64_t n_changes; /* decisions that were reported to the queue */
    void (*on_change)(void *arg);
    void *on_change_arg;
};

void consent_queue_init(struct queue *b);
void consent_queue_clear(struct queue *b);
/* Adds questions for the waiter's open answers, as one prompt, and the waiter itself. -EAGAIN TOO_MANY_QUESTIONS beyond
 * the limits of the list, of the app and of its waiting calls, -ESTALE when a decision was reported since
 * w->seen_changes: then nothing was added. ret_is_new: there is a new question. */
int consent_queue_request(struct queue *b, struct consent_waiter *w, const char *app_name, bool *ret_is_new,
                          struct err *e) MUST_CHECK;
uint64_t consent_queue_changes(struct queue *b);
/* Waits until every answer is there, wait_ms are over or *is_gone (may be NULL). Removes the waiter from the queue. */
void consent_queue_wait(struct queue *b, struct consent_waiter *w, int64_t wait_ms, const atomic_bool *is_gone);
/* Removes the question and answers waiting calls. False when there was no such question. */
bool consent_queue_resolve(struct queue *b, const char *app_id, const char *permission, bool is_allowed);
bool consent_queue_has(struct queue *b, const char *app_id, const char *permission);
/* The decision is revoked: waiting calls of the app get the permission as not decided and no longer wait for it. */
void consent_queue_withdraw(struct queue *b, const char *app_id, const char *permission);
/* Removes all questions of an app; its waiting calls return with nothing decided. */
void consent_queue_remove_app(struct queue *b, const char *app_id);
void consent_queue_list(struct queue *b, struct arena *a, struct consent_questions *ret);
/* Wakes every waiting call so that it checks its is_gone again. */
void consent_queue_poke(struct queue *b);
/* From now on no call waits; waiting calls continue with the decisions made so far. */
void consent_queue_end_waits(struct queue *b);
/* Calls the listener, with no lock held. */
void consent_queue_notify(struct queue *b);
