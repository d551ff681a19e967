/* A subscriber that keeps the events it gets.
 *
 *     struct recorder *rec = recorder_start(rig->backend);
 *     ev = recorder_wait(rec, 1);     assert_int_equal(recorder_n(rec), 1);
 *     recorder_stop(rig->backend, rec);
 */
#pragma once

#include "contract.h"
#include "base/uuid.h"

#include <stdatomic.h>

enum { RECORDER_MAX = 4096 };

/* Bytes of raw_data that are kept; a test may define more. */
#ifndef RECORDER_RAW
#define RECORDER_RAW 128
#endif

#define DRAIN "{\"drain\":1}" /* raw_data of rows that only say how far the changes are told */

struct recorded {
    int64_t sequence;
    enum backend_op op;
    bool is_lease_only;
    char table[LIMIT_TABLE_NAME + 1], id[40];
    char new_raw[RECORDER_RAW], old_raw[RECORDER_RAW], new_status[24], old_status[24];
    char work_id[40], work_table[64], work_source[LIMIT_TABLE_NAME + 1];
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

    if (any && any->raw_data && strcmp(any->raw_data, DRAIN) == 0)
        return;
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

/* ---- what has come so far; the events before are never changed ---- */

static inline size_t recorder_n(struct recorder *rec)
{
    size_t n;

    pthread_mutex_lock(&rec->lock);
    n = rec->n;
    pthread_mutex_unlock(&rec->lock);
    return n;
}

static inline int recorder_n_gaps(struct recorder *rec)
{
    int n;

    pthread_mutex_lock(&rec->lock);
    n = rec->n_gaps;
    pthread_mutex_unlock(&rec->lock);
    return n;
}

/* ---- what was changed before ---- */

struct drain {
    char id[UUID_SIZE];
    atomic_bool is_gone;
};

static inline void hear_drain(void *arg, const struct backend_event *event)
{
    struct drain *d = arg;

    if (event->op == BACKEND_DELETE && strcmp(event->old_row->id, d->id) == 0)
        atomic_store(&d->is_gone, true);
}

static inline bool is_drained(void *arg)
{
    return atomic_load(&((struct drain *)arg)->is_gone);
}

/* Over the hosted service, changes are told some time after they are made, and the first gaps too: those of now are
 * told before the deletion of a row that is made now. */
static inline void recorder_drain(struct backend *b)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct drain d = { 0 };
    const struct backend_new_row in = { .table = TABLE, .id = d.id, .raw_data = DRAIN };
    struct backend_row row;
    struct err e = { 0 };

    uuid_v4(d.id);
    must(b->ops->subscribe(b, hear_drain, NULL, &d, &e), &e);
    must(backend_insert(b, &in, a, &row, &e), &e);
    must(backend_remove(b, TABLE, d.id, NULL, &e), &e);
    if (!wait_until(is_drained, &d))
        fail_msg("no change was told");
    b->ops->unsubscribe(b, &d);
}

static inline struct recorder *recorder_start(struct backend *b)
{
    struct recorder *rec = xcalloc(1, sizeof(*rec));
    struct err e = { 0 };

    hosted_settle(b);
    if (strcmp(b->ops->name, "hosted") == 0)
        recorder_drain(b);
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

    return recorder_n(rec) >= rec->n_wanted && recorder_n_gaps(rec) >= rec->n_gaps_wanted;
}

/* The events so far, as soon as there are n of them. */
static inline const struct recorded *recorder_wait(struct recorder *rec, size_t n)
{
    rec->n_wanted = n;
    if (!wait_until(has_wanted, rec))
        fail_msg("%zu events and %d gaps came, %zu events were awaited", recorder_n(rec), recorder_n_gaps(rec), n);
    return rec->events;
}

/* Until n gaps have come, whatever events did. */
static inline void recorder_wait_gaps(struct recorder *rec, int n)
{
    rec->n_wanted = 0;
    rec->n_gaps_wanted = n;
    if (!wait_until(has_wanted, rec))
        fail_msg("%d gaps came, %d were awaited", recorder_n_gaps(rec), n);
    rec->n_gaps_wanted = 0;
}
