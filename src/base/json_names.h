/* Fast look-up in lists that came from outside, where an attacker could exploit the quadratic time of a search through
 * one list for each element of another. Any thread.
 *
 * json_names_of() sorts the members of an object or the texts of an array; an index keeps that order for every large
 * container that was searched.
 *
 *     struct json_names known = json_names_of(arena, required);
 *     if (json_is_absent(json_names_get(&known, name))) ...
 */
#pragma once

#include "base/json.h"

/* Sorted; equal names keep their order. Eight bytes for each name: such lists may be long. */
struct json_names {
    const void *doc;
    size_t *at;
    size_t n;
    bool are_members;
};

struct json_names json_names_of(struct arena *a, struct json_value v);
/* Absent when no name matches; the first of equal names counts, as in json_get(). */
struct json_value json_names_get(const struct json_names *names, struct slice name);

struct json_index;
struct json_index *json_index_new(struct arena *a);
/* Like json_get(), in logarithmic time; in an array of texts, finds the element that equals name. */
struct json_value json_index_get(struct json_index *index, struct json_value v, struct slice name);
