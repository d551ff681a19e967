/* What changes and queries wait for is bounded by numbers of rows, however long a rebuild took. */
#include "vector/engine/engine.h"
#include "vector/engine/quant.h"
#include "rig.h"

#include <pthread.h>
#include <sqlite3.h>

enum { N_DIMENSIONS = 8, N_ROWS = 9000, N_LATER = 15000, N_REMOVED = 2000, BATCH = 1000 };

static void put(struct rig *x, size_t from, size_t to)
{
    struct dice dice = { 1 + from };

    for (size_t n; from < to; from += n) {
        AUTO(arena_freep) struct arena *a = arena_new();
        struct vector_record *records;

        n = MIN((size_t)BATCH, to - from);
        records = arena_array(a, n, sizeof(*records));
        for (size_t i = 0; i < n; i++) {
            float *vector = arena_array(a, N_DIMENSIONS, sizeof(float));

            dice_vector(&dice, vector, N_DIMENSIONS);
            records[i] = (struct vector_record){ arena_printf(a, "%zu", from + i), vector, "{}" };
        }
        MUST(x->v->ops->upsert(x->v, NULL, "ns", &(struct vector_batch){ records, n, N_DIMENSIONS }, &x->e));
    }
}

static void take_away(struct rig *x, size_t from, size_t to)
{
    const char **ids = arena_array(x->a, to - from, sizeof(*ids));
    int64_t n;

    for (size_t i = from; i < to; i++)
        ids[i - from] = arena_printf(x->a, "%zu", i);
    MUST(x->v->ops->remove(x->v, NULL, "ns", &(struct vector_removal){ .ids = ids, .n_ids = to - from }, &n, &x->e));
}

static struct slab *copy_of(const struct slab_view *view)
{
    struct slab *fresh = slab_new(N_DIMENSIONS, view->slab->account);

    for (size_t i = 0; i < view->n; i++)
        assert_int_equal(slab_write(fresh, i, slab_codes(view->slab, i), slab_scale(view->slab, i),
                                    slab_row(view->slab, i), NULL),
                         0);
    slab_publish(fresh, view->n);
    return fresh;
}

/* Many rows come and go between the view and the exchange; all of them are carried over before changes wait. */
static void a_replacement_lets_changes_wait_for_a_few_rows_only(void **state)
{
    struct rig *x = rig_open();
    struct engine *engine = engine_of(x->v);
    struct space *s = engine_take(engine, "ns");
    struct vectors_db_space of;
    struct slab_view view, after;

    put(x, 0, N_ROWS);
    assert_true(space_view(s, &view, &of));
    put(x, N_ROWS, N_ROWS + N_LATER);
    take_away(x, 0, N_REMOVED);               /* of the view */
    take_away(x, N_ROWS, N_ROWS + N_REMOVED); /* and later ones */
    assert_int_equal(space_replace(s, &view, copy_of(&view)), 0);
    assert_true(s->most_waited_rows <= SPACE_STEP_ROWS);
    assert_true(space_view(s, &after, &of));
    assert_ptr_not_equal(after.slab, view.slab);
    assert_int_equal(after.n_live, N_ROWS + N_LATER - 2 * N_REMOVED);
    slab_view_clear(&view);
    slab_view_clear(&after);
    engine_give_back(engine, s);
    rig_close(x);
}

static void rows_that_died_before_the_view_are_not_counted_as_changes(void **state)
{
    struct rig *x = rig_open();
    struct engine *engine = engine_of(x->v);
    struct space *s = engine_take(engine, "ns");
    struct vectors_db_space of;
    struct slab_view view, after;
    struct slab *fresh;

    put(x, 0, 1000);
    take_away(x, 100, 300);
    assert_true(space_view(s, &view, &of));
    fresh = copy_of(&view);
    for (size_t i = 100; i < 300; i++)
        slab_kill_slot(fresh, i);
    take_away(x, 300, 310);
    put(x, 305, 320); /* replaces some */
    assert_int_equal(space_replace(s, &view, fresh), 0);
    assert_true(space_view(s, &after, &of));
    assert_int_equal(after.n_live, 1000 - 200 - 5);
    assert_int_equal(rig_count(x, "ns"), 1000 - 200 - 5);
    slab_view_clear(&view);
    slab_view_clear(&after);
    engine_give_back(engine, s);
    rig_close(x);
}

/* --- the write-ahead log --- */

/* Rows of the file itself, without its log. */
static int64_t n_in_file(const char *path)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    sqlite3 *file = NULL;
    sqlite3_stmt *stmt = NULL;
    int64_t n = -1;

    assert_int_equal(sqlite3_open_v2(arena_printf(a, "file:%s?immutable=1", path), &file,
                                     SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, NULL),
                     SQLITE_OK);
    if (sqlite3_prepare_v2(file, "SELECT count(*) FROM vectors", -1, &stmt, NULL) == SQLITE_OK &&
        sqlite3_step(stmt) == SQLITE_ROW)
        n = sqlite3_column_int64(stmt, 0);
    sqlite3_finalize(stmt);
    sqlite3_close(file);
    return n;
}

static bool has_all(void *arg)
{
    return n_in_file(((struct rig *)arg)->folder.file) == 501;
}

static void fresh_rows_are_in_the_file_itself_after_a_quiet_moment(void **state)
{
    struct rig *x = rig_open();

    put(x, 0, 500);
    keeper_wait(engine_of(x->v)->keeper);
    assert_int_equal(n_in_file(x->folder.file), 500);
    put(x, 500, 501); /* a single change is followed by a quiet moment too, without anything that wakes the keeper */
    assert_true(wait_until(has_all, x));
    rig_close(x);
}

/* --- queries beside changes --- */

struct churn {
    struct rig *x;
    atomic_bool is_over;
    size_t n_answers;
};

static void *ask_for_ever(void *arg)
{
    struct churn *c = arg;
    const float vector[N_DIMENSIONS] = { 1, 2 };
    struct vector_query q = { .vector = vector, .n_dimensions = N_DIMENSIONS, .top_k = 100, .min_score = -2 };

    while (!atomic_load(&c->is_over)) {
        AUTO(arena_freep) struct arena *a = arena_new();
        struct vector_hits hits = { 0 };
        struct err e = { 0 };

        assert_int_equal(c->x->v->ops->query(c->x->v, NULL, "ns", &q, a, &hits, &e), 0);
        assert_int_equal(hits.n, 100);
        c->n_answers++;
    }
    return NULL;
}

/* The best rows are replaced again and again: the file shows it before memory does. */
static void a_query_is_answered_while_its_rows_are_replaced(void **state)
{
    struct rig *x = rig_open();
    struct churn c = { .x = x };
    pthread_t thread;

    put(x, 0, 200);
    assert_int_equal(pthread_create(&thread, NULL, ask_for_ever, &c), 0);
    for (int i = 0; i < 60; i++)
        put(x, 0, 200);
    atomic_store(&c.is_over, true);
    pthread_join(thread, NULL);
    assert_true(c.n_answers > 0);
    assert_int_equal(rig_count(x, "ns"), 200);
    rig_close(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_replacement_lets_changes_wait_for_a_few_rows_only),
        cmocka_unit_test(rows_that_died_before_the_view_are_not_counted_as_changes),
        cmocka_unit_test(fresh_rows_are_in_the_file_itself_after_a_quiet_moment),
        cmocka_unit_test(a_query_is_answered_while_its_rows_are_replaced),
    };

    return cmocka_run_group_tests_name("space_steps", tests, NULL, NULL);
}
