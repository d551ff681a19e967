/* Apps in Custom Mode that do not answer: their rows stay where they are, and nothing announces that the app listens
 * again. So the sweep comes sooner than otherwise, later each time, and from the beginning when an app has changed. */
#include "tasks/private.h"

#include "base/limits.h"

static void start_timer(void *tasks)
{
    struct tasks *t = tasks;
    int64_t delay_ms;

    pthread_mutex_lock(&t->mutex);
    delay_ms = t->away.delay_ms;
    pthread_mutex_unlock(&t->mutex);
    if (t->away_timer)
        loop_timer_set(t->away_timer, delay_ms);
}

void task_away_note(struct tasks *t)
{
    struct task_away *away = &t->away;
    bool is_first;

    pthread_mutex_lock(&t->mutex);
    is_first = !away->is_waiting;
    if (is_first)
        away->delay_ms = MIN(MAX(2 * away->delay_ms, (int64_t)LIMIT_APP_AWAY_FIRST_MS), (int64_t)LIMIT_APP_AWAY_MS);
    away->is_waiting = true;
    pthread_mutex_unlock(&t->mutex);
    if (is_first)
        loop_post(t->config.loop, start_timer, t);
}

void task_away_run(struct tasks *t, void *arg)
{
    pthread_mutex_lock(&t->mutex);
    t->away.is_waiting = false;
    pthread_mutex_unlock(&t->mutex);
    coalesced_job_request(&t->sweep);
}

void task_away_reset(struct tasks *t)
{
    pthread_mutex_lock(&t->mutex);
    t->away.delay_ms = 0;
    pthread_mutex_unlock(&t->mutex);
}
