/* Claims that wait for the app that owns the table: they hold up some of the threads, never all. */
#include "machine.h"

#define OWNED "orders"

enum { N_ROWS = 20, N_OWNERS = 5, MOST_LOCKS = LIMIT_TASK_THREADS / 2 };
_Static_assert(N_OWNERS *LIMIT_TASK_LOCKS_OF_APP > MOST_LOCKS, "the apps want more than all may have");

/* The backend of a machine whose app locks rows as slowly as the test wants. */
static struct {
    struct backend_ops ops;
    const struct backend_ops *real;
    sem_t may_lock;
    int n_wanted;
    atomic_int n_locking, most_app_locks;
} slow;

static bool needs_app_lock(struct backend *b, const char *table)
{
    return strcmp(table, OWNED) == 0;
}

static int claim_slowly(struct backend *b, const struct backend_claim *c, struct arena *a, struct backend_row *ret,
                        struct backend_lease *ret_lease, struct err *e)
{
    int n, most = atomic_load(&slow.most_app_locks);

    if (strcmp(c->table, OWNED) == 0) {
        n = atomic_fetch_add(&slow.n_locking, 1) + 1;
        while (n > most && !atomic_compare_exchange_weak(&slow.most_app_locks, &most, n))
            ;
        machine_wait(&slow.may_lock);
        atomic_fetch_sub(&slow.n_locking, 1);
    }
    return slow.real->claim(b, c, a, ret, ret_lease, e);
}

static const char *owner_id(struct machine *m, int i)
{
    return arena_printf(m->world->arena, "a0000000-0000-4000-8000-00000000000%d", 2 + i);
}

static void add_owner(struct machine *m, int i)
{
    static const char *const tables[] = { OWNED };

    m->others[i] = m->listener;
    m->others[i].app_id = owner_id(m, i);
    m->others[i].app_name = arena_printf(m->world->arena, "owner-%d", i);
    m->others[i].tables = tables;
    m->others[i].handlers = &m->handlers[1];
    m->others[i].max_concurrent = N_ROWS;
}

/* More apps, which have many places each and a table of their own. */
static struct machine *machine_of_owners(struct world *w, int n)
{
    struct machine *m = machine_open(w, "lin-a", NULL);

    m->handlers[1] = m->handlers[0];
    m->handlers[1].table = OWNED;
    m->n_others = (size_t)n;
    for (int i = 0; i < n; i++)
        add_owner(m, i);
    atomic_store(&slow.most_app_locks, 0);
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

static void insert_owned(struct machine *m, int owner)
{
    const struct backend_new_row in = { .table = OWNED, .app_id = owner_id(m, owner), .raw_data = "{}" };
    struct backend_row row;

    assert_int_equal(backend_insert(m->backend, &in, m->world->arena, &row, NULL), 0);
}

static bool has_begun(void *arg)
{
    return atomic_load(&slow.n_locking) == slow.n_wanted;
}

static void wait_for_locks(int n)
{
    slow.n_wanted = n;
    assert_true(wait_until(has_begun, NULL));
}

static void an_app_that_is_slow_to_lock_its_rows_holds_up_no_other(void **state)
{
    struct world *w = *state;
    struct machine *m = machine_of_owners(w, 1);

    for (int i = 0; i < N_ROWS; i++)
        insert_owned(m, 0);
    wait_for_locks(LIMIT_TASK_LOCKS_OF_APP);
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

static void apps_that_are_slow_to_lock_hold_half_of_the_threads_together(void **state)
{
    struct world *w = *state;
    struct machine *m = machine_of_owners(w, N_OWNERS);

    for (int i = 0; i < N_ROWS; i++)
        insert_owned(m, i % N_OWNERS);
    wait_for_locks(MOST_LOCKS);
    for (size_t i = 0; i < 3; i++) {
        insert(m, "{}");
        fake_succeed(wait_run(w, i), "{}");
    }
    for (int i = 0; i < N_ROWS; i++)
        sem_post(&slow.may_lock);
    for (size_t i = 3; i < 3 + N_ROWS; i++)
        fake_succeed(wait_run(w, i), "{}");
    assert_int_equal(atomic_load(&slow.most_app_locks), MOST_LOCKS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(an_app_that_is_slow_to_lock_its_rows_holds_up_no_other),
        WORLD_TEST(apps_that_are_slow_to_lock_hold_half_of_the_threads_together),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
