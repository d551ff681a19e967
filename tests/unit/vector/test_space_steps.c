/* What changes and queries wait for is bounded by numbers of rows, however long a rebuild took. */
#include "vector/engine/engine.h"
#include "vector/engine/quant.h"
#include "rig.h"

#include <pthread.h>
#include <sqlite3.h>

enum { N_DIMENSIONS = 8, N_ROWS = 9000, N_LATER = 15000, N_REMOVED = 2000, BATCH = 1000 };

/* A namespace and its rows at one moment. */
struct stage {
    struct rig *x;
    struct engine *engine;
    struct space *s;
    struct slab_view view;
    struct vectors_db_space of; /* of the view */
};

static struct stage stage_open(void)
{
    struct stage stage = { .x = rig_open() };

    stage.engine = engine_of(stage.x->v);
    stage.s = engine_take(stage.engine, "ns");
    return stage;
}

static void stage_look(struct stage *stage)
{
    slab_view_clear(&stage->view);
    assert_true(space_view(stage->s, &stage->view, &stage->of));
}

static void stage_close(struct stage *stage)
{
    slab_view_clear(&stage->view);
    if (stage->s)
        engine_give_back(stage->engine, stage->s);
    rig_close(stage->x);
}

/* Every third row is marked. */
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
            records[i] = (struct vector_record){ arena_printf(a, "%zu", from + i), vector,
                                                 (from + i) % 3 == 0 ? "{\"is\":\"third\"}" : "{\"is\":\"other\"}" };
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
    struct stage stage = stage_open();
    struct slab *fresh;

    put(stage.x, 0, N_ROWS);
    stage_look(&stage);
    put(stage.x, N_ROWS, N_ROWS + N_LATER);
    take_away(stage.x, 0, N_REMOVED);               /* of the view */
    take_away(stage.x, N_ROWS, N_ROWS + N_REMOVED); /* and later ones */
    fresh = copy_of(&stage.view);
    assert_int_equal(space_replace(stage.s, &stage.view, fresh, NULL), 0);
    assert_true(stage.s->most_waited_rows <= SPACE_STEP_ROWS);
    stage_look(&stage);
    assert_ptr_equal(stage.view.slab, fresh);
    assert_int_equal(stage.view.n_live, N_ROWS + N_LATER - 2 * N_REMOVED);
    stage_close(&stage);
}

static void rows_that_died_before_the_view_are_not_counted_as_changes(void **state)
{
    struct stage stage = stage_open();
    struct slab *fresh;

    put(stage.x, 0, 1000);
    take_away(stage.x, 100, 300);
    stage_look(&stage);
    fresh = copy_of(&stage.view);
    for (size_t i = 100; i < 300; i++)
        slab_kill_slot(fresh, i);
    take_away(stage.x, 300, 310);
    put(stage.x, 305, 320); /* replaces some */
    assert_int_equal(space_replace(stage.s, &stage.view, fresh, NULL), 0);
    stage_look(&stage);
    assert_int_equal(stage.view.n_live, 1000 - 200 - 5);
    assert_int_equal(rig_count(stage.x, "ns"), 1000 - 200 - 5);
    stage_close(&stage);
}

/* --- loading --- */

static bool unload(struct space *s)
{
    pthread_rwlock_wrlock(&s->gate);
    space_unload(s);
    pthread_rwlock_unlock(&s->gate);
    return !space_is_loaded(s);
}

/* The rows in memory are those that a new load finds in the file. */
static void assert_memory_has_what_the_file_has(struct rig *x, int64_t n)
{
    const float vector[N_DIMENSIONS] = { 1, 2, 3 };
    struct vector_query q = { .vector = vector, .n_dimensions = N_DIMENSIONS, .top_k = 1000, .min_score = -2 };
    struct vector_hits before = rig_query(x, "ns", &q), after;

    assert_int_equal(rig_count(x, "ns"), n);
    assert_int_equal(before.n, MIN(n, 1000));
    rig_reopen(x);
    after = rig_query(x, "ns", &q);
    assert_int_equal(after.n, before.n);
    for (size_t i = 0; i < after.n; i++)
        assert_string_equal(after.items[i].id, before.items[i].id);
}

/* Changes on the thread that loads: they would wait for ever if they waited for the load. */
static void changes_go_on_while_a_namespace_is_loaded(void **state)
{
    struct stage stage = stage_open();
    struct rig *x = stage.x;
    struct space_load l;
    int r;

    put(x, 0, N_ROWS);
    assert_true(unload(stage.s));
    r = space_load_begin(&l, stage.s, &stage.engine->source, &x->e);
    put(x, N_ROWS, N_ROWS + N_LATER);
    put(x, 0, 100); /* replaces some */
    take_away(x, 1000, 1000 + N_REMOVED);
    take_away(x, N_ROWS, N_ROWS + N_REMOVED);
    assert_false(space_is_loaded(stage.s));
    MUST(space_load_end(&l, r, &x->e));
    assert_true(space_is_loaded(stage.s));
    assert_true(stage.s->most_waited_rows <= SPACE_STEP_ROWS);
    engine_give_back(stage.engine, TAKE(stage.s)); /* the engine is closed and opened next */
    assert_memory_has_what_the_file_has(x, N_ROWS + N_LATER - 2 * N_REMOVED);
    stage_close(&stage);
}

static int load_while_removing(struct rig *x, size_t n)
{
    struct engine *engine = engine_of(x->v);
    struct space *s = engine_take(engine, "ns");
    struct space_load l;
    int r;

    put(x, 0, 100);
    assert_true(unload(s));
    r = space_load_begin(&l, s, &engine->source, &x->e);
    l.missed.max = 5;
    take_away(x, 0, n);
    r = space_load_end(&l, r, &x->e);
    if (r == 0)
        assert_true(space_is_loaded(s));
    engine_give_back(engine, s);
    return r;
}

static void a_load_notes_as_many_removed_rows_as_the_limit(void **state)
{
    struct rig *x = rig_open();

    assert_int_equal(load_while_removing(x, 5), 0);
    assert_int_equal(load_while_removing(x, 6), -ESTALE);
    assert_memory_has_what_the_file_has(x, 94); /* the query has loaded them while changes waited */
    rig_close(x);
}

static const struct vector_query any_row = {
    .vector = (const float[N_DIMENSIONS]){ 1 }, .n_dimensions = N_DIMENSIONS, .top_k = 1000, .min_score = -2
};

static void drop(struct rig *x)
{
    int64_t n;

    MUST(x->v->ops->remove(x->v, NULL, "ns", &(struct vector_removal){ .all = true }, &n, &x->e));
}

static void a_namespace_that_is_dropped_while_it_is_loaded_does_not_come_back(void **state)
{
    struct stage stage = stage_open();
    struct rig *x = stage.x;
    struct space_load l;
    int r;

    put(x, 0, 100);
    for (int makes_it_anew = 0; makes_it_anew < 2; makes_it_anew++) {
        assert_true(unload(stage.s));
        r = space_load_begin(&l, stage.s, &stage.engine->source, &x->e);
        drop(x);
        if (makes_it_anew)
            put(x, 200, 210);
        assert_int_equal(space_load_end(&l, r, &x->e), -ESTALE);
        MUST(space_load(stage.s, &stage.engine->source, &x->e));
        assert_int_equal(rig_query(x, "ns", &any_row).n, makes_it_anew ? 10 : 0);
        put(x, 0, 100);
    }
    stage_close(&stage);
}

/* --- columns of filters --- */

static size_t n_matching(struct rig *x, const char *filter)
{
    const float vector[N_DIMENSIONS] = { 1, 2 };
    struct vector_query q = {
        .vector = vector, .n_dimensions = N_DIMENSIONS, .top_k = 1000, .min_score = -2, .filter = rig_json(x, filter)
    };

    return rig_query(x, "ns", &q).n;
}

static uint32_t *backwards(const struct slab_view *view)
{
    uint32_t *order = xcalloc(view->n_live, sizeof(*order));
    size_t n = view->n_live;

    for (size_t slot = 0; slot < view->n; slot++)
        if (slab_view_is_live(view, slot))
            order[--n] = (uint32_t)slot;
    return order;
}

static int by_row(const void *a, const void *b, void *slab)
{
    return slab_row(slab, *(const uint32_t *)a) < slab_row(slab, *(const uint32_t *)b) ? -1 : 1;
}

/* As lists would do: the rows in another order. */
static struct slab *copy_in(const struct slab_view *view, const uint32_t *order)
{
    struct slab *fresh = slab_new(N_DIMENSIONS, view->slab->account);

    fresh->listed_by_row = xcalloc(view->n_live, sizeof(uint32_t));
    for (size_t i = 0; i < view->n_live; i++) {
        assert_int_equal(slab_write(fresh, i, slab_codes(view->slab, order[i]), slab_scale(view->slab, order[i]),
                                    slab_row(view->slab, order[i]), NULL),
                         0);
        fresh->listed_by_row[i] = (uint32_t)i;
    }
    slab_publish(fresh, view->n_live);
    qsort_r(fresh->listed_by_row, view->n_live, sizeof(uint32_t), by_row, fresh);
    fresh->n_listed = view->n_live;
    return fresh;
}

/* The metadata of the rows is taken from the file, so that a column that is read again has other values. */
static void falsify_metadata(struct rig *x)
{
    sqlite3 *file = NULL;

    assert_int_equal(sqlite3_open_v2(x->folder.file, &file, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_exec(file, "UPDATE vectors SET metadata = '{}'", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(file);
}

static void columns_move_with_their_rows_and_are_not_read_again(void **state)
{
    struct stage stage = stage_open();
    uint32_t *order;

    put(stage.x, 0, 90);
    take_away(stage.x, 0, 30);
    assert_int_equal(n_matching(stage.x, "{\"is\":\"third\"}"), 20);
    stage_look(&stage);
    columns_extend(&stage.s->columns, stage.engine->db, &stage.view, &stage.of);
    order = backwards(&stage.view);
    put(stage.x, 90, 96); /* later than the view */
    assert_int_equal(n_matching(stage.x, "{\"is\":\"third\"}"), 22);
    take_away(stage.x, 93, 94);
    assert_int_equal(space_replace(stage.s, &stage.view, copy_in(&stage.view, order), order), 0);
    falsify_metadata(stage.x);
    assert_int_equal(n_matching(stage.x, "{\"is\":\"third\"}"), 21);
    assert_int_equal(n_matching(stage.x, "{\"is\":\"other\"}"), 44);
    free(order);
    stage_close(&stage);
}

/* A column that lacks rows of the view is extended from the file, one that was made for an exchange that did not come
 * is made again. */
static void columns_that_are_behind_are_extended_and_moved(void **state)
{
    struct stage stage = stage_open();

    put(stage.x, 0, 30);
    assert_int_equal(n_matching(stage.x, "{\"is\":\"third\"}"), 10);
    for (int i = 0; i < 2; i++) {
        uint32_t *order;

        put(stage.x, 30, 60 + 30 * (size_t)i);
        stage_look(&stage);
        order = backwards(&stage.view);
        columns_extend(&stage.s->columns, stage.engine->db, &stage.view, &stage.of);
        columns_prepare_move(&stage.s->columns, &(struct columns_move){ &stage.view, order });
        if (i == 1)
            assert_int_equal(space_replace(stage.s, &stage.view, copy_in(&stage.view, order), order), 0);
        free(order);
    }
    falsify_metadata(stage.x);
    assert_int_equal(n_matching(stage.x, "{\"is\":\"third\"}"), 30);
    stage_close(&stage);
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

    do {
        AUTO(arena_freep) struct arena *a = arena_new();
        struct vector_hits hits = { 0 };
        struct err e = { 0 };

        assert_int_equal(c->x->v->ops->query(c->x->v, NULL, "ns", &q, a, &hits, &e), 0);
        assert_int_equal(hits.n, 100);
        c->n_answers++;
    } while (!atomic_load(&c->is_over));
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
        cmocka_unit_test(changes_go_on_while_a_namespace_is_loaded),
        cmocka_unit_test(a_load_notes_as_many_removed_rows_as_the_limit),
        cmocka_unit_test(a_namespace_that_is_dropped_while_it_is_loaded_does_not_come_back),
        cmocka_unit_test(columns_move_with_their_rows_and_are_not_read_again),
        cmocka_unit_test(columns_that_are_behind_are_extended_and_moved),
        cmocka_unit_test(fresh_rows_are_in_the_file_itself_after_a_quiet_moment),
        cmocka_unit_test(a_query_is_answered_while_its_rows_are_replaced),
    };

    return cmocka_run_group_tests_name("space_steps", tests, NULL, NULL);
}
