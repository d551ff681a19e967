/* Whether somebody speaks, decided for each 10 ms of sound: the level of the signal without its low frequencies against
 * the quietest level of the last three seconds, so that a steady noise is no speech. And whether what was heard has the
 * pitch of a voice: a bang or the hiss of a kettle has none. No I/O, no allocation; one thread.
 *
 *     voice_activity_init(&v);
 *     is_speech = voice_activity_hear(&v, samples);      VOICE_FRAME samples at 16 kHz
 *     has_pitch = is_speech && voice_activity_has_pitch(&v);
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { VOICE_FRAME = 160, VOICE_FRAME_MS = 10, VOICE_BLOCKS = 6, VOICE_BLOCK_FRAMES = 50, VOICE_WINDOW = 480 };

struct voice_activity {
    float last_sample;
    float level;                  /* of the last frame, in dB below full scale */
    float quietest[VOICE_BLOCKS]; /* of each of the last blocks; [0] is the one being heard */
    size_t n_frames;              /* of that block */
    uint16_t recent;              /* the last frames that were loud, one bit each */
    float window[VOICE_WINDOW];   /* the last 30 ms without their low frequencies */
};

void voice_activity_init(struct voice_activity *v);
bool voice_activity_hear(struct voice_activity *v, const int16_t samples[VOICE_FRAME]);
/* Whether the last 30 ms repeat themselves 80 to 400 times a second. Costs some 50,000 multiplications. */
bool voice_activity_has_pitch(const struct voice_activity *v);
