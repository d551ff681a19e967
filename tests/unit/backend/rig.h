/* An embedded backend on a file of its own, another program that writes to that file, and a recorder of events.
 *
 *     struct rig *rig = *state;                           with cmocka_unit_test_setup_teardown(test, rig_open, rig_close)
 */
#pragma once

#include "backend/backend.h"
#include "store/sql.h"
#include "../store/folder.h"
#include "../wait.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <pthread.h>

/* cmocka's macro hides the operation of that name; fail_msg() needs something to call. */
#undef fail
static inline void fail(void)
{
    _fail(__FILE__, __LINE__);
}

#define TABLE "svc_activities"
#define DELETIONS "svc_deletions"
#define STALE_MS 300000

struct rig {
    struct folder folder;
    struct backend *backend;
    struct arena *arena;
};

static inline void must(int r, const struct err *e)
{
    if (r < 0)
        fail_msg("%d %s %s", r, e->code, e->text);
}

static inline struct backend *rig_backend(struct rig *rig)
{
    struct backend_embedded_config config = { .path = rig->folder.file, .abbr = "svc", .poll_ms = 5 };
    struct backend *b = NULL;
    struct err e = { 0 };

    must(backend_embedded_open(&config, &b, &e), &e);
    return b;
}

static inline int rig_open(void **state)
{
    struct rig *rig = xcalloc(1, sizeof(*rig));

    rig->folder = folder_make();
    rig->arena = arena_new();
    rig->backend = rig_backend(rig);
    *state = rig;
    return 0;
}

static inline int rig_close(void **state)
{
    struct rig *rig = *state;

    backend_close(rig->backend);
    arena_free(rig->arena);
    folder_remove(&rig->folder);
    free(rig);
    return 0;
}

/* SQL by a connection that is not the backend's. */
static inline void rig_sql(struct rig *rig, const char *sql)
{
    struct sql_db *db = NULL;
    struct err e = { 0 };

    must(sql_open(rig->folder.file, NULL, &db, &e), &e);
    must(sql_script(db, "PRAGMA trusted_schema = ON; PRAGMA synchronous = OFF", &e), &e);
    must(sql_script(db, sql, &e), &e);
    sql_close(db);
}

static inline int64_t rig_number(struct rig *rig, const char *sql)
{
    struct sql_rows *rows = NULL;
    struct sql_db *db = NULL;
    struct err e = { 0 };
    int64_t n;

    must(sql_open(rig->folder.file, &(struct sql_options){ .is_readonly = true }, &db, &e), &e);
    must(sql_query_text(db, &rows, &e, sql, NULL), &e);
    assert_int_equal(sql_step(rows, &e), 1);
    n = sql_int(rows, 0);
    sql_rows_endp(&rows);
    sql_close(db);
    return n;
}

static inline const char *rig_insert_as(struct rig *rig, const char *app_id, const char *raw_data)
{
    struct backend_new_row in = { .table = TABLE, .app_id = app_id, .raw_data = raw_data };
    struct backend_row row = { 0 };
    struct err e = { 0 };

    must(backend_insert(rig->backend, &in, rig->arena, &row, &e), &e);
    return row.id;
}

static inline const char *rig_insert(struct rig *rig)
{
    return rig_insert_as(rig, NULL, "{\"n\":1}");
}

static inline struct backend_row rig_get(struct rig *rig, const char *id)
{
    struct backend_row row = { 0 };
    struct err e = { 0 };

    must(backend_get(rig->backend, TABLE, id, NULL, rig->arena, &row, &e), &e);
    return row;
}

static inline int rig_try_claim(struct rig *rig, const char *id, const char *machine_id, struct backend_lease *ret,
                                struct err *e)
{
    struct backend_claim claim = { TABLE, id, machine_id, STALE_MS, 3 };
    struct backend_row row = { 0 };

    *e = (struct err){ 0 };
    return backend_claim(rig->backend, &claim, rig->arena, &row, ret, e);
}

static inline struct backend_lease rig_claim(struct rig *rig, const char *id, const char *machine_id)
{
    struct backend_lease lease = { 0 };
    struct err e = { 0 };

    must(rig_try_claim(rig, id, machine_id, &lease, &e), &e);
    return lease;
}

static inline void rig_patch(struct rig *rig, const char *id, const struct backend_patch *patch)
{
    struct backend_row row = { 0 };
    struct err e = { 0 };

    must(rig->backend->ops->update(rig->backend, TABLE, id, NULL, patch, rig->arena, &row, &e), &e);
}

/* The lease of that row was taken ten minutes ago. */
static inline void rig_make_stale(struct rig *rig, const char *id)
{
    rig_sql(rig,
            arena_printf(rig->arena,
                         "UPDATE " TABLE " SET locked_at = strftime('%%Y-%%m-%%dT%%H:%%M:%%fZ', 'now', '-600 seconds')"
                         " WHERE id = '%s'",
                         id));
}

/* --- recorder --- */

enum { RECORDER_MAX = 4096 };

struct recorded {
    int64_t sequence;
    enum backend_op op;
    bool is_lease_only;
    char table[64], id[40];
    char new_raw[64], old_raw[64], new_status[24], old_status[24];
    char work_id[40], work_table[64], work_source[64];
};

struct recorder {
    pthread_mutex_t lock;
    struct recorded events[RECORDER_MAX];
    size_t n, n_wanted;
    int n_gaps, n_gaps_wanted;
};

static inline void copy_text(char *out, size_t size, const char *text)
{
    snprintf(out, size, "%s", text ? text : "(null)");
}

static inline void record_event(void *arg, const struct backend_event *event)
{
    struct recorder *rec = arg;
    struct recorded *to;
    const struct backend_row *any = event->new_row ? event->new_row : event->old_row;

    pthread_mutex_lock(&rec->lock);
    assert_true(rec->n < RECORDER_MAX);
    to = &rec->events[rec->n++];
    to->sequence = event->sequence;
    to->op = event->op;
    to->is_lease_only = event->is_lease_only;
    copy_text(to->table, sizeof(to->table), event->table);
    copy_text(to->id, sizeof(to->id), any ? any->id : NULL);
    copy_text(to->new_raw, sizeof(to->new_raw), event->new_row ? event->new_row->raw_data : "(none)");
    copy_text(to->old_raw, sizeof(to->old_raw), event->old_row ? event->old_row->raw_data : "(none)");
    copy_text(to->new_status, sizeof(to->new_status), event->new_row ? event->new_row->status : "(none)");
    copy_text(to->old_status, sizeof(to->old_status), event->old_row ? event->old_row->status : "(none)");
    copy_text(to->work_id, sizeof(to->work_id), event->work ? event->work->id : "(none)");
    copy_text(to->work_table, sizeof(to->work_table), event->work ? event->work->table : "(none)");
    copy_text(to->work_source, sizeof(to->work_source), event->work ? event->work->source_table : "(none)");
    pthread_mutex_unlock(&rec->lock);
}

static inline void record_gap(void *arg)
{
    struct recorder *rec = arg;

    pthread_mutex_lock(&rec->lock);
    rec->n_gaps++;
    pthread_mutex_unlock(&rec->lock);
}

static inline struct recorder *recorder_start(struct backend *b)
{
    struct recorder *rec = xcalloc(1, sizeof(*rec));
    struct err e = { 0 };

    pthread_mutex_init(&rec->lock, NULL);
    must(b->ops->subscribe(b, record_event, record_gap, rec, &e), &e);
    return rec;
}

static inline void recorder_stop(struct backend *b, struct recorder *rec)
{
    b->ops->unsubscribe(b, rec);
    pthread_mutex_destroy(&rec->lock);
    free(rec);
}

static inline bool has_wanted(void *arg)
{
    struct recorder *rec = arg;
    bool is_so;

    pthread_mutex_lock(&rec->lock);
    is_so = rec->n >= rec->n_wanted && rec->n_gaps >= rec->n_gaps_wanted;
    pthread_mutex_unlock(&rec->lock);
    return is_so;
}

/* The events so far, once there are n of them. */
static inline const struct recorded *recorder_wait(struct recorder *rec, size_t n)
{
    rec->n_wanted = n;
    if (!wait_until(has_wanted, rec))
        fail_msg("%zu events came, %zu were awaited", rec->n, n);
    return rec->events;
}
