#include "speech/worker_mix.h"

#include <math.h>

float worker_sample(float sample)
{
    return isfinite(sample) ? fmaxf(-1, fminf(1, sample)) : 0;
}

float worker_mix(const float *frame, uint32_t n_channels)
{
    float sum = 0;

    for (uint32_t c = 0; c < n_channels; c++)
        sum += worker_sample(frame[c]);
    return sum / (float)n_channels;
}
