#include "base/hash.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

/* The values of b2sum --length=256 (GNU coreutils), an independent implementation. */
static void blake2b_is_that_of_rfc_7693(void **state)
{
    char hex[HASH_HEX_SIZE];

    hash_text_hex(SLICE_LIT("abc"), hex);
    assert_string_equal(hex, "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319");
    hash_text_hex((struct slice){ 0 }, hex);
    assert_string_equal(hex, "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8");
}

static void a_key_changes_the_hash_and_its_length_is_16_to_64(void **state)
{
    unsigned char plain[HASH_BYTES], with_16[HASH_BYTES], with_64[HASH_BYTES];
    static const char key[64] = "0123456789abcdef";

    hash_blake2b(SLICE_LIT("abc"), (struct slice){ 0 }, plain);
    hash_blake2b(SLICE_LIT("abc"), (struct slice){ key, 16 }, with_16);
    hash_blake2b(SLICE_LIT("abc"), (struct slice){ key, 64 }, with_64);
    assert_memory_not_equal(plain, with_16, HASH_BYTES);
    assert_memory_not_equal(with_16, with_64, HASH_BYTES);
}

static void hex_is_lower_case(void **state)
{
    char out[9];

    hash_hex((const unsigned char *)"\x00\x0f\xf0\xff", 4, out);
    assert_string_equal(out, "000ff0ff");
    hash_hex((const unsigned char *)"", 0, out);
    assert_string_equal(out, "");
}

/* Values of the FNV reference (draft-eastlake-fnv). */
static void the_fast_hash_is_fnv_1a(void **state)
{
    assert_true(hash_fast(SLICE_LIT("")) == 0xcbf29ce484222325u);
    assert_true(hash_fast(SLICE_LIT("a")) == 0xaf63dc4c8601ec8cu);
    assert_true(hash_fast(SLICE_LIT("foobar")) == 0x85944171f73967e8u);
}

static void equal_compares_every_byte(void **state)
{
    assert_true(hash_equal("abcd", "abcd", 4));
    assert_true(hash_equal("abcd", "abcx", 3));
    assert_false(hash_equal("abcd", "abcx", 4));
    assert_false(hash_equal("xbcd", "abcd", 4));
    assert_true(hash_equal("a", "b", 0));
}

static void tokens_are_url_safe_of_the_right_length_and_new_each_time(void **state)
{
    static const struct {
        size_t n, length;
    } cases[] = { { 0, 0 },   { 1, 2 },   { 2, 3 },   { 3, 4 },   { 16, 22 },
                  { 32, 43 }, { 47, 63 }, { 48, 64 }, { 49, 66 }, { 100, 134 } };
    char token[4 * 100 / 3 + 3], other[sizeof(token)];

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        random_token(token, cases[i].n);
        assert_int_equal(strlen(token), cases[i].length);
        assert_int_equal(strspn(token, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"),
                         cases[i].length);
    }
    random_token(other, 100);
    assert_string_not_equal(token, other);
}

static void random_bytes_fill_exactly_what_was_asked(void **state)
{
    unsigned char bytes[66] = { [0] = 0xee, [65] = 0xee }, seen = 0;

    random_bytes(bytes + 1, 64);
    for (int i = 1; i <= 64; i++)
        seen |= bytes[i];
    assert_int_not_equal(seen, 0);
    assert_int_equal(bytes[0], 0xee);
    assert_int_equal(bytes[65], 0xee);
}

static int set_up(void **state)
{
    return hash_init(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blake2b_is_that_of_rfc_7693),
        cmocka_unit_test(a_key_changes_the_hash_and_its_length_is_16_to_64),
        cmocka_unit_test(hex_is_lower_case),
        cmocka_unit_test(the_fast_hash_is_fnv_1a),
        cmocka_unit_test(equal_compares_every_byte),
        cmocka_unit_test(tokens_are_url_safe_of_the_right_length_and_new_each_time),
        cmocka_unit_test(random_bytes_fill_exactly_what_was_asked),
    };

    return cmocka_run_group_tests(tests, set_up, NULL);
}
