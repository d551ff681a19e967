/* Values as PostgreSQL's to_jsonb() gives them. */
#include "backend/embedded/embedded_query.h"
#include "backend/refusals.h"
#include "base/json_write.h"
#include "base/limits.h"

struct item {
    const char *name;
    enum table_type type;
};

static int list_items(const struct query_sql *s, const struct query *q, struct item **ret, size_t *ret_n, struct err *e)
{
    size_t n = q->n_items ? q->n_items : s->shape->n_columns;
    struct item *items = arena_array(s->arena, MAX(n, (size_t)1), sizeof(*items));
    struct query_operand of = { 0 };
    int r = 0;

    for (size_t i = 0; r == 0 && i < n; i++) {
        if (q->n_items)
            r = query_sql_operand(s, &q->items[i].path, &of, e);
        items[i].name = q->n_items ? query_item_name(&q->items[i]) : s->shape->columns[i].name;
        items[i].type = q->n_items ? of.type : s->shape->columns[i].type;
    }
    *ret = items;
    *ret_n = n;
    return r;
}

static void print_text(struct json_writer *w, const struct item *item, struct slice text)
{
    if (table_type_is_json(item->type) || table_type_is_array(item->type))
        json_add_raw(w, item->name, text.p);
    else
        json_add_slice(w, item->name, text);
}

/* Shortest texts that read back as the same value of the type. */
static void print_real(struct json_writer *w, const struct item *item, double d)
{
    char text[NUMBER_TEXT_SIZE] = "";

    if (item->type == TABLE_FLOAT4) {
        text[json_format_float(text, (float)d)] = '\0';
        json_add_raw(w, item->name, text);
    } else {
        json_add_double(w, item->name, d);
    }
}

static void print_value(struct json_writer *w, const struct item *item, struct sql_rows *rows, int column)
{
    switch (sql_kind_of(rows, column)) {
    case SQL_INT:
        if (item->type == TABLE_BOOL)
            json_add_bool(w, item->name, sql_int(rows, column) != 0);
        else
            json_add_int(w, item->name, sql_int(rows, column));
        break;
    case SQL_REAL:
        print_real(w, item, sql_double(rows, column));
        break;
    case SQL_TEXT:
        print_text(w, item, sql_peek(rows, column));
        break;
    default:
        json_add_null(w, item->name);
    }
}

static int print_rows(struct sql_rows *rows, struct buf *out, const struct item *items, size_t n, int64_t *ret_n,
                      struct err *e)
{
    struct json_writer w;
    int r = 0;

    json_write_init(&w, out);
    json_begin_array(&w);
    while (!out->overflowed && (r = sql_step(rows, e)) > 0) {
        json_begin_object(&w);
        for (size_t i = 0; i < n; i++)
            print_value(&w, &items[i], rows, (int)i);
        json_end(&w);
        ++*ret_n;
    }
    json_end(&w);
    return MIN(r, 0);
}

int embedded_query_print(struct sql_rows *rows, const struct query_sql *s, const struct query *q,
                         struct query_reply *ret, struct err *e)
{
    struct item *items;
    struct buf out;
    int64_t n_rows = 0;
    size_t n;
    int r = list_items(s, q, &items, &n, e);

    if (r < 0)
        return r;
    buf_init(&out, LIMIT_REPLY);
    r = print_rows(rows, &out, items, n, &n_rows, e);
    if (r == 0 && out.overflowed)
        r = refusals_list_too_large(e);
    ret->n_rows = n_rows;
    ret->rows.n = out.n;
    ret->rows.p = buf_to_arena(&out, s->arena);
    return r;
}
