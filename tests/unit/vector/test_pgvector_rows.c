/* Rows of a PostgreSQL, constructed like libpq's, through the readers. */
#include "pg/pg_link.h"

#include "base/limits.h"

#include <libpq-fe.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

/* One column; text NULL: NULL. */
static PGresult *row_of(const char *text, int n, int format)
{
    PGresAttDesc column = { .name = (char *)(uintptr_t) "c", .format = format };
    PGresult *row = PQmakeEmptyPGresult(NULL, PGRES_SINGLE_TUPLE);

    assert_true(PQsetResultAttrs(row, 1, &column) && PQsetvalue(row, 0, 0, (char *)(uintptr_t)text, text ? n : -1));
    return row;
}

static int read_int(const char *text, int64_t min, int64_t max, int64_t *ret)
{
    PGresult *row = row_of(text, text ? (int)strlen(text) : 0, 0);
    int r = pg_row_int((const struct pg_row *)row, 0, min, max, ret, NULL);

    PQclear(row);
    return r;
}

static void a_number_is_whole_and_within_its_limits(void **state)
{
    static const struct {
        const char *text;
        int r;
        int64_t value;
    } cases[] = {
        { "0", 0, 0 },     { "8192", 0, 8192 },      { "8193", -EIO, 0 },
        { "-1", -EIO, 0 }, { "100000000", -EIO, 0 }, { "99999999999999999999999", -EIO, 0 },
        { "", -EIO, 0 },   { "1.5", -EIO, 0 },       { "many", -EIO, 0 },
        { "7 ", -EIO, 0 }, { NULL, -EIO, 0 },        { "00000000000000000000000000000000000000000001", -EIO, 0 },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        int64_t value = 0;

        if (read_int(cases[i].text, 0, LIMIT_DIMENSIONS, &value) != cases[i].r || value != cases[i].value)
            fail_msg("case %zu: %s", i, cases[i].text ? cases[i].text : "NULL");
    }
}

static void a_double_is_a_number_nan_among_them(void **state)
{
    static const struct {
        const char *text;
        int r;
    } cases[] = { { "0.5", 0 }, { "NaN", 0 }, { "-1e-7", 0 }, { "near", -EIO }, { "", -EIO }, { NULL, -EIO } };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        PGresult *row = row_of(cases[i].text, cases[i].text ? (int)strlen(cases[i].text) : 0, 0);
        double value;

        assert_int_equal(pg_row_double((const struct pg_row *)row, 0, &value, NULL), cases[i].r);
        PQclear(row);
    }
}

static void text_is_utf8_without_nul_and_no_longer_than_allowed(void **state)
{
    static const struct {
        const char *text;
        int n;
        size_t max;
        int r;
        const char *rule;
    } cases[] = {
        { "abc", 3, 3, 0, NULL },
        { "abcd", 4, 3, -EIO, "more than 3 bytes" },
        { "", 0, 0, 0, NULL },
        { "a\0b", 3, 9, -EIO, "UTF-8" },
        { "a\xff", 2, 9, -EIO, "UTF-8" },
        { NULL, 0, 9, -EIO, "NULL" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        PGresult *row = row_of(cases[i].text, cases[i].n, 0);
        struct slice text;
        struct err e = { 0 };

        assert_int_equal(pg_row_text((const struct pg_row *)row, 0, cases[i].max, &text, &e), cases[i].r);
        assert_int_equal(pg_row_text((const struct pg_row *)row, 1, cases[i].max, &text, NULL),
                         -EIO); /* no such column */
        if (cases[i].rule)
            assert_non_null(strstr(e.text, cases[i].rule));
        PQclear(row);
    }
}

static int count_rows(void *arg, const struct pg_row *row, struct err *e)
{
    ++*(int *)arg;
    return 0;
}

static int take(const char *text, int n, int format, const struct pg_statement *st, struct pg_tally *tally,
                struct err *e)
{
    PGresult *row = row_of(text, n, format);
    int r = pg_row_take((const struct pg_row *)row, st, tally, e);

    PQclear(row);
    return r;
}

static void rows_have_the_columns_the_number_and_the_bytes_that_were_asked_for(void **state)
{
    int n = 0;
    const struct pg_statement st = { .n_columns = 1, .max_rows = 2, .on_row = count_rows, .arg = &n },
                              two_columns = { .n_columns = 2, .max_rows = 2, .on_row = count_rows, .arg = &n };
    struct pg_tally tally = { 0 }, full = { .n_bytes = LIMIT_STORE_REPLY - 3 };
    struct err e = { 0 };

    assert_int_equal(take("x", 1, 0, &two_columns, &tally, &e), -EIO);
    assert_non_null(strstr(e.text, "1 columns where 2"));
    assert_int_equal(take("x", 1, 1, &st, &tally, NULL), -EIO);
    tally = (struct pg_tally){ 0 };
    assert_int_equal(take("x", 1, 0, &st, &tally, NULL), 0);
    assert_int_equal(take("x", 1, 0, &st, &tally, NULL), 0);
    assert_int_equal(take("x", 1, 0, &st, &tally, &e), -EIO);
    assert_non_null(strstr(e.text, "more rows than the 2"));
    assert_int_equal(n, 2);
    assert_int_equal(take("abc", 3, 0, &st, &full, NULL), 0);
    assert_int_equal(take("x", 1, 0, &st, &full, &e), -EIO);
    assert_non_null(strstr(e.text, "bytes"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_number_is_whole_and_within_its_limits),
        cmocka_unit_test(a_double_is_a_number_nan_among_them),
        cmocka_unit_test(text_is_utf8_without_nul_and_no_longer_than_allowed),
        cmocka_unit_test(rows_have_the_columns_the_number_and_the_bytes_that_were_asked_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
