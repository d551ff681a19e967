#include "fixture.h"
#include "identity/confirmations.h"
#include "identity/sessions.h"

enum { NOW = 1000000, WHOLE = CONFIRM_S * 1000 };

static const char *request(struct confirmations *c, const char *session, int64_t now_ms)
{
    static char codes[4][CONFIRM_CODE_SIZE];
    static size_t n;
    char *code = codes[n++ % ARRAY_SIZE(codes)];

    confirmations_request(c, session, "Do it", now_ms, code);
    return code;
}

static bool give(struct confirmations *c, const char *code, int64_t now_ms)
{
    char what[CONFIRM_WHAT_SIZE];

    return confirmations_give(c, code, now_ms, what) && strcmp(what, "Do it") == 0;
}

static void a_confirmation_lasts_five_minutes(void **state)
{
    struct confirmations c;

    confirmations_init(&c);
    assert_int_equal(confirmations_left_ms(&c, "one", NOW), 0);
    assert_true(give(&c, request(&c, "one", NOW), NOW));
    assert_int_equal(confirmations_left_ms(&c, "one", NOW), WHOLE);
    assert_int_equal(confirmations_left_ms(&c, "one", NOW + WHOLE - 1), 1);
    assert_int_equal(confirmations_left_ms(&c, "one", NOW + WHOLE), 0);
    assert_int_equal(confirmations_left_ms(&c, "other", NOW), 0);
    confirmations_clear(&c);
}

static void a_code_is_good_once_and_for_five_minutes(void **state)
{
    struct confirmations c;
    const char *code;

    confirmations_init(&c);
    code = request(&c, "one", NOW);
    assert_string_equal(request(&c, "one", NOW + WHOLE - 1), code);
    assert_false(give(&c, code, NOW + WHOLE));
    assert_string_not_equal(request(&c, "one", NOW + WHOLE), code);
    code = request(&c, "two", NOW);
    assert_true(give(&c, code, NOW + WHOLE - 1));
    assert_false(give(&c, code, NOW + WHOLE - 1));
    confirmations_clear(&c);
}

static void a_code_may_be_typed_carelessly_but_must_be_whole(void **state)
{
    struct confirmations c;
    char typed[2 * CONFIRM_CODE_SIZE];
    const char *code;

    confirmations_init(&c);
    assert_false(give(&c, "", NOW));
    code = request(&c, "one", NOW);
    snprintf(typed, sizeof(typed), "%.8s", code);
    assert_false(give(&c, typed, NOW));
    snprintf(typed, sizeof(typed), "%s2", code);
    assert_false(give(&c, typed, NOW));
    assert_false(give(&c, "", NOW));
    assert_false(give(&c, "-", NOW));
    snprintf(typed, sizeof(typed), " %.4s%s ", code, code + 5);
    for (char *at = typed; *at; at++)
        *at |= *at >= 'A' ? 0x20 : 0;
    assert_true(give(&c, typed, NOW));
    confirmations_clear(&c);
}

static void a_forgotten_session_has_none(void **state)
{
    struct confirmations c;
    const char *code;

    confirmations_init(&c);
    assert_true(give(&c, request(&c, "one", NOW), NOW));
    code = request(&c, "one", NOW);
    confirmations_forget(&c, "one");
    assert_int_equal(confirmations_left_ms(&c, "one", NOW), 0);
    assert_false(give(&c, code, NOW));
    confirmations_clear(&c);
}

/* One session more than there are places gets the place of the session that ends first. */
static void sessions_at_the_limit_have_a_place_each(void **state)
{
    struct confirmations c;
    char name[16];

    confirmations_init(&c);
    for (int i = 0; i < LIMIT_CONFIRMATIONS; i++) {
        snprintf(name, sizeof(name), "s%d", i);
        assert_true(give(&c, request(&c, name, NOW + i), NOW + i));
    }
    assert_true(confirmations_left_ms(&c, "s0", NOW + LIMIT_CONFIRMATIONS) > 0);
    assert_true(give(&c, request(&c, "one more", NOW + LIMIT_CONFIRMATIONS), NOW + LIMIT_CONFIRMATIONS));
    assert_int_equal(confirmations_left_ms(&c, "s0", NOW + LIMIT_CONFIRMATIONS), 0);
    assert_true(confirmations_left_ms(&c, "s1", NOW + LIMIT_CONFIRMATIONS) > 0);
    confirmations_clear(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_confirmation_lasts_five_minutes),
        cmocka_unit_test(a_code_is_good_once_and_for_five_minutes),
        cmocka_unit_test(a_code_may_be_typed_carelessly_but_must_be_whole),
        cmocka_unit_test(a_forgotten_session_has_none),
        cmocka_unit_test(sessions_at_the_limit_have_a_place_each),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
