#include "face/rest_private.h"

#include "base/percent.h"

/* ---- what is asked for ---- */

static int refuse_table(const struct rest_work *w, struct err *e)
{
    return err_set(e, -ENOENT, "UNKNOWN_TABLE", "Could not find the table 'public.%.64s' in the schema cache",
                   w->in->name);
}

/* The path has the bare name of a table in the schema public: in quotes, no dot or quote in it means more. */
static int name_table(struct rest_work *w, char **ret)
{
    struct buf quoted;

    buf_init(&quoted, LIMIT_TARGET_BYTES);
    buf_add_char(&quoted, '"');
    for (const char *at = w->in->name; *at; at++) {
        buf_add_str(&quoted, *at == '"' ? "\"" : "");
        buf_add_char(&quoted, *at);
    }
    buf_add_char(&quoted, '"');
    return backend_table_name(w->arena, buf_to_arena(&quoted, w->arena), ret, NULL);
}

static bool may_see(const struct rest_work *w)
{
    return !w->shape.is_internal || w->who->role == FACE_SERVICE;
}

static int read_shape(struct rest_work *w, struct err *e)
{
    char *table = NULL;
    int r;

    if (name_table(w, &table) < 0)
        return refuse_table(w, e);
    if (!w->backend->ops->shape || !w->backend->ops->query)
        return err_set(e, -EOPNOTSUPP, "FACE_PART_MISSING", "The backend %s has no rows over REST.",
                       w->backend->ops->name);
    r = backend_shape(w->backend, table, w->arena, &w->shape, e);
    if (r == -ENOENT || (r == 0 && (!w->shape.is_published || !may_see(w)))) {
        if (e)
            err_init(e);
        return refuse_table(w, e);
    }
    w->q.table = table;
    return r;
}

static size_t add_columns(const struct rest_work *w, struct query_item *items)
{
    for (size_t i = 0; i < w->shape.n_columns; i++)
        items[i] = (struct query_item){ .path = { .column = w->shape.columns[i].name } };
    return w->shape.n_columns;
}

/* A * beside other items stands for every column. */
static void read_items(struct rest_work *w)
{
    const struct rest_query *in = &w->query;
    struct query_item *items;
    size_t n = 0, n_stars = 0;

    for (size_t i = 0; i < in->n_items; i++)
        n_stars += !in->items[i].path.column;
    items = arena_array(w->arena, in->n_items + n_stars * w->shape.n_columns + 1, sizeof(*items));
    for (size_t i = 0; i < in->n_items; i++)
        if (in->items[i].path.column)
            items[n++] = in->items[i];
        else
            n += add_columns(w, items + n);
    w->q.items = items;
    w->q.n_items = n;
}

static int prepare(struct rest_work *w, enum query_kind kind, struct err *e)
{
    int r = rest_read_headers(w, e);

    w->q = (struct query){ .kind = kind, .limit = -1, .max_affected = -1 };
    if (r == 0)
        r = rest_query_parse(w->arena, w->in->query, &w->query, e);
    if (r == 0)
        r = read_shape(w, e);
    if (r == 0)
        r = rest_check_caller(w, "table", e);
    if (r < 0)
        return r;
    read_items(w);
    w->q.where = w->query.where;
    w->q.only_user = rest_only_user(w);
    return 0;
}

/* ---- the answer ---- */

static struct slice inside_brackets(struct slice array)
{
    const char *first = array.n ? memchr(array.p, '{', array.n) : NULL;
    const char *last = array.n ? memrchr(array.p, '}', array.n) : NULL;

    return first && last ? (struct slice){ first, (size_t)(last - first) + 1 } : (struct slice){ NULL, 0 };
}

static int refuse_number(int64_t n, struct err *e)
{
    char details[80];

    err_set(e, -ENOTSUP, "NOT_SINGULAR", "Cannot coerce the result to a single JSON object");
    if (n < 0)
        snprintf(details, sizeof(details), "The result contains more than one row");
    else
        snprintf(details, sizeof(details), "The result contains %lld rows", (long long)n);
    err_add_extra(e, "details", details);
    return -ENOTSUP;
}

static int put_rows(const struct rest_work *w, const struct query_reply *reply, struct rest_answer *ret, struct err *e)
{
    if (w->wants_object && reply->n_rows != 1)
        return refuse_number(reply->n_rows, e);
    ret->is_object = w->wants_object;
    ret->body = w->wants_object ? inside_brackets(reply->rows) : reply->rows;
    return 0;
}

static int refuse_range(int64_t offset, int64_t count, struct err *e)
{
    char details[120];

    err_set(e, -ERANGE, "BAD_RANGE", "Requested range not satisfiable");
    snprintf(details, sizeof(details), "An offset of %lld was requested, but there are only %lld rows.",
             (long long)offset, (long long)count);
    err_add_extra(e, "details", details);
    return -ERANGE;
}

static int select_rows(struct rest_work *w, struct rest_answer *ret, struct err *e)
{
    struct query_reply reply = { .count = -1 };
    int r = prepare(w, QUERY_SELECT, e);

    w->q.order = w->query.order;
    w->q.n_order = w->query.n_order;
    w->q.limit = w->query.limit;
    w->q.offset = w->query.offset;
    w->q.is_count_wanted = w->prefer.count != NULL;
    if (r == 0)
        r = rest_range_read(w->in->range, w->in->range_unit, &w->q.limit, &w->q.offset, e);
    if (r == 0)
        r = backend_query(w->backend, &w->q, w->arena, &reply, e);
    if (r < 0)
        return r;
    ret->content_range = rest_content_range(w->arena, w->q.offset, w->q.offset + reply.n_rows - 1, reply.count);
    if (reply.count >= 0 && w->q.offset > reply.count)
        return refuse_range(w->q.offset, reply.count, e);
    ret->status = reply.count > reply.n_rows ? 206 : 200;
    r = put_rows(w, &reply, ret, e);
    ret->content_range = r < 0 ? NULL : ret->content_range;
    return r;
}

/* ---- changes ---- */

static int refuse_affected(const struct rest_work *w, struct err *e)
{
    char details[80];

    err_set(e, -E2BIG, "TOO_MANY_ROWS", "Query result exceeds max-affected preference constraint");
    snprintf(details, sizeof(details), "The query affects more than %lld rows", (long long)w->prefer.max_affected);
    err_add_extra(e, "details", details);
    return -E2BIG;
}

/* What the backend's refusal of too many rows means for this request. */
static int refuse_change(const struct rest_work *w, int r, const struct err *why, struct err *e)
{
    if (strcmp(why->code, "TOO_MANY_ROWS") == 0 && w->wants_object && w->q.max_affected == 1)
        return refuse_number(-1, e);
    if (strcmp(why->code, "TOO_MANY_ROWS") == 0 && w->q.max_affected >= 0)
        return refuse_affected(w, e);
    if (e)
        *e = *why;
    return r;
}

/* More than one row for one object undo the change, as they do when more than max-affected are concerned. */
static int change(struct rest_work *w, struct query_reply *reply, struct err *e)
{
    struct err why;
    int r;

    err_init(&why);
    if (w->q.kind != QUERY_INSERT && w->prefer.is_strict)
        w->q.max_affected = w->prefer.max_affected;
    if (w->wants_object && (w->q.max_affected < 0 || w->q.max_affected > 1))
        w->q.max_affected = 1;
    w->q.is_rows_wanted = w->prefer.returns == REST_REPRESENTATION ||
                          (w->q.kind == QUERY_INSERT && w->prefer.returns == REST_HEADERS_ONLY);
    r = backend_query(w->backend, &w->q, w->arena, reply, &why);
    if (r < 0)
        return refuse_change(w, r, &why, e);
    return w->wants_object && reply->n_rows != 1 ? refuse_number(reply->n_rows, e) : 0;
}

static int put_change(const struct rest_work *w, const struct query_reply *reply, int status, int status_bare,
                      struct rest_answer *ret, struct err *e)
{
    bool has_rows = w->prefer.returns == REST_REPRESENTATION;

    ret->status = has_rows ? status : status_bare;
    return has_rows ? put_rows(w, reply, ret, e) : 0;
}

static int64_t count_of(const struct rest_work *w, const struct query_reply *reply)
{
    return w->prefer.count ? reply->n_rows : -1;
}

/* ---- POST ---- */

static size_t take_key(struct rest_work *w)
{
    struct query_item *items = arena_array(w->arena, w->shape.n_columns + 1, sizeof(*items));
    size_t n = 0;

    for (size_t i = 0; i < w->shape.n_columns; i++)
        if (w->shape.columns[i].is_key)
            items[n++].path.column = w->shape.columns[i].name;
    w->q.items = items;
    w->q.n_items = n;
    return n;
}

static void add_key(struct arena *a, struct buf *out, struct slice name, struct json_value value)
{
    buf_add_str(out, out->n ? "&" : "");
    percent_encode(out, name);
    if (json_is_absent(value)) {
        buf_add_str(out, "=is.null");
        return;
    }
    buf_add_str(out, "=eq.");
    percent_encode(out, json_type(value) == JSON_STRING ? json_string(value) : slice_of(json_to_str(a, value)));
}

/* The address of the first row by its key. */
static const char *location_of(const struct rest_work *w, struct slice rows)
{
    struct json_value all, row = { 0 }, value;
    struct json_iter it;
    struct slice name;
    struct buf key;

    if (json_parse(w->arena, rows, &all, NULL) < 0)
        return NULL;
    it = json_iter(all);
    if (!json_next(&it, &name, &row))
        return NULL;
    buf_init(&key, LIMIT_TARGET_BYTES);
    for (it = json_iter(row); json_next(&it, &name, &value);)
        add_key(w->arena, &key, name, value);
    return arena_printf(w->arena, "/%s?%s", w->in->name, buf_to_arena(&key, w->arena));
}

static int insert_rows(struct rest_work *w, struct rest_answer *ret, struct err *e)
{
    struct query_reply reply = { 0 };
    bool has_location = false;
    int r = prepare(w, QUERY_INSERT, e);

    w->q.where = NULL;
    if (r == 0)
        r = rest_read_rows(w, e);
    if (r < 0)
        return r;
    w->q.conflict = w->prefer.resolution;
    w->q.conflict_columns = w->query.on_conflict;
    w->q.n_conflict_columns = w->query.n_on_conflict;
    w->q.is_null_for_missing = w->query.n_columns > 0 && !w->prefer.is_default_for_missing;
    if (w->prefer.returns == REST_HEADERS_ONLY)
        has_location = take_key(w) > 0;
    r = change(w, &reply, e);
    if (r < 0)
        return r;
    ret->content_range = rest_content_range(w->arena, 1, 0, count_of(w, &reply));
    ret->location = has_location ? location_of(w, reply.rows) : NULL;
    r = w->q.conflict == QUERY_CONFLICT_MERGED && reply.n_inserted == 0 ? 200 : 201;
    return put_change(w, &reply, r, r, ret, e);
}

/* ---- PATCH and DELETE ---- */

static int check_where(const struct rest_work *w, const char *verb, struct err *e)
{
    if (w->query.limit >= 0 || w->query.offset > 0)
        return err_set(e, -EINVAL, "BAD_REST_QUERY",
                       "`limit` and `offset` are not served with PATCH and DELETE: name the rows by filters.");
    return w->q.where ? 0 : err_set(e, -EINVAL, "WHERE_REQUIRED", "%s requires a WHERE clause", verb);
}

static int update_rows(struct rest_work *w, struct rest_answer *ret, struct err *e)
{
    struct query_reply reply = { .rows = SLICE_LIT("[]") };
    int r = prepare(w, QUERY_UPDATE, e);

    if (r == 0)
        r = check_where(w, "UPDATE", e);
    if (r == 0)
        r = rest_read_rows(w, e);
    if (r == 0 && json_length(w->q.rows) > 0)
        r = change(w, &reply, e);
    if (r < 0)
        return r;
    ret->content_range = rest_content_range(w->arena, 0, reply.n_rows - 1, count_of(w, &reply));
    return put_change(w, &reply, 200, 204, ret, e);
}

static int delete_rows(struct rest_work *w, struct rest_answer *ret, struct err *e)
{
    struct query_reply reply = { 0 };
    int r = prepare(w, QUERY_DELETE, e);

    if (r == 0)
        r = check_where(w, "DELETE", e);
    if (r == 0)
        r = change(w, &reply, e);
    if (r < 0)
        return r;
    ret->content_range = rest_content_range(w->arena, 1, 0, count_of(w, &reply));
    return put_change(w, &reply, 200, 204, ret, e);
}

static const struct {
    enum query_kind kind;
    int (*answer)(struct rest_work *w, struct rest_answer *ret, struct err *e);
} methods[HTTP_METHODS] = {
    [HTTP_GET] = { QUERY_SELECT, select_rows },
    [HTTP_POST] = { QUERY_INSERT, insert_rows },
    [HTTP_PATCH] = { QUERY_UPDATE, update_rows },
    [HTTP_DELETE] = { QUERY_DELETE, delete_rows },
};

int rest_rows(struct backend *b, const struct face_caller *who, const struct rest_request *in, struct arena *a,
              struct rest_answer *ret, struct err *e)
{
    struct rest_work w = { .backend = b, .who = who, .in = in, .arena = a };
    int r;

    if (!methods[in->method].answer)
        return err_set(e, -EINVAL, "METHOD_NOT_ALLOWED", "Unsupported HTTP method: %s", http_method_name(in->method));
    r = methods[in->method].answer(&w, ret, e);
    if (r == 0 || r == -ERANGE)
        ret->preference_applied = rest_prefer_applied(a, &w.prefer, methods[in->method].kind);
    return r;
}
