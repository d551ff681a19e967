#include "race.h"
#include "rig.h"
#include <signal.h>
#include <sys/wait.h>

/* Other processes: forked while no backend is open here, so there are no threads. */

static int open_nothing(void **state)
{
    *state = rig_make(*state);
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

/* The exit status is the number of rows that this process finished. */
static void finish_rows(struct rig *rig, int number)
{
    struct machine m = { .backend = rig->backend, .id = number ? "lin-b" : "lin-a", .from = number * 3 };
    int n = 0;

    work(&m);
    for (int i = 0; i < n_rows; i++)
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
    race_begin(rig, 200);
    rig->backend = backend_close(rig->backend);
    for (int i = 0; i < 2; i++)
        pids[i] = start(rig, finish_rows, i);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(waitpid(pids[i], &status[i], 0), pids[i]);
        assert_true(WIFEXITED(status[i]));
        n += WEXITSTATUS(status[i]);
    }
    assert_int_equal(n, n_rows);
    assert_int_equal(rig_number(rig, "SELECT count(*) FROM " TABLE " WHERE status = 'completed' AND attempt = 1"),
                     n_rows);
}

#define ALONE(name) cmocka_unit_test_setup_teardown(name, open_nothing, rig_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ALONE(an_acknowledged_completion_survives_sigkill),
        ALONE(two_processes_racing_for_200_rows_finish_each_exactly_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
