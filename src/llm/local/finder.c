#include "llm/local/finder.h"

#include "base/clock.h"
#include "base/cond.h"
#include "base/limits.h"
#include "base/pool.h"
#include "os/peer.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

enum { ANSWER_BYTES = 4 << 20 }; /* a list of models may be long */

struct probing {
    struct llm_finder *finder;
    size_t place;
    uint16_t port;
    int64_t wait_ms;
};

struct llm_finder {
    struct settings *settings; /* borrowed */
    struct pool *pool;         /* owned */
    struct peer_kernel kernel;
    struct probing probing[LLM_N_PROBES]; /* the parts of the running search */
    pthread_mutex_t lock;                 /* guards the members below */
    pthread_cond_t is_over;
    size_t n_running;
    int64_t good_until_ms; /* clock_mono_ms() */
    struct llm_found found;
};

/* ---- one search ---- */

static bool is_trusted(struct peer_kernel *kernel, uint16_t port, bool *ret_is_foreign)
{
    struct peer_owner owner;

    if (peer_listener(kernel, port, &owner) < 0)
        return false;
    *ret_is_foreign = owner.uid != geteuid() && owner.uid != 0;
    return !*ret_is_foreign;
}

int llm_finder_check(struct llm_finder *f, uint16_t port, struct err *e)
{
    bool is_foreign = false;

    if (is_trusted(&f->kernel, port, &is_foreign))
        return 0;
    return err_set(e, -EAGAIN, "PROVIDER_UNAVAILABLE",
                   is_foreign ? "At 127.0.0.1:%u another user's program listens now, which is sent nothing."
                              : "Nothing listens at 127.0.0.1:%u any more.",
                   port);
}

static bool request(const struct llm_probe *probe, uint16_t port, int64_t wait_ms)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct http_call_request get = { .method = "GET",
                                           .url = arena_printf(a, "http://127.0.0.1:%u%s", port, probe->path),
                                           .connect_ms = wait_ms,
                                           .total_ms = wait_ms,
                                           .max_reply = ANSWER_BYTES };
    struct http_answer answer = { 0 };

    return http_call(&get, a, NULL, &answer, NULL) == 0 && llm_probe_knows(probe, &answer, a);
}

static void end_one(const struct probing *p, bool is_there, bool is_foreign)
{
    struct llm_finder *f = p->finder;

    pthread_mutex_lock(&f->lock);
    f->found.ports[p->place] = is_there ? p->port : 0;
    f->found.foreign[p->place] = is_foreign ? p->port : 0;
    if (--f->n_running == 0)
        pthread_cond_broadcast(&f->is_over);
    pthread_mutex_unlock(&f->lock);
}

static void run_one(void *arg)
{
    const struct probing *p = arg;
    bool is_foreign = false;
    bool is_there =
        is_trusted(&p->finder->kernel, p->port, &is_foreign) && request(&llm_probes[p->place], p->port, p->wait_ms);

    end_one(p, is_there, is_foreign);
}

/* Called under the lock; releases the lock while the probes are submitted. */
static void begin(struct llm_finder *f, int64_t wait_ms)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    size_t n;
    const char *const *ports = settings_list(f->settings, a, SETTING_LLM_LOCAL_PORTS, &n);

    f->n_running = LLM_N_PROBES;
    f->good_until_ms = clock_mono_ms() + settings_ms(f->settings, SETTING_LLM_FIND_LOCAL_S);
    for (size_t i = 0; i < LLM_N_PROBES; i++)
        f->probing[i] = (struct probing){ f, i, llm_probe_port(&llm_probes[i], ports), wait_ms };
    pthread_mutex_unlock(&f->lock);
    for (size_t i = 0; i < LLM_N_PROBES; i++)
        if (pool_submit(f->pool, run_one, &f->probing[i]) < 0)
            end_one(&f->probing[i], false, false);
    pthread_mutex_lock(&f->lock);
}

/* ---- the finder ---- */

void llm_finder_look(struct llm_finder *f, struct llm_found *ret)
{
    int64_t wait_ms = settings_ms(f->settings, SETTING_LLM_FIND_LOCAL_WAIT_S),
            until_us = clock_mono_us() + wait_ms * 1000;

    *ret = (struct llm_found){ { 0 } };
    if (!settings_bool(f->settings, SETTING_LLM_FIND_LOCAL))
        return;
    pthread_mutex_lock(&f->lock);
    if (f->n_running == 0 && clock_mono_ms() >= f->good_until_ms)
        begin(f, wait_ms);
    while (f->n_running > 0 && cond_wait_until(&f->is_over, &f->lock, until_us))
        ;
    *ret = f->found;
    pthread_mutex_unlock(&f->lock);
}

bool llm_finder_waits(struct llm_finder *f)
{
    bool waits;

    if (!settings_bool(f->settings, SETTING_LLM_FIND_LOCAL))
        return false;
    pthread_mutex_lock(&f->lock);
    waits = f->n_running > 0 || clock_mono_ms() >= f->good_until_ms;
    pthread_mutex_unlock(&f->lock);
    return waits;
}

int llm_finder_new(struct settings *settings, struct llm_finder **ret, struct err *e)
{
    const struct pool_config c = { .name = "find", .n_max = LLM_N_PROBES, .max_waiting = LLM_N_PROBES };
    struct llm_finder *f = xcalloc(1, sizeof(*f));
    int r;

    f->settings = settings;
    peer_kernel_init(&f->kernel);
    pthread_mutex_init(&f->lock, NULL);
    cond_init(&f->is_over);
    r = pool_start(&c, &f->pool, e);
    if (r < 0) {
        llm_finder_free(f);
        return r;
    }
    *ret = f;
    return 0;
}

struct llm_finder *llm_finder_free(struct llm_finder *f)
{
    if (!f)
        return NULL;
    f->pool = pool_stop(f->pool);
    peer_kernel_clear(&f->kernel);
    pthread_cond_destroy(&f->is_over);
    pthread_mutex_destroy(&f->lock);
    free(f);
    return NULL;
}
