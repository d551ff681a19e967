/* Limits of single apps and developer keys on their use of models, for the local administrator (docs/usage.md). */
#include "api/api.h"
#include "api/routes.h"
#include "identity/audit.h"
#include "identity/meter.h"
#include "store/tables/apps.h"
#include "store/tables/keys.h"

struct limits_body {
    int64_t max[N_RATES];
    bool is_given[N_RATES];
};

#define FIELD_LIMIT(rate, wire)                                                                                        \
    FIELD_INT(struct limits_body, max[rate], wire, .max = 1e12,                                                        \
              .present_offset = offsetof(struct limits_body, is_given[rate]),                                          \
              .help = "0: any number; absent: as the setting limits." wire " says")

static const struct field limits_fields[] = {
    FIELD_LIMIT(RATE_REQUESTS_A_MINUTE, "requests_a_minute"),
    FIELD_LIMIT(RATE_TOKENS_A_MINUTE, "tokens_a_minute"),
    FIELD_LIMIT(RATE_REQUESTS_A_DAY, "requests_a_day"),
    FIELD_LIMIT(RATE_TOKENS_A_DAY, "tokens_a_day"),
    FIELD_LIMIT(RATE_CHARACTERS_A_MINUTE, "characters_a_minute"),
    FIELD_LIMIT(RATE_CHARACTERS_A_DAY, "characters_a_day"),
    FIELD_END,
};

static const struct field own_shape[] = {
    SHAPE_INT("requests_a_minute", .flags = FIELD_NULLABLE),
    SHAPE_INT("tokens_a_minute", .flags = FIELD_NULLABLE),
    SHAPE_INT("requests_a_day", .flags = FIELD_NULLABLE),
    SHAPE_INT("tokens_a_day", .flags = FIELD_NULLABLE),
    SHAPE_INT("characters_a_minute", .flags = FIELD_NULLABLE),
    SHAPE_INT("characters_a_day", .flags = FIELD_NULLABLE),
    FIELD_END,
};

static const struct field numbers_shape[] = {
    SHAPE_INT("requests_a_minute"),
    SHAPE_INT("tokens_a_minute"),
    SHAPE_INT("requests_a_day"),
    SHAPE_INT("tokens_a_day"),
    SHAPE_INT("characters_a_minute"),
    SHAPE_INT("characters_a_day"),
    FIELD_END,
};

static const struct field limits_shape[] = {
    SHAPE_STRING("of", .help = "app or key"),
    SHAPE_STRING("id"),
    SHAPE_STRING("name"),
    SHAPE_OBJECT("own", own_shape, .help = "null: as the settings limits.* say"),
    SHAPE_OBJECT("in_force", numbers_shape, .help = "0: any number"),
    SHAPE_OBJECT("used", numbers_shape, .help = "now"),
    FIELD_END,
};

static const struct field limits_answer[] = { SHAPE_OBJECT("limits", limits_shape), FIELD_END };
static const struct field list_answer[] = {
    SHAPE_OBJECT("defaults", numbers_shape, .help = "of the settings limits.*; 0: any number"),
    SHAPE_LIST("limits", limits_shape, .help = "of those that have their own"),
    FIELD_END,
};

/* ---- the subject of a path ---- */

struct subject {
    enum rate_of of;
    const char *id, *name;
};

static int app_of_path(struct request *req, struct subject *ret, struct err *e)
{
    struct app_row row = { 0 };
    int r = store_apps_find(req->api->store, req->arena, req->params[0], &row, e);

    if (r == 0)
        *ret = (struct subject){ RATE_OF_APP, row.app_id, row.name };
    return r;
}

static int key_of_path(struct request *req, struct subject *ret, struct err *e)
{
    struct key_row row = { 0 };
    int r = store_keys_get(req->api->store, req->arena, req->params[0], &row, e);

    if (r == 0)
        *ret = (struct subject){ RATE_OF_KEY, row.id, row.name };
    return r;
}

typedef int subject_of_path(struct request *req, struct subject *ret, struct err *e);

/* ---- answers ---- */

static void write_numbers(struct json_writer *w, const char *name, const int64_t numbers[N_RATES])
{
    json_begin_object_as(w, name);
    for (int i = 0; i < N_RATES; i++) {
        if (numbers[i] == RATE_BY_SETTING)
            json_add_null(w, meter_rules[i].name);
        else
            json_add_int(w, meter_rules[i].name, numbers[i]);
    }
    json_end(w);
}

static void write_limits(struct request *req, struct json_writer *w, const char *name, const struct subject *s)
{
    struct meter_state state = { 0 };

    meter_show(req->api->meter, s->of, s->id, &state);
    json_begin_object_as(w, name);
    json_add_string(w, "of", rate_of_names[s->of]);
    json_add_string(w, "id", s->id);
    json_add_string(w, "name", s->name);
    write_numbers(w, "own", state.own);
    write_numbers(w, "in_force", state.max);
    write_numbers(w, "used", state.used);
    json_end(w);
}

static int show(struct request *req, struct response *res, subject_of_path *of_path, struct err *e)
{
    struct subject s = { 0 };
    int r = of_path(req, &s, e);

    if (r == 0)
        write_limits(req, &res->json, "limits", &s);
    return r;
}

static const char *detail_of(struct request *req, const struct rate_row *row)
{
    struct json_writer w;
    struct buf out;

    buf_init(&out, 4096);
    json_write_init(&w, &out);
    write_numbers(&w, NULL, row->max);
    return buf_to_arena(&out, req->arena);
}

static int put(struct request *req, struct response *res, subject_of_path *of_path, struct err *e)
{
    const struct limits_body *body = req->body;
    struct subject s = { 0 };
    struct rate_row row;
    int r = of_path(req, &s, e);

    if (r < 0)
        return r;
    row = (struct rate_row){ .of = s.of, .id = s.id };
    for (int i = 0; i < N_RATES; i++)
        row.max[i] = body->is_given[i] ? body->max[i] : RATE_BY_SETTING;
    r = audit_append(req->api->identity, req->caller->actor, "limit.set", s.id, detail_of(req, &row), e);
    if (r == 0)
        r = meter_limit(req->api->meter, &row, e);
    if (r == 0)
        write_limits(req, &res->json, "limits", &s);
    return r;
}

static int clear(struct request *req, struct response *res, subject_of_path *of_path, struct err *e)
{
    struct subject s = { 0 };
    int r = of_path(req, &s, e);

    if (r == 0)
        r = audit_append(req->api->identity, req->caller->actor, "limit.clear", s.id, NULL, e);
    if (r == 0)
        r = meter_unlimit(req->api->meter, s.of, s.id, e);
    if (r == 0)
        write_limits(req, &res->json, "limits", &s);
    return r;
}

/* ---- handlers ---- */

static const char *name_of(struct request *req, const struct rate_row *row)
{
    struct app_row app = { 0 };
    struct key_row key = { 0 };

    if (row->of == RATE_OF_APP)
        return store_apps_get(req->api->store, req->arena, row->id, &app, NULL) == 0 ? app.name : "";
    return store_keys_get(req->api->store, req->arena, row->id, &key, NULL) == 0 ? key.name : "";
}

static int list_limits(struct request *req, struct response *res, struct err *e)
{
    int64_t defaults[N_RATES];
    struct rate_row *rows;
    size_t n;
    int r = store_rates_list(req->api->store, req->arena, &rows, &n, e);

    if (r < 0)
        return r;
    for (int i = 0; i < N_RATES; i++)
        defaults[i] = settings_int(req->api->settings, meter_rules[i].setting);
    write_numbers(&res->json, "defaults", defaults);
    json_begin_array_as(&res->json, "limits");
    for (size_t i = 0; i < n; i++)
        write_limits(req, &res->json, NULL, &(struct subject){ rows[i].of, rows[i].id, name_of(req, &rows[i]) });
    json_end(&res->json);
    return 0;
}

static int show_app(struct request *req, struct response *res, struct err *e)
{
    return show(req, res, app_of_path, e);
}

static int put_app(struct request *req, struct response *res, struct err *e)
{
    return put(req, res, app_of_path, e);
}

static int clear_app(struct request *req, struct response *res, struct err *e)
{
    return clear(req, res, app_of_path, e);
}

static int show_key(struct request *req, struct response *res, struct err *e)
{
    return show(req, res, key_of_path, e);
}

static int put_key(struct request *req, struct response *res, struct err *e)
{
    return put(req, res, key_of_path, e);
}

static int clear_key(struct request *req, struct response *res, struct err *e)
{
    return clear(req, res, key_of_path, e);
}

const struct route limit_routes[] = {
    { .method = HTTP_GET,
      .path = "/api/limits",
      .permission = PERM_ADMIN,
      .answer = list_answer,
      .handler = list_limits,
      .summary = "Limits of requests to models: the settings' and those of single apps and keys",
      .tag = "Usage" },
    { .method = HTTP_GET,
      .path = "/api/limits/apps/:app",
      .permission = PERM_ADMIN,
      .answer = limits_answer,
      .handler = show_app,
      .summary = "Limits of one app, by id or name, and what it has used",
      .tag = "Usage" },
    { .method = HTTP_PUT,
      .path = "/api/limits/apps/:app",
      .permission = PERM_ADMIN,
      ROUTE_BODY(limits_fields, struct limits_body),
      .answer = limits_answer,
      .handler = put_app,
      .summary = "Limit one app, at once",
      .tag = "Usage" },
    { .method = HTTP_DELETE,
      .path = "/api/limits/apps/:app",
      .permission = PERM_ADMIN,
      .answer = limits_answer,
      .handler = clear_app,
      .summary = "Let the settings decide about one app again",
      .tag = "Usage" },
    { .method = HTTP_GET,
      .path = "/api/limits/keys/:id",
      .permission = PERM_ADMIN,
      .answer = limits_answer,
      .handler = show_key,
      .summary = "Limits of one developer key and what it has used",
      .tag = "Usage" },
    { .method = HTTP_PUT,
      .path = "/api/limits/keys/:id",
      .permission = PERM_ADMIN,
      ROUTE_BODY(limits_fields, struct limits_body),
      .answer = limits_answer,
      .handler = put_key,
      .summary = "Limit one developer key, at once",
      .tag = "Usage" },
    { .method = HTTP_DELETE,
      .path = "/api/limits/keys/:id",
      .permission = PERM_ADMIN,
      .answer = limits_answer,
      .handler = clear_key,
      .summary = "Let the settings decide about one developer key again",
      .tag = "Usage" },
    ROUTE_END,
};
