#include "base/fields.h"
#include "base/floats.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <float.h>
#include <math.h>

struct body {
    struct json_floats packed;
};

static const struct field fields[] = { FIELD_FLOATS_B64(struct body, packed, "packed", .min = 1, .max = 4), FIELD_END };

#define NOT_PACKED "must be padded base64 of float32 numbers, 4 bytes each"

static const struct {
    struct slice text;
    const char *field, *rule;
} refused[] = {
    { SLICE_LIT("{\"packed\":[1]}"), "packed", "must be a string" },
    { SLICE_LIT("{\"packed\":\"\"}"), "packed", "must hold at least 1 number" },
    { SLICE_LIT("{\"packed\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAA=\"}"), "packed", "must hold at most 4 numbers" },
    { SLICE_LIT("{\"packed\":\"AAAA\"}"), "packed", NOT_PACKED },
    { SLICE_LIT("{\"packed\":\"AACAPw\"}"), "packed", NOT_PACKED },
    { SLICE_LIT("{\"packed\":\"AACA_w==\"}"), "packed", NOT_PACKED },
    { SLICE_LIT("{\"packed\":\"AACAPwA=\"}"), "packed", NOT_PACKED },
    { SLICE_LIT("{\"packed\":\"AACAP\\u0000==\"}"), "packed", NOT_PACKED },
    { SLICE_LIT("{\"packed\":\"AADAfw==\"}"), "packed[0]", "must be a finite number" },
    { SLICE_LIT("{\"packed\":\"AACAPwAAgP8=\"}"), "packed[1]", "must be a finite number" },
};

static int read_text(struct arena *a, struct slice text, struct body *into, struct err *e)
{
    struct json_value v;

    assert_int_equal(json_parse(a, text, &v, e), 0);
    return fields_read(fields, v, into, a, "", e);
}

static void base64_that_breaks_a_rule_is_refused(void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
        AUTO(arena_freep) struct arena *a = arena_new();
        struct body body = { 0 };
        struct err e = { 0 };

        if (read_text(a, refused[i].text, &body, &e) != -EINVAL)
            fail_msg("taken: %s", refused[i].text.p);
        assert_string_equal(e.fields[0].field, refused[i].field);
        assert_string_equal(e.fields[0].rule, refused[i].rule);
        assert_null(body.packed.items);
    }
}

static void as_many_numbers_are_taken_as_the_row_allows(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct body body = { 0 };
    struct err e = { 0 };

    assert_int_equal(read_text(a, SLICE_LIT("{\"packed\":\"AACAPwAAAIAAAAAAAAAAwA==\"}"), &body, &e), 0);
    assert_int_equal(body.packed.n, 4);
    assert_true(body.packed.items[0] == 1 && signbit(body.packed.items[1]) && body.packed.items[3] == -2);
}

static void the_numbers_of_a_text_are_counted_whole(void **state)
{
    static const char *const texts[] = { "", "AAAA", "AAAAAA==", "AAAAAAAAAAA=", "AAAAAAAAAAAAAA==", "====", "A" };
    static const size_t counts[] = { 0, 0, 1, 2, 2, 0, 0 };
    float number;

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        assert_int_equal(floats_in_base64(slice_of(texts[i])), counts[i]);
    assert_false(floats_read_base64(SLICE_LIT("AAAAAAAAAAA="), &number, 1));
    assert_true(floats_read_base64(SLICE_LIT("AAAAAA=="), &number, 1));
}

static void the_first_number_that_is_not_finite_is_found(void **state)
{
    static const float wrong[] = { INFINITY, -INFINITY, NAN };
    float items[100] = { FLT_MAX, -FLT_MAX, FLT_MIN / 2 };

    assert_int_equal(floats_count_finite(items, 100), 100);
    assert_int_equal(floats_count_finite(items, 0), 0);
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
        for (size_t at = 100; at-- > 3;) {
            items[at] = wrong[i];
            assert_int_equal(floats_count_finite(items, 100), at);
            assert_int_equal(floats_count_finite(items, at), at);
            if (at == 3)
                memset(items + 3, 0, sizeof(items) - 3 * sizeof(*items));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(base64_that_breaks_a_rule_is_refused),
        cmocka_unit_test(as_many_numbers_are_taken_as_the_row_allows),
        cmocka_unit_test(the_numbers_of_a_text_are_counted_whole),
        cmocka_unit_test(the_first_number_that_is_not_finite_is_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
