/* Reads what Vosk says it has heard, JSON of one shape: {"result": [{"conf", "end", "start", "word"}], "text"}. For the
 * worker, which links no reader of JSON; pure.
 *
 *     is_read = vosk_result_words(json, add_word, arg);
 */
#pragma once

#include "speech/worker_recognizer.h"

/* The text of {"partial"}: "" when there is none, and its first words when it is too long. */
void vosk_result_partial(const char *json, char *ret, size_t size);
/* False: it is no such text. */
bool vosk_result_words(const char *json, bool (*add)(void *arg, const struct recognizer_word *word), void *arg);
