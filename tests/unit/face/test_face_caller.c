#include "face/caller.h"
#include "base/base64.h"
#include "base/hash.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

enum { NOW_S = 1800000000 };

static const struct face_keys keys = {
    .publishable = "sb_publishable_a_b",
    .secret = "sb_secret_c_d",
    .jwt_secret = "signing",
};

static const char *sign(struct buf *out, const char *claims)
{
    unsigned char hash[HASH_BYTES];

    buf_init(out, 4096);
    base64url_encode(out, SLICE_LIT("{\"alg\":\"HS256\"}"));
    buf_add_char(out, '.');
    base64url_encode(out, slice_of(claims));
    hash_hmac_sha256(buf_slice(out), slice_of(keys.jwt_secret), hash);
    buf_add_char(out, '.');
    base64url_encode(out, (struct slice){ (const char *)hash, sizeof(hash) });
    return buf_str(out);
}

static void a_key_is_its_role(void **state)
{
    struct face_caller caller;
    struct buf old;

    assert_int_equal(face_caller_of_key(&keys, keys.publishable, NOW_S, &caller, NULL), 0);
    assert_int_equal(caller.role, FACE_ANON);
    assert_int_equal(face_caller_of_key(&keys, keys.secret, NOW_S, &caller, NULL), 0);
    assert_int_equal(caller.role, FACE_SERVICE);
    assert_int_equal(face_caller_of_key(&keys, sign(&old, "{\"role\":\"service_role\",\"exp\":1900000000}"), NOW_S,
                                        &caller, NULL),
                     0);
    assert_int_equal(caller.role, FACE_SERVICE);
    assert_int_equal(caller.expires_s, 1900000000);
    buf_clear(&old);
}

static void what_is_no_key_is_refused(void **state)
{
    static const char *const cases[] = { NULL,      "", "sb_publishable_a_", "sb_publishable_a_bb", "sb_secret_c_D",
                                         "hearth_x" };
    struct face_caller caller;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct err e = { 0 };

        assert_int_equal(face_caller_of_key(&keys, cases[i], NOW_S, &caller, &e), -EACCES);
        assert_string_equal(e.code, "INVALID_FACE_KEY");
    }
}

static void a_token_needs_a_known_role_and_an_end(void **state)
{
    static const char *const cases[] = { "{\"role\":\"authenticated\"}", "{\"exp\":1900000000}",
                                         "{\"role\":\"postgres\",\"exp\":1900000000}",
                                         "{\"role\":\"\",\"exp\":1900000000}" };
    struct face_caller caller;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct err e = { 0 };
        struct buf token;

        assert_int_equal(face_caller_of_token(&keys, slice_of(sign(&token, cases[i])), NOW_S, &caller, &e), -EINVAL);
        assert_string_equal(e.code, "MALFORMED_JWT");
        buf_clear(&token);
    }
}

static void a_request_with_a_token_is_its_user(void **state)
{
    struct face_caller caller;
    struct err e = { 0 };
    char bearer[512];
    struct buf token;

    snprintf(bearer, sizeof(bearer), "bearer %s",
             sign(&token, "{\"role\":\"authenticated\",\"sub\":\"u1\",\"exp\":1900000000}"));
    assert_int_equal(face_caller_of_request(&keys, keys.publishable, bearer, NOW_S, &caller, NULL), 0);
    assert_int_equal(caller.role, FACE_AUTHENTICATED);
    assert_string_equal(caller.subject, "u1");
    assert_int_equal(face_caller_of_request(&keys, keys.publishable, "Bearer sb_secret_c_d", NOW_S, &caller, NULL), 0);
    assert_int_equal(caller.role, FACE_ANON); /* the key counts, not what stands in its place */
    assert_int_equal(face_caller_of_request(&keys, NULL, bearer, NOW_S, &caller, &e), -EACCES);
    assert_true(face_caller_of_request(&keys, keys.publishable, "Bearer nonsense", NOW_S, &caller, &e) < 0);
    buf_clear(&token);
}

static void rows_are_for_their_user(void **state)
{
    const struct face_caller user = { .role = FACE_AUTHENTICATED, .subject = "ABC" },
                             nameless = { .role = FACE_AUTHENTICATED }, service = { .role = FACE_SERVICE },
                             anon = { .role = FACE_ANON, .subject = "abc" };

    assert_true(face_may_see(&user, "abc")); /* a UUID in either case */
    assert_false(face_may_see(&user, "abcd"));
    assert_false(face_may_see(&user, NULL));
    assert_false(face_may_see(&nameless, ""));
    assert_false(face_may_see(&anon, "abc"));
    assert_true(face_may_see(&service, NULL));
    assert_true(face_may_see(&service, "abc"));
}

static void private_channels_are_for_their_users(void **state)
{
    const struct face_caller user = { .role = FACE_AUTHENTICATED, .subject = "u1" },
                             nameless = { .role = FACE_AUTHENTICATED }, service = { .role = FACE_SERVICE },
                             anon = { .role = FACE_ANON, .subject = "u1" };
    static const struct {
        const char *topic;
        bool is_users;
    } cases[] = {
        { "room", true },      { "user", true },     { "user:u1", true },   { "user:u1:notes", true },
        { "user:u2", false },  { "user:u", false },  { "user:u11", false }, { "user:", false },
        { "user::u1", false }, { "user:U1", false },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        assert_int_equal(face_may_join(&user, slice_of(cases[i].topic)), cases[i].is_users);
        assert_true(face_may_join(&service, slice_of(cases[i].topic)));
        assert_false(face_may_join(&anon, slice_of(cases[i].topic)));
    }
    assert_false(face_may_join(&nameless, SLICE_LIT("user:")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_is_its_role),
        cmocka_unit_test(what_is_no_key_is_refused),
        cmocka_unit_test(a_token_needs_a_known_role_and_an_end),
        cmocka_unit_test(a_request_with_a_token_is_its_user),
        cmocka_unit_test(rows_are_for_their_user),
        cmocka_unit_test(private_channels_are_for_their_users),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
