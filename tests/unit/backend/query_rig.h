/* The table `orders` and what the tests of backend/query.h do with it. */
#pragma once

#include "contract.h"
#include "query_text.h"

static const char *const levels[] = { "low", "high" };

/* clang-format off */
static struct table_column order_columns[] = {
    { .name = "id",       .type = TABLE_UUID, .is_key = true, .default_text = "gen_random_uuid()" },
    { .name = "user_id",  .type = TABLE_UUID, .is_nullable = true, .default_text = "auth.uid()" },
    { .name = "name",     .type = TABLE_TEXT },
    { .name = "code",     .type = TABLE_TEXT, .is_nullable = true, .is_unique = true },
    { .name = "level",    .type = TABLE_TEXT, .default_text = "low", .allowed = levels, .n_allowed = 2 },
    { .name = "small",    .type = TABLE_INT2, .is_nullable = true },
    { .name = "count",    .type = TABLE_INT4, .default_text = "0" },
    { .name = "big",      .type = TABLE_INT8, .is_nullable = true },
    { .name = "price",    .type = TABLE_NUMERIC, .is_nullable = true },
    { .name = "ratio",    .type = TABLE_FLOAT8, .is_nullable = true },
    { .name = "done",     .type = TABLE_BOOL, .default_text = "false" },
    { .name = "due",      .type = TABLE_TIMESTAMPTZ, .is_nullable = true },
    { .name = "day",      .type = TABLE_DATE, .is_nullable = true },
    { .name = "at",       .type = TABLE_TIME, .is_nullable = true },
    { .name = "data",     .type = TABLE_JSONB, .is_nullable = true },
    { .name = "tags",     .type = TABLE_TEXT_ARRAY, .default_text = "{}" },
    { .name = "numbers",  .type = TABLE_INT4_ARRAY, .is_nullable = true },
    { .name = "made_at",  .type = TABLE_TIMESTAMPTZ, .default_text = "now()" },
    { .name = "a \"b\".c ü", .type = TABLE_TEXT, .is_nullable = true },
};
/* clang-format on */
static const struct table_shape orders = { .table = "orders",
                                           .columns = order_columns,
                                           .n_columns = ARRAY_SIZE(order_columns) };

#define ANN "11111111-1111-4111-8111-111111111111"
#define BOB "22222222-2222-4222-8222-222222222222"

static inline void declare(struct rig *rig, const struct table_shape *shape)
{
    struct err e = { 0 };

    must(backend_declare(rig->backend, shape, &e), &e);
}

static inline int run(struct rig *rig, struct query *q, struct query_reply *ret, struct err *e)
{
    *e = (struct err){ 0 };
    q->table = q->table ? q->table : "orders";
    return backend_query(rig->backend, q, rig->arena, ret, e);
}

static inline struct query select_all(void)
{
    return (struct query){ .kind = QUERY_SELECT, .limit = -1, .max_affected = -1 };
}

static inline struct query insert_of(struct rig *rig, const char *rows)
{
    return (struct query){
        .kind = QUERY_INSERT, .limit = -1, .max_affected = -1, .is_rows_wanted = true, .rows = rig_json(rig, rows)
    };
}

static inline const char *text_of(struct rig *rig, struct slice s)
{
    return arena_slicedup(rig->arena, s);
}

/* The rows that a change or a SELECT gives, as minified JSON. */
static inline const char *rows_of(struct rig *rig, struct query q)
{
    struct query_reply reply = { 0 };
    struct err e;

    must(run(rig, &q, &reply, &e), &e);
    return json_to_str(rig->arena, rig_json(rig, text_of(rig, reply.rows)));
}

static inline void fill(struct rig *rig)
{
    declare(rig, &orders);
    rows_of(rig, insert_of(rig, "[{\"name\":\"a\",\"count\":1,\"big\":9007199254740993,\"price\":1.5,\"ratio\":0.1,"
                                "\"data\":{\"k\":{\"n\":7},\"list\":[10,20]},\"tags\":[\"x\",\"y z\"],\"code\":\"A\","
                                "\"due\":\"2026-11-20T10:32:05.680+01:00\",\"done\":true,\"numbers\":[1,2]},"
                                "{\"name\":\"B%\",\"count\":2,\"code\":\"B\",\"day\":\"2026-02-28\",\"at\":\"9:05\","
                                "\"data\":{\"k\":{\"n\":10},\"s\":\"t\"},\"due\":\"2026-11-20 09:32:06\"},"
                                "{\"name\":\"c_\",\"count\":3,\"small\":-5,\"tags\":[\"x\"],\"data\":[1,{\"a\":2}]}]"));
}

static inline const char *names_of(struct rig *rig, struct slice rows)
{
    struct json_iter it = json_iter(rig_json(rig, text_of(rig, rows)));
    const char *names = "";
    struct json_value row;

    while (json_next(&it, NULL, &row))
        names = arena_printf(rig->arena, "%s%s%s", names, *names ? "," : "", json_cstr(json_get(row, "name")));
    return names;
}

static inline void refused(struct rig *rig, struct query q, int expected, const char *code)
{
    struct query_reply reply = { 0 };
    struct err e;
    int r = run(rig, &q, &reply, &e);

    if (r != expected || strcmp(e.code, code) != 0)
        fail_msg("%d %s %s, not %d %s", r, e.code, e.text, expected, code);
}
