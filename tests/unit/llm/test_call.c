#include "desk.h"

#include "llm/call.h"

static int call(struct desk *d, struct llm_outcome *out, struct err *e)
{
    return llm_call(desk_plan(d, d->a, d->a, false), d->settings, d->a, NULL, out, e);
}

static void an_answer_says_who_gave_it(void **state)
{
    AUTO(desk_close) struct desk d = { 0 };
    struct llm_outcome out = { 0 };
    struct err e = { 0 };

    desk_open(&d, "/", NULL);
    assert_int_equal(call(&d, &out, &e), 0);
    assert_string_equal(buf_str(&out.answer->text), "all at once");
    assert_string_equal(out.provider, "one");
    assert_string_equal(out.model, "m-1");
    assert_true(out.answer->usage.is_estimated && out.answer->usage.completion_tokens > 0 && out.answer->usage.prompt_tokens > 0);
    assert_true(out.upstream_us > 0);
}

static void a_failure_that_may_pass_is_tried_again(void **state)
{
    AUTO(desk_close) struct desk d = { 0 };
    struct llm_outcome out = { 0 };
    struct err e = { 0 };

    desk_open(&d, "/second", NULL);
    assert_int_equal(call(&d, &out, &e), 0);
    assert_int_equal(atomic_load(&d.n_asked), 2);
}

static void what_does_not_pass_is_told_after_the_last_attempt(void **state)
{
    static const struct { const char *path; int r; const char *code, *words; int n_asked; int64_t retry_after_ms; } cases[] = {
        { "/unwilling", -EAGAIN, "LLM_ERROR", "one fails (503): not now", 2, 0 },
        { "/limited", -EBUSY, "RATE_LIMIT", "slow down", 1, 20000 },
        { "/locked", -EIO, "LLM_ERROR", "bad key", 1, 0 },
        { "/garbage", -EBADMSG, "LLM_ERROR", "no JSON", 1, 0 },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        AUTO(desk_close) struct desk d = { 0 };
        struct llm_outcome out = { 0 };
        struct err e = { 0 };

        desk_open(&d, cases[i].path, NULL);
        assert_int_equal(call(&d, &out, &e), cases[i].r);
        assert_string_equal(e.code, cases[i].code);
        if (i != 3)
            assert_non_null(strstr(e.text, cases[i].words));
        assert_int_equal(atomic_load(&d.n_asked), cases[i].n_asked);
        assert_int_equal(out.retry_after_ms, cases[i].retry_after_ms);
    }
}

enum { LARGE_TEXT = 60 << 20, ACCOUNTS = 5 };

/* The request to each account takes twice the text. */
static void of_a_chat_that_fills_the_memory_fewer_accounts_are_planned_for(void **state)
{
    AUTO(desk_close) struct desk d = { .flag = "llm.fallbacks=b,c,d,e" };
    char *text;
    struct llm_block block = { LLM_BLOCK_TEXT };
    struct llm_message message = { .role = LLM_USER, .blocks = &block, .n_blocks = 1 };
    const struct llm_ask ask = { .messages = &message, .n_messages = 1, .max_tokens = 1 };
    struct llm_plan *plan;
    struct err e = { 0 };

    desk_open(&d, "/", NULL);
    for (size_t i = 1; i < ACCOUNTS; i++)
        desk_add(&d, (const char[]){ (char)('a' + i), '\0' }, "/");
    text = arena_alloc(d.a, LARGE_TEXT + 1);
    memset(text, 'x', LARGE_TEXT);
    block.text = text;
    plan = ARENA_NEW(d.a, struct llm_plan);
    assert_int_equal(llm_plan_make(d.accounts, NULL, &ask, d.a, NULL, plan, &e), 0);
    assert_int_equal(plan->picks.n, 3);             /* the fourth would begin with LIMIT_LLM_PLAN_BYTES taken */
}

static void another_account_answers_when_the_first_cannot(void **state)
{
    static const char *const first[] = { "/locked", "/limited", "/unwilling", NULL };

    for (size_t i = 0; i < ARRAY_SIZE(first); i++) {
        AUTO(desk_close) struct desk d = { 0 };
        AUTO(arena_freep) struct arena *a = arena_new();
        struct llm_outcome out = { 0 };
        struct err e = { 0 };

        desk_open(&d, first[i] ? first[i] : arena_printf(a, "http://127.0.0.1:%u/v1", dead_port()), "/");
        assert_int_equal(call(&d, &out, &e), 0);
        assert_string_equal(out.provider, "other");
    }
}

static void the_tokens_of_an_answer_that_could_not_be_used_are_kept(void **state)
{
    static const struct llm_block block = { LLM_BLOCK_TEXT, .text = "hi" };
    static const struct llm_message message = { .role = LLM_USER, .blocks = &block, .n_blocks = 1 };
    static const struct llm_ask json = { .messages = &message, .n_messages = 1, .max_tokens = 10, .format = LLM_FORMAT_JSON };
    AUTO(desk_close) struct desk d = { 0 };
    struct llm_account strict = { .name = "one", .preset = llm_preset_find("minimax"), .model = "m", .api_key = "k" };
    struct llm_outcome out = { 0 };
    struct llm_plan *plan;
    struct err e = { 0 };

    desk_open(&d, "/", "/");
    plan = ARENA_NEW(d.a, struct llm_plan);
    strict.base_url = rig_url(&d.rig, "/v1");
    assert_int_equal(llm_accounts_put(d.accounts, &strict, &e), 0);
    assert_int_equal(llm_plan_make(d.accounts, NULL, &json, d.a, NULL, plan, &e), 0);
    assert_int_equal(llm_call(plan, d.settings, d.a, NULL, &out, &e), 0);
    assert_string_equal(out.provider, "other");
    assert_int_equal(atomic_load(&d.n_asked), 2);
    assert_true(out.lost.prompt_tokens > 0 && out.lost.completion_tokens > 0);
}

static void a_silent_upstream_is_given_up_in_time(void **state)
{
    AUTO(desk_close) struct desk d = { .flag = "llm.first_byte_s=0.2" };
    AUTO(arena_freep) struct arena *a = arena_new();
    struct llm_outcome out = { 0 };
    struct raw_peer peer;
    struct err e = { 0 };

    raw_open(&peer, "", RAW_HANG);
    desk_open(&d, arena_printf(a, "http://127.0.0.1:%u/v1", peer.port), NULL);
    assert_int_equal(call(&d, &out, &e), -ETIMEDOUT);
    assert_string_equal(e.code, "LLM_ERROR");
    assert_string_equal(e.extras[0].value, "UPSTREAM_TIMEOUT");
    assert_non_null(strstr(e.text, "did not begin its answer"));
    raw_close(&peer);
}

static void a_caller_that_is_gone_waits_for_no_further_attempt(void **state)
{
    AUTO(desk_close) struct desk d = { 0 };
    struct llm_outcome out = { 0 };
    struct err e = { 0 };
    atomic_bool is_gone = true;

    desk_open(&d, "/unwilling", NULL);
    assert_true(llm_call(desk_plan(&d, d.a, d.a, false), d.settings, d.a, &is_gone, &out, &e) < 0);
    assert_true(atomic_load(&d.n_asked) <= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_says_who_gave_it),
        cmocka_unit_test(a_failure_that_may_pass_is_tried_again),
        cmocka_unit_test(what_does_not_pass_is_told_after_the_last_attempt),
        cmocka_unit_test(of_a_chat_that_fills_the_memory_fewer_accounts_are_planned_for),
        cmocka_unit_test(another_account_answers_when_the_first_cannot),
        cmocka_unit_test(the_tokens_of_an_answer_that_could_not_be_used_are_kept),
        cmocka_unit_test(a_silent_upstream_is_given_up_in_time),
        cmocka_unit_test(a_caller_that_is_gone_waits_for_no_further_attempt),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
