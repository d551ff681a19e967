/* What is known of one account: whether it answers, which models it has. */
#include "llm/accounts.h"

#include "base/clock.h"
#include "llm/local.h"

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

int64_t llm_seat_rest_ms(struct llm_seat *s)
{
    int64_t rest_ms;

    pthread_mutex_lock(&s->lock);
    rest_ms = s->open_until_ms - clock_mono_ms();
    pthread_mutex_unlock(&s->lock);
    return MAX(rest_ms, (int64_t)0);
}

int llm_seat_tell_rest(struct llm_seat *s, int64_t rest_ms, struct err *e)
{
    long long seconds = (MAX(rest_ms, (int64_t)1) + 999) / 1000;

    if (e)
        e->retry_after_ms = rest_ms;    /* 0: over in this moment */
    return err_set(e, -EAGAIN, "PROVIDER_UNAVAILABLE", "%s has failed several times in a row and rests; try again in %lld second%s.", s->account.name,
                   seconds, seconds == 1 ? "" : "s");
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

/* Unless it is among the first n_known. */
static void add_model(struct llm_models *to, struct llm_model *items, struct arena *a, struct llm_model model, size_t n_known)
{
    for (size_t i = 0; i < n_known; i++)
        if (strcmp(items[i].id, model.id) == 0)
            return;
    items[to->n++] = (struct llm_model){ arena_strdup(a, model.id), arena_strdup(a, model.name) };
}

/* Those written by hand stand first; a provider's list need not be complete. */
static struct llm_models merge_models(struct arena *a, const struct llm_account *acc, const struct llm_models *fetched)
{
    struct llm_model *items = arena_array(a, acc->n_models + fetched->n + 1, sizeof(*items));
    struct llm_models all = { items, 0 };
    size_t n_by_hand;

    for (size_t i = 0; i < acc->n_models; i++)
        add_model(&all, items, a, (struct llm_model){ acc->models[i], acc->models[i] }, all.n);
    n_by_hand = all.n;
    for (size_t i = 0; i < fetched->n; i++)
        add_model(&all, items, a, fetched->items[i], n_by_hand);
    if (acc->model)
        add_model(&all, items, a, (struct llm_model){ acc->model, acc->model }, all.n);
    return all;
}

static struct llm_models copy_models(struct arena *a, const struct llm_models *from)
{
    struct llm_model *items = arena_array(a, from->n + 1, sizeof(*items));

    for (size_t i = 0; i < from->n; i++)
        items[i] = (struct llm_model){ arena_strdup(a, from->items[i].id), arena_strdup(a, from->items[i].name) };
    return (struct llm_models){ items, from->n };
}

static int fetch_models(struct llm_seat *s, struct arena *a, const atomic_bool *is_gone, struct llm_models *ret, struct err *e)
{
    const struct llm_protocol *p = s->account.preset->protocol;
    struct http_answer answer = { 0 };
    struct http_ask ask = { 0 };
    int r;

    if (s->account.runner)
        return llamacpp_models(s->account.runner, a, ret, e);
    r = s->account.local ? llm_local_check(s->account.local, s->account.name, e) : 0;
    if (r == 0)
        r = p->models(&s->account, a, &ask, e);

    ask.connect_ms = LIST_CONNECT_MS;
    ask.total_ms = LIST_TOTAL_MS;
    ask.max_reply = LIST_BYTES;
    if (r == 0)
        r = http_call(&ask, a, is_gone, &answer, e);
    if (r == 0 && answer.status / 100 != 2)
        r = llm_refusal(&s->account, answer.status, answer.body, e);
    return r < 0 ? r : p->on_models(answer.body, a, ret, e);
}

static void note_failure(struct llm_seat *s, int r, const struct err *e)
{
    s->models_r = r;
    snprintf(s->models_code, sizeof(s->models_code), "%s", r < 0 ? e->code : "");
    snprintf(s->models_text, sizeof(s->models_text), "%s", r < 0 ? e->text : "");
}

/* Outside the lock somebody else may fetch too: the later one counts. */
static int renew_models(struct llm_seat *s, int64_t ttl_ms, const atomic_bool *is_gone, struct err *e)
{
    struct arena *fresh = arena_new();
    AUTO(arena_freep) struct arena *scratch = arena_new();
    struct llm_models found = { 0 };
    int r = s->account.preset->quirks & LLM_QUIRK_NO_MODEL_LIST ? 0 : fetch_models(s, scratch, is_gone, &found, e);
    struct llm_models models = merge_models(fresh, &s->account, &found);

    pthread_mutex_lock(&s->lock);
    s->has_list |= found.n > 0;
    s->models_until_ms = clock_mono_ms() + (r == 0 ? ttl_ms : LIST_FAILED_MS);
    note_failure(s, r, e);
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
    if (is_old)                         /* a failure is kept for a while, like a list */
        (void)!renew_models(s, s->account.runner ? 0 : settings_ms(settings, SETTING_LLM_MODELS_TTL_S), is_gone, &why);
    pthread_mutex_lock(&s->lock);
    *ret = copy_models(a, &s->models);
    if (ret->n == 0 && s->models_r < 0)
        r = err_set(e, s->models_r, s->models_code, "%s", s->models_text);
    pthread_mutex_unlock(&s->lock);
    return r;
}

/* Ollama's names end in a tag that may be left out, Gemini's list begins each with its kind. */
static bool is_model(const char *listed, const char *asked)
{
    size_t n = strlen(asked);

    if (strncmp(listed, "models/", 7) == 0 && strncmp(asked, "models/", 7) != 0)
        listed += 7;
    return strncmp(listed, asked, n) == 0 && (listed[n] == '\0' || strcmp(listed + n, ":latest") == 0);
}

int llm_seat_knows_model(struct llm_seat *s, struct settings *settings, struct arena *a, const atomic_bool *is_gone, const char *model)
{
    struct llm_models models = { 0 };
    bool has_list;
    int r = llm_seat_models(s, settings, a, is_gone, &models, NULL);

    for (size_t i = 0; r == 0 && i < models.n; i++)
        if (is_model(models.items[i].id, model))
            return 1;
    pthread_mutex_lock(&s->lock);
    has_list = s->has_list;
    pthread_mutex_unlock(&s->lock);
    return has_list ? 0 : -1;
}

/* Servers on a person's own machine list what embeds among the rest. */
static const char *first_to_chat(const struct llm_models *models)
{
    for (size_t i = 0; i < models->n; i++)
        if (!llm_model_is_embedding(models->items[i].id))
            return models->items[i].id;
    return models->n > 0 ? models->items[0].id : NULL;
}

int llm_seat_model(struct llm_seat *s, struct settings *settings, struct arena *a, const atomic_bool *is_gone, const char **ret, struct err *e)
{
    struct llm_models models = { 0 };
    int r = 0;

    if (!s->account.model)
        r = llm_seat_models(s, settings, a, is_gone, &models, e);
    if (r < 0)
        return r;
    *ret = s->account.model ? s->account.model : first_to_chat(&models);
    if (*ret)
        return 0;
    return err_set(e, -EINVAL, "INVALID_MODEL", "%s has no model yet; name one in `model`. What it needs: %s", s->account.name, s->account.preset->help);
}

int llm_seat_ready(struct llm_seat *s, const struct llamacpp_wish *wish, struct arena *a, const struct llm_account **ret, struct err *e)
{
    struct llamacpp_place place = { NULL, NULL };
    struct llm_account *running;
    int r = s->account.runner ? llamacpp_hold(s->account.runner, wish, a, &place, e) : 0;

    if (r == 0 && s->account.local)
        r = llm_local_check(s->account.local, s->account.name, e);
    if (r < 0)
        return r;
    *ret = &s->account;
    if (!s->account.runner)
        return 0;
    running = ARENA_NEW(a, struct llm_account);
    *running = s->account;
    running->base_url = place.base_url;
    running->api_key = place.api_key;
    *ret = running;
    return 0;
}
