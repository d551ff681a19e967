/* A lack of resources is not a failure of the machine (issue 8, section 6). */
#include "machine.h"
#include "tasks/private.h"

#include "base/limits.h"

static bool has_asked_twice(void *arg)
{
    struct machine *m = arg;

    return atomic_load(&m->n_requested) >= 2;
}

static void what_cannot_be_started_waits_with_back_off_and_blames_nobody(void **state)
{
    static const int wants[] = { -EMFILE, -ENFILE, -EAGAIN, -ENOMEM, -ENOSPC };
    struct world *w = *state;

    for (size_t i = 0; i < ARRAY_SIZE(wants); i++) {
        struct machine *m = machine_open(w, arena_printf(w->arena, "lin-%zu", i), NULL);
        int64_t begin_ms = clock_mono_ms();
        const char *ids[6];
        struct task_row task;
        struct run_row *runs;
        size_t n_before = world_n_runs(w);

        m->listener.max_concurrent = 6;
        atomic_store(&m->start_result, wants[i]);
        machine_start(m);
        for (size_t j = 0; j < ARRAY_SIZE(ids); j++)
            ids[j] = insert(m, "{}");
        assert_true(wait_until(has_asked_twice, m));
        /* The starts that were under way when the first failed, then at most one a second. */
        assert_in_range(atomic_load(&m->n_requested), 2, ARRAY_SIZE(ids) + (clock_mono_ms() - begin_ms) / 1000 + 1);
        task = wait_task(m, ids[0], "pending");
        assert_int_equal(runs_of(m, task.uuid, &runs), 0);
        assert_string_equal(row_now(m, ids[0]).attempted_by, "[]");
        assert_int_equal(row_now(m, ids[0]).retry_count, 0);

        atomic_store(&m->start_result, 0);
        for (size_t j = 0; j < ARRAY_SIZE(ids); j++)
            fake_succeed(wait_run(w, n_before + j), "{}");
        for (size_t j = 0; j < ARRAY_SIZE(ids); j++)
            wait_task(m, ids[j], "completed");
        assert_int_equal(runs_of(m, task.uuid, &runs), 1);
        machine_stop(m);
    }
}

static void end_crowded(struct fake_run *run)
{
    fake_end_as(run, (struct task_run_end){ .was_crowded = true, .error = "Cannot fork", .log = "" });
}

static void an_agent_without_processes_blames_nobody_so_many_times(void **state)
{
    struct world *w = *state;
    struct machine *m = machine_open(w, "lin-a", NULL);
    int64_t begin_ms = clock_mono_ms();
    const char *id;
    struct run_row *runs;
    struct task_row task;

    machine_start(m);
    id = insert(m, "{}");
    for (size_t i = 0; i < LIMIT_CROWDED_RUNS; i++)
        end_crowded(wait_run(w, i));
    wait_run(w, LIMIT_CROWDED_RUNS);
    assert_true(clock_mono_ms() - begin_ms >= 1000 * ((1 << LIMIT_CROWDED_RUNS) - 1)); /* 1 s, 2 s, 4 s */
    assert_string_equal(row_now(m, id).attempted_by, "[]");
    assert_int_equal(row_now(m, id).retry_count, 0);
    end_crowded(wait_run(w, LIMIT_CROWDED_RUNS));
    task = wait_task(m, id, "failed");
    assert_string_equal(row_now(m, id).attempted_by, "[\"lin-a\"]");
    assert_int_equal(row_now(m, id).retry_count, 1);
    assert_string_equal(task.error, "Cannot fork");
    assert_int_equal(runs_of(m, task.uuid, &runs), 1);
}

static bool is_excused(struct machine *m, size_t i)
{
    struct task_run run = { .end.error = "Cannot fork" };

    snprintf(run.uuid, sizeof(run.uuid), "task-%zu", i);
    return task_want_excuse(m->tasks, &run);
}

static void of_so_many_tasks_the_excuses_are_counted(void **state)
{
    struct machine *m = machine_open(*state, "lin-a", NULL);

    machine_start(m);
    for (size_t i = 0; i < LIMIT_CROWDED_RUNS; i++)
        assert_true(is_excused(m, 0));
    for (size_t i = 1; i < LIMIT_CROWDED_TASKS; i++)
        assert_true(is_excused(m, i));
    assert_false(is_excused(m, 0));
    assert_true(is_excused(m, LIMIT_CROWDED_TASKS)); /* in the place of the oldest */
    assert_true(is_excused(m, 0));
}

static void an_agent_that_does_not_exist_is_a_failure_as_before(void **state)
{
    struct world *w = *state;
    struct machine *m = machine_open(w, "lin-a", NULL);
    const char *id;

    atomic_store(&m->start_result, -ENOENT);
    machine_start(m);
    id = insert(m, "{}");
    wait_task(m, id, "failed");
    assert_string_equal(row_now(m, id).attempted_by, "[\"lin-a\"]");
}

static void nothing_is_claimed_that_has_no_room_to_start(void **state)
{
    struct world *w = *state;
    struct machine *m = machine_open(w, "lin-a", NULL);
    const char *ids[8];
    size_t n_claimed = 0;

    m->listener.max_concurrent = ARRAY_SIZE(ids);
    atomic_store(&m->room, 2);
    machine_start(m);
    for (size_t i = 0; i < ARRAY_SIZE(ids); i++)
        ids[i] = insert(m, "{}");
    wait_run(w, 1);
    wait_task(m, ids[7], "pending");
    for (size_t i = 0; i < ARRAY_SIZE(ids); i++)
        n_claimed += row_now(m, ids[i]).attempt > 0;
    assert_int_equal(n_claimed, 2);
    for (size_t i = 0; i < ARRAY_SIZE(ids); i++)
        fake_succeed(wait_run(w, i), "{}");
    for (size_t i = 0; i < ARRAY_SIZE(ids); i++)
        assert_int_equal(wait_task(m, ids[i], "completed").attempt, 1);
    assert_int_equal(atomic_load(&m->n_requested), ARRAY_SIZE(ids));
}

static void *reserve(void *tasks)
{
    const struct task_run_key key = { .app = APP, .table = TABLE, .row_id = "another-row" };

    return task_run_reserve(tasks, &key, INT64_MAX);
}

static bool has_started_agent(void *arg)
{
    struct tasks *t = arg;
    bool has_started;

    pthread_mutex_lock(&t->mutex);
    has_started = t->runs && t->runs->handle;
    pthread_mutex_unlock(&t->mutex);
    return has_started;
}

/* The last place is free when the first thread asks for room, and taken when it has the answer. */
static void room_that_an_agent_took_meanwhile_is_not_given_twice(void **state)
{
    struct world *w = *state;
    struct machine *m = machine_open(w, "lin-a", NULL);
    pthread_t thread;
    void *run;

    atomic_store(&m->room, 1);
    sem_init(&m->room_holds, 0, 0);
    sem_init(&m->room_ends, 0, 0);
    machine_start(m);
    atomic_store(&m->holds_room, true);
    assert_int_equal(pthread_create(&thread, NULL, reserve, m->tasks), 0);
    sem_wait(&m->room_holds);
    insert(m, "{}");
    assert_true(wait_until(has_started_agent, m->tasks));
    sem_post(&m->room_ends);
    assert_int_equal(pthread_join(thread, &run), 0);
    assert_null(run);
    fake_succeed(wait_run(w, 0), "{}");
}

/* Rows have megabytes: a queue or a batch that counts only rows takes more memory than a request may (LIMIT_ARENA_BYTES
 * ends the service). */
static void rows_in_the_queue_and_in_a_batch_are_limited_by_their_bytes(void **state)
{
    enum { ROWS = 100, ROW_BYTES = 1 << 20 };
    struct world *w = *state;
    struct machine *m = machine_open(w, "lin-a", NULL);
    char *data = arena_alloc(w->arena, ROW_BYTES + 1), id[16];
    struct backend_row row;

    assert_int_equal(m->backend->ops->ensure_table(m->backend, TABLE, NULL), 0);
    row = row_now(m, insert(m, "{}"));
    memset(data, ' ', ROW_BYTES);
    memcpy(data, "{}", 2);
    row.raw_data = data;
    row.id = id;
    m->listener.max_concurrent = 0;
    for (size_t i = 0; i < ROWS; i++) {
        snprintf(id, sizeof(id), "row-%zu", i);
        task_intake_rows(m->tasks, &(struct backend_rows){ &row, 1 });
    }
    assert_int_equal(m->tasks->n_items, ROWS);
    assert_true(m->tasks->n_item_bytes < LIMIT_TASK_EVENT_BYTES + 2 * ROW_BYTES);
    assert_int_equal(task_listening_renew(m->tasks, NULL), 0);
    task_intake_run(m->tasks, NULL);
    assert_true(m->tasks->n_items >= ROWS - LIMIT_TASK_BATCH_BYTES / ROW_BYTES && m->tasks->n_items < ROWS);
    while (m->tasks->n_items > 0)
        task_intake_run(m->tasks, NULL);
    assert_int_equal(m->tasks->n_item_bytes, 0);
}

/* What an app stored must not keep the service from starting: each task has its own memory while it is looked at. */
static void a_start_looks_at_large_tasks_one_by_one(void **state)
{
    enum { TASKS = 2, BYTES = LIMIT_ARENA_BYTES / 2 };
    struct world *w = *state;
    struct machine *m = machine_open(w, "lin-a", NULL);
    char *data = xcalloc(1, BYTES + 1), uuid[UUID_SIZE];
    bool is_new;

    memset(data, ' ', BYTES);
    memcpy(data, "{}", 2);

    for (size_t i = 0; i < TASKS; i++) {
        char own[UUID_SIZE];
        const struct task_row task = { .uuid = own,
                                       .title = "t",
                                       .status = "pending",
                                       .action_type = "SDK_TRIGGER",
                                       .source_app = APP,
                                       .raw_data = data,
                                       .attempted_by = "[]",
                                       .review = REVIEW_WAITING };

        uuid_v4(own);
        assert_int_equal(store_tasks_add(m->store, &(struct task_bundle){ .task = &task }, &is_new, uuid, NULL), 0);
    }
    free(data);
    machine_start(m);
}

static int64_t cpu_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* The time of looking at n tasks that programs outside report about, in microseconds. */
static int64_t look_at(struct machine *m, size_t n)
{
    int64_t began_us = cpu_us();
    char uuid[UUID_SIZE];

    for (size_t i = 0; i < n; i++) {
        snprintf(uuid, sizeof(uuid), "%08zx-0000-4000-8000-000000000000", i);
        task_outside_look(m->tasks, &(struct task_row){ .uuid = uuid, .updated_at = "2026-01-01T00:00:00.000Z" });
    }
    return cpu_us() - began_us;
}

/* A program may start as many tasks as it likes and report that each is at work. */
static void many_tasks_outside_are_looked_at_in_linear_time(void **state)
{
    enum { FEW = 4000, TIMES = 8, LINEAR_TIMES = 3 };
    struct world *w = *state;
    struct machine *m = machine_open(w, "lin-a", NULL);
    int64_t few_us = look_at(m, FEW), many_us = look_at(m, (size_t)FEW * TIMES);

    if (many_us > few_us * TIMES * LINEAR_TIMES)
        fail_msg("%d tasks took %lld us, %d took %lld us", FEW, (long long)few_us, FEW * TIMES, (long long)many_us);
}

static bool has_looked_again(void *arg)
{
    struct machine *m = arg;

    return atomic_load(&m->n_looked) >= 3;
}

/* No run is at work whose end would make room. */
static void without_room_for_any_agent_nothing_is_claimed_and_it_is_looked_again_with_back_off(void **state)
{
    struct world *w = *state;
    struct machine *m = machine_open(w, "lin-a", NULL);
    const char *id;

    atomic_store(&m->room, -1);
    machine_start(m);
    id = insert(m, "{}");
    assert_true(wait_until(has_looked_again, m));
    assert_int_equal(row_now(m, id).attempt, 0);
    assert_int_equal(atomic_load(&m->n_requested), 0);
    atomic_store(&m->room, 0);
    fake_succeed(wait_run(w, 0), "{}");
    assert_int_equal(wait_task(m, id, "completed").attempt, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(what_cannot_be_started_waits_with_back_off_and_blames_nobody),
        WORLD_TEST(an_agent_without_processes_blames_nobody_so_many_times),
        WORLD_TEST(of_so_many_tasks_the_excuses_are_counted),
        WORLD_TEST(an_agent_that_does_not_exist_is_a_failure_as_before),
        WORLD_TEST(nothing_is_claimed_that_has_no_room_to_start),
        WORLD_TEST(room_that_an_agent_took_meanwhile_is_not_given_twice),
        WORLD_TEST(a_start_looks_at_large_tasks_one_by_one),
        WORLD_TEST(many_tasks_outside_are_looked_at_in_linear_time),
        WORLD_TEST(rows_in_the_queue_and_in_a_batch_are_limited_by_their_bytes),
        WORLD_TEST(without_room_for_any_agent_nothing_is_claimed_and_it_is_looked_again_with_back_off),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
