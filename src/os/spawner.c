#include "os/spawner.h"

#include "base/limits.h"
#include "base/queue.h"
#include "base/thread.h"

#include <pthread.h>

struct spawner_job {
    const struct spawn_plan *plan;
    struct spawned *ret;
    struct err *e;
    int r;
    bool is_done; /* guarded by the spawner's lock */
};

struct spawner {
    pthread_t thread;
    struct queue *jobs;   /* borrowed from the callers, which wait */
    pthread_mutex_t lock; /* guards is_done of every job */
    pthread_cond_t done;
};

static void *spawner_main(void *arg)
{
    struct spawner *s = arg;
    void *item;

    while (queue_pop(s->jobs, -1, &item) == 0) {
        struct spawner_job *job = item;

        job->r = spawn_process(job->plan, job->ret, job->e);
        pthread_mutex_lock(&s->lock);
        job->is_done = true;
        pthread_cond_broadcast(&s->done);
        pthread_mutex_unlock(&s->lock);
    }
    return NULL;
}

static struct spawner *spawner_free(struct spawner *s)
{
    pthread_cond_destroy(&s->done);
    pthread_mutex_destroy(&s->lock);
    queue_free(s->jobs);
    free(s);
    return NULL;
}

int spawner_start(struct spawner **ret, struct err *e)
{
    struct spawner *s = xcalloc(1, sizeof(*s));
    int r;

    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->done, NULL);
    s->jobs = queue_new(LIMIT_SPAWNS_WAITING);
    r = thread_start(&s->thread, "spawner", spawner_main, s);
    if (r < 0) {
        spawner_free(s);
        return err_errno(e, -r, "cannot start the thread that starts programs");
    }
    *ret = s;
    return 0;
}

struct spawner *spawner_stop(struct spawner *s)
{
    if (!s)
        return NULL;
    queue_close(s->jobs);
    pthread_join(s->thread, NULL);
    return spawner_free(s);
}

int spawner_run(struct spawner *s, const struct spawn_plan *plan, struct spawned *ret, struct err *e)
{
    struct spawner_job job = { .plan = plan, .ret = ret, .e = e };
    int r = queue_push(s->jobs, &job);

    if (r == -EAGAIN)
        return err_set(e, r, "OVERLOADED", "Too many programs are being started; try again in a second.");
    if (r < 0)
        return err_set(e, r, "SHUTTING_DOWN", "The service is ending and starts no more programs.");
    pthread_mutex_lock(&s->lock);
    while (!job.is_done)
        pthread_cond_wait(&s->done, &s->lock);
    pthread_mutex_unlock(&s->lock);
    return job.r;
}
