#include "llm/accounts.h"

#include "base/log.h"
#include "base/metrics.h"
#include "llm/local/local.h"

#include <stdlib.h>
#include <string.h>

struct llm_accounts {
    struct settings *settings; /* borrowed */
    struct llm_local *local;   /* borrowed; NULL: none */
    pthread_rwlock_t lock;
    struct llm_account_state
        *states[LIMIT_LLM_ACCOUNTS]; /* references; sorted by source, so the first of a name counts */
    size_t n;
    bool is_streaming_disabled; /* of generic-openai */
};

struct settings *llm_accounts_settings(struct llm_accounts *accounts)
{
    return accounts->settings;
}

/* ---- the list; all functions under the lock ---- */

static size_t place_of(const struct llm_accounts *accounts, const char *name)
{
    size_t i = 0;

    while (i < accounts->n && strcmp(accounts->states[i]->account.name, name) != 0)
        i++;
    return i;
}

static size_t place_in_source(const struct llm_accounts *accounts, enum llm_source source, const char *name)
{
    size_t i = 0;

    while (i < accounts->n &&
           (accounts->states[i]->account.source != source || strcmp(accounts->states[i]->account.name, name) != 0))
        i++;
    return i;
}

static bool can_chat(const struct llm_accounts *accounts, size_t place)
{
    return place < accounts->n && accounts->states[place]->account.preset->can_chat;
}

static bool is_stand_in(const struct llm_accounts *accounts, size_t place)
{
    return accounts->states[place]->account.preset->is_stand_in;
}

/* Counts accounts for chats only: with nothing but keys for embeddings or the stand-in, this machine is still searched
 * for a model to chat with. */
static bool has_configured(const struct llm_accounts *accounts)
{
    for (size_t i = 0; i < accounts->n && accounts->states[i]->account.source < LLM_RUN; i++)
        if (can_chat(accounts, i) && !is_stand_in(accounts, i))
            return true;
    return false;
}

/* Once an account is configured, a found server of models is available by name only. */
static bool is_listed(const struct llm_accounts *accounts, size_t place)
{
    const struct llm_account *account = &accounts->states[place]->account;

    return place_of(accounts, account->name) == place &&
           (account->source != LLM_FOUND || llm_preset_is_for_speech(account->preset) || !has_configured(accounts));
}

/* The default for chats: the setting's, else the first that is no stand-in, else the stand-in; accounts->n when there
 * is none. */
static size_t default_place(struct llm_accounts *accounts, struct arena *a)
{
    size_t i = place_of(accounts, settings_string(accounts->settings, a, SETTING_LLM_DEFAULT_PROVIDER)), first;

    if (can_chat(accounts, i))
        return i;
    for (i = 0, first = accounts->n; i < accounts->n; i++)
        if (can_chat(accounts, i) && is_listed(accounts, i)) {
            if (!is_stand_in(accounts, i))
                return i;
            first = MIN(first, i);
        }
    return first;
}

/* A new account comes after those of its source. Returns the account state to release: the replaced one, or s when
 * there is no room. */
static struct llm_account_state *take_place(struct llm_accounts *accounts, struct llm_account_state *s, struct err *e,
                                            int *ret_r)
{
    size_t i = place_in_source(accounts, s->account.source, s->account.name);
    struct llm_account_state *old = i < accounts->n ? accounts->states[i] : NULL;

    if (!old && accounts->n == LIMIT_LLM_ACCOUNTS) {
        *ret_r = err_set(e, -EDQUOT, "TOO_MANY_ACCOUNTS",
                         "There are %d accounts of providers already; remove one first.", LIMIT_LLM_ACCOUNTS);
        return s;
    }
    if (!old) {
        while (i > 0 && accounts->states[i - 1]->account.source > s->account.source)
            i--;
        memmove(&accounts->states[i + 1], &accounts->states[i], (accounts->n - i) * sizeof(s));
        accounts->n++;
    }
    accounts->states[i] = s;
    return old;
}

int llm_accounts_put(struct llm_accounts *accounts, const struct llm_account *account, struct err *e)
{
    struct llm_account_state *s = NULL;
    int r = llm_account_make(account, accounts->is_streaming_disabled, &s, e);

    if (r < 0)
        return r;
    pthread_rwlock_wrlock(&accounts->lock);
    s = take_place(accounts, s, e, &r);
    pthread_rwlock_unlock(&accounts->lock);
    llm_account_state_unref(s);
    return r;
}

bool llm_accounts_remove(struct llm_accounts *accounts, enum llm_source source, const char *name)
{
    struct llm_account_state *gone = NULL;
    size_t i;

    pthread_rwlock_wrlock(&accounts->lock);
    i = place_in_source(accounts, source, name);
    if (i < accounts->n) {
        gone = accounts->states[i];
        accounts->n--;
        memmove(&accounts->states[i], &accounts->states[i + 1], (accounts->n - i) * sizeof(gone));
        accounts->states[accounts->n] = NULL;
    }
    pthread_rwlock_unlock(&accounts->lock);
    llm_account_state_unref(gone);
    return gone != NULL;
}

/* ---- reading it ---- */

void llm_accounts_set_local(struct llm_accounts *accounts, struct llm_local *local)
{
    accounts->local = local;
}

/* Under the lock. A configured account hides the found server of its name; once any account is configured, servers are
 * found by name only. */
static bool may_be_found(const struct llm_accounts *accounts, const char *name)
{
    size_t i = place_of(accounts, name);

    if (!llm_local_knows(name))
        return !has_configured(accounts);
    return i == accounts->n || accounts->states[i]->account.source >= LLM_RUN;
}

bool llm_accounts_wait(struct llm_accounts *accounts, const char *name)
{
    AUTO(arena_freep) struct arena *a = NULL;
    bool is_wanted;

    if (!accounts->local || !llm_local_find_waits(accounts->local))
        return false;
    a = arena_new();
    if (!name || !*name)
        name = settings_string(accounts->settings, a, SETTING_LLM_DEFAULT_PROVIDER);
    pthread_rwlock_rdlock(&accounts->lock);
    is_wanted = may_be_found(accounts, name);
    pthread_rwlock_unlock(&accounts->lock);
    return is_wanted;
}

bool llm_accounts_must_look(struct llm_accounts *accounts, const char *name)
{
    return accounts->local && (llm_local_run_waits(accounts->local) || llm_accounts_wait(accounts, name));
}

/* Called before the list is read, without its lock. name: of the wanted account; NULL: any. The loop reads the list as
 * it is. */
static void look_round(struct llm_accounts *accounts, struct arena *a, const char *name)
{
    bool is_wanted, is_missing;

    if (!accounts->local || loop_is_here())
        return;
    if (!name || !*name)
        name = settings_string(accounts->settings, a, SETTING_LLM_DEFAULT_PROVIDER);
    pthread_rwlock_rdlock(&accounts->lock);
    is_wanted = may_be_found(accounts, name);
    is_missing = place_of(accounts, name) == accounts->n;
    pthread_rwlock_unlock(&accounts->lock);
    llm_local_run(accounts->local, accounts, is_missing ? name : NULL);
    if (is_wanted)
        llm_local_find(accounts->local, accounts);
}

static void unref_account_state(void *state)
{
    llm_account_state_unref(state);
}

static struct llm_account_state *hold(struct llm_account_state *s, struct arena *a)
{
    arena_defer(a, unref_account_state, llm_account_state_ref(s));
    return s;
}

struct llm_account_state **llm_accounts_list(struct llm_accounts *accounts, struct arena *a, size_t *ret_n)
{
    struct llm_account_state **states = arena_array(a, LIMIT_LLM_ACCOUNTS, sizeof(*states));
    size_t first, n = 0;

    look_round(accounts, a, NULL);
    pthread_rwlock_rdlock(&accounts->lock);
    first = default_place(accounts, a);
    if (first < accounts->n)
        states[n++] = hold(accounts->states[first], a);
    for (size_t i = 0; i < accounts->n; i++)
        if (i != first && is_listed(accounts, i))
            states[n++] = hold(accounts->states[i], a);
    pthread_rwlock_unlock(&accounts->lock);
    *ret_n = n;
    return states;
}

static void find_speech(struct llm_accounts *accounts)
{
    if (accounts->local && !loop_is_here())
        llm_local_find(accounts->local, accounts);
}

struct llm_account_state **llm_accounts_of_speech(struct llm_accounts *accounts, struct arena *a, size_t *ret_n)
{
    struct llm_account_state **states = arena_array(a, LIMIT_LLM_ACCOUNTS, sizeof(*states));
    size_t n = 0;

    find_speech(accounts);
    pthread_rwlock_rdlock(&accounts->lock);
    for (size_t i = 0; i < accounts->n; i++)
        if (llm_account_is_for_speech(&accounts->states[i]->account) &&
            place_of(accounts, accounts->states[i]->account.name) == i)
            states[n++] = hold(accounts->states[i], a);
    pthread_rwlock_unlock(&accounts->lock);
    *ret_n = n;
    return states;
}

size_t llm_accounts_count_resting(struct llm_accounts *accounts, enum llm_fault of)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    size_t n = 0;

    pthread_rwlock_rdlock(&accounts->lock);
    for (size_t i = 0; i < accounts->n; i++)
        n += of == LLM_FAULT_OF_ACCOUNT ? llm_account_state_rest_ms(accounts->states[i], NULL) > 0
                                        : llm_account_state_resting_models(accounts->states[i], a).n;
    pthread_rwlock_unlock(&accounts->lock);
    return n;
}

struct llm_account_state *llm_accounts_find(struct llm_accounts *accounts, struct arena *a, const char *name)
{
    struct llm_account_state *found;
    size_t i;

    look_round(accounts, a, name);
    pthread_rwlock_rdlock(&accounts->lock);
    i = place_of(accounts, name);
    found = i < accounts->n ? hold(accounts->states[i], a) : NULL;
    pthread_rwlock_unlock(&accounts->lock);
    return found;
}

/* ---- choosing an account ---- */

size_t llm_accounts_waiting(struct llm_accounts *accounts, struct llm_waiting *ret)
{
    AUTO(arena_freep) struct arena *a = arena_new();

    look_round(accounts, a, NULL);
    return accounts->local ? llm_local_waiting(accounts->local, ret) : 0;
}

/* A server that only needs the person's consent is proposed first, as every other remedy takes more steps. */
static bool err_waiting(struct llm_accounts *accounts, struct err *e)
{
    struct llm_waiting waiting[LLM_N_PROBES];
    size_t n = accounts->local ? llm_local_waiting(accounts->local, waiting) : 0;

    for (size_t i = 0; i < n; i++)
        if (!waiting[i].is_foreign && llm_preset_find(waiting[i].name)->can_chat) {
            err_set(
                e, -ENODEV, "PROVIDER_UNAVAILABLE",
                "No provider of language models is configured. %s was found at 127.0.0.1:%u and waits for your yes: "
                "`hearth provider accept %s`. Or add another one: `hearth provider presets` lists them.",
                waiting[i].label, waiting[i].port, waiting[i].name);
            return true;
        }
    return false;
}

static int err_nothing(struct llm_accounts *accounts, struct err *e)
{
    bool is_looked_for = settings_bool(accounts->settings, SETTING_LLM_FIND_LOCAL);

    if (err_waiting(accounts, e))
        return -ENODEV;
    return err_set(
        e, -ENODEV, "PROVIDER_UNAVAILABLE",
        "No provider of language models is configured, and none %s a provider: `hearth provider add openai --api-key -` asks for its key, "
        "`hearth provider presets` lists the others, `hearth provider add stand-in` adds one without a model to try things out. Or set OPENAI_API_KEY, ANTHROPIC_API_KEY or OLLAMA_HOST (docs/providers.md) in the "
        "environment of the service and restart it.",
        is_looked_for ? "was found on this machine. Start Ollama or LM Studio here, or add"
                      : "is looked for on this machine (the setting llm.find_local is off). Add");
}

static int err_unknown(struct llm_accounts *accounts, const char *provider, struct arena *a, struct err *e)
{
    const char *names = "";

    for (size_t i = 0; i < accounts->n; i++)
        if (can_chat(accounts, i) && is_listed(accounts, i))
            names = arena_printf(a, "%s%s%s", names, *names ? ", " : "", accounts->states[i]->account.name);
    if (!*names)
        return err_nothing(accounts, e);
    if (place_of(accounts, provider) < accounts->n)
        return err_set(e, -EINVAL, "PROVIDER_UNAVAILABLE", "The provider %.80s has no chats; those that have: %.300s.",
                       provider, names);
    return err_set(e, -EINVAL, "PROVIDER_UNAVAILABLE", "The provider %.80s is not configured; configured are: %.300s.",
                   provider, names);
}

static void add_pick(struct llm_accounts *accounts, size_t place, struct arena *a, struct llm_picks *picks)
{
    for (size_t i = 0; i < picks->n; i++)
        if (picks->states[i] == accounts->states[place])
            return;
    if (picks->n < ARRAY_SIZE(picks->states))
        picks->states[picks->n++] = hold(accounts->states[place], a);
}

static void add_fallbacks(struct llm_accounts *accounts, struct arena *a, struct llm_picks *picks)
{
    size_t n;
    const char *const *names = settings_list(accounts->settings, a, SETTING_LLM_FALLBACKS, &n);

    for (size_t i = 0; i < n; i++) {
        size_t place = place_of(accounts, names[i]);

        if (can_chat(accounts, place))
            add_pick(accounts, place, a, picks);
    }
}

bool llm_accounts_explain(struct llm_accounts *accounts, const char *name, struct err *e)
{
    return accounts->local && llm_local_explain(accounts->local, name, e);
}

int llm_accounts_pick(struct llm_accounts *accounts, struct arena *a, const char *provider, struct llm_picks *ret,
                      struct err *e)
{
    bool is_named = provider && *provider;
    struct llm_picks picks = { .n = 0 };
    size_t place;
    int r = 0;

    look_round(accounts, a, provider);
    pthread_rwlock_rdlock(&accounts->lock);
    place = is_named ? place_of(accounts, provider) : default_place(accounts, a);
    if (!can_chat(accounts, place))
        r = err_unknown(accounts, provider, a, e);
    else
        add_pick(accounts, place, a, &picks);
    if (r == 0 && !is_named) /* a named provider has no fallbacks */
        add_fallbacks(accounts, a, &picks);
    pthread_rwlock_unlock(&accounts->lock);
    if (r < 0 && loop_is_here()) /* the explanation reads files */
        return -ENEEDSWORKER;
    if (r < 0)
        return is_named && llm_accounts_explain(accounts, provider, e) ? -EINVAL : r;
    *ret = picks;
    return 0;
}

/* ---- from the environment ---- */

static const char *variable(const char *const *env, const char *name)
{
    size_t n = name ? strlen(name) : 0;

    for (; n > 0 && env && *env; env++)
        if (strncmp(*env, name, n) == 0 && (*env)[n] == '=' && (*env)[n + 1])
            return *env + n + 1;
    return NULL;
}

static const char *first_variable(const char *const *env, const char *const names[3])
{
    const char *value = NULL;

    for (size_t i = 0; i < 3 && !value; i++)
        value = variable(env, names[i]);
    return value;
}

static const char *address_from_env(struct arena *a, const struct llm_preset *preset, const char *const *env)
{
    const char *given = first_variable(env, preset->env_base_url),
               *region = preset->env_region ? variable(env, preset->env_region) : NULL;

    if (given || !region || region[strspn(region, "abcdefghijklmnopqrstuvwxyz0123456789-")])
        return given;
    return arena_printf(a, "%s%s%s", preset->region_url[0], region, preset->region_url[1]);
}

/* EMBEDDING_ENGINE names the provider that EMBEDDING_BASE_PATH and EMBEDDING_MODEL_PREF are about. */
static const char *embedding_variable(const struct llm_preset *preset, const char *const *env, const char *name)
{
    const char *engine = variable(env, "EMBEDDING_ENGINE");

    return engine && strcmp(engine, preset->id) == 0 ? variable(env, name) : NULL;
}

/* A key suffices for a service with a known address, an address for a service that needs no key. */
static void put_from_env(struct llm_accounts *accounts, const struct llm_preset *preset, const char *const *env)
{
    AUTO(arena_freep) struct arena *scratch = arena_new();
    struct llm_account account = {
        .source = LLM_ENVIRONMENT,
        .name = preset->id,
        .preset = preset,
        .api_key = first_variable(env, preset->env_key),
        .base_url = address_from_env(scratch, preset, env),
        .model = first_variable(env, preset->env_model),
        .embed_model = embedding_variable(preset, env, "EMBEDDING_MODEL_PREF"),
    };
    struct err e = { 0 };

    if (!account.base_url)
        account.base_url = embedding_variable(preset, env, "EMBEDDING_BASE_PATH");
    if (!account.base_url && !(account.api_key && preset->needs_key))
        return;
    if (llm_accounts_put(accounts, &account, &e) < 0)
        log_debug("llm", NULL, "no account from the environment: %s", LOG_Q(e.text));
}

static double count_accounts(void *accounts)
{
    return (double)llm_accounts_count_resting(accounts, LLM_FAULT_OF_ACCOUNT);
}

static double count_models(void *accounts)
{
    return (double)llm_accounts_count_resting(accounts, LLM_FAULT_OF_MODEL);
}

int llm_accounts_new(struct settings *settings, const char *const *env, struct llm_accounts **ret, struct err *e)
{
    static const char *const switches[2] = { "GENERIC_LLM_STREAMING_DISABLED", "GENERIC_OPENAI_STREAMING_DISABLED" };
    struct llm_accounts *accounts = xcalloc(1, sizeof(*accounts));

    accounts->settings = settings;
    pthread_rwlock_init(&accounts->lock, NULL);
    for (size_t i = 0; i < ARRAY_SIZE(switches); i++) {
        const char *value = variable(env, switches[i]);

        accounts->is_streaming_disabled |= value && strcmp(value, "true") == 0;
    }
    for (const struct llm_preset *preset = llm_presets; preset->id; preset++)
        put_from_env(accounts, preset, env);
    metric_gauge_fn("hearth_llm_resting",
                    "Providers, and models of providers, that are not asked for a while after failures in a row.",
                    "of=\"account\"", count_accounts, accounts);
    metric_gauge_fn("hearth_llm_resting",
                    "Providers, and models of providers, that are not asked for a while after failures in a row.",
                    "of=\"model\"", count_models, accounts);
    *ret = accounts;
    return 0;
}

struct llm_accounts *llm_accounts_free(struct llm_accounts *accounts)
{
    if (!accounts)
        return NULL;
    metric_gauge_fn_forget(accounts);
    for (size_t i = 0; i < accounts->n; i++)
        llm_account_state_unref(accounts->states[i]);
    pthread_rwlock_destroy(&accounts->lock);
    free(accounts);
    return NULL;
}
