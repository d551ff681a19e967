/* What every engine's samples pass through in a worker: one loudness for all engines, and MP3. One thread. */
#pragma once

#include "speech/worker_engine.h"

/* Brings the sentence to WORKER_LOUDNESS (EBU R128, integrated), as far as no sample is cut off. A sentence below
 * 0.4 s, which R128 does not measure, is changed as the voice's last one was. */
enum { WORKER_LOUDNESS_LUFS = -20 };
void worker_level(struct worker_samples *s, const char *voice);

/* A complete MP3 stream of its own (constant 48 kbit/s, mono, no header frame); free() *ret_bytes. NULL, or why not. */
const char *worker_mp3(const struct worker_samples *s, unsigned char **ret_bytes, size_t *ret_n);
