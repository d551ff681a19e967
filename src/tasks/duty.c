#include "tasks/private.h"

void task_duty_init(struct task_duty *d, struct tasks *t, void (*fn)(struct tasks *t, void *arg), void *arg)
{
    *d = (struct task_duty){ .tasks = t, .fn = fn, .arg = arg };
}

/* Is there a round to run? If not the duty rests. */
static bool take_round(struct task_duty *d)
{
    struct tasks *t = d->tasks;
    bool is_wanted;

    pthread_mutex_lock(&t->mutex);
    is_wanted = d->is_running = d->is_wanted && !t->is_stopping;
    d->is_wanted = false;
    pthread_mutex_unlock(&t->mutex);
    return is_wanted;
}

static void run_duty(void *arg)
{
    struct task_duty *d = arg;

    while (take_round(d))
        d->fn(d->tasks, d->arg);
}

void task_duty_want(struct task_duty *d)
{
    struct tasks *t = d->tasks;
    bool has_to_start;

    pthread_mutex_lock(&t->mutex);
    has_to_start = t->is_serving && !t->is_stopping && !d->is_running;
    d->is_wanted = true;
    d->is_running = d->is_running || has_to_start;
    pthread_mutex_unlock(&t->mutex);
    if (!has_to_start || task_submit(t, run_duty, d))
        return;
    pthread_mutex_lock(&t->mutex);
    d->is_running = false;
    pthread_mutex_unlock(&t->mutex);
}

void task_duty_resume(struct task_duty *d)
{
    bool is_wanted;

    pthread_mutex_lock(&d->tasks->mutex);
    is_wanted = d->is_wanted;
    pthread_mutex_unlock(&d->tasks->mutex);
    if (is_wanted)
        task_duty_want(d);
}
