/* Reads the WAV that a provider or a program of another project made: foreign bytes, whole or while they arrive. Pure;
 * any thread.
 *
 *     r = speech_wav_read(bytes, arena, &sound, e);
 *
 *     if (speech_wav_head(bytes, &wav, e) > 0)
 *         n = speech_wav_mix(&wav, bytes after wav.n_head, &out);
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
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

enum { SPEECH_WAV_PCM = 1 }; /* kind: whole numbers */

/* The part of a WAV before its samples. */
struct speech_wav {
    uint32_t kind, n_channels, rate, bits;
    size_t n_head; /* bytes before the samples */
    size_t n_data; /* bytes of samples; SIZE_MAX: up to the end */
};

/* 1: the bytes hold the whole head; 0: they end within it; -EBADMSG. */
int speech_wav_head(struct slice bytes, struct speech_wav *ret, struct err *e) MUST_CHECK;
/* Bytes of one sample of every channel. */
size_t speech_wav_frame(const struct speech_wav *wav);
/* Appends the samples of whole frames, in one channel of 16 bits; returns the number of bytes read. */
size_t speech_wav_mix(const struct speech_wav *wav, struct slice bytes, struct buf *out);
