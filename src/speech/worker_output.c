#include "speech/worker_output.h"

#include "speech/worker_frames.h"

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

int32_t worker_loudness(double lufs)
{
    return (int32_t)lrint(fmax(SPEECH_LOUDNESS_MIN, fmin(SPEECH_LOUDNESS_MAX, lufs * 100)));
}

int32_t worker_level(struct worker_samples *s, const char *voice)
{
    double lufs = 0, gain;
    bool is_measured = measure(s, &lufs);

    if (strncmp(voice, last_voice, sizeof(last_voice) - 1) != 0)
        last_gain = 1;
    strncpy(last_voice, voice, sizeof(last_voice) - 1);
    gain = is_measured ? pow(10, (WORKER_LOUDNESS_LUFS - lufs) / 20) : last_gain;
    last_gain = gain;
    gain = fmin(gain, 32000 / peak_of(s));
    for (size_t i = 0; i < s->n; i++)
        s->items[i] = (int16_t)lrint(s->items[i] * gain);
    return is_measured ? worker_loudness(lufs) : SPEECH_LOUDNESS_UNKNOWN;
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

struct worker_encoder {
    lame_t lame;
    unsigned char *bytes; /* of one piece */
    size_t n_room;
};

struct worker_encoder *worker_encoder_free(struct worker_encoder *e)
{
    if (e && e->lame)
        lame_close(e->lame);
    if (e)
        free(e->bytes);
    free(e);
    return NULL;
}

struct worker_encoder *worker_encoder_new(int rate)
{
    struct worker_encoder *e = calloc(1, sizeof(*e));

    if (e)
        e->lame = encoder_new(rate);
    return e && e->lame ? e : worker_encoder_free(e);
}

static bool make_room(struct worker_encoder *e, size_t n_room)
{
    unsigned char *grown = n_room > e->n_room ? realloc(e->bytes, n_room) : e->bytes;

    if (!grown)
        return false;
    e->bytes = grown;
    e->n_room = n_room > e->n_room ? n_room : e->n_room;
    return true;
}

const char *worker_encoder_add(struct worker_encoder *e, const int16_t *items, size_t n,
                               const unsigned char **ret_bytes, size_t *ret_n)
{
    int n_bytes = -1;

    if (make_room(e, n + n / 4 + LAME_SPARE)) /* as lame.h asks */
        n_bytes = items ? lame_encode_buffer(e->lame, items, NULL, (int)n, e->bytes, (int)e->n_room)
                        : lame_encode_flush(e->lame, e->bytes, (int)e->n_room);
    *ret_bytes = e->bytes;
    *ret_n = n_bytes < 0 ? 0 : (size_t)n_bytes;
    return n_bytes < 0 ? "The sentence cannot be encoded as MP3." : NULL;
}
