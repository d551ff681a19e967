#include "speech/levels.h"

#include "base/limits.h"
#include "base/util.h"
#include "speech/worker_frames.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static const double most_weight_s = 30;

struct level {
    unsigned char key[HASH_BYTES];
    double power, weight_s; /* weight 0: unused */
    uint64_t last_use;
};

struct speech_levels {
    pthread_mutex_t lock;
    struct level items[LIMIT_SPEECH_LEVELS];
    uint64_t n_uses;
};

struct speech_levels *speech_levels_new(void)
{
    struct speech_levels *l = xcalloc(1, sizeof(*l));

    pthread_mutex_init(&l->lock, NULL);
    return l;
}

struct speech_levels *speech_levels_free(struct speech_levels *l)
{
    if (l)
        pthread_mutex_destroy(&l->lock);
    free(l);
    return NULL;
}

void speech_levels_key(const char *base_url, const char *model, const char *voice, unsigned char out[HASH_BYTES])
{
    const char *const parts[] = { base_url, model, voice };
    struct hash_stream *h = hash_stream_new();

    for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
        hash_stream_add(h, (struct slice){ parts[i], strlen(parts[i]) + 1 }); /* with its NUL, which divides them */
    hash_stream_end(h, out);
}

static struct level *find(struct speech_levels *l, const unsigned char *key)
{
    for (size_t i = 0; i < ARRAY_SIZE(l->items); i++)
        if (l->items[i].weight_s > 0 && memcmp(l->items[i].key, key, HASH_BYTES) == 0)
            return &l->items[i];
    return NULL;
}

/* An unused place, else the one that was used longest ago; both have the lowest number of a use. */
static struct level *new_place(struct speech_levels *l, const unsigned char *key)
{
    struct level *oldest = &l->items[0];

    for (size_t i = 1; i < ARRAY_SIZE(l->items); i++)
        if (l->items[i].last_use < oldest->last_use)
            oldest = &l->items[i];
    *oldest = (struct level){ .power = 0 };
    memcpy(oldest->key, key, HASH_BYTES);
    return oldest;
}

int32_t speech_levels_find(struct speech_levels *l, const unsigned char key[HASH_BYTES])
{
    int32_t loudness = SPEECH_LOUDNESS_UNKNOWN;
    struct level *found;

    pthread_mutex_lock(&l->lock);
    found = find(l, key);
    if (found) {
        found->last_use = ++l->n_uses;
        loudness = (int32_t)lrint(1000 * log10(found->power));
    }
    pthread_mutex_unlock(&l->lock);
    return loudness;
}

void speech_levels_note(struct speech_levels *l, const unsigned char key[HASH_BYTES], int32_t loudness, double seconds)
{
    struct level *level;

    if (loudness < SPEECH_LOUDNESS_MIN || loudness > SPEECH_LOUDNESS_MAX || !(seconds > 0))
        return;
    pthread_mutex_lock(&l->lock);
    level = find(l, key);
    if (!level)
        level = new_place(l, key);
    level->power =
        (level->power * level->weight_s + pow(10, loudness / 1000.0) * seconds) / (level->weight_s + seconds);
    level->weight_s = MIN(level->weight_s + seconds, most_weight_s);
    level->last_use = ++l->n_uses;
    pthread_mutex_unlock(&l->lock);
}
