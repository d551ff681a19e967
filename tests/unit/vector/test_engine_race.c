/* Many threads on one namespace: every answer must correspond to some order of the calls. */
#include "rig.h"

#include <pthread.h>
#include <stdatomic.h>

enum { N_DIMENSIONS = 16, N_IDS = 64, N_WRITERS = 2, N_READERS = 4, N_GENERATIONS = 60 };

/* Each writer has its own ids and replaces all of them in one call: a reader sees one complete generation of each
 * writer. */
struct world {
    struct rig *x;
    atomic_int n_writing;
    atomic_size_t n_queries;
    float vectors[N_WRITERS][N_IDS][N_DIMENSIONS];
};

struct writer {
    struct world *w;
    int number;
    pthread_t thread;
};

static void write_generation(struct writer *writer, int generation)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct vectors *v = writer->w->x->v;
    struct vector_record records[N_IDS];
    struct err e = { 0 };

    for (size_t i = 0; i < N_IDS; i++)
        records[i] =
            (struct vector_record){ arena_printf(a, "%d-%zu", writer->number, i), writer->w->vectors[writer->number][i],
                                    arena_printf(a, "{\"writer\":%d,\"generation\":%d}", writer->number, generation) };
    assert_int_equal(v->ops->upsert(v, NULL, "ns", &(struct vector_batch){ records, N_IDS, N_DIMENSIONS }, &e), 0);
}

static void *write_all(void *arg)
{
    struct writer *writer = arg;

    for (int generation = 1; generation <= N_GENERATIONS; generation++)
        write_generation(writer, generation);
    atomic_fetch_sub(&writer->w->n_writing, 1);
    return NULL;
}

static void check_answer(const struct vector_hits *hits, struct arena *a, int only_writer)
{
    int generations[N_WRITERS] = { 0 }, counts[N_WRITERS] = { 0 };

    for (size_t i = 0; i < hits->n; i++) {
        struct json_value metadata = { 0 };
        int writer, generation;

        assert_int_equal(json_parse(a, slice_of(hits->items[i].metadata), &metadata, NULL), 0);
        writer = (int)json_int(json_get(metadata, "writer"));
        generation = (int)json_int(json_get(metadata, "generation"));
        if (counts[writer]++ == 0)
            generations[writer] = generation;
        assert_int_equal(generation, generations[writer]);
    }
    for (int i = 0; i < N_WRITERS; i++)
        assert_int_equal(counts[i], only_writer < 0 || only_writer == i ? N_IDS : 0);
}

static void *read_all(void *arg)
{
    struct world *w = arg;
    struct vectors *v = w->x->v;

    for (int turn = 0; turn == 0 || atomic_load(&w->n_writing) > 0; turn++) {
        AUTO(arena_freep) struct arena *a = arena_new();
        struct vector_query q = {
            .vector = w->vectors[0][turn % N_IDS], .n_dimensions = N_DIMENSIONS, .top_k = LIMIT_TOP_K, .min_score = -2
        };
        struct vector_hits hits = { 0 };
        struct err e = { 0 };

        if (turn % 2)
            assert_int_equal(json_parse(a, SLICE_LIT("{\"writer\":1}"), &q.filter, &e), 0);
        if (v->ops->query(v, NULL, "ns", &q, a, &hits, &e) < 0)
            fail_msg("%s", e.text);
        check_answer(&hits, a, turn % 2 ? 1 : -1);
        atomic_fetch_add(&w->n_queries, 1);
    }
    return NULL;
}

static void work(int64_t memory_bytes)
{
    struct world *w = calloc(1, sizeof(*w));
    struct writer writers[N_WRITERS];
    pthread_t readers[N_READERS];
    struct dice dice = { 5 };

    w->x = rig_open();
    w->x->config.memory_bytes = memory_bytes;
    rig_reopen(w->x);
    w->n_writing = N_WRITERS;
    for (int i = 0; i < N_WRITERS; i++)
        for (size_t j = 0; j < N_IDS; j++)
            dice_vector(&dice, w->vectors[i][j], N_DIMENSIONS);
    for (int i = 0; i < N_WRITERS; i++) {
        writers[i] = (struct writer){ .w = w, .number = i };
        write_generation(&writers[i], 0);
    }
    for (int i = 0; i < N_WRITERS; i++)
        pthread_create(&writers[i].thread, NULL, write_all, &writers[i]);
    for (int i = 0; i < N_READERS; i++)
        pthread_create(&readers[i], NULL, read_all, w);
    for (int i = 0; i < N_WRITERS; i++)
        pthread_join(writers[i].thread, NULL);
    for (int i = 0; i < N_READERS; i++)
        pthread_join(readers[i], NULL);
    assert_true(atomic_load(&w->n_queries) > 0);
    assert_int_equal(rig_count(w->x, "ns"), N_WRITERS * N_IDS);
    rig_close(w->x);
    free(w);
}

static void a_query_sees_batches_whole(void **state)
{
    work(1 << 30);
}

static void a_query_sees_batches_whole_when_memory_is_never_enough(void **state)
{
    work(1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_query_sees_batches_whole),
        cmocka_unit_test(a_query_sees_batches_whole_when_memory_is_never_enough),
    };

    return cmocka_run_group_tests_name("engine_race", tests, NULL, NULL);
}
