/* How loud the voices of providers are before they are changed, from what they said: the gain of a sentence is needed
 * before the sentence has ended (speech/flow.h). The newest LIMIT_SPEECH_LEVELS voices are known; in memory only; any
 * thread.
 *
 *     known = speech_levels_find(levels, key);
 *     speech_levels_note(levels, key, done.loudness, seconds);
 */
#pragma once

#include "base/hash.h"

struct speech_levels;

struct speech_levels *speech_levels_new(void) MUST_CHECK;
struct speech_levels *speech_levels_free(struct speech_levels *l);
/* The key of a voice: of a provider's address, a model and a voice. */
void speech_levels_key(const char *base_url, const char *model, const char *voice, unsigned char out[HASH_BYTES]);
/* In hundredths of LUFS; SPEECH_LOUDNESS_UNKNOWN (speech/worker_frames.h). */
int32_t speech_levels_find(struct speech_levels *l, const unsigned char key[HASH_BYTES]);
/* The mean of what was said, in which the last half a minute weighs most. An unknown loudness changes nothing. */
void speech_levels_note(struct speech_levels *l, const unsigned char key[HASH_BYTES], int32_t loudness, double seconds);
