/* Changes the rate of samples by a windowed sinc, one set of weights for each phase. A pure function; any thread.
 *
 *     n = speech_resample(samples, 22050, 24000, &out);
 */
#pragma once

#include "base/buf.h"

/* samples: 16 bits, mono. Both rates are SPEECH_RATE_MIN to SPEECH_RATE_MAX. Appends to out; returns the number of
 * samples. */
size_t speech_resample(struct slice samples, uint32_t from, uint32_t to, struct buf *out);
