#include "store/tables/tasks.h"
#include "base/clock.h"
#include "store/rows.h"

#define LIST_COLUMNS                                                                                                   \
    "seq, uuid, title, status, action_type, source_app, source_app_name, backend_table, row_id, agent_name, "          \
    "workspace_slug, thread_slug, auto_run, review, error, attempt, machine_id, attempted_by, retry_count, "           \
    "calendar_event_uuid, is_quarantined, created_at, updated_at, completed_at"
#define COLUMNS LIST_COLUMNS ", prompt, raw_data, old_data, result, trigger_depth"

static const struct rows_missing missing = { .code = "TASK_NOT_FOUND", .what = "task" };

static void read_listed(struct sql_rows *rows, struct arena *a, void *into)
{
    *(struct task_row *)into = (struct task_row){
        .seq = sql_int(rows, 0),
        .uuid = sql_text(rows, a, 1),
        .title = sql_text(rows, a, 2),
        .status = sql_text(rows, a, 3),
        .action_type = sql_text(rows, a, 4),
        .source_app = sql_text(rows, a, 5),
        .source_app_name = sql_text(rows, a, 6),
        .backend_table = sql_text(rows, a, 7),
        .row_id = sql_text(rows, a, 8),
        .agent_name = sql_text(rows, a, 9),
        .workspace_slug = sql_text(rows, a, 10),
        .thread_slug = sql_text(rows, a, 11),
        .auto_run = sql_int(rows, 12) != 0,
        .review = sql_text(rows, a, 13),
        .error = sql_text(rows, a, 14),
        .attempt = sql_int(rows, 15),
        .machine_id = sql_text(rows, a, 16),
        .attempted_by = sql_text(rows, a, 17),
        .retry_count = sql_int(rows, 18),
        .calendar_event_uuid = sql_text(rows, a, 19),
        .is_quarantined = sql_int(rows, 20) != 0,
        .created_at = sql_text(rows, a, 21),
        .updated_at = sql_text(rows, a, 22),
        .completed_at = sql_text(rows, a, 23),
    };
}

static void read_task(struct sql_rows *rows, struct arena *a, void *into)
{
    struct task_row *row = into;

    read_listed(rows, a, row);
    row->prompt = sql_text(rows, a, 24);
    row->raw_data = sql_text(rows, a, 25);
    row->old_data = sql_text(rows, a, 26);
    row->result = sql_text(rows, a, 27);
    row->trigger_depth = sql_int(rows, 28);
}

/* --- adding --- */

struct addition {
    const struct task_bundle *bundle;
    bool is_new;
    char uuid[UUID_SIZE];
};

static int insert_task(struct sql_db *db, const struct task_row *row, const char *event_uuid, struct err *e)
{
    char now[TIME_TEXT_SIZE];

    clock_now_text(now);
    return sql_exec(
        db, e,
        "INSERT INTO tasks (uuid, title, status, action_type, source_app, source_app_name, backend_table, row_id, "
        "agent_name, workspace_slug, thread_slug, prompt, raw_data, old_data, auto_run, review, error, result, "
        "attempt, machine_id, attempted_by, retry_count, calendar_event_uuid, is_quarantined, created_at, "
        "updated_at, trigger_depth) VALUES (?, ?, coalesce(?, 'pending'), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, "
        "coalesce(?, '[]'), ?, ?, ?, ?, ?, ?) "
        "ON CONFLICT (backend_table, row_id) WHERE backend_table IS NOT NULL DO NOTHING",
        "ssssssssssssssisssissisissi", row->uuid, row->title, row->status, row->action_type, row->source_app,
        row->source_app_name, row->backend_table, row->row_id, row->agent_name, row->workspace_slug, row->thread_slug,
        row->prompt, row->raw_data, row->old_data, (int64_t)row->auto_run, row->review, row->error, row->result,
        row->attempt, row->machine_id, row->attempted_by, row->retry_count, event_uuid, (int64_t)row->is_quarantined,
        now, now, row->trigger_depth);
}

static int name_existing(struct sql_db *db, struct addition *add, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    struct task_row found;
    int r;

    r = sql_query(db, &rows, e, "SELECT " LIST_COLUMNS " FROM tasks WHERE backend_table = ? AND row_id = ?", "ss",
                  add->bundle->task->backend_table, add->bundle->task->row_id);
    if (r == 0)
        r = rows_one(rows, a, read_listed, &found, ROWS_NAMED(missing, add->bundle->task->row_id), e);
    if (r == 0)
        snprintf(add->uuid, sizeof(add->uuid), "%s", found.uuid);
    return r;
}

static int add_run_and_event(struct sql_db *db, const struct task_bundle *b, struct err *e)
{
    struct run_row run = b->run ? *b->run : (struct run_row){ 0 };
    struct calendar_row event = b->event ? *b->event : (struct calendar_row){ 0 };
    int r = 0;

    run.task_uuid = event.task_uuid = b->task->uuid;
    if (b->run)
        r = store_runs_add(db, &run, b->ret_run_id, e);
    if (r == 0 && b->event)
        r = store_calendar_add(db, &event, e);
    return r;
}

static int add_bundle(struct sql_db *db, void *arg, struct err *e)
{
    struct addition *add = arg;
    const struct task_bundle *b = add->bundle;
    int r;

    r = insert_task(db, b->task, b->event ? b->event->uuid : b->task->calendar_event_uuid, e);
    if (r < 0)
        return r;
    add->is_new = sql_changes(db) > 0;
    if (!add->is_new)
        return name_existing(db, add, e);
    snprintf(add->uuid, sizeof(add->uuid), "%s", b->task->uuid);
    r = add_run_and_event(db, b, e);
    return r < 0 || !b->delivery ? r : store_deliveries_change(db, b->delivery, e);
}

int store_tasks_add(struct store *s, const struct task_bundle *b, bool *ret_is_new, char ret_uuid[UUID_SIZE],
                    struct err *e)
{
    struct addition add = { .bundle = b };
    int r;

    r = store_write(s, add_bundle, &add, e);
    if (r < 0)
        return r;
    *ret_is_new = add.is_new;
    memcpy(ret_uuid, add.uuid, UUID_SIZE);
    return 0;
}

struct addition_list {
    const struct task_bundle *bundles;
    size_t n;
};

static int add_bundles(struct sql_db *db, void *arg, struct err *e)
{
    const struct addition_list *list = arg;
    int r = 0;

    for (size_t i = 0; r == 0 && i < list->n; i++)
        r = add_bundle(db, &(struct addition){ .bundle = &list->bundles[i] }, e);
    return r;
}

int store_tasks_add_all(struct store *s, const struct task_bundle *bundles, size_t n, struct err *e)
{
    struct addition_list list = { bundles, n };

    return n ? store_write(s, add_bundles, &list, e) : 0;
}

/* --- changing --- */

static int change_task(struct sql_db *db, const struct task_change *c, struct err *e)
{
    char now[TIME_TEXT_SIZE];

    clock_now_text(now);
    return sql_exec(
        db, e,
        "UPDATE tasks SET status = coalesce(?1, status), "
        "error = coalesce(?2, iif(?3, NULL, error)), result = coalesce(?4, iif(?3, NULL, result)), "
        "completed_at = CASE WHEN ?1 IN ('completed', 'failed', 'canceled') THEN ?5 "
        "WHEN ?3 THEN NULL ELSE completed_at END, "
        /* 'waiting' ends when the task proceeds without a person */
        "review = coalesce(?6, CASE WHEN ?1 <> 'pending' THEN nullif(review, 'waiting') "
        "WHEN ?1 = 'pending' AND NOT auto_run THEN coalesce(review, 'waiting') ELSE review END), machine_id = coalesce(?7, machine_id), "
        "attempted_by = coalesce(?8, attempted_by), attempt = iif(?9 < 0, attempt, ?9), "
        "retry_count = iif(?10 < 0, retry_count, ?10), is_quarantined = iif(?11 < 0, is_quarantined, ?11), "
        "raw_data = coalesce(?12, raw_data), old_data = coalesce(?13, old_data), "
        "action_type = coalesce(?14, action_type), agent_name = coalesce(?20, agent_name), "
        "workspace_slug = coalesce(?21, workspace_slug), thread_slug = coalesce(?22, thread_slug), "
        "prompt = coalesce(?23, prompt), updated_at = ?5 "
        "WHERE uuid = ?15 AND (?16 = 0 OR attempt = ?17) AND (?18 IS NULL OR status = ?18) "
        "AND (?19 = 0 OR status NOT IN ('completed', 'failed', 'canceled'))",
        "ssisssssiiissssiisissss", c->status, c->error, (int64_t)c->clears_outcome, c->result, now, c->review,
        c->machine_id, c->attempted_by, c->attempt, c->retry_count, (int64_t)c->is_quarantined, c->raw_data,
        c->old_data, c->action_type, c->uuid, (int64_t)c->is_guarded, c->if_attempt, c->if_status,
        (int64_t)c->if_unfinished, c->agent_name, c->workspace_slug, c->thread_slug, c->prompt);
}

/* The event may be missing, because a person can delete it. */
static int change_event(struct sql_db *db, const char *task_uuid, const char *status, struct err *e)
{
    char now[TIME_TEXT_SIZE];

    clock_now_text(now);
    return sql_exec(db, e,
                    "UPDATE calendar SET metadata = json_set(metadata, '$.dispatch_status', ?), updated_at = ? "
                    "WHERE uuid = (SELECT calendar_event_uuid FROM tasks WHERE uuid = ?)",
                    "sss", status, now, task_uuid);
}

static int add_new_run(struct sql_db *db, const struct task_step *step, struct err *e)
{
    struct run_row run = *step->new_run;

    run.task_uuid = step->change.uuid;
    return store_runs_add(db, &run, step->ret_run_id, e);
}

static int apply_rest(struct sql_db *db, const struct task_step *step, struct err *e)
{
    int r = 0;

    if (step->new_run)
        r = add_new_run(db, step, e);
    if (r == 0 && step->run)
        r = store_runs_change(db, step->run, e);
    if (r == 0 && step->drop_run)
        r = sql_exec(db, e, "DELETE FROM runs WHERE id = ?", "i", step->drop_run);
    if (r == 0 && step->dispatch_status)
        r = change_event(db, step->change.uuid, step->dispatch_status, e);
    if (r == 0 && step->delivery)
        r = store_deliveries_change(db, step->delivery, e);
    return r;
}

struct application {
    const struct task_step *step;
    bool has_changed;
};

static int apply_step(struct sql_db *db, void *arg, struct err *e)
{
    struct application *app = arg;
    int r;

    r = change_task(db, &app->step->change, e);
    if (r < 0)
        return r;
    app->has_changed = sql_changes(db) > 0;
    return app->has_changed ? apply_rest(db, app->step, e) : 0;
}

int store_tasks_apply(struct store *s, const struct task_step *step, bool *ret_changed, struct err *e)
{
    struct application app = { .step = step };
    int r;

    r = store_write(s, apply_step, &app, e);
    if (r == 0)
        *ret_changed = app.has_changed;
    return r;
}

/* --- reading --- */

int store_tasks_get(struct store *s, struct arena *a, const char *uuid, struct task_row *ret, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r;

    r = sql_query(store_reader(s), &rows, e, "SELECT " COLUMNS " FROM tasks WHERE uuid = ?", "s", uuid);
    return r < 0 ? r : rows_one(rows, a, read_task, ret, ROWS_NAMED(missing, uuid), e);
}

int store_tasks_get_by_row(struct store *s, struct arena *a, const char *backend_table, const char *row_id,
                           struct task_row *ret, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r;

    r = sql_query(store_reader(s), &rows, e, "SELECT " COLUMNS " FROM tasks WHERE backend_table = ? AND row_id = ?",
                  "ss", backend_table, row_id);
    return r < 0 ? r
                 : rows_one(rows, a, read_task, ret, ROWS_NAMED(missing, arena_printf(a, "of the row %s", row_id)), e);
}

int store_tasks_list(struct store *s, struct arena *a, const struct task_filter *f, struct task_row **ret,
                     size_t *ret_n, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r;

    r = sql_query(store_reader(s), &rows, e,
                  "SELECT " LIST_COLUMNS
                  " FROM tasks WHERE (?1 IS NULL OR status = ?1) AND (?2 IS NULL OR source_app = ?2) "
                  "AND (?3 = 0 OR is_quarantined) ORDER BY seq DESC LIMIT ?4 OFFSET ?5",
                  "ssiii", f->status, f->source_app, (int64_t)f->only_quarantined, rows_limit(f->limit),
                  MAX(f->offset, INT64_C(0)));
    return r < 0 ? r : rows_all(rows, a, sizeof(struct task_row), read_listed, ret, ret_n, e);
}

#define IS_WAITING                                                                                                     \
    "status = 'pending' AND is_quarantined = 0 AND (review = 'approved' OR (review IS NULL AND auto_run))"

int store_tasks_waiting(struct store *s, struct arena *a, const char *source_app, int64_t limit, struct task_row **ret,
                        size_t *ret_n, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r;

    r = sql_query(store_reader(s), &rows, e,
                  "SELECT " LIST_COLUMNS " FROM tasks WHERE source_app IS ? AND " IS_WAITING " ORDER BY seq LIMIT ?",
                  "si", source_app, rows_limit(limit));
    return r < 0 ? r : rows_all(rows, a, sizeof(struct task_row), read_listed, ret, ret_n, e);
}

static void read_app(struct sql_rows *rows, struct arena *a, void *into)
{
    *(const char **)into = sql_text(rows, a, 0);
}

int store_tasks_waiting_apps(struct store *s, struct arena *a, const char ***ret, size_t *ret_n, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r;

    r = sql_query(store_reader(s), &rows, e, "SELECT DISTINCT source_app FROM tasks WHERE " IS_WAITING, "");
    return r < 0 ? r : rows_all(rows, a, sizeof(const char *), read_app, ret, ret_n, e);
}

int store_tasks_count_agent(struct store *s, const char *agent_name, int64_t *ret_n, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r;

    r = sql_query(store_reader(s), &rows, e,
                  "SELECT count(*) FROM tasks WHERE status IN ('pending', 'claimed', 'processing') AND agent_name = ?",
                  "s", agent_name);
    if (r == 0)
        r = sql_step(rows, e);
    if (r < 0)
        return r;
    *ret_n = sql_int(rows, 0);
    return 0;
}

static void read_count(struct sql_rows *rows, struct arena *a, void *into)
{
    *(struct task_count *)into = (struct task_count){ .status = sql_text(rows, a, 0), .n = sql_int(rows, 1) };
}

int store_tasks_counts(struct store *s, struct arena *a, struct task_count **ret, size_t *ret_n, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r;

    r = sql_query(store_reader(s), &rows, e, "SELECT status, count(*) FROM tasks GROUP BY status ORDER BY status", "");
    return r < 0 ? r : rows_all(rows, a, sizeof(struct task_count), read_count, ret, ret_n, e);
}
