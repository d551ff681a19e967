#include "speech/pool.h"

#include "base/clock.h"
#include "speech/turns.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct idle_worker {
    struct speech_worker *worker;
    int64_t since_ms;
};

struct speech_pool {
    struct speech_pool_config config;
    char *folder; /* owned */
    struct speech_turns turns;
    pthread_mutex_t lock;
    struct idle_worker idle[LIMIT_SPEECH_WORKERS]; /* longest idle first */
    size_t n_idle;
    char version[SPEECH_VERSION_SIZE];
    char *list; /* owned: what a worker listed; NULL: none was asked yet */
};

/* ---- workers ---- */

static struct net_wait wait_of(const struct speech_pool *p, const atomic_bool *is_gone)
{
    return net_wait_of(LIMIT_SPEECH_SENTENCE_MS, is_gone, p->config.is_leaving);
}

static struct speech_worker *pop_idle(struct speech_pool *p)
{
    struct speech_worker *w = NULL;

    pthread_mutex_lock(&p->lock);
    if (p->n_idle > 0)
        w = p->idle[--p->n_idle].worker;
    pthread_mutex_unlock(&p->lock);
    return w;
}

/* An idle worker for this voice; NULL: none. Those that do not suit are ended. */
static struct speech_worker *take_idle(struct speech_pool *p, const char *voice)
{
    struct speech_worker *w = pop_idle(p);

    while (w && !speech_worker_suits(w, voice)) {
        speech_worker_stop(w);
        w = pop_idle(p);
    }
    return w;
}

static int start_worker(struct speech_pool *p, const struct net_wait *wait, struct speech_worker **ret, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    int r = speech_worker_start(p->config.supervisor, speech_engine_program(p->folder, p->config.engine, a),
                                p->config.engine, wait, ret, e);

    if (r < 0)
        return r;
    pthread_mutex_lock(&p->lock);
    snprintf(p->version, sizeof(p->version), "%s", speech_worker_version(*ret));
    pthread_mutex_unlock(&p->lock);
    return 0;
}

static int take_worker(struct speech_pool *p, const char *voice, const struct net_wait *wait,
                       struct speech_worker **ret, struct err *e)
{
    *ret = take_idle(p, voice);
    if (*ret)
        return 0;
    if (!p->config.supervisor)
        return err_set(e, -ENODEV, "SPEECH_UNAVAILABLE", "Only a running service speaks: `hearth serve`.");
    return start_worker(p, wait, ret, e);
}

/* r: of the worker's last request. After a failure its state is unknown. */
static void give_worker(struct speech_pool *p, struct speech_worker *w, int r)
{
    pthread_mutex_lock(&p->lock);
    if (r == 0 && p->n_idle < p->config.n_kept) {
        p->idle[p->n_idle++] = (struct idle_worker){ w, clock_mono_ms() };
        w = NULL;
    }
    pthread_mutex_unlock(&p->lock);
    speech_worker_stop(w);
}

void speech_pool_end_idle(struct speech_pool *p, int64_t before_ms)
{
    struct speech_worker *ended[LIMIT_SPEECH_WORKERS];
    size_t n_ended = 0;

    pthread_mutex_lock(&p->lock);
    while (n_ended < p->n_idle && p->idle[n_ended].since_ms < before_ms) {
        ended[n_ended] = p->idle[n_ended].worker;
        n_ended++;
    }
    p->n_idle -= n_ended;
    memmove(p->idle, p->idle + n_ended, p->n_idle * sizeof(p->idle[0]));
    pthread_mutex_unlock(&p->lock);
    for (size_t i = 0; i < n_ended; i++)
        speech_worker_stop(ended[i]);
}

/* ---- requests ---- */

static int say(struct speech_pool *p, const struct speech_worker_job *job, const atomic_bool *is_gone,
               struct buf *audio, struct speech_frame_done *ret, struct err *e)
{
    const struct net_wait wait = wait_of(p, is_gone);
    struct speech_worker *w = NULL;
    int r = take_worker(p, job->voice, &wait, &w, e);

    if (r < 0)
        return r;
    r = speech_worker_say(w, job, &wait, audio, ret, e);
    give_worker(p, w, r);
    return r < 0 ? r : buf_check(audio, e);
}

int speech_pool_say(struct speech_pool *p, const struct speech_worker_job *job, const char *caller,
                    const atomic_bool *is_gone, struct buf *audio, struct speech_frame_done *ret, struct err *e)
{
    const struct net_wait wait = net_wait_of(LIMIT_LONG_DEADLINE_MS, is_gone, p->config.is_leaving);
    int r = speech_turns_take(&p->turns, caller, &wait, e);

    if (r < 0)
        return r;
    r = say(p, job, is_gone, audio, ret, e);
    speech_turns_give(&p->turns);
    return r;
}

int speech_pool_lend(struct speech_pool *p, const char *caller, const atomic_bool *is_gone, struct speech_worker **ret,
                     struct err *e)
{
    const struct net_wait turn = net_wait_of(LIMIT_LONG_DEADLINE_MS, is_gone, p->config.is_leaving);
    int r = speech_turns_take(&p->turns, caller, &turn, e);
    struct net_wait wait;

    if (r < 0)
        return r;
    wait = wait_of(p, is_gone);
    r = take_worker(p, NULL, &wait, ret, e);
    if (r < 0)
        speech_turns_give(&p->turns);
    return r;
}

void speech_pool_give_back(struct speech_pool *p, struct speech_worker *w, int r)
{
    give_worker(p, w, r);
    speech_turns_give(&p->turns);
}

static int list_voices(struct speech_pool *p, const struct net_wait *wait, struct buf *list, struct err *e)
{
    struct speech_worker *w = NULL;
    int r = speech_turns_take(&p->turns, "", wait, e);

    if (r < 0)
        return r;
    r = take_worker(p, NULL, wait, &w, e);
    if (r == 0) {
        r = speech_worker_list(w, wait, list, e);
        give_worker(p, w, r);
    }
    speech_turns_give(&p->turns);
    return r;
}

static int request_list(struct speech_pool *p, const atomic_bool *is_gone, struct err *e)
{
    const struct net_wait wait = wait_of(p, is_gone);
    struct buf list;
    int r;

    buf_init(&list, LIMIT_SPEECH_LIST);
    r = list_voices(p, &wait, &list, e);
    pthread_mutex_lock(&p->lock);
    if (r == 0 && !p->list)
        p->list = buf_take(&list);
    pthread_mutex_unlock(&p->lock);
    buf_clear(&list);
    return r;
}

static const char *known_list(struct speech_pool *p, struct arena *a)
{
    const char *list;

    pthread_mutex_lock(&p->lock);
    list = arena_strdup(a, p->list);
    pthread_mutex_unlock(&p->lock);
    return list;
}

int speech_pool_voices(struct speech_pool *p, const atomic_bool *is_gone, struct arena *a, struct speech_voices *ret,
                       struct err *e)
{
    const char *list = known_list(p, a);
    int r = list ? 0 : request_list(p, is_gone, e);

    if (r < 0)
        return r;
    *ret = speech_answer_voices(a, slice_of(list ? list : known_list(p, a)));
    return 0;
}

const atomic_bool *speech_pool_is_leaving(const struct speech_pool *p)
{
    return p->config.is_leaving;
}

void speech_pool_version(struct speech_pool *p, char out[SPEECH_VERSION_SIZE])
{
    pthread_mutex_lock(&p->lock);
    memcpy(out, p->version, SPEECH_VERSION_SIZE);
    pthread_mutex_unlock(&p->lock);
}

/* ---- lifetime ---- */

struct speech_pool *speech_pool_new(const struct speech_pool_config *c)
{
    struct speech_pool *p = xcalloc(1, sizeof(*p));

    p->config = *c;
    p->folder = xstrdup(c->folder);
    speech_turns_init(&p->turns, c->n_places > 0 ? c->n_places : MAX(c->n_kept, (size_t)1));
    pthread_mutex_init(&p->lock, NULL);
    return p;
}

struct speech_pool *speech_pool_free(struct speech_pool *p)
{
    if (!p)
        return NULL;
    speech_pool_end_idle(p, INT64_MAX);
    speech_turns_clear(&p->turns);
    pthread_mutex_destroy(&p->lock);
    free(p->list);
    free(p->folder);
    free(p);
    return NULL;
}
