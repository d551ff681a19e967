/* Whole chats: turns on the loop of fixture.h, with workers that read large answers. */
#include "fixture.h"

#include "base/pool.h"
#include "llm/call.h"
#include "llm/whole.h"

struct chats {
    struct fixture fixture;
    struct pool *workers;
    struct llm_turns *turns;
};

struct chat {
    struct chats *of;
    struct llm_whole_start start;
    struct llm_whole *whole;
    int r;
    struct err *e;
    atomic_bool is_done;
};

static void open_turns(void *arg)
{
    struct chats *c = arg;

    assert_int_equal(llm_turns_new(c->fixture.rig.loop, c->fixture.settings, c->workers, &c->turns, NULL), 0);
}

static void free_turns(void *arg)
{
    struct chats *c = arg;

    c->turns = llm_turns_free(c->turns);
}

static void chats_open(struct chats *c, const char *first, const char *fallback)
{
    const struct pool_config config = { .name = "readers", .n_min = 1, .n_max = 1, .max_waiting = 100 };

    fixture_open(&c->fixture, first, fallback);
    assert_int_equal(pool_start(&config, &c->workers, NULL), 0);
    loop_call(c->fixture.rig.loop, open_turns, c);
}

static void chats_close(struct chats *c)
{
    c->workers = pool_stop(c->workers);
    loop_call(c->fixture.rig.loop, free_turns, c);
    fixture_close(&c->fixture);
}

static void done(void *arg, struct llm_whole *whole, int r, const struct err *e)
{
    struct chat *chat = arg;

    assert_ptr_equal(chat->whole, whole);
    chat->r = r;
    if (r < 0)
        *chat->e = *e;
    atomic_store(&chat->is_done, true);
}

static bool is_done(void *arg)
{
    return atomic_load(&((struct chat *)arg)->is_done);
}

static void start(void *arg)
{
    struct chat *chat = arg;

    llm_whole_start(chat->of->turns, &chat->start, &chat->whole);
}

static void cancel(void *arg)
{
    llm_whole_cancel(((struct chat *)arg)->whole);
}

static void free_whole(void *whole)
{
    llm_whole_free(whole);
}

/* The chat takes over the plan and its arena and ends with the fixture's arena. */
static struct chat *begin_with(struct chats *c, struct arena *a, const struct llm_plan *plan)
{
    struct chat *chat = ARENA_NEW(c->fixture.a, struct chat);

    *chat = (struct chat){ .of = c,
                           .start = { .arena = a, .plan = plan, .done = done, .arg = chat },
                           .e = ARENA_NEW(c->fixture.a, struct err) };
    loop_call(c->fixture.rig.loop, start, chat);
    return chat;
}

static struct chat *begin(struct chats *c)
{
    struct arena *a = arena_new();

    return begin_with(c, a, fixture_plan(&c->fixture, a, a, false));
}

static struct chat *finish(struct chat *chat)
{
    assert_true(wait_until(is_done, chat));
    arena_defer(chat->of->fixture.a, free_whole, chat->whole);
    return chat;
}

static struct chat *call(struct chats *c)
{
    return finish(begin(c));
}

static const char *text_of(const struct chat *chat)
{
    return buf_str(&chat->whole->answer.text);
}

static void an_answer_says_who_gave_it(void **state)
{
    AUTO(chats_close) struct chats c = { 0 };
    const struct llm_usage *used;
    struct chat *chat;

    chats_open(&c, "/", NULL);
    chat = call(&c);
    assert_int_equal(chat->r, 0);
    assert_string_equal(text_of(chat), "all at once");
    assert_string_equal(chat->whole->progress.provider, "one");
    assert_string_equal(chat->whole->progress.model, "m-1");
    used = &chat->whole->answer.usage;
    assert_true(used->is_estimated && used->completion_tokens > 0 && used->prompt_tokens > 0);
    assert_true(chat->whole->upstream_us > 0 && chat->whole->progress.duration_s > 0);
}

static void a_large_answer_is_read_by_a_worker(void **state)
{
    AUTO(chats_close) struct chats c = { 0 };
    struct chat *chat;

    chats_open(&c, "/bulky", NULL);
    chat = call(&c);
    assert_int_equal(chat->r, 0);
    assert_int_equal(chat->whole->answer.text.n, strlen("bulky.") + N_BULKY);
    assert_int_equal(chat->whole->answer.usage.completion_tokens, 5);
}

static void a_failure_that_may_pass_is_tried_again(void **state)
{
    AUTO(chats_close) struct chats c = { 0 };

    chats_open(&c, "/second", NULL);
    assert_int_equal(call(&c)->r, 0);
    assert_int_equal(atomic_load(&c.fixture.n_requested), 2);
}

static void what_does_not_pass_is_reported_after_the_last_attempt(void **state)
{
    static const struct {
        const char *path;
        int r;
        const char *code, *words;
        int n_requested;
        int64_t retry_after_ms;
    } cases[] = {
        { "/unwilling", -EAGAIN, "LLM_ERROR", "one fails (503): not now", 2, 0 },
        { "/limited", -EBUSY, "RATE_LIMIT", "slow down", 1, 20000 },
        { "/locked", -EIO, "LLM_ERROR", "bad key", 1, 0 },
        { "/garbage", -EBADMSG, "LLM_ERROR", "no JSON", 1, 0 },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        AUTO(chats_close) struct chats c = { 0 };
        struct chat *chat;

        chats_open(&c, cases[i].path, NULL);
        chat = call(&c);
        assert_int_equal(chat->r, cases[i].r);
        assert_string_equal(chat->e->code, cases[i].code);
        if (i != 3)
            assert_non_null(strstr(chat->e->text, cases[i].words));
        assert_int_equal(atomic_load(&c.fixture.n_requested), cases[i].n_requested);
        assert_int_equal(chat->whole->retry_after_ms, cases[i].retry_after_ms);
    }
}

enum { LARGE_TEXT = 60 << 20, ACCOUNTS = 5 };

/* The request to each account needs twice the text's size. */
static void of_a_chat_that_fills_the_memory_fewer_accounts_are_planned_for(void **state)
{
    AUTO(fixture_close) struct fixture d = { .flag = "llm.fallbacks=b,c,d,e" };
    char *text;
    struct llm_block block = { LLM_BLOCK_TEXT };
    struct llm_message message = { .role = LLM_USER, .blocks = &block, .n_blocks = 1 };
    const struct llm_request request = { .messages = &message, .n_messages = 1, .max_tokens = 1 };
    struct llm_plan *plan;
    struct err e = { 0 };

    fixture_open(&d, "/", NULL);
    for (size_t i = 1; i < ACCOUNTS; i++)
        fixture_add(&d, (const char[]){ (char)('a' + i), '\0' }, "/");
    text = arena_alloc(d.a, LARGE_TEXT + 1);
    memset(text, 'x', LARGE_TEXT);
    block.text = text;
    plan = ARENA_NEW(d.a, struct llm_plan);
    assert_int_equal(llm_plan_make(d.accounts, NULL, &request, d.a, NULL, plan, &e), 0);
    assert_int_equal(plan->picks.n, 3); /* the fourth would start when LIMIT_LLM_PLAN_BYTES are used */
}

static void another_account_answers_when_the_first_cannot(void **state)
{
    static const char *const first[] = { "/locked", "/limited", "/unwilling", NULL };

    for (size_t i = 0; i < ARRAY_SIZE(first); i++) {
        AUTO(arena_freep) struct arena *a = arena_new();
        AUTO(chats_close) struct chats c = { 0 };
        struct chat *chat;

        chats_open(&c, first[i] ? first[i] : arena_printf(a, "http://127.0.0.1:%u/v1", dead_port()), "/");
        chat = call(&c);
        assert_int_equal(chat->r, 0);
        assert_string_equal(chat->whole->progress.provider, "other");
    }
}

/* of `other`, because its answer's text is no JSON */
static struct chat *call_for_json(struct chats *c)
{
    static const struct llm_block block = { LLM_BLOCK_TEXT, .text = "hi" };
    static const struct llm_message message = { .role = LLM_USER, .blocks = &block, .n_blocks = 1 };
    static const struct llm_request json = {
        .messages = &message, .n_messages = 1, .max_tokens = 10, .format = LLM_FORMAT_JSON
    };
    struct llm_account strict = { .name = "one",
                                  .preset = llm_preset_find("minimax"),
                                  .model = "m",
                                  .api_key = "k",
                                  .base_url = rig_url(&c->fixture.rig, "/v1") };
    struct arena *a = arena_new();
    struct llm_plan *plan = ARENA_NEW(a, struct llm_plan);
    struct err e = { 0 };

    assert_int_equal(llm_accounts_put(c->fixture.accounts, &strict, &e), 0);
    assert_int_equal(llm_plan_make(c->fixture.accounts, NULL, &json, a, NULL, plan, &e), 0);
    return finish(begin_with(c, a, plan));
}

static void the_tokens_of_an_answer_that_could_not_be_used_are_kept(void **state)
{
    AUTO(chats_close) struct chats c = { 0 };
    struct chat *chat;

    chats_open(&c, "/", "/");
    chat = call_for_json(&c);
    assert_int_equal(chat->r, 0);
    assert_string_equal(chat->whole->progress.provider, "other");
    assert_int_equal(atomic_load(&c.fixture.n_requested), 2);
    assert_true(chat->whole->lost.prompt_tokens > 0 && chat->whole->lost.completion_tokens > 0);
    assert_true(llm_whole_usage(chat->whole).prompt_tokens > chat->whole->lost.prompt_tokens);
}

static void a_silent_upstream_is_given_up_in_time(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    AUTO(chats_close) struct chats c = { .fixture.flag = "llm.first_byte_s=0.2" };
    struct raw_peer peer;
    struct chat *chat;

    raw_open(&peer, "", RAW_HANG);
    chats_open(&c, arena_printf(a, "http://127.0.0.1:%u/v1", peer.port), NULL);
    chat = call(&c);
    assert_int_equal(chat->r, -ETIMEDOUT);
    assert_string_equal(chat->e->code, "LLM_ERROR");
    assert_string_equal(chat->e->extras[0].value, "UPSTREAM_TIMEOUT");
    assert_non_null(strstr(chat->e->text, "did not begin its answer"));
    raw_close(&peer);
}

static bool has_heard(void *arg)
{
    return atomic_load(&((struct raw_peer *)arg)->has_heard);
}

static bool has_left(void *arg)
{
    return atomic_load(&((struct raw_peer *)arg)->has_left);
}

static void a_chat_that_is_cancelled_leaves_its_upstream(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    AUTO(chats_close) struct chats c = { 0 };
    struct raw_peer peer;
    struct chat *chat;

    raw_open(&peer, "", RAW_HANG);
    chats_open(&c, arena_printf(a, "http://127.0.0.1:%u/v1", peer.port), NULL);
    chat = begin(&c);
    assert_true(wait_until(has_heard, &peer));
    loop_call(c.fixture.rig.loop, cancel, chat);
    finish(chat);
    assert_int_equal(chat->r, -ECANCELED);
    assert_string_equal(chat->whole->progress.provider, "one");
    assert_true(wait_until(has_left, &peer));
    raw_close(&peer);
}

static void many_chats_wait_at_a_time(void **state)
{
    AUTO(chats_close) struct chats c = { 0 };
    struct chat *chats[64];

    chats_open(&c, "/second", "/bulky");
    for (size_t i = 0; i < ARRAY_SIZE(chats); i++)
        chats[i] = begin(&c);
    for (size_t i = 0; i < ARRAY_SIZE(chats); i++)
        assert_int_equal(finish(chats[i])->r, 0);
}

static void a_trial_asks_once(void **state)
{
    AUTO(fixture_close) struct fixture d = { 0 };
    struct llm_outcome out = { 0 };
    struct err e = { 0 };

    fixture_open(&d, "/second", "/");
    assert_int_equal(llm_call_once(fixture_plan(&d, d.a, d.a, false), d.a, NULL, &out, &e), -EAGAIN);
    assert_string_equal(out.provider, "one");
    assert_int_equal(llm_call_once(fixture_plan(&d, d.a, d.a, false), d.a, NULL, &out, &e), 0);
    assert_string_equal(buf_str(&out.answer->text), "all at once");
    assert_string_equal(out.model, "m-1");
    assert_int_equal(atomic_load(&d.n_requested), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_says_who_gave_it),
        cmocka_unit_test(a_large_answer_is_read_by_a_worker),
        cmocka_unit_test(a_failure_that_may_pass_is_tried_again),
        cmocka_unit_test(what_does_not_pass_is_reported_after_the_last_attempt),
        cmocka_unit_test(of_a_chat_that_fills_the_memory_fewer_accounts_are_planned_for),
        cmocka_unit_test(another_account_answers_when_the_first_cannot),
        cmocka_unit_test(the_tokens_of_an_answer_that_could_not_be_used_are_kept),
        cmocka_unit_test(a_silent_upstream_is_given_up_in_time),
        cmocka_unit_test(a_chat_that_is_cancelled_leaves_its_upstream),
        cmocka_unit_test(many_chats_wait_at_a_time),
        cmocka_unit_test(a_trial_asks_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
