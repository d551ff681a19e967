/* Shared by the table groups: reads rows into structs, and reports "no row matched" as -ENOENT. Any thread.
 *
 *     static void read_key(struct sql_rows *rows, struct arena *a, void *into) { ... }
 *     r = rows_all(rows, a, sizeof(struct key_row), read_key, ret, ret_n, e);
 */
#pragma once

#include "store/store.h"

/* Code and text of the error for a missing row: `text`, or "There is no <what> <name>." */
struct rows_missing {
    const char *code, *text, *what, *name;
};
/* The same with the name of the missing row. */
#define ROWS_NAMED(missing, of) (&(struct rows_missing){ (missing).code, (missing).text, (missing).what, (of) })

typedef void rows_read_fn(struct sql_rows *rows, struct arena *a, void *into);

/* All rows; ret_items is the address of a pointer to the struct. -E2BIG TOO_LARGE: they have more than
 * LIMIT_LIST_BYTES; what programs store must not take all the memory of a request. */
int rows_all(struct sql_rows *rows, struct arena *a, size_t item_size, rows_read_fn *read, void *ret_items,
             size_t *ret_n, struct err *e) MUST_CHECK;
/* The first rows, until they have max_bytes; 1: more rows are there. */
int rows_some(struct sql_rows *rows, struct arena *a, size_t item_size, rows_read_fn *read, size_t max_bytes,
              void *ret_items, size_t *ret_n, struct err *e) MUST_CHECK;
/* The first row, or -ENOENT. */
int rows_one(struct sql_rows *rows, struct arena *a, rows_read_fn *read, void *ret, const struct rows_missing *missing,
             struct err *e) MUST_CHECK;
/* Returns r when it is an error; -ENOENT when no row was changed. */
int rows_changed(int r, int64_t n_changes, const struct rows_missing *missing, struct err *e) MUST_CHECK;
/* The integer of a query of one row and one column. */
int rows_int(struct sql_rows *rows, int64_t *ret, struct err *e) MUST_CHECK;
/* A page size: 0 is LIMIT_LIST_DEFAULT, never above LIMIT_LIST. */
int64_t rows_limit(int64_t requested);
