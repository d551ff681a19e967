#include "world.h"
#include "base/limits.h"
#include "../metric.h"
#include <semaphore.h>

/* ---- routes to aim at ---- */

struct echo_body {
    const char *name;
    int64_t size;
};
struct echo_query {
    int64_t limit;
};

static const struct field echo_fields[] = {
    FIELD_STRING(struct echo_body, name, "name", FIELD_REQUIRED, .max = 10),
    FIELD_INT(struct echo_body, size, "size", .max = 5, .def = 3),
    FIELD_END,
};
static const struct field echo_query_fields[] = {
    FIELD_INT(struct echo_query, limit, "limit", .min = 1, .max = 9, .def = 4), FIELD_END
};
static const struct field any_answer[] = { FIELD_END };

static sem_t is_held, may_go;
static atomic_int n_handled;

static int echo(struct request *req, struct response *res, struct err *e)
{
    const struct echo_body *body = req->body;
    const struct echo_query *query = req->query;

    json_add_string(&res->json, "id", req->params[0]);
    json_add_string(&res->json, "name", body->name);
    json_add_int(&res->json, "size", body->size);
    json_add_int(&res->json, "limit", query->limit);
    json_add_string(&res->json, "more", json_cstr(json_get(req->body_json, "more")));
    return 0;
}

static int check_echo(const struct request *req, const void *body, struct err *e)
{
    const struct echo_body *echoed = body;

    return echoed->size == 2 ? err_add_field(e, "size", "must not be 2") : 0;
}

static int fail_inside(struct request *req, struct response *res, struct err *e)
{
    json_add_string(&res->json, "half", "written");
    return err_errno(e, EIO, "/very/secret/path");
}

static int fail_outside(struct request *req, struct response *res, struct err *e)
{
    err_set(e, -ESTALE, "LEASE_LOST", "Another machine holds it.");
    err_add_extra(e, "locked_by", "lin-1234");
    return -ESTALE;
}

static int hold(struct request *req, struct response *res, struct err *e)
{
    atomic_fetch_add(&n_handled, 1);
    sem_post(&is_held);
    sem_wait(&may_go);
    return 0;
}

/* True for requests whose name is "wait". */
static bool is_for_long_pool(const struct request *req)
{
    const struct echo_body *body = req->body;

    return strcmp(body->name, "wait") == 0;
}

static int report_thread(struct request *req, struct response *res, struct err *e)
{
    char thread[32] = "";
    int r = echo(req, res, e);

    pthread_getname_np(pthread_self(), thread, sizeof(thread));
    json_add_string(&res->json, "thread", thread);
    return r;
}

static int report_caller(struct request *req, struct response *res, struct err *e)
{
    static const char *const kinds[] = {
        [CALLER_NOBODY] = "nobody", [CALLER_KEY] = "key", [CALLER_APP] = "app", [CALLER_ADMIN] = "admin"
    };

    json_add_string(&res->json, "kind", kinds[req->caller->kind]);
    json_add_string(&res->json, "app_id", req->caller->app_id);
    return 0;
}

static int need_caller(struct request *req, struct response *res, struct err *e)
{
    int r;

    r = request_need_caller(req, e);
    return r < 0 ? r : report_caller(req, res, e);
}

static int fill_up(struct request *req, struct response *res, struct err *e)
{
    const char *line = arena_alloc(req->arena, KIB(1));

    memset((char *)(uintptr_t)line, 'x', KIB(1) - 1);
    for (size_t i = 0; i < LIMIT_REPLY / KIB(1); i++)
        json_add_string(&res->json, "x", line);
    return 0;
}

#define ROW(m, p, perm, h)                                                                                             \
    .method = (m), .path = (p), .permission = (perm), .handler = (h), .answer = any_answer, .summary = "s",            \
    .tag = "Test"

static const struct route test_routes[] = {
    { ROW(HTTP_POST, "/test/echo/:id", PERM_PUBLIC, echo), ROUTE_BODY(echo_fields, struct echo_body),
      .check_body = check_echo, ROUTE_QUERY(echo_query_fields, struct echo_query), .max_body = 200 },
    { ROW(HTTP_PUT, "/test/echo/:id", PERM_PUBLIC, report_caller) },
    { ROW(HTTP_POST, "/test/move/:id", PERM_LLM_EMBED, report_thread), ROUTE_BODY(echo_fields, struct echo_body),
      .check_body = check_echo, ROUTE_QUERY(echo_query_fields, struct echo_query), .needs_long = is_for_long_pool },
    { ROW(HTTP_GET, "/test/inside", PERM_PUBLIC, fail_inside) },
    { ROW(HTTP_GET, "/test/outside", PERM_PUBLIC, fail_outside) },
    { ROW(HTTP_GET, "/test/hold", PERM_PUBLIC, hold) },
    { ROW(HTTP_GET, "/test/fill", PERM_PUBLIC, fill_up) },
    { ROW(HTTP_GET, "/test/admin", PERM_ADMIN, report_caller) },
    { ROW(HTTP_GET, "/test/chat", PERM_LLM_CHAT, report_caller), .is_sdk = true },
    { ROW(HTTP_POST, "/test/spend", PERM_LLM_CHAT, report_caller), ROUTE_BODY(echo_fields, struct echo_body),
      ROUTE_QUERY(echo_query_fields, struct echo_query) },
    { ROW(HTTP_POST, "/test/body", PERM_BODY, report_caller), ROUTE_BODY(echo_fields, struct echo_body) },
    { ROW(HTTP_POST, "/test/need", PERM_BODY, need_caller), ROUTE_BODY(echo_fields, struct echo_body) },
    { ROW(HTTP_GET, "/test/bare", PERM_PUBLIC, report_caller), .is_bare = true, .status = 202 },
    ROUTE_END,
};

static const struct route *const tables[] = { test_routes, connectivity_routes, NULL };

#define LOCAL "host: localhost\r\n"
#define AS_APP LOCAL "x-app-id: " APP "\r\n"

/* ---- a real server ---- */

static void each_request_gets_its_documented_answer(void **state)
{
    static const struct {
        const char *lines, *body;
        int status;
        const char *code;
    } cases[] = {
        { "GET /sdk/ping HTTP/1.1\r\n" AS_APP, "", 200, "" },
        { "GET /api/sdk/ping HTTP/1.1\r\n" AS_APP, "", 200, "" },
        { "GET /sdk/ping HTTP/1.1\r\n" LOCAL, "", 401, "MISSING_APP_ID" },
        { "GET /sdk/ping HTTP/1.1\r\n" LOCAL "x-app-id: nonsense\r\n", "", 401, "INVALID_APP_ID" },
        { "GET /sdk/ping HTTP/1.1\r\nhost: evil.example\r\nx-app-id: " APP "\r\n", "", 403, "HOST_NOT_ALLOWED" },
        { "GET /nowhere HTTP/1.1\r\nhost: evil.example\r\n", "", 403, "HOST_NOT_ALLOWED" },
        { "GET /sdk/ping HTTP/1.1\r\n" AS_APP "origin: http://evil.example\r\n", "", 403, "ORIGIN_NOT_ALLOWED" },
        { "GET /nowhere HTTP/1.1\r\n" LOCAL "origin: null\r\n", "", 403, "ORIGIN_NOT_ALLOWED" },
        { "GET /nowhere HTTP/1.1\r\n" LOCAL, "", 404, "NOT_FOUND" },
        { "POST /sdk/ping HTTP/1.1\r\n" AS_APP, "", 405, "METHOD_NOT_ALLOWED" },
        { "OPTIONS /sdk/ping HTTP/1.1\r\n" LOCAL, "", 405, "METHOD_NOT_ALLOWED" },
        { "OPTIONS /sdk/ping HTTP/1.1\r\n" LOCAL "origin: http://evil.example\r\n", "", 403, "ORIGIN_NOT_ALLOWED" },
        { "GET /test/admin HTTP/1.1\r\n" AS_APP, "", 401, "ADMIN_REQUIRED" },
        { "GET /test/admin HTTP/1.1\r\n" LOCAL "cookie: hearth_session=nonsense\r\n", "", 401, "ADMIN_REQUIRED" },
        { "GET /test/chat HTTP/1.1\r\n" AS_APP, "", 403, "PERMISSION_REQUIRED" },
        { "GET /api/test/chat HTTP/1.1\r\n" AS_APP, "", 403, "PERMISSION_REQUIRED" },
        { "POST /test/echo/1 HTTP/1.1\r\n" LOCAL, "", 400, "INVALID_JSON" },
        { "POST /test/echo/1 HTTP/1.1\r\n" LOCAL, "{\"name\":", 400, "INVALID_JSON" },
        { "POST /test/echo/1 HTTP/1.1\r\n" LOCAL, "[]", 400, "VALIDATION_ERROR" },
        { "POST /test/echo/1 HTTP/1.1\r\n" LOCAL, "{}", 400, "VALIDATION_ERROR" },
        { "POST /test/echo/1 HTTP/1.1\r\n" LOCAL, "{\"name\":\"a\",\"size\":2}", 400, "VALIDATION_ERROR" },
        { "POST /test/echo/1?limit=10 HTTP/1.1\r\n" LOCAL, "{\"name\":\"a\"}", 400, "VALIDATION_ERROR" },
        { "POST /test/echo/1?limit=9 HTTP/1.1\r\n" LOCAL, "{\"name\":\"a\",\"size\":null}", 200, "" },
        { "GET /test/inside HTTP/1.1\r\n" LOCAL, "", 500, "INTERNAL_ERROR" },
        { "GET /test/outside HTTP/1.1\r\n" LOCAL, "", 409, "LEASE_LOST" },
        { "GET /test/bare HTTP/1.1\r\n" LOCAL, "", 202, "" },
        { "GET /test/fill HTTP/1.1\r\n" LOCAL, "", 500, "REPLY_TOO_LARGE" },
    };
    AUTO(world_close) struct world w = { 0 };

    world_open(&w, tables, NULL, 0);
    world_serve(&w, tables);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct reply reply = request(&w, cases[i].lines, cases[i].body);

        if (reply.status != cases[i].status || strcmp(code_of(&reply), cases[i].code) != 0)
            fail_msg("case %zu: %s%s%d %.*s", i, cases[i].lines, cases[i].body, reply.status, (int)reply.body.n,
                     reply.body.p);
        assert_non_null(header_of(&w, &reply, "x-request-id"));
        assert_int_equal(json_type(reply.json), JSON_OBJECT);
        if (cases[i].status >= 400)
            assert_false(json_bool(json_get(reply.json, "success")));
    }
}

static void the_envelope_names_every_broken_field(void **state)
{
    AUTO(world_close) struct world w = { 0 };
    struct json_value errors, first = { 0 };
    struct json_iter it;
    struct reply reply;

    world_open(&w, tables, NULL, 0);
    reply = request_local(&w, HTTP_POST, "/test/echo/1", "", "{\"name\":7,\"size\":2}");
    errors = json_get(reply.json, "errors");
    assert_int_equal(json_length(errors), 2);
    it = json_iter(errors);
    assert_true(json_next(&it, NULL, &first));
    assert_string_equal(json_cstr(json_get(first, "field")), "name");
    assert_non_null(strstr(json_cstr(json_get(first, "rule")), "string"));
    assert_non_null(strstr(text_of(&reply, "error"), "name"));
}

static void a_handler_gets_parameters_query_body_and_unknown_members(void **state)
{
    AUTO(world_close) struct world w = { 0 };
    struct reply reply;

    world_open(&w, tables, NULL, 0);
    reply = request_local(&w, HTTP_POST, "/test/echo/x y", "limit=7", "{\"name\":\"n\",\"more\":\"m\"}");
    assert_int_equal(reply.status, 200);
    assert_true(json_bool(json_get(reply.json, "success")));
    assert_string_equal(text_of(&reply, "id"), "x y");
    assert_string_equal(text_of(&reply, "name"), "n");
    assert_string_equal(text_of(&reply, "more"), "m");
    assert_int_equal(json_int(json_get(reply.json, "size")), 3);
    assert_int_equal(json_int(json_get(reply.json, "limit")), 7);
}

static void what_failed_inside_stays_inside(void **state)
{
    AUTO(world_close) struct world w = { 0 };
    struct reply reply;

    world_open(&w, tables, NULL, 0);
    reply = request_local(&w, HTTP_GET, "/test/inside", "", "");
    assert_int_equal(reply.status, 500);
    assert_null(strstr(reply.body.p, "secret"));
    assert_null(strstr(reply.body.p, "half"));
    reply = request_local(&w, HTTP_GET, "/test/outside", "", "");
    assert_string_equal(text_of(&reply, "locked_by"), "lin-1234");
}

static void a_bare_answer_has_no_envelope(void **state)
{
    AUTO(world_close) struct world w = { 0 };
    struct reply reply;

    world_open(&w, tables, NULL, 0);
    reply = request_local(&w, HTTP_GET, "/test/bare", "", "");
    assert_int_equal(reply.status, 202);
    assert_true(json_is_absent(json_get(reply.json, "success")));
}

static void a_body_at_its_limit_passes_and_one_byte_more_does_not(void **state)
{
    AUTO(world_close) struct world w = { 0 };
    struct reply reply;

    world_open(&w, tables, NULL, 0);
    for (int extra = 0; extra <= 1; extra++) {
        reply = request_local(&w, HTTP_POST, "/test/echo/1", "",
                              arena_printf(w.f.a, "{\"name\":\"n\"%*s", 189 + extra, "}"));
        assert_int_equal(reply.status, extra ? 413 : 200);
        assert_string_equal(code_of(&reply), extra ? "BODY_TOO_LARGE" : "");
    }
}

static void in_process_requests_are_the_administrators(void **state)
{
    AUTO(world_close) struct world w = { 0 };
    struct reply reply;

    world_open(&w, tables, NULL, 0);
    reply = request_local(&w, HTTP_GET, "/test/admin", "", "");
    assert_string_equal(text_of(&reply, "kind"), "admin");
    reply = request_local(&w, HTTP_GET, "/test/chat", "", "");
    assert_string_equal(text_of(&reply, "kind"), "admin");
}

static void the_body_names_the_app_on_routes_that_say_so(void **state)
{
    static const struct {
        const char *path, *headers, *body;
        int status;
        const char *code, *kind;
    } cases[] = {
        { "/test/body", "", "{\"name\":\"n\"}", 200, "", "nobody" },
        { "/test/body", "", "{\"name\":\"n\",\"app_id\":\"" APP "\"}", 200, "", "app" },
        { "/test/body", "", "{\"name\":\"n\",\"app_id\":\"" NO_APP "\"}", 200, "", "nobody" },
        { "/test/body", "x-app-id: " OTHER_APP "\r\n", "{\"name\":\"n\"}", 200, "", "app" },
        { "/test/body", "", "not json", 400, "INVALID_JSON", "" },
        { "/test/need", "", "{\"name\":\"n\"}", 401, "MISSING_APP_ID", "" },
        { "/test/need", "", "{\"name\":\"n\",\"app_id\":\"" NO_APP "\"}", 401, "INVALID_APP_ID", "" },
        { "/test/need", "", "{\"name\":\"n\",\"app_id\":\"" APP "\"}", 200, "", "app" },
        { "/test/echo/1", "", "{\"name\":\"n\",\"app_id\":\"" APP "\"}", 200, "", "" },
    };
    AUTO(world_close) struct world w = { 0 };

    world_open(&w, tables, NULL, 0);
    world_serve(&w, tables);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct reply reply = request(
            &w, arena_printf(w.f.a, "POST %s HTTP/1.1\r\n" LOCAL "%s", cases[i].path, cases[i].headers), cases[i].body);

        if (reply.status != cases[i].status || strcmp(code_of(&reply), cases[i].code) != 0 ||
            strcmp(text_of(&reply, "kind"), cases[i].kind) != 0)
            fail_msg("case %zu: %d %.*s", i, reply.status, (int)reply.body.n, reply.body.p);
    }
}

static void only_this_machine_may_name_an_app_in_the_body(void **state)
{
    static const struct {
        const char *peer, *app_header;
        int status;
    } cases[] = {
        { "127.0.0.1", NULL, 200 }, { "::1", NULL, 200 },        { "192.168.1.5", NULL, 401 },
        { "fe80::1", NULL, 401 },   { "192.168.1.5", APP, 200 }, { "192.168.1.5", NO_APP, 401 },
    };
    AUTO(world_close) struct world w = { 0 };

    world_open(&w, tables, NULL, 0);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct http_exchange *x =
            http_local_new(HTTP_POST, "/test/body", "", SLICE_LIT("{\"name\":\"n\",\"app_id\":\"" APP "\"}"));
        struct slice body;
        int status;

        x->request.from = HTTP_FROM_TCP;
        x->request.headers = arena_array(x->arena, 2, sizeof(struct http_header));
        x->request.headers[0] = (struct http_header){ "host", "localhost" };
        x->request.headers[1] = (struct http_header){ "x-app-id", cases[i].app_header };
        x->request.n_headers = cases[i].app_header ? 2 : 1;
        snprintf(x->request.peer, sizeof(x->request.peer), "%s", cases[i].peer);
        dispatch_request(w.dispatch, x);
        http_local_wait(x, &status, &body);
        assert_int_equal(status, cases[i].status);
        http_local_free(x);
    }
}

static void a_grant_for_once_is_spent_by_a_request_that_is_in_order_only(void **state)
{
    static const struct {
        const char *target, *body;
        int status;
        const char *code;
    } cases[] = {
        { "/test/spend", "not json", 400, "INVALID_JSON" },
        { "/test/spend", "{}", 400, "VALIDATION_ERROR" },
        { "/test/spend?limit=10", "{\"name\":\"n\"}", 400, "VALIDATION_ERROR" },
        { "/test/spend", "{\"name\":\"n\"}", 200, "" },
        { "/test/spend", "{\"name\":\"n\"}", 403, "PERMISSION_REQUIRED" },
        { "/test/spend", "{}", 403, "PERMISSION_REQUIRED" },
    };
    AUTO(world_close) struct world w = { 0 };

    world_open(&w, tables, NULL, 0);
    world_serve(&w, tables);
    decide(&w.f, APP, PERM_LLM_CHAT, true, CONSENT_ONCE);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct reply reply =
            request(&w, arena_printf(w.f.a, "POST %s HTTP/1.1\r\n" AS_APP, cases[i].target), cases[i].body);

        if (reply.status != cases[i].status || strcmp(code_of(&reply), cases[i].code) != 0)
            fail_msg("case %zu: %d %.*s", i, reply.status, (int)reply.body.n, reply.body.p);
    }
}

static void a_request_that_waits_for_others_moves_to_the_long_pool_with_all_that_was_read(void **state)
{
    static const struct {
        const char *body, *thread;
        int status;
        const char *code;
    } cases[] = {
        { "{\"name\":\"work\",\"more\":\"m\"}", "short", 200, "" },
        { "{\"name\":\"wait\",\"more\":\"m\"}", "long", 200, "" },
        { "{\"name\":\"wait\"}", NULL, 403, "PERMISSION_REQUIRED" }, /* the grant was for once */
    };
    AUTO(world_close) struct world w = { 0 };

    world_open(&w, tables, NULL, 0);
    world_serve(&w, tables);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct reply reply;

        if (cases[i].thread)
            decide(&w.f, APP, PERM_LLM_EMBED, true, CONSENT_ONCE);
        reply = request(&w, "POST /test/move/7?limit=9 HTTP/1.1\r\n" AS_APP, cases[i].body);
        if (reply.status != cases[i].status || strcmp(code_of(&reply), cases[i].code) != 0)
            fail_msg("case %zu: %d %.*s", i, reply.status, (int)reply.body.n, reply.body.p);
        if (!cases[i].thread)
            continue;
        assert_int_equal(strncmp(text_of(&reply, "thread"), cases[i].thread, strlen(cases[i].thread)),
                         0); /* "long-1" */
        assert_string_equal(text_of(&reply, "id"), "7");
        assert_string_equal(text_of(&reply, "more"), "m");
        assert_int_equal(json_int(json_get(reply.json, "limit")), 9);
    }
}

static void own_and_configured_origins_get_cors_headers_and_others_none(void **state)
{
    static const char *const flags[] = { "http.allowed_origins=https://app.example" };
    AUTO(world_close) struct world w = { 0 };
    struct reply reply;

    world_open(&w, tables, flags, 1);
    world_serve(&w, tables);
    reply = request(&w,
                    "OPTIONS /sdk/ping HTTP/1.1\r\n" LOCAL
                    "origin: https://app.example\r\naccess-control-request-method: GET\r\n",
                    "");
    assert_int_equal(reply.status, 200);
    assert_string_equal(header_of(&w, &reply, "access-control-allow-origin"), "https://app.example");
    assert_string_equal(
        header_of(&w, &reply, "access-control-allow-headers"),
        "content-type, authorization, x-app-id, x-api-key, accept, mcp-session-id, mcp-protocol-version, "
        "mcp-method, mcp-name, apikey, x-client-info, x-supabase-api-version, prefer, accept-profile, content-profile, range, range-unit");
    reply = request(&w, "GET /sdk/ping HTTP/1.1\r\n" AS_APP "origin: https://app.example\r\n", "");
    assert_int_equal(reply.status, 200);
    assert_string_equal(header_of(&w, &reply, "access-control-allow-origin"), "https://app.example");
    assert_string_equal(header_of(&w, &reply, "vary"), "origin");
    assert_string_equal(
        header_of(&w, &reply, "access-control-expose-headers"),
        "x-request-id, retry-after, x-hearth-provider, x-hearth-overhead-ms, x-hearth-queue-ms, x-hearth-voice, "
        "mcp-session-id, content-range, content-location, location, preference-applied, x-supabase-api-version");
    reply = request(&w, "GET /sdk/ping HTTP/1.1\r\n" AS_APP, "");
    assert_null(header_of(&w, &reply, "access-control-allow-origin"));
    reply = request(&w, "GET /sdk/ping HTTP/1.1\r\n" AS_APP "origin: https://evil.example\r\n", "");
    assert_int_equal(reply.status, 403);
    assert_null(header_of(&w, &reply, "access-control-allow-origin"));
}

static void another_method_is_reported_with_allow(void **state)
{
    AUTO(world_close) struct world w = { 0 };
    struct reply reply;

    world_open(&w, tables, NULL, 0);
    world_serve(&w, tables);
    reply = request(&w, "DELETE /test/echo/1 HTTP/1.1\r\n" LOCAL, "");
    assert_int_equal(reply.status, 405);
    assert_string_equal(header_of(&w, &reply, "allow"), "POST, PUT");
}

static bool has_one_waiting(void *pool)
{
    return pool_waiting(pool) > 0;
}

static void a_full_pool_says_overloaded_and_when_to_come_again(void **state)
{
    AUTO(world_close) struct world w = { .n_short_waiting = 0 };
    int held[3];
    struct reply reply;

    sem_init(&is_held, 0, 0);
    sem_init(&may_go, 0, 0);
    world_open(&w, tables, NULL, 0);
    w.n_short_waiting = 1;
    world_serve(&w, tables);
    for (size_t i = 0; i < 2; i++) {
        held[i] = world_connect(&w);
        send_text(held[i], "GET /test/hold HTTP/1.1\r\n" LOCAL "connection: close\r\n\r\n");
        sem_wait(&is_held);
    }
    held[2] = world_connect(&w);
    send_text(held[2], "GET /test/hold HTTP/1.1\r\n" LOCAL "connection: close\r\n\r\n");
    assert_true(wait_until(has_one_waiting, w.short_pool));
    reply = request(&w, "GET /test/outside HTTP/1.1\r\n" LOCAL, "");
    assert_int_equal(reply.status, 503);
    assert_string_equal(code_of(&reply), "OVERLOADED");
    assert_string_equal(header_of(&w, &reply, "retry-after"), "1");
    assert_int_equal(request(&w, "GET /sdk/ping HTTP/1.1\r\n" AS_APP, "").status, 200); /* the loop is free */
    for (size_t i = 0; i < 3; i++)
        sem_post(&may_go);
    for (size_t i = 0; i < 3; i++) {
        receive_all(&w, held[i]);
        close(held[i]);
    }
}

static void requests_are_counted_by_route_and_status_never_by_path(void **state)
{
    AUTO(world_close) struct world w = { 0 };
    static const char good[] = "hearth_http_requests_total{route=\"/test/echo/:id\",method=\"POST\",status=\"200\"}",
                      other[] = "hearth_http_requests_total{route=\"other\",method=\"other\",status=\"404\"}";
    struct buf page;
    double good_before, other_before;

    world_open(&w, tables, NULL, 0);
    good_before = metric_of(good);
    other_before = metric_of(other);
    for (int i = 0; i < 3; i++)
        request_local(&w, HTTP_POST, "/test/echo/made-up-id", "", "{\"name\":\"n\"}");
    request_local(&w, HTTP_GET, "/made-up-path", "", "");
    dispatch_refused(w.dispatch, "id", 404, "NOT_FOUND");
    assert_int_equal(metric_of(good) - good_before, 3);
    assert_int_equal(metric_of(other) - other_before, 2);
    buf_init(&page, MIB(4));
    metrics_print(&page);
    assert_null(strstr(buf_str(&page), "made-up"));
    assert_non_null(strstr(buf_str(&page), "hearth_http_request_seconds_bucket{route=\"/test/echo/:id\""));
    buf_clear(&page);
}

static void collect(const struct route *r, const char *path, void *arg)
{
    struct buf *out = arg;

    buf_printf(out, "%s %s\n", http_method_name(r->method), path);
}

static void every_route_is_listed_with_its_aliases(void **state)
{
    AUTO(world_close) struct world w = { 0 };
    struct buf out;

    world_open(&w, tables, NULL, 0);
    buf_init(&out, KIB(64));
    dispatch_each_route(w.dispatch, collect, &out);
    assert_non_null(strstr(buf_str(&out), "GET /test/chat\nGET /api/test/chat\n"));
    assert_non_null(strstr(buf_str(&out), "GET /sdk/ping\nGET /api/sdk/ping\n"));
    buf_clear(&out);
}

static void a_request_that_waited_past_its_deadline_is_not_worked_for(void **state)
{
    AUTO(world_close) struct world w = { 0 };
    struct http_exchange *x = http_local_new(HTTP_GET, "/test/hold", "", slice_of(""));
    int status, before = atomic_load(&n_handled);
    struct slice body;

    world_open(&w, tables, NULL, 0);
    x->deadline_ms = clock_mono_ms() - 1;
    dispatch_request(w.dispatch, x);
    http_local_wait(x, &status, &body);
    assert_int_equal(status, 503);
    assert_non_null(strstr(body.p, "OVERLOADED"));
    assert_int_equal(atomic_load(&n_handled), before);
    http_local_free(x);
}

static void a_client_that_left_before_its_turn_is_not_worked_for(void **state)
{
    AUTO(world_close) struct world w = { 0 };
    struct http_exchange *x = http_local_new(HTTP_GET, "/test/hold", "", slice_of(""));
    struct slice body;
    int status, before = atomic_load(&n_handled);

    world_open(&w, tables, NULL, 0);
    atomic_store(&x->is_gone, true);
    dispatch_request(w.dispatch, x);
    http_local_wait(x, &status, &body);
    assert_int_equal(status, 503);
    assert_int_equal(atomic_load(&n_handled), before);
    http_local_free(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_request_gets_its_documented_answer),
        cmocka_unit_test(the_envelope_names_every_broken_field),
        cmocka_unit_test(a_handler_gets_parameters_query_body_and_unknown_members),
        cmocka_unit_test(what_failed_inside_stays_inside),
        cmocka_unit_test(a_bare_answer_has_no_envelope),
        cmocka_unit_test(a_body_at_its_limit_passes_and_one_byte_more_does_not),
        cmocka_unit_test(in_process_requests_are_the_administrators),
        cmocka_unit_test(the_body_names_the_app_on_routes_that_say_so),
        cmocka_unit_test(only_this_machine_may_name_an_app_in_the_body),
        cmocka_unit_test(a_grant_for_once_is_spent_by_a_request_that_is_in_order_only),
        cmocka_unit_test(a_request_that_waits_for_others_moves_to_the_long_pool_with_all_that_was_read),
        cmocka_unit_test(own_and_configured_origins_get_cors_headers_and_others_none),
        cmocka_unit_test(another_method_is_reported_with_allow),
        cmocka_unit_test(a_full_pool_says_overloaded_and_when_to_come_again),
        cmocka_unit_test(requests_are_counted_by_route_and_status_never_by_path),
        cmocka_unit_test(every_route_is_listed_with_its_aliases),
        cmocka_unit_test(a_request_that_waited_past_its_deadline_is_not_worked_for),
        cmocka_unit_test(a_client_that_left_before_its_turn_is_not_worked_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
