/* The built-in embedding `lexical-384`: what a text is made of, not what it means. No download, no model file, no state.
 *
 * Words, pairs of neighbouring words and the 3- and 4-letter pieces of each word are hashed, weighted by how long a word is and (sublinearly)
 * by how often it comes, and projected with signs onto 384 dimensions; the result has length 1. All sums are of integers and the rest is
 * one exactly rounded square root and division, so that the same text has the same vector on every machine. The projection is part of stored
 * data: changing anything here is a new model name. Letters are folded (case, Latin accents). Any thread.
 *
 *     float vector[LEXICAL_DIMENSIONS];
 *     lexical_embed(slice_of("a text"), vector);
 */
#pragma once

#include "base/slice.h"

#define LEXICAL_PROVIDER "builtin"
#define LEXICAL_MODEL "lexical-384"

enum { LEXICAL_DIMENSIONS = 384 };

/* Takes time and, for long texts, passing memory of about 48 bytes a character. Never a zero vector, not even for "". */
void lexical_embed(struct slice text, float ret[LEXICAL_DIMENSIONS]);
