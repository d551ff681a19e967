#include "speech/voice_lists.h"

#include "base/clock.h"
#include "base/limits.h"
#include "speech/remote.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { FAILED_MS = 10000 };

struct kept_list {
    struct arena *arena; /* owned: everything below; NULL: unused */
    const char *name, *base_url;
    struct speech_voice_list voices;
    int64_t until_ms, used_ms;
    int r; /* of the last request */
    const char *code, *text;
};

struct speech_voice_lists {
    pthread_mutex_t lock;
    struct kept_list kept[LIMIT_LLM_ACCOUNTS];
};

/* ---- under the lock ---- */

static struct kept_list *find(struct speech_voice_lists *l, const struct speech_account *acc)
{
    for (size_t i = 0; i < ARRAY_SIZE(l->kept); i++)
        if (l->kept[i].arena && strcmp(l->kept[i].name, acc->name) == 0 &&
            strcmp(l->kept[i].base_url, acc->base_url) == 0)
            return &l->kept[i];
    return NULL;
}

/* An unused place, else the one that was used longest ago. */
static struct kept_list *place_for(struct speech_voice_lists *l, const struct speech_account *acc)
{
    struct kept_list *found = find(l, acc), *oldest = &l->kept[0];

    for (size_t i = 0; !found && i < ARRAY_SIZE(l->kept); i++)
        if (l->kept[i].used_ms < oldest->used_ms)
            oldest = &l->kept[i];
    return found ? found : oldest;
}

static struct speech_voice_list copy_of(const struct speech_voice_list *from, struct arena *a)
{
    struct speech_voice *items = arena_array(a, from->n + 1, sizeof(*items));

    for (size_t i = 0; i < from->n; i++)
        items[i] = (struct speech_voice){ arena_strdup(a, from->items[i].id), arena_strdup(a, from->items[i].name),
                                          arena_strdup(a, from->items[i].language) };
    return (struct speech_voice_list){ items, from->n };
}

/* After a failure the voices of before stay. */
static void keep(struct speech_voice_lists *l, const struct speech_account *acc, int r,
                 const struct speech_voice_list *voices, const struct err *why)
{
    struct kept_list *place = place_for(l, acc), old = *place, *same = find(l, acc);
    struct arena *a = arena_new();

    *place = (struct kept_list){ .arena = a,
                                 .name = arena_strdup(a, acc->name),
                                 .base_url = arena_strdup(a, acc->base_url),
                                 .until_ms = clock_mono_ms() + (r < 0 ? FAILED_MS : acc->list_ms),
                                 .used_ms = clock_mono_ms(),
                                 .r = r };
    place->voices = copy_of(r < 0 && same ? &old.voices : voices, a);
    if (r < 0) {
        place->code = arena_strdup(a, why->code);
        place->text = arena_strdup(a, why->text);
    }
    arena_free(old.arena);
}

static int take(const struct kept_list *kept, struct arena *a, struct speech_voice_list *ret, struct err *e)
{
    *ret = copy_of(&kept->voices, a);
    return kept->r < 0 && ret->n == 0 ? err_set(e, kept->r, kept->code, "%s", kept->text) : 0;
}

/* ---- the lists ---- */

/* 1: the kept list is good. */
static int look(struct speech_voice_lists *l, const struct speech_account *acc, struct arena *a,
                struct speech_voice_list *ret, struct err *e)
{
    struct kept_list *kept;
    int r = 0;

    pthread_mutex_lock(&l->lock);
    kept = find(l, acc);
    if (kept)
        kept->used_ms = clock_mono_ms();
    if (kept && clock_mono_ms() < kept->until_ms) {
        r = take(kept, a, ret, e);
        r = r < 0 ? r : 1;
    }
    pthread_mutex_unlock(&l->lock);
    return r;
}

int speech_voice_lists_get(struct speech_voice_lists *l, const struct speech_account *acc, const struct net_wait *wait,
                           struct arena *a, struct speech_voice_list *ret, struct err *e)
{
    struct err why;
    int r = look(l, acc, a, ret, e);

    if (r != 0)
        return MIN(r, 0);
    err_init(&why);
    r = speech_remote_voices(acc, wait, a, ret, &why);
    if (r == -ECANCELED)
        return err_set(e, r, why.code, "%s", why.text);
    err_strip_hidden(&why); /* what is kept is shown to apps */
    pthread_mutex_lock(&l->lock);
    keep(l, acc, r, ret, &why);
    if (r < 0)
        r = take(find(l, acc), a, ret, e);
    pthread_mutex_unlock(&l->lock);
    return r;
}

struct speech_voice_lists *speech_voice_lists_new(void)
{
    struct speech_voice_lists *l = xcalloc(1, sizeof(*l));

    pthread_mutex_init(&l->lock, NULL);
    return l;
}

struct speech_voice_lists *speech_voice_lists_free(struct speech_voice_lists *l)
{
    if (!l)
        return NULL;
    for (size_t i = 0; i < ARRAY_SIZE(l->kept); i++)
        arena_free(l->kept[i].arena);
    pthread_mutex_destroy(&l->lock);
    free(l);
    return NULL;
}
