/* Changes, declarations and limits of queries (backend/query.h), against every provider. */
#include "query_rig.h"

/* --- changes --- */

static void constraints_are_kept(void **state)
{
    struct rig *rig = *state;
    struct query q;

    fill(rig);
    refused(rig, insert_of(rig, "[{\"count\":1}]"), -EINVAL, "NOT_NULL");
    refused(rig, insert_of(rig, "[{\"name\":null}]"), -EINVAL, "NOT_NULL");
    refused(rig, insert_of(rig, "[{\"name\":\"x\",\"code\":\"A\"}]"), -EEXIST, "NOT_UNIQUE");
    refused(rig, insert_of(rig, "[{\"name\":\"x\",\"level\":\"other\"}]"), -EINVAL, "CHECK_FAILED");
    refused(rig, insert_of(rig, "[{\"name\":\"x\",\"other\":1}]"), -EINVAL, "UNKNOWN_COLUMN");
    refused(rig, insert_of(rig, "[{\"name\":\"new\"},{\"name\":\"y\",\"code\":\"B\"}]"), -EEXIST, "NOT_UNIQUE");
    q = select_all();
    q.table = "none";
    refused(rig, q, -ENOENT, "UNKNOWN_TABLE");
    q.table = "svc_presence";
    refused(rig, q, -ENOENT, "UNKNOWN_TABLE");
    q.table = "no table; --";
    refused(rig, q, -ENOENT, "UNKNOWN_TABLE");
    q = select_all();
    q.is_count_wanted = true;
    q.limit = 0;
    {
        struct query_reply reply = { 0 };
        struct err e;

        must(run(rig, &q, &reply, &e), &e);
        assert_int_equal(reply.count, 3); /* a refused change leaves nothing */
        assert_string_equal(text_of(rig, reply.rows), "[]");
    }
}

static void rows_are_updated_and_deleted(void **state)
{
    struct rig *rig = *state;
    const struct query_item name = { .path = { .column = "name" } };
    struct query_condition where;
    struct query_reply reply = { 0 };
    struct query q = { .kind = QUERY_UPDATE, .limit = -1, .max_affected = -1, .items = &name, .n_items = 1 };
    struct err e;

    fill(rig);
    where = query_text_read(rig->arena, "count=gte.2");
    q.where = &where;
    q.rows = rig_json(rig, "{\"level\":\"high\",\"data\":{\"x\":1}}");
    must(run(rig, &q, &reply, &e), &e);
    assert_int_equal(reply.n_rows, 2);
    assert_string_equal(text_of(rig, reply.rows), "[]");
    q.max_affected = 1;
    refused(rig, q, -E2BIG, "TOO_MANY_ROWS");
    q.max_affected = 2;
    q.is_rows_wanted = true;
    q.rows = rig_json(rig, "{\"name\":\"n\"}");
    assert_string_equal(rows_of(rig, q), "[{\"name\":\"n\"},{\"name\":\"n\"}]");
    q.rows = rig_json(rig, "{\"level\":\"none\"}");
    refused(rig, q, -EINVAL, "CHECK_FAILED");
    q.rows = rig_json(rig, "{}");
    must(run(rig, &q, &reply, &e), &e);
    q.kind = QUERY_DELETE;
    q.max_affected = 1;
    refused(rig, q, -E2BIG, "TOO_MANY_ROWS");
    q.max_affected = -1;
    assert_string_equal(rows_of(rig, q), "[{\"name\":\"n\"},{\"name\":\"n\"}]");
    assert_string_equal(rows_of(rig, q), "[]");
}

static void conflicts_merge_or_are_ignored(void **state)
{
    static const char *const code[] = { "code" }, *const name[] = { "name" };
    const struct query_item items[] = { { .path = { .column = "name" } }, { .path = { .column = "count" } } };
    struct query_reply reply = { 0 };
    struct rig *rig = *state;
    struct query q;
    struct err e;

    fill(rig);
    q = insert_of(rig, "[{\"code\":\"A\",\"name\":\"merged\"},{\"code\":\"N\",\"name\":\"new\"}]");
    q.items = items;
    q.n_items = 2;
    q.conflict = QUERY_CONFLICT_MERGED;
    q.conflict_columns = code;
    q.n_conflict_columns = 1;
    must(run(rig, &q, &reply, &e), &e);
    assert_string_equal(json_to_str(rig->arena, rig_json(rig, text_of(rig, reply.rows))),
                        "[{\"name\":\"merged\",\"count\":1},{\"name\":\"new\",\"count\":0}]");
    assert_int_equal(reply.n_inserted, 1);
    assert_int_equal(reply.n_rows, 2);
    q.conflict = QUERY_CONFLICT_IGNORED;
    must(run(rig, &q, &reply, &e), &e);
    assert_string_equal(text_of(rig, reply.rows), "[]");
    assert_int_equal(reply.n_rows, 0);
    q.conflict_columns = name;
    refused(rig, q, -EINVAL, "BAD_CONFLICT");
}

static void missing_members_are_null_or_default(void **state)
{
    static const char *const columns[] = { "name", "big" };
    const struct query_item items[] = { { .path = { .column = "name" } },
                                        { .path = { .column = "count" } },
                                        { .path = { .column = "big" } } };
    struct rig *rig = *state;
    struct query q;

    declare(rig, &orders);
    q = insert_of(rig, "[{\"name\":\"x\",\"count\":5},{\"name\":\"y\",\"big\":1}]");
    q.items = items;
    q.n_items = 3;
    assert_string_equal(rows_of(rig, q), "[{\"name\":\"x\",\"count\":5,\"big\":null},"
                                         "{\"name\":\"y\",\"count\":0,\"big\":1}]");
    q.is_null_for_missing = true;
    refused(rig, q, -EINVAL, "NOT_NULL"); /* count of y */
    q.columns = columns;
    q.n_columns = 2;
    assert_string_equal(rows_of(rig, q), "[{\"name\":\"x\",\"count\":0,\"big\":null},"
                                         "{\"name\":\"y\",\"count\":0,\"big\":1}]");
}

/* --- the rule of users --- */

static void a_user_sees_and_changes_own_rows_only(void **state)
{
    const struct query_item items[] = { { .path = { .column = "name" } }, { .path = { .column = "user_id" } } };
    struct rig *rig = *state;
    struct query q;

    fill(rig); /* rows of nobody */
    q = insert_of(rig, "[{\"name\":\"of ann\"}]");
    q.only_user = ANN;
    q.items = items;
    q.n_items = 2;
    assert_string_equal(rows_of(rig, q), "[{\"name\":\"of ann\",\"user_id\":\"" ANN "\"}]");
    q.rows = rig_json(rig, "[{\"name\":\"of bob\",\"user_id\":\"" BOB "\"}]");
    refused(rig, q, -EPERM, "ROW_REFUSED");
    q.only_user = NULL;
    rows_of(rig, q);
    q = select_all();
    q.items = items;
    q.n_items = 1;
    q.only_user = ANN;
    assert_string_equal(rows_of(rig, q), "[{\"name\":\"of ann\"}]");
    q.kind = QUERY_UPDATE;
    q.is_rows_wanted = true;
    q.rows = rig_json(rig, "{\"name\":\"changed\"}");
    assert_string_equal(rows_of(rig, q), "[{\"name\":\"changed\"}]");
    q.rows = rig_json(rig, "{\"user_id\":\"" BOB "\"}");
    refused(rig, q, -EPERM, "ROW_REFUSED");
    q.kind = QUERY_DELETE;
    assert_string_equal(rows_of(rig, q), "[{\"name\":\"changed\"}]");
    q.only_user = BOB;
    assert_string_equal(rows_of(rig, q), "[{\"name\":\"of bob\"}]");
}

static void a_merge_leaves_the_rows_of_others(void **state)
{
    static const char *const code[] = { "code" };
    struct rig *rig = *state;
    struct query q;

    fill(rig);
    q = insert_of(rig, "[{\"name\":\"mine now\",\"code\":\"A\",\"user_id\":\"" ANN "\"}]");
    q.only_user = ANN;
    q.conflict = QUERY_CONFLICT_MERGED;
    q.conflict_columns = code;
    q.n_conflict_columns = 1;
    refused(rig, q, -EPERM, "ROW_REFUSED");
}

/* --- tables --- */

static void a_shape_tells_columns(void **state)
{
    struct rig *rig = *state;
    struct table_shape shape = { 0 };
    struct err e = { 0 };

    declare(rig, &orders);
    must(backend_shape(rig->backend, "public.orders", rig->arena, &shape, &e), &e);
    assert_string_equal(shape.table, "orders");
    assert_true(shape.has_own_columns);
    assert_true(shape.is_published);
    assert_true(shape.has_full_identity);
    assert_int_equal(shape.n_columns, orders.n_columns);
    for (size_t i = 0; i < orders.n_columns; i++) {
        assert_string_equal(shape.columns[i].name, orders.columns[i].name);
        assert_int_equal(shape.columns[i].type, orders.columns[i].type);
        assert_string_equal(shape.columns[i].type_name, table_type_word(orders.columns[i].type));
        assert_int_equal(shape.columns[i].is_nullable, orders.columns[i].is_nullable);
        assert_int_equal(shape.columns[i].is_key, orders.columns[i].is_key);
        if (!shape.columns[i].is_key)
            assert_int_equal(shape.columns[i].is_unique, orders.columns[i].is_unique);
    }
    must(backend_shape(rig->backend, TABLE, rig->arena, &shape, &e), &e);
    assert_false(shape.has_own_columns);
    assert_int_equal(shape.n_columns, TABLE_N_ACTIVITY_COLUMNS);
    assert_int_equal(backend_shape(rig->backend, "nothing", rig->arena, &shape, &e), -ENOENT);
    assert_string_equal(e.code, "UNKNOWN_TABLE");
}

static void a_declared_table_is_published(void **state)
{
    struct rig *rig = *state;
    struct backend_publications list = { 0 };
    struct err e = { 0 };

    declare(rig, &orders);
    must(OPS(rig)->publications(rig->backend, rig->arena, &list, &e), &e);
    assert_int_equal(list.items[0].n_tables, 2);
    assert_string_equal(list.items[0].tables[0], "orders");
    assert_string_equal(list.items[0].tables[1], TABLE);
}

static void a_declaration_may_be_repeated_and_grow(void **state)
{
    struct rig *rig = *state;
    struct table_column columns[] = { { .name = "id", .type = TABLE_INT8, .is_key = true },
                                      { .name = "note", .type = TABLE_TEXT, .is_nullable = true } };
    struct table_shape notes = { .table = "notes", .columns = columns, .n_columns = 1 };
    struct query q;
    struct err e = { 0 };

    declare(rig, &notes);
    declare(rig, &notes);
    q = insert_of(rig, "[{\"id\":1}]");
    q.table = "notes";
    rows_of(rig, q);
    notes.n_columns = 2;
    declare(rig, &notes);
    q.rows = rig_json(rig, "[{\"id\":2,\"note\":\"n\"}]");
    assert_string_equal(rows_of(rig, q), "[{\"id\":2,\"note\":\"n\"}]");
    columns[1].type = TABLE_INT4;
    assert_int_equal(backend_declare(rig->backend, &notes, &e), -EEXIST);
    assert_string_equal(e.code, "TABLE_DIFFERS");
    columns[1] = (struct table_column){ .name = "needed", .type = TABLE_TEXT };
    e = (struct err){ 0 };
    assert_int_equal(backend_declare(rig->backend, &notes, &e), -EEXIST);
    notes.table = TABLE;
    e = (struct err){ 0 };
    assert_int_equal(backend_declare(rig->backend, &notes, &e), -EEXIST);
}

static void a_table_may_have_any_name_in_quotes(void **state)
{
    static const char *const names[] = { "\"it's a \"\"table\"\"; --\"", "sales.\"a.b \xc3\xbc\"",
                                         "\"n12345678901234567890123456789012345678901234567890123456789012\"" };
    struct table_column columns[] = { { .name = "id", .type = TABLE_INT8, .is_key = true } };
    struct rig *rig = *state;

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        const struct table_shape shape = { .table = names[i], .columns = columns, .n_columns = 1 };
        struct query q = insert_of(rig, "[{\"id\":1}]");

        declare(rig, &shape);
        declare(rig, &shape);
        q.table = names[i];
        assert_string_equal(rows_of(rig, q), "[{\"id\":1}]");
        q.kind = QUERY_DELETE;
        assert_string_equal(rows_of(rig, q), "[{\"id\":1}]");
    }
}

static void a_bad_declaration_names_its_field(void **state)
{
    static const char *const bad[] = { "1", "x" };
    char name_63[] = "n12345678901234567890123456789012345678901234567890123456789012",
         name_64[] = "n123456789012345678901234567890123456789012345678901234567890123";
    const struct {
        struct table_column column;
        const char *field;
    } cases[] = { { { .name = "", .type = TABLE_TEXT }, "columns" },
                  { { .name = name_64, .type = TABLE_TEXT }, "columns" },
                  { { .name = "ID", .type = TABLE_TEXT }, "columns" },
                  { { .name = "a", .type = TABLE_OTHER }, "columns.a.type" },
                  { { .name = "a", .type = TABLE_INT4, .default_text = "x" }, "columns.a.default" },
                  { { .name = "a", .type = TABLE_INT4, .default_text = "now()" }, "columns.a.default" },
                  { { .name = "a", .type = TABLE_INT4, .default_text = "gen_random_uuid()" }, "columns.a.default" },
                  { { .name = "a", .type = TABLE_INT4, .allowed = bad, .n_allowed = 2 }, "columns.a.check.in" },
                  { { .name = "a", .type = TABLE_JSONB, .is_unique = true }, "columns.a.unique" } };
    struct table_column columns[] = { { .name = "id", .type = TABLE_UUID, .is_key = true }, { 0 } };
    const struct table_shape shape = { .table = "bad", .columns = columns, .n_columns = 2 };
    struct rig *rig = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct err e = { 0 };

        columns[1] = cases[i].column;
        assert_int_equal(backend_declare(rig->backend, &shape, &e), -EINVAL);
        assert_string_equal(e.fields[0].field, cases[i].field);
    }
    columns[1] = (struct table_column){ .name = name_63, .type = TABLE_TEXT, .is_nullable = true };
    declare(rig, &shape);
}

/* --- limits --- */

static void a_query_is_bounded(void **state)
{
    struct rig *rig = *state;
    struct query_condition *conditions = arena_array(rig->arena, LIMIT_QUERY_CONDITIONS + 1, sizeof(*conditions));
    const char **values = arena_array(rig->arena, LIMIT_QUERY_VALUES + 1, sizeof(*values));
    struct query_condition all = { .junction = QUERY_OR, .items = conditions, .n_items = LIMIT_QUERY_CONDITIONS - 1 };
    struct query q = select_all();

    fill(rig);
    for (size_t i = 0; i <= LIMIT_QUERY_CONDITIONS; i++)
        conditions[i] = query_text_read(rig->arena, "count=eq.1");
    q.where = &all;
    assert_non_null(strstr(rows_of(rig, q), "\"a\""));
    all.n_items++;
    refused(rig, q, -E2BIG, "TOO_LARGE");
    for (size_t i = 0; i <= LIMIT_QUERY_VALUES; i++)
        values[i] = "1";
    conditions[0].op = QUERY_IN;
    conditions[0].values = values;
    conditions[0].n_values = LIMIT_QUERY_VALUES;
    q.where = conditions;
    rows_of(rig, q);
    conditions[0].n_values++;
    refused(rig, q, -E2BIG, "TOO_LARGE");
    conditions[0] = conditions[1];
    for (size_t i = 1; i <= LIMIT_QUERY_DEPTH; i++)
        conditions[i] = (struct query_condition){ .junction = QUERY_AND, .items = &conditions[i - 1], .n_items = 1 };
    q.where = &conditions[LIMIT_QUERY_DEPTH - 1];
    rows_of(rig, q);
    q.where = &conditions[LIMIT_QUERY_DEPTH];
    refused(rig, q, -E2BIG, "TOO_LARGE");
}

static void a_reply_is_bounded(void **state)
{
    struct rig *rig = *state;
    struct query_item *items = arena_array(rig->arena, LIMIT_QUERY_ITEMS + 1, sizeof(*items));
    struct query_reply reply = { 0 };
    struct query q;
    struct buf rows;
    struct err e;

    declare(rig, &orders);
    buf_init(&rows, MIB(1));
    for (int i = 0; i <= LIMIT_QUERY_ROWS; i++)
        buf_printf(&rows, "%c{\"name\":\"n\",\"count\":%d}", i ? ',' : '[', i);
    buf_add_char(&rows, ']');
    q = insert_of(rig, buf_to_arena(&rows, rig->arena));
    q.is_rows_wanted = false;
    must(run(rig, &q, &reply, &e), &e);
    assert_int_equal(reply.n_inserted, LIMIT_QUERY_ROWS + 1);
    q = select_all();
    q.is_count_wanted = true;
    must(run(rig, &q, &reply, &e), &e);
    assert_int_equal(reply.n_rows, LIMIT_QUERY_ROWS);
    assert_int_equal(reply.count, LIMIT_QUERY_ROWS + 1);
    q.limit = LIMIT_QUERY_ROWS + 1;
    must(run(rig, &q, &reply, &e), &e);
    assert_int_equal(reply.n_rows, LIMIT_QUERY_ROWS);
    for (int i = 0; i <= LIMIT_QUERY_ITEMS; i++)
        items[i] = (struct query_item){ .path = { .column = "name" } };
    q.items = items;
    q.n_items = LIMIT_QUERY_ITEMS;
    q.limit = 1;
    must(run(rig, &q, &reply, &e), &e);
    q.n_items++;
    refused(rig, q, -E2BIG, "TOO_LARGE");
}

/* --- activities --- */

static void rows_of_work_are_columns_too(void **state)
{
    const struct query_item items[] = { { .path = { .column = "status" } },
                                        { .path = { .column = "raw_data" } },
                                        { .path = { .column = "attempted_by" } },
                                        { .path = { .column = "retry_count" } },
                                        { .path = { .column = "locked_at" } } };
    struct rig *rig = *state;
    struct query_condition where;
    struct query q = insert_of(rig, "[{\"raw_data\":{\"n\":1},\"status\":\"pending\","
                                    "\"locked_at\":\"2026-11-20T09:32:05.68+00:00\"}]");
    struct backend_rows rows;

    q.table = TABLE;
    q.items = items;
    q.n_items = ARRAY_SIZE(items);
    assert_string_equal(rows_of(rig, q), "[{\"status\":\"pending\",\"raw_data\":{\"n\":1},\"attempted_by\":[],"
                                         "\"retry_count\":0,\"locked_at\":\"2026-11-20T09:32:05.68+00:00\"}]");
    rows = rig_list(rig, (struct backend_query){ 0 });
    assert_int_equal(rows.n, 1);
    rig_claim(rig, rows.items[0].id, "machine");
    q = (struct query){ .kind = QUERY_UPDATE, .limit = -1, .max_affected = 1, .table = TABLE, .is_rows_wanted = true };
    where = query_text_read(rig->arena, "raw_data->>n=eq.1");
    q.where = &where;
    q.rows = rig_json(rig, "{\"raw_data\":{\"n\":2}}");
    q.items = &items[1];
    q.n_items = 1;
    assert_string_equal(rows_of(rig, q), "[{\"raw_data\":{\"n\":2}}]");
    assert_true(rig_get(rig, rows.items[0].id).is_dirty);
    assert_string_equal(json_to_str(rig->arena, rig_json(rig, rig_get(rig, rows.items[0].id).old_data)), "{\"n\":1}");
    where = query_text_read(rig->arena, "created_at=lt.2026-01-01");
    q = select_all();
    q.table = TABLE;
    q.where = &where;
    assert_string_equal(rows_of(rig, q), "[]");
    where = query_text_read(rig->arena, "revision=eq.1");
    refused(rig, q, -EINVAL, "UNKNOWN_COLUMN");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        TEST(constraints_are_kept),
        TEST(rows_are_updated_and_deleted),
        TEST(conflicts_merge_or_are_ignored),
        TEST(missing_members_are_null_or_default),
        TEST(a_user_sees_and_changes_own_rows_only),
        TEST(a_merge_leaves_the_rows_of_others),
        TEST(a_shape_tells_columns),
        TEST(a_declared_table_is_published),
        TEST(a_declaration_may_be_repeated_and_grow),
        TEST(a_table_may_have_any_name_in_quotes),
        TEST(a_bad_declaration_names_its_field),
        TEST(a_query_is_bounded),
        TEST(a_reply_is_bounded),
        TEST(rows_of_work_are_columns_too),
    };

    return contract_run(tests, ARRAY_SIZE(tests));
}
