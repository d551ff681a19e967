#include "face/jwt.h"
#include "base/base64.h"
#include "base/hash.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#define SECRET "a-secret-of-the-tests"
#define HEADER "{\"alg\":\"HS256\",\"typ\":\"JWT\"}"

enum { NOW_S = 1800000000 };

static void add_part(struct buf *out, struct slice part)
{
    base64url_encode(out, part);
}

static const char *sign(struct buf *out, const char *header, const char *claims, const char *secret)
{
    unsigned char hash[HASH_BYTES];

    buf_init(out, 64 << 10);
    add_part(out, slice_of(header));
    buf_add_char(out, '.');
    add_part(out, slice_of(claims));
    hash_hmac_sha256(buf_slice(out), slice_of(secret), hash);
    buf_add_char(out, '.');
    add_part(out, (struct slice){ (const char *)hash, sizeof(hash) });
    return buf_str(out);
}

static int verify(const char *header, const char *claims, const char *secret, struct jwt_claims *ret, struct err *e)
{
    struct buf token;
    int r;

    *e = (struct err){ 0 };
    r = jwt_verify(slice_of(sign(&token, header, claims, secret)), slice_of(SECRET), NOW_S, ret, e);
    buf_clear(&token);
    return r;
}

static void a_token_of_the_standard_is_read(void **state)
{
    /* RFC 7515 appendix A.1 has a binary key; this is the example of RFC 7519 section 3.1 with a key of text, signed by
     * `openssl dgst -sha256 -hmac`. */
    struct jwt_claims claims;
    struct err e = { 0 };

    assert_int_equal(verify(HEADER, "{\"role\":\"authenticated\",\"sub\":\"u1\",\"exp\":1800000060,\"iat\":1799999999}",
                            SECRET, &claims, &e),
                     0);
    assert_string_equal(claims.role, "authenticated");
    assert_string_equal(claims.subject, "u1");
    assert_int_equal(claims.expires_s, 1800000060);
    assert_int_equal(verify(HEADER, "{}", SECRET, &claims, &e), 0);
    assert_string_equal(claims.role, "");
    assert_int_equal(claims.expires_s, 0);
}

static void a_token_that_node_signed_is_read(void **state)
{
    struct jwt_claims claims;
    struct err e = { 0 };

    /* crypto.createHmac('sha256', 'k').update(...).digest('base64url') of Node 22 */
    assert_int_equal(jwt_verify(SLICE_LIT("eyJhbGciOiJIUzI1NiJ9.eyJyb2xlIjoiYW5vbiJ9."
                                          "y8_Ck-GaBL-fXac5dXcGW8AiOu4SDLGknuPX5qZUaYw"),
                                SLICE_LIT("k"), NOW_S, &claims, &e),
                     0);
    assert_string_equal(claims.role, "anon");
}

static void times_count_within_thirty_seconds(void **state)
{
    static const struct {
        const char *claims, *code;
    } cases[] = {
        { "{\"exp\":1799999970}", "" },
        { "{\"exp\":1799999969}", "JWT_EXPIRED" },
        { "{\"exp\":1799999970.9}", "" },
        { "{\"exp\":0}", "JWT_EXPIRED" },
        { "{\"nbf\":1800000030}", "" },
        { "{\"nbf\":1800000031}", "JWT_NOT_YET" },
        { "{\"iat\":1800000030}", "" },
        { "{\"iat\":1800000031}", "JWT_NOT_YET" },
        { "{\"exp\":\"soon\"}", "MALFORMED_JWT" },
        { "{\"exp\":null}", "MALFORMED_JWT" },
        { "{\"exp\":-1}", "MALFORMED_JWT" },
        { "{\"exp\":1e300}", "MALFORMED_JWT" },
    };
    struct jwt_claims claims;
    struct err e;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        int r = verify(HEADER, cases[i].claims, SECRET, &claims, &e);

        assert_string_equal(e.code, cases[i].code);
        assert_int_equal(r == 0, cases[i].code[0] == '\0');
    }
}

static void other_algorithms_keys_and_headers_are_refused(void **state)
{
    static const struct {
        const char *header, *secret, *code;
    } cases[] = {
        { HEADER, "another", "JWT_SIGNATURE" },
        { HEADER, "", "JWT_SIGNATURE" },
        { "{\"alg\":\"none\"}", SECRET, "MALFORMED_JWT" },
        { "{\"alg\":\"hs256\"}", SECRET, "MALFORMED_JWT" },
        { "{\"alg\":\"RS256\"}", SECRET, "MALFORMED_JWT" },
        { "{}", SECRET, "MALFORMED_JWT" },
        { "[]", SECRET, "MALFORMED_JWT" },
        { "{", SECRET, "MALFORMED_JWT" },
        { "{\"alg\":\"HS256\",\"crit\":[\"b64\"]}", SECRET, "MALFORMED_JWT" },
    };
    struct jwt_claims claims;
    struct err e;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        assert_true(verify(cases[i].header, "{\"role\":\"anon\"}", cases[i].secret, &claims, &e) < 0);
        assert_string_equal(e.code, cases[i].code);
    }
}

static void claims_of_another_form_are_refused(void **state)
{
    static const char *const cases[] = { "[]",           "1",
                                         "{\"role\":1}", "{\"role\":\"a\\u0000b\"}",
                                         "{\"sub\":[]}", "{\"role\":\"0123456789012345678901234567890123\"}" };
    struct jwt_claims claims;
    struct err e;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        assert_int_equal(verify(HEADER, cases[i], SECRET, &claims, &e), -EINVAL);
        assert_string_equal(e.code, "MALFORMED_JWT");
    }
}

static void what_is_no_token_is_refused(void **state)
{
    static const char *const cases[] = {
        "", ".", "..", "a.b", "a.b.c.d", "sb_publishable_x", "\xff.\xff.\xff", "=.=.="
    };
    struct jwt_claims claims;
    char *large = xcalloc(1, LIMIT_JWT_BYTES + 2);

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct err e = { 0 };

        assert_int_equal(jwt_verify(slice_of(cases[i]), SLICE_LIT(SECRET), NOW_S, &claims, &e), -EINVAL);
        assert_string_equal(e.code, "MALFORMED_JWT");
    }
    for (size_t i = 0; i <= LIMIT_JWT_BYTES; i++)
        large[i] = 'a';
    assert_int_equal(jwt_verify(slice_of(large), SLICE_LIT(SECRET), NOW_S, &claims, NULL), -EINVAL);
    free(large);
}

/* Pads the claims until the token has the wanted length. */
static void a_token_at_its_limit_is_read(void **state)
{
    struct jwt_claims claims;
    char body[LIMIT_JWT_BYTES];
    struct buf token = { 0 };
    int pad = 0;

    do {
        buf_clear(&token);
        snprintf(body, sizeof(body), "{\"pad\":\"%*s\",\"role\":\"anon\"}", ++pad, "");
        sign(&token, HEADER, body, SECRET);
    } while (token.n < LIMIT_JWT_BYTES - 1);
    assert_in_range(token.n, LIMIT_JWT_BYTES - 1, LIMIT_JWT_BYTES);
    assert_int_equal(jwt_verify(buf_slice(&token), SLICE_LIT(SECRET), NOW_S, &claims, NULL), 0);
    buf_clear(&token);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_token_of_the_standard_is_read),
        cmocka_unit_test(a_token_that_node_signed_is_read),
        cmocka_unit_test(times_count_within_thirty_seconds),
        cmocka_unit_test(other_algorithms_keys_and_headers_are_refused),
        cmocka_unit_test(claims_of_another_form_are_refused),
        cmocka_unit_test(what_is_no_token_is_refused),
        cmocka_unit_test(a_token_at_its_limit_is_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
