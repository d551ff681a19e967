/* Makes the state of an account, whose strings it copies; checks addresses and what the preset needs. */
#include "llm/accounts.h"

#include "base/uuid.h"
#include "net/url.h"

#include <stdlib.h>
#include <string.h>

/* "127.0.0.1:11434", "0.0.0.0", "myhost": the forms people write for OLLAMA_HOST. */
static const char *complete_address(struct arena *a, const struct llm_preset *preset, const char *text)
{
    unsigned port = preset->protocol->default_port;
    const char *colon;

    if (!port || strstr(text, "://"))
        return text;
    colon = strrchr(text, ':');
    if (strncmp(text, "0.0.0.0", 7) == 0) /* an address to listen on, not to call */
        text = arena_printf(a, "127.0.0.1%s", text + 7);
    if (colon && strspn(colon + 1, "0123456789") == strlen(colon + 1))
        return arena_printf(a, "http://%s", text);
    return arena_printf(a, "http://%s:%u", text, port);
}

/* An address without a path gets the provider's usual path. */
static int complete_path(struct arena *a, const struct llm_preset *preset, const char *text, const char **ret,
                         struct err *e)
{
    const char *host = strstr(text, "://"), *path;
    struct url url = { 0 };
    int r = url_parse(a, text, &url, e);

    if (r < 0)
        return r;
    path = host ? strchr(host + 3, '/') : NULL;
    *ret = preset->base_path && (!path || !path[1])
               ? arena_printf(a, "%.*s%s", (int)(path ? path - text : (ptrdiff_t)strlen(text)), text, preset->base_path)
               : text;
    return 0;
}

int llm_account_address(struct arena *a, const struct llm_preset *preset, const char *text, const char **ret,
                        struct err *e)
{
    return complete_path(a, preset, complete_address(a, preset, arena_strdup(a, text)), ret, e);
}

static int check_account(const struct llm_account *account, struct err *e)
{
    if (!account->base_url && !account->preset->is_stand_in)
        return err_set(e, -EINVAL, "BAD_ACCOUNT", "%s needs a base URL: %s", account->name, account->preset->help);
    if (account->preset->needs_key && (!account->api_key || !*account->api_key))
        return err_set(e, -EINVAL, "BAD_ACCOUNT", "%s needs an API key: %s", account->name, account->preset->help);
    return 0;
}

static void copy_headers(struct llm_account_state *s, const struct llm_account *from)
{
    struct http_call_header *headers = arena_array(s->arena, from->n_headers + 1, sizeof(*headers));

    for (size_t i = 0; i < from->n_headers; i++)
        headers[i] = (struct http_call_header){ arena_strdup(s->arena, from->headers[i].name),
                                                arena_strdup(s->arena, from->headers[i].value) };
    s->account.headers = headers;
    s->account.n_headers = from->n_headers;
}

static void copy_models(struct llm_account_state *s, const struct llm_account *from)
{
    const char **models = arena_array(s->arena, from->n_models + 1, sizeof(*models));

    for (size_t i = 0; i < from->n_models; i++)
        models[i] = arena_strdup(s->arena, from->models[i]);
    s->account.models = models;
    s->account.n_models = from->n_models;
}

/* A copy of the preset that has speech alone. */
static const struct llm_preset *without_models(struct arena *a, const struct llm_preset *preset)
{
    struct llm_preset *copy = ARENA_NEW(a, struct llm_preset);

    *copy = *preset;
    copy->can_chat = copy->can_embed = false;
    copy->default_model = copy->default_embed_model = NULL;
    copy->quirks |= LLM_QUIRK_NO_MODEL_LIST;
    return copy;
}

int llm_account_make(const struct llm_account *from, bool is_streaming_disabled, struct llm_account_state **ret,
                     struct err *e)
{
    struct llm_account_state *s = xcalloc(1, sizeof(*s));
    const struct llm_preset *preset = from->preset;
    struct llm_account *to = &s->account;
    int r = 0;

    s->arena = arena_new();
    atomic_init(&s->n_refs, 1);
    pthread_mutex_init(&s->lock, NULL);
    if (from->use == LLM_USE_SPEECH)
        preset = without_models(s->arena, preset);
    *to = (struct llm_account){ .source = from->source,
                                .use = from->use,
                                .runner = from->runner,
                                .local = from->local,
                                .name = arena_strdup(s->arena, from->name),
                                .preset = preset,
                                .base_url = preset->base_url,
                                .api_key = arena_strdup(s->arena, from->api_key),
                                .model = arena_strdup(s->arena, from->model),
                                .embed_model = arena_strdup(s->arena, from->embed_model) };
    memcpy(to->id, from->id, sizeof(to->id));
    if (!*to->id)
        uuid_of_text(slice_of(to->name), to->id);
    if (!to->model)
        to->model = preset->default_model;
    copy_headers(s, from);
    copy_models(s, from);
    s->may_not_stream = is_streaming_disabled && preset->quirks & LLM_QUIRK_MAY_NOT_STREAM;
    if (from->base_url)
        r = llm_account_address(s->arena, preset, from->base_url, &to->base_url, e);
    if (r == 0)
        r = check_account(to, e);
    if (r < 0) {
        llm_account_state_unref(s);
        return r;
    }
    *ret = s;
    return 0;
}

int llm_account_check(const struct llm_account *account, struct err *e)
{
    struct llm_account_state *s = NULL;
    int r = llm_account_make(account, false, &s, e);

    llm_account_state_unref(s);
    return r;
}
