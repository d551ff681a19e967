#include "face/attempts.h"

#include "base/hash.h"
#include "base/memory.h"

#include <pthread.h>
#include <stdlib.h>

enum { SLOTS = 4096, KEY_BYTES = 16 };

/* Generic cell rate algorithm: free_ms is when all attempts of the slot would have been spread over their intervals. */
struct attempts {
    int64_t burst_ms, interval_ms;
    unsigned char key[KEY_BYTES];
    pthread_mutex_t lock;
    int64_t free_ms[SLOTS]; /* guarded by lock */
};

struct attempts *attempts_new(int64_t n_at_once, int64_t interval_ms)
{
    struct attempts *a = xcalloc(1, sizeof(*a));

    a->interval_ms = interval_ms;
    a->burst_ms = (n_at_once - 1) * interval_ms;
    random_bytes(a->key, sizeof(a->key));
    pthread_mutex_init(&a->lock, NULL);
    return a;
}

struct attempts *attempts_free(struct attempts *a)
{
    if (a)
        pthread_mutex_destroy(&a->lock);
    free(a);
    return NULL;
}

static int64_t *slot_of(struct attempts *a, struct slice key)
{
    unsigned char hash[HASH_BYTES];

    hash_blake2b(key, (struct slice){ (const char *)a->key, sizeof(a->key) }, hash);
    return &a->free_ms[(hash[0] | hash[1] << 8) % SLOTS];
}

int attempts_take(struct attempts *a, struct slice key, int64_t now_ms, struct err *e)
{
    int64_t *slot = slot_of(a, key), wait_ms;

    pthread_mutex_lock(&a->lock);
    wait_ms = MAX(*slot, now_ms) - now_ms - a->burst_ms;
    if (wait_ms <= 0)
        *slot = MAX(*slot, now_ms) + a->interval_ms;
    pthread_mutex_unlock(&a->lock);
    if (wait_ms <= 0)
        return 0;
    if (e)
        e->retry_after_ms = wait_ms;
    return err_set(e, -EBUSY, "RATE_LIMIT", "Too many attempts: try again in %lld seconds.",
                   (long long)(wait_ms + 999) / 1000);
}

void attempts_give_back(struct attempts *a, struct slice key)
{
    int64_t *slot = slot_of(a, key);

    pthread_mutex_lock(&a->lock);
    *slot -= a->interval_ms;
    pthread_mutex_unlock(&a->lock);
}
