#include "speech/resample.h"

#include "base/util.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CROSSINGS = 16 }; /* of the sinc on each side */

struct kernel {
    size_t n_phases, step; /* an output sample is step / n_phases input samples after the one before */
    size_t half;           /* weights on each side */
    float *weights;        /* owned: 2 * half for each phase */
};

static size_t common_divisor(size_t a, size_t b)
{
    return b == 0 ? a : common_divisor(b, a % b);
}

/* A sinc with the cutoff (a part of the input's band), under a Hann window. */
static double weight(double at, double cutoff, double half)
{
    double x = M_PI * at * cutoff;

    if (fabs(at) >= half)
        return 0;
    return (fabs(x) < 1e-9 ? 1 : sin(x) / x) * (0.5 + 0.5 * cos(M_PI * at / half));
}

/* The weights of a phase add up to 1, so that no phase is louder than another. */
static void fill_phase(float *weights, size_t half, double offset, double cutoff)
{
    double sum = 0;

    for (size_t k = 0; k < 2 * half; k++)
        sum += weight((double)k - (double)half + 1 - offset, cutoff, (double)half);
    for (size_t k = 0; k < 2 * half; k++)
        weights[k] = (float)(weight((double)k - (double)half + 1 - offset, cutoff, (double)half) / sum);
}

static struct kernel kernel_of(uint32_t from, uint32_t to)
{
    size_t divisor = common_divisor(from, to);
    double cutoff = MIN(1.0, (double)to / from);
    struct kernel k = { .n_phases = to / divisor, .step = from / divisor, .half = (size_t)ceil(CROSSINGS / cutoff) };

    k.weights = xcalloc(k.n_phases * 2 * k.half, sizeof(*k.weights));
    for (size_t i = 0; i < k.n_phases; i++)
        fill_phase(k.weights + i * 2 * k.half, k.half, (double)i / (double)k.n_phases, cutoff);
    return k;
}

/* Before the first and after the last sample there is silence. */
static int16_t sample_at(const struct kernel *k, const int16_t *in, size_t n, size_t place)
{
    const float *weights = k->weights + place % k->n_phases * 2 * k->half;
    size_t at = place / k->n_phases;
    float sum = 0;

    for (size_t i = 0; i < 2 * k->half; i++)
        if (at + i + 1 >= k->half && at + i + 1 - k->half < n)
            sum += weights[i] * in[at + i + 1 - k->half];
    return (int16_t)lrintf(fminf(fmaxf(sum, INT16_MIN), INT16_MAX));
}

size_t speech_resample(struct slice samples, uint32_t from, uint32_t to, struct buf *out)
{
    size_t n = samples.n / sizeof(int16_t), n_out = (size_t)((uint64_t)n * to / from);
    int16_t *in;
    struct kernel k;

    if (from == to) {
        buf_add(out, samples.p, n * sizeof(*in));
        return n;
    }
    k = kernel_of(from, to);
    in = xcalloc(n + 1, sizeof(*in));
    memcpy(in, samples.p, n * sizeof(*in));
    for (size_t i = 0; i < n_out; i++) {
        int16_t sample = sample_at(&k, in, n, i * k.step);

        buf_add(out, &sample, sizeof(sample));
    }
    free(in);
    free(k.weights);
    return n_out;
}
