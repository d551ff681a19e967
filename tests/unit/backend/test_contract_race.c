/* Several services on one place, several threads in each: any of them may win, but the number of winners is fixed. */
#include "race.h"
#include "../tsan.h"

enum { N_CLIENTS = 32, FEW_ROWS = 300, ROWS_OVER_HTTP = 60, N_LOOKED_AT = 60 };

/* The second fixture of a provider has a tenth. */
static int rows_of(const struct rig *rig)
{
    bool is_first = strcmp(rig->fixture->name, rig->fixture->provider) == 0;

    if (strcmp(rig->fixture->provider, "hosted") == 0)
        return ROWS_OVER_HTTP;
    return is_first ? TENTH_UNDER_TSAN(MOST_ROWS) : FEW_ROWS;
}

static void assert_each_has_one_winner(struct rig *rig)
{
    assert_int_equal(n_surprises, 0);
    for (int i = 0; i < n_rows; i++) {
        assert_int_equal(n_claims[i], 1);
        assert_int_equal(n_completions[i], 1);
    }
    for (int i = 0; i < n_rows; i += n_rows / N_LOOKED_AT) {
        assert_string_equal(rig_get(rig, ids[i]).status, "completed");
        if (rig_counts_attempts(rig))
            assert_int_equal(rig_get(rig, ids[i]).attempt, 1);
    }
}

/* Two services with 16 threads each, which meet at every row. */
static void thirty_two_clients_racing_for_the_rows_finish_each_exactly_once(void **state)
{
    struct rig *rig = *state;
    struct backend *second = rig_backend(rig);
    struct machine machines[N_CLIENTS];

    race_begin(rig, rows_of(rig));
    for (int t = 0; t < N_CLIENTS; t++) {
        machines[t] = (struct machine){ .backend = t % 2 ? second : rig->backend,
                                        .id = t % 2 ? "lin-b" : "lin-a",
                                        .from = t * 3 };
        pthread_create(&machines[t].thread, NULL, work, &machines[t]);
    }
    for (int t = 0; t < N_CLIENTS; t++)
        pthread_join(machines[t].thread, NULL);
    assert_each_has_one_winner(rig);
    backend_close(second);
}

/* --- a stalled holder that comes back while another machine takes over --- */

struct taker {
    struct rig *rig;
    struct backend *backend;
    const char *id;
    struct backend_lease lease;
    int r;
};

static void *take_over(void *arg)
{
    struct taker *taker = arg;
    struct backend_claim claim = { TABLE, taker->id, "lin-b", STALE_MS, 3 };
    struct arena *a = arena_new();
    struct backend_row row;

    taker->r = backend_claim(taker->backend, &claim, a, &row, &taker->lease, NULL);
    taker->lease = (struct backend_lease){ TABLE, taker->id, "lin-b", taker->lease.attempt };
    arena_free(a);
    return NULL;
}

static void a_late_completion_and_a_take_over_never_both_succeed(void **state)
{
    struct rig *rig = *state;
    struct backend *second = rig_backend(rig);
    struct err e = { 0 };

    for (int i = 0; i < 30; i++) {
        const char *id = rig_insert(rig);
        struct backend_lease old = rig_claim(rig, id, "lin-a");
        struct taker taker = { .rig = rig, .backend = second, .id = id };
        pthread_t thread;
        int r;

        rig_make_stale(rig, id);
        pthread_create(&thread, NULL, take_over, &taker);
        r = backend_complete(rig->backend, &old, "{\"by\":\"a\"}", &e);
        pthread_join(thread, NULL);
        assert_true((r == 0) != (taker.r == 0));
        if (taker.r == 0)
            must(backend_complete(second, &taker.lease, "{\"by\":\"b\"}", &e), &e);
        assert_string_equal(rig_get(rig, id).result, r == 0 ? "{\"by\":\"a\"}" : "{\"by\":\"b\"}");
    }
    backend_close(second);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(thirty_two_clients_racing_for_the_rows_finish_each_exactly_once),
        TEST(a_late_completion_and_a_take_over_never_both_succeed),
    };

    return contract_run(tests, ARRAY_SIZE(tests));
}
