/* The lock of apps in Custom Mode, before apps that answer in every way, lie, stall and point elsewhere. */
#include "../net/upstream.h"
#include "backend/custom/custom_lock.h"
#include "base/base64.h"
#include "base/hash.h"
#include "net/guard.h"

#define ID "6f9619ff-8b86-4d01-b42d-00c04fc964ff"
#define SECRET "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
#define KEY "0123456789abcdef0123456789abcdef"

/* ---- what an answer means ---- */

static int read_answer(int status, const char *body, struct custom_lock_reply *ret, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();

    return custom_lock_read(status, slice_of(body), a, ret, e);
}

static void both_forms_of_success_are_read(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct custom_lock_reply got;

    assert_int_equal(
        custom_lock_read(200,
                         slice_of("{\"success\":true,\"locked_by\":\"m1\",\"locked_at\":\"2026-01-01T00:00:00Z\"}"), a,
                         &got, NULL),
        0);
    assert_true(got.is_success);
    assert_string_equal(got.locked_by, "m1");
    assert_string_equal(got.locked_at, "2026-01-01T00:00:00Z");
    assert_int_equal(custom_lock_read(201, slice_of("{\"success\":true}"), a, &got, NULL), 0);
    assert_true(got.is_success && !got.locked_by && !got.locked_at);
}

static void refusals_count_with_any_status(void **state)
{
    static const int statuses[] = { 200, 400, 409, 423, 503 };
    struct custom_lock_reply got;

    for (size_t i = 0; i < ARRAY_SIZE(statuses); i++) {
        AUTO(arena_freep) struct arena *a = arena_new();
        static const char body[] = "{\"success\":false,\"reason\":\"already_locked\",\"locked_by\":\"m2\"}";

        assert_int_equal(custom_lock_read(statuses[i], slice_of(body), a, &got, NULL), 0);
        assert_false(got.is_success);
        assert_string_equal(got.reason, "already_locked");
        assert_string_equal(got.locked_by, "m2");
    }
    assert_int_equal(read_answer(409, "{\"success\":false}", &got, NULL), 0);
    assert_false(got.is_success);
    assert_null(got.reason);
}

static void other_answers_are_unknown_or_invalid(void **state)
{
    static const struct {
        int status, r;
        const char *body;
    } cases[] = {
        { 200, -EIO, "" },
        { 200, -EIO, "ok" },
        { 200, -EIO, "{\"success\":\"true\"}" },
        { 200, -EIO, "[true]" },
        { 200, -EIO, "{\"success\":true" },
        { 204, -EIO, "" },
        { 500, -EIO, "<html>" },
        { 500, -EIO, "{\"success\":false}" },
        { 500, -EIO, "{\"success\":true}" },
        { 409, -EIO, "{\"success\":true}" },
        { 404, -EPROTO, "Not Found" },
        { 405, -EPROTO, "" },
        { 501, -EPROTO, "" },
        { 401, -EPROTO, "{\"error\":\"who are you\"}" },
        { 307, -EPROTO, "" },
        { 400, -EPROTO, "{\"error\":\"no such table\"}" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct custom_lock_reply got;
        struct err e = { 0 };
        int r = read_answer(cases[i].status, cases[i].body, &got, &e);

        if (r != cases[i].r)
            fail_msg("%d %s: %d", cases[i].status, cases[i].body, r);
        assert_string_equal(e.code, r == -EIO ? "LOCK_UNKNOWN" : "LOCK_INVALID");
    }
}

static void texts_at_their_edge_are_kept_and_longer_ones_left_out(void **state)
{
    for (size_t n = LIMIT_STRING_DEFAULT; n <= LIMIT_STRING_DEFAULT + 1; n++) {
        AUTO(arena_freep) struct arena *a = arena_new();
        char *name = arena_alloc(a, n + 1);
        struct custom_lock_reply got;

        memset(name, 'x', n);
        name[n] = '\0';
        assert_int_equal(custom_lock_read(200,
                                          slice_of(arena_printf(a, "{\"success\":true,\"locked_by\":\"%s\"}", name)), a,
                                          &got, NULL),
                         0);
        assert_int_equal(got.locked_by != NULL, n == LIMIT_STRING_DEFAULT);
    }
}

/* ---- over the wire ---- */

struct app {
    struct rig rig;
    const char *answer;
    int status;
    const char *location; /* of a redirect; NULL: none */
    atomic_int n;
    char body[1024], path[64], id[64], stamp[64], signature[128], event[64], app[64];
};

static void keep(char *into, size_t size, const char *text)
{
    snprintf(into, size, "%s", text ? text : "");
}

static void serve(void *arg, struct http_exchange *x)
{
    struct app *app = arg;
    const struct http_request *in = &x->request;

    atomic_fetch_add(&app->n, 1);
    keep(app->path, sizeof(app->path), in->path);
    snprintf(app->body, sizeof(app->body), "%.*s", (int)MIN(in->body.n, sizeof(app->body) - 1), in->body.p);
    keep(app->id, sizeof(app->id), http_header(in, "webhook-id"));
    keep(app->stamp, sizeof(app->stamp), http_header(in, "webhook-timestamp"));
    keep(app->signature, sizeof(app->signature), http_header(in, "webhook-signature"));
    keep(app->event, sizeof(app->event), http_header(in, "x-svc-event-id"));
    keep(app->app, sizeof(app->app), http_header(in, "x-app-id"));
    if (app->location)
        http_response_header(x, "location", app->location);
    x->response.status = app->status;
    buf_add_str(&x->response.body, app->answer);
    http_exchange_send(x);
}

static const struct custom_lock_request wanted = {
    .task_id = ID, .table = "sales.\"my orders\"", .machine_id = "m\"1\r\n", .user_email = "a@example.org"
};

static int take_at(const char *url, int64_t ms, struct custom_lock_reply *ret, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct custom_net net = { .abbr = "svc", .lock_ms = ms };
    const struct custom_place place = { .app_id = "app-1", .base_url = url, .secret = SECRET };

    return custom_lock_take(&net, &place, &wanted, a, ret, e);
}

static void the_request_is_the_specification_s_and_signed(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct app app = { .answer = "{\"success\":true}", .status = 200 };
    struct custom_lock_reply got;
    unsigned char mac[HASH_BYTES];
    struct buf text;

    rig_open(&app.rig, serve, &app);
    assert_int_equal(take_at(rig_url(&app.rig, "/page?x=1#y"), 5000, &got, NULL), 0);
    rig_close(&app.rig);
    assert_string_equal(app.path, "/api/task-lock");
    assert_string_equal(app.body, "{\"task_id\":\"" ID "\",\"table_name\":\"sales.\\\"my orders\\\"\","
                                  "\"machine_id\":\"m\\\"1\\r\\n\",\"user_email\":\"a@example.org\"}");
    assert_string_equal(app.id, app.event);
    assert_string_equal(app.app, "app-1");
    hash_hmac_sha256(slice_of(arena_printf(a, "%s.%s.%s", app.id, app.stamp, app.body)), slice_of(KEY), mac);
    buf_init(&text, 100);
    buf_add_str(&text, "v1,");
    base64_encode(&text, (struct slice){ (const char *)mac, sizeof(mac) });
    assert_string_equal(app.signature, buf_str(&text));
    buf_clear(&text);
}

static void each_question_has_an_id_of_its_own(void **state)
{
    struct app app = { .answer = "{\"success\":true}", .status = 200 };
    struct custom_lock_reply got;
    char first[64];

    rig_open(&app.rig, serve, &app);
    assert_int_equal(take_at(rig_url(&app.rig, ""), 5000, &got, NULL), 0);
    snprintf(first, sizeof(first), "%s", app.id);
    assert_int_equal(take_at(rig_url(&app.rig, ""), 5000, &got, NULL), 0);
    assert_string_not_equal(first, app.id);
    rig_close(&app.rig);
}

static void a_redirect_is_not_followed(void **state)
{
    struct app other = { .answer = "{\"success\":true}", .status = 200 }, app = { .answer = "", .status = 307 };
    struct custom_lock_reply got;

    rig_open(&other.rig, serve, &other);
    app.location = rig_url(&other.rig, "/api/task-lock");
    rig_open(&app.rig, serve, &app);
    assert_int_equal(take_at(rig_url(&app.rig, ""), 5000, &got, NULL), -EPROTO);
    assert_int_equal(atomic_load(&other.n), 0);
    rig_close(&app.rig);
    rig_close(&other.rig);
}

static void an_app_without_an_address_got_nothing(void **state)
{
    static const char *const places[] = { NULL, "", "ftp://127.0.0.1:1", "http://user:pw@127.0.0.1:1", "nonsense" };
    struct custom_lock_reply got;
    struct err e = { 0 };
    char url[64];

    for (size_t i = 0; i < ARRAY_SIZE(places); i++)
        assert_int_equal(take_at(places[i], 5000, &got, NULL), -EHOSTUNREACH);
    snprintf(url, sizeof(url), "http://127.0.0.1:%u", dead_port());
    assert_int_equal(take_at(url, 5000, &got, &e), -EHOSTUNREACH);
    assert_string_equal(e.code, "APP_UNREACHABLE");
}

static void a_foreign_address_is_refused_by_the_guard(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct guard *guard = guard_new(&(struct guard_config){ 0 });
    const struct custom_net net = { .abbr = "svc", .lock_ms = 5000, .guard = guard };
    const struct custom_place place = { .app_id = "app-1", .base_url = "http://169.254.169.254/latest" };
    struct custom_lock_reply got;
    struct err e = { 0 };

    assert_int_equal(custom_lock_take(&net, &place, &wanted, a, &got, &e), -EHOSTUNREACH);
    assert_non_null(strstr(e.text, "169.254"));
    guard_free(guard);
}

static void check_raw(const char *says, enum raw_end end, int64_t ms)
{
    struct raw_peer peer;
    struct custom_lock_reply got;
    struct err e = { 0 };
    char url[64];

    raw_open(&peer, says, end);
    snprintf(url, sizeof(url), "http://127.0.0.1:%u", peer.port);
    assert_int_equal(take_at(url, ms, &got, &e), -EIO);
    assert_string_equal(e.code, "LOCK_UNKNOWN");
    assert_false(got.is_success);
    raw_close(&peer);
}

static void what_has_no_whole_answer_is_unknown(void **state)
{
    check_raw("", RAW_HANG, 200);
    check_raw("", RAW_CLOSE, 5000);
    check_raw("", RAW_RESET, 5000);
    check_raw("HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{\"success\":true}", RAW_CLOSE, 5000);
    check_raw("HTTP/1.1 200 OK\r\nContent-Length: 104857600\r\n\r\n", RAW_ENDLESS, 5000);
    check_raw("HTTP/1.1 200 OK\r\n\r\n", RAW_ENDLESS, 5000);
    check_raw("220 mail.example.org\r\n", RAW_CLOSE, 5000);
}

static bool has_left(void *peer)
{
    return atomic_load(&((struct raw_peer *)peer)->has_left);
}

/* libcurl sends a request again when the kept connection under it was closed: the app could lock twice. */
static void a_request_is_never_sent_twice(void **state)
{
    static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 16\r\n\r\n{\"success\":true}";
    struct raw_peer peer;
    struct custom_lock_reply got;
    char url[64];

    raw_open(&peer, answer, RAW_HANG);
    snprintf(url, sizeof(url), "http://127.0.0.1:%u", peer.port);
    assert_int_equal(take_at(url, 5000, &got, NULL), 0);
    /* The connection is not kept: the peer sees its end although nobody closes the idle ones. */
    assert_true(wait_until(has_left, &peer));
    raw_close(&peer);
}

static void a_stopping_service_waits_no_longer(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    atomic_bool is_leaving = true;
    const struct custom_net net = { .abbr = "svc", .lock_ms = 60000, .is_leaving = &is_leaving };
    struct raw_peer peer;
    struct custom_lock_reply got;
    struct custom_place place = { .app_id = "app-1" };

    raw_open(&peer, "", RAW_HANG);
    place.base_url = arena_printf(a, "http://127.0.0.1:%u", peer.port);
    assert_int_equal(custom_lock_take(&net, &place, &wanted, a, &got, NULL), -ECANCELED);
    raw_close(&peer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_forms_of_success_are_read),
        cmocka_unit_test(refusals_count_with_any_status),
        cmocka_unit_test(other_answers_are_unknown_or_invalid),
        cmocka_unit_test(texts_at_their_edge_are_kept_and_longer_ones_left_out),
        cmocka_unit_test(the_request_is_the_specification_s_and_signed),
        cmocka_unit_test(each_question_has_an_id_of_its_own),
        cmocka_unit_test(a_redirect_is_not_followed),
        cmocka_unit_test(an_app_without_an_address_got_nothing),
        cmocka_unit_test(a_foreign_address_is_refused_by_the_guard),
        cmocka_unit_test(what_has_no_whole_answer_is_unknown),
        cmocka_unit_test(a_request_is_never_sent_twice),
        cmocka_unit_test(a_stopping_service_waits_no_longer),
    };

    if (hash_init(NULL) < 0)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
