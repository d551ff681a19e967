#include "speech/turns.h"

#include "base/clock.h"
#include "base/cond.h"
#include "base/limits.h"

#include <stdio.h>
#include <string.h>

enum { LOOK_MS = 50 }; /* interval at which a request looks at its flags */

void speech_turns_init(struct speech_turns *t, size_t n_places)
{
    *t = (struct speech_turns){ .n_free = n_places };
    pthread_mutex_init(&t->lock, NULL);
    cond_init(&t->changed);
}

void speech_turns_clear(struct speech_turns *t)
{
    pthread_cond_destroy(&t->changed);
    pthread_mutex_destroy(&t->lock);
}

/* The place in `callers` of this caller; a caller who is not there gets the one that was used longest ago. */
static size_t place_of(const struct speech_turns *t, const char *caller, bool *ret_is_known)
{
    size_t oldest = 0;

    *ret_is_known = true;
    for (size_t i = 0; i < SPEECH_CALLERS; i++) {
        if (t->callers[i].last_turn > 0 && strncmp(t->callers[i].name, caller, sizeof(t->callers[i].name) - 1) == 0)
            return i;
        if (t->callers[i].last_turn < t->callers[oldest].last_turn)
            oldest = i;
    }
    *ret_is_known = false;
    return oldest;
}

static uint64_t last_turn_of(const struct speech_turns *t, const char *caller)
{
    bool is_known;
    size_t place = place_of(t, caller, &is_known);

    return is_known ? t->callers[place].last_turn : 0;
}

static const struct speech_turn *next_of(const struct speech_turns *t)
{
    const struct speech_turn *best = t->first;
    uint64_t best_turn = best ? last_turn_of(t, best->caller) : 0;

    for (const struct speech_turn *at = best ? best->next : NULL; at && best_turn > 0; at = at->next) {
        uint64_t turn = last_turn_of(t, at->caller);

        if (turn < best_turn) {
            best = at;
            best_turn = turn;
        }
    }
    return best;
}

static void note_turn(struct speech_turns *t, const char *caller)
{
    bool is_known;
    size_t place = place_of(t, caller, &is_known);

    snprintf(t->callers[place].name, sizeof(t->callers[place].name), "%s", caller);
    t->callers[place].last_turn = ++t->n_turns;
}

static void join(struct speech_turns *t, struct speech_turn *turn)
{
    struct speech_turn **at = &t->first;

    while (*at)
        at = &(*at)->next;
    *at = turn;
    t->n_waiting++;
}

static void leave(struct speech_turns *t, struct speech_turn *turn)
{
    struct speech_turn **at = &t->first;

    while (*at && *at != turn)
        at = &(*at)->next;
    *at = turn->next;
    t->n_waiting--;
}

/* Waits with the lock held. */
static int await(struct speech_turns *t, const struct speech_turn *turn, const struct net_wait *wait, struct err *e)
{
    while (t->n_free == 0 || next_of(t) != turn) {
        int64_t left_ms = net_wait_left(wait, e);

        if (left_ms < 0)
            return (int)left_ms;
        cond_wait_until(&t->changed, &t->lock, clock_mono_us() + MIN(left_ms, (int64_t)LOOK_MS) * 1000);
    }
    return 0;
}

int speech_turns_take(struct speech_turns *t, const char *caller, const struct net_wait *wait, struct err *e)
{
    struct speech_turn turn = { .caller = caller };
    int r;

    pthread_mutex_lock(&t->lock);
    if (t->n_waiting >= LIMIT_SPEECH_WAITING) {
        pthread_mutex_unlock(&t->lock);
        return err_set(e, -EAGAIN, "OVERLOADED", "%d requests wait for this voice; try again soon.",
                       LIMIT_SPEECH_WAITING);
    }
    join(t, &turn);
    r = await(t, &turn, wait, e);
    leave(t, &turn);
    if (r == 0) {
        t->n_free--;
        note_turn(t, caller);
    }
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
    return r;
}

void speech_turns_give(struct speech_turns *t)
{
    pthread_mutex_lock(&t->lock);
    t->n_free++;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
}
