/* The built-in embedding `lexical-384`: represents the words of a text, not its meaning. No download, no model file, no
 * state.
 *
 * Words, pairs of neighbouring words and the 3- and 4-letter pieces of each word are hashed, weighted by the word's
 * length and (sublinearly) by their frequency in the text, and projected with signs onto 384 dimensions; the result has
 * length 1. All sums are integer sums, followed by one exactly rounded square root and division, so that the same text
 * has the same vector on every machine. The projection is part of stored data: any change here needs a new model name.
 * Letters are folded (case, Latin accents). Any thread.
 *
 *     float vector[LEXICAL_DIMENSIONS];
 *     lexical_embed(slice_of("a text"), vector);
 */
#pragma once

#include "base/slice.h"

#define LEXICAL_PROVIDER "builtin"
#define LEXICAL_MODEL "lexical-384"

enum { LEXICAL_DIMENSIONS = 384, LEXICAL_CREATED_S = 1795132800 /* 2026-11-20: its numbers have not changed since */ };

/* Slow for long texts, which also need about 48 bytes of temporary memory per character. Never a zero vector, not even
 * for "". */
void lexical_embed(struct slice text, float ret[LEXICAL_DIMENSIONS]);
