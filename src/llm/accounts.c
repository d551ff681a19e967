#include "llm/accounts.h"

#include "base/log.h"
#include "base/uuid.h"
#include "net/url.h"

#include <stdlib.h>
#include <string.h>

struct llm_accounts {
    struct settings *settings;          /* borrowed */
    pthread_rwlock_t lock;
    struct llm_seat *seats[LIMIT_LLM_ACCOUNTS]; /* references */
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

static int make_seat(struct llm_accounts *accounts, const struct llm_account *from, struct llm_seat **ret, struct err *e)
{
    struct llm_seat *s = xcalloc(1, sizeof(*s));
    const struct llm_preset *preset = from->preset;
    struct llm_account *to = &s->account;
    int r = 0;

    s->arena = arena_new();
    atomic_init(&s->n_refs, 1);
    pthread_mutex_init(&s->lock, NULL);
    *to = (struct llm_account){ .name = arena_strdup(s->arena, from->name), .preset = preset, .base_url = preset->base_url,
                                .api_key = arena_strdup(s->arena, from->api_key), .model = arena_strdup(s->arena, from->model),
                                .embed_model = arena_strdup(s->arena, from->embed_model) };
    memcpy(to->id, from->id, sizeof(to->id));
    if (!*to->id)
        uuid_of_text(slice_of(to->name), to->id);
    if (!to->model)
        to->model = preset->default_model;
    copy_headers(s, from);
    s->may_not_stream = accounts->is_streaming_disabled && preset->quirks & LLM_QUIRK_MAY_NOT_STREAM;
    if (from->base_url)
        r = complete_path(s->arena, preset, complete_address(s->arena, preset, arena_strdup(s->arena, from->base_url)), &to->base_url, e);
    if (r == 0)
        r = check_account(to, e);
    if (r < 0) {
        llm_seat_unref(s);
        return r;
    }
    *ret = s;
    return 0;
}

/* ---- the list; all under the lock ---- */

static size_t place_of(const struct llm_accounts *accounts, const char *name)
{
    size_t i = 0;

    while (i < accounts->n && strcmp(accounts->seats[i]->account.name, name) != 0)
        i++;
    return i;
}

static size_t default_place(struct llm_accounts *accounts, struct arena *a)
{
    size_t i = place_of(accounts, settings_string(accounts->settings, a, SETTING_LLM_DEFAULT_PROVIDER));

    return i < accounts->n ? i : 0;
}

int llm_accounts_put(struct llm_accounts *accounts, const struct llm_account *account, struct err *e)
{
    struct llm_seat *s = NULL, *old = NULL;
    int r = make_seat(accounts, account, &s, e);
    size_t i;

    if (r < 0)
        return r;
    pthread_rwlock_wrlock(&accounts->lock);
    i = place_of(accounts, account->name);
    if (i == LIMIT_LLM_ACCOUNTS) {
        r = err_set(e, -EDQUOT, "TOO_MANY_ACCOUNTS", "There are %d accounts of providers already; remove one first.", LIMIT_LLM_ACCOUNTS);
        old = s;
    } else {
        old = accounts->seats[i];
        accounts->n = MAX(accounts->n, i + 1);
        accounts->seats[i] = s;
    }
    pthread_rwlock_unlock(&accounts->lock);
    llm_seat_unref(old);
    return r;
}

bool llm_accounts_remove(struct llm_accounts *accounts, const char *name)
{
    struct llm_seat *gone = NULL;
    size_t i;

    pthread_rwlock_wrlock(&accounts->lock);
    i = place_of(accounts, name);
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

    pthread_rwlock_rdlock(&accounts->lock);
    first = default_place(accounts, a);
    if (accounts->n > 0)
        seats[n++] = hold(accounts->seats[first], a);
    for (size_t i = 0; i < accounts->n; i++)
        if (i != first)
            seats[n++] = hold(accounts->seats[i], a);
    pthread_rwlock_unlock(&accounts->lock);
    *ret_n = n;
    return seats;
}

/* ---- whom to ask ---- */

static int tell_unknown(struct llm_accounts *accounts, const char *provider, struct arena *a, struct err *e)
{
    const char *names = "";

    if (accounts->n == 0)
        return err_set(e, -EAGAIN, "PROVIDER_UNAVAILABLE",
                       "No provider of language models is configured. Set OPENAI_API_KEY, ANTHROPIC_API_KEY, or OLLAMA_HOST=http://127.0.0.1:11434 (or "
                       "another variable of docs/language-models.md) in the environment of the service and restart it.");
    for (size_t i = 0; i < accounts->n; i++)
        names = arena_printf(a, "%s%s%s", names, i ? ", " : "", accounts->seats[i]->account.name);
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

        if (place < accounts->n)
            add_pick(accounts, place, a, picks);
    }
}

int llm_accounts_pick(struct llm_accounts *accounts, struct arena *a, const char *provider, struct llm_picks *ret, struct err *e)
{
    bool is_named = provider && *provider;
    struct llm_picks picks = { .n = 0 };
    size_t place;
    int r = 0;

    pthread_rwlock_rdlock(&accounts->lock);
    place = is_named ? place_of(accounts, provider) : default_place(accounts, a);
    if (place == accounts->n)
        r = tell_unknown(accounts, provider, a, e);
    else
        add_pick(accounts, place, a, &picks);
    if (r == 0 && !is_named)            /* who names a provider wants that one */
        add_fallbacks(accounts, a, &picks);
    pthread_rwlock_unlock(&accounts->lock);
    if (r == 0)
        *ret = picks;
    return r;
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

static const char *first_variable(const char *const *env, const char *const names[2])
{
    const char *value = variable(env, names[0]);

    return value ? value : variable(env, names[1]);
}

/* A key is enough for a service with a known address, an address for one that needs no key. */
static void put_from_env(struct llm_accounts *accounts, const struct llm_preset *preset, const char *const *env)
{
    const struct llm_account account = {
        .name = preset->id,
        .preset = preset,
        .api_key = first_variable(env, preset->env_key),
        .base_url = first_variable(env, preset->env_base_url),
        .model = first_variable(env, preset->env_model),
    };
    struct err e = { 0 };

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
