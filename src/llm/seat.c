/* What is known of one account: whether it answers, which models it has. */
#include "llm/accounts.h"

#include "base/clock.h"

#include <stdlib.h>
#include <string.h>

enum { REST_MS = 15000, PROBE_MS = 5000, LIST_FAILED_MS = 15000, LIST_CONNECT_MS = 2000, LIST_TOTAL_MS = 8000, LIST_BYTES = 16 << 20 };

struct llm_seat *llm_seat_ref(struct llm_seat *s)
{
    atomic_fetch_add(&s->n_refs, 1);
    return s;
}

struct llm_seat *llm_seat_unref(struct llm_seat *s)
{
    if (!s || atomic_fetch_sub(&s->n_refs, 1) > 1)
        return NULL;
    arena_free(s->models_arena);
    arena_free(s->arena);
    pthread_mutex_destroy(&s->lock);
    free(s);
    return NULL;
}

/* ---- the circuit breaker ---- */

bool llm_seat_may_ask(struct llm_seat *s)
{
    int64_t now_ms = clock_mono_ms();
    bool may;

    pthread_mutex_lock(&s->lock);
    may = now_ms >= s->open_until_ms;
    if (may && s->open_until_ms)
        s->open_until_ms = now_ms + PROBE_MS;           /* this one tries; the others wait for what it finds */
    pthread_mutex_unlock(&s->lock);
    return may;
}

void llm_seat_succeeded(struct llm_seat *s)
{
    pthread_mutex_lock(&s->lock);
    s->n_failures = 0;
    s->open_until_ms = 0;
    pthread_mutex_unlock(&s->lock);
}

void llm_seat_failed(struct llm_seat *s, unsigned rest_after)
{
    pthread_mutex_lock(&s->lock);
    if (++s->n_failures >= rest_after && rest_after > 0)
        s->open_until_ms = clock_mono_ms() + REST_MS;
    pthread_mutex_unlock(&s->lock);
}

/* ---- models ---- */

static struct llm_models copy_models(struct arena *a, const struct llm_models *from, const char *own)
{
    struct llm_model *items = arena_array(a, from->n + 1, sizeof(*items));
    size_t n = 0;

    for (size_t i = 0; i < from->n; i++) {
        items[n++] = (struct llm_model){ arena_strdup(a, from->items[i].id), arena_strdup(a, from->items[i].name) };
        if (own && strcmp(own, from->items[i].id) == 0)
            own = NULL;
    }
    if (own)                            /* a list need not be complete */
        items[n++] = (struct llm_model){ arena_strdup(a, own), arena_strdup(a, own) };
    return (struct llm_models){ items, n };
}

static int fetch_models(struct llm_seat *s, struct arena *a, const atomic_bool *is_gone, struct llm_models *ret, struct err *e)
{
    const struct llm_protocol *p = s->account.preset->protocol;
    struct http_answer answer = { 0 };
    struct http_ask ask = { 0 };
    int r = p->models(&s->account, a, &ask, e);

    ask.connect_ms = LIST_CONNECT_MS;
    ask.total_ms = LIST_TOTAL_MS;
    ask.max_reply = LIST_BYTES;
    if (r == 0)
        r = http_call(&ask, a, is_gone, &answer, e);
    if (r == 0 && answer.status / 100 != 2)
        r = llm_refusal(&s->account, answer.status, answer.body, e);
    return r < 0 ? r : p->on_models(answer.body, a, ret, e);
}

/* Outside the lock somebody else may fetch too: the later one counts. */
static int renew_models(struct llm_seat *s, int64_t ttl_ms, const atomic_bool *is_gone, struct err *e)
{
    struct arena *fresh = arena_new();
    AUTO(arena_freep) struct arena *scratch = arena_new();
    struct llm_models found = { 0 };
    int r = s->account.preset->quirks & LLM_QUIRK_NO_MODEL_LIST ? 0 : fetch_models(s, scratch, is_gone, &found, e);
    struct llm_models models = copy_models(fresh, &found, s->account.model);

    pthread_mutex_lock(&s->lock);
    s->models_until_ms = clock_mono_ms() + (r == 0 ? ttl_ms : LIST_FAILED_MS);
    if (r == 0 || !s->models_arena) {
        arena_free(s->models_arena);
        s->models_arena = TAKE(fresh);
        s->models = models;
    }
    pthread_mutex_unlock(&s->lock);
    arena_free(fresh);
    return r;
}

int llm_seat_models(struct llm_seat *s, struct settings *settings, struct arena *a, const atomic_bool *is_gone, struct llm_models *ret, struct err *e)
{
    struct err why = { 0 };
    bool is_old;
    int r = 0;

    pthread_mutex_lock(&s->lock);
    is_old = clock_mono_ms() >= s->models_until_ms;
    pthread_mutex_unlock(&s->lock);
    if (is_old)
        r = renew_models(s, settings_ms(settings, SETTING_LLM_MODELS_TTL_S), is_gone, &why);
    pthread_mutex_lock(&s->lock);
    *ret = copy_models(a, &s->models, NULL);
    pthread_mutex_unlock(&s->lock);
    if (ret->n > 0 || r == 0)
        return 0;
    return err_set(e, r, why.code, "%s", why.text);
}

int llm_seat_model(struct llm_seat *s, struct settings *settings, struct arena *a, const atomic_bool *is_gone, const char **ret, struct err *e)
{
    struct llm_models models = { 0 };
    int r = 0;

    if (!s->account.model)
        r = llm_seat_models(s, settings, a, is_gone, &models, e);
    if (r < 0)
        return r;
    *ret = s->account.model ? s->account.model : models.n > 0 ? models.items[0].id : NULL;
    if (*ret)
        return 0;
    return err_set(e, -EINVAL, "INVALID_MODEL", "%s has no model yet; name one in `model`. %s", s->account.name, s->account.preset->help);
}
