/* A recording in memory, read as 16-bit samples of one channel at EARS_RATE (libsamplerate), whatever its reader gives
 * (speech/worker_source.h). For hearth-speech-ears only; one thread.
 *
 *     why = worker_recording_open(&r, &worker_sndfile, bytes, n);
 *     while ((n = worker_recording_read(&r, samples)) > 0)
 *         ...
 */
#pragma once

#include "speech/worker_source.h"

#include <samplerate.h>

enum { RECORDING_BLOCK = 4096 }; /* samples that a read gives at most */

struct worker_recording {
    const struct worker_reader *reader;
    struct worker_source *source;
    struct worker_source_info info;
    SRC_STATE *rates;
    float *frames; /* owned: as they are in the file */
    float mono[RECORDING_BLOCK];
    size_t n_mono, mono_at;
    uint64_t n_read; /* frames of the file */
    int is_at_end;
};

/* Returns NULL, or why the recording cannot be read. */
const char *worker_recording_open(struct worker_recording *r, const struct worker_reader *reader, const char *bytes,
                                  size_t n);
/* The number of samples; 0 at the end. */
size_t worker_recording_read(struct worker_recording *r, int16_t ret[RECORDING_BLOCK]);
/* How much was read so far. */
double worker_recording_seconds(const struct worker_recording *r);
void worker_recording_close(struct worker_recording *r);
