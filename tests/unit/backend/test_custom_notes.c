/* Custom Mode: a claim while another thread reads the row. */
#include "custom_rig.h"
#include "store/tables/tasks.h"

int __real_store_tasks_get_by_row(struct store *s, struct arena *a, const char *table, const char *row_id,
                                  struct task_row *ret, struct err *e);
int __wrap_store_tasks_get_by_row(struct store *s, struct arena *a, const char *table, const char *row_id,
                                  struct task_row *ret, struct err *e);

/* Claims the row, once, between the look of a reader at what is known of the row and the note that the reader puts. */
static struct {
    struct machine *machine; /* NULL: does nothing */
    const char *id;
    struct backend_lease lease;
} claimer;

int __wrap_store_tasks_get_by_row(struct store *s, struct arena *a, const char *table, const char *row_id,
                                  struct task_row *ret, struct err *e)
{
    struct machine *m = claimer.machine;

    claimer.machine = NULL;
    if (m)
        claimer.lease = machine_must_claim(m, claimer.id);
    return __real_store_tasks_get_by_row(s, a, table, row_id, ret, e);
}

/* The app has locked the row, and the answer was lost. */
static const char *locked_row(struct custom_rig *x)
{
    const char *id = order_insert(x, "{}");
    struct backend_lease lease;
    struct err e;

    atomic_store(&x->app->manner, APP_CUTS_BEFORE);
    assert_int_equal(machine_claim(&x->machines[0], id, &lease, &e), -EIO);
    order_set(x, id, "{\"status\":\"claimed\",\"locked_by\":\"m0\",\"locked_at\":\"2020-01-01T00:00:00Z\"}");
    return id;
}

static void a_reader_does_not_replace_the_attempt_of_a_claim_made_meanwhile(void **state)
{
    struct custom_rig *x = *state;
    struct machine *m = &x->machines[0];
    struct backend_row row;

    claimer.id = locked_row(x);
    claimer.machine = m;
    row = machine_get(m, claimer.id);
    assert_null(claimer.machine);
    assert_int_equal(row.attempt, claimer.lease.attempt);
    assert_int_equal(machine_get(m, claimer.id).attempt, claimer.lease.attempt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CUSTOM_TEST(a_reader_does_not_replace_the_attempt_of_a_claim_made_meanwhile),
    };

    return custom_run(tests, ARRAY_SIZE(tests));
}
