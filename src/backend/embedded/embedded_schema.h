/* SQL templates of the embedded backend's schema; embedded_table.h lists the words in braces. Constant. */
#pragma once

enum { EMBEDDED_SCHEMA_VERSION = 2 }; /* PRAGMA user_version */

extern const char embedded_schema_common[];           /* once per file */
extern const char embedded_schema_presence_columns[]; /* once per file, when the columns are missing */
extern const char embedded_schema_table[];
extern const char embedded_schema_indexes[];
extern const char embedded_schema_triggers[];      /* of every table but the table of tombstones */
extern const char embedded_schema_lease_trigger[]; /* of every table */
