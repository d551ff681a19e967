/* The calls of a lease's holder. */
#include "backend/custom/custom_private.h"

#include "backend/refusals.h"

/* Changes the row of a lease that is in force. */
static int change_held(struct custom *c, const struct custom_view *v, const struct backend_lease *l, const char *object,
                       struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct custom_records changed = { 0 };
    struct custom_where w;
    int r;

    custom_where_init(&w);
    custom_where_lease(&w, v, l, a);
    r = custom_change(c, v, object, &w.all, a, &changed, e);
    return r == 0 && changed.n == 0 ? refusals_lease_lost(l, e) : r;
}

int custom_heartbeat(struct custom *c, const struct custom_view *v, const struct backend_lease *l, struct err *e)
{
    return change_held(c, v, l, "{\"locked_at\":\"now\"}", e);
}

int custom_release(struct custom *c, const struct custom_view *v, const struct backend_lease *l, struct err *e)
{
    return change_held(c, v, l, custom_set_free, e);
}

/* ---- the end ---- */

int custom_hold(struct custom *c, const struct custom_view *v, const struct backend_lease *l, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct json_value record;
    struct backend_row row;
    int r = custom_select_one(c, v, l->row_id, a, &record, e);

    if (r == -ENOENT)
        return CUSTOM_LOST;
    if (r < 0)
        return r;
    if (!custom_record_read(v, record, a, &row))
        return CUSTOM_LOST;
    if (strcmp(row.status, STATUS_COMPLETED) == 0 || strcmp(row.status, STATUS_FAILED) == 0)
        return CUSTOM_ENDED;
    return status_is_leased(row.status) && row.locked_by && strcmp(row.locked_by, l->machine_id) == 0 &&
                   (l->attempt <= 0 || row.attempt >= l->attempt)
               ? CUSTOM_HELD
               : CUSTOM_LOST;
}

static const char *end_of(bool is_fail)
{
    return is_fail ? STATUS_FAILED : STATUS_COMPLETED;
}

/* Is this the end that was stored before? 1: so it is; 0: none was. */
static int find_end(struct custom *c, const struct backend_lease *l, bool is_fail, struct err *e)
{
    struct custom_lease_note note;
    int state = custom_delivery_find(c->deliveries, l, e);

    if (state < 0)
        return state;
    custom_memory_get(c->memory, l->table, l->row_id, &note);
    if (state == CUSTOM_DROPPED ||
        (state != CUSTOM_NONE && note.attempt == l->attempt && note.ended && strcmp(note.ended, end_of(is_fail)) != 0))
        return refusals_lease_lost(l, e);
    return state != CUSTOM_NONE;
}

static void note_end(struct custom *c, const struct backend_lease *l, bool is_fail)
{
    struct custom_lease_note note = { .attempt = l->attempt, .ended = end_of(is_fail) };

    snprintf(note.machine, sizeof(note.machine), "%s", l->machine_id);
    custom_memory_put(c->memory, l->table, l->row_id, &note);
}

int custom_end(struct custom *c, const struct custom_view *v, const struct backend_lease *l, bool is_fail,
               const char *content, struct err *e)
{
    const struct custom_end end = { .app_id = v->app_id, .lease = l, .is_fail = is_fail, .content = content };
    int r = is_fail ? 0 : refusals_check_result(content, e);

    if (r == 0)
        r = find_end(c, l, is_fail, e);
    if (r != 0)
        return MIN(r, 0);
    r = custom_hold(c, v, l, e);
    if (r < 0)
        return r;
    if (r != CUSTOM_HELD)
        return refusals_lease_lost(l, e);
    r = custom_delivery_put(c->deliveries, &end, e);
    if (r == 0)
        note_end(c, l, is_fail);
    return r;
}

/* ---- what the deliveries need ---- */

static int find(struct custom *c, const struct backend_lease *l, struct arena *a, struct custom_view *ret,
                struct err *e)
{
    int r = custom_find(c, l->table, a, ret, e);

    return r == 0 ? refusals_no_table(l->table, e) : MIN(r, 0);
}

static int place(void *arg, const char *app_id, const char *table, struct arena *a, struct custom_place *ret,
                 struct err *e)
{
    struct custom *c = arg;

    return c->config.calls.place(c->config.arg, app_id, a, ret, e);
}

/* A table that is no table of Custom Mode any more: nobody can hold a lease of it. */
static int holds(void *arg, const struct backend_lease *l, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct custom *c = arg;
    struct custom_view view;
    int r = custom_find(c, l->table, a, &view, e);

    return r < 0 ? r : r == 0 ? CUSTOM_LOST : custom_hold(c, &view, l, e);
}

static int beat(void *arg, const struct backend_lease *l, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct custom_view view;
    int r = find(arg, l, a, &view, e);

    return r < 0 ? r : custom_heartbeat(arg, &view, l, e);
}

static int release(void *arg, const struct backend_lease *l, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct custom_view view;
    int r = find(arg, l, a, &view, e);

    return r < 0 ? r : custom_release(arg, &view, l, e);
}

static void on_change(void *arg, const struct backend_lease *l, enum custom_delivery_state state, const char *error)
{
    struct custom *c = arg;

    if (c->config.calls.on_delivery)
        c->config.calls.on_delivery(c->config.arg, l, state, error);
}

const struct custom_delivery_calls custom_delivery_calls = { place, holds, beat, release, on_change };
