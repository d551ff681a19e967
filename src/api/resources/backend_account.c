/* The account at the hosted service and the project it works with, for the local administrator. */
#include "backend/hosted/account.h"

#include "api/api.h"
#include "api/routes.h"
#include "api/setting.h"
#include "base/limits.h"
#include "identity/audit.h"

static struct backend_place place_of(const struct request *req)
{
    return (struct backend_place){ .settings = req->api->settings, .data_dir = req->api->data_dir };
}

static struct net_wait wait_of(const struct request *req)
{
    struct net_wait wait = net_wait_of(LIMIT_HOSTED_CALL_MS, &req->exchange->is_gone, &req->api->is_leaving);

    wait.holder = req->exchange->purse.holder;
    return wait;
}

static int audit(const struct request *req, const char *action, const char *subject, struct err *e)
{
    return audit_append(req->api->identity, req->caller->actor, action, subject, NULL, e);
}

/* --- account --- */

static const struct field account_shape[] = {
    SHAPE_BOOL("logged_in"),
    SHAPE_BOOL("waits_for_code", .help = "a login was begun and waits for its code"),
    SHAPE_STRING("email", .flags = FIELD_NULLABLE),
    SHAPE_STRING("username", .flags = FIELD_NULLABLE),
    SHAPE_TIME("since", .flags = FIELD_NULLABLE),
    FIELD_END,
};
static const struct field project_shape[] = {
    SHAPE_STRING("url", .help = "setting backend.project; empty: none is chosen"),
    SHAPE_STRING("ref", .flags = FIELD_NULLABLE,
                 .help = "the project's name at the service; null: the address does not tell it"),
    SHAPE_BOOL("has_secret", .help = "a key of the service role is kept for it"),
    FIELD_END,
};
static const struct field account_answer[] = {
    SHAPE_OBJECT("account", account_shape),
    SHAPE_OBJECT("project", project_shape),
    FIELD_END,
};

static void write_account(struct json_writer *w, const struct account_status *s)
{
    json_begin_object_as(w, "account");
    json_add_bool(w, "logged_in", s->is_logged_in);
    json_add_bool(w, "waits_for_code", s->is_waiting);
    json_add_string(w, "email", s->email);
    json_add_string(w, "username", s->username);
    json_add_string(w, "since", s->since);
    json_end(w);
    json_begin_object_as(w, "project");
    json_add_string(w, "url", s->url);
    json_add_string(w, "ref", s->ref);
    json_add_bool(w, "has_secret", s->has_secret);
    json_end(w);
}

static int show_account(struct request *req, struct response *res, struct err *e)
{
    const struct backend_place place = place_of(req);
    struct account_status status;
    int r = account_status_read(&place, req->arena, &status, e);

    if (r == 0)
        write_account(&res->json, &status);
    return r;
}

static const struct field login_answer[] = {
    SHAPE_STRING("url", .help = "for the person's browser, which then shows the code"),
    SHAPE_INT("expires_in_s", .help = "how long the login waits for the code"),
    FIELD_END,
};

static int begin_login(struct request *req, struct response *res, struct err *e)
{
    const struct backend_place place = place_of(req);
    const char *url = NULL;
    int r = account_begin(&place, req->arena, &url, e);

    if (r < 0)
        return r;
    json_add_string(&res->json, "url", url);
    json_add_int(&res->json, "expires_in_s", LIMIT_HOSTED_CODE_MS / 1000);
    return 0;
}

struct code_body {
    const char *code;
};
static const struct field code_fields[] = {
    FIELD_STRING(struct code_body, code, "code", FIELD_REQUIRED, .min = 1, .max = LIMIT_NAME_CHARS,
                 .help = "the eight characters that the page shows"),
    FIELD_END,
};

static int take_code(struct request *req, struct response *res, struct err *e)
{
    const struct backend_place place = place_of(req);
    const struct code_body *body = req->body;
    const struct net_wait wait = wait_of(req);
    int r = audit(req, "backend.login", "code", e);

    if (r == 0)
        r = account_finish(&place, body->code, &wait, req->arena, e);
    return r < 0 ? r : show_account(req, res, e);
}

struct token_body {
    const char *token;
};
static const struct field token_fields[] = {
    FIELD_STRING(struct token_body, token, "token", FIELD_REQUIRED, .min = 1, .max = LIMIT_NAME_CHARS,
                 .help = "a personal token of the account; never shown again"),
    FIELD_END,
};

static int take_token(struct request *req, struct response *res, struct err *e)
{
    const struct backend_place place = place_of(req);
    const struct token_body *body = req->body;
    const struct net_wait wait = wait_of(req);
    int r = audit(req, "backend.login", "token", e);

    if (r == 0)
        r = account_take_token(&place, body->token, &wait, req->arena, e);
    return r < 0 ? r : show_account(req, res, e);
}

static int log_out(struct request *req, struct response *res, struct err *e)
{
    const struct backend_place place = place_of(req);
    int r = audit(req, "backend.logout", "", e);

    return r < 0 ? r : account_forget(&place, req->arena, e);
}

/* --- projects --- */

static const struct field listed_shape[] = {
    SHAPE_STRING("ref"),
    SHAPE_STRING("name"),
    SHAPE_STRING("region"),
    SHAPE_STRING("status"),
    SHAPE_STRING("created_at"),
    SHAPE_BOOL("chosen", .help = "the setting backend.project names it"),
    FIELD_END,
};
static const struct field projects_answer[] = { SHAPE_LIST("projects", listed_shape), FIELD_END };

static void write_project(struct json_writer *w, const struct account_project *p, const char *chosen)
{
    json_begin_object(w);
    json_add_string(w, "ref", p->ref);
    json_add_string(w, "name", p->name);
    json_add_string(w, "region", p->region);
    json_add_string(w, "status", p->status);
    json_add_string(w, "created_at", p->created_at);
    json_add_bool(w, "chosen", chosen && strcmp(chosen, p->ref) == 0);
    json_end(w);
}

static int list_projects(struct request *req, struct response *res, struct err *e)
{
    const struct backend_place place = place_of(req);
    const char *chosen = hosted_chosen_ref(&place, req->arena);
    const struct net_wait wait = wait_of(req);
    struct account_projects projects = { 0 };
    int r = account_projects(&place, &wait, req->arena, &projects, e);

    if (r < 0)
        return r;
    json_begin_array_as(&res->json, "projects");
    for (size_t i = 0; i < projects.n; i++)
        write_project(&res->json, &projects.items[i], chosen);
    json_end(&res->json);
    return 0;
}

struct project_body {
    const char *project, *url, *key, *secret;
    bool publishable_only;
};
static const struct field project_fields[] = {
    FIELD_STRING(struct project_body, project, "project", .min = 1, .max = LIMIT_NAME_CHARS,
                 .help = "ref or name of a project of the account"),
    FIELD_STRING(struct project_body, url, "url", .min = 1, .max = LIMIT_HOSTED_ADDRESS,
                 .help = "instead of project: its address"),
    FIELD_STRING(struct project_body, key, "key", .min = 1, .max = LIMIT_HOSTED_KEY,
                 .help = "with url: its publishable or legacy anon key"),
    FIELD_STRING(struct project_body, secret, "secret", .min = 1, .max = LIMIT_HOSTED_KEY,
                 .help = "with url: a key of the service role, for the service's own work; never shown again"),
    FIELD_BOOL(struct project_body, publishable_only, "publishable_only",
               .help = "with project: its secret key is not taken"),
    FIELD_END,
};

static int check_project(const struct request *req, const void *arg, struct err *e)
{
    const struct project_body *body = arg;

    if (!body->project == !body->url)
        return err_add_field(e, "project", "must be given, or url and key instead");
    if (body->url && !body->key)
        return err_add_field(e, "key", "must be given with url");
    return 0;
}

static const struct field chosen_answer[] = {
    SHAPE_STRING("url"),
    SHAPE_STRING("ref", .flags = FIELD_NULLABLE),
    SHAPE_STRING("name", .flags = FIELD_NULLABLE),
    SHAPE_BOOL("legacy_key", .help = "the project has no publishable key, so the legacy anon key was taken"),
    SHAPE_BOOL("has_secret", .help = "a key of the service role is kept for the service's own work"),
    FIELD_END,
};

static int choose(const struct request *req, struct account_choice *ret, struct err *e)
{
    const struct project_body *body = req->body;
    const struct backend_place place = place_of(req);
    const struct net_wait wait = wait_of(req);

    if (body->project)
        return account_choose(&place, body->project, body->publishable_only, &wait, req->arena, ret, e);
    *ret = (struct account_choice){ .url = body->url,
                                    .ref = hosted_ref_of_url(req->arena, body->url),
                                    .key = body->key,
                                    .is_legacy = strncmp(body->key, "sb_", 3) != 0,
                                    .has_secret = body->secret != NULL };
    return account_keep_secret(&place, body->url, body->secret, req->arena, e);
}

static int put_project(struct request *req, struct response *res, struct err *e)
{
    struct account_choice choice = { 0 };
    int r = choose(req, &choice, e);

    if (r == 0)
        r = setting_change(req, "backend.project", choice.url, e);
    if (r == 0)
        r = setting_change(req, "backend.project_key", choice.key, e);
    if (r < 0)
        return r;
    json_add_string(&res->json, "url", choice.url);
    json_add_string(&res->json, "ref", choice.ref);
    json_add_string(&res->json, "name", choice.name);
    json_add_bool(&res->json, "legacy_key", choice.is_legacy);
    json_add_bool(&res->json, "has_secret", choice.has_secret);
    return 0;
}

const struct route backend_account_routes[] = {
    { .method = HTTP_GET,
      .path = "/api/backend/account",
      .permission = PERM_ADMIN,
      .answer = account_answer,
      .handler = show_account,
      .summary = "Who is logged in at the hosted service, and the project in use",
      .tag = "Backend" },
    { .method = HTTP_POST,
      .path = "/api/backend/account/login",
      .permission = PERM_ADMIN,
      .answer = login_answer,
      .handler = begin_login,
      .summary = "Begin a login at the hosted service: a browser goes on, and shows a code",
      .tag = "Backend" },
    { .method = HTTP_POST,
      .path = "/api/backend/account/code",
      .permission = PERM_ADMIN,
      .kind = ROUTE_LONG,
      ROUTE_BODY(code_fields, struct code_body),
      .defines = true,
      .answer = account_answer,
      .handler = take_code,
      .summary = "End the login with the code",
      .tag = "Backend" },
    { .method = HTTP_POST,
      .path = "/api/backend/account/token",
      .permission = PERM_ADMIN,
      .kind = ROUTE_LONG,
      ROUTE_BODY(token_fields, struct token_body),
      .defines = true,
      .answer = account_answer,
      .handler = take_token,
      .summary = "Log in at the hosted service with a personal token",
      .tag = "Backend" },
    { .method = HTTP_POST,
      .path = "/api/backend/account/logout",
      .permission = PERM_ADMIN,
      .answer = api_nothing,
      .handler = log_out,
      .summary = "Forget the account at the hosted service and the project's secret key",
      .tag = "Backend" },
    { .method = HTTP_GET,
      .path = "/api/backend/projects",
      .permission = PERM_ADMIN,
      .kind = ROUTE_LONG,
      .answer = projects_answer,
      .handler = list_projects,
      .summary = "The projects of the account",
      .tag = "Backend" },
    { .method = HTTP_PUT,
      .path = "/api/backend/project",
      .permission = PERM_ADMIN,
      .kind = ROUTE_LONG,
      ROUTE_BODY(project_fields, struct project_body),
      .check_body = check_project,
      .defines = true,
      .answer = chosen_answer,
      .handler = put_project,
      .summary = "Choose the project: its address and its keys",
      .tag = "Backend" },
    ROUTE_END,
};
