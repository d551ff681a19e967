#include "llm/accounts.h"

#include "base/log.h"
#include "base/uuid.h"
#include "llm/local.h"
#include "net/url.h"

#include <stdlib.h>
#include <string.h>

struct llm_accounts {
    struct settings *settings;          /* borrowed */
    struct llm_local *local;            /* borrowed; NULL: none */
    pthread_rwlock_t lock;
    struct llm_seat *seats[LIMIT_LLM_ACCOUNTS]; /* references; by source, so that the first of a name is the one that counts */
    size_t n;
    bool is_streaming_disabled;         /* of generic-openai */
};

struct settings *llm_accounts_settings(struct llm_accounts *accounts)
{
    return accounts->settings;
}

/* ---- one account ---- */

/* "127.0.0.1:11434", "0.0.0.0", "myhost": what people write for OLLAMA_HOST. */
static const char *complete_address(struct arena *a, const struct llm_preset *preset, const char *text)
{
    const char *colon;

    if (preset->protocol != &llm_ollama || strstr(text, "://"))
        return text;
    colon = strrchr(text, ':');
    if (strncmp(text, "0.0.0.0", 7) == 0)               /* an address to listen on, not to call */
        text = arena_printf(a, "127.0.0.1%s", text + 7);
    return arena_printf(a, "http://%s%s", text, colon && strspn(colon + 1, "0123456789") == strlen(colon + 1) ? "" : ":11434");
}

/* An address that ends at its port gets the path the provider is known to have. */
static int complete_path(struct arena *a, const struct llm_preset *preset, const char *text, const char **ret, struct err *e)
{
    const char *host = strstr(text, "://"), *path;
    struct url url = { 0 };
    int r = url_parse(a, text, &url, e);

    if (r < 0)
        return r;
    path = host ? strchr(host + 3, '/') : NULL;
    *ret = preset->base_path && (!path || !path[1]) ? arena_printf(a, "%.*s%s", (int)(path ? path - text : (ptrdiff_t)strlen(text)), text, preset->base_path)
                                                    : text;
    return 0;
}

int llm_account_address(struct arena *a, const struct llm_preset *preset, const char *text, const char **ret, struct err *e)
{
    return complete_path(a, preset, complete_address(a, preset, arena_strdup(a, text)), ret, e);
}

static int check_account(const struct llm_account *account, struct err *e)
{
    if (!account->base_url)
        return err_set(e, -EINVAL, "BAD_ACCOUNT", "%s needs a base URL: %s", account->name, account->preset->help);
    if (account->preset->needs_key && (!account->api_key || !*account->api_key))
        return err_set(e, -EINVAL, "BAD_ACCOUNT", "%s needs an API key: %s", account->name, account->preset->help);
    return 0;
}

static void copy_headers(struct llm_seat *s, const struct llm_account *from)
{
    struct http_ask_header *headers = arena_array(s->arena, from->n_headers + 1, sizeof(*headers));

    for (size_t i = 0; i < from->n_headers; i++)
        headers[i] = (struct http_ask_header){ arena_strdup(s->arena, from->headers[i].name), arena_strdup(s->arena, from->headers[i].value) };
    s->account.headers = headers;
    s->account.n_headers = from->n_headers;
}

static void copy_models(struct llm_seat *s, const struct llm_account *from)
{
    const char **models = arena_array(s->arena, from->n_models + 1, sizeof(*models));

    for (size_t i = 0; i < from->n_models; i++)
        models[i] = arena_strdup(s->arena, from->models[i]);
    s->account.models = models;
    s->account.n_models = from->n_models;
}

static int make_seat(const struct llm_accounts *accounts, const struct llm_account *from, struct llm_seat **ret, struct err *e)
{
    struct llm_seat *s = xcalloc(1, sizeof(*s));
    const struct llm_preset *preset = from->preset;
    struct llm_account *to = &s->account;
    int r = 0;

    s->arena = arena_new();
    atomic_init(&s->n_refs, 1);
    pthread_mutex_init(&s->lock, NULL);
    *to = (struct llm_account){ .source = from->source, .runner = from->runner, .local = from->local, .name = arena_strdup(s->arena, from->name), .preset = preset, .base_url = preset->base_url,
                                .api_key = arena_strdup(s->arena, from->api_key), .model = arena_strdup(s->arena, from->model),
                                .embed_model = arena_strdup(s->arena, from->embed_model) };
    memcpy(to->id, from->id, sizeof(to->id));
    if (!*to->id)
        uuid_of_text(slice_of(to->name), to->id);
    if (!to->model)
        to->model = preset->default_model;
    copy_headers(s, from);
    copy_models(s, from);
    s->may_not_stream = accounts->is_streaming_disabled && preset->quirks & LLM_QUIRK_MAY_NOT_STREAM;
    if (from->base_url)
        r = llm_account_address(s->arena, preset, from->base_url, &to->base_url, e);
    if (r == 0)
        r = check_account(to, e);
    if (r < 0) {
        llm_seat_unref(s);
        return r;
    }
    *ret = s;
    return 0;
}

int llm_account_check(const struct llm_account *account, struct err *e)
{
    static const struct llm_accounts none;
    struct llm_seat *s = NULL;
    int r = make_seat(&none, account, &s, e);

    llm_seat_unref(s);
    return r;
}

/* ---- the list; all under the lock ---- */

static size_t place_of(const struct llm_accounts *accounts, const char *name)
{
    size_t i = 0;

    while (i < accounts->n && strcmp(accounts->seats[i]->account.name, name) != 0)
        i++;
    return i;
}

static size_t place_in_source(const struct llm_accounts *accounts, enum llm_source source, const char *name)
{
    size_t i = 0;

    while (i < accounts->n && (accounts->seats[i]->account.source != source || strcmp(accounts->seats[i]->account.name, name) != 0))
        i++;
    return i;
}

static bool can_chat(const struct llm_accounts *accounts, size_t place)
{
    return place < accounts->n && accounts->seats[place]->account.preset->can_chat;
}

/* For chats: with keys for embeddings alone a model to chat with is still looked for. */
static bool has_configured(const struct llm_accounts *accounts)
{
    size_t i = 0;

    while (i < accounts->n && accounts->seats[i]->account.source < LLM_RUN && !can_chat(accounts, i))
        i++;
    return i < accounts->n && accounts->seats[i]->account.source < LLM_RUN;
}

/* What was only found is there for those who name it once something is configured. */
static bool is_listed(const struct llm_accounts *accounts, size_t place)
{
    const struct llm_account *account = &accounts->seats[place]->account;

    return place_of(accounts, account->name) == place && (account->source != LLM_FOUND || !has_configured(accounts));
}

/* Of chats: the setting's, else the first; accounts->n when there is none. */
static size_t default_place(struct llm_accounts *accounts, struct arena *a)
{
    size_t i = place_of(accounts, settings_string(accounts->settings, a, SETTING_LLM_DEFAULT_PROVIDER));

    if (can_chat(accounts, i))
        return i;
    for (i = 0; i < accounts->n; i++)
        if (can_chat(accounts, i) && is_listed(accounts, i))
            return i;
    return accounts->n;
}

/* A new one goes behind those of its source. Returns what is not needed any more. */
static struct llm_seat *take_place(struct llm_accounts *accounts, struct llm_seat *s, struct err *e, int *ret_r)
{
    size_t i = place_in_source(accounts, s->account.source, s->account.name);
    struct llm_seat *old = i < accounts->n ? accounts->seats[i] : NULL;

    if (!old && accounts->n == LIMIT_LLM_ACCOUNTS) {
        *ret_r = err_set(e, -EDQUOT, "TOO_MANY_ACCOUNTS", "There are %d accounts of providers already; remove one first.", LIMIT_LLM_ACCOUNTS);
        return s;
    }
    if (!old) {
        while (i > 0 && accounts->seats[i - 1]->account.source > s->account.source)
            i--;
        memmove(&accounts->seats[i + 1], &accounts->seats[i], (accounts->n - i) * sizeof(s));
        accounts->n++;
    }
    accounts->seats[i] = s;
    return old;
}

int llm_accounts_put(struct llm_accounts *accounts, const struct llm_account *account, struct err *e)
{
    struct llm_seat *s = NULL;
    int r = make_seat(accounts, account, &s, e);

    if (r < 0)
        return r;
    pthread_rwlock_wrlock(&accounts->lock);
    s = take_place(accounts, s, e, &r);
    pthread_rwlock_unlock(&accounts->lock);
    llm_seat_unref(s);
    return r;
}

bool llm_accounts_remove(struct llm_accounts *accounts, enum llm_source source, const char *name)
{
    struct llm_seat *gone = NULL;
    size_t i;

    pthread_rwlock_wrlock(&accounts->lock);
    i = place_in_source(accounts, source, name);
    if (i < accounts->n) {
        gone = accounts->seats[i];
        accounts->n--;
        memmove(&accounts->seats[i], &accounts->seats[i + 1], (accounts->n - i) * sizeof(gone));
        accounts->seats[accounts->n] = NULL;
    }
    pthread_rwlock_unlock(&accounts->lock);
    llm_seat_unref(gone);
    return gone != NULL;
}

/* ---- reading it ---- */

void llm_accounts_set_local(struct llm_accounts *accounts, struct llm_local *local)
{
    accounts->local = local;
}

/* Under the lock. A configured account hides the server of its name; with any configured one others are found by name only. */
static bool may_be_found(const struct llm_accounts *accounts, const char *name)
{
    size_t i = place_of(accounts, name);

    if (!llm_local_knows(name))
        return !has_configured(accounts);
    return i == accounts->n || accounts->seats[i]->account.source >= LLM_RUN;
}

/* Before the list is read, without its lock. name: of the account that is wanted; NULL: any. */
static void look_round(struct llm_accounts *accounts, struct arena *a, const char *name)
{
    bool is_wanted, is_missing;

    if (!accounts->local)
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

static void unref_seat(void *seat)
{
    llm_seat_unref(seat);
}

static struct llm_seat *hold(struct llm_seat *s, struct arena *a)
{
    arena_defer(a, unref_seat, llm_seat_ref(s));
    return s;
}

struct llm_seat **llm_accounts_list(struct llm_accounts *accounts, struct arena *a, size_t *ret_n)
{
    struct llm_seat **seats = arena_array(a, LIMIT_LLM_ACCOUNTS, sizeof(*seats));
    size_t first, n = 0;

    look_round(accounts, a, NULL);
    pthread_rwlock_rdlock(&accounts->lock);
    first = default_place(accounts, a);
    if (first < accounts->n)
        seats[n++] = hold(accounts->seats[first], a);
    for (size_t i = 0; i < accounts->n; i++)
        if (i != first && is_listed(accounts, i))
            seats[n++] = hold(accounts->seats[i], a);
    pthread_rwlock_unlock(&accounts->lock);
    *ret_n = n;
    return seats;
}

struct llm_seat *llm_accounts_find(struct llm_accounts *accounts, struct arena *a, const char *name)
{
    struct llm_seat *found;
    size_t i;

    look_round(accounts, a, name);
    pthread_rwlock_rdlock(&accounts->lock);
    i = place_of(accounts, name);
    found = i < accounts->n ? hold(accounts->seats[i], a) : NULL;
    pthread_rwlock_unlock(&accounts->lock);
    return found;
}

/* ---- whom to ask ---- */

size_t llm_accounts_waiting(struct llm_accounts *accounts, struct llm_waiting *ret)
{
    AUTO(arena_freep) struct arena *a = arena_new();

    look_round(accounts, a, NULL);
    return accounts->local ? llm_local_waiting(accounts->local, ret) : 0;
}

/* What only needs the person's yes comes before all that takes more. */
static bool tell_waiting(struct llm_accounts *accounts, struct err *e)
{
    struct llm_waiting waiting[LLM_N_PROBES];
    size_t n = accounts->local ? llm_local_waiting(accounts->local, waiting) : 0;

    for (size_t i = 0; i < n; i++)
        if (!waiting[i].is_foreign) {
            err_set(e, -ENODEV, "PROVIDER_UNAVAILABLE", "No provider of language models is configured. %s was found at 127.0.0.1:%u and waits for your yes: "
                    "`hearth provider accept %s`. Or add another one: `hearth provider presets` lists them.", waiting[i].label, waiting[i].port, waiting[i].name);
            return true;
        }
    return false;
}

static int tell_nothing(struct llm_accounts *accounts, struct err *e)
{
    bool is_looked_for = settings_bool(accounts->settings, SETTING_LLM_FIND_LOCAL);

    if (tell_waiting(accounts, e))
        return -ENODEV;
    return err_set(e, -ENODEV, "PROVIDER_UNAVAILABLE",
                   "No provider of language models is configured, and none %s a provider: `hearth provider add openai --api-key -` asks for its key, "
                   "`hearth provider presets` lists the others. Or set OPENAI_API_KEY, ANTHROPIC_API_KEY or OLLAMA_HOST (docs/providers.md) in the "
                   "environment of the service and restart it.",
                   is_looked_for ? "was found on this machine. Start Ollama or LM Studio here, or add"
                                 : "is looked for on this machine (the setting llm.find_local is off). Add");
}

static int tell_unknown(struct llm_accounts *accounts, const char *provider, struct arena *a, struct err *e)
{
    const char *names = "";

    for (size_t i = 0; i < accounts->n; i++)
        if (can_chat(accounts, i) && is_listed(accounts, i))
            names = arena_printf(a, "%s%s%s", names, *names ? ", " : "", accounts->seats[i]->account.name);
    if (!*names)
        return tell_nothing(accounts, e);
    if (place_of(accounts, provider) < accounts->n)
        return err_set(e, -EINVAL, "PROVIDER_UNAVAILABLE", "The provider %.80s has no chats; those that have: %.300s.", provider, names);
    return err_set(e, -EINVAL, "PROVIDER_UNAVAILABLE", "The provider %.80s is not configured; configured are: %.300s.", provider, names);
}

static void add_pick(struct llm_accounts *accounts, size_t place, struct arena *a, struct llm_picks *picks)
{
    for (size_t i = 0; i < picks->n; i++)
        if (picks->seats[i] == accounts->seats[place])
            return;
    if (picks->n < ARRAY_SIZE(picks->seats))
        picks->seats[picks->n++] = hold(accounts->seats[place], a);
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

int llm_accounts_pick(struct llm_accounts *accounts, struct arena *a, const char *provider, struct llm_picks *ret, struct err *e)
{
    bool is_named = provider && *provider;
    struct llm_picks picks = { .n = 0 };
    size_t place;
    int r = 0;

    look_round(accounts, a, provider);
    pthread_rwlock_rdlock(&accounts->lock);
    place = is_named ? place_of(accounts, provider) : default_place(accounts, a);
    if (!can_chat(accounts, place))
        r = tell_unknown(accounts, provider, a, e);
    else
        add_pick(accounts, place, a, &picks);
    if (r == 0 && !is_named)            /* who names a provider wants that one */
        add_fallbacks(accounts, a, &picks);
    pthread_rwlock_unlock(&accounts->lock);
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
    const char *given = first_variable(env, preset->env_base_url), *region = preset->env_region ? variable(env, preset->env_region) : NULL;

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

/* A key is enough for a service with a known address, an address for one that needs no key. */
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
    *ret = accounts;
    return 0;
}

struct llm_accounts *llm_accounts_free(struct llm_accounts *accounts)
{
    if (!accounts)
        return NULL;
    for (size_t i = 0; i < accounts->n; i++)
        llm_seat_unref(accounts->seats[i]);
    pthread_rwlock_destroy(&accounts->lock);
    free(accounts);
    return NULL;
}
