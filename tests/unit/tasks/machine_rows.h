/* Rows and tasks of the machines of machine.h: making, changing, stealing them, and waiting for them. */
#pragma once

/* ---- rows ---- */

static inline const char *insert_as(struct machine *m, const char *app_id, const char *raw_data)
{
    const struct backend_new_row in = { .table = TABLE, .app_id = app_id, .raw_data = raw_data };
    struct backend_row row;
    struct err e = { 0 };

    if (backend_insert(m->backend, &in, m->world->arena, &row, &e) < 0)
        fail_msg("%s", e.text);
    return row.id;
}

static inline const char *insert(struct machine *m, const char *raw_data)
{
    return insert_as(m, APP, raw_data);
}

static inline struct backend_row row_now(struct machine *m, const char *id)
{
    struct backend_row row;

    assert_int_equal(backend_get(m->backend, TABLE, id, NULL, m->world->arena, &row, NULL), 0);
    return row;
}

static inline bool row_says(struct machine *m, const char *id, const char *status)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct backend_row row;

    return backend_get(m->backend, TABLE, id, NULL, a, &row, NULL) == 0 && strcmp(row.status, status) == 0;
}

static inline void patch_row(struct machine *m, const char *id, struct backend_patch patch)
{
    const struct backend_update_request request = { .table = TABLE, .id = id, .patch = &patch };
    struct backend_row row;
    struct err e = { 0 };

    if (backend_update(m->backend, &request, m->world->arena, &row, &e) < 0)
        fail_msg("%s", e.text);
}

/* cmocka has a macro fail(), so this wraps the operation. */
static inline int fail_row(struct machine *m, const struct backend_lease *lease, const char *error)
{
    return (m->backend->ops->fail)(m->backend, lease, error, NULL);
}

/* The row's lease was taken three hours ago. */
static inline void make_stale(struct machine *m, const char *id)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct sql_db *db = NULL;

    assert_int_equal(sql_open(arena_printf(a, "%s/backend.db", m->world->dir), NULL, &db, NULL), 0);
    assert_int_equal(sql_script(db, "PRAGMA trusted_schema = ON", NULL), 0);
    assert_int_equal(sql_script(db,
                                arena_printf(a,
                                             "UPDATE " TABLE
                                             " SET locked_at = strftime('%%Y-%%m-%%dT%%H:%%M:%%fZ', 'now', '-3 hours')"
                                             " WHERE id = '%s'",
                                             id),
                                NULL),
                     0);
    sql_close(db);
}

struct theft {
    struct machine *m;
    const char *id, *thief;
    struct backend_lease lease;
};

static inline bool is_stolen(void *arg)
{
    struct theft *t = arg;
    const struct backend_claim claim = {
        .table = TABLE, .row_id = t->id, .machine_id = t->thief, .stale_after_ms = 1, .max_machines = 3
    };
    AUTO(arena_freep) struct arena *a = arena_new();
    struct backend_lease lease;
    struct backend_row row;

    if (backend_claim(t->m->backend, &claim, a, &row, &lease, NULL) < 0)
        return false;
    t->lease = (struct backend_lease){ TABLE, t->id, t->thief, lease.attempt };
    return true;
}

/* Another machine takes over a held row, as if its lease were stale. */
static inline struct backend_lease steal_row(struct machine *m, const char *id, const char *thief)
{
    struct theft t = { .m = m, .id = id, .thief = thief };

    assert_true(wait_until(is_stolen, &t));
    return t.lease;
}

/* ---- tasks ---- */

static inline bool find_task(struct machine *m, struct arena *a, const char *row_id, struct task_row *ret)
{
    return store_tasks_get_by_row(m->store, a, TABLE, row_id, ret, NULL) == 0;
}

struct status_wait {
    struct machine *m;
    const char *row_id, *uuid, *status;
};

static inline bool has_status(void *arg)
{
    struct status_wait *wait = arg;
    AUTO(arena_freep) struct arena *a = arena_new();
    struct task_row task;
    int r = wait->uuid ? store_tasks_get(wait->m->store, a, wait->uuid, &task, NULL)
                       : store_tasks_get_by_row(wait->m->store, a, TABLE, wait->row_id, &task, NULL);

    return r == 0 && strcmp(task.status, wait->status) == 0;
}

/* The machine's task of a row, as soon as it has the status. */
static inline struct task_row wait_task(struct machine *m, const char *row_id, const char *status)
{
    struct status_wait wait = { .m = m, .row_id = row_id, .status = status };
    struct task_row task = { 0 };

    if (!wait_until(has_status, &wait))
        fail_msg("the task of row %s is %s, not %s", row_id,
                 find_task(m, m->world->arena, row_id, &task) ? task.status : "not there", status);
    assert_true(find_task(m, m->world->arena, row_id, &task));
    return task;
}

static inline struct task_row wait_task_uuid(struct machine *m, const char *uuid, const char *status)
{
    struct status_wait wait = { .m = m, .uuid = uuid, .status = status };
    struct task_row task = { 0 };
    bool is_so = wait_until(has_status, &wait);

    assert_int_equal(store_tasks_get(m->store, m->world->arena, uuid, &task, NULL), 0);
    if (!is_so)
        fail_msg("task %s is %s, not %s", uuid, task.status, status);
    return task;
}

struct error_wait {
    struct machine *m;
    const char *row_id, *error;
};

static inline bool has_error(void *arg)
{
    struct error_wait *wait = arg;
    AUTO(arena_freep) struct arena *a = arena_new();
    struct task_row task;

    return find_task(wait->m, a, wait->row_id, &task) && task.error && strcmp(task.error, wait->error) == 0;
}

static inline void wait_task_error(struct machine *m, const char *row_id, const char *error)
{
    struct error_wait wait = { m, row_id, error };

    assert_true(wait_until(has_error, &wait));
}

static inline size_t runs_of(struct machine *m, const char *uuid, struct run_row **ret)
{
    size_t n;

    assert_int_equal(store_runs_list(m->store, m->world->arena, uuid, ret, &n, NULL), 0);
    return n;
}

static inline const char *dispatch_of(struct machine *m, const struct task_row *task)
{
    struct calendar_row event;
    struct json_value metadata;

    assert_non_null(task->calendar_event_uuid);
    assert_int_equal(store_calendar_get(m->store, m->world->arena, task->calendar_event_uuid, &event, NULL), 0);
    assert_int_equal(json_parse(m->world->arena, slice_of(event.metadata), &metadata, NULL), 0);
    return json_cstr(json_get(metadata, "dispatch_status"));
}

struct row_wait {
    struct machine *m;
    const char *id, *status;
};

static inline bool row_has_status(void *arg)
{
    struct row_wait *wait = arg;

    return row_says(wait->m, wait->id, wait->status);
}

static inline void wait_row(struct machine *m, const char *id, const char *status)
{
    struct row_wait wait = { m, id, status };

    if (!wait_until(row_has_status, &wait))
        fail_msg("row %s is %s, not %s", id, row_now(m, id).status, status);
}

static inline bool is_released(void *arg)
{
    struct fake_run *run = arg;

    return atomic_load(&run->is_released);
}

static inline void wait_released(struct fake_run *run)
{
    assert_true(wait_until(is_released, run));
}

static inline bool was_requested(void *arg)
{
    struct fake_run *run = arg;

    return atomic_load(&run->was_requested);
}

/* A later row is at work, so earlier rows have been examined. Needs a free place, or ends the given run. */
static inline void wait_intake(struct machine *m, size_t n_runs_before)
{
    struct fake_run *run;

    insert(m, "{\"probe\":true}");
    run = wait_run(m->world, n_runs_before);
    fake_succeed(run, "{}");
    wait_released(run);
}
