#include "backend/hosted/hosted.h"
#include "backend/refusals.h"
#include "backend/status.h"
#include "base/uuid.h"

#include <strings.h>

#define WANTS_ROWS "return=representation"

/* A table that has changed since its columns were read is looked at again by the next call. */
static int call_on(struct hosted *h, struct hosted_table *t, const struct hosted_call *call, struct arena *a,
                   struct hosted_reply *ret, struct err *e)
{
    int r = hosted_rest_call(h->rest, call, a, ret, e);

    if (r == -EINVAL || r == -ENOENT)
        atomic_store(&t->is_read, false);
    return r;
}

/* ---- reading ---- */

int hosted_select(struct hosted *h, struct hosted_table *t, struct hosted_path *path, size_t max_rows, struct arena *a,
                  struct hosted_rows *ret, struct err *e)
{
    return hosted_select_columns(h, t, path, hosted_columns(t, a), max_rows, a, ret, e);
}

int hosted_select_columns(struct hosted *h, struct hosted_table *t, struct hosted_path *path, const char *columns,
                          size_t max_rows, struct arena *a, struct hosted_rows *ret, struct err *e)
{
    const struct hosted_call call = { .method = "GET", .path = path, .is_repeatable = true };
    struct hosted_reply reply;
    int r;

    hosted_path_add(path, "select", columns);
    r = call_on(h, t, &call, a, &reply, e);
    hosted_path_clear(path);
    return r < 0 ? r : hosted_read_rows(t, reply.body, max_rows, a, ret, e);
}

/* A table without the column belongs to every app. */
static void add_app(struct hosted_path *path, struct hosted_table *t, const char *app_id)
{
    if (app_id && hosted_has(t, HOSTED_APP_ID))
        hosted_path_filter(path, "app_id", "eq", app_id);
}

static int check_one(const struct hosted_rows *rows, const char *id, struct hosted_row *ret, struct err *e)
{
    if (rows->n == 0)
        return refusals_no_row(e);
    if (strcasecmp(rows->items[0].row.id, id) != 0)
        return hosted_fault(e, "it has another row than the one that was asked for");
    *ret = rows->items[0];
    return 0;
}

int hosted_get_row(struct hosted *h, struct hosted_table *t, const char *id, const char *app_id, struct arena *a,
                   struct hosted_row *ret, struct err *e)
{
    struct hosted_rows rows = { 0 };
    struct hosted_path path;
    int r;

    if (!uuid_is_valid(slice_of(id)))
        return refusals_no_row(e);
    hosted_path_init(&path, t->name);
    hosted_path_filter(&path, "id", "eq", id);
    add_app(&path, t, app_id);
    r = hosted_select(h, t, &path, 1, a, &rows, e);
    return r < 0 ? r : check_one(&rows, id, ret, e);
}

int hosted_get(struct backend *b, const char *table, const char *id, const char *app_id, struct arena *a,
               struct backend_row *ret, struct err *e)
{
    struct hosted *h = hosted_of(b);
    struct hosted_table *t;
    struct hosted_row row = { 0 };
    int r = hosted_find_table(h, table, &t, e);

    if (r == 0)
        r = hosted_get_row(h, t, id, app_id, a, &row, e);
    if (r == 0)
        *ret = row.row;
    return r;
}

int hosted_list(struct backend *b, const struct backend_query *q, struct arena *a, struct backend_rows *ret,
                struct err *e)
{
    int64_t limit = q->limit > 0 ? MIN(q->limit, LIMIT_LIST) : LIMIT_LIST_DEFAULT;
    struct hosted *h = hosted_of(b);
    struct hosted_rows rows = { 0 };
    struct hosted_path path;
    struct hosted_table *t;
    int r = hosted_find_table(h, q->table, &t, e);

    if (r < 0)
        return r;
    hosted_path_init(&path, t->name);
    add_app(&path, t, q->app_id);
    if (q->user_id)
        hosted_path_filter(&path, "user_id", "eq", q->user_id);
    if (q->status)
        hosted_path_filter(&path, "status", "eq", q->status);
    hosted_path_add(&path, "order", hosted_newest_first(t));
    hosted_path_number(&path, "limit", limit);
    hosted_path_number(&path, "offset", MAX(q->offset, 0));
    r = hosted_select(h, t, &path, (size_t)limit, a, &rows, e);
    if (r == 0)
        *ret = hosted_plain_rows(&rows, a);
    return r;
}

/* ---- changes ---- */

void hosted_patch_begin(struct hosted_patch *c, struct hosted_table *t, const char *id)
{
    *c = (struct hosted_patch){ .table = t };
    hosted_path_init(&c->path, t->name);
    if (id)
        hosted_path_filter(&c->path, "id", "eq", id);
    buf_init(&c->text, LIMIT_BACKEND_ROW_BYTES);
    json_write_init(&c->w, &c->text);
    json_begin_object(&c->w);
}

void hosted_patch_set_free(struct hosted_patch *c)
{
    json_add_string(&c->w, "status", STATUS_PENDING);
    json_add_null(&c->w, "locked_by");
    json_add_null(&c->w, "locked_at");
}

void hosted_patch_set_new(struct hosted_patch *c)
{
    hosted_patch_set_free(c);
    json_add_raw(&c->w, "attempted_by", "[]");
    json_add_int(&c->w, "retry_count", 0);
    json_add_null(&c->w, "error_message");
    json_add_null(&c->w, "completed_at");
}

void hosted_patch_drop(struct hosted_patch *c)
{
    hosted_path_clear(&c->path);
    buf_clear(&c->text);
}

static int read_changed(struct hosted_patch *c, const struct hosted_reply *reply, size_t max_rows, struct arena *a,
                        struct hosted_rows *ret, struct err *e)
{
    if (!c->is_slim)
        return hosted_read_rows(c->table, reply->body, max_rows, a, ret, e);
    if (json_type(reply->body) != JSON_ARRAY || json_length(reply->body) > max_rows)
        return hosted_fault(e, "it is no list of the rows that changed");
    *ret = (struct hosted_rows){ NULL, json_length(reply->body) };
    return 0;
}

int hosted_patch_run(struct hosted *h, struct hosted_patch *c, size_t max_rows, struct arena *a,
                     struct hosted_rows *ret, struct err *e)
{
    const struct hosted_call call = {
        .method = "PATCH", .path = &c->path, .body = { 0 }, .prefer = WANTS_ROWS, .is_repeatable = c->is_repeatable
    };
    struct hosted_call with_body = call;
    struct hosted_reply reply;
    int r;

    json_end(&c->w);
    hosted_path_add(&c->path, "select", c->is_slim ? "id" : hosted_columns(c->table, a));
    with_body.body = buf_slice(&c->text);
    r = buf_check(&c->text, e);
    if (r == 0)
        r = call_on(h, c->table, &with_body, a, &reply, e);
    if (r == 0)
        r = read_changed(c, &reply, max_rows, a, ret, e);
    hosted_patch_drop(c);
    return r;
}

/* ---- insert and remove ---- */

static void write_new_row(struct buf *out, struct hosted_table *t, const struct backend_new_row *in, const char *id,
                          const char *user)
{
    struct json_writer w;

    json_write_init(&w, out);
    json_begin_object(&w);
    json_add_string(&w, "id", id);
    if (in->app_id && hosted_has(t, HOSTED_APP_ID))
        json_add_string(&w, "app_id", in->app_id);
    if (user)
        json_add_string(&w, "user_id", user);
    json_add_raw(&w, "raw_data", in->raw_data);
    json_end(&w);
}

static int send_new_row(struct hosted *h, struct hosted_table *t, const struct buf *body, struct arena *a,
                        struct hosted_rows *ret, struct err *e)
{
    struct hosted_path path;
    const struct hosted_call call = { .method = "POST", .path = &path, .body = buf_slice(body), .prefer = WANTS_ROWS };
    struct hosted_reply reply;
    int r;

    hosted_path_init(&path, t->name);
    hosted_path_add(&path, "select", hosted_columns(t, a));
    r = call_on(h, t, &call, a, &reply, e);
    hosted_path_clear(&path);
    return r < 0 ? r : hosted_read_rows(t, reply.body, 1, a, ret, e);
}

static int check_new_row(const struct backend_new_row *in, struct err *e)
{
    int r = refusals_check_new_row(in, e);

    if (r == 0 && in->user_id && !uuid_is_valid(slice_of(in->user_id)))
        r = err_add_field(e, "user_id", "must be a UUID");
    return r;
}

int hosted_insert(struct backend *b, const struct backend_new_row *in, struct arena *a, struct backend_row *ret,
                  struct err *e)
{
    struct hosted *h = hosted_of(b);
    struct hosted_rows rows = { 0 };
    struct hosted_row row = { 0 };
    struct hosted_table *t;
    char id[UUID_SIZE];
    struct buf body;
    int r = hosted_find_table(h, in->table, &t, e);

    if (r == 0)
        r = check_new_row(in, e);
    if (r < 0)
        return r;
    uuid_v4(id);
    buf_init(&body, LIMIT_BACKEND_ROW_BYTES);
    write_new_row(&body, t, in, in->id ? in->id : id, in->user_id ? in->user_id : h->user);
    r = send_new_row(h, t, &body, a, &rows, e);
    buf_clear(&body);
    if (r == 0 && rows.n == 0)
        return err_set(e, -EIO, "STORE_REFUSED", "The database inserted no row into %.100s", in->table);
    if (r == 0)
        r = check_one(&rows, in->id ? in->id : id, &row, e);
    if (r == 0)
        *ret = row.row;
    return r;
}

int hosted_refuse_hidden(struct err *e)
{
    return err_set(e, -EPERM, "ROW_REFUSED",
                   "The project's row-level security shows this row, and does not let it be changed or deleted");
}

/* What was not deleted is not there, or may only be seen. */
static int refuse_remove(struct hosted *h, struct hosted_table *t, const char *id, const char *app_id, struct arena *a,
                         struct err *e)
{
    struct hosted_row row;
    int r = hosted_get_row(h, t, id, app_id, a, &row, e);

    return r < 0 ? r : hosted_refuse_hidden(e);
}

int hosted_remove(struct backend *b, const char *table, const char *id, const char *app_id, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct hosted *h = hosted_of(b);
    struct hosted_path path;
    const struct hosted_call call = { .method = "DELETE", .path = &path, .prefer = WANTS_ROWS };
    struct hosted_reply reply = { 0 };
    struct hosted_table *t;
    int r = hosted_find_table(h, table, &t, e);

    if (r == 0 && !uuid_is_valid(slice_of(id)))
        r = refusals_no_row(e);
    if (r < 0)
        return r;
    hosted_path_init(&path, t->name);
    hosted_path_filter(&path, "id", "eq", id);
    add_app(&path, t, app_id);
    hosted_path_add(&path, "select", "id");
    r = call_on(h, t, &call, a, &reply, e);
    hosted_path_clear(&path);
    return r == 0 && json_length(reply.body) == 0 ? refuse_remove(h, t, id, app_id, a, e) : r;
}
