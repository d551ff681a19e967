#include "backend/custom/custom_private.h"

#include "backend/refusals.h"
#include "base/clock.h"

const char custom_set_free[] = "{\"status\":\"" STATUS_PENDING "\",\"locked_by\":null,\"locked_at\":null}";

/* ---- conditions ---- */

void custom_where_init(struct custom_where *w)
{
    *w = (struct custom_where){ .all = { .junction = QUERY_AND } };
    w->all.items = w->tests;
}

void custom_where_add(struct custom_where *w, const struct query_condition *cond)
{
    w->tests[w->all.n_items++] = *cond;
}

void custom_where_in(struct custom_where *w, const char *column, const char *const *values, size_t n)
{
    custom_where_add(
        w, &(struct query_condition){ .path = { .column = column }, .op = QUERY_IN, .values = values, .n_values = n });
}

void custom_where_test(struct custom_where *w, const char *column, enum query_op op, const char *value)
{
    const char **place = &w->values[w->all.n_items];

    *place = value;
    custom_where_add(
        w, &(struct query_condition){ .path = { .column = column }, .op = op, .values = place, .n_values = 1 });
}

void custom_where_status(struct custom_where *w, struct arena *a, enum status_class of)
{
    const char **words = arena_array(a, CUSTOM_STATUS_WORDS, sizeof(*words));
    size_t n = 0;

    for (const char *word; n < CUSTOM_STATUS_WORDS && (word = status_word(of, n)); n++)
        words[n] = word;
    custom_where_in(w, custom_column_names[CUSTOM_STATUS], words, n);
}

void custom_where_lease(struct custom_where *w, const struct custom_view *v, const struct backend_lease *l,
                        struct arena *a)
{
    char *since = arena_alloc(a, TIME_TEXT_SIZE);

    custom_where_test(w, v->facts.key, QUERY_EQ, l->row_id);
    custom_where_test(w, custom_column_names[CUSTOM_LOCKED_BY], QUERY_EQ, l->machine_id);
    custom_where_status(w, a, STATUSES_LEASED);
    if (l->attempt <= 0)
        return;
    clock_format(l->attempt, since);
    custom_where_test(w, custom_column_names[CUSTOM_LOCKED_AT], QUERY_GTE, since);
}

/* ---- statements ---- */

/* Columns may have changed since the table's shape was read. */
static int run(struct custom *c, const struct custom_view *v, const struct query *q, struct arena *a,
               struct query_reply *ret, struct err *e)
{
    struct err why = { 0 };
    int r = backend_query(c->config.inner, q, a, ret, &why);

    if (r == 0)
        return 0;
    if (strcmp(why.code, "UNKNOWN_COLUMN") == 0 || strcmp(why.code, "UNKNOWN_TABLE") == 0)
        custom_tables_forget(c->tables, v->table);
    if (q->kind == QUERY_SELECT && strcmp(why.code, "BAD_VALUE") == 0)
        return refusals_no_row(e); /* the id is none that this key can have */
    if (e)
        *e = why;
    return r;
}

static int read_records(struct slice text, struct arena *a, struct custom_records *ret, struct err *e)
{
    struct json_value list = { 0 };
    int r = json_parse(a, text, &list, e);
    struct json_iter it = json_iter(list);

    if (r == -E2BIG)
        return refusals_list_too_large(e);
    if (r < 0)
        return r;
    *ret = (struct custom_records){ arena_array(a, json_length(list) + 1, sizeof(*ret->items)), 0 };
    while (json_next(&it, NULL, &ret->items[ret->n]))
        ret->n++;
    return 0;
}

int custom_select(struct custom *c, const struct custom_view *v, const struct custom_page *page, struct arena *a,
                  struct custom_records *ret, struct err *e)
{
    const struct query_order orders[] = {
        { .path = { .column = custom_column_names[CUSTOM_CREATED_AT] },
          .is_descending = true,
          .nulls = QUERY_NULLS_LAST },
        { .path = { .column = v->facts.key }, .is_descending = true },
    };
    bool has_time = v->facts.has[CUSTOM_CREATED_AT];
    const struct query q = { .kind = QUERY_SELECT,
                             .table = v->table,
                             .where = page->where,
                             .order = has_time ? orders : &orders[1],
                             .n_order = has_time ? 2 : 1,
                             .limit = page->limit,
                             .offset = page->offset,
                             .max_affected = -1 };
    struct query_reply reply = { 0 };
    int r = run(c, v, &q, a, &reply, e);

    return r < 0 ? r : read_records(reply.rows, a, ret, e);
}

int custom_select_some(struct custom *c, const struct custom_view *v, struct custom_page *page, struct arena *a,
                       struct custom_records *ret, struct err *e)
{
    struct err why = { 0 };
    int r = custom_select(c, v, page, a, ret, &why);

    for (; r == -E2BIG && page->limit > 1; r = custom_select(c, v, page, a, ret, &why)) {
        page->limit /= 2;
        why = (struct err){ 0 };
    }
    if (r < 0 && e)
        *e = why;
    return r;
}

int custom_count(struct custom *c, const struct custom_view *v, const struct query_condition *where, int64_t *ret,
                 struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct query_item key = { .path = { .column = v->facts.key } };
    const struct query q = { .kind = QUERY_SELECT,
                             .table = v->table,
                             .items = &key,
                             .n_items = 1,
                             .where = where,
                             .limit = 1,
                             .is_count_wanted = true,
                             .max_affected = -1 };
    struct query_reply reply = { 0 };
    int r = run(c, v, &q, a, &reply, e);

    *ret = reply.count;
    return r;
}

int custom_select_one(struct custom *c, const struct custom_view *v, const char *id, struct arena *a,
                      struct json_value *ret, struct err *e)
{
    struct custom_page page = { .limit = 1 };
    struct custom_records records = { 0 };
    struct custom_where w;
    int r;

    custom_where_init(&w);
    custom_where_test(&w, v->facts.key, QUERY_EQ, id);
    page.where = &w.all;
    r = custom_select(c, v, &page, a, &records, e);
    if (r < 0)
        return r;
    if (records.n == 0)
        return refusals_no_row(e);
    *ret = records.items[0];
    return 0;
}

int custom_change(struct custom *c, const struct custom_view *v, const char *object,
                  const struct query_condition *where, struct arena *a, struct custom_records *ret, struct err *e)
{
    struct query q = {
        .kind = QUERY_UPDATE, .table = v->table, .where = where, .limit = -1, .is_rows_wanted = true, .max_affected = -1
    };
    struct query_reply reply = { 0 };
    int r = json_parse(a, slice_of(object), &q.rows, e);

    if (r == 0)
        r = run(c, v, &q, a, &reply, e);
    return r < 0 ? r : read_records(reply.rows, a, ret, e);
}
