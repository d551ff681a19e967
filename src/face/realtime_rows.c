/* The thread of the rows: takes changes from the backend in commit order, completes and prints them for the hub. */
#include "face/realtime_private.h"

#include "backend/backend_columns.h"
#include "base/clock.h"
#include "base/thread.h"

#include <stdlib.h>

enum { FOREVER_MS = 3600000 };

void rt_change_name(struct arena *a, struct rt_change *c)
{
    const struct table_parts parts = backend_table_parts(a, c->table);

    c->schema = parts.schema;
    c->name = parts.table;
}

/* ---- printing ---- */

static const char *type_of(const struct backend_column *c)
{
    static const char *const types[] = {
        [COLUMN_TEXT] = "text", [COLUMN_TIME] = "timestamptz", [COLUMN_JSON] = "jsonb",
        [COLUMN_INT] = "int8",  [COLUMN_BOOL] = "bool",        [COLUMN_EVENT] = "text",
    };

    if (strcmp(c->name, "attempted_by") == 0)
        return "_text";
    return strcmp(c->name, "id") == 0 || strcmp(c->name, "user_id") == 0 ? "uuid" : types[c->kind];
}

static char *print_columns(void)
{
    struct json_writer w;
    struct buf out;

    buf_init(&out, KIB(4));
    json_write_init(&w, &out);
    json_begin_array(&w);
    for (size_t i = 0; i < BACKEND_N_COLUMNS; i++) {
        json_begin_object(&w);
        json_add_string(&w, "name", backend_columns[i].name);
        json_add_string(&w, "type", type_of(&backend_columns[i]));
        json_end(&w);
    }
    json_end(&w);
    return buf_take(&out);
}

/* PostgreSQL prints UTC as +00:00, not as Z. */
static void add_time(struct json_writer *w, const char *name, const char *text)
{
    char time[64];
    size_t n = text ? strlen(text) : 0;

    if (n == 0 || n > 40 || text[n - 1] != 'Z') {
        json_add_string(w, name, text);
        return;
    }
    snprintf(time, sizeof(time), "%.*s+00:00", (int)n - 1, text);
    json_add_string(w, name, time);
}

/* Another program may have written anything into a column of JSON. */
static void add_json(struct json_writer *w, struct arena *a, const char *name, const char *text)
{
    struct json_value v = { 0 };

    if (text && json_parse(a, slice_of(text), &v, NULL) < 0)
        json_add_string(w, name, text);
    else if (text)
        json_add_value(w, name, v);
    else
        json_add_null(w, name);
}

static void add_column(struct json_writer *w, struct arena *a, const struct backend_row *row,
                       const struct backend_column *c)
{
    switch (c->kind) {
    case COLUMN_TEXT:
    case COLUMN_EVENT:
        json_add_string(w, c->name, backend_row_text(row, c));
        break;
    case COLUMN_TIME:
        add_time(w, c->name, backend_row_text(row, c));
        break;
    case COLUMN_JSON:
        add_json(w, a, c->name, backend_row_text(row, c));
        break;
    case COLUMN_INT:
        json_add_int(w, c->name, backend_row_int(row, c));
        break;
    case COLUMN_BOOL:
        json_add_bool(w, c->name, backend_row_int(row, c) != 0);
        break;
    }
}

static void add_small_members(struct json_writer *w, struct arena *a, const char *name, const char *record)
{
    struct json_value v = { 0 }, item;
    struct json_iter it;
    struct slice key;

    json_begin_object_as(w, name);
    if (json_parse(a, slice_of(record), &v, NULL) == 0)
        for (it = json_iter(v); json_next(&it, &key, &item);)
            if (strlen(json_to_str(a, item)) <= LIMIT_REALTIME_CUT_VALUE)
                json_add_value(w, arena_slicedup(a, key), item);
    json_end(w);
}

static bool is_sent(const struct rt_change *c, const struct backend_row *row, const struct backend_column *column)
{
    const char *text = backend_column_is_text(column) ? backend_row_text(row, column) : NULL;

    if (c->is_cut && text && strlen(text) > LIMIT_REALTIME_CUT_VALUE)
        return false;
    return !c->is_lease_only || row == c->new_row || column->is_slim;
}

static void add_record(struct json_writer *w, struct arena *a, const char *name, const struct rt_change *c,
                       const struct backend_row *row)
{
    if (c->shape && c->is_cut)
        add_small_members(w, a, name, row->raw_data);
    else if (c->shape)
        add_json(w, a, name, row->raw_data);
    if (c->shape)
        return;
    json_begin_object_as(w, name);
    for (size_t i = 0; i < BACKEND_N_COLUMNS; i++)
        if (is_sent(c, row, &backend_columns[i]))
            add_column(w, a, row, &backend_columns[i]);
    json_end(w);
}

static void add_key(struct json_writer *w, const struct rt_change *c)
{
    json_begin_object_as(w, "old_record");
    if (!c->shape)
        json_add_string(w, "id", c->old_row->id);
    for (size_t i = 0; c->shape && i < c->shape->of.n_columns; i++)
        if (c->shape->of.columns[i].is_key)
            json_add_value(w, c->shape->of.columns[i].name, json_get(c->record, c->shape->of.columns[i].name));
    json_end(w);
}

/* With row-level security, the service tells of a deleted row its key alone. */
static void add_old_record(struct json_writer *w, struct arena *a, const struct rt_change *c)
{
    bool has_users = !c->shape || c->shape->has_user || !c->shape->of.n_columns;

    if (c->op == BACKEND_DELETE && has_users)
        add_key(w, c);
    else if (c->op != BACKEND_INSERT && c->old_row)
        add_record(w, a, "old_record", c, c->old_row);
}

static void add_errors(struct json_writer *w, const struct rt_change *c)
{
    if (!c->is_cut) {
        json_add_null(w, "errors");
        return;
    }
    json_begin_array_as(w, "errors");
    json_add_string(w, NULL, "Error 413: Payload Too Large");
    json_end(w);
}

static int print_as_it_is(const struct realtime *rt, struct arena *a, struct rt_change *c)
{
    struct json_writer w;
    struct buf out;
    int r;

    buf_init(&out, LIMIT_REALTIME_CHANGE);
    json_write_init(&w, &out);
    json_begin_object(&w);
    json_add_string(&w, "schema", c->schema);
    json_add_string(&w, "table", c->name);
    json_add_string(&w, "commit_timestamp", c->at);
    json_add_string(&w, "type", backend_op_name(c->op));
    json_add_raw(&w, "columns", c->shape ? c->shape->columns : rt->columns);
    if (c->new_row)
        add_record(&w, a, "record", c, c->new_row);
    add_old_record(&w, a, c);
    add_errors(&w, c);
    json_end(&w);
    r = buf_check(&out, NULL);
    c->data.n = out.n;
    c->data.p = buf_to_arena(&out, a);
    return r;
}

/* Of a change that is too large, the small values are sent, as the original does. */
static int print_change(const struct realtime *rt, struct arena *a, struct rt_change *c)
{
    int r = print_as_it_is(rt, a, c);

    c->is_cut = r < 0;
    return r < 0 ? print_as_it_is(rt, a, c) : 0;
}

/* ---- on the thread ---- */

/* A row of a table with columns of its own has no event, and its raw_data is the record. */
static int find_shape(struct realtime *rt, struct arena *a, struct rt_change *c)
{
    const struct backend_row *row = c->new_row ? c->new_row : c->old_row;
    int r;

    if (row->event != 0 || !row->raw_data || c->is_lease_only)
        return 0;
    if (json_parse(a, slice_of(row->raw_data), &c->record, NULL) < 0)
        return -EIO;
    r = rt_shape_of(rt, c->table, json_length(c->record), &c->shape, NULL);
    if (r == 0 && !c->shape->of.has_own_columns)
        c->shape = rt_shape_free(c->shape);
    return r;
}

/* What changed in the lease only is reported without the rest of the row: it is read now. A row that is gone is told of
 * by its DELETE. */
static int complete(const struct realtime *rt, struct arena *a, struct rt_change *c)
{
    if (!c->is_lease_only || c->op == BACKEND_DELETE)
        return 0;
    return backend_get(rt->config.backend, c->table, c->new_row->id, NULL, a, c->new_row, NULL);
}

static void drop_change(struct realtime *rt, struct rt_item *item)
{
    atomic_fetch_sub(&rt->n_changes, 1);
    atomic_fetch_sub(&rt->n_change_bytes, item->change->n_bytes);
    rt_item_free(item);
}

static void pass_on(struct realtime *rt, struct rt_item *item)
{
    int r = complete(rt, item->arena, item->change);

    if (r == 0)
        r = find_shape(rt, item->arena, item->change);
    if (r == 0)
        r = print_change(rt, item->arena, item->change);
    if (r == 0)
        rt_queue_push(&rt->hub, item, 0);
    else
        drop_change(rt, item);
    if (r < 0 && r != -ENOENT)
        metric_add(rt->dropped, 1);
    if (r < 0 && r != -ENOENT)
        rt_queue_push(&rt->hub, rt_item_new(RT_GAP), 0);
}

static void answer_tables(struct realtime *rt, struct rt_item *item)
{
    rt_questions_answer(rt, item);
    rt_queue_push(&rt->hub, item, 0);
}

static void *run_rows(void *arg)
{
    struct realtime *rt = arg;
    bool is_closed = false;

    while (!is_closed) {
        struct rt_item *item = rt_queue_pop(&rt->rows, FOREVER_MS, &is_closed);

        if (item && item->kind == RT_CHANGE)
            pass_on(rt, item);
        else if (item && item->kind == RT_TABLES)
            answer_tables(rt, item);
        else if (item && item->kind == RT_MACHINES)
            rt_machines_work(rt, item);
        else if (item && (item->kind == RT_LISTEN || item->kind == RT_UNLISTEN || item->kind == RT_BRIDGE)) {
            rt_bridge_work(rt, item);
            rt_item_free(item);
        } else if (item)
            rt_queue_push(&rt->hub, item, 0);
    }
    return NULL;
}

void rt_request_tables(struct realtime *rt, const struct rt_channel *ch)
{
    struct rt_item *item = rt_item_new(RT_TABLES);
    struct arena *a = item->arena = arena_new();

    item->serial = ch->serial;
    item->n_questions = ch->n_bindings;
    item->questions = arena_array(a, ch->n_bindings, sizeof(*item->questions));
    for (size_t i = 0; i < ch->n_bindings; i++) {
        const struct rt_binding *b = &ch->bindings[i];
        const char *filter = b->filter.text ? b->filter.text : "";

        item->questions[i] =
            (struct rt_question){ arena_strdup(a, b->schema), arena_strdup(a, b->name), arena_strdup(a, filter) };
    }
    rt_queue_push(&rt->rows, item, 0);
}

/* ---- on the thread of the backend ---- */

static void on_gap(void *arg)
{
    struct realtime *rt = arg;

    if (atomic_load(&rt->n_watching) > 0)
        rt_queue_push(&rt->rows, rt_item_new(RT_GAP), 0);
}

static struct backend_row *copy(struct arena *a, const struct backend_row *row)
{
    struct backend_row *to = row ? ARENA_NEW(a, struct backend_row) : NULL;

    if (to)
        backend_row_copy(a, row, to);
    return to;
}

static struct rt_item *copy_event(const struct realtime *rt, const struct backend_event *event)
{
    struct rt_item *item = rt_item_new(RT_CHANGE);
    struct arena *a = item->arena = arena_new();
    struct rt_change *c = item->change = ARENA_NEW(a, struct rt_change);

    c->op = event->op;
    c->table = arena_strdup(a, event->table);
    rt_change_name(a, c);
    c->is_lease_only = event->is_lease_only;
    c->is_internal = rt_is_internal(rt->config.backend, event->table);
    c->new_row = copy(a, event->new_row);
    c->old_row = copy(a, event->old_row);
    clock_now_text(c->at);
    c->n_bytes = arena_bytes(a);
    return item;
}

/* The rows that a DELETE leaves for the work of tasks. */
bool rt_is_internal(const struct backend *b, const char *table)
{
    size_t n = strlen(b->abbr);

    return strncmp(table, b->abbr, n) == 0 && strcmp(table + n, "_deletions") == 0;
}

static void take_event(struct realtime *rt, const struct backend_event *event)
{
    struct rt_item *item;

    if (atomic_load(&rt->n_changes) >= LIMIT_REALTIME_CHANGES ||
        atomic_load(&rt->n_change_bytes) >= LIMIT_REALTIME_CHANGE_BYTES) {
        metric_add(rt->dropped, 1);
        if (!atomic_exchange(&rt->has_gap, true))
            on_gap(rt);
        return;
    }
    atomic_store(&rt->has_gap, false);
    item = copy_event(rt, event);
    atomic_fetch_add(&rt->n_changes, 1);
    atomic_fetch_add(&rt->n_change_bytes, item->change->n_bytes);
    rt_queue_push(&rt->rows, item, 0);
}

/* The work of a deletion is a row of its own. */
static void on_event(void *arg, const struct backend_event *event)
{
    struct realtime *rt = arg;
    const struct backend_event work = { .op = BACKEND_INSERT,
                                        .table = event->work ? event->work->table : NULL,
                                        .new_row = event->work };

    if (atomic_load(&rt->n_watching) == 0)
        return;
    take_event(rt, event);
    if (event->work)
        take_event(rt, &work);
}

/* ---- life ---- */

int rt_rows_start(struct realtime *rt, struct err *e)
{
    struct backend *b = rt->config.backend;
    int r;

    rt->columns = print_columns();
    r = thread_start(&rt->rows_thread, "realtime-rows", run_rows, rt);
    if (r < 0)
        return err_set(e, r, "INTERNAL_ERROR", "A thread for the realtime protocol could not be started.");
    rt->has_rows = true;
    r = b->ops->subscribe(b, on_event, on_gap, rt, e);
    rt->is_subscribed = r == 0;
    return r;
}

void rt_rows_stop(struct realtime *rt)
{
    struct backend *b = rt->config.backend;

    if (rt->is_subscribed)
        b->ops->unsubscribe(b, rt);
    rt->is_subscribed = false;
    rt_queue_close(&rt->rows);
    if (rt->has_rows)
        pthread_join(rt->rows_thread, NULL);
    rt->has_rows = false;
    rt_bridges_end(rt);
    rt_machines_end(rt);
    rt_shapes_clear(rt);
}
