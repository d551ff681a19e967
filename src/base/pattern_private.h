/* What the two files of pattern.h share. */
#pragma once

#include "base/buf.h"
#include "base/pattern.h"

/* An expression in PCRE2's notation, and what its search may cost between two callouts. */
struct pattern_text {
    struct buf out;
    char why[PATTERN_WHY_SIZE]; /* "": translated */
    size_t largest_least;       /* of all {least,most} */
    size_t longest_class;       /* bytes */
};

/* Starts text->out, which the caller clears. */
void pattern_translate(struct slice source, struct pattern_text *text);
