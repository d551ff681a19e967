/* PocketSphinx with Debian's English model. For hearth-speech-ears only; one thread.
 *
 *     why = sphinx_start();
 *     why = sphinx_expect_list(list);
 *     why = sphinx_hear(samples, n, add_word, arg);
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sphinx_word {
    const char *text;          /* valid during the call */
    uint32_t start_ms, end_ms; /* from the first sample */
    double confidence;         /* 0 to 1 */
};

/* These return NULL, or a sentence for a person. */
const char *sphinx_start(void);
/* Hears nothing but these phrases, one a line: words and blanks. Changes the list. */
const char *sphinx_expect_list(char *list);
const char *sphinx_expect_grammar(const char *jsgf);
/* What these samples, and those of the calls before, seem to say: valid until the next call, without words that are
 * none. is_first: the segment begins. Ends with sphinx_hear(). */
const char *sphinx_guess(const int16_t *samples, size_t n, bool is_first);
/* One segment. add returns false to stop. */
const char *sphinx_hear(const int16_t *samples, size_t n, bool (*add)(void *arg, const struct sphinx_word *word),
                        void *arg);
