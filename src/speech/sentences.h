/* Splits text into the sentences that are spoken one at a time.
 *
 * Boundaries are those of UAX #29 (Unicode 14, sentence boundaries, rules SB1 to SB11), found by one regular expression
 * over PCRE2's Unicode properties; ICU would be the other library that has them and weighs 38 MB. Exceptions follow:
 * abbreviations, initials, ordinals, and full stops inside of URLs and names end no sentence. A line break ends one. A
 * sentence above LIMIT_SPEECH_SENTENCE characters is split at clauses, else at spaces, else where it must be. Sentences
 * without a letter or digit are left out. Pure functions; any thread.
 *
 *     r = speech_sentences(arena, text, "en", &sentences, e);
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"

struct speech_sentences {
    struct slice *items; /* parts of the text, trimmed, none empty */
    size_t n;
};

/* text: valid UTF-8. language: "en", "de-AT"; decides about abbreviations. -ENOMEM when the regular expression cannot
 * be compiled or run. */
int speech_sentences(struct arena *a, struct slice text, const char *language, struct speech_sentences *ret,
                     struct err *e) MUST_CHECK;
