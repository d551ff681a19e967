/* The pure parts of sign-in: attempts, addresses, passwords, refresh tokens. */
#include "base/hash.h"
#include "base/limits.h"
#include "face/attempts.h"
#include "face/jwt.h"
#include "face/password.h"
#include "face/refresh_token.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

static void a_burst_is_free_and_then_one_each_interval(void **state)
{
    struct attempts *a = attempts_new(3, 100);
    struct err e = { 0 };

    for (int i = 0; i < 3; i++)
        assert_int_equal(attempts_take(a, SLICE_LIT("x"), 1000, NULL), 0);
    assert_int_equal(attempts_take(a, SLICE_LIT("x"), 1000, &e), -EBUSY);
    assert_string_equal(e.code, "RATE_LIMIT");
    assert_int_equal(e.retry_after_ms, 100);
    assert_int_equal(attempts_take(a, SLICE_LIT("x"), 1099, NULL), -EBUSY);
    assert_int_equal(attempts_take(a, SLICE_LIT("x"), 1100, NULL), 0);
    assert_int_equal(attempts_take(a, SLICE_LIT("x"), 1100, NULL), -EBUSY);
    assert_int_equal(attempts_take(a, SLICE_LIT("y"), 1100, NULL), 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(attempts_take(a, SLICE_LIT("x"), 5000, NULL), 0);
    assert_int_equal(attempts_take(a, SLICE_LIT("x"), 5000, NULL), -EBUSY);
    attempts_free(a);
}

static void what_was_right_counts_for_nothing(void **state)
{
    struct attempts *a = attempts_new(2, 100);

    for (int i = 0; i < 100; i++) {
        assert_int_equal(attempts_take(a, SLICE_LIT("x"), 1000, NULL), 0);
        attempts_give_back(a, SLICE_LIT("x"));
    }
    assert_int_equal(attempts_take(a, SLICE_LIT("x"), 1000, NULL), 0);
    assert_int_equal(attempts_take(a, SLICE_LIT("x"), 1000, NULL), 0);
    assert_int_equal(attempts_take(a, SLICE_LIT("x"), 1000, NULL), -EBUSY);
    attempts_free(a);
}

static void an_address_becomes_lower_case(void **state)
{
    char address[] = "Anna.Grey+Tag@Example.ORG", bare[] = "root@localhost";

    assert_int_equal(email_normalize(address, NULL), 0);
    assert_string_equal(address, "anna.grey+tag@example.org");
    assert_int_equal(email_normalize(bare, NULL), 0);
}

static void what_is_no_address_is_refused(void **state)
{
    static const char *const cases[] = { "",        "@",       "a",           "a@",         "@a",
                                         "a@b..c",  "a@.b",    "a@b.",        "a@-b",       "a@b-",
                                         "a b@c",   "a@b c",   "a@b\n",       "\xc3\xa4@b", "a@\xff",
                                         "a@b@c.d", "\"a\"@b", "a@[1.2.3.4]", "a\\@b@c",    "a@b_c" };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char text[32];

        snprintf(text, sizeof(text), "%s", cases[i]);
        assert_int_equal(email_normalize(text, NULL), -EINVAL);
    }
}

static void a_hash_knows_its_password_only(void **state)
{
    char one[PASSWORD_HASH_SIZE], two[PASSWORD_HASH_SIZE];

    assert_int_equal(password_hash("correct horse", one, NULL), 0);
    assert_int_equal(password_hash("correct horse", two, NULL), 0);
    assert_memory_equal(one, "$argon2id$v=19$m=19456,t=2,p=1$", 31);
    assert_string_not_equal(one, two);
    assert_int_equal(password_verify(one, "correct horse", NULL), 1);
    assert_int_equal(password_verify(one, "correct horsf", NULL), 0);
    assert_int_equal(password_verify(NULL, "correct horse", NULL), 0);
}

static void a_refresh_token_is_read_as_it_was_written(void **state)
{
    static const uint32_t counters[] = { 0, 1, 255, 256, UINT32_MAX };
    struct refresh_token token = { .session = "0123abcd-4567-89ef-0123-456789abcdef" }, read;
    char text[REFRESH_TOKEN_CHARS + 1];

    for (size_t i = 0; i < ARRAY_SIZE(counters); i++) {
        token.counter = counters[i];
        refresh_token_write(&token, SLICE_LIT("secret"), text);
        assert_int_equal(strlen(text), REFRESH_TOKEN_CHARS);
        assert_int_equal(refresh_token_read(slice_of(text), SLICE_LIT("secret"), &read, NULL), 0);
        assert_string_equal(read.session, token.session);
        assert_int_equal(read.counter, counters[i]);
        assert_int_equal(refresh_token_read(slice_of(text), SLICE_LIT("other"), &read, NULL), -ENOENT);
    }
}

static void a_changed_refresh_token_is_none(void **state)
{
    const struct refresh_token token = { .session = "0123abcd-4567-89ef-0123-456789abcdef", .counter = 7 };
    char text[REFRESH_TOKEN_CHARS + 1];
    struct refresh_token read;
    struct err e = { 0 };

    refresh_token_write(&token, SLICE_LIT("secret"), text);
    for (size_t i = 0; i < REFRESH_TOKEN_CHARS; i++) {
        char kept = text[i];

        text[i] = kept == 'A' ? 'B' : 'A';
        assert_int_equal(refresh_token_read(slice_of(text), SLICE_LIT("secret"), &read, &e), -ENOENT);
        assert_string_equal(e.code, "REFRESH_TOKEN_NOT_FOUND");
        text[i] = kept;
    }
    for (size_t n = 0; n < REFRESH_TOKEN_CHARS; n++)
        assert_int_equal(refresh_token_read((struct slice){ text, n }, SLICE_LIT("secret"), &read, NULL), -ENOENT);
}

static void a_signed_token_is_accepted(void **state)
{
    struct jwt_claims claims;
    struct buf token;

    buf_init(&token, LIMIT_JWT_BYTES);
    jwt_sign(&token,
             SLICE_LIT("{\"role\":\"authenticated\",\"sub\":\"u\",\"exp\":2000,"
                       "\"session_id\":\"0123abcd-4567-89ef-0123-456789abcdef\"}"),
             SLICE_LIT("secret"));
    assert_int_equal(jwt_verify(buf_slice(&token), SLICE_LIT("secret"), 1000, &claims, NULL), 0);
    assert_string_equal(claims.session, "0123abcd-4567-89ef-0123-456789abcdef");
    buf_reset(&token);
    jwt_sign(&token, SLICE_LIT("{\"session_id\":\"of another kind\"}"), SLICE_LIT("secret"));
    assert_int_equal(jwt_verify(buf_slice(&token), SLICE_LIT("secret"), 1000, &claims, NULL), 0);
    assert_string_equal(claims.session, "");
    buf_clear(&token);
}

static int set_up(void **state)
{
    return hash_init(NULL);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_burst_is_free_and_then_one_each_interval),
        cmocka_unit_test(what_was_right_counts_for_nothing),
        cmocka_unit_test(an_address_becomes_lower_case),
        cmocka_unit_test(what_is_no_address_is_refused),
        cmocka_unit_test(a_hash_knows_its_password_only),
        cmocka_unit_test(a_refresh_token_is_read_as_it_was_written),
        cmocka_unit_test(a_changed_refresh_token_is_none),
        cmocka_unit_test(a_signed_token_is_accepted),
    };

    return cmocka_run_group_tests(tests, set_up, NULL);
}
