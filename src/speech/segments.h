/* Cuts sound at 16 kHz into segments in which somebody speaks, with a little silence before and after. No I/O; one
 * thread. A segment ends after a pause, or at its quietest moment when it would become longer than EARS_SEGMENT_S.
 *
 *     segments_init(&s, ready, arg);            ready() has the samples and the number of the first
 *     r = segments_add(&s, samples, n);         0, or what ready() returned below 0
 *     r = segments_end(&s);
 */
#pragma once

#include "speech/ears_frames.h"
#include "speech/voice_activity.h"

enum {
    SEGMENT_SAMPLES = EARS_SEGMENT_S * EARS_RATE,
    SEGMENT_BEFORE = EARS_RATE * 3 / 10, /* of silence kept before speech */
    SEGMENT_PAUSE = EARS_RATE / 2,       /* of silence that ends a segment */
    SEGMENT_LAST_S = 10,                 /* a segment that is too long is split within its last seconds */
};

struct segments {
    struct voice_activity voice;
    int (*ready)(void *arg, const int16_t *samples, size_t n, uint64_t first);
    int (*grows)(void *arg, const int16_t *samples, size_t n); /* NULL, or has all samples of the segment so far */
    void *arg;
    uint64_t n_heard;   /* samples in whole frames */
    uint64_t first;     /* of the samples below */
    size_t n, n_silent; /* samples kept; how many at their end are silence */
    size_t n_loose;     /* of the incomplete frame */
    bool is_speech;
    int16_t loose[VOICE_FRAME];
    int16_t samples[SEGMENT_SAMPLES];
    float levels[SEGMENT_SAMPLES / VOICE_FRAME];
};

/* Large: allocate it. */
void segments_init(struct segments *s, int (*ready)(void *arg, const int16_t *samples, size_t n, uint64_t first),
                   void *arg);
int segments_add(struct segments *s, const int16_t *samples, size_t n);
int segments_end(struct segments *s);
