/* Recordings that a request asked to keep (`keep: true`): a file in the data folder of its caller, which the caller
 * owns from then on (docs/speech.md). Nothing else of what is heard is ever stored. Any thread but the loop's.
 *
 *     const struct speech_keeper keeper = { api->data_dir, caller->scope };
 *     r = speech_keep_samples(&keeper, samples, 16000, a, &path, e);
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"

struct speech_keeper {
    const char *data_dir; /* of the service */
    const char *scope;    /* of the caller (identity/identity.h) */
};

/* Writes the bytes as they are: data folder/recording-TIME-UUID.ending, mode 0600. ending: a literal or checked by the
 * caller, like "mp3". ret_path: absolute, in the arena. */
int speech_keep_file(const struct speech_keeper *keeper, struct slice bytes, const char *ending, struct arena *a,
                     const char **ret_path, struct err *e) MUST_CHECK;
/* The same for samples (16 bits, mono), as a WAV. */
int speech_keep_samples(const struct speech_keeper *keeper, struct slice samples, uint32_t rate, struct arena *a,
                        const char **ret_path, struct err *e) MUST_CHECK;
