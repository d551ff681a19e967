/* The contract of backend.h as tests that take any provider: contract_run() runs each test once for each fixture. A
 * test knows the provider only as struct backend; what it needs beyond that, it does as another program (rig_write).
 *
 *     static void a_claim_locks_the_row(void **state)
 *     {
 *         struct rig *rig = *state;
 */
#pragma once

#include "fixtures.h"
#include "../wait.h"
#include "base/limits.h"

#include <pthread.h>
#include <time.h>

#ifndef ONLY_WITH_EVENTS
#define ONLY_WITH_EVENTS 0
#endif
#define TABLE "svc_activities"
#define DELETIONS "svc_deletions"
#define STALE_MS 300000
#define OPS(rig) ((rig)->backend->ops)
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_open, rig_close)

struct rig {
    const struct fixture *fixture;
    void *place;
    struct backend *backend;
    struct arena *arena;
};

/* Another service on the same place. */
static inline struct backend *rig_backend(struct rig *rig)
{
    return rig->fixture->open(rig->place);
}

/* A project may have no realtime part. */
static inline bool rig_has_events(const struct rig *rig)
{
    return rig->fixture->has_events && (strcmp(rig->fixture->provider, "hosted") != 0 || hosted_has_realtime());
}

/* The face of the embedded backend shows no attempts. */
static inline bool rig_counts_attempts(const struct rig *rig)
{
    return strcmp(rig->fixture->provider, "hosted") != 0 || !getenv("HEARTH_TEST_HOSTED_FILE");
}

/* Where no attempts are counted, a lease has the time of its claim in their place. */
static inline void assert_attempt(const struct rig *rig, int64_t attempt, int64_t expected)
{
    if (rig_counts_attempts(rig))
        assert_int_equal(attempt, expected);
}

static inline struct rig *rig_make(const struct fixture *f)
{
    struct rig *rig = xcalloc(1, sizeof(*rig));

    rig->fixture = f ? f : &fixtures[0];
    rig->place = rig->fixture->make();
    rig->arena = arena_new();
    return rig;
}

static inline int rig_open(void **state)
{
    struct rig *rig = rig_make(*state);

    rig->backend = rig_backend(rig);
    *state = rig;
    return 0;
}

static inline int rig_close(void **state)
{
    struct rig *rig = *state;

    backend_close(rig->backend);
    arena_free(rig->arena);
    rig->fixture->remove(rig->place);
    free(rig);
    return 0;
}

static inline int contract_run(const struct CMUnitTest *tests, size_t n)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct CMUnitTest *all = arena_array(a, n * ARRAY_SIZE(fixtures), sizeof(*all));

    const char *only = getenv("HEARTH_TEST_PROVIDER"), *one = getenv("HEARTH_TEST_FIXTURE");
    size_t n_all = 0;

    for (size_t i = 0; i < n * ARRAY_SIZE(fixtures); i++) {
        const struct fixture *f = &fixtures[i / n];

        if ((f->is_installed && !f->is_installed()) || (ONLY_WITH_EVENTS ? !f->has_events : f->is_only_events) ||
            (only && strcmp(only, f->provider) != 0) || (one && strcmp(one, f->name) != 0))
            continue;
        all[n_all] = tests[i % n];
        all[n_all].name = arena_printf(a, "%s: %s", f->name, tests[i % n].name);
        all[n_all++].initial_state = (void *)f;
    }
    return _cmocka_run_group_tests("contract", all, n_all, NULL, NULL);
}

/* --- rows --- */

static inline struct json_value rig_json(struct rig *rig, const char *text)
{
    struct json_value value = { 0 };
    struct err e = { 0 };

    must(json_parse(rig->arena, slice_of(text), &value, &e), &e);
    return value;
}

static inline void rig_write(struct rig *rig, struct foreign_write w)
{
    w.table = w.table ? w.table : TABLE;
    rig->fixture->write(rig->place, &w);
}

static inline void rig_set(struct rig *rig, const char *id, const char *column, const char *value)
{
    rig_write(rig, (struct foreign_write){ .op = BACKEND_UPDATE, .id = id, .column = column, .value = value });
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

static inline struct backend_rows rig_list(struct rig *rig, struct backend_query q)
{
    struct backend_rows rows = { 0 };
    struct err e = { 0 };

    q.table = q.table ? q.table : TABLE;
    must(backend_list(rig->backend, &q, rig->arena, &rows, &e), &e);
    return rows;
}

static inline void rig_remove(struct rig *rig, const char *id)
{
    struct err e = { 0 };

    must(backend_remove(rig->backend, TABLE, id, NULL, &e), &e);
}

static inline void rig_patch(struct rig *rig, const char *id, const struct backend_patch *patch)
{
    const struct backend_update_request request = { .table = TABLE, .id = id, .patch = patch };
    struct backend_row row = { 0 };
    struct err e = { 0 };

    must(backend_update(rig->backend, &request, rig->arena, &row, &e), &e);
}

/* --- leases --- */

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

static inline const char *time_at(struct arena *a, int64_t wall_ms)
{
    time_t seconds = (time_t)(wall_ms / 1000);
    char text[40];
    struct tm tm;

    gmtime_r(&seconds, &tm);
    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
    return arena_printf(a, "%s.%03dZ", text, (int)(wall_ms % 1000));
}

/* The row's lease was taken ten minutes ago. */
static inline void rig_make_stale(struct rig *rig, const char *id)
{
    rig_set(rig, id, "locked_at", time_at(rig->arena, clock_wall_ms() - 600000));
}
