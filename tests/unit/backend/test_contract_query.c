/* SELECT of queries (backend/query.h), and the values of columns, against every provider. */
#include "query_rig.h"

/* --- values --- */

static void values_come_back_as_postgresql_shows_them(void **state)
{
    static const char expected[] =
        "[{\"user_id\":null,\"name\":\"a\",\"code\":\"A\",\"level\":\"low\",\"small\":null,\"count\":1,"
        "\"big\":9007199254740993,\"price\":1.5,\"ratio\":0.1,\"done\":true,\"due\":\"2026-11-20T09:32:05.68+00:00\","
        "\"day\":null,\"at\":null,\"tags\":[\"x\",\"y z\"],\"numbers\":[1,2],\"a \\\"b\\\".c \u00fc\":null},"
        "{\"user_id\":null,\"name\":\"B%\",\"code\":\"B\",\"level\":\"low\",\"small\":null,\"count\":2,\"big\":null,"
        "\"price\":null,\"ratio\":null,\"done\":false,\"due\":\"2026-11-20T09:32:06+00:00\",\"day\":\"2026-02-28\","
        "\"at\":\"09:05:00\",\"tags\":[],\"numbers\":null,\"a \\\"b\\\".c \u00fc\":null},"
        "{\"user_id\":null,\"name\":\"c_\",\"code\":null,\"level\":\"low\",\"small\":-5,\"count\":3,\"big\":null,"
        "\"price\":null,\"ratio\":null,\"done\":false,\"due\":null,\"day\":null,\"at\":null,\"tags\":[\"x\"],"
        "\"numbers\":null,\"a \\\"b\\\".c \u00fc\":null}]";
    struct rig *rig = *state;
    struct query_item items[ARRAY_SIZE(order_columns)];
    struct query_order order = { .path = { .column = "count" } };
    struct query q = select_all();
    size_t n = 0;

    fill(rig);
    for (size_t i = 0; i < ARRAY_SIZE(order_columns); i++)
        if (order_columns[i].type != TABLE_JSONB && strcmp(order_columns[i].name, "id") != 0 &&
            strcmp(order_columns[i].name, "made_at") != 0)
            items[n++] = (struct query_item){ .path = { .column = order_columns[i].name } };
    q.items = items;
    q.n_items = n;
    q.order = &order;
    q.n_order = 1;
    assert_string_equal(rows_of(rig, q), expected);
}

struct value_case {
    const char *column, *value, *shown; /* shown NULL: refused with BAD_VALUE */
};

/* Each value is written as JSON. */
static const struct value_case value_cases[] = {
    { "small", "32767", "32767" },
    { "small", "32768", NULL },
    { "small", "\"-32768\"", "-32768" },
    { "count", "\" 12 \"", "12" },
    { "count", "1.5", NULL },
    { "count", "\"x\"", NULL },
    { "count", "\"\"", NULL },
    { "count", "true", NULL },
    { "count", "2147483648", NULL },
    { "big", "9223372036854775807", "9223372036854775807" },
    { "big", "\"-9223372036854775808\"", "-9223372036854775808" },
    { "big", "9223372036854775808", NULL },
    { "price", "\"12.25\"", "12.25" },
    { "price", "\"1e2x\"", NULL },
    { "ratio", "0.30000000000000004", "0.30000000000000004" },
    { "ratio", "\"1e400\"", NULL },
    { "done", "\"yes\"", "true" },
    { "done", "\"OFF\"", "false" },
    { "done", "\"maybe\"", NULL },
    { "done", "2", NULL },
    { "user_id", "\"{9F8B3C1E-52D7-4A0E-8A51-0C3F6F1F2A11}\"", "\"9f8b3c1e-52d7-4a0e-8a51-0c3f6f1f2a11\"" },
    { "user_id", "\"9f8b3c1e52d74a0e8a510c3f6f1f2a11\"", "\"9f8b3c1e-52d7-4a0e-8a51-0c3f6f1f2a11\"" },
    { "user_id", "\"9f8b3c1e-52d7-4a0e-8a51-0c3f6f1f2a1\"", NULL },
    { "due", "\"2026-11-20\"", "\"2026-11-20T00:00:00+00:00\"" },
    { "due", "\"2026-11-20T09:32:05.682733Z\"", "\"2026-11-20T09:32:05.682733+00:00\"" },
    { "due", "\"2026-11-20T09:32:05.9999999+00\"", "\"2026-11-20T09:32:06+00:00\"" },
    { "due", "\"2024-02-29 23:30:00-0330\"", "\"2024-03-01T03:00:00+00:00\"" },
    { "due", "\"2026-12-31T24:00:00\"", "\"2027-01-01T00:00:00+00:00\"" },
    { "due", "\"2026-02-29\"", NULL },
    { "due", "\"soon\"", NULL },
    { "due", "\"\"", NULL },
    { "day", "\"2026-13-01\"", NULL },
    { "day", "\"0001-01-01\"", "\"0001-01-01\"" },
    { "at", "\"23:59:59.5\"", "\"23:59:59.5\"" },
    { "at", "\"25:00\"", NULL },
    { "data", "{\"a\":[1,null]}", "{\"a\":[1,null]}" },
    { "data", "\"text\"", "\"text\"" },
    { "data", "0", "0" },
    { "data", "null", "null" },
    { "tags", "\"{a,\\\"b c\\\",NULL}\"", "[\"a\",\"b c\",null]" },
    { "tags", "\"{a\"", NULL },
    { "tags", "\"a\"", NULL },
    { "tags", "\"{\\\"a\"", NULL },
    { "tags", "\"{a\\\\\"", NULL },
    { "tags", "[\"{\\\"}\", \",\"]", "[\"{\\\"}\",\",\"]" },
    { "tags", "\"{}\"", "[]" },
    { "numbers", "\"{1, 2}\"", "[1,2]" },
    { "numbers", "\"{1,x}\"", NULL },
    { "name", "[1]", "\"[1]\"" },
    { "name", "\"'; DROP TABLE orders; --\"", "\"'; DROP TABLE orders; --\"" },
    { "name", "\"\"", "\"\"" },
};

static void a_value_is_read_as_its_columns_type(void **state)
{
    struct rig *rig = *state;

    declare(rig, &orders);
    for (size_t i = 0; i < ARRAY_SIZE(value_cases); i++) {
        const struct value_case *c = &value_cases[i];
        struct query q =
            insert_of(rig, arena_printf(rig->arena, "[{%s\"%s\":%s}]",
                                        strcmp(c->column, "name") ? "\"name\":\"n\"," : "", c->column, c->value));
        struct query_item item = { .path = { .column = c->column }, .alias = "v" };
        struct query_reply reply = { 0 };
        struct err e;
        int r;

        q.items = &item;
        q.n_items = 1;
        r = run(rig, &q, &reply, &e);
        if (!c->shown) {
            if (r != -EINVAL || strcmp(e.code, "BAD_VALUE") != 0)
                fail_msg("%s %s: %d %s %s", c->column, c->value, r, e.code, e.text);
            continue;
        }
        must(r, &e);
        assert_string_equal(json_to_str(rig->arena, rig_json(rig, text_of(rig, reply.rows))),
                            arena_printf(rig->arena, "[{\"v\":%s}]", c->shown));
    }
}

/* --- conditions --- */

struct test_case {
    const char *condition; /* query_text.h */
    const char *names;     /* of the rows that match, in order; or the code of the refusal */
};

static const struct test_case test_cases[] = {
    { "name=eq.a", "a" },
    { "name=neq.a", "B%,c_" },
    { "count=gt.1", "B%,c_" },
    { "count=gte.2", "B%,c_" },
    { "count=lt.2", "a" },
    { "count=lte.2", "a,B%" },
    { "count=in.1,3", "a,c_" },
    { "count=in.", "" },
    { "small=neq.1", "c_" },
    { "small=is.null", "a,B%" },
    { "small=is.not_null", "c_" },
    { "small=isdistinct.-5", "a,B%" },
    { "done=is.true", "a" },
    { "done=is.false", "B%,c_" },
    { "done=eq.t", "a" },
    { "count=is.true", "BAD_OPERATOR" },
    { "name=like.%", "a,B%,c_" },
    { "name=like.b%", "" },
    { "name=ilike.b%", "B%" },
    { "name=like._\\%", "B%" },
    { "name=like.%\\_", "c_" },
    { "count=like.1%", "BAD_OPERATOR" },
    { "!name=like.a", "B%,c_" },
    { "!small=eq.-5", "" },
    { "due=eq.2026-11-20T09:32:05.68Z", "a" },
    { "due=gt.2026-11-20T09:32:05.681Z", "B%" },
    { "due=lt.2026-11-20T12:00:00+02:00", "a,B%" },
    { "due=lt.never", "BAD_VALUE" },
    { "count=eq.x", "BAD_VALUE" },
    { "nothing=eq.1", "UNKNOWN_COLUMN" },
    { "tags=cs.{x}", "a,c_" },
    { "tags=cs.{\"y z\",x}", "a" },
    { "tags=cd.{x,q}", "B%,c_" },
    { "tags=ov.{q,\"y z\"}", "a" },
    { "tags=eq.{x}", "c_" },
    { "numbers=cs.{2}", "a" },
    { "name=cs.{x}", "BAD_OPERATOR" },
    { "data=cs.{\"k\":{\"n\":7}}", "a" },
    { "data=cs.[{\"a\":2}]", "c_" },
    { "data=cs.[{\"a\":3}]", "" },
    { "data=cd.{\"k\":{\"n\":10},\"s\":\"t\",\"u\":1}", "B%" },
    { "data->k->>n=eq.7", "a" },
    { "data->k->n=gt.8", "B%" },
    { "data->list->0=eq.10", "a" },
    { "data->list->-1=eq.20", "a" },
    { "data->>s=eq.t", "B%" },
    { "data->s=eq.\"t\"", "B%" },
    { "data->s=eq.t", "BAD_VALUE" },
    { "data->>none=is.null", "a,B%,c_" },
    { "data={\"s\":\"t\", \"k\":{\"n\":10.0}}", "B%" },
    { "name->x=eq.1", "BAD_OPERATOR" },
    { "price=eq.1.50", "a" },
    { "ratio=lt.0.2", "a" },
    { "at=gt.09:00", "B%" },
    { "day=lte.2026-02-28", "B%" },
    { "and(count=gt.1&name=like.c%)", "c_" },
    { "or(count=eq.1&name=eq.c_)", "a,c_" },
    { "!or(count=eq.1&name=eq.c_)", "B%" },
    { "and()", "a,B%,c_" },
    { "or()", "" },
};

static void a_condition_chooses_rows(void **state)
{
    struct query_order order = { .path = { .column = "count" } };
    struct rig *rig = *state;

    fill(rig);
    for (size_t i = 0; i < ARRAY_SIZE(test_cases); i++) {
        struct query_condition where = query_text_read(rig->arena, test_cases[i].condition);
        struct query q = select_all();
        struct query_reply reply = { 0 };
        const char *found;
        struct err e;

        q.where = &where;
        q.order = &order;
        q.n_order = 1;
        found = run(rig, &q, &reply, &e) < 0 ? e.code : names_of(rig, reply.rows);
        if (strcmp(found, test_cases[i].names) != 0)
            fail_msg("%s: %s, not %s (%s)", test_cases[i].condition, found, test_cases[i].names, e.text);
    }
}

static void now_is_the_moment_of_the_statement(void **state)
{
    static const struct test_case cases[] = { { "due=gt.now", "" }, { "due=lte.now", "late" } };
    struct rig *rig = *state;

    declare(rig, &orders);
    rows_of(rig, insert_of(rig, "[{\"name\":\"late\",\"due\":\"now\",\"day\":\"NOW\",\"at\":\"now\"}]"));
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct query_condition where = query_text_read(rig->arena, cases[i].condition);
        struct query q = select_all();
        struct query_reply reply = { 0 };
        struct err e;

        q.where = &where;
        must(run(rig, &q, &reply, &e), &e);
        assert_string_equal(names_of(rig, reply.rows), cases[i].names);
    }
}

static void rows_are_ordered_limited_and_counted(void **state)
{
    struct query_order by_small[] = { { .path = { .column = "small" } },
                                      { .path = { .column = "count" }, .is_descending = true } };
    struct rig *rig = *state;
    struct query q = select_all();
    struct query_reply reply = { 0 };
    struct err e;

    fill(rig);
    q.order = by_small;
    q.n_order = 2;
    must(run(rig, &q, &reply, &e), &e);
    assert_string_equal(names_of(rig, reply.rows), "c_,B%,a");
    assert_int_equal(reply.count, -1);
    by_small[0].nulls = QUERY_NULLS_FIRST;
    q.limit = 1;
    q.offset = 1;
    q.is_count_wanted = true;
    must(run(rig, &q, &reply, &e), &e);
    assert_string_equal(names_of(rig, reply.rows), "a");
    assert_int_equal(reply.count, 3);
    assert_int_equal(reply.n_rows, 1);
    q.offset = 10;
    must(run(rig, &q, &reply, &e), &e);
    assert_string_equal(text_of(rig, reply.rows), "[]");
    assert_int_equal(reply.count, 3);
}

static void items_have_names_paths_and_casts(void **state)
{
    static const enum table_type text = TABLE_TEXT, number = TABLE_INT4;
    const char *const n[] = { "k", "n" };
    const struct query_item items[] = { { .path = { .column = "name" }, .alias = "it's \"n\"" },
                                        { .path = { .column = "data", .steps = n, .n_steps = 2 } },
                                        { .path = { .column = "data", .steps = n, .n_steps = 1 } },
                                        { .path = { .column = "count", .cast = &text }, .alias = "t" },
                                        { .path = { "data", n, 2, true, &number }, .alias = "i" } };
    struct query_condition where;
    struct rig *rig = *state;
    struct query q = select_all();

    fill(rig);
    where = query_text_read(rig->arena, "count=eq.1");
    q.where = &where;
    q.items = items;
    q.n_items = ARRAY_SIZE(items);
    assert_string_equal(rows_of(rig, q), "[{\"it's \\\"n\\\"\":\"a\",\"n\":7,\"k\":{\"n\":7},\"t\":\"1\",\"i\":7}]");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        TEST(values_come_back_as_postgresql_shows_them),
        TEST(a_value_is_read_as_its_columns_type),
        TEST(a_condition_chooses_rows),
        TEST(now_is_the_moment_of_the_statement),
        TEST(rows_are_ordered_limited_and_counted),
        TEST(items_have_names_paths_and_casts),
    };

    return contract_run(tests, ARRAY_SIZE(tests));
}
