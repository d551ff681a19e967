/* The questions that wait for a person, and the calls that wait for the answers. Memory only.
 *
 * Embedded in struct identity. Every call is for any thread and holds the board's lock for memory work only; board_wait()
 * blocks, so for workers. What an answer means and where it is stored is consent.c's.
 */
#pragma once

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/uuid.h"
#include "identity/consent.h"
#include <pthread.h>

struct board_question {
    char prompt_id[UUID_SIZE];
    char *app_id, *app_name, *permission;       /* owned */
    char asked_at[TIME_TEXT_SIZE];
    struct board_question *next;
};

/* A call that waits; on its own stack. */
struct board_waiter {
    const char *app_id;
    struct consent_answer *answers;     /* granted or denied is filled in by board_resolve() */
    size_t n;
    bool is_patient;                    /* it will wait: counts for LIMIT_CONSENT_WAITS_PER_APP */
    bool is_over;                       /* the app is gone or reset */
    struct board_waiter *next;
};

struct board {
    pthread_mutex_t lock;
    pthread_cond_t changed;             /* by CLOCK_MONOTONIC */
    struct board_question *questions, **last;   /* oldest first */
    size_t n_questions;
    struct board_waiter *waiters;
    bool is_closing;                    /* nobody waits any more */
    void (*on_change)(void *arg);
    void *on_change_arg;
};

void board_init(struct board *b);
void board_clear(struct board *b);
/* Adds questions for those of the waiter's answers that are open, as one prompt, and the waiter itself.
 * -EAGAIN TOO_MANY_QUESTIONS beyond the limits of the list, of the app and of its waiting calls: then nothing was added. ret_is_new: there is a new question. */
int board_ask(struct board *b, struct board_waiter *w, const char *app_name, bool *ret_is_new, struct err *e) MUST_CHECK;
/* Until every answer is there, wait_ms are over or *is_gone (may be NULL). Takes the waiter off the board. */
void board_wait(struct board *b, struct board_waiter *w, int64_t wait_ms, const atomic_bool *is_gone);
/* Takes the question off and answers who waits. False when nobody asked. */
bool board_resolve(struct board *b, const char *app_id, const char *permission, bool is_allowed);
bool board_has(struct board *b, const char *app_id, const char *permission);
/* The decision is revoked: who waits (for something else too) is told it as not decided, and does not wait for it. */
void board_withdraw(struct board *b, const char *app_id, const char *permission);
/* Takes all questions of an app off; who waits is told nothing is decided. */
void board_remove_app(struct board *b, const char *app_id);
void board_list(struct board *b, struct arena *a, struct consent_questions *ret);
/* Wakes every waiting call so that it looks at its is_gone again. */
void board_poke(struct board *b);
/* From now on no call waits; those that do go on with what is decided. */
void board_end_waits(struct board *b);
/* Calls the listener. Never with a lock held. */
void board_tell(struct board *b);
