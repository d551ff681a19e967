#include "speech/segments.h"

#include <string.h>

void segments_init(struct segments *s, int (*ready)(void *arg, const int16_t *samples, size_t n, uint64_t first),
                   void *arg)
{
    memset(s, 0, sizeof(*s));
    voice_activity_init(&s->voice);
    s->ready = ready;
    s->arg = arg;
}

/* Forgets the first n samples kept; n is a number of whole frames. */
static void drop(struct segments *s, size_t n)
{
    memmove(s->samples, s->samples + n, (s->n - n) * sizeof(*s->samples));
    memmove(s->levels, s->levels + n / VOICE_FRAME, (s->n - n) / VOICE_FRAME * sizeof(*s->levels));
    s->n -= n;
    s->first += n;
}

static int pass_on(struct segments *s, size_t n)
{
    int r = s->ready(s->arg, s->samples, n, s->first);

    drop(s, n);
    return r;
}

/* The number of samples before the quietest frame of the last seconds. */
static size_t quietest_place(const struct segments *s)
{
    size_t n = s->n / VOICE_FRAME, best = n - 1;

    for (size_t i = n - (size_t)SEGMENT_LAST_S * EARS_RATE / VOICE_FRAME; i < n; i++)
        if (s->levels[i] < s->levels[best])
            best = i;
    return best * VOICE_FRAME;
}

static int take_speech(struct segments *s, bool is_loud)
{
    s->n_silent = is_loud ? 0 : s->n_silent + VOICE_FRAME;
    if (s->n_silent >= SEGMENT_PAUSE) {
        s->is_speech = false;
        s->n_silent = 0;
        return pass_on(s, s->n);
    }
    if (s->n == SEGMENT_SAMPLES)
        return pass_on(s, quietest_place(s));
    return s->grows ? s->grows(s->arg, s->samples, s->n) : 0;
}

static int take_frame(struct segments *s, const int16_t samples[VOICE_FRAME])
{
    bool is_loud = voice_activity_hear(&s->voice, samples);

    memcpy(s->samples + s->n, samples, VOICE_FRAME * sizeof(*samples));
    s->levels[s->n / VOICE_FRAME] = s->voice.level;
    s->n += VOICE_FRAME;
    s->n_heard += VOICE_FRAME;
    s->is_speech |= is_loud;
    if (s->is_speech)
        return take_speech(s, is_loud);
    if (s->n > SEGMENT_BEFORE)
        drop(s, s->n - SEGMENT_BEFORE);
    return 0;
}

int segments_add(struct segments *s, const int16_t *samples, size_t n)
{
    int r = 0;

    for (size_t n_part; r >= 0 && n > 0; samples += n_part, n -= n_part) {
        n_part = VOICE_FRAME - s->n_loose < n ? VOICE_FRAME - s->n_loose : n;
        memcpy(s->loose + s->n_loose, samples, n_part * sizeof(*samples));
        s->n_loose += n_part;
        if (s->n_loose < VOICE_FRAME)
            continue;
        s->n_loose = 0;
        r = take_frame(s, s->loose);
    }
    return r;
}

int segments_end(struct segments *s)
{
    static const int16_t silence[VOICE_FRAME];
    int r = s->n_loose > 0 ? segments_add(s, silence, VOICE_FRAME - s->n_loose) : 0;

    return r >= 0 && s->is_speech && s->n > 0 ? pass_on(s, s->n) : r;
}
