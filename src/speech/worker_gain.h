/* Brings a sentence that is still arriving to WORKER_LOUDNESS_LUFS (EBU R128). The loudness of a sentence is known at
 * its end only, so the gain begins with what the voice said before or, when that is not known, with the first second,
 * which is held back; from one second on it follows the loudness of the sentence itself, by at most 6 dB a second
 * upwards and 20 dB a second downwards. A limiter that looks 20 ms ahead keeps the true peak (ITU-R BS.1770) below -1
 * dB. For the worker of sound; one thread. False: out of memory.
 *
 *     gain = worker_gain_new(24000, SPEECH_LOUDNESS_UNKNOWN);
 *     is_done = worker_gain_add(gain, items, n, &out) && worker_gain_end(gain, &out);
 */
#pragma once

#include "speech/worker_engine.h"

struct worker_gain;

/* known: the loudness of the voice, as struct speech_frame_begin has it. */
struct worker_gain *worker_gain_new(int rate, int32_t known);
struct worker_gain *worker_gain_free(struct worker_gain *g);
/* Appends the samples that are ready; all have come after worker_gain_end(). */
bool worker_gain_add(struct worker_gain *g, const int16_t *items, size_t n, struct worker_samples *out);
bool worker_gain_end(struct worker_gain *g, struct worker_samples *out);
/* Of the samples that were given, as struct speech_frame_done has it. */
int32_t worker_gain_loudness(const struct worker_gain *g);
