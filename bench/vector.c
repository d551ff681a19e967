/* Fills an embedded vector store, queries it and prints its figures as one line of JSON.
 *
 *     bench_vector [-n ROWS] [-d DIMENSIONS] [-b BATCH] [-q QUERIES] [-t THREADS] [-r ROUNDS] [-l ROWS] [-c KERNEL]
 *                  [-s KERNEL] [-z DEVIATIONS] [-e FILE] [-T] [-k KIND | -i FILE] [FOLDER]
 *     bench_vector [-n ROWS] [-d DIMENSIONS] [-q QUERIES] [-k KIND] -w FILE
 *
 * -k: isotropic, clustered (default), low-rank, or text, which reads a text a line from standard input. -w writes rows
 * and queries to a file and ends; -i reads such a file. -l: inverted lists above so many rows (default: none); they are
 * built before queries are measured. -c: the name of a kernel (vector/engine/kernel.c) instead of the best of this
 * processor, -s: of one for sketches (vector/engine/sketch_kernel.c). -z: deviations, 0 for no sketches (3). -e: the
 * exact answers are written there, as the numbers of rows in lines of JSON. -T: after the figures, each line of
 * standard input asks for one more round of queries, whose figures are one line of JSON: an empty line for the ten
 * nearest, or top100, filter50, filter10, filter1 or document, each also after "exact " for the same without sketches;
 * threads (on THREADS), pass (without file and engine).
 *
 * Queries run on one thread through the engine, in rounds that take turns with the same queries without sketches
 * (exact), then on THREADS. Recall is counted against the exact answers, exact_recall that of the first of these
 * against a search over all floats. FOLDER (default: the current one) gets a database that is removed at the end; /tmp
 * may be memory. cpu_p50_us is the processor time of a query on the thread that asks, without that of helpers over many
 * rows (vector/engine/helpers.h), upsert_cpu_us that of a vector stored in a batch; other programs on the machine
 * change both less than p50_us and upserts_per_second. scan_share is the speed of a pass over the codes as a share of
 * the speed at which one thread reads memory.
 */
#include "../tests/unit/metric.h"
#include "base/clock.h"
#include "base/json_write.h"
#include "os/files.h"
#include "vector/engine/engine.h"
#include "vector/engine/quant.h"
#include "vector/engine/sketch_kernel.h"
#include "vector_data.h"
#include "vector_pass.h"
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define ID_PREFIX "id-"

enum { TOP_K = 10, N_FLOAT_QUERIES = 20, N_SINGLE = 500, MAX_THREADS = 64, MAX_ROUNDS = 99 };

struct bench {
    struct vectors *v;
    const char *path, *side_folder, *input, *output, *answers, *kind, *turn;
    size_t batch, n_threads, n_rounds;
    int64_t list_above;
    bool takes_turns;
    double deviations;
    const struct kernel *kernel;
    const struct sketch_kernel *sketch_kernel;
    struct vector_data data;
    atomic_size_t next;
    int64_t *query_us, *cpu_us;
    struct json_writer w;
};

static _Noreturn void die(const char *what, const struct err *e)
{
    fprintf(stderr, "bench_vector: %s: %s\n", what, e->text);
    exit(1);
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
                                              .side_folder = b->side_folder,
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

static void upsert(struct bench *b, size_t from, size_t n)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct vector_record *records = arena_array(a, n, sizeof(*records));
    struct err e = { 0 };

    for (size_t i = 0; i < n; i++)
        records[i] = (struct vector_record){
            arena_printf(a, ID_PREFIX "%zu", from + i), b->data.rows + (from + i) * b->data.n_dimensions,
            arena_printf(a, "{\"documentId\":\"doc-%zu\",\"share\":%zu}", (from + i) / 50, (from + i) * 37 % 100)
        };
    if (b->v->ops->upsert(b->v, NULL, "bench", &(struct vector_batch){ records, n, b->data.n_dimensions }, &e) < 0)
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

    for (size_t i = 0; i < b->data.n; i += b->batch)
        upsert(b, i, MIN(b->batch, b->data.n - i));
    json_add_int(&b->w, "upserts_per_second",
                 (int64_t)((double)b->data.n * 1e6 / (double)(clock_mono_us() - started_us)));
    json_add_double(&b->w, "upsert_cpu_us",
                    round(10 * (double)(cpu_us(CLOCK_PROCESS_CPUTIME_ID) - started_cpu_us) / (double)b->data.n) / 10);
    started_us = clock_mono_us();
    for (size_t i = 0; i < N_SINGLE && i < b->data.n; i++)
        upsert(b, i, 1);
    json_add_int(&b->w, "single_upserts_per_second",
                 (int64_t)(N_SINGLE * 1e6 / (double)(clock_mono_us() - started_us)));
}

/* One way to ask. */
struct ask {
    const char *name;   /* of its figures */
    const char *filter; /* or NULL */
    int64_t top_k;
    bool exact;
};

static void query_one(struct bench *b, size_t i, const struct ask *ask, struct arena *a, struct vector_hits *ret)
{
    struct vector_query q = { .vector = b->data.queries + i * b->data.n_dimensions,
                              .n_dimensions = b->data.n_dimensions,
                              .top_k = ask->top_k,
                              .min_score = -2,
                              .exact = ask->exact };
    struct err e = { 0 };

    if ((ask->filter && json_parse(a, slice_of(ask->filter), &q.filter, &e) < 0) ||
        b->v->ops->query(b->v, NULL, "bench", &q, a, ret, &e) < 0)
        die("query", &e);
}

static void add_figure(struct bench *b, const struct ask *ask, const char *what, int64_t us)
{
    AUTO(arena_freep) struct arena *a = arena_new();

    json_add_int(&b->w, arena_printf(a, "%s%s", ask->name, what), us);
}

static void add_times(struct bench *b, const struct ask *ask)
{
    qsort(b->query_us, b->data.n_queries, sizeof(int64_t), by_size);
    add_figure(b, ask, "p50_us", b->query_us[b->data.n_queries / 2]);
    add_figure(b, ask, "p99_us", b->query_us[b->data.n_queries - 1 - b->data.n_queries / 100]);
}

/* All queries, one after the other. Returns the median of their processor times; query_us has what they took. */
static int64_t query_all(struct bench *b, const struct ask *ask)
{
    for (size_t i = 0; i < b->data.n_queries; i++) {
        AUTO(arena_freep) struct arena *a = arena_new();
        int64_t started_us = clock_mono_us(), started_cpu_us = cpu_us(CLOCK_THREAD_CPUTIME_ID);
        struct vector_hits hits;

        query_one(b, i, ask, a, &hits);
        b->query_us[i] = clock_mono_us() - started_us;
        b->cpu_us[i] = cpu_us(CLOCK_THREAD_CPUTIME_ID) - started_cpu_us;
    }
    qsort(b->cpu_us, b->data.n_queries, sizeof(int64_t), by_size);
    return b->cpu_us[b->data.n_queries / 2];
}

/* A line for each query. */
static void write_answers(struct bench *b)
{
    FILE *f = fopen(b->answers, "we");

    for (size_t i = 0; f && i < b->data.n_queries; i++) {
        AUTO(arena_freep) struct arena *a = arena_new();
        struct vector_hits hits = { 0 };

        query_one(b, i, &(struct ask){ "", NULL, TOP_K, true }, a, &hits);
        for (size_t j = 0; j < hits.n; j++)
            fprintf(f, "%s%s", j > 0 ? "," : "[", hits.items[j].id + strlen(ID_PREFIX));
        fputs("]\n", f);
    }
    if (!f || fclose(f) != 0)
        die("answers", &(struct err){ .text = "the file cannot be written" });
}

static int64_t median(int64_t *values, size_t n)
{
    qsort(values, n, sizeof(*values), by_size);
    return values[n / 2];
}

/* Of the hits, those that score as much as the last of the exact answer. */
static void measure_recall(struct bench *b, const struct ask *ask)
{
    const struct ask exact = { ask->name, ask->filter, ask->top_k, true };
    AUTO(arena_freep) struct arena *names = arena_new();
    size_t n_right = 0, n_all = 0;

    for (size_t i = 0; i < b->data.n_queries; i++) {
        AUTO(arena_freep) struct arena *a = arena_new();
        struct vector_hits hits = { 0 }, truth = { 0 };

        query_one(b, i, ask, a, &hits);
        query_one(b, i, &exact, a, &truth);
        for (size_t j = 0; j < hits.n; j++)
            n_right += hits.items[j].score >= truth.items[truth.n - 1].score;
        n_all += truth.n;
    }
    json_add_double(&b->w, arena_printf(names, "%srecall", ask->name), n_all ? (double)n_right / (double)n_all : 1);
}

/* In turns with the same queries without sketches; `speedup` is the ratio of both. */
static void measure_queries(struct bench *b, const struct ask *ask)
{
    const struct ask exact = { "", ask->filter, ask->top_k, true };
    int64_t ours[MAX_ROUNDS], theirs[MAX_ROUNDS], ratios[MAX_ROUNDS];
    AUTO(arena_freep) struct arena *a = arena_new();

    for (size_t i = 0; i < b->n_rounds; i++) {
        theirs[i] = query_all(b, &exact);
        ours[i] = query_all(b, ask);
        ratios[i] = ours[i] > 0 ? 1000 * theirs[i] / ours[i] : 0;
    }
    add_times(b, ask);
    add_figure(b, ask, "cpu_p50_us", median(ours, b->n_rounds));
    add_figure(b, ask, "exact_cpu_p50_us", median(theirs, b->n_rounds));
    json_add_double(&b->w, arena_printf(a, "%sspeedup", ask->name), (double)median(ratios, b->n_rounds) / 1000);
    measure_recall(b, ask);
}

static void *query_many(void *arg)
{
    struct bench *b = arg;
    size_t i;

    while ((i = atomic_fetch_add(&b->next, 1)) < b->data.n_queries) {
        AUTO(arena_freep) struct arena *a = arena_new();
        struct vector_hits hits;
        int64_t started_us = clock_mono_us();

        query_one(b, i, &(struct ask){ "", NULL, TOP_K, false }, a, &hits);
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
                 (int64_t)((double)b->data.n_queries * 1e6 / (double)(clock_mono_us() - started_us)));
    add_times(b, &(struct ask){ .name = "shared_" });
    n_passes = metric_of(passes) - n_passes;
    json_add_double(&b->w, "queries_per_pass",
                    n_passes > 0 ? round(10 * (double)b->data.n_queries / n_passes) / 10 : 0);
}

/* The score of the tenth hit of an exact search: a hit at or above this score is right. */
static double tenth_score(struct bench *b, const float *query)
{
    double norm = quant_norm(query, b->data.n_dimensions), best[TOP_K] = { 0 };
    size_t n = 0;

    for (size_t i = 0; i < b->data.n; i++) {
        double score = quant_cosine(b->data.rows + i * b->data.n_dimensions, query, norm, b->data.n_dimensions);
        size_t at;

        if (n == TOP_K && score <= best[n - 1])
            continue;
        n = MIN(n + 1, (size_t)TOP_K);
        for (at = n - 1; at > 0 && best[at - 1] < score; at--)
            best[at] = best[at - 1];
        best[at] = score;
    }
    return n > 0 ? best[n - 1] : -1;
}

/* Are the exact answers those of a search over all floats? */
static void measure_exact(struct bench *b)
{
    size_t n_right = 0, n_queries = MIN(b->data.n_queries, (size_t)N_FLOAT_QUERIES);

    for (size_t i = 0; i < n_queries; i++) {
        AUTO(arena_freep) struct arena *a = arena_new();
        double tenth = tenth_score(b, b->data.queries + i * b->data.n_dimensions);
        struct vector_hits hits = { 0 };

        query_one(b, i, &(struct ask){ "", NULL, TOP_K, true }, a, &hits);
        for (size_t j = 0; j < hits.n; j++)
            n_right += hits.items[j].score >= tenth;
    }
    json_add_double(&b->w, "exact_recall", (double)n_right / (double)(n_queries * TOP_K));
}

static void measure_load(struct bench *b)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    int64_t memory_kb, started_us;
    struct vector_hits hits;

    keeper_wake(engine_of(b->v)->keeper);
    keeper_wait(engine_of(b->v)->keeper); /* the side file is complete */
    b->v = b->v->ops->close(b->v);
    memory_kb = own_memory();
    open_store(b);
    started_us = clock_mono_us();
    query_one(b, 0, &(struct ask){ "", NULL, TOP_K, false }, a, &hits);
    json_add_double(&b->w, "load_seconds", (double)(clock_mono_us() - started_us) / 1e6);
    json_add_double(&b->w, "memory_mb_per_100k", (double)(own_memory() - memory_kb) / 1024 * 1e5 / (double)b->data.n);
}

/* Waits for the sketches and lists that the load caused to be made. */
static void measure_keeper(struct bench *b)
{
    int64_t started_us = clock_mono_us();

    keeper_wake(engine_of(b->v)->keeper);
    keeper_wait(engine_of(b->v)->keeper);
    json_add_double(&b->w, "keeper_seconds", (double)(clock_mono_us() - started_us) / 1e6);
}

/* --- main --- */

static const struct ask asks[] = {
    { "", NULL, TOP_K, false },
    { "top100_", NULL, 100, false },
    { "filter50_", "{\"share\":{\"$lt\":50}}", TOP_K, false },
    { "filter10_", "{\"share\":{\"$lt\":10}}", TOP_K, false },
    { "filter1_", "{\"share\":{\"$lt\":1}}", TOP_K, false },
    { "document_", "{\"documentId\":\"doc-3\"}", TOP_K, false },
};

static void measure_pass(struct bench *b)
{
    vector_pass_measure(&(struct vector_pass){ &b->data, b->kernel, b->sketch_kernel, b->deviations }, &b->w);
}

static void measure(struct bench *b)
{
    json_add_int(&b->w, "rows", (int64_t)b->data.n);
    json_add_int(&b->w, "dimensions", (int64_t)b->data.n_dimensions);
    open_store(b);
    measure_upserts(b);
    measure_load(b);
    measure_keeper(b);
    for (size_t i = 0; i < ARRAY_SIZE(asks); i++)
        measure_queries(b, &asks[i]);
    if (b->answers)
        write_answers(b);
    measure_threads(b);
    measure_exact(b);
    measure_pass(b);
}

static void measure_ask(struct bench *b, const struct ask *ask)
{
    int64_t median_us = query_all(b, ask);

    add_times(b, ask);
    add_figure(b, ask, "cpu_p50_us", median_us);
}

/* b->turn: the name of an ask without its last underscore, after "exact " without sketches; threads or pass. */
static void measure_turn(struct bench *b)
{
    bool exact = strncmp(b->turn, "exact ", 6) == 0;
    const char *name = exact ? b->turn + 6 : b->turn;

    if (strcmp(name, "threads") == 0)
        measure_threads(b);
    else if (strcmp(name, "pass") == 0)
        measure_pass(b);
    for (size_t i = 0; i < ARRAY_SIZE(asks); i++)
        if (strcspn(asks[i].name, "_") == strlen(name) && strncmp(asks[i].name, name, strlen(name)) == 0)
            measure_ask(b, &(struct ask){ asks[i].name, asks[i].filter, asks[i].top_k, exact });
}

/* Prints the figures that `add` measures, as one line. */
static void print(struct bench *b, void (*add)(struct bench *b))
{
    struct buf out;

    buf_init(&out, 8192);
    json_write_init(&b->w, &out);
    json_begin_object(&b->w);
    add(b);
    json_end(&b->w);
    printf("%s\n", buf_str(&out));
    fflush(stdout);
    buf_clear(&out);
}

static void run(struct bench *b)
{
    char line[16];

    print(b, measure);
    while (b->takes_turns && fgets(line, sizeof(line), stdin)) {
        line[strcspn(line, "\n")] = '\0';
        b->turn = line;
        print(b, measure_turn);
    }
    b->v->ops->close(b->v);
}

static void run_in(struct bench *b, const char *parent)
{
    static const char *const suffixes[] = { "", "-wal", "-shm" };
    char folder[256], path[300], side_folder[300], name[320];

    snprintf(folder, sizeof(folder), "%s/bench_vector.XXXXXX", parent);
    if (!mkdtemp(folder))
        die("folder", &(struct err){ .text = "it cannot be made" });
    snprintf(path, sizeof(path), "%s/vectors.db", folder);
    snprintf(side_folder, sizeof(side_folder), "%s/vectors.side", folder);
    b->path = path;
    b->side_folder = side_folder;
    b->query_us = xcalloc(b->data.n_queries, sizeof(int64_t));
    b->cpu_us = xcalloc(b->data.n_queries, sizeof(int64_t));
    run(b);
    for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
        snprintf(name, sizeof(name), "%s%s", path, suffixes[i]);
        unlink(name);
    }
    if (dir_remove(side_folder, NULL) < 0 || rmdir(folder) < 0)
        perror(folder);
    free(b->query_us);
    free(b->cpu_us);
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

    while ((option = getopt(argc, argv, "n:d:b:q:t:r:k:l:c:s:z:i:w:e:T")) != -1)
        switch (option) {
        case 'n':
            b->data.n = strtoul(optarg, NULL, 10);
            break;
        case 'd':
            b->data.n_dimensions = strtoul(optarg, NULL, 10);
            break;
        case 'b':
            b->batch = strtoul(optarg, NULL, 10);
            break;
        case 'q':
            b->data.n_queries = strtoul(optarg, NULL, 10);
            break;
        case 't':
            b->n_threads = strtoul(optarg, NULL, 10);
            break;
        case 'r':
            b->n_rounds = strtoul(optarg, NULL, 10);
            break;
        case 'e':
            b->answers = optarg;
            break;
        case 'T':
            b->takes_turns = true;
            break;
        case 'w':
            b->output = optarg;
            break;
        case 'k':
            b->kind = optarg;
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
    return b->kernel && b->sketch_kernel && b->data.n && b->data.n_dimensions && b->batch && b->data.n_queries &&
                   b->n_threads && b->n_threads <= MAX_THREADS && b->n_rounds && b->n_rounds <= MAX_ROUNDS
               ? 0
               : -1;
}

int main(int argc, char **argv)
{
    struct bench b = { .data = { .n = 100000, .n_dimensions = 384, .n_queries = 300 },
                       .kind = "clustered",
                       .batch = 1000,
                       .n_threads = 8,
                       .n_rounds = 3,
                       .list_above = INT64_MAX,
                       .kernel = kernel_best(),
                       .sketch_kernel = sketch_kernel_best(),
                       .deviations = 3 };

    if (read_options(&b, argc, argv) < 0)
        return 2;
    if ((b.input ? vector_data_read(&b.data, b.input) : vector_data_make(&b.data, b.kind)) < 0)
        die("data", &(struct err){ .text = "there is no such kind or file, or it has too little" });
    if (!b.output)
        run_in(&b, optind < argc ? argv[optind] : ".");
    else if (vector_data_write(&b.data, b.output) < 0)
        die("data", &(struct err){ .text = "the file cannot be written" });
    vector_data_clear(&b.data);
    return 0;
}
