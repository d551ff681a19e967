/* SELECT, INSERT, UPDATE and DELETE of queries, each as one request. */
#include "backend/hosted/hosted_query.h"
#include "backend/refusals.h"
#include "base/limits.h"

#include <string.h>

enum { STATUS_CREATED = 201, STATUS_NO_SUCH_RANGE = 416 };

struct work {
    struct hosted *hosted;
    struct hosted_query query;
    struct hosted_call call;
    struct buf prefer;
};

/* ---- requests ---- */

static int send_call(struct work *w, struct hosted_reply *ret, struct err *e)
{
    int r = buf_check(&w->query.path.out, e);

    if (r < 0)
        return r;
    w->call.path = &w->query.path;
    w->call.is_query = true;
    w->call.prefer = buf_str(&w->prefer);
    r = hosted_rest_call(w->hosted->rest, &w->call, w->query.arena, ret, e);
    if (r == -EINVAL || r == -ENOENT)
        hosted_shape_forget(w->hosted, w->query.shape->table);
    return r;
}

static int finish(const struct hosted_reply *reply, bool is_wanted, struct query_reply *ret, struct err *e)
{
    if (json_type(reply->body) != JSON_ARRAY)
        return hosted_fault(e, "it is no list of rows");
    *ret = (struct query_reply){ .rows = is_wanted ? reply->text : SLICE_LIT("[]"),
                                 .n_rows = (int64_t)json_length(reply->body),
                                 .count = -1 };
    return 0;
}

/* ---- SELECT ---- */

/* An offset behind the last row is an error of the interface when the rows are counted. */
static bool is_past_the_end(int r, const struct hosted_reply *reply)
{
    return r < 0 && reply->status == STATUS_NO_SUCH_RANGE && reply->count >= 0;
}

static int read_selected(const struct query *q, const struct hosted_reply *reply, int64_t max_rows,
                         struct query_reply *ret, struct err *e)
{
    int r = finish(reply, true, ret, e);

    if (r < 0)
        return r;
    if (ret->n_rows > max_rows)
        return hosted_fault(e, "it has more rows than were asked for");
    ret->count = q->is_count_wanted ? reply->count : -1;
    return q->is_count_wanted && reply->count < 0 ? hosted_fault(e, "it does not tell how many rows match") : 0;
}

static int run_select(struct work *w, int64_t max_rows, struct query_reply *ret, struct err *e)
{
    struct hosted_reply reply = { 0 };
    struct err why = { 0 };
    int r = hosted_put_items(&w->query, e);

    if (r == 0)
        r = hosted_put_where(&w->query, e);
    if (r == 0)
        r = hosted_put_range(&w->query, max_rows, e);
    if (r < 0)
        return r;
    w->call.method = "GET";
    w->call.is_repeatable = true;
    if (w->query.q->is_count_wanted)
        buf_add_str(&w->prefer, "count=exact");
    r = send_call(w, &reply, &why);
    if (is_past_the_end(r, &reply)) {
        *ret = (struct query_reply){ .rows = SLICE_LIT("[]"), .count = reply.count };
        return 0;
    }
    if (r == 0)
        r = read_selected(w->query.q, &reply, max_rows, ret, &why);
    if (r < 0 && e)
        *e = why;
    return r;
}

/* ---- changes ---- */

static int64_t max_affected(const struct query *q)
{
    return q->max_affected >= 0 ? MIN(q->max_affected, (int64_t)LIMIT_QUERY_WRITE_ROWS) : LIMIT_QUERY_WRITE_ROWS;
}

/* What is not wanted back is counted by one column. */
static int put_returned(struct work *w, struct err *e)
{
    const char *first = w->query.shape->columns[0].name;

    buf_add_str(&w->prefer, "return=representation");
    return w->query.q->is_rows_wanted ? hosted_put_items(&w->query, e)
                                      : hosted_put_columns(&w->query, "select", &first, 1, e);
}

static int send_change(struct work *w, const char *method, const char *json, struct hosted_reply *ret, struct err *e)
{
    w->call.method = method;
    w->call.body = json ? slice_of(json) : (struct slice){ 0 };
    return send_call(w, ret, e);
}

static int refuse_chosen(struct err *e)
{
    return err_set(
        e, -EINVAL, "BAD_OPERATOR",
        "The hosted service's REST interface changes every row that matches: a limit, an order and an offset "
        "are for reading only");
}

static int run_where(struct work *w, const char *method, const char *json, struct query_reply *ret, struct err *e)
{
    const struct query *q = w->query.q;
    struct hosted_reply reply = { 0 };
    int r;

    if (q->limit >= 0 || q->offset > 0)
        return refuse_chosen(e);
    r = put_returned(w, e);
    if (r == 0)
        r = hosted_put_where(&w->query, e);
    if (r < 0)
        return r;
    buf_printf(&w->prefer, ",handling=strict,max-affected=%lld", (long long)max_affected(q));
    r = send_change(w, method, json, &reply, e);
    if (r == 0)
        r = finish(&reply, q->is_rows_wanted, ret, e);
    if (r == 0 && ret->n_rows > max_affected(q))
        return hosted_fault(e, "more rows were changed than were allowed");
    return r;
}

/* A row that would be another user's is refused when there is one to change. */
static int refuse_given_away(struct work *w, struct query_reply *ret, struct err *e)
{
    int r = run_select(w, 1, ret, e);

    if (r == 0 && ret->n_rows)
        return query_refuse_row(w->query.shape, e);
    return r;
}

static int run_update(struct work *w, struct query_reply *ret, struct err *e)
{
    struct hosted_members members = { 0 };
    int r = hosted_read_members(&w->query, &members, e);

    if (r < 0)
        return r;
    if (members.is_of_another)
        return refuse_given_away(w, ret, e);
    if (members.json)
        return run_where(w, "PATCH", members.json, ret, e);
    r = run_select(w, max_affected(w->query.q), ret, e);
    if (r == 0 && !w->query.q->is_rows_wanted)
        ret->rows = SLICE_LIT("[]");
    return r;
}

/* ---- INSERT ---- */

static int put_conflict(struct work *w, struct err *e)
{
    const struct query *q = w->query.q;

    if (q->conflict == QUERY_CONFLICT_REFUSED)
        return 0;
    if (q->conflict == QUERY_CONFLICT_MERGED && query_has_rule(q, w->query.shape))
        return err_set(e, -EPERM, "ROW_REFUSED",
                       "The hosted service's REST interface cannot merge rows and leave those of other users: update "
                       "and insert instead");
    buf_printf(&w->prefer, ",resolution=%s-duplicates", q->conflict == QUERY_CONFLICT_MERGED ? "merge" : "ignore");
    return q->n_conflict_columns
               ? hosted_put_columns(&w->query, "on_conflict", q->conflict_columns, q->n_conflict_columns, e)
               : 0;
}

/* How many of merged rows are new is not told, only whether one is. */
static int64_t count_new(const struct query *q, const struct hosted_reply *reply, int64_t n_rows)
{
    if (q->conflict != QUERY_CONFLICT_MERGED)
        return n_rows;
    return reply->status == STATUS_CREATED ? MIN(n_rows, 1) : 0;
}

static int send_rows(struct work *w, const struct hosted_members *members, struct query_reply *ret, struct err *e)
{
    const struct query *q = w->query.q;
    struct hosted_reply reply = { 0 };
    int r = put_returned(w, e);

    if (r == 0)
        r = put_conflict(w, e);
    if (r == 0 && !members->has_all) {
        buf_add_str(&w->prefer, ",missing=default");
        r = hosted_put_columns(&w->query, "columns", members->names, members->n, e);
    }
    if (r == 0)
        r = send_change(w, "POST", members->json, &reply, e);
    if (r == 0)
        r = finish(&reply, q->is_rows_wanted, ret, e);
    if (r == 0)
        ret->n_inserted = count_new(q, &reply, ret->n_rows);
    return r;
}

static int run_insert(struct work *w, struct query_reply *ret, struct err *e)
{
    const struct query *q = w->query.q;
    struct hosted_members members = { 0 };
    int r = hosted_read_members(&w->query, &members, e);

    if (r < 0)
        return r;
    if ((int64_t)json_length(q->rows) > max_affected(q))
        return query_refuse_affected(max_affected(q), e);
    if (members.is_of_another)
        return query_refuse_row(w->query.shape, e);
    if (!members.json) {
        *ret = (struct query_reply){ .rows = SLICE_LIT("[]"), .count = -1 };
        return json_length(q->rows) ? err_add_field(e, "rows", "must have members") : 0;
    }
    return send_rows(w, &members, ret, e);
}

static int run_query(struct backend *b, const struct query *q, struct arena *a, struct query_reply *ret, struct err *e)
{
    struct table_shape shape = { 0 };
    struct work w = { .hosted = hosted_of(b), .query = { .q = q, .shape = &shape, .arena = a } };
    int r = hosted_shape(b, q->table, a, &shape, e);

    if (r < 0)
        return r;
    hosted_path_init(&w.query.path, shape.table);
    buf_init(&w.prefer, KIB(1));
    if (q->kind == QUERY_SELECT)
        r = run_select(&w, LIMIT_QUERY_ROWS, ret, e);
    else if (q->kind == QUERY_INSERT)
        r = run_insert(&w, ret, e);
    else
        r = q->kind == QUERY_UPDATE ? run_update(&w, ret, e) : run_where(&w, "DELETE", NULL, ret, e);
    buf_clear(&w.prefer);
    hosted_path_clear(&w.query.path);
    return r;
}

/* A column that is not known is looked for again: another service may have declared it since. Nothing was done then. */
int hosted_query(struct backend *b, const struct query *q, struct arena *a, struct query_reply *ret, struct err *e)
{
    AUTO(arena_freep) struct arena *names = arena_new_sized(512);
    struct err why = { 0 };
    char *name = NULL;
    int r = query_check(q, e);

    if (r < 0)
        return r;
    r = run_query(b, q, a, ret, &why);
    if (r == -EINVAL && strcmp(why.code, "UNKNOWN_COLUMN") == 0 &&
        backend_table_name(names, q->table, &name, NULL) == 0) {
        hosted_shape_forget(hosted_of(b), name);
        err_init(&why);
        r = run_query(b, q, a, ret, &why);
    }
    if (r < 0 && e)
        *e = why;
    return r;
}
