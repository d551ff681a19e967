/* Chats for an app, without an HTTP request: whole, into a sink, refused, cancelled; each counted once. */
#include "rig.h"

#include "models/chat.h"

struct asking {
    struct models_rig *of;
    struct llm_sink sink;
    char heard[200]; /* deltas, separated by | */
    atomic_int n_deltas;
    int n_wanted; /* more than n_wanted are refused; 0: all are taken */
    size_t n_bytes;
    int r;
    char code[40], provider[40], text[200];
    bool is_whole; /* there was an answer struct */
    atomic_bool is_done;
};

static int hear(void *arg, struct slice text)
{
    struct asking *k = arg;
    size_t n = strlen(k->heard);

    if (k->n_wanted > 0 && atomic_load(&k->n_deltas) >= k->n_wanted)
        return -EPIPE;
    k->n_bytes += text.n;
    if (text.n < sizeof(k->heard) - n)
        snprintf(k->heard + n, sizeof(k->heard) - n, "%.*s|", (int)text.n, text.p);
    atomic_fetch_add(&k->n_deltas, 1);
    return 0;
}

static int hear_end(void *arg, enum llm_finish why, const struct llm_usage *usage, const char *model)
{
    struct asking *k = arg;
    size_t n = strlen(k->heard);

    snprintf(k->heard + n, sizeof(k->heard) - n, "%s %s %d", llm_finish_name(why), model,
             (int)usage->completion_tokens);
    return 0;
}

static void done(void *arg, struct llm_whole *whole, int r, const struct err *e)
{
    struct asking *k = arg;

    k->r = r;
    k->is_whole = whole;
    if (r < 0)
        snprintf(k->code, sizeof(k->code), "%s", e->code);
    if (whole && whole->progress.provider)
        snprintf(k->provider, sizeof(k->provider), "%s", whole->progress.provider);
    if (r == 0)
        snprintf(k->text, sizeof(k->text), "%s", buf_str(&whole->answer.text));
    llm_whole_free(whole);
    atomic_store(&k->is_done, true);
}

static bool is_done(void *arg)
{
    return atomic_load(&((struct asking *)arg)->is_done);
}

/* The request ends before the answer comes. */
static int prepare(struct models_call *call, const char *provider, bool is_streamed, struct chat **ret, struct err *e)
{
    static const struct llm_block block = { LLM_BLOCK_TEXT, .text = "hi" };
    static const struct llm_message message = { .role = LLM_USER, .blocks = &block, .n_blocks = 1 };
    AUTO(arena_freep) struct arena *a = arena_new();
    struct llm_request *request = ARENA_NEW(a, struct llm_request);

    *request =
        (struct llm_request){ .messages = &message, .n_messages = 1, .max_tokens = 10, .is_streamed = is_streamed };
    return chat_prepare(call, &(struct chat_job){ .provider = provider, .request = request, .arena = a }, ret, e);
}

static struct asking *start_with(struct models_call *call, struct models_rig *x, const char *provider, bool is_streamed)
{
    struct asking *k = ARENA_NEW(x->f.a, struct asking);
    struct chat *chat = NULL;
    struct err e = { 0 };

    k->of = x;
    k->sink = (struct llm_sink){ .on_text = hear, .on_end = hear_end, .arg = k };
    must(prepare(call, provider, is_streamed, &chat, &e), &e);
    chat_start(chat, &(struct chat_client){ .done = done, .sink = is_streamed ? &k->sink : NULL, .arg = k });
    return k;
}

static struct asking *finish(struct asking *k)
{
    assert_true(wait_until(is_done, k));
    return k;
}

static void a_chat_for_an_app_needs_no_request(void **state)
{
    AUTO(models_close) struct models_rig x = { 0 };
    struct models_call call;
    struct asking *k;

    models_open(&x);
    allow(&x, PERM_LLM_CHAT);
    call = call_of(&x);
    assert_false(chat_waits(&call, "one", "m"));
    k = finish(start_with(&call, &x, NULL, false));
    assert_int_equal(k->r, 0);
    assert_string_equal(k->text, "all at once");
    assert_string_equal(k->provider, "one");
    assert_int_equal(counted(&x).requests, 1);
    assert_int_equal(counted(&x).prompt_tokens, 3);
    assert_int_equal(counted(&x).completion_tokens, 5);
}

static void a_stream_goes_into_a_sink(void **state)
{
    AUTO(models_close) struct models_rig x = { 0 };
    struct models_call call;
    struct asking *k;

    models_open(&x);
    allow(&x, PERM_LLM_CHAT);
    call = call_of(&x);
    k = finish(start_with(&call, &x, NULL, true));
    assert_int_equal(k->r, 0);
    assert_string_equal(k->heard, "Hel|lo|stop m-1 5");
    assert_string_equal(k->text, "Hello");
    assert_int_equal(counted(&x).requests, 1);
    assert_int_equal(counted(&x).failed, 0);
    assert_int_equal(counted(&x).completion_tokens, 5);
}

static void a_large_answer_reaches_the_sink_from_a_worker(void **state)
{
    AUTO(models_close) struct models_rig x = { 0 };
    struct models_call call;
    struct asking *k;

    models_open(&x);
    allow(&x, PERM_LLM_CHAT);
    add_account(&x, "bulky", rig_url(&x.provider, "/bulky/v1"));
    call = call_of(&x);
    k = finish(start_with(&call, &x, "bulky", true));
    assert_int_equal(k->r, 0);
    assert_int_equal(k->n_bytes, N_BULKY);
    assert_int_equal(counted(&x).requests, 1);
}

static void what_a_sink_has_received_is_not_sent_again(void **state)
{
    AUTO(models_close) struct models_rig x = { 0 };
    struct models_call call;
    struct asking *k;

    models_open(&x);
    allow(&x, PERM_LLM_CHAT);
    add_account(&x, "one", rig_url(&x.provider, "/cut/v1"));
    add_account(&x, "two", rig_url(&x.provider, "/v1"));
    call = call_of(&x);
    k = finish(start_with(&call, &x, NULL, true));
    assert_true(k->r < 0 && k->r != -ECANCELED);
    assert_string_equal(k->heard, "Hel|lo|");
    assert_string_equal(k->provider, "one");
    assert_int_equal(atomic_load(&x.n_requested), 1);
    assert_int_equal(counted(&x).requests, 1);
    assert_int_equal(counted(&x).failed, 1);
}

static void a_stream_that_has_not_begun_falls_back(void **state)
{
    AUTO(models_close) struct models_rig x = { 0 };
    struct models_call call;
    struct asking *k;

    models_open(&x);
    allow(&x, PERM_LLM_CHAT);
    add_account(&x, "one", "http://127.0.0.1:1/v1");
    add_account(&x, "two", rig_url(&x.provider, "/v1"));
    call = call_of(&x);
    k = finish(start_with(&call, &x, NULL, true));
    assert_int_equal(k->r, 0);
    assert_string_equal(k->heard, "Hel|lo|stop m-1 5");
    assert_string_equal(k->provider, "two");
    assert_int_equal(counted(&x).requests, 1);
}

static void a_sink_that_takes_no_more_ends_the_chat(void **state)
{
    AUTO(models_close) struct models_rig x = { 0 };
    struct models_call call;
    struct chat *chat = NULL;
    struct asking *k;
    struct err e = { 0 };

    models_open(&x);
    allow(&x, PERM_LLM_CHAT);
    call = call_of(&x);
    must(prepare(&call, NULL, true, &chat, &e), &e);
    k = ARENA_NEW(x.f.a, struct asking);
    k->n_wanted = 1;
    k->sink = (struct llm_sink){ .on_text = hear, .on_end = hear_end, .arg = k };
    chat_start(chat, &(struct chat_client){ .done = done, .sink = &k->sink, .arg = k });
    finish(k);
    assert_int_equal(k->r, -ECANCELED);
    assert_string_equal(k->code, "SHUTTING_DOWN");
    assert_string_equal(k->heard, "Hel|");
    assert_int_equal(counted(&x).requests, 1);
    assert_int_equal(counted(&x).failed, 1);
    assert_int_equal(counted(&x).estimated, 1);
    assert_int_equal(atomic_load(&x.n_requested), 1);
}

static void a_chat_without_a_grant_is_refused(void **state)
{
    AUTO(models_close) struct models_rig x = { 0 };
    struct models_call call;
    struct chat *chat = NULL;
    struct err e = { 0 };

    models_open(&x);
    call = call_of(&x);
    assert_int_equal(prepare(&call, NULL, false, &chat, &e), -EPERM);
    assert_string_equal(e.code, "PERMISSION_REQUIRED");
    assert_int_equal(atomic_load(&x.n_requested), 0);
    assert_int_equal(counted(&x).requests, 0);
    assert_int_equal(count_pending(&x.f), 1); /* the person is asked, as for a request */
}

static void a_chat_without_a_service_is_refused(void **state)
{
    AUTO(models_close) struct models_rig x = { 0 };
    struct models_call call;
    struct chat *chat = NULL;
    struct err e = { 0 };

    models_open(&x);
    allow(&x, PERM_LLM_CHAT);
    x.models.llm_turns = NULL;
    call = call_of(&x);
    assert_int_equal(prepare(&call, NULL, false, &chat, &e), -ENOTSUP);
    assert_string_equal(e.code, "NOT_SERVING");
}

static void a_chat_beyond_the_limits_says_when_there_is_room(void **state)
{
    AUTO(models_close) struct models_rig x = { 0 };
    const struct rate_row row = { RATE_OF_APP, APP, { 1, RATE_BY_SETTING, RATE_BY_SETTING, RATE_BY_SETTING } };
    struct models_call call;
    struct chat *chat = NULL;
    struct err e = { 0 };

    models_open(&x);
    allow(&x, PERM_LLM_CHAT);
    must(meter_limit(x.meter, &row, &e), &e);
    call = call_of(&x);
    finish(start_with(&call, &x, NULL, false));
    assert_int_equal(call.retry_after_ms, 0);
    assert_int_equal(prepare(&call, NULL, false, &chat, &e), -EBUSY);
    assert_string_equal(e.code, "RATE_LIMIT");
    assert_true(call.retry_after_ms > 0);
    assert_int_equal(counted(&x).requests, 1);
}

static void a_chat_that_no_provider_takes_counts_for_nothing(void **state)
{
    AUTO(models_close) struct models_rig x = { 0 };
    struct meter_state used;
    struct models_call call;
    struct chat *chat = NULL;
    struct err e = { 0 };

    models_open(&x);
    allow(&x, PERM_LLM_CHAT);
    call = call_of(&x);
    assert_int_equal(prepare(&call, "nobody", false, &chat, &e), -EINVAL);
    assert_string_equal(e.code, "PROVIDER_UNAVAILABLE");
    meter_show(x.meter, RATE_OF_APP, APP, &used);
    assert_int_equal(used.used[RATE_REQUESTS_A_DAY], 0);
}

static void a_provider_that_refuses_is_counted_once_as_failed(void **state)
{
    AUTO(models_close) struct models_rig x = { 0 };
    struct models_call call;
    struct asking *k;

    models_open(&x);
    allow(&x, PERM_LLM_CHAT);
    atomic_store(&x.is_refusing, true);
    call = call_of(&x);
    k = finish(start_with(&call, &x, NULL, false));
    assert_true(k->r < 0 && *k->code);
    assert_int_equal(counted(&x).requests, 1);
    assert_int_equal(counted(&x).failed, 1);
}

/* ---- the cancel flag ---- */

static void a_cancelled_chat_sends_nothing(void **state)
{
    AUTO(models_close) struct models_rig x = { 0 };
    atomic_bool is_gone = false;
    struct models_call call;
    struct chat *chat = NULL;
    struct asking *k;
    struct err e = { 0 };

    models_open(&x);
    allow(&x, PERM_LLM_CHAT);
    call = call_of(&x);
    call.is_gone = &is_gone;
    must(prepare(&call, NULL, false, &chat, &e), &e);
    atomic_store(&is_gone, true);
    k = ARENA_NEW(x.f.a, struct asking);
    chat_start(chat, &(struct chat_client){ .done = done, .arg = k });
    finish(k);
    assert_int_equal(k->r, -ECANCELED);
    assert_false(k->is_whole);
    assert_int_equal(atomic_load(&x.n_requested), 0);
    assert_int_equal(counted(&x).requests, 0);
}

static bool has_deltas(void *arg)
{
    return atomic_load(&((struct asking *)arg)->n_deltas) > 0;
}

/* says: what the provider sends before it falls silent. */
static struct asking *cancel_while_silent(struct models_rig *x, const char *says, bool is_streamed)
{
    struct raw_peer silent = { 0 };
    atomic_bool is_gone = false;
    struct models_call call = call_of(x);
    struct asking *k;

    add_silent(x, &silent, says);
    call.is_gone = &is_gone;
    k = start_with(&call, x, "silent", is_streamed);
    assert_true(wait_until(has_heard, &silent));
    assert_true(!is_streamed || wait_until(has_deltas, k));
    assert_false(is_done(k));
    atomic_store(&is_gone, true);
    finish(k);
    assert_true(wait_until(has_left, &silent));
    raw_close(&silent);
    return k;
}

static void the_flag_ends_a_chat_that_waits(void **state)
{
    AUTO(models_close) struct models_rig x = { 0 };
    struct asking *k;

    models_open(&x);
    allow(&x, PERM_LLM_CHAT);
    k = cancel_while_silent(&x, "", false);
    assert_int_equal(k->r, -ECANCELED);
    assert_string_equal(k->code, "SHUTTING_DOWN");
    assert_int_equal(counted(&x).requests, 1);
    assert_int_equal(counted(&x).failed, 1);
}

static void the_flag_ends_a_stream(void **state)
{
    AUTO(models_close) struct models_rig x = { 0 };
    struct asking *k;

    models_open(&x);
    allow(&x, PERM_LLM_CHAT);
    k = cancel_while_silent(&x, "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: " CHUNK("Hel") "\n\n",
                            true);
    assert_int_equal(k->r, -ECANCELED);
    assert_string_equal(k->heard, "Hel|");
    assert_int_equal(counted(&x).requests, 1);
    assert_int_equal(counted(&x).failed, 1);
    assert_true(counted(&x).completion_tokens > 0); /* what came was paid for */
}

static void a_chat_ends_with_the_service(void **state)
{
    AUTO(models_close) struct models_rig x = { 0 };
    struct raw_peer silent = { 0 };
    struct models_call call;
    struct asking *k;

    models_open(&x);
    allow(&x, PERM_LLM_CHAT);
    add_silent(&x, &silent, "");
    call = call_of(&x);
    k = start_with(&call, &x, "silent", false);
    assert_true(wait_until(has_heard, &silent));
    loop_call(x.provider.loop, free_turns, &x);
    finish(k);
    assert_int_equal(k->r, -ECANCELED);
    raw_close(&silent);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_chat_for_an_app_needs_no_request),
        cmocka_unit_test(a_stream_goes_into_a_sink),
        cmocka_unit_test(a_large_answer_reaches_the_sink_from_a_worker),
        cmocka_unit_test(what_a_sink_has_received_is_not_sent_again),
        cmocka_unit_test(a_stream_that_has_not_begun_falls_back),
        cmocka_unit_test(a_sink_that_takes_no_more_ends_the_chat),
        cmocka_unit_test(a_chat_without_a_grant_is_refused),
        cmocka_unit_test(a_chat_without_a_service_is_refused),
        cmocka_unit_test(a_chat_beyond_the_limits_says_when_there_is_room),
        cmocka_unit_test(a_chat_that_no_provider_takes_counts_for_nothing),
        cmocka_unit_test(a_provider_that_refuses_is_counted_once_as_failed),
        cmocka_unit_test(a_cancelled_chat_sends_nothing),
        cmocka_unit_test(the_flag_ends_a_chat_that_waits),
        cmocka_unit_test(the_flag_ends_a_stream),
        cmocka_unit_test(a_chat_ends_with_the_service),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
