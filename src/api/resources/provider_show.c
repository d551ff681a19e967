/* Providers as the administrator sees them: the configured ones with origin and state, and the presets. Secrets are
 * masked. */
#include "api/resources/providers.h"

#include "api/api.h"
#include "api/routes.h"
#include "base/limits.h"
#include "embed/lexical.h"
#include "llm/local/local.h"
#include "store/tables/provider_choices.h"

#define MASK "****"
enum { LAST_CHARS = 4, LONG_ENOUGH = 12 /* long enough for its last four characters to reveal nothing */ };

static const struct field header_shape[] = { SHAPE_STRING("name"), SHAPE_STRING("value", .help = MASK), FIELD_END };

const struct field provider_shape[] = {
    SHAPE_STRING("name", .help = "what callers say as `provider`"),
    SHAPE_STRING("preset"),
    SHAPE_STRING("label"),
    SHAPE_STRING("protocol", .flags = FIELD_NULLABLE),
    SHAPE_STRING("source", .help = "stored, environment, run (by this service) or found"),
    SHAPE_STRING("base_url", .flags = FIELD_NULLABLE, .help = "its parameters are masked"),
    SHAPE_STRING("key", .flags = FIELD_NULLABLE, .help = MASK " and its last four characters; null: none"),
    SHAPE_LIST("headers", header_shape),
    SHAPE_STRING("model", .flags = FIELD_NULLABLE, .help = "null: the first of its list"),
    SHAPE_STRING("embed_model", .flags = FIELD_NULLABLE),
    SHAPE_STRINGS("models", .help = "the list written by hand"),
    SHAPE_BOOL("can_chat"),
    SHAPE_BOOL("can_embed"),
    SHAPE_BOOL("can_speak"),
    SHAPE_BOOL("can_hear"),
    SHAPE_STRING("for", .help = "models, speech or all"),
    SHAPE_BOOL("stand_in", .help = "true: no language model, it repeats what it is told"),
    SHAPE_STRINGS("default_for", .help = "chat, embed: asked when neither request nor app names another"),
    SHAPE_STRING("state", .help = "ok, resting (failed several times in a row) or unusable"),
    SHAPE_STRINGS("resting_models", .help = "those that failed several times in a row; the others are asked"),
    SHAPE_STRING("reason", .flags = FIELD_NULLABLE, .help = "why it is unusable"),
    SHAPE_STRING("last_error", .flags = FIELD_NULLABLE, .help = "why the last request failed; null: it did not"),
    SHAPE_TIME("last_error_at", .flags = FIELD_NULLABLE),
    SHAPE_TIME("created_at", .flags = FIELD_NULLABLE),
    SHAPE_TIME("updated_at", .flags = FIELD_NULLABLE),
    FIELD_END,
};

static const struct field default_shape[] = {
    SHAPE_STRING("provider", .flags = FIELD_NULLABLE),
    SHAPE_STRING("model", .flags = FIELD_NULLABLE, .help = "null: the provider's own"),
    SHAPE_STRING("origin", .help = "setting, or order: the first that is configured"),
    FIELD_END,
};

static const struct field defaults_shape[] = { SHAPE_OBJECT("chat", default_shape),
                                               SHAPE_OBJECT("embed", default_shape), FIELD_END };

static const struct field app_shape[] = {
    SHAPE_STRING("app_id"),
    SHAPE_STRING("app"),
    SHAPE_STRING("capability"),
    SHAPE_STRING("provider"),
    SHAPE_STRING("model", .flags = FIELD_NULLABLE),
    SHAPE_BOOL("configured"),
    FIELD_END,
};

static const struct field fallback_shape[] = { SHAPE_STRING("provider"),
                                               SHAPE_BOOL("configured", .help = "false: passed over"), FIELD_END };

static const struct field waiting_shape[] = {
    SHAPE_STRING("name"),
    SHAPE_STRING("label"),
    SHAPE_STRING("address"),
    SHAPE_BOOL(
        "foreign",
        .help = "true: another user's program, which is never used; false: waits for POST /api/providers/NAME/accept"),
    FIELD_END,
};

static const struct field providers_answer[] = {
    SHAPE_LIST("providers", provider_shape),
    SHAPE_OBJECT("defaults", defaults_shape),
    SHAPE_LIST("fallbacks", fallback_shape, .help = "asked in this order when the default fails before its first byte"),
    SHAPE_LIST("apps", app_shape, .help = "apps with a provider of their own"),
    SHAPE_LIST("waiting", waiting_shape, .help = "model servers found on this machine that are not used"),
    FIELD_END,
};

static const struct field preset_shape[] = {
    SHAPE_STRING("id"),
    SHAPE_STRING("label"),
    SHAPE_STRING("protocol"),
    SHAPE_STRING("base_url", .flags = FIELD_NULLABLE),
    SHAPE_STRINGS("needs", .help = "base_url, api_key: what must be given"),
    SHAPE_BOOL("can_chat"),
    SHAPE_BOOL("can_embed"),
    SHAPE_BOOL("can_speak", .help = "for speech: `for` speech or all"),
    SHAPE_BOOL("can_hear"),
    SHAPE_STRING("model", .flags = FIELD_NULLABLE, .help = "when none is given"),
    SHAPE_STRING("embed_model", .flags = FIELD_NULLABLE),
    SHAPE_STRINGS("variables", .help = "of the environment, that configure it without being stored"),
    SHAPE_STRING("help"),
    FIELD_END,
};

static const struct field presets_answer[] = { SHAPE_LIST("presets", preset_shape), FIELD_END };

/* ---- one account ---- */

static const char *mask_key(struct arena *a, const char *key)
{
    size_t n = key ? strlen(key) : 0;

    if (n == 0)
        return NULL;
    return n < LONG_ENOUGH ? MASK : arena_printf(a, MASK "%s", key + n - LAST_CHARS);
}

static const char *mask_url(struct arena *a, const char *url)
{
    size_t n = url ? strcspn(url, "?") : 0;

    return url && url[n] ? arena_printf(a, "%.*s?" MASK, (int)n, url) : url;
}

static void write_headers(struct json_writer *w, const struct llm_account *acc)
{
    json_begin_array_as(w, "headers");
    for (size_t i = 0; i < acc->n_headers; i++) {
        json_begin_object(w);
        json_add_string(w, "name", acc->headers[i].name);
        json_add_string(w, "value", MASK);
        json_end(w);
    }
    json_end(w);
}

static void write_defaults_of(const struct request *req, struct json_writer *w, const char *name)
{
    json_begin_array_as(w, "default_for");
    for (int what = PROVIDER_CHAT; what <= PROVIDER_EMBED; what++) {
        struct provider_default def = { 0 };

        if (provider_default_for(metered_call(req), what, NULL, &def, NULL) == 0 && def.provider &&
            strcmp(def.provider, name) == 0)
            json_add_string(w, NULL, provider_capabilities[what]);
    }
    json_end(w);
}

static void write_times(struct json_writer *w, const struct provider_account_row *row)
{
    json_add_string(w, "created_at", row ? row->created_at : NULL);
    json_add_string(w, "updated_at", row ? row->updated_at : NULL);
}

static const char *use_word(const struct llm_preset *preset, enum llm_use use)
{
    return llm_uses[use == LLM_USE_USUAL && llm_preset_is_for_speech(preset) ? LLM_USE_SPEECH : use];
}

void provider_write(const struct request *req, struct json_writer *w, const char *name,
                    const struct llm_account_state *state, const struct provider_account_row *row)
{
    static const char *const sources[] = {
        [LLM_STORED] = "stored", [LLM_ENVIRONMENT] = "environment", [LLM_RUN] = "run", [LLM_FOUND] = "found"
    };
    const struct field_strings resting =
        llm_account_state_resting_models((struct llm_account_state *)state, req->arena);
    const struct llm_failure failure = llm_account_state_failure((struct llm_account_state *)state, req->arena);
    const struct llm_account *acc = &state->account;

    json_begin_object_as(w, name);
    json_add_string(w, "name", acc->name);
    json_add_string(w, "preset", acc->preset->id);
    json_add_string(w, "label", acc->preset->label);
    json_add_string(w, "protocol", acc->preset->protocol->name);
    json_add_string(w, "source", sources[acc->source]);
    json_add_string(w, "base_url", acc->runner ? NULL : mask_url(req->arena, acc->base_url));
    json_add_string(w, "key", mask_key(req->arena, acc->api_key));
    write_headers(w, acc);
    json_add_string(w, "model", acc->model);
    json_add_string(w, "embed_model", acc->embed_model ? acc->embed_model : acc->preset->default_embed_model);
    json_add_strings(w, "models", acc->models, acc->n_models);
    json_add_bool(w, "can_chat", acc->preset->can_chat);
    json_add_bool(w, "can_embed", acc->preset->can_embed);
    json_add_bool(w, "can_speak", acc->preset->can_speak && llm_account_is_for_speech(acc));
    json_add_bool(w, "can_hear", acc->preset->can_hear && llm_account_is_for_speech(acc));
    json_add_string(w, "for", use_word(acc->preset, acc->use));
    json_add_bool(w, "stand_in", acc->preset->is_stand_in);
    write_defaults_of(req, w, acc->name);
    json_add_string(w, "state",
                    llm_account_state_rest_ms((struct llm_account_state *)state, NULL) > 0 ? "resting" : "ok");
    json_add_strings(w, "resting_models", resting.items, resting.n);
    json_add_string(w, "reason", NULL);
    json_add_string(w, "last_error", failure.text);
    json_add_string(w, "last_error_at", failure.at);
    write_times(w, row);
    json_end(w);
}

/* Writes a stored provider that could not be loaded, from its row alone. */
static void write_unusable(struct json_writer *w, const struct provider_account_row *row, const char *reason)
{
    const struct llm_preset *preset = llm_preset_find(row->preset);

    json_begin_object(w);
    json_add_string(w, "name", row->name);
    json_add_string(w, "preset", row->preset);
    json_add_string(w, "label", preset ? preset->label : row->preset);
    json_add_string(w, "protocol", preset ? preset->protocol->name : NULL);
    json_add_string(w, "source", "stored");
    json_add_string(w, "base_url", NULL);
    json_add_string(w, "key", NULL);
    json_add_strings(w, "headers", NULL, 0);
    json_add_string(w, "model", row->model);
    json_add_string(w, "embed_model", row->embed_model);
    json_add_raw(w, "models", row->models);
    json_add_bool(w, "can_chat", false);
    json_add_bool(w, "can_embed", false);
    json_add_bool(w, "can_speak", false);
    json_add_bool(w, "can_hear", false);
    json_add_string(w, "for", preset ? use_word(preset, LLM_USE_USUAL) : llm_uses[LLM_USE_USUAL]);
    json_add_bool(w, "stand_in", preset && preset->is_stand_in);
    json_add_strings(w, "default_for", NULL, 0);
    json_add_string(w, "state", "unusable");
    json_add_strings(w, "resting_models", NULL, 0);
    json_add_string(w, "reason", reason);
    json_add_string(w, "last_error", NULL);
    json_add_string(w, "last_error_at", NULL);
    write_times(w, row);
    json_end(w);
}

/* ---- GET /api/providers ---- */

struct stored_rows {
    struct provider_account_row *items;
    size_t n;
};

static const struct provider_account_row *row_of(const struct stored_rows *rows, const struct llm_account_state *state)
{
    for (size_t i = 0; i < rows->n && state->account.source == LLM_STORED; i++)
        if (strcmp(rows->items[i].name, state->account.name) == 0)
            return &rows->items[i];
    return NULL;
}

static void write_unusable_ones(const struct request *req, struct json_writer *w, const struct stored_rows *rows)
{
    const struct llm_vault vault = provider_vault(req);

    for (size_t i = 0; i < rows->n; i++) {
        struct llm_account account;
        struct err why = { 0 };

        if (llm_stored_open(&vault, &rows->items[i], req->arena, &account, &why) < 0)
            write_unusable(w, &rows->items[i], why.text);
    }
}

static void write_default(const struct request *req, struct json_writer *w, enum provider_capability what)
{
    struct provider_default def = { 0 };

    if (provider_default_for(metered_call(req), what, NULL, &def, NULL) < 0)
        def.origin = "order";
    json_begin_object_as(w, provider_capabilities[what]);
    json_add_string(w, "provider", def.provider);
    json_add_string(w, "model", def.model);
    json_add_string(w, "origin", def.origin);
    json_end(w);
}

static void write_fallbacks(const struct request *req, struct json_writer *w)
{
    size_t n;
    const char *const *names = settings_list(req->api->settings, req->arena, SETTING_LLM_FALLBACKS, &n);

    json_begin_array_as(w, "fallbacks");
    for (size_t i = 0; i < n; i++) {
        json_begin_object(w);
        json_add_string(w, "provider", names[i]);
        json_add_bool(w, "configured", provider_can(metered_call(req), PROVIDER_CHAT, names[i]));
        json_end(w);
    }
    json_end(w);
}

static int write_apps(const struct request *req, struct json_writer *w, struct err *e)
{
    struct provider_choice_row *rows = NULL;
    size_t n = 0;
    int r = store_provider_choices_list(req->api->store, req->arena, &rows, &n, e);

    if (r < 0)
        return r;
    json_begin_array_as(w, "apps");
    for (size_t i = 0; i < n; i++) {
        json_begin_object(w);
        json_add_string(w, "app_id", rows[i].app_id);
        json_add_string(w, "app", rows[i].app_name);
        json_add_string(w, "capability", rows[i].capability);
        json_add_string(w, "provider", rows[i].provider);
        json_add_string(w, "model", rows[i].model);
        json_add_bool(w, "configured",
                      provider_can(metered_call(req), provider_capability_of(rows[i].capability), rows[i].provider));
        json_end(w);
    }
    json_end(w);
    return 0;
}

static void write_waiting(struct request *req, struct json_writer *w)
{
    struct llm_waiting waiting[LLM_N_PROBES];
    size_t n = llm_accounts_waiting(req->api->llm_accounts, waiting);

    json_begin_array_as(w, "waiting");
    for (size_t i = 0; i < n; i++) {
        json_begin_object(w);
        json_add_string(w, "name", waiting[i].name);
        json_add_string(w, "label", waiting[i].label);
        json_add_string(w, "address", arena_printf(req->arena, "http://127.0.0.1:%u", waiting[i].port));
        json_add_bool(w, "foreign", waiting[i].is_foreign);
        json_end(w);
    }
    json_end(w);
}

static int list_providers(struct request *req, struct response *res, struct err *e)
{
    struct json_writer *w = &res->json;
    struct stored_rows rows = { 0 };
    struct llm_account_state **states;
    size_t n;
    int r = store_provider_accounts_list(req->api->store, req->arena, &rows.items, &rows.n, e);

    if (r < 0)
        return r;
    states = llm_accounts_list(req->api->llm_accounts, req->arena, &n);
    json_begin_array_as(w, "providers");
    for (size_t i = 0; i < n; i++)
        provider_write(req, w, NULL, states[i], row_of(&rows, states[i]));
    write_unusable_ones(req, w, &rows);
    json_end(w);
    json_begin_object_as(w, "defaults");
    write_default(req, w, PROVIDER_CHAT);
    write_default(req, w, PROVIDER_EMBED);
    json_end(w);
    write_fallbacks(req, w);
    write_waiting(req, w);
    return write_apps(req, w, e);
}

/* ---- GET /api/providers/presets ---- */

static void write_variables(struct json_writer *w, const struct llm_preset *p)
{
    json_begin_array_as(w, "variables");
    for (size_t i = 0; i < ARRAY_SIZE(p->env_key) && p->env_key[i]; i++)
        json_add_string(w, NULL, p->env_key[i]);
    for (size_t i = 0; i < ARRAY_SIZE(p->env_base_url) && p->env_base_url[i]; i++)
        json_add_string(w, NULL, p->env_base_url[i]);
    if (p->env_region)
        json_add_string(w, NULL, p->env_region);
    for (size_t i = 0; i < ARRAY_SIZE(p->env_model) && p->env_model[i]; i++)
        json_add_string(w, NULL, p->env_model[i]);
    json_end(w);
}

static void write_preset(struct json_writer *w, const struct llm_preset *p)
{
    json_begin_object(w);
    json_add_string(w, "id", p->id);
    json_add_string(w, "label", p->label);
    json_add_string(w, "protocol", p->protocol->name);
    json_add_string(w, "base_url", p->base_url);
    json_begin_array_as(w, "needs");
    if (!p->base_url && !p->is_stand_in)
        json_add_string(w, NULL, "base_url");
    if (p->needs_key)
        json_add_string(w, NULL, "api_key");
    json_end(w);
    json_add_bool(w, "can_chat", p->can_chat);
    json_add_bool(w, "can_embed", p->can_embed);
    json_add_bool(w, "can_speak", p->can_speak);
    json_add_bool(w, "can_hear", p->can_hear);
    json_add_string(w, "model", p->default_model);
    json_add_string(w, "embed_model", p->default_embed_model);
    write_variables(w, p);
    json_add_string(w, "help", p->help);
    json_end(w);
}

static int list_presets(struct request *req, struct response *res, struct err *e)
{
    json_begin_array_as(&res->json, "presets");
    for (const struct llm_preset *p = llm_presets; p->id; p++)
        write_preset(&res->json, p);
    json_end(&res->json);
    return 0;
}

const struct route provider_show_routes[] = {
    { .method = HTTP_GET,
      .path = "/api/providers",
      .permission = PERM_ADMIN,
      .answer = providers_answer,
      .handler = list_providers,
      .summary = "Configured providers of models, defaults, apps with their own",
      .tag = "Providers" },
    { .method = HTTP_GET,
      .path = "/api/providers/presets",
      .permission = PERM_ADMIN,
      .answer = presets_answer,
      .handler = list_presets,
      .summary = "Every provider that is known by name",
      .tag = "Providers" },
    ROUTE_END,
};
