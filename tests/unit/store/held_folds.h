/* Holds up the connections that other threads open, so a writer's folds beside changes.
 *
 *     held_folds_begin();                              before the log becomes long
 *     held_folds_await();                              a fold has begun
 *     held_folds_pass();                               it goes on
 *     held_folds_end();                                all go on
 */
#pragma once

#include "../wait.h"

#include <pthread.h>
#include <semaphore.h>
#include <sqlite3.h>
#include <stdatomic.h>

static pthread_t held_folds_exempt;
static sem_t held_folds_begun, held_folds_may_go_on;
static atomic_bool held_folds_are_over;

static inline int held_folds_wait(sem_t *sem)
{
    struct timespec end;

    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += WAIT_MS / 1000;
    return sem_timedwait(sem, &end);
}

static inline int held_folds_on_open(sqlite3 *db, char **ret_text, const struct sqlite3_api_routines *api)
{
    if (pthread_equal(pthread_self(), held_folds_exempt))
        return SQLITE_OK;
    sem_post(&held_folds_begun);
    if (held_folds_wait(&held_folds_may_go_on) < 0)
        return SQLITE_ERROR;
    if (atomic_load(&held_folds_are_over))
        sem_post(&held_folds_may_go_on);
    return SQLITE_OK;
}

static inline void held_folds_begin(void)
{
    held_folds_exempt = pthread_self();
    atomic_store(&held_folds_are_over, false);
    sem_init(&held_folds_begun, 0, 0);
    sem_init(&held_folds_may_go_on, 0, 0);
    sqlite3_auto_extension((void (*)(void))held_folds_on_open);
}

static inline void held_folds_await(void)
{
    assert_int_equal(held_folds_wait(&held_folds_begun), 0);
}

static inline void held_folds_pass(void)
{
    sem_post(&held_folds_may_go_on);
}

/* Before the writer is stopped, whose thread may wait here. */
static inline void held_folds_end(void)
{
    sqlite3_reset_auto_extension();
    atomic_store(&held_folds_are_over, true);
    held_folds_pass();
}
