#include "stand_in/rules.h"

#include "base/json.h"
#include "base/limits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static struct stand_in_rules read_rules(struct arena *a, const char *text)
{
    struct stand_in_rules rules;

    stand_in_read_rules(a, slice_of(text), &rules);
    return rules;
}

static void a_line_is_a_rule_wherever_it_stands(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct stand_in_rules rules =
        read_rules(a, "Answer this letter:\r\n\tsay  Dear all, \r\nsay Bye.\n"
                      "think hm\nslow 20\ncut 3\nfail 429 7\ncall weather {\"a\":1}\ncall other");

    assert_string_equal(rules.say, "Dear all,\nBye.");
    assert_string_equal(rules.think, "hm");
    assert_int_equal(rules.slow_ms, 20);
    assert_int_equal(rules.n_before_cut, 3);
    assert_int_equal(rules.fail_status, 429);
    assert_int_equal(rules.fail_retry_after_s, 7);
    assert_int_equal(rules.n_calls, 2);
    assert_true(slice_eq_str(rules.calls[0].tool, "weather"));
    assert_true(slice_eq_str(rules.calls[0].arguments, "{\"a\":1}"));
    assert_true(slice_eq_str(rules.calls[1].tool, "other"));
    assert_int_equal(rules.calls[1].arguments.n, 0);
}

static void other_lines_are_no_rules(void **state)
{
    static const char *const texts[] = {
        "",          "say",     "saying no",      "We say no",       "slow",
        "slow down", "slow -1", "slow 1 2",       "slow 1234567890", "fail 399",
        "fail 600",  "fail",    "fail exams",     "fail 429 soon",   "fail 429 1 2",
        "cut x",     "cut 1 2", "call me maybe?", "Fail 429",
    };
    AUTO(arena_freep) struct arena *a = arena_new();

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        struct stand_in_rules rules = read_rules(a, texts[i]);

        assert_null(rules.say);
        assert_int_equal(rules.slow_ms, 0);
        assert_int_equal(rules.n_before_cut, -1);
        assert_int_equal(rules.fail_status, 0);
        assert_int_equal(rules.n_calls, 0);
    }
}

static void numbers_and_counts_have_limits(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct buf text;

    assert_int_equal(read_rules(a, arena_printf(a, "slow %d", LIMIT_STAND_IN_WAIT_MS)).slow_ms, LIMIT_STAND_IN_WAIT_MS);
    assert_int_equal(read_rules(a, arena_printf(a, "slow %d", LIMIT_STAND_IN_WAIT_MS + 1)).slow_ms,
                     LIMIT_STAND_IN_WAIT_MS);
    assert_int_equal(read_rules(a, "fail 500 999999").fail_retry_after_s, LIMIT_STAND_IN_RETRY_S);
    buf_init(&text, MIB(1));
    for (int i = 0; i < LIMIT_STAND_IN_CALLS + 1; i++)
        buf_add_str(&text, "call f\n");
    assert_int_equal(read_rules(a, buf_str(&text)).n_calls, LIMIT_STAND_IN_CALLS);
    buf_reset(&text);
    for (int i = 0; i < LIMIT_STAND_IN_BYTES - 5; i++)
        buf_add_char(&text, i % 80 ? '.' : '\n');
    buf_add_str(&text, "\nsay a");
    assert_string_equal(read_rules(a, buf_str(&text) + 1).say, "a"); /* ends at the limit */
    assert_null(read_rules(a, buf_str(&text)).say);
    buf_clear(&text);
}

static void tokens_are_words_and_parts_of_long_words(void **state)
{
    assert_int_equal(stand_in_token(slice_of("")), 0);
    assert_int_equal(stand_in_token(slice_of("one two")), 4);
    assert_int_equal(stand_in_token(slice_of("  ")), 2);
    assert_int_equal(stand_in_token(slice_of("0123456789abcdefg")), 16);
    assert_int_equal(stand_in_token(slice_of("0123456789abcde\xc3\xb6x")), 17); /* not within a character */
    assert_int_equal(stand_in_token(slice_of("\xff\xff a")), 3);
    assert_int_equal(stand_in_count_tokens(slice_of("one two\n three")), 3);
}

static void a_refusal_is_in_openais_form(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct stand_in_rules rules = read_rules(a, "fail 404\nslow 5");
    struct http_inside *refusal = stand_in_obey(a, &rules);
    struct json_value root = { 0 };

    assert_int_equal(refusal->status, 404);
    assert_int_equal(refusal->n_headers, 0);
    assert_int_equal(refusal->piece_ms, 5);
    assert_int_equal(json_parse(a, refusal->pieces[0], &root, NULL), 0);
    assert_string_equal(json_cstr(json_get(json_get(root, "error"), "code")), "model_not_found");
    assert_non_null(strstr(json_cstr(json_get(json_get(root, "error"), "message")), "fail 404"));
    rules = read_rules(a, "fail 429 30");
    refusal = stand_in_obey(a, &rules);
    assert_string_equal(refusal->headers[0].name, "retry-after");
    assert_string_equal(refusal->headers[0].value, "30");
    rules = read_rules(a, "hello");
    assert_null(stand_in_obey(a, &rules));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_is_a_rule_wherever_it_stands),
        cmocka_unit_test(other_lines_are_no_rules),
        cmocka_unit_test(numbers_and_counts_have_limits),
        cmocka_unit_test(tokens_are_words_and_parts_of_long_words),
        cmocka_unit_test(a_refusal_is_in_openais_form),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
