#include "base/base64.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

/* RFC 4648, section 10, and the two characters in which the alphabets differ. */
static const struct {
    const char *bytes, *text, *url_text;
} cases[] = {
    { "", "", "" },
    { "f", "Zg==", "Zg" },
    { "fo", "Zm8=", "Zm8" },
    { "foo", "Zm9v", "Zm9v" },
    { "foob", "Zm9vYg==", "Zm9vYg" },
    { "fooba", "Zm9vYmE=", "Zm9vYmE" },
    { "foobar", "Zm9vYmFy", "Zm9vYmFy" },
    { "\xfb\xff\xbf", "+/+/", "-_-_" },
};

static void bytes_become_the_text_of_the_rfc(void **state)
{
    struct buf b;

    buf_init(&b, 100);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        buf_reset(&b);
        base64_encode(&b, slice_of(cases[i].bytes));
        assert_string_equal(buf_str(&b), cases[i].text);
    }
    buf_clear(&b);
}

static void the_text_becomes_the_bytes_again(void **state)
{
    struct buf b;

    buf_init(&b, 100);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        buf_reset(&b);
        assert_int_equal(base64_decode(&b, slice_of(cases[i].text)), 0);
        assert_string_equal(buf_str(&b), cases[i].bytes);
    }
    buf_clear(&b);
}

static void the_url_alphabet_has_no_padding(void **state)
{
    static const char *const wrong[] = { "Z",    "Zg==",  "Zm8=",   "Zh",    "Zm9",
                                         "+/+/", "Zm 9v", "Zm9v\n", "Zm9vY", "Z\xc3\xa9g" };
    struct buf b;

    buf_init(&b, 100);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        buf_reset(&b);
        base64url_encode(&b, slice_of(cases[i].bytes));
        assert_string_equal(buf_str(&b), cases[i].url_text);
        buf_reset(&b);
        assert_int_equal(base64url_decode(&b, slice_of(cases[i].url_text)), 0);
        assert_string_equal(buf_str(&b), cases[i].bytes);
    }
    buf_reset(&b);
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        if (base64url_decode(&b, slice_of(wrong[i])) != -EINVAL)
            fail_msg("%s", wrong[i]);
        assert_int_equal(b.n, 0);
    }
    buf_clear(&b);
}

static void anything_else_is_refused_and_adds_nothing(void **state)
{
    static const char *const wrong[] = {
        "Z",     "Zg",     "Zg=",      "Zg===",    "=",          "==",       "===",          "====",
        "Zm8",   "Zm9vYg", "Zg==Zg==", "Z===",     "Zm=v",       "-_-_",     "Zm9 v",        "Zm9v\n",
        " Zm9v", "Zh==",   "Zm9=",     "Zm9v====", "Z\xc3\xa9g", "Zm9v!AAA", "Zg==\n\n\n\n",
    };
    struct buf b;

    buf_init(&b, 100);
    buf_add_str(&b, "kept");
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        if (base64_decode(&b, slice_of(wrong[i])) != -EINVAL)
            fail_msg("%s", wrong[i]);
        assert_string_equal(buf_str(&b), "kept");
    }
    buf_clear(&b);
}

static void of_all_bytes_only_the_alphabet_is_taken(void **state)
{
    static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    struct buf b;

    buf_init(&b, 1000);
    for (int byte = 0; byte < 256; byte++) {
        char text[4] = { 'Z', (char)byte, 'm', '9' };
        bool is_letter = byte != 0 && strchr(alphabet, byte) != NULL;

        if ((base64_decode(&b, (struct slice){ text, 4 }) == 0) != is_letter)
            fail_msg("byte %02x", (unsigned)byte);
    }
    buf_clear(&b);
}

/* Checks that both decoders agree about the text. */
static void decode_both(struct slice text)
{
    char into[16] = { 0 };
    size_t n = 0;
    struct buf b;
    int r, found = -EINVAL;

    buf_init(&b, sizeof(into));
    r = base64_decode(&b, text);
    for (; found < 0 && n <= sizeof(into); n++)
        found = base64_decode_into(text, into, n);
    assert_int_equal(found, r);
    if (r == 0) {
        assert_int_equal(n - 1, b.n);
        assert_memory_equal(into, b.n ? b.p : "", b.n);
    }
    buf_clear(&b);
}

static void both_decoders_agree_about_any_text(void **state)
{
    static const char some[] = "AQgwZz09+/=-_ \n\xc3";
    char text[12];
    unsigned dice = 1;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        decode_both(slice_of(cases[i].text));
    for (size_t i = 0; i < 200000; i++) {
        size_t n = i % (sizeof(text) + 1), n_letters = i % 3 == 0 ? sizeof(some) - 1 : 11;

        for (size_t k = 0; k < n; k++) {
            dice = dice * 1103515245 + 12345;
            text[k] = some[(dice >> 16) % n_letters];
        }
        decode_both((struct slice){ text, n });
    }
    for (int byte = 0; byte < 256; byte++)
        for (size_t at = 0; at < 8; at++) {
            char one[8] = "Zm9vYmF5";

            one[at] = (char)byte;
            decode_both((struct slice){ one, sizeof(one) });
        }
}

static void the_result_is_appended_up_to_the_maximum(void **state)
{
    struct buf b;

    buf_init(&b, 6);
    assert_int_equal(base64_decode(&b, SLICE_LIT("Zm9v")), 0);
    assert_int_equal(base64_decode(&b, SLICE_LIT("YmFy")), 0);
    assert_string_equal(buf_str(&b), "foobar");
    assert_int_equal(base64_decode(&b, SLICE_LIT("Zg==")), -E2BIG);
    assert_true(b.overflowed);
    buf_reset(&b);
    base64_encode(&b, SLICE_LIT("foob"));
    assert_int_equal(buf_check(&b, NULL), -E2BIG);
    buf_clear(&b);
}

static void every_byte_survives(void **state)
{
    unsigned char bytes[256];
    struct buf text, back;

    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (unsigned char)i;
    buf_init(&text, 1000);
    buf_init(&back, 1000);
    base64_encode(&text, (struct slice){ (const char *)bytes, sizeof(bytes) });
    assert_int_equal(text.n, 344);
    assert_int_equal(base64_decode(&back, buf_slice(&text)), 0);
    assert_int_equal(back.n, sizeof(bytes));
    assert_memory_equal(back.p, bytes, sizeof(bytes));
    buf_clear(&text);
    buf_clear(&back);
}

/* Of every length up to two groups more than the bytes of one table. */
static void both_encoders_agree_about_any_bytes(void **state)
{
    char bytes[270];
    struct buf text, data;

    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (char)(i * 0x9d + (i >> 3));
    buf_init(&text, 1000);
    buf_init(&data, 1000);
    for (size_t n = 0; n <= sizeof(bytes); n++) {
        base64_encode(&text, (struct slice){ bytes + sizeof(bytes) - n, n });
        base64_encode_data(&data, (struct slice){ bytes + sizeof(bytes) - n, n });
        assert_string_equal(buf_str(&data), buf_str(&text));
        buf_reset(&text);
        buf_reset(&data);
    }
    buf_clear(&text);
    buf_clear(&data);
}

static void data_above_the_maximum_adds_nothing(void **state)
{
    struct buf b;

    buf_init(&b, 7);
    base64_encode_data(&b, SLICE_LIT("four"));
    assert_true(b.overflowed);
    assert_int_equal(b.n, 0);
    buf_clear(&b);
    buf_init(&b, 8);
    base64_encode_data(&b, SLICE_LIT("four"));
    assert_string_equal(buf_str(&b), "Zm91cg==");
    buf_clear(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_become_the_text_of_the_rfc),
        cmocka_unit_test(the_text_becomes_the_bytes_again),
        cmocka_unit_test(the_url_alphabet_has_no_padding),
        cmocka_unit_test(anything_else_is_refused_and_adds_nothing),
        cmocka_unit_test(of_all_bytes_only_the_alphabet_is_taken),
        cmocka_unit_test(both_decoders_agree_about_any_text),
        cmocka_unit_test(the_result_is_appended_up_to_the_maximum),
        cmocka_unit_test(every_byte_survives),
        cmocka_unit_test(both_encoders_agree_about_any_bytes),
        cmocka_unit_test(data_above_the_maximum_adds_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
