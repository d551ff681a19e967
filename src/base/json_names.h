/* Look-up in lists that came from outside: a walk over one list for each element of another is what an attacker wants. Any thread.
 *
 * names_of sorts the members of an object, or the texts of an array; an index keeps that for every large container it is asked about.
 *
 *     struct json_names known = json_names_of(arena, required);
 *     if (json_is_absent(json_names_get(&known, name))) ...
 */
#pragma once

#include "base/json.h"

/* Sorted; of equal names the first stands first. Eight bytes each: such lists may be long. */
struct json_names { const void *doc; size_t *at; size_t n; bool are_members; };

struct json_names json_names_of(struct arena *a, struct json_value v);
/* Absent when there is none; the first of equal names counts, as in json_get(). */
struct json_value json_names_get(const struct json_names *names, struct slice name);

struct json_index;
struct json_index *json_index_new(struct arena *a);
/* json_get() for any name, in logarithmic time; of an array of texts, the element that is this text. */
struct json_value json_index_get(struct json_index *index, struct json_value v, struct slice name);
