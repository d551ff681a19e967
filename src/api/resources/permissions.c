/* Requests for permissions (decision D4), and their management by the local administrator. */
#include "identity/permissions.h"

#include "api/api.h"
#include "apps/apps.h"
#include "api/routes.h"
#include "base/clock.h"
#include "identity/consent.h"
#include "identity/decision.h"

static const char *const scope_names[] = { "once", "until_stop", "until_date", "always", NULL };

/* ---- requests of apps ---- */

struct request_body {
    const char *app_id, *app_name, *permission;
};
struct register_body {
    const char *app_id, *app_name;
    struct field_strings permissions;
};

static const struct field request_fields[] = {
    FIELD_STRING(struct request_body, app_id, "app_id", .max = LIMIT_NAME_CHARS,
                 .help = "may come as header x-app-id instead"),
    FIELD_STRING(struct request_body, app_name, "app_name", .max = LIMIT_NAME_CHARS),
    FIELD_STRING(struct request_body, permission, "permission", FIELD_REQUIRED, .min = 1,
                 .max = LIMIT_PERMISSION_CHARS),
    FIELD_END,
};

static const struct field request_answer[] = {
    SHAPE_BOOL("granted", .help = "false: denied, or not decided in time"),
    FIELD_END,
};

static const struct field register_fields[] = {
    FIELD_STRING(struct register_body, app_id, "app_id", .max = LIMIT_NAME_CHARS,
                 .help = "may come as header x-app-id instead"),
    FIELD_STRING(struct register_body, app_name, "app_name", .max = LIMIT_NAME_CHARS),
    FIELD_STRINGS(struct register_body, permissions, "permissions", .max = LIMIT_PERMISSIONS_PER_APP),
    FIELD_END,
};

static const struct field outcome_shape[] = {
    SHAPE_STRINGS("granted"),
    SHAPE_STRINGS("denied", .help = "what was denied; what nobody decided is in neither list"),
    FIELD_END,
};

static const struct field register_answer[] = {
    SHAPE_STRING("message"),
    SHAPE_OBJECT("permissions", outcome_shape),
    FIELD_END,
};

/* A developer key need not name an app: NULL if it names none. */
static int name_app(const struct request *req, const char *in_body, const char **ret, struct err *e)
{
    const struct caller *caller = req->caller;
    const char *app_id = in_body && *in_body ? in_body : caller->app_id;
    struct err why = { 0 };

    if (!app_id && caller->kind == CALLER_NOBODY && request_need_caller(req, &why) < 0 &&
        strcmp(why.code, "INVALID_API_KEY") == 0)
        return err_set(e, -EACCES, why.code, "%s", why.text);
    if (!app_id && caller->kind != CALLER_KEY)
        return err_add_field(e, "app_id", "must be the id of a registered app");
    if (caller->kind == CALLER_AGENT || (caller->kind == CALLER_APP && strcmp(app_id, caller->app_id) != 0))
        return err_set(e, -EPERM, "APP_ID_MISMATCH",
                       "An app asks for its own permissions only; app_id in the body is another's.");
    *ret = app_id;
    return caller->kind == CALLER_NOBODY && identity_knows_app(req->api->identity, app_id) ? request_need_caller(req, e)
                                                                                           : 0;
}

static void on_gone(struct http_exchange *x, void *arg)
{
    consent_poke(arg);
}

/* Holds the request while the user decides; a developer key has every permission (decision D3). */
static int request(struct request *req, const char *app_id, const char *const *names, size_t n,
                   struct consent_answer *answers, struct err *e)
{
    struct identity *id = req->api->identity;
    int r;

    if (req->caller->kind == CALLER_KEY) {
        for (size_t i = 0; i < n; i++)
            answers[i] = (struct consent_answer){ .permission = names[i], .is_granted = true };
        return 0;
    }
    http_exchange_on_gone(req->exchange, on_gone, id);
    r = consent_request(id,
                        &(struct consent_request){
                            .app_id = app_id,
                            .permissions = names,
                            .n = n,
                            .wait_ms = settings_ms(req->api->settings, SETTING_CONSENT_WAIT_S),
                            .is_gone = &req->exchange->is_gone,
                        },
                        answers, e);
    http_exchange_on_gone(req->exchange, NULL, NULL);
    return r;
}

static int request_permission(struct request *req, struct response *res, struct err *e)
{
    const struct request_body *body = req->body;
    struct consent_answer answer = { 0 };
    const char *app_id = NULL;
    int r;

    r = name_app(req, body->app_id, &app_id, e);
    if (r == 0)
        r = request(req, app_id, &body->permission, 1, &answer, e);
    if (r < 0)
        return r;
    json_add_bool(&res->json, "granted", answer.is_granted);
    return 0;
}

static size_t write_names(struct json_writer *w, const char *name, const struct consent_answer *answers, size_t n,
                          bool of_granted)
{
    size_t written = 0;

    json_begin_array_as(w, name);
    for (size_t i = 0; i < n; i++) {
        if (of_granted ? !answers[i].is_granted : !answers[i].is_denied)
            continue;
        json_add_string(w, NULL, answers[i].permission);
        written++;
    }
    json_end(w);
    return written;
}

static int register_app(struct request *req, struct response *res, struct err *e)
{
    const struct register_body *body = req->body;
    size_t n = body->permissions.n, n_granted;
    struct consent_answer *answers = arena_array(req->arena, n + 1, sizeof(*answers));
    const char *app_id = NULL;
    int r;

    r = name_app(req, body->app_id, &app_id, e);
    if (r == 0)
        r = request(req, app_id, body->permissions.items, n, answers, e);
    if (r < 0)
        return r;
    json_begin_object_as(&res->json, "permissions");
    n_granted = write_names(&res->json, "granted", answers, n, true);
    write_names(&res->json, "denied", answers, n, false);
    json_end(&res->json);
    json_add_string(&res->json, "message",
                    arena_printf(req->arena, "%zu of %zu permissions are granted", n_granted, n));
    return 0;
}

/* ---- lists for the administrator ---- */

static const struct field known_shape[] = {
    SHAPE_STRING("name"),
    SHAPE_STRING("asks", .help = "completes: the app wants to ..."),
    SHAPE_BOOL("dangerous", .help = "every use is in the audit log"),
    FIELD_END,
};
static const struct field known_answer[] = { SHAPE_LIST("permissions", known_shape), FIELD_END };

static const struct field question_shape[] = {
    SHAPE_STRING("id", .help = "of the prompt: permissions asked for together share it"),
    SHAPE_STRING("app_id"),
    SHAPE_STRING("app_name"),
    SHAPE_STRING("permission"),
    SHAPE_STRING("asks"),
    SHAPE_BOOL("known"),
    SHAPE_BOOL("dangerous"),
    SHAPE_TIME("asked_at"),
    SHAPE_STRING("sandbox", .flags = FIELD_NULLABLE,
                 .help = "what the app may see and do besides, in words; null: Hearth does not start it"),
    SHAPE_STRING("change", .flags = FIELD_NULLABLE,
                 .help = "it was allowed already, to another command: how that differs"),
    FIELD_END,
};
static const struct field pending_answer[] = { SHAPE_LIST("pending", question_shape), FIELD_END };

struct grants_query {
    const char *app_id;
};
static const struct field grants_query_fields[] = {
    FIELD_STRING(struct grants_query, app_id, "app_id", .max = LIMIT_NAME_CHARS, .help = "only of this app"),
    FIELD_END,
};

static const struct field grant_shape[] = {
    SHAPE_STRING("app_id"),
    SHAPE_STRING("permission"),
    SHAPE_BOOL("known", .help = "false: this version has no route that needs it"),
    SHAPE_STRING("decision", .help = "allow or deny"),
    SHAPE_STRING("scope", .one_of = scope_names),
    SHAPE_STRING("until", .flags = FIELD_NULLABLE),
    SHAPE_BOOL("in_force", .help = "false: used up, expired, or given to another command of the app"),
    SHAPE_INT("denials", .help = "in a row; two stop the app from asking"),
    SHAPE_TIME("decided_at"),
    SHAPE_TIME("last_used_at", .flags = FIELD_NULLABLE),
    FIELD_END,
};
static const struct field grants_answer[] = { SHAPE_LIST("grants", grant_shape), FIELD_END };

static int list_known(struct request *req, struct response *res, struct err *e)
{
    json_begin_array_as(&res->json, "permissions");
    for (const struct permission *p = permissions; p->name; p++) {
        json_begin_object(&res->json);
        json_add_string(&res->json, "name", p->name);
        json_add_string(&res->json, "asks", p->requests);
        json_add_bool(&res->json, "dangerous", p->is_dangerous);
        json_end(&res->json);
    }
    json_end(&res->json);
    return 0;
}

static const char *sandbox_of_app(const struct request *req, const char *app_id)
{
    struct app_config config;

    if (app_find(req->api->apps, app_id, req->arena, &config, NULL) < 0 || !app_config_is_launchable(&config))
        return NULL;
    return sandbox_words(req->arena, req->api->sandbox, &config.sandbox);
}

static void write_question(const struct request *req, struct json_writer *w, const struct consent_question *q)
{
    json_begin_object(w);
    json_add_string(w, "id", q->id);
    json_add_string(w, "app_id", q->app_id);
    json_add_string(w, "app_name", q->app_name);
    json_add_string(w, "permission", q->permission);
    json_add_string(w, "asks", q->requests);
    json_add_bool(w, "known", q->is_known);
    json_add_bool(w, "dangerous", q->is_dangerous);
    json_add_string(w, "asked_at", q->requested_at);
    json_add_string(w, "sandbox", sandbox_of_app(req, q->app_id));
    json_add_string(w, "change", q->change);
    json_end(w);
}

static int list_pending(struct request *req, struct response *res, struct err *e)
{
    struct consent_questions pending;
    int r;

    r = consent_pending(req->api->identity, req->arena, &pending, e);
    if (r < 0)
        return r;
    json_begin_array_as(&res->json, "pending");
    for (size_t i = 0; i < pending.n; i++)
        write_question(req, &res->json, &pending.items[i]);
    json_end(&res->json);
    return 0;
}

static void write_grant(struct json_writer *w, const struct grant_row *row)
{
    json_begin_object(w);
    json_add_string(w, "app_id", row->app_id);
    json_add_string(w, "permission", row->permission);
    json_add_bool(w, "known", permission_find(row->permission) != NULL);
    json_add_string(w, "decision", row->decision);
    json_add_string(w, "scope", row->scope);
    json_add_string(w, "until", row->expires_at);
    json_add_bool(w, "in_force", decision_now(row, clock_wall_ms()) != DECISION_NONE);
    json_add_int(w, "denials", row->n_denials);
    json_add_string(w, "decided_at", row->created_at);
    json_add_string(w, "last_used_at", row->last_used_at);
    json_end(w);
}

static int list_grants(struct request *req, struct response *res, struct err *e)
{
    const struct grants_query *query = req->query;
    struct grant_row *rows;
    size_t n;
    int r;

    r = store_grants_list(req->api->store, req->arena, query->app_id, &rows, &n, e);
    if (r < 0)
        return r;
    json_begin_array_as(&res->json, "grants");
    for (size_t i = 0; i < n; i++)
        write_grant(&res->json, &rows[i]);
    json_end(&res->json);
    return 0;
}

/* ---- decisions of the administrator ---- */

struct decide_body {
    const char *app_id;
    struct field_strings permissions;
    bool is_allowed;
    const char *scope, *until;
};
struct revoke_body {
    const char *app_id, *permission;
};

static const struct field decide_fields[] = {
    FIELD_STRING(struct decide_body, app_id, "app_id", FIELD_REQUIRED, .max = LIMIT_NAME_CHARS),
    FIELD_STRINGS(struct decide_body, permissions, "permissions", FIELD_REQUIRED, .min = 1,
                  .max = LIMIT_PERMISSIONS_PER_APP),
    FIELD_BOOL(struct decide_body, is_allowed, "allow", FIELD_REQUIRED),
    FIELD_STRING(struct decide_body, scope, "scope", .one_of = scope_names, .def_str = "always"),
    FIELD_STRING(struct decide_body, until, "until", .format = "date-time", .max = 40,
                 .help = "needed by the scope until_date"),
    FIELD_END,
};

static const struct field revoke_fields[] = {
    FIELD_STRING(struct revoke_body, app_id, "app_id", FIELD_REQUIRED, .max = LIMIT_NAME_CHARS),
    FIELD_STRING(struct revoke_body, permission, "permission", FIELD_REQUIRED, .min = 1, .max = LIMIT_PERMISSION_CHARS),
    FIELD_END,
};

static const struct field reset_fields[] = {
    FIELD_STRING(struct revoke_body, app_id, "app_id", FIELD_REQUIRED, .max = LIMIT_NAME_CHARS),
    FIELD_END,
};

/* Checks all decisions before the first is stored. */
static int check_decide(const struct request *req, const void *read, struct err *e)
{
    const struct decide_body *body = read;
    int r = 0;

    for (size_t i = 0; r == 0 && i < body->permissions.n; i++)
        r = consent_check_name(body->permissions.items[i], e);
    return r;
}

static enum consent_scope scope_of(const char *name)
{
    enum consent_scope scope = CONSENT_ONCE;

    while (strcmp(consent_scope_name(scope), name) != 0)
        scope++;
    return scope;
}

static int decide(struct request *req, struct response *res, struct err *e)
{
    const struct decide_body *body = req->body;
    struct consent_decision decision = {
        .app_id = body->app_id,
        .is_allowed = body->is_allowed,
        .scope = scope_of(body->scope),
        .until = body->until,
        .actor = req->caller->actor,
    };
    int r = 0;

    for (size_t i = 0; r == 0 && i < body->permissions.n; i++) {
        decision.permission = body->permissions.items[i];
        r = consent_decide(req->api->identity, &decision, e);
    }
    return r;
}

static int revoke(struct request *req, struct response *res, struct err *e)
{
    const struct revoke_body *body = req->body;

    return consent_revoke(req->api->identity, body->app_id, body->permission, req->caller->actor, e);
}

static int reset(struct request *req, struct response *res, struct err *e)
{
    const struct revoke_body *body = req->body;

    return consent_reset(req->api->identity, body->app_id, req->caller->actor, e);
}

const struct route permission_routes[] = {
    { .method = HTTP_POST,
      .path = "/api/local-apps/request-permission",
      .permission = PERM_BODY,
      .kind = ROUTE_LONG,
      ROUTE_BODY(request_fields, struct request_body),
      .answer = request_answer,
      .handler = request_permission,
      .summary = "Ask the person for a permission and wait for the answer",
      .tag = "Permissions" },
    { .method = HTTP_POST,
      .path = "/sdk/register",
      .permission = PERM_BODY,
      .kind = ROUTE_LONG,
      .is_sdk = true,
      ROUTE_BODY(register_fields, struct register_body),
      .answer = register_answer,
      .handler = register_app,
      .summary = "Ask for every missing permission in one prompt and wait",
      .tag = "Permissions" },
    { .method = HTTP_GET,
      .path = "/api/permissions/known",
      .permission = PERM_ADMIN,
      .answer = known_answer,
      .handler = list_known,
      .summary = "Every permission this version knows",
      .tag = "Permissions" },
    { .method = HTTP_GET,
      .path = "/api/permissions/pending",
      .permission = PERM_ADMIN,
      .answer = pending_answer,
      .handler = list_pending,
      .summary = "What waits for the person's answer",
      .tag = "Permissions" },
    { .method = HTTP_GET,
      .path = "/api/permissions",
      .permission = PERM_ADMIN,
      ROUTE_QUERY(grants_query_fields, struct grants_query),
      .answer = grants_answer,
      .handler = list_grants,
      .summary = "What was decided",
      .tag = "Permissions" },
    { .method = HTTP_POST,
      .path = "/api/permissions/decide",
      .permission = PERM_ADMIN,
      ROUTE_BODY(decide_fields, struct decide_body),
      .check_body = check_decide,
      .answer = api_nothing,
      .handler = decide,
      .summary = "Allow or deny permissions of an app",
      .tag = "Permissions" },
    { .method = HTTP_POST,
      .path = "/api/permissions/revoke",
      .permission = PERM_ADMIN,
      ROUTE_BODY(revoke_fields, struct revoke_body),
      .answer = api_nothing,
      .handler = revoke,
      .summary = "Take a decision back, at once",
      .tag = "Permissions" },
    { .method = HTTP_POST,
      .path = "/api/permissions/reset",
      .permission = PERM_ADMIN,
      ROUTE_BODY(reset_fields, struct revoke_body),
      .answer = api_nothing,
      .handler = reset,
      .summary = "Forget every decision about an app",
      .tag = "Permissions" },
    ROUTE_END,
};
