/* The dialect of PostgreSQL, and its SELECT. */
#include "backend/postgres/postgres_query.h"
#include "base/limits.h"

void postgres_put_param(struct query_sql *s, const char *text)
{
    const struct query_value v = { .kind = QUERY_VALUE_TEXT, .text = slice_of(text) };

    query_sql_add_param(s, &v);
    buf_printf(&s->text, "$%zu", s->n_params);
}

/* {"a","b"}, with every element in quotes */
static const char *array_literal(struct arena *a, const char *const *items, size_t n)
{
    struct buf out;

    buf_init(&out, LIMIT_REPLY);
    buf_add_char(&out, '{');
    for (size_t i = 0; i < n; i++) {
        buf_add_str(&out, i ? ",\"" : "\"");
        for (const char *p = items[i]; *p; p++) {
            if (*p == '"' || *p == '\\')
                buf_add_char(&out, '\\');
            buf_add_char(&out, *p);
        }
        buf_add_char(&out, '"');
    }
    buf_add_char(&out, '}');
    return buf_to_arena(&out, a);
}

static int put_operand(struct query_sql *s, const struct query_operand *of, struct err *e)
{
    const struct query_path *p = of->path;

    buf_add_str(&s->text, p->cast ? "(" : "");
    buf_add_str(&s->text, p->n_steps ? "(_t." : "_t.");
    query_sql_quote(&s->text, of->column->name);
    if (p->n_steps) {
        buf_add_str(&s->text, p->is_text ? "::jsonb #>> " : "::jsonb #> ");
        postgres_put_param(s, array_literal(s->arena, p->steps, p->n_steps));
        buf_add_str(&s->text, "::text[])");
    }
    if (p->cast)
        buf_printf(&s->text, ")::\"%s\"", table_type_word(*p->cast));
    return 0;
}

void postgres_put_param_as(struct query_sql *s, const char *text, const char *type_name)
{
    postgres_put_param(s, text);
    buf_add_str(&s->text, "::");
    query_sql_quote(&s->text, type_name);
}

/* Parameters are texts; the cast reads them as the type. */
static int put_value(struct query_sql *s, const struct query_operand *of, const char *text, struct err *e)
{
    postgres_put_param_as(s, text, of->type == TABLE_OTHER ? of->column->type_name : table_type_word(of->type));
    return 0;
}

static int put_special(struct query_sql *s, const struct query_operand *of, const struct query_condition *c,
                       struct err *e)
{
    static const char *const signs[] = {
        [QUERY_LIKE] = " LIKE ",    [QUERY_ILIKE] = " ILIKE ", [QUERY_CONTAINS] = " @> ",
        [QUERY_CONTAINED] = " <@ ", [QUERY_OVERLAPS] = " && ", [QUERY_IS_DISTINCT] = " IS DISTINCT FROM "
    };
    bool is_like = c->op == QUERY_LIKE || c->op == QUERY_ILIKE;

    put_operand(s, of, e);
    buf_add_str(&s->text, signs[c->op]);
    if (is_like)
        postgres_put_param(s, c->values[0]);
    return is_like ? 0 : put_value(s, of, c->values[0], e);
}

const struct query_dialect postgres_dialect = { .put_operand = put_operand,
                                                .put_compared = put_operand,
                                                .put_ordered = put_operand,
                                                .put_value = put_value,
                                                .put_special = put_special };

static int put_rows(struct query_sql *s, const struct query *q, struct err *e)
{
    int64_t limit = q->limit >= 0 ? MIN(q->limit, LIMIT_QUERY_ROWS) : LIMIT_QUERY_ROWS;
    int r;

    buf_add_str(&s->text, "SELECT ");
    r = query_sql_items(s, q, e);
    buf_add_str(&s->text, " FROM ");
    postgres_put_name(&s->text, s->shape->table);
    buf_add_str(&s->text, " AS _t");
    if (r == 0)
        r = query_sql_where(s, q, e);
    if (r == 0)
        r = query_sql_order(s, q, e);
    buf_printf(&s->text, " LIMIT %lld OFFSET %lld", (long long)limit, (long long)MAX(q->offset, 0));
    return r;
}

/* One row at least, for the count. */
int postgres_put_select(struct query_sql *s, const struct query *q, struct err *e)
{
    int r = 0;

    buf_add_str(&s->text, "SELECT ");
    if (q->is_count_wanted) {
        buf_add_str(&s->text, "(SELECT count(*) FROM ");
        postgres_put_name(&s->text, s->shape->table);
        buf_add_str(&s->text, " AS _t");
        r = query_sql_where(s, q, e);
        buf_add_char(&s->text, ')');
    } else {
        buf_add_str(&s->text, "-1");
    }
    buf_add_str(&s->text, ", 0, NULL, _r.j FROM (SELECT 1) _one LEFT JOIN LATERAL"
                          " (SELECT row_to_json(_x)::text AS j FROM (");
    if (r == 0)
        r = put_rows(s, q, e);
    buf_add_str(&s->text, ") _x) _r ON true");
    return r;
}
