/* The newest spoken sentences, so that what is said again costs no work. Bounded by bytes: the one that was used
 * longest ago leaves first. A key is a hash of all that decides about the samples and of the caller: a caller cannot
 * learn from the time of an answer what another one has had spoken. In memory only; any thread.
 *
 *     speech_cache_key(&what, key);
 *     if (!speech_cache_find(cache, key, &audio, &done))
 *         ...
 *     speech_cache_keep(cache, key, buf_slice(&audio), &done);
 */
#pragma once

#include "base/buf.h"
#include "base/hash.h"
#include "speech/worker_frames.h"

struct speech_cache;

struct speech_cache_what {
    struct slice text;
    const char *caller, *engine, *version, *voice;
    double speed;
    enum speech_format format;
};

void speech_cache_key(const struct speech_cache_what *what, unsigned char out[HASH_BYTES]);

struct speech_cache *speech_cache_new(void) MUST_CHECK;
struct speech_cache *speech_cache_free(struct speech_cache *c);
/* Appends the audio. */
bool speech_cache_find(struct speech_cache *c, const unsigned char key[HASH_BYTES], struct buf *audio,
                       struct speech_frame_done *ret);
/* max_bytes: what the cache may hold from now on, with this one; an audio larger than that is not kept. */
void speech_cache_keep(struct speech_cache *c, const unsigned char key[HASH_BYTES], struct slice audio,
                       const struct speech_frame_done *done, size_t max_bytes);
/* Removes the oldest until no more than max_bytes are held. */
void speech_cache_trim(struct speech_cache *c, size_t max_bytes);
