/* A claim: the app grants its lock, the table says who has it, and our first heartbeat makes it a lease by the
 * database's clock. What became of a lock whose answer is missing only the table can tell: it is read before the app is
 * spoken to again. */
#include "backend/custom/custom_private.h"

#include "backend/refusals.h"
#include "base/log.h"

struct claim {
    struct custom *c;
    const struct custom_view *view;
    const struct backend_claim *in;
    struct arena *arena;
    struct backend_row *ret;
    struct backend_lease *ret_lease;
};

static void note_fate(struct claim *x, bool is_unknown)
{
    struct custom_lease_note seen, note;

    do {
        custom_memory_get(x->c->memory, x->view->table, x->in->row_id, &seen);
        note = seen;
        note.is_unknown = is_unknown;
    } while (!custom_memory_replace(x->c->memory, x->view->table, x->in->row_id, &seen, &note));
}

static bool is_unknown(struct claim *x)
{
    struct custom_lease_note note;

    custom_memory_get(x->c->memory, x->view->table, x->in->row_id, &note);
    return note.is_unknown;
}

/* The row as the table has it. */
static int read_row(struct claim *x, struct backend_row *ret, struct err *e)
{
    struct json_value record = { 0 };
    int r = custom_select_one(x->c, x->view, x->in->row_id, x->arena, &record, e);

    if (r == 0 && !custom_record_read(x->view, record, x->arena, ret))
        return refusals_no_row(e);
    return r;
}

static bool is_mine(const struct claim *x, const struct backend_row *row)
{
    return row->locked_by && strcmp(row->locked_by, x->in->machine_id) == 0 &&
           (status_is_leased(row->status) || status_is_claimable(row->status));
}

/* ---- after the app granted the lock ---- */

static int refuse_not_kept(const struct claim *x, const struct backend_row *row, struct err *e)
{
    if (status_is_leased(row->status) && row->locked_by)
        return refusals_claim(x->in, row, e);
    log_warn("backend", NULL, "the app of table %s says that row %s is locked, and the table says it is not",
             LOG_Q(x->view->table), LOG_Q(row->id));
    return err_set(e, -EBUSY, "LOCK_NOT_KEPT",
                   "The app says that the row is locked, but %s: the app's POST /api/task-lock must store locked_by",
                   row->locked_by ? "its status is that of a row nobody works on" : "its locked_by is empty");
}

/* An app may leave the status to us. */
static int begin_lease(struct claim *x, const struct backend_row *row, struct custom_records *ret, struct err *e)
{
    const char *change = status_is_leased(row->status) ? "{\"locked_at\":\"now\"}"
                                                       : "{\"status\":\"" STATUS_CLAIMED "\",\"locked_at\":\"now\"}";
    struct custom_where w;

    custom_where_init(&w);
    custom_where_test(&w, x->view->facts.key, QUERY_EQ, row->id);
    custom_where_test(&w, custom_column_names[CUSTOM_LOCKED_BY], QUERY_EQ, x->in->machine_id);
    custom_where_test(&w, custom_column_names[CUSTOM_STATUS], QUERY_EQ, row->status);
    return custom_change(x->c, x->view, change, &w.all, x->arena, ret, e);
}

static int take_row(struct claim *x, const struct backend_row *row, struct err *e)
{
    struct custom_lease_note note = { .attempt = row->attempt };

    if (row->attempt <= 0)
        return err_set(e, -EINVAL, "TABLE_UNFIT", "The column locked_at of %.130s does not keep the time", row->table);
    snprintf(note.machine, sizeof(note.machine), "%s", x->in->machine_id);
    custom_memory_put(x->c->memory, row->table, row->id, &note);
    *x->ret = *row;
    *x->ret_lease = (struct backend_lease){ .table = row->table,
                                            .row_id = row->id,
                                            .machine_id = arena_strdup(x->arena, x->in->machine_id),
                                            .attempt = row->attempt };
    return 0;
}

static int take_lease(struct claim *x, struct err *e)
{
    struct custom_records changed = { 0 };
    struct backend_row row = { 0 };
    int r = read_row(x, &row, e);

    if (r < 0)
        return r;
    if (!is_mine(x, &row)) {
        note_fate(x, false);
        return refuse_not_kept(x, &row, e);
    }
    r = begin_lease(x, &row, &changed, e);
    if (r < 0)
        return r;
    if (changed.n == 0 || !custom_record_read(x->view, changed.items[0], x->arena, &row))
        return err_set(e, -EBUSY, "ALREADY_LOCKED", "The row changed while its lock was being taken");
    custom_row_complete(x->c, x->arena, &row);
    row.attempt = MAX(custom_time(changed.items[0], custom_column_names[CUSTOM_LOCKED_AT]), (int64_t)0);
    return take_row(x, &row, e);
}

/* ---- the app's lock ---- */

/* After an answer that is missing: the row may be ours all the same. */
static int look_after(struct claim *x, const struct err *why, struct err *e)
{
    struct backend_row row = { 0 };

    if (read_row(x, &row, NULL) == 0 && is_mine(x, &row))
        return take_lease(x, e);
    return err_set(e, -EIO, why->code, "%s", why->text);
}

static int refuse_lock(struct claim *x, const struct custom_lock_reply *reply, struct err *e)
{
    const char *holder = reply->locked_by ? reply->locked_by : "";

    if (is_unknown(x) && strcmp(holder, x->in->machine_id) == 0)
        return take_lease(x, e);
    note_fate(x, false);
    err_add_extra(e, "locked_by", holder);
    return err_set(e, -EBUSY, "ALREADY_LOCKED", "The app refuses the lock: %.200s%s%.200s",
                   reply->reason ? reply->reason : "it gives no reason", *holder ? ", held by " : "", holder);
}

static int call_app(struct claim *x, struct custom_lock_reply *reply, struct err *e)
{
    struct custom *c = x->c;
    const struct custom_lock_request request = {
        .task_id = x->in->row_id,
        .table = x->view->table,
        .machine_id = x->in->machine_id,
        .user_email = settings_string(c->config.settings, x->arena, SETTING_IDENTITY_USER_EMAIL),
    };
    struct custom_place place = { 0 };
    int r = c->config.calls.place(c->config.arg, x->view->app_id, x->arena, &place, e);

    if (r == 0)
        r = custom_delivery_check_room(c->deliveries, x->view->app_id, e);
    if (r == 0)
        r = custom_rests_enter(c->rests, x->view->app_id, e);
    if (r < 0)
        return r == -ENOENT ? err_set(e, -EHOSTUNREACH, "APP_UNREACHABLE", "The app is not registered.") : r;
    r = custom_lock_take(&c->config.net, &place, &request, x->arena, reply, e);
    custom_rests_leave(c->rests, x->view->app_id, r == 0 || r == -ECANCELED);
    return r;
}

static int lock(struct claim *x, struct err *e)
{
    struct custom_lock_reply reply = { 0 };
    struct err why = { 0 };
    int r = call_app(x, &reply, &why);

    if (r == -EIO || r == -ECANCELED)
        note_fate(x, true);
    if (r == -EIO)
        return look_after(x, &why, e);
    if (r < 0)
        return err_set(e, r, why.code, "%s", why.text);
    if (!reply.is_success)
        return refuse_lock(x, &reply, e);
    note_fate(x, true); /* until the row has been read */
    return take_lease(x, e);
}

int custom_claim(struct custom *c, const struct custom_view *v, const struct backend_claim *in, struct arena *a,
                 struct backend_row *ret, struct backend_lease *ret_lease, struct err *e)
{
    struct claim x = { c, v, in, a, ret, ret_lease };
    struct backend_row row = { 0 };
    bool has_tried;
    int r = read_row(&x, &row, e);

    if (r < 0)
        return r;
    if (is_unknown(&x) && is_mine(&x, &row))
        return take_lease(&x, e);
    custom_row_complete(c, a, &row);
    if (!status_is_claimable(row.status) ||
        (int64_t)backend_count_machines(row.attempted_by, in->machine_id, &has_tried) >= backend_max_machines(in) ||
        has_tried)
        return refusals_claim(in, &row, e);
    return lock(&x, e);
}
