#include "backend/custom/custom_private.h"

#include "backend/refusals.h"
#include "base/json_write.h"

int custom_get(struct custom *c, const struct custom_view *v, const char *id, const char *app_id, struct arena *a,
               struct backend_row *ret, struct err *e)
{
    struct json_value record;
    struct backend_row row;
    int r = app_id && strcmp(app_id, v->app_id) != 0 ? refusals_no_row(e) : custom_select_one(c, v, id, a, &record, e);

    if (r < 0)
        return r;
    if (!custom_record_read(v, record, a, &row))
        return refusals_no_row(e);
    custom_row_complete(c, a, &row);
    *ret = row;
    return 0;
}

int custom_list(struct custom *c, const struct custom_view *v, const struct backend_query *q, struct arena *a,
                struct backend_rows *ret, struct err *e)
{
    struct custom_page page = { .limit = q->limit > 0 ? MIN(q->limit, LIMIT_LIST) : LIMIT_LIST_DEFAULT,
                                .offset = MAX(q->offset, 0) };
    struct custom_records records = { 0 };
    struct custom_where w;
    int r;

    *ret = (struct backend_rows){ 0 };
    if ((q->app_id && strcmp(q->app_id, v->app_id) != 0) || (q->user_id && !v->facts.has[CUSTOM_USER_ID]))
        return 0;
    custom_where_init(&w);
    if (q->status)
        custom_where_test(&w, custom_column_names[CUSTOM_STATUS], QUERY_EQ, q->status);
    if (q->user_id)
        custom_where_test(&w, custom_column_names[CUSTOM_USER_ID], QUERY_EQ, q->user_id);
    page.where = &w.all;
    r = custom_select(c, v, &page, a, &records, e);
    if (r < 0)
        return r;
    ret->items = arena_array(a, records.n + 1, sizeof(*ret->items));
    for (size_t i = 0; i < records.n; i++)
        if (custom_record_read(v, records.items[i], a, &ret->items[ret->n]))
            custom_row_complete(c, a, &ret->items[ret->n++]);
    return 0;
}

/* ---- changes by a person or the app ---- */

struct patch {
    const struct custom_view *view;
    struct buf text;
    struct json_writer w;
};

static void begin_patch(struct patch *p, const struct custom_view *v)
{
    p->view = v;
    buf_init(&p->text, LIMIT_BACKEND_ROW_BYTES);
    json_write_init(&p->w, &p->text);
    json_begin_object(&p->w);
}

static int run_patch(struct custom *c, struct patch *p, const struct query_condition *where, struct arena *a,
                     struct custom_records *ret, struct err *e)
{
    int r;

    json_end(&p->w);
    r = buf_check(&p->text, e);
    if (r == 0)
        r = custom_change(c, p->view, buf_str(&p->text), where, a, ret, e);
    buf_clear(&p->text);
    return r;
}

static void set_status(struct patch *p, const char *status)
{
    json_add_string(&p->w, custom_column_names[CUSTOM_STATUS], status);
    if (status_is_leased(status))
        return;
    json_add_null(&p->w, custom_column_names[CUSTOM_LOCKED_BY]);
    json_add_null(&p->w, custom_column_names[CUSTOM_LOCKED_AT]);
}

/* What the table has no column for is kept by the task alone. */
static void set_outcome(struct patch *p, const struct backend_patch *patch)
{
    const struct custom_facts *facts = &p->view->facts;

    if (patch->error_message && facts->has[CUSTOM_ERROR_MESSAGE])
        json_add_string(&p->w, custom_column_names[CUSTOM_ERROR_MESSAGE], patch->error_message);
    if (!patch->result || !facts->has[CUSTOM_RESULT])
        return;
    if (table_type_is_json(facts->types[CUSTOM_RESULT]))
        json_add_raw(&p->w, custom_column_names[CUSTOM_RESULT], patch->result);
    else
        json_add_string(&p->w, custom_column_names[CUSTOM_RESULT], patch->result);
}

static int check_patch(const struct custom_view *v, const struct backend_update_request *request, struct err *e)
{
    if (request->app_id && strcmp(request->app_id, v->app_id) != 0)
        return refusals_no_row(e);
    if (request->patch->raw_data)
        return err_set(e, -EPERM, "CUSTOM_TABLE",
                       "The columns of %.130s belong to its app: only status, result and error_message are set here",
                       v->table);
    return refusals_check_patch(request->patch, e);
}

int custom_update(struct custom *c, const struct custom_view *v, const struct backend_update_request *request,
                  struct arena *a, struct backend_row *ret, struct err *e)
{
    struct custom_records changed = { 0 };
    struct custom_where w;
    struct patch p;
    int r = check_patch(v, request, e);

    if (r < 0)
        return r;
    custom_where_init(&w);
    custom_where_test(&w, v->facts.key, QUERY_EQ, request->id);
    begin_patch(&p, v);
    if (request->patch->status)
        set_status(&p, request->patch->status);
    set_outcome(&p, request->patch);
    r = run_patch(c, &p, &w.all, a, &changed, e);
    if (r == 0 && changed.n == 0)
        return refusals_no_row(e);
    return r < 0 ? r : custom_get(c, v, request->id, NULL, a, ret, e);
}

/* As new, as far as the table has the columns. */
static void set_new(struct patch *p)
{
    const struct custom_facts *facts = &p->view->facts;

    set_status(p, STATUS_PENDING);
    if (facts->has[CUSTOM_ERROR_MESSAGE])
        json_add_null(&p->w, custom_column_names[CUSTOM_ERROR_MESSAGE]);
    if (facts->has[CUSTOM_COMPLETED_AT])
        json_add_null(&p->w, custom_column_names[CUSTOM_COMPLETED_AT]);
    if (facts->has[CUSTOM_RETRY_COUNT])
        json_add_int(&p->w, custom_column_names[CUSTOM_RETRY_COUNT], 0);
    if (facts->has[CUSTOM_ATTEMPTED_BY] && (table_type_is_array(facts->types[CUSTOM_ATTEMPTED_BY]) ||
                                            table_type_is_json(facts->types[CUSTOM_ATTEMPTED_BY])))
        json_add_raw(&p->w, custom_column_names[CUSTOM_ATTEMPTED_BY], "[]");
}

static int refuse_undelivered(const struct custom_view *v, struct err *e)
{
    return err_set(e, -EBUSY, "NOT_CLAIMABLE",
                   "The end of the last attempt is still on its way to the app that owns %.130s: `hearth backend "
                   "deliveries`",
                   v->table);
}

int custom_replay(struct custom *c, const struct custom_view *v, const char *id, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct custom_records changed = { 0 };
    struct json_value record;
    struct backend_row row;
    struct custom_where w;
    struct patch p;
    int r = custom_select_one(c, v, id, a, &record, e);

    if (r < 0)
        return r;
    if (!custom_record_read(v, record, a, &row))
        return refusals_no_row(e);
    if (status_is_leased(row.status))
        return custom_delivery_is_open(c->deliveries, v->table, id, NULL) == 1 ? refuse_undelivered(v, e)
                                                                               : refusals_replay(&row, e);
    custom_where_init(&w);
    custom_where_test(&w, v->facts.key, QUERY_EQ, id);
    custom_where_test(&w, custom_column_names[CUSTOM_STATUS], QUERY_EQ, row.status);
    begin_patch(&p, v);
    set_new(&p);
    r = run_patch(c, &p, &w.all, a, &changed, e);
    return r == 0 && changed.n == 0 ? refusals_replay(&row, e) : r;
}
