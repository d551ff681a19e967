#include "api/form.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#define TYPE "multipart/form-data; boundary=b"
#define PART(head, data) "--b\r\nContent-Disposition: form-data; " head "\r\n\r\n" data "\r\n"
#define END "--b--\r\n"

static int read_as(const char *type, const char *body, struct form *form)
{
    return form_read(type, slice_of(body), form, NULL);
}

static void parts_are_found_by_name(void **state)
{
    static const char body[] = "before\r\n" PART("name=\"file\"; filename=\"a.wav\"", "a\r\n--c\r\nb")
        PART("filename*=utf-8''x; NAME=plain", "") PART("name=\"file\"", "second") END "after";
    struct form form;

    assert_int_equal(read_as("Multipart/Form-Data ; charset=x; boundary=\"b\"", body, &form), 0);
    assert_int_equal(form.n, 3);
    assert_true(slice_eq_str(form_find(&form, "file")->data, "a\r\n--c\r\nb"));
    assert_true(form_find(&form, "file")->is_file && form_find(&form, "plain")->is_file);
    assert_int_equal(form_find(&form, "plain")->data.n, 0);
    assert_null(form_find(&form, "fil"));
}

static void the_type_is_known(void **state)
{
    assert_true(form_is_type("multipart/form-data") && form_is_type("MULTIPART/form-data; boundary=x"));
    assert_false(form_is_type(NULL) || form_is_type("multipart/form-dataX") || form_is_type("multipart/mixed; x"));
}

static void what_is_no_form_is_refused(void **state)
{
    static const struct {
        const char *type, *body;
    } cases[] = {
        { TYPE, "" },
        { TYPE, "--b" },
        { TYPE, "--b\r\n" },
        { TYPE, "--bx\r\n" END },
        { TYPE, PART("name=a", "x") },
        { TYPE, PART("name=a", "x") "--b" },
        { TYPE, PART("name=", "x") END },
        { TYPE, PART("name=\"a", "x") END },
        { TYPE, PART("filename=a", "x") END },
        { TYPE, "--b\r\n\r\nx\r\n" END },
        { "multipart/form-data", PART("name=a", "x") END },
        { "multipart/form-data; boundary=", PART("name=a", "x") END },
        { "multipart/form-data; boundary=c", PART("name=a", "x") END },
    };
    struct form form;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_int_equal(read_as(cases[i].type, cases[i].body, &form), -EINVAL);
}

static void limits_hold(void **state)
{
    struct form form;
    struct buf body;
    char type[200];

    for (size_t n = LIMIT_FORM_PARTS; n <= LIMIT_FORM_PARTS + 1; n++) {
        buf_init(&body, 1 << 20);
        for (size_t i = 0; i < n; i++)
            buf_add_str(&body, PART("name=a", "x"));
        buf_add_str(&body, END);
        assert_int_equal(read_as(TYPE, buf_str(&body), &form), n > LIMIT_FORM_PARTS ? -EINVAL : 0);
        buf_clear(&body);
    }
    for (size_t n = LIMIT_FORM_HEADERS - 1; n <= LIMIT_FORM_HEADERS; n++) {
        buf_init(&body, 1 << 20);
        buf_add_str(&body, "--b\r\ncontent-disposition: form-data; name=a\r\n");
        for (size_t i = 2; i < n; i++)
            buf_add_str(&body, "x: y\r\n");
        buf_add_str(&body, n == LIMIT_FORM_HEADERS ? "x: y\r\n\r\nx\r\n" END : "\r\nx\r\n" END);
        assert_int_equal(read_as(TYPE, buf_str(&body), &form), n == LIMIT_FORM_HEADERS ? -EINVAL : 0);
        buf_clear(&body);
    }
    for (int n = LIMIT_FORM_NAME; n <= LIMIT_FORM_NAME + 1; n++) {
        buf_init(&body, 1 << 20);
        buf_printf(&body, "--b\r\ncontent-disposition: form-data; name=%0*d\r\n\r\nx\r\n" END, n, 0);
        assert_int_equal(read_as(TYPE, buf_str(&body), &form), n > LIMIT_FORM_NAME ? -EINVAL : 0);
        buf_clear(&body);
    }
    for (int n = 70; n <= 71; n++) {
        buf_init(&body, 1 << 20);
        snprintf(type, sizeof(type), "multipart/form-data; boundary=%0*d", n, 0);
        buf_printf(&body, "--%0*d\r\ncontent-disposition: form-data; name=a\r\n\r\nx\r\n--%0*d--", n, 0, n, 0);
        assert_int_equal(read_as(type, buf_str(&body), &form), n > 70 ? -EINVAL : 0);
        buf_clear(&body);
    }
}

struct values {
    const char *text;
    double number;
};

static const struct field values_fields[] = { FIELD_STRING(struct values, text, "text", .max = LIMIT_FORM_FIELDS),
                                              FIELD_DOUBLE(struct values, number, "number", .max = 9), FIELD_END };

static int read_values(const char *body, struct values *ret, struct err *e)
{
    struct arena *a = arena_new();
    struct form form;
    int r = read_as(TYPE, body, &form);

    *ret = (struct values){ .number = 0 };
    if (r == 0)
        r = form_fields(&form, values_fields, ret, a, e);
    if (r == 0)
        assert_string_equal(ret->text, "a&b=c %\n+");
    arena_free(a);
    return r;
}

static void fields_follow_their_rules(void **state)
{
    struct values v;
    struct err e = { 0 };
    struct buf body;

    assert_int_equal(
        read_values(PART("name=text", "a&b=c %\n+") PART("name=number", "1.5") PART("name=text", "x") END, &v, &e), 0);
    assert_true(v.number > 1.4 && v.number < 1.6);
    assert_int_equal(read_values(PART("name=number", "x") END, &v, &e), -EINVAL);
    assert_string_equal(e.fields[0].field, "number");
    assert_int_equal(read_values(PART("name=text", "\xff") END, &v, &e), -EINVAL);
    buf_init(&body, 4 << 20);
    buf_printf(&body, "--b\r\ncontent-disposition: form-data; name=text\r\n\r\n%0*d\r\n" END, LIMIT_FORM_FIELDS, 0);
    assert_int_equal(read_values(buf_str(&body), &v, &e), -EINVAL);
    buf_clear(&body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_found_by_name),    cmocka_unit_test(the_type_is_known),
        cmocka_unit_test(what_is_no_form_is_refused), cmocka_unit_test(limits_hold),
        cmocka_unit_test(fields_follow_their_rules),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
