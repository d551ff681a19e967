#include "vector/engine/keeper.h"
#include "base/clock.h"
#include "base/cond.h"
#include "base/metrics.h"
#include "base/thread.h"
#include "vector/engine/engine.h"
#include "vector/engine/lists.h"
#include "vector/engine/sketch.h"
#include "vector/engine/sketch_recall.h"
#include <stdlib.h>
#include <sys/resource.h>

enum {
    KEEPER_PRELOAD = 16,      /* namespaces loaded when the store opens, while half the memory is free */
    KEEPER_SWEEP_ROWS = 1000, /* rows of dropped namespaces deleted at a time */
    KEEPER_STEP_ROWS = 256,   /* copied between two looks at the pace */
    KEEPER_NICE = 15,
};

struct keeper {
    struct engine *engine; /* borrowed */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t is_changed;
    bool is_wanted, is_working;
    atomic_bool has_changes; /* since the last quiet moment */
};

static bool is_stopping(struct keeper *k)
{
    return atomic_load(&k->engine->pace.is_stopping);
}

/* --- loading --- */

static void preload(struct keeper *k)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct engine *engine = k->engine;
    struct field_strings names = { 0 };
    struct err e = { 0 };

    if (vectors_db_recent(engine->db, KEEPER_PRELOAD, a, &names, &e) < 0)
        return; /* the first query reports the error */
    for (size_t i = 0; i < names.n && !is_stopping(k); i++) {
        struct space *s;

        if (atomic_load(&engine->bytes) > (size_t)engine->memory_bytes / 2)
            break;
        s = engine_take(engine, names.items[i]);
        if (engine_read_rows(engine, s, &e) < 0)
            e = (struct err){ 0 };
        engine_give_back(engine, s);
    }
}

/* --- a new order of rows --- */

static int by_row(const void *a, const void *b, void *slab)
{
    int64_t x = slab_row(slab, *(const uint32_t *)a), y = slab_row(slab, *(const uint32_t *)b);

    return x < y ? -1 : x > y;
}

static uint32_t *slots_by_row(struct slab *slab, size_t n)
{
    uint32_t *slots = xcalloc(n, sizeof(*slots));

    for (size_t i = 0; i < n; i++)
        slots[i] = (uint32_t)i;
    qsort_r(slots, n, sizeof(*slots), by_row, slab);
    return slots;
}

/* Makes the sketches of a slab that nobody else has yet. */
static int sketch_all(struct keeper *k, struct slab *slab)
{
    int r = 0;

    if (k->engine->sketch_deviations <= 0 || !sketch_fits(slab->n_dimensions))
        return 0;
    slab->sketches = sketch_set_new(slab->n_dimensions, slab->account);
    while (r == 0 && slab->sketches->n < slab->n / SKETCH_UNIT_ROWS)
        r = sketch_add(slab->sketches, slab, &k->engine->pace, NULL);
    slab->n_sketched = slab->sketches->n;
    return r;
}

/* Copies the live rows of the view in the given order. NULL: out of memory, or the store closes. */
static struct slab *copy_in_order(struct keeper *k, const struct slab_view *view, const uint32_t *order)
{
    struct slab *fresh = slab_new(view->slab->n_dimensions, view->slab->account), *old = view->slab;

    for (size_t i = 0; i < view->n_live; i++)
        if ((i % KEEPER_STEP_ROWS == 0 && !pace_goes_on(&k->engine->pace)) ||
            slab_write(fresh, i, slab_codes(old, order[i]), slab_scale(old, order[i]), slab_row(old, order[i]), NULL) <
                0)
            return slab_unref(fresh);
    slab_publish(fresh, view->n_live);
    return fresh;
}

/* The live slots in order of their row numbers, as in a slab without lists. */
static uint32_t *plain_order(const struct slab_view *view)
{
    uint32_t *order = xcalloc(view->n_live, sizeof(*order));
    size_t n = 0;

    for (size_t slot = 0; slot < view->n; slot++)
        if (slab_view_is_live(view, slot))
            order[n++] = (uint32_t)slot;
    if (view->slab->n_listed > 0)
        qsort_r(order, n, sizeof(*order), by_row, view->slab);
    return order;
}

/* What is renewed. */
struct renewal {
    struct space *space;
    const struct slab_view *view;
    const struct vectors_db_space *of;
};

/* Takes ownership of fresh. */
static int replace(struct keeper *k, const struct renewal *n, struct slab *fresh, const uint32_t *order)
{
    int r;

    r = sketch_all(k, fresh);
    if (r < 0) {
        slab_unref(fresh);
        return r;
    }
    columns_extend(&n->space->columns, k->engine->db, n->view, n->of);
    return space_replace(n->space, n->view, fresh, order);
}

static int compact(struct keeper *k, const struct renewal *n)
{
    uint32_t *order = plain_order(n->view);
    struct slab *fresh = copy_in_order(k, n->view, order);
    int r = fresh ? replace(k, n, fresh, order) : -ENOMEM;

    free(order);
    return r;
}

/* Takes ownership of the lists, and of fresh. */
static int replace_listed(struct keeper *k, const struct renewal *n, struct slab *fresh, const uint32_t *order,
                          struct lists *lists)
{
    if (!fresh) {
        lists_free(lists);
        return -ENOMEM;
    }
    fresh->lists = lists;
    fresh->n_listed = n->view->n_live;
    fresh->listed_by_row = slots_by_row(fresh, n->view->n_live);
    return replace(k, n, fresh, order);
}

/* Rows whose lists are of no use any more get the plain order again. */
static int list(struct keeper *k, const struct renewal *n)
{
    const struct slab_view *view = n->view;
    const struct lists_goal goal = { .recall = k->engine->target_recall,
                                     .must_be_sure = view->n_live <= (size_t)k->engine->list_above_rows };
    struct lists *lists = NULL;
    uint32_t *order = NULL;
    int r;

    r = lists_build(k->engine->kernel, view, &goal, &k->engine->pace, &lists, &order);
    if (r == -EDOM) {
        space_note_tried(n->space, view);
        return view->slab->lists ? compact(k, n) : r;
    }
    if (r < 0)
        return r;
    r = replace_listed(k, n, copy_in_order(k, view, order), order, lists);
    free(order);
    return r;
}

static int measure_recall(struct keeper *k, struct space *s, const struct slab_view *view)
{
    const struct sketch_recall_request request = { .kernel = k->engine->kernel,
                                                   .sketch_kernel = k->engine->sketch_kernel,
                                                   .deviations = k->engine->sketch_deviations,
                                                   .view = view,
                                                   .pace = &k->engine->pace };
    double recall;
    int r;

    if (view->n_sketched == 0)
        return -ENOENT;
    r = sketch_recall_measure(&request, &recall);
    if (r == 0)
        space_note_recall(s, view, recall);
    return r;
}

static int renew_as(struct keeper *k, struct space *s, enum space_need need, const struct slab_view *view,
                    const struct vectors_db_space *of)
{
    const struct renewal renewal = { s, view, of };

    switch (need) {
    case SPACE_NEEDS_SKETCHES:
        return space_add_sketches(s, view, &k->engine->pace);
    case SPACE_NEEDS_SIDE:
        return space_save_side(s, &k->engine->source, view, of);
    case SPACE_NEEDS_RECALL:
        return measure_recall(k, s, view);
    case SPACE_NEEDS_LISTS:
        return list(k, &renewal);
    case SPACE_NEEDS_COMPACTION:
        return compact(k, &renewal);
    default:
        return -ENOENT;
    }
}

static void count_renewal(struct engine *engine, int64_t started_us)
{
    metric_observe(engine->renew_seconds, (double)(clock_mono_us() - started_us) / 1e6);
    metric_add(engine->n_renewals, 1);
}

/* 0: something was done. */
static int renew(struct keeper *k, struct space *s)
{
    enum space_need need = engine_need(k->engine, s);
    int64_t started_us = clock_mono_us();
    struct vectors_db_space of;
    struct slab_view view;
    int r;

    if (need == SPACE_NEEDS_NOTHING || !space_view(s, &view, &of))
        return -ENOENT;
    r = renew_as(k, s, need, &view, &of);
    slab_view_clear(&view);
    if (r == 0 && (need == SPACE_NEEDS_LISTS || need == SPACE_NEEDS_COMPACTION))
        count_renewal(k->engine, started_us);
    return r;
}

/* false: no namespace needs anything that can be done now. */
static bool renew_each(struct keeper *k)
{
    struct space **spaces;
    size_t n = engine_take_all(k->engine, &spaces);
    bool has_renewed = false;

    for (size_t i = 0; i < n; i++) {
        if (!is_stopping(k) && renew(k, spaces[i]) == 0)
            has_renewed = true;
        engine_give_back(k->engine, spaces[i]);
    }
    free(spaces);
    return has_renewed;
}

/* Namespaces take turns: one unit of sketches, or one new order. */
static void renew_all(struct keeper *k)
{
    while (renew_each(k) && !is_stopping(k))
        ;
}

/* --- the thread --- */

/* The namespaces with side files, in order of their ids. */
struct sides {
    int64_t *ids;
    size_t n;
};

static int by_id(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return x < y ? -1 : x > y;
}

static bool has_side(void *arg, int64_t space_id)
{
    const struct sides *sides = arg;

    return bsearch(&space_id, sides->ids, sides->n, sizeof(*sides->ids), by_id) != NULL;
}

/* Removes side files of namespaces that were deleted while no service ran, or that another vectors.db left. */
static void sweep_sides(struct keeper *k)
{
    struct sides sides = { 0 };

    if (vectors_db_sides(k->engine->db, &sides.ids, &sides.n, NULL) < 0)
        return;
    side_sweep(k->engine->source.side_folder, has_side, &sides);
    free(sides.ids);
}

static void sweep(struct keeper *k)
{
    struct err e = { 0 };
    bool has_more = true;

    while (has_more && !is_stopping(k))
        if (vectors_db_sweep(k->engine->db, KEEPER_SWEEP_ROWS, &has_more, &e) < 0)
            break; /* the next wake tries again */
}

static int64_t quiet_from_us(struct keeper *k)
{
    if (atomic_load(&k->engine->source.is_hurried))
        return 0;
    return 1000 * (atomic_load(&k->engine->source.changed_at_ms) + SPACE_QUIET_MS);
}

/* Under the lock. Until there is work, or a quiet moment after changes. */
static void sleep_until_work(struct keeper *k)
{
    while (!k->is_wanted && !is_stopping(k)) {
        if (!atomic_load(&k->has_changes))
            pthread_cond_wait(&k->is_changed, &k->lock);
        else if (space_is_quiet(&k->engine->source) || !cond_wait_until(&k->is_changed, &k->lock, quiet_from_us(k)))
            return;
    }
}

/* Sleeps until there may be work; false: stopping. */
static bool wait_for_work(struct keeper *k)
{
    pthread_mutex_lock(&k->lock);
    k->is_working = false;
    pthread_cond_broadcast(&k->is_changed);
    sleep_until_work(k);
    k->is_wanted = false;
    k->is_working = true;
    pthread_mutex_unlock(&k->lock);
    return !is_stopping(k);
}

/* What waits for a quiet moment: a change that comes meanwhile has it wait again. The log is folded into the file so
 * that its rows are read from the mapped file. */
static void use_quiet_moment(struct keeper *k)
{
    if (!space_is_quiet(&k->engine->source) || !atomic_exchange(&k->has_changes, false))
        return;
    renew_all(k);
    if (vectors_db_fold(k->engine->db, NULL) < 0)
        return; /* the writer folds the log when it has become long */
}

static void *keeper_main(void *arg)
{
    struct keeper *k = arg;

    thread_give_way(PRIO_MIN);
    preload(k); /* queries wait for these rows */
    thread_preempt_none(KEEPER_NICE);
    sweep_sides(k);
    sweep(k);
    renew_all(k);
    while (wait_for_work(k)) {
        renew_all(k);
        sweep(k);
        use_quiet_moment(k);
    }
    return NULL;
}

int keeper_start(struct engine *engine, struct keeper **ret, struct err *e)
{
    struct keeper *k = xcalloc(1, sizeof(*k));
    int r;

    k->engine = engine;
    k->is_working = true;
    pthread_mutex_init(&k->lock, NULL);
    cond_init(&k->is_changed);
    r = thread_start(&k->thread, "vector-keeper", keeper_main, k);
    if (r < 0) {
        pthread_cond_destroy(&k->is_changed);
        pthread_mutex_destroy(&k->lock);
        free(k);
        return err_errno(e, -r, "cannot start the thread that keeps the vectors in order");
    }
    *ret = k;
    return 0;
}

struct keeper *keeper_stop(struct keeper *k)
{
    if (!k)
        return NULL;
    pthread_mutex_lock(&k->lock);
    atomic_store(&k->engine->pace.is_stopping, true);
    pthread_cond_broadcast(&k->is_changed);
    pthread_mutex_unlock(&k->lock);
    pthread_join(k->thread, NULL);
    pthread_cond_destroy(&k->is_changed);
    pthread_mutex_destroy(&k->lock);
    free(k);
    return NULL;
}

void keeper_wake(struct keeper *k)
{
    pthread_mutex_lock(&k->lock);
    k->is_wanted = true;
    pthread_cond_broadcast(&k->is_changed);
    pthread_mutex_unlock(&k->lock);
}

/* Wakes the thread for the first change after a quiet moment only. */
void keeper_note_change(struct keeper *k)
{
    atomic_store(&k->engine->source.changed_at_ms, clock_mono_ms());
    if (atomic_exchange(&k->has_changes, true))
        return;
    pthread_mutex_lock(&k->lock);
    pthread_cond_broadcast(&k->is_changed);
    pthread_mutex_unlock(&k->lock);
}

void keeper_wait(struct keeper *k)
{
    atomic_store(&k->engine->source.is_hurried, true);
    pthread_mutex_lock(&k->lock);
    pthread_cond_broadcast(&k->is_changed);
    while (k->is_working || k->is_wanted || atomic_load(&k->has_changes))
        pthread_cond_wait(&k->is_changed, &k->lock);
    pthread_mutex_unlock(&k->lock);
    atomic_store(&k->engine->source.is_hurried, false);
}
