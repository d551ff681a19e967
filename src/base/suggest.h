/* Suggests a name for a mistyped one. Pure.
 *
 *     near = suggest_name("opnai", names, n);          "openai"
 */
#pragma once

#include "base/util.h"

/* The nearest of the names; NULL when no name is near: within one letter added, removed, replaced or swapped for each
 * three letters typed. Names above 40 bytes are never near. */
const char *suggest_name(const char *typed, const char *const *names, size_t n);
