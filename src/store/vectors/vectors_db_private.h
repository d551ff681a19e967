/* Internals of store/vectors/vectors_db.h, for its own files only. */
#pragma once

#include "store/readers.h"
#include "store/vectors/vectors_db.h"
#include "store/writer.h"

enum {
    VECTORS_DB_SPACE_BITS = 24,
    VECTORS_DB_ROW_BITS = 63 - VECTORS_DB_SPACE_BITS,
    VECTORS_DB_MAX_SPACE = (1 << VECTORS_DB_SPACE_BITS) - 2,
};

/* The contribution of a row to its space's n_bytes. */
#define VECTORS_DB_ROW_BYTES "length(CAST(id AS BLOB)) + length(CAST(metadata AS BLOB)) + length(vector)"

struct vectors_db {
    struct writer *writer;   /* owned */
    struct readers *readers; /* owned */
};

/* Removes a deleted row, at or below text_row, from the full-text index. */
int vectors_db_text_remove(struct sql_db *db, int64_t space_id, int64_t row, const char *metadata,
                           struct err *e) MUST_CHECK;
int vectors_db_text_drop(struct sql_db *db, int64_t space_id, struct err *e) MUST_CHECK;

/* The rows of a space are adjacent in the file: the space's id is the upper part of their numbers. */
static inline int64_t vectors_db_first_row(int64_t space_id)
{
    return space_id << VECTORS_DB_ROW_BITS;
}

static inline int64_t vectors_db_last_row(int64_t space_id)
{
    return vectors_db_first_row(space_id + 1) - 1;
}
