#include "rig.h"
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>

/* Several services on one file, several threads in each: who wins is open, how many win is not. */

enum { N_ROWS = 200, N_THREADS = 4 };

static const char *ids[N_ROWS];
static atomic_int n_claims[N_ROWS], n_completions[N_ROWS], n_surprises;

struct machine {
    struct backend *backend;
    const char *id;
    int from;                           /* each thread starts elsewhere, so that they meet everywhere */
    pthread_t thread;
};

static void count_surprise(const char *what, int r, const struct err *e)
{
    atomic_fetch_add(&n_surprises, 1);
    fprintf(stderr, "%s: %d %s %s\n", what, r, e->code, e->text);
}

static void try_row(struct machine *m, int i)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct backend_claim claim = { TABLE, ids[i], m->id, STALE_MS, 3 };
    struct backend_lease lease;
    struct backend_row row;
    struct err e = { 0 };
    int r = backend_claim(m->backend, &claim, a, &row, &lease, &e);

    if (r == -EBUSY && strncmp(e.code, "STORE_", 6) != 0)
        return;
    if (r < 0) {
        count_surprise("claim", r, &e);
        return;
    }
    atomic_fetch_add(&n_claims[i], 1);
    r = backend_complete(m->backend, &lease, "{}", &e);
    if (r < 0)
        count_surprise("complete", r, &e);
    else
        atomic_fetch_add(&n_completions[i], 1);
}

static void *work(void *arg)
{
    struct machine *m = arg;

    for (int i = 0; i < N_ROWS; i++)
        try_row(m, (i + m->from) % N_ROWS);
    return NULL;
}

static void two_services_racing_for_200_rows_finish_each_exactly_once(void **state)
{
    struct rig *rig = *state;
    struct backend *second = rig_backend(rig);
    struct machine machines[2 * N_THREADS];

    for (int i = 0; i < N_ROWS; i++)
        ids[i] = rig_insert(rig);
    for (int t = 0; t < 2 * N_THREADS; t++) {
        machines[t] = (struct machine){ .backend = t % 2 ? second : rig->backend,
                                        .id = t % 2 ? "lin-b" : "lin-a",
                                        .from = t * 3 };
        pthread_create(&machines[t].thread, NULL, work, &machines[t]);
    }
    for (int t = 0; t < 2 * N_THREADS; t++)
        pthread_join(machines[t].thread, NULL);
    assert_int_equal(n_surprises, 0);
    for (int i = 0; i < N_ROWS; i++) {
        assert_int_equal(n_claims[i], 1);
        assert_int_equal(n_completions[i], 1);
    }
    assert_int_equal(rig_number(rig, "SELECT count(*) FROM " TABLE " WHERE status = 'completed' AND attempt = 1"),
                     N_ROWS);
    backend_close(second);
}

/* --- a stalled holder that comes back while another machine takes over --- */

struct taker { struct rig *rig; struct backend *backend; const char *id; struct backend_lease lease; int r; };

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

/* --- other processes: forked while no backend is open here, so without threads --- */

static int open_nothing(void **state)
{
    struct rig *rig = xcalloc(1, sizeof(*rig));

    rig->folder = folder_make();
    rig->arena = arena_new();
    *state = rig;
    return 0;
}

static pid_t start(struct rig *rig, void (*fn)(struct rig *rig, int number), int number)
{
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        rig->backend = rig_backend(rig);
        fn(rig, number);
    }
    return pid;
}

static void complete_one_and_die(struct rig *rig, int number)
{
    struct backend_lease lease = rig_claim(rig, rig_insert(rig), "lin-a");
    struct err e = { 0 };

    must(backend_complete(rig->backend, &lease, "{\"ok\":1}", &e), &e);
    kill(getpid(), SIGKILL);
}

static void an_acknowledged_completion_survives_sigkill(void **state)
{
    struct rig *rig = *state;
    int status;

    assert_true(waitpid(start(rig, complete_one_and_die, 0), &status, 0) > 0);
    assert_true(WIFSIGNALED(status));
    rig->backend = rig_backend(rig);
    assert_int_equal(
        rig_number(rig, "SELECT count(*) FROM " TABLE " WHERE status = 'completed' AND result = '{\"ok\":1}'"), 1);
    assert_int_equal(rig_number(rig, "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check = 'ok'"), 1);
}

/* Ends with the number of rows this process finished. */
static void finish_rows(struct rig *rig, int number)
{
    struct machine m = { .backend = rig->backend, .id = number ? "lin-b" : "lin-a", .from = number * 3 };
    int n = 0;

    work(&m);
    for (int i = 0; i < N_ROWS; i++)
        n += n_completions[i];
    backend_close(rig->backend);
    _exit(n_surprises ? 255 : n);
}

static void two_processes_racing_for_200_rows_finish_each_exactly_once(void **state)
{
    struct rig *rig = *state;
    int status[2], n = 0;
    pid_t pids[2];

    rig->backend = rig_backend(rig);
    for (int i = 0; i < N_ROWS; i++)
        ids[i] = rig_insert(rig);
    rig->backend = backend_close(rig->backend);
    memset(n_claims, 0, sizeof(n_claims));
    memset(n_completions, 0, sizeof(n_completions));
    for (int i = 0; i < 2; i++)
        pids[i] = start(rig, finish_rows, i);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(waitpid(pids[i], &status[i], 0), pids[i]);
        assert_true(WIFEXITED(status[i]));
        n += WEXITSTATUS(status[i]);
    }
    assert_int_equal(n, N_ROWS);
    assert_int_equal(rig_number(rig, "SELECT count(*) FROM " TABLE " WHERE status = 'completed' AND attempt = 1"),
                     N_ROWS);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_open, rig_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(two_services_racing_for_200_rows_finish_each_exactly_once),
        TEST(a_late_completion_and_a_take_over_never_both_succeed),
        cmocka_unit_test_setup_teardown(an_acknowledged_completion_survives_sigkill, open_nothing, rig_close),
        cmocka_unit_test_setup_teardown(two_processes_racing_for_200_rows_finish_each_exactly_once, open_nothing,
                                        rig_close),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
