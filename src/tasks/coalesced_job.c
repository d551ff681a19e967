#include "tasks/private.h"

void coalesced_job_init(struct coalesced_job *d, struct tasks *t, void (*fn)(struct tasks *t, void *arg), void *arg)
{
    *d = (struct coalesced_job){ .tasks = t, .fn = fn, .arg = arg };
}

/* Is there a round to run? If not, the job ends. */
static bool take_round(struct coalesced_job *d)
{
    struct tasks *t = d->tasks;
    bool is_wanted;

    pthread_mutex_lock(&t->mutex);
    is_wanted = d->is_running = d->is_wanted && !t->is_stopping;
    d->is_wanted = false;
    pthread_mutex_unlock(&t->mutex);
    return is_wanted;
}

static void run_coalesced_job(void *arg)
{
    struct coalesced_job *d = arg;

    while (take_round(d))
        d->fn(d->tasks, d->arg);
}

void coalesced_job_request(struct coalesced_job *d)
{
    struct tasks *t = d->tasks;
    bool has_to_start;

    pthread_mutex_lock(&t->mutex);
    has_to_start = t->is_serving && !t->is_stopping && !d->is_running;
    d->is_wanted = true;
    d->is_running = d->is_running || has_to_start;
    pthread_mutex_unlock(&t->mutex);
    if (!has_to_start || task_submit(t, run_coalesced_job, d))
        return;
    pthread_mutex_lock(&t->mutex);
    d->is_running = false;
    pthread_mutex_unlock(&t->mutex);
}

void coalesced_job_resume(struct coalesced_job *d)
{
    bool is_wanted;

    pthread_mutex_lock(&d->tasks->mutex);
    is_wanted = d->is_wanted;
    pthread_mutex_unlock(&d->tasks->mutex);
    if (is_wanted)
        coalesced_job_request(d);
}
