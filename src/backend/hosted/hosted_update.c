/* Changes from outside the lease: an app, a person. A status ends the lease or goes on with it, so the row is read
 * first, and changed only while it is still as it was read. */
#include "backend/hosted/hosted.h"
#include "backend/refusals.h"
#include "backend/status.h"

enum { MOST_TRIES = 8 };

/* The machine whose failure a "failed" from outside is: the holder, or who completed the row. */
static const char *blamed(const struct hosted_row *row)
{
    const char *machine = row->claimed_by ? row->claimed_by : row->row.locked_by;

    return status_is_leased(row->row.status) || strcmp(row->row.status, STATUS_COMPLETED) == 0 ? machine : NULL;
}

static void add_failure(struct hosted_patch *c, const struct hosted_row *row, const char *message, struct arena *a)
{
    const char *machine = blamed(row);

    if (!machine)
        return;
    if (!message)
        json_add_string(&c->w, "error_message", "The row was set to failed.");
    json_add_raw(&c->w, "attempted_by", backend_add_machine(a, row->row.attempted_by, machine));
    json_add_int(&c->w, "retry_count", row->row.retry_count + 1);
}

static void add_pending(struct hosted_patch *c, const char *message)
{
    if (!message)
        json_add_null(&c->w, "error_message");
    json_add_raw(&c->w, "attempted_by", "[]");
    json_add_int(&c->w, "retry_count", 0);
    json_add_null(&c->w, "completed_at");
}

static void add_lease(struct hosted_patch *c, const struct hosted_row *row, const char *status)
{
    if (status_is_leased(status)) {
        if (!row->row.locked_at)
            json_add_string(&c->w, "locked_at", "now");
        return;
    }
    json_add_null(&c->w, "locked_by");
    json_add_null(&c->w, "locked_at");
    if (hosted_has(c->table, HOSTED_ATTEMPT) && status_is_leased(row->row.status) && strcmp(status, STATUS_FAILED) != 0)
        json_add_int(&c->w, "attempt", row->row.attempt + 1);
}

static void add_status(struct hosted_patch *c, const struct hosted_row *row, const struct backend_patch *p,
                       struct arena *a)
{
    json_add_string(&c->w, "status", p->status);
    add_lease(c, row, p->status);
    if (strcmp(p->status, STATUS_FAILED) == 0)
        add_failure(c, row, p->error_message, a);
    if (strcmp(p->status, STATUS_PENDING) == 0)
        add_pending(c, p->error_message);
    if (strcmp(p->status, STATUS_COMPLETED) == 0)
        json_add_string(&c->w, "completed_at", "now");
}

/* The row is still as it was read. */
static void add_conditions(struct hosted_patch *c, const struct hosted_row *row, struct arena *a)
{
    hosted_path_filter(&c->path, "status", "eq", row->row.status);
    hosted_path_filter(&c->path, "locked_by", "eq", row->row.locked_by);
    hosted_path_filter(&c->path, "retry_count", "eq", arena_printf(a, "%lld", (long long)row->row.retry_count));
    if (hosted_has(c->table, HOSTED_ATTEMPT))
        hosted_path_filter(&c->path, "attempt", "eq", arena_printf(a, "%lld", (long long)row->row.attempt));
}

static void add_values(struct hosted_patch *c, const struct backend_patch *p, struct arena *a)
{
    if (p->raw_data)
        json_add_raw(&c->w, "raw_data", p->raw_data);
    if (p->result)
        json_add_raw(&c->w, "result", p->result);
    if (p->error_message)
        json_add_string(&c->w, "error_message", hosted_cut_message(a, p->error_message));
}

static int change(struct hosted *h, struct hosted_table *t, const struct backend_update_request *request,
                  const struct hosted_row *row, struct arena *a, struct hosted_rows *ret, struct err *e)
{
    const struct backend_patch *p = request->patch;
    struct hosted_patch c;

    hosted_patch_begin(&c, t, request->id);
    if (request->app_id && hosted_has(t, HOSTED_APP_ID))
        hosted_path_filter(&c.path, "app_id", "eq", request->app_id);
    add_values(&c, p, a);
    if (p->status) {
        add_conditions(&c, row, a);
        add_status(&c, row, p, a);
    }
    return hosted_patch_run(h, &c, 1, a, ret, e);
}

static bool is_empty(const struct backend_patch *p)
{
    return !p->status && !p->result && !p->raw_data && !p->error_message;
}

/* As far as anybody else changes it. */
static bool is_as_it_was(const struct hosted_row *now, const struct hosted_row *was)
{
    return was->row.id && strcmp(now->row.status, was->row.status) == 0 && now->row.attempt == was->row.attempt &&
           now->row.retry_count == was->row.retry_count && !now->row.locked_by == !was->row.locked_by &&
           (!now->row.locked_by || strcmp(now->row.locked_by, was->row.locked_by) == 0);
}

static int change_row(struct hosted *h, struct hosted_table *t, const struct backend_update_request *request,
                      struct hosted_row *row, struct arena *a, struct hosted_rows *ret, struct err *e)
{
    struct hosted_row was = *row;
    int r = hosted_get_row(h, t, request->id, request->app_id, a, row, e);

    if (r < 0)
        return r;
    if (is_empty(request->patch)) {
        *ret = (struct hosted_rows){ row, 1 };
        return 0;
    }
    return is_as_it_was(row, &was) ? hosted_refuse_hidden(e) : change(h, t, request, row, a, ret, e);
}

int hosted_update(struct backend *b, const struct backend_update_request *request, struct arena *a,
                  struct backend_row *ret, struct err *e)
{
    struct hosted *h = hosted_of(b);
    struct hosted_rows rows = { 0 };
    struct hosted_row row = { 0 };
    struct hosted_table *t;
    int r = hosted_find_table(h, request->table, &t, e);

    if (r == 0)
        r = refusals_check_patch(request->patch, e);
    for (int i = 0; r == 0 && rows.n == 0 && i < MOST_TRIES; i++)
        r = change_row(h, t, request, &row, a, &rows, e);
    if (r == 0 && rows.n == 0)
        r = err_set(e, -EBUSY, "STORE_BUSY", "The row is changed by others at this moment: try again");
    if (r == 0)
        *ret = rows.items[0].row;
    return r;
}
