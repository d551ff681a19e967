/* Claims that wait for the app that owns the table: they hold up some of the threads, never all. */
#include "machine.h"

#define OWNER "a0000000-0000-4000-8000-000000000002"
#define OWNED "orders"

enum { N_ROWS = 20 };

/* The backend of a machine whose app locks rows as slowly as the test wants. */
static struct {
    struct backend_ops ops;
    const struct backend_ops *real;
    sem_t may_lock;
    atomic_int n_locking, most_app_locks;
} slow;

static bool needs_app_lock(struct backend *b, const char *table)
{
    return strcmp(table, OWNED) == 0;
}

static int claim_slowly(struct backend *b, const struct backend_claim *c, struct arena *a, struct backend_row *ret,
                        struct backend_lease *ret_lease, struct err *e)
{
    int n;

    if (strcmp(c->table, OWNED) == 0) {
        n = atomic_fetch_add(&slow.n_locking, 1) + 1;
        if (n > atomic_load(&slow.most_app_locks))
            atomic_store(&slow.most_app_locks, n);
        machine_wait(&slow.may_lock);
        atomic_fetch_sub(&slow.n_locking, 1);
    }
    return slow.real->claim(b, c, a, ret, ret_lease, e);
}

/* A second app, which has many places and a table of its own. */
static struct machine *machine_of_owner(struct world *w)
{
    static const char *const tables[] = { OWNED };
    struct machine *m = machine_open(w, "lin-a", NULL);

    m->handlers[1] = m->handlers[0];
    m->handlers[1].table = OWNED;
    m->other = m->listener;
    m->other.app_id = OWNER;
    m->other.app_name = "owner";
    m->other.tables = tables;
    m->other.handlers = &m->handlers[1];
    m->other.max_concurrent = N_ROWS;
    slow.real = m->backend->ops;
    slow.ops = *slow.real;
    slow.ops.needs_app_lock = needs_app_lock;
    slow.ops.claim = claim_slowly;
    sem_init(&slow.may_lock, 0, 0);
    assert_int_equal(m->backend->ops->ensure_table(m->backend, OWNED, NULL), 0);
    m->backend->ops = &slow.ops;
    machine_start(m);
    return m;
}

static void insert_owned(struct machine *m)
{
    const struct backend_new_row in = { .table = OWNED, .app_id = OWNER, .raw_data = "{}" };
    struct backend_row row;

    assert_int_equal(backend_insert(m->backend, &in, m->world->arena, &row, NULL), 0);
}

static bool has_begun(void *arg)
{
    return atomic_load(&slow.n_locking) == LIMIT_TASK_LOCKS_OF_APP;
}

static void an_app_that_is_slow_to_lock_its_rows_holds_up_no_other(void **state)
{
    struct world *w = *state;
    struct machine *m = machine_of_owner(w);

    for (int i = 0; i < N_ROWS; i++)
        insert_owned(m);
    assert_true(wait_until(has_begun, NULL));
    for (size_t i = 0; i < 3; i++) {
        insert(m, "{}");
        fake_succeed(wait_run(w, i), "{}");
    }
    assert_int_equal(atomic_load(&slow.most_app_locks), LIMIT_TASK_LOCKS_OF_APP);
    for (int i = 0; i < N_ROWS; i++)
        sem_post(&slow.may_lock);
    for (size_t i = 3; i < 3 + N_ROWS; i++)
        fake_succeed(wait_run(w, i), "{}");
    assert_int_equal(atomic_load(&slow.most_app_locks), LIMIT_TASK_LOCKS_OF_APP);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(an_app_that_is_slow_to_lock_its_rows_holds_up_no_other),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
