#include "speech/worker_output.h"

#include <ebur128.h>
#include <lame/lame.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { KILOBITS = 48, QUALITY = 5, LAME_SPARE = 7200 };

/* ---- loudness ---- */

static double last_gain = 1;
static char last_voice[64];

static bool measure(const struct worker_samples *s, double *ret_lufs)
{
    ebur128_state *state = ebur128_init(1, (unsigned long)s->rate, EBUR128_MODE_I);
    bool is_measured;

    if (!state)
        return false;
    is_measured = ebur128_add_frames_short(state, s->items, s->n) == EBUR128_SUCCESS &&
                  ebur128_loudness_global(state, ret_lufs) == EBUR128_SUCCESS && isfinite(*ret_lufs);
    ebur128_destroy(&state);
    return is_measured;
}

static double peak_of(const struct worker_samples *s)
{
    int peak = 1;

    for (size_t i = 0; i < s->n; i++)
        if (abs(s->items[i]) > peak)
            peak = abs(s->items[i]);
    return peak;
}

void worker_level(struct worker_samples *s, const char *voice)
{
    double lufs, gain;

    if (strncmp(voice, last_voice, sizeof(last_voice) - 1) != 0)
        last_gain = 1;
    strncpy(last_voice, voice, sizeof(last_voice) - 1);
    gain = measure(s, &lufs) ? pow(10, (WORKER_LOUDNESS_LUFS - lufs) / 20) : last_gain;
    last_gain = gain;
    gain = fmin(gain, 32000 / peak_of(s));
    for (size_t i = 0; i < s->n; i++)
        s->items[i] = (int16_t)lrint(s->items[i] * gain);
}

/* ---- MP3 ---- */

static lame_t encoder_new(int rate)
{
    lame_t lame = lame_init();

    if (!lame)
        return NULL;
    lame_set_in_samplerate(lame, rate);
    lame_set_out_samplerate(lame, rate);
    lame_set_num_channels(lame, 1);
    lame_set_mode(lame, MONO);
    lame_set_brate(lame, KILOBITS);
    lame_set_quality(lame, QUALITY);
    lame_set_bWriteVbrTag(lame, 0); /* the frame would count this sentence only, and a player believes it */
    if (lame_init_params(lame) >= 0)
        return lame;
    lame_close(lame);
    return NULL;
}

static int encode(lame_t lame, const struct worker_samples *s, unsigned char *to, size_t n_room)
{
    int n = lame_encode_buffer(lame, s->items, NULL, (int)s->n, to, (int)n_room), n_last;

    if (n < 0)
        return n;
    n_last = lame_encode_flush(lame, to + n, (int)n_room - n);
    return n_last < 0 ? n_last : n + n_last;
}

const char *worker_mp3(const struct worker_samples *s, unsigned char **ret_bytes, size_t *ret_n)
{
    size_t n_room = s->n + s->n / 4 + 2 * LAME_SPARE; /* as lame.h asks, and as much again for the flush */
    lame_t lame = encoder_new(s->rate);
    int n = -1;

    *ret_bytes = lame ? malloc(n_room) : NULL;
    if (*ret_bytes)
        n = encode(lame, s, *ret_bytes, n_room);
    if (lame)
        lame_close(lame);
    *ret_n = n < 0 ? 0 : (size_t)n;
    return n < 0 ? "The sentence cannot be encoded as MP3." : NULL;
}
