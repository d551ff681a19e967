#include "vector/engine/engine.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/metrics.h"
#include "store/instance.h"
#include "vector/engine/quant.h"
#include "vector/engine/sketch_kernel.h"
#include <unistd.h>

/* --- the table --- */

static struct space **bucket_of(struct engine *engine, const char *ns)
{
    return &engine->buckets[hash_fast(slice_of(ns)) % ENGINE_BUCKETS];
}

struct space *engine_take(struct engine *engine, const char *ns)
{
    struct space **bucket = bucket_of(engine, ns), *s;

    pthread_mutex_lock(&engine->lock);
    for (s = *bucket; s && strcmp(s->name, ns) != 0; s = s->next)
        ;
    if (!s) {
        s = space_new(ns, &engine->bytes);
        s->next = *bucket;
        *bucket = s;
    }
    s->n_refs++;
    s->used_at_ms = clock_mono_ms();
    pthread_mutex_unlock(&engine->lock);
    return s;
}

static void forget(struct engine *engine, struct space *s)
{
    struct space **at = bucket_of(engine, s->name);

    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
    space_free(s);
}

void engine_give_back(struct engine *engine, struct space *s)
{
    pthread_mutex_lock(&engine->lock);
    if (--s->n_refs == 0 && !space_has_rows(s))
        forget(engine, s);
    pthread_mutex_unlock(&engine->lock);
}

size_t engine_take_all(struct engine *engine, struct space ***ret)
{
    size_t n = 0, cap = 0;

    *ret = NULL;
    pthread_mutex_lock(&engine->lock);
    for (size_t i = 0; i < ENGINE_BUCKETS; i++)
        for (struct space *s = engine->buckets[i]; s; s = s->next) {
            if (n == cap) {
                cap = cap ? 2 * cap : 64;
                *ret = xrealloc(*ret, cap * sizeof(struct space *));
            }
            s->n_refs++;
            (*ret)[n++] = s;
        }
    pthread_mutex_unlock(&engine->lock);
    return n;
}

/* --- memory --- */

static bool is_evictable(struct space *s, const struct space *keep)
{
    return s != keep && s->n_refs == 0 && space_has_rows(s);
}

/* The namespace to evict, with a reference that the caller releases; NULL: none can be evicted. */
static struct space *take_oldest(struct engine *engine, const struct space *keep)
{
    struct space *oldest = NULL;

    pthread_mutex_lock(&engine->lock);
    for (size_t i = 0; i < ENGINE_BUCKETS; i++)
        for (struct space *s = engine->buckets[i]; s; s = s->next)
            if (is_evictable(s, keep) && (!oldest || s->used_at_ms < oldest->used_at_ms))
                oldest = s;
    if (oldest)
        oldest->n_refs++;
    pthread_mutex_unlock(&engine->lock);
    return oldest;
}

void engine_evict(struct engine *engine, const struct space *keep)
{
    struct space *s;

    while (atomic_load(&engine->bytes) > (size_t)engine->memory_bytes && (s = take_oldest(engine, keep))) {
        pthread_rwlock_wrlock(&s->gate);
        space_unload(s);
        pthread_rwlock_unlock(&s->gate);
        engine_give_back(engine, s);
        metric_add(engine->n_evictions, 1);
    }
}

enum space_need engine_need(struct engine *engine, struct space *s)
{
    return space_need(s, &engine->source, engine->list_above_rows);
}

int engine_read_rows(struct engine *engine, struct space *s, struct err *e)
{
    int64_t started_us = clock_mono_us();
    int r;

    r = space_load(s, &engine->source, e);
    if (r == 0 && space_has_rows(s))
        metric_observe(engine->load_seconds, (double)(clock_mono_us() - started_us) / 1e6);
    return r;
}

int engine_load(struct engine *engine, struct space *s, struct err *e)
{
    int r;

    if (space_is_loaded(s))
        return 0;
    r = engine_read_rows(engine, s, e);
    if (r < 0 || !space_has_rows(s))
        return r;
    engine_evict(engine, s);
    if (engine_need(engine, s) != SPACE_NEEDS_NOTHING)
        keeper_wake(engine->keeper);
    return vectors_db_touch(engine->db, s->name, e);
}

static double bytes_now(void *arg)
{
    return (double)atomic_load(&((struct engine *)arg)->bytes);
}

static double lowest_recall(struct engine *engine, double (*recall_of)(struct space *s))
{
    struct space **spaces;
    size_t n = engine_take_all(engine, &spaces);
    double lowest = 1;

    for (size_t i = 0; i < n; i++) {
        lowest = MIN(lowest, recall_of(spaces[i]));
        engine_give_back(engine, spaces[i]);
    }
    free(spaces);
    return lowest;
}

static double recall_now(void *arg)
{
    return lowest_recall(arg, space_recall);
}

static double sketch_recall_now(void *arg)
{
    return lowest_recall(arg, space_sketch_recall);
}

/* --- the interface --- */

static struct vectors *engine_close(struct vectors *v)
{
    struct engine *engine = engine_of(v);

    keeper_stop(engine->keeper);
    metric_gauge_fn_forget(engine);
    for (size_t i = 0; i < ENGINE_BUCKETS; i++)
        while (engine->buckets[i])
            forget(engine, engine->buckets[i]);
    helpers_stop(engine->helpers);
    vectors_db_close(engine->db);
    if (engine->source.side_folder >= 0)
        close(engine->source.side_folder);
    pthread_mutex_destroy(&engine->lock);
    free(engine);
    return NULL;
}

static int engine_check(struct vectors *v, const struct net_wait *wait, struct err *e)
{
    struct vectors_db_space space;

    return vectors_db_find(engine_of(v)->db, "", &space, e);
}

static const struct vectors_ops engine_ops = {
    .name = "embedded",
    .has_text = true,
    .close = engine_close,
    .is_slow = engine_is_slow,
    .check = engine_check,
    .upsert = engine_upsert,
    .query = engine_query,
    .remove = engine_remove,
    .count = engine_count,
    .bytes = engine_bytes,
    .list = engine_list,
    .namespaces = engine_namespaces,
};

static void open_metrics(struct engine *engine)
{
    engine->load_seconds = metric_histogram("hearth_vector_load_seconds", "Time to load a namespace.", "");
    engine->n_evictions = metric_counter("hearth_vector_evictions_total", "Namespaces unloaded for their memory.", "");
    engine->renew_seconds = metric_histogram("hearth_vector_renew_seconds",
                                             "Time to build the lists of a namespace, or to compact it.", "");
    engine->n_renewals = metric_counter("hearth_vector_renewals_total", "Lists built and compactions done.", "");
    engine->n_sides_refused = metric_counter("hearth_vector_side_refused_total",
                                             "Side files that were missing, damaged or of another state.", "");
    engine->n_sketch_passed =
        metric_counter("hearth_vector_sketch_rows_total", "Rows whose sketches queries read.", "");
    engine->n_sketch_left_out = metric_counter("hearth_vector_sketch_left_out_rows_total",
                                               "Rows that queries left out by the coarse parts of sketches.", "");
    engine->n_sketch_scored = metric_counter("hearth_vector_sketch_scored_rows_total",
                                             "Rows with sketches that queries scored by their codes.", "");
    engine->n_float_rows =
        metric_counter("hearth_vector_float_rows_total", "Rows that queries scored by their floats.", "");
    engine->n_helped =
        metric_counter("hearth_vector_helpers_total", "Threads that took a part of a query's pass over many rows.", "");
    metric_gauge_fn("hearth_vector_memory_bytes", "Vectors in memory.", "", bytes_now, engine);
    metric_gauge_fn("hearth_vector_lists_recall",
                    "Measured recall of the ten nearest, the lowest of all namespaces with lists.", "", recall_now,
                    engine);
    metric_gauge_fn("hearth_vector_sketch_recall",
                    "Measured recall of the ten nearest, the lowest of all namespaces with sketches.", "",
                    sketch_recall_now, engine);
}

static void open_source(struct engine *engine, const char *side_folder)
{
    engine->source.db = engine->db;
    engine->source.side_folder = side_folder ? side_folder_open(side_folder) : -1;
    engine->source.has_sketches = engine->sketch_deviations > 0;
    engine->source.n_refused = engine->n_sides_refused;
    atomic_store(&engine->source.changed_at_ms, INT64_MIN / 2);
}

static size_t n_processors(void)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);

    return n > 0 ? (size_t)n : 1;
}

int vectors_embedded_open(const struct vectors_embedded_config *c, struct vectors **ret, struct err *e)
{
    struct engine *engine = xcalloc(1, sizeof(*engine));
    int r;

    engine->base.ops = &engine_ops;
    engine->kernel = kernel_best();
    engine->sketch_kernel = sketch_kernel_best();
    engine->sketch_deviations = (float)c->sketch_deviations;
    engine->list_above_rows = c->list_above_rows;
    engine->target_recall = c->target_recall;
    engine->memory_bytes = c->memory_bytes;
    engine->source.side_folder = -1;
    pthread_mutex_init(&engine->lock, NULL);
    open_metrics(engine);
    r = c->instance ? instance_admit(c->instance, INSTANCE_VECTORS, c->path, e) : 0;
    if (r == 0)
        r = vectors_db_open(c->path, c->instance, &engine->db, e);
    if (r < 0 && c->instance && instance_give_up(c->instance, INSTANCE_VECTORS, c->path, r, e) == 0)
        r = vectors_db_open(c->path, c->instance, &engine->db, e);
    if (r == 0)
        open_source(engine, c->side_folder);
    if (r == 0) {
        engine->helpers = helpers_start(n_processors());
        r = keeper_start(engine, &engine->keeper, e);
    }
    if (r < 0) {
        engine_close(&engine->base);
        return r;
    }
    *ret = &engine->base;
    return 0;
}
