/* The limits of queries at their edges (base/limits.h), against every provider. */
#include "query_rig.h"

static struct table_column note_columns[LIMIT_TABLE_COLUMNS + 1] = {
    { .name = "id", .type = TABLE_INT4, .is_key = true },
    { .name = "text", .type = TABLE_TEXT, .default_text = "x" },
};
static const struct table_shape notes = { .table = "many_notes", .columns = note_columns, .n_columns = 2 };

/* [{"id":first},...], n of them */
static const char *numbered(struct rig *rig, int first, int n)
{
    struct buf rows;

    buf_init(&rows, MIB(1));
    for (int i = 0; i < n; i++)
        buf_printf(&rows, "%c{\"id\":%d}", i ? ',' : '[', first + i);
    buf_add_char(&rows, ']');
    return buf_to_arena(&rows, rig->arena);
}

static int64_t change(struct rig *rig, struct query q)
{
    struct query_reply reply = { 0 };
    struct err e;

    q.table = "many_notes";
    q.is_rows_wanted = false;
    must(run(rig, &q, &reply, &e), &e);
    return reply.n_inserted + reply.n_rows;
}

static int64_t count(struct rig *rig)
{
    struct query q = select_all();
    struct query_reply reply = { 0 };
    struct err e;

    q.table = "many_notes";
    q.is_count_wanted = true;
    q.limit = 0;
    must(run(rig, &q, &reply, &e), &e);
    return reply.count;
}

static void refuse_change(struct rig *rig, struct query q)
{
    q.table = "many_notes";
    q.is_rows_wanted = false;
    refused(rig, q, -E2BIG, "TOO_MANY_ROWS");
}

static void a_change_affects_so_many_rows_or_none(void **state)
{
    struct rig *rig = *state;
    struct query_condition all = query_text_read(rig->arena, "id=gte.0");
    struct query q = { .kind = QUERY_UPDATE, .limit = -1, .max_affected = -1, .where = &all };

    declare(rig, &notes);
    refuse_change(rig, insert_of(rig, numbered(rig, 0, LIMIT_QUERY_WRITE_ROWS + 1)));
    assert_int_equal(count(rig), 0);
    change(rig, insert_of(rig, numbered(rig, 0, LIMIT_QUERY_WRITE_ROWS)));
    assert_int_equal(count(rig), LIMIT_QUERY_WRITE_ROWS);
    q.rows = rig_json(rig, "{\"text\":\"y\"}");
    change(rig, q);
    change(rig, insert_of(rig, numbered(rig, LIMIT_QUERY_WRITE_ROWS, 1)));
    refuse_change(rig, q);
    q.kind = QUERY_DELETE;
    refuse_change(rig, q);
    assert_int_equal(count(rig), LIMIT_QUERY_WRITE_ROWS + 1);
    all = query_text_read(rig->arena, "id=gte.1");
    change(rig, q);
    assert_int_equal(count(rig), 1);
}

static void a_reply_is_ordered_by_so_many_columns(void **state)
{
    struct rig *rig = *state;
    struct query_order *order = arena_array(rig->arena, LIMIT_QUERY_ORDER + 1, sizeof(*order));
    struct query q = select_all();

    fill(rig);
    for (int i = 0; i <= LIMIT_QUERY_ORDER; i++)
        order[i] = (struct query_order){ .path = { .column = i % 2 ? "name" : "count" } };
    q.order = order;
    q.n_order = LIMIT_QUERY_ORDER;
    rows_of(rig, q);
    q.n_order++;
    refused(rig, q, -E2BIG, "TOO_LARGE");
}

static void a_pattern_has_so_many_bytes(void **state)
{
    struct rig *rig = *state;
    char *pattern = arena_alloc(rig->arena, LIMIT_QUERY_PATTERN + 2);
    const char *value = pattern;
    struct query_condition like = {
        .junction = QUERY_TEST, .path = { .column = "name" }, .op = QUERY_LIKE, .values = &value, .n_values = 1
    };
    struct query q = select_all();

    fill(rig);
    memset(pattern, 'a', LIMIT_QUERY_PATTERN + 1);
    pattern[LIMIT_QUERY_PATTERN] = '\0';
    q.where = &like;
    assert_string_equal(rows_of(rig, q), "[]");
    pattern[LIMIT_QUERY_PATTERN] = 'a';
    pattern[LIMIT_QUERY_PATTERN + 1] = '\0';
    refused(rig, q, -E2BIG, "TOO_LARGE");
    like.op = QUERY_ILIKE;
    refused(rig, q, -E2BIG, "TOO_LARGE");
}

static void refuse_declaration(struct rig *rig, const struct table_shape *shape, const char *field)
{
    struct err e = { 0 };

    assert_int_equal(backend_declare(rig->backend, shape, &e), -EINVAL);
    assert_string_equal(e.fields[0].field, field);
}

static void a_table_has_so_many_columns(void **state)
{
    struct rig *rig = *state;
    struct table_shape wide = notes;

    wide.table = "wide";
    for (size_t i = 2; i <= LIMIT_TABLE_COLUMNS; i++)
        note_columns[i] = (struct table_column){ .name = arena_printf(rig->arena, "c%zu", i),
                                                 .type = TABLE_TEXT,
                                                 .is_nullable = true };
    wide.n_columns = LIMIT_TABLE_COLUMNS + 1;
    refuse_declaration(rig, &wide, "columns");
    wide.n_columns = 0;
    refuse_declaration(rig, &wide, "columns");
    wide.n_columns = LIMIT_TABLE_COLUMNS;
    declare(rig, &wide);
}

static void a_column_has_so_many_choices(void **state)
{
    struct rig *rig = *state;
    const char *choices[LIMIT_TABLE_CHOICES + 1];
    struct table_column columns[] = { note_columns[0], { .name = "choice", .type = TABLE_TEXT, .is_nullable = true } };
    const struct table_shape chosen = { .table = "chosen", .columns = columns, .n_columns = 2 };

    for (int i = 0; i <= LIMIT_TABLE_CHOICES; i++)
        choices[i] = arena_printf(rig->arena, "choice %d", i);
    columns[1].allowed = choices;
    columns[1].n_allowed = LIMIT_TABLE_CHOICES + 1;
    refuse_declaration(rig, &chosen, "columns.choice.check.in");
    columns[1].n_allowed = LIMIT_TABLE_CHOICES;
    declare(rig, &chosen);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        TEST(a_change_affects_so_many_rows_or_none), TEST(a_reply_is_ordered_by_so_many_columns),
        TEST(a_pattern_has_so_many_bytes),           TEST(a_table_has_so_many_columns),
        TEST(a_column_has_so_many_choices),
    };

    return contract_run(tests, ARRAY_SIZE(tests));
}
