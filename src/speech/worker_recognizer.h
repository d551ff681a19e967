/* An engine that turns samples at EARS_RATE into words, in the worker that hears: one file an engine (worker_sphinx.c,
 * worker_vosk.c), one program each. One thread; what is returned is valid until the next call.
 *
 *     why = recognizer_start(args);
 *     why = recognizer_expect_list(list);
 *     why = recognizer_hear(samples, n, add_word, arg);
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct recognizer_word {
    const char *text;          /* valid during the call */
    uint32_t start_ms, end_ms; /* from the first sample */
    double confidence;         /* 0 to 1 */
};

const char *recognizer_name(void);
/* These return NULL, or a sentence for a person. args: of the program, NULL-ended; the engine's own. */
const char *recognizer_start(char **args);
/* Hears nothing but these phrases, one a line: words and blanks. Changes the list. */
const char *recognizer_expect_list(char *list);
const char *recognizer_expect_grammar(const char *jsgf);
/* What these samples, and those of the calls before, seem to say, without words that are none. is_first: the segment
 * begins. Ends with recognizer_hear(). */
const char *recognizer_guess(const int16_t *samples, size_t n, bool is_first);
/* One segment. add returns false to stop. */
const char *recognizer_hear(const int16_t *samples, size_t n,
                            bool (*add)(void *arg, const struct recognizer_word *word), void *arg);
