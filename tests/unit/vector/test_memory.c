/* Which namespaces are in memory: loaded on use, evicted, loaded again when the store opens; shared passes. */
#include "../metric.h"
#include "vector/engine/engine.h"
#include "vector/engine/quant.h"
#include "rig.h"

#include <pthread.h>
#include <stdio.h>

enum { N_DIMENSIONS = 64, N_ROWS = 200 };

static bool is_loaded(struct rig *x, const char *ns)
{
    struct space *s = engine_take(engine_of(x->v), ns);
    bool is = space_has_rows(s);

    engine_give_back(engine_of(x->v), s);
    return is;
}

static void put_rows(struct rig *x, const char *ns, size_t n)
{
    struct vector_record *records = arena_array(x->a, n, sizeof(*records));
    struct dice dice = { 3 };

    for (size_t i = 0; i < n; i++) {
        float *vector = arena_array(x->a, N_DIMENSIONS, sizeof(float));

        dice_vector(&dice, vector, N_DIMENSIONS);
        records[i] = (struct vector_record){ arena_printf(x->a, "%zu", i), vector, NULL };
    }
    MUST(x->v->ops->upsert(x->v, NULL, ns, &(struct vector_batch){ records, n, N_DIMENSIONS }, &x->e));
}

static size_t request(struct rig *x, const char *ns)
{
    const float vector[N_DIMENSIONS] = { 1 };
    struct vector_query q = { .vector = vector, .n_dimensions = N_DIMENSIONS, .top_k = 10, .min_score = -2 };

    return rig_query(x, ns, &q).n;
}

static bool is_mapped(const char *path)
{
    FILE *f = fopen("/proc/self/maps", "re");
    char line[1024];
    bool is = false;

    assert_non_null(f);
    while (!is && fgets(line, sizeof(line), f)) {
        const char *name = strchr(line, '/');

        line[strcspn(line, "\n")] = '\0';
        is = name && strcmp(name, path) == 0;
    }
    fclose(f);
    return is;
}

static void rows_of_an_answer_are_read_from_the_mapped_file(void **state)
{
    struct rig *x = rig_open();

    put_rows(x, "ns", N_ROWS);
    rig_reopen(x); /* folds the log into the file */
    assert_int_equal(request(x, "ns"), 10);
    assert_true(is_mapped(x->folder.file));
    rig_close(x);
}

/* Do the rows of the slab's chunk lie in memory for which large pages are wanted? */
static bool has_large_pages(const struct slab *slab, size_t chunk)
{
    unsigned long long wanted = (uintptr_t)slab->chunks[chunk].codes, from, to;
    FILE *f = fopen("/proc/self/smaps", "re");
    bool is_inside = false, is = false;
    char line[1024];

    assert_non_null(f);
    while (fgets(line, sizeof(line), f)) {
        if (sscanf(line, "%llx-%llx ", &from, &to) == 2)
            is_inside = from <= wanted && wanted < to;
        else if (is_inside && strncmp(line, "VmFlags:", 8) == 0)
            is = strstr(line, " hg");
    }
    fclose(f);
    return is;
}

static bool is_large_of_namespace(struct rig *x, const char *ns, size_t chunk)
{
    struct space *s = engine_take(engine_of(x->v), ns);
    bool is;

    assert_true(s->slab->n_chunks > chunk);
    is = has_large_pages(s->slab, chunk);
    engine_give_back(engine_of(x->v), s);
    return is;
}

enum { N_WIDE = 128 /* dimensions; a chunk is larger than a large page */ };

static void put_wide_rows(struct rig *x, size_t from, size_t to)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct vector_record *records = arena_array(a, to - from, sizeof(*records));

    for (size_t i = from; i < to; i++) {
        float *vector = arena_array(a, N_WIDE, sizeof(float));

        vector[i % N_WIDE] = (float)i + 1;
        records[i - from] = (struct vector_record){ arena_printf(a, "%zu", i), vector, NULL };
    }
    MUST(x->v->ops->upsert(x->v, NULL, "ns", &(struct vector_batch){ records, to - from, N_WIDE }, &x->e));
}

/* To fill one takes long. */
static void rows_have_no_large_pages(void **state)
{
    struct rig *x = rig_open();

    put_wide_rows(x, 0, LIMIT_VECTORS_PER_CALL);
    put_wide_rows(x, LIMIT_VECTORS_PER_CALL, SLAB_CHUNK_ROWS + 1);
    assert_false(is_large_of_namespace(x, "ns", 1));
    rig_reopen(x);
    keeper_wait(engine_of(x->v)->keeper);
    assert_false(is_large_of_namespace(x, "ns", 1));
    rig_close(x);
}

static void namespaces_used_least_recently_are_evicted(void **state)
{
    struct rig *x = rig_open();

    x->config.memory_bytes = (int64_t)(2.5 * N_ROWS * (N_DIMENSIONS + 12));
    rig_reopen(x);
    put_rows(x, "one", N_ROWS);
    put_rows(x, "two", N_ROWS);
    assert_true(is_loaded(x, "one") && is_loaded(x, "two"));
    put_rows(x, "three", N_ROWS);
    assert_int_equal(is_loaded(x, "one") + is_loaded(x, "two") + is_loaded(x, "three"), 2);
    assert_true(is_loaded(x, "three"));
    assert_int_equal(request(x, "one"), 10);
    assert_true(is_loaded(x, "one"));
    assert_int_equal(request(x, "two"), 10);
    assert_true(atomic_load(&engine_of(x->v)->bytes) <= (size_t)x->config.memory_bytes);
    rig_close(x);
}

static void what_was_used_is_loaded_when_the_store_opens(void **state)
{
    struct rig *x = rig_open();

    put_rows(x, "one", N_ROWS);
    put_rows(x, "two", N_ROWS);
    rig_reopen(x);
    keeper_wait(engine_of(x->v)->keeper);
    assert_true(is_loaded(x, "one") && is_loaded(x, "two"));
    x->config.memory_bytes = 1;
    rig_reopen(x);
    keeper_wait(engine_of(x->v)->keeper);
    assert_int_equal(is_loaded(x, "one") + is_loaded(x, "two"), 1); /* the first uses more than half of the memory */
    rig_close(x);
}

static void a_large_namespace_is_slow_until_it_is_loaded(void **state)
{
    struct rig *x = rig_open();

    put_rows(x, "small", LIMIT_VECTORS_PER_CALL);
    put_rows(x, "large", LIMIT_VECTORS_PER_CALL);
    rig_put(x, "large", "one more", (float[N_DIMENSIONS]){ 1 }, N_DIMENSIONS, NULL);
    x->config.memory_bytes = 1; /* so that no namespace is loaded when the store opens */
    rig_reopen(x);
    keeper_wait(engine_of(x->v)->keeper);
    engine_evict(engine_of(x->v), NULL);
    assert_true(x->v->ops->is_slow(x->v, "large"));
    assert_false(x->v->ops->is_slow(x->v, "small"));
    assert_false(x->v->ops->is_slow(x->v, "nowhere"));
    assert_int_equal(request(x, "large"), 10);
    assert_false(x->v->ops->is_slow(x->v, "large"));
    rig_close(x);
}

static void names_that_hold_nothing_leave_no_trace(void **state)
{
    struct rig *x = rig_open();
    struct engine *engine = engine_of(x->v);
    int64_t n;

    for (int i = 0; i < 100; i++)
        assert_int_equal(request(x, arena_printf(x->a, "nothing %d", i)), 0);
    put_rows(x, "gone", 3);
    MUST(x->v->ops->remove(x->v, NULL, "gone", &(struct vector_removal){ .all = true }, &n, &x->e));
    keeper_wait(engine->keeper); /* the keeper loads the namespaces that it found when the store opened */
    for (size_t i = 0; i < ENGINE_BUCKETS; i++)
        assert_null(engine->buckets[i]);
    assert_int_equal(atomic_load(&engine->bytes), 0);
    rig_close(x);
}

static void fill_up(struct rig *x, int64_t n)
{
    struct sql_db *other = NULL;

    MUST(sql_open(x->folder.file, NULL, &other, &x->e));
    MUST(sql_exec(
        other, &x->e,
        "INSERT INTO spaces (name, n_dimensions, n_rows, next_row, used_at) WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL"
        " SELECT i + 1 FROM n WHERE i < ?) SELECT 'filler ' || i, 1, 0, 0, 0 FROM n",
        "i", n));
    sql_close(other);
}

static void there_are_as_many_namespaces_as_the_limit(void **state)
{
    struct rig *x = rig_open();
    struct field_strings names = { 0 };
    struct vector_record record = { "a", (float[]){ 1 }, NULL };
    struct vector_batch batch = { &record, 1, 1 };

    fill_up(x, LIMIT_VECTOR_NAMESPACES - 1);
    MUST(x->v->ops->upsert(x->v, NULL, "last", &batch, &x->e));
    MUST_FAIL(x->v->ops->upsert(x->v, NULL, "one more", &batch, &x->e), -E2BIG, "TOO_MANY_NAMESPACES");
    MUST(x->v->ops->upsert(x->v, NULL, "last", &batch, &x->e));
    MUST(x->v->ops->namespaces(x->v, NULL, "", x->a, &names, &x->e));
    assert_int_equal(names.n, LIMIT_VECTOR_NAMESPACES);
    rig_close(x);
}

/* --- shared passes --- */

enum { N_REQUESTS = 40 };

struct batcher_test {
    struct scan_batcher batcher;
    struct slab *slab;
};

struct requester {
    struct batcher_test *t;
    const struct kernel *kernel;
    struct quant_query query;
    struct best best, expected;
    pthread_t thread;
};

static void *run_request(void *arg)
{
    struct requester *requester = arg;
    struct scan_request request = { .query = &requester->query, .n = requester->t->slab->n, .best = &requester->best };

    scan_batcher_run(&requester->t->batcher, requester->kernel, requester->t->slab, &request);
    return NULL;
}

static void fill_slab(struct slab *slab, size_t n)
{
    uint8_t *codes = aligned_alloc(KERNEL_ALIGN, slab->stride);
    float vector[N_DIMENSIONS];
    struct dice dice = { 21 };
    struct err e = { 0 };

    for (size_t i = 0; i < n; i++) {
        float scale;

        dice_vector(&dice, vector, N_DIMENSIONS);
        scale = quant_encode(vector, N_DIMENSIONS, codes);
        assert_int_equal(slab_write(slab, i, codes, scale, (int64_t)i, &e), 0);
    }
    slab_publish(slab, n);
    free(codes);
}

/* A kernel whose pass lasts while the test holds the gate. */
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static void held_dots(const uint8_t *rows, size_t stride, size_t n_rows, const int8_t *query, int32_t *out)
{
    pthread_mutex_lock(&gate);
    pthread_mutex_unlock(&gate);
    kernel_best()->dots(rows, stride, n_rows, query, out);
}

static const struct kernel held_kernel = { .name = "held", .dots = held_dots, .dots_again = held_dots };

static void start_requester(struct requester *requester, struct batcher_test *t, struct dice *dice,
                            const struct kernel *kernel)
{
    struct scan_request request = { .query = &requester->query, .n = t->slab->n, .best = &requester->expected },
                        *requests = &request;
    float vector[N_DIMENSIONS];

    requester->t = t;
    requester->kernel = kernel;
    dice_vector(dice, vector, N_DIMENSIONS);
    quant_query_init(&requester->query, vector, N_DIMENSIONS);
    best_init(&requester->best, 16);
    best_init(&requester->expected, 16);
    scan_range(kernel_best(), t->slab, &requests, 1, 0, t->slab->n);
    assert_int_equal(pthread_create(&requester->thread, NULL, run_request, requester), 0);
}

static void finish_requester(struct requester *requester)
{
    pthread_join(requester->thread, NULL);
    assert_int_equal(requester->best.n, requester->expected.n);
    assert_memory_equal(requester->best.items, requester->expected.items,
                        requester->best.n * sizeof(*requester->best.items));
    best_clear(&requester->best);
    best_clear(&requester->expected);
    quant_query_clear(&requester->query);
}

static bool are_all_waiting(void *arg)
{
    struct scan_batcher *batcher = arg;
    bool are;

    pthread_mutex_lock(&batcher->lock);
    are = batcher->n_waiting == N_REQUESTS;
    pthread_mutex_unlock(&batcher->lock);
    return are;
}

struct expected_passes {
    struct scan_batcher *batcher;
    size_t n_running;
};

static bool are_running(void *arg)
{
    const struct expected_passes *expected = arg;
    bool are;

    pthread_mutex_lock(&expected->batcher->lock);
    are = expected->batcher->n_running == expected->n_running;
    pthread_mutex_unlock(&expected->batcher->lock);
    return are;
}

/* Starts as many passes as may run, each with one query. */
static void start_holders(struct requester *holders, struct batcher_test *t, struct dice *dice)
{
    struct expected_passes expected = { .batcher = &t->batcher };

    for (size_t i = 0; i < t->batcher.max_running; i++) {
        start_requester(&holders[i], t, dice, &held_kernel);
        expected.n_running = i + 1;
        assert_true(wait_until(are_running, &expected));
    }
}

/* All queries wait while no further pass may run; then they share passes of at most SCAN_BATCH. */
static void waiting_queries_share_passes_and_get_their_own_answers(void **state)
{
    struct requester *requesters = calloc(N_REQUESTS, sizeof(*requesters)), *holders;
    struct batcher_test t = { 0 };
    atomic_size_t account = 0;
    struct dice dice = { 17 };
    double before = metric_of("hearth_vector_pass_queries_count");

    scan_batcher_init(&t.batcher);
    holders = calloc(t.batcher.max_running, sizeof(*holders));
    t.slab = slab_new(N_DIMENSIONS, &account);
    fill_slab(t.slab, 1000);
    pthread_mutex_lock(&gate);
    start_holders(holders, &t, &dice);
    for (size_t i = 0; i < N_REQUESTS; i++)
        start_requester(&requesters[i], &t, &dice, kernel_best());
    assert_true(wait_until(are_all_waiting, &t.batcher));
    pthread_mutex_unlock(&gate);
    for (size_t i = 0; i < t.batcher.max_running; i++)
        finish_requester(&holders[i]);
    for (size_t i = 0; i < N_REQUESTS; i++)
        finish_requester(&requesters[i]);
    assert_true(metric_of("hearth_vector_pass_queries_count") - before ==
                (double)(t.batcher.max_running + (N_REQUESTS + SCAN_BATCH - 1) / SCAN_BATCH));
    slab_unref(t.slab);
    assert_int_equal(atomic_load(&account), 0);
    scan_batcher_clear(&t.batcher);
    free(requesters);
    free(holders);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_an_answer_are_read_from_the_mapped_file),
        cmocka_unit_test(rows_have_no_large_pages),
        cmocka_unit_test(namespaces_used_least_recently_are_evicted),
        cmocka_unit_test(what_was_used_is_loaded_when_the_store_opens),
        cmocka_unit_test(a_large_namespace_is_slow_until_it_is_loaded),
        cmocka_unit_test(names_that_hold_nothing_leave_no_trace),
        cmocka_unit_test(there_are_as_many_namespaces_as_the_limit),
        cmocka_unit_test(waiting_queries_share_passes_and_get_their_own_answers),
    };

    return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
