/* Fills an embedded vector store, queries it and prints its figures as one line of JSON.
 *
 *     bench_vector [-n ROWS] [-d DIMENSIONS] [-b BATCH] [-q QUERIES] [-t THREADS] [-k uniform|clustered] [-l ROWS] [-c
 * KERNEL] [-s KERNEL] [-z DEVIATIONS] [-i FILE] [FOLDER]
 *
 * -l: inverted lists above so many rows (default: none); they are built before queries are measured. -c: the name
 * of a kernel (vector/engine/kernel.c) instead of the best of this processor, -s: of one for sketches
 * (vector/engine/sketch_kernel.c). -z: deviations, 0 for no sketches (3). -i: rows, then
 * queries, as float32 of this machine's byte order instead of ones made up. Queries run on one thread through the
 * engine, then on THREADS. Recall is counted against an exact search over the floats. FOLDER (default: the current one)
 * gets a database that is removed at the end; /tmp may be memory. cpu_p50_us is the processor time of a query,
 * upsert_cpu_us that of a vector stored in a batch, which other programs on the machine change less than p50_us and
 * upserts_per_second. scan_share is the speed of a pass over the rows as a share of the speed at which one thread reads
 * memory.
 */
#include "../tests/unit/metric.h"
#include "base/clock.h"
#include "base/json_write.h"
#include "vector/engine/engine.h"
#include "vector/engine/quant.h"
#include "vector/engine/sketch_kernel.h"
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { TOP_K = 10, N_CLUSTERS = 2000, N_RECALL_QUERIES = 100, N_SINGLE = 500, MAX_THREADS = 64, PASSES = 15 };

struct bench {
    struct vectors *v;
    const char *path, *input;
    size_t n, n_dimensions, batch, n_queries, n_threads;
    int64_t list_above;
    bool is_clustered;
    double deviations;
    const struct kernel *kernel;
    const struct sketch_kernel *sketch_kernel;
    float *rows, *queries;
    uint64_t dice;
    atomic_size_t next;
    int64_t *query_us, *cpu_us;
    struct json_writer w;
};

static _Noreturn void die(const char *what, const struct err *e)
{
    fprintf(stderr, "bench_vector: %s: %s\n", what, e->text);
    exit(1);
}

/* --- data --- */

static float normal(struct bench *b)
{
    double sum = 0;

    for (int i = 0; i < 4; i++) {
        b->dice = b->dice * UINT64_C(6364136223846793005) + 1442695040888963407;
        sum += (double)(b->dice >> 40) / (1 << 24) - 0.5;
    }
    return (float)sum;
}

static void fill(struct bench *b, float *into, size_t n, const float *centres)
{
    for (size_t i = 0; i < n; i++) {
        const float *centre =
            centres ? centres + (size_t)(fabsf(normal(b)) * 1e6F) % N_CLUSTERS * b->n_dimensions : NULL;

        for (size_t j = 0; j < b->n_dimensions; j++)
            into[i * b->n_dimensions + j] = centre ? centre[j] + 0.7F * normal(b) : normal(b);
    }
}

static void read_data(struct bench *b)
{
    FILE *f = fopen(b->input, "rbe");
    size_t n_rows = b->n * b->n_dimensions, n_queries = b->n_queries * b->n_dimensions;

    if (!f || fread(b->rows, sizeof(float), n_rows, f) != n_rows ||
        fread(b->queries, sizeof(float), n_queries, f) != n_queries)
        die("input", &(struct err){ .text = "the file has too few numbers" });
    fclose(f);
}

static void make_data(struct bench *b)
{
    float *centres = b->is_clustered && !b->input ? xcalloc(N_CLUSTERS * b->n_dimensions, sizeof(float)) : NULL;

    if (centres)
        fill(b, centres, N_CLUSTERS, NULL);
    b->rows = xcalloc(b->n * b->n_dimensions, sizeof(float));
    b->queries = xcalloc(b->n_queries * b->n_dimensions, sizeof(float));
    if (b->input) {
        read_data(b);
        return;
    }
    fill(b, b->rows, b->n, centres);
    fill(b, b->queries, b->n_queries, centres);
    free(centres);
}

/* --- measures --- */

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return x < y ? -1 : x > y;
}

/* Resident memory that is the program's own (kB). */
static int64_t own_memory(void)
{
    FILE *f = fopen("/proc/self/status", "re");
    char line[256];
    long long kb = 0;

    while (f && fgets(line, sizeof(line), f))
        if (sscanf(line, "RssAnon: %lld", &kb) == 1)
            break;
    if (f)
        fclose(f);
    return kb;
}

static void open_store(struct bench *b)
{
    struct vectors_embedded_config config = { .path = b->path,
                                              .list_above_rows = b->list_above,
                                              .target_recall = 0.97,
                                              .sketch_deviations = b->deviations,
                                              .memory_bytes = INT64_C(8) << 30 };
    struct err e = { 0 };

    if (vectors_embedded_open(&config, &b->v, &e) < 0)
        die("open", &e);
    engine_of(b->v)->kernel = b->kernel;
    engine_of(b->v)->sketch_kernel = b->sketch_kernel;
}

static void upsert(struct bench *b, size_t from, size_t n, const char *prefix)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct vector_record *records = arena_array(a, n, sizeof(*records));
    struct err e = { 0 };

    for (size_t i = 0; i < n; i++)
        records[i] =
            (struct vector_record){ arena_printf(a, "%s%zu", prefix, from + i), b->rows + (from + i) * b->n_dimensions,
                                    arena_printf(a, "{\"documentId\":\"doc-%zu\",\"page\":%zu}", (from + i) / 50,
                                                 (from + i) % 50) };
    if (b->v->ops->upsert(b->v, NULL, "bench", &(struct vector_batch){ records, n, b->n_dimensions }, &e) < 0)
        die("upsert", &e);
}

static int64_t cpu_us(clockid_t of)
{
    struct timespec now;

    clock_gettime(of, &now);
    return now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void measure_upserts(struct bench *b)
{
    int64_t started_us = clock_mono_us(), started_cpu_us = cpu_us(CLOCK_PROCESS_CPUTIME_ID);

    for (size_t i = 0; i < b->n; i += b->batch)
        upsert(b, i, MIN(b->batch, b->n - i), "id-");
    json_add_int(&b->w, "upserts_per_second", (int64_t)((double)b->n * 1e6 / (double)(clock_mono_us() - started_us)));
    json_add_double(&b->w, "upsert_cpu_us",
                    round(10 * (double)(cpu_us(CLOCK_PROCESS_CPUTIME_ID) - started_cpu_us) / (double)b->n) / 10);
    started_us = clock_mono_us();
    for (size_t i = 0; i < N_SINGLE && i < b->n; i++)
        upsert(b, i, 1, "id-");
    json_add_int(&b->w, "single_upserts_per_second",
                 (int64_t)(N_SINGLE * 1e6 / (double)(clock_mono_us() - started_us)));
}

static void query_one(struct bench *b, size_t i, const char *filter, struct arena *a, struct vector_hits *ret)
{
    struct vector_query q = {
        .vector = b->queries + i * b->n_dimensions, .n_dimensions = b->n_dimensions, .top_k = TOP_K, .min_score = -2
    };
    struct err e = { 0 };

    if ((filter && json_parse(a, slice_of(filter), &q.filter, &e) < 0) ||
        b->v->ops->query(b->v, NULL, "bench", &q, a, ret, &e) < 0)
        die("query", &e);
}

static void add_times(struct bench *b, const char *p50, const char *p99)
{
    qsort(b->query_us, b->n_queries, sizeof(int64_t), by_size);
    json_add_int(&b->w, p50, b->query_us[b->n_queries / 2]);
    json_add_int(&b->w, p99, b->query_us[b->n_queries - 1 - b->n_queries / 100]);
}

static void measure_queries(struct bench *b, const char *filter, const char *p50, const char *p99)
{
    for (size_t i = 0; i < b->n_queries; i++) {
        AUTO(arena_freep) struct arena *a = arena_new();
        int64_t started_us = clock_mono_us(), started_cpu_us = cpu_us(CLOCK_THREAD_CPUTIME_ID);
        struct vector_hits hits;

        query_one(b, i, filter, a, &hits);
        b->query_us[i] = clock_mono_us() - started_us;
        b->cpu_us[i] = cpu_us(CLOCK_THREAD_CPUTIME_ID) - started_cpu_us;
    }
    qsort(b->cpu_us, b->n_queries, sizeof(int64_t), by_size);
    add_times(b, p50, p99);
}

static void *query_many(void *arg)
{
    struct bench *b = arg;
    size_t i;

    while ((i = atomic_fetch_add(&b->next, 1)) < b->n_queries) {
        AUTO(arena_freep) struct arena *a = arena_new();
        struct vector_hits hits;
        int64_t started_us = clock_mono_us();

        query_one(b, i, NULL, a, &hits);
        b->query_us[i] = clock_mono_us() - started_us;
    }
    return NULL;
}

static void measure_threads(struct bench *b)
{
    static const char passes[] = "hearth_vector_pass_queries_count";
    double n_passes = metric_of(passes);
    pthread_t threads[MAX_THREADS];
    int64_t started_us = clock_mono_us();

    atomic_store(&b->next, 0);
    for (size_t i = 0; i < b->n_threads; i++)
        pthread_create(&threads[i], NULL, query_many, b);
    for (size_t i = 0; i < b->n_threads; i++)
        pthread_join(threads[i], NULL);
    json_add_int(&b->w, "shared_queries_per_second",
                 (int64_t)((double)b->n_queries * 1e6 / (double)(clock_mono_us() - started_us)));
    add_times(b, "shared_p50_us", "shared_p99_us");
    n_passes = metric_of(passes) - n_passes;
    json_add_double(&b->w, "queries_per_pass", n_passes > 0 ? round(10 * (double)b->n_queries / n_passes) / 10 : 0);
}

/* The score of the tenth hit of an exact search: a hit at or above this score is right. */
static double tenth_score(struct bench *b, const float *query)
{
    double norm = quant_norm(query, b->n_dimensions), best[TOP_K];
    size_t n = 0;

    for (size_t i = 0; i < b->n; i++) {
        double score = quant_cosine(b->rows + i * b->n_dimensions, query, norm, b->n_dimensions);
        size_t at;

        if (n == TOP_K && score <= best[n - 1])
            continue;
        n = MIN(n + 1, (size_t)TOP_K);
        for (at = n - 1; at > 0 && best[at - 1] < score; at--)
            best[at] = best[at - 1];
        best[at] = score;
    }
    return best[n - 1];
}

static void measure_recall(struct bench *b)
{
    size_t n_right = 0, n_queries = MIN(b->n_queries, (size_t)N_RECALL_QUERIES);

    for (size_t i = 0; i < n_queries; i++) {
        AUTO(arena_freep) struct arena *a = arena_new();
        double tenth = tenth_score(b, b->queries + i * b->n_dimensions);
        struct vector_hits hits = { 0 };

        query_one(b, i, NULL, a, &hits);
        for (size_t j = 0; j < hits.n; j++)
            n_right += hits.items[j].score >= tenth;
    }
    json_add_double(&b->w, "recall", (double)n_right / (double)(n_queries * TOP_K));
}

static void measure_load(struct bench *b)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    int64_t memory_kb, started_us;
    struct vector_hits hits;

    b->v = b->v->ops->close(b->v);
    memory_kb = own_memory();
    open_store(b);
    started_us = clock_mono_us();
    query_one(b, 0, NULL, a, &hits);
    json_add_double(&b->w, "load_seconds", (double)(clock_mono_us() - started_us) / 1e6);
    json_add_double(&b->w, "memory_mb_per_100k", (double)(own_memory() - memory_kb) / 1024 * 1e5 / (double)b->n);
}

/* Waits for the sketches and lists that the load caused to be made. */
static void measure_keeper(struct bench *b)
{
    int64_t started_us = clock_mono_us();

    keeper_wake(engine_of(b->v)->keeper);
    keeper_wait(engine_of(b->v)->keeper);
    json_add_double(&b->w, "keeper_seconds", (double)(clock_mono_us() - started_us) / 1e6);
}

/* --- the bare pass --- */

typedef uint64_t wide __attribute__((vector_size(64)));

static uint64_t read_all(const void *memory, size_t n)
{
    const wide *words = memory;
    wide lanes[4] = { { 0 } };

    for (size_t i = 0; i + 4 <= n / sizeof(wide); i += 4)
        for (size_t j = 0; j < 4; j++) {
            __builtin_prefetch(words + i + j + 128);
            lanes[j] ^= words[i + j];
        }
    lanes[0] ^= lanes[1] ^ lanes[2] ^ lanes[3];
    return lanes[0][0] ^ lanes[0][7];
}

static struct slab *make_slab(struct bench *b, atomic_size_t *account)
{
    struct slab *slab = slab_new(b->n_dimensions, account);
    uint8_t *codes = xcalloc(slab->stride, 1);
    struct err e = { 0 };

    for (size_t i = 0; i < b->n; i++) {
        float scale = quant_encode(b->rows + i * b->n_dimensions, b->n_dimensions, codes);

        if (slab_write(slab, i, codes, scale, (int64_t)i, &e) < 0)
            die("slab", &e);
    }
    slab_publish(slab, b->n);
    free(codes);
    return slab;
}

static int64_t pass_us(struct bench *b, const struct slab *slab, size_t n_requests)
{
    struct scan_request requests[SCAN_BATCH], *pointers[SCAN_BATCH];
    int64_t started_us = clock_mono_us();
    struct quant_query query;
    struct best best[SCAN_BATCH];

    quant_query_init(&query, b->queries, b->n_dimensions);
    for (size_t i = 0; i < n_requests; i++) {
        best_init(&best[i], 32);
        requests[i] = (struct scan_request){ .query = &query, .n = slab->n, .best = &best[i] };
        pointers[i] = &requests[i];
    }
    scan_range(b->kernel, slab, pointers, n_requests, 0, slab->n);
    for (size_t i = 0; i < n_requests; i++)
        best_clear(&best[i]);
    quant_query_clear(&query);
    return clock_mono_us() - started_us;
}

static int64_t read_us(const struct slab *slab, volatile uint64_t *sink)
{
    int64_t started_us = clock_mono_us();

    for (size_t i = 0; i < slab->n_chunks; i++)
        *sink ^=
            read_all(slab->chunks[i].codes, MIN((size_t)SLAB_CHUNK_ROWS, slab->n - i * SLAB_CHUNK_ROWS) * slab->stride);
    return clock_mono_us() - started_us;
}

/* Interleaved, the fastest run of each: other programs share the machine. */
static void measure_pass(struct bench *b)
{
    atomic_size_t account = 0;
    struct slab *slab = make_slab(b, &account);
    double n_bytes = (double)(b->n * slab->stride);
    volatile uint64_t sink = 0;
    int64_t one = INT64_MAX, sixteen = INT64_MAX, reading = INT64_MAX;

    for (int i = 0; i < PASSES; i++) {
        one = MIN(one, pass_us(b, slab, 1));
        reading = MIN(reading, read_us(slab, &sink));
        sixteen = MIN(sixteen, pass_us(b, slab, SCAN_BATCH));
    }
    json_add_string(&b->w, "kernel", b->kernel->name);
    json_add_int(&b->w, "pass_us", one);
    json_add_int(&b->w, "pass_of_16_us", sixteen);
    json_add_double(&b->w, "pass_gb_per_second", round(n_bytes / (double)one / 10) / 100);
    json_add_double(&b->w, "read_gb_per_second", round(n_bytes / (double)reading / 10) / 100);
    json_add_double(&b->w, "scan_share", round(100 * (double)reading / (double)one) / 100);
    slab_unref(slab);
}

/* --- main --- */

static void run(struct bench *b)
{
    struct buf out;

    buf_init(&out, 8192);
    json_write_init(&b->w, &out);
    json_begin_object(&b->w);
    json_add_int(&b->w, "rows", (int64_t)b->n);
    json_add_int(&b->w, "dimensions", (int64_t)b->n_dimensions);
    open_store(b);
    measure_upserts(b);
    measure_load(b);
    measure_keeper(b);
    measure_queries(b, NULL, "p50_us", "p99_us");
    json_add_int(&b->w, "cpu_p50_us", b->cpu_us[b->n_queries / 2]);
    measure_queries(b, "{\"documentId\":\"doc-3\"}", "document_p50_us", "document_p99_us");
    measure_queries(b, "{\"page\":{\"$lt\":25}}", "filter_p50_us", "filter_p99_us");
    json_add_int(&b->w, "filter_cpu_p50_us", b->cpu_us[b->n_queries / 2]);
    measure_threads(b);
    measure_recall(b);
    b->v->ops->close(b->v);
    measure_pass(b);
    json_end(&b->w);
    printf("%s\n", buf_str(&out));
    buf_clear(&out);
}

static const struct kernel *kernel_named(const char *name)
{
    const struct kernel *kernel = kernels;

    while (kernel->name && strcmp(kernel->name, name) != 0)
        kernel++;
    return kernel->name && kernel->is_supported() ? kernel : NULL;
}

static const struct sketch_kernel *sketch_kernel_named(const char *name)
{
    const struct sketch_kernel *kernel = sketch_kernels;

    while (kernel->name && strcmp(kernel->name, name) != 0)
        kernel++;
    return kernel->name && kernel->is_supported() ? kernel : NULL;
}

static int read_options(struct bench *b, int argc, char **argv)
{
    int option;

    while ((option = getopt(argc, argv, "n:d:b:q:t:k:l:c:s:z:i:")) != -1)
        switch (option) {
        case 'n':
            b->n = strtoul(optarg, NULL, 10);
            break;
        case 'd':
            b->n_dimensions = strtoul(optarg, NULL, 10);
            break;
        case 'b':
            b->batch = strtoul(optarg, NULL, 10);
            break;
        case 'q':
            b->n_queries = strtoul(optarg, NULL, 10);
            break;
        case 't':
            b->n_threads = strtoul(optarg, NULL, 10);
            break;
        case 'k':
            b->is_clustered = strcmp(optarg, "clustered") == 0;
            break;
        case 'l':
            b->list_above = strtol(optarg, NULL, 10);
            break;
        case 'c':
            b->kernel = kernel_named(optarg);
            break;
        case 's':
            b->sketch_kernel = sketch_kernel_named(optarg);
            break;
        case 'z':
            b->deviations = strtod(optarg, NULL);
            break;
        case 'i':
            b->input = optarg;
            break;
        default:
            return -1;
        }
    return b->kernel && b->sketch_kernel && b->n && b->n_dimensions && b->batch && b->n_queries && b->n_threads &&
                   b->n_threads <= MAX_THREADS
               ? 0
               : -1;
}

int main(int argc, char **argv)
{
    struct bench b = { .n = 100000,
                       .n_dimensions = 384,
                       .batch = 1000,
                       .n_queries = 300,
                       .n_threads = 8,
                       .list_above = INT64_MAX,
                       .kernel = kernel_best(),
                       .sketch_kernel = sketch_kernel_best(),
                       .deviations = 3,
                       .dice = 88172645463325252 };
    static const char *const suffixes[] = { "", "-wal", "-shm" };
    char folder[256], path[300], name[320];

    if (read_options(&b, argc, argv) < 0)
        return 2;
    snprintf(folder, sizeof(folder), "%s/bench_vector.XXXXXX", optind < argc ? argv[optind] : ".");
    if (!mkdtemp(folder))
        return 1;
    snprintf(path, sizeof(path), "%s/vectors.db", folder);
    b.path = path;
    b.query_us = xcalloc(b.n_queries, sizeof(int64_t));
    b.cpu_us = xcalloc(b.n_queries, sizeof(int64_t));
    make_data(&b);
    run(&b);
    for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
        snprintf(name, sizeof(name), "%s%s", path, suffixes[i]);
        unlink(name);
    }
    rmdir(folder);
    free(b.query_us);
    free(b.cpu_us);
    free(b.rows);
    free(b.queries);
    return 0;
}
