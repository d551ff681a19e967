/* The phrases that a request expects to hear, checked before the engine reads them. Pure; any thread.
 *
 *     r = ears_phrases_read(a, "open the door, close the door", &kind, &text, e);
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "speech/ears_frames.h"

/* ret_text: one phrase a line, or the grammar. -EINVAL VALIDATION_ERROR names the rule. */
int ears_phrases_read(struct arena *a, const char *given, enum ears_phrases *ret_kind, struct slice *ret_text,
                      struct err *e) MUST_CHECK;
