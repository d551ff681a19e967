#include "speech/cache.h"

#include "base/util.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { N_CHAINS = 1024 };

struct rendering {
    struct rendering *next; /* of its chain */
    struct rendering *newer, *older;
    unsigned char key[HASH_BYTES];
    struct speech_frame_done done;
    size_t n;
    char audio[];
};

struct speech_cache {
    pthread_mutex_t lock;
    struct rendering *chains[N_CHAINS];
    struct rendering *newest, *oldest;
    size_t n_bytes;
};

/* Each text is preceded by its length, so that no two keys are made of the same bytes. */
static void add_text(struct hash_stream *h, struct slice text)
{
    const uint64_t n = text.n;

    hash_stream_add(h, (struct slice){ (const char *)&n, sizeof(n) });
    hash_stream_add(h, text);
}

void speech_cache_key(const struct speech_cache_what *what, unsigned char out[HASH_BYTES])
{
    const int64_t numbers[] = { (int64_t)(what->speed * 1000 + 0.5), what->format };
    struct hash_stream *h = hash_stream_new();

    add_text(h, what->text);
    add_text(h, slice_of(what->caller));
    add_text(h, slice_of(what->engine));
    add_text(h, slice_of(what->version));
    add_text(h, slice_of(what->voice));
    hash_stream_add(h, (struct slice){ (const char *)numbers, sizeof(numbers) });
    hash_stream_end(h, out);
}

static struct rendering **chain_of(struct speech_cache *c, const unsigned char *key)
{
    uint32_t number;

    memcpy(&number, key, sizeof(number));
    return &c->chains[number % N_CHAINS];
}

static struct rendering *find(struct speech_cache *c, const unsigned char *key)
{
    struct rendering *r = *chain_of(c, key);

    while (r && memcmp(r->key, key, HASH_BYTES) != 0)
        r = r->next;
    return r;
}

static size_t size_of(const struct rendering *r)
{
    return sizeof(*r) + r->n;
}

static void unlink_age(struct speech_cache *c, const struct rendering *r)
{
    if (r->newer)
        r->newer->older = r->older;
    else
        c->newest = r->older;
    if (r->older)
        r->older->newer = r->newer;
    else
        c->oldest = r->newer;
}

static void link_newest(struct speech_cache *c, struct rendering *r)
{
    r->newer = NULL;
    r->older = c->newest;
    if (c->newest)
        c->newest->newer = r;
    else
        c->oldest = r;
    c->newest = r;
}

static void drop(struct speech_cache *c, struct rendering *r)
{
    struct rendering **at = chain_of(c, r->key);

    while (*at && *at != r)
        at = &(*at)->next;
    *at = r->next;
    unlink_age(c, r);
    c->n_bytes -= size_of(r);
    free(r);
}

static void trim(struct speech_cache *c, size_t max_bytes)
{
    while (c->oldest && c->n_bytes > max_bytes)
        drop(c, c->oldest);
}

bool speech_cache_find(struct speech_cache *c, const unsigned char key[HASH_BYTES], struct buf *audio,
                       struct speech_frame_done *ret)
{
    struct rendering *r;

    pthread_mutex_lock(&c->lock);
    r = find(c, key);
    if (r) {
        buf_add(audio, r->audio, r->n);
        *ret = r->done;
        unlink_age(c, r);
        link_newest(c, r);
    }
    pthread_mutex_unlock(&c->lock);
    return r != NULL;
}

static struct rendering *rendering_of(const unsigned char *key, struct slice audio,
                                      const struct speech_frame_done *done)
{
    struct rendering *r = xcalloc(1, sizeof(*r) + audio.n);

    memcpy(r->key, key, HASH_BYTES);
    memcpy(r->audio, audio.p, audio.n);
    r->n = audio.n;
    r->done = *done;
    return r;
}

void speech_cache_keep(struct speech_cache *c, const unsigned char key[HASH_BYTES], struct slice audio,
                       const struct speech_frame_done *done, size_t max_bytes)
{
    struct rendering *r, *earlier, **chain;

    if (audio.n > max_bytes || sizeof(*r) > max_bytes - audio.n)
        return;
    r = rendering_of(key, audio, done);
    pthread_mutex_lock(&c->lock);
    earlier = find(c, key);
    if (earlier)
        drop(c, earlier);
    trim(c, max_bytes - size_of(r));
    chain = chain_of(c, key);
    r->next = *chain;
    *chain = r;
    link_newest(c, r);
    c->n_bytes += size_of(r);
    pthread_mutex_unlock(&c->lock);
}

void speech_cache_trim(struct speech_cache *c, size_t max_bytes)
{
    pthread_mutex_lock(&c->lock);
    trim(c, max_bytes);
    pthread_mutex_unlock(&c->lock);
}

struct speech_cache *speech_cache_new(void)
{
    struct speech_cache *c = xcalloc(1, sizeof(*c));

    pthread_mutex_init(&c->lock, NULL);
    return c;
}

struct speech_cache *speech_cache_free(struct speech_cache *c)
{
    if (!c)
        return NULL;
    trim(c, 0);
    pthread_mutex_destroy(&c->lock);
    free(c);
    return NULL;
}
