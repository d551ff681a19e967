/* The use of models, for the local administrator (docs/usage.md). */
#include "api/api.h"
#include "api/routes.h"
#include "base/clock.h"
#include "base/uuid.h"
#include "identity/meter.h"
#include "store/tables/apps.h"

enum { DAYS_DEFAULT = 30, DAYS_MAX = 36500 };

#define DAY_MS (INT64_C(24) * 3600 * 1000)

struct usage_query {
    const char *from, *to, *app, *key, *provider, *model, *kind, *group;
    int64_t days, limit, offset;
};

static const char *const kinds[] = { "chat", "embed", "speech", "hearing", NULL };

static const struct field usage_query_fields[] = {
    FIELD_STRING(struct usage_query, from, "from", .max = 10,
                 .help = "first day (UTC), like 2026-11-20; absent: `days` up to `to`"),
    FIELD_STRING(struct usage_query, to, "to", .max = 10, .help = "last day; absent: today"),
    FIELD_INT(struct usage_query, days, "days", .min = 1, .max = DAYS_MAX, .def = DAYS_DEFAULT),
    FIELD_STRING(struct usage_query, app, "app", .max = LIMIT_NAME_CHARS,
                 .help = "id or name of the app; empty: requests without one"),
    FIELD_STRING(struct usage_query, key, "key", .max = LIMIT_NAME_CHARS,
                 .help = "id of the developer key; empty: requests without one"),
    FIELD_STRING(struct usage_query, provider, "provider", .max = LIMIT_USAGE_NAME_BYTES),
    FIELD_STRING(struct usage_query, model, "model", .max = LIMIT_USAGE_NAME_BYTES),
    FIELD_STRING(struct usage_query, kind, "kind", .one_of = kinds),
    FIELD_STRING(struct usage_query, group, "group", .max = 64, .def_str = "day",
                 .help = "what a row is of: day, app, key, provider, model, kind, several with commas"),
    FIELD_INT(struct usage_query, limit, "limit", .min = 1, .max = LIMIT_LIST, .def = LIMIT_LIST_DEFAULT),
    FIELD_INT(struct usage_query, offset, "offset", .min = 0, .max = INT32_MAX),
    FIELD_END,
};

#define SHAPE_COUNTS                                                                                                   \
    SHAPE_INT("requests"), SHAPE_INT("failed", .help = "of them: no whole answer"),                                    \
        SHAPE_INT("estimated", .help = "of them: the provider did not count"), SHAPE_INT("prompt_tokens"),             \
        SHAPE_INT("completion_tokens"), SHAPE_INT("total_tokens"), SHAPE_INT("characters", .help = "spoken"),          \
        SHAPE_DOUBLE("audio_seconds", .help = "of what was spoken")

static const struct field row_shape[] = {
    SHAPE_STRING("day", .flags = FIELD_OPTIONAL),
    SHAPE_STRING("app", .flags = FIELD_OPTIONAL, .help = "id; empty: none was named"),
    SHAPE_STRING("app_name", .flags = FIELD_OPTIONAL | FIELD_NULLABLE),
    SHAPE_STRING("key", .flags = FIELD_OPTIONAL, .help = "id; empty: none was named"),
    SHAPE_STRING("key_name", .flags = FIELD_OPTIONAL | FIELD_NULLABLE),
    SHAPE_STRING("provider", .flags = FIELD_OPTIONAL, .help = "empty: none was asked"),
    SHAPE_STRING("model", .flags = FIELD_OPTIONAL),
    SHAPE_STRING("kind", .flags = FIELD_OPTIONAL),
    SHAPE_COUNTS,
    FIELD_END,
};

static const struct field counts_shape[] = { SHAPE_COUNTS, FIELD_END };

static const struct field usage_answer[] = {
    SHAPE_STRING("from"),
    SHAPE_STRING("to"),
    SHAPE_LIST("usage", row_shape, .help = "newest day first, then most tokens first"),
    SHAPE_INT("rows", .help = "without limit and offset"),
    SHAPE_OBJECT("totals", counts_shape, .help = "of all rows"),
    FIELD_END,
};

/* ---- the query ---- */

static int read_day(const char *text, const char *field, int64_t *ret_wall_ms, struct err *e)
{
    if (strlen(text) == 10 && clock_parse(slice_of(text), ret_wall_ms) == 0)
        return 0;
    return err_add_field(e, field, "must be a day like 2026-11-20");
}

static int read_days(const struct usage_query *query, struct arena *a, struct usage_request *ret, struct err *e)
{
    int64_t to_ms = clock_wall_ms(), from_ms;
    char *from = arena_alloc(a, USAGE_DAY_SIZE), *to = arena_alloc(a, USAGE_DAY_SIZE);
    int r = query->to ? read_day(query->to, "to", &to_ms, e) : 0, r_from = 0;

    from_ms = to_ms - (query->days - 1) * DAY_MS;
    if (query->from)
        r_from = read_day(query->from, "from", &from_ms, e);
    if (r == 0 && r_from == 0 && from_ms > to_ms)
        r = err_add_field(e, "from", "must not be after `to`");
    usage_day_text(from_ms, from);
    usage_day_text(to_ms, to);
    ret->from = from;
    ret->to = to;
    return r < 0 ? r : r_from;
}

static bool read_dimension(struct slice word, unsigned *by)
{
    for (int i = 0; i < N_USAGE_DIMENSIONS; i++) {
        if (slice_eq_str(word, usage_dimension_names[i])) {
            *by |= USAGE_BY(i);
            return true;
        }
    }
    return false;
}

static int read_group(const char *group, unsigned *ret, struct err *e)
{
    unsigned by = 0;

    for (const char *at = group;; at++) {
        size_t n = strcspn(at, ",");

        if (!read_dimension((struct slice){ at, n }, &by))
            return err_add_field(e, "group",
                                 "must be day, app, key, provider, model, kind, or several of them with commas");
        at += n;
        if (!*at)
            break;
    }
    *ret = by;
    return 0;
}

static int parse_request(struct request *req, struct usage_request *ret, struct err *e)
{
    const struct usage_query *query = req->query;
    int r, r_group;

    *ret = (struct usage_request){
        .only = { [USAGE_APP] = query->app,
                  [USAGE_KEY] = query->key,
                  [USAGE_PROVIDER] = query->provider,
                  [USAGE_MODEL] = query->model,
                  [USAGE_KIND] = query->kind },
        .limit = query->limit,
        .offset = query->offset,
    };
    r = store_apps_find_id(req->api->store, req->arena, query->app, &ret->only[USAGE_APP], e);
    if (r < 0)
        return r;
    if (query->key && *query->key && !uuid_is_valid(slice_of(query->key)))
        return err_set(e, -ENOENT, "KEY_NOT_FOUND", "There is no developer key with the id %.60s.", query->key);
    r = read_days(query, req->arena, ret, e);
    r_group = read_group(query->group, &ret->by, e);
    return r < 0 ? r : r_group;
}

/* ---- the answer ---- */

static void write_counts(struct json_writer *w, const struct usage_counts *c)
{
    json_add_int(w, "requests", c->requests);
    json_add_int(w, "failed", c->failed);
    json_add_int(w, "estimated", c->estimated);
    json_add_int(w, "prompt_tokens", c->prompt_tokens);
    json_add_int(w, "completion_tokens", c->completion_tokens);
    json_add_int(w, "total_tokens", c->prompt_tokens + c->completion_tokens);
    json_add_int(w, "characters", c->characters);
    json_add_double(w, "audio_seconds", (double)c->audio_ms / 1000);
}

static void write_row(struct json_writer *w, const struct usage_row *row, unsigned by)
{
    json_begin_object(w);
    for (int i = 0; i < N_USAGE_DIMENSIONS; i++)
        if (by & USAGE_BY(i))
            json_add_string(w, usage_dimension_names[i], row->of[i]);
    if (by & USAGE_BY(USAGE_APP))
        json_add_string(w, "app_name", row->app_name);
    if (by & USAGE_BY(USAGE_KEY))
        json_add_string(w, "key_name", row->key_name);
    write_counts(w, &row->counts);
    json_end(w);
}

static int list_usage(struct request *req, struct response *res, struct err *e)
{
    struct usage_page page = { 0 };
    struct usage_request request;
    int r = parse_request(req, &request, e);

    if (r == 0)
        r = meter_flush(req->api->meter, e);
    if (r == 0)
        r = store_usage_list(req->api->store, req->arena, &request, &page, e);
    if (r < 0)
        return r;
    json_add_string(&res->json, "from", request.from);
    json_add_string(&res->json, "to", request.to);
    json_begin_array_as(&res->json, "usage");
    for (size_t i = 0; i < page.n; i++)
        write_row(&res->json, &page.rows[i], request.by);
    json_end(&res->json);
    json_add_int(&res->json, "rows", page.n_all);
    json_begin_object_as(&res->json, "totals");
    write_counts(&res->json, &page.totals);
    json_end(&res->json);
    return 0;
}

const struct route usage_routes[] = {
    { .method = HTTP_GET,
      .path = "/api/usage",
      .permission = PERM_ADMIN,
      ROUTE_QUERY(usage_query_fields, struct usage_query),
      .answer = usage_answer,
      .handler = list_usage,
      .summary = "Requests and tokens of models, a day, app, key, provider, model or kind",
      .tag = "Usage" },
    ROUTE_END,
};
