#include "speech/voice_activity.h"

#include <math.h>
#include <string.h>

enum {
    N_RECENT = 10,
    N_LOUD = 3,    /* speech: so many loud frames of the last ones */
    LAG_MIN = 40,  /* samples between two pulses of a voice: 400 Hz */
    LAG_MAX = 200, /* 80 Hz */
};

/* likeness: of white and of low noise at most 0.3, of three quarters of what flite's voices say above 0.5. */
static const float lowest_db = -62, above_noise_db = 10, likeness = 0.5F;

void voice_activity_init(struct voice_activity *v)
{
    *v = (struct voice_activity){ .level = lowest_db };
    for (size_t i = 0; i < VOICE_BLOCKS; i++)
        v->quietest[i] = 0;
}

/* The difference of neighbouring samples takes away hum, rumble and a constant offset. */
static float level_of(struct voice_activity *v, const int16_t samples[VOICE_FRAME])
{
    float *newest = v->window + VOICE_WINDOW - VOICE_FRAME;
    double sum = 0;

    memmove(v->window, v->window + VOICE_FRAME, (VOICE_WINDOW - VOICE_FRAME) * sizeof(*v->window));
    for (size_t i = 0; i < VOICE_FRAME; i++) {
        float sample = (float)samples[i] / 32768, difference = sample - 0.95F * v->last_sample;

        v->last_sample = sample;
        newest[i] = difference;
        sum += (double)(difference * difference);
    }
    sum /= VOICE_FRAME;
    return sum > 0 ? fmaxf(lowest_db, (float)(10 * log10(sum))) : lowest_db;
}

static float noise_of(const struct voice_activity *v)
{
    float noise = v->quietest[0];

    for (size_t i = 1; i < VOICE_BLOCKS; i++)
        noise = fminf(noise, v->quietest[i]);
    return noise;
}

static void note_level(struct voice_activity *v, float level)
{
    if (v->n_frames == VOICE_BLOCK_FRAMES) {
        for (size_t i = VOICE_BLOCKS - 1; i > 0; i--)
            v->quietest[i] = v->quietest[i - 1];
        v->quietest[0] = level;
        v->n_frames = 0;
    }
    v->quietest[0] = fminf(v->quietest[0], level);
    v->n_frames++;
}

bool voice_activity_hear(struct voice_activity *v, const int16_t samples[VOICE_FRAME])
{
    int n_loud = 0;

    v->level = level_of(v, samples);
    note_level(v, v->level);
    v->recent = (uint16_t)(v->recent << 1 | (v->level > noise_of(v) + above_noise_db));
    for (size_t i = 0; i < N_RECENT; i++)
        n_loud += v->recent >> i & 1;
    return n_loud >= N_LOUD;
}

/* How alike the end of the window and the same samples `lag` before are; 1: equal. */
static float likeness_at(const float *window, size_t lag)
{
    float product = 0, here = 0, before = 0;

    for (size_t i = LAG_MAX; i < VOICE_WINDOW; i++) {
        product += window[i] * window[i - lag];
        here += window[i] * window[i];
        before += window[i - lag] * window[i - lag];
    }
    return here * before > 0 ? product / sqrtf(here * before) : 0;
}

bool voice_activity_has_pitch(const struct voice_activity *v)
{
    for (size_t lag = LAG_MIN; lag <= LAG_MAX; lag++)
        if (likeness_at(v->window, lag) > likeness)
            return true;
    return false;
}
