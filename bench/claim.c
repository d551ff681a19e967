/* Claims and completes rows of an embedded backend from N threads and prints how many a second.
 *
 *     bench_claim [-t THREADS] [-n ROWS] [-s] [FILE]      -s: with a subscriber to every change
 *
 * Rows are inserted first, untimed. Without FILE a fresh one in a temporary folder of the current directory is used
 * (/tmp may be memory). One JSON line: claims_per_second counts rows claimed and completed, the times are of such a
 * pair.
 */
#include "backend/embedded/embedded_open.h"
#include "base/clock.h"
#include "base/json_write.h"
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

enum { DEFAULT_THREADS = 8, DEFAULT_ROWS = 40000, MAX_THREADS = 256, INSERTERS = 32 };

struct bench {
    struct backend *backend;
    int n_rows;
    char (*ids)[40];
    int64_t *pair_us;
    atomic_int next, n_failed;
    atomic_llong n_events;
};

static void complain(struct bench *b, const struct err *e)
{
    if (atomic_fetch_add(&b->n_failed, 1) == 0)
        fprintf(stderr, "bench_claim: %s: %s\n", e->code, e->text);
}

static void *insert_rows(void *arg)
{
    struct bench *b = arg;
    int i;

    while ((i = atomic_fetch_add(&b->next, 1)) < b->n_rows) {
        AUTO(arena_freep) struct arena *a = arena_new();
        struct backend_new_row in = { .table = "svc_activities",
                                      .raw_data = "{\"kind\":\"invoice\",\"amount\":129.5,\"text\":\"please check\"}" };
        struct backend_row row = { 0 };
        struct err e = { 0 };

        if (backend_insert(b->backend, &in, a, &row, &e) < 0)
            complain(b, &e);
        else
            snprintf(b->ids[i], sizeof(b->ids[i]), "%s", row.id);
    }
    return NULL;
}

static void work_one(struct bench *b, int i)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct backend_claim claim = { "svc_activities", b->ids[i], "lin-bench", 300000, 3 };
    struct backend_lease lease;
    struct backend_row row;
    struct err e = { 0 };
    int64_t started_us = clock_mono_us();
    int r = backend_claim(b->backend, &claim, a, &row, &lease, &e);

    if (r == 0)
        r = backend_complete(b->backend, &lease, "{\"ok\":true}", &e);
    if (r < 0)
        complain(b, &e);
    b->pair_us[i] = clock_mono_us() - started_us;
}

static void *work_rows(void *arg)
{
    struct bench *b = arg;
    int i;

    while ((i = atomic_fetch_add(&b->next, 1)) < b->n_rows)
        work_one(b, i);
    return NULL;
}

static void count_event(void *arg, const struct backend_event *event)
{
    struct bench *b = arg;

    atomic_fetch_add(&b->n_events, 1);
}

static double run_threads(struct bench *b, int n_threads, void *(*fn)(void *arg))
{
    pthread_t threads[MAX_THREADS];
    int64_t started_us = clock_mono_us();

    atomic_store(&b->next, 0);
    for (int i = 0; i < n_threads; i++)
        pthread_create(&threads[i], NULL, fn, b);
    for (int i = 0; i < n_threads; i++)
        pthread_join(threads[i], NULL);
    return (double)(clock_mono_us() - started_us) / 1e6;
}

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return x < y ? -1 : x > y;
}

static void report(struct bench *b, int n_threads, double insert_s, double seconds)
{
    struct json_writer w;
    struct buf out;

    qsort(b->pair_us, (size_t)b->n_rows, sizeof(int64_t), by_size);
    buf_init(&out, 4096);
    json_write_init(&w, &out);
    json_begin_object(&w);
    json_add_int(&w, "claims_per_second", (int64_t)(b->n_rows / seconds));
    json_add_int(&w, "p50_us", b->pair_us[b->n_rows / 2]);
    json_add_int(&w, "p99_us", b->pair_us[b->n_rows - 1 - b->n_rows / 100]);
    json_add_int(&w, "inserts_per_second", (int64_t)(b->n_rows / insert_s));
    json_add_int(&w, "threads", n_threads);
    json_add_int(&w, "rows", b->n_rows);
    json_add_int(&w, "events", atomic_load(&b->n_events));
    json_end(&w);
    printf("%s\n", buf_str(&out));
    buf_clear(&out);
}

static int run(struct bench *b, const char *path, int n_threads, bool has_subscriber)
{
    struct backend_embedded_config config = { .path = path, .abbr = "svc", .poll_ms = 200 };
    struct err e = { 0 };
    double insert_s, seconds;
    int r = backend_embedded_open(&config, &b->backend, &e);

    if (r < 0) {
        fprintf(stderr, "bench_claim: %s\n", e.text);
        return 1;
    }
    insert_s = run_threads(b, INSERTERS, insert_rows);
    if (has_subscriber && b->backend->ops->subscribe(b->backend, count_event, NULL, b, &e) < 0)
        complain(b, &e);
    seconds = run_threads(b, n_threads, work_rows);
    backend_close(b->backend);
    report(b, n_threads, insert_s, seconds);
    return atomic_load(&b->n_failed) ? 1 : 0;
}

static void remove_files(const char *folder, const char *path)
{
    static const char *const suffixes[] = { "", "-wal", "-shm" };
    char name[300];

    for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
        snprintf(name, sizeof(name), "%s%s", path, suffixes[i]);
        unlink(name);
    }
    rmdir(folder);
}

int main(int argc, char **argv)
{
    char folder[] = "./bench_claim.XXXXXX", path[280];
    struct bench b = { .n_rows = DEFAULT_ROWS };
    int n_threads = DEFAULT_THREADS, option, status;
    bool has_subscriber = false;

    while ((option = getopt(argc, argv, "t:n:s")) != -1)
        switch (option) {
        case 't':
            n_threads = (int)strtol(optarg, NULL, 10);
            break;
        case 'n':
            b.n_rows = (int)strtol(optarg, NULL, 10);
            break;
        case 's':
            has_subscriber = true;
            break;
        default:
            return 2;
        }
    if (n_threads < 1 || n_threads > MAX_THREADS || b.n_rows < 1)
        return 2;
    b.ids = xcalloc((size_t)b.n_rows, sizeof(*b.ids));
    b.pair_us = xcalloc((size_t)b.n_rows, sizeof(int64_t));
    if (optind < argc) {
        status = run(&b, argv[optind], n_threads, has_subscriber);
    } else if (mkdtemp(folder)) {
        snprintf(path, sizeof(path), "%s/backend.db", folder);
        status = run(&b, path, n_threads, has_subscriber);
        remove_files(folder, path);
    } else {
        status = 1;
    }
    free(b.ids);
    free(b.pair_us);
    return status;
}
