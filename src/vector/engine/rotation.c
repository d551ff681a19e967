#include "vector/engine/rotation.h"
#include <math.h>
#include <stdlib.h>

enum { ROTATION_ROUNDS = 4 };

/* The same on every machine and in every run (splitmix64). */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

size_t rotation_width(size_t n_dimensions)
{
    return (n_dimensions + ROTATION_MULTIPLE - 1) / ROTATION_MULTIPLE * ROTATION_MULTIPLE;
}

void rotation_init(struct rotation *r, size_t n_dimensions)
{
    uint64_t state = 77;

    r->width = rotation_width(n_dimensions);
    for (r->span = 8; r->span * 2 <= r->width; r->span *= 2)
        ;
    r->signs = xcalloc(ROTATION_ROUNDS * r->width, sizeof(*r->signs));
    for (size_t i = 0; i < ROTATION_ROUNDS * r->width; i++)
        r->signs[i] = next_random(&state) & 1 ? 1 : -1;
}

void rotation_clear(struct rotation *r)
{
    free(r->signs);
    r->signs = NULL;
}

/* The first three steps of the transform, within eight numbers. */
static void mix_eight(float *v)
{
    float a0 = v[0] + v[1], a1 = v[0] - v[1], a2 = v[2] + v[3], a3 = v[2] - v[3];
    float a4 = v[4] + v[5], a5 = v[4] - v[5], a6 = v[6] + v[7], a7 = v[6] - v[7];
    float b0 = a0 + a2, b1 = a1 + a3, b2 = a0 - a2, b3 = a1 - a3;
    float b4 = a4 + a6, b5 = a5 + a7, b6 = a4 - a6, b7 = a5 - a7;

    v[0] = b0 + b4;
    v[1] = b1 + b5;
    v[2] = b2 + b6;
    v[3] = b3 + b7;
    v[4] = b0 - b4;
    v[5] = b1 - b5;
    v[6] = b2 - b6;
    v[7] = b3 - b7;
}

static void hadamard(float *x, size_t n)
{
    for (size_t i = 0; i < n; i += 8)
        mix_eight(x + i);
    for (size_t step = 8; step < n; step *= 2)
        for (size_t i = 0; i < n; i += 2 * step)
            for (size_t j = i; j < i + step; j++) {
                float a = x[j], b = x[j + step];

                x[j] = a + b;
                x[j + step] = a - b;
            }
}

/* Sums and differences of the first half and the second one (a step of a Kac walk). */
static void mix_halves(float *x, size_t width)
{
    const float share = 0.70710678F;

    for (size_t i = 0; i < width / 2; i++) {
        float a = x[i], b = x[i + width / 2];

        x[i] = (a + b) * share;
        x[i + width / 2] = (a - b) * share;
    }
}

void rotation_apply(const struct rotation *r, float *x)
{
    float share = 1 / sqrtf((float)r->span);

    for (size_t round = 0; round < ROTATION_ROUNDS; round++) {
        float *part = round % 2 ? x + r->width - r->span : x;
        const float *signs = r->signs + round * r->width;

        for (size_t i = 0; i < r->width; i++)
            x[i] *= signs[i];
        hadamard(part, r->span);
        for (size_t i = 0; i < r->span; i++)
            part[i] *= share;
        mix_halves(x, r->width);
    }
}
