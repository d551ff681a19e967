/* This folder's routes on identity and the system, through dispatch, as a client sees them. */
#include "world.h"
#include "../apps/app_config.h"
#include "api/openapi.h"
#include "base/clock.h"
#include <sys/stat.h>

#define LOCAL "host: localhost\r\n"
#define AS_APP LOCAL "x-app-id: " APP "\r\n"

static const char *make_key(struct world *w, const char **ret_id)
{
    struct reply reply = request_local(w, HTTP_POST, "/api/keys", "", "{\"name\":\"laptop\"}");

    assert_int_equal(reply.status, 201);
    *ret_id = arena_strdup(w->f.a, text_of(&reply, "id"));
    return arena_strdup(w->f.a, text_of(&reply, "key"));
}

static void ping_says_who_is_asking(void **state)
{
    AUTO(world_close) struct world w = { 0 };
    struct reply reply;
    const char *id, *key;
    int64_t at;

    world_open(&w, NULL, NULL, 0);
    world_serve(&w, NULL);
    key = make_key(&w, &id);
    reply = request(&w, "GET /sdk/ping HTTP/1.1\r\n" AS_APP, "");
    assert_string_equal(text_of(&reply, "mode"), "production");
    assert_string_equal(text_of(&reply, "appId"), APP);
    assert_int_equal(clock_parse(slice_of(text_of(&reply, "timestamp")), &at), 0);
    reply =
        request(&w, arena_printf(w.f.a, "GET /sdk/ping HTTP/1.1\r\n" LOCAL "authorization: Bearer %s\r\n", key), "");
    assert_string_equal(text_of(&reply, "mode"), "development");
    assert_true(json_is_absent(json_get(reply.json, "appId")));
    reply = request(&w, arena_printf(w.f.a, "GET /sdk/ping HTTP/1.1\r\n" AS_APP "x-api-key: %s\r\n", key), "");
    assert_string_equal(text_of(&reply, "mode"), "development");
    assert_string_equal(text_of(&reply, "appId"), APP);
}

static void a_key_is_made_listed_and_revoked(void **state)
{
    AUTO(world_close) struct world w = { 0 };
    struct reply reply;
    const char *id, *key, *with_key;

    world_open(&w, NULL, NULL, 0);
    world_serve(&w, NULL);
    key = make_key(&w, &id);
    with_key = arena_printf(w.f.a, "GET /sdk/ping HTTP/1.1\r\n" LOCAL "x-api-key: %s\r\n", key);
    reply = request_local(&w, HTTP_GET, "/api/keys", "", "");
    assert_non_null(strstr(reply.body.p, "laptop"));
    assert_null(strstr(reply.body.p, key));
    assert_int_equal(request(&w, with_key, "").status, 200);
    reply = request_local(&w, HTTP_DELETE, arena_printf(w.f.a, "/api/keys/%s", id), "", "");
    assert_int_equal(reply.status, 200);
    assert_int_equal(request(&w, with_key, "").status, 401);
    reply = request_local(&w, HTTP_DELETE, "/api/keys/made-up", "", "");
    assert_int_equal(reply.status, 404);
    assert_string_equal(code_of(&reply), "KEY_NOT_FOUND");
}

static void each_caller_has_a_private_folder_of_its_own(void **state)
{
    AUTO(world_close) struct world w = { 0 };
    const char *path, *id, *key, *other;
    struct stat about;
    struct reply reply;

    world_open(&w, NULL, NULL, 0);
    world_serve(&w, NULL);
    reply = request(&w, "GET /sdk/local-apps/data-dir HTTP/1.1\r\n" AS_APP, "");
    assert_int_equal(reply.status, 200);
    path = text_of(&reply, "dataDir");
    assert_string_equal(path, arena_printf(w.f.a, "%s/local-apps/" APP, w.f.path));
    assert_int_equal(stat(path, &about), 0);
    assert_int_equal(about.st_mode & 07777, 0700);
    key = make_key(&w, &id);
    reply = request(
        &w, arena_printf(w.f.a, "GET /api/sdk/local-apps/data-dir HTTP/1.1\r\n" LOCAL "x-api-key: %s\r\n", key), "");
    other = text_of(&reply, "dataDir");
    assert_int_equal(strlen(strrchr(other, '/') + 1), 16);
    assert_int_equal(request(&w, "GET /sdk/local-apps/data-dir HTTP/1.1\r\n" LOCAL, "").status, 401);
}

/* ---- permissions ---- */

static bool is_pending(void *f)
{
    return count_pending(f) > 0;
}

static void asking_holds_until_the_person_decides(void **state)
{
    AUTO(world_close) struct world w = { 0 };
    const char *question = "{\"app_id\":\"" APP "\",\"app_name\":\"triage\",\"permission\":\"llm.chat\"}";
    struct reply reply;
    int fd;

    world_open(&w, NULL, NULL, 0);
    world_serve(&w, NULL);
    fd = world_connect(&w);
    send_text(fd, arena_printf(w.f.a,
                               "POST /api/local-apps/request-permission HTTP/1.1\r\n" LOCAL
                               "connection: close\r\ncontent-length: %zu\r\n\r\n%s",
                               strlen(question), question));
    assert_true(wait_until(is_pending, &w.f));
    reply = request_local(&w, HTTP_GET, "/api/permissions/pending", "", "");
    assert_int_equal(json_length(json_get(reply.json, "pending")), 1);
    assert_non_null(strstr(reply.body.p, "\"permission\":\"llm.chat\""));
    assert_non_null(strstr(reply.body.p, "\"app_name\":\"triage\""));
    reply = request_local(&w, HTTP_POST, "/api/permissions/decide", "",
                          "{\"app_id\":\"" APP "\",\"permissions\":[\"llm.chat\"],\"allow\":true,\"scope\":\"once\"}");
    assert_int_equal(reply.status, 200);
    assert_non_null(strstr(receive_all(&w, fd).p, "\"granted\":true"));
    close(fd);
    reply = request_local(&w, HTTP_GET, "/api/permissions", "app_id=" APP, "");
    assert_non_null(strstr(reply.body.p, "\"decision\":\"allow\",\"scope\":\"once\""));
}

static void an_unanswered_question_is_no_grant_and_no_denial(void **state)
{
    static const char *const flags[] = { "consent.wait_s=0.1" };
    AUTO(world_close) struct world w = { 0 };
    struct reply reply;

    world_open(&w, NULL, flags, 1);
    reply = request_local(&w, HTTP_POST, "/api/local-apps/request-permission", "",
                          "{\"app_id\":\"" APP "\",\"permission\":\"llm.chat\"}");
    assert_int_equal(reply.status, 200);
    assert_false(json_bool(json_get(reply.json, "granted")));
    reply = request_local(&w, HTTP_POST, "/sdk/register", "",
                          "{\"app_id\":\"" APP "\",\"permissions\":[\"llm.chat\",\"tts.generate\"]}");
    assert_int_equal(json_length(json_get(json_get(reply.json, "permissions"), "granted")), 0);
    assert_int_equal(json_length(json_get(json_get(reply.json, "permissions"), "denied")), 0);
    assert_int_equal(count_pending(&w.f), 2);
}

static void a_developer_key_asks_without_an_app_and_has_all(void **state)
{
    AUTO(world_close) struct world w = { 0 };
    const char *id, *key, *headers;
    struct json_value outcome;
    struct reply reply;

    world_open(&w, NULL, NULL, 0);
    world_serve(&w, NULL);
    key = make_key(&w, &id);
    headers = arena_printf(w.f.a, LOCAL "x-api-key: %s\r\n", key);
    reply = request(&w, arena_printf(w.f.a, "POST /api/local-apps/request-permission HTTP/1.1\r\n%s", headers),
                    "{\"permission\":\"llm.chat\"}");
    assert_int_equal(reply.status, 200);
    assert_true(json_bool(json_get(reply.json, "granted")));
    reply = request(&w, arena_printf(w.f.a, "POST /sdk/register HTTP/1.1\r\n%s", headers),
                    "{\"permissions\":[\"llm.chat\",\"made.up\"]}");
    assert_int_equal(reply.status, 200);
    outcome = json_get(reply.json, "permissions");
    assert_int_equal(json_length(json_get(outcome, "granted")), 2);
    assert_int_equal(json_length(json_get(outcome, "denied")), 0);
    assert_int_equal(count_pending(&w.f), 0);
}

static void a_setting_that_cannot_be_stored_does_not_change(void **state)
{
    static const struct route *const setting_tables[] = { setting_routes, NULL };
    AUTO(world_close) struct world w = { 0 };
    struct err e = { 0 };

    world_open(&w, setting_tables, NULL, 0);
    assert_int_equal(request_local(&w, HTTP_PUT, "/api/settings/tasks.sweep_s", "", "{\"value\":7}").status, 200);
    must(store_exec(w.f.store, &e, NULL, "DROP TABLE settings_rows", ""), &e);
    assert_int_equal(request_local(&w, HTTP_PUT, "/api/settings/tasks.sweep_s", "", "{\"value\":8}").status, 500);
    assert_int_equal(settings_ms(w.settings, SETTING_TASKS_SWEEP_S), 7000);
    assert_int_equal(request_local(&w, HTTP_DELETE, "/api/settings/tasks.sweep_s", "", "").status, 500);
    assert_int_equal(settings_ms(w.settings, SETTING_TASKS_SWEEP_S), 7000);
}

static void a_setting_that_is_refused_is_neither_audited_nor_stored(void **state)
{
    static const struct route *const setting_tables[] = { setting_routes, NULL };
    AUTO(world_close) struct world w = { 0 };
    struct setting_row *rows;
    struct err e = { 0 };
    size_t n;

    world_open(&w, setting_tables, NULL, 0);
    assert_int_equal(request_local(&w, HTTP_PUT, "/api/settings/tasks.sweep_s", "", "{\"value\":\"soon\"}").status,
                     400);
    assert_int_equal(count_audit(&w.f, "setting.set"), 0);
    must(store_settings_list(w.f.store, w.f.a, &rows, &n, &e), &e);
    assert_int_equal(n, 0);
}

static void register_reports_what_is_granted_and_denied(void **state)
{
    AUTO(world_close) struct world w = { 0 };
    const char *speech = "tts.generate";
    const struct consent_request wanted = { .app_id = APP, .permissions = &speech, .n = 1 };
    struct consent_answer answer;
    struct err e = { 0 };
    struct reply reply;

    world_open(&w, NULL, NULL, 0);
    decide(&w.f, APP, "llm.chat", true, CONSENT_ALWAYS);
    for (int i = 0; i < 2; i++) {
        must(consent_request(w.f.id, &wanted, &answer, &e), &e);
        decide(&w.f, APP, speech, false, CONSENT_ALWAYS);
    }
    reply = request_local(&w, HTTP_POST, "/api/sdk/register", "",
                          "{\"app_id\":\"" APP "\",\"permissions\":[\"llm.chat\",\"tts.generate\"]}");
    assert_non_null(strstr(reply.body.p, "\"permissions\":{\"granted\":[\"llm.chat\"],\"denied\":[\"tts.generate\"]}"));
    assert_non_null(*text_of(&reply, "message") ? "" : NULL);
}

static void asking_for_an_unknown_app_is_404(void **state)
{
    static const char *const bodies[] = { "{\"app_id\":\"" NO_APP "\",\"permissions\":[\"llm.chat\"]}",
                                          "{\"app_id\":\"" NO_APP "\",\"permissions\":[]}" };
    AUTO(world_close) struct world w = { 0 };

    world_open(&w, NULL, NULL, 0);
    for (size_t i = 0; i < ARRAY_SIZE(bodies); i++) {
        struct reply reply = request_local(&w, HTTP_POST, "/sdk/register", "", bodies[i]);

        assert_int_equal(reply.status, 404);
        assert_string_equal(code_of(&reply), "APP_NOT_FOUND");
    }
}

static void decisions_are_checked_revoked_and_reset(void **state)
{
    static const struct {
        const char *path, *body;
        int status;
    } steps[] = {
        { "/api/permissions/decide",
          "{\"app_id\":\"" APP "\",\"permissions\":[\"llm.chat\"],\"allow\":true,\"scope\":\"until_date\"}", 400 },
        { "/api/permissions/decide",
          "{\"app_id\":\"" APP "\",\"permissions\":[\"llm.chat\"],\"allow\":true,\"scope\":\"for ever\"}", 400 },
        { "/api/permissions/decide", "{\"app_id\":\"" APP "\",\"permissions\":[],\"allow\":true}", 400 },
        { "/api/permissions/decide", "{\"app_id\":\"" APP "\",\"permissions\":[\"llm.chat\"]}", 400 },
        { "/api/permissions/decide", "{\"app_id\":\"" APP "\",\"permissions\":[\"llm.chat\",\"\"],\"allow\":true}",
          400 },
        { "/api/permissions/decide", "{\"app_id\":\"" NO_APP "\",\"permissions\":[\"llm.chat\"],\"allow\":true}", 404 },
        { "/api/permissions/decide",
          "{\"app_id\":\"" APP
          "\",\"permissions\":[\"llm.chat\",\"llm.embed\"],\"allow\":true,\"scope\":\"until_date\",\"until\":\"2999-01-01\"}",
          200 },
        { "/api/permissions/revoke", "{\"app_id\":\"" APP "\",\"permission\":\"llm.chat\"}", 200 },
        { "/api/permissions/revoke", "{\"app_id\":\"" APP "\",\"permission\":\"llm.chat\"}", 404 },
        { "/api/permissions/reset", "{\"app_id\":\"" APP "\"}", 200 },
        { "/api/permissions/reset", "{\"app_id\":\"" NO_APP "\"}", 404 },
    };
    AUTO(world_close) struct world w = { 0 };
    struct reply reply;

    world_open(&w, NULL, NULL, 0);
    for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
        reply = request_local(&w, HTTP_POST, steps[i].path, "", steps[i].body);
        if (reply.status != steps[i].status)
            fail_msg("step %zu: %d %.*s", i, reply.status, (int)reply.body.n, reply.body.p);
    }
    reply = request_local(&w, HTTP_GET, "/api/permissions", "", "");
    assert_int_equal(json_length(json_get(reply.json, "grants")), 0);
    reply = request_local(&w, HTTP_GET, "/api/audit", "", "");
    assert_int_equal(json_length(json_get(reply.json, "entries")), 4);
    reply = request_local(&w, HTTP_GET, "/api/audit/verify", "", "");
    assert_true(json_bool(json_get(reply.json, "whole")));
}

/* ---- session ---- */

static void the_one_time_link_signs_a_browser_in_once(void **state)
{
    AUTO(world_close) struct world w = { 0 };
    const char *url, *open, *cookie, *proof, *with_cookie;
    struct reply reply;

    world_open(&w, NULL, NULL, 0);
    world_serve(&w, NULL);
    reply = request_local(&w, HTTP_POST, "/api/session/link", "", "");
    assert_int_equal(reply.status, 201);
    url = text_of(&reply, "url");
    assert_int_equal(strncmp(url, w.api.base_url, strlen(w.api.base_url)), 0);
    open = arena_printf(w.f.a, "GET %s HTTP/1.1\r\n" LOCAL, url + strlen(w.api.base_url));
    reply = request(&w, open, "");
    assert_int_equal(reply.status, 303);
    proof = header_of(&w, &reply, "location");
    assert_int_equal(strncmp(proof, "/session#proof=", strlen("/session#proof=")), 0);
    proof += strlen("/session#proof=");
    assert_string_equal(header_of(&w, &reply, "referrer-policy"), "no-referrer");
    cookie = header_of(&w, &reply, "set-cookie");
    assert_non_null(strstr(cookie, "; Path=/; HttpOnly; SameSite=Strict"));
    with_cookie = arena_printf(w.f.a, LOCAL "cookie: %.*s\r\n", (int)strcspn(cookie, ";"), cookie);
    assert_int_equal(request(&w, arena_printf(w.f.a, "GET /api/keys HTTP/1.1\r\n%s", with_cookie), "").status, 401);
    with_cookie = arena_printf(w.f.a, "%sx-hearth-proof: %s\r\n", with_cookie, proof);
    assert_int_equal(request(&w, arena_printf(w.f.a, "GET /api/keys HTTP/1.1\r\n%s", with_cookie), "").status, 200);
    reply = request(&w, open, "");
    assert_int_equal(reply.status, 403);
    assert_null(header_of(&w, &reply, "set-cookie"));
    assert_int_equal(request(&w, arena_printf(w.f.a, "DELETE /api/session HTTP/1.1\r\n%s", with_cookie), "").status,
                     200);
    assert_int_equal(request(&w, arena_printf(w.f.a, "GET /api/keys HTTP/1.1\r\n%s", with_cookie), "").status, 401);
}

static void management_is_for_the_administrator_alone(void **state)
{
    AUTO(world_close) struct world w = { 0 };
    const char *id, *key;

    world_open(&w, NULL, NULL, 0);
    world_serve(&w, NULL);
    key = make_key(&w, &id);
    for (const struct route *const *table = world_tables; *table; table++) {
        for (const struct route *route = *table; route->path; route++) {
            const char *lines = arena_printf(w.f.a, "%s %s HTTP/1.1\r\n" AS_APP "x-api-key: %s\r\n",
                                             http_method_name(route->method), route->path, key);
            struct reply reply;

            if (strcmp(route->permission, PERM_ADMIN) != 0)
                continue;
            reply = request(&w, lines, "{}");
            assert_int_equal(reply.status, 401);
            assert_string_equal(code_of(&reply), "ADMIN_REQUIRED");
        }
    }
}

/* ---- the backend ---- */

static void a_backend_token_is_handed_over_and_seen_by_its_owner(void **state)
{
    AUTO(world_close) struct world w = { 0 };
    struct reply reply;

    world_open(&w, NULL, NULL, 0);
    world_serve(&w, NULL);
    reply = request(&w, "GET /sdk/auth/token HTTP/1.1\r\n" AS_APP, "");
    assert_int_equal(reply.status, 404);
    assert_string_equal(code_of(&reply), "TOKEN_NOT_FOUND");
    reply = request(&w, "POST /sdk/auth/sync-backend-token HTTP/1.1\r\n" AS_APP, "{\"token\":\"of the user\"}");
    assert_int_equal(reply.status, 200);
    assert_true(json_bool(json_get(reply.json, "hasToken")));
    reply = request(&w, "GET /api/sdk/auth/token HTTP/1.1\r\n" AS_APP, "");
    assert_string_equal(text_of(&reply, "token"), "of the user");
    assert_string_equal(header_of(&w, &reply, "cache-control"), "no-store");
    reply = request(&w, "GET /sdk/auth/token HTTP/1.1\r\nhost: localhost\r\nx-app-id: " OTHER_APP "\r\n", "");
    assert_int_equal(reply.status, 404);
    reply = request(&w, "POST /sdk/auth/sync-backend-token HTTP/1.1\r\n" AS_APP, "{}");
    assert_int_equal(reply.status, 400);
}

static const char *register_app_of(struct world *w, const char *json)
{
    char *app_id = arena_alloc(w->f.a, UUID_SIZE);
    struct app_config config;
    struct err e = { 0 };

    must(parse_app_config(w->f.a, slice_of(json), &config, &e), &e);
    must(app_put(w->api.apps, &config, slice_of(json), "admin", app_id, &e), &e);
    return app_id;
}

static void an_app_reads_its_own_database_configuration_when_it_may(void **state)
{
    AUTO(world_close) struct world w = { 0 };
    const char *app_id, *lines;
    struct json_value config;
    struct reply reply;

    world_open(&w, NULL, NULL, 0);
    world_serve(&w, NULL);
    app_id = register_app_of(
        &w,
        "{\"name\":\"orders\",\"app_type\":\"custom\",\"config\":{\"command\":\"/bin/true\",\"backend\":{\"enabled\":true,"
        "\"mode\":\"compatible\",\"tables\":[\"public.orders\"],\"max_concurrent_tasks\":3}}}");
    lines = arena_printf(w.f.a, "GET /sdk/database/config HTTP/1.1\r\n" LOCAL "x-app-id: %s\r\n", app_id);
    assert_int_equal(request(&w, lines, "").status, 403);
    decide(&w.f, app_id, PERM_DATABASE_CONFIG, true, CONSENT_ALWAYS);
    reply = request(&w, lines, "");
    assert_int_equal(reply.status, 200);
    config = json_get(reply.json, "config");
    assert_string_equal(json_cstr(json_get(config, "url")), w.api.base_url);
    assert_string_equal(json_cstr(json_get(config, "mode")), "compatible");
    assert_int_equal(json_int(json_get(config, "max_concurrent_tasks")), 3);
    assert_int_equal(json_length(json_get(config, "tables")), 1);
    assert_int_equal(json_type(json_get(config, "anonKey")), JSON_STRING);
}

/* ---- system ---- */

static void ready_says_what_is_not(void **state)
{
    AUTO(world_close) struct world w = { 0 };
    struct reply reply;

    world_open(&w, NULL, NULL, 0);
    assert_int_equal(request_local(&w, HTTP_GET, "/healthz", "", "").status, 200);
    assert_int_equal(request_local(&w, HTTP_GET, "/readyz", "", "").status, 200);
    atomic_store(&backend_is_ready, false);
    reply = request_local(&w, HTTP_GET, "/readyz", "", "");
    atomic_store(&backend_is_ready, true);
    assert_int_equal(reply.status, 503);
    assert_string_equal(code_of(&reply), "NOT_READY");
    assert_string_equal(text_of(&reply, "reason"), "backend");
}

static void routes_are_listed_with_who_may_call(void **state)
{
    AUTO(world_close) struct world w = { 0 };
    struct reply reply;

    world_open(&w, NULL, NULL, 0);
    reply = request_local(&w, HTTP_GET, "/api/routes", "", "");
    assert_non_null(
        strstr(reply.body.p, "{\"method\":\"GET\",\"path\":\"/api/sdk/ping\",\"permission\":\"identified\""));
    assert_non_null(strstr(reply.body.p, "\"path\":\"/sdk/database/config\",\"permission\":\"database.config\""));
}

static void without_a_service_there_is_no_link(void **state)
{
    AUTO(world_close) struct world w = { 0 };
    struct reply reply;

    world_open(&w, NULL, NULL, 0);
    w.api.base_url[0] = '\0';
    reply = request_local(&w, HTTP_POST, "/api/session/link", "", "");
    assert_int_equal(reply.status, 503);
    assert_string_equal(code_of(&reply), "NOT_SERVING");
}

static void metrics_are_prometheus_text(void **state)
{
    AUTO(world_close) struct world w = { 0 };
    struct reply reply;

    world_open(&w, NULL, NULL, 0);
    world_serve(&w, NULL);
    request(&w, "GET /healthz HTTP/1.1\r\n" LOCAL, "");
    reply = request(&w, "GET /metrics HTTP/1.1\r\n" LOCAL, "");
    assert_non_null(strstr(header_of(&w, &reply, "content-type"), "text/plain; version=0.0.4"));
    assert_non_null(
        strstr(reply.body.p, "hearth_http_requests_total{route=\"/healthz\",method=\"GET\",status=\"200\"}"));
}

static void the_description_names_every_route_its_parameters_and_its_errors(void **state)
{
    AUTO(world_close) struct world w = { 0 };
    struct json_value paths, revoke, decide, ping;
    struct reply reply;

    world_open(&w, NULL, NULL, 0);
    reply = request_local(&w, HTTP_GET, "/openapi.json", "", "");
    assert_int_equal(reply.status, 200);
    assert_string_equal(text_of(&reply, "openapi"), "3.1.0");
    paths = json_get(reply.json, "paths");
    revoke = json_get(json_get(paths, "/api/keys/{id}"), "delete");
    assert_int_equal(json_length(json_get(revoke, "parameters")), 1);
    assert_int_equal(json_type(json_get(json_get(revoke, "responses"), "404")), JSON_OBJECT);
    decide = json_get(json_get(paths, "/api/permissions/decide"), "post");
    assert_int_equal(json_type(json_get(decide, "requestBody")), JSON_OBJECT);
    ping = json_get(json_get(paths, "/sdk/ping"), "get");
    assert_int_equal(json_length(json_get(ping, "security")), 4);
    assert_int_equal(json_type(json_get(paths, "/api/sdk/ping")), JSON_OBJECT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ping_says_who_is_asking),
        cmocka_unit_test(a_key_is_made_listed_and_revoked),
        cmocka_unit_test(each_caller_has_a_private_folder_of_its_own),
        cmocka_unit_test(asking_holds_until_the_person_decides),
        cmocka_unit_test(an_unanswered_question_is_no_grant_and_no_denial),
        cmocka_unit_test(a_developer_key_asks_without_an_app_and_has_all),
        cmocka_unit_test(a_setting_that_cannot_be_stored_does_not_change),
        cmocka_unit_test(a_setting_that_is_refused_is_neither_audited_nor_stored),
        cmocka_unit_test(register_reports_what_is_granted_and_denied),
        cmocka_unit_test(asking_for_an_unknown_app_is_404),
        cmocka_unit_test(decisions_are_checked_revoked_and_reset),
        cmocka_unit_test(the_one_time_link_signs_a_browser_in_once),
        cmocka_unit_test(management_is_for_the_administrator_alone),
        cmocka_unit_test(a_backend_token_is_handed_over_and_seen_by_its_owner),
        cmocka_unit_test(an_app_reads_its_own_database_configuration_when_it_may),
        cmocka_unit_test(ready_says_what_is_not),
        cmocka_unit_test(routes_are_listed_with_who_may_call),
        cmocka_unit_test(without_a_service_there_is_no_link),
        cmocka_unit_test(metrics_are_prometheus_text),
        cmocka_unit_test(the_description_names_every_route_its_parameters_and_its_errors),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
