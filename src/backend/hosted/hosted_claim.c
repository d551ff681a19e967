#include "backend/hosted/hosted.h"
#include "backend/refusals.h"
#include "backend/status.h"
#include "base/uuid.h"

#include <strings.h>

/* ---- functions of the project ---- */

int hosted_send_function(struct hosted *h, const struct hosted_function_call *f, struct arena *a,
                         struct hosted_reply *ret, struct err *e)
{
    struct hosted_path path;
    const struct hosted_call call = {
        .method = "POST", .path = &path, .body = buf_slice(f->body), .is_repeatable = f->is_repeatable
    };
    int r = buf_check(f->body, e);

    if (r < 0)
        return r;
    hosted_path_init_function(&path, arena_printf(a, "%s_fn_%s", h->abbr, f->name));
    r = hosted_rest_call(h->rest, &call, a, ret, e);
    hosted_path_clear(&path);
    return r;
}

static bool is_unknown_table(struct json_value answer)
{
    return slice_eq_str(json_string(json_get(answer, "reason")), "unknown_table");
}

int hosted_call_function(struct hosted *h, const struct hosted_function_call *call, struct arena *a,
                         struct json_value *ret, struct err *e)
{
    struct hosted_reply reply = { 0 };
    struct err why = { 0 };
    int r = hosted_send_function(h, call, a, &reply, &why);

    *ret = reply.body;
    if (r == -ENOENT && strcmp(why.code, "FUNCTION_NOT_FOUND") == 0) {
        atomic_fetch_or(&h->whole->lacks, call->function);
        return -ENOSYS;
    }
    if (r < 0 && e)
        *e = why;
    if (r == 0 && json_type(json_get(*ret, "success")) != JSON_BOOL)
        return hosted_fault(e, "the function %s does not say whether it succeeded", call->name);
    return r == 0 && is_unknown_table(*ret) ? -ENOSYS : r;
}

/* ---- by function ---- */

/* The function knows the limits of the specification only. */
static bool is_usual(struct hosted *h, struct hosted_table *t, const struct backend_claim *in)
{
    return hosted_has_function(h, t, HOSTED_CLAIM) && in->stale_after_ms == HOSTED_STALE_MS &&
           backend_max_machines(in) == LIMIT_ATTEMPT_MACHINES;
}

static int call_claim(struct hosted *h, struct hosted_table *t, const struct backend_claim *in, struct arena *a,
                      struct json_value *ret, struct err *e)
{
    struct json_writer w;
    struct buf body;
    int r;

    buf_init(&body, LIMIT_HOSTED_PATH);
    json_write_init(&w, &body);
    json_begin_object(&w);
    json_add_string(&w, "task_id", in->row_id);
    json_add_string(&w, "machine_id", in->machine_id);
    json_add_string(&w, "table_name", t->name);
    json_end(&w);
    r = hosted_call_function(h, &(struct hosted_function_call){ HOSTED_CLAIM, "claim_task", &body, false }, a, ret, e);
    buf_clear(&body);
    return r;
}

static bool is_success(struct json_value answer)
{
    return json_bool(json_get(answer, "success"));
}

/* The row may have been claimed once more since the function answered, by this machine too. */
static bool is_lease_of(struct json_value answer, const struct backend_claim *in, const struct backend_row *row)
{
    struct json_value attempt = json_get(answer, "attempt");

    return row->locked_by && strcmp(row->locked_by, in->machine_id) == 0 &&
           (json_is_absent(attempt) || json_int(attempt) == row->attempt);
}

/* The function's answer has not the whole row. */
static int claim_by_function(struct hosted *h, struct hosted_table *t, const struct backend_claim *in, struct arena *a,
                             struct hosted_row *ret, struct err *e)
{
    struct json_value answer = { 0 };
    int r = call_claim(h, t, in, a, &answer, e);

    if (r == 0)
        r = hosted_get_row(h, t, in->row_id, NULL, a, ret, e);
    if (r == 0 && !is_success(answer))
        r = refusals_claim(in, &ret->row, e);
    if (r < 0)
        return r;
    if (is_lease_of(answer, in, &ret->row))
        return 0;
    return refusals_lease_lost(&(struct backend_lease){ .machine_id = in->machine_id, .attempt = ret->row.attempt }, e);
}

/* ---- by a conditional change ---- */

static bool may_try(const struct backend_claim *in, const struct backend_row *row)
{
    bool has_attempted;
    size_t n = backend_count_machines(row->attempted_by, in->machine_id, &has_attempted);

    return (int64_t)n < backend_max_machines(in) && !has_attempted &&
           (status_is_claimable(row->status) || status_is_leased(row->status));
}

/* The row is as it was read, and its lease, if any, is stale. */
static int add_conditions(struct hosted *h, struct hosted_patch *c, const struct backend_claim *in,
                          const struct hosted_row *row, struct arena *a, struct err *e)
{
    int64_t now_ms = 0;
    struct buf stale;
    int r = status_is_leased(row->row.status) ? hosted_now(h, a, &now_ms, e) : 0;

    if (r < 0)
        return r;
    hosted_path_filter(&c->path, "status", "eq", row->row.status);
    hosted_path_filter(&c->path, "locked_by", "eq", row->row.locked_by);
    hosted_path_filter(&c->path, "retry_count", "eq", arena_printf(a, "%lld", (long long)row->row.retry_count));
    if (hosted_has(c->table, HOSTED_ATTEMPT))
        hosted_path_filter(&c->path, "attempt", "eq", arena_printf(a, "%lld", (long long)row->row.attempt));
    if (hosted_has(c->table, HOSTED_REVISION))
        hosted_path_filter(&c->path, "revision", "eq", arena_printf(a, "%lld", (long long)row->revision));
    if (!status_is_leased(row->row.status))
        return 0;
    buf_init(&stale, LIMIT_HOSTED_PATH);
    buf_add_char(&stale, '(');
    hosted_add_stale(&stale, now_ms, in->stale_after_ms);
    buf_add_char(&stale, ')');
    hosted_path_add(&c->path, "or", buf_str(&stale));
    buf_clear(&stale);
    return 0;
}

static void add_claim(struct hosted_patch *c, const struct backend_claim *in, const struct hosted_row *row)
{
    json_add_string(&c->w, "status", STATUS_CLAIMED);
    json_add_string(&c->w, "locked_by", in->machine_id);
    json_add_string(&c->w, "locked_at", "now");
    json_add_null(&c->w, "completed_at");
    if (hosted_has(c->table, HOSTED_CLAIMED_BY))
        json_add_string(&c->w, "claimed_by", in->machine_id);
    if (hosted_has(c->table, HOSTED_ATTEMPT))
        json_add_int(&c->w, "attempt", row->row.attempt + 1);
    if (hosted_has(c->table, HOSTED_HANDLED_REVISION) && hosted_has(c->table, HOSTED_REVISION))
        json_add_int(&c->w, "handled_revision", row->revision);
}

static int patch_to_claimed(struct hosted *h, struct hosted_table *t, const struct backend_claim *in,
                            const struct hosted_row *row, struct arena *a, struct hosted_rows *ret, struct err *e)
{
    struct hosted_patch c;
    int r;

    hosted_patch_begin(&c, t, in->row_id);
    add_claim(&c, in, row);
    r = add_conditions(h, &c, in, row, a, e);
    if (r == 0)
        return hosted_patch_run(h, &c, 1, a, ret, e);
    hosted_patch_drop(&c);
    return r;
}

static int claim_by_patch(struct hosted *h, struct hosted_table *t, const struct backend_claim *in, struct arena *a,
                          struct hosted_row *ret, struct err *e)
{
    struct hosted_rows rows = { 0 };
    int r = hosted_get_row(h, t, in->row_id, NULL, a, ret, e);

    if (r == 0 && may_try(in, &ret->row))
        r = patch_to_claimed(h, t, in, ret, a, &rows, e);
    if (r < 0)
        return r;
    if (rows.n == 1 && strcasecmp(rows.items[0].row.id, in->row_id) == 0) {
        *ret = rows.items[0];
        return 0;
    }
    r = hosted_get_row(h, t, in->row_id, NULL, a, ret, e);
    return r < 0 ? r : refusals_claim(in, &ret->row, e);
}

/* ---- claim ---- */

static int claim_row(struct hosted *h, struct hosted_table *t, const struct backend_claim *in, struct arena *a,
                     struct hosted_row *ret, struct err *e)
{
    int r = is_usual(h, t, in) ? claim_by_function(h, t, in, a, ret, e) : -ENOSYS;

    return r == -ENOSYS ? claim_by_patch(h, t, in, a, ret, e) : r;
}

/* Not repeated when its answer is lost: the lease that it may have taken goes stale. */
int hosted_claim(struct backend *b, const struct backend_claim *in, struct arena *a, struct backend_row *ret,
                 struct backend_lease *ret_lease, struct err *e)
{
    struct hosted *h = hosted_of(b);
    struct hosted_row row = { 0 };
    struct hosted_table *t;
    int r = hosted_find_table(h, in->table, &t, e);

    if (r == 0 && !uuid_is_valid(slice_of(in->row_id)))
        r = refusals_no_row(e);
    if (r == 0)
        r = claim_row(h, t, in, a, &row, e);
    if (r < 0)
        return r;
    *ret = row.row;
    *ret_lease = (struct backend_lease){
        .table = ret->table, .row_id = ret->id, .machine_id = arena_strdup(a, in->machine_id), .attempt = ret->attempt
    };
    return 0;
}
