/* Markdown as a person would read it aloud: no marks of emphasis, headings and lists, links by their text, a block of
 * code announced and left out. Text without marks stays as it is, except that the lines of a paragraph become one line.
 * CommonMark is followed as far as it is heard. Pure function; any thread.
 *
 *     text = speech_spoken(arena, SLICE_LIT("# Hi\n*You* [there](http://x.y)"), "en");      "Hi\nYou there\n"
 */
#pragma once

#include "base/arena.h"

/* One line for each block; linear in the length. language chooses the words of the announcement. */
struct slice speech_spoken(struct arena *a, struct slice markdown, const char *language) MUST_CHECK;
