/* A person cancels a task at the moment when it is taken up. */
#include "machine.h"

#include <sys/syscall.h>

/* The claims of a machine: while the gate is shut, a row that was claimed is not yet reported as claimed. */
static struct {
    const struct backend_ops *real;
    struct backend_ops ops;
    atomic_bool is_shut;
    atomic_int n_held;
} gate;

static bool is_open(void *arg)
{
    return !atomic_load(&gate.is_shut);
}

static bool holds_one(void *arg)
{
    return atomic_load(&gate.n_held) == 1;
}

static int gated_claim(struct backend *b, const struct backend_claim *c, struct arena *a, struct backend_row *ret,
                       struct backend_lease *ret_lease, struct err *e)
{
    int r = gate.real->claim(b, c, a, ret, ret_lease, e);

    if (r == 0 && !is_open(NULL)) {
        atomic_fetch_add(&gate.n_held, 1);
        assert_true(wait_until(is_open, NULL));
    }
    return r;
}

static struct machine *machine_with_gate(struct world *w)
{
    struct machine *m = machine_open(w, "lin-a", NULL);

    gate.real = m->backend->ops;
    gate.ops = *gate.real;
    gate.ops.claim = gated_claim;
    atomic_store(&gate.is_shut, false);
    atomic_store(&gate.n_held, 0);
    m->backend->ops = &gate.ops;
    machine_start(m);
    return m;
}

/* A thread that cancels or rejects a task. */
struct decision {
    struct machine *m;
    const char *uuid;
    int (*decide)(struct tasks *t, const char *uuid, const char *reason, struct err *e);
    pthread_t thread;
    atomic_int tid;
    atomic_bool is_done;
    int r;
    struct err e;
};

static void *decide(void *arg)
{
    struct decision *d = arg;

    atomic_store(&d->tid, (int)syscall(SYS_gettid));
    d->r = d->decide(d->m->tasks, d->uuid, "not needed", &d->e);
    atomic_store(&d->is_done, true);
    return NULL;
}

/* The kernel's word for the thread's state: S while it waits. */
static bool is_done_or_waits(void *arg)
{
    struct decision *d = arg;
    char path[64], state = 0;
    FILE *f;

    if (atomic_load(&d->is_done) || !atomic_load(&d->tid))
        return atomic_load(&d->is_done);
    snprintf(path, sizeof(path), "/proc/self/task/%d/stat", atomic_load(&d->tid));
    f = fopen(path, "re");
    if (!f)
        return atomic_load(&d->is_done);
    if (fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
        state = 0;
    fclose(f);
    return state == 'S';
}

/* Decides on the second row while the first one's place becomes free and the second one is being claimed. */
static void decide_during_claim(struct world *w, struct decision *d, const char **ret_row)
{
    struct machine *m = machine_with_gate(w);
    struct fake_run *first;

    insert(m, "{}");
    first = wait_run(w, 0);
    *ret_row = insert(m, "{}");
    d->m = m;
    d->uuid = wait_task(m, *ret_row, "pending").uuid;
    atomic_store(&gate.is_shut, true);
    fake_succeed(first, "{}");
    assert_true(wait_until(holds_one, NULL));
    assert_int_equal(pthread_create(&d->thread, NULL, decide, d), 0);
    assert_true(wait_until(is_done_or_waits, d));
    atomic_store(&gate.is_shut, false);
    assert_int_equal(pthread_join(d->thread, NULL), 0);
}

static void a_task_is_canceled_while_it_is_claimed(void **state)
{
    struct world *w = *state;
    struct decision d = { .decide = tasks_cancel };
    const char *id;

    decide_during_claim(w, &d, &id);
    if (d.r < 0)
        fail_msg("%s: %s", d.e.code, d.e.text);
    wait_released(wait_run(w, 1));
    assert_string_equal(wait_task(d.m, id, "canceled").error, "not needed");
    assert_string_equal(row_now(d.m, id).status, "canceled");
}

static void a_task_that_is_claimed_is_not_rejected(void **state)
{
    struct world *w = *state;
    struct decision d = { .decide = tasks_reject };
    const char *id;

    decide_during_claim(w, &d, &id);
    assert_int_equal(d.r, -EALREADY);
    assert_string_equal(d.e.code, "TASK_NOT_WAITING");
    fake_succeed(wait_run(w, 1), "{}");
    wait_task(d.m, id, "completed");
}

static void a_triggered_task_is_canceled_at_once(void **state)
{
    struct world *w = *state;
    struct machine *m = machine_new(w, "lin-a", NULL);
    const struct task_trigger in = { .raw_data = "{}", .agent_name = "sorter", .is_auto_run = true };

    for (size_t i = 0; i < 50; i++) {
        struct task_ids ids;
        struct err e = { 0 };

        assert_int_equal(tasks_trigger(m->tasks, &in, &ids, NULL), 0);
        if (tasks_cancel(m->tasks, ids.task_uuid, "not needed", &e) < 0)
            fail_msg("round %zu: %s: %s", i, e.code, e.text);
        assert_string_equal(wait_task_uuid(m, ids.task_uuid, "canceled").error, "not needed");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(a_task_is_canceled_while_it_is_claimed),
        WORLD_TEST(a_task_that_is_claimed_is_not_rejected),
        WORLD_TEST(a_triggered_task_is_canceled_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
