/* The protocol of the realtime client: subscriptions to tables, their changes, heartbeat and token. */
#include "hosted_rig.h"
#include "backend/hosted/hosted_token.h"

#define ORDERS "realtime:svc:orders"
#define JOINED_1                                                                                                       \
    "[\"1\",\"1\",\"" ORDERS                                                                                           \
    "\",\"phx_reply\",{\"status\":\"ok\",\"response\":{\"postgres_changes\":[{\"id\":77,\"event\":\"*\","              \
    "\"schema\":\"public\",\"table\":\"orders\"}]}}]"
#define CONFIRMED                                                                                                      \
    "[null,null,\"" ORDERS                                                                                             \
    "\",\"system\",{\"extension\":\"postgres_changes\",\"status\":\"ok\",\"message\":\"Subscribed to PostgreSQL\"}]"
#define CHANGE(ids, rest)                                                                                              \
    "[null,null,\"" ORDERS "\",\"postgres_changes\",{\"ids\":" ids                                                     \
    ",\"data\":{\"schema\":\"public\",\"table\":\"orders\"," rest "}}]"

static void open_live(struct rig *rig)
{
    rig_open_as(rig, false);
    assert_int_equal(hosted_session_watch(rig->s, "orders", NULL, NULL), 0);
    hosted_session_begin(rig->s, rig->now_ms);
    (void)tick(rig, 0);
    take(rig, JOINED_1);
    take(rig, CONFIRMED);
}

/* ---- subscriptions ---- */

static void a_table_is_live_after_the_confirmation_and_a_gap_is_reported_then(void **state)
{
    struct rig rig;

    rig_open_as(&rig, false);
    assert_int_equal(hosted_session_watch(rig.s, "orders", NULL, NULL), 0);
    assert_int_equal(hosted_session_watch(rig.s, "orders", NULL, NULL), 0);
    hosted_session_begin(rig.s, rig.now_ms);
    assert_string_equal(
        tick(&rig, 0),
        "[\"1\",\"1\",\"" ORDERS "\",\"phx_join\",{\"config\":{\"broadcast\":{\"ack\":false,\"self\":true},"
        "\"presence\":{\"key\":\"\",\"enabled\":false},\"postgres_changes\":[{\"event\":\"*\",\"schema\":\"public\","
        "\"table\":\"orders\"}],\"private\":false}}]\n");
    take(&rig, CONFIRMED);
    assert_null(rig.news.gap_table); /* before the reply it is of another join */
    take(&rig, JOINED_1);
    assert_null(rig.news.gap_table);
    assert_int_equal(monitor(&rig).items[0].state, BACKEND_LINK_JOINING);
    assert_false(hosted_session_is_settled(rig.s));
    take(&rig, CONFIRMED);
    assert_string_equal(rig.news.gap_table, "orders");
    assert_int_equal(monitor(&rig).items[0].state, BACKEND_LINK_LIVE);
    assert_true(hosted_session_is_settled(rig.s));
    take(&rig, CONFIRMED); /* another token: what happened meanwhile is not known */
    assert_string_equal(rig.news.gap_table, "orders");
    assert_int_equal(monitor(&rig).items[0].n_gaps, 2);
    rig_close(&rig);
}

static void version_1_speaks_in_objects(void **state)
{
    struct rig rig;

    rig_open_as(&rig, true);
    assert_int_equal(hosted_session_watch(rig.s, "sales.orders", "n=gt.5", NULL), 0);
    hosted_session_begin(rig.s, rig.now_ms);
    assert_non_null(strstr(tick(&rig, 0), "\"schema\":\"sales\",\"table\":\"orders\",\"filter\":\"n=gt.5\""));
    assert_non_null(strstr(buf_str(&rig.said), "\"event\":\"phx_join\",\"ref\":\"1\",\"join_ref\":\"1\""));
    rig_close(&rig);
}

static void a_name_in_quotes_is_told_without_them_and_may_have_a_dot(void **state)
{
    struct rig rig;

    rig_open_as(&rig, false);
    assert_int_equal(hosted_session_watch(rig.s, "sales.\"a.b \"\"c\"", NULL, NULL), 0);
    hosted_session_begin(rig.s, rig.now_ms);
    assert_non_null(strstr(tick(&rig, 0), "\"schema\":\"sales\",\"table\":\"a.b \\\"c\""));
    take(&rig,
         "[\"1\",\"1\",\"realtime:svc:sales.\\\"a.b \\\"\\\"c\\\"\",\"phx_reply\",{\"status\":\"ok\",\"response\":"
         "{\"postgres_changes\":[{\"id\":77,\"event\":\"*\",\"schema\":\"sales\",\"table\":\"a.b \\\"c\"}]}}]");
    assert_int_equal(monitor(&rig).items[0].state, BACKEND_LINK_JOINING);
    rig_close(&rig);
}

static void a_reply_that_does_not_match_is_a_failure(void **state)
{
    static const char *const lists[] = {
        "[]",
        "null",
        "{}",
        "[{\"id\":1,\"event\":\"*\",\"schema\":\"public\",\"table\":\"other\"}]",
        "[{\"id\":1,\"event\":\"INSERT\",\"schema\":\"public\",\"table\":\"orders\"}]",
        "[{\"id\":1,\"event\":\"*\",\"schema\":\"public\",\"table\":\"orders\",\"filter\":\"a=eq.1\"}]",
        "[{\"id\":\"1\",\"event\":\"*\",\"schema\":\"public\",\"table\":\"orders\"}]",
        "[{\"event\":\"*\",\"schema\":\"public\",\"table\":\"orders\"}]",
        "[{\"id\":1,\"event\":\"*\",\"schema\":\"public\",\"table\":\"orders\"},{\"id\":2}]",
    };

    for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
        struct rig rig;
        struct backend_monitor m;

        rig_open_as(&rig, false);
        assert_int_equal(hosted_session_watch(rig.s, "orders", NULL, NULL), 0);
        hosted_session_begin(rig.s, rig.now_ms);
        (void)tick(&rig, 0);
        take(&rig, arena_printf(rig.a,
                                "[\"1\",\"1\",\"" ORDERS
                                "\",\"phx_reply\",{\"status\":\"ok\",\"response\":{\"postgres_changes\":%s}}]",
                                lists[i]));
        m = monitor(&rig);
        assert_int_equal(m.items[0].state, BACKEND_LINK_FAILED);
        assert_non_null(strstr(m.items[0].last_error, "does not match"));
        assert_true(hosted_session_is_settled(rig.s));
        rig_close(&rig);
    }
}

static void a_refused_table_is_joined_again_after_1_2_5_and_10_seconds(void **state)
{
    static const int64_t steps[] = { 1000, 2000, 5000, 10000, 10000 };
    struct rig rig;

    rig_open_as(&rig, false);
    assert_int_equal(hosted_session_watch(rig.s, "orders", NULL, NULL), 0);
    rig.times.heartbeat_ms = 1 << 30;
    hosted_session_begin(rig.s, rig.now_ms);
    for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
        int64_t due_ms;

        assert_non_null(strstr(tick(&rig, 0), "phx_join"));
        take(&rig,
             arena_printf(rig.a,
                          "[\"%zu\",\"%zu\",\"" ORDERS
                          "\",\"phx_reply\",{\"status\":\"error\",\"response\":{\"reason\":\"Unauthorized: no\"}}]",
                          i + 1, i + 1));
        assert_non_null(strstr(monitor(&rig).items[0].last_error, "Unauthorized: no"));
        assert_non_null(strstr(monitor(&rig).items[0].last_error, "policies"));
        assert_true(hosted_session_needs_token(rig.s));
        due_ms = hosted_session_due_ms(rig.s, rig.now_ms) - rig.now_ms;
        assert_true(due_ms >= steps[i] && due_ms <= steps[i] * 6 / 5);
        assert_string_equal(tick(&rig, steps[i] - 1), "");
        rig.now_ms += due_ms - steps[i] + 1;
    }
    rig_close(&rig);
}

static void silence_of_the_server_fails_a_join_and_a_confirmation(void **state)
{
    struct rig rig;

    rig_open_as(&rig, false);
    assert_int_equal(hosted_session_watch(rig.s, "orders", NULL, NULL), 0);
    hosted_session_begin(rig.s, rig.now_ms);
    (void)tick(&rig, 0);
    assert_string_equal(tick(&rig, 9999), "");
    assert_string_equal(tick(&rig, 1), "");
    assert_int_equal(monitor(&rig).items[0].state, BACKEND_LINK_FAILED);
    assert_non_null(strstr(tick(&rig, 1200), "\"2\",\"2\",\"" ORDERS "\",\"phx_join\""));
    take(&rig, JOINED_1); /* late, of the first join */
    assert_int_equal(monitor(&rig).items[0].state, BACKEND_LINK_JOINING);
    assert_int_equal(monitor(&rig).items[0].n_retries, 1);
    rig_close(&rig);
    rig_open_as(&rig, false);
    assert_int_equal(hosted_session_watch(rig.s, "orders", NULL, NULL), 0);
    hosted_session_begin(rig.s, rig.now_ms);
    (void)tick(&rig, 0);
    take(&rig, JOINED_1);
    (void)tick(&rig, 20000);
    assert_non_null(strstr(monitor(&rig).items[0].last_error, "in time that changes arrive"));
    rig_close(&rig);
}

static void close_and_error_of_the_server_lead_to_another_join(void **state)
{
    static const char *const ends[] = {
        "[\"1\",\"1\",\"" ORDERS "\",\"phx_close\",{}]",
        "[\"1\",\"1\",\"" ORDERS "\",\"phx_error\",{}]",
        "[null,null,\"" ORDERS "\",\"phx_error\",{}]",
        "[null,null,\"" ORDERS
        "\",\"system\",{\"extension\":\"postgres_changes\",\"status\":\"error\",\"message\":\"x\"}]",
    };
    struct rig rig;

    for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
        open_live(&rig);
        take(&rig, ends[i]);
        assert_int_equal(monitor(&rig).items[0].state, BACKEND_LINK_FAILED);
        assert_non_null(strstr(tick(&rig, 1200), "phx_join"));
        rig_close(&rig);
    }
    open_live(&rig);
    take(&rig, "[\"9\",\"9\",\"" ORDERS "\",\"phx_close\",{}]"); /* of another join */
    assert_int_equal(monitor(&rig).items[0].state, BACKEND_LINK_LIVE);
    take(
        &rig,
        "[null,null,\"" ORDERS
        "\",\"system\",{\"extension\":\"system\",\"status\":\"error\",\"message\":\"Token has expired 3 seconds ago\"}]");
    take(&rig, "[\"1\",\"1\",\"" ORDERS "\",\"phx_close\",{}]");
    assert_non_null(strstr(monitor(&rig).items[0].last_error, "Token has expired"));
    assert_true(hosted_session_needs_token(rig.s));
    rig_close(&rig);
}

static void a_table_that_nobody_wants_is_left(void **state)
{
    struct rig rig;

    open_live(&rig);
    hosted_session_unwatch(rig.s, "orders", "a=eq.1"); /* another one */
    assert_true(hosted_session_is_wanted(rig.s));
    hosted_session_unwatch(rig.s, "orders", NULL);
    assert_false(hosted_session_is_wanted(rig.s));
    assert_string_equal(tick(&rig, 0), "[\"1\",\"2\",\"" ORDERS "\",\"phx_leave\",{}]\n");
    take(&rig, CHANGE("[77]", "\"type\":\"INSERT\",\"record\":{\"id\":1}"));
    assert_false(rig.news.has_change);
    assert_int_equal(monitor(&rig).n, 0);
    rig_close(&rig);
}

static void so_many_channels_and_no_more(void **state)
{
    struct rig rig;

    rig_open_as(&rig, false);
    for (int i = 0; i < LIMIT_HOSTED_CHANNELS; i++)
        assert_int_equal(hosted_session_listen(rig.s, arena_printf(rig.a, "t%d", i), false, NULL), 0);
    assert_int_equal(hosted_session_listen(rig.s, "one more", false, NULL), -ENOSPC);
    assert_int_equal(hosted_session_watch(rig.s, "orders", NULL, NULL), -ENOSPC);
    assert_int_equal(hosted_session_listen(rig.s, "t7", false, NULL), 0);
    assert_int_equal(hosted_session_listen(rig.s, "t7", true, NULL), -EINVAL);
    rig_close(&rig);
}

static void the_name_of_a_topic_has_its_limit(void **state)
{
    char name[LIMIT_TOPIC_BYTES + 1] = { 0 };
    struct rig rig;

    rig_open_as(&rig, false);
    memset(name, 'x', LIMIT_TOPIC_BYTES - strlen("realtime:"));
    assert_int_equal(hosted_session_listen(rig.s, name, false, NULL), 0);
    name[strlen(name)] = 'x';
    assert_int_equal(hosted_session_listen(rig.s, name, false, NULL), -EINVAL);
    assert_int_equal(hosted_session_listen(rig.s, "", false, NULL), -EINVAL);
    rig_close(&rig);
}

/* ---- changes ---- */

static void changes_come_with_their_records(void **state)
{
    struct rig rig;

    open_live(&rig);
    take(&rig, CHANGE("[5,77]", "\"type\":\"UPDATE\",\"commit_timestamp\":\"2026-11-23T10:00:00.5Z\",\"columns\":[],"
                                "\"record\":{\"id\":1,\"n\":2},\"old_record\":{\"id\":1},\"errors\":null"));
    assert_true(rig.news.has_change);
    assert_int_equal(rig.news.change.op, BACKEND_UPDATE);
    assert_string_equal(rig.news.change.table, "orders");
    assert_int_equal(json_int(json_get(rig.news.change.record, "n")), 2);
    assert_int_equal(json_length(rig.news.change.old_record), 1);
    assert_int_equal(rig.news.change.commit_ms % 1000, 500);
    assert_false(rig.news.change.is_cut);
    take(&rig, CHANGE("[77]", "\"type\":\"DELETE\",\"old_record\":{\"id\":1},\"record\":{\"id\":2}"));
    assert_int_equal(json_type(rig.news.change.record), JSON_ABSENT);
    take(&rig,
         CHANGE("[77]", "\"type\":\"INSERT\",\"record\":{\"id\":1},\"errors\":[\"Error 413: Payload Too Large\"]"));
    assert_true(rig.news.change.is_cut);
    assert_int_equal(monitor(&rig).items[0].n_events, 3);
    assert_non_null(monitor(&rig).items[0].last_event_at);
    assert_int_equal(monitor(&rig).items[0].lag_ms, -1); /* of the last event, which had no time */
    rig_close(&rig);
}

static void a_change_without_a_row_is_a_gap(void **state)
{
    struct rig rig;

    open_live(&rig);
    take(&rig, CHANGE("[77]", "\"type\":\"INSERT\",\"record\":{},\"errors\":[\"Error 401: Unauthorized\"]"));
    assert_false(rig.news.has_change);
    assert_string_equal(rig.news.gap_table, "orders");
    rig_close(&rig);
}

static void an_event_that_comes_twice_is_reported_once(void **state)
{
    static const char event[] =
        CHANGE("[77]", "\"type\":\"INSERT\",\"commit_timestamp\":\"2026-11-23T10:00:00Z\",\"record\":{\"id\":1}");
    struct rig rig;

    open_live(&rig);
    take(&rig, event);
    assert_true(rig.news.has_change);
    take(&rig, event);
    assert_false(rig.news.has_change);
    assert_int_equal(monitor(&rig).n_ignored, 1);
    assert_int_equal(monitor(&rig).items[0].n_events, 1);
    rig_close(&rig);
}

static void what_has_no_meaning_is_counted_and_left_out(void **state)
{
    static const char *const texts[] = {
        "",
        "x",
        "{}",
        "[]",
        "[1,2,3,4,5]",
        "[null,null,\"realtime:other\",\"postgres_changes\",{}]",
        "[null,null,\"" ORDERS "\",\"dance\",{}]",
        "[null,null,\"" ORDERS "\",\"broadcast\",{\"event\":\"x\",\"payload\":{}}]",
        "[null,null,\"" ORDERS "\",\"postgres_changes\",null]",
        CHANGE("[78]", "\"type\":\"INSERT\",\"record\":{\"id\":1}"),
        CHANGE("{}", "\"type\":\"INSERT\",\"record\":{\"id\":1}"),
        CHANGE("[\"77\"]", "\"type\":\"INSERT\",\"record\":{\"id\":1}"),
        CHANGE("[77]", "\"type\":\"TRUNCATE\",\"record\":{\"id\":1}"),
        CHANGE("[77]", "\"type\":7"),
    };
    struct rig rig;

    open_live(&rig);
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        take(&rig, texts[i]);
        assert_false(rig.news.has_change || rig.news.gap_table || rig.news.topic);
        assert_int_equal(monitor(&rig).n_ignored, i + 1);
    }
    assert_int_equal(monitor(&rig).items[0].state, BACKEND_LINK_LIVE);
    rig_close(&rig);
}

/* ---- heartbeat and token ---- */

static void a_heartbeat_without_a_reply_ends_the_connection(void **state)
{
    struct rig rig;

    open_live(&rig);
    assert_string_equal(tick(&rig, 25000), "[null,\"2\",\"phoenix\",\"heartbeat\",{}]\n");
    take(&rig, "[null,\"1\",\"phoenix\",\"phx_reply\",{\"status\":\"ok\",\"response\":{}}]"); /* another one's */
    take(&rig, "[null,\"2\",\"phoenix\",\"phx_reply\",{\"status\":\"ok\",\"response\":{}}]");
    assert_string_equal(tick(&rig, 24999), "");
    assert_string_equal(tick(&rig, 1), "[null,\"3\",\"phoenix\",\"heartbeat\",{}]\n");
    assert_int_equal(hosted_session_due_ms(rig.s, rig.now_ms) - rig.now_ms, 10000);
    rig.now_ms += 10000;
    assert_int_equal(hosted_session_tick(rig.s, rig.now_ms, NULL), -ECONNRESET);
    rig_close(&rig);
}

static void joined_channels_are_told_of_another_token(void **state)
{
    struct rig rig;

    open_live(&rig);
    buf_reset(&rig.said);
    hosted_session_use_token(rig.s, "eyJ.a.b");
    hosted_session_use_token(rig.s, "eyJ.a.b");
    assert_string_equal(buf_str(&rig.said),
                        "[\"1\",\"2\",\"" ORDERS "\",\"access_token\",{\"access_token\":\"eyJ.a.b\"}]\n");
    hosted_session_end(rig.s, rig.now_ms, "gone");
    hosted_session_begin(rig.s, rig.now_ms);
    assert_non_null(strstr(tick(&rig, 0), "\"private\":false},\"access_token\":\"eyJ.a.b\"}"));
    rig_close(&rig);
}

static void the_expiry_of_a_token_is_read(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();

    assert_int_equal(hosted_token_expiry(a, "x.eyJleHAiOjE3MDAwMDAwMDB9.y"), INT64_C(1700000000000));
    assert_int_equal(hosted_token_expiry(a, "x.eyJleHAiOjFlMzAwfQ.y"), INT64_C(253402300799000));
    assert_int_equal(hosted_token_expiry(a, "x.eyJleHAiOi01fQ.y"), 0);
    assert_int_equal(hosted_token_expiry(a, "x.e30.y"), 0);
    assert_int_equal(hosted_token_expiry(a, "x.*.y"), 0);
    assert_int_equal(hosted_token_expiry(a, "x.y"), 0);
    assert_int_equal(hosted_token_expiry(a, ""), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_table_is_live_after_the_confirmation_and_a_gap_is_reported_then),
        cmocka_unit_test(version_1_speaks_in_objects),
        cmocka_unit_test(a_name_in_quotes_is_told_without_them_and_may_have_a_dot),
        cmocka_unit_test(a_reply_that_does_not_match_is_a_failure),
        cmocka_unit_test(a_refused_table_is_joined_again_after_1_2_5_and_10_seconds),
        cmocka_unit_test(silence_of_the_server_fails_a_join_and_a_confirmation),
        cmocka_unit_test(close_and_error_of_the_server_lead_to_another_join),
        cmocka_unit_test(a_table_that_nobody_wants_is_left),
        cmocka_unit_test(so_many_channels_and_no_more),
        cmocka_unit_test(the_name_of_a_topic_has_its_limit),
        cmocka_unit_test(changes_come_with_their_records),
        cmocka_unit_test(a_change_without_a_row_is_a_gap),
        cmocka_unit_test(an_event_that_comes_twice_is_reported_once),
        cmocka_unit_test(what_has_no_meaning_is_counted_and_left_out),
        cmocka_unit_test(a_heartbeat_without_a_reply_ends_the_connection),
        cmocka_unit_test(joined_channels_are_told_of_another_token),
        cmocka_unit_test(the_expiry_of_a_token_is_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
