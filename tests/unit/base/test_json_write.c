#include "base/json_write.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <math.h>

/* A writer with its own buffer of at most 4 KiB. */
struct sheet {
    struct buf text;
    struct json_writer w;
};

static int new_sheet(void **state)
{
    struct sheet *sheet = xcalloc(1, sizeof *sheet);

    buf_init(&sheet->text, 4096);
    json_write_init(&sheet->w, &sheet->text);
    *state = sheet;
    return 0;
}

static int free_sheet(void **state)
{
    struct sheet *sheet = *state;

    buf_clear(&sheet->text);
    free(sheet);
    return 0;
}

static void objects_and_arrays_get_commas_and_names(void **state)
{
    struct sheet *sheet = *state;
    struct json_writer *w = &sheet->w;

    json_begin_object(w);
    json_add_bool(w, "success", true);
    json_begin_array_as(w, "rows");
    json_begin_object(w);
    json_end(w);
    json_begin_object(w);
    json_add_int(w, "id", -7);
    json_end(w);
    json_begin_array(w);
    json_end(w);
    json_add_null(w, NULL);
    json_end(w);
    json_begin_object_as(w, "meta");
    json_add_double(w, "score", 0.5);
    json_end(w);
    json_add_bool(w, "a\"b", false);
    json_end(w);
    assert_string_equal(buf_str(&sheet->text), "{\"success\":true,\"rows\":[{},{\"id\":-7},[],null],"
                                               "\"meta\":{\"score\":0.5},\"a\\\"b\":false}");
}

static void every_kind_of_scalar_is_written(void **state)
{
    struct sheet *sheet = *state;
    struct json_writer *w = &sheet->w;

    json_begin_array(w);
    json_add_int(w, NULL, INT64_MIN);
    json_add_int(w, NULL, INT64_MAX);
    json_add_double(w, NULL, 1e300);
    json_add_double(w, NULL, NAN);
    json_add_double(w, NULL, -HUGE_VAL);
    json_add_string(w, NULL, NULL);
    json_add_string(w, NULL, "");
    json_add_slice(w, NULL, SLICE_LIT("a\0b"));
    json_add_raw(w, NULL, "{\"k\":1}");
    json_add_raw(w, NULL, "");
    json_add_raw(w, NULL, NULL);
    json_add_value(w, NULL, (struct json_value){ 0 });
    json_add_strings(w, NULL, (const char *const[]){ "x", "y" }, 2);
    json_add_strings(w, NULL, NULL, 0);
    json_end(w);
    assert_string_equal(buf_str(&sheet->text),
                        "[-9223372036854775808,9223372036854775807,1e+300,null,null,null,\"\",\"a\\u0000b\","
                        "{\"k\":1},null,null,null,[\"x\",\"y\"],[]]");
}

static void a_lone_scalar_is_a_document(void **state)
{
    struct sheet *sheet = *state;

    json_add_string(&sheet->w, NULL, "alone");
    assert_string_equal(buf_str(&sheet->text), "\"alone\"");
}

static void a_parsed_value_is_copied_into_the_text(void **state)
{
    struct sheet *sheet = *state;
    AUTO(arena_freep) struct arena *a = arena_new();
    struct json_value v;

    assert_int_equal(json_parse(a, SLICE_LIT("{ \"n\" : [ 1, 2.50 ] }"), &v, NULL), 0);
    json_begin_object(&sheet->w);
    json_add_value(&sheet->w, "copy", v);
    json_add_int(&sheet->w, "after", 1);
    json_end(&sheet->w);
    assert_string_equal(buf_str(&sheet->text), "{\"copy\":{\"n\":[1,2.5]},\"after\":1}");
}

struct quote_case {
    struct slice in;
    const char *out;
};

static const struct quote_case quotes[] = {
    { SLICE_LIT(""), "\"\"" },
    { SLICE_LIT("plain"), "\"plain\"" },
    { SLICE_LIT("\"\\/"), "\"\\\"\\\\/\"" },
    { SLICE_LIT("\b\t\n\f\r"), "\"\\b\\t\\n\\f\\r\"" },
    { SLICE_LIT("\0\x01\x0B\x1F\x7F"), "\"\\u0000\\u0001\\u000b\\u001f\x7F\"" },
    { SLICE_LIT("\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80"), "\"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\"" },
    { SLICE_LIT("a\xFFz"), "\"a\xEF\xBF\xBDz\"" },
    { SLICE_LIT("\xED\xA0\x80"), "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"" },
    { SLICE_LIT("cut \xE2\x82"), "\"cut \xEF\xBF\xBD\xEF\xBF\xBD\"" },
    { SLICE_LIT("\xE2\x82\xAC\x80"), "\"\xE2\x82\xAC\xEF\xBF\xBD\"" },
};

static void strings_are_escaped_and_made_valid(void **state)
{
    struct sheet *sheet = *state;

    for (size_t i = 0; i < ARRAY_SIZE(quotes); i++) {
        buf_reset(&sheet->text);
        json_quote(&sheet->text, quotes[i].in);
        assert_string_equal(buf_str(&sheet->text), quotes[i].out);
    }
}

static void escaped_parts_make_one_string(void **state)
{
    struct sheet *sheet = *state;
    struct buf text;

    buf_init(&text, 100);
    json_escape(&text, SLICE_LIT(""));
    json_escape(&text, SLICE_LIT("a\n"));
    json_escape(&text, SLICE_LIT("\"b\xFF"));
    json_begin_object(&sheet->w);
    json_add_escaped(&sheet->w, "text", buf_slice(&text));
    json_add_escaped(&sheet->w, "none", SLICE_LIT(""));
    json_end(&sheet->w);
    buf_clear(&text);
    assert_string_equal(buf_str(&sheet->text), "{\"text\":\"a\\n\\\"b\xEF\xBF\xBD\",\"none\":\"\"}");
}

static void every_byte_string_reads_back(void **state)
{
    struct sheet *sheet = *state;
    AUTO(arena_freep) struct arena *a = arena_new();
    struct json_value v;

    for (int byte = 0; byte < 256; byte++) {
        char in[3] = { 'a', (char)byte, 'b' };

        buf_reset(&sheet->text);
        json_quote(&sheet->text, (struct slice){ in, 3 });
        assert_int_equal(json_parse(a, buf_slice(&sheet->text), &v, NULL), 0);
        if (byte < 0x80)
            assert_true(slice_eq(json_string(v), (struct slice){ in, 3 }));
        else
            assert_string_equal(json_cstr(v), "a\xEF\xBF\xBD"
                                              "b");
    }
}

static void a_full_buffer_is_reported_once_at_the_end(void **state)
{
    struct sheet *sheet = *state;
    struct err e = { 0 };

    json_begin_array(&sheet->w);
    for (int i = 0; i < 4096; i++)
        json_add_int(&sheet->w, NULL, i);
    json_end(&sheet->w);
    assert_int_equal(buf_check(&sheet->text, &e), -E2BIG);
}

static void the_deepest_nesting_is_written(void **state)
{
    struct sheet *sheet = *state;
    const int deepest = ARRAY_SIZE(sheet->w.is_object) - 1;

    for (int i = 0; i < deepest; i++)
        json_begin_array(&sheet->w);
    for (int i = 0; i < deepest; i++)
        json_end(&sheet->w);
    assert_int_equal(sheet->text.n, 2 * deepest);
}

/* Eight bytes are looked at together: a byte that needs an escape is found at every place among others. */
static void every_byte_is_escaped_at_every_place(void **state)
{
    enum { N = 19 };

    for (int byte = 0; byte < 128; byte++)
        for (size_t at = 0; at < N; at++) {
            bool is_short = byte && strchr("\b\t\n\f\r\"\\", byte), is_long = byte < 0x20 && !is_short;
            char text[N];
            struct buf out;

            memset(text, byte == 'a' ? 'b' : 'a', sizeof(text));
            text[at] = (char)byte;
            buf_init(&out, 100);
            json_quote(&out, (struct slice){ text, sizeof(text) });
            assert_int_equal(out.n, N + 2 + (is_short ? 1 : 0) + (is_long ? 5 : 0));
            assert_memory_equal(out.p + 1, text, at);
            assert_int_equal(out.p[at + 1], is_short || is_long ? '\\' : byte);
            assert_memory_equal(out.p + out.n - 1 - (N - 1 - at), text + at + 1, N - 1 - at);
            buf_clear(&out);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(objects_and_arrays_get_commas_and_names, new_sheet, free_sheet),
        cmocka_unit_test_setup_teardown(every_kind_of_scalar_is_written, new_sheet, free_sheet),
        cmocka_unit_test_setup_teardown(a_lone_scalar_is_a_document, new_sheet, free_sheet),
        cmocka_unit_test_setup_teardown(a_parsed_value_is_copied_into_the_text, new_sheet, free_sheet),
        cmocka_unit_test_setup_teardown(strings_are_escaped_and_made_valid, new_sheet, free_sheet),
        cmocka_unit_test_setup_teardown(escaped_parts_make_one_string, new_sheet, free_sheet),
        cmocka_unit_test_setup_teardown(every_byte_string_reads_back, new_sheet, free_sheet),
        cmocka_unit_test_setup_teardown(a_full_buffer_is_reported_once_at_the_end, new_sheet, free_sheet),
        cmocka_unit_test_setup_teardown(the_deepest_nesting_is_written, new_sheet, free_sheet),
        cmocka_unit_test(every_byte_is_escaped_at_every_place),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
