#include "base/json.h"
#include "base/json_write.h"
#include "base/limits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

static int new_arena(void **state)
{
    *state = arena_new();
    return 0;
}

static int free_arena(void **state)
{
    *state = arena_free(*state);
    return 0;
}

static struct json_value parse(struct arena *a, struct slice text)
{
    struct err e = { 0 };
    struct json_value v;

    if (json_parse(a, text, &v, &e) < 0)
        fail_msg("%.*s: %s", (int)text.n, text.p, e.text);
    return v;
}

static struct json_value parse_str(struct arena *a, const char *text)
{
    return parse(a, slice_of(text));
}

/* open, open, ..., inside, close, close */
static char *nest(struct arena *a, size_t n, char open, const char *inside, char close)
{
    size_t n_inside = strlen(inside);
    char *text = arena_alloc(a, 2 * n + n_inside + 1);

    memset(text, open, n);
    memcpy(text + n, inside, n_inside);
    memset(text + n + n_inside, close, n);
    return text;
}

struct refused_case {
    struct slice text;
    const char *says;
};

static const struct refused_case refused[] = {
    { SLICE_LIT(""), "it is empty" },
    { SLICE_LIT(" \n\t"), "it is empty" },
    { SLICE_LIT("{"), "missing" },
    { SLICE_LIT("["), "missing" },
    { SLICE_LIT("]"), "missing" },
    { SLICE_LIT("[}"), "missing" },
    { SLICE_LIT("[1,]"), "missing or superfluous, near byte 3" },
    { SLICE_LIT("{\"a\":1,}"), "near byte 7" },
    { SLICE_LIT("[1 2]"), "near byte 3" },
    { SLICE_LIT("{\"a\" 1}"), "missing" },
    { SLICE_LIT("{a:1}"), "missing" },
    { SLICE_LIT("{\"a\":1} x"), "missing" },
    { SLICE_LIT("1 2"), "missing" },
    { SLICE_LIT("'a'"), "missing" },
    { SLICE_LIT("\xEF\xBB\xBF{}"), "missing" },
    { SLICE_LIT("\"abc"), "a string is not closed" },
    { SLICE_LIT("[\"a\nb\"]"), "a control character that must be escaped" },
    { SLICE_LIT("\"a\0b\""), "a control character that must be escaped" },
    { SLICE_LIT("{}\0"), "missing" },
    { SLICE_LIT("\"\\x\""), "a wrong escape" },
    { SLICE_LIT("\"\\u12\""), "a wrong escape" },
    { SLICE_LIT("{\"\\ud800\":1}"), "a wrong escape" },
    { SLICE_LIT("{\"a\":\"\\ud800\",\"\\udc00\" :1}"), "a wrong escape" },
    { SLICE_LIT("[\"\\ud800\",\"\\ud8\"]"), "a wrong escape" },
    { SLICE_LIT("[18446744073709551616, tru]"), "a word is neither true, false nor null, near byte 23" },
    { SLICE_LIT("[18446744073709551616,-9223372036854775809,1 2]"), "near byte 45" },
    { SLICE_LIT("[018446744073709551616]"), "a number is malformed" },
    { SLICE_LIT("[1,tru]"), "a word is neither true, false nor null, near byte 3" },
    { SLICE_LIT("falsy"), "a word is neither" },
    { SLICE_LIT("nulls"), "a word is neither" },
    { SLICE_LIT("NaN"), "missing" },
    { SLICE_LIT("01"), "a number is malformed" },
    { SLICE_LIT("+1"), "missing" },
    { SLICE_LIT("-"), "a number is malformed" },
    { SLICE_LIT("1."), "a number is malformed" },
    { SLICE_LIT("1e"), "a number is malformed" },
    { SLICE_LIT("[0x10]"), "a number is malformed" },
    { SLICE_LIT("1e400"), "too large" },
    { SLICE_LIT("-1e400"), "too large" },
    { SLICE_LIT("[\"ok\", \"\xFF\"]"), "it is not UTF-8, near byte 8" },
    { SLICE_LIT("\"\xED\xA0\x80\""), "it is not UTF-8, near byte 1" },
};

static void text_that_is_no_json_is_refused_with_what_and_where(void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
        struct err e = { 0 };
        struct json_value v = { .at = 77 };
        int r = json_parse(*state, refused[i].text, &v, &e);

        if (r != -EINVAL || strcmp(e.code, "INVALID_JSON") != 0 || !strstr(e.text, refused[i].says))
            fail_msg("case %zu `%s`: %d %s %s", i, refused[i].text.p, r, e.code, e.text);
        assert_int_equal(v.at, 77);
    }
}

static void a_refusal_works_without_an_err(void **state)
{
    struct json_value v;

    assert_int_equal(json_parse(*state, SLICE_LIT("[1,"), &v, NULL), -EINVAL);
}

static void nesting_is_allowed_to_the_limit_and_refused_beyond(void **state)
{
    struct json_value v;
    struct err e = { 0 };

    assert_int_equal(json_type(parse_str(*state, nest(*state, LIMIT_JSON_DEPTH, '[', "1", ']'))), JSON_ARRAY);
    assert_int_equal(json_type(parse_str(*state, nest(*state, LIMIT_JSON_DEPTH - 1, '[', "{\"a\":1}", ']'))),
                     JSON_ARRAY);
    assert_int_equal(json_parse(*state, slice_of(nest(*state, LIMIT_JSON_DEPTH + 1, '[', "1", ']')), &v, &e), -EINVAL);
    assert_string_equal(e.text, "The JSON is nested deeper than 64 levels");
    assert_int_equal(json_parse(*state, slice_of(nest(*state, LIMIT_JSON_DEPTH, '[', "{\"a\":1}", ']')), &v, NULL),
                     -EINVAL);
    assert_int_equal(json_parse(*state, slice_of(nest(*state, 10000, '[', "", ']')), &v, &e), -EINVAL);
    assert_int_equal(json_parse(*state, slice_of(nest(*state, 10000, '[', "", ' ')), &v, &e), -EINVAL);
}

struct type_case {
    const char *text;
    enum json_type type;
    const char *name, *printed;
};

static const struct type_case types[] = {
    { "null", JSON_NULL, "null", "null" },
    { " true ", JSON_BOOL, "boolean", "true" },
    { "false", JSON_BOOL, "boolean", "false" },
    { "0", JSON_INT, "integer", "0" },
    { "-0", JSON_INT, "integer", "0" },
    { "9007199254740993", JSON_INT, "integer", "9007199254740993" },
    { "9223372036854775807", JSON_INT, "integer", "9223372036854775807" },
    { "-9223372036854775808", JSON_INT, "integer", "-9223372036854775808" },
    { "9223372036854775808", JSON_DOUBLE, "number", "9223372036854775808" },
    { "18446744073709551615", JSON_DOUBLE, "number", "18446744073709551615" },
    { "5.0", JSON_DOUBLE, "number", "5" },
    { "-0.0", JSON_DOUBLE, "number", "-0.0" },
    { "1e-400", JSON_DOUBLE, "number", "0" },
    { "123456789012345678901234567890.5", JSON_DOUBLE, "number", "1.2345678901234568e+29" },
    { "\"\"", JSON_STRING, "string", "\"\"" },
    { "[]", JSON_ARRAY, "array", "[]" },
    { "{}", JSON_OBJECT, "object", "{}" },
};

static void every_value_has_its_type_and_prints_exactly(void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
        struct json_value v = parse_str(*state, types[i].text);

        assert_int_equal(json_type(v), types[i].type);
        assert_string_equal(json_to_str(*state, v), types[i].printed);
    }
}

static void absent_is_read_as_nothing_everywhere(void **state)
{
    struct json_value absent = { 0 }, item;
    struct json_iter it = json_iter(absent);

    assert_int_equal(json_type(absent), JSON_ABSENT);
    assert_true(json_is_absent(absent));
    assert_true(json_is_absent(parse_str(*state, "null")));
    assert_false(json_is_absent(parse_str(*state, "false")));
    assert_int_equal(json_type(json_get(absent, "a")), JSON_ABSENT);
    assert_int_equal(json_length(absent), 0);
    assert_int_equal(json_int(absent), 0);
    assert_true(json_double(absent) == 0);
    assert_false(json_bool(absent));
    assert_int_equal(json_string(absent).n, 0);
    assert_null(json_cstr(absent));
    assert_false(json_next(&it, NULL, &item));
    assert_string_equal(json_to_str(*state, absent), "null");
}

static void whole_numbers_without_sign_are_read_exactly(void **state)
{
    static const struct {
        const char *text;
        bool is_read;
        uint64_t value;
    } cases[] = {
        { "0", true, 0 },
        { "9007199254740993", true, UINT64_C(9007199254740993) },
        { "9223372036854775808", true, UINT64_C(9223372036854775808) },
        { "18446744073709551615", true, UINT64_MAX },
        { "18446744073709551616", false, 0 },
        { "-1", false, 0 },
        { "1.0", false, 0 },
        { "\"1\"", false, 0 },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        uint64_t value = 0;

        assert_int_equal(json_read_uint(parse_str(*state, cases[i].text), &value), cases[i].is_read);
        assert_true(value == cases[i].value);
    }
}

static void a_value_of_another_type_reads_as_zero(void **state)
{
    struct json_value v = parse_str(*state, "{\"s\":\"7\",\"i\":7,\"d\":7.5,\"u\":18446744073709551615,\"a\":[1,2,3]}");

    assert_int_equal(json_int(json_get(v, "s")), 0);
    assert_int_equal(json_int(json_get(v, "d")), 0);
    assert_int_equal(json_int(json_get(v, "u")), 0);
    assert_true(json_double(json_get(v, "u")) == 18446744073709551615.0);
    assert_true(json_double(json_get(v, "i")) == 7.0);
    assert_null(json_cstr(json_get(v, "i")));
    assert_int_equal(json_string(json_get(v, "a")).n, 0);
    assert_int_equal(json_length(json_get(v, "s")), 0);
    assert_int_equal(json_length(json_get(v, "a")), 3);
    assert_int_equal(json_length(v), 5);
    assert_int_equal(json_type(json_get(json_get(v, "a"), "x")), JSON_ABSENT);
}

static void the_first_of_equal_names_counts(void **state)
{
    struct json_value v = parse_str(*state, "{\"a\":1,\"b\":2,\"a\":3}");

    assert_int_equal(json_int(json_get(v, "a")), 1);
    assert_int_equal(json_type(json_get(v, "A")), JSON_ABSENT);
    assert_int_equal(json_length(v), 3);
}

static void strings_are_decoded_and_end_with_a_nul(void **state)
{
    struct json_value v = parse_str(*state, "[\"\\ud83d\\ude00 \\\"\\/\\n\", \"a\\u0000b\"]");
    struct json_iter it = json_iter(v);
    struct slice key, s;
    struct json_value item;

    assert_true(json_next(&it, &key, &item));
    assert_string_equal(json_cstr(item), "\xF0\x9F\x98\x80 \"/\n");
    assert_true(json_next(&it, &key, &item));
    s = json_string(item);
    assert_true(slice_eq(s, SLICE_LIT("a\0b")));
    assert_int_equal(s.p[s.n], 0);
    assert_null(json_cstr(item));
    assert_false(json_next(&it, &key, &item));
}

/* JavaScript may cut a text between the halves of a character, and writes the remaining half. */
static void half_a_character_in_a_text_is_read_as_the_replacement(void **state)
{
    static const struct {
        const char *text, *wanted;
    } cases[] = {
        { "\"\\ud83d\"", "\xEF\xBF\xBD" },
        { "\"\\udE00\"", "\xEF\xBF\xBD" },
        { "\"a\\ud83dz\"", "a\xEF\xBF\xBDz" },
        { "\"\\ud83d\\ud83d\\ude00\"", "\xEF\xBF\xBD\xF0\x9F\x98\x80" },
        { "\"\\ude00\\ud83d\"", "\xEF\xBF\xBD\xEF\xBF\xBD" },
        { "\"\\ud83d\\u0041\"", "\xEF\xBF\xBD"
                                "A" },
        { "\"\\ud83d\\n\\\\ud83d\\\"\"", "\xEF\xBF\xBD\n\\ud83d\"" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_string_equal(json_cstr(parse_str(*state, cases[i].text)), cases[i].wanted);
    assert_string_equal(json_to_str(*state,
                                    parse_str(*state, "{\"\\ud83d\\ude00\" : [\"\\udfff\", 1], \"b\": \"\\ud800 \"}")),
                        "{\"\xF0\x9F\x98\x80\":[\"\xEF\xBF\xBD\",1],\"b\":\"\xEF\xBF\xBD \"}");
}

static void an_integer_beyond_64_bits_is_read_as_a_double(void **state)
{
    static const struct {
        const char *text;
        double wanted;
    } cases[] = {
        { "18446744073709551616", 18446744073709551616.0 },
        { "-9223372036854775809", -9223372036854775808.0 },
        { "123456789012345678901234567890", 123456789012345678901234567890.0 },
        { "-1180591620717411303424", -1180591620717411303424.0 },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct json_value v = parse_str(*state, cases[i].text);

        assert_int_equal(json_type(v), JSON_DOUBLE);
        assert_true(json_double(v) == cases[i].wanted);
    }
    assert_string_equal(
        json_to_str(
            *state,
            parse_str(
                *state,
                "{\"n\": [1, 18446744073709551615, -9223372036854775808, 1e2, 99999999999999999999,\"99999999999999999999\"]}")),
        "{\"n\":[1,18446744073709551615,-9223372036854775808,100,1e+20,\"99999999999999999999\"]}");
}

static void iteration_gives_members_in_order_with_their_names(void **state)
{
    struct json_value v = parse_str(*state, "{\"b\":[1],\"a\":{\"x\":null},\"\":3}"), item;
    struct json_iter it = json_iter(v);
    struct slice key;

    assert_true(json_next(&it, &key, &item));
    assert_true(slice_eq_str(key, "b"));
    assert_int_equal(json_type(item), JSON_ARRAY);
    assert_true(json_next(&it, &key, &item));
    assert_true(slice_eq_str(key, "a"));
    assert_int_equal(json_type(item), JSON_OBJECT);
    assert_true(json_next(&it, NULL, &item));
    assert_int_equal(json_int(item), 3);
    assert_false(json_next(&it, &key, &item));
    assert_false(json_next(&it, &key, &item));
}

static void printing_keeps_order_and_drops_white_space(void **state)
{
    const char *text =
        " { \"b\" : [ 1 , -2.5 , \"x\\ty\" , [ ] , { } ] ,\n \"a\" : { \"c\" : null } , \"\\u00e9\" : true } ";

    assert_string_equal(json_to_str(*state, parse_str(*state, text)),
                        "{\"b\":[1,-2.5,\"x\\ty\",[],{}],\"a\":{\"c\":null},\"\xC3\xA9\":true}");
}

static void several_documents_live_side_by_side_in_one_arena(void **state)
{
    struct json_value v[100];
    char text[32];

    for (int i = 0; i < 100; i++) {
        snprintf(text, sizeof text, "{\"n\":%d,\"s\":\"%d\"}", i, i);
        v[i] = parse_str(*state, text);
    }
    for (int i = 0; i < 100; i++) {
        assert_int_equal(json_int(json_get(v[i], "n")), i);
        assert_int_equal(strtol(json_cstr(json_get(v[i], "s")), NULL, 10), i);
    }
}

/* The parser's own count stops at 2^24 - 1. */
static void a_huge_array_is_counted_to_its_end(void **state)
{
    const size_t n = 1u << 24;
    char *text = malloc(2 * n + 1);

    assert_non_null(text);
    for (size_t i = 0; i < n; i++)
        memcpy(text + 2 * i, i == 0 ? "[1" : ",1", 2);
    text[2 * n] = ']';
    assert_int_equal(json_length(parse(*state, (struct slice){ text, 2 * n + 1 })), n);
    free(text);
}

static const double doubles[] = {
    0.0,
    -0.0,
    5.0,
    0.1,
    -2.5,
    1.0 / 3,
    1e15,
    1e16,
    1e21,
    1e22,
    123456789012345680000.0,
    4503599627370497.5,
    9007199254740993.0,
    9223372036854774784.0,
    9223372036854775808.0,
    -9223372036854775808.0,
    18446744073709551616.0,
    5e-324,
    2.2250738585072014e-308,
    1.7976931348623157e308,
    -1.7976931348623157e308,
    3.141592653589793,
};

static void doubles_survive_writing_and_reading(void **state)
{
    char text[32];

    for (size_t i = 0; i < ARRAY_SIZE(doubles); i++) {
        size_t n = json_format_double(text, doubles[i]);
        double back = json_double(parse(*state, (struct slice){ text, n }));

        assert_int_equal(strlen(text), n);
        if (memcmp(&back, &doubles[i], sizeof back) != 0)
            fail_msg("%s: %.17g became %.17g", text, doubles[i], back);
    }
}

static const float floats[] = {
    0, -0.0f, 1, -1, 0.1f, 1e-45f, 3.4028235e38f, -3.4028235e38f, 16777216, 1.17549435e-38f, 9.2233720e18f, 0.333333343f
};

static void floats_survive_writing_and_reading(void **state)
{
    float back[ARRAY_SIZE(floats)];
    struct json_writer w;
    struct buf text;
    struct json_value v;

    buf_init(&text, 4096);
    json_write_init(&w, &text);
    json_add_floats(&w, NULL, floats, ARRAY_SIZE(floats));
    assert_non_null(strstr(buf_str(&text), ",0.1,1e-45,"));
    v = parse(*state, buf_slice(&text));
    assert_int_equal(json_read_floats(v, back, ARRAY_SIZE(back)), ARRAY_SIZE(floats));
    assert_memory_equal(back, floats, sizeof(floats));
    buf_clear(&text);
}

static void floats_are_read_up_to_the_first_that_is_none(void **state)
{
    static const struct {
        const char *text;
        size_t n;
    } cases[] = {
        { "[1,2,3,4]", 3 }, { "[1,2]", 2 },      { "[]", 0 },
        { "{}", 0 },        { "7", 0 },          { "[1,null,3]", 1 },
        { "[\"1\"]", 0 },   { "[1,3.5e38]", 1 }, { "[9007199254740993,18446744073709551615]", 2 },
    };
    float out[3];

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_int_equal(json_read_floats(parse(*state, slice_of(cases[i].text)), out, ARRAY_SIZE(out)), cases[i].n);
    assert_int_equal(json_read_floats((struct json_value){ 0 }, out, ARRAY_SIZE(out)), 0);
}

static void random_doubles_survive_writing_and_reading(void **state)
{
    uint64_t bits = 88172645463325252u;

    for (int i = 0; i < 20000; i++) {
        char text[32];
        double d, back;

        bits ^= bits << 13;
        bits ^= bits >> 7;
        bits ^= bits << 17;
        memcpy(&d, &bits, sizeof d);
        if (!isfinite(d))
            continue;
        back = strtod((json_format_double(text, d), text), NULL);
        if (back != d || strlen(text) > 31)
            fail_msg("%s: %.17g became %.17g", text, d, back);
    }
}

static void what_is_no_number_is_written_as_null(void **state)
{
    char text[32];

    assert_int_equal(json_format_double(text, NAN), 4);
    assert_string_equal(text, "null");
    assert_int_equal(json_format_double(text, -HUGE_VAL), 4);
    assert_string_equal(text, "null");
}

/* "[0,0,...]" of n numbers. */
static char *many_zeros(size_t n, size_t *ret_n)
{
    char *text = malloc(2 * n + 1);

    for (size_t i = 0; i < n; i++) {
        text[2 * i] = i ? ',' : '[';
        text[2 * i + 1] = '0';
    }
    text[2 * n] = ']';
    *ret_n = 2 * n + 1;
    return text;
}

static void as_many_values_as_the_limit_are_read_and_more_are_not(void **state)
{
    for (size_t more = 0; more <= 1; more++) {
        AUTO(arena_freep) struct arena *a = arena_new();
        struct json_value v = { 0 };
        struct err e = { 0 };
        size_t n;
        char *text = many_zeros(LIMIT_JSON_VALUES + more, &n);

        assert_int_equal(json_parse(a, (struct slice){ text, n }, &v, &e), more ? -E2BIG : 0);
        assert_string_equal(e.code, more ? "BODY_TOO_LARGE" : "");
        assert_int_equal(json_length(v), more ? 0 : LIMIT_JSON_VALUES);
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(text_that_is_no_json_is_refused_with_what_and_where, new_arena, free_arena),
        cmocka_unit_test_setup_teardown(a_refusal_works_without_an_err, new_arena, free_arena),
        cmocka_unit_test_setup_teardown(nesting_is_allowed_to_the_limit_and_refused_beyond, new_arena, free_arena),
        cmocka_unit_test_setup_teardown(every_value_has_its_type_and_prints_exactly, new_arena, free_arena),
        cmocka_unit_test_setup_teardown(absent_is_read_as_nothing_everywhere, new_arena, free_arena),
        cmocka_unit_test_setup_teardown(whole_numbers_without_sign_are_read_exactly, new_arena, free_arena),
        cmocka_unit_test_setup_teardown(a_value_of_another_type_reads_as_zero, new_arena, free_arena),
        cmocka_unit_test_setup_teardown(the_first_of_equal_names_counts, new_arena, free_arena),
        cmocka_unit_test_setup_teardown(strings_are_decoded_and_end_with_a_nul, new_arena, free_arena),
        cmocka_unit_test_setup_teardown(half_a_character_in_a_text_is_read_as_the_replacement, new_arena, free_arena),
        cmocka_unit_test_setup_teardown(an_integer_beyond_64_bits_is_read_as_a_double, new_arena, free_arena),
        cmocka_unit_test_setup_teardown(iteration_gives_members_in_order_with_their_names, new_arena, free_arena),
        cmocka_unit_test_setup_teardown(printing_keeps_order_and_drops_white_space, new_arena, free_arena),
        cmocka_unit_test_setup_teardown(several_documents_live_side_by_side_in_one_arena, new_arena, free_arena),
        cmocka_unit_test_setup_teardown(a_huge_array_is_counted_to_its_end, new_arena, free_arena),
        cmocka_unit_test_setup_teardown(doubles_survive_writing_and_reading, new_arena, free_arena),
        cmocka_unit_test_setup_teardown(floats_survive_writing_and_reading, new_arena, free_arena),
        cmocka_unit_test_setup_teardown(floats_are_read_up_to_the_first_that_is_none, new_arena, free_arena),
        cmocka_unit_test_setup_teardown(random_doubles_survive_writing_and_reading, new_arena, free_arena),
        cmocka_unit_test_setup_teardown(what_is_no_number_is_written_as_null, new_arena, free_arena),
        cmocka_unit_test(as_many_values_as_the_limit_are_read_and_more_are_not),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
