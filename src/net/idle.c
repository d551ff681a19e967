#include "net/idle.h"

#include "base/clock.h"
#include "base/limits.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct idle {
    CURLM *multi; /* owned */
    char *peer;   /* owned */
    const struct guard *guard;
    int64_t since_ms;
};

static struct {
    pthread_mutex_t lock;
    struct idle items[LIMIT_CALL_IDLE]; /* the oldest first */
    size_t n;
} kept = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* The caller holds the lock. */
static struct idle take_at(size_t at)
{
    struct idle taken = kept.items[at];

    kept.n--;
    memmove(&kept.items[at], &kept.items[at + 1], (kept.n - at) * sizeof(taken));
    return taken;
}

/* Without the lock: closing a TLS connection sends bytes. */
static void close_one(struct idle *idle)
{
    if (idle->multi)
        curl_multi_cleanup(idle->multi);
    free(idle->peer);
}

static CURLM *new_multi(void)
{
    CURLM *multi = curl_multi_init();

    curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, 1L);
    return multi;
}

CURLM *idle_take(const char *peer, const struct guard *guard)
{
    struct idle found = { 0 };
    size_t i;

    pthread_mutex_lock(&kept.lock);
    for (i = kept.n; i > 0; i--)
        if (kept.items[i - 1].guard == guard && strcmp(kept.items[i - 1].peer, peer) == 0)
            break;
    if (i > 0)
        found = take_at(i - 1);
    pthread_mutex_unlock(&kept.lock);
    free(found.peer);
    return found.multi ? found.multi : new_multi();
}

void idle_give(CURLM *multi, const char *peer, const struct guard *guard)
{
    struct idle idle = { multi, xstrdup(peer), guard, clock_mono_ms() }, oldest = { 0 };

    pthread_mutex_lock(&kept.lock);
    if (kept.n == LIMIT_CALL_IDLE)
        oldest = take_at(0);
    kept.items[kept.n++] = idle;
    pthread_mutex_unlock(&kept.lock);
    close_one(&oldest);
}

static bool take_old(int64_t before_ms, struct idle *ret)
{
    bool has_one;

    pthread_mutex_lock(&kept.lock);
    has_one = kept.n > 0 && kept.items[0].since_ms <= before_ms;
    if (has_one)
        *ret = take_at(0);
    pthread_mutex_unlock(&kept.lock);
    return has_one;
}

void idle_close(int64_t age_ms)
{
    int64_t before_ms = clock_mono_ms() - age_ms;
    struct idle old;

    while (take_old(before_ms, &old))
        close_one(&old);
}
