/* What a server asks for and what it says unasked. */
#include "fake_call.h"

static int give_roots(void *arg, const struct mcp_server_request *request, struct json_writer *w, struct err *e)
{
    json_begin_object(w);
    json_add_string(w, "uri", "file:///x");
    json_end(w);
    return 0;
}

static int give_sample(void *arg, const struct mcp_server_request *request, struct buf *ret, struct err *e)
{
    struct fake *f = arg;

    assert_string_equal(request->caller ? request->caller->name : "", f->n ? "app one" : "");
    buf_add_str(ret, "{\"role\":\"assistant\"}");
    return 0;
}

static int refuse_elicit(void *arg, const struct mcp_server_request *request, struct buf *ret, struct err *e)
{
    return err_set(e, -EPERM, "DENIED", "No.");
}

static void requests_of_the_server_are_answered_with_their_ids(void **state)
{
    struct fake *f = *state;

    f->handlers =
        (struct mcp_handlers){ .roots = give_roots, .sample = give_sample, .elicit = refuse_elicit, .arg = f };
    f->serve = serve_never;
    fake_open(f, MCP_ERA_HANDSHAKE);
    assert_int_equal(fake_count(f, "\"capabilities\":{\"roots\":{\"listChanged\":true},\"sampling\":{},"
                                   "\"elicitation\":{\"form\":{},\"url\":{}}}"),
                     1);
    f->n = 0;
    fake_say(f, "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"ping\"}");
    fake_await(f, "{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{}}");
    fake_say(f, "{\"jsonrpc\":\"2.0\",\"id\":\"\",\"method\":\"roots/list\"}");
    fake_await(f, "{\"jsonrpc\":\"2.0\",\"id\":\"\",\"result\":{\"roots\":[{\"uri\":\"file:///x\"}]}}");
    fake_say(f, "{\"jsonrpc\":\"2.0\",\"id\":\"s\",\"method\":\"sampling/createMessage\",\"params\":{}}");
    fake_await(f, "{\"jsonrpc\":\"2.0\",\"id\":\"s\",\"result\":{\"role\":\"assistant\"}}");
    fake_say(f, "{\"jsonrpc\":\"2.0\",\"id\":\"t\",\"method\":\"sampling/createMessage\",\"params\":{\"tools\":[]}}");
    fake_await(f, "{\"jsonrpc\":\"2.0\",\"id\":\"t\",\"error\":{\"code\":-32602,"); /* not announced */
    fake_say(f, "{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"nobody/knows\"}");
    fake_await(f, "{\"jsonrpc\":\"2.0\",\"id\":4,\"error\":{\"code\":-32601,");
    fake_say(f, "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"elicitation/create\",\"params\":{\"message\":\"m\"}}");
    fake_await(f, "{\"jsonrpc\":\"2.0\",\"id\":5,\"error\":{\"code\":-32602,"); /* no schema */
    fake_say(f, "{\"jsonrpc\":\"2.0\",\"id\":6,\"method\":\"elicitation/create\",\"params\":{\"message\":\"m\","
                "\"requestedSchema\":{}}}");
    fake_await(f, "{\"jsonrpc\":\"2.0\",\"id\":6,\"error\":{\"code\":-1,\"message\":\"No.\"");
    fake_say(f, "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"elicitation/create\",\"params\":{\"message\":\"m\","
                "\"mode\":\"url\"}}");
    fake_await(f, "{\"jsonrpc\":\"2.0\",\"id\":7,\"error\":{\"code\":-32602,");
}

static void without_handlers_nothing_is_announced(void **state)
{
    struct fake *f = *state;

    f->serve = serve_never;
    fake_open(f, MCP_ERA_HANDSHAKE);
    assert_int_equal(fake_count(f, "\"capabilities\":{}"), 1);
    fake_say(f, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"sampling/createMessage\",\"params\":{}}");
    fake_await(f, "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32601,");
}

static void the_caller_is_known_while_one_caller_has_calls(void **state)
{
    struct fake *f = *state;
    const struct mcp_caller first = { .name = "app one" }, second = { .name = "app two" };
    struct one a, b;

    f->handlers = (struct mcp_handlers){ .sample = give_sample, .arg = f };
    f->serve = serve_never;
    fake_open(f, MCP_ERA_HANDSHAKE);
    one_init(&a, f);
    one_init(&b, f);
    a.call.caller = &first;
    b.call.caller = &second;
    one_start(&a);
    fake_await(f, "\"id\":2,");
    f->n = 1;
    fake_say(f, "{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"method\":\"sampling/createMessage\",\"params\":{}}");
    fake_await(f, "\"id\":\"x\",\"result\"");
    one_start(&b);
    fake_await(f, "\"id\":3,");
    f->n = 0;
    fake_say(f, "{\"jsonrpc\":\"2.0\",\"id\":\"y\",\"method\":\"sampling/createMessage\",\"params\":{}}");
    fake_await(f, "\"id\":\"y\",\"result\"");
    mcp_client_close(f->client);
    one_join(&a);
    one_join(&b);
    one_clear(&a);
    one_clear(&b);
}

/* ---- to which call a question belongs ---- */

#define SAMPLE(id, meta)                                                                                               \
    "{\"jsonrpc\":\"2.0\",\"id\":\"" id "\",\"method\":\"sampling/createMessage\",\"params\":{" meta "}}"
#define OF_TASK(task) "\"_meta\":{\"io.modelcontextprotocol/related-task\":{\"taskId\":\"" task "\"}}"

/* Answers with the name of the caller as the model. */
static int name_caller(void *arg, const struct mcp_server_request *request, struct buf *ret, struct err *e)
{
    buf_printf(ret, "{\"model\":\"%s\"}", request->caller ? request->caller->name : "nobody");
    return 0;
}

static const struct mcp_caller app_one = { .name = "app one" }, app_two = { .name = "app two" };

static void two_open(struct fake *f, struct one *a, struct one *b)
{
    f->handlers = (struct mcp_handlers){ .sample = name_caller, .arg = f };
    fake_open(f, MCP_ERA_HANDSHAKE);
    one_init(a, f);
    one_init(b, f);
    a->call.caller = &app_one;
    b->call.caller = &app_two;
}

static void two_start(struct fake *f, struct one *a, struct one *b)
{
    two_open(f, a, b);
    one_start(a);
    fake_await(f, "\"id\":2,");
    one_start(b);
    fake_await(f, "\"id\":3,");
}

static void two_end(struct fake *f, struct one *a, struct one *b)
{
    mcp_client_close(f->client);
    one_join(a);
    one_join(b);
    one_clear(a);
    one_clear(b);
}

static void a_question_in_the_answer_of_a_call_belongs_to_this_call(void **state)
{
    struct fake *f = *state;
    struct one a, b;

    f->serve = serve_never;
    two_start(f, &a, &b);
    fake_say_within(f, 2, SAMPLE("q1", ""));
    fake_await(f, "\"id\":\"q1\",\"result\":{\"model\":\"app one\"}");
    fake_say_within(f, 3, SAMPLE("q2", ""));
    fake_await(f, "\"id\":\"q2\",\"result\":{\"model\":\"app two\"}");
    fake_say_within(f, 3, "[" SAMPLE("q3", "") "]");
    fake_await(f, "\"id\":\"q3\",\"result\":{\"model\":\"app two\"}");
    fake_say_within(f, 1, SAMPLE("q4", "")); /* over */
    fake_await(f, "\"id\":\"q4\",\"result\":{\"model\":\"nobody\"}");
    fake_say(f, SAMPLE("q5", "\"_meta\":{\"progressToken\":2}")); /* the server's own token, not ours */
    fake_await(f, "\"id\":\"q5\",\"result\":{\"model\":\"nobody\"}");
    two_end(f, &a, &b);
}

static atomic_int n_tasks;

/* The first call becomes the task "t1", the second "t2"; both go on. */
static void serve_tasks(struct fake *f, const struct json_rpc_frame *frame, const struct mcp_send *s)
{
    if (fake_begin(f, frame))
        return;
    if (strcmp(frame->method, "tools/list") == 0)
        fake_answer(f, frame,
                    "\"result\":{\"tools\":[{\"name\":\"t\",\"inputSchema\":{\"type\":\"object\"},"
                    "\"execution\":{\"taskSupport\":\"required\"}}]}");
    if (strcmp(frame->method, "tools/call") != 0)
        return;
    fake_sayf(f,
              "{\"jsonrpc\":\"2.0\",\"id\":%lld,\"result\":{\"task\":{\"taskId\":\"t%d\",\"status\":\"working\","
              "\"pollInterval\":30000}}}",
              (long long)frame->id.number, atomic_load(&n_tasks) + 1);
    atomic_fetch_add(&n_tasks, 1);
}

static bool has_tasks(void *n)
{
    return atomic_load(&n_tasks) == *(int *)n;
}

static void list_tools(struct fake *f)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct net_wait wait = net_wait_of(WAIT_MS, NULL, NULL);
    struct mcp_tools tools;

    assert_int_equal(mcp_client_tools(f->client, &(struct mcp_call){ .arena = a, .wait = &wait }, &tools, NULL), 0);
}

static void a_question_of_a_task_belongs_to_the_call_that_became_the_task(void **state)
{
    struct fake *f = *state;
    struct one a, b;

    atomic_store(&n_tasks, 0);
    f->serve = serve_tasks;
    two_open(f, &a, &b);
    list_tools(f);
    one_start(&a);
    assert_true(wait_until(has_tasks, &(int){ 1 }));
    one_start(&b);
    assert_true(wait_until(has_tasks, &(int){ 2 }));
    fake_say(f, SAMPLE("q1", OF_TASK("t1")));
    fake_await(f, "\"id\":\"q1\",\"result\":{\"model\":\"app one\"}");
    fake_say(f, SAMPLE("q2", OF_TASK("t2")));
    fake_await(f, "\"id\":\"q2\",\"result\":{\"model\":\"app two\"}");
    fake_say(f, SAMPLE("q3", OF_TASK("t3")));
    fake_await(f, "\"id\":\"q3\",\"result\":{\"model\":\"nobody\"}");
    fake_say(f, SAMPLE("q4", ""));
    fake_await(f, "\"id\":\"q4\",\"result\":{\"model\":\"nobody\"}");
    two_end(f, &a, &b);
}

/* ---- the time that a question takes ---- */

enum { QUIET_MS = 20, THINKING_MS = 5 * QUIET_MS };

struct thinker {
    struct fake *fake;
    atomic_int n_asked, n_ended;
};

/* Longer than the server may be silent, or until the request is over. */
static int think(void *arg, const struct mcp_server_request *request, struct buf *ret, struct err *e)
{
    const struct timespec pause = { .tv_nsec = 1000000 };
    const int64_t until_ms = clock_mono_ms() + THINKING_MS;
    struct thinker *t = arg;
    int64_t left_ms = 1;

    atomic_fetch_add(&t->n_asked, 1);
    fake_say(t->fake, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":2}}");
    while ((t->fake->n || clock_mono_ms() < until_ms) && left_ms > 0) {
        left_ms = net_wait_left(request->wait, e);
        nanosleep(&pause, NULL);
    }
    buf_add_str(ret, "{\"model\":\"m\"}");
    atomic_fetch_add(&t->n_ended, 1);
    return left_ms > 0 ? 0 : (int)left_ms;
}

/* Asks during the call, and answers the call when it has the answer to its question. */
static void serve_after_a_question(struct fake *f, const struct json_rpc_frame *frame, const struct mcp_send *s)
{
    if (frame->kind == JSON_RPC_RESULT)
        fake_say(f, "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"content\":[]}}");
    else if (!fake_begin(f, frame))
        fake_say(f, SAMPLE("q", ""));
}

static void serve_a_question_only(struct fake *f, const struct json_rpc_frame *frame, const struct mcp_send *s)
{
    if (frame->kind != JSON_RPC_RESULT && !fake_begin(f, frame))
        fake_say(f, SAMPLE("q", ""));
}

static void thinker_call(struct fake *f, struct thinker *t, struct one *o)
{
    *t = (struct thinker){ .fake = f };
    f->handlers = (struct mcp_handlers){ .sample = think, .arg = t };
    fake_open(f, MCP_ERA_HANDSHAKE);
    one_init(o, f);
    o->call.caller = &app_one;
    o->call.quiet_ms = QUIET_MS;
}

static void while_a_question_waits_the_server_is_not_silent(void **state)
{
    struct fake *f = *state;
    struct thinker t;
    struct one o;

    f->serve = serve_after_a_question;
    thinker_call(f, &t, &o);
    one_run(&o);
    if (o.r < 0)
        fail_msg("%s", o.e.text);
    one_clear(&o);
}

static void after_the_question_the_quiet_time_begins_anew(void **state)
{
    struct fake *f = *state;
    struct thinker t;
    struct one o;

    f->serve = serve_a_question_only;
    thinker_call(f, &t, &o);
    one_run(&o);
    assert_int_equal(o.r, -ETIMEDOUT);
    assert_string_equal(o.e.code, "MCP_TIMEOUT");
    assert_int_equal(atomic_load(&t.n_ended), 1);
    assert_int_equal(fake_count(f, "\"id\":\"q\",\"result\""), 1);
    one_clear(&o);
}

static bool has_ended(void *arg)
{
    return atomic_load(&((struct thinker *)arg)->n_ended) > 0;
}

static void the_last_deadline_of_a_call_counts_while_a_question_waits(void **state)
{
    struct fake *f = *state;
    struct thinker t;
    struct one o;

    f->serve = serve_a_question_only;
    thinker_call(f, &t, &o);
    f->n = 1;                                           /* thinks for ever */
    o.wait = net_wait_of(20 * THINKING_MS, NULL, NULL); /* a busy machine starts the handler late */
    one_run(&o);
    assert_int_equal(o.r, -ETIMEDOUT);
    assert_int_equal(atomic_load(&t.n_asked), 1);
    assert_true(wait_until(has_ended, &t));
    assert_int_equal(fake_count(f, "\"id\":\"q\",\"result\""), 0);
    one_clear(&o);
}

/* Waits until its request is over, as a person would who never answers. */
static int wait_for_ever(void *arg, const struct mcp_server_request *request, struct buf *ret, struct err *e)
{
    const struct timespec pause = { .tv_nsec = 1000000 };
    int64_t left_ms;

    atomic_fetch_add((atomic_int *)arg, 1);
    while ((left_ms = net_wait_left(request->wait, e)) > 0)
        nanosleep(&pause, NULL);
    atomic_fetch_sub((atomic_int *)arg, 1);
    return (int)left_ms;
}

static bool none_waits(void *arg)
{
    return atomic_load((atomic_int *)arg) == 0;
}

static bool all_wait(void *arg)
{
    return atomic_load((atomic_int *)arg) == LIMIT_MCP_REQUESTS;
}

static void a_flood_of_requests_is_bounded_and_delays_no_ping(void **state)
{
    struct fake *f = *state;
    atomic_int n_waiting = 0;

    f->handlers = (struct mcp_handlers){ .sample = wait_for_ever, .arg = &n_waiting };
    f->serve = serve_never;
    fake_open(f, MCP_ERA_HANDSHAKE);
    for (int i = 0; i < LIMIT_MCP_REQUESTS; i++)
        fake_sayf(f, "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"sampling/createMessage\",\"params\":{}}", i);
    assert_true(wait_until(all_wait, &n_waiting));
    for (int i = 0; i < LIMIT_MCP_REQUESTS_WAITING; i++)
        fake_sayf(f, "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"sampling/createMessage\",\"params\":{}}", 100 + i);
    assert_int_equal(counts_of(f).n_refused, 0);
    fake_say(f, "{\"jsonrpc\":\"2.0\",\"id\":999,\"method\":\"sampling/createMessage\",\"params\":{}}");
    assert_int_equal(counts_of(f).n_refused, 1);
    fake_say(f, "{\"jsonrpc\":\"2.0\",\"id\":\"p\",\"method\":\"ping\"}");
    fake_await(f, "{\"jsonrpc\":\"2.0\",\"id\":\"p\",\"result\":{}}");
    mcp_client_close(f->client);
    assert_int_equal(atomic_load(&n_waiting), 0);
}

static void a_request_that_the_server_takes_back_gets_no_answer(void **state)
{
    struct fake *f = *state;
    atomic_int n_waiting = 0;

    f->handlers = (struct mcp_handlers){ .sample = wait_for_ever, .arg = &n_waiting };
    f->serve = serve_never;
    fake_open(f, MCP_ERA_HANDSHAKE);
    fake_say(f, "{\"jsonrpc\":\"2.0\",\"id\":\"s\",\"method\":\"sampling/createMessage\",\"params\":{}}");
    fake_say(f, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":\"s\"}}");
    fake_say(f, "{\"jsonrpc\":\"2.0\",\"id\":\"p\",\"method\":\"ping\"}");
    fake_await(f, "\"id\":\"p\"");
    assert_true(wait_until(none_waits, &n_waiting));
    mcp_client_close(f->client);
    assert_int_equal(fake_count(f, "\"id\":\"s\""), 0);
}

/* ---- notifications ---- */

static void note_changed(void *arg, enum mcp_list what)
{
    struct fake *f = arg;

    f->n += what == MCP_LIST_TOOLS ? 1 : what == MCP_LIST_PROMPTS ? 10 : 100;
}

static void note_updated(void *arg, const char *uri)
{
    struct fake *f = arg;

    assert_string_equal(uri, "file:///x");
    f->n += 1000;
}

static void note_logged(void *arg, struct json_value params)
{
    struct fake *f = arg;

    f->n += 10000;
}

static void notifications_reach_their_handlers(void **state)
{
    struct fake *f = *state;

    f->handlers =
        (struct mcp_handlers){ .changed = note_changed, .updated = note_updated, .logged = note_logged, .arg = f };
    f->serve = serve_never;
    fake_open(f, MCP_ERA_HANDSHAKE);
    f->n = 0;
    fake_say(f, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}");
    fake_say(f, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/prompts/list_changed\"}");
    fake_say(f, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/resources/list_changed\",\"params\":{}}");
    fake_say(f,
             "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/resources/updated\",\"params\":{\"uri\":\"file:///x\"}}");
    fake_say(f, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/resources/updated\",\"params\":{\"uri\":1}}");
    fake_say(f, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"info\"}}");
    fake_say(f, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/nobody/knows\"}");
    assert_int_equal(f->n, 11111);
}

static void a_flood_of_log_messages_is_thinned(void **state)
{
    struct fake *f = *state;
    int64_t begun_ms, took_s;

    f->handlers = (struct mcp_handlers){ .logged = note_logged, .arg = f };
    f->serve = serve_never;
    fake_open(f, MCP_ERA_HANDSHAKE);
    f->n = 0;
    begun_ms = clock_mono_ms();
    for (int i = 0; i < 10 * LIMIT_MCP_LOGS_A_SECOND; i++)
        fake_say(f, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{}}");
    took_s = (clock_mono_ms() - begun_ms) / 1000;
    assert_in_range(f->n / 10000, LIMIT_MCP_LOGS_A_SECOND, LIMIT_MCP_LOGS_A_SECOND * (took_s + 2));
}

int main(void)
{
#define WITH_FAKE(test) cmocka_unit_test_setup_teardown(test, fake_set_up, fake_tear_down)
    const struct CMUnitTest tests[] = {
        WITH_FAKE(requests_of_the_server_are_answered_with_their_ids),
        WITH_FAKE(without_handlers_nothing_is_announced),
        WITH_FAKE(the_caller_is_known_while_one_caller_has_calls),
        WITH_FAKE(a_question_in_the_answer_of_a_call_belongs_to_this_call),
        WITH_FAKE(a_question_of_a_task_belongs_to_the_call_that_became_the_task),
        WITH_FAKE(while_a_question_waits_the_server_is_not_silent),
        WITH_FAKE(after_the_question_the_quiet_time_begins_anew),
        WITH_FAKE(the_last_deadline_of_a_call_counts_while_a_question_waits),
        WITH_FAKE(a_flood_of_requests_is_bounded_and_delays_no_ping),
        WITH_FAKE(a_request_that_the_server_takes_back_gets_no_answer),
        WITH_FAKE(notifications_reach_their_handlers),
        WITH_FAKE(a_flood_of_log_messages_is_thinned),
    };

    return hash_init(NULL) < 0 || cmocka_run_group_tests(tests, NULL, NULL);
}
