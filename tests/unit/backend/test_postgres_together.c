/* Claims and completions of several threads in one statement: each caller gets what is his own. */
#include "rig_postgres.h"

enum { N_CALLS = 10 }; /* BATCH_FEW of them begin at once; the others become groups */

struct one {
    struct rig *rig;
    const char *id, *result;
    struct backend_lease lease;
    struct backend_row row;
    struct arena *arena;
    struct err e;
    int r;
    pthread_t thread;
};

static void *claim_one(void *arg)
{
    struct one *one = arg;
    const struct backend_claim claim = { TABLE, one->id, "lin-a", STALE_MS, 3 };

    one->r = backend_claim(one->rig->backend, &claim, one->arena, &one->row, &one->lease, &one->e);
    return NULL;
}

static void *complete_one(void *arg)
{
    struct one *one = arg;

    one->r = backend_complete(one->rig->backend, &one->lease, one->result, &one->e);
    return NULL;
}

/* --- at the same time --- */

static PGconn *begin(struct rig *rig, const char *sql)
{
    PGconn *conn = PQconnectdb(rig_place(rig)->url);

    PQclear(PQexec(conn, "BEGIN"));
    PQclear(PQexec(conn, sql));
    return conn;
}

static void end(PGconn *conn)
{
    PQclear(PQexec(conn, "COMMIT"));
    PQfinish(conn);
}

static bool is_one_statement(void *arg)
{
    PGconn *conn = PQconnectdb(rig_place(arg)->url);
    PGresult *result = PQexec(conn, "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
                                    " AND query LIKE '%UPDATE%SKIP LOCKED%'");
    bool is_so = PQntuples(result) > 0;

    PQclear(result);
    PQfinish(conn);
    return is_so;
}

static void start(struct one *calls, void *(*fn)(void *arg))
{
    for (int i = 0; i < N_CALLS; i++) {
        calls[i].e = (struct err){ 0 };
        pthread_create(&calls[i].thread, NULL, fn, &calls[i]);
    }
}

static void join(struct one *calls)
{
    for (int i = 0; i < N_CALLS; i++)
        pthread_join(calls[i].thread, NULL);
}

/* The lock of the table lets the first statement wait, so that the calls after it become one. */
static void run_together(struct rig *rig, struct one *calls, void *(*fn)(void *arg))
{
    PGconn *conn = begin(rig, "LOCK TABLE svc_activities IN EXCLUSIVE MODE");

    start(calls, fn);
    if (!wait_until(is_one_statement, rig))
        fail_msg("the calls did not become one statement");
    end(conn);
    join(calls);
}

static void make_calls(struct rig *rig, struct one *calls)
{
    for (int i = 0; i < N_CALLS; i++)
        calls[i] = (struct one){ .rig = rig, .id = rig_insert(rig), .arena = arena_new() };
}

static void free_calls(struct one *calls)
{
    for (int i = 0; i < N_CALLS; i++)
        arena_free(calls[i].arena);
}

/* --- tests --- */

static void each_of_several_claims_gets_its_row_and_each_completion_stores_its_result(void **state)
{
    static const char *const results[N_CALLS] = { "{\"a\":\"\\\"quoted\\\", {braced}\"}",
                                                  "{\"b\":\"back\\\\slash\"}",
                                                  NULL,
                                                  "{\"d\":\"\xc3\xa4\xe2\x82\xac\"}",
                                                  "{}",
                                                  "{\"f\":\"NULL\"}" };
    struct rig *rig = *state;
    struct one calls[N_CALLS];

    make_calls(rig, calls);
    run_together(rig, calls, claim_one);
    for (int i = 0; i < N_CALLS; i++) {
        must(calls[i].r, &calls[i].e);
        assert_string_equal(calls[i].row.id, calls[i].id);
        assert_string_equal(calls[i].row.status, "claimed");
        assert_int_equal(calls[i].lease.attempt, 1);
        calls[i].result = results[i];
    }
    run_together(rig, calls, complete_one);
    for (int i = 0; i < N_CALLS; i++) {
        const struct backend_row row = rig_get(rig, calls[i].id);

        must(calls[i].r, &calls[i].e);
        assert_string_equal(row.status, "completed");
        assert_true((row.result == NULL) == (results[i] == NULL));
        if (results[i])
            assert_string_equal(row.result, results[i]);
    }
    free_calls(calls);
}

/* The outbox is written because the backend's own connection reads it. */
static void what_the_outbox_refuses_keeps_no_claim_and_no_completion_from_its_row(void **state)
{
    struct rig *rig = *state;
    struct one calls[N_CALLS];

    rig_sql(rig, "ALTER TABLE svc_outbox ADD CONSTRAINT broken CHECK (op <> 2)");
    make_calls(rig, calls);
    run_together(rig, calls, claim_one);
    for (int i = 0; i < N_CALLS; i++)
        must(calls[i].r, &calls[i].e);
    run_together(rig, calls, complete_one);
    for (int i = 0; i < N_CALLS; i++) {
        must(calls[i].r, &calls[i].e);
        assert_string_equal(rig_get(rig, calls[i].id).status, "completed");
    }
    assert_string_equal(rig_value(rig, "SELECT sum(attempt) FROM svc_activities"), "10");
    assert_string_equal(rig_value(rig, "SELECT count(*) > 0 FROM svc_outbox WHERE is_cut"), "t");
    free_calls(calls);
}

static void of_claims_for_one_row_in_one_statement_one_wins_and_the_others_are_told_why(void **state)
{
    struct rig *rig = *state;
    struct one calls[N_CALLS];
    int n_won = 0;

    make_calls(rig, calls);
    for (int i = 1; i < N_CALLS; i++)
        calls[i].id = calls[0].id;
    run_together(rig, calls, claim_one);
    for (int i = 0; i < N_CALLS; i++) {
        n_won += calls[i].r == 0;
        if (calls[i].r < 0)
            assert_string_equal(calls[i].e.code, "ALREADY_LOCKED");
    }
    assert_int_equal(n_won, 1);
    assert_int_equal(rig_get(rig, calls[0].id).attempt, 1);
    free_calls(calls);
}

static void a_lost_lease_in_a_statement_with_others_is_refused_alone(void **state)
{
    struct rig *rig = *state;
    struct one calls[N_CALLS];

    make_calls(rig, calls);
    run_together(rig, calls, claim_one);
    rig_sql(rig, arena_printf(rig->arena, "UPDATE svc_activities SET attempt = 7 WHERE id = '%s'", calls[2].id));
    run_together(rig, calls, complete_one);
    for (int i = 0; i < N_CALLS; i++)
        assert_int_equal(calls[i].r, i == 2 ? -ESTALE : 0);
    assert_string_equal(rig_get(rig, calls[2].id).status, "claimed");
    free_calls(calls);
}

static void each_of_several_refused_claims_is_told_its_own_reason(void **state)
{
    static const char *const changes[N_CALLS] = {
        "locked_by = 'lin-b', locked_at = clock_timestamp(), status = 'claimed'",
        "status = 'completed'",
        "attempted_by = '{lin-x,lin-y,lin-z}'",
        "attempted_by = '{lin-a}'",
        NULL,
        "locked_by = 'lin-b', locked_at = clock_timestamp() - interval '1 day', status = 'processing'",
        "attempted_by = '{lin-a}'",
        "status = 'completed'",
        "status = 'failed'",
        "attempted_by = '{lin-x,lin-y,lin-z}'",
    };
    static const char *const codes[N_CALLS] = { "ALREADY_LOCKED",    "NOT_CLAIMABLE", "QUARANTINED",
                                                "ALREADY_ATTEMPTED", "NOT_FOUND",     NULL,
                                                "ALREADY_ATTEMPTED", "NOT_CLAIMABLE", NULL,
                                                "QUARANTINED" };
    struct rig *rig = *state;
    struct one calls[N_CALLS];

    make_calls(rig, calls);
    for (int i = 0; i < N_CALLS; i++)
        rig_sql(rig, changes[i] ? arena_printf(rig->arena, "UPDATE svc_activities SET %s WHERE id = '%s'", changes[i],
                                               calls[i].id)
                                : arena_printf(rig->arena, "DELETE FROM svc_activities WHERE id = '%s'", calls[i].id));
    run_together(rig, calls, claim_one);
    for (int i = 0; i < N_CALLS; i++) {
        assert_true(codes[i] ? calls[i].r < 0 : calls[i].r == 0);
        if (codes[i])
            assert_string_equal(calls[i].e.code, codes[i]);
    }
    assert_non_null(strstr(calls[0].e.text, "lin-b"));
    free_calls(calls);
}

static bool are_others_claimed(void *arg)
{
    return strcmp(rig_value(arg, "SELECT count(*) FROM svc_activities WHERE status = 'claimed'"), "9") == 0;
}

static void a_row_that_another_program_has_locked_holds_up_its_own_claim_only(void **state)
{
    struct rig *rig = *state;
    struct one calls[N_CALLS];
    PGconn *conn;

    make_calls(rig, calls);
    conn = begin(rig, arena_printf(rig->arena, "SELECT 1 FROM svc_activities WHERE id = '%s' FOR UPDATE", calls[0].id));
    start(calls, claim_one);
    if (!wait_until(are_others_claimed, rig))
        fail_msg("the claims of other rows wait");
    end(conn);
    join(calls);
    for (int i = 0; i < N_CALLS; i++)
        must(calls[i].r, &calls[i].e);
    free_calls(calls);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        POSTGRES_TEST(each_of_several_claims_gets_its_row_and_each_completion_stores_its_result),
        POSTGRES_TEST(what_the_outbox_refuses_keeps_no_claim_and_no_completion_from_its_row),
        POSTGRES_TEST(of_claims_for_one_row_in_one_statement_one_wins_and_the_others_are_told_why),
        POSTGRES_TEST(a_lost_lease_in_a_statement_with_others_is_refused_alone),
        POSTGRES_TEST(each_of_several_refused_claims_is_told_its_own_reason),
        POSTGRES_TEST(a_row_that_another_program_has_locked_holds_up_its_own_claim_only),
    };

    return postgres_run_tests(tests, ARRAY_SIZE(tests));
}
