/* The work after an app's end that must not run on the loop: launching the app again, ending its grants. */
#include "apps/private.h"

#include "base/clock.h"
#include "base/log.h"
#include "identity/consent.h"

enum { CHORES_RETRY_MS = 200 }; /* after the pool had no room */

static struct app_slot *next_unreported(struct apps *apps)
{
    struct app_slot *slot = apps->slots;

    while (slot && !slot->is_end_unreported)
        slot = slot->next;
    return slot;
}

static struct app_slot *next_due(struct apps *apps, int64_t now_ms)
{
    struct app_slot *slot = apps->slots;

    while (slot && !(slot->restart_at_ms && slot->restart_at_ms <= now_ms))
        slot = slot->next;
    return slot;
}

/* Handles one slot at a time: the list may change while the mutex is not held. */
static void end_grants(struct apps *apps)
{
    char app_id[UUID_SIZE];
    struct app_slot *slot;
    struct err e = { 0 };

    while ((slot = next_unreported(apps))) {
        slot->is_end_unreported = false;
        memcpy(app_id, slot->app_id, sizeof(app_id));
        pthread_mutex_unlock(&apps->mutex);
        if (consent_app_stopped(apps->config.identity, app_id, &e) < 0)
            log_debug("apps", NULL, "the grants of a stopped app stay until the next start: %s", e.text);
        pthread_mutex_lock(&apps->mutex);
    }
}

static void launch_due(struct apps *apps)
{
    struct app_slot *slot;
    struct err e = { 0 };

    while (!apps->is_closing && (slot = next_due(apps, clock_mono_ms()))) {
        slot->restart_at_ms = 0;
        apps->n_launching++;
        pthread_mutex_unlock(&apps->mutex);
        if (app_launch(slot, &e) < 0)
            log_debug("apps", NULL, "an app was not started again: %s", e.text);
        pthread_mutex_lock(&apps->mutex);
        apps->n_launching--;
        pthread_cond_broadcast(&apps->changed);
    }
}

static void do_chores(void *arg)
{
    struct apps *apps = arg;

    pthread_mutex_lock(&apps->mutex);
    end_grants(apps);
    launch_due(apps);
    pthread_mutex_unlock(&apps->mutex);
    chores_schedule(apps);
}

void chores_on_time(void *arg)
{
    struct apps *apps = arg;

    if (pool_submit(apps->config.pool, do_chores, apps) == -EAGAIN)
        loop_timer_set(apps->chores, CHORES_RETRY_MS);
}

/* Milliseconds until the next chore; -1 when there is none. */
static int64_t until_next(struct apps *apps)
{
    int64_t now_ms = clock_mono_ms(), wait_ms = -1;

    if (next_unreported(apps))
        return 0;
    for (struct app_slot *slot = apps->slots; slot; slot = slot->next) {
        int64_t left_ms = MAX(slot->restart_at_ms - now_ms, (int64_t)0);

        if (slot->restart_at_ms && (wait_ms < 0 || left_ms < wait_ms))
            wait_ms = left_ms;
    }
    return wait_ms;
}

static void schedule_on_loop(void *arg)
{
    struct apps *apps = arg;
    int64_t wait_ms;

    if (!apps->chores)
        return;
    pthread_mutex_lock(&apps->mutex);
    wait_ms = apps->is_closing ? -1 : until_next(apps);
    pthread_mutex_unlock(&apps->mutex);
    if (wait_ms >= 0)
        loop_timer_set(apps->chores, wait_ms);
}

void chores_schedule(struct apps *apps)
{
    loop_post(apps->config.loop, schedule_on_loop, apps);
}
