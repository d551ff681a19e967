/* Who speaks next: a number of places, and callers who take turns. Of those who wait, the caller whose last turn is
 * longest ago comes first, and of one caller's requests the one that has waited longest; so a long text delays nobody
 * for longer than a sentence. Embedded; any thread.
 *
 *     r = speech_turns_take(&turns, caller, &wait, e);
 *     ...
 *     speech_turns_give(&turns);
 */
#pragma once

#include "net/wait.h"

#include <pthread.h>

enum { SPEECH_CALLERS = 64 }; /* whose last turns are known */

struct speech_turn {
    struct speech_turn *next;
    const char *caller;
};

struct speech_turns {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    size_t n_free, n_waiting;
    struct speech_turn *first; /* in order of arrival */
    uint64_t n_turns;
    struct {
        char name[80];
        uint64_t last_turn; /* 0: never */
    } callers[SPEECH_CALLERS];
};

void speech_turns_init(struct speech_turns *t, size_t n_places);
void speech_turns_clear(struct speech_turns *t);
/* Waits for a place. -EAGAIN OVERLOADED while LIMIT_SPEECH_WAITING requests wait; or as net_wait_left(). */
int speech_turns_take(struct speech_turns *t, const char *caller, const struct net_wait *wait,
                      struct err *e) MUST_CHECK;
void speech_turns_give(struct speech_turns *t);
