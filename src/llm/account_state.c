/* The state of one account: whether it answers, which models it has. */
#include "llm/accounts.h"

#include "base/clock.h"
#include "llm/local/local.h"

#include <stdlib.h>
#include <string.h>

enum { LIST_FAILED_MS = 15000, LIST_CONNECT_MS = 2000, LIST_TOTAL_MS = 8000, LIST_BYTES = 16 << 20 };

struct llm_account_state *llm_account_state_ref(struct llm_account_state *s)
{
    atomic_fetch_add(&s->n_refs, 1);
    return s;
}

struct llm_account_state *llm_account_state_unref(struct llm_account_state *s)
{
    if (!s || atomic_fetch_sub(&s->n_refs, 1) > 1)
        return NULL;
    arena_free(s->models_arena);
    arena_free(s->arena);
    breaker_clear(&s->breaker);
    pthread_mutex_destroy(&s->lock);
    free(s);
    return NULL;
}

/* ---- the circuit breaker ---- */

bool llm_account_state_may_try(struct llm_account_state *s, const char *model)
{
    bool may;

    pthread_mutex_lock(&s->lock);
    may = breaker_may_try(&s->breaker, model);
    pthread_mutex_unlock(&s->lock);
    return may;
}

static int64_t find_rest(struct llm_account_state *s, const char *model, enum llm_fault *ret_of)
{
    int64_t rest_ms;

    pthread_mutex_lock(&s->lock);
    rest_ms = breaker_rest_ms(&s->breaker, model, ret_of);
    pthread_mutex_unlock(&s->lock);
    return rest_ms;
}

int64_t llm_account_state_rest_ms(struct llm_account_state *s, const char *model)
{
    enum llm_fault of;

    return find_rest(s, model, &of);
}

int llm_account_state_err_rest(struct llm_account_state *s, const char *model, int64_t rest_ms, struct err *e)
{
    long long seconds = (MAX(rest_ms, (int64_t)1) + 999) / 1000;
    const char *name = s->account.name, *plural = seconds == 1 ? "" : "s";
    enum llm_fault of;

    (void)find_rest(s, model, &of);
    if (e)
        e->retry_after_ms = rest_ms; /* 0: the rest has just ended */
    if (of == LLM_FAULT_OF_MODEL)
        return err_set(
            e, -EAGAIN, "PROVIDER_UNAVAILABLE",
            "The model %.120s of %s has failed several times in a row and rests; try again in %lld second%s.", model,
            name, seconds, plural);
    return err_set(e, -EAGAIN, "PROVIDER_UNAVAILABLE",
                   "%s has failed several times in a row and rests; try again in %lld second%s.", name, seconds,
                   plural);
}

void llm_account_state_succeeded(struct llm_account_state *s, const char *model)
{
    pthread_mutex_lock(&s->lock);
    breaker_succeeded(&s->breaker, model);
    s->failed_wall_ms = 0;
    pthread_mutex_unlock(&s->lock);
}

void llm_account_state_failed(struct llm_account_state *s, const char *model, enum llm_fault fault, unsigned rest_after)
{
    if (s->account.preset->is_stand_in)
        return;
    pthread_mutex_lock(&s->lock);
    breaker_failed(&s->breaker, model, fault, rest_after);
    pthread_mutex_unlock(&s->lock);
}

static void set_failure(struct llm_account_state *s, const char *text)
{
    s->failed_wall_ms = clock_wall_ms();
    snprintf(s->failed_text, sizeof(s->failed_text), "%s", text);
}

void llm_account_state_keep_failure(struct llm_account_state *s, const char *text)
{
    if (s->account.preset->is_stand_in) /* it fails because a text asks for it */
        return;
    pthread_mutex_lock(&s->lock);
    set_failure(s, text);
    pthread_mutex_unlock(&s->lock);
}

struct llm_failure llm_account_state_failure(struct llm_account_state *s, struct arena *a)
{
    struct llm_failure failure = { 0 };
    char at[TIME_TEXT_SIZE];

    pthread_mutex_lock(&s->lock);
    if (s->failed_wall_ms) {
        clock_format(s->failed_wall_ms, at);
        failure = (struct llm_failure){ arena_strdup(a, s->failed_text), arena_strdup(a, at) };
    }
    pthread_mutex_unlock(&s->lock);
    return failure;
}

struct field_strings llm_account_state_resting_models(struct llm_account_state *s, struct arena *a)
{
    const char **names = arena_array(a, LIMIT_LLM_BROKEN_MODELS, sizeof(*names));
    int64_t now_ms = clock_mono_ms();
    size_t n = 0;

    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < s->breaker.n_models; i++)
        if (s->breaker.models[i].state.open_until_ms > now_ms)
            names[n++] = arena_strdup(a, s->breaker.models[i].name);
    pthread_mutex_unlock(&s->lock);
    return (struct field_strings){ names, n };
}

/* ---- models ---- */

/* Adds the model unless it is among the first n_known. A model configured by hand has no time and takes the provider's.
 */
static void add_model(struct llm_models *to, struct llm_model *items, struct arena *a, struct llm_model model,
                      size_t n_known)
{
    for (size_t i = 0; i < n_known; i++)
        if (strcmp(items[i].id, model.id) == 0) {
            items[i].created_s = items[i].created_s ? items[i].created_s : model.created_s;
            return;
        }
    items[to->n++] = (struct llm_model){ arena_strdup(a, model.id), arena_strdup(a, model.name), model.created_s };
}

static const char *shown_name(const struct llm_models *fetched, const char *id)
{
    for (size_t i = 0; i < fetched->n; i++)
        if (strcmp(fetched->items[i].id, id) == 0)
            return fetched->items[i].name;
    return id;
}

/* The account's own model comes first, then those configured by hand; a provider's list need not be complete. */
static struct llm_models merge_models(struct arena *a, const struct llm_account *acc, const struct llm_models *fetched)
{
    struct llm_model *items = arena_array(a, acc->n_models + fetched->n + 1, sizeof(*items));
    struct llm_models all = { items, 0 };
    size_t n_by_hand;

    if (acc->model)
        add_model(&all, items, a, (struct llm_model){ .id = acc->model, .name = shown_name(fetched, acc->model) }, 0);
    for (size_t i = 0; i < acc->n_models; i++)
        add_model(&all, items, a, (struct llm_model){ .id = acc->models[i], .name = acc->models[i] }, all.n);
    n_by_hand = all.n;
    for (size_t i = 0; i < fetched->n; i++)
        add_model(&all, items, a, fetched->items[i], n_by_hand);
    return all;
}

static struct llm_models copy_models(struct arena *a, const struct llm_models *from)
{
    struct llm_model *items = arena_array(a, from->n + 1, sizeof(*items));

    for (size_t i = 0; i < from->n; i++)
        items[i] = (struct llm_model){ arena_strdup(a, from->items[i].id), arena_strdup(a, from->items[i].name),
                                       from->items[i].created_s };
    return (struct llm_models){ items, from->n };
}

static int fetch_models(struct llm_account_state *s, struct arena *a, int64_t total_ms, const atomic_bool *is_gone,
                        struct llm_models *ret, struct err *e)
{
    const struct llm_protocol *p = s->account.preset->protocol;
    struct http_answer answer = { 0 };
    struct http_call_request request = { 0 };
    int r;

    if (s->account.runner)
        return llamacpp_models(s->account.runner, a, ret, e);
    r = s->account.local ? llm_local_check(s->account.local, s->account.name, e) : 0;
    if (r == 0)
        r = p->models(&s->account, a, &request, e);

    request.connect_ms = LIST_CONNECT_MS;
    request.total_ms = total_ms;
    request.max_reply = LIST_BYTES;
    if (r == 0)
        r = http_call(&request, a, is_gone, &answer, e);
    if (r == 0 && answer.status / 100 != 2)
        r = llm_refusal(&s->account, answer.status, answer.body, e);
    return r < 0 ? r : p->on_models(answer.body, a, ret, e);
}

static void note_failure(struct llm_account_state *s, int r, const struct err *e)
{
    s->models_r = r;
    snprintf(s->models_code, sizeof(s->models_code), "%s", r < 0 ? e->code : "");
    snprintf(s->models_text, sizeof(s->models_text), "%s", r < 0 ? e->text : "");
    if (llm_fault_of(r) == LLM_FAULT_OF_ACCOUNT)
        set_failure(s, e->text);
}

/* Under the lock. *fresh stays the caller's when the previous list stays. */
static void keep_models(struct llm_account_state *s, int r, int64_t ttl_ms, struct llm_models models,
                        struct arena **fresh, const struct err *e)
{
    s->models_until_ms = clock_mono_ms() + (r == 0 ? ttl_ms : LIST_FAILED_MS);
    note_failure(s, r, e);
    if (r == 0 || !s->models_arena) {
        arena_free(s->models_arena);
        s->models_arena = TAKE(*fresh);
        s->models = models;
    }
}

/* Another caller may fetch at the same time, as the fetch runs outside the lock: the later result counts. A timeout
 * after less than LIST_TOTAL_MS is not noted, as a slow provider is no failed one. */
static int renew_models(struct llm_account_state *s, int64_t ttl_ms, int64_t total_ms, const atomic_bool *is_gone,
                        struct err *e)
{
    AUTO(arena_freep) struct arena *fresh = arena_new();
    AUTO(arena_freep) struct arena *scratch = arena_new();
    struct llm_models found = { 0 };
    bool has_list = !(s->account.preset->quirks & LLM_QUIRK_NO_MODEL_LIST);
    int r = has_list ? fetch_models(s, scratch, total_ms, is_gone, &found, e) : 0;
    struct llm_models models = merge_models(fresh, &s->account, &found);

    pthread_mutex_lock(&s->lock);
    s->is_renewing = false;
    s->has_list |= found.n > 0;
    if (r != -ETIMEDOUT || total_ms >= LIST_TOTAL_MS)
        keep_models(s, r, ttl_ms, models, &fresh, e);
    pthread_mutex_unlock(&s->lock);
    return r;
}

/* Under the lock. The previous list serves while another caller fetches the new one. */
static bool must_renew(const struct llm_account_state *s)
{
    return clock_mono_ms() >= s->models_until_ms && !(s->is_renewing && s->models_arena);
}

bool llm_account_state_models_wait(struct llm_account_state *s)
{
    bool is_old;

    if (s->account.runner || s->account.preset->quirks & LLM_QUIRK_NO_MODEL_LIST)
        return false;
    pthread_mutex_lock(&s->lock);
    is_old = must_renew(s);
    pthread_mutex_unlock(&s->lock);
    return is_old;
}

static int renew_when_old(struct llm_account_state *s, struct settings *settings, int64_t total_ms,
                          const atomic_bool *is_gone, struct err *e)
{
    int64_t ttl_ms = s->account.runner ? 0 : settings_ms(settings, SETTING_LLM_MODELS_TTL_S);
    bool is_old;

    pthread_mutex_lock(&s->lock);
    is_old = must_renew(s) && !loop_is_here();
    s->is_renewing |= is_old;
    pthread_mutex_unlock(&s->lock);
    return is_old ? renew_models(s, ttl_ms, total_ms, is_gone, e) : 0;
}

int llm_account_state_check(struct llm_account_state *s, struct settings *settings, int64_t wait_ms,
                            const atomic_bool *is_gone, struct err *e)
{
    struct err why = { 0 };
    int r = renew_when_old(s, settings, MIN(wait_ms, (int64_t)LIST_TOTAL_MS), is_gone, &why);

    if (r < 0)
        return err_set(e, r, why.code, "%s", why.text);
    pthread_mutex_lock(&s->lock);
    if (s->models_r < 0)
        r = err_set(e, s->models_r, s->models_code, "%s", s->models_text);
    pthread_mutex_unlock(&s->lock);
    return r;
}

int llm_account_state_models(struct llm_account_state *s, struct settings *settings, struct arena *a,
                             const atomic_bool *is_gone, struct llm_models *ret, struct err *e)
{
    struct err why = { 0 };
    int r = 0;

    /* a failure is cached for a while, like a list */
    (void)!renew_when_old(s, settings, LIST_TOTAL_MS, is_gone, &why);
    pthread_mutex_lock(&s->lock);
    *ret = copy_models(a, &s->models);
    if (ret->n == 0 && s->models_r < 0)
        r = err_set(e, s->models_r, s->models_code, "%s", s->models_text);
    pthread_mutex_unlock(&s->lock);
    return r;
}

/* Callers may leave out the tag ":latest" of Ollama's names, and the "models/" before each name in Gemini's list. */
static bool is_model(const char *listed, const char *requested)
{
    size_t n = strlen(requested);

    if (strncmp(listed, "models/", 7) == 0 && strncmp(requested, "models/", 7) != 0)
        listed += 7;
    return strncmp(listed, requested, n) == 0 && (listed[n] == '\0' || strcmp(listed + n, ":latest") == 0);
}

int llm_account_state_knows_model(struct llm_account_state *s, struct settings *settings, struct arena *a,
                                  const atomic_bool *is_gone, const char *model)
{
    struct llm_models models = { 0 };
    bool has_list;
    int r = llm_account_state_models(s, settings, a, is_gone, &models, NULL);

    for (size_t i = 0; r == 0 && i < models.n; i++)
        if (is_model(models.items[i].id, model))
            return 1;
    pthread_mutex_lock(&s->lock);
    has_list = s->has_list;
    pthread_mutex_unlock(&s->lock);
    return has_list ? 0 : -1;
}

/* Servers on a person's own machine list embedding models among the others. */
static const char *first_to_chat(const struct llm_models *models)
{
    for (size_t i = 0; i < models->n; i++)
        if (!llm_model_is_embedding(models->items[i].id))
            return models->items[i].id;
    return models->n > 0 ? models->items[0].id : NULL;
}

int llm_account_state_model(struct llm_account_state *s, struct settings *settings, struct arena *a,
                            const atomic_bool *is_gone, const char **ret, struct err *e)
{
    struct llm_models models = { 0 };
    int r = 0;

    if (!s->account.model)
        r = llm_account_state_models(s, settings, a, is_gone, &models, e);
    if (r < 0)
        return r;
    *ret = s->account.model ? s->account.model : first_to_chat(&models);
    if (*ret)
        return 0;
    return err_set(e, -EINVAL, "INVALID_MODEL", "%s has no model yet; name one in `model`. What it needs: %s",
                   s->account.name, s->account.preset->help);
}

int llm_account_state_ready(struct llm_account_state *s, const struct llamacpp_start_request *start_request,
                            struct arena *a, const struct llm_account **ret, struct err *e)
{
    struct llamacpp_place place = { NULL, NULL };
    struct llm_account *running;
    int r = s->account.runner ? llamacpp_hold(s->account.runner, start_request, a, &place, e) : 0;

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
