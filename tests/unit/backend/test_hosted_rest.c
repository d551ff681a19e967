/* The hosted backend before a peer that lies, stalls, refuses or points elsewhere. */
#include "hosted_script.h"
#include "base/clock.h"

/* What getting the row ID gives when the project answers so. Only after a status that says "try again" does a get take
 * its whole deadline. */
static int get_from(const char *body, int status, struct backend_row *row, struct arena *a, struct err *e)
{
    const char *const bodies[] = { TABLE_THERE, body };
    const int statuses[] = { 200, status };
    struct project p;
    int r;

    if (status >= 502)
        open_project(&p, bodies, statuses, ARRAY_SIZE(statuses));
    else
        open_patient_project(&p, bodies, statuses, ARRAY_SIZE(statuses));
    r = backend_get(p.backend, "svc_activities", ID, NULL, a, row, e);
    close_project(&p);
    return r;
}

static void a_row_is_read_and_its_times_are_in_one_form(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct backend_row row;
    struct err e = { 0 };

    assert_int_equal(get_from("[" ROW(ID) "]", 200, &row, a, &e), 0);
    assert_string_equal(row.created_at, "2026-11-20T09:30:18.112761Z");
    assert_string_equal(row.raw_data, "{\"a\":1}");
    assert_int_equal(row.event, BACKEND_INSERT);
}

static void lies_about_rows_are_faults(void **state)
{
    static const char *const lies[] = {
        "[" ROW(OTHER) "]",                               /* another row */
        "[" ROW(ID) "," ROW(ID) "]",                      /* twice */
        "[" ROW(ID) "," ROW(OTHER) "]",                   /* more than one */
        "{}",                                             /* no list */
        "[1]",                                            /* no object */
        "[{}]",                                           /* no id */
        "[{\"id\":\"x\",\"created_at\":\"2026-11-20\"}]", /* no valid id */
        "[{\"id\":\"" ID "\"}]",                          /* no time */
        "[{\"id\":\"" ID "\",\"created_at\":\"2026-11-20 0000000000000000000000000000000000000000000000000000000\"}]",
        "[{\"id\":\"" ID "\",\"created_at\":\"2026-11-20\",\"status\":1}]",
        "[{\"id\":\"" ID "\",\"created_at\":\"2026-11-20\",\"attempted_by\":\"lin-a\"}]",
        "[{\"id\":\"" ID "\",\"created_at\":\"2026-11-20\",\"retry_count\":0.5}]",
        "[{\"id\":\"" ID "\",\"created_at\":\"2026-11-20\",\"is_dirty\":\"no\"}]",
        "<html>",
        "[",
    };

    for (size_t i = 0; i < ARRAY_SIZE(lies); i++) {
        AUTO(arena_freep) struct arena *a = arena_new();
        struct backend_row row;
        struct err e = { 0 };
        int r = get_from(lies[i], 200, &row, a, &e);

        if (r != -EIO || strcmp(e.code, "STORE_FAILED") != 0)
            fail_msg("%s: %d %s %s", lies[i], r, e.code, e.text);
    }
}

/* Row-level security lets every user write such values into rows of the own; a list of work has the rows of all. */
static void what_a_user_may_store_is_read(void **state)
{
    static const char *const odd[] = {
        "[{\"id\":\"" ID "\",\"created_at\":\"infinity\"}]",
        "[{\"id\":\"" ID "\",\"created_at\":\"0044-03-15T00:00:00+00:00 BC\"}]",
        "[{\"id\":\"" ID "\",\"created_at\":\"2026-11-20\",\"locked_at\":\"294276-12-31T00:00:00+00:00\"}]",
        "[{\"id\":\"" ID "\",\"created_at\":\"2026-11-20\",\"attempted_by\":[null]}]",
        "[{\"id\":\"" ID "\",\"created_at\":\"2026-11-20\",\"attempted_by\":[[\"a\"],[\"b\"]]}]",
        "[{\"id\":\"" ID "\",\"created_at\":\"2026-11-20\",\"retry_count\":-1,\"attempt\":-9}]",
    };

    for (size_t i = 0; i < ARRAY_SIZE(odd); i++) {
        AUTO(arena_freep) struct arena *a = arena_new();
        struct backend_row row;
        struct err e = { 0 };

        if (get_from(odd[i], 200, &row, a, &e) < 0)
            fail_msg("%s: %s %s", odd[i], e.code, e.text);
    }
}

/* "rest/v1/.." is another address. */
static void a_table_that_an_address_cannot_name_is_refused_unsent(void **state)
{
    static const char *const names[] = { "\".\"", "\"..\"" };
    static const char *const bodies[] = { TABLE_THERE };
    static const int statuses[] = { 200 };
    struct backend_row row;
    struct project p;

    open_patient_project(&p, bodies, statuses, ARRAY_SIZE(statuses));
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        struct err e = { 0 };

        assert_int_equal(backend_get(p.backend, names[i], ID, NULL, p.arena, &row, &e), -EINVAL);
        assert_string_equal(e.code, "VALIDATION_ERROR");
    }
    assert_int_equal(atomic_load(&p.script.n), 1); /* the look at the project when it was opened */
    close_project(&p);
}

#define TOO_LARGE "{\"code\":\"54000\",\"message\":\"out of memory\"}"
#define AT_NOON "\"2026-11-20T12:00:00Z\""

static int find_work(struct project *p, struct backend_rows *ret, struct err *e)
{
    const struct backend_claim as = { .table = "svc_activities", .machine_id = "lin-a", .stale_after_ms = 300000 };

    return p->backend->ops->claimable(p->backend, "svc_activities", &as, NULL, 2, p->arena, ret, e);
}

/* Of a row that alone is too large only the place is read. */
static void a_row_too_large_to_be_read_hides_no_other(void **state)
{
    static const char *const bodies[] = { TABLE_THERE, AT_NOON,         TOO_LARGE,
                                          TOO_LARGE,   "[" ROW(ID) "]", "[" ROW(OTHER) "]" };
    static const int statuses[] = { 200, 200, 400, 400, 200, 200 };
    struct backend_rows rows = { 0 };
    struct project p;
    struct err e = { 0 };

    open_patient_project(&p, bodies, statuses, ARRAY_SIZE(statuses));
    assert_int_equal(find_work(&p, &rows, &e), 0);
    assert_int_equal(rows.n, 1);
    assert_string_equal(rows.items[0].id, OTHER);
    assert_true(heard(&p.script, "created_at.eq."));
    close_project(&p);
}

enum { TWICE_AND_PLACE = 3 };

/* A list of work goes past so many of them, at three requests each. */
static void rows_too_large_to_be_read_are_passed_over_up_to_a_limit(void **state)
{
    const char *bodies[2 + (TWICE_AND_PLACE * LIMIT_BACKEND_SET_ASIDE) + 3] = { TABLE_THERE, AT_NOON };
    int statuses[ARRAY_SIZE(bodies)] = { 200, 200 };
    struct backend_rows rows = { 0 };
    struct project p;
    struct err e = { 0 };

    for (size_t i = 2; i < ARRAY_SIZE(bodies); i++) {
        bool is_place = i % TWICE_AND_PLACE == 1;

        bodies[i] = is_place ? "[" ROW(ID) "]" : TOO_LARGE;
        statuses[i] = is_place ? 200 : 400;
    }
    open_patient_project(&p, bodies, statuses, ARRAY_SIZE(statuses));
    assert_int_equal(find_work(&p, &rows, &e), -E2BIG);
    assert_int_equal(atomic_load(&p.script.n), 2 + TWICE_AND_PLACE * LIMIT_BACKEND_SET_ASIDE + 2);
    close_project(&p);
}

static void refusals_have_codes_of_their_own(void **state)
{
    static const struct {
        const char *body;
        int status, r;
        const char *code;
    } cases[] = {
        { "{\"message\":\"Invalid API key\"}", 401, -EACCES, "STORE_DENIED" },
        { "{\"code\":\"42501\",\"message\":\"permission denied\"}", 403, -EACCES, "STORE_DENIED" },
        { "{\"code\":\"PGRST205\",\"message\":\"Could not find the table\"}", 404, -ENOENT, "UNKNOWN_TABLE" },
        { "{\"code\":\"42P01\",\"message\":\"no relation\"}", 404, -ENOENT, "UNKNOWN_TABLE" },
        { "{\"code\":\"PGRST301\",\"message\":\"JWT expired\"}", 401, -EACCES, "STORE_DENIED" },
        { "{\"code\":\"42703\",\"message\":\"column x does not exist\"}", 400, -EINVAL, "TABLE_UNFIT" },
        { "{\"code\":\"57014\",\"message\":\"canceling statement\"}", 500, -EBUSY, "STORE_BUSY" },
        { "not found", 404, -EIO, "STORE_FAILED" },
        { "", 302, -EIO, "STORE_FAILED" },
        { "{\"code\":7,\"message\":[]}", 500, -EIO, "STORE_FAILED" },
        { "upstream is gone", 502, -EAGAIN, "STORE_UNAVAILABLE" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        AUTO(arena_freep) struct arena *a = arena_new();
        struct backend_row row;
        struct err e = { 0 };
        int r = get_from(cases[i].body, cases[i].status, &row, a, &e);

        if (r != cases[i].r || strcmp(e.code, cases[i].code) != 0)
            fail_msg("%s: %d %s %s", cases[i].body, r, e.code, e.text);
    }
}

static void a_read_is_repeated_and_an_insert_is_not(void **state)
{
    static const char *const bodies[] = { TABLE_THERE, "busy", "[" ROW(ID) "]", "busy" };
    static const int statuses[] = { 200, 503, 200, 503 };
    const struct backend_new_row in = { .table = "svc_activities", .id = ID, .raw_data = "{}" };
    struct project p;
    struct backend_row row;
    struct err e = { 0 };

    open_patient_project(&p, bodies, statuses, ARRAY_SIZE(statuses));
    assert_int_equal(backend_get(p.backend, "svc_activities", ID, NULL, p.arena, &row, &e), 0);
    assert_int_equal(atomic_load(&p.script.n), 3);
    assert_int_equal(backend_insert(p.backend, &in, p.arena, &row, &e), -EAGAIN);
    assert_int_equal(atomic_load(&p.script.n), 4);
    close_project(&p);
}

/* 429 says that nothing was done; a pause that is longer than a call may last is not begun. */
static void a_refused_insert_is_repeated_when_the_server_says_so(void **state)
{
    static const char *const bodies[] = { TABLE_THERE, "slow down", "[" ROW(ID) "]", "slow down" };
    static const int statuses[] = { 200, 429, 201, 429 };
    const struct backend_new_row in = { .table = "svc_activities", .id = ID, .raw_data = "{}" };
    struct project p;
    struct backend_row row;
    struct err e = { 0 };

    open_patient_project(&p, bodies, statuses, ARRAY_SIZE(statuses));
    assert_int_equal(backend_insert(p.backend, &in, p.arena, &row, &e), 0);
    assert_int_equal(atomic_load(&p.script.n), 3);
    p.script.retry_after = "3600";
    assert_int_equal(backend_insert(p.backend, &in, p.arena, &row, &e), -EAGAIN);
    assert_int_equal(atomic_load(&p.script.n), 4);
    close_project(&p);
}

static void key_and_schema_go_in_headers_and_names_are_escaped(void **state)
{
    static const char *const bodies[] = { TABLE_THERE };
    static const int statuses[] = { 200 };
    struct backend_query q = { .table = "sales.orders",
                               .user_id = "11111111-1111-4111-8111-111111111111",
                               .status = "a&b=c,\"d\"" };
    struct backend_rows rows;
    struct project p;
    struct err e = { 0 };

    open_patient_project(&p, bodies, statuses, ARRAY_SIZE(statuses));
    assert_int_equal(backend_list(p.backend, &q, p.arena, &rows, &e), 0);
    assert_int_equal(rows.n, 0);
    assert_true(heard(
        &p.script, "/rest/v1/orders?user_id=eq.11111111-1111-4111-8111-111111111111&status=eq.a%26b%3dc%2c%22d%22&"));
    assert_true(heard(&p.script, "apikey=sb_secret_1 authorization=Bearer sb_secret_1 accept-profile=sales"));
    close_project(&p);
}

static void a_missing_column_is_left_out(void **state)
{
    static const char *const bodies[] = {
        "{\"code\":\"42703\",\"message\":\"column svc_activities.attempt does not exist\"}", "[]", "[" ROW(ID) "]"
    };
    static const int statuses[] = { 400, 200, 200 };
    struct project p;
    struct backend_row row;
    struct err e = { 0 };

    open_patient_project(&p, bodies, statuses, ARRAY_SIZE(statuses));
    assert_int_equal(backend_get(p.backend, "svc_activities", ID, NULL, p.arena, &row, &e), 0);
    assert_false(heard(&p.script, "attempt%2c"));
    assert_true(heard(&p.script, "app_id%2c"));
    close_project(&p);
}

/* What a claim says whose function answers so, and whose row is then held so. */
static int claim_from(const char *answered, const char *row_json, struct err *e)
{
    const char *const bodies[] = { TABLE_THERE, answered, row_json };
    const int statuses[] = { 200, 200, 200 };
    const struct backend_claim claim = { "svc_activities", ID, "lin-a", 300000, 3 };
    struct backend_lease lease;
    struct backend_row row;
    struct project p;
    int r;

    open_patient_project(&p, bodies, statuses, ARRAY_SIZE(statuses));
    r = backend_claim(p.backend, &claim, p.arena, &row, &lease, e);
    if (r == 0)
        assert_int_equal(lease.attempt, row.attempt);
    close_project(&p);
    return r;
}

/* The machine has claimed the row once more since the function answered: that lease is another call's. */
static void a_claim_takes_no_later_lease_of_the_same_machine(void **state)
{
    struct err e = { 0 };

    assert_int_equal(claim_from("{\"success\":true,\"attempt\":1}", HELD("1"), &e), 0);
    assert_int_equal(claim_from("{\"success\":true}", HELD("1"), &e), 0);
    assert_int_equal(claim_from("{\"success\":true,\"attempt\":1}", HELD("2"), &e), -ESTALE);
    assert_string_equal(e.code, "LEASE_LOST");
}

static int n_made, n_released;

static int refuse_to_make(void *arg, const char *table, const struct net_wait *wait, struct err *e)
{
    n_made++;
    return err_set(e, -EPERM, "HOSTED_DENIED", "Access Denied: the account may not write to %s", table);
}

static void count_release(void *arg)
{
    n_released++;
}

static void a_table_that_may_not_be_made_is_refused_in_words_and_not_at_once_again(void **state)
{
    static const char *const bodies[] = { TABLE_THERE, "{\"code\":\"PGRST205\",\"message\":\"no table\"}" };
    static const int statuses[] = { 200, 404 };
    struct backend_hosted_config config = { .key = "k",
                                            .abbr = "svc",
                                            .has_no_realtime = true,
                                            .call_ms = 60000,
                                            .make_table = refuse_to_make,
                                            .release = count_release };
    struct project p = { .script = { bodies, statuses, 2, .lock = PTHREAD_MUTEX_INITIALIZER } };
    struct err e = { 0 };

    rig_open(&p.rig, answer, &p.script);
    p.arena = arena_new();
    config.url = rig_url(&p.rig, "");
    assert_int_equal(backend_hosted_open(&config, &p.backend, &e), 0);
    assert_int_equal(p.backend->ops->ensure_table(p.backend, "orders", &e), -EPERM);
    assert_string_equal(e.code, "HOSTED_DENIED");
    assert_non_null(strstr(e.text, "Access Denied"));
    assert_non_null(strstr(e.text, "`hearth backend sql orders`"));
    assert_int_equal(p.backend->ops->ensure_table(p.backend, "orders", &e), -ENOENT);
    assert_int_equal(n_made, 1);
    close_project(&p);
    assert_int_equal(n_released, 1);
}

/* Also when the backend opens: a service may start before its project can be reached. */
static void a_peer_that_stalls_costs_one_deadline(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct backend_row row;
    struct backend_hosted_config config = { .key = "k", .abbr = "svc", .has_no_realtime = true, .call_ms = 300 };
    struct backend *b = NULL;
    struct raw_peer peer;
    struct err e = { 0 };

    raw_open(&peer, "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n[", RAW_HANG);
    config.url = arena_printf(a, "http://127.0.0.1:%u", peer.port);
    assert_int_equal(backend_hosted_open(&config, &b, &e), 0);
    assert_int_equal(backend_get(b, "svc_activities", ID, NULL, a, &row, &e), -EAGAIN);
    assert_string_equal(e.code, "STORE_UNAVAILABLE");
    raw_close(&peer);
    backend_close(b);
}

/* The key is sent to the address that was named and nowhere else. */
static void a_redirect_is_not_followed(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct backend_hosted_config config = { .key = "k", .abbr = "svc", .has_no_realtime = true, .call_ms = 60000 };
    struct backend *b = NULL;
    struct raw_peer thief, peer;
    struct err e = { 0 };

    raw_open(&thief, "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n[]", RAW_CLOSE);
    raw_open(&peer,
             arena_printf(a, "HTTP/1.1 307 Elsewhere\r\nlocation: http://127.0.0.1:%u/\r\ncontent-length: 0\r\n\r\n",
                          thief.port),
             RAW_CLOSE);
    config.url = arena_printf(a, "http://127.0.0.1:%u", peer.port);
    assert_int_equal(backend_hosted_open(&config, &b, &e), -EIO);
    assert_non_null(strstr(e.text, "redirects are not followed"));
    assert_false(atomic_load(&thief.has_heard));
    raw_close(&peer);
    raw_close(&thief);
}

static void addresses_and_keys_are_checked_before_anything_is_sent(void **state)
{
    static const struct {
        const char *url, *key;
    } refused[] = {
        { "http://example.org", "k" }, { "ftp://127.0.0.1", "k" },      { "", "k" },
        { "https://ref.example", "" }, { "https://ref.example", NULL }, { "https://ref.example", "a\r\nb: c" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
        const struct backend_hosted_config config = { .url = refused[i].url, .key = refused[i].key, .abbr = "svc" };
        struct backend *b = NULL;
        struct err e = { 0 };

        assert_int_equal(backend_hosted_open(&config, &b, &e), -EINVAL);
        assert_string_equal(e.code, "BAD_SETTING");
    }
    assert_int_equal(hosted_rest_check_url("https://ref.supabase.co", NULL), 0);
    assert_int_equal(hosted_rest_check_url("http://127.0.0.1:3001", NULL), 0);
}

static void a_key_has_2048_bytes_at_most(void **state)
{
    char *key = xcalloc(1, LIMIT_HOSTED_KEY + 2);
    const struct backend_hosted_config config = { .url = "https://ref.example", .key = key, .abbr = "svc" };
    atomic_bool is_closing = false;
    struct hosted_rest *rest = NULL;
    struct err e = { 0 };

    memset(key, 'k', LIMIT_HOSTED_KEY);
    assert_int_equal(hosted_rest_new(&config, &is_closing, &rest, &e), 0);
    hosted_rest_free(rest);
    key[LIMIT_HOSTED_KEY] = 'k';
    assert_int_equal(hosted_rest_new(&config, &is_closing, &rest, &e), -EINVAL);
    assert_string_equal(e.code, "BAD_SETTING");
    free(key);
}

static void a_project_that_is_not_set_up_is_told_so(void **state)
{
    static const char *const bodies[] = { "{\"code\":\"PGRST205\",\"message\":\"no table\"}" };
    static const int statuses[] = { 404 };
    struct script script = { bodies, statuses, 1, .lock = PTHREAD_MUTEX_INITIALIZER };
    struct backend_hosted_config config = { .key = "k", .abbr = "svc", .has_no_realtime = true };
    struct backend *b = NULL;
    struct rig rig = { 0 };
    struct err e = { 0 };

    rig_open(&rig, answer, &script);
    config.url = rig_url(&rig, "");
    assert_int_equal(backend_hosted_open(&config, &b, &e), -ENOENT);
    assert_string_equal(e.code, "SCHEMA_MISSING");
    rig_close(&rig);
}

static bool has_asked_twice(void *arg)
{
    return atomic_load(&((struct project *)arg)->script.n) >= 2;
}

/* A call that waits for its next attempt ends when the service stops. */
static void *leave_soon(void *arg)
{
    struct project *p = arg;

    assert_true(wait_until(has_asked_twice, p));
    p->backend->ops->leave(p->backend);
    return NULL;
}

static void waiting_calls_end_when_the_service_stops(void **state)
{
    static const char *const bodies[] = { TABLE_THERE, "busy" };
    static const int statuses[] = { 200, 503 };
    struct project p;
    struct backend_row row;
    struct err e = { 0 };
    pthread_t thread;

    open_patient_project(&p, bodies, statuses, ARRAY_SIZE(statuses));
    p.script.retry_after = "1";
    assert_int_equal(pthread_create(&thread, NULL, leave_soon, &p), 0);
    assert_int_equal(backend_get(p.backend, "svc_activities", ID, NULL, p.arena, &row, &e), -ECANCELED);
    pthread_join(thread, NULL);
    close_project(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_is_read_and_its_times_are_in_one_form),
        cmocka_unit_test(lies_about_rows_are_faults),
        cmocka_unit_test(a_table_that_an_address_cannot_name_is_refused_unsent),
        cmocka_unit_test(what_a_user_may_store_is_read),
        cmocka_unit_test(a_row_too_large_to_be_read_hides_no_other),
        cmocka_unit_test(rows_too_large_to_be_read_are_passed_over_up_to_a_limit),
        cmocka_unit_test(refusals_have_codes_of_their_own),
        cmocka_unit_test(a_read_is_repeated_and_an_insert_is_not),
        cmocka_unit_test(a_refused_insert_is_repeated_when_the_server_says_so),
        cmocka_unit_test(key_and_schema_go_in_headers_and_names_are_escaped),
        cmocka_unit_test(a_missing_column_is_left_out),
        cmocka_unit_test(a_claim_takes_no_later_lease_of_the_same_machine),
        cmocka_unit_test(a_table_that_may_not_be_made_is_refused_in_words_and_not_at_once_again),
        cmocka_unit_test(a_peer_that_stalls_costs_one_deadline),
        cmocka_unit_test(a_redirect_is_not_followed),
        cmocka_unit_test(addresses_and_keys_are_checked_before_anything_is_sent),
        cmocka_unit_test(a_key_has_2048_bytes_at_most),
        cmocka_unit_test(a_project_that_is_not_set_up_is_told_so),
        cmocka_unit_test(waiting_calls_end_when_the_service_stops),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
