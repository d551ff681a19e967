/* Reads the WAV that a provider or a program of another project made: foreign bytes. Pure; any thread.
 *
 *     r = speech_wav_read(bytes, arena, &sound, e);
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "base/slice.h"

/* 16-bit samples of one channel, little-endian, at least one. */
struct speech_pcm {
    struct slice samples;
    uint32_t rate; /* 0: a whole file in another format, which the worker of sound reads */
};

/* Mixes channels. A length of 0 or of nearly 4 GiB, as programs write that do not know it yet, means the rest of the
 * bytes. The samples are in the arena, or a part of `bytes`. -EBADMSG; the text begins with "it ...". */
int speech_wav_read(struct slice bytes, struct arena *a, struct speech_pcm *ret, struct err *e) MUST_CHECK;
/* The same for bytes that are 16-bit samples of one channel. */
int speech_pcm_read(struct slice bytes, uint32_t rate, struct speech_pcm *ret, struct err *e) MUST_CHECK;
