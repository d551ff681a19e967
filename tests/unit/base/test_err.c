#include "base/err.h"
#include "base/utf8.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdio.h>

static void set_fills_code_and_text_and_returns_the_number(void **state)
{
    struct err e = { 0 };

    assert_int_equal(err_set(&e, -ENOENT, "TASK_NOT_FOUND", "No task %d.", 7), -ENOENT);
    assert_string_equal(e.code, "TASK_NOT_FOUND");
    assert_string_equal(e.text, "No task 7.");
}

static void without_an_err_only_the_number_is_reported(void **state)
{
    assert_int_equal(err_set(NULL, -ENOENT, "X", "text"), -ENOENT);
    assert_int_equal(err_add_field(NULL, "limit", "must be a number"), -EINVAL);
    assert_int_equal(err_prefix(NULL, -EIO, "task"), -EIO);
    assert_int_equal(err_errno(NULL, EACCES, "open"), -EACCES);
    err_add_extra(NULL, "permission", "llm.chat");
}

static void a_text_may_be_made_from_itself(void **state)
{
    struct err e = { 0 };

    err_set(&e, -EIO, "X", "inner");
    err_set(&e, -EIO, e.code, "outer of %s", e.text);
    assert_string_equal(e.text, "outer of inner");
    assert_string_equal(e.code, "X");
}

static void a_prefix_stands_before_the_text(void **state)
{
    struct err e = { 0 };

    err_set(&e, -EIO, "X", "the disk is full");
    assert_int_equal(err_prefix(&e, -EIO, "task %d", 3), -EIO);
    assert_string_equal(e.text, "task 3: the disk is full");
    assert_string_equal(e.code, "X");
}

static void a_failed_system_call_is_named_with_its_reason(void **state)
{
    struct err e = { 0 };

    assert_int_equal(err_errno(&e, ENOENT, "opening %s", "data.db"), -ENOENT);
    assert_string_equal(e.code, "INTERNAL_ERROR");
    assert_string_equal(e.text, "opening data.db: No such file or directory");
}

static void a_lack_of_resources_has_a_code_of_its_own(void **state)
{
    struct err e = { 0 };

    assert_int_equal(err_errno(&e, EMFILE, "opening"), -EMFILE);
    assert_string_equal(e.code, "TOO_FEW_FILES");
    assert_int_equal(err_errno(&e, ENOMEM, "opening"), -ENOMEM);
    assert_string_equal(e.code, "OUT_OF_MEMORY");
    assert_string_equal(err_code_of(-ENFILE, "STORE_ERROR"), "TOO_FEW_FILES");
    assert_string_equal(err_code_of(-EIO, "STORE_ERROR"), "STORE_ERROR");
}

static void the_first_violation_is_the_text_and_all_are_kept(void **state)
{
    struct err e = { 0 };

    assert_int_equal(err_add_field(&e, "limit", "must be at most %d", 500), -EINVAL);
    assert_int_equal(err_add_field(&e, "config.args[2]", "must be a string"), -EINVAL);
    assert_string_equal(e.code, "VALIDATION_ERROR");
    assert_string_equal(e.text, "`limit` must be at most 500");
    assert_int_equal(e.n_fields, 2);
    assert_string_equal(e.fields[1].field, "config.args[2]");
    assert_string_equal(e.fields[1].rule, "must be a string");
}

static void a_violation_of_the_whole_body_has_no_field_name(void **state)
{
    struct err e = { 0 };

    err_add_field(&e, "", "The body must be an object.");
    assert_string_equal(e.text, "The body must be an object.");
}

static void violations_beyond_the_limit_are_only_counted(void **state)
{
    struct err e = { 0 };
    char field[16];

    for (int i = 0; i < ERR_MAX_FIELDS + 3; i++) {
        snprintf(field, sizeof(field), "f%d", i);
        err_add_field(&e, field, "is wrong");
    }
    assert_int_equal(e.n_fields, ERR_MAX_FIELDS + 3);
    assert_string_equal(e.fields[ERR_MAX_FIELDS - 1].field, "f31");
    assert_int_equal(e.n_extras, 0);
}

static void extras_beyond_the_limit_are_dropped(void **state)
{
    struct err e = { 0 };

    for (int i = 0; i < ERR_MAX_EXTRAS + 1; i++)
        err_add_extra(&e, "key", i == 0 ? "first" : "later");
    assert_int_equal(e.n_extras, ERR_MAX_EXTRAS);
    assert_string_equal(e.extras[0].value, "first");
}

static void a_long_text_is_cut_between_characters(void **state)
{
    struct err e = { 0 };
    char text[2000];

    for (size_t shift = 0; shift < 4; shift++) {
        size_t n = shift;

        memset(text, 'a', shift);
        for (; n + 4 < sizeof(text); n += 4)
            memcpy(text + n, "\xf0\x9f\x98\x80", 4);
        text[n] = '\0';
        err_set(&e, -EINVAL, "X", "%s", text);
        assert_true(strlen(e.text) >= sizeof(e.text) - 4);
        assert_true(utf8_is_valid(slice_of(e.text)));
    }
}

static void a_text_that_just_fits_is_whole_and_one_more_is_cut(void **state)
{
    struct err e = { 0 };
    char text[sizeof(e.text) + 1];

    memset(text, 'a', sizeof(text));
    err_set(&e, -EINVAL, "X", "%.*s", (int)sizeof(e.text) - 1, text);
    assert_int_equal(strlen(e.text), sizeof(e.text) - 1);
    err_set(&e, -EINVAL, "X", "%.*s", (int)sizeof(e.text), text);
    assert_int_equal(strlen(e.text), sizeof(e.text) - 1);
}

static void a_hidden_host_is_reported_otherwise_to_those_who_may_not_see_it(void **state)
{
    static const struct {
        const char *hidden, *text, *shown;
    } cases[] = {
        { "10.0.0.7", "box: 10.0.0.7:11434 takes no connection.", "box: its server takes no connection." },
        { "box", "box: box:11434 closed, Box did; boxes and a.box stay.",
          "box: its server closed, its server did; boxes and a.box stay." },
        { "::1", "box: ::1:80 does not answer", "box: its server does not answer" },
        { "a.org", "box: a.organ, a.org.uk; b.a.org, a.org.", "box: a.organ, a.org.uk; b.a.org, its server." },
        { "", "box: 10.0.0.7:11434", "box: 10.0.0.7:11434" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct err e = { .hidden_as = "its server", .hidden_from = strlen("box: ") };

        snprintf(e.hidden, sizeof(e.hidden), "%s", cases[i].hidden);
        err_set(&e, -EIO, "X", "%s", cases[i].text);
        err_strip_hidden(&e);
        assert_string_equal(e.text, cases[i].shown);
    }
}

static void what_is_hidden_may_be_shorter_than_what_is_reported_instead(void **state)
{
    struct err e = { .hidden = "h", .hidden_as = "its server", .hidden_from = 3 };

    (void)state;
    memset(e.text, ' ', sizeof(e.text) - 1);
    for (size_t i = 0; i < sizeof(e.text) - 1; i += 2)
        e.text[i] = 'h';
    err_strip_hidden(&e);
    assert_int_equal(strlen(e.text), sizeof(e.text) - 1);
    e.hidden_from = sizeof(e.text);
    err_strip_hidden(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(set_fills_code_and_text_and_returns_the_number),
        cmocka_unit_test(without_an_err_only_the_number_is_reported),
        cmocka_unit_test(a_text_may_be_made_from_itself),
        cmocka_unit_test(a_prefix_stands_before_the_text),
        cmocka_unit_test(a_failed_system_call_is_named_with_its_reason),
        cmocka_unit_test(a_lack_of_resources_has_a_code_of_its_own),
        cmocka_unit_test(the_first_violation_is_the_text_and_all_are_kept),
        cmocka_unit_test(a_violation_of_the_whole_body_has_no_field_name),
        cmocka_unit_test(violations_beyond_the_limit_are_only_counted),
        cmocka_unit_test(extras_beyond_the_limit_are_dropped),
        cmocka_unit_test(a_long_text_is_cut_between_characters),
        cmocka_unit_test(a_text_that_just_fits_is_whole_and_one_more_is_cut),
        cmocka_unit_test(a_hidden_host_is_reported_otherwise_to_those_who_may_not_see_it),
        cmocka_unit_test(what_is_hidden_may_be_shorter_than_what_is_reported_instead),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
