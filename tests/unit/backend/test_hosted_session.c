/* The protocol of the realtime client without network: what it says, and what it makes of a server's messages. */
#include "backend/hosted/hosted_session.h"
#include "backend/hosted/hosted_token.h"
#include "base/limits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

struct rig {
    struct arena *a;
    struct hosted_session *s;
    struct buf said; /* every message of the client, each in a line */
    int64_t now_ms;
    struct hosted_times times;
    struct hosted_news news;
    int send_fails;
};

static int hear(void *arg, bool is_binary, struct slice message, struct err *e)
{
    struct rig *rig = arg;

    if (rig->send_fails)
        return err_set(e, rig->send_fails, "OVERLOADED", "full");
    if (is_binary)
        buf_add_str(&rig->said, "B");
    for (size_t i = 0; i < message.n; i++)
        buf_add_char(&rig->said, message.p[i] < ' ' ? '.' : message.p[i]);
    buf_add_char(&rig->said, '\n');
    return 0;
}

static const struct hosted_times times = {
    .heartbeat_ms = 25000, .reply_ms = 10000, .confirm_ms = 20000, .step_ms = 1000, .track_ms = 7000
};

static void rig_open_as(struct rig *rig, bool is_v1)
{
    const struct hosted_session_config config = {
        .abbr = "svc", .times = &rig->times, .is_v1 = is_v1, .send = hear, .arg = rig
    };

    *rig = (struct rig){ .a = arena_new(), .now_ms = 1000, .times = times };
    buf_init(&rig->said, MIB(16));
    rig->s = hosted_session_new(&config);
}

static void rig_close(struct rig *rig)
{
    hosted_session_free(rig->s);
    buf_clear(&rig->said);
    arena_free(rig->a);
}

/* Every message that the client sends after so many milliseconds. */
static const char *tick(struct rig *rig, int64_t after_ms)
{
    buf_reset(&rig->said);
    rig->now_ms += after_ms;
    assert_int_equal(hosted_session_tick(rig->s, rig->now_ms, NULL), 0);
    return buf_str(&rig->said);
}

static void take(struct rig *rig, const char *text)
{
    hosted_session_take(rig->s, rig->a, false, slice_of(text), rig->now_ms, &rig->news);
}

static struct backend_monitor monitor(struct rig *rig)
{
    struct backend_monitor m;

    hosted_session_monitor(rig->s, rig->a, &m);
    return m;
}

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
        cmocka_unit_test(a_table_is_live_after_the_confirmation_and_a_gap_is_reported_then),
        cmocka_unit_test(version_1_speaks_in_objects),
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
