#include "speech/worker_live.h"

#include <math.h>

enum { BLOCK = 2048 };

bool worker_live_open(struct worker_live *l, uint32_t rate)
{
    int wrong = 0;

    *l = (struct worker_live){ .rate = rate };
    l->rates = rate == EARS_RATE ? NULL : src_new(SRC_SINC_FASTEST, 1, &wrong);
    return rate == EARS_RATE || l->rates;
}

/* The samples at EARS_RATE of one block; in has all of it. */
static int convert(struct worker_live *l, const float *in, size_t n, bool is_end, struct segments *to)
{
    float out[BLOCK];
    int16_t samples[BLOCK];
    SRC_DATA data = { .data_out = out, .output_frames = BLOCK, .src_ratio = (double)EARS_RATE / l->rate };
    int r = 0;

    do {
        data.data_in = in;
        data.input_frames = (long)n;
        data.end_of_input = is_end;
        if (src_process(l->rates, &data) != 0)
            return -1;
        in += data.input_frames_used;
        n -= (size_t)data.input_frames_used;
        src_float_to_short_array(out, samples, (int)data.output_frames_gen);
        r = segments_add(to, samples, (size_t)data.output_frames_gen);
    } while (r >= 0 && (n > 0 || data.output_frames_gen > 0));
    return r;
}

int worker_live_add(struct worker_live *l, const int16_t *samples, size_t n, struct segments *to)
{
    float in[BLOCK];
    int r = 0;

    l->n_samples += n;
    if (!l->rates)
        return segments_add(to, samples, n);
    for (size_t n_block; r >= 0 && n > 0; samples += n_block, n -= n_block) {
        n_block = n < BLOCK ? n : BLOCK;
        src_short_to_float_array(samples, in, (int)n_block);
        r = convert(l, in, n_block, false, to);
    }
    return r;
}

int worker_live_end(struct worker_live *l, struct segments *to)
{
    static const float nothing[1];

    return l->rates ? convert(l, nothing, 0, true, to) : 0;
}

double worker_live_seconds(const struct worker_live *l)
{
    return (double)l->n_samples / l->rate;
}
