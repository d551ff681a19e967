#include "settings/file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdio.h>

struct seen {
    char text[512];
    size_t n;
};

static int note(void *arg, const char *key, const char *value, int line, struct err *e)
{
    struct seen *seen = arg;

    if (strcmp(key, "refuse.me") == 0)
        return err_set(e, -EDOM, "NO", "refused");
    seen->n += (size_t)snprintf(seen->text + seen->n, sizeof(seen->text) - seen->n, "%d:%s=[%s]", line, key, value);
    return 0;
}

static int parse(const char *text, size_t n, struct seen *seen, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();

    return settings_file_parse(a, (struct slice){ text, n }, "t.conf", note, seen, e);
}

static void lines_are_read_as_a_person_means_them(void **state)
{
    static const struct {
        const char *text, *seen;
    } cases[] = {
        { "", "" },
        { "\n\n", "" },
        { "# only a comment", "" },
        { "a.b = 1", "1:a.b=[1]" },
        { "a.b=1\n", "1:a.b=[1]" },
        { "\t a.b \t=\t 1 \t\n", "1:a.b=[1]" },
        { "a = 1\r\nb = 2\r\n", "1:a=[1]2:b=[2]" },
        { "a = one two", "1:a=[one two]" },
        { "a = 1 # why", "1:a=[1]" },
        { "a = b#c", "1:a=[b#c]" },
        { "a = #c", "1:a=[]" },
        { "a =", "1:a=[]" },
        { "a = b = c", "1:a=[b = c]" },
        { "a = say \"x\"", "1:a=[say \"x\"]" },
        { "a = \"  kept # too \" # comment", "1:a=[  kept # too ]" },
        { "a = \"\"", "1:a=[]" },
        { "a = \"q\\\" b\\\\ n\\n t\\t\"", "1:a=[q\" b\\ n\n t\t]" },
        { "\n\n  # x\nz_9.y = \xc3\xa9", "4:z_9.y=[\xc3\xa9]" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct seen seen = { 0 };
        struct err e = { 0 };

        assert_int_equal(parse(cases[i].text, strlen(cases[i].text), &seen, &e), 0);
        assert_string_equal(seen.text, cases[i].seen);
    }
}

static void what_is_no_line_is_refused_with_file_and_line(void **state)
{
    static const struct {
        const char *text, *place;
    } cases[] = {
        { "a", "t.conf:1:" },
        { "= 1", "t.conf:1:" },
        { "a b = 1", "t.conf:1:" },
        { "A = 1", "t.conf:1:" },
        { "a: 1", "t.conf:1:" },
        { "[section]", "t.conf:1:" },
        { "a = 1\nb = \"open", "t.conf:2:" },
        { "a = \"x\" y", "t.conf:1:" },
        { "a = \"x\\", "t.conf:1:" },
        { "a = \"\\q\"", "t.conf:1:" },
        { "a = \"x\\\"", "t.conf:1:" },
        { "a = \xff", "t.conf:1:" },
        { "# \x01", "t.conf:1:" },
        { "a = 1\rb = 2", "t.conf:1:" },
        { "\xef\xbb\xbf"
          "a = 1",
          "t.conf:1:" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct seen seen = { 0 };
        struct err e = { 0 };

        assert_int_equal(parse(cases[i].text, strlen(cases[i].text), &seen, &e), -EINVAL);
        assert_string_equal(e.code, "BAD_SETTING");
        assert_true(strncmp(e.text, cases[i].place, strlen(cases[i].place)) == 0);
    }
}

static void a_nul_byte_is_refused(void **state)
{
    struct seen seen = { 0 };
    struct err e = { 0 };

    assert_int_equal(parse("a = \0", 5, &seen, &e), -EINVAL);
}

static void the_first_refused_pair_ends_it(void **state)
{
    static const char text[] = "a = 1\nrefuse.me = 2\nb = 3";
    struct seen seen = { 0 };
    struct err e = { 0 };

    assert_int_equal(parse(text, strlen(text), &seen, &e), -EDOM);
    assert_string_equal(seen.text, "1:a=[1]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_read_as_a_person_means_them),
        cmocka_unit_test(what_is_no_line_is_refused_with_file_and_line),
        cmocka_unit_test(a_nul_byte_is_refused),
        cmocka_unit_test(the_first_refused_pair_ends_it),
    };

    return cmocka_run_group_tests_name("settings_file", tests, NULL, NULL);
}
