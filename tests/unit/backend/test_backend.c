/* What every implementation shares: names of tables, words of a status, machines that have tried. */
#include "backend/backend.h"
#include "backend/status.h"
#include "base/limits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static const struct {
    const char *declared, *name;
} names[] = {
    { "orders", "orders" },
    { "public.orders", "orders" },
    { "sales.orders", "sales.orders" },
    { "_x9", "_x9" },
    { "\"orders\"", "orders" },
    { "\"public\".\"Orders\"", "Orders" },
    { "\"my orders\"", "\"my orders\"" },
    { "sales.\"a.b\"", "sales.\"a.b\"" },
    { "\"a \"\"b\"\"\".\"\"\"\"", "\"a \"\"b\"\"\".\"\"\"\"" },
    { "\"\xC3\xBC\"", "\"\xC3\xBC\"" },
    { "\"9a\"", "\"9a\"" },
    { "\"\"", NULL },
    { "\"a", NULL },
    { "\"a\"b", NULL },
    { "a.\"\"", NULL },
    { "\"\xFF\"", NULL },
    { "", NULL },
    { ".", NULL },
    { "a.", NULL },
    { ".a", NULL },
    { "9a", NULL },
    { "a b", NULL },
    { "a.b.c", NULL },
    { "a\"b", NULL },
    { "a;drop", NULL },
    { "\xC3\xBC", NULL },
};

static void table_names_are_checked_and_public_is_dropped(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        char *name = NULL;
        int r = backend_table_name(a, names[i].declared, &name, NULL);

        if (names[i].name ? r != 0 || strcmp(name, names[i].name) != 0 : r != -EINVAL)
            fail_msg("%s: %d %s", names[i].declared, r, name ? name : "none");
    }
}

static void a_table_name_has_at_most_63_characters_a_part(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    char part[LIMIT_TABLE_NAME_PART + 2] = { 0 };
    char *name;

    memset(part, 'a', LIMIT_TABLE_NAME_PART);
    assert_int_equal(backend_table_name(a, arena_printf(a, "%s.%s", part, part), &name, NULL), 0);
    part[LIMIT_TABLE_NAME_PART] = 'a';
    assert_int_equal(backend_table_name(a, part, &name, NULL), -EINVAL);
}

static void a_quoted_name_has_at_most_63_bytes_a_part(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    char part[2 * LIMIT_TABLE_NAME_PART + 3] = { 0 };
    struct table_parts parts;
    struct err e = { 0 };
    char *name;

    memset(part, '"', 2 * LIMIT_TABLE_NAME_PART + 2);
    assert_int_equal(backend_table_name(a, arena_printf(a, "%s.%s", part, part), &name, NULL), 0);
    assert_int_equal(strlen(name), LIMIT_TABLE_NAME);
    parts = backend_table_parts(a, name);
    assert_int_equal(strlen(parts.schema), LIMIT_TABLE_NAME_PART);
    assert_string_equal(parts.schema, parts.table);
    memset(part, 'a', sizeof(part) - 1);
    part[0] = part[LIMIT_TABLE_NAME_PART + 2] = '"';
    part[LIMIT_TABLE_NAME_PART + 3] = '\0';
    assert_int_equal(backend_table_name(a, part, &name, &e), -EINVAL);
    assert_non_null(strstr(e.text, "1 to 63 bytes"));
}

static void a_name_has_its_parts_as_the_catalog_has_them(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct table_parts parts = backend_table_parts(a, "sales.\"my \"\"own\"\" orders\"");

    assert_string_equal(parts.schema, "sales");
    assert_string_equal(parts.table, "my \"own\" orders");
    parts = backend_table_parts(a, "orders");
    assert_string_equal(parts.schema, "public");
    assert_string_equal(parts.table, "orders");
}

/* --- words of a status --- */

static const struct {
    const char *word;
    bool is_claimable, is_leased, is_finished;
} statuses[] = {
    { "pending", true, false, false },   { "claimed", false, true, false }, { "processing", false, true, false },
    { "completed", false, false, true }, { "failed", true, false, true },   { "canceled", false, false, true },
    { "Pending", false, false, false },  { "", false, false, false },       { "processed", false, false, false },
};

static void a_word_of_a_status_says_what_may_be_done(void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(statuses); i++)
        if (status_is_claimable(statuses[i].word) != statuses[i].is_claimable ||
            status_is_leased(statuses[i].word) != statuses[i].is_leased ||
            status_is_finished(statuses[i].word) != statuses[i].is_finished)
            fail_msg("%s is of other classes", statuses[i].word);
}

static void a_class_of_words_is_listed_for_sql(void **state)
{
    struct buf out;

    buf_init(&out, 1000);
    status_add_list(&out, STATUSES_CLAIMABLE);
    assert_string_equal(buf_str(&out), "'pending', 'failed'");
    buf_reset(&out);
    status_add_list(&out, STATUSES_ALL);
    assert_string_equal(buf_str(&out), "'pending', 'claimed', 'processing', 'completed', 'failed', 'canceled'");
    buf_clear(&out);
    assert_string_equal(status_word(STATUSES_LEASED, 1), "processing");
    assert_null(status_word(STATUSES_LEASED, 2));
}

/* --- machines --- */

static const struct {
    const char *attempted_by;
    size_t n;
    bool has;
} attempts[] = {
    { NULL, 0, false },
    { "", 0, false },
    { "[]", 0, false },
    { "[\"b\"]", 1, false },
    { "[\"b\", \"a\"]", 2, true },
    { "nonsense", 0, false },
    { "[1, null, \"a\"]", 3, true },
};

static void the_machines_that_tried_are_counted(void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(attempts); i++) {
        bool has = true;

        assert_int_equal(backend_count_machines(attempts[i].attempted_by, "a", &has), attempts[i].n);
        assert_int_equal(has, attempts[i].has);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table_names_are_checked_and_public_is_dropped),
        cmocka_unit_test(a_table_name_has_at_most_63_characters_a_part),
        cmocka_unit_test(a_quoted_name_has_at_most_63_bytes_a_part),
        cmocka_unit_test(a_name_has_its_parts_as_the_catalog_has_them),
        cmocka_unit_test(a_word_of_a_status_says_what_may_be_done),
        cmocka_unit_test(a_class_of_words_is_listed_for_sql),
        cmocka_unit_test(the_machines_that_tried_are_counted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
