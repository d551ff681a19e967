#include "http/gzip.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <zlib.h>

static void weights_and_wildcards_are_respected(void **state)
{
    static const struct {
        const char *value;
        bool accepts;
    } cases[] = {
        { NULL, false },
        { "", false },
        { "gzip", true },
        { "GZIP", true },
        { "x-gzip", true },
        { "br, gzip ;q=0.5", true },
        { "gzip;q=0", false },
        { "gzip; q=0.000", false },
        { "gzip;q=0.001", true },
        { "*", true },
        { "*;q=0", false },
        { "*, gzip;q=0", false },
        { "gzip;q=0, *", false },
        { "*;q=0, gzip", true },
        { "gzipx, deflate", false },
        { ",,gzip", true },
        { "identity;q=1", false },
        { "gzip;x=0;q=0", false },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        if (http_accepts_gzip(cases[i].value) != cases[i].accepts)
            fail_msg("wrong for: %s", cases[i].value);
}

static void what_is_compressed_comes_back_the_same(void **state)
{
    static char text[50000], back[50000];
    z_stream z = { 0 };
    struct buf out;

    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = "{\"name\":[1,2]}"[i % 14];
    buf_init(&out, sizeof(text));
    assert_true(http_gzip((struct slice){ text, sizeof(text) }, &out));
    assert_true(out.n < sizeof(text) / 10);
    z.next_in = (Bytef *)out.p;
    z.avail_in = (uInt)out.n;
    z.next_out = (Bytef *)back;
    z.avail_out = sizeof(back);
    assert_int_equal(inflateInit2(&z, 15 + 16), Z_OK);
    assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
    assert_int_equal(z.total_out, sizeof(text));
    assert_memory_equal(text, back, sizeof(text));
    inflateEnd(&z);
    buf_clear(&out);
}

static void what_would_grow_is_left_alone(void **state)
{
    unsigned char noise[5000];
    uint32_t x = 1;
    struct buf out;

    for (size_t i = 0; i < sizeof(noise); i++) {
        x = x * 1664525 + 1013904223;
        noise[i] = (unsigned char)(x >> 24);
    }
    buf_init(&out, sizeof(noise));
    assert_false(http_gzip((struct slice){ (const char *)noise, sizeof(noise) }, &out));
    assert_int_equal(out.n, 0);
    buf_clear(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_and_wildcards_are_respected),
        cmocka_unit_test(what_is_compressed_comes_back_the_same),
        cmocka_unit_test(what_would_grow_is_left_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
