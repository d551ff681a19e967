/* A process that is killed while it stores: every acknowledged batch is stored, and no batch is stored in part. */
#include "rig.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N_WRITERS = 3, N_DIMENSIONS = 8, MAX_BATCHES = 4000, BATCH = 37, N_ROUNDS = 6 };

/* Batch b of writer w has BATCH ids "w-b-i" in namespace "w"; every third replaces the ids of the one before it. */
static size_t id_batch(size_t batch)
{
    return batch % 3 == 2 ? batch - 1 : batch;
}

static void upsert_batch(struct vectors *v, size_t writer, size_t batch)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct vector_record records[BATCH];
    struct err e = { 0 };

    for (size_t i = 0; i < BATCH; i++) {
        float *vector = arena_array(a, N_DIMENSIONS, sizeof(float));

        vector[i % N_DIMENSIONS] = 1;
        records[i] = (struct vector_record){ arena_printf(a, "%zu-%zu-%zu", writer, id_batch(batch), i), vector,
                                             arena_printf(a, "{\"batch\":%zu}", batch) };
    }
    if (v->ops->upsert(v, NULL, arena_printf(a, "%zu", writer), &(struct vector_batch){ records, BATCH, N_DIMENSIONS },
                       &e) < 0)
        _exit(3);
}

/* --- the child --- */

struct ack {
    size_t writer, batch;
};

struct writer {
    struct vectors *v;
    size_t number, first_batch;
    int pipe;
};

static void *write_for_ever(void *arg)
{
    struct writer *w = arg;

    for (size_t batch = w->first_batch; batch < MAX_BATCHES; batch++) {
        struct ack ack = { w->number, batch };

        upsert_batch(w->v, w->number, batch);
        if (write(w->pipe, &ack, sizeof(ack)) != sizeof(ack))
            _exit(4);
    }
    return NULL;
}

static _Noreturn void run_child(const char *path, const size_t *first_batches, int to_parent)
{
    struct vectors_embedded_config config = {
        .path = path, .list_above_rows = 250000, .target_recall = 0.97, .memory_bytes = 1 << 30
    };
    struct writer writers[N_WRITERS];
    pthread_t threads[N_WRITERS];
    struct vectors *v = NULL;
    struct err e = { 0 };

    if (vectors_embedded_open(&config, &v, &e) < 0)
        _exit(2);
    for (size_t i = 0; i < N_WRITERS; i++) {
        writers[i] = (struct writer){ v, i, first_batches[i], to_parent };
        pthread_create(&threads[i], NULL, write_for_ever, &writers[i]);
    }
    for (size_t i = 0; i < N_WRITERS; i++)
        pthread_join(threads[i], NULL);
    _exit(0);
}

/* --- the parent --- */

/* Kills the child after it reported n_acks batches; batches that it still reports afterwards count too. */
static void kill_after(const char *path, size_t n_acks, size_t *n_acknowledged)
{
    struct ack ack;
    int ends[2], status;
    pid_t pid;

    assert_int_equal(pipe(ends), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        close(ends[0]);
        run_child(path, n_acknowledged, ends[1]);
    }
    close(ends[1]);
    for (size_t n = 0; read(ends[0], &ack, sizeof(ack)) == sizeof(ack); n++) {
        assert_int_equal(ack.batch, n_acknowledged[ack.writer]);
        n_acknowledged[ack.writer] = ack.batch + 1;
        if (n == n_acks)
            kill(pid, SIGKILL);
    }
    close(ends[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* The number of rows of the namespace that came with this batch. */
static size_t count_batch(struct rig *x, size_t writer, size_t batch)
{
    const float vector[N_DIMENSIONS] = { 1 };
    struct vector_query q = { .vector = vector, .n_dimensions = N_DIMENSIONS, .top_k = LIMIT_TOP_K, .min_score = -2 };
    const char *ns = arena_printf(x->a, "%zu", writer);

    q.filter = rig_json(x, arena_printf(x->a, "{\"batch\":%zu}", batch));
    return rig_query(x, ns, &q).n;
}

/* The last batch of every third pair replaces the one before it. Batches beyond the acknowledged ones are stored as a
 * whole or not at all. */
static size_t check_writer(struct rig *x, size_t writer, size_t n_acknowledged)
{
    size_t n = n_acknowledged, n_batches;

    while (count_batch(x, writer, n) == BATCH) /* stored, but not reported any more */
        n++;
    assert_true(n <= n_acknowledged + 1);
    assert_int_equal(count_batch(x, writer, n), 0);
    for (size_t batch = 0; batch < n; batch++)
        assert_int_equal(count_batch(x, writer, batch), batch % 3 == 1 && batch + 1 < n ? 0 : BATCH);
    n_batches = n / 3 * 2 + n % 3;
    assert_int_equal(rig_count(x, arena_printf(x->a, "%zu", writer)), n_batches * BATCH);
    return n;
}

static void no_acknowledged_batch_is_lost_and_none_is_there_in_part(void **state)
{
    size_t n_acknowledged[N_WRITERS] = { 0 };
    struct dice dice = { 99 };

    for (int round = 0; round < N_ROUNDS; round++) {
        static struct folder folder;
        struct rig *x;

        if (round == 0)
            folder = folder_make();
        kill_after(folder.file, 5 + dice_below(&dice, 60), n_acknowledged);
        x = calloc(1, sizeof(*x));
        *x = (struct rig){ .folder = folder,
                           .a = arena_new(),
                           .config = { .list_above_rows = 250000, .target_recall = 0.97, .memory_bytes = 1 << 30 } };
        rig_reopen(x);
        for (size_t i = 0; i < N_WRITERS; i++)
            n_acknowledged[i] = check_writer(x, i, n_acknowledged[i]);
        if (round + 1 == N_ROUNDS) {
            rig_close(x);
        } else {
            x->v->ops->close(x->v);
            arena_free(x->a);
            free(x);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_acknowledged_batch_is_lost_and_none_is_there_in_part),
    };

    return cmocka_run_group_tests_name("engine_crash", tests, NULL, NULL);
}
