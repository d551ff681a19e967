/* The words of what sherpa-onnx has heard: its models give tokens, which are pieces of words, with the times where they
 * begin, or a text alone. For the worker; pure.
 *
 *     is_read = sherpa_words(&heard, n_samples, add_word, arg);
 */
#pragma once

#include "speech/worker_recognizer.h"

/* The beginning of SherpaOnnxOfflineRecognizerResult of version 1.13. */
struct sherpa_heard {
    const char *text;
    const float *times; /* seconds; NULL: the model gives none */
    int32_t n_tokens;
    const char *joined;
    const char *const *tokens;
};

bool sherpa_words(const struct sherpa_heard *heard, uint32_t duration_ms,
                  bool (*add)(void *arg, const struct recognizer_word *word), void *arg);
