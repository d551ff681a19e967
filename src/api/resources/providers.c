/* Adding and removing providers, for the local administrator. */
#include "api/resources/providers.h"

#include "api/api.h"
#include "api/routes.h"
#include "api/setting.h"
#include "base/limits.h"
#include "base/suggest.h"
#include "embed/lexical.h"
#include "identity/audit.h"
#include "identity/meter.h"
#include "llm/local/local.h"
#include "store/tables/provider_choices.h"
#include "store/vectors/vector_configs.h"

#include <pthread.h>
#include <strings.h>

struct provider_body {
    const char *preset, *name, *use, *base_url, *api_key, *model, *embed_model;
    struct json_value headers;
    struct field_strings models;
};

enum { PROVIDER_NAME_CHARS = 64, MODEL_CHARS = 256 };

static const struct field provider_fields[] = {
    FIELD_STRING(struct provider_body, preset, "preset", FIELD_REQUIRED, .min = 1, .max = LIMIT_NAME_CHARS,
                 .help = "an id of GET /api/providers/presets"),
    FIELD_STRING(struct provider_body, name, "name", .min = 1, .max = PROVIDER_NAME_CHARS,
                 .help = "what callers say as `provider`; absent: the preset's id"),
    FIELD_STRING(struct provider_body, use, "for", .one_of = llm_uses,
                 .help =
                     "models: chats and embeddings; speech: voices and ears; all; absent: models, or speech where the "
                     "preset has no models"),
    FIELD_STRING(struct provider_body, base_url, "base_url", .min = 1, .max = LIMIT_PROVIDER_SECRET,
                 .help = "absent: the preset's"),
    FIELD_STRING(struct provider_body, api_key, "api_key", .min = 1, .max = LIMIT_PROVIDER_SECRET,
                 .help = "sealed, never shown again"),
    FIELD_STRING(struct provider_body, model, "model", .min = 1, .max = MODEL_CHARS,
                 .help = "of chats, when a request names none"),
    FIELD_STRING(struct provider_body, embed_model, "embed_model", .min = 1, .max = MODEL_CHARS,
                 .help = "of embeddings, when a request names none"),
    FIELD_STRING_MAP(struct provider_body, headers, "headers", .max = LIMIT_PROVIDER_HEADERS,
                     .help = "sent with every request; values are sealed"),
    FIELD_STRINGS(struct provider_body, models, "models", .max = LIMIT_PROVIDER_MODELS,
                  .help = "shown beside those of the provider's own list"),
    FIELD_END,
};

static const struct field put_answer[] = {
    SHAPE_STRING("name"),
    SHAPE_OBJECT("provider", provider_shape),
    SHAPE_STRING("note", .flags = FIELD_NULLABLE, .help = "what else the change brings about"),
    FIELD_END,
};
static const struct field remove_answer[] = {
    SHAPE_STRING("note", .flags = FIELD_NULLABLE, .help = "what else the change brings about"), FIELD_END
};

/* ---- shared by the routes ---- */

struct llm_vault provider_vault(const struct request *req)
{
    return (struct llm_vault){ req->api->llm_accounts, req->api->store, req->api->identity };
}

const char *provider_names(const struct request *req)
{
    const char *names = "";
    size_t n;
    struct llm_account_state **states = llm_accounts_list(req->api->llm_accounts, req->arena, &n);

    for (size_t i = 0; i < n; i++)
        names = arena_printf(req->arena, "%s%s%s", names, i ? ", " : "", states[i]->account.name);
    return *names ? names : "none";
}

int provider_find(const struct request *req, const char *name, struct llm_account_state **ret, struct err *e)
{
    *ret = llm_accounts_find(req->api->llm_accounts, req->arena, name);
    if (*ret)
        return 0;
    return err_set(e, -ENOENT, "PROVIDER_NOT_FOUND", "The provider %.80s is not configured; configured are: %.300s.",
                   name, provider_names(req));
}

const char *provider_name_rule(const char *name)
{
    static const char *const taken[] = { LEXICAL_PROVIDER, "default",      "presets",
                                         "flite_local",    "espeak_local", "pocketsphinx_local",
                                         "piper_local",    "sherpa_local", "vosk_local" };
    bool has_begin = (*name >= '0' && *name <= '9') || ((*name | 32) >= 'a' && (*name | 32) <= 'z');

    if (!has_begin || name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.")])
        return "must begin with a letter or digit and have letters, digits, -, _ and . only";
    for (size_t i = 0; i < ARRAY_SIZE(taken); i++)
        if (strcmp(name, taken[i]) == 0)
            return "must be another name: this one is taken by the service";
    return NULL;
}

/* ---- the rules of an account ---- */

static bool is_printable(const char *text)
{
    for (; *text; text++)
        if (*text <= ' ' || *text > '~')
            return false;
    return true;
}

static int check_key(const struct provider_body *body, const struct llm_preset *preset, struct err *e)
{
    if (preset && preset->needs_key && !body->api_key)
        return err_add_field(e, "api_key", "is required for %s: %s", preset->id, preset->help);
    if (preset && preset->is_stand_in && body->api_key)
        return err_add_field(e, "api_key", "must be absent: %s is a part of this service", preset->id);
    if (body->api_key && !is_printable(body->api_key))
        return err_add_field(e, "api_key", "must be visible characters of ASCII without spaces");
    return 0;
}

static int check_url(const struct request *req, const struct provider_body *body, const struct llm_preset *preset,
                     struct err *e)
{
    const char *url;

    if (preset->is_stand_in)
        return body->base_url ? err_add_field(e, "base_url", "must be absent: %s is a part of this service", preset->id)
                              : 0;
    if (!body->base_url)
        return preset->base_url ? 0 : err_add_field(e, "base_url", "is required for %s: %s", preset->id, preset->help);
    if (!is_printable(body->base_url) || llm_account_address(req->arena, preset, body->base_url, &url, NULL) < 0)
        return err_add_field(e, "base_url", "must be an address like https://host/v1, without user name and password");
    return 0;
}

static enum llm_use use_of(const struct provider_body *body)
{
    for (size_t i = 0; body->use && llm_uses[i]; i++)
        if (strcmp(body->use, llm_uses[i]) == 0)
            return (enum llm_use)i;
    return LLM_USE_USUAL;
}

/* A name that chats already is not silently taken from them. */
static int check_use(const struct request *req, const struct provider_body *body, const struct llm_preset *preset,
                     struct err *e)
{
    const char *name = body->name ? body->name : preset->id;
    struct llm_account_state *before = llm_accounts_find(req->api->llm_accounts, req->arena, name);

    if (!body->use)
        return 0;
    if (use_of(body) == LLM_USE_USUAL)
        return llm_preset_is_for_speech(preset)
                   ? err_add_field(e, "for", "must be speech: %s has no language models", preset->id)
                   : 0;
    if (!preset->can_speak && !preset->can_hear)
        return err_add_field(e, "for", "must be models: %s is not known to speak or to hear", preset->id);
    if (use_of(body) == LLM_USE_SPEECH && before && before->account.source == LLM_STORED &&
        !llm_preset_is_for_speech(before->account.preset))
        return err_add_field(e, "name", "must be another one, or `for` be all: %.64s serves models already", name);
    return 0;
}

/* Headers that HTTP or the provider's protocol sets. */
static bool is_own_header(const char *name)
{
    static const char *const own[] = { "host",       "content-length", "content-type", "transfer-encoding",
                                       "connection", "expect",         "upgrade",      "te" };

    for (size_t i = 0; i < ARRAY_SIZE(own); i++)
        if (strcasecmp(name, own[i]) == 0)
            return true;
    return false;
}

static int check_header(const char *name, const char *value, struct err *e)
{
    char path[80];

    snprintf(path, sizeof(path), "headers.%s", name);
    if (!*name || !is_printable(name) || name[strcspn(name, ":,;\"()<>@[]{}?=\\/")])
        return err_add_field(e, path, "must be named by letters, digits and - only");
    if (is_own_header(name))
        return err_add_field(e, path, "is a header that the service itself sets");
    if (!value || !*value || strlen(value) > LIMIT_PROVIDER_SECRET)
        return err_add_field(e, path, "must have a value of 1 to %d characters", LIMIT_PROVIDER_SECRET);
    for (; *value; value++)
        if ((*value < ' ' && *value != '\t') || *value == 127)
            return err_add_field(e, path, "must be on one line, without control characters");
    return 0;
}

static int check_lists(const struct provider_body *body, struct err *e)
{
    struct json_iter it = json_iter(body->headers);
    struct json_value value;
    struct slice name;
    int r = 0;

    if (json_length(body->headers) > LIMIT_PROVIDER_HEADERS)
        return err_add_field(e, "headers", "must be at most %d", LIMIT_PROVIDER_HEADERS);
    while (json_next(&it, &name, &value))
        r = check_header(name.p, json_cstr(value), e) < 0 ? -EINVAL : r;
    for (size_t i = 0; i < body->models.n; i++)
        if (!*body->models.items[i] || strlen(body->models.items[i]) > MODEL_CHARS)
            return err_add_field(e, "models", "must be names of 1 to %d characters", MODEL_CHARS);
    return r;
}

/* Names the nearest preset when one is near. */
static int refuse_preset(const struct request *req, const char *preset, struct err *e)
{
    const char *near, **ids;
    size_t n = 0;

    while (llm_presets[n].id)
        n++;
    ids = arena_array(req->arena, n, sizeof(*ids));
    for (size_t i = 0; i < n; i++)
        ids[i] = llm_presets[i].id;
    near = suggest_name(preset, ids, n);
    return err_add_field(
        e, "preset",
        "must be a provider that is known by name%s%s%s: `hearth provider presets` lists them; for any other it is generic-openai",
        near ? " (did you mean " : "", near ? near : "", near ? "?)" : "");
}

static int check_provider(const struct request *req, const void *given, struct err *e)
{
    const struct provider_body *body = given;
    const struct llm_preset *preset = body->preset ? llm_preset_find(body->preset) : NULL;
    const char *rule = body->name ? provider_name_rule(body->name) : NULL;
    int r = rule ? err_add_field(e, "name", "%s", rule) : 0;

    if (body->preset && !preset)
        r = refuse_preset(req, body->preset, e);
    if (preset && check_url(req, body, preset, e) < 0)
        r = -EINVAL;
    if (preset && check_use(req, body, preset, e) < 0)
        r = -EINVAL;
    if (check_key(body, preset, e) < 0)
        r = -EINVAL;
    return check_lists(body, e) < 0 ? -EINVAL : r;
}

/* ---- side effects of a change ---- */

struct notes {
    const struct request *req;
    const char *text;
};

static void note(struct notes *n, const char *sentence)
{
    n->text = n->text ? arena_printf(n->req->arena, "%s %s", n->text, sentence) : sentence;
}

static void note_stand_in(struct notes *n, const struct llm_account *account)
{
    struct provider_default chats = { 0 };

    if (!account->preset->is_stand_in)
        return;
    note(n, "It is no language model: it repeats what you say (docs/providers.md lists its rules).");
    if (provider_default_for(metered_call(n->req), PROVIDER_CHAT, NULL, &chats, NULL) == 0 && chats.provider &&
        strcmp(chats.provider, account->name) != 0)
        note(n, arena_printf(n->req->arena, "Chats that name no provider still go to %s.", chats.provider));
}

/* ---- POST /api/providers ---- */

/* One change at a time, so that changes are stored and applied in the same order. */
static pthread_mutex_t changing = PTHREAD_MUTEX_INITIALIZER;

static struct llm_account account_of(const struct request *req, const struct provider_body *body)
{
    struct llm_account account = { .source = LLM_STORED,
                                   .use = use_of(body),
                                   .name = body->name ? body->name : body->preset,
                                   .preset = llm_preset_find(body->preset),
                                   .base_url = body->base_url,
                                   .api_key = body->api_key,
                                   .model = body->model,
                                   .embed_model = body->embed_model,
                                   .models = body->models.items,
                                   .n_models = body->models.n };
    struct http_call_header *headers = arena_array(req->arena, json_length(body->headers) + 1, sizeof(*headers));
    struct json_iter it = json_iter(body->headers);
    struct json_value value;
    struct slice name;

    while (json_next(&it, &name, &value))
        headers[account.n_headers++] = (struct http_call_header){ name.p, json_cstr(value) };
    account.headers = headers;
    return account;
}

/* Have callers embedded texts, as far as the usage log reaches back? The administrator's tests do not count. */
static int has_embedded(const struct request *req, bool *ret, struct err *e)
{
    const struct usage_request request = { .from = "0000-01-01",
                                           .to = "9999-12-31",
                                           .only = { [USAGE_KIND] = "embed" },
                                           .by = USAGE_BY(USAGE_APP) | USAGE_BY(USAGE_KEY),
                                           .limit = LIMIT_LIST };
    struct usage_page page = { 0 };
    bool has = false;
    int r = meter_flush(req->api->meter, e);

    if (r == 0)
        r = store_usage_list(req->api->store, req->arena, &request, &page, e);
    for (size_t i = 0; r == 0 && i < page.n; i++)
        has |= (*page.rows[i].of[USAGE_APP] || *page.rows[i].of[USAGE_KEY]) &&
               page.rows[i].counts.requests > page.rows[i].counts.failed;
    if (r == 0 && !has)
        r = store_vector_models_any(req->api->store, &has, e);
    *ret = has;
    return r;
}

/* The first provider with an embedding model becomes the embedding provider; vectors of a later one could not be
 * compared with existing vectors. */
static int take_embeddings(const struct request *req, const struct llm_account *account, struct notes *n, struct err *e)
{
    struct settings *settings = req->api->settings;
    bool is_unset = settings_origin(settings, SETTING_EMBED_PROVIDER) == ORIGIN_DEFAULT &&
                    settings_origin(settings, SETTING_EMBED_MODEL) == ORIGIN_DEFAULT;
    bool has = false;
    int r;

    if (!account->embed_model || !account->preset->can_embed || account->use == LLM_USE_SPEECH || !is_unset)
        return 0;
    r = has_embedded(req, &has, e);
    if (r == 0 && !has)
        r = setting_change(req, settings_rules[SETTING_EMBED_PROVIDER].key, account->name, e);
    if (r == 0)
        note(n,
             arena_printf(req->arena,
                          has ? "Embeddings that name no provider are still made by " LEXICAL_PROVIDER
                                ", which has made some already; "
                                "`hearth provider default %s --for embed` changes that."
                              : "Nothing is embedded yet: embeddings that name no provider are made by %s from now on.",
                          account->name));
    return r;
}

static int put_provider(struct request *req, struct response *res, struct err *e)
{
    const struct llm_account account = account_of(req, req->body);
    const struct llm_vault vault = provider_vault(req);
    struct llm_account_state *before = llm_accounts_find(req->api->llm_accounts, req->arena, account.name), *now = NULL;
    struct provider_account_row row = { 0 };
    struct notes notes = { .req = req };
    int r;

    pthread_mutex_lock(&changing);
    r = llm_account_check(&account, e);
    if (r == 0)
        r = audit_append_values(req->api->identity, req->caller->actor, "provider.add", account.name, req->body_json,
                                e);
    if (r == 0)
        r = llm_stored_put(&vault, &account, e);
    pthread_mutex_unlock(&changing);
    if (r == 0 && before && before->account.source == LLM_ENVIRONMENT)
        note(&notes, "It counts instead of the one of that name that the environment configures.");
    if (r == 0)
        note_stand_in(&notes, &account);
    if (r == 0)
        r = take_embeddings(req, &account, &notes, e);
    if (r == 0)
        r = provider_find(req, account.name, &now, e);
    if (r == 0)
        r = store_provider_accounts_get(req->api->store, req->arena, account.name, &row, e);
    if (r < 0)
        return r;
    json_add_string(&res->json, "name", account.name);
    provider_write(req, &res->json, "provider", now, &row);
    json_add_string(&res->json, "note", notes.text);
    return 0;
}

/* ---- DELETE /api/providers/:name ---- */

static void note_defaults(struct notes *n, const char *name, const struct provider_default *chats_before)
{
    const struct request *req = n->req;
    struct provider_default chats = { 0 }, embeddings = { 0 };

    if (provider_default_for(metered_call(req), PROVIDER_CHAT, NULL, &chats, NULL) < 0 ||
        provider_default_for(metered_call(req), PROVIDER_EMBED, NULL, &embeddings, NULL) < 0)
        return;
    if (chats_before->provider && strcmp(chats_before->provider, name) == 0)
        note(n, chats.provider
                    ? arena_printf(req->arena, "It was the default of chats: %s is asked now.", chats.provider)
                    : "It was the default of chats, and no other provider is left.");
    if (embeddings.provider && strcmp(embeddings.provider, name) == 0)
        note(
            n,
            "It made the embeddings: requests for them are refused until `hearth provider default NAME --for embed` names another, because vectors of two "
            "models cannot be compared.");
}

static void note_apps(struct notes *n, const char *name)
{
    struct provider_choice_row *rows = NULL;
    const char *apps = "", *last = "";
    size_t n_rows = 0;

    if (store_provider_choices_list(n->req->api->store, n->req->arena, &rows, &n_rows, NULL) < 0)
        return;
    for (size_t i = 0; i < n_rows; i++) {
        if (strcmp(rows[i].provider, name) != 0 || strcmp(rows[i].app_id, last) == 0)
            continue;
        last = rows[i].app_id;
        apps = arena_printf(n->req->arena, "%s%s%s", apps, *apps ? ", " : "", rows[i].app_name);
    }
    if (*apps)
        note(n,
             arena_printf(n->req->arena,
                          "Set to use it, and refused until it is there again or they are given another: %s.", apps));
}

static void note_fallbacks(struct notes *n, const char *name)
{
    size_t n_names;
    const char *const *names = settings_list(n->req->api->settings, n->req->arena, SETTING_LLM_FALLBACKS, &n_names);

    for (size_t i = 0; i < n_names; i++)
        if (strcmp(names[i], name) == 0)
            note(n, "The setting llm.fallbacks still names it; it is passed over there.");
}

static void note_voices(struct notes *n, const char *name)
{
    size_t n_rows, n_name = strlen(name);
    const char *const *rows = settings_list(n->req->api->settings, n->req->arena, SETTING_SPEECH_VOICES, &n_rows);

    for (size_t i = 0; i < n_rows; i++) {
        const char *provider = strchr(rows[i], '=');

        if (provider && strncmp(provider + 1, name, n_name) == 0 && provider[1 + n_name] == '/') {
            note(n,
                 "The setting speech.voices still names it; texts of that language are refused until it is changed.");
            return;
        }
    }
}

static const char *notes_of_removal(const struct request *req, const char *name,
                                    const struct provider_default *chats_before)
{
    struct notes n = { .req = req };

    if (llm_accounts_find(req->api->llm_accounts, req->arena, name))
        return "The one of that name that the environment configures counts again.";
    note_defaults(&n, name, chats_before);
    note_fallbacks(&n, name);
    note_voices(&n, name);
    note_apps(&n, name);
    return n.text;
}

/* A provider that exists but is not stored cannot be removed here. */
static int check_removable(const struct request *req, const char *name, struct err *e)
{
    struct provider_account_row row;
    int r = store_provider_accounts_get(req->api->store, req->arena, name, &row, NULL);
    struct llm_account_state *state = NULL;

    if (r != -ENOENT)
        return r < 0 ? err_set(e, r, err_code_of(r, "STORE_ERROR"), "The stored providers cannot be read.") : 0;
    r = provider_find(req, name, &state, e);
    if (r < 0)
        return r;
    if (state->account.source == LLM_FOUND)
        return err_set(e, -EEXIST, "PROVIDER_NOT_STORED",
                       "%.80s was found running on this machine and is not stored: there is nothing to remove.", name);
    if (state->account.source == LLM_RUN)
        return err_set(
            e, -EEXIST, "PROVIDER_NOT_STORED",
            "%.80s runs the files of the models folder and is not stored: take them out, or empty the setting "
            "llamacpp.server.",
            name);
    return err_set(
        e, -EEXIST, "PROVIDER_NOT_STORED",
        "%.80s comes from the environment of the service: unset its variables there (`hearth provider presets` "
        "lists them) and restart it.",
        name);
}

static int remove_provider(struct request *req, struct response *res, struct err *e)
{
    const struct llm_vault vault = provider_vault(req);
    const char *name = req->params[0];
    struct provider_default chats_before = { 0 };
    int r = provider_default_for(metered_call(req), PROVIDER_CHAT, NULL, &chats_before, e);

    pthread_mutex_lock(&changing);
    if (r == 0)
        r = check_removable(req, name, e);
    if (r == 0)
        r = audit_append(req->api->identity, req->caller->actor, "provider.remove", name, NULL, e);
    if (r == 0)
        r = llm_stored_remove(&vault, name, e);
    pthread_mutex_unlock(&changing);
    if (r == 0)
        json_add_string(&res->json, "note", notes_of_removal(req, name, &chats_before));
    return r;
}

/* ---- accept ---- */

/* Once the user has accepted a server on this machine, it is used whenever it is found. */
static int accept_provider(struct request *req, struct response *res, struct err *e)
{
    const char *name = req->params[0], *text = name;
    size_t n;
    const char *const *names = settings_list(req->api->settings, req->arena, SETTING_LLM_LOCAL_ACCEPTED, &n);
    int r;

    if (!llm_local_knows(name))
        return err_set(e, -ENOENT, "PROVIDER_NOT_FOUND",
                       "%.80s is no server that is looked for on this machine; `hearth provider add` adds others.",
                       name);
    for (size_t i = 0; i < n; i++)
        if (strcmp(names[i], name) != 0)
            text = arena_printf(req->arena, "%s,%s", text, names[i]);
    r = setting_change(req, settings_rules[SETTING_LLM_LOCAL_ACCEPTED].key, text, e);
    if (r == 0)
        json_add_string(&res->json, "name", name);
    return r;
}

static const struct field accept_answer[] = { SHAPE_STRING("name"), FIELD_END };

const struct route provider_routes[] = {
    { .method = HTTP_POST,
      .path = "/api/providers/:name/accept",
      .permission = PERM_ADMIN,
      .answer = accept_answer,
      .defines = true,
      .handler = accept_provider,
      .summary = "Let a model server that was found on this machine be used",
      .tag = "Providers" },
    { .method = HTTP_POST,
      .path = "/api/providers",
      .permission = PERM_ADMIN,
      ROUTE_BODY(provider_fields, struct provider_body),
      .check_body = check_provider,
      .status = 201,
      .answer = put_answer,
      .defines = true,
      .handler = put_provider,
      .summary = "Add a provider of models, or replace the one of that name",
      .tag = "Providers" },
    { .method = HTTP_DELETE,
      .path = "/api/providers/:name",
      .permission = PERM_ADMIN,
      .answer = remove_answer,
      .defines = true,
      .handler = remove_provider,
      .summary = "Forget a stored provider and its secrets",
      .tag = "Providers" },
    ROUTE_END,
};
