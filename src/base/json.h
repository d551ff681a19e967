/* Reading JSON (RFC 8259) through simdjson; the only reader of foreign JSON in the program (json_text.h checks text
 * that passes through).
 *
 * A document is parsed whole into the arena and stays valid as long as the arena. A value is a small handle passed by
 * value; the zero handle means "absent", and every reader accepts it. 64-bit integers stay integers (one from 2^63 to
 * 2^64-1 has the type JSON_DOUBLE, and is printed exactly); those beyond are doubles. Half of a surrogate pair
 * ("\ud83d") is read as U+FFFD in values and refused in names. Strings are valid UTF-8 with a NUL after the last byte.
 * Any thread, one at a time per arena.
 *
 *     struct json_value v;
 *     r = json_parse(arena, body, &v, e);
 *     name = json_string(json_get(v, "name"));
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"

enum json_type { JSON_ABSENT, JSON_NULL, JSON_BOOL, JSON_INT, JSON_DOUBLE, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

struct json_value {
    const void *doc; /* borrowed from the arena; NULL = absent */
    size_t at;
};

struct json_iter {
    struct json_value at, end;
    bool is_object;
};

/* -EINVAL INVALID_JSON, with the reason and the position, when the text is not JSON, is deeper than LIMIT_JSON_DEPTH,
 * is not UTF-8, is empty, or has a number beyond the range of a double; -E2BIG BODY_TOO_LARGE when the text has more
 * than LIMIT_JSON_VALUES values. */
int json_parse(struct arena *a, struct slice text, struct json_value *ret, struct err *e) MUST_CHECK;

/* Copies the value into another arena, for a value that must outlive its document. -E2BIG above LIMIT_REPLY. */
int json_copy(struct arena *a, struct json_value v, struct json_value *ret, struct err *e) MUST_CHECK;

enum json_type json_type(struct json_value v);
/* JSON_ABSENT and JSON_NULL: decision D2, null means absent. */
bool json_is_absent(struct json_value v);

/* Value of the named member; absent when there is none or v is not an object. The first of equal names counts. */
struct json_value json_get(struct json_value v, const char *name);
size_t json_length(struct json_value v); /* elements or members; 0 for every other type */

/* 0, 0.0, false and "" for a value of another type. json_double also reads integers. */
int64_t json_int(struct json_value v);
double json_double(struct json_value v);
bool json_bool(struct json_value v);
/* A whole number from 0 to 2^64-1, written without fraction and exponent; false for every other value. */
bool json_read_uint(struct json_value v, uint64_t *ret);
struct slice json_string(struct json_value v);
const char *json_cstr(struct json_value v); /* NULL when v is not a string or has an embedded NUL */

struct json_floats {
    const float *items;
    size_t n;
}; /* in the arena */

/* Reads the first n elements of an array as float32, rounded to nearest. Returns how many were read: less than n when
 * the next element is not a number or is too large for a float32. */
size_t json_read_floats(struct json_value v, float *out, size_t n);

/* for (struct json_iter it = json_iter(v); json_next(&it, &key, &item); )   key may be NULL and stays "" for arrays. */
struct json_iter json_iter(struct json_value v);
bool json_next(struct json_iter *it, struct slice *ret_key, struct json_value *ret_value);
/* The member name of a value that json_next() returned from an object. */
struct slice json_name_of(struct json_value member);

/* Prints the value minified, members in their order, until `out` overflows. An absent value is printed as null. */
void json_print(struct buf *out, struct json_value v);
char *json_to_str(struct arena *a, struct json_value v);
