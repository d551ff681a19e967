#include "backend/postgres/postgres_batch.h"
#include "base/clock.h"
#include "base/cond.h"

#include <stdlib.h>

struct postgres_batch {
    postgres_batch_fn *is_alike;
    pthread_mutex_t lock; /* guards the members below */
    pthread_cond_t changed;
    struct postgres_batched *waiting; /* the oldest first */
    size_t n_running;                 /* statements */
    size_t n_callers;                 /* waiting and in groups */
    size_t n_peak;                    /* the most of them lately: one less with each statement that ends */
};

struct postgres_batch *postgres_batch_new(postgres_batch_fn *is_alike)
{
    struct postgres_batch *b = xcalloc(1, sizeof(*b));

    b->is_alike = is_alike;
    pthread_mutex_init(&b->lock, NULL);
    cond_init(&b->changed);
    return b;
}

struct postgres_batch *postgres_batch_free(struct postgres_batch *b)
{
    if (!b)
        return NULL;
    pthread_cond_destroy(&b->changed);
    pthread_mutex_destroy(&b->lock);
    free(b);
    return NULL;
}

/* --- under the lock --- */

static void append(struct postgres_batch *b, struct postgres_batched *call)
{
    struct postgres_batched **at = &b->waiting;

    while (*at)
        at = &(*at)->next;
    *at = call;
}

static void take(struct postgres_batched **at, struct postgres_batch_group *group)
{
    struct postgres_batched *call = *at;

    *at = call->next;
    call->next = NULL;
    call->is_taken = true;
    group->calls[group->n++] = call;
}

/* The call and the oldest ones like it. */
static void take_group(struct postgres_batch *b, struct postgres_batched *call, struct postgres_batch_group *ret)
{
    struct postgres_batched **at = &b->waiting;

    ret->n = 0;
    while (*at != call)
        at = &(*at)->next;
    take(at, ret);
    for (at = &b->waiting; *at && ret->n < BATCH_MAX;)
        if (b->is_alike(call, *at))
            take(at, ret);
        else
            at = &(*at)->next;
}

/* Statements at the same time share the wait for the disk, which few callers spend most of their time in; with many
 * callers, larger groups save more. */
static bool is_full(const struct postgres_batch *b)
{
    return b->n_running >= (b->n_peak <= BATCH_FEW ? BATCH_FEW : 1);
}

/* --- interface --- */

bool postgres_batch_enter(struct postgres_batch *b, struct postgres_batched *call, struct postgres_batch_group *ret)
{
    int64_t until_us = clock_mono_us() + (int64_t)BATCH_PATIENCE_MS * 1000;
    bool is_mine;

    *call = (struct postgres_batched){ 0 };
    pthread_mutex_lock(&b->lock);
    append(b, call);
    b->n_callers++;
    b->n_peak = MAX(b->n_peak, b->n_callers);
    while (!call->is_taken && is_full(b) && cond_wait_until(&b->changed, &b->lock, until_us))
        ;
    is_mine = !call->is_taken;
    if (is_mine) {
        take_group(b, call, ret);
        b->n_running++;
    }
    while (!is_mine && !call->is_done)
        pthread_cond_wait(&b->changed, &b->lock);
    pthread_mutex_unlock(&b->lock);
    return is_mine;
}

void postgres_batch_leave(struct postgres_batch *b, struct postgres_batch_group *group)
{
    pthread_mutex_lock(&b->lock);
    b->n_running--;
    b->n_callers -= group->n;
    b->n_peak = MAX(b->n_peak - 1, b->n_callers);
    for (size_t i = 0; i < group->n; i++)
        group->calls[i]->is_done = true;
    pthread_cond_broadcast(&b->changed);
    pthread_mutex_unlock(&b->lock);
}
