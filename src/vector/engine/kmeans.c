#include "vector/engine/kmeans.h"
#include "vector/engine/quant.h"
#include <stdlib.h>
#include <string.h>

enum { STEP_ROWS = 8, STEP_SAMPLES = 1024 /* between two looks at the pace: less than 0.1 ms mostly */ };

struct run {
    const struct kernel *kernel;
    const struct codes *samples;
    struct pace *pace;
    struct codes centres;
    uint32_t *centre_of; /* owned; by sample */
    int32_t *dots;       /* owned; dot products of one row with all samples or all centres */
    uint64_t dice;
};

int codes_init(struct codes *c, size_t n, size_t n_dimensions)
{
    size_t stride = quant_stride(n_dimensions);

    *c = (struct codes){ .n = n, .n_dimensions = n_dimensions, .stride = stride };
    c->codes = aligned_alloc(KERNEL_ALIGN, MAX(n, (size_t)1) * stride);
    if (!c->codes)
        return -ENOMEM;
    c->scales = xcalloc(n, sizeof(*c->scales));
    return 0;
}

void codes_clear(struct codes *c)
{
    free(c->codes);
    free(c->scales);
    *c = (struct codes){ 0 };
}

static double random_share(struct run *run)
{
    run->dice = run->dice * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (double)(run->dice >> 11) / (double)(UINT64_C(1) << 53);
}

static void copy_sample(struct run *run, size_t sample, size_t centre)
{
    size_t stride = run->samples->stride;

    memcpy(run->centres.codes + centre * stride, run->samples->codes + sample * stride, stride);
    run->centres.scales[centre] = run->samples->scales[sample];
}

/* --- seeds --- */

static double note_some(struct run *run, const struct quant_query *query, size_t from, size_t to, float *distances)
{
    const struct codes *samples = run->samples;
    double sum = 0;

    run->kernel->dots(samples->codes + from * samples->stride, samples->stride, to - from, query->codes, run->dots);
    for (size_t i = from; i < to; i++) {
        float distance = 1 - (float)(run->dots[i - from] - query->bias) * samples->scales[i] * query->scale;

        distances[i] = MIN(distances[i], MAX(distance, 0.0F));
        sum += (double)distances[i];
    }
    return sum;
}

/* Lowers each sample's distance to its distance from this centre if this centre is nearer; returns the sum of all
 * distances. */
static double note_distances(struct run *run, size_t centre, float *distances)
{
    const struct codes *samples = run->samples;
    struct quant_query query;
    double sum = 0;

    quant_query_of_row(&query, run->centres.codes + centre * samples->stride, run->centres.scales[centre],
                       samples->stride);
    for (size_t i = 0; i < samples->n && pace_goes_on(run->pace); i += STEP_SAMPLES)
        sum += note_some(run, &query, i, MIN(i + STEP_SAMPLES, samples->n), distances);
    quant_query_clear(&query);
    return sum;
}

/* Draws a sample; a sample's probability grows with its distance from the nearest centre so far. */
static size_t draw(struct run *run, const float *distances, double sum)
{
    double left = random_share(run) * sum;
    size_t i = 0;

    while (i + 1 < run->samples->n && (left -= (double)distances[i]) > 0)
        i++;
    return i;
}

static int seed(struct run *run)
{
    float *distances = xcalloc(run->samples->n, sizeof(*distances));
    size_t next = draw(run, distances, 0), i;

    for (i = 0; i < run->samples->n; i++)
        distances[i] = 2;
    for (i = 0; i < run->centres.n && pace_goes_on(run->pace); i++) {
        copy_sample(run, next, i);
        next = draw(run, distances, note_distances(run, i, distances));
    }
    free(distances);
    return i < run->centres.n ? -ECANCELED : 0;
}

/* --- rounds --- */

size_t kmeans_nearest(const struct kernel *kernel, const struct codes *centres, const uint8_t *row, int32_t *scratch)
{
    struct quant_query query;
    float best_score = 0;
    size_t best = 0;

    quant_query_of_row(&query, row, 1, centres->stride);
    kernel->dots_again(centres->codes, centres->stride, centres->n, query.codes, scratch);
    for (size_t i = 0; i < centres->n; i++) {
        float score = (float)(scratch[i] - query.bias) * centres->scales[i];

        if (i == 0 || score > best_score) {
            best_score = score;
            best = i;
        }
    }
    quant_query_clear(&query);
    return best;
}

static int assign(struct run *run)
{
    for (size_t i = 0; i < run->samples->n; i++) {
        if (i % STEP_ROWS == 0 && !pace_goes_on(run->pace))
            return -ECANCELED;
        run->centre_of[i] = (uint32_t)kmeans_nearest(run->kernel, &run->centres,
                                                     run->samples->codes + i * run->samples->stride, run->dots);
    }
    return 0;
}

static void add_sample(float *sum, const struct codes *samples, size_t i)
{
    const uint8_t *codes = samples->codes + i * samples->stride;

    for (size_t j = 0; j < samples->n_dimensions; j++)
        sum[j] += (float)((int)codes[j] - KERNEL_ZERO) * samples->scales[i];
}

/* Each centre becomes the mean of its samples; a centre without samples becomes a newly drawn sample. */
static int move_centres(struct run *run)
{
    size_t n_dimensions = run->samples->n_dimensions;
    float *sums = xcalloc(run->centres.n * n_dimensions, sizeof(*sums));
    bool *has_any = xcalloc(run->centres.n, sizeof(*has_any));

    for (size_t i = 0; i < run->samples->n && (i % STEP_SAMPLES || pace_goes_on(run->pace)); i++) {
        add_sample(sums + run->centre_of[i] * n_dimensions, run->samples, i);
        has_any[run->centre_of[i]] = true;
    }
    for (size_t i = 0; i < run->centres.n; i++) {
        if (has_any[i])
            run->centres.scales[i] =
                quant_encode(sums + i * n_dimensions, n_dimensions, run->centres.codes + i * run->centres.stride);
        else
            copy_sample(run, (size_t)(random_share(run) * (double)run->samples->n), i);
    }
    free(sums);
    free(has_any);
    return pace_goes_on(run->pace) ? 0 : -ECANCELED;
}

int kmeans_run(const struct kernel *kernel, const struct codes *samples, size_t n_centres, struct pace *pace,
               struct codes *ret)
{
    struct run run = { .kernel = kernel, .samples = samples, .pace = pace, .dice = 20261120 };
    int r;

    r = codes_init(&run.centres, n_centres, samples->n_dimensions);
    if (r < 0)
        return r;
    run.centre_of = xcalloc(samples->n, sizeof(*run.centre_of));
    run.dots = xcalloc(MAX(samples->n, n_centres), sizeof(*run.dots));
    r = seed(&run);
    for (int round = 0; r == 0 && round < KMEANS_ROUNDS; round++) {
        r = assign(&run);
        if (r == 0)
            r = move_centres(&run);
    }
    free(run.centre_of);
    free(run.dots);
    if (r < 0)
        codes_clear(&run.centres);
    else
        *ret = run.centres;
    return r;
}
