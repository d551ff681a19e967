/* Settings, for the local administrator: value and origin of each, and the layer kept in the database. */
#include "settings/settings.h"

#include "api/api.h"
#include "api/routes.h"
#include "api/setting.h"
#include "backend/backend_providers.h"
#include "base/limits.h"
#include "identity/audit.h"
#include <pthread.h>

struct setting_body {
    struct json_value value;
};

static const struct field setting_body_fields[] = {
    FIELD_ANY(struct setting_body, value, "value", FIELD_REQUIRED, .help = "text, number, true or false"),
    FIELD_END,
};

static const struct field setting_shape[] = {
    SHAPE_STRING("key"),
    SHAPE_STRING("value", .help = "in effect, or with needs_restart after the next start; **** for a secret"),
    SHAPE_STRING("origin", .help = "default, file, environment, database or flag"),
    SHAPE_STRING("default"),
    SHAPE_STRING("type"),
    SHAPE_BOOL("needs_restart", .help = "a change takes effect when the service starts again"),
    SHAPE_STRING("help"),
    FIELD_END,
};

static const struct field settings_answer[] = { SHAPE_LIST("settings", setting_shape), FIELD_END };
static const struct field setting_answer[] = { SHAPE_OBJECT("setting", setting_shape), FIELD_END };

static int list_settings(struct request *req, struct response *res, struct err *e)
{
    settings_write_json(req->api->settings, &res->json, "settings");
    return 0;
}

static int find_setting(struct request *req, enum setting_id *ret, struct err *e)
{
    return settings_find(req->params[0], ret)
               ? 0
               : settings_refuse_key("There is no setting", req->params[0], -ENOENT, "SETTING_NOT_FOUND", e);
}

static int write_one(struct request *req, struct response *res, struct err *e)
{
    enum setting_id id;
    int r;

    r = find_setting(req, &id, e);
    if (r == 0)
        settings_write_one(req->api->settings, id, &res->json, "setting");
    return r;
}

/* src/settings takes values of all JSON types as text, as in a file or an environment variable. */
static int text_of(struct request *req, struct json_value value, const char **ret, struct err *e)
{
    enum json_type type = json_type(value);

    if (type == JSON_OBJECT || type == JSON_ARRAY || (type == JSON_STRING && !json_cstr(value)))
        return err_add_field(e, "value", "must be text, a number, true or false");
    *ret = type == JSON_STRING ? json_cstr(value) : json_to_str(req->arena, value);
    return 0;
}

/* One change at a time, so that a checked value is still valid when it is applied. */
static pthread_mutex_t changing = PTHREAD_MUTEX_INITIALIZER;

static int audit(const struct request *req, const char *key, const char *text, struct err *e)
{
    enum setting_id id;
    bool is_secret = settings_find(key, &id) && settings_rules[id].is_secret;
    struct json_writer w;
    struct buf detail;
    int r;

    buf_init(&detail, LIMIT_AUDIT_DETAIL);
    json_write_init(&w, &detail);
    json_begin_object(&w);
    json_add_string(&w, "value", text && is_secret ? "****" : text);
    json_end(&w);
    r = audit_append(req->api->identity, req->caller->actor, text ? "setting.set" : "setting.unset", key,
                     buf_str(&detail), e);
    buf_clear(&detail);
    return r;
}

/* What the rules of settings cannot check: a file that does not open would keep the service from starting. */
static int check_file(const struct request *req, const char *key, const char *text, struct err *e)
{
    enum setting_id id;

    return text && settings_find(key, &id) ? backend_provider_check(id, text, req->api->data_dir, e) : 0;
}

/* Memory changes last: a value that could not be stored must not be in force until the next restart. */
int setting_change(const struct request *req, const char *key, const char *text, struct err *e)
{
    int r;

    pthread_mutex_lock(&changing);
    r = settings_check(req->api->settings, key, text, e);
    if (r == 0)
        r = check_file(req, key, text, e);
    if (r == 0)
        r = audit(req, key, text, e);
    if (r == 0)
        r = text ? store_settings_set(req->api->store, key, text, e) : store_settings_unset(req->api->store, key, e);
    if (r == 0)
        r = settings_set(req->api->settings, key, text, e);
    if (r == 0 && req->api->is_serving)
        settings_apply_log(req->api->settings);
    pthread_mutex_unlock(&changing);
    return r;
}

static int put_setting(struct request *req, struct response *res, struct err *e)
{
    const struct setting_body *body = req->body;
    const char *text = NULL;
    enum setting_id id;
    int r;

    r = find_setting(req, &id, e);
    if (r == 0)
        r = text_of(req, body->value, &text, e);
    if (r == 0)
        r = setting_change(req, req->params[0], text, e);
    return r < 0 ? r : write_one(req, res, e);
}

/* True for a stored key. A newer version may have stored keys that this version does not know but must be able to
 * remove. */
static bool is_stored(struct request *req, const char *key)
{
    struct setting_row *rows;
    size_t n = 0;

    if (store_settings_list(req->api->store, req->arena, &rows, &n, NULL) < 0)
        return false;
    for (size_t i = 0; i < n; i++)
        if (strcmp(rows[i].key, key) == 0)
            return true;
    return false;
}

static int unset_unknown(struct request *req, struct response *res, struct err *e)
{
    static const char *const texts[] = { "value", "default", "help" };
    const char *key = req->params[0];
    int r = audit_append(req->api->identity, req->caller->actor, "setting.unset", key, NULL, e);

    if (r == 0)
        r = store_settings_unset(req->api->store, key, e);
    if (r < 0)
        return r;
    json_begin_object_as(&res->json, "setting");
    json_add_string(&res->json, "key", key);
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        json_add_string(&res->json, texts[i], "");
    json_add_string(&res->json, "origin", "default");
    json_add_string(&res->json, "type", "string");
    json_add_bool(&res->json, "needs_restart", false);
    json_end(&res->json);
    return 0;
}

static int unset_setting(struct request *req, struct response *res, struct err *e)
{
    enum setting_id id;
    int r;

    if (!settings_find(req->params[0], &id) && is_stored(req, req->params[0]))
        return unset_unknown(req, res, e);
    r = find_setting(req, &id, e);
    if (r == 0)
        r = setting_change(req, req->params[0], NULL, e);
    return r < 0 ? r : write_one(req, res, e);
}

/* Numeric settings only tune. All others may name programs, addresses, hosts, files or admitted callers. */
static bool is_definition(const struct request *req)
{
    enum setting_id id;

    return settings_find(req->params[0], &id) && settings_rules[id].type != SETTING_INT &&
           settings_rules[id].type != SETTING_SECONDS;
}

const struct route setting_routes[] = {
    { .method = HTTP_GET,
      .path = "/api/settings",
      .permission = PERM_ADMIN,
      .answer = settings_answer,
      .handler = list_settings,
      .summary = "Every setting: value and origin",
      .tag = "Settings" },
    { .method = HTTP_GET,
      .path = "/api/settings/:key",
      .permission = PERM_ADMIN,
      .answer = setting_answer,
      .handler = write_one,
      .summary = "One setting",
      .tag = "Settings" },
    { .method = HTTP_PUT,
      .path = "/api/settings/:key",
      .permission = PERM_ADMIN,
      ROUTE_BODY(setting_body_fields, struct setting_body),
      .answer = setting_answer,
      .defines = true,
      .defines_when = is_definition,
      .handler = put_setting,
      .summary = "Keep a setting in the database",
      .tag = "Settings" },
    { .method = HTTP_DELETE,
      .path = "/api/settings/:key",
      .permission = PERM_ADMIN,
      .answer = setting_answer,
      .defines = true,
      .defines_when = is_definition,
      .handler = unset_setting,
      .summary = "Remove a setting from the database",
      .tag = "Settings" },
    ROUTE_END,
};
