/* Turns a row that may be work into a running task, a waiting task or a question to a person. One job at a time, in
 * order of arrival. */
#include "tasks/private.h"

#include "backend/backend_columns.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"

/* A copied event, or only (table, row_id): the row is read then. */
struct task_intake_item {
    struct task_intake_item *next;
    struct arena *arena;    /* owned */
    size_t n_bytes;         /* of the arena when the item was added to the queue */
    struct backend_row row; /* the new row, or the work that a DELETE left; id NULL: must be read */
    const char *table, *row_id;
    bool is_gone; /* the row was deleted */
    int64_t seen_us;
};

enum { BATCH = 256 };

/* ---- the queue ---- */

static void item_free(struct task_intake_item *item)
{
    arena_free(item->arena);
    free(item);
}

static struct task_intake_item *item_new(const char *table, const char *row_id)
{
    struct task_intake_item *item = xcalloc(1, sizeof(*item));

    item->arena = arena_new();
    item->table = arena_strdup(item->arena, table);
    item->row_id = arena_strdup(item->arena, row_id);
    return item;
}

/* Takes ownership of the item. False when the queue is full. */
static bool push(struct tasks *t, struct task_intake_item *item)
{
    bool has_room;

    pthread_mutex_lock(&t->mutex);
    has_room = t->n_items < LIMIT_TASK_EVENTS && !t->is_stopping;
    if (has_room) {
        *t->last_item = item;
        t->last_item = &item->next;
        t->n_items++;
        t->n_item_bytes += arena_bytes(item->arena);
        item->n_bytes = arena_bytes(item->arena);
    }
    pthread_mutex_unlock(&t->mutex);
    if (has_room)
        coalesced_job_request(&t->intake);
    else
        item_free(item);
    return has_room;
}

/* The sweep finds items that did not fit. */
static void push_or_sweep(struct tasks *t, struct task_intake_item *item)
{
    if (!push(t, item))
        task_note_gap(t);
}

static struct task_intake_item *pop(struct tasks *t)
{
    struct task_intake_item *item;

    pthread_mutex_lock(&t->mutex);
    item = t->first_item;
    if (item) {
        t->first_item = item->next;
        t->n_items--;
        t->n_item_bytes -= item->n_bytes;
        if (!item->next)
            t->last_item = &t->first_item;
    }
    pthread_mutex_unlock(&t->mutex);
    return item;
}

void task_intake_clear(struct tasks *t)
{
    struct task_intake_item *item;

    while ((item = pop(t)))
        item_free(item);
}

static bool has_room_for_rows(struct tasks *t)
{
    bool has;

    pthread_mutex_lock(&t->mutex);
    has = t->n_item_bytes < LIMIT_TASK_EVENT_BYTES;
    pthread_mutex_unlock(&t->mutex);
    return has;
}

/* Rows are large, and many may come at once: beyond the limit only the row's id waits. */
static void keep_row(struct tasks *t, struct task_intake_item *item, const struct backend_row *row)
{
    if (has_room_for_rows(t))
        backend_row_copy(item->arena, row, &item->row);
}

void task_intake_hint(struct tasks *t, const char *table, const char *row_id)
{
    push_or_sweep(t, item_new(table, row_id));
}

bool task_intake_rows(struct tasks *t, const struct backend_rows *rows)
{
    for (size_t i = 0; i < rows->n; i++) {
        struct task_intake_item *item = item_new(rows->items[i].table, rows->items[i].id);

        keep_row(t, item, &rows->items[i]);
        if (!push(t, item))
            return false; /* the next sweep brings the rest */
    }
    return true;
}

/* ---- the backend's thread ---- */

/* Changes of the row by our own attempt are no news. */
static bool is_news(const struct tasks *t, const struct task_run *run, const struct backend_event *event)
{
    const struct backend_row *row = event->new_row;

    if (!row || !event->is_lease_only || row->is_dirty)
        return true;
    if (row->locked_by)
        return strcmp(row->locked_by, t->machine_id) != 0;
    return row->attempt != run->attempt || strcmp(row->status, STATUS_PENDING) == 0;
}

static bool looks_lost(const struct task_run *run, const struct backend_event *event)
{
    const struct backend_row *row = event->new_row;

    if (run->attempt == 0 || run->is_settling || run->is_reported || run->n_reporting)
        return false;
    return !row || row->attempt > run->attempt || (row->attempt == run->attempt && !status_is_leased(row->status));
}

/* The run of a row at work here settles the row; other changes are examined when the run has left. When the lease seems
 * lost, the heartbeat checks immediately. */
static bool is_at_work(struct tasks *t, const struct backend_event *event)
{
    const struct backend_row *row = event->new_row ? event->new_row : event->old_row;
    struct task_run *run = task_run_of_row(t, event->table, row->id);
    bool is_lost;

    if (!run)
        return false;
    pthread_mutex_lock(&t->mutex);
    is_lost = looks_lost(run, event);
    run->has_news = run->has_news || is_news(t, run, event);
    pthread_mutex_unlock(&t->mutex);
    task_run_unref(t, run);
    if (is_lost)
        coalesced_job_request(&t->heartbeat);
    return true;
}

static bool is_listened(struct tasks *t, const char *table)
{
    struct task_listening *l = task_listening_hold(t);
    bool is = task_listening_has_table(l, table);

    task_listening_drop(t, l);
    return is;
}

static void push_deleted(struct tasks *t, const struct backend_event *event, int64_t seen_us)
{
    struct task_intake_item *item = item_new(event->table, event->old_row->id);

    item->is_gone = true;
    push_or_sweep(t, item);
    if (!event->work)
        return;
    item = item_new(event->work->table, event->work->id);
    keep_row(t, item, event->work);
    item->seen_us = seen_us;
    push_or_sweep(t, item);
}

static void push_changed(struct tasks *t, const struct backend_event *event, int64_t seen_us)
{
    struct task_intake_item *item = item_new(event->table, event->new_row->id);

    item->seen_us = seen_us;
    if (!event->is_lease_only) /* such an event does not carry the whole row */
        keep_row(t, item, event->new_row);
    push_or_sweep(t, item);
}

void task_intake_event(void *tasks, const struct backend_event *event)
{
    struct tasks *t = tasks;
    int64_t seen_us = clock_mono_us();

    if (!is_listened(t, event->table) || is_at_work(t, event))
        return;
    if (event->new_row)
        push_changed(t, event, seen_us);
    else
        push_deleted(t, event, seen_us);
}

/* ---- one row ---- */

struct intake {
    struct tasks *t;
    struct task_listening *listening;
    struct arena *arena;               /* of the batch */
    struct task_bundle bundles[BATCH]; /* to be stored in one transaction */
    size_t n_bundles;
};

static int64_t count_pending(struct intake *in, const char *app)
{
    const struct task_filter filter = { .status = STATUS_PENDING, .source_app = app, .limit = LIMIT_LIST };
    AUTO(arena_freep) struct arena *a = arena_new();
    struct task_row *rows;
    size_t n = 0;

    if (store_tasks_list(in->t->config.store, a, &filter, &rows, &n, NULL) < 0)
        return LIMIT_LIST;
    return (int64_t)n;
}

/* The list of an app is bounded: the backend keeps the other rows, and the sweep brings them. */
static bool has_room(struct intake *in, struct task_app *app)
{
    bool is_counted, has;
    int64_t n;

    pthread_mutex_lock(&in->t->mutex);
    is_counted = app->n_pending >= 0;
    pthread_mutex_unlock(&in->t->mutex);
    n = is_counted ? 0 : count_pending(in, app->id);
    pthread_mutex_lock(&in->t->mutex);
    if (!is_counted)
        app->n_pending = n;
    has = app->n_pending < LIMIT_LIST;
    app->n_pending += has;
    app->has_overflow = app->has_overflow || !has;
    pthread_mutex_unlock(&in->t->mutex);
    return has;
}

static bool is_in_batch(const struct intake *in, const struct backend_row *row)
{
    for (size_t i = 0; i < in->n_bundles; i++)
        if (strcmp(in->bundles[i].task->row_id, row->id) == 0 &&
            strcmp(in->bundles[i].task->backend_table, row->table) == 0)
            return true;
    return false;
}

/* Until the batch is stored, no later task of the app may start before the batch's tasks. */
static void note_unstored(struct tasks *t, struct task_app *app, int n)
{
    pthread_mutex_lock(&t->mutex);
    app->n_unstored += n;
    pthread_mutex_unlock(&t->mutex);
}

static void add_waiting(struct intake *in, const struct task_match *m, const struct backend_row *row)
{
    struct task_app *app = task_app_of(in->t, m->listener->app_id);
    struct task_row *task;

    if (is_in_batch(in, row) || !has_room(in, app))
        return;
    task = ARENA_NEW(in->arena, struct task_row);
    task_describe_row(in->t, in->arena, m, row, task);
    in->bundles[in->n_bundles++] = (struct task_bundle){
        .task = task,
        .event = task_describe_event(in->arena, task, m->is_review ? DISPATCH_REVIEW : DISPATCH_WAITING, NULL),
    };
    note_unstored(in->t, app, !m->is_review);
}

/* A task that had ended, or was held by another machine, waits again. */
static int wait_again(struct intake *in, const struct task_match *m, const struct backend_row *row,
                      const struct task_row *task, struct err *e)
{
    const struct task_step step = {
        .change = {
            .uuid = task->uuid, .is_guarded = true, .if_attempt = task->attempt, .if_status = task->status, .clears_outcome = true,
            .status = STATUS_PENDING, .review = m->is_review ? REVIEW_WAITING : NULL, .attempted_by = row->attempted_by,
            .raw_data = row->raw_data, .old_data = row->old_data, .action_type = backend_op_name(m->op),
            .agent_name = m->handler ? m->handler->agent_name : NULL, .attempt = -1, .retry_count = row->retry_count, .is_quarantined = 0,
        },
        .dispatch_status = m->is_review ? DISPATCH_REVIEW : DISPATCH_WAITING,
    };
    bool has_changed;
    int r = store_tasks_apply(in->t->config.store, &step, &has_changed, e);

    if (r == 0 && has_changed)
        task_notify(in->t, task->uuid, STATUS_PENDING, "again");
    return r;
}

static bool can_start_at_once(struct intake *in, const struct task_match *m)
{
    struct task_app *app = task_app_of(in->t, m->listener->app_id);
    bool can;

    pthread_mutex_lock(&in->t->mutex);
    can = !app->has_waiting && !app->n_unstored && !m->is_review;
    pthread_mutex_unlock(&in->t->mutex);
    return can;
}

static bool start_at_once(struct intake *in, const struct task_match *m, const struct backend_row *row,
                          const struct task_row *known, int64_t seen_us)
{
    const struct task_run_key key = {
        .app = m->listener->app_id, .table = row->table, .row_id = row->id, .uuid = known ? known->uuid : NULL
    };
    struct task_run *run = can_start_at_once(in, m) ? task_run_reserve(in->t, &key, m->listener->max_concurrent) : NULL;
    struct task_start *s;

    if (!run)
        return false;
    s = task_start_new(in->t, run);
    run->seen_us = seen_us;
    task_describe_row(in->t, s->arena, m, row, &s->task);
    if (known) {
        s->task.uuid = arena_strdup(s->arena, known->uuid);
        s->is_stored = true;
    }
    task_start_submit(s);
    return true;
}

static bool is_claimable(struct tasks *t, const struct backend_row *row)
{
    bool has_tried;
    size_t n;

    if (strcmp(row->status, STATUS_PENDING) != 0 && strcmp(row->status, STATUS_FAILED) != 0)
        return false;
    n = backend_count_machines(row->attempted_by, t->machine_id, &has_tried);
    return !has_tried && (int64_t)n < settings_int(t->config.settings, SETTING_TASKS_MAX_MACHINES);
}

/* A row at work here is examined again when its run has left. */
static bool note_at_work(struct tasks *t, const struct backend_row *row)
{
    struct task_run *run = task_run_of_row(t, row->table, row->id);

    if (!run)
        return false;
    pthread_mutex_lock(&t->mutex);
    run->has_news = true;
    pthread_mutex_unlock(&t->mutex);
    task_run_unref(t, run);
    return true;
}

/* Our task is not pending. The row as it was read may be older than our task, so the row is read again. */
static int offer_again(struct intake *in, const struct task_match *m, const struct backend_row *seen,
                       const struct task_row *known, int64_t seen_us, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct backend_row row;
    struct err why = { 0 };
    int r;

    if (note_at_work(in->t, seen))
        return 0;
    r = backend_get(in->t->config.backend, seen->table, seen->id, NULL, a, &row, &why);
    if (r == -ENOENT)
        return task_follow_now(in->t, seen->table, seen->id, e);
    if (r < 0)
        return err_set(e, r, why.code, "%s", why.text);
    if (!is_claimable(in->t, &row))
        return task_follow(in->t, &row, e);
    if (!row.old_data) /* an app's own table does not keep it */
        row.old_data = seen->old_data;
    if (start_at_once(in, m, &row, known, seen_us))
        return 0;
    r = wait_again(in, m, &row, known, e);
    if (r == 0 && !m->is_review)
        task_app_added(in->t, task_app_of(in->t, m->listener->app_id));
    return r;
}

/* Offers a row that may be claimed. A row that already waits keeps its place in the list. */
static int offer(struct intake *in, const struct task_match *m, const struct backend_row *row, int64_t seen_us,
                 struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct task_row known;
    int r;

    if (note_at_work(in->t, row))
        return 0;
    r = store_tasks_get_by_row(in->t->config.store, a, row->table, row->id, &known, e);
    if (r == 0 && strcmp(known.status, STATUS_PENDING) != 0)
        return offer_again(in, m, row, &known, seen_us, e);
    if (r == 0 && !m->is_review)
        coalesced_job_request(&task_app_of(in->t, m->listener->app_id)->dispatch);
    if (r != -ENOENT)
        return r;
    if (!start_at_once(in, m, row, NULL, seen_us))
        add_waiting(in, m, row);
    return 0;
}

/* A finished row whose data has changed is new work for an app that listens to UPDATE. Only one of several machines
 * succeeds in re-arming it. */
static int rearm(struct intake *in, const struct backend_row *row, struct task_match *ret, bool *ret_is_work,
                 struct err *e)
{
    struct err why = { 0 };
    int r;

    *ret_is_work = false;
    if (!row->is_dirty || status_is_leased(row->status) ||
        !task_match_op(&in->listening->list, row, BACKEND_UPDATE, ret))
        return 0;
    r = in->t->config.backend->ops->rearm(in->t->config.backend, row->table, row->id, &why);
    *ret_is_work = r == 0;
    return r < 0 && r != -ESTALE ? err_set(e, r, why.code, "%s", why.text) : 0;
}

static int take_row(struct intake *in, const struct backend_row *row, int64_t seen_us, struct err *e)
{
    struct task_match m;
    bool is_work = false;
    int r = rearm(in, row, &m, &is_work, e);

    if (r == 0 && !is_work)
        is_work = is_claimable(in->t, row) && task_match(&in->listening->list, row, &m);
    if (r < 0)
        return r;
    return is_work ? offer(in, &m, row, seen_us, e) : task_follow(in->t, row, e);
}

/* The event column of a re-armed row still says INSERT, in the row's notification and when the row is read again. */
static int take_item(struct intake *in, struct task_intake_item *item, struct err *e)
{
    struct err why = { 0 };
    int r = 0;

    if (item->is_gone)
        return task_follow_now(in->t, item->table, item->row_id, e);
    if (!item->row.id)
        r = backend_get(in->t->config.backend, item->table, item->row_id, NULL, item->arena, &item->row, &why);
    if (r == -ENOENT)
        return task_follow_now(in->t, item->table, item->row_id, e);
    if (r < 0)
        return err_set(e, r, why.code, "%s", why.text);
    return take_row(in, &item->row, item->seen_us, e);
}

/* ---- a batch ---- */

static bool has_room_for_tasks(const struct intake *in)
{
    return arena_bytes(in->arena) < LIMIT_TASK_BATCH_BYTES;
}

static void store_bundles(struct intake *in)
{
    struct err e = { 0 };

    int r = store_tasks_add_all(in->t->config.store, in->bundles, in->n_bundles, &e);

    if (r < 0)
        log_warn("tasks", NULL, "%zu waiting tasks cannot be stored: %s", in->n_bundles, LOG_Q(e.text));
    for (size_t i = 0; i < in->n_bundles; i++) {
        const struct task_row *task = in->bundles[i].task;
        struct task_app *app = task_app_of(in->t, task->source_app);

        if (r == 0)
            task_notify(in->t, task->uuid, STATUS_PENDING, "%s",
                        task->review ? "for a person to decide" : "until there is a place");
        if (task->review)
            continue;
        note_unstored(in->t, app, -1);
        task_app_added(in->t, app);
    }
}

/* After an item was taken from the queue: it may have come for listeners that are newer than the batch. */
static void follow_listeners(struct intake *in)
{
    if (task_listening_is_current(in->t, in->listening))
        return;
    store_bundles(in);
    in->n_bundles = 0;
    task_listening_drop(in->t, in->listening);
    in->listening = task_listening_hold(in->t);
}

void task_intake_run(struct tasks *t, void *arg)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct intake *in = ARENA_NEW(a, struct intake);
    struct task_intake_item *item = NULL;

    *in = (struct intake){ .t = t, .arena = a, .listening = task_listening_hold(t) };
    for (size_t i = 0; i < BATCH && has_room_for_tasks(in) && (item = pop(t)); i++) {
        struct err e = { 0 };
        int r;

        follow_listeners(in);
        r = take_item(in, item, &e);
        if (r < 0)
            log_warn("tasks", NULL, "row %s cannot be taken up: %s", LOG_Q(item->row_id), LOG_Q(e.text));
        task_note_missed(t, r);
        item_free(item);
    }
    store_bundles(in);
    task_listening_drop(t, in->listening);
    if (item)
        coalesced_job_request(&t->intake);
}
