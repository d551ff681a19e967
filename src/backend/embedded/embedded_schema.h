/* SQL templates of the embedded backend's schema; embedded_table.h lists the words in braces. Constant. */
#pragma once

enum { EMBEDDED_SCHEMA_VERSION = 2 }; /* PRAGMA user_version */

/* An expression that makes a random UUID. */
#define EMBEDDED_NEW_UUID                                                                                              \
    "lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2) || '-' ||"         \
    " substr('89ab', 1 + (random() & 3), 1) || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6)))"

extern const char embedded_schema_common[];           /* once per file */
extern const char embedded_schema_presence_columns[]; /* once per file, when the columns are missing */
extern const char embedded_schema_table[];
extern const char embedded_schema_indexes[];
extern const char embedded_schema_triggers[];      /* of every table but the table of tombstones */
extern const char embedded_schema_lease_trigger[]; /* of every table */
