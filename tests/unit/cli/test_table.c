#include "cli/table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static struct arena *arena;

static int set_up(void **state)
{
    setenv("TZ", "UTC", 1);
    arena = arena_new();
    return 0;
}

static int tear_down(void **state)
{
    arena = arena_free(arena);
    return 0;
}

static struct json_value json(const char *text)
{
    struct json_value v;

    assert_int_equal(json_parse(arena, slice_of(text), &v, NULL), 0);
    return v;
}

static const char *print_form(const char *list, const struct cli_column *columns, const struct table_form *form)
{
    struct buf out;
    char *text;

    buf_init(&out, 1 << 16);
    table_print(&out, json(list), columns, form);
    text = arena_strdup(arena, buf_str(&out));
    buf_clear(&out);
    return text;
}

static const char *print(const char *list, const struct cli_column *columns)
{
    return print_form(list, columns, &(struct table_form){ 0 });
}

static void a_table_fits_the_terminal(void **state)
{
    static const struct cli_column columns[] = { { "ID", "id", CLI_ID },
                                                 { "NAME", "name" },
                                                 { "NOTE", "note", .drop = 1 },
                                                 { "MORE", "more", .drop = 2 },
                                                 { .title = NULL } };
    const char *list =
        "[{\"id\":\"6fa459ea-ee8a-4ca4-894e-db77e160355e\",\"name\":\"a longer name\",\"note\":\"n\",\"more\":\"m\"}]";

    assert_string_equal(print_form(list, columns, &(struct table_form){ .width = 35 }),
                        "ID        NAME           NOTE  MORE\n6fa459ea  a longer name  n     m\n");
    assert_string_equal(
        print_form(list, columns, &(struct table_form){ .width = 34 }),
        "ID        NAME           NOTE\n6fa459ea  a longer name  n\n(left out: MORE; --wide shows everything)\n");
    assert_string_equal(
        print_form(list, columns, &(struct table_form){ .width = 20 }),
        "ID        NAME\n6fa459ea  a longer \xE2\x80\xA6\n(left out: NOTE, MORE; --wide shows everything)\n");
    assert_string_equal(
        print_form(list, columns, &(struct table_form){ .width = 20, .is_wide = true }),
        "ID                                    NAME           NOTE  MORE\n6fa459ea-ee8a-4ca4-894e-db77e160355e  a longer name  n     m\n");
}

static void columns_are_as_wide_as_their_widest_cell(void **state)
{
    static const struct cli_column columns[] = { { "ID", "id" }, { "NAME", "name" }, { "N", "n" }, { .title = NULL } };

    assert_string_equal(
        print("[{\"id\":\"a\",\"name\":\"longer\",\"n\":1},{\"id\":\"bcd\",\"name\":\"\",\"n\":null},{}]", columns),
        "ID   NAME    N\n"
        "a    longer  1\n"
        "bcd  -       -\n"
        "-    -       -\n");
}

static void width_counts_characters_not_bytes(void **state)
{
    static const struct cli_column columns[] = { { "A", "a" }, { "B", "b" }, { .title = NULL } };

    assert_string_equal(print("[{\"a\":\"\\u00e9\\u00e9\",\"b\":\"x\"},{\"a\":\"abc\",\"b\":\"y\"}]", columns),
                        "A    B\n\xC3\xA9\xC3\xA9   x\nabc  y\n");
}

static const struct {
    const char *json;
    enum cli_format format;
    const char *shown;
} cells[] = {
    { "{\"v\":\"2026-11-20T09:32:05.682Z\"}", CLI_TIME, "2026-11-20 09:32:05" },
    { "{\"v\":\"soon\"}", CLI_TIME, "soon" },
    { "{\"v\":true}", CLI_YES_NO, "yes" },
    { "{\"v\":false}", CLI_YES_NO, "no" },
    { "{\"v\":[1,2,3]}", CLI_COUNT, "3" },
    { "{\"v\":[\"a\",\"b\"]}", CLI_JOINED, "a, b" },
    { "{\"v\":[]}", CLI_JOINED, "-" },
    { "{\"v\":{\"a\":1}}", CLI_TEXT, "{\"a\":1}" },
    { "{\"v\":\"\\u001b[31mred\\nline\"}", CLI_TEXT, "\\u001b[31mred\\nline" },
    { "{\"v\":\"a\\u202eb\\u009bc\\u200dd\"}", CLI_TEXT, "a\\u202eb\\u009bc\\u200dd" },
    { "{\"v\":\"123456789012345678901234567890123456789012345678901234567890\"}", CLI_TEXT,
      "123456789012345678901234567890123456789012345678901234567890" },
    { "{\"v\":\"1234567890123456789012345678901234567890123456789012345678901\"}", CLI_TEXT,
      "12345678901234567890123456789012345678901234567890123456789\xE2\x80\xA6" },
};

static void each_cell_is_shown_for_a_person(void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(cells); i++) {
        const struct cli_column column = { "V", "v", cells[i].format };

        assert_string_equal(table_cell(arena, json(cells[i].json), &column), cells[i].shown);
    }
}

static void an_object_is_shown_as_labelled_lines(void **state)
{
    struct buf out;

    buf_init(&out, 1 << 16);
    table_print_object(&out, json("{\"id\":\"a\",\"display\":\"two\\u0007\",\"list\":[1]}"));
    assert_string_equal(buf_str(&out), "id:      a\ndisplay: two\\u0007\nlist:    [1]\n");
    buf_clear(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_table_fits_the_terminal, set_up, tear_down),
        cmocka_unit_test_setup_teardown(columns_are_as_wide_as_their_widest_cell, set_up, tear_down),
        cmocka_unit_test_setup_teardown(width_counts_characters_not_bytes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(each_cell_is_shown_for_a_person, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_object_is_shown_as_labelled_lines, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
