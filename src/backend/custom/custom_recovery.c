/* Rows without a living holder, and rows that wait. */
#include "backend/custom/custom_private.h"

#include "backend/refusals.h"
#include "base/clock.h"
#include "base/log.h"

#include <stdlib.h>

enum { AHEAD_MS = 60000 }; /* clocks of programs that write locked_at may differ by so much */

/* Its end is stored: whoever delivers it keeps the lease. */
static bool is_ending(struct custom *c, const struct backend_row *row)
{
    return custom_delivery_is_open(c->deliveries, row->table, row->id, NULL) != 0;
}

/* ---- giving rows back ---- */

struct freeing {
    struct custom *c;
    const struct custom_view *view;
    const struct query_condition *if_so; /* NULL: none */
    struct arena *arena;
    struct backend_rows freed;
};

/* Only while the row is as it was read. */
static int free_row(struct freeing *x, const struct backend_row *row, struct err *e)
{
    struct custom_records changed = { 0 };
    struct custom_where w;
    int r;

    custom_where_init(&w);
    custom_where_test(&w, x->view->facts.key, QUERY_EQ, row->id);
    custom_where_test(&w, custom_column_names[CUSTOM_STATUS], QUERY_EQ, row->status);
    custom_where_test(&w, custom_column_names[CUSTOM_LOCKED_BY], row->locked_by ? QUERY_EQ : QUERY_IS,
                      row->locked_by ? row->locked_by : "null");
    if (x->if_so)
        custom_where_add(&w, x->if_so);
    r = custom_change(x->c, x->view, custom_set_free, &w.all, x->arena, &changed, e);
    if (r == 0 && changed.n == 1 &&
        custom_record_read(x->view, changed.items[0], x->arena, &x->freed.items[x->freed.n])) {
        custom_row_complete(x->c, x->arena, &x->freed.items[x->freed.n]);
        x->freed.n++;
    }
    return r;
}

static int free_page(struct freeing *x, struct custom_page *page, size_t *ret_n, struct err *e)
{
    struct custom_records records = { 0 };
    struct backend_row row;
    int r = custom_select_some(x->c, x->view, page, x->arena, &records, e);

    *ret_n = records.n;
    x->freed.items = arena_array(x->arena, records.n + 1, sizeof(*x->freed.items));
    x->freed.n = 0;
    for (size_t i = 0; r == 0 && i < records.n; i++)
        if (custom_record_read(x->view, records.items[i], x->arena, &row) && !is_ending(x->c, &row))
            r = free_row(x, &row, e);
    return r;
}

int custom_release_machine(struct custom *c, const struct custom_view *v, const char *machine_id, size_t *ret_n,
                           struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct freeing x = { .c = c, .view = v, .arena = a };
    struct custom_page page = { .limit = LIMIT_LIST };
    struct custom_where w;
    size_t n = 0, n_read = 0;
    int r;

    custom_where_init(&w);
    custom_where_status(&w, a, STATUSES_LEASED);
    custom_where_test(&w, custom_column_names[CUSTOM_LOCKED_BY], QUERY_EQ, machine_id);
    page.where = &w.all;
    do {
        r = free_page(&x, &page, &n_read, e);
        n += x.freed.n;
        page.offset += (int64_t)(n_read - x.freed.n); /* those that stay as they are */
    } while (r == 0 && n_read > 0 && (int64_t)n_read == page.limit);
    if (ret_n)
        *ret_n = n;
    return r;
}

/* Too old, too far in the future, or no time at all. */
struct stale {
    char before[TIME_TEXT_SIZE], after[TIME_TEXT_SIZE];
    const char *values[3];
    struct query_condition items[3], all;
};

static void make_stale(struct stale *s, int64_t now_ms, int64_t stale_after_ms)
{
    static const enum query_op ops[] = { QUERY_LT, QUERY_GT, QUERY_IS };

    clock_format(MAX(now_ms - stale_after_ms, (int64_t)0), s->before);
    clock_format(now_ms + MAX(stale_after_ms, (int64_t)AHEAD_MS), s->after);
    s->values[0] = s->before;
    s->values[1] = s->after;
    s->values[2] = "null";
    for (size_t i = 0; i < ARRAY_SIZE(ops); i++)
        s->items[i] = (struct query_condition){ .path = { .column = custom_column_names[CUSTOM_LOCKED_AT] },
                                                .op = ops[i],
                                                .values = &s->values[i],
                                                .n_values = 1 };
    s->all = (struct query_condition){ .junction = QUERY_OR, .items = s->items, .n_items = ARRAY_SIZE(ops) };
}

int custom_recover_stale(struct custom *c, const struct custom_view *v, int64_t stale_after_ms, struct arena *a,
                         struct backend_rows *ret, struct err *e)
{
    struct freeing x = { .c = c, .view = v, .arena = a };
    struct custom_page page = { .limit = LIMIT_LIST };
    struct stale stale;
    struct custom_where w;
    int64_t now_ms = 0;
    size_t n_read;
    int r = custom_now(c, &now_ms, e);

    if (r < 0)
        return r;
    make_stale(&stale, now_ms, stale_after_ms);
    x.if_so = &stale.all;
    custom_where_init(&w);
    custom_where_status(&w, a, STATUSES_LEASED);
    custom_where_add(&w, &stale.all);
    page.where = &w.all;
    r = free_page(&x, &page, &n_read, e);
    if (r == 0)
        *ret = x.freed;
    return r;
}

/* ---- rows that wait ---- */

struct search {
    struct custom *c;
    const struct custom_view *view;
    const struct backend_claim *as;
    struct arena *arena;
    struct backend_rows rows; /* the newest first */
    size_t limit;
};

static bool may_claim(const struct search *s, const struct backend_row *row)
{
    bool has_tried;
    size_t n = backend_count_machines(row->attempted_by, s->as->machine_id, &has_tried);

    return status_is_claimable(row->status) && !has_tried && (int64_t)n < backend_max_machines(s->as);
}

static void take_records(struct search *s, const struct custom_records *records)
{
    struct backend_row *row = &s->rows.items[s->rows.n];

    for (size_t i = 0; i < records->n && s->rows.n < s->limit; i++) {
        if (!custom_record_read(s->view, records->items[i], s->arena, row))
            continue;
        custom_row_complete(s->c, s->arena, row);
        if (may_claim(s, row))
            row = &s->rows.items[++s->rows.n];
    }
}

/* A row that is too large to be read is left out. */
static int search_page(struct search *s, struct custom_page *page, bool *ret_is_last, struct err *e)
{
    struct custom_records records = { 0 };
    struct err why = { 0 };
    int r = custom_select_some(s->c, s->view, page, s->arena, &records, &why);

    if (r == -E2BIG) {
        log_warn("backend", NULL, "a row of table %s is too large to be read", LOG_Q(s->view->table));
        page->offset++;
        return 0;
    }
    if (r < 0)
        return err_set(e, r, why.code, "%s", why.text);
    take_records(s, &records);
    *ret_is_last = (int64_t)records.n < page->limit;
    page->offset += (int64_t)records.n;
    return 0;
}

static void reverse(struct backend_rows *rows)
{
    for (size_t i = 0; i < rows->n / 2; i++) {
        struct backend_row row = rows->items[i];

        rows->items[i] = rows->items[rows->n - 1 - i];
        rows->items[rows->n - 1 - i] = row;
    }
}

/* Older than a place: by the time and then by the key, rows without a time last. */
struct older {
    const char *values[4];
    struct query_condition tests[4], same[2], any[3], all;
};

static struct query_condition test_of(const char *column, enum query_op op, const char *const *value)
{
    return (struct query_condition){ .path = { .column = column }, .op = op, .values = value, .n_values = 1 };
}

static void make_older(struct older *o, const struct custom_view *v, const struct backend_position *before)
{
    const char *created_at = custom_column_names[CUSTOM_CREATED_AT];
    bool has_time = *before->created_at;

    o->values[0] = before->id;
    o->values[1] = before->created_at;
    o->values[2] = "null";
    o->same[0] = test_of(v->facts.key, QUERY_LT, &o->values[0]);
    if (!v->facts.has[CUSTOM_CREATED_AT]) {
        o->all = o->same[0];
        return;
    }
    o->same[1] = test_of(created_at, has_time ? QUERY_EQ : QUERY_IS, &o->values[has_time ? 1 : 2]);
    o->any[0] = (struct query_condition){ .junction = QUERY_AND, .items = o->same, .n_items = 2 };
    o->any[1] = test_of(created_at, QUERY_LT, &o->values[1]);
    o->any[2] = test_of(created_at, QUERY_IS, &o->values[2]);
    o->all = (struct query_condition){ .junction = QUERY_OR, .items = o->any, .n_items = has_time ? 3 : 1 };
}

int custom_claimable(struct custom *c, const struct custom_view *v, const struct backend_claim *as,
                     const struct backend_position *before, int64_t limit, struct arena *a, struct backend_rows *ret,
                     struct err *e)
{
    struct search s = {
        .c = c, .view = v, .as = as, .arena = a, .limit = (size_t)MIN(MAX(limit, (int64_t)1), (int64_t)LIMIT_LIST)
    };
    struct custom_page page = { .limit = (int64_t)s.limit };
    struct custom_where w;
    struct older older;
    bool is_last = false;
    int r = 0;

    custom_where_init(&w);
    custom_where_status(&w, a, STATUSES_CLAIMABLE);
    if (before) {
        make_older(&older, v, before);
        custom_where_add(&w, &older.all);
    }
    page.where = &w.all;
    s.rows.items = arena_array(a, s.limit + 1, sizeof(*s.rows.items));
    for (size_t i = 0; r == 0 && !is_last && i < LIMIT_CUSTOM_PAGES && s.rows.n < s.limit; i++)
        r = search_page(&s, &page, &is_last, e);
    if (r < 0)
        return r;
    reverse(&s.rows);
    *ret = s.rows;
    return 0;
}

/* ---- counts ---- */

static int count_waiting(struct custom *c, const char *table, struct arena *a, struct backend_owner *ret, struct err *e)
{
    struct custom_view view;
    struct custom_where w;
    int r = custom_find(c, table, a, &view, e);

    if (r <= 0)
        return r;
    custom_where_init(&w);
    custom_where_test(&w, custom_column_names[CUSTOM_STATUS], QUERY_EQ, STATUS_PENDING);
    *ret = (struct backend_owner){ .table = view.table, .app_id = view.app_id, .status = STATUS_PENDING };
    return custom_count(c, &view, &w.all, &ret->n_waiting, e);
}

static int compare_waiting(const void *a, const void *b)
{
    const struct backend_owner *x = a, *y = b;

    return (x->n_waiting < y->n_waiting) - (x->n_waiting > y->n_waiting);
}

/* A table that cannot be counted is left out: `hearth backend check` says what is wrong with it. */
int custom_owners(struct custom *c, struct arena *a, struct backend_owners *ret, struct err *e)
{
    size_t n = 0;
    const char **names = custom_tables_names(c->tables, a, &n);
    struct backend_owner *items = arena_array(a, ret->n + n + 1, sizeof(*items));

    memcpy(items, ret->items, ret->n * sizeof(*items));
    ret->items = items;
    for (size_t i = 0; i < n; i++) {
        struct backend_owner *owner = &items[ret->n];

        *owner = (struct backend_owner){ 0 };
        if (count_waiting(c, names[i], a, owner, NULL) == 0 && owner->n_waiting > 0)
            ret->n++;
    }
    qsort(items, ret->n, sizeof(*items), compare_waiting);
    ret->n = MIN(ret->n, (size_t)LIMIT_LIST);
    return 0;
}
