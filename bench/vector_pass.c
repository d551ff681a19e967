#include "vector_pass.h"
#include "base/clock.h"
#include "vector/engine/sketch.h"
#include "vector/engine/sketch_scan.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { PASSES = 15, DEPTH = 32, N_WANTED = 10 };

struct rows {
    atomic_size_t account;
    struct slab *slab;
    size_t n_units;
};

static void make_slab(const struct vector_pass *p, struct rows *ret)
{
    const struct vector_data *d = p->data;
    uint8_t *codes = xcalloc(quant_stride(d->n_dimensions), 1);

    ret->slab = slab_new(d->n_dimensions, &ret->account);
    for (size_t i = 0; i < d->n; i++) {
        float scale = quant_encode(d->rows + i * d->n_dimensions, d->n_dimensions, codes);

        if (slab_write(ret->slab, i, codes, scale, (int64_t)i, NULL) < 0)
            exit(1);
    }
    slab_publish(ret->slab, d->n);
    free(codes);
}

static double cpu_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

/* Returns the processor time of a row's sketch. */
static double make_sketches(const struct vector_pass *p, struct rows *rows)
{
    double started_us = cpu_us();

    if (p->deviations <= 0 || !sketch_fits(p->data->n_dimensions))
        return 0;
    rows->slab->sketches = sketch_set_new(p->data->n_dimensions, &rows->account);
    for (size_t n = p->data->n / SKETCH_UNIT_ROWS; rows->n_units < n; rows->n_units++)
        if (sketch_add(rows->slab->sketches, rows->slab, NULL, NULL) < 0)
            exit(1);
    return rows->n_units > 0 ? (cpu_us() - started_us) / (double)(rows->n_units * SKETCH_UNIT_ROWS) : 0;
}

static double pass_us(const struct vector_pass *p, const struct rows *rows, size_t n_units, size_t n, size_t first)
{
    struct scan_request requests[SCAN_BATCH], *pointers[SCAN_BATCH];
    struct quant_query queries[SCAN_BATCH];
    struct best best[SCAN_BATCH];
    double started_us = cpu_us();

    for (size_t i = 0; i < n; i++) {
        quant_query_init(&queries[i], p->data->queries + (first + i) % p->data->n_queries * p->data->n_dimensions,
                         p->data->n_dimensions);
        best_init(&best[i], DEPTH);
        requests[i] = (struct scan_request){ .query = &queries[i],
                                             .n = rows->slab->n,
                                             .best = &best[i],
                                             .sketch_kernel = p->sketch_kernel,
                                             .deviations = (float)p->deviations,
                                             .n_sketched = n_units,
                                             .n_wanted = N_WANTED };
        pointers[i] = &requests[i];
    }
    sketch_scan_all(p->kernel, rows->slab, pointers, n, rows->slab->n);
    for (size_t i = 0; i < n; i++) {
        best_clear(&best[i]);
        quant_query_clear(&queries[i]);
    }
    return cpu_us() - started_us;
}

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

static double read_us(const struct slab *slab, volatile uint64_t *sink)
{
    double started_us = cpu_us();

    for (size_t i = 0; i < slab->n_chunks; i++)
        *sink ^=
            read_all(slab->chunks[i].codes, MIN((size_t)SLAB_CHUNK_ROWS, slab->n - i * SLAB_CHUNK_ROWS) * slab->stride);
    return cpu_us() - started_us;
}

struct times {
    double one, sixteen, sketches, sketches_of_sixteen, reading;
};

/* Interleaved, the fastest run of each: other programs share the machine. The second of two passes in a row is
 * measured, which has caches of its own making. */
static struct times measure(const struct vector_pass *p, const struct rows *rows)
{
    struct times t = { INFINITY, INFINITY, INFINITY, INFINITY, INFINITY };
    volatile uint64_t sink = 0;

    for (size_t i = 0; i < PASSES; i++) {
        for (int turn = 0; turn < 2; turn++) {
            double us = pass_us(p, rows, 0, 1, i);

            t.one = turn ? fmin(t.one, us) : t.one;
        }
        t.reading = fmin(t.reading, read_us(rows->slab, &sink));
        t.sixteen = fmin(t.sixteen, pass_us(p, rows, 0, SCAN_BATCH, i));
        for (int turn = 0; turn < 2; turn++) {
            double us = pass_us(p, rows, rows->n_units, 1, i);

            t.sketches = turn ? fmin(t.sketches, us) : t.sketches;
        }
        t.sketches_of_sixteen = fmin(t.sketches_of_sixteen, pass_us(p, rows, rows->n_units, SCAN_BATCH, i));
    }
    return t;
}

static double tenths(double us)
{
    return round(10 * us) / 10;
}

void vector_pass_measure(const struct vector_pass *p, struct json_writer *w)
{
    struct rows rows = { 0 };
    struct times t;
    double n_bytes;

    make_slab(p, &rows);
    json_add_double(w, "encode_us", round(100 * make_sketches(p, &rows)) / 100);
    n_bytes = (double)(rows.slab->n * rows.slab->stride);
    t = measure(p, &rows);
    json_add_string(w, "kernel", p->kernel->name);
    json_add_string(w, "sketch_kernel", p->sketch_kernel->name);
    json_add_double(w, "pass_us", tenths(t.one));
    json_add_double(w, "pass_of_16_us", tenths(t.sixteen));
    json_add_double(w, "sketch_pass_us", tenths(t.sketches));
    json_add_double(w, "sketch_pass_of_16_us", tenths(t.sketches_of_sixteen));
    json_add_double(w, "read_gb_per_second", round(n_bytes / t.reading / 10) / 100);
    json_add_double(w, "scan_share", round(100 * t.reading / t.one) / 100);
    slab_unref(rows.slab);
}
