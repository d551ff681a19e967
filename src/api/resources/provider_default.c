/* The default provider and model for requests that name none: for all callers, or for one app. */
#include "api/resources/providers.h"

#include "api/api.h"
#include "models/embed_texts.h"
#include "api/routes.h"
#include "api/setting.h"
#include "base/limits.h"
#include "embed/lexical.h"
#include "identity/audit.h"
#include "store/tables/apps.h"
#include "store/tables/provider_choices.h"

struct default_body {
    const char *capability, *model, *app;
};
struct clear_query {
    const char *capability, *app;
};

enum { MODEL_CHARS = 256, LISTED_MODELS = 8 };

static const struct field default_fields[] = {
    FIELD_STRING(struct default_body, capability, "capability", .one_of = provider_capabilities, .def_str = "chat"),
    FIELD_STRING(struct default_body, model, "model", .min = 1, .max = MODEL_CHARS,
                 .help = "absent: the provider's own"),
    FIELD_STRING(struct default_body, app, "app", .min = 1, .max = LIMIT_NAME_CHARS,
                 .help = "id or name of the app it is for; absent: everybody"),
    FIELD_END,
};

static const struct field clear_fields[] = {
    FIELD_STRING(struct clear_query, capability, "capability", .one_of = provider_capabilities, .def_str = "chat"),
    FIELD_STRING(struct clear_query, app, "app", .min = 1, .max = LIMIT_NAME_CHARS,
                 .help = "id or name of an app; absent: everybody's default"),
    FIELD_END,
};

static const struct field default_answer[] = {
    SHAPE_STRING("capability"),
    SHAPE_STRING("provider", .flags = FIELD_NULLABLE, .help = "asked from now on"),
    SHAPE_STRING("model", .flags = FIELD_NULLABLE, .help = "null: the provider's own"),
    SHAPE_STRING("app_id", .flags = FIELD_NULLABLE),
    SHAPE_STRING("note", .flags = FIELD_NULLABLE),
    FIELD_END,
};

/* The settings of a capability: provider and model. */
static const enum setting_id settings_of[][2] = {
    [PROVIDER_CHAT] = { SETTING_LLM_DEFAULT_PROVIDER, SETTING_LLM_DEFAULT_MODEL },
    [PROVIDER_EMBED] = { SETTING_EMBED_PROVIDER, SETTING_EMBED_MODEL },
};

struct plan {
    enum provider_capability what;
    const char *provider, *model, *app_id, *note;
};

/* ---- checks ---- */

static int find_app(const struct request *req, const char *id_or_name, const char **ret_id, struct err *e)
{
    struct app_row row;
    int r = store_apps_find(req->api->store, req->arena, id_or_name, &row, e);

    if (r == 0)
        *ret_id = row.app_id;
    return r;
}

/* The account's models that fit this capability, judged by their names; empty when there are none or the list is not
 * available. */
static const char *names_of(const struct request *req, struct llm_account_state *state, enum provider_capability what)
{
    struct llm_models models = { 0 };
    const char *names = "";
    size_t n = 0;

    if (llm_account_state_models(state, req->api->settings, req->arena, &req->exchange->is_gone, &models, NULL) < 0)
        return names;
    for (size_t i = 0; i < models.n && n <= LISTED_MODELS; i++) {
        if (llm_model_is_embedding(models.items[i].id) != (what == PROVIDER_EMBED))
            continue;
        names = arena_printf(req->arena, "%s%s%s", names, n ? ", " : "", n < LISTED_MODELS ? models.items[i].id : "…");
        n++;
    }
    return names;
}

static int check_model(const struct request *req, struct llm_account_state *state, struct plan *p, struct err *e)
{
    const char *own = p->what == PROVIDER_EMBED ? state->account.embed_model : NULL, *name = state->account.name,
               *names;
    int knows = own && strcmp(own, p->model) == 0;

    if (!knows)
        knows = llm_account_state_knows_model(state, req->api->settings, req->arena, &req->exchange->is_gone, p->model);
    if (knows > 0)
        return 0;
    names = names_of(req, state, p->what);
    if (knows == 0 && *names)
        return err_set(e, -EINVAL, "INVALID_MODEL", "%.80s has no model %.120s; it has: %.300s.", name, p->model,
                       names);
    p->note = arena_printf(
        req->arena,
        "%s gave no list of its models%s, so nobody has looked whether it has this one; `hearth provider test %s%s` does.",
        name, p->what == PROVIDER_EMBED ? " for embeddings" : "", name,
        p->what == PROVIDER_EMBED ? " --for embed" : "");
    return 0;
}

static int check_plan(const struct request *req, struct plan *p, struct err *e)
{
    struct llm_account_state *state = NULL;
    bool is_builtin = p->what == PROVIDER_EMBED && strcmp(p->provider, LEXICAL_PROVIDER) == 0;
    int r = is_builtin ? 0 : provider_find(req, p->provider, &state, e);

    if (r < 0)
        return r;
    if (!provider_can(metered_call(req), p->what, p->provider))
        return err_set(e, -EINVAL, "PROVIDER_UNAVAILABLE", "%.80s has no %s.", p->provider,
                       p->what == PROVIDER_CHAT ? "chats" : "embeddings");
    if (is_builtin && p->model && strcmp(p->model, LEXICAL_MODEL) != 0)
        return err_set(e, -EINVAL, "INVALID_MODEL", LEXICAL_PROVIDER " has one model, " LEXICAL_MODEL ".");
    if (state && p->what == PROVIDER_EMBED && !p->model && !embed_own_model(&state->account))
        return err_set(e, -EINVAL, "INVALID_MODEL", "%.80s has no embedding model of its own; name the one to use.",
                       p->provider);
    return state && p->model ? check_model(req, state, p, e) : 0;
}

/* ---- the change ---- */

static int audit(const struct request *req, const char *action, const struct plan *p, struct err *e)
{
    struct json_writer w;
    struct buf detail;
    int r;

    buf_init(&detail, LIMIT_BODY_DEFAULT);
    json_write_init(&w, &detail);
    json_begin_object(&w);
    json_add_string(&w, "capability", provider_capabilities[p->what]);
    json_add_string(&w, "model", p->model);
    json_add_string(&w, "app_id", p->app_id);
    json_end(&w);
    r = audit_append(req->api->identity, req->caller->actor, action, p->provider, buf_str(&detail), e);
    buf_clear(&detail);
    return r;
}

static int set_settings(const struct request *req, struct plan *p, struct err *e)
{
    const enum setting_id *ids = settings_of[p->what];
    const char *values[2] = { p->provider, p->provider ? (p->model ? p->model : "") : NULL };
    int r = 0;

    for (size_t i = 0; i < 2 && r == 0; i++) {
        r = setting_change(req, settings_rules[ids[i]].key, values[i], e);
        if (r == 0 && settings_origin(req->api->settings, ids[i]) == ORIGIN_FLAG)
            p->note = arena_printf(req->arena, "The service was started with --set %s, which outranks this.",
                                   settings_rules[ids[i]].key);
    }
    return r;
}

static int set_choice(const struct request *req, const struct plan *p, struct err *e)
{
    const struct provider_choice_row row = {
        .app_id = p->app_id, .capability = provider_capabilities[p->what], .provider = p->provider, .model = p->model
    };

    return p->provider ? store_provider_choices_set(req->api->store, &row, e)
                       : store_provider_choices_clear(req->api->store, p->app_id, row.capability, e);
}

/* Writes the default now in force; a command-line flag may override the stored one. */
static int answer(const struct request *req, struct response *res, const struct plan *p, struct err *e)
{
    struct provider_default def = { 0 };
    int r = provider_default_for(metered_call(req), p->what, p->app_id, &def, e);

    if (r < 0)
        return r;
    json_add_string(&res->json, "capability", provider_capabilities[p->what]);
    json_add_string(&res->json, "provider", def.provider);
    json_add_string(&res->json, "model", def.model);
    json_add_string(&res->json, "app_id", p->app_id);
    json_add_string(&res->json, "note", p->note);
    return 0;
}

static int carry_out(struct request *req, struct response *res, const char *action, struct plan *p, struct err *e)
{
    int r = audit(req, action, p, e);

    if (r == 0)
        r = p->app_id ? set_choice(req, p, e) : set_settings(req, p, e);
    return r < 0 ? r : answer(req, res, p, e);
}

static int set_default(struct request *req, struct response *res, struct err *e)
{
    const struct default_body *body = req->body;
    struct plan p = { .what = provider_capability_of(body->capability),
                      .provider = req->params[0],
                      .model = body->model };
    int r = body->app ? find_app(req, body->app, &p.app_id, e) : 0;

    if (r == 0)
        r = check_plan(req, &p, e);
    return r < 0 ? r : carry_out(req, res, "provider.default", &p, e);
}

static int clear_default(struct request *req, struct response *res, struct err *e)
{
    const struct clear_query *query = req->query;
    struct plan p = { .what = provider_capability_of(query->capability) };
    int r = query->app ? find_app(req, query->app, &p.app_id, e) : 0;

    return r < 0 ? r : carry_out(req, res, "provider.default_cleared", &p, e);
}

const struct route provider_default_routes[] = {
    { .method = HTTP_POST,
      .path = "/api/providers/:name/default",
      .permission = PERM_ADMIN,
      .kind = ROUTE_LONG,
      ROUTE_BODY(default_fields, struct default_body),
      .is_body_optional = true,
      .answer = default_answer,
      .defines = true,
      .handler = set_default,
      .summary = "Ask this provider when a request names none",
      .tag = "Providers" },
    { .method = HTTP_DELETE,
      .path = "/api/providers/default",
      .permission = PERM_ADMIN,
      ROUTE_QUERY(clear_fields, struct clear_query),
      .answer = default_answer,
      .defines = true,
      .handler = clear_default,
      .summary = "Take back a default, of everybody or of one app",
      .tag = "Providers" },
    ROUTE_END,
};
