/* Custom Mode: claims through the app's lock, heartbeats, ends through its webhook. */
#include "custom_rig.h"

/* ---- the lock ---- */

static void a_claim_takes_the_lock_of_the_app(void **state)
{
    struct custom_rig *x = *state;
    const char *id = order_insert(x, "{\"note\":\"a\"}");
    struct backend_lease lease = machine_must_claim(&x->machines[0], id);
    struct backend_row row = machine_get(&x->machines[0], id);

    assert_int_equal(atomic_load(&x->app->n_locks), 1);
    assert_string_equal(order_text(x, id, "locked_by"), "m0");
    assert_string_equal(row.status, "claimed");
    assert_string_equal(row.app_id, APP_ID);
    assert_int_equal(row.attempt, lease.attempt);
    assert_string_equal(json_cstr(json_get(json_of(x, row.raw_data), "note")), "a");
}

static void a_short_success_is_a_lock(void **state)
{
    struct custom_rig *x = *state;
    const char *id = order_insert(x, "{}");

    atomic_store(&x->app->manner, APP_SHORT);
    machine_must_claim(&x->machines[0], id);
    assert_string_equal(order_text(x, id, "locked_by"), "m0");
}

static void the_service_sets_the_status_that_the_app_left(void **state)
{
    struct custom_rig *x = *state;
    const char *id = order_insert(x, "{}");

    atomic_store(&x->app->manner, APP_NAMES_ONLY);
    machine_must_claim(&x->machines[0], id);
    assert_string_equal(order_text(x, id, "status"), "claimed");
    assert_true(strlen(order_text(x, id, "locked_at")) > 0);
}

static void refused_to(struct machine *m, const char *id, int r_expected, const char *code)
{
    struct backend_lease lease;
    struct err e;
    int r = machine_claim(m, id, &lease, &e);

    if (r != r_expected || strcmp(e.code, code) != 0)
        fail_msg("%d %s %s, not %d %s", r, e.code, e.text, r_expected, code);
}

static void refused(struct custom_rig *x, const char *id, int r_expected, const char *code)
{
    refused_to(&x->machines[0], id, r_expected, code);
}

static void a_refusal_names_the_holder(void **state)
{
    struct custom_rig *x = *state;

    atomic_store(&x->app->manner, APP_REFUSES);
    refused(x, order_insert(x, "{}"), -EBUSY, "ALREADY_LOCKED");
}

static void the_table_decides_not_the_answer(void **state)
{
    struct custom_rig *x = *state;

    atomic_store(&x->app->manner, APP_LOCKS_OTHER);
    refused(x, order_insert(x, "{}"), -EBUSY, "ALREADY_LOCKED");
    atomic_store(&x->app->manner, APP_GIVES_NO_LOCK);
    refused(x, order_insert(x, "{}"), -EBUSY, "LOCK_NOT_KEPT");
}

static void a_lock_whose_answer_is_cut_is_found_in_the_table(void **state)
{
    struct custom_rig *x = *state;
    const char *id = order_insert(x, "{}");

    atomic_store(&x->app->manner, APP_CUTS_AFTER);
    machine_must_claim(&x->machines[0], id);
    assert_int_equal(atomic_load(&x->app->n_locks), 1);
}

/* The app had not locked: the row is read, and only then the app is spoken to again. */
static void a_lock_of_unknown_fate_is_not_repeated_blindly(void **state)
{
    struct custom_rig *x = *state;
    const char *id = order_insert(x, "{}");

    atomic_store(&x->app->manner, APP_CUTS_BEFORE);
    refused(x, id, -EIO, "LOCK_UNKNOWN");
    order_set(x, id, "{\"status\":\"claimed\",\"locked_by\":\"m0\",\"locked_at\":\"now\"}"); /* the request came late */
    machine_must_claim(&x->machines[0], id);
    assert_int_equal(atomic_load(&x->app->n_locks), 1);
}

/* Claims until the app is not asked; returns how often it was. On a machine that stands still a rest may be over before
 * the next claim, and the next rest is longer. */
static int claim_into_the_rest(struct machine *m, const char *id)
{
    struct backend_lease lease;
    int n_asked = 0, r = -EIO;
    struct err e;

    for (; r == -EIO; n_asked += r == -EIO)
        r = machine_claim(m, id, &lease, &e);
    assert_int_equal(r, -EHOSTUNREACH);
    assert_string_equal(e.code, "APP_UNREACHABLE");
    return n_asked;
}

static void an_app_that_did_not_answer_rests(void **state)
{
    struct custom_rig *x = *state;
    const char *first = order_insert(x, "{}"), *second = order_insert(x, "{}");
    struct machine hasty = { 0 };
    int n_asked;

    x->lock_ms = 1500;
    machine_open(x, &hasty, MACHINES);
    atomic_store(&x->app->manner, APP_MUTE);
    refused_to(&hasty, first, -EIO, "LOCK_UNKNOWN");
    n_asked = 1 + claim_into_the_rest(&hasty, second);
    assert_int_equal(atomic_load(&x->app->n_locks), n_asked);
    machine_close(&hasty);
}

static void an_app_that_does_not_run_is_unreachable(void **state)
{
    struct custom_rig *x = *state;
    const char *id = order_insert(x, "{}");

    atomic_store(&x->is_app_away, true);
    refused(x, id, -EHOSTUNREACH, "APP_UNREACHABLE");
    assert_string_equal(order_text(x, id, "status"), "pending");
}

static void rows_that_are_taken_or_finished_are_not_asked_for(void **state)
{
    struct custom_rig *x = *state;
    static const char *const states[] = { "completed", "claimed", "draft" };

    for (size_t i = 0; i < ARRAY_SIZE(states); i++) {
        const char *id =
            order_insert(x, arena_printf(x->arena, "{\"status\":\"%s\",\"locked_by\":\"other\"}", states[i]));

        refused(x, id, -EBUSY, strcmp(states[i], "claimed") == 0 ? "ALREADY_LOCKED" : "NOT_CLAIMABLE");
    }
    refused(x, "44444444-4444-4444-8444-444444444444", -ENOENT, "NOT_FOUND");
    refused(x, "no uuid", -ENOENT, "NOT_FOUND");
    assert_int_equal(atomic_load(&x->app->n_locks), 0);
}

static void keys_are_texts_of_any_kind(void **state)
{
    static const char *const names[] = { "it's \"quoted\"; --", "a,b.c(d)", "\xc3\xbc\xe2\x82\xac %_*", "null" };
    struct custom_rig *x = *state;

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        struct buf quoted;
        struct backend_lease lease;
        struct err e;

        buf_init(&quoted, 1000);
        json_quote(&quoted, slice_of(names[i]));
        statement(x, (struct query){ .kind = QUERY_INSERT,
                                     .table = "things",
                                     .rows = json_of(x, arena_printf(x->arena, "[{\"name\":%s}]", buf_str(&quoted))) });
        must(machine_claim_of(&x->machines[1], "things", names[i], &lease, &e), &e);
        assert_string_equal(lease.row_id, names[i]);
        must(backend_heartbeat(x->machines[1].backend, &lease, &e), &e);
        buf_clear(&quoted);
    }
}

static void insert_thing(struct custom_rig *x, const char *name)
{
    statement(x, (struct query){ .kind = QUERY_INSERT,
                                 .table = "things",
                                 .rows = json_of(x, arena_printf(x->arena, "[{\"name\":\"%s\"}]", name)) });
}

static void a_key_has_a_longest_length(void **state)
{
    struct custom_rig *x = *state;
    char name[LIMIT_CUSTOM_KEY + 2] = "";
    struct backend_lease lease;
    struct err e;

    memset(name, 'k', LIMIT_CUSTOM_KEY);
    insert_thing(x, name);
    must(machine_claim_of(&x->machines[0], "things", name, &lease, &e), &e);
    name[LIMIT_CUSTOM_KEY] = 'k';
    insert_thing(x, name);
    assert_int_equal(machine_claim_of(&x->machines[0], "things", name, &lease, &e), -ENOENT);
    assert_int_equal(atomic_load(&x->app->n_locks), 1);
}

/* Rows that this machine has failed do not hide an older one that it may take. */
static void failed_rows_hide_no_waiting_row(void **state)
{
    struct custom_rig *x = *state;
    struct machine *m = &x->machines[0];
    const struct backend_claim as = { ORDERS, NULL, "m0", STALE_MS, 3 };
    const char *old = order_insert(x, "{\"created_at\":\"2020-01-01T00:00:00Z\"}");
    struct backend_rows rows = { 0 };
    struct err e = { 0 };

    for (int i = 0; i < 3; i++) {
        struct backend_lease lease = machine_must_claim(m, order_insert(x, "{}"));

        order_set(x, lease.row_id, "{\"status\":\"failed\",\"locked_by\":null,\"locked_at\":null}");
    }
    must(m->backend->ops->claimable(m->backend, ORDERS, &as, NULL, 1, x->arena, &rows, &e), &e);
    assert_int_equal(rows.n, 1);
    assert_string_equal(rows.items[0].id, old);
}

/* ---- a race ---- */

struct racer {
    struct machine *machine;
    const char **ids;
    size_t n, n_won;
};

static void *race(void *arg)
{
    struct racer *r = arg;

    for (size_t i = 0; i < r->n; i++) {
        AUTO(arena_freep) struct arena *a = arena_new();
        const struct backend_claim claim = { ORDERS, r->ids[i], r->machine->name, STALE_MS, 3 };
        struct backend_lease lease;
        struct backend_row row;
        struct err e = { 0 };

        r->n_won += backend_claim(r->machine->backend, &claim, a, &row, &lease, &e) == 0;
    }
    return NULL;
}

static void each_row_is_won_by_one_machine(void **state)
{
    enum { N_ROWS = 30 };
    struct custom_rig *x = *state;
    struct racer racers[MACHINES];
    pthread_t threads[MACHINES];
    const char *ids[N_ROWS];
    size_t n_won = 0;

    for (size_t i = 0; i < N_ROWS; i++)
        ids[i] = order_insert(x, "{}");
    for (size_t i = 0; i < MACHINES; i++) {
        racers[i] = (struct racer){ .machine = &x->machines[i], .ids = ids, .n = N_ROWS };
        assert_int_equal(pthread_create(&threads[i], NULL, race, &racers[i]), 0);
    }
    for (size_t i = 0; i < MACHINES; i++) {
        pthread_join(threads[i], NULL);
        n_won += racers[i].n_won;
    }
    assert_int_equal(n_won, N_ROWS);
}

/* ---- the lease ---- */

static void a_heartbeat_renews_only_a_lease_in_force(void **state)
{
    struct custom_rig *x = *state;
    const char *id = order_insert(x, "{}");
    struct backend_lease lease = machine_must_claim(&x->machines[0], id);
    struct backend *b = x->machines[0].backend;
    struct err e = { 0 };
    int64_t before_ms = 0, after_ms = 0;

    order_set(x, id,
              arena_printf(x->arena, "{\"locked_at\":\"%s\",\"status\":\"processing\"}",
                           time_at(x->arena, lease.attempt + 1)));
    assert_int_equal(clock_parse(slice_of(order_text(x, id, "locked_at")), &before_ms), 0);
    must(backend_heartbeat(b, &lease, &e), &e);
    assert_int_equal(clock_parse(slice_of(order_text(x, id, "locked_at")), &after_ms), 0);
    assert_true(after_ms >= before_ms);
    order_set(x, id, "{\"locked_by\":\"m1\"}");
    assert_int_equal(backend_heartbeat(b, &lease, &e), -ESTALE);
    order_set(x, id,
              arena_printf(x->arena, "{\"locked_by\":\"m0\",\"locked_at\":\"%s\"}",
                           time_at(x->arena, lease.attempt - 1)));
    assert_int_equal(backend_heartbeat(b, &lease, &e), -ESTALE);
    order_set(x, id, "{\"status\":\"completed\"}");
    assert_int_equal(backend_heartbeat(b, &lease, &e), -ESTALE);
}

static void a_released_row_waits_again(void **state)
{
    struct custom_rig *x = *state;
    const char *id = order_insert(x, "{}");
    struct backend_lease lease = machine_must_claim(&x->machines[0], id);
    struct err e = { 0 };

    must(backend_release(x->machines[0].backend, &lease, &e), &e);
    assert_string_equal(order_text(x, id, "status"), "pending");
    assert_string_equal(order_text(x, id, "locked_by"), "");
    assert_int_equal(backend_release(x->machines[0].backend, &lease, &e), -ESTALE);
    machine_must_claim(&x->machines[1], id);
}

/* ---- ends ---- */

static bool is_completed(void *arg)
{
    struct custom_rig *x = arg;

    return atomic_load(&x->app->n_webhooks) > 0;
}

static void a_result_reaches_the_app(void **state)
{
    struct custom_rig *x = *state;
    struct machine *m = &x->machines[0];
    const char *id = order_insert(x, "{}");
    struct backend_lease lease = machine_must_claim(m, id);
    struct err e = { 0 };

    atomic_store(&x->app->n_refused_webhooks, 2);
    must(custom_start(m->backend, &e), &e);
    must(backend_complete(m->backend, &lease, "{\"answer\":42}", &e), &e);
    assert_true(wait_until(is_completed, x));
    assert_string_equal(order_text(x, id, "status"), "completed");
    assert_non_null(strstr(x->app->last_webhook, "\"answer\":42"));
    assert_non_null(strstr(x->app->last_webhook, "\"action\":\"complete\""));
}

/* Until the app has taken it, the stored end counts here, and the lease stays. */
static void a_stored_end_is_the_rows_end_here(void **state)
{
    struct custom_rig *x = *state;
    struct machine *m = &x->machines[0];
    const char *id = order_insert(x, "{}");
    struct backend_lease lease = machine_must_claim(m, id);
    struct backend_rows rows = { 0 };
    struct err e = { 0 };
    size_t n = 9;

    must(backend_fail(m->backend, &lease, "no paper", &e), &e);
    must(backend_fail(m->backend, &lease, "no paper", &e), &e);
    assert_int_equal(backend_complete(m->backend, &lease, "{}", &e), -ESTALE);
    assert_string_equal(machine_get(m, id).status, "failed");
    assert_string_equal(order_text(x, id, "status"), "claimed");
    order_set(x, id, "{\"locked_at\":\"2020-01-01T00:00:00Z\"}");
    must(m->backend->ops->recover_stale(m->backend, ORDERS, STALE_MS, x->arena, &rows, &e), &e);
    assert_int_equal(rows.n, 0);
    must(m->backend->ops->release_machine(m->backend, ORDERS, "m0", &n, &e), &e);
    assert_int_equal(n, 0);
    assert_int_equal(m->backend->ops->replay(m->backend, ORDERS, id, &e), -EBUSY);
    refused(x, id, -EPERM, "ALREADY_ATTEMPTED");
}

static void an_end_without_the_lease_is_refused(void **state)
{
    struct custom_rig *x = *state;
    const char *id = order_insert(x, "{}");
    struct backend_lease lease = machine_must_claim(&x->machines[0], id);
    struct err e = { 0 };

    order_set(x, id, "{\"status\":\"pending\",\"locked_by\":null,\"locked_at\":null}");
    assert_int_equal(backend_complete(x->machines[0].backend, &lease, "{}", &e), -ESTALE);
    assert_int_equal(backend_fail(x->machines[0].backend, &lease, "x", &e), -ESTALE);
}

static void a_machine_that_failed_leaves_the_row_to_others(void **state)
{
    struct custom_rig *x = *state;
    struct machine *m = &x->machines[0];
    const char *id = order_insert(x, "{}");
    struct backend_lease lease = machine_must_claim(m, id);
    struct err e = { 0 };

    must(custom_start(m->backend, &e), &e);
    must(backend_fail(m->backend, &lease, "no paper", &e), &e);
    assert_true(wait_until(is_completed, x));
    assert_string_equal(order_text(x, id, "status"), "failed");
    refused(x, id, -EPERM, "ALREADY_ATTEMPTED");
    machine_must_claim(&x->machines[1], id);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CUSTOM_TEST(a_claim_takes_the_lock_of_the_app),
        CUSTOM_TEST(a_short_success_is_a_lock),
        CUSTOM_TEST(the_service_sets_the_status_that_the_app_left),
        CUSTOM_TEST(a_refusal_names_the_holder),
        CUSTOM_TEST(the_table_decides_not_the_answer),
        CUSTOM_TEST(a_lock_whose_answer_is_cut_is_found_in_the_table),
        CUSTOM_TEST(a_lock_of_unknown_fate_is_not_repeated_blindly),
        CUSTOM_TEST(an_app_that_did_not_answer_rests),
        CUSTOM_TEST(an_app_that_does_not_run_is_unreachable),
        CUSTOM_TEST(rows_that_are_taken_or_finished_are_not_asked_for),
        CUSTOM_TEST(keys_are_texts_of_any_kind),
        CUSTOM_TEST(a_key_has_a_longest_length),
        CUSTOM_TEST(failed_rows_hide_no_waiting_row),
        CUSTOM_TEST(each_row_is_won_by_one_machine),
        CUSTOM_TEST(a_heartbeat_renews_only_a_lease_in_force),
        CUSTOM_TEST(a_released_row_waits_again),
        CUSTOM_TEST(a_result_reaches_the_app),
        CUSTOM_TEST(a_stored_end_is_the_rows_end_here),
        CUSTOM_TEST(an_end_without_the_lease_is_refused),
        CUSTOM_TEST(a_machine_that_failed_leaves_the_row_to_others),
    };

    return custom_run(tests, ARRAY_SIZE(tests));
}
