/* The headers Prefer, Range and Accept of requests to /rest/v1. */
#include "face/rest_prefer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

static void preferences_count_once_in_any_case_and_order(void **state)
{
    static const struct {
        const char *header, *insert, *select; /* what is applied; NULL: nothing */
    } cases[] = {
        { NULL, NULL, NULL },
        { "", NULL, NULL },
        { " , ,", NULL, NULL },
        { "return=representation", "return=representation", NULL },
        { "RETURN=Headers-Only", "return=headers-only", NULL },
        { "return=minimal, return=representation", "return=minimal", NULL },
        { "count=planned,return=minimal", "return=minimal, count=planned", "count=planned" },
        { "count=exact,count=estimated", "count=exact", "count=exact" },
        { "\tresolution=merge-duplicates ,missing=default", "resolution=merge-duplicates, missing=default", NULL },
        { "resolution=ignore-duplicates,missing=null", "resolution=ignore-duplicates, missing=null", NULL },
        { "handling=lenient,unknown=1,also", "handling=lenient", "handling=lenient" },
        { "handling=strict,max-affected=3", "handling=strict, max-affected=3", "handling=strict" },
        { "max-affected=3", NULL, NULL },
        { "handling=strict,tx=commit,tx=rollback", "handling=strict", "handling=strict" },
        { "return = minimal", NULL, NULL },
        { "return=minimals", NULL, NULL },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        AUTO(arena_freep) struct arena *a = arena_new();
        struct rest_prefer p;
        struct err e = { 0 };
        const char *insert, *select;

        assert_int_equal(rest_prefer_read(a, cases[i].header, &p, &e), 0);
        insert = rest_prefer_applied(a, &p, QUERY_INSERT);
        select = rest_prefer_applied(a, &p, QUERY_SELECT);
        if (strcmp(insert ? insert : "-", cases[i].insert ? cases[i].insert : "-") != 0 ||
            strcmp(select ? select : "-", cases[i].select ? cases[i].select : "-") != 0)
            fail_msg("%s: %s; %s", cases[i].header, insert ? insert : "-", select ? select : "-");
    }
}

static void what_strict_handling_does_not_know_is_refused(void **state)
{
    static const char *const headers[] = { "handling=strict,unknown=1",
                                           "also, handling=strict",
                                           "handling=strict,max-affected=",
                                           "handling=strict,max-affected=-1",
                                           "handling=strict,return=all",
                                           "handling=strict,max-affected=1e3",
                                           "handling=strict,max-affected=9999999999999999999" };

    for (size_t i = 0; i < ARRAY_SIZE(headers); i++) {
        AUTO(arena_freep) struct arena *a = arena_new();
        struct rest_prefer p;
        struct err e = { 0 };

        if (rest_prefer_read(a, headers[i], &p, &e) != -EINVAL)
            fail_msg("%s was taken", headers[i]);
        assert_string_equal(e.code, "BAD_PREFERENCE");
    }
}

static void a_range_narrows_limit_and_offset(void **state)
{
    static const struct {
        const char *header, *unit;
        int64_t limit, offset;         /* of the query */
        int64_t ret_limit, ret_offset; /* ret_limit -2: refused */
    } cases[] = {
        { NULL, NULL, -1, 0, -1, 0 },
        { "0-9", NULL, -1, 0, 10, 0 },
        { "10-19", "items", -1, 0, 10, 10 },
        { "10-19", "Items", -1, 0, 10, 10 },
        { "10-19", "bytes", -1, 0, -1, 0 },
        { "5-5", NULL, -1, 0, 1, 5 },
        { "10-", NULL, -1, 0, -1, 10 },
        { "10-", NULL, 5, 0, 0, 10 },
        { "0-99", NULL, 5, 2, 5, 2 },
        { "4-99", NULL, 5, 2, 3, 4 },
        { "0-3", NULL, 5, 2, 2, 2 },
        { "0-0", NULL, 5, 2, 0, 2 },
        { "19-10", NULL, -1, 0, -2, 0 },
        { "items=0-9", NULL, 7, 1, 7, 1 },
        { "-5", NULL, 7, 1, 7, 1 },
        { "a-b", NULL, 7, 1, 7, 1 },
        { "", NULL, 7, 1, 7, 1 },
        { "-", NULL, 7, 1, 7, 1 },
        { "0-1-2", NULL, 7, 1, 7, 1 },
        { "0-999999999999999999", NULL, INT64_MAX, 5, INT64_C(999999999999999995), 5 },
        { "0-9999999999999999999", NULL, 7, 1, 7, 1 },
        { "1-", NULL, INT64_MAX, INT64_MAX - 5, -1, INT64_MAX - 5 },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        int64_t limit = cases[i].limit, offset = cases[i].offset;
        struct err e = { 0 };
        int r = rest_range_read(cases[i].header, cases[i].unit, &limit, &offset, &e);

        if (cases[i].ret_limit == -2) {
            assert_int_equal(r, -ERANGE);
            assert_string_equal(e.code, "BAD_RANGE");
        } else if (r != 0 || limit != cases[i].ret_limit || offset != cases[i].ret_offset) {
            fail_msg("%s: %d, limit %lld, offset %lld", cases[i].header, r, (long long)limit, (long long)offset);
        }
    }
}

static void one_object_or_an_array_is_accepted(void **state)
{
    static const struct {
        const char *header;
        int is; /* 1: an object; 0: an array; -1: refused */
    } cases[] = {
        { NULL, 0 },
        { "", 0 },
        { "*/*", 0 },
        { "application/json; charset=utf-8", 0 },
        { "text/html, APPLICATION/*;q=0.1", 0 },
        { "application/vnd.pgrst.object+json", 1 },
        { "text/csv ,application/vnd.pgrst.object;x=1", 1 },
        { "application/vnd.pgrst.object+json;nulls=stripped", -1 },
        { "application/vnd.pgrst.object+json;nulls=stripped, */*", 0 },
        { "text/csv", -1 },
        { ",", -1 },
        { "application/jsonx", -1 },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        bool is_object = false;
        struct err e = { 0 };
        int r = rest_accept_read(cases[i].header, &is_object, &e);

        if ((r < 0 ? -1 : (int)is_object) != cases[i].is)
            fail_msg("%s: %d %d", cases[i].header, r, is_object);
        assert_string_equal(e.code, r < 0 ? "NOT_ACCEPTABLE" : "");
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(preferences_count_once_in_any_case_and_order),
        cmocka_unit_test(what_strict_handling_does_not_know_is_refused),
        cmocka_unit_test(a_range_narrows_limit_and_offset),
        cmocka_unit_test(one_object_or_an_array_is_accepted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
