/* Requests and responses of a connection: ids, deadlines, progress, cancellation. */
#include "fake_call.h"

#define TEXT(s) "\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"" s "\"}]}"

enum { N_CLOSES = 300 };

/* ---- what the caller does meanwhile ---- */

struct meanwhile {
    struct fake *fake;
    int n_free, n_busy;
    size_t n_sent_before; /* requests that were out at the last call */
};

static void note_meanwhile(void *arg, bool is_free)
{
    struct meanwhile *m = arg;

    m->n_free += is_free;
    m->n_busy += !is_free;
    m->n_sent_before = fake_count(m->fake, "tools/call");
}

static void serve_text(struct fake *f, const struct json_rpc_frame *frame, const struct mcp_send *s)
{
    if (!fake_begin(f, frame))
        fake_answer(f, frame, TEXT("done"));
}

static struct meanwhile call_noted(struct fake *f)
{
    struct meanwhile m = { .fake = f };
    struct one o;

    f->serve = serve_text;
    fake_open(f, MCP_ERA_HANDSHAKE);
    one_init(&o, f);
    o.call.meanwhile = note_meanwhile;
    o.call.meanwhile_arg = &m;
    one_run(&o);
    assert_int_equal(o.r, 0);
    assert_string_equal(one_text(&o), "done");
    one_clear(&o);
    return m;
}

static void the_caller_is_free_once_the_request_is_out(void **state)
{
    struct fake *f = *state;
    struct mcp_link_ops at_once = fake_ops;
    struct meanwhile m;

    at_once.sends_at_once = true;
    f->link.ops = &at_once;
    m = call_noted(f);
    assert_int_equal(m.n_free, 1);
    assert_int_equal(m.n_busy, 0);
    assert_int_equal(m.n_sent_before, 1);
    f->client = mcp_client_unref(f->client); /* while its link's functions are there */
}

static void the_caller_is_told_before_a_request_that_may_take_long_to_send(void **state)
{
    const struct meanwhile m = call_noted(*state);

    assert_int_equal(m.n_free, 0);
    assert_int_equal(m.n_busy, 1);
    assert_int_equal(m.n_sent_before, 0);
}

/* ---- ids ---- */

static void serve_wrong_ids(struct fake *f, const struct json_rpc_frame *frame, const struct mcp_send *s)
{
    long long id = frame->id.number;

    if (fake_begin(f, frame))
        return;
    fake_sayf(f, "{\"jsonrpc\":\"2.0\",\"id\":\"%lld\"," TEXT("a text") "}", id);
    fake_sayf(f, "{\"jsonrpc\":\"2.0\",\"id\":%lld," TEXT("another") "}", id + 1);
    fake_sayf(f, "{\"jsonrpc\":\"2.0\",\"id\":-1," TEXT("negative") "}");
    fake_sayf(f, "{\"jsonrpc\":\"2.0\",\"id\":%lld," TEXT("right") "}", id);
    fake_sayf(f, "{\"jsonrpc\":\"2.0\",\"id\":%lld," TEXT("doubled") "}", id);
}

static void only_the_first_response_with_the_id_counts(void **state)
{
    struct fake *f = *state;
    struct one o;

    f->serve = serve_wrong_ids;
    fake_open(f, MCP_ERA_HANDSHAKE);
    one_init(&o, f);
    one_run(&o);
    assert_int_equal(o.r, 0);
    assert_string_equal(one_text(&o), "right");
    assert_int_equal(counts_of(f).n_unasked, 4);
    one_clear(&o);
}

static void serve_garbage(struct fake *f, const struct json_rpc_frame *frame, const struct mcp_send *s)
{
    if (fake_begin(f, frame))
        return;
    fake_say(f, "{");
    fake_say(f, "{}");
    fake_say(f, "[1,{\"jsonrpc\":\"1.0\"}]");
    fake_say(f, "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,\"message\":\"what\"}}");
    fake_answer(f, frame, TEXT("after it"));
}

static void what_is_no_frame_is_counted(void **state)
{
    struct fake *f = *state;
    struct one o;

    f->serve = serve_garbage;
    fake_open(f, MCP_ERA_HANDSHAKE);
    one_init(&o, f);
    one_run(&o);
    assert_string_equal(one_text(&o), "after it");
    assert_int_equal(counts_of(f).n_bad, 4);
    assert_int_equal(counts_of(f).n_unasked, 1);
    one_clear(&o);
}

static void serve_batch(struct fake *f, const struct json_rpc_frame *frame, const struct mcp_send *s)
{
    if (fake_begin(f, frame))
        return;
    fake_sayf(f,
              "[{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"},{\"jsonrpc\":\"2.0\",\"id\":%lld," TEXT(
                  "in it") "},{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"ping\"}]",
              (long long)frame->id.number);
}

static void a_batch_is_its_frames(void **state)
{
    struct fake *f = *state;
    struct one o;

    f->serve = serve_batch;
    fake_open(f, MCP_ERA_HANDSHAKE);
    one_init(&o, f);
    one_run(&o);
    assert_string_equal(one_text(&o), "in it");
    fake_await(f, "\"id\":9,\"result\":{}");
    one_clear(&o);
}

/* A batch of notifications, one more than is read, with the response as frame `at` of it. */
static void say_batch(struct fake *f, long long id, int at)
{
    struct buf out;

    buf_init(&out, KIB(16));
    for (int i = 0; i <= LIMIT_MCP_BATCH; i++) {
        buf_add_str(&out, i == 0 ? "[" : ",");
        if (i == at)
            buf_printf(&out, "{\"jsonrpc\":\"2.0\",\"id\":%lld," TEXT("in it") "}", id);
        else
            buf_add_str(&out, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}");
    }
    buf_add_str(&out, "]");
    fake_say(f, buf_str(&out));
    buf_clear(&out);
}

static void serve_long_batches(struct fake *f, const struct json_rpc_frame *frame, const struct mcp_send *s)
{
    if (fake_begin(f, frame))
        return;
    say_batch(f, frame->id.number, LIMIT_MCP_BATCH);
    fake_answer(f, frame, TEXT("after it"));
}

static void serve_full_batch(struct fake *f, const struct json_rpc_frame *frame, const struct mcp_send *s)
{
    if (!fake_begin(f, frame))
        say_batch(f, frame->id.number, LIMIT_MCP_BATCH - 1);
}

static void of_a_batch_so_many_frames_are_read(void **state)
{
    struct fake *f = *state;
    uint64_t n_before;
    struct one o;

    f->serve = serve_full_batch;
    fake_open(f, MCP_ERA_HANDSHAKE);
    n_before = counts_of(f).n_frames;
    one_init(&o, f);
    one_run(&o);
    assert_string_equal(one_text(&o), "in it");
    assert_int_equal(counts_of(f).n_frames - n_before, LIMIT_MCP_BATCH);
    f->serve = serve_long_batches;
    one_run(&o);
    assert_string_equal(one_text(&o), "after it"); /* frame 65 was not read */
    one_clear(&o);
}

static void responses_may_come_in_any_order(void **state)
{
    struct fake *f = *state;
    struct one a, b;

    f->serve = serve_never;
    fake_open(f, MCP_ERA_HANDSHAKE);
    one_init(&a, f);
    one_init(&b, f);
    one_start(&a);
    fake_await(f, "\"id\":2,\"method\":\"tools/call\"");
    one_start(&b);
    fake_await(f, "\"id\":3,\"method\":\"tools/call\"");
    fake_say(f, "{\"jsonrpc\":\"2.0\",\"id\":3," TEXT("three") "}");
    one_join(&b);
    assert_false(atomic_load(&a.has_ended));
    fake_say(f, "{\"jsonrpc\":\"2.0\",\"id\":2," TEXT("two") "}");
    one_join(&a);
    assert_string_equal(one_text(&a), "two");
    assert_string_equal(one_text(&b), "three");
    one_clear(&a);
    one_clear(&b);
}

static void so_many_calls_may_wait_and_no_more(void **state)
{
    static struct one all[LIMIT_MCP_CALLS];
    struct fake *f = *state;
    struct one more;
    char last[64];

    f->serve = serve_never;
    fake_open(f, MCP_ERA_HANDSHAKE);
    for (size_t i = 0; i < LIMIT_MCP_CALLS; i++) {
        one_init(&all[i], f);
        one_start(&all[i]);
    }
    for (int id = 2; id < LIMIT_MCP_CALLS + 2; id++) {
        snprintf(last, sizeof(last), "\"id\":%d,", id);
        fake_await(f, last);
    }
    one_init(&more, f);
    one_run(&more);
    assert_int_equal(more.r, -EAGAIN);
    assert_string_equal(more.e.code, "OVERLOADED");
    fake_end(f, "gone");
    for (size_t i = 0; i < LIMIT_MCP_CALLS; i++) {
        one_join(&all[i]);
        assert_int_equal(all[i].r, -EPIPE);
        one_clear(&all[i]);
    }
    one_clear(&more);
}

/* ---- the end of a wait ---- */

static void past_its_deadline_a_call_is_cancelled_at_the_server(void **state)
{
    struct fake *f = *state;
    struct one o;

    f->serve = serve_never;
    fake_open(f, MCP_ERA_HANDSHAKE);
    one_init(&o, f);
    o.wait = net_wait_of(20, NULL, NULL);
    one_run(&o);
    assert_int_equal(o.r, -ETIMEDOUT);
    assert_string_equal(o.e.code, "MCP_TIMEOUT");
    assert_int_equal(fake_count(f, "\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":2,"), 1);
    fake_say(f, "{\"jsonrpc\":\"2.0\",\"id\":2," TEXT("late") "}");
    assert_int_equal(counts_of(f).n_unasked, 1);
    assert_int_equal(fake_count(f, "tools/call"), 1);
    one_clear(&o);
}

static void a_caller_that_leaves_cancels(void **state)
{
    struct fake *f = *state;
    struct one o;

    f->serve = serve_never;
    fake_open(f, MCP_ERA_HANDSHAKE);
    one_init(&o, f);
    one_start(&o);
    fake_await(f, "tools/call");
    atomic_store(&o.is_gone, true);
    one_join(&o);
    assert_int_equal(o.r, -ECANCELED);
    assert_int_equal(fake_count(f, "notifications/cancelled"), 1);
    one_clear(&o);
}

static void silence_ends_a_call_that_has_time_left(void **state)
{
    struct fake *f = *state;
    struct one o;

    f->serve = serve_never;
    fake_open(f, MCP_ERA_HANDSHAKE);
    one_init(&o, f);
    o.call.quiet_ms = 20;
    one_run(&o);
    assert_int_equal(o.r, -ETIMEDOUT);
    one_clear(&o);
}

/* In send(): the quiet time passes, progress comes, and there is time again. */
static void serve_progress(struct fake *f, const struct json_rpc_frame *frame, const struct mcp_send *s)
{
    struct json_value token = json_get(json_get(frame->params, "_meta"), "progressToken");

    if (fake_begin(f, frame))
        return;
    assert_int_equal(json_type(token), JSON_INT);
    while (net_wait_left(s->wait, NULL) > 0)
        ;
    fake_sayf(f,
              "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":%lld,"
              "\"progress\":1,\"total\":4,\"message\":\"one of four\"}}",
              (long long)json_int(token));
    assert_true(net_wait_left(s->wait, NULL) > 0);
    fake_say(f, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":99}}");
    fake_answer(f, frame, TEXT("done"));
}

static void note_progress(void *arg, double progress, double total, const char *message)
{
    struct fake *f = arg;

    assert_true(progress == 1 && total == 4);
    assert_string_equal(message, "one of four");
    f->n++;
}

static void progress_begins_the_quiet_time_anew(void **state)
{
    struct fake *f = *state;
    struct one o;

    f->serve = serve_progress;
    fake_open(f, MCP_ERA_HANDSHAKE);
    one_init(&o, f);
    o.call.quiet_ms = 2000;
    o.call.on_progress = note_progress;
    o.call.arg = f;
    one_run(&o);
    assert_int_equal(o.r, 0);
    assert_int_equal(f->n, 1);
    one_clear(&o);
}

static void serve_end(struct fake *f, const struct json_rpc_frame *frame, const struct mcp_send *s)
{
    if (!fake_begin(f, frame))
        fake_end(f, "It died of old age.");
}

static void the_end_of_the_connection_fails_every_call_with_its_reason(void **state)
{
    struct fake *f = *state;
    struct one o;

    f->serve = serve_end;
    fake_open(f, MCP_ERA_HANDSHAKE);
    for (int i = 0; i < 2; i++) {
        one_init(&o, f);
        one_run(&o);
        assert_int_equal(o.r, -EPIPE);
        assert_string_equal(o.e.code, "MCP_CLOSED");
        assert_string_equal(o.e.text, "It died of old age.");
        one_clear(&o);
    }
    assert_false(mcp_client_is_open(f->client));
    assert_int_equal(fake_count(f, "tools/call"), 1);
}

static void close_ends_calls_in_flight(void **state)
{
    struct fake *f = *state;
    struct one o;

    f->serve = serve_never;
    fake_open(f, MCP_ERA_HANDSHAKE);
    one_init(&o, f);
    one_start(&o);
    fake_await(f, "tools/call");
    mcp_client_close(f->client);
    one_join(&o);
    assert_int_equal(o.r, -EPIPE);
    one_clear(&o);
}

/* The link is gone while the call is prepared, sent, or awaited. */
static void a_close_at_any_instant_ends_the_call(void **state)
{
    struct fake *f = *state;

    f->serve = serve_never;
    for (int i = 0; i < N_CLOSES; i++) {
        struct one o;

        fake_open(f, MCP_ERA_HANDSHAKE);
        one_init(&o, f);
        one_start(&o);
        mcp_client_close(f->client);
        one_join(&o);
        assert_int_equal(o.r, -EPIPE);
        one_clear(&o);
        f->client = mcp_client_unref(f->client);
    }
}

static void serve_failing(struct fake *f, const struct json_rpc_frame *frame, const struct mcp_send *s)
{
    if (!fake_begin(f, frame))
        f->send_result = -EPROTO;
}

static void a_send_that_fails_is_not_repeated(void **state)
{
    struct fake *f = *state;
    struct one o;

    f->serve = serve_failing;
    fake_open(f, MCP_ERA_HANDSHAKE);
    one_init(&o, f);
    one_run(&o);
    assert_int_equal(o.r, -EPROTO);
    assert_int_equal(fake_count(f, "tools/call"), 1);
    one_clear(&o);
}

static void serve_too_late(struct fake *f, const struct json_rpc_frame *frame, const struct mcp_send *s)
{
    if (fake_begin(f, frame))
        return;
    fake_answer(f, frame, TEXT("it came"));
    f->send_result = -EPROTO;
}

static void a_response_that_came_counts_even_if_the_send_failed(void **state)
{
    struct fake *f = *state;
    struct one o;

    f->serve = serve_too_late;
    fake_open(f, MCP_ERA_HANDSHAKE);
    one_init(&o, f);
    one_run(&o);
    assert_int_equal(o.r, 0);
    assert_string_equal(one_text(&o), "it came");
    one_clear(&o);
}

int main(void)
{
#define WITH_FAKE(test) cmocka_unit_test_setup_teardown(test, fake_set_up, fake_tear_down)
    const struct CMUnitTest tests[] = {
        WITH_FAKE(the_caller_is_free_once_the_request_is_out),
        WITH_FAKE(the_caller_is_told_before_a_request_that_may_take_long_to_send),
        WITH_FAKE(only_the_first_response_with_the_id_counts),
        WITH_FAKE(what_is_no_frame_is_counted),
        WITH_FAKE(a_batch_is_its_frames),
        WITH_FAKE(of_a_batch_so_many_frames_are_read),
        WITH_FAKE(responses_may_come_in_any_order),
        WITH_FAKE(so_many_calls_may_wait_and_no_more),
        WITH_FAKE(past_its_deadline_a_call_is_cancelled_at_the_server),
        WITH_FAKE(a_caller_that_leaves_cancels),
        WITH_FAKE(silence_ends_a_call_that_has_time_left),
        WITH_FAKE(progress_begins_the_quiet_time_anew),
        WITH_FAKE(the_end_of_the_connection_fails_every_call_with_its_reason),
        WITH_FAKE(close_ends_calls_in_flight),
        WITH_FAKE(a_close_at_any_instant_ends_the_call),
        WITH_FAKE(a_send_that_fails_is_not_repeated),
        WITH_FAKE(a_response_that_came_counts_even_if_the_send_failed),
    };

    return hash_init(NULL) < 0 || cmocka_run_group_tests(tests, NULL, NULL);
}
