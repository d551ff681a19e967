/* A table of fields reads foreign JSON (or a query string) into a C struct and reports every violation together; the
 * same table is printed as JSON Schema for /openapi.json.
 *
 * A table is a const array ended by FIELD_END. Rows for reading are made with FIELD_* and name a member of the struct.
 * Rows that only describe an answer (no struct) are made with SHAPE_*. Unknown members are ignored and null means
 * absent (decision D2). Strings land in the arena.
 *
 *     struct key_body { const char *name; int64_t days; };
 *     static const struct field key_fields[] = {
 *         FIELD_STRING(struct key_body, name, "name", .max = 64, .def_str = "default"),
 *         FIELD_INT(struct key_body, days, "days", .min = 1, .max = 365, .def = 30),
 *         FIELD_END
 *     };
 */
#pragma once

#include "base/json.h"
#include "base/json_write.h"

enum field_kind {
    FIELD_KIND_END,
    FIELD_KIND_STRING,
    FIELD_KIND_INT,
    FIELD_KIND_DOUBLE,
    FIELD_KIND_BOOL,
    FIELD_KIND_OBJECT,     /* any object, kept as struct json_value; or nested when .fields is set */
    FIELD_KIND_ARRAY,      /* any array, kept as struct json_value */
    FIELD_KIND_ANY,        /* any value, kept as struct json_value */
    FIELD_KIND_STRINGS,    /* array of strings, kept as struct field_strings */
    FIELD_KIND_FLOATS,     /* array of numbers, kept as struct json_floats */
    FIELD_KIND_FLOATS_B64, /* base64 of float32 numbers, kept as struct json_floats */
    FIELD_KIND_STRING_MAP, /* object of strings, kept as struct json_value after the check */
    FIELD_KIND_STRUCT,     /* object read into an embedded struct through .fields */
    FIELD_KIND_LIST,       /* array of objects read through .fields into struct field_list */
};

enum {
    FIELD_REQUIRED = 1,
    FIELD_NULLABLE = 2 /* in answers: may be null */,
    FIELD_OPTIONAL = 4 /* in answers: may be missing */
};

struct field_strings {
    const char *const *items;
    size_t n;
}; /* in the arena */
struct field_list {
    void *items;
    size_t n;
}; /* n structs of .item_size, in the arena */

struct field {
    enum field_kind kind;
    const char *name;      /* as on the wire */
    size_t offset;         /* of the member; unused in SHAPE rows */
    unsigned flags;        /* directly after offset, so that a row can write FIELD_REQUIRED without a designator */
    size_t present_offset; /* of a bool member that means "was given"; 0 = none (so that member must not be the struct's
                              first) */
    double min, max; /* value of numbers; length in characters of strings; count of arrays. max 0 = kind's default; min
                        is 0 unless set, so a row of numbers that may be negative sets min */
    double def;      /* default of numbers and bools */
    const char *def_str;        /* default of strings */
    const char *const *one_of;  /* NULL-ended list of allowed strings (also for items of STRINGS) */
    const struct field *fields; /* nested table */
    size_t item_size;           /* LIST */
    const char *format;         /* "uuid", "date-time": printed in the schema; "uuid" is also checked on reading */
    const char *help;           /* one line for the schema */
};

/* clang-format off */
#define FIELD_ROW(k, type, member, wire, ...) { .kind = (k), .name = (wire), .offset = offsetof(type, member), __VA_ARGS__ }
#define FIELD_STRING(type, member, wire, ...)     FIELD_ROW(FIELD_KIND_STRING, type, member, wire, __VA_ARGS__)
#define FIELD_INT(type, member, wire, ...)        FIELD_ROW(FIELD_KIND_INT, type, member, wire, __VA_ARGS__)        /* int64_t */
#define FIELD_DOUBLE(type, member, wire, ...)     FIELD_ROW(FIELD_KIND_DOUBLE, type, member, wire, __VA_ARGS__)     /* double */
#define FIELD_BOOL(type, member, wire, ...)       FIELD_ROW(FIELD_KIND_BOOL, type, member, wire, __VA_ARGS__)       /* bool */
#define FIELD_OBJECT(type, member, wire, ...)     FIELD_ROW(FIELD_KIND_OBJECT, type, member, wire, __VA_ARGS__)     /* struct json_value */
#define FIELD_ARRAY(type, member, wire, ...)      FIELD_ROW(FIELD_KIND_ARRAY, type, member, wire, __VA_ARGS__)      /* struct json_value */
#define FIELD_ANY(type, member, wire, ...)        FIELD_ROW(FIELD_KIND_ANY, type, member, wire, __VA_ARGS__)        /* struct json_value */
#define FIELD_STRINGS(type, member, wire, ...)    FIELD_ROW(FIELD_KIND_STRINGS, type, member, wire, __VA_ARGS__)    /* struct field_strings */
#define FIELD_FLOATS(type, member, wire, ...)     FIELD_ROW(FIELD_KIND_FLOATS, type, member, wire, __VA_ARGS__)     /* struct json_floats */
#define FIELD_FLOATS_B64(type, member, wire, ...) FIELD_ROW(FIELD_KIND_FLOATS_B64, type, member, wire, __VA_ARGS__) /* struct json_floats */
#define FIELD_STRING_MAP(type, member, wire, ...) FIELD_ROW(FIELD_KIND_STRING_MAP, type, member, wire, __VA_ARGS__) /* struct json_value */
#define FIELD_STRUCT(type, member, wire, table, ...) { .kind = FIELD_KIND_STRUCT, .name = (wire), .fields = (table), .offset = offsetof(type, member), __VA_ARGS__ }
#define FIELD_LIST(type, member, wire, table, item, ...) { .kind = FIELD_KIND_LIST, .name = (wire), .fields = (table), .item_size = sizeof(item), .offset = offsetof(type, member), __VA_ARGS__ } /* struct field_list */
#define FIELD_END { .kind = FIELD_KIND_END }

/* Rows that only describe an answer. A member without FIELD_OPTIONAL is always present. */
#define SHAPE_ROW(k, wire, ...) { .kind = (k), .name = (wire), .offset = 0, __VA_ARGS__ }
#define SHAPE_STRING(wire, ...)  SHAPE_ROW(FIELD_KIND_STRING, wire, __VA_ARGS__)
#define SHAPE_INT(wire, ...)     SHAPE_ROW(FIELD_KIND_INT, wire, __VA_ARGS__)
#define SHAPE_DOUBLE(wire, ...)  SHAPE_ROW(FIELD_KIND_DOUBLE, wire, __VA_ARGS__)
#define SHAPE_BOOL(wire, ...)    SHAPE_ROW(FIELD_KIND_BOOL, wire, __VA_ARGS__)
#define SHAPE_TIME(wire, ...)    { .kind = FIELD_KIND_STRING, .name = (wire), .format = "date-time", .offset = 0, __VA_ARGS__ }
#define SHAPE_ANY(wire, ...)     SHAPE_ROW(FIELD_KIND_ANY, wire, __VA_ARGS__)
#define SHAPE_STRINGS(wire, ...) SHAPE_ROW(FIELD_KIND_STRINGS, wire, __VA_ARGS__)
#define SHAPE_FLOATS(wire, ...)  SHAPE_ROW(FIELD_KIND_FLOATS, wire, __VA_ARGS__)
#define SHAPE_OBJECT(wire, table, ...) { .kind = FIELD_KIND_OBJECT, .name = (wire), .fields = (table), .offset = 0, __VA_ARGS__ }    /* table NULL: any object */
#define SHAPE_LIST(wire, table, ...)   { .kind = FIELD_KIND_LIST, .name = (wire), .fields = (table), .offset = 0, __VA_ARGS__ }
/* clang-format on */

/* Reads an object into *into (zeroed by the caller, of the table's struct). Defaults are applied. On violations:
 * -EINVAL VALIDATION_ERROR with each of them in e->fields, its path prefixed by `path` ("" at the top). */
int fields_read(const struct field *table, struct json_value object, void *into, struct arena *a, const char *path,
                struct err *e) MUST_CHECK;

/* The same from a URL query ("status=pending&limit=5"), percent-decoded; only STRING, INT, DOUBLE and BOOL rows. */
int fields_read_query(const struct field *table, const char *query, void *into, struct arena *a,
                      struct err *e) MUST_CHECK;

/* Writes the table as a JSON Schema object (2020-12 as used by OpenAPI 3.1) under `name` (NULL in arrays). Required
 * are, in an answer, the rows without FIELD_OPTIONAL; in a request, the rows with FIELD_REQUIRED. */
void fields_write_schema(const struct field *table, bool is_answer, struct json_writer *w, const char *name);
/* The schema of one row's value. */
void field_write_schema(const struct field *f, bool is_answer, struct json_writer *w, const char *name);
