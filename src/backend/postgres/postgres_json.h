/* Values as PostgreSQL's to_jsonb() gives them, from their texts (PostgreSQL 15, section 9.16 and "JSON Types").
 *
 * Numbers, booleans, JSON, times (ISO 8601 with T, zones with minutes) and arrays of all these are printed as such, and
 * every other type as its text. A composite value is its text, where to_jsonb() makes an object. Times are texts of a
 * session with DateStyle ISO. Pure; any thread.
 *
 *     postgres_json_add(&w, "total", &column, text);
 */
#pragma once

#include "backend/postgres/postgres_columns.h"
#include "base/json_write.h"

/* A text that is no value of its type is printed as a string. name: NULL in an array. */
void postgres_json_add(struct json_writer *w, const char *name, const struct postgres_column *c, struct slice text);
/* The value as ->> of its JSON form gives it; in the arena. */
const char *postgres_json_text(struct arena *a, const struct postgres_column *c, struct slice text);
