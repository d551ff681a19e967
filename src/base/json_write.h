/* Writing JSON into a bounded buffer, without building a tree.
 *
 * The writer keeps track of commas and nesting; a wrong order of calls is a programming error (assert). Strings are
 * escaped and made valid UTF-8 (bad bytes become U+FFFD). Doubles are the shortest text that reads back the same
 * (std::to_chars); NaN and infinities are written as null. The buffer is the caller's. One thread at a time.
 *
 *     struct json_writer w;
 *     json_write_init(&w, &buf);
 *     json_begin_object(&w);
 *     json_add_bool(&w, "success", true);
 *     json_end(&w);
 */
#pragma once

#include "base/buf.h"
#include "base/json.h"

struct json_writer {
    struct buf *out; /* borrowed */
    uint8_t depth;
    bool has_items[64];
    bool is_object[64];
};

void json_write_init(struct json_writer *w, struct buf *out);

/* name is NULL inside an array and at the top. */
void json_begin_object_as(struct json_writer *w, const char *name);
void json_begin_array_as(struct json_writer *w, const char *name);
#define json_begin_object(w) json_begin_object_as((w), NULL)
#define json_begin_array(w) json_begin_array_as((w), NULL)
void json_end(struct json_writer *w); /* closes the innermost */

void json_add_string(struct json_writer *w, const char *name, const char *s); /* NULL is written as null */
void json_add_slice(struct json_writer *w, const char *name, struct slice s);
/* A string whose text was written by json_escape(). */
void json_add_escaped(struct json_writer *w, const char *name, struct slice escaped);
void json_add_int(struct json_writer *w, const char *name, int64_t i);
void json_add_double(struct json_writer *w, const char *name, double d);
/* Writes each number as the shortest text that reads back as the same float32. */
void json_add_floats(struct json_writer *w, const char *name, const float *items, size_t n);
void json_add_bool(struct json_writer *w, const char *name, bool b);
void json_add_null(struct json_writer *w, const char *name);
/* JSON text that was validated before (a stored column); NULL or "" is written as null. */
void json_add_raw(struct json_writer *w, const char *name, const char *json_text);
void json_add_value(struct json_writer *w, const char *name, struct json_value v);
void json_add_strings(struct json_writer *w, const char *name, const char *const *items, size_t n);

/* Appends the text of a string, escaped and without quotes: texts that follow each other make one string. */
void json_escape(struct buf *out, struct slice s);
/* Appends one quoted, escaped string to out. */
void json_quote(struct buf *out, struct slice s);
/* Shortest round-trip text of a double; out holds at least 32 bytes. Implemented in json_simdjson.cpp
 * (std::to_chars). */
size_t json_format_double(char *out, double d);
size_t json_format_float(char *out, float f);
