/* Sound that comes while it is heard, brought to EARS_RATE (libsamplerate). For hearth-speech-ears only; one thread.
 *
 *     is_open = worker_live_open(&live, 48000);
 *     r = worker_live_add(&live, samples, n, &segments);      as segments_add()
 *     r = worker_live_end(&live, &segments);                  what the filter still holds
 */
#pragma once

#include "speech/segments.h"

#include <samplerate.h>

struct worker_live {
    uint32_t rate;
    uint64_t n_samples; /* taken, at that rate */
    SRC_STATE *rates;   /* NULL: the rate is EARS_RATE */
};

bool worker_live_open(struct worker_live *l, uint32_t rate);
int worker_live_add(struct worker_live *l, const int16_t *samples, size_t n, struct segments *to);
int worker_live_end(struct worker_live *l, struct segments *to);
double worker_live_seconds(const struct worker_live *l);
