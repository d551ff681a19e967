/* The protocol of the realtime client: broadcasts and presence. */
#include "hosted_rig.h"

/* ---- broadcasts ---- */

static void open_topic(struct rig *rig, bool is_v1)
{
    rig_open_as(rig, is_v1);
    assert_int_equal(hosted_session_listen(rig->s, "room", false, NULL), 0);
    hosted_session_begin(rig->s, rig->now_ms);
    (void)tick(rig, 0);
    take(rig, is_v1 ? "{\"topic\":\"realtime:room\",\"event\":\"phx_reply\",\"ref\":\"1\",\"join_ref\":\"1\","
                      "\"payload\":{\"status\":\"ok\",\"response\":{}}}"
                    : "[\"1\",\"1\",\"realtime:room\",\"phx_reply\",{\"status\":\"ok\",\"response\":{}}]");
    assert_true(hosted_session_is_settled(rig->s));
}

static void a_broadcast_goes_out_in_the_form_of_the_version(void **state)
{
    const struct hosted_broadcast b = { .topic = "room", .event = "task-available", .payload_json = "{\"n\":1}" };
    const struct hosted_broadcast other = { .topic = "hall", .event = "x", .payload_json = "{}" };
    struct rig rig;

    open_topic(&rig, false);
    assert_int_equal(hosted_session_broadcast(rig.s, &b, NULL), 0);
    assert_int_equal(hosted_session_broadcast(rig.s, &other, NULL), -ENOTCONN);
    assert_string_equal(tick(&rig, 0), "B.......12realtime:roomtask-available{\"n\":1}\n");
    rig_close(&rig);
    open_topic(&rig, true);
    assert_int_equal(hosted_session_broadcast(rig.s, &b, NULL), 0);
    assert_non_null(strstr(tick(&rig, 0),
                           "\"payload\":{\"type\":\"broadcast\",\"event\":\"task-available\",\"payload\":{\"n\":1}}"));
    rig_close(&rig);
}

static void so_many_broadcasts_wait_and_no_more(void **state)
{
    const struct hosted_broadcast b = { .topic = "room", .event = "x", .payload_json = "{}" };
    struct rig rig;

    open_topic(&rig, false);
    for (int i = 0; i < LIMIT_BROADCASTS_WAITING; i++)
        assert_int_equal(hosted_session_broadcast(rig.s, &b, NULL), 0);
    assert_int_equal(hosted_session_broadcast(rig.s, &b, NULL), -EAGAIN);
    rig.send_fails = -EAGAIN; /* they stay while the socket is full */
    assert_string_equal(tick(&rig, 0), "");
    assert_int_equal(hosted_session_broadcast(rig.s, &b, NULL), -EAGAIN);
    rig.send_fails = 0;
    (void)tick(&rig, 0);
    assert_int_equal(hosted_session_broadcast(rig.s, &b, NULL), 0);
    rig_close(&rig);
}

static void a_broadcast_has_its_limit_of_bytes(void **state)
{
    char *payload = xcalloc(1, LIMIT_BROADCAST_BYTES + 2);
    const struct hosted_broadcast b = { .topic = "room", .event = "x", .payload_json = payload };
    struct rig rig;

    memset(payload, '1', LIMIT_BROADCAST_BYTES);
    open_topic(&rig, false);
    assert_int_equal(hosted_session_broadcast(rig.s, &b, NULL), 0);
    payload[LIMIT_BROADCAST_BYTES] = '1';
    assert_int_equal(hosted_session_broadcast(rig.s, &b, NULL), -E2BIG);
    rig_close(&rig);
    free(payload);
}

static void broadcasts_come_as_text_and_in_binary_form(void **state)
{
    static const char binary[] = "\x04\x0d\x05\x00\x01realtime:roomshout{\"a\":1}";
    static const char bytes[] = "\x04\x0d\x05\x00\x00realtime:roomshout\x01\x02";
    struct rig rig;

    open_topic(&rig, false);
    take(
        &rig,
        "[null,null,\"realtime:room\",\"broadcast\",{\"type\":\"broadcast\",\"event\":\"shout\",\"payload\":{\"a\":[1]}}]");
    assert_string_equal(rig.news.topic, "room");
    assert_string_equal(rig.news.event, "shout");
    assert_string_equal(rig.news.payload_json, "{\"a\":[1]}");
    hosted_session_take(rig.s, rig.a, true, (struct slice){ binary, sizeof(binary) - 1 }, 0, &rig.news);
    assert_string_equal(rig.news.event, "shout");
    assert_string_equal(rig.news.payload_json, "{\"a\":1}");
    hosted_session_take(rig.s, rig.a, true, (struct slice){ bytes, sizeof(bytes) - 1 }, 0, &rig.news);
    assert_string_equal(rig.news.payload_json, "null");
    for (size_t n = 0; n < 5 + 13 + 5; n++) {
        hosted_session_take(rig.s, rig.a, true, (struct slice){ binary, n }, 0, &rig.news);
        assert_null(rig.news.topic);
    }
    rig_close(&rig);
}

/* ---- presence ---- */

static void open_presence(struct rig *rig)
{
    const struct backend_presence me = {
        .machine_id = "lin-a", .hostname = "alpha", .online_at = "2026", .instance = "i1"
    };

    rig_open_as(rig, false);
    assert_int_equal(hosted_session_track(rig->s, &me, NULL), 0);
    assert_int_equal(hosted_session_track(rig->s, &me, NULL), 0);
    hosted_session_begin(rig->s, rig->now_ms);
    assert_non_null(strstr(tick(rig, 0), "\"presence\":{\"key\":\"lin-a\",\"enabled\":true}"));
    take(
        rig,
        "[\"1\",\"1\",\"realtime:svc_presence\",\"phx_reply\",{\"status\":\"ok\",\"response\":{\"postgres_changes\":[]}}]");
}

static void presence_is_tracked_once_for_each_connection(void **state)
{
    const struct backend_presence me = { .machine_id = "lin-a", .hostname = "alpha", .app_name = "triage" };
    struct backend_presences list;
    struct rig rig;

    open_presence(&rig);
    assert_string_equal(
        tick(&rig, 0),
        "[\"1\",\"2\",\"realtime:svc_presence\",\"presence\",{\"type\":\"presence\",\"event\":\"track\","
        "\"payload\":{\"machine_id\":\"lin-a\",\"hostname\":\"alpha\",\"online_at\":\"2026\",\"instance\":\"i1\"}}]\n");
    assert_int_equal(hosted_session_presences(rig.s, rig.a, &list, NULL), -EAGAIN);
    take(&rig, "[null,null,\"realtime:svc_presence\",\"presence_state\",{}]");
    assert_false(hosted_session_is_settled(rig.s));
    take(&rig, "[\"1\",\"2\",\"realtime:svc_presence\",\"phx_reply\",{\"status\":\"ok\",\"response\":{}}]");
    assert_true(hosted_session_is_settled(rig.s));
    assert_string_equal(tick(&rig, 10000), "");
    assert_int_equal(hosted_session_track(rig.s, &me, NULL), 0);
    assert_non_null(strstr(tick(&rig, 0), "\"app_name\":\"triage\""));
    hosted_session_untrack(rig.s);
    assert_string_equal(tick(&rig, 6999), ""); /* the server counts the calls */
    assert_non_null(strstr(tick(&rig, 1), "\"event\":\"untrack\""));
    rig_close(&rig);
}

static void states_and_differences_of_presence_are_kept(void **state)
{
    struct backend_presences list;
    struct rig rig;

    open_presence(&rig);
    take(
        &rig,
        "[null,null,\"realtime:svc_presence\",\"presence_diff\",{\"joins\":{\"x\":{\"metas\":[{\"phx_ref\":\"0\"}]}}}]");
    take(
        &rig,
        "[null,null,\"realtime:svc_presence\",\"presence_state\",{\"lin-b\":{\"metas\":[{\"phx_ref\":\"1\",\"machine_id\":\"lin-b\","
        "\"hostname\":\"beta\",\"online_at\":\"2026-02\"}]},\"lin-a\":{\"metas\":[{\"phx_ref\":\"2\",\"online_at\":\"2026-01\"},7]}}]");
    assert_true(rig.news.has_presence);
    assert_int_equal(hosted_session_presences(rig.s, rig.a, &list, NULL), 0);
    assert_int_equal(list.n, 3);
    assert_string_equal(list.items[1].machine_id, "lin-a");
    assert_string_equal(list.items[2].hostname, "beta");
    take(
        &rig,
        "[null,null,\"realtime:svc_presence\",\"presence_diff\",{\"joins\":{\"lin-b\":{\"metas\":[{\"phx_ref\":\"3\",\"phx_ref_prev\":\"1\","
        "\"hostname\":\"gamma\",\"online_at\":\"2026-03\"}]}},\"leaves\":{\"lin-b\":{\"metas\":[{\"phx_ref\":\"1\"}]}}}]");
    assert_int_equal(hosted_session_presences(rig.s, rig.a, &list, NULL), 0);
    assert_int_equal(list.n, 3);
    assert_string_equal(list.items[2].hostname, "gamma");
    take(&rig, "[null,null,\"realtime:svc_presence\",\"presence_state\",{}]");
    assert_int_equal(hosted_session_presences(rig.s, rig.a, &list, NULL), 0);
    assert_int_equal(list.n, 0);
    hosted_session_end(rig.s, rig.now_ms, "gone");
    assert_int_equal(hosted_session_presences(rig.s, rig.a, &list, NULL), -EAGAIN);
    rig_close(&rig);
}

static void so_many_machines_are_kept_and_no_more(void **state)
{
    struct backend_presences list;
    struct buf text;
    struct rig rig;

    open_presence(&rig);
    buf_init(&text, MIB(1));
    buf_add_str(&text, "[null,null,\"realtime:svc_presence\",\"presence_state\",{\"k\":{\"metas\":[{}");
    for (int i = 0; i < LIMIT_LIST; i++)
        buf_printf(&text, ",{\"phx_ref\":\"%d\"}", i);
    buf_add_str(&text, "]}}]");
    take(&rig, buf_str(&text));
    assert_int_equal(hosted_session_presences(rig.s, rig.a, &list, NULL), 0);
    assert_int_equal(list.n, LIMIT_LIST);
    buf_clear(&text);
    rig_close(&rig);
}

static void a_refused_record_is_told_and_tracked_again(void **state)
{
    struct rig rig;

    open_presence(&rig);
    (void)tick(&rig, 0);
    take(
        &rig,
        "[\"1\",\"2\",\"realtime:svc_presence\",\"phx_reply\",{\"status\":\"error\",\"response\":{\"reason\":\"too big\"}}]");
    assert_non_null(strstr(monitor(&rig).last_error, "refused the presence record: \"too big\""));
    assert_non_null(strstr(tick(&rig, 1200), "phx_join"));
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_broadcast_goes_out_in_the_form_of_the_version),
        cmocka_unit_test(so_many_broadcasts_wait_and_no_more),
        cmocka_unit_test(a_broadcast_has_its_limit_of_bytes),
        cmocka_unit_test(broadcasts_come_as_text_and_in_binary_form),
        cmocka_unit_test(presence_is_tracked_once_for_each_connection),
        cmocka_unit_test(states_and_differences_of_presence_are_kept),
        cmocka_unit_test(so_many_machines_are_kept_and_no_more),
        cmocka_unit_test(a_refused_record_is_told_and_tracked_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
