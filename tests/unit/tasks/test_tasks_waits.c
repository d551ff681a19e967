#include "machine.h"

struct dispatch_wait {
    struct machine *m;
    const char *row_id, *status;
};

static bool has_dispatch(void *arg)
{
    struct dispatch_wait *wait = arg;
    struct task_row task;

    if (store_tasks_get_by_row(wait->m->store, wait->m->world->arena, TABLE, wait->row_id, &task, NULL) < 0)
        return false;
    return strcmp(dispatch_of(wait->m, &task), wait->status) == 0;
}

static void wait_dispatch(struct machine *m, const char *row_id, const char *status)
{
    struct dispatch_wait wait = { m, row_id, status };

    if (!wait_until(has_dispatch, &wait))
        fail_msg("the calendar does not say %s", status);
}

static void set_waits(struct fake_run *run, bool waits)
{
    atomic_store(&run->waits, waits);
    tasks_waits_changed(run->machine->tasks);
}

static bool is_renewed(void *arg)
{
    struct dispatch_wait *wait = arg; /* status: the time when the row was locked */

    return strcmp(row_now(wait->m, wait->row_id).locked_at, wait->status) > 0;
}

static void wait_lease_after(struct machine *m, const char *row_id, const char *locked_at)
{
    struct dispatch_wait wait = { m, row_id, locked_at };

    assert_true(wait_until(is_renewed, &wait));
}

static void the_calendar_says_that_a_run_waits_and_goes_on(void **state)
{
    struct world *w = *state;
    struct machine *m = machine_new(w, "lin-a", NULL);
    const char *id = insert(m, "{}");
    struct fake_run *run = wait_run(w, 0);

    wait_dispatch(m, id, "running");
    set_waits(run, true);
    wait_dispatch(m, id, "waiting");
    assert_string_equal(wait_task(m, id, "claimed").status, "claimed");
    assert_string_equal(row_now(m, id).status, "claimed");
    set_waits(run, false);
    wait_dispatch(m, id, "running");
    set_waits(run, true);
    wait_dispatch(m, id, "waiting");
    fake_succeed(run, "{}");
    wait_released(run);
    wait_dispatch(m, id, "completed");
    set_waits(run, true);
    wait_dispatch(m, id, "completed");
}

static void a_run_that_waits_keeps_its_place_and_its_lease(void **state)
{
    static const char *const flags[] = { "tasks.heartbeat_s=1", "tasks.stale_after_s=4", "tasks.sweep_s=1", NULL };
    struct world *w = *state;
    struct machine *m = machine_new(w, "lin-a", flags);
    const char *id = insert(m, "{}"), *locked_at, *second;
    struct fake_run *run = wait_run(w, 0);

    set_waits(run, true);
    wait_dispatch(m, id, "waiting");
    locked_at = row_now(m, id).locked_at;
    second = insert(m, "{}");
    wait_task(m, second, "pending");
    wait_lease_after(m, id, locked_at);
    assert_int_equal(world_n_runs(w), 1);
    assert_string_equal(row_now(m, id).status, "claimed");
    fake_succeed(run, "{}");
    fake_succeed(wait_run(w, 1), "{}");
    wait_task(m, second, "completed");
}

static void a_run_may_wait_from_its_start(void **state)
{
    struct world *w = *state;
    struct machine *m = machine_open(w, "lin-a", NULL);
    const char *id;

    atomic_store(&m->waits_in_start, true);
    machine_start(m);
    id = insert(m, "{}");
    wait_dispatch(m, id, "waiting");
    fake_succeed(wait_run(w, 0), "{}");
    wait_dispatch(m, id, "completed");
}

static void a_cancelled_run_no_longer_waits(void **state)
{
    struct world *w = *state;
    struct machine *m = machine_new(w, "lin-a", NULL);
    const char *id = insert(m, "{}");
    struct fake_run *run = wait_run(w, 0);

    set_waits(run, true);
    wait_dispatch(m, id, "waiting");
    assert_int_equal(tasks_cancel(m->tasks, run->task_uuid, "not needed", NULL), 0);
    wait_released(run);
    wait_dispatch(m, id, "canceled");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_calendar_says_that_a_run_waits_and_goes_on, world_set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(a_run_that_waits_keeps_its_place_and_its_lease, world_set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(a_run_may_wait_from_its_start, world_set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(a_cancelled_run_no_longer_waits, world_set_up, world_tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
