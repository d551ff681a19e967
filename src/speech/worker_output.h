/* What every engine's samples pass through in a worker: one loudness for all engines, and MP3. One thread. */
#pragma once

#include "speech/worker_engine.h"

/* Brings the sentence to WORKER_LOUDNESS (EBU R128, integrated), as far as no sample is cut off. A sentence below
 * 0.4 s, which R128 does not measure, is changed as the voice's last one was. Returns the loudness before, as in struct
 * speech_frame_done. */
enum { WORKER_LOUDNESS_LUFS = -20 };
int32_t worker_level(struct worker_samples *s, const char *voice);

/* A loudness as frames have it. */
int32_t worker_loudness(double lufs);

/* One complete MP3 stream (constant 48 kbit/s, mono, no header frame), piece by piece. NULL: it cannot begin. */
struct worker_encoder;
struct worker_encoder *worker_encoder_new(int rate);
struct worker_encoder *worker_encoder_free(struct worker_encoder *e);
/* Encodes n samples; items NULL: the end. The bytes are valid until the next call. NULL, or why not. */
const char *worker_encoder_add(struct worker_encoder *e, const int16_t *items, size_t n,
                               const unsigned char **ret_bytes, size_t *ret_n);
