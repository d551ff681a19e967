/* The language of a text whose letters are not those of the configured language: espeak-ng speaks it, where flite would
 * give silence. Pure function; any thread.
 *
 *     language = speech_language_of(SLICE_LIT("Доброе утро"), "en");      "ru"
 */
#pragma once

#include "base/slice.h"

/* text: valid UTF-8. usual: the configured language, which stays unless more than half of the letters belong to a
 * script in which it is not written. Static, or usual. */
const char *speech_language_of(struct slice text, const char *usual);
